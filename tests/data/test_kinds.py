"""Feature columns of every kind: the same from every format, and what each of them is taken for."""

import datetime
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from decal_cli.data import Columns, NewRows, from_arrays, read
from decal_cli.data.formats import jsonlines
from decal_cli.errors import DecalError
from decal_cli.tables.features import Features, Kind
from tests.helpers.files import FOUR_ROWS, every_format, write_columns, write_text

DAY = datetime.date(2024, 2, 29)
DAYS = (DAY - datetime.date(1970, 1, 1)).days


def features_from(path: str, *names: str) -> Features:
    return read([path], Columns(features=names or ("x",))).models[0].rows.typed


def of_csv(folder: Path, cells: list[str]) -> Features:
    """A column of these cells."""
    lines = "".join(f"0.5,{k % 2},{cell}\n" for k, cell in enumerate(cells))
    return features_from(write_text(folder, "p,y,x\n" + lines))


@every_format
def test_every_kind_is_the_same_from_every_format(tmp_path: Path, form: str) -> None:
    date: Any = [DAY, None, DAY, datetime.date(1969, 12, 31)]
    if form.startswith("jsonl"):
        date = [None if each is None else each.isoformat() for each in date]
    columns = {
        **FOUR_ROWS,
        "x_number": [1.5, None, -2.0, 1e6],
        "x_text": ["b", "a", None, "ü, none"],
        "x_true": [True, False, None, True],
        "x_date": date,
        "x_none": ["none", "a", "b", "a"],
        "x_missing": pa.nulls(4),
    }
    path = write_columns(tmp_path, columns, form)
    features = features_from(path, "x_*")
    kinds = ("number", "category", "boolean", "date", "category", "missing")
    assert features.kinds[:2] + features.kinds[3:] == kinds[:2] + kinds[3:]
    # JSON has true and false beside numbers; where all else is numbers they are read as such.
    assert features.kinds[2] == "boolean" or form.startswith("jsonl")
    np.testing.assert_array_equal(
        features.numbers,
        [[1.5, 1, DAYS, np.nan], [np.nan, 0, np.nan, np.nan], [-2, np.nan, DAYS, np.nan], [1e6, 1, -1, np.nan]],
    )
    assert features.categories == (("a", "b", "ü, none"), ("a", "b", "none"))
    assert features.codes.tolist() == [[1, 2], [0, 0], [-1, 1], [2, 0]]


@pytest.mark.parametrize(
    ("values", "kind", "holds"),
    [
        (pa.array([Decimal("1.10"), None]), "number", [1.1, np.nan]),
        (pa.array([1, 2], pa.int8()), "number", [1, 2]),
        (pa.array([True, None]), "boolean", [1, np.nan]),
        (pa.array([DAYS, None], pa.int32()).cast(pa.date32()), "date", [DAYS, np.nan]),
        (pa.array([DAYS * 86_400_000, 0]).cast(pa.date64()), "date", [DAYS, 0]),
        (pa.array([86_400, 43_200]).cast(pa.timestamp("s")), "date", [1, 0.5]),
        (pa.array([86_400 * 10**9, None]).cast(pa.timestamp("ns", "Europe/Berlin")), "date", [1, np.nan]),
        (pa.array([3600, 0], pa.int32()).cast(pa.time32("s")), "date", [1 / 24, 0]),
        (pa.array([43_200 * 10**6, 0]).cast(pa.time64("us")), "date", [0.5, 0]),
        (pa.array([86_400_000, 0]).cast(pa.duration("ms")), "date", [1, 0]),
        (["2024-02-29", None], "date", [DAYS, np.nan]),
        (["2024-02-29 12:00", "2024-02-29T18:00:00.0"], "date", [DAYS + 0.5, DAYS + 0.75]),
        (["2024-02-29T12:00:00Z", "2024-02-29T12:00:00+06:00"], "date", [DAYS + 0.5, DAYS + 0.25]),
        (["2024-02-29 12:00:00+00", "2024-02-29 12:00:00.5+06"], "date", [DAYS + 0.5, DAYS + 0.25 + 0.5 / 86_400]),
        (["12:00", "18:00:00.000000"], "date", [0.5, 0.75]),
        (["12:00:00.5+00", "18:00:00-06:00"], "date", [0.5 + 0.5 / 86_400, 1]),
        (["TRUE", "false"], "boolean", [1, 0]),
        ([None, "NA"], "missing", [np.nan, np.nan]),
        (pa.array([float("nan"), None]), "missing", [np.nan, np.nan]),
        # Other texts are categories, here with their names.
        (["1", "2"], "category", ("1", "2")),
        (["2024-02-29", "2024-02-30"], "category", ("2024-02-29", "2024-02-30")),
        (["12:00", "24:60"], "category", ("12:00", "24:60")),
        (["09:00-12:00", "09:00-17:00"], "category", ("09:00-12:00", "09:00-17:00")),
        (["2024-02-29", "soon"], "category", ("2024-02-29", "soon")),
        (["true", "maybe"], "category", ("maybe", "true")),
        (pa.array(["b", "a"]).dictionary_encode(), "category", ("a", "b")),
        (pa.array([2, 1]).dictionary_encode(), "category", ("1", "2")),
        (pa.array(["b", "a"], pa.large_string()), "category", ("a", "b")),
    ],
)
def test_what_a_typed_column_is(tmp_path: Path, values: Any, kind: Kind, holds: Sequence[Any]) -> None:
    form = "feather" if kind == "category" else "parquet"  # Parquet forgets that numbers were a dictionary
    features = features_from(write_columns(tmp_path, {"p": [0.5, 0.5], "y": [0, 1], "x": values}, form))
    assert features.kinds == (kind,)
    if kind == "category":
        assert features.categories == (holds,)
    else:
        np.testing.assert_allclose(features.numbers[:, 0], holds, rtol=1e-15)


