"""Formats for machines: JSON, CSV and Parquet, everything at full precision."""

from __future__ import annotations

from typing import Any

from decal_cli.errors import inert, printable
from decal_cli.render.format import Format

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""What a formula begins with; spreadsheets of some countries know the wide signs too."""


class Csv(Format):
    """CSV, one line for each result, at full precision.

    What is undefined is empty. Texts are escaped, and an apostrophe stands before one that a spreadsheet would compute.
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


class Json(Format):
    """JSON, everything at full precision.

    `report.schema.json` says what it holds. Texts are exact; characters that do not print are written as JSON escapes
    them. What is no character, such as a byte of a file name that is not UTF-8, is written out: \\udcff is the byte ff.
    """

    name = "json"
    reads = "data"
    suffix = ".json"

    def write(self, result: Any) -> str:
        import json

        text = json.dumps(result.data(), indent=2, allow_nan=False, ensure_ascii=False)
        return "".join(f"{_escaped(line)}\n" for line in text.split("\n"))


def _escaped(line: str) -> str:
    import json

    if inert(line) != line:
        line = line.replace("##", "#\\u0023")
    if line.isprintable():
        return line
    # No JSON parser has to take half of a pair of surrogates, and many do not.
    halves = range(0xD800, 0xE000)
    return "".join(c if c.isprintable() else ("\\" if ord(c) in halves else "") + json.dumps(c)[1:-1] for c in line)


class Parquet(Format):
    """Parquet, the columns of the CSV with their types."""

    name = "parquet"
    reads = "columns"
    suffix = ".parquet"

    def write(self, result: Any) -> bytes:
        import io

        import pyarrow as pa
        import pyarrow.parquet as pq

        from decal_cli.data.words import encodable

        types = {str: pa.string(), float: pa.float64()}
        columns = result.columns()
        schema = pa.schema([(name, types[kind]) for name, (kind, _) in columns.items()])
        sink: Any = io.BytesIO()
        table = {name: list(map(encodable, values)) for name, (_, values) in columns.items()}
        pq.write_table(pa.table(table, schema=schema), sink)
        return bytes(sink.getvalue())
