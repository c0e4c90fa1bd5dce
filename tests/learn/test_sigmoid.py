"""Logistic curves: the likelihood is at its maximum, constraints hold, and what has no maximum says so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from decal_cli.errors import Undefined
from decal_cli.learn.curves import MIN_SCORE, Beta, Sigmoid, beta_terms, logit, term
from decal_cli.tables.rows import Rows, Unlabelled
from tests.helpers.training import fit_method, training_of
from tests.helpers.worlds import any_rows
from tests.helpers.worlds import rows_by_level as by_level


def log_loss(model: Sigmoid | Beta, rows: Rows, target: np.ndarray) -> float:
    """Mean log loss in log-odds, which stays finite."""
    if isinstance(model, Beta):
        first, second = beta_terms(rows.score)
        eta = model.a * first + model.b * second + model.c
    else:
        eta = model.slope * term(rows.score, model.on) + model.intercept
    weight = np.ones(len(eta)) if rows.weight is None else rows.weight
    return float(np.average(np.logaddexp(0, eta) - target * eta, weights=weight))


def platts_targets(rows: Rows) -> np.ndarray:
    weight = np.ones(len(rows.score)) if rows.weight is None else rows.weight
    positives, negatives = weight @ (rows.label == 1), weight @ (rows.label == 0)
    return np.where(rows.label == 1, (positives + 1) / (positives + 2), 1 / (negatives + 2))


def fitted_or_skipped(key: str, rows: Rows) -> Sigmoid | Beta:
    try:
        return fit_method(key, training_of(rows))
    except Undefined as undefined:
        assert undefined.reason.startswith("needs")
        assume(False)
        raise


STEPS = [(da, db) for da in (-1e-3, 0, 1e-3) for db in (-1e-3, 0, 1e-3)]


@given(rows=any_rows(least=4, inner=True), key=st.sampled_from(["platt", "platt(on=p)", "platt(targets=labels)"]))
def test_no_curve_beside_it_is_likelier(rows: Rows, key: str) -> None:
    model = fitted_or_skipped(key, rows)
    assert isinstance(model, Sigmoid)
    target = rows.label if "labels" in key else platts_targets(rows)
    best = log_loss(model, rows, target)
    for slope, intercept in STEPS:
        beside = Sigmoid(model.on, model.slope + slope, model.intercept + intercept)
        assert log_loss(beside, rows, target) >= best - 1e-10


def test_a_newton_step_that_would_overshoot_is_cut_short() -> None:
    """One light row against heavy ones at the end: full steps run away from here."""
    rows = Rows(np.array([0.5, 0.999, 1.0]), np.array([0, 1, 1]), np.array([0.126, 788.0, 4.6]))
    model = fit_method("platt", training_of(rows))
    assert isinstance(model, Sigmoid) and model.slope == pytest.approx(0.8998, abs=1e-3)
    best = log_loss(model, rows, platts_targets(rows))
    for slope, intercept in STEPS:
        beside = Sigmoid("logit", model.slope + slope, model.intercept + intercept)
        assert log_loss(beside, rows, platts_targets(rows)) >= best


@given(rows=any_rows(least=4, inner=True))
def test_no_temperature_beside_it_is_likelier(rows: Rows) -> None:
    model = fitted_or_skipped("temperature", rows)
    assert isinstance(model, Sigmoid) and model.slope >= 0 and model.intercept == 0
    for slope in (max(model.slope - 1e-3, 0.0), model.slope + 1e-3):
        assert log_loss(Sigmoid("logit", slope, 0.0), rows, rows.label) >= log_loss(model, rows, rows.label) - 1e-10


@given(rows=any_rows(least=5, inner=True))
def test_beta_obeys_its_constraints_and_no_other_such_curve_is_likelier(rows: Rows) -> None:
    model = fitted_or_skipped("beta", rows)
    assert isinstance(model, Beta) and model.a >= 0 and model.b >= 0
    best = log_loss(model, rows, rows.label)
    for a, b in STEPS:
        for c in (-1e-3, 0, 1e-3):
            beside = Beta(max(model.a + a, 0.0), max(model.b + b, 0.0), model.c + c)
            assert log_loss(beside, rows, rows.label) >= best - 1e-9


def test_a_score_that_ranks_the_wrong_way_gets_an_infinite_temperature() -> None:
    for levels in ({0.1: "1101", 0.8: "0010"}, {0.1: "111", 0.8: "000"}):
        model = fit_method("temperature", training_of(by_level(levels)))
        assert vars(model) == vars(Sigmoid("logit", 0.0, 0.0))
        np.testing.assert_array_equal(model(Unlabelled(np.array([0.0, 0.3, 1.0]))).score, 0.5)


def test_a_score_that_ranks_the_wrong_way_gets_the_base_rate_from_beta() -> None:
    model = fit_method("beta", training_of(by_level({0.1: "1101", 0.4: "10", 0.8: "0010"})))
    np.testing.assert_allclose(model(Unlabelled(np.array([0.0, 0.3, 1.0]))).score, 0.5)


def test_beta_is_found_where_only_a_curve_that_falls_again_separates_the_labels() -> None:
    """Without its constraints beta would grow forever: label 1 between .3 and .5 alone."""
    rows = by_level({0.1: "00", 0.3: "11", 0.5: "11", 0.8: "0"})
    model = fit_method("beta", training_of(rows))
    assert isinstance(model, Beta) and model.a > 0 and model.b == 0
    best = log_loss(model, rows, rows.label)
    assert log_loss(Beta(model.a + 1e-3, 0.0, model.c), rows, rows.label) > best
    assert log_loss(Beta(model.a, 1e-3, model.c), rows, rows.label) > best


SEPARATED = by_level({0.2: "00", 0.4: "0", 0.7: "11"})


@pytest.mark.parametrize("key", ["platt(targets=labels)", "temperature", "beta"])
def test_where_a_threshold_separates_the_labels_there_is_no_maximum(key: str) -> None:
    with pytest.raises(Undefined, match=r"needs .*separate"):
        fit_method(key, training_of(SEPARATED))


def test_smoothed_targets_have_a_maximum_even_there() -> None:
    model = fit_method("platt", training_of(SEPARATED))
    assert isinstance(model, Sigmoid) and 0 < model.slope < 10


def test_scores_of_0_and_1_are_cut_where_the_docstring_says() -> None:
    ends = logit(np.array([0.0, MIN_SCORE, 1 - MIN_SCORE, 1.0]))
    assert ends[0] == ends[1] and ends[2] == ends[3] and abs(ends[3]) == pytest.approx(27.6, abs=0.05)


def test_scores_far_apart_in_log_odds_and_close_in_value_are_fitted_alike() -> None:
    """A tiny spread must not spoil the fit: the curve sees log-odds in units of their deviation."""
    rng = np.random.default_rng(0)
    score = 0.3 + 1e-9 * rng.normal(size=500)
    label = (rng.random(500) < 1 / (1 + np.exp(-(score - 0.3) * 1e9))).astype(float)
    model = fit_method("platt", training_of(Rows(score, label)))
    new = model(Unlabelled(np.array([0.3 - 1e-9, 0.3, 0.3 + 1e-9]))).score
    assert 0.15 < new[0] < 0.4 < new[1] < 0.6 < new[2] < 0.85