TWO_WORDS = [f"{chr(97 + k)} word" for k in range(20)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (2 * TWO_WORDS, "text"),
        (TWO_WORDS[1:], "category"),
        ([*TWO_WORDS, *TWO_WORDS, TWO_WORDS[0]], "category"),
        ([*TWO_WORDS[1:], "one"], "category"),
    ],
)
def test_twenty_values_of_two_words_each_twice_are_texts(tmp_path: Path, values: list[str], kind: Kind) -> None:
    assert of_csv(tmp_path, values).kinds == (kind,)


def test_a_csv_column_is_numeric_if_all_its_values_are_numbers(tmp_path: Path) -> None:
    assert of_csv(tmp_path, ["1", " 2.5", "", "NA", "1e3"]).kinds == ("number",)
    mixed = of_csv(tmp_path, ["1", "2", "", "n/a", "X"])
    assert mixed.categories == (("1", "2", "X"),) and mixed.codes[:, 0].tolist() == [0, 1, -1, -1, 2]


def test_a_stray_text_among_many_numbers_is_an_error(tmp_path: Path) -> None:
    cells = [str(k) for k in range(40)]
    cells[6] = "?"
    with pytest.raises(DecalError) as caught:
        of_csv(tmp_path, cells)
    assert "column 'x', row 7 (line 8): '?' is not a number, as the column's 39 other values are" in str(caught.value)
    assert "leave the cell empty if the value is missing" in str(caught.value)
    # Codes of which some are numbers are categories.
    for numbers, words, stray in ((20, 1, True), (19, 1, False), (38, 2, True), (37, 2, False)):
        cells = [*map(str, range(numbers)), *"?!"[:words]]
        if not stray:
            assert of_csv(tmp_path, cells).kinds == ("category",)
            continue
        with pytest.raises(DecalError, match=f"column's {numbers} other values"):
            of_csv(tmp_path, cells)


def test_the_kind_is_that_of_all_files(tmp_path: Path) -> None:
    one = write_columns(tmp_path, {"p": [0.5], "y": [0], "x": [1.0]}, "csv", "one")
    two = write_columns(tmp_path, {"p": [0.5], "y": [1], "x": ["b"]}, "csv", "two")
    three = write_columns(tmp_path, {"p": [0.5], "y": [1], "x": pa.nulls(1)}, "parquet", "three")
    features = read([one, two, three], Columns(features=("x",))).models[0].rows.typed
    assert features.categories == (("1", "b"),) and features.codes[:, 0].tolist() == [0, 1, -1]
    four = write_columns(tmp_path, {"p": [0.5], "y": [1], "x": [True]}, "parquet", "four")
    five = write_columns(tmp_path, {"p": [0.5], "y": [0], "x": [2.5]}, "parquet", "five")
    for files in ([one, three], [four, five]):
        assert read(files, Columns(features=("x",))).models[0].rows.typed.kinds == ("number",)


