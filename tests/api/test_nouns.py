"""Data, decisions and the other nouns: the lines that the package is shown with, and every short form.

>>> import decal_cli as decal
>>> decal.evaluate((p, y), 0.3)
<EvaluateAnswer: score, 2,000 rows, ...>
>>> decal.evaluate(
...     decal.Data("preds.parquet", score="p_*", label="y", features="x*"),
...     decal.Decision.utility([[0, -20], [-2, -3], [-5, -1]], actions=["wait", "test", "treat"]),
... )
<EvaluateAnswer: 2 reports (2 models), ...>
>>> data = decal.Data("preds.parquet", score="p_new")
>>> decal.evaluate(data.by("site").clustered("patient"), decal.Decision.costs(fp=1, fn=19))
<EvaluateAnswer: 3 reports (1 model, 2 groups), ...>
>>> decal.recommend(
...     data.at_prevalence(0.02), decal.Decision.per_row(fn="amount", fp=10), costs=decal.Costs(post_train=0.01)
... )
<RecommendAnswer: p_new, 2,000 rows: ...>
>>> decal.recommend(decal.Data("k.parquet", proba="p_*"), decal.Decision.abstain(0.2), methods="all")
<RecommendAnswer: p, 600 rows: ...>
>>> decal.compare(data.models("p_old", "p_new"), 0.3)
<CompareAnswer: p_new - p_old, 2,000 rows: ...>
>>> decal.sweep(decal.Data("k.parquet", proba="p_*"), decal.Decision.abstain(0.2).vary("abstain", 0, 0.5))
<VariedAnswer: p: price of abstention, ...>
>>> decal.gate(
...     data, decal.Decision(0.3).at_capacity("50/1000", per="day"), rules=["gain_recalibration<=0.01"]
... )
<GateAnswer: ...>
"""

import doctest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import decal_cli as decal
from decal_cli.api import nouns, online, verbs
from tests.helpers.command import FIXTURES

