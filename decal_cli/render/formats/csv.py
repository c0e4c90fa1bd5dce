"""CSV, one line for each result, at full precision."""

from __future__ import annotations

from typing import Any

from decal_cli.errors import printable
from decal_cli.render.format import Format

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""What a formula begins with; spreadsheets of some countries know the wide signs too."""


class Csv(Format):
    """A heading and a line a row, at full precision; what is undefined is empty.

    Texts are escaped, and an apostrophe stands before one that a spreadsheet would compute.
    """

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
    if isinstance(cell, str):
        text = printable(cell)
        return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
    if isinstance(cell, bool):
        return str(cell).lower()
    # NaN is the one float that is not itself.
    return "" if isinstance(cell, float) and cell != cell else cell
