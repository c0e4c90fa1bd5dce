"""Arrays and data frames."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decal_cli.data import Columns, Dataset, from_arrays
from decal_cli.data.arrays import table_digest
from decal_cli.errors import DecalError
from tests.helpers.files import FOUR_ROWS, reading_error


def test_arrays_frames_and_mappings_are_the_same_data() -> None:
    p, y, w = np.array(FOUR_ROWS["p"]), np.array(FOUR_ROWS["y"]), np.array([1.0, 2.0, 3.0, 4.0])
    x = np.arange(8.0).reshape(4, 2)
    frame = pd.DataFrame({"score": p, "label": y, "w": w, "g": list("abab"), "x1": x[:, 0], "x2": x[:, 1]})
    arrays = from_arrays(p, y, weight=w, group=np.array(list("abab")), features=x)
    assert arrays.inputs[0].path == "<arrays>" and len(arrays.inputs[0].sha256) == 64
    assert arrays.models[0].feature_names == ("features",)
    columns = Columns(weight="w", group=("g",), features=("x*",))
    for table in (frame, pa.table(frame), frame.to_dict("list"), frame.set_index("g", drop=False)):
        (model,) = from_arrays(table, columns=columns).models
        assert model.rows.score.tolist() == FOUR_ROWS["p"] and model.rows.label.tolist() == FOUR_ROWS["y"]
        assert model.rows.groups["g"].tolist() == list("abab")
        assert model.rows.matrix.tolist() == x.tolist()
    (model,) = from_arrays(list(p), list(y), weight=list(w), group=frame[["g"]], features=frame[["x1", "x2"]]).models
    assert model.rows.groups["g"].tolist() == list("abab") and model.feature_names == ("x1", "x2")
    (model,) = from_arrays(frame["score"], frame["label"] == 1, weight=frame["w"]).models
    assert model.rows.label.tolist() == FOUR_ROWS["y"]
    (model,) = from_arrays(
        frame, "label", weight="w", group="g", features=["x1"], columns=Columns(score=("score",))
    ).models
    assert model.feature_names == ("x1",)
    models = from_arrays({"one": p, "two": p[::-1]}, y).models
    assert [m.name for m in models] == ["one", "two"] and models[1].rows.score.tolist() == [0.0, 1.0, 0.5, 0.25]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, ">f8", np.longdouble, object, bool])
def test_any_numpy_numbers(dtype: Any) -> None:
    p = np.array([0, 1, 1, 0]).astype(dtype)
    assert from_arrays(p[::2], np.array([0, 1])).models[0].rows.score.tolist() == [0.0, 1.0]


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
        (lambda: from_arrays(0.5, [1]), "is one value, of type"),
        (lambda: from_arrays(None, [1]), "is one value, of type"),
        (lambda: from_arrays(np.ma.masked_greater([0.5, 0.9], 0.8), [0, 1]), "score missing in 1 of 2 rows (row 2)"),
        (lambda: from_arrays([0.5, 0.9], np.ma.masked_equal([0, 1], 1)), "label missing in 1 of 2 rows (row 2)"),
        (lambda: from_arrays(pd.DataFrame([[0.5, 1, 1]], columns=["p", "y", "y"])), "duplicate column 'y'"),
        (lambda: from_arrays({"label": [0.5]}, [1]), "duplicate column 'label'"),
        (lambda: from_arrays([0.5], [1], features=np.zeros((2, 3))), "'features' has 2 rows"),
        (lambda: from_arrays([0.5], [1], features=np.zeros((1, 3, 3))), "features"),
        (lambda: from_arrays([0.5, 0.5], [1, 0], features=[[1.0], [1.0, 2.0]]), "column 'features'"),
    ],
)
def test_mistakes_in_arrays_are_one_line_too(call: Callable[[], Dataset], word: str) -> None:
    with pytest.raises(DecalError) as caught:
        call()
    assert word in str(caught.value) and str(caught.value).isprintable()


def test_text_that_is_not_utf8_in_a_damaged_column_is_still_one_line(tmp_path: Path) -> None:
    buffers = pa.array(["ab", "cd"]).buffers()
    damaged = pa.StringArray.from_buffers(2, buffers[1], pa.py_buffer(b"\xe1\x01\xe2\x02"))
    path = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"p": damaged, "y": [0, 1]}), path)
    line = reading_error(str(path), columns=Columns(score=("p",)))
    assert "column 'p'" in line and "can't decode byte 0xe1" in line


def test_the_digest_of_arrays_is_of_their_columns_in_one_order() -> None:
    columns = {
        "score": [0.1, 0.2, 0.3],
        "weight": [1.0, 2.0, 3.0],
        "label": [0, 1, 1],
        "group": ["a", "b", "a"],
        "cluster": ["u", "v", "v"],
        "features": [3.0, 2.0, 1.0],
        "time": [1, 2, 3],
    }
    given = {name: values for name, values in columns.items() if name not in ("score", "label")}
    data = from_arrays(columns["score"], columns["label"], **given)
    assert data.inputs[0].sha256 == table_digest(pa.table(columns))
