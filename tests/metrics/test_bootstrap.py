"""Bootstrap intervals: as wide as theory says where there is one, the same whatever else is computed."""

from dataclasses import replace

import numpy as np
import pytest

import decal_cli as decal
from decal_cli.declarations.spec import Spec
from decal_cli.metrics import METRICS, Inputs, MetricSpec, confidence, interval_of, measure_all, parse
from decal_cli.tables import design, threads
from decal_cli.tables.table import Table, tabulate
from decal_cli.task import BinaryTask


def beta_table(rows: int, seed: int = 1, weighted: bool = False) -> Table:
    rng = np.random.default_rng(seed)
    score = rng.beta(1, 2, rows)
    label = (rng.random(rows) < score).astype(np.uint8)
    return tabulate(score, label, rng.uniform(0.5, 2, rows) if weighted else None)


def inputs(table: Table, seed: int = 0) -> Inputs:
    return Inputs.of(table, BinaryTask.of_threshold(0.3), seed=seed)


def declared(name: str) -> MetricSpec:
    """The metric as if it declared a bootstrap interval."""
    return Spec(replace(METRICS[name], interval="bootstrap"))


def ends(name: str, table: Table) -> tuple[float, float] | None:
    spec = declared(name)
    return measure_all([spec], inputs(table), 0.9)[spec].interval


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["brier", "expected_utility", "auc"])
def test_it_agrees_with_the_analytic_interval_where_there_is_one(name: str, weighted: bool) -> None:
    table = beta_table(1500, weighted=weighted)
    analytic = interval_of(parse(name), inputs(table), 0.9)
    resampled = ends(name, table)
    width = analytic[1] - analytic[0]
    assert resampled[1] - resampled[0] == pytest.approx(width, rel=0.15)
    assert sum(resampled) / 2 == pytest.approx(sum(analytic) / 2, abs=0.1 * width)


def test_an_interval_does_not_depend_on_what_else_is_computed() -> None:
    given = inputs(beta_table(300), seed=3)
    specs = [declared(name) for name in ("average_precision", "c_emp", "utility_share")]
    together = measure_all(specs, given, 0.95)
    for spec in specs:
        assert together[spec].interval is not None and measure_all([spec], given, 0.95)[spec] == together[spec]


@pytest.mark.ci
def test_two_threads_measure_the_same_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [parse(name) for name, metric in METRICS.items() if metric.takes(False)]
    # A table remembers what was computed from it.
    one_thread = measure_all(specs, inputs(beta_table(400)), 0.9)
    monkeypatch.setattr(confidence, "MANY", 10)
    two_threads = measure_all(specs, inputs(beta_table(400)), 0.9)
    assert list(two_threads) == specs and two_threads == one_thread


@pytest.mark.ci
@pytest.mark.parametrize("kind", ["clusters", "costs of each row", "clusters and weights"])
def test_two_threads_evaluate_rows_as_one_does(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    p = rng.beta(1, 2, 600)
    y, cost = rng.random(600) < p, rng.integers(1, 30, 600)
    data = decal.Data((p, y), weight=cost if "weights" in kind else None)
    data = data.clustered(rng.integers(90, size=600)) if "clusters" in kind else data
    decision = decal.Decision.per_row(fn=cost, fp=10) if "costs" in kind else decal.Decision(0.3)
    one_thread = decal.evaluate(data, decision, metrics="all").to_dict()
    monkeypatch.setattr(confidence, "MANY", 10)
    for module in (threads, design):
        monkeypatch.setattr(module, "MANY", 2)
    assert decal.evaluate(data, decision, metrics="all").to_dict() == one_thread


def test_a_metric_undefined_on_most_draws_has_no_interval() -> None:
    # One positive among two rows: half of the draws or more lack a class.
    assert ends("utility_share", tabulate(np.array([0.2, 0.9]), np.array([0, 1]))) is None
