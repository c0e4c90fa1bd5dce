"""Which columns are taken, and what counts as a label."""

import itertools
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from decal_cli.data import Columns, from_arrays, read
from decal_cli.data.columns import ClassColumns, class_columns
from decal_cli.data.parts import encoded
from decal_cli.data.words import file_word, number, quote, shell_word
from decal_cli.errors import DecalError
from tests.helpers.files import FOUR_ROWS, every_format, reading_error, write_columns, write_text


def test_usual_names_are_found_whatever_their_case() -> None:
    scores = ("p", "Prob", "PROBA", "probability", "score", "y_prob", "y_score", "pred", "p_rf")
    for score, label in itertools.product(scores, ("Y", "label", "target", "y_true", "outcome")):
        data = from_arrays({"id": [1, 2], score: [0.5, 0.5], label: [0, 1]})
        assert data.columns == {"score": (score,), "label": label} and data.guessed == ("score", "label")


def test_globs_make_models_side_by_side_and_pass_over_other_roles(tmp_path: Path) -> None:
    table = {"p_a": [0.1, 0.2], "p_b": [0.3, 0.4], "p_y": [0, 1], "x1": [1, 2], "x2": [3, 4]}
    path = write_columns(tmp_path, table)
    data = read([path], Columns(score=("p_*",), label="p_y", features=("x*",)))
    assert [m.name for m in data.models] == ["p_a", "p_b"]
    assert data.columns["features"] == ("x1", "x2")
    assert read([path], Columns(score=("p_b", "p_*"), label="p_y")).columns["score"] == ("p_b", "p_a")


def test_names_may_stand_in_one_list_where_no_column_is_called_so(tmp_path: Path) -> None:
    table = {"p_a": [0.1, 0.2], "p_b": [0.3, 0.4], "y": [0, 1], "x1": [1, 2], "x2": [3, 4], "z": [5, 6], "x1,z": [7, 8]}
    path = write_columns(tmp_path, table)
    data = read([path], Columns(score=("p_a,p_b",), label="y", features=("x2, z",)))
    assert [m.name for m in data.models] == ["p_a", "p_b"] and data.columns["features"] == ("x2", "z")
    assert read([path], Columns(score=("p_a",), label="y", features=("x1,z",))).columns["features"] == ("x1,z",)
    assert "no column 'w'" in reading_error(path, columns=Columns(score=("p_a",), label="y", features=("x1,w",)))


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


@pytest.mark.parametrize("positive", [None, "0", "1", "2"])
def test_labels_do_not_depend_on_where_a_column_is_cut(positive: str | None) -> None:
    """The first chunk may hold one value alone."""

    def read_as(label: Any) -> object:
        try:
            data = from_arrays(pa.table({"p": [0.5] * 3, "y": label}), "y", columns=Columns(positive=positive))
        except DecalError as error:
            return str(error)
        return data.models[0].rows.label.tolist()

    for values in map(list, itertools.product(range(3), repeat=3)):
        cuts = (pa.chunked_array([values[:k], values[k:]]) for k in (1, 2))
        assert [*map(read_as, cuts)] == [read_as(pa.array(values))] * 2, values


@pytest.mark.parametrize("pattern", ["p:*", "*:p", "p:*.q", "p*", "*p"])
def test_a_star_is_the_class_wherever_it_stands(pattern: str) -> None:
    names = tuple(pattern.replace("*", name) for name in ("a", "bb", "c:d"))
    (model,) = class_columns((pattern,), (*names, pattern.replace("*", ""), "y"), "a file")
    assert model == ClassColumns(pattern.replace("*", "").strip(":"), names, ("a", "bb", "c:d"))


def test_patterns_of_several_models_may_stand_in_one_list() -> None:
    assert Columns(proba=("a:*, b:*", "c,*", " d:*")).proba == ("a:*", "b:*", "c,*", " d:*")
    assert Columns(proba=("a:*,b:**",)).proba == ("a:*,b:**",)


def test_labels_are_coded_over_all_files_together(tmp_path: Path) -> None:
    one = write_columns(tmp_path, {"p": [0.5, 0.5], "y": [0, 1]}, "csv", "one")
    same_way = write_columns(tmp_path, {"p": [0.5, 0.5], "y": [1.0, 0.0]}, "parquet", "two")
    assert read([one, same_way], Columns()).models[0].rows.label.tolist() == [0, 1, 1, 0]
    other_way = write_columns(tmp_path, {"p": [0.5, 0.5], "y": [1, 2]}, "parquet", "three")
    assert f"{other_way}, column 'y', row 2: label is '2'" in reading_error(one, other_way)


