"""Probing: its Brier bound where the truth is known and on every table, its grid, its accuracy."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from decal_cli.errors import Undefined
from decal_cli.learn.curves import Curve
from decal_cli.learn.method import Training, fit
from decal_cli.learn.methods import parse
from decal_cli.learn.stacks import (
    ColumnScale,
    LearnedProbes,
    Planes,
    Probes,
    ScoreColumn,
    costs,
    grid,
    with_recalibrated,
)
from decal_cli.tables.logistic import expit
from decal_cli.tables.rows import Unlabelled


def rows_and_truth(rows: int, seed: int) -> tuple[Training, np.ndarray]:
    """Labels of a world that is not logistic, and their true probability given the score and the features."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 4))
    truth = 0.02 + 0.9 * expit(2 * x[:, 0] + x[:, 1] - 1) ** 2
    score = expit(x[:, 0] + rng.normal(size=rows))
    label = (rng.random(rows) < truth).astype(float)
    label[:2] = 0, 1
    return Training(score, label, features=x), truth


def fitted_probes(rows: Training, probes: int = 40) -> Probes:
    model = fit(parse(f"probing(probes={probes})"), rows)
    assert isinstance(model, Probes)
    return model


def area_of_losses(decided: np.ndarray, label: np.ndarray, edges: np.ndarray) -> float:
    """2 integral of L(H(t), t) dt: exact, since the loss of a probe is linear in t over its cell.

    label: 0 or 1, or its probability: costs are linear in the label too.
    """
    middle, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    missed, alarmed = np.mean(~decided * label[:, None], axis=0), np.mean(decided * (1 - label[:, None]), axis=0)
    return float(2 * np.sum(width * ((1 - middle) * missed + middle * alarmed)))


@given(st.integers(20, 300), st.integers(1, 25), st.integers(0, 10**6))
def test_the_brier_bound_holds_on_every_table(rows: int, probes: int, seed: int) -> None:
    """Tasche 2021, thm. 4.2 with the table as the world: the labels' best loss is part of both sides."""
    train, _ = rows_and_truth(rows, seed)
    new, _ = rows_and_truth(rows, seed + 1)
    model = fitted_probes(train, probes)
    for table in (train, new):
        brier = np.mean((model(table).score - table.label) ** 2)
        assert brier <= area_of_losses(model.decisions(table), table.label, model.edges) + 1e-12


@pytest.mark.parametrize("rows", [300, 3000])
def test_the_distance_from_the_truth_is_bounded_by_what_the_classifiers_lose(rows: int) -> None:
    """Tasche 2021, thm. 4.2: E (Z - Psi)^2 <= 2 integral of L(H(t), t) - L*(t) dt, where Psi is known."""
    model = fitted_probes(rows_and_truth(rows, 0)[0])
    new, truth = rows_and_truth(4000, 1)
    distance = np.mean((model(new).score - truth) ** 2)
    # Tasche 2021, eq. 4.2b: twice the integral of the Bayes loss is E Psi (1 - Psi).
    lost = area_of_losses(model.decisions(new), truth, model.edges) - np.mean(truth * (1 - truth))
    assert 0 < distance <= lost + 1e-12


def test_the_bound_is_strict_where_classifiers_contradict_one_another() -> None:
    new, truth = rows_and_truth(1000, 0)
    rng = np.random.default_rng(0)
    planes = Planes(ColumnScale(np.zeros(5), np.ones(5)), rng.normal(size=(8, 5)), np.zeros(8))
    model = Probes(ScoreColumn(Curve(np.array([0.0, 1.0]), np.array([0.0, 1.0])), 1e-6), planes, grid(8))
    distance = np.mean((model(new).score - truth) ** 2)
    assert distance + 0.01 < area_of_losses(model.decisions(new), truth, model.edges) - np.mean(truth * (1 - truth))


