"""Inputs that change while they are read, never end, or hold more than they seem to: one line each."""

import gzip
import io
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from decal_cli import documents
from decal_cli.data import Columns, NewRows, read
from decal_cli.data.formats import files
from decal_cli.data.formats.jsonlines import JsonLinesSource
from decal_cli.data.formats.sources import ArrowSource, ParquetSource
from decal_cli.errors import DecalError
from tests.helpers.files import FORMATS, reading_error, write_columns, write_text

ROWS = {"p": [0.25, 0.5, 1.0, 0.0] * 10, "y": [0, 1, 1, 0] * 10, "x": [1.0, 2.0, 3.0, 4.0] * 10}


class Endless(io.RawIOBase):
    """A stream that repeats itself for ever."""

    def __init__(self, byte: bytes) -> None:
        self.byte = byte
        self.given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:
        into[:] = (self.byte * len(into))[: len(into)]
        self.given += len(into)
        return len(into)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("columns", [Columns(score=("p",)), Columns(score=("p",), features=("x",))], ids=str)
def test_a_file_that_is_replaced_while_it_is_read(
    tmp_path: Path, form: str, columns: Columns, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_columns(tmp_path, ROWS, form)
    other = write_columns(tmp_path, {**ROWS, "x": [9.0] * 40}, form, "other")
    data = read([path], Columns(score=("p",), features=("x",)))
    os.replace(other, path)
    # The features are read when someone asks for them.
    with pytest.raises(DecalError, match="changed while it was read; run again"):
        len(data.models[0].rows.typed)
    digest = files.Raw.sha256

    def replaced(raw: files.Raw) -> str:
        os.utime(path, ns=(0, 0))
        return digest(raw)

    monkeypatch.setattr(files.Raw, "sha256", replaced)
    assert "changed while it was read" in reading_error(path, columns=columns)


def test_rows_to_be_scored_that_change(tmp_path: Path) -> None:
    path = write_columns(tmp_path, ROWS, "csv")
    batches = NewRows(path, Columns(score=("p",)), (), None).batches()
    next(batches)
    os.utime(path, ns=(0, 0))
    with pytest.raises(DecalError, match="changed while it was read"):
        list(batches)


def test_what_was_wrong_in_a_file_that_changed_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_text(tmp_path, "p,y\n0.5,1\n7,0\n")
    head = files.Raw.head

    def touched(raw: files.Raw, *size: int) -> bytes:
        os.utime(path, ns=(0, 0))
        return head(raw, *size)

    monkeypatch.setattr(files.Raw, "head", touched)
    assert "changed while it was read" in reading_error(path)


@pytest.mark.parametrize("write", [feather.write_feather, pq.write_table])
def test_a_file_that_is_cut_while_it_is_read_does_not_end_the_process(tmp_path: Path, write: object) -> None:
    path = tmp_path / "cut"
    rng, none = np.random.default_rng(0), "uncompressed" if write is feather.write_feather else "none"
    write(pa.table({"p": rng.random(1 << 19), "y": rng.integers(0, 2, 1 << 19)}), path, compression=none)
    raw = files.raw(str(path), None)
    source = (ArrowSource(raw, raw.head()) if write is feather.write_feather else ParquetSource(raw)).load(
        {"p": "typed"}
    )
    os.truncate(path, 1000)
    assert float(source.column("p").to_numpy().mean()) == pytest.approx(0.5, abs=0.01)


def _thrift(number: int) -> bytes:
    """A number as headers of Parquet pages hold it: zigzag, seven bits a byte."""
    number *= 2
    low = [number >> shift & 0x7F for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes([*(each | 0x80 for each in low[:-1]), low[-1]])


def test_a_damaged_page_of_parquet_that_claims_2_gib(tmp_path: Path) -> None:
    score = np.random.default_rng(0).random(3_000)
    table = pa.table({"p": score, "y": np.round(score), "x": score})
    before = pa.default_memory_pool().max_memory()
    for compression in ("none", "snappy"):
        path = tmp_path / compression
        pq.write_table(table, path, compression=compression, use_dictionary=False)
        column = pq.ParquetFile(path).metadata.row_group(0).column(0)
        # Fields of the header, each after a byte 0x15: the type of the page, its size, and its size in the file.
        content = path.read_bytes()
        pattern = rb"\x15[\0-\x7f]\x15[\x80-\xff]+[\0-\x7f]\x15([\x80-\xff]+[\0-\x7f])"
        size = re.compile(pattern).match(content, column.data_page_offset)
        assert size is not None
        start, end = size.span(1)
        claim = _thrift(2**31 - 1)
        cut = end + 200
        path.write_bytes(content[:start] + claim + content[end : cut - len(claim) + end - start] + content[cut:])
        for columns in (Columns(score=("p",)), Columns(score=("x",), features=("p",))):
            with pytest.raises(DecalError, match=r"cannot be read as Parquet: .*expected .2147483647"):
                len(read([str(path)], columns).models[0].rows.typed)
    assert pa.default_memory_pool().max_memory() - before < 1 << 28


@pytest.mark.parametrize("byte", [b"\0", b"a\0"])
def test_an_endless_stream_of_binary_is_refused_by_its_start(byte: bytes) -> None:
    stream = Endless(byte)
    assert "standard input" in reading_error("-", stdin=io.BufferedReader(stream))
    assert stream.given <= 1 << 20


@pytest.mark.parametrize("byte", [b"1", b"\n", b"{"])
def test_an_endless_stream_of_text_ends_at_the_limit(byte: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_STREAM_BYTES", 8 << 20)
    stream = Endless(byte)
    line = reading_error("-", stdin=io.BufferedReader(stream))
    assert "holds more than 8 MiB" in line or "is empty" in line
    assert stream.given <= 16 << 20


def test_dev_zero() -> None:
    assert "/dev/zero is binary" in reading_error("/dev/zero")


def test_a_compressed_file_that_must_be_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_STREAM_BYTES", 1 << 20)
    zeros = pa.table({"p": np.zeros(1 << 18), "y": np.zeros(1 << 18, dtype=np.int8)})
    feather.write_feather(zeros, tmp_path / "zeros", compression="uncompressed")
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress((tmp_path / "zeros").read_bytes()))
    assert "holds more than 1 MiB" in reading_error(str(path))


def test_json_lines_whose_rows_have_other_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f'{{"p": 0.5, "y": {k % 2}, "k{k}": 1}}\n' for k in range(8_000))
    path = write_text(tmp_path, rows, "keys.jsonl")
    data = read([path], Columns(score=("p",), features=("k*",)))
    # Not one value is looked at: each would be looked for in every row.
    monkeypatch.setattr(JsonLinesSource, "batches", None)
    with pytest.raises(DecalError, match="lack 63,992,000 values of the 8,000 columns"):
        len(data.models[0].rows.typed)
    monkeypatch.undo()
    with pytest.raises(DecalError, match="name fewer columns"):
        list(NewRows(path, Columns(score=("p",)), (), None).batches())
    assert len(read([path], Columns(score=("p",), features=("k1", "k2"))).models[0].rows.typed) == 8_000


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("[" * 100_000 + "]" * 100_000, "line 2 is not JSON (nested too deep)"),
        ("9" * 5_000, "line 2 is not JSON (a number of thousands of digits)"),
        ('"' + "x" * (1 << 24) + '"', "line 2 holds more than 16 MiB"),
    ],
    ids=lambda value: value[:20],
)
def test_one_line_of_json_is_bounded(tmp_path: Path, value: str, says: str) -> None:
    text = f'{{"p": 0.5, "y": 1}}\n{{"p": 0.5, "y": 0, "z": {value}}}\n'
    assert says in reading_error(write_text(tmp_path, text, "long.jsonl"))


def test_a_document_has_a_key_a_line_and_its_items_two_spaces_further_in() -> None:
    text = documents.canonical_json({"a": [1, 2], "b": {"c": [{"d": 1}, 2]}})
    assert [line.replace("  ", "> ") for line in text.split("\n")] == [
        "{",
        '> "a": [1, 2],',
        '> "b": {',
        '> > "c": [',
        "> > > {",
        '> > > > "d": 1',
        "> > > },",
        "> > > 2",
        "> > ]",
        "> }",
        "}",
        "",
    ]


def test_a_number_of_400_digits_is_infinite_where_it_is_read(tmp_path: Path) -> None:
    text = f'{{"p": 0.5, "y": 1, "z": {"9" * 400}}}\n{{"p": 0.5, "y": 0, "z": 1}}\n'
    path = write_text(tmp_path, text, "long.jsonl")
    assert len(read([path], Columns(score=("p",))).models[0].rows) == 2
    assert "score is inf" in reading_error(path, columns=Columns(score=("z",)))
