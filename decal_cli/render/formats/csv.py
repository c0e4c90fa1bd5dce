"""CSV, one line for each result, at full precision."""

from __future__ import annotations

from typing import Any

from decal_cli.render.format import Format


class Csv(Format):
    """A heading and a line a row, at full precision; what is undefined is empty."""

    name = "csv"
    reads = "rows"
    suffix = ".csv"

    def write(self, result: Any) -> str:
        import csv
        import io

        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([_written(cell) for cell in row] for row in result.rows())
        return out.getvalue()


def _written(cell: Any) -> Any:
    if isinstance(cell, bool):
        return str(cell).lower()
    # NaN is the one float that is not itself.
    return "" if isinstance(cell, float) and cell != cell else cell
