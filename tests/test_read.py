"""Reading: what decal takes, how it finds its columns, and the one line that each mistake gets."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decal_cli.errors import DecalError
from decal_cli.read import Columns, Dataset, from_arrays, read

SMALL = {"p": [0.25, 0.5, 1.0, 0.0], "y": [0, 1, 1, 0]}


# ---- helpers -------------------------------------------------------------------------------------------------------


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


def written(folder: Path, columns: dict[str, Any], form: str = "csv", name: str = "preds") -> str:
    # The suffix says nothing on purpose: formats are told apart by content.
    path = folder / f"{name}.data"
    FORMATS[form](pa.table(columns), path)
    return str(path)


def text(folder: Path, content: str | bytes, name: str = "preds.csv") -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def error(*paths: str, columns: Columns = Columns(), stdin: Any = None) -> str:  # noqa: B008
    """The one line that reading fails with."""
    with pytest.raises(DecalError) as caught:
        read(paths, columns, stdin)
    line = str(caught.value)
    assert line.isprintable(), "one line"
    assert "Traceback" not in line
    assert caught.value.fix, "says what to do"
    return line


def same(a: Dataset, b: Dataset) -> None:
    """Two data sets hold the same numbers, bit for bit."""
    assert len(a.models) == len(b.models)
    for x, y in zip(a.models, b.models, strict=True):
        assert (x.model, x.feature_names, x.dropped) == (y.model, y.feature_names, y.dropped)
        np.testing.assert_array_equal(x.score.view(np.int64), y.score.view(np.int64))
        np.testing.assert_array_equal(x.label, y.label)
        assert x.groups.keys() == y.groups.keys()
        for name in x.groups:
            assert x.groups[name].tolist() == y.groups[name].tolist()
        if x.weight is not None and y.weight is not None:
            np.testing.assert_array_equal(x.weight.view(np.int64), y.weight.view(np.int64))
        if x.features is not None and y.features is not None:
            np.testing.assert_array_equal(x.features(), y.features())


# ---- formats -------------------------------------------------------------------------------------------------------


@every_format
def test_a_small_file_of_any_format_from_disk_standard_input_or_a_pipe(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, SMALL, form)
    data = read([path], Columns())
    (model,) = data.models
    assert model.model == "p"
    assert model.score.dtype == np.float64 and model.score.tolist() == SMALL["p"]
    assert model.label.dtype == np.uint8 and model.label.tolist() == SMALL["y"]
    assert (model.weight, model.groups, model.features, model.feature_names) == (None, {}, None, ())
    content = Path(path).read_bytes()
    assert data.inputs[0] == type(data.inputs[0])(path, 4, 2, hashlib.sha256(content).hexdigest())
    assert data.columns == {"score": ("p",), "label": "y"} and data.found == ("score", "label")
    for paths in ([], ["-"]):
        piped = read(paths, Columns(), io.BytesIO(content))
        same(piped, data)
        assert (piped.inputs[0].path, piped.inputs[0].sha256) == ("-", data.inputs[0].sha256)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    feeder = threading.Thread(target=fifo.write_bytes, args=(content,))
    feeder.start()
    same(read([str(fifo)], Columns()), data)
    feeder.join()


finite = st.floats(0, 1, allow_subnormal=True)
rows = st.lists(
    st.tuples(
        finite,
        st.booleans(),
        st.floats(1e-300, 1e300),
        st.sampled_from(["a", "b c", 'quo"te', "com,ma", "ü", "line\nbreak", "", "NA"]),
        st.integers(-3, 3),
        st.floats(-1e300, 1e300),
    ),
    min_size=1,
    max_size=20,
)


@settings(max_examples=25, deadline=None)
@given(rows)
def test_every_format_gives_the_same_bits(tmp_path_factory: pytest.TempPathFactory, drawn: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("same")
    p, y, w, g, k, x = zip(*drawn, strict=True)
    table = {"p": p, "y": [int(v) for v in y], "w": w, "g": g, "k": k, "b": y, "x1": x, "x2": k}
    columns = Columns(weight="w", group=("g", "k", "b"), features=("x*",))
    first = read([written(folder, table, "parquet", "first")], columns)
    assert first.models[0].score.tolist() == list(p)
    for form in FORMATS:
        same(read([written(folder, table, form, form)], columns), first)


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
    path = text(tmp_path, "p,y\n" + "".join(f"{n},1\n" for n in numbers))
    assert read([path], Columns()).models[0].score.tolist() == [float(n) for n in numbers]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64(), pa.decimal128(5, 3)])
@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_narrow_and_decimal_scores_become_float64_exactly(tmp_path: Path, form: str, kind: pa.DataType) -> None:
    path = written(tmp_path, {"p": pa.array(SMALL["p"], pa.float64()).cast(kind), "y": SMALL["y"]}, form)
    assert read([path], Columns()).models[0].score.tolist() == SMALL["p"]


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
    data = read([text(tmp_path, content)], Columns())
    assert (data.models[0].score.tolist(), data.models[0].label.tolist()) == ([0.5], [1])


def test_a_quoted_newline_at_a_block_boundary_and_a_row_longer_than_a_block(tmp_path: Path) -> None:
    lines = ["t,p,y"] + [f'"{"word " * 30}\n{i}",0.5,{i % 2}' for i in range(12_000)] + [f"{'x' * 3_000_000},0.5,1"]
    data = read([text(tmp_path, "\n".join(lines))], Columns())
    assert data.inputs[0].rows == 12_001 and data.inputs[0].positives == 6_001


def test_a_header_wider_than_the_first_look(tmp_path: Path) -> None:
    names = [f"feature_{i:05d}" for i in range(9_000)]
    path = text(tmp_path, ",".join(["p", "y", *names]) + "\n" + ",".join(["0.5", "1", *["2"] * 9_000]) + "\n")
    model = read([path], Columns(features=("feature_*",))).models[0]
    assert model.features is not None and model.features().sum() == 18_000


def test_a_key_that_a_json_line_lacks_is_missing_and_nan_is_allowed(tmp_path: Path) -> None:
    path = text(tmp_path, '{"y": 1}\n\n{"p": NaN, "y": 0}\n{"p": 0.5, "y": true, "g": 1.0}\n')
    data = read([path], Columns(missing="drop", group=("g",)))
    assert data.models[0].score.tolist() == [0.5] and data.models[0].groups["g"].tolist() == ["1"]
    assert data.notes == ("p: 2 of 3 rows left out: score missing",)


# ---- columns -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", ["p", "Prob", "PROBA", "probability", "score", "y_prob", "y_score", "pred", "p_rf"])
@pytest.mark.parametrize("label", ["Y", "label", "target", "y_true", "outcome"])
def test_usual_names_are_found_whatever_their_case(score: str, label: str) -> None:
    data = from_arrays({"id": [1, 2], score: [0.5, 0.5], label: [0, 1]})
    assert data.columns == {"score": (score,), "label": label} and data.found == ("score", "label")


def test_a_named_column_is_not_reported_as_found(tmp_path: Path) -> None:
    path = written(tmp_path, {**SMALL, "q": SMALL["p"]})
    data = read([path], Columns(score=("q",)))
    assert data.found == ("label",) and data.models[0].model == "q"


def test_globs_make_models_side_by_side_and_pass_over_other_roles(tmp_path: Path) -> None:
    table = {"p_a": [0.1, 0.2], "p_b": [0.3, 0.4], "p_y": [0, 1], "x1": [1, 2], "x2": [3, 4]}
    path = written(tmp_path, table)
    data = read([path], Columns(score=("p_*",), label="p_y", features=("x*",)))
    assert [m.model for m in data.models] == ["p_a", "p_b"]
    assert data.columns["features"] == ("x1", "x2")
    assert read([path], Columns(score=("p_b", "p_*"), label="p_y")).columns["score"] == ("p_b", "p_a")


COLUMN_ERRORS: list[tuple[str, Columns, list[str]]] = [
    ("p,Y_hat\n.5,1\n", Columns(), ["no label column (none is called y, label", "--label; columns: p, Y_hat"]),
    ("q,y\n.5,1\n", Columns(), ["no score column (none is called p, prob", "p_*", "--score; columns: q, y"]),
    ("p,score,y\n.5,.5,1\n", Columns(), ["2 columns could be the score: p, score", "--score 'p'"]),
    ("p_a,p_b,y\n.5,.5,1\n", Columns(), ["2 columns could be the score: p_a, p_b", "--score 'p_*' for all"]),
    ("p,y,label\n.5,1,1\n", Columns(), ["2 columns could be the label: y, label", "--label 'y'"]),
    ("p_gnb,y\n.5,1\n", Columns(score=("P_gmb",)), ["no column 'P_gmb'", "did you mean 'p_gnb'?", "columns: p_gnb, y"]),
    ("p,y\n.5,1\n", Columns(score=("q_*",)), ["no column matches 'q_*'", "columns: p, y"]),
    ("p,y\n.5,1\n", Columns(weight="w"), ["no column 'w'"]),
    ("p,y\n.5,1\n", Columns(group=("g",)), ["no column 'g'"]),
    ("p,y\n.5,1\n", Columns(features=("x*",)), ["no column matches 'x*'"]),
    ("p,y\n.5,1\n", Columns(score=("y",)), ["column 'y'", "no label column"][1:]),
    ("p,y\n.5,1\n", Columns(score=("y",), label="y"), ["column 'y' is taken both as score and as label"]),
    ("p,y\n.5,1\n", Columns(score=("p",), features=("p",)), ["column 'p' is taken both as score and as features"]),
    ("p,y\n.5,1\n", Columns(weight="p"), ["no score column"]),
    ("p,y\n.5,1\n", Columns(score=("p",), weight="p"), ["column 'p' is taken both as score and as weight"]),
    ("p,p,y\n.5,.5,1\n", Columns(), ["duplicate column p", "rename"]),
    (",".join(f"c{i}" for i in range(30)) + "\n", Columns(), []),
]


@pytest.mark.parametrize(("content", "columns", "words"), COLUMN_ERRORS[:-1])
def test_a_column_that_cannot_be_settled(tmp_path: Path, content: str, columns: Columns, words: list[str]) -> None:
    line = error(text(tmp_path, content), columns=columns)
    for word in words:
        assert word in line


def test_at_most_a_dozen_columns_are_listed() -> None:
    with pytest.raises(DecalError) as caught:
        from_arrays({f"c{i}": [1] for i in range(30)})
    assert "c11, ... (30 in all)" in str(caught.value) and "c12" not in str(caught.value)


def test_a_group_may_also_be_a_feature() -> None:
    data = from_arrays({**SMALL, "age": [1, 1, 2, 2]}, columns=Columns(group=("age",), features=("age",)))
    assert data.models[0].groups["age"].tolist() == ["1", "1", "2", "2"]


# ---- labels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "positive", "expected"),
    [
        ([0, 1, 1], None, [0, 1, 1]),
        ([0.0, 1.0], None, [0, 1]),
        ([False, True], None, [0, 1]),
        (["0", "1"], None, [0, 1]),
        (["true", "False", "TRUE"], None, [1, 0, 1]),
        ([1, 2, 2], "2", [0, 1, 1]),
        ([1, 2, 2], "1", [1, 0, 0]),
        ([0, 1], "0", [1, 0]),
        ([0, 1], "1.0", [0, 1]),
        ([False, True], "True", [0, 1]),
        ([False, True], "0", [1, 0]),
        (["ham", "spam"], "spam", [0, 1]),
        ([-1, 1], "1", [0, 1]),
        (["none", "hate"], "hate", [0, 1]),
        ([0, 0], None, [0, 0]),
        ([1], None, [1]),
        ([True, True], None, [1, 1]),
        (["spam"], "spam", [1]),
        ([0, 0], "1", [0, 0]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), "b", [1, 0, 1]),
        (pa.array([0, 1], pa.int64()), None, [0, 1]),
        (pa.array([0, 1], pa.uint8()), None, [0, 1]),
    ],
)
@pytest.mark.parametrize("form", ["csv", "parquet", "feather", "jsonl"])
def test_two_values_are_labels(tmp_path: Path, values: Any, positive: str | None, expected: Any, form: str) -> None:
    path = written(tmp_path, {"p": [0.5] * len(values), "y": values}, form)
    columns = Columns(positive=positive)
    assert read([path], columns).models[0].label.tolist() == expected


@pytest.mark.parametrize(
    ("values", "positive", "words"),
    [
        ([1, 2], None, ["column 'y': label is 1 or 2, not 0 or 1; use --positive 2"]),
        ([-1, 1], None, ["label is -1 or 1, not 0 or 1; use --positive 1"]),
        (["no", "yes"], None, ["label is no, yes, not 0 or 1", "--positive 'no' or --positive 'yes'"]),
        ([0, 1, 2], None, ["row 3", "label is '2'", "3 values: 0, 1, 2"]),
        (["a", "b", "c"], "a", ["3 values: a, b, c"]),
        ([2, 2], None, ["label is always '2'", "--positive"]),
        (["ham", "spam"], "Spam", ["label is never 'Spam', it is ham, spam", "correct --positive"]),
        ([0.5, 1.0, 0.0], None, ["row 1", "label is '0.5'"]),
        (list(range(100)), None, ["more than 64 different values"]),
        ([None, 1, None], None, ["label missing in 2 of 3 rows (rows 1, 3)", "--missing drop"]),
    ],
)
@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_other_labels_are_not_guessed_at(
    tmp_path: Path, values: Any, positive: str | None, words: list[str], form: str
) -> None:
    path = written(tmp_path, {"p": [0.5] * len(values), "y": values}, form)
    line = error(path, columns=Columns(positive=positive))
    for word in words:
        assert word in line


def test_labels_are_coded_over_all_files_together(tmp_path: Path) -> None:
    one = written(tmp_path, {"p": [0.5, 0.5], "y": [0, 1]}, "csv", "one")
    same_way = written(tmp_path, {"p": [0.5, 0.5], "y": [1.0, 0.0]}, "parquet", "two")
    assert read([one, same_way], Columns()).models[0].label.tolist() == [0, 1, 1, 0]
    other_way = written(tmp_path, {"p": [0.5, 0.5], "y": [1, 2]}, "parquet", "three")
    assert f"{other_way}, column 'y', row 2: label is '2'" in error(one, other_way)


# ---- scores, weights -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([0.5, 1.7], ["column 'p', row 2", "score 1.7 is outside [0, 1]", "--logit"]),
        ([0.5, -0.1, -2.0], ["row 2", "score -0.1 is outside", "(2 such rows)", "--logit"]),
        ([12.0, 99.5], ["score 12 is outside", "divided by 100"]),
        ([0.5, 1.00000001], ["score 1.00000001 is outside", "rounding"]),
        ([0.5, float("inf")], ["row 2", "score is inf"]),
        ([float("-inf"), 3.0], ["row 1", "score is -inf"]),
        ([float("nan"), 0.5], ["score missing in 1 of 2 rows (row 1)", "--missing drop"]),
        ([None, None], ["score missing in 2 of 2 rows (rows 1, 2)"]),
        ([None] * 9 + [0.5], ["score missing in 9 of 10 rows (rows 1, 2, 3, 4, 5, ...)"]),
    ],
)
@pytest.mark.parametrize("form", ["csv", "parquet", "feather", "jsonl", "csv.gz"])
def test_a_score_is_a_number_between_0_and_1(tmp_path: Path, scores: Any, words: list[str], form: str) -> None:
    line = error(written(tmp_path, {"p": pa.array(scores, pa.float64()), "y": [1] * len(scores)}, form))
    for word in words:
        assert word in line


@pytest.mark.parametrize("form", ["csv", "parquet", "feather", "jsonl"])
def test_text_in_the_score_column_is_shown_with_its_row(tmp_path: Path, form: str) -> None:
    line = error(written(tmp_path, {"p": ["high\nhigher", "low"], "y": [0, 1]}, form))
    assert "column 'p', row 1" in line and "'high" in line and "is not a number" in line


def test_csv_errors_name_the_line_too(tmp_path: Path) -> None:
    path = text(tmp_path, 't,p,y\n"two\nlines",0.5,1\n\nx,oops,1\n')
    assert f"{path}, column 'p', row 2 (line 5): 'oops' is not a number" in error(path)
    path = text(tmp_path, "p;y\n0,5;1\n")
    assert "'0,5' is not a number; write decimals with a point" in error(path)
    path = text(tmp_path, "p,y\n0.5,1\n1.5,1\n")
    assert "row 2 (line 3): score 1.5" in error(path)


def test_log_odds(tmp_path: Path) -> None:
    logits = [-800.0, -1.0, 0.0, 1.0, 800.0]
    path = written(tmp_path, {"p": logits, "y": [0, 0, 1, 1, 1]}, "parquet")
    score = read([path], Columns(logit=True)).models[0].score
    np.testing.assert_allclose(score[1:4], 1 / (1 + np.exp([1.0, 0.0, -1.0])), rtol=1e-15)
    assert score[0] < 1e-300 and score[4] == 1.0
    path = written(tmp_path, {"p": [*logits, np.inf], "y": [0, 0, 1, 1, 1, 1]}, "parquet")
    assert "row 6: score is inf; clip log-odds" in error(path, columns=Columns(logit=True))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, 0.0], ["column 'w', row 2", "weight 0 is not positive"]),
        ([-1.0, -2.0], ["row 1", "weight -1 is not positive", "(2 such rows)"]),
        ([1.0, float("inf")], ["row 2", "weight inf"]),
        ([None, 1.0], ["weight missing in 1 of 2 rows (row 1)"]),
    ],
)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_weights_are_positive(tmp_path: Path, weights: Any, words: list[str], form: str) -> None:
    path = written(tmp_path, {"p": [0.5, 0.5], "y": [0, 1], "w": pa.array(weights, pa.float64())}, form)
    for word in words:
        assert word in error(path, columns=Columns(weight="w"))


# ---- missing values ------------------------------------------------------------------------------------------------


@every_format
def test_rows_are_left_out_model_by_model_and_counted(tmp_path: Path, form: str) -> None:
    table = {
        "p_a": [0.1, None, 0.3, 0.4, 0.5],
        "p_b": [0.1, 0.2, 0.3, 0.4, 0.5],
        "y": [0, 1, None, 1, 0],
        "w": [1.0, 2.0, 3.0, None, 5.0],
        "x": [1.0, 2.0, 3.0, 4.0, 5.0],
        "g": ["u", None, "v", "v", ""],
    }
    path = written(tmp_path, table, form)
    columns = Columns(score=("p_*",), weight="w", group=("g",), features=("x",), missing="drop")
    data = read([path], columns)
    a, b = data.models
    assert (a.score.tolist(), b.score.tolist()) == ([0.1, 0.5], [0.1, 0.2, 0.5])
    assert (a.label.tolist(), b.label.tolist()) == ([0, 0], [0, 1, 0])
    assert b.weight is not None and b.weight.tolist() == [1, 2, 5]
    assert b.groups["g"].tolist() == ["u", "missing", "missing"]
    assert b.features is not None and b.features().tolist() == [[1], [2], [5]]
    assert (a.dropped, b.dropped) == (3, 2)
    assert data.notes == (
        "p_a: 3 of 5 rows left out: score missing (1), label missing (1), weight missing (1)",
        "p_b: 2 of 5 rows left out: label missing (1), weight missing (1)",
    )
    assert (data.inputs[0].rows, data.inputs[0].positives) == (5, 2)


def test_with_features_named_their_gaps_count_too(tmp_path: Path) -> None:
    path = written(tmp_path, {**SMALL, "x1": [1.0, None, 3.0, 4.0], "x2": [1.0, 2.0, float("nan"), 4.0]})
    columns = Columns(features=("x*",), missing="drop")
    (model,) = read([path], columns).models
    assert model.features is not None and model.features().tolist() == [[1, 1], [4, 4]]
    assert model.score.tolist() == [0.25, 0.0] and model.dropped == 2


def test_a_model_without_any_row_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, {"p": pa.array([None, None], pa.float64()), "y": [0, 1]}, "parquet")
    with pytest.raises(DecalError, match="no row is left"):
        read([path], Columns(missing="drop"))


# ---- groups --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2], ["1", "2"]),
        ([1.0, 2.5], ["1.0", "2.5"]),
        ([1.0, 2.0], ["1", "2"]),
        ([1.0, None], ["1", "missing"]),
        ([True, False], ["true", "false"]),
        (["A", None], ["A", "missing"]),
        (["NA", "nan"], ["NA", "nan"]),
        (["01", "1"], ["01", "1"]),
        (["1.10", "1.1"], ["1.10", "1.1"]),
        ([0.1, 0.2], ["0.1", "0.2"]),
        (pa.array([0.1, 0.2], pa.float32()), ["0.1", "0.2"]),
        (pa.array([18262, 18263], pa.int32()).cast(pa.date32()), ["2020-01-01", "2020-01-02"]),
    ],
)
@pytest.mark.parametrize("form", ["csv", "parquet", "feather"])
def test_group_names_are_the_same_from_every_format(
    tmp_path: Path, values: Any, expected: list[str], form: str
) -> None:
    path = written(tmp_path, {"p": [0.5, 0.5], "y": [0, 1], "g": values}, form)
    got = read([path], Columns(group=("g",))).models[0].groups["g"].tolist()
    if expected == ["1.0", "2.5"]:
        expected = ["1", "2.5"]
    assert got == expected


def test_groups_of_several_files_are_one_column(tmp_path: Path) -> None:
    one = written(tmp_path, {"p": [0.5], "y": [0], "g": [1]}, "parquet", "one")
    two = written(tmp_path, {"p": [0.5, 0.5], "y": [0, 1], "g": [2.0, None]}, "csv", "two")
    assert read([one, two], Columns(group=("g",))).models[0].groups["g"].tolist() == ["1", "2", "missing"]


# ---- features ------------------------------------------------------------------------------------------------------


def test_features_stay_unread_until_they_are_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, {**SMALL, "x1": ["not", "a", "number", "!"]})
    (model,) = read([path], Columns(features=("x1",))).models
    assert model.features is not None
    with pytest.raises(DecalError, match=r"column 'x1', row 1 \(line 2\): 'not' is not a number"):
        model.features()


def test_features_are_read_once_for_all_models(tmp_path: Path) -> None:
    path = written(tmp_path, {"p_a": [0.5], "p_b": [0.5], "y": [1], "x": [3]}, "parquet")
    a, b = read([path], Columns(score=("p_*",), features=("x",))).models
    assert a.features is not None and b.features is not None
    assert a.features() is b.features() and a.features().tolist() == [[3.0]]


LISTS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float32(), 2)])
@pytest.mark.parametrize("form", ["parquet", "feather", "arrow-stream", "jsonl"])
def test_an_embedding_column_is_a_matrix(tmp_path: Path, kind: pa.DataType, form: str) -> None:
    path = written(tmp_path, {**SMALL, "emb": pa.array(LISTS, kind)}, form)
    (model,) = read([path], Columns(features=("emb",))).models
    assert model.features is not None and model.feature_names == ("emb",)
    assert model.features().dtype == np.float64 and model.features().tolist() == LISTS


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), 2)])
def test_an_embedding_that_is_null_is_missing(tmp_path: Path, kind: pa.DataType) -> None:
    path = written(tmp_path, {**SMALL, "emb": pa.array([LISTS[0], None, *LISTS[2:]], kind)}, "parquet")
    (model,) = read([path], Columns(features=("emb",), missing="drop")).models
    assert model.features is not None and model.features().tolist() == [LISTS[0], *LISTS[2:]]


@pytest.mark.parametrize(
    ("values", "features", "words"),
    [
        ({"emb": [[1.0], [1.0, 2.0], [1.0], [1.0]]}, ("emb",), ["column 'emb', row 2", "list of 2 values where", "1"]),
        ({"emb": LISTS, "x": [1, 2, 3, 4]}, ("emb", "x"), ["column 'emb' holds lists and is one of 2"]),
        ({"emb": [["a"], ["b"], ["c"], ["d"]]}, ("emb",), ["column 'emb', row 1", "not a list of numbers"]),
        ({"emb": [[], [], [], []]}, ("emb",), ["every list is empty"]),
        ({"x1": [1.0, 2.0, float("inf"), 4.0]}, ("x1",), ["column 'x1', row 3", "feature is inf"]),
        ({"x1": [1.0] * 4, "x2": [1.0, None, 3.0, 4.0]}, ("x*",), ["'x2': feature missing in 1 of 4 rows (row 2)"]),
        ({"x1": ["a", "b", "c", "d"]}, ("x1",), ["column 'x1', row 1", "'a' is not a number"]),
        ({"x1": [{"k": 1}] * 4}, ("x1",), ["column 'x1', row 1", "is not a number"]),
    ],
)
def test_features_that_are_no_matrix(tmp_path: Path, values: Any, features: tuple[str, ...], words: list[str]) -> None:
    (model,) = read([written(tmp_path, {**SMALL, **values}, "parquet")], Columns(features=features)).models
    assert model.features is not None
    with pytest.raises(DecalError) as caught:
        model.features()
    for word in words:
        assert word in str(caught.value)


# ---- several files -------------------------------------------------------------------------------------------------


def test_several_files_are_one_data_set_row_after_row(tmp_path: Path) -> None:
    one = written(tmp_path, {"p": [0.1, 0.2], "y": [0, 1], "x": [1, 2]}, "csv", "one")
    two = written(tmp_path, {"y": [1], "x": [3.0], "p": [0.5], "more": [1]}, "parquet", "two")
    data = read([one, two], Columns(features=("x",)))
    (model,) = data.models
    assert (model.score.tolist(), model.label.tolist()) == ([0.1, 0.2, 0.5], [0, 1, 1])
    assert model.features is not None and model.features().tolist() == [[1], [2], [3]]
    assert [(i.path, i.rows, i.positives) for i in data.inputs] == [(one, 2, 1), (two, 1, 1)]


def test_files_that_do_not_go_together(tmp_path: Path) -> None:
    one = written(tmp_path, {"p_a": [0.1], "y": [0]}, "csv", "one")
    two = written(tmp_path, {"p_b": [0.1], "y": [0]}, "csv", "two")
    three = written(tmp_path, {"p_a": [0.1], "p_b": [1.1], "y": [0]}, "csv", "three")
    assert f"{two}: no column 'p_a', which {one} has" in error(one, two)
    assert f"{three}: has column 'p_b', which {one} lacks" in error(one, three, columns=Columns(score=("p_*",)))
    four = written(tmp_path, {"p_a": [0.1, 7.0], "y": [0, 1]}, "parquet", "four")
    assert f"{four}, column 'p_a', row 2: score 7" in error(one, four)
    assert "named twice" in error("-", "-", stdin=io.BytesIO(b""))


# ---- files that are none -------------------------------------------------------------------------------------------


def test_no_file_a_near_name_a_folder(tmp_path: Path) -> None:
    text(tmp_path, "p,y\n", "predictions.csv")
    line = error(str(tmp_path / "prediction.csv"))
    assert "no such file" in line and f"did you mean {tmp_path / 'predictions.csv'}?" in line
    assert "there is no folder" in error(str(tmp_path / "nowhere" / "p.csv"))
    line = error(str(tmp_path))
    assert "is a directory" in line and "*.parquet" in line
    assert "nothing to read" in error()
    assert "cannot be opened" in error("nul\0byte")


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
    line = error(text(tmp_path, content))
    for word in words:
        assert word in line


@pytest.mark.parametrize("form", ["parquet", "feather", "csv.gz", "jsonl.gz"])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_truncated_files(tmp_path: Path, form: str, part: float) -> None:
    path = written(tmp_path, {"p": [0.5] * 100, "y": [1] * 100}, form)
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole[: int(part * len(whole))])
    line = error(path)
    assert path in line and ("cannot be read as" in line or "corrupt or truncated gzip" in line)


def test_empty_tables_have_no_rows(tmp_path: Path) -> None:
    empty = {"p": pa.array([], pa.float64()), "y": pa.array([], pa.int8())}
    for form in ("parquet", "feather", "arrow-stream"):
        assert "has a header but no rows" in error(written(tmp_path, empty, form))


def test_names_with_newlines_stay_one_line(tmp_path: Path) -> None:
    path = text(tmp_path, '"a\nb",p,y\n1,2.5,1\n', "odd\nname.csv")
    assert "odd\\nname.csv" in error(path)
    assert "a\\nb" in error(path, columns=Columns(score=("zzz",)))


# ---- in batches ----------------------------------------------------------------------------------------------------


@every_format
def test_batches_hold_the_same_rows_as_whole_columns(tmp_path: Path, form: str) -> None:
    n = 150_000 if form in ("parquet", "feather") else 3_000
    rng = np.random.default_rng(1)
    data = {"p": rng.random(n), "y": rng.integers(0, 2, n)}
    paths = [written(tmp_path, data, form), written(tmp_path, {k: v[:10] for k, v in data.items()}, form, "more")]
    lean, whole = read(paths, Columns()), read(paths, Columns(missing="drop"))
    np.testing.assert_array_equal(lean.models[0].score, whole.models[0].score)
    np.testing.assert_array_equal(lean.models[0].label, whole.models[0].label)
    assert lean.inputs == whole.inputs
    assert (lean.columns, lean.found, lean.notes) == (whole.columns, whole.found, whole.notes)


def test_a_late_fault_is_named_with_its_row(tmp_path: Path) -> None:
    p = np.full(100_000, 0.5)
    p[-1] = 1.5
    line = error(written(tmp_path, {"p": p, "y": np.tile([0, 1], 50_000)}, "parquet"))
    assert "row 100000: score 1.5" in line


# ---- the Python API ------------------------------------------------------------------------------------------------


def test_arrays_frames_and_mappings_are_the_same_data() -> None:
    p, y, w = np.array(SMALL["p"]), np.array(SMALL["y"]), np.array([1.0, 2.0, 3.0, 4.0])
    x = np.arange(8.0).reshape(4, 2)
    frame = pd.DataFrame({"score": p, "label": y, "w": w, "g": list("abab"), "x1": x[:, 0], "x2": x[:, 1]})
    arrays = from_arrays(p, y, weight=w, group=np.array(list("abab")), features=x)
    assert arrays.inputs[0].path == "<arrays>" and len(arrays.inputs[0].sha256) == 64
    assert arrays.models[0].feature_names == ("features",)
    columns = Columns(weight="w", group=("g",), features=("x*",))
    for table in (frame, pa.table(frame), frame.to_dict("list"), frame.set_index("g", drop=False)):
        (model,) = from_arrays(table, columns=columns).models
        assert model.score.tolist() == SMALL["p"] and model.label.tolist() == SMALL["y"]
        assert model.groups["g"].tolist() == list("abab")
        assert model.features is not None and model.features().tolist() == x.tolist()
    (model,) = from_arrays(list(p), list(y), weight=list(w), group=frame[["g"]], features=frame[["x1", "x2"]]).models
    assert model.groups["g"].tolist() == list("abab") and model.feature_names == ("x1", "x2")
    (model,) = from_arrays(frame["score"], frame["label"] == 1, weight=frame["w"]).models
    assert model.label.tolist() == SMALL["y"]
    (model,) = from_arrays(
        frame, "label", weight="w", group="g", features=["x1"], columns=Columns(score=("score",))
    ).models
    assert model.feature_names == ("x1",)
    models = from_arrays({"one": p, "two": p[::-1]}, y).models
    assert [m.model for m in models] == ["one", "two"] and models[1].score.tolist() == [0.0, 1.0, 0.5, 0.25]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, ">f8", np.longdouble, object, bool])
def test_any_numpy_numbers(dtype: Any) -> None:
    p = np.array([0, 1, 1, 0]).astype(dtype)
    assert from_arrays(p[::2], np.array([0, 1])).models[0].score.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: from_arrays([0.5, 0.5], [1]), "'label' has 1 rows and 'score' 2"),
        (lambda: from_arrays([[0.5, 0.5]], [1]), "predict_proba(X)[:, 1]"),
        (lambda: from_arrays([0.5]), "scores without labels"),
        (lambda: from_arrays([], []), "no rows"),
        (lambda: from_arrays({}, []), "score"),
        (lambda: from_arrays([0.5, "a"], [0, 1]), "column 'score'"),
        (lambda: from_arrays([1.7], [0]), "row 1: score 1.7"),
        (lambda: from_arrays([0.5], ["spam"]), "label is always 'spam'"),
        (lambda: from_arrays(0.5, [1]), "shape ()"),
        (lambda: from_arrays(None, [1]), "shape ()"),
        (lambda: from_arrays(pd.DataFrame([[0.5, 1, 1]], columns=["p", "y", "y"])), "duplicate column 'y'"),
        (lambda: from_arrays({"label": [0.5]}, [1]), "duplicate column 'label'"),
        (lambda: from_arrays([0.5], [1], features=np.zeros((2, 3))), "'features' has 2 rows"),
        (lambda: from_arrays([0.5], [1], features=[["a"]]), "features"),
        (lambda: from_arrays([0.5], [1], features=np.zeros((1, 3, 3))), "features"),
    ],
)
def test_mistakes_in_arrays_are_one_line_too(call: Callable[[], Dataset], word: str) -> None:
    with pytest.raises(DecalError) as caught:
        call()
    assert word in str(caught.value) and str(caught.value).isprintable()


def test_a_little_fuzzing_finds_nothing() -> None:
    script = Path(__file__).with_name("fuzz_readers.py")
    ran = subprocess.run(
        [sys.executable, str(script), "--seconds", "0.1", "--cases", "400"], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stderr == ""


def test_importing_read_loads_numpy_only_and_a_csv_needs_no_pandas(tmp_path: Path) -> None:
    path = written(tmp_path, {**SMALL, "g": ["a"] * 4, "x": [1] * 4})
    code = f"""
import sys
from decal_cli.read import Columns, read
assert "pyarrow" not in sys.modules
read([{path!r}], Columns(group=("g",), features=("x",))).models[0].features()
assert not {{"pandas", "pyarrow.parquet", "scipy", "sklearn"}} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_text_that_is_not_utf8_in_a_damaged_column_is_still_one_line(tmp_path: Path) -> None:
    buffers = pa.array(["ab", "cd"]).buffers()
    damaged = pa.StringArray.from_buffers(2, buffers[1], pa.py_buffer(b"\xe1\x01\xe2\x02"))
    path = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"p": damaged, "y": [0, 1]}), path)
    line = error(str(path), columns=Columns(score=("p",)))
    assert "column 'p', row 1" in line
