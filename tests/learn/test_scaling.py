"""Scalings of several classes against scikit-learn, grids and each other; gains on held-out rows in known worlds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from decal_cli.errors import Undefined
from decal_cli.learn.class_folds import build_recalibrated
from decal_cli.learn.scaling import (
    LEAST,
    SCALINGS,
    fit_matrix,
    fit_temperature,
    inverse_temperature,
    logarithms,
    mixing_weights,
    softmax,
    softmax_fit,
)
from decal_cli.metrics import Inputs, interval_of, parse, value_of
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats
from decal_cli.task import ClassDecision

IDENTITY = ClassDecision(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), ("a", "b", "c"))
ABSTAINING = ClassDecision((*IDENTITY.utility, (0.7, 0.7, 0.7)), (*IDENTITY.actions, "abstain"))


def world(seed: int, rows: int = 2000, sharper: float = 1.0, classes: int = 3, signal: float = 0.0) -> Rows:
    """Labels of known probabilities q in proportion to exp(signal x) p; the score is p^sharper."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(classes, 0.8), rows)
    x = rng.standard_normal((rows, 2))
    q = softmax(np.log(p) + signal * np.column_stack((x[:, 0], -x[:, 0], *np.zeros((classes - 2, rows)))))
    label = (rng.random((rows, 1)) > np.cumsum(q, axis=1)[:, :-1]).sum(axis=1)
    score = p**sharper / (p**sharper).sum(axis=1, keepdims=True)
    return Rows(score, label, classes=tuple("abcdefgh"[:classes]), features=x)


def log_loss(score: Floats, rows: Rows) -> float:
    return float(-np.log(score[np.arange(len(rows)), rows.label]).mean())


def test_temperature_is_the_best_of_a_grid_and_finds_the_truth() -> None:
    rows = world(0, 4000, sharper=2.0)
    logs, ones = logarithms(rows.score), np.ones(len(rows))
    s = inverse_temperature(logs, rows.label, ones)
    assert s == pytest.approx(0.5, abs=0.03)
    grid = {at: log_loss(softmax(at * logs), rows) for at in np.linspace(0.3, 0.8, 501)}
    assert s == pytest.approx(min(grid, key=lambda at: grid[at]), abs=1e-3)
    weighted = inverse_temperature(logs, rows.label, np.where(np.arange(len(rows)) < 2000, 2.0, 1.0))
    twice = rows.take(np.concatenate((np.arange(2000), np.arange(4000))))
    assert weighted == pytest.approx(inverse_temperature(logarithms(twice.score), twice.label, np.ones(6000)), abs=1e-9)


def test_temperature_has_ends() -> None:
    score = np.tile([0.6, 0.3, 0.1], (30, 1))
    assert inverse_temperature(logarithms(score), np.zeros(30, dtype=int), np.ones(30)) == 100
    assert inverse_temperature(logarithms(score), np.full(30, 2), np.ones(30)) == 0
    with pytest.raises(Undefined, match="temperature is infinite"):
        fit_matrix(score, np.full(30, 2), np.ones(30))


def test_a_multinomial_regression_is_that_of_scikit_learn() -> None:
    rows = world(1, 600)
    x, ones = np.column_stack((logarithms(rows.score), rows.matrix)), np.ones(len(rows))
    # scikit-learn does not penalise the intercepts; next to nothing does here.
    penalty = np.vstack((np.full((1, 3), 1e-9), np.full((5, 3), 2.0)))
    at = softmax_fit(x, rows.label, ones, penalty, np.zeros((6, 3)))
    peer = LogisticRegression(C=0.5, tol=1e-10, max_iter=5000).fit(x, rows.label)
    assert softmax(x @ at[1:] + at[0]) == pytest.approx(peer.predict_proba(x), abs=1e-5)


def test_no_step_from_the_fit_lowers_the_penalised_loss() -> None:
    rows = world(2, 500)
    x, ones = logarithms(rows.score), np.ones(len(rows))
    penalty, centre = np.full((4, 3), 3.0), np.vstack((np.zeros(3), np.eye(3)))

    def loss(at: Floats) -> float:
        paid = 0.5 * float((penalty * (at - centre) ** 2).sum())
        return len(rows) * log_loss(softmax(x @ at[1:] + at[0]), rows) + paid

    at, rng = softmax_fit(x, rows.label, ones, penalty, centre), np.random.default_rng(0)
    assert all(loss(at + 0.01 * rng.standard_normal(at.shape)) > loss(at) for _ in range(50))


def test_mixing_weights_are_those_of_a_grid() -> None:
    rows = world(3, 1500)
    each = np.stack((logarithms(rows.score), np.log(np.random.default_rng(0).dirichlet(np.ones(3), len(rows)))))
    weights = mixing_weights(each, rows.label, np.ones(len(rows)))
    assert weights == pytest.approx([1.0, 0.0], abs=0.05)


