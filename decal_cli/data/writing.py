"""Columns -> the bytes of a CSV or Parquet file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from decal_cli.data.words import encodable, first_line, quote
from decal_cli.errors import DecalError

STANDARD_OUTPUT = "-"
SUFFIXES = (".csv", ".parquet")


def format_of(path: str) -> str:
    """The format that a file's name says: '.csv' or '.parquet'; a DecalError for any other. '-' stands for CSV."""
    if path == STANDARD_OUTPUT:
        return ".csv"
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        raise DecalError(f"{path}: unknown kind of file", f"end the name with {' or '.join(SUFFIXES)}")
    return suffix


def as_file(path: str, columns: Mapping[str, np.ndarray]) -> bytes:
    """What a file of this name holds: columns of equal length; CSV numbers read back to the last bit."""
    if format_of(path) == ".parquet":
        return as_parquet(columns)
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    return out.getvalue().encode(errors="backslashreplace")


def as_parquet(columns: Mapping[str, np.ndarray]) -> bytes:
    """A Parquet file of columns of equal length; what is masked in a masked array is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {}
    for name, values in columns.items():
        if values.dtype.kind in "UO":
            arrays[encodable(name)] = pa.array(map(encodable, values.tolist()), pa.string())
            continue
        known = ~np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else np.ones(len(values), bool)
        arrays[encodable(name)] = _column(np.asarray(values)[known], known)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays), sink)
    return bytes(sink.getvalue())


class Writer:
    """Batches of rows, one after the other, into an open file whose name says its format."""

    def __init__(self, path: str, file: Any) -> None:
        """path: for its format; file: open for writing bytes."""
        self.path = path
        self.format = format_of(path)
        self.file = file
        self.inner: Any = None
        self.begun = False

    def write(self, table: Any, added: Mapping[str, np.ndarray], known: np.ndarray) -> None:
        """A batch with further columns; added: name -> values of the rows in `known`, null in the others."""
        import pyarrow as pa

        for name, values in added.items():
            table = table.append_column(encodable(name), _column(values, known))
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        table = self._plain(table)
        try:
            if self.format == ".csv":
                self.file.write(_as_csv(table, header=not self.begun))
            else:
                import pyarrow.parquet as pq

                self.inner = self.inner or pq.ParquetWriter(self.file, table.schema)
                self.inner.write_table(table)
        except pa.ArrowException as error:
            reason = first_line(error).rstrip(".")
            raise DecalError(
                f"{self.path}: cannot hold all of the columns ({reason})", "leave one out, or convert it"
            ) from None
        self.begun = True

    def close(self) -> None:
        """Write what is left."""
        if self.inner is not None:
            self.inner.close()

    def _plain(self, table: Any) -> Any:
        """Texts come with a dictionary each batch, which no format takes as it is."""
        import pyarrow as pa

        for at, column in enumerate(table.schema):
            if pa.types.is_dictionary(column.type):
                table = table.set_column(at, column.name, table.column(at).cast(column.type.value_type))
            elif self.format == ".csv" and pa.types.is_nested(column.type):
                raise DecalError(
                    f"{self.path}: column {quote(column.name)} holds lists or objects, which CSV cannot",
                    "write Parquet: end the name with .parquet",
                )
        return table


def _column(values: np.ndarray, known: np.ndarray) -> Any:
    """Numbers of the rows in `known` as a pyarrow array, null in the others.

    pa.array() does the same, and imports pandas for it where that is installed.
    """
    import pyarrow as pa

    column = np.zeros(len(known), dtype=values.dtype)
    column[known] = values
    mask = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(known), [mask, pa.py_buffer(column)])


def _as_csv(table: Any, header: bool) -> bytes:
    """A batch as CSV text; quoted only where a value needs it."""
    import pyarrow as pa
    import pyarrow.csv as pacsv

    head = ",".join(map(_cell, table.column_names)) + "\n" if header else ""
    sink = pa.BufferOutputStream()
    try:
        pacsv.write_csv(table, sink, pacsv.WriteOptions(include_header=False, quoting_style="none"))
    except pa.ArrowInvalid:
        sink = pa.BufferOutputStream()
        pacsv.write_csv(table, sink, pacsv.WriteOptions(include_header=False, quoting_style="needed"))
    return head.encode() + bytes(sink.getvalue())


def _cell(text: str) -> str:
    """A name as CSV has it; Python's own writer leaves a lone carriage return bare."""
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text