def test_the_bound_is_an_identity_where_decisions_are_those_of_a_score() -> None:
    """Tasche 2021, prop. 4.1: the Brier score is twice the area under the loss of its own decisions."""
    rng = np.random.default_rng(0)
    edges = grid(12)
    score, label = rng.choice(edges, 500), rng.integers(0, 2, 500).astype(float)
    decided = score[:, None] > (edges[1:] + edges[:-1]) / 2
    assert area_of_losses(decided, label, edges) == pytest.approx(np.mean((score - label) ** 2), abs=1e-12)


def test_each_probe_is_a_cost_weighted_regression_cut_at_its_middle() -> None:
    train = rows_and_truth(500, 0)[0].in_order()
    model = fitted_probes(train, 5)
    _, columns = with_recalibrated(train)
    seen = model.planes.units(columns)
    for k, middle in enumerate((model.edges[1:] + model.edges[:-1]) / 2):
        cost = costs(train.label, middle)
        oracle = LogisticRegression(tol=1e-8, max_iter=1000).fit(seen, train.label, cost / cost.mean())
        np.testing.assert_allclose(model.planes(columns)[:, k], oracle.decision_function(seen), atol=1e-3)


def test_decisions_are_better_than_the_recalibrated_scores() -> None:
    model, new = fitted_probes(rows_and_truth(3000, 0)[0]), rows_and_truth(4000, 1)
    curve = fit(parse("isotonic"), rows_and_truth(3000, 0)[0])
    for t in (0.05, 0.3, 0.7):
        won = [np.mean(np.where(each(new[0]).score >= t, new[1] - t, 0)) for each in (model, curve)]
        best = np.mean(np.maximum(new[1] - t, 0))
        assert best - won[0] < 0.5 * (best - won[1])