@pytest.mark.parametrize("name", SCALINGS)
def test_a_scaling_recalibrates_and_takes_exact_zeros(name: str) -> None:
    rows, fresh = world(4, 3000, sharper=2.5), world(5, 3000, sharper=2.5)
    scaling = SCALINGS[name](rows.score, rows.label, np.ones(len(rows)))
    after = scaling(fresh.score)
    assert after.sum(axis=1) == pytest.approx(1.0, abs=1e-12) and (after > 0).all()
    assert log_loss(after, fresh) < log_loss(np.maximum(fresh.score, LEAST), fresh) - 0.05
    assert np.isfinite(scaling(np.eye(3))).all()
    one = np.concatenate([scaling(fresh.score[k : k + 1]) for k in range(50)])
    assert np.array_equal(one, scaling(fresh.score)[:50])  # a row's score does not depend on the others


def test_matrix_scaling_sees_what_a_diagonal_cannot() -> None:
    rows, fresh = world(6, 4000), world(7, 4000)
    mixed = np.array([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.0, 0.2, 0.8]])
    wrong = [type(each)(each.score @ mixed, each.label, classes=each.classes) for each in (rows, fresh)]
    losses = {name: log_loss(fit(wrong[0].score, rows.label, np.ones(len(rows)))(wrong[1].score), fresh)
              for name, fit in SCALINGS.items()}  # fmt: skip
    assert losses["structured-matrix"] < losses["structured-vector"] < losses["temperature"]


def test_more_classes_than_a_matrix_takes() -> None:
    score = np.random.default_rng(0).dirichlet(np.ones(21), 100)
    with pytest.raises(Undefined, match="at most 20 classes"):
        fit_matrix(score, score.argmax(axis=1), np.ones(100))
    assert fit_temperature(score, score.argmax(axis=1), np.ones(100))(score).shape == (100, 21)


def gain(key: str, rows: Rows, decision: ClassDecision = ABSTAINING, seed: int = 0) -> tuple[float, float, float]:
    inputs = Inputs(rows, class_decision=decision, seed=seed)
    low, high = interval_of(parse(key), inputs, 0.9) or (np.nan, np.nan)
    return value_of(parse(key), inputs), low, high


def test_a_calibrated_model_has_nothing_to_gain_and_a_sharp_one_does() -> None:
    calm = [gain("gain_recalibration", world(seed, 1500)) for seed in range(10)]
    assert sum(low > 0 for _, low, _ in calm) <= 1 and abs(np.mean([value for value, *_ in calm])) < 0.003
    value, low, _ = gain("gain_recalibration", world(20, 3000, sharper=4.0))
    assert low > 0 and value > 0.02


def test_the_features_win_what_they_know_and_the_three_gains_add_up() -> None:
    rows = world(21, 3000, signal=1.5)
    recalibration, beyond, both = (gain(f"gain_{name}", rows) for name in ("recalibration", "beyond", "post_training"))
    assert both[0] == pytest.approx(recalibration[0] + beyond[0], abs=1e-12)
    assert beyond[1] > 0.01
    plain = world(22, 1500)
    assert gain("gain_beyond", plain)[1] <= 0.001


def test_a_gain_is_what_the_held_out_decisions_are_worth() -> None:
    rows = world(23, 800, sharper=3.0)
    recalibrated = build_recalibrated(rows, seed=0)
    utility, deals = np.array(ABSTAINING.utility), (recalibrated, *recalibrated.others)
    before, *after = ((score @ utility.T).argmax(axis=1) for score in (rows.score, *(deal.score for deal in deals)))
    assert len(after) == 3
    worth = np.mean([utility[each, rows.label].mean() for each in after])
    expected = worth - utility[before, rows.label].mean()
    assert gain("gain_recalibration", rows)[0] == pytest.approx(expected, abs=1e-12)
    always = max(np.eye(3)[rows.label].mean(axis=0) @ utility.T)
    assert gain("gain_over_constant", rows)[0] == pytest.approx(worth - always, abs=1e-12)


def test_a_held_out_score_does_not_depend_on_its_own_label() -> None:
    rows = world(24, 300)
    first = build_recalibrated(rows, seed=0)
    scaled = first.score[first.fold == 0]
    others = np.flatnonzero(first.fold != 0)
    refitted = [fit(rows.score[others], rows.label[others], np.ones(len(others)))(rows.score[first.fold == 0])
                for fit in SCALINGS.values()]  # fmt: skip
    assert any(np.allclose(scaled, each, atol=1e-9) for each in refitted)


def test_few_rows_say_so() -> None:
    with pytest.raises(Undefined, match="at least 20 rows"):
        gain("gain_recalibration", world(0, 12))


def test_the_interval_holds_what_the_rules_win() -> None:
    """Coverage of 90 % intervals of gain_recalibration, of the rules of the folds, on fresh rows."""
    fresh, held = world(1000, 40_000, sharper=2.0), 0
    utility = np.array(ABSTAINING.utility)
    before = utility[(fresh.score @ utility.T).argmax(axis=1), fresh.label].mean()
    rounds = 40
    for seed in range(rounds):
        rows = world(seed, 1000, sharper=2.0)
        scaling = SCALINGS["temperature"](rows.score, rows.label, np.ones(len(rows)))
        after = utility[(scaling(fresh.score) @ utility.T).argmax(axis=1), fresh.label].mean()
        _, low, high = gain("gain_recalibration", rows)
        held += low <= after - before <= high
    assert held >= 0.8 * rounds
