"""Several files as one data set, files that are none, and reading in batches."""

import codecs
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from decal_cli.data import Columns, parts, read
from decal_cli.data.formats.files import Raw
from decal_cli.data.formats.sources import N_BATCH_ROWS, ParquetSource
from tests.helpers.files import every_format, reading_error, write_columns, write_text


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
    assert f"{three}: has column 'p_b', which {one} lacks" in reading_error(one, three, columns=Columns(score=("p_*",)))
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
        (b"SQLite format 3\0", ["is an SQLite database"]),
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


@pytest.mark.parametrize("form", ["parquet", "feather", "csv.gz", "jsonl.gz"])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_truncated_files(tmp_path: Path, form: str, part: float) -> None:
    path = write_columns(tmp_path, {"p": [0.5] * 100, "y": [1] * 100}, form)
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole[: int(part * len(whole))])
    line = reading_error(path)
    assert path in line and ("cannot be read as" in line or "corrupt or truncated gzip" in line)


def test_empty_tables_have_no_rows(tmp_path: Path) -> None:
    empty = {"p": pa.array([], pa.float64()), "y": pa.array([], pa.int8())}
    for form in ("parquet", "feather", "arrow-stream"):
        assert "has a header but no rows" in reading_error(write_columns(tmp_path, empty, form))


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


def test_a_late_fault_is_named_with_its_row(tmp_path: Path) -> None:
    p = np.full(100_000, 0.5)
    p[-1] = 1.5
    line = reading_error(write_columns(tmp_path, {"p": p, "y": np.tile([0, 1], 50_000)}, "parquet"))
    assert "row 100000: score 1.5" in line


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
            assert "has not the rows that it says" in reading_error(path)
