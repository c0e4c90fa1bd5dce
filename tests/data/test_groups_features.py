"""Groups and features."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from decal_cli.data import Columns, read
from decal_cli.errors import DecalError
from tests.helpers.files import FOUR_ROWS, write_columns


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2], ["1", "2"]),
        ([1.0, 2.5], ["1", "2.5"]),
        ([1.0, 2.0], ["1", "2"]),
        ([1.0, None], ["1", "(missing)"]),
        ([True, False], ["true", "false"]),
        (["A", None], ["A", "(missing)"]),
        (["NA", "nan"], ["NA", "nan"]),
        (["01", "1"], ["01", "1"]),
        (["1.10", "1.1"], ["1.10", "1.1"]),
        (["1.0", "2.5"], ["1", "2.5"]),
        (["1.0", "1"], ["1.0", "1"]),
        (["1.0", "b"], ["1.0", "b"]),
        ([0.1, 0.2], ["0.1", "0.2"]),
        (pa.array([0.1, 0.2], pa.float32()), ["0.1", "0.2"]),
        (pa.array([18262, 18263], pa.int32()).cast(pa.date32()), ["2020-01-01", "2020-01-02"]),
    ],
)
def test_group_names_are_the_same_from_every_format(tmp_path: Path, values: Any, expected: list[str]) -> None:
    for form in ("csv", "parquet", "feather"):
        path = write_columns(tmp_path, {"p": [0.5, 0.5], "y": [0, 1], "g": values}, form)
        assert read([path], Columns(group=("g",))).models[0].rows.groups["g"].tolist() == expected, form


def test_groups_of_several_files_are_one_column(tmp_path: Path) -> None:
    one = write_columns(tmp_path, {"p": [0.5], "y": [0], "g": [1]}, "parquet", "one")
    two = write_columns(tmp_path, {"p": [0.5, 0.5], "y": [0, 1], "g": [2.0, None]}, "csv", "two")
    assert read([one, two], Columns(group=("g",))).models[0].rows.groups["g"].tolist() == ["1", "2", "(missing)"]


def test_features_stay_unread_until_they_are_asked_for(tmp_path: Path) -> None:
    path = write_columns(tmp_path, {**FOUR_ROWS, "x1": [1.0, 2.0, float("inf"), 4.0]})
    (model,) = read([path], Columns(features=("x1",))).models
    assert model.rows.features is not None
    with pytest.raises(DecalError, match=r"column 'x1', row 3 \(line 4\): feature is inf"):
        _ = model.rows.matrix


def test_features_are_read_once_for_all_models(tmp_path: Path) -> None:
    path = write_columns(tmp_path, {"p_a": [0.5], "p_b": [0.5], "y": [1], "x": [3]}, "parquet")
    a, b = read([path], Columns(score=("p_*",), features=("x",))).models
    assert a.rows.features is not None and b.rows.features is not None
    assert a.rows.matrix is b.rows.matrix and a.rows.matrix.tolist() == [[3.0]]


LISTS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float32(), 2)])
def test_an_embedding_column_is_a_matrix(tmp_path: Path, kind: pa.DataType) -> None:
    for form in ("parquet", "feather", "arrow-stream", "jsonl"):
        path = write_columns(tmp_path, {**FOUR_ROWS, "emb": pa.array(LISTS, kind)}, form)
        (model,) = read([path], Columns(features=("emb",))).models
        assert model.feature_names == ("emb",)
        assert model.rows.matrix.dtype == np.float64 and model.rows.matrix.tolist() == LISTS, form


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), 2)])
def test_an_embedding_that_is_null_is_missing(tmp_path: Path, kind: pa.DataType) -> None:
    path = write_columns(tmp_path, {**FOUR_ROWS, "emb": pa.array([LISTS[0], None, *LISTS[2:]], kind)}, "parquet")
    (model,) = read([path], Columns(features=("emb",))).models
    np.testing.assert_array_equal(model.rows.matrix, [LISTS[0], [np.nan] * 2, *LISTS[2:]])


@pytest.mark.parametrize(
    ("values", "features", "words"),
    [
        ({"emb": [[1.0], [1.0, 2.0], [1.0], [1.0]]}, ("emb",), ["column 'emb', row 2", "list of 2 values where", "1"]),
        ({"emb": LISTS, "x": [1, 2, 3, 4]}, ("emb", "x"), ["column 'emb' holds lists and is one of 2"]),
        ({"emb": [["a"], ["b"], ["c"], ["d"]]}, ("emb",), ["column 'emb', row 1", "not a list of numbers"]),
        ({"emb": [[], [], [], []]}, ("emb",), ["every list is empty"]),
        ({"x1": [1.0, 2.0, float("inf"), 4.0]}, ("x1",), ["column 'x1', row 3", "feature is inf"]),
        ({"x1": [{"k": 1}] * 4}, ("x1",), ["column 'x1', row 1", "is not a number"]),
    ],
)
def test_features_that_are_no_matrix(tmp_path: Path, values: Any, features: tuple[str, ...], words: list[str]) -> None:
    (model,) = read([write_columns(tmp_path, {**FOUR_ROWS, **values}, "parquet")], Columns(features=features)).models
    assert model.rows.features is not None
    with pytest.raises(DecalError) as caught:
        _ = model.rows.matrix
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_missing_values_are_not_the_group_called_missing(tmp_path: Path, form: str) -> None:
    groups = {**FOUR_ROWS, "g": ["missing", None, "b", None]}
    path = write_columns(tmp_path, groups, form)
    assert read([path], Columns(group=("g",))).models[0].rows.groups["g"].tolist() == [
        *("missing", "(missing)", "b", "(missing)")
    ]
    path = write_columns(tmp_path, {**groups, "g": ["(missing)", None, "b", None]}, form)
    with pytest.raises(DecalError, match=r"a group is called .missing., and so are missing values"):
        read([path], Columns(group=("g",)))
