"""Several files as one data set, files that are none, and reading in batches."""

import codecs
import gzip
import hashlib
import io
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decal_cli.data import Columns, parts, read
from decal_cli.data.formats.files import Raw
from decal_cli.data.formats.sources import N_BATCH_ROWS, ParquetSource
from decal_cli.errors import DecalError
from tests.helpers.files import (
    FORMATS,
    FOUR_ROWS,
    assert_same_dataset,
    every_format,
    reading_error,
    write_columns,
    write_text,
)


def test_several_files_are_one_data_set_row_after_row(tmp_path: Path) -> None:
    one = write_columns(tmp_path, {"p": [0.1, 0.2], "y": [0, 1], "x": [1, 2]}, "csv", "one")
    two = write_columns(tmp_path, {"y": [1], "x": [3.0], "p": [0.5], "more": [1]}, "parquet", "two")
    data = read([one, two], Columns(features=("x",)))
    (model,) = data.models
    assert (model.rows.score.tolist(), model.rows.label.tolist()) == ([0.1, 0.2, 0.5], [0, 1, 1])
    assert model.rows.matrix.tolist() == [[1], [2], [3]]
    assert [(i.path, i.rows, i.positives) for i in data.inputs] == [(one, 2, 1), (two, 1, 1)]


def test_files_that_do_not_go_together(tmp_path: Path) -> None:
    one = write_columns(tmp_path, {"p_a": [0.1], "y": [0]}, "csv", "one")
    two = write_columns(tmp_path, {"p_b": [0.1], "y": [0]}, "csv", "two")
    three = write_columns(tmp_path, {"p_a": [0.1], "p_b": [1.1], "y": [0]}, "csv", "three")
    assert f"{two}: no column 'p_a', which {one} has" in reading_error(one, two)
    assert f"{three} has column 'p_b', which {one} lacks" in reading_error(one, three, columns=Columns(score=("p_*",)))
    four = write_columns(tmp_path, {"p_a": [0.1, 7.0], "y": [0, 1]}, "parquet", "four")
    assert f"{four}, column 'p_a', row 2: score 7" in reading_error(one, four)
    assert "named twice" in reading_error("-", "-", stdin=io.BytesIO(b""))


