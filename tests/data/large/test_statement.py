"""The statement against tables of the same rows, run by DuckDB; every dialect parses, and no name breaks out of it."""

import math
from collections import Counter
from decimal import Decimal
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot

from decal_cli.commands import options as choices
from decal_cli.data.dataset import NO_LABEL
from decal_cli.data.large.aggregates import DroppedRows, sound
from decal_cli.data.large.engines import DIALECTS
from decal_cli.data.large.engines.statement import PROBLEMS, CountRequest, statement
from decal_cli.errors import DecalError
from decal_cli.tables.cells import GRID
from decal_cli.tables.table import tabulate

THRESHOLDS = (0.3, 0.02, 1 / 3, 0.5)
TABLE = CountRequest(("p",), "y", table="preds")


def hard_rows(rows: int = 3000) -> dict[str, np.ndarray]:
    """Ties, both ends, -0.0, tiny scores and weights of many sizes."""
    rng = np.random.default_rng(7)
    score = rng.random(rows)
    score[:900] = np.round(score[:900], 1)
    score[900:1000] = -0.0
    score[1000:1100] = 10.0 ** -rng.integers(5, 18, 100)
    score[1100:1200] = 1 - 2.0 ** -rng.integers(20, 53, 100)
    score[1200:1205] = THRESHOLDS[2]
    label = (rng.random(rows) < score).astype(np.int64)
    score[1205:1210] = 1.0
    label[1205:1210] = 1
    return {"p": score, "q": score**2, "y": label, "w": rng.lognormal(0, 2, rows), "site": rng.integers(0, 3, rows)}


def answer(request: CountRequest, **columns: Any) -> pa.Table:
    """What DuckDB answers for these rows."""
    with duckdb.connect() as connection:
        connection.register("preds", pa.table(columns))
        return connection.sql(statement(request, DIALECTS["duckdb"])).to_arrow_table()


def counted(request: CountRequest, **columns: Any) -> dict[str, np.ndarray]:
    """The same as arrays in the order of the keys, without what is wrong."""
    table, _ = sound(answer(request, **columns), "preds", drop=False)
    keys = [name for name in ("site", "model", "score", "cell", "label") if name in table.column_names]
    table = table.sort_by([(name, "ascending") for name in keys])
    return {name: table[name].to_numpy() for name in table.column_names}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("scores", "group"), [(("p",), ()), (("p", "q"), ("site",))], ids=str)
def test_levels_are_the_tables_of_the_rows(scores: tuple[str, ...], group: tuple[str, ...], weighted: bool) -> None:
    rows = hard_rows()
    levels = counted(CountRequest(scores, "y", "preds", weight="w" if weighted else None, group=group), **rows)
    of_counts = ["score", "n", "pos", *(("n2", "pos2", "rows", "rows_pos") if weighted else ())]
    assert list(levels) == [*group, *(("model",) if group else ()), *of_counts]
    assert not np.signbit(levels["score"]).any()
    for model, site in product(scores, range(3) if group else [None]):
        of_rows = np.full(len(rows["y"]), True) if site is None else rows["site"] == site
        of_levels = slice(None) if site is None else (levels["site"] == str(site)) & (levels["model"] == model)
        here = {name: levels[name][of_levels] for name in of_counts}
        score, label, weight = (rows[name][of_rows] for name in (model, "y", "w"))
        plain, expected = tabulate(score, label), tabulate(score, label, weight if weighted else None)
        for name in ("score", "n", "pos", "n2", "pos2")[: 5 if weighted else 3]:
            np.testing.assert_allclose(here[name], getattr(expected, name), rtol=1e-12, atol=0)
        if weighted:
            assert (here["rows"].tolist(), here["rows_pos"].tolist()) == (plain.n.tolist(), plain.pos.tolist())
        else:
            assert (here["n"].tolist(), here["pos"].tolist()) == (expected.n.tolist(), expected.pos.tolist())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("thresholds", [(), THRESHOLDS])
