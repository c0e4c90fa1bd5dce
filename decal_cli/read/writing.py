"""Columns -> the bytes of a CSV or Parquet file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping

import numpy as np

from decal_cli.read.words import oops

FORMATS = (".csv", ".parquet")


def format_of(path: str) -> str:
    """The format that a file's name says: '.csv' or '.parquet'; a DecalError for any other."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in FORMATS:
        raise oops(f"{path}: unknown kind of file", f"end the name with {' or '.join(FORMATS)}")
    return suffix


def as_file(path: str, columns: Mapping[str, np.ndarray]) -> bytes:
    """What a file of this name holds: columns of equal length; CSV numbers read back to the last bit."""
    if format_of(path) == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({name: pa.array(values.tolist()) for name, values in columns.items()}), sink)
        return bytes(sink.getvalue())
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    return out.getvalue().encode()