def test_no_file_a_near_name_a_folder(tmp_path: Path) -> None:
    write_text(tmp_path, "p,y\n", "predictions.csv")
    line = reading_error(str(tmp_path / "prediction.csv"))
    assert "no such file" in line and f"did you mean {tmp_path / 'predictions.csv'}?" in line
    assert "there is no folder" in reading_error(str(tmp_path / "nowhere" / "p.csv"))
    (tmp_path / "empty").mkdir()
    assert "is a directory without files" in reading_error(str(tmp_path / "empty"))
    assert "nothing to read" in reading_error()
    assert "cannot be opened" in reading_error("nul\0byte")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["is empty"]),
        (b"  \n\n", ["is empty"]),
        (b"p,y", ["has a header but no rows"]),
        (b"p,y\n\n", ["has a header but no rows"]),
        (b"0.5,1\n0.7,0\n", ["the first line is data", "add a header line"]),
        (bytes(range(256)) * 4, ["is binary"]),
        (b"\xfe\xed\xfa\xce" * 9, ["neither UTF-8 text nor a format decal reads"]),
        ("größe,p,y\n1,.5,1\n".encode("latin-1"), ["neither UTF-8", "iconv -f WINDOWS-1252 -t UTF-8"]),
        ("p,y\n0.5,1\n".encode("utf-16"), ["is UTF-16 text, not UTF-8", "iconv -f UTF-16 -t UTF-8"]),
        ("p,y\n0.5,1\n".encode("utf-16-le"), ["is UTF-16LE text", "iconv -f UTF-16LE"]),
        ("p,y\n0.5,1\n".encode("utf-16-be"), ["is UTF-16BE text", "iconv -f UTF-16BE"]),
        (codecs.BOM_UTF32_LE + "p,y\n".encode("utf-32-le"), ["is UTF-32 text"]),
        (b"PK\x03\x04\0\0", ["is a zip archive"]),
        (b"SQLite format 3\0", ["is a SQLite database", "--engine 'sqlite:", "?table=NAME'"]),
        (b"\0" * 8 + b"DUCK", ["is a DuckDB database", "--engine 'duckdb:", "?table=NAME'"]),
        (b'[{"p": 0.5, "y": 1}]', ["is a JSON array", "jq -c '.[]'"]),
        (b'{"p": 0.5, "y": 1}\n{"p": 0.5, "y"', ["line 2", "is not JSON"]),
        (b'{"p": 0.5, "y": 1}\n[1, 2]\n', ["line 2", "is not an object"]),
        (b'{"p": 0.5, "y": {"a": 1}}\n', ["column 'y', row 1", "holds a list or an object"]),
        (b'{"p": 0.5, "p": 0.7, "y": 1}\n', ["duplicate column 'p'"]),
        (b"p,y\n0.5,1\n0.5\n", ["row 2 (line 3): 1 cell where the header has 2"]),
        (b"p,y\n0.5,1\n0.5,1,1\n", ["row 2 (line 3): 3 cells where the header has 2"]),
        (b"p,y\n0.5,1\n0.5,\xff\n", ["column 'y', row 2 (line 3): not UTF-8"]),
        (b"PAR1" + b"x" * 50, ["cannot be read as Parquet"]),
        (b"ARROW1\0\0" + b"x" * 50, ["cannot be read as Arrow"]),
        (b"\xff\xff\xff\xff" + b"x" * 50, ["cannot be read as Arrow"]),
    ],
)
def test_content_that_cannot_be_read(tmp_path: Path, content: bytes, words: list[str]) -> None:
    line = reading_error(write_text(tmp_path, content))
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("rows.parquet", b"hello world\n", "is not a Parquet file: it is text that begins 'hello world'"),
        ("rows.parquet.gz", b"<html>\n<p>404, not found</p>\n", "is not a Parquet file"),
        ("rows.feather", b"p,y\n", "is not an Arrow file: it is text that begins 'p,y'"),
        ("rows.json", b"3\n4\n", "is not JSON Lines: it is text that begins '3'"),
        ("rows.json", b"[[0.5, 1]]", "is a JSON array"),
        ("rows.json", b"[]", "is a JSON array"),
        ("rows.csv", b"PK\x03\x04\0\0[Content_Types].xml", "is a zip archive (a spreadsheet or .npz?)"),
        ("rows.parquet", b"hello\0world", "is binary"),
    ],
)
def test_content_that_is_not_what_the_name_says(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert words in reading_error(str(path))


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "feather", "jsonl"])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "json"])
def test_a_table_is_read_whatever_its_name(tmp_path: Path, form: str, suffix: str) -> None:
    path = Path(write_columns(tmp_path, {"p": [0.5, 0.25], "y": [1, 0]}, form))
    assert len(read([str(path.rename(tmp_path / f"other.{suffix}"))], Columns()).models[0].rows) == 2


@pytest.mark.parametrize("form", ["parquet", "feather", "csv.gz", "jsonl.gz"])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_truncated_files(tmp_path: Path, form: str, part: float) -> None:
    path = write_columns(tmp_path, {"p": [0.5] * 100, "y": [1] * 100}, form)
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole[: int(part * len(whole))])
    line = reading_error(path)
    assert path in line and ("cannot be read as" in line or "corrupt or truncated gzip" in line)


def test_tables_without_rows_and_with_a_name_twice(tmp_path: Path) -> None:
    empty = {"p": pa.array([], pa.float64()), "y": pa.array([], pa.int8())}
    twice = pa.Table.from_arrays([pa.array([0.1]), pa.array([1]), pa.array([2])], ["p", "y", "y"])
    for form in ("parquet", "feather", "arrow-stream"):
        assert "has no rows; give at least one row" in reading_error(write_columns(tmp_path, empty, form))
        FORMATS[form](twice, tmp_path / "twice")
        assert "duplicate column y" in reading_error(str(tmp_path / "twice"))


