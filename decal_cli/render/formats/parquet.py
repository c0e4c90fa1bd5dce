"""Parquet, the columns of the CSV with their types."""

from __future__ import annotations

from typing import Any

from decal_cli.render.format import Format


class Parquet(Format):
    """A column for each column of the CSV; what is undefined is null."""

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
