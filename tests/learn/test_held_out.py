"""Held-out recalibrated scores: calibrators against scikit-learn, the choice against a slow loop, folds of clusters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from decal_cli.errors import Undefined
from decal_cli.learn import held_out as crossfit
from decal_cli.learn.held_out import CALIBRATORS, LEVELS_TO_CHOOSE, SURE, LevelCounts, of_rows, of_table, recalibrated
from decal_cli.learn.probe import build_recalibrated
from decal_cli.learn.scaling import (
    LEAST,
    SCALINGS,
    fit_structured,
    fit_temperature,
    inverse_temperature,
    logarithms,
    softmax,
    softmax_fit,
)
from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.metrics.decisions import Recalibrating
from decal_cli.tables.estimate import MISSED_ROWS
from decal_cli.tables.resample import FOLDS, deal
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats, Table, tabulate
from decal_cli.task import BinaryTask, ClassDecision


def logit(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, SURE, 1 - SURE)
    return np.log(p / (1 - p))


def world(rows: int, seed: int, slope: float = 1.0, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Scores whose log-odds are the true ones times a slope, plus a shift."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-0.5, 1.2, rows)
    return np.round(expit(slope * z + shift), 3), (rng.random(rows) < expit(z)).astype(int)


def counted(score: np.ndarray, label: np.ndarray) -> LevelCounts:
    t = tabulate(score, label)
    return LevelCounts(t.score, (t.n - t.pos).astype(float), t.pos.astype(float))


def test_platt_scaling_is_an_unpenalised_logistic_regression() -> None:
    score, label = world(800, 1, 1.6, 0.4)
    fit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(logit(score)[:, None], label)
    new = np.linspace(0.01, 0.99, 50)
    expected = fit.predict_proba(logit(new)[:, None])[:, 1]
    assert CALIBRATORS["platt"](counted(score, label))(new) == pytest.approx(expected, abs=1e-6)


def test_a_shift_makes_the_mean_the_share_of_labels() -> None:
    score, label = world(800, 2, 1.0, 1.1)
    fitted = CALIBRATORS["shift"](counted(score, label))
    assert fitted(score).mean() == pytest.approx(label.mean(), abs=1e-9)
    assert np.ptp(logit(fitted(score)) - logit(score)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("score", [[0.0003, 0.0005, 0.0006], [0.9999962, 0.9999963, 0.9999964]])
def test_a_shift_is_found_however_far_off_the_scores_are(score: list[float]) -> None:
    """Newton's method alone goes to and fro between 0 and a shift that is too large."""
    rows = LevelCounts(np.array(score), np.array([50.0, 37.0, 70.0]), np.array([50.0, 63.0, 30.0]))
    fitted = CALIBRATORS["shift"](rows)(rows.score)
    assert (rows.neg + rows.pos) @ fitted == pytest.approx(rows.pos.sum(), rel=1e-9)


def test_isotonic_regression_is_a_step_function_of_the_score() -> None:
    score, label = world(500, 3)
    fitted, fit = CALIBRATORS["isotonic"](counted(score, label)), IsotonicRegression().fit(score, label)
    assert fitted(score) == pytest.approx(fit.predict(score), abs=1e-12)
    between = np.nextafter(score.max(), 1)
    assert fitted(np.array([between, 0.0])) == pytest.approx(fit.predict([score.max(), score.min()]))


@pytest.mark.parametrize("name", CALIBRATORS)
def test_labels_of_one_kind_and_scores_that_rank_backwards_have_a_calibrator(name: str) -> None:
    score, label = world(200, 4)
    new = np.array([0.0, 0.3, 1.0])
    for labels in (label * 0, label * 0 + 1, (score < 0.4).astype(int)):
        p = CALIBRATORS[name](counted(score, labels))(new)
        assert np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all()
        assert name == "as it is" or (np.diff(p) >= 0).all()


