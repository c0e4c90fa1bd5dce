"""Held-out recalibrated scores: calibrators against scikit-learn, the choice against a slow loop, folds of clusters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from decal_cli.errors import Undefined
from decal_cli.learn.held_out import CALIBRATORS, SURE, LevelCounts, of_rows, of_table, recalibrated
from decal_cli.metrics.held_out import Recalibrating
from decal_cli.tables.estimate import MISSED_ROWS
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import tabulate
from decal_cli.task import BinaryTask


def expit(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


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


def test_the_choice_is_that_of_a_slow_loop_over_folds() -> None:
    score, label = world(400, 5, 1.5)
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


def test_nothing_is_changed_where_nothing_is_wrong_and_a_shift_is_found() -> None:
    calibrated = [name for seed in range(20) for name in of_table(tabulate(*world(500, seed)), 0).chosen]
    shifted = [name for seed in range(20) for name in of_table(tabulate(*world(500, seed, 1.0, -0.8)), 0).chosen]
    assert calibrated.count("as it is") > 55 and shifted.count("as it is") == 0


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
    assert change.gain.error == pytest.approx(1.2 * MISSED_ROWS**0.5 * 0.5 / 1000)


def test_a_threshold_nobody_reaches_means_never_to_act() -> None:
    t = tabulate(np.linspace(0.1, 0.9, 50), np.zeros(50, dtype=int))
    gain = Recalibrating.of_table(t, BinaryTask.of_threshold(0.5), 0).gain
    assert gain.value == pytest.approx(0.5 * 25 / 50)  # the 25 rows acted on now lose .5 each


def test_few_rows_are_not_split() -> None:
    for rows in (Rows(*world(9, 7)), Rows(*world(12, 7), np.r_[100.0, np.full(11, 0.01)])):
        with pytest.raises(Undefined, match="at least 10 rows"):
            of_table(rows.table, 0)
        with pytest.raises(Undefined, match="at least 10 rows"):
            of_rows(rows, 0)