@pytest.mark.parametrize(
    "name", ["plain", "a b", "it's", "$(x)", "`x`", "\x1b[31m\n", "ü\u202e", "\\'\t", "a\udcffb", "\x9b"]
)
def test_a_shell_reads_the_word_as_the_text(name: str) -> None:
    word = shell_word(name)
    assert word.isprintable()
    read = subprocess.run(
        ["bash", "-c", f"printf %s {word}"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert read.stdout.decode("utf-8", "surrogateescape") == name


def test_a_path_is_no_option() -> None:
    assert (file_word("-o"), file_word("a.csv")) == ("./-o", "a.csv")


NAN, INF = float("nan"), float("inf")
VERBAL = ["90%", "0.25", " 40 % ", "85 percent", ".1"]
WRONG_VALUES: list[tuple[dict[str, Any], Columns, list[str]]] = [
    ({"y": [1, 2]}, Columns(), ["column 'y': label is 1 or 2, not 0 or 1; use --positive 2"]),
    ({"y": [-1, 1]}, Columns(), ["label is -1 or 1, not 0 or 1; use --positive 1"]),
    ({"y": ["no", "yes"]}, Columns(), ["label is no, yes, not 0 or 1", "--positive no or --positive yes"]),
    ({"y": [0, 1, 2]}, Columns(), ["row 3", "label is '2'", "3 values: 0, 1, 2"]),
    ({"y": ["a", "b", "c"]}, Columns(positive="a"), ["3 values: a, b, c"]),
    ({"y": [2, 2]}, Columns(), ["label is always '2'", "--positive"]),
    (
        {"y": ["ham", "spam"]},
        Columns(positive="Spam"),
        ["label is never 'Spam', it is ham, spam", "correct --positive"],
    ),
    ({"y": [0.5, 1.0, 0.0]}, Columns(), ["row 1", "label is '0.5'"]),
    ({"y": list(range(100))}, Columns(), ["more than 64 different values"]),
    ({"y": [each + 0.5 for each in range(100)]}, Columns(), ["more than 64 different values"]),
    ({"y": [None, 1, None]}, Columns(), ["label missing in 2 of 3 rows (rows 1, 3)", "--missing drop"]),
    ({"p": [1.0, 1.7]}, Columns(), ["column 'p', row 2", "score 1.7 is outside [0, 1]", "--logit"]),
    ({"p": [0.5, -0.1, -2.0]}, Columns(), ["row 2", "score -0.1 is outside", "(2 such rows)", "--logit"]),
    ({"p": [12.0, 99.5]}, Columns(), ["score 12 is outside", "divided by 100"]),
    ({"p": [0.5, 1.00000001]}, Columns(), ["score 1.00000001 is outside", "rounding"]),
    ({"p": [-1e-6, 1 + 1e-6]}, Columns(), ["score -1e-06 is outside", "rounding"]),
    ({"p": [0.0, 100.0]}, Columns(), ["score 100 is outside", "divided by 100"]),
    ({"p": [0.0, 2.0]}, Columns(), ["score 2 is outside", "for log-odds add --logit, for margins"]),
    ({"p": [0.5, INF]}, Columns(), ["row 2", "score is inf"]),
    ({"p": [-INF, 3.0]}, Columns(), ["row 1", "score is -inf"]),
    ({"p": [NAN, 0.5]}, Columns(), ["score missing in 1 of 2 rows (row 1)", "--missing drop"]),
    ({"p": pa.nulls(2, pa.float64())}, Columns(), ["score missing in 2 of 2 rows (rows 1, 2)"]),
    ({"p": pa.nulls(2, pa.float64())}, Columns(missing="drop"), ["no row is left"]),
    ({"p": [None] * 9 + [0.5]}, Columns(), ["score missing in 9 of 10 rows (rows 1, 2, 3, 4, 5, ...)"]),
    ({"p": ["high\nhigher", "low"]}, Columns(), ["column 'p', row 1", "'high", "is not a number"]),
    ({"p": ["90", "20"]}, Columns(), ["is outside [0, 1]", "percentages must be divided by 100"]),
    ({"p": ["90%", "20"]}, Columns(), ["is outside [0, 1]", "percentages must be divided by 100"]),
    ({"p": [*VERBAL, "very likely"]}, Columns(), ["column 'p', row 6", "'very likely' is not a number; correct it"]),
    ({"p": ["90%", None]}, Columns(), ["score missing in 1 of 2 rows (row 2)"]),
    ({"p": [0.5, INF]}, Columns(logit=True), ["row 2", "score is inf; clip them"]),
    ({"p": ["90%", "20%"]}, Columns(logit=True), ["'90%' is not a number"]),
    ({"p": [2.0, 2.0]}, Columns(margin=True), ["every margin is 2"]),
    ({"p": [2.0, 3.0]}, Columns(margin=True, logit=True), ["give one of them"]),
    ({"w": [1.0, 0.0]}, Columns(weight="w"), ["column 'w', row 2", "weight 0 is not positive"]),
    ({"w": [-1.0, -2.0]}, Columns(weight="w"), ["row 1", "weight -1 is not positive", "(2 such rows)"]),
    ({"w": [1.0, INF]}, Columns(weight="w"), ["row 2", "weight inf"]),
    ({"w": [None, 1.0]}, Columns(weight="w"), ["weight missing in 1 of 2 rows (row 1)"]),
    *(
        ({"w": weights}, Columns(weight="w"), ["weight is less than 1e-09 of the mean weight", "column 'w', row"])
        for weights in ([1.0, 1.0, 1e-162], [1e12, 1e12, 1.0], [1e-300, 1e300, 1e300])
    ),
]


@pytest.mark.parametrize(("values", "columns", "words"), WRONG_VALUES)
def test_a_value_that_cannot_be_is_named_with_its_row(
    tmp_path: Path, values: dict[str, Any], columns: Columns, words: list[str]
) -> None:
    size = len(next(iter(values.values())))
    for form in ("csv", "parquet", "feather", "jsonl", "csv.gz"):
        path = write_columns(tmp_path, {"p": [0.5] * size, "y": [1] * size, **values}, form)
        line = reading_error(path, columns=columns)
        for word in words:
            assert word in line, form


@pytest.mark.parametrize("form", ["csv", "parquet", "feather", "jsonl", "csv.gz"])
def test_scores_may_be_percentages_each_by_its_own_sign(tmp_path: Path, form: str) -> None:
    data = read([write_columns(tmp_path, {"p": VERBAL, "y": [1, 0, 0, 1, 0]}, form)], Columns())
    assert data.models[0].rows.score.tolist() == [0.9, 0.25, 0.4, 0.85, 0.1]
    assert data.notes == ("p: read 3 of 5 values as percentages, such as 90% as 0.9",)


def test_csv_errors_name_the_line_too(tmp_path: Path) -> None:
    path = write_text(tmp_path, 't,p,y\n"two\nlines",0.5,1\n\nx,oops,1\n')
    assert f"{path}, column 'p', row 2 (line 5): 'oops' is not a number" in reading_error(path)
    path = write_text(tmp_path, "p;y\n0,5;1\n")
    assert "'0,5' is not a number; write decimals with a point" in reading_error(path)
    path = write_text(tmp_path, "p,y\n0.5,1\n1.5,1\n")
    assert "row 2 (line 3): score 1.5" in reading_error(path)


@pytest.mark.parametrize(("pairs", "noted"), [(20, True), (16, False)])
def test_a_usual_column_within_which_errors_go_together_is_noted(tmp_path: Path, pairs: int, noted: bool) -> None:
    """Errors that are equal in pairs have the design effect 2; of 16 pairs chance may make that: 1 + 3 sqrt(2 / 16)."""
    row = np.arange(2 * pairs)
    columns = {"p": [0.5] * len(row), "y": row // 2 % 2, "site": row // 2, "x": row, "day": row}
    frame = pa.table(columns)
    for data in (read([write_columns(tmp_path, columns, "csv")], Columns()), from_arrays(frame)):
        told = [note for note in data.notes if f"the {pairs} values of column 'site' (design ef" in note]
        assert ["effect 2.0" in note for note in told] == [True] * noted
        assert data.unused_times == ("day",)


def test_log_odds(tmp_path: Path) -> None:
    logits = [-800.0, -1.0, 0.0, 1.0, 800.0]
    path = write_columns(tmp_path, {"p": logits, "y": [0, 0, 1, 1, 1]}, "parquet")
    score = read([path], Columns(logit=True)).models[0].rows.score
    np.testing.assert_allclose(score[1:4], 1 / (1 + np.exp([1.0, 0.0, -1.0])), rtol=1e-14)
    assert score[0] < 1e-300 and score[4] == 1.0


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
        "p_a: dropped 3 of 5 rows (missing label: 1, missing score: 1, missing weight: 1)",
        "p_b: dropped 2 of 5 rows (missing label: 1, missing weight: 1)",
    )
    assert (data.inputs[0].rows, data.inputs[0].positives) == (5, 2)


def test_a_missing_feature_drops_no_row(tmp_path: Path) -> None:
    path = write_columns(tmp_path, {**FOUR_ROWS, "x1": [1.0, None, 3.0, 4.0], "x2": [1.0, 2.0, float("nan"), 4.0]})
    for missing in ("error", "drop"):
        (model,) = read([path], Columns(features=("x*",), missing=missing)).models
        np.testing.assert_array_equal(model.rows.matrix, [[1, 1], [np.nan, 2], [3, np.nan], [4, 4]])
        assert model.dropped == 0


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


@pytest.mark.parametrize("length", [58, 59, 60, 500])
def test_a_long_name_is_shown_by_its_beginning_and_its_end(length: int) -> None:
    """At most 60 characters with its quotes; of a longer one the first 45 and the last 10."""
    name = "".join(chr(97 + k % 26) for k in range(length))
    shown = quote(name)
    assert shown == (f"'{name}'" if length <= 58 else f"'{name[:44]}...{name[-9:]}'")
    assert len(shown) <= 60


def test_a_number_is_short_unless_that_hides_that_it_is_no_probability() -> None:
    shown = ["0", "1", "0.333333", "1.000000001", "-1e-09"]
    assert [number(value) for value in (0.0, 1.0, 1 / 3, 1 + 1e-9, -1e-9)] == shown