@pytest.mark.parametrize("probes", [1, 2, 40, 10_000])
def test_the_grid_covers_the_thresholds_and_is_finer_at_its_ends(probes: int) -> None:
    edges = grid(probes)
    width = np.diff(edges)
    assert edges[0] == 0 and edges[-1] == 1 and (width > 0).all()
    np.testing.assert_allclose(width, width[::-1], atol=1e-12)
    if probes > 2:
        assert width[0] < width[probes // 2] / 3


def test_the_score_is_1_where_every_probe_decides_1() -> None:
    train, _ = rows_and_truth(300, 0)
    model = fitted_probes(train, 7)
    far = Unlabelled(np.array([1.0, 0.0]), features=np.array([[1e9, 1e9, 0, 0], [-1e9, -1e9, 0, 0]]))
    np.testing.assert_allclose(model(far).score, [1, 0], atol=1e-12)


def test_it_is_deterministic_and_goes_row_by_row() -> None:
    train, new = rows_and_truth(400, 0)[0], rows_and_truth(60, 1)[0]
    score = fitted_probes(train)(new).score
    other = train.take(np.random.default_rng(0).permutation(400))
    np.testing.assert_array_equal(score, fitted_probes(other)(new).score)
    np.testing.assert_array_equal(score[[5, 50]], fitted_probes(train)(new.take(np.array([5, 50]))).score)


@pytest.mark.parametrize("scale", [0.0, 1e30, 1e-310, np.inf])
def test_odd_features_are_fitted(scale: float) -> None:
    train = rows_and_truth(60, 0)[0]
    with np.errstate(invalid="ignore"):
        features = np.nan_to_num(train.features * scale, nan=0.0, posinf=np.inf, neginf=-np.inf)
    rows = dataclasses.replace(train, features=features, weight=np.linspace(1e-3, 1e3, 60))
    score = fitted_probes(rows)(rows).score
    assert ((score >= 0) & (score <= 1)).all()


def test_few_rows_of_many_features_are_fitted() -> None:
    rng = np.random.default_rng(0)
    rows = Training(np.array([0.1, 0.9, 0.5]), np.array([0.0, 1.0, 1.0]), features=rng.normal(size=(3, 400)))
    assert np.isfinite(fitted_probes(rows)(rows).score).all()


@pytest.mark.parametrize("edges", [[0, 1], [0, 0.5, 0.5], [0, 0.7, 0.9], [0.1, 0.5, 1]])
def test_what_is_no_grid_is_refused(edges: list[float]) -> None:
    planes = Planes(ColumnScale(np.zeros(1), np.ones(1)), np.zeros((2, 1)), np.zeros(2))
    with pytest.raises(ValueError, match="probes"):
        Probes(ScoreColumn(Curve(np.zeros(1), np.zeros(1)), 0.1), planes, np.array(edges, dtype=float))


@pytest.mark.parametrize("learner", ["refit", "stack-boosting"])
def test_any_learner_is_fitted_with_the_costs_of_each_threshold(learner: str) -> None:
    """Tasche 2021, thm. 4.2: the Brier score is at most twice the integral of the classifiers' losses."""
    train, _ = rows_and_truth(600, 0)
    new, truth = rows_and_truth(600, 1)
    model = fit(parse(f"probing(probes=5,learner={learner})"), train)
    assert isinstance(model, LearnedProbes)
    decided, score = model.decisions(new), model(new).score
    np.testing.assert_allclose(score, decided @ np.diff(model.edges), atol=1e-12)
    assert np.mean((score - new.label) ** 2) <= area_of_losses(decided, new.label, model.edges) + 1e-12
    assert np.mean((score - truth) ** 2) < np.mean((new.score - truth) ** 2)
    middle = (model.edges[2] + model.edges[3]) / 2
    weight = costs(train.label, middle)
    alone = fit(parse(learner), dataclasses.replace(train, weight=weight * 600 / weight.sum(), cache={}))
    np.testing.assert_array_equal(decided[:, 2], alone(new).score >= 0.5)


def with_decisions(thresholds: tuple[float, ...]) -> tuple[Training, np.ndarray]:
    """Rows of which each feature is the right decision at a threshold, in any order, and one other feature."""
    train, truth = rows_and_truth(200, 3)
    decided = np.column_stack([truth >= t for t in thresholds]).astype(float)
    names = (*(f"d_{t}" for t in thresholds), "x")
    return dataclasses.replace(train, features=np.column_stack((decided, truth)), feature_names=names), truth


def test_decisions_of_the_user_are_integrated_over_the_thresholds() -> None:
    """Thresholds .5, .1, .3: their decisions count for [.4, 1], [0, .2] and [.2, .4]."""
    rows, truth = with_decisions((0.5, 0.1, 0.3))
    score = fit(parse("probing(columns=d_*)"), rows)(rows).score
    expected = 0.2 * (truth >= 0.1) + 0.2 * (truth >= 0.3) + 0.6 * (truth >= 0.5)
    np.testing.assert_allclose(score, expected, atol=1e-12)


def test_many_right_decisions_give_the_probability() -> None:
    rows, truth = with_decisions(tuple((k + 0.5) / 100 for k in range(100)))
    assert np.abs(fit(parse("probing(columns=d_*)"), rows)(rows).score - truth).max() <= 0.005 + 1e-12


@pytest.mark.parametrize(
    ("names", "value", "reason"),
    [
        (("e_0.1", "e_0.2"), 1.0, "needs features that 'd_*' names"),
        (("d_low", "d_0.2"), 1.0, "needs names that end in a threshold between 0 and 1, such as d_0.25, not 'd_low'"),
        (("d_0.2", "d_1.2"), 1.0, "needs names that end in a threshold between 0 and 1, such as d_0.25, not 'd_1.2'"),
        (("d_0.2", "d_b_0.20"), 1.0, "needs one column of decisions for a threshold, not two"),
        (
            ("d_0.1", "d_0.2"),
            0.5,
            "needs decisions of 0 and 1, none missing, beside features that are numbers",
        ),
    ],
)
def test_columns_that_hold_no_decisions_are_refused(names: tuple[str, ...], value: float, reason: str) -> None:
    train, _ = rows_and_truth(30, 0)
    rows = dataclasses.replace(train, features=np.full((30, 2), value), feature_names=names)
    with pytest.raises(Undefined) as undefined:
        fit(parse("probing(columns=d_*)"), rows)
    assert undefined.value.reason == reason