@pytest.mark.parametrize("rows", [400, 3 * LEVELS_TO_CHOOSE])
def test_the_choice_is_that_of_a_slow_loop_over_folds(rows: int) -> None:
    score, label = world(rows, 5, 1.5)
    fold = np.random.default_rng(0).integers(0, 5, len(score))
    levels = np.unique(score)
    place = np.searchsorted(levels, score)
    counts = np.zeros((2, 5, len(levels)))
    np.add.at(counts, (label, fold, place), 1)
    fitted, chosen = recalibrated(levels, *counts)
    for k in range(5):
        losses = {}
        for name, calibrator in CALIBRATORS.items():
            losses[name] = 0.0
            for j in set(range(5)) - {k}:
                learn, judge = (fold != k) & (fold != j), fold == j
                least = 1 / (learn.sum() + 2)
                p = np.clip(calibrator(counted(score[learn], label[learn]))(score[judge]), least, 1 - least)
                losses[name] -= np.sum(np.where(label[judge] == 1, np.log(p), np.log1p(-p)))
        assert chosen[k] == min(losses, key=lambda name: losses[name])
        again = CALIBRATORS[chosen[k]](counted(score[fold != k], label[fold != k]))(levels)
        assert fitted[k] == pytest.approx(again, abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_clusters_stay_whole_and_units_are_the_rows(weighted: bool) -> None:
    score, label = world(600, 6)
    cluster = np.random.default_rng(1).integers(0, 50, 600)
    weight = np.random.default_rng(2).uniform(0.5, 2, 600) if weighted else None
    rows = Rows(score, label, weight, cluster)
    for held in (of_table(rows.table, 0), of_rows(rows, 0)):
        dealt = held.units.sampling
        folds = set(zip(dealt.origin.tolist(), dealt.deal.tolist(), held.fold.tolist(), strict=True))
        assert len(folds) == len({(c, deal) for c, deal, _ in folds}) == 50 * dealt.deals
        assert held.units.total == pytest.approx(rows.weights.sum())


def test_the_error_of_a_gain_holds_one_more_row() -> None:
    """A score that cannot be told from its calibrated self changes no decision; the error is not 0."""
    change = Recalibrating.of_table(
        tabulate(np.full(1000, 0.2), np.arange(1000) < 200), BinaryTask.of_threshold(0.5), 0
    )
    assert change.gain.value == 0
    assert change.gain.error == pytest.approx(MISSED_ROWS**0.5 * 0.5 / 1000)


def test_a_threshold_nobody_reaches_means_never_to_act() -> None:
    t = tabulate(np.linspace(0.1, 0.9, 50), np.zeros(50, dtype=int))
    gain = Recalibrating.of_table(t, BinaryTask.of_threshold(0.5), 0).gain
    assert gain.value == pytest.approx(0.5 * 25 / 50)  # the 25 rows acted on now lose .5 each


def test_few_rows_are_not_split() -> None:
    for rows in (Rows(*world(9, 7)), Rows(*world(12, 7), np.r_[100.0, np.full(11, 0.01)])):
        with pytest.raises(Undefined, match=r"at least 10 (effective )?rows"):
            of_table(rows.table, 0)
        with pytest.raises(Undefined, match=r"at least 10 (effective )?rows"):
            of_rows(rows, 0)


@given(st.integers(0, 10_000), st.integers(1, 3), st.booleans())
def test_a_split_hands_out_every_row_once(seed: int, decimals: int, weighted: bool) -> None:
    score, label = world(60, seed)
    score = np.round(score, decimals)
    weight = np.random.default_rng(seed).uniform(0.5, 3, 60) if weighted else None
    t = tabulate(score, label, weight)
    neg, pos = t.split(np.random.default_rng(seed))
    assert neg.shape == pos.shape == (FOLDS, len(t))
    assert (neg >= 0).all() and (pos >= 0).all()
    assert pos.sum(axis=0) == pytest.approx(t.pos) and (neg + pos).sum(axis=0) == pytest.approx(t.n)


def test_the_smoothed_curve_keeps_a_line_and_few_levels() -> None:
    score = (np.arange(4000) + 0.5) / 4000
    line = Table(score, np.full(4000, 10.0), 10 * (0.2 + 0.6 * score)).bins(200)
    assert crossfit.smoothed(line) == pytest.approx(0.2 + 0.6 * line.score, abs=1e-6)
    few = Table(np.array([0.1, 0.5, 0.9]), np.array([1000, 1000, 1000]), np.array([50, 700, 900]))
    assert crossfit.smoothed(few) == pytest.approx([0.05, 0.7, 0.9], abs=0.01)
    one = Table(np.array([0.4]), np.array([50]), np.array([10]))
    assert crossfit.smoothed(one) == pytest.approx([0.2])


@pytest.mark.parametrize("crowd", [1, 5000])
def test_rows_are_dealt_in_their_order_however_many_share_a_level(crowd: int) -> None:
    counts = np.random.default_rng(1).integers(0, 4, 6000)
    counts[100] = crowd
    dealt = deal(counts, np.random.default_rng(0))
    fold = np.random.default_rng(0).integers(FOLDS, size=counts.sum(), dtype=np.uint8)
    level = np.repeat(np.arange(6000), counts)
    assert all((dealt[k] == np.bincount(level[fold == k], minlength=6000)).all() for k in range(FOLDS))


IDENTITY = ClassDecision(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), ("a", "b", "c"))
ABSTAINING = ClassDecision((*IDENTITY.utility, (0.7, 0.7, 0.7)), (*IDENTITY.actions, "abstain"))