NUMBERS = {**FOUR_ROWS, "x": [1, 2, 3, 4]}
GAPPY = {**FOUR_ROWS, "x": [1, None, 3, 4], "t": ["u", "v", None, "v"], "z": [1, 2, 1, 1]}


@pytest.mark.parametrize(
    ("columns", "roles", "names", "note"),
    [
        (NUMBERS, Columns(features=("x*",)), ("x",), None),
        (NUMBERS, Columns(features=("*",)), ("x",), "1 number"),
        (GAPPY, Columns(features=("*",)), ("x", "t", "z"), "2 numbers, 1 category; 2 columns with missing values"),
        (
            {**FOUR_ROWS, "t": ["true", "false"] * 2, "z": pa.nulls(4)},
            Columns(features=("*",)),
            ("t", "z"),
            "1 boolean, 1 only missing values; 1 column with missing values; nothing can be learned from z: each row "
            "has its own value, or all have one",
        ),
        (
            {**NUMBERS, "w": [1.0] * 4, "g": list("abab"), "t": list("uvuv")},
            Columns(weight="w", group=("g",), features=("*",)),
            ("x", "t"),
            "1 number, 1 category",
        ),
    ],
    ids=["numbers need no word", "unless all were taken", "gaps are counted", "no value", "other roles stay out"],
)
def test_kinds_are_told_once_they_were_read(
    tmp_path: Path, columns: Any, roles: Columns, names: tuple[str, ...], note: str | None
) -> None:
    data = read([write_columns(tmp_path, columns)], roles)
    assert data.columns["features"] == names and data.all_notes == ()
    _ = data.models[0].rows.typed
    assert data.all_notes == (() if note is None else (f"features: {note}",))


def test_arrays_and_frames_are_as_files() -> None:
    import pandas as pd

    score, label = [0.1, 0.6, 0.7], [0, 1, 1]
    frame = pd.DataFrame(
        {
            "object": np.array(["b", None, "a"], dtype=object),
            "category": pd.Categorical(["b", None, "a"]),
            "string": pd.array(["b", None, "a"], dtype="string"),
            "number": pd.array([1, None, 3], dtype="Int64"),
            "boolean": pd.array([True, None, False], dtype="boolean"),
            "date": pd.to_datetime([DAY, None, DAY]),
        }
    )
    typed = from_arrays(score, label, features=frame).models[0].rows.typed
    assert typed.kinds == ("category", "category", "category", "number", "boolean", "date")
    assert typed.codes.T.tolist() == [[1, -1, 0]] * 3
    np.testing.assert_array_equal(typed.numbers, [[1, 1, DAYS], [np.nan] * 3, [3, 0, DAYS]])
    mixed = pd.DataFrame({"p": score, "y": label, "x": np.array([1, "a", None], dtype=object)})
    typed = from_arrays(mixed, columns=Columns(features=("x",))).models[0].rows.typed
    assert typed.categories == (("1", "a"),) and typed.codes[:, 0].tolist() == [0, 1, -1]
    array = np.array([["b", 1.0], [np.nan, None], ["a", 3.0]], dtype=object)
    data = from_arrays(score, label, features=array).models[0]
    assert data.feature_names == ("features[0]", "features[1]") and data.rows.typed.kinds == ("category", "number")
    assert data.rows.typed.codes[:, 0].tolist() == [1, -1, 0]


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_new_rows_are_read_as_the_model_was_taught(tmp_path: Path, form: str) -> None:
    columns = {"p": [0.5, 0.5], "c": ["new", None], "t": ["2024-02-29", None], "b": [True, None], "gone": ["u", "v"]}
    kinds: tuple[Kind, ...] = ("category", "date", "boolean", "missing")
    path = write_columns(tmp_path, columns, form)
    wanted = Columns(score=("p",), features=("c", "t", "b", "gone"))
    (batch,) = NewRows(path, wanted, kinds, None).batches()
    typed = batch.rows.typed
    assert typed.kinds == kinds and typed.categories == (("new",),) and typed.codes.tolist() == [[0], [-1]]
    np.testing.assert_array_equal(typed.numbers, [[DAYS, 1, np.nan], [np.nan] * 3])
    assert batch.known.all()


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        ([1.0, 2.0], "category", "holds numbers; the model was fitted on categories"),
        (["a", "b"], "number", "holds text; the model was fitted on numbers"),
        (["a", "b"], "date", "holds 'a'; the model was fitted on dates"),
        (["a", "b"], "boolean", "holds 'a'; the model was fitted on booleans"),
        ([1.0, 2.0], "date", "holds numbers; the model was fitted on dates"),
        ([True, False], "category", "holds booleans; the model was fitted on categories"),
        ([DAY, DAY], "number", "holds dates; the model was fitted on numbers"),
    ],
)
def test_a_kind_that_changed_is_refused(tmp_path: Path, values: Any, kind: Kind, words: str) -> None:
    path = write_columns(tmp_path, {"p": [0.5, 0.5], "x": values}, "parquet")
    rows = NewRows(path, Columns(score=("p",), features=("x",)), (kind,), None)
    with pytest.raises(DecalError) as caught:
        list(rows.batches())
    assert f"column 'x' {words}" in str(caught.value) and str(caught.value).isprintable()


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