FRAME = pyarrow.csv.read_csv(FIXTURES / "binary_n2000.csv").to_pandas()
P, Y = FRAME["p"].to_numpy(), FRAME["y"].to_numpy()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the lines name."""
    rows = np.arange(len(P))
    table = {"p_old": P**1.3, "p_new": P, "y": Y, "x1": FRAME["x1"], "site": FRAME["group"], "patient": rows // 2}
    pd.DataFrame({**table, "amount": 1 + rows % 7, "day": rows // 100}).to_parquet(tmp_path / "preds.parquet")
    classes = pyarrow.csv.read_csv(FIXTURES / "multiclass_n1500_k3.csv").to_pandas().iloc[:600]
    scores = [name for name in classes.columns if name.startswith("p")]
    named = {name: f"p_{at}" for at, name in enumerate(scores)}
    classes = classes.rename(columns=named)[[*named.values(), "y"]]
    classes.to_parquet(tmp_path / "k.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_lines_that_the_package_is_shown_with(folder: Path) -> None:
    examples = doctest.DocTestParser().get_doctest(__doc__, {"p": P, "y": Y}, "nouns", None, None)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples).failed == 0


@pytest.mark.parametrize("module", [nouns, online, verbs], ids=lambda each: each.__name__)
def test_the_examples_of_docstrings_run(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_a_keyword_is_the_field_of_a_noun() -> None:
    by_nouns = decal.evaluate(
        decal.Data((P, Y), weight=1 + P), decal.Decision.costs(fp=3, fn=7), statistics=decal.Statistics(seed=1)
    )
    by_keywords = decal.evaluate(P, Y, weight=1 + P, cost_fp=3, cost_fn=7, seed=1)
    assert by_nouns.to_dict() == by_keywords.to_dict()


@pytest.mark.parametrize(
    "matrix", [[[0, -7], [-3, 0]], np.array([[0, -7], [-3, 0]]), "0,-7;-3,0", {"a": [0, -7], "b": [-3, 0]}]
)
def test_a_matrix_is_a_decision_and_a_row_of_labels_is_not(matrix: Any) -> None:
    value = decal.evaluate((P, Y), matrix, metrics="expected_utility")["expected_utility"].value
    assert value == pytest.approx(decal.evaluate(P, Y, cost_fp=3, cost_fn=7)["expected_utility"].value)


SOURCES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "(scores, labels)": lambda rows: (rows["p"].to_list(), rows["y"].to_list()),
    "mapping": lambda rows: rows.to_dict("list"),
    "polars": pl.from_pandas,
    "lazy": lambda rows: pl.from_pandas(rows).lazy(),
    "pyarrow": pa.Table.from_pandas,
    "narwhals": lambda rows: narwhals.from_native(rows),
    "narwhals, lazy": lambda rows: narwhals.from_native(pl.from_pandas(rows).lazy()),
    "DuckDB relation": lambda rows: duckdb.from_df(rows),
    "DuckDB connection": lambda rows: decal.Data(_database(rows), query="select * from preds"),
}


def _database(rows: pd.DataFrame) -> Any:
    connection = duckdb.connect()
    connection.register("rows", rows)  # which no other connection sees, nor the table
    connection.execute("create temporary table preds as select * from rows")
    return connection


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same(kind: str) -> None:
    rows = FRAME[["p", "y"]]
    expected = decal.evaluate((P, Y), 0.3, metrics=["brier", "expected_utility"])
    got = decal.evaluate(SOURCES[kind](rows), 0.3, metrics=["brier", "expected_utility"])
    for key in expected:
        assert got[key].value == pytest.approx(expected[key].value, rel=1e-12)


def test_only_a_sweep_lets_a_number_vary_and_a_capacity_may() -> None:
    answer = decal.sweep((P, Y), decal.Decision(0.3).vary("capacity", 0.1, 0.2, 0.05))
    assert list(answer.sweep.values) == [0.1, 0.15, 0.2]
    with pytest.raises(decal.DecalError, match="for sweep"):
        decal.evaluate((P, Y), decal.Decision(0.3).vary("capacity", 0.1, 0.2))


def test_rows_come_from_one_engine() -> None:
    with pytest.raises(decal.DecalError, match="rows come from files or from one engine; give one address"):
        decal.evaluate(decal.Data(["duckdb:a.duckdb?table=t", "duckdb:b.duckdb?table=t"], score="p", label="y"), 0.3)


@pytest.mark.parametrize("name", ["weight", "positive", "classes", "capacity"])
def test_an_empty_text_names_nothing_and_is_refused(name: str) -> None:
    with pytest.raises(decal.DecalError, match=f"{name}= is empty; give a value, or leave it out"):
        decal.evaluate(decal.Data({"p": P, "y": Y}, score="p", label="y"), 0.3, **{name: ""})


def test_a_noun_shows_what_was_said() -> None:
    assert (
        repr(decal.Data("a.csv").by("site").at_prevalence(0.1))
        == "Data(source='a.csv', group=('site',), prevalence=0.1)"
    )
    assert repr(decal.Data((P, Y))) == "Data(source=<ndarray>, label=<ndarray>)"
    assert repr(decal.Decision.per_row(fn="amount", fp=10)) == "Decision(cost_fp=10, cost_fn_column='amount')"
    assert repr(decal.Decision(0.3).in_terms(unit="EUR")) == "Decision(threshold=0.3, terms=Terms(unit='EUR'))"


UTILITIES = {"tn": [0.0, 1.0], "fn": [-4.0, -5.0], "fp": [-1.0, -2.0], "tp": [3.0, 2.0]}


def test_utilities_of_rows_come_by_name_or_in_their_order() -> None:
    pairs = ([0.2, 0.8], [0, 1])
    arrays = {name: np.array(values) for name, values in UTILITIES.items()}
    backwards = dict(reversed(arrays.items()))
    given = (arrays, backwards, pd.DataFrame(backwards), np.array([*arrays.values()]).T, [*arrays.values()])
    worth = [decal.evaluate(pairs, decal.Decision.per_row(utility=each), metrics="expected_utility") for each in given]
    assert {each["expected_utility"].value for each in worth} == {0.5}


def test_actions_have_names_of_their_own() -> None:
    with pytest.raises(decal.DecalError, match="actions= names 'treat' twice"):
        decal.Decision.utility([[0, -20], [-2, -3], [-5, -1]], actions=["wait", "treat", "treat"])
    named = decal.Decision.utility([[0, -20], [-5, -1]], actions=np.array(["wait", "treat"]))
    assert named.matrix == {"wait": [0, -20], "treat": [-5, -1]}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda rows: decal.gate(rows, rules="brier<=.5", test="none.csv"), "test= is for fit; leave it out"),
        (lambda rows: decal.recommend(rows, 0.3, reference="none.csv"), "reference= is for evaluate"),
        (lambda rows: decal.evaluate(rows, query="select 1"), "query= is asked of an engine"),
        (lambda rows: decal.recommend(rows, 0.3, costs=0.01), "0.01 is no noun of decal; give Costs"),
        (lambda rows: decal.evaluate(rows, statistics={"seed": 1}), "is no noun of decal"),
        (lambda rows: decal.evaluate(rows, logit="no"), "logit='no' is neither True nor False"),
        (lambda rows: decal.evaluate(rows, intervals="no"), "intervals='no' is neither True nor False"),
        (lambda rows: decal.recommend(rows, 0.3)["average_precision"], r"name it: evaluate\("),
    ],
)
def test_what_a_verb_does_not_take_is_refused(call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(decal.DecalError, match=text):
        call({"p": [0.2, 0.8] * 20, "y": [0, 1] * 20})


def test_a_gate_is_true_where_it_passed() -> None:
    rows = {"p": [0.2, 0.8] * 20, "y": [0, 1] * 20}
    assert decal.gate(rows, rules="rows>=5") and not decal.gate(rows, rules=["brier<=0.5", "rows>=50"])


def test_masked_probabilities_are_missing() -> None:
    masked = np.ma.array(np.full((6, 3), 1 / 3), mask=np.arange(18).reshape(6, 3) < 3)
    with pytest.raises(decal.DecalError, match="probability missing in 1 of 6 rows"):
        decal.evaluate((masked, [0, 1, 2] * 2), metrics="brier")


def test_a_fit_is_judged_on_scores_and_labels() -> None:
    score, label = np.linspace(0.05, 0.95, 200), np.arange(200) % 3 > 0
    for test in ((score[100:], label[100:]), decal.Data((score[100:], label[100:]))):
        fitted = decal.fit((score[:100], label[:100]), 0.3, method="platt", test=test)
        assert fitted.result.fitting.judged.reports[0].rows == 100
    flags = np.column_stack((score > 0.3, score > 0.6))
    assert decal.evaluate(decal.Data((score, label), features=flags), 0.3, metrics="grouping_loss").reports[0].features
