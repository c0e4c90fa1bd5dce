"""Folds drawn from counts, and the decisions that they learn, against scikit-learn row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from decal_cli.crossfit import recalibration as crossfit
from decal_cli.crossfit.recalibration import Switch
from decal_cli.errors import Undefined
from decal_cli.tables.resample import FOLDS, deal
from decal_cli.tables.table import Table, tabulate


def scored_rows(rows: int = 400, seed: int = 0, decimals: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    score = rng.random(rows) if decimals is None else np.round(rng.random(rows), decimals)
    return score, (rng.random(rows) < score**1.5).astype(int)


def by_rows(t: Table, threshold: float, decision_threshold: float, seed: int) -> float:
    """The cross-fitted gain of a table with one row a level, with isotonic fits and a loop over folds."""
    fold = np.random.default_rng(seed).integers(FOLDS, size=len(t))
    gain = 0.0
    for k in range(FOLDS):
        here, others = fold == k, fold != k
        fit = IsotonicRegression().fit(t.score[others], t.pos[others]).predict(t.score[others])
        from_here = t.score[others][fit >= threshold].min(initial=np.inf)
        change = (t.score[here] >= from_here).astype(float) - (t.score[here] >= decision_threshold)
        gain += float(change @ (t.pos[here] - threshold))
    return gain / len(t)


@pytest.mark.parametrize(("threshold", "decision_threshold"), [(0.31, 0.31), (0.52, 0.3), (0.09, 0.9)])
def test_the_gain_is_that_of_isotonic_fits_and_held_out_rows(threshold: float, decision_threshold: float) -> None:
    for seed in range(8):
        t = tabulate(*scored_rows(seed=seed))
        gain = crossfit.crossfitted_gain(t, [Switch(threshold, decision_threshold)], np.random.default_rng(seed))
        assert gain == pytest.approx(by_rows(t, threshold, decision_threshold, seed), abs=1e-12), seed


@given(st.integers(0, 10_000), st.sampled_from([1, 2, None]), st.booleans())
def test_a_split_hands_out_every_row_once(seed: int, decimals: int | None, weighted: bool) -> None:
    score, label = scored_rows(60, seed, decimals)
    weight = np.random.default_rng(seed).uniform(0.5, 3, 60) if weighted else None
    t = tabulate(score, label, weight)
    neg, pos = t.split(np.random.default_rng(seed))
    assert neg.shape == pos.shape == (FOLDS, len(t))
    assert (neg >= 0).all() and (pos >= 0).all()
    assert pos.sum(axis=0) == pytest.approx(t.pos) and (neg + pos).sum(axis=0) == pytest.approx(t.n)


def test_labels_do_not_steer_the_split() -> None:
    """Rows of one level go to folds by themselves: a fold's share of positives must vary as chance has it."""
    t = tabulate(np.full(1000, 0.5), np.arange(1000) % 2)
    shares = []
    for seed in range(200):
        neg, pos = t.split(np.random.default_rng(seed))
        shares.append(float(pos[0, 0] / (neg[0, 0] + pos[0, 0])))
    assert np.std(shares) == pytest.approx(np.sqrt(0.25 / 200 * 0.8), rel=0.2)


def test_a_threshold_nobody_reaches_means_never_to_act() -> None:
    t = tabulate(np.linspace(0.1, 0.9, 50), np.zeros(50, dtype=int))
    gain = crossfit.crossfitted_gain(t, [Switch(0.5, 0.5)], np.random.default_rng(0))
    assert gain == pytest.approx(0.5 * 25 / 50)  # the 25 rows acted on now lose .5 each


def test_few_rows_are_not_split() -> None:
    with pytest.raises(Undefined, match="at least 10 rows"):
        crossfit.crossfitted_gain(tabulate(*scored_rows(9)), [Switch(0.3, 0.3)], np.random.default_rng(0))
    t = tabulate(*scored_rows(12), np.r_[100.0, np.full(11, 0.01)])  # twelve rows that act as one
    with pytest.raises(Undefined, match="at least 10 rows"):
        crossfit.gain_errors(t, [Switch(0.3, 0.3)], np.random.default_rng(0))


