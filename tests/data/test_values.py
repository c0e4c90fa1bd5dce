"""Values that cannot be: one line each, with file, column, row and what to do."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from decal_cli.data import Columns, read
from decal_cli.data.texts import encoded
from decal_cli.errors import DecalError
from tests.helpers.files import FOUR_ROWS, every_format, reading_error, write_columns, write_text


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
def test_a_score_is_a_number_between_0_and_1(tmp_path: Path, scores: Any, words: list[str]) -> None:
    columns = {"p": pa.array(scores, pa.float64()), "y": [1] * len(scores)}
    for form in ("csv", "parquet", "feather", "jsonl", "csv.gz"):
        line = reading_error(write_columns(tmp_path, columns, form))
        for word in words:
            assert word in line, form


@pytest.mark.parametrize("form", ["csv", "parquet", "feather", "jsonl"])
def test_text_in_the_score_column_is_shown_with_its_row(tmp_path: Path, form: str) -> None:
    line = reading_error(write_columns(tmp_path, {"p": ["high\nhigher", "low"], "y": [0, 1]}, form))
    assert "column 'p', row 1" in line and "'high" in line and "is not a number" in line


VERBAL = ["90%", "0.25", " 40 % ", "85 percent", ".1"]


@pytest.mark.parametrize("form", ["csv", "parquet", "feather", "jsonl", "csv.gz"])
def test_scores_may_be_percentages_each_by_its_own_sign(tmp_path: Path, form: str) -> None:
    data = read([write_columns(tmp_path, {"p": VERBAL, "y": [1, 0, 0, 1, 0]}, form)], Columns())
    assert data.models[0].rows.score.tolist() == [0.9, 0.25, 0.4, 0.85, 0.1]
    assert data.notes == ("p: read 3 of 5 values as percentages, such as 90% as 0.9",)
    line = reading_error(write_columns(tmp_path, {"p": [*VERBAL, "very likely"], "y": [1, 0, 0, 1, 0, 1]}, form))
    assert "column 'p', row 6" in line and "'very likely' is not a number; correct it" in line
    line = reading_error(write_columns(tmp_path, {"p": ["90%", None], "y": [1, 0]}, form))
    assert "score missing in 1 of 2 rows (row 2)" in line


@pytest.mark.parametrize("scores", [["90", "20"], ["90%", "20"]])
def test_a_number_without_a_percent_sign_is_no_percentage(tmp_path: Path, scores: list[str]) -> None:
    line = reading_error(write_columns(tmp_path, {"p": scores, "y": [1, 0]}, "csv"))
    assert "is outside [0, 1]" in line and "percentages must be divided by 100" in line


def test_log_odds_are_no_percentages(tmp_path: Path) -> None:
    path = write_columns(tmp_path, {"p": ["90%", "20%"], "y": [1, 0]}, "csv")
    assert "'90%' is not a number" in reading_error(path, columns=Columns(logit=True))


def test_csv_errors_name_the_line_too(tmp_path: Path) -> None:
    path = write_text(tmp_path, 't,p,y\n"two\nlines",0.5,1\n\nx,oops,1\n')
    assert f"{path}, column 'p', row 2 (line 5): 'oops' is not a number" in reading_error(path)
    path = write_text(tmp_path, "p;y\n0,5;1\n")
    assert "'0,5' is not a number; write decimals with a point" in reading_error(path)
    path = write_text(tmp_path, "p,y\n0.5,1\n1.5,1\n")
    assert "row 2 (line 3): score 1.5" in reading_error(path)


def test_log_odds(tmp_path: Path) -> None:
    logits = [-800.0, -1.0, 0.0, 1.0, 800.0]
    path = write_columns(tmp_path, {"p": logits, "y": [0, 0, 1, 1, 1]}, "parquet")
    score = read([path], Columns(logit=True)).models[0].rows.score
    np.testing.assert_allclose(score[1:4], 1 / (1 + np.exp([1.0, 0.0, -1.0])), rtol=1e-14)
    assert score[0] < 1e-300 and score[4] == 1.0
    path = write_columns(tmp_path, {"p": [*logits, np.inf], "y": [0, 0, 1, 1, 1, 1]}, "parquet")
    assert "row 6: score is inf; clip them" in reading_error(path, columns=Columns(logit=True))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, 0.0], ["column 'w', row 2", "weight 0 is not positive"]),
        ([-1.0, -2.0], ["row 1", "weight -1 is not positive", "(2 such rows)"]),
        ([1.0, float("inf")], ["row 2", "weight inf"]),
        ([None, 1.0], ["weight missing in 1 of 2 rows (row 1)"]),
    ],
)
def test_weights_are_positive(tmp_path: Path, weights: Any, words: list[str]) -> None:
    columns = {"p": [0.5, 0.5], "y": [0, 1], "w": pa.array(weights, pa.float64())}
    for form in ("csv", "parquet"):
        line = reading_error(write_columns(tmp_path, columns, form), columns=Columns(weight="w"))
        for word in words:
            assert word in line, form


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
    path = write_columns(tmp_path, table, form)
    columns = Columns(score=("p_*",), weight="w", group=("g",), features=("x",), missing="drop")
    data = read([path], columns)
    a, b = data.models
    assert (a.rows.score.tolist(), b.rows.score.tolist()) == ([0.1, 0.5], [0.1, 0.2, 0.5])
    assert (a.rows.label.tolist(), b.rows.label.tolist()) == ([0, 0], [0, 1, 0])
    assert b.rows.weight is not None and b.rows.weight.tolist() == [0.5, 1, 2.5], "over a power of two"
    assert b.rows.groups["g"].tolist() == ["u", "(missing)", "(missing)"]
    assert b.rows.features is not None and b.rows.matrix.tolist() == [[1], [2], [5]]
    assert (a.dropped, b.dropped) == (3, 2)
    assert data.notes == (
        "p_a: dropped 3 of 5 rows (missing score: 1, missing label: 1, missing weight: 1)",
        "p_b: dropped 2 of 5 rows (missing label: 1, missing weight: 1)",
    )
    assert (data.inputs[0].rows, data.inputs[0].positives) == (5, 2)


def test_a_missing_feature_drops_no_row(tmp_path: Path) -> None:
    path = write_columns(tmp_path, {**FOUR_ROWS, "x1": [1.0, None, 3.0, 4.0], "x2": [1.0, 2.0, float("nan"), 4.0]})
    for missing in ("error", "drop"):
        (model,) = read([path], Columns(features=("x*",), missing=missing)).models
        np.testing.assert_array_equal(model.rows.matrix, [[1, 1], [np.nan, 2], [3, np.nan], [4, 4]])
        assert model.dropped == 0


def test_a_model_without_any_row_is_an_error(tmp_path: Path) -> None:
    path = write_columns(tmp_path, {"p": pa.array([None, None], pa.float64()), "y": [0, 1]}, "parquet")
    with pytest.raises(DecalError, match="no row is left"):
        read([path], Columns(missing="drop"))


@pytest.mark.parametrize("indices", [[0, 7], [-1, 0], [2, None]])
def test_a_value_outside_a_damaged_dictionary_is_refused(indices: list[int | None]) -> None:
    # As a damaged Parquet file brings it in; Arrow files are validated when they are opened.
    damaged = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(["a", "b"]), safe=False)
    with pytest.raises(ValueError, match="not in the column's dictionary"):
        encoded(damaged)


@pytest.mark.parametrize("scale", [5e-324, 1e-162, 1e153, 3e307])
def test_weights_of_any_unit_are_read_alike(tmp_path: Path, scale: float) -> None:
    plain = {"p": [0.5, 0.25, 0.75], "y": [0, 1, 1], "w": np.array([1.0, 2.0, 5.0])}
    weights = []
    for columns in (plain, {**plain, "w": plain["w"] * scale}):
        given = columns["w"].copy()
        weights.append(read([write_columns(tmp_path, columns, "parquet")], Columns(weight="w")).models[0].rows.weight)
        assert (columns["w"] == given).all()
    # The scale itself may be rounded, and the powers of two that are nearest to both means may differ by one.
    np.testing.assert_allclose(weights[1] / weights[1].mean(), weights[0] / weights[0].mean(), rtol=1e-15)
    assert 0.5 < weights[1].mean() < 2


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1e-162], [1e12, 1e12, 1.0], [1e-300, 1e300, 1e300]])
def test_weights_that_sums_would_lose(tmp_path: Path, weights: Any) -> None:
    path = write_columns(tmp_path, {"p": [0.5, 0.25, 0.75], "y": [0, 1, 1], "w": weights}, "csv")
    line = reading_error(path, columns=Columns(weight="w"))
    assert "weight is less than 1e-09 of the mean weight" in line and "column 'w', row" in line


class TestMargins:
    """Gao et al. 2017, footnote 5: (x - min) / (max - min)."""

    def test_their_range_is_that_of_all_files_and_the_output_says_it(self, tmp_path: Path) -> None:
        one = write_columns(tmp_path, {"p": [-3.0, 1.0], "y": [0, 1]}, "csv", "one")
        two = write_columns(tmp_path, {"p": [5.0, 0.0], "y": [1, 0]}, "csv", "two")
        data = read([one, two], Columns(margin=True))
        assert data.models[0].rows.score == pytest.approx([0, 0.5, 1, 0.375])
        assert "p: margins from -3 to 5 were rescaled to [0, 1]" in " ".join(data.notes)

    def test_huge_ones_do_not_overflow(self, tmp_path: Path) -> None:
        path = write_columns(tmp_path, {"p": [-1.5e308, 0.0, 1.5e308], "y": [0, 1, 1]})
        assert read([path], Columns(margin=True)).models[0].rows.score == pytest.approx([0, 0.5, 1])

    def test_what_has_no_range_is_refused(self, tmp_path: Path) -> None:
        path = write_columns(tmp_path, {"p": [2.0, 2.0], "y": [0, 1]})
        assert "every margin is 2" in reading_error(path, columns=Columns(margin=True))
        assert "give one of them" in reading_error(path, columns=Columns(margin=True, logit=True))
