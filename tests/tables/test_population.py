"""Rows counted as another population, by hand, and against rows that were drawn from it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import decal_cli
from decal_cli.analysis.evaluate import Plan, evaluate
from decal_cli.data import Columns, Dataset, from_arrays
from decal_cli.metrics import parse
from decal_cli.metrics.confidence import skewed
from decal_cli.metrics.families.scores import calibration_line, squared
from decal_cli.tables import estimate
from decal_cli.tables.estimate import MeanEstimate
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.population import Population, population_share
from decal_cli.tables.rows import Rows
from decal_cli.task import task_of
from tests.helpers.worlds import interval_of

pytestmark = pytest.mark.usefixtures("seen_rows_only")

UTILITY = (parse("expected_utility"),)


def test_weights_and_scores_by_hand() -> None:
    """Tasche 2021, (5.5): from a quarter to a tenth positive, labels 0 count 1.2 and labels 1 count .4."""
    rows = Rows(np.array([0.25, 0.5, 0.0, 1.0]), np.array([0, 0, 0, 1]))
    population = Population.of_ones(0.1, 0.25, kept=False)
    counted = population.counted(rows)
    assert counted.weight == pytest.approx([1.2, 1.2, 1.2, 0.4])
    assert counted.weights @ counted.label / counted.weights.sum() == pytest.approx(0.1)
    # Odds of 1:3 and 1:1 become a third of themselves, those of certainty stay.
    assert counted.score == pytest.approx([0.1, 0.25, 0, 1])


def test_the_order_of_weighted_rows_does_not_change_a_bit_of_what_they_count() -> None:
    """A tree on weights that differ in the last bit may split elsewhere."""
    rng = np.random.default_rng(4)
    rows = Rows(rng.random(400), rng.integers(0, 2, 400), rng.lognormal(size=400))
    orders = (rng.permutation(400) for _ in range(20))
    assert len({population_share(rows.take(order)) for order in orders}) == 1


@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999), st.lists(st.floats(0, 1), min_size=2))
def test_moving_keeps_the_order_and_can_be_undone(prevalence: float, sampled: float, scores: list[float]) -> None:
    population = Population.of_ones(prevalence, sampled, kept=False)
    moved = population.moved(np.sort(scores))
    assert (np.diff(moved) >= 0).all() and ((moved >= 0) & (moved <= 1)).all()
    back = [population.as_made(float(score)) for score in moved]
    assert back == pytest.approx(np.sort(scores), abs=1e-9)


@pytest.mark.parametrize("cluster", [None, np.arange(300) // 7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_a_table_of_counted_rows_is_as_that_of_the_rows_there(
    kept: bool, weighted: bool, cluster: np.ndarray | None
) -> None:
    rng = np.random.default_rng(2)
    score, label = world(rng, 300, 0.4)
    rows = Rows(np.round(score, 1), label, rng.uniform(0.5, 2, 300) if weighted else None, cluster)
    population = Population.of_ones(0.1, population_share(rows), kept)
    counted, there = population.table(rows.table), population.counted(rows).table
    for name in ("score", "n", "pos", "n2", "pos2"):
        assert getattr(counted, name) == pytest.approx(getattr(there, name), rel=1e-9), name
    assert counted.mean_of(squared).error == pytest.approx(there.mean_of(squared).error, rel=1e-9)


def world(rng: np.random.Generator, n: int, prevalence: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores that are calibrated where half of the labels are 1, and labels of which so many are."""
    label = rng.random(n) < prevalence
    logit = rng.normal(np.where(label, 0.75, -0.75), np.sqrt(1.5))
    return 1 / (1 + np.exp(-logit)), label.astype(int)


@pytest.mark.parametrize("t", [0.05, 0.3, 0.5, 0.8])
def test_the_brier_curve_is_that_of_the_rows_at_another_threshold(t: float) -> None:
    """Tasche 2021, (5.5b), which gives the threshold s and what both losses are divided by."""
    score, y = world(np.random.default_rng(4), 2000, 0.4)
    q, p = 0.15, float(y.mean())
    s = (1 - q) * p * t / ((p - q) * t + q * (1 - p))
    there = evaluate(from_arrays(score, y, columns=Columns(prevalence=str(q))), Plan(UTILITY, task_of(threshold=t)))
    here = evaluate(from_arrays(score, y), Plan(UTILITY, task_of(threshold=s)))
    lost_there, lost_here = (-(each.reports[0].results["expected_utility"].value or 0.0) for each in (there, here))
    assert lost_there / ((1 - t) * q) == pytest.approx(lost_here / ((1 - s) * p))