def test_cells_hold_the_sums_of_their_rows(weighted: bool, thresholds: tuple[float, ...]) -> None:
    rows = hard_rows()
    weight = "w" if weighted else None
    cells = counted(CountRequest(("p",), "y", "preds", weight=weight, cells=True, thresholds=thresholds), **rows)
    score, label = rows["p"] + 0.0, rows["y"]
    w = rows["w"] if weighted else np.ones(len(score))
    cell = np.floor(score * GRID).astype(int) + sum((score >= t).astype(int) for t in thresholds)
    keys, of_row = np.unique(cell * 2 + label, return_inverse=True)
    assert (cells["cell"] * 2 + cells["label"]).tolist() == keys.tolist()
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(label == 1, -np.log(score), -np.log1p(-score))
    sums = {"rows": np.ones(len(score)), "n": w, "l1": w * loss, "l2": w * loss**2}
    sums |= {f"s{k}": w * score**k for k in range(1, 5)}
    if weighted:
        sums |= {"n2": w**2, "k1": w**2 * loss, "k2": w**2 * loss**2}
        sums |= {f"q{k}": w**2 * score**k for k in range(1, 5)}
    assert set(cells) == {"cell", "low", "high", "label", "min_score", "max_score", *sums}
    order = np.argsort(of_row, kind="stable")
    starts = np.searchsorted(of_row[order], np.arange(len(keys)))
    assert cells["min_score"].tolist() == np.minimum.reduceat(score[order], starts).tolist()
    assert cells["max_score"].tolist() == np.maximum.reduceat(score[order], starts).tolist()
    for name, values in sums.items():
        np.testing.assert_allclose(cells[name], np.bincount(of_row, values), rtol=1e-12, atol=1e-300, err_msg=name)
    low, high = cells["low"][of_row], cells["high"][of_row]
    assert ((low <= score) & ((score < high) | (score == 1) & (high == 1))).all()
    assert all(((low >= t) | (high <= t)).all() for t in thresholds)


def test_a_wrong_certain_score_costs_infinitely_much() -> None:
    cells = counted(CountRequest(("p",), "y", "preds", cells=True), p=[0.0, 1.0, 0.5], y=[1, 0, 1])
    assert cells["l1"].tolist() == [np.inf, np.log(2), np.inf]


@pytest.mark.parametrize(
    ("labels", "positive", "expected"),
    [
        ([True, False, True], None, [1, 0, 1]),
        (["1", "0.0", " 1.00"], None, [1, 0, 1]),
        (["TRUE", "false", "1"], None, [1, 0, 1]),
        ([1.0, 0.0, 1.0], None, [1, 0, 1]),
        ([Decimal("1.000"), Decimal("0.000"), Decimal("1.000")], None, [1, 0, 1]),
        (["yes", "no", "yes"], "yes", [1, 0, 1]),
        (["it's", "no", "it's"], "it's", [1, 0, 1]),
        ([2, 1, 2], "2", [1, 0, 1]),
        ([Decimal("2.50"), Decimal("1.00"), Decimal("2.50")], "2.5", [1, 0, 1]),
        ([1, 2, 1], "1", [1, 0, 1]),
        ([0, 1, 0], "0", [1, 0, 1]),
        ([False, True, False], "false", [1, 0, 1]),
        ([0, 0, 0], "1", [0, 0, 0]),
    ],
)
def test_labels_are_coded_as_in_files(labels: list[Any], positive: str | None, expected: list[int]) -> None:
    request = CountRequest(("p",), "y", "preds", positive=positive)
    assert counted(request, p=[0.1, 0.2, 0.3], y=labels)["pos"].tolist() == expected