def class_world(seed: int, rows: int = 2000, sharper: float = 1.0, classes: int = 3, signal: float = 0.0) -> Rows:
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
    rows = class_world(0, 4000, sharper=2.0)
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
        fit_structured(score, np.full(30, 2), np.ones(30), full=True)


def test_a_multinomial_regression_is_that_of_scikit_learn() -> None:
    rows = class_world(1, 600)
    x, ones = np.column_stack((logarithms(rows.score), rows.matrix)), np.ones(len(rows))
    # scikit-learn does not penalise the intercepts; next to nothing does here.
    penalty = np.vstack((np.full((1, 3), 1e-9), np.full((5, 3), 2.0)))
    at = softmax_fit(x, rows.label, ones, penalty, np.zeros((6, 3)))
    peer = LogisticRegression(C=0.5, tol=1e-10, max_iter=5000).fit(x, rows.label)
    assert softmax(x @ at[1:] + at[0]) == pytest.approx(peer.predict_proba(x), abs=1e-5)


@pytest.mark.parametrize("name", SCALINGS)
def test_a_scaling_recalibrates_and_takes_exact_zeros(name: str) -> None:
    rows, fresh = class_world(4, 3000, sharper=2.5), class_world(5, 3000, sharper=2.5)
    scaling = SCALINGS[name](rows.score, rows.label, np.ones(len(rows)))
    after = scaling.of(fresh.score)
    assert after.sum(axis=1) == pytest.approx(1.0, abs=1e-12) and (after > 0).all()
    assert log_loss(after, fresh) < log_loss(np.maximum(fresh.score, LEAST), fresh) - 0.05
    assert np.isfinite(scaling.of(np.eye(3))).all()
    one = np.concatenate([scaling.of(fresh.score[k : k + 1]) for k in range(50)])
    assert np.array_equal(one, scaling.of(fresh.score)[:50])  # a row's score does not depend on the others


def test_matrix_scaling_sees_what_a_diagonal_cannot() -> None:
    rows, fresh = class_world(6, 4000), class_world(7, 4000)
    mixed = np.array([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.0, 0.2, 0.8]])
    wrong = [type(each)(each.score @ mixed, each.label, classes=each.classes) for each in (rows, fresh)]
    losses = {name: log_loss(fit(wrong[0].score, rows.label, np.ones(len(rows))).of(wrong[1].score), fresh)
              for name, fit in SCALINGS.items()}  # fmt: skip
    assert losses["structured-matrix"] < losses["structured-vector"] < losses["temperature"]


def test_more_classes_than_a_matrix_takes() -> None:
    score = np.random.default_rng(0).dirichlet(np.ones(21), 100)
    with pytest.raises(Undefined, match="at most 20 classes"):
        fit_structured(score, score.argmax(axis=1), np.ones(100), full=True)
    assert fit_temperature(score, score.argmax(axis=1), np.ones(100)).of(score).shape == (100, 21)


def test_a_held_out_score_does_not_depend_on_its_own_label() -> None:
    rows = class_world(24, 300)
    first = build_recalibrated(rows, seed=0)
    scaled = first.score[first.fold == 0]
    others = np.flatnonzero(first.fold != 0)
    refitted = [fit(rows.score[others], rows.label[others], np.ones(len(others))).of(rows.score[first.fold == 0])
                for fit in SCALINGS.values()]  # fmt: skip
    assert any(np.allclose(scaled, each, atol=1e-9) for each in refitted)


def test_few_rows_say_so() -> None:
    with pytest.raises(Undefined, match="at least 20 rows"):
        value_of(parse("gain_recalibration"), Inputs(class_world(0, 12), decision=ABSTAINING))