def test_many_levels_are_split_by_cells_and_the_present_decision_stays_exact() -> None:
    score, label = scored_rows(150_000, seed=3)
    t = tabulate(score, label)
    exact = [crossfit.crossfitted_gain(t, [Switch(0.4, 0.62)], np.random.default_rng(seed)) for seed in range(3)]
    now = np.mean((score >= 0.62) * (label - 0.4))
    best = np.mean((score**1.5 >= 0.4) * (label - 0.4))
    assert len(t.cells) < len(t)
    assert exact == pytest.approx([best - now] * 3, abs=4e-4)


def test_the_smoothed_curve_keeps_a_line_and_few_levels() -> None:
    score = (np.arange(4000) + 0.5) / 4000
    line = Table(score, np.full(4000, 10.0), 10 * (0.2 + 0.6 * score)).bins(200)
    assert crossfit.smoothed(line) == pytest.approx(0.2 + 0.6 * line.score, abs=1e-6)
    few = Table(np.array([0.1, 0.5, 0.9]), np.array([1000, 1000, 1000]), np.array([50, 700, 900]))
    assert crossfit.smoothed(few) == pytest.approx([0.05, 0.7, 0.9], abs=0.01)
    one = Table(np.array([0.4]), np.array([50]), np.array([10]))
    assert crossfit.smoothed(one) == pytest.approx([0.2])


def test_replayed_errors_are_centred_and_wider_than_the_paired_one_where_nothing_is_to_be_won() -> None:
    score = np.random.default_rng(0).random(2000)
    t = tabulate(score, (np.random.default_rng(1).random(2000) < score).astype(int))
    errors = crossfit.gain_errors(t, [Switch(0.5, 0.5)], np.random.default_rng(2))
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(len(errors))
    assert 0.0022 < errors.std() < 0.0036  # over many draws of this world the error is .0028, the paired one .0020


def test_weighted_rows_replay_as_their_effective_number() -> None:
    score, label = scored_rows(4000, seed=5)

    def error(weight: np.ndarray | None) -> float:
        t = tabulate(score, label, weight)
        draws = [crossfit.gain_errors(t, [Switch(0.4, 0.4)], np.random.default_rng(seed)) for seed in range(5)]
        return float(np.concatenate(draws).std())

    assert error(np.full(4000, 2.5)) == pytest.approx(error(None), rel=0.1)
    assert error(np.random.default_rng(1).choice([0.2, 4.0], 4000)) > 1.2 * error(None)


def test_many_levels_are_dealt_evenly_row_by_row() -> None:
    score, label = scored_rows(60_000, 1)
    t = tabulate(np.floor(score * 6000) / 6000, label)
    neg, pos = t.split(np.random.default_rng(0))
    assert pos.sum(axis=0).tolist() == t.pos.tolist() and (neg + pos).sum(axis=0).tolist() == t.n.tolist()
    assert (neg + pos).sum(axis=1) == pytest.approx(12_000, rel=0.03)
    assert pos.sum(axis=1) / pos.sum() == pytest.approx(0.2, rel=0.03)


@pytest.mark.parametrize("crowd", [1, 5000])
def test_rows_are_dealt_in_their_order_however_many_share_a_level(crowd: int) -> None:
    counts = np.random.default_rng(1).integers(0, 4, 6000)
    counts[100] = crowd
    dealt = deal(counts, np.random.default_rng(0))
    fold = np.random.default_rng(0).integers(FOLDS, size=counts.sum(), dtype=np.uint8)
    level = np.repeat(np.arange(6000), counts)
    assert all((dealt[k] == np.bincount(level[fold == k], minlength=6000)).all() for k in range(FOLDS))
