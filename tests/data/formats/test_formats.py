"""Every format gives the same arrays, bit for bit."""

import hashlib
import io
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decal_cli.data import Columns, read
from tests.helpers.files import FORMATS, FOUR_ROWS, assert_same_dataset, every_format, write_columns, write_text


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
    numbers = [
        "0.1",
        "1e-320",
        "0.30000000000000004",
        "0.123456789012345678901234567890",
        "+.5",
        "1.",
        " 0.25 ",
        "1E-1",
    ]
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