def test_names_with_newlines_stay_one_line(tmp_path: Path) -> None:
    path = write_text(tmp_path, '"a\nb",p,y\n1,2.5,1\n', "odd\nname.csv")
    assert "odd\\nname.csv" in reading_error(path)
    assert "a\\nb" in reading_error(path, columns=Columns(score=("zzz",)))


@every_format
def test_batches_hold_the_same_rows_as_whole_columns(tmp_path: Path, form: str) -> None:
    n = 150_000 if form in ("parquet", "feather") else 3_000
    rng = np.random.default_rng(1)
    data = {"p": rng.random(n), "y": rng.integers(0, 2, n)}
    paths = [
        write_columns(tmp_path, data, form),
        write_columns(tmp_path, {k: v[:10] for k, v in data.items()}, form, "more"),
    ]
    lean, whole = read(paths, Columns()), read(paths, Columns(missing="drop"))
    np.testing.assert_array_equal(lean.models[0].rows.score, whole.models[0].rows.score)
    np.testing.assert_array_equal(lean.models[0].rows.label, whole.models[0].rows.label)
    assert lean.inputs == whole.inputs
    assert (lean.columns, lean.guessed, lean.notes) == (whole.columns, whole.guessed, whole.notes)


def test_a_large_parquet_file_is_read_column_by_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 3 * N_BATCH_ROWS // 2
    rng = np.random.default_rng(0)
    table = {"p": rng.random(rows), "y": rng.integers(0, 2, rows), "w": rng.random(rows) + 0.5}
    table |= {"g": rng.choice(["a", "b"], rows).tolist(), "c": rng.integers(0, 900, rows)}
    path = write_columns(tmp_path, table, "parquet")
    columns = Columns(weight="w", group=("g",), cluster="c")
    whole = read([path], columns).models[0].rows
    monkeypatch.setattr(parts, "MAX_HELD_BYTES", 0)
    by_column = read([path], columns).models[0].rows
    for name in ("score", "label", "weight", "cluster"):
        np.testing.assert_array_equal(getattr(by_column, name), getattr(whole, name))
    np.testing.assert_array_equal(by_column.groups["g"], whole.groups["g"])
    table["p"][rows - 5] = 1.7
    wrong = write_columns(tmp_path, table, "parquet", "wrong")
    assert f"row {rows - 4}: score 1.7 is outside [0, 1]" in reading_error(wrong)
    for more in (-1, 1):
        # As damaged metadata has it.
        init = ParquetSource.__init__

        def damaged(self: ParquetSource, source: Raw, init: Any = init, more: int = more) -> None:
            init(self, source)
            self.count += more

        with monkeypatch.context() as patch:
            patch.setattr(ParquetSource, "__init__", damaged)
            assert "does not have the rows that it says" in reading_error(path)


def test_of_a_file_with_more_rows_than_it_says_none_beyond_them_is_handed_on() -> None:
    """Two batches of two rows where three are said: the first comes, with its place among all rows, then the error."""
    batches = [pa.record_batch({"p": [0.1, 0.2]}), pa.record_batch({"p": [0.3, 0.4]})]
    source = SimpleNamespace(schema=batches[0].schema, count=3, shown="x", batches=lambda wanted: batches)
    seen = []
    with pytest.raises(DecalError, match="x does not have the rows that it says"):
        for at, piece in parts._Deferred(source).pieces("p", 10):
            seen.append((at, len(piece)))
    assert seen == [(10, 2)]