def test_negatives_that_were_dropped_are_counted_again() -> None:
    p, y = world(np.random.default_rng(3), 400, 0.5)
    first = np.concatenate((np.flatnonzero(y == 1), np.flatnonzero(y == 0)[:50]))
    data = from_arrays(p[first], y[first], columns=Columns(sampled_negatives="0.25"))
    positives = int(y.sum())
    assert data.population.prevalence == pytest.approx(positives / (positives + 200))


@pytest.mark.parametrize(("q", "missed"), [(0.1, 0.0), (0.1, 1.5), (0.004, 1.5)])
def test_the_share_of_label_1_is_known_to_intervals_of_means(
    q: float, missed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of each label vary among themselves: q^2 v1 / n1 + (1 - q)^2 v0 / n0, by hand; one that could have been
    missed is as heavy as rows of its label. An AUC and the distance of two distributions are what they are at any
    share.
    """
    monkeypatch.setattr(estimate, "MISSED_ROWS", missed)
    rng = np.random.default_rng(8)
    score, label = world(rng, 1500, 0.4)
    t = 0.3
    keys = ("net_benefit", "expected_utility", "eu_never", "brier", "rule_regret", "log_loss", "auc", "ks")

    def ends(columns: Columns) -> list[tuple[float, float]]:
        data = from_arrays(score, label, columns=columns)
        measured = evaluate(data, Plan(tuple(map(parse, keys)), task_of(threshold=t))).reports[0].results
        return [measured[key].interval for key in keys]

    net_benefit, utility, never, brier, regret, log_loss, auc, ks = ends(Columns(prevalence=str(q), keep_scores=True))
    *_, auc_of_rows, ks_of_rows = ends(Columns())
    assert auc == pytest.approx(auc_of_rows, rel=1e-9)
    # Drawn anew: their ends vary by a hundredth.
    assert ks == pytest.approx(ks_of_rows, abs=0.02)

    def width(values: np.ndarray, kinds: np.ndarray) -> float:
        """kinds: of rows that could have been missed."""
        variance, farthest = 0.0, 0.0
        for of_label, share in ((label == 1, q), (label == 0, 1 - q)):
            off, size = (values[of_label] - values[of_label].mean()) ** 2, int(of_label.sum())
            variance += share**2 * off.mean() / size
            means = [off[kinds[of_label] == kind].mean() for kind in np.unique(kinds[of_label])]
            farthest = max(farthest, max(means) * (share / size) ** 2)
        return float(2 * 1.959964 * np.sqrt(variance + missed * farthest))

    act = score >= t
    won = np.where(label == 1, act, -t / (1 - t) * act)
    assert net_benefit[1] - net_benefit[0] == pytest.approx(width(won, act), rel=1e-5)
    # EU is (1 - t) (net benefit - q), where q is known.
    assert utility == pytest.approx(tuple((1 - t) * (end - q) for end in net_benefit), abs=1e-12)
    assert never == pytest.approx((-q * (1 - t), -q * (1 - t)), abs=1e-12)
    chance = np.where(label == 1, score, 1 - score)
    losses = (brier, (1 - chance) ** 2), (log_loss, -np.log(chance))
    for span, loss in losses[: 1 if q < 0.1 else 2]:
        assert span[1] - span[0] == pytest.approx(width(loss, label), rel=1e-5)
    # A little longer for its skewness, and for what the calibration line expects.
    assert 1 <= (regret[1] - regret[0]) / width((1 - chance) ** 2, label) < 1.05


def test_a_regret_to_the_base_rate_errs_as_the_calibration_line_expects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where that is more than the rows show, whose labels 1 have low scores. Rows vary within their label."""
    monkeypatch.setattr(estimate, "MISSED_ROWS", 0.0)
    score, label = world(np.random.default_rng(5), 300, 0.4)
    score, q = np.clip(np.round(score, 2), 0.01, 0.99), 0.1
    unit = np.array([1 - q, q]) / (1 - label.mean(), label.mean())
    weight, off = unit[label], [score**2, (1 - score) ** 2]
    table = Rows(score, label, weight, share_known=True).table
    line = calibration_line(table)
    chance = expit(line.intercept.mean + line.slope.mean * log_odds(score))

    def moment(power: int, *chances: np.ndarray) -> float:
        means = (np.average(values, weights=weight * p) for values, p in zip(off, chances, strict=True))
        each = zip(unit, off, chances, means, strict=True)
        return sum(float(u ** (power - 1) * (weight * p) @ (values - mean) ** power) for u, values, p, mean in each)

    seen, expected = moment(2, label == 0, label == 1), moment(2, 1 - chance, chance)
    assert expected > 1.01 * seen
    value = float(weight @ (score - label) ** 2) / 300 - q * (1 - q)
    ends = skewed(MeanEstimate(value, np.sqrt(expected) / 300), moment(3, label == 0, label == 1) / seen**1.5, 0.9)
    assert interval_of("rule_regret", table, confidence=0.9) == pytest.approx(ends, rel=1e-9)


@pytest.mark.parametrize("counted", [False, True])
def test_a_difference_of_two_models_varies_within_a_label_only(counted: bool) -> None:
    rng, q, t = np.random.default_rng(8), 0.1, 0.3
    a, label = world(rng, 500, 0.4)
    b = np.clip(a + rng.normal(0, 0.1, 500), 0, 1)
    rows = {"a": a, "b": b, "y": label.astype(int)}
    if counted:
        rows = {"score_a": a, "score_b": b, "n": np.ones(500), "pos": rows["y"]}
    data = decal_cli.Data(rows, aggregated=True) if counted else decal_cli.Data(rows, label="y").models("a", "b")
    data = data.at_prevalence(q, keep_scores=True)
    answer = decal_cli.compare(data, t, metrics=["brier", "expected_utility"])
    worth = [np.where(label == 1, (t - 1) * (score < t), -t * (score >= t)) for score in (a, b)]
    losses = [(score - label) ** 2 for score in (a, b)]
    for key, (of_a, of_b) in (("expected_utility", worth), ("brier", losses)):
        apart = of_b - of_a
        parts = ((label == 1, q), (label == 0, 1 - q))
        variance = sum(share**2 * apart[of].var() / of.sum() for of, share in parts)
        value = sum(share * apart[of].mean() for of, share in parts)
        low, high = answer[key].interval
        assert (low + high) / 2 == pytest.approx(value, abs=1e-12)
        assert high - low == pytest.approx(2 * 1.959964 * np.sqrt(variance), rel=1e-6)


def test_the_share_of_a_group_and_of_sampled_negatives_is_not_known() -> None:
    score, label = world(np.random.default_rng(9), 1500, 0.4)
    groups = np.where(np.arange(1500) % 2 == 0, "a", "b")
    data = from_arrays(score, label, group=groups, columns=Columns(prevalence="0.1", keep_scores=True))
    rows = data.models[0].rows
    assert rows.table.design.share_known
    assert not any(part.table.design.share_known for name, part in rows.by_group() if name is not None)
    sampled = from_arrays(score, label, columns=Columns(sampled_negatives="0.1")).models[0].rows
    assert not sampled.table.design.share_known


def three_classes(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    score = rng.dirichlet((1.0, 1.0, 1.0), n)
    return score, np.array([rng.choice(3, p=row) for row in score])


def of_classes(score: np.ndarray, label: np.ndarray, **options: Any) -> Dataset:
    frame = {f"p:{k}": column for k, column in enumerate(score.T)} | {"y": label.astype(str)}
    return from_arrays(frame, columns=Columns(proba=("p:*",), label="y", **options))


def test_known_shares_of_several_classes_are_known_to_intervals() -> None:
    """Rows of each class vary among themselves: sum over k of q_k^2 v_k / n_k, by hand."""
    score, label = three_classes(np.random.default_rng(6), 900)
    data = of_classes(score, label, prevalence="0=.2,1=.5", keep_scores=True)
    brier = evaluate(data, Plan((parse("brier"),))).reports[0].results["brier"]
    loss = ((score - np.eye(3)[label]) ** 2).sum(axis=1)
    shares = zip((0.2, 0.5, 0.3), (loss[label == k] for k in range(3)), strict=True)
    parts = [(q * of.mean(), q**2 * of.var() / len(of)) for q, of in shares]
    value, variance = (sum(each) for each in zip(*parts, strict=True))
    assert brier.value == pytest.approx(value) and brier.interval is not None
    # One and a half rows that could have been missed widen it a little.
    assert (brier.interval[1] - brier.interval[0]) / 2 == pytest.approx(1.96 * np.sqrt(variance), rel=0.01)
