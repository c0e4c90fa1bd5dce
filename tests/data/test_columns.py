"""Which columns are taken, and what counts as a label."""

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from decal_cli.data import Columns, from_arrays, read
from decal_cli.errors import DecalError
from tests.helpers.files import FOUR_ROWS, reading_error, write_columns, write_text


def test_usual_names_are_found_whatever_their_case() -> None:
    scores = ("p", "Prob", "PROBA", "probability", "score", "y_prob", "y_score", "pred", "p_rf")
    for score, label in itertools.product(scores, ("Y", "label", "target", "y_true", "outcome")):
        data = from_arrays({"id": [1, 2], score: [0.5, 0.5], label: [0, 1]})
        assert data.columns == {"score": (score,), "label": label} and data.guessed == ("score", "label")


def test_a_named_column_is_not_reported_as_found(tmp_path: Path) -> None:
    path = write_columns(tmp_path, {**FOUR_ROWS, "q": FOUR_ROWS["p"]})
    data = read([path], Columns(score=("q",)))
    assert data.guessed == ("label",) and data.models[0].name == "q"


def test_globs_make_models_side_by_side_and_pass_over_other_roles(tmp_path: Path) -> None:
    table = {"p_a": [0.1, 0.2], "p_b": [0.3, 0.4], "p_y": [0, 1], "x1": [1, 2], "x2": [3, 4]}
    path = write_columns(tmp_path, table)
    data = read([path], Columns(score=("p_*",), label="p_y", features=("x*",)))
    assert [m.name for m in data.models] == ["p_a", "p_b"]
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
    line = reading_error(write_text(tmp_path, content), columns=columns)
    for word in words:
        assert word in line


def test_at_most_a_dozen_columns_are_listed() -> None:
    with pytest.raises(DecalError) as caught:
        from_arrays({f"c{i}": [1] for i in range(30)})
    assert "c11, ... (30 in all)" in str(caught.value) and "c12" not in str(caught.value)


def test_names_may_stand_in_one_list_where_no_column_is_called_so(tmp_path: Path) -> None:
    table = {"p_a": [0.1, 0.2], "p_b": [0.3, 0.4], "y": [0, 1], "x1": [1, 2], "x2": [3, 4], "z": [5, 6], "x1,z": [7, 8]}
    path = write_columns(tmp_path, table)
    data = read([path], Columns(score=("p_a,p_b",), label="y", features=("x2, z",)))
    assert [m.name for m in data.models] == ["p_a", "p_b"] and data.columns["features"] == ("x2", "z")
    assert read([path], Columns(score=("p_a",), label="y", features=("x1,z",))).columns["features"] == ("x1,z",)
    assert "no column 'w'" in reading_error(path, columns=Columns(score=("p_a",), label="y", features=("x1,w",)))


def test_a_group_may_also_be_a_feature() -> None:
    data = from_arrays({**FOUR_ROWS, "age": [1, 1, 2, 2]}, columns=Columns(group=("age",), features=("age",)))
    assert data.models[0].rows.groups["age"].tolist() == ["1", "1", "2", "2"]


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
def test_two_values_are_labels(tmp_path: Path, values: Any, positive: str | None, expected: Any) -> None:
    for form in ("csv", "parquet", "feather", "jsonl"):
        path = write_columns(tmp_path, {"p": [0.5] * len(values), "y": values}, form)
        assert read([path], Columns(positive=positive)).models[0].rows.label.tolist() == expected, form


@pytest.mark.parametrize(
    ("values", "positive", "words"),
    [
        ([1, 2], None, ["column 'y': label is 1 or 2, not 0 or 1; use --positive 2"]),
        ([-1, 1], None, ["label is -1 or 1, not 0 or 1; use --positive 1"]),
        (["no", "yes"], None, ["label is no, yes, not 0 or 1", "--positive no or --positive yes"]),
        ([0, 1, 2], None, ["row 3", "label is '2'", "3 values: 0, 1, 2"]),
        (["a", "b", "c"], "a", ["3 values: a, b, c"]),
        ([2, 2], None, ["label is always '2'", "--positive"]),
        (["ham", "spam"], "Spam", ["label is never 'Spam', it is ham, spam", "correct --positive"]),
        ([0.5, 1.0, 0.0], None, ["row 1", "label is '0.5'"]),
        (list(range(100)), None, ["more than 64 different values"]),
        ([None, 1, None], None, ["label missing in 2 of 3 rows (rows 1, 3)", "--missing drop"]),
    ],
)
def test_other_labels_are_not_guessed_at(tmp_path: Path, values: Any, positive: str | None, words: list[str]) -> None:
    for form in ("csv", "parquet", "jsonl"):
        path = write_columns(tmp_path, {"p": [0.5] * len(values), "y": values}, form)
        line = reading_error(path, columns=Columns(positive=positive))
        for word in words:
            assert word in line, form


def test_labels_are_coded_over_all_files_together(tmp_path: Path) -> None:
    one = write_columns(tmp_path, {"p": [0.5, 0.5], "y": [0, 1]}, "csv", "one")
    same_way = write_columns(tmp_path, {"p": [0.5, 0.5], "y": [1.0, 0.0]}, "parquet", "two")
    assert read([one, same_way], Columns()).models[0].rows.label.tolist() == [0, 1, 1, 0]
    other_way = write_columns(tmp_path, {"p": [0.5, 0.5], "y": [1, 2]}, "parquet", "three")
    assert f"{other_way}, column 'y', row 2: label is '2'" in reading_error(one, other_way)
