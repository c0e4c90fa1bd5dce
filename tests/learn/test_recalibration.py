"""Folds drawn from counts, and the decisions that they learn, against scikit-learn row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decal_cli.learn import recalibration as crossfit
from decal_cli.tables.resample import FOLDS, deal
from decal_cli.tables.table import Table, tabulate


def scored_rows(rows: int = 400, seed: int = 0, decimals: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    score = rng.random(rows) if decimals is None else np.round(rng.random(rows), decimals)
    return score, (rng.random(rows) < score**1.5).astype(int)


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


def test_the_smoothed_curve_keeps_a_line_and_few_levels() -> None:
    score = (np.arange(4000) + 0.5) / 4000
    line = Table(score, np.full(4000, 10.0), 10 * (0.2 + 0.6 * score)).bins(200)
    assert crossfit.smoothed(line) == pytest.approx(0.2 + 0.6 * line.score, abs=1e-6)
    few = Table(np.array([0.1, 0.5, 0.9]), np.array([1000, 1000, 1000]), np.array([50, 700, 900]))
    assert crossfit.smoothed(few) == pytest.approx([0.05, 0.7, 0.9], abs=0.01)
    one = Table(np.array([0.4]), np.array([50]), np.array([10]))
    assert crossfit.smoothed(one) == pytest.approx([0.2])


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