def test_features_are_read_once_for_all_models(tmp_path: Path) -> None:
    path = write_columns(tmp_path, {"p_a": [0.5], "p_b": [0.5], "y": [1], "x": [3]}, "parquet")
    a, b = read([path], Columns(score=("p_*",), features=("x",))).models
    assert a.rows.features is not None and b.rows.features is not None
    assert a.rows.matrix is b.rows.matrix and a.rows.matrix.tolist() == [[3.0]]


LISTS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float32(), 2)])
@pytest.mark.parametrize("second", [LISTS[1], None], ids=["whole", "one is null"])
def test_an_embedding_column_is_a_matrix(tmp_path: Path, kind: pa.DataType, second: list[float] | None) -> None:
    lists = [LISTS[0], second, *LISTS[2:]]
    fixed_with_gaps = second is None and pa.types.is_fixed_size_list(kind)
    # Pyarrow 17 writes no such list as Parquet.
    cannot_write = fixed_with_gaps and pa.__version__.startswith("17.")
    for form in ("feather", "arrow-stream", "jsonl", *(() if cannot_write else ("parquet",))):
        path = write_columns(tmp_path, {**FOUR_ROWS, "emb": pa.array(lists, kind)}, form)
        (model,) = read([path], Columns(features=("emb",))).models
        assert model.feature_names == ("emb",) and model.rows.matrix.dtype == np.float64
        np.testing.assert_array_equal(model.rows.matrix, [each or [np.nan] * 2 for each in lists], form)


@pytest.mark.parametrize(
    ("values", "features", "words"),
    [
        ({"emb": [[1.0], [1.0, 2.0], [1.0], [1.0]]}, ("emb",), ["column 'emb', row 2", "list of 2 values where", "1"]),
        ({"emb": LISTS, "x": [1, 2, 3, 4]}, ("emb", "x"), ["column 'emb' holds lists and is one of 2"]),
        ({"emb": [["a"], ["b"], ["c"], ["d"]]}, ("emb",), ["column 'emb', row 1", "not a list of numbers"]),
        ({"emb": [[], [], [], []]}, ("emb",), ["every list is empty"]),
        ({"emb": [[1.0], [], [1.0], [1.0]]}, ("emb",), ["column 'emb', row 2", "list of 0 values where"]),
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


def test_lists_of_json_lines_may_begin_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlines, "N_LINES", 2)
    lists = {**FOUR_ROWS, "x": [None, None, None, [1.0, 2.0]]}
    features = features_from(write_columns(tmp_path, lists, "jsonl"))
    np.testing.assert_array_equal(features.numbers, [[np.nan, np.nan]] * 3 + [[1, 2]])


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