WRONG = [
    ({"p": [0.1, 1.5, 2.5]}, "score outside [0, 1]", 2, "preds: score 1.5 is outside [0, 1] (2 such rows)"),
    ({"p": [0.1, float("-inf"), 0.5]}, "score outside [0, 1]", 1, "is outside [0, 1]"),
    ({"p": [0.1, None, float("nan")]}, "missing score", 2, "preds: score missing in 2 rows"),
    ({"y": [1, None, 0]}, "missing label", 1, "preds: label missing in 1 row;"),
    ({"y": ["1", "NA", "0"]}, "missing label", 1, "label missing"),
    ({"y": [1, 2, 0]}, "label of a third value", 1, "label is '2', and a label is 0 or 1"),
    ({"y": ["yes", "no", "yes"]}, "label of a third value", 3, "say which counts as 1 with --positive"),
    ({"w": [1.0, 0.0, 2.0]}, "weight not positive and finite", 1, "weight 0 is not positive"),
    ({"w": [1.0, float("inf"), 2.0]}, "weight not positive and finite", 1, "is not positive and finite"),
    ({"w": [1.0, None, float("nan")]}, "missing weight", 2, "weight missing in 2 rows"),
]


@pytest.mark.parametrize(("columns", "problem", "count", "text"), WRONG)
@pytest.mark.parametrize("cells", [False, True])
def test_what_is_wrong_is_counted_by_the_engine(
    columns: dict[str, Any], problem: str, count: int, text: str, cells: bool
) -> None:
    rows = {"p": [0.1, 0.2, 0.3], "y": [0, 1, 0], "w": [1.0, 2.0, 3.0]} | columns
    table = answer(CountRequest(("p",), "y", "preds", weight="w", cells=cells), **rows)
    wrong = [each for each in table.to_pylist() if each["bad"]]
    assert {each["bad"] for each in wrong} == {problem} and sum(each["rows"] for each in wrong) == count
    with pytest.raises(DecalError) as raised:
        sound(table, "preds", drop=False)
    assert text in str(raised.value)
    if PROBLEMS[problem].text:
        with pytest.raises(DecalError):
            sound(table, "preds", drop=True)
    else:
        kept, dropped = sound(table, "preds", drop=True)
        # The labels of rows that lack something else are known: 0, 1, 0.
        ones = sum(value is None or value != value for value in next(iter(columns.values()))[1:2])
        assert dropped == {None: DroppedRows(Counter({problem: count}), ones if problem != NO_LABEL else 0)}
        assert sum(kept["rows"].to_pylist()) == 3 - count


@pytest.mark.parametrize(
    ("labels", "positive", "problem"),
    [
        (["yes", "no", "maybe"], "yes", "label of a third value"),
        (["no", "no", "maybe"], "yes", "label never positive"),
        ([0, 1, 1], "yes", "label never positive"),
        (["a", "a", "a"], "1", "label never positive"),
        ([None, None, None], "1", "missing label"),
    ],
)
def test_a_label_has_two_values_and_one_is_positive(labels: list[Any], positive: str, problem: str) -> None:
    table = answer(CountRequest(("p",), "y", "preds", positive=positive), p=[0.1, 0.2, 0.3], y=pa.array(labels))
    assert {each["bad"] for each in table.to_pylist()} - {None} == {problem}


def test_a_row_that_lacks_one_score_counts_for_the_other_model() -> None:
    table = answer(CountRequest(("p", "q"), "y", "preds"), p=[0.1, None], q=[0.3, 0.4], y=[0, 1])
    kept, dropped = sound(table, "preds", drop=True)
    assert dropped == {"p": DroppedRows(Counter({"missing score": 1}), 1)}
    assert sorted(kept["score"].to_pylist()) == [0.1, 0.3, 0.4]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("cells", [False, True])
def test_every_dialect_parses(dialect: str, cells: bool) -> None:
    for request in (
        CountRequest(("p",), "y", "preds", cells=cells),
        CountRequest(("p", "q"), "y", "a.preds", None, "yes", "w", ("site", "age"), cells, THRESHOLDS),
        CountRequest(("p",), "y", query="select * from preds where y <> 'x' -- all\n;", positive="2.5", cells=cells),
        CountRequest(("p", "q"), "y", "preds", None, None, "w", ("site",), cells, THRESHOLDS, pairs=True),
    ):
        parsed = sqlglot.parse(statement(request, DIALECTS[dialect]), read=dialect)
        assert len(parsed) == 1
        assert isinstance(parsed[0], sqlglot.exp.Select)
    clustered = CountRequest(("p", "q"), "y", "preds", None, "yes", "w", ("site",), cells, THRESHOLDS, "c")
    parsed = sqlglot.parse(statement(clustered, DIALECTS[dialect]), read=dialect)
    assert isinstance(*parsed, sqlglot.exp.Union if cells else sqlglot.exp.Select)