@every_format
def test_a_small_file_of_any_format_from_disk_standard_input_or_a_pipe(tmp_path: Path, form: str) -> None:
    path = write_columns(tmp_path, FOUR_ROWS, form)
    data = read([path], Columns())
    (model,) = data.models
    assert model.name == "p"
    assert model.rows.score.dtype == np.float64 and model.rows.score.tolist() == FOUR_ROWS["p"]
    assert model.rows.label.dtype == np.uint8 and model.rows.label.tolist() == FOUR_ROWS["y"]
    assert (model.rows.weight, model.rows.groups, model.rows.features, model.feature_names) == (None, {}, None, ())
    content = Path(path).read_bytes()
    assert data.inputs[0] == type(data.inputs[0])(path, 4, 2, hashlib.sha256(content).hexdigest())
    assert data.columns == {"score": ("p",), "label": "y"} and data.guessed == ("score", "label")
    for paths in ([], ["-"]):
        piped = read(paths, Columns(), io.BytesIO(content))
        assert_same_dataset(piped, data)
        assert (piped.inputs[0].path, piped.inputs[0].sha256) == ("-", data.inputs[0].sha256)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    feeder = threading.Thread(target=fifo.write_bytes, args=(content,))
    feeder.start()
    assert_same_dataset(read([str(fifo)], Columns()), data)
    feeder.join()


finite = st.floats(0, 1, allow_subnormal=True)
any_table_rows = st.lists(
    st.tuples(
        finite,
        st.booleans(),
        st.floats(1e-3, 1e3),
        st.sampled_from(["a", "b c", 'quo"te', "com,ma", "ü", "line\nbreak", "", "NA"]),
        st.integers(-3, 3),
        st.floats(-1e300, 1e300),
    ),
    min_size=1,
    max_size=20,
)


@given(any_table_rows)
def test_every_format_gives_the_same_bits(tmp_path_factory: pytest.TempPathFactory, cells: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("same")
    p, y, w, g, k, x = zip(*cells, strict=True)
    table = {"p": p, "y": [int(v) for v in y], "w": w, "g": g, "k": k, "b": y, "x1": x, "x2": k}
    columns = Columns(weight="w", group=("g", "k", "b"), features=("x*",))
    first = read([write_columns(folder, table, "parquet", "first")], columns)
    assert first.models[0].rows.score.tolist() == list(p)
    for form in FORMATS:
        assert_same_dataset(read([write_columns(folder, table, form, form)], columns), first)


def test_csv_numbers_are_rounded_to_the_nearest_float64(tmp_path: Path) -> None:
    numbers = ["0.1", "1e-320", "0.30000000000000004", "0.123456789012345678901234567890"]
    numbers += ["+.5", "1.", " 0.25 ", "1E-1"]
    path = write_text(tmp_path, "p,y\n" + "".join(f"{n},1\n" for n in numbers))
    assert read([path], Columns()).models[0].rows.score.tolist() == [float(n) for n in numbers]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64(), pa.decimal128(5, 3)])
@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_narrow_and_decimal_scores_become_float64_exactly(tmp_path: Path, form: str, kind: pa.DataType) -> None:
    path = write_columns(tmp_path, {"p": pa.array(FOUR_ROWS["p"], pa.float64()).cast(kind), "y": FOUR_ROWS["y"]}, form)
    assert read([path], Columns()).models[0].rows.score.tolist() == FOUR_ROWS["p"]


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffp,y\n0.5,1\n",
        "p;y\n0.5;1\n",
        "p\ty\n0.5\t1\n",
        " p , y \n0.5 , 1\n",
        "\n\np,y\n\n0.5,1\n\n",
        "p,y\r\n0.5,1\r\n",
        "p,y\r0.5,1\r",
        "p,y\n0.5,1",
        '"p","y"\n"0.5","1"\n',
        ',p,note,y\n0,0.5,"a ""quoted"",\n\n text",1\n',
        '"a;b;c",p,y\n;,0.5,1\n',
        "t,p,y\n\udce4,0.5,1\n".encode("utf-8", "surrogateescape"),
    ],
)
def test_csv_as_it_is_found_in_the_wild(tmp_path: Path, content: str | bytes) -> None:
    data = read([write_text(tmp_path, content)], Columns())
    assert (data.models[0].rows.score.tolist(), data.models[0].rows.label.tolist()) == ([0.5], [1])


