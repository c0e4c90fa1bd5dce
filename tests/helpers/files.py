"""Files of every format with known content, and what reading them says."""

import gzip
import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from decal_cli.data import Columns, Dataset, read
from decal_cli.errors import DecalError

FOUR_ROWS = {"p": [0.25, 0.5, 1.0, 0.0], "y": [0, 1, 1, 0]}
ARROW_KINDS: dict[str, Any] = {
    "lists": pa.array([["a", None], [], None]),
    "vectors": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float32(), 2)),
    "record": pa.array([{"a": [1]}, None, {"a": None}]),
    "category": pa.array(["u", None, "v"]).dictionary_encode(),
    "numbered": pa.array([7, None, 7]).dictionary_encode(),
    "at": pa.array([1, None, 2**40], pa.timestamp("us", "UTC")),
    "nanosecond": pa.array([1, None, 2**60], pa.timestamp("ns", "UTC")),
    "day": pa.array([date(2024, 2, 29), None, date(1, 1, 1)]),
    "price": pa.array([Decimal("1.10"), None, Decimal("-2.00")]),
    "wide": pa.array([Decimal("9" * 30), None, Decimal(1)], pa.decimal128(38, 0)),
    "raw": pa.array([b"\0\xff", None, b""]),
    "big": pa.array([2**64 - 1, None, 0], pa.uint64()),
    "small": pa.array([-128, None, 127], pa.int8()),
    "half": pa.array([np.float16(0.5), None, np.float16(2)], pa.float16()),
    "text": pa.array(['"', None, "\r\n,;\t\u2028"]),
    "yes": pa.array([True, None, False]),
    "none": pa.nulls(3),
}
"""Columns of three rows of every kind that Parquet holds."""


def as_csv(table: pa.Table, path: Path) -> None:
    pacsv.write_csv(table, path)


def as_stream(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def as_jsonl(table: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()), encoding="utf-8")


def gzipped(write: Callable[[pa.Table, Path], None]) -> Callable[[pa.Table, Path], None]:
    def write_gz(table: pa.Table, path: Path) -> None:
        write(table, path)
        path.write_bytes(gzip.compress(path.read_bytes()))

    return write_gz


FORMATS: dict[str, Callable[[pa.Table, Path], None]] = {
    "csv": as_csv,
    "parquet": pq.write_table,
    "feather": feather.write_feather,
    "arrow-stream": as_stream,
    "jsonl": as_jsonl,
    "csv.gz": gzipped(as_csv),
    "jsonl.gz": gzipped(as_jsonl),
    "parquet.gz": gzipped(pq.write_table),
    "arrow.gz": gzipped(feather.write_feather),
}
every_format = pytest.mark.parametrize("form", FORMATS)


def write_columns(folder: Path, columns: dict[str, Any], form: str = "csv", name: str = "preds") -> str:
    # The suffix says nothing on purpose: formats are told apart by content.
    path = folder / f"{name}.data"
    FORMATS[form](pa.table(columns), path)
    return str(path)


def write_text(folder: Path, content: str | bytes, name: str = "preds.csv") -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def reading_error(*paths: str, columns: Columns = Columns(), stdin: Any = None) -> str:  # noqa: B008
    """The one line that reading fails with."""
    with pytest.raises(DecalError) as caught:
        read(paths, columns, stdin)
    line = str(caught.value)
    assert line.isprintable(), "one line"
    assert "Traceback" not in line
    assert caught.value.fix, "says what to do"
    return line


def assert_same_dataset(a: Dataset, b: Dataset) -> None:
    """Two data sets hold the same numbers, bit for bit."""
    assert len(a.models) == len(b.models)
    for x, y in zip(a.models, b.models, strict=True):
        assert (x.name, x.columns, x.feature_names, x.dropped) == (y.name, y.columns, y.feature_names, y.dropped)
        x, y = x.rows, y.rows
        np.testing.assert_array_equal(x.score.view(np.int64), y.score.view(np.int64))
        np.testing.assert_array_equal(x.label, y.label)
        assert x.groups.keys() == y.groups.keys()
        for name in x.groups:
            assert x.groups[name].tolist() == y.groups[name].tolist()
        if x.weight is not None and y.weight is not None:
            np.testing.assert_array_equal(x.weight.view(np.int64), y.weight.view(np.int64))
        if x.features is not None and y.features is not None:
            np.testing.assert_array_equal(x.features(), y.features())