@pytest.mark.parametrize("dialect", [*(name for name, each in DIALECTS.items() if each.experimental), "mysql"])
@pytest.mark.parametrize("cells", [False, True])
def test_a_dialect_without_a_server_counts_what_duckdb_counts(dialect: str, cells: bool) -> None:
    """In DuckDB, as sqlglot translates it."""
    scores = [0.2, 0.5, 0.5, None if dialect == "mysql" else math.nan, None, 1.5, 0.75]
    columns = {"p": scores, "y": ["1", "0", "yes", "1", "1", "0", None], "w": [1.0, 2.0, 0.5, 1.0, 1.0, 1.0, 1.0]}
    request = CountRequest(("p",), "y", "preds", None, None, "w", (), cells, THRESHOLDS)
    connection = duckdb.connect()
    connection.register("preds", pa.table(columns))
    # DuckDB tells texts apart without being told to.
    text = statement(request, DIALECTS[dialect]).replace(" CHARACTER SET utf8mb4) COLLATE utf8mb4_bin", ")")
    (translated,) = sqlglot.transpile(text, read=dialect, write="duckdb")
    own, other = (
        connection.sql(text).to_arrow_table().to_pylist()
        for text in (statement(request, DIALECTS["duckdb"]), translated)
    )
    for rows in (own, other):
        # The ends of a threshold's span mean nothing where a row is wrong, and NULL in GREATEST differs.
        rows[:] = [row if row["bad"] is None else {key: row[key] for key in ("rows", "bad", "value")} for row in rows]
        rows.sort(key=repr)
    assert other == own and len(own) > 3


HOSTILE = ('p"; DROP TABLE preds; --', "p'; DROP TABLE preds; --", "p`; DROP", "p\\", "p\\' OR 1=1", "p\n; --", "é ☃")


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_texts_of_a_user_cannot_leave_their_quotes(name: str) -> None:
    for spelt, dialect in DIALECTS.items():
        text = statement(CountRequest((name, "q"), name, "preds", positive=name, group=(name,)), dialect)
        parsed = sqlglot.parse(text, read=spelt)
        assert len(parsed) == 1
        names = {each.name for each in parsed[0].find_all(sqlglot.exp.Column) if not each.name.startswith("decal_")}
        assert names - {"*"} == {name, "q"}, spelt
        assert name in {each.this for each in parsed[0].find_all(sqlglot.exp.Literal) if each.is_string}
        tables = {each.name for each in parsed[0].find_all(sqlglot.exp.Table) if not each.name.startswith("decal_")}
        assert tables == {"preds"}
    columns = {name: ["x"] * 3, "p": [0.1, 0.2, 0.3], "y": [0, 1, 0]}
    levels = answer(CountRequest(("p",), "y", "preds", group=(name,)), **columns)
    assert levels[name].to_pylist() == ["x"] * 3


@pytest.mark.parametrize("cells", [False, True])
def test_groups_may_have_any_name_but_those_of_the_result(cells: bool) -> None:
    names = ("s", "w", "y ", "decal_rows", "group", "select")
    columns = {name: ["a", "b"] for name in names}
    table = answer(CountRequest(("p",), "y", "preds", group=names, cells=cells), p=[0.2, 0.2], y=[0, 0], **columns)
    assert sorted(table["s"].to_pylist()) == ["a", "b"]


def test_a_table_is_named_by_its_parts() -> None:
    assert DIALECTS["duckdb"].table('main."a.b""c"') == '"main"."a.b""c"'
    for wrong in ("", "a.", ".a", 'a"b', '"a"b', "a\0"):
        with pytest.raises(DecalError):
            DIALECTS["duckdb"].table(wrong)


def test_every_dialect_can_be_chosen() -> None:
    assert list(choices.DIALECTS) == list(DIALECTS)