def test_a_quoted_newline_at_a_block_boundary_and_a_row_longer_than_a_block(tmp_path: Path) -> None:
    lines = ["t,p,y"] + [f'"{"word " * 30}\n{i}",0.5,{i % 2}' for i in range(12_000)] + [f"{'x' * 3_000_000},0.5,1"]
    data = read([write_text(tmp_path, "\n".join(lines))], Columns())
    assert data.inputs[0].rows == 12_001 and data.inputs[0].positives == 6_001


def test_a_header_wider_than_the_first_look(tmp_path: Path) -> None:
    names = [f"feature_{i:05d}" for i in range(9_000)]
    path = write_text(tmp_path, ",".join(["p", "y", *names]) + "\n" + ",".join(["0.5", "1", *["2"] * 9_000]) + "\n")
    model = read([path], Columns(features=("feature_*",))).models[0]
    assert model.rows.matrix.sum() == 18_000


def test_a_key_that_a_json_line_lacks_is_missing_and_nan_is_allowed(tmp_path: Path) -> None:
    path = write_text(tmp_path, '{"y": 1}\n\n{"p": NaN, "y": 0}\n{"p": 0.5, "y": true, "g": 1.0}\n')
    data = read([path], Columns(missing="drop", group=("g",)))
    assert data.models[0].rows.score.tolist() == [0.5] and data.models[0].rows.groups["g"].tolist() == ["1"]
    assert data.notes == ("p: dropped 2 of 3 rows (missing score)",)


N_ROWS = 5000
PATHS = {"batches": Columns(), "whole": Columns(group=("g",)), "features": Columns(features=("g",))}


def rows(quoted: tuple[int, ...] = (), column: int = 2) -> str:
    """A file whose given data rows, counted from 1, have a stray quote at the start of a cell."""
    lines = ["p,y,g"]
    for row in range(1, N_ROWS + 1):
        cells = [f"0.{row % 9}", str(row % 2), "abc"[row % 3]]
        if row in quoted:
            cells[column] = '"a ""quoted"" ' + cells[column]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("columns", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize(
    ("quoted", "end", "words"),
    [
        *(((row,), "\n", f"line {row + 1}: a quote opens there and is never closed") for row in (1, 101, N_ROWS)),
        *(
            ((101, row), "\n", f"line 102: a quote opens there and closes on line {row + 1}, around what looks like")
            for row in (102, 103, 4000)
        ),
        *(((101,), end, "line 102: a quote opens there and is never closed") for end in ("\r\n", "\r")),
    ],
)
def test_a_stray_quote_is_named_by_its_line(
    tmp_path: Path, columns: Columns, quoted: tuple[int, ...], end: str, words: str
) -> None:
    content = rows(quoted).replace("\n", end).encode()
    assert words in reading_error(write_text(tmp_path, content), columns=columns)
    if end != "\n":
        assert words in reading_error(write_text(tmp_path, gzip.compress(content)), columns=columns)


@pytest.mark.parametrize("columns", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize(
    "cell",
    [
        '"two\nlines"',
        '"a ""word""\nand, and\n\n1, 2, 3"',
        '"1, 2, 3, 4\n5, 6, 7"',
        '5" pipe',
        '"quoted" then not',
        '""',
    ],
)
def test_cells_of_several_lines_and_other_quotes_are_read(tmp_path: Path, columns: Columns, cell: str) -> None:
    text = "\n\np,y,g\n" + f"0.5,1,{cell}\n0.25,0,{cell}\n\n" * 50
    assert len(read([write_text(tmp_path, text)], columns).models[0].rows) == 100
