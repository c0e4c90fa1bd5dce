"""Curves of scores, and the bounds of what knowing more than the score can win."""

from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decal_cli.errors import Undefined
from decal_cli.learn.regions import (
    DOUBT,
    Curve,
    Leaves,
    RegionRule,
    Regions,
    bin_losses,
    bounds_of_bins,
    build_regions,
    with_score,
)
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import tabulate
from tests.helpers.worlds import featured_rows


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=2, max_size=30), st.integers(0, 40))
def test_a_curve_reaches_a_value_at_the_least_score_where_it_does(rows: list[tuple[int, bool]], fortieth: int) -> None:
    """Held against the curve itself, on a grid of scores: below the score it is less, from there on it is not."""
    score, label = np.array([s / 20 for s, _ in rows]), np.array([y for _, y in rows], dtype=np.uint8)
    curve, value = Curve.fitted(tabulate(score, label)), fortieth / 40
    grid = np.linspace(0, 1, 2001)
    reached = grid[curve.of(grid) >= value]
    found = curve.reaches(value)
    if found is None:
        assert len(reached) == 0
    else:
        assert curve.of(np.array([found]))[0] >= value - 1e-12
        assert abs(found - reached[0]) <= 1 / 2000 + 1e-12


@pytest.mark.parametrize(
    ("loss", "rate", "threshold", "lower", "upper"),
    [
        (0.04, 0.5, 0.3, 0.0, 0.041421356),  # sqrt(.04 + .04) = .28284271; less .2, halved; .04 is below V_min = .1
        (0.25, 0.5, 0.3, 0.15, 0.169258240),  # sqrt(.25 + .04) = .53851648; V_min = .5 x .2 = .1
        (0.90, 0.5, 0.3, 0.15, 0.169258240),  # no more than c (1 - c) = .25
        (0.90, 0.2, 0.3, 0.14, 0.156155281),  # c (1 - c) = .16, V_min = .2 x .1 = .02; sqrt(.16 + .01) = .41231056
        (-0.1, 0.5, 0.3, 0.0, 0.0),  # no less than nothing
    ],
)
def test_bounds_of_a_bin_by_hand(loss: float, rate: float, threshold: float, lower: float, upper: float) -> None:
    """Perez-Lebel et al. 2025: (loss - V_min)+ below, (sqrt(loss + (c - t)^2) - |c - t|) / 2 above."""
    bounds = bounds_of_bins(np.array([loss]), np.array([rate]), threshold)
    assert bounds.lower[0] == pytest.approx(lower, abs=1e-9)
    assert bounds.upper[0] == pytest.approx(upper, abs=1e-9)
    assert bounds.lower[0] <= bounds.sharp[0] <= bounds.upper[0] + 1e-12
    mirrored = bounds_of_bins(np.array([loss]), np.array([1 - rate]), 1 - threshold)
    assert mirrored.sharp[0] == pytest.approx(bounds.sharp[0]), "with labels exchanged"


@pytest.mark.parametrize(("second", "judged"), [(1e-8, True), (1e-10, False)])
def test_a_row_that_outweighs_the_other_by_far_says_no_more_than_a_single_one(second: float, judged: bool) -> None:
    sums = np.array([[1 + second], [1.0], [1 + second**2]])
    leaves = Leaves(np.array([0]), *sums)
    regions = Regions(*sums, np.zeros(1), (leaves, leaves), (leaves, leaves))
    with nullcontext() if judged else pytest.raises(Undefined, match="no bin of the score has two in each half"):
        assert bin_losses(regions).judged.tolist() == [0]


def noise(rate: float, one_over: float) -> float:
    return rate * (1 - rate) * one_over / (1 - one_over)


def test_the_loss_of_a_bin_and_its_variance_are_those_of_a_quadratic_form() -> None:
    """Of the leaves' frequencies r, with noise V: r' M r less tr(M V), where M = diag(w) - w w'.

    Its variance is 4 r' M V M r, here of squares less their noise, and 2 tr((M V)^2); the weights w vary too.
    """
    rng = np.random.default_rng(0)
    bins, n = np.repeat([0, 1, 2], [3, 1, 4]), rng.uniform(20, 40, 8)
    pos, n2 = n * rng.uniform(0.1, 0.9, 8), n * rng.uniform(1, 2, 8)
    leaves = Leaves(bins, n, pos, n2)
    sums = (np.bincount(bins, each) for each in (n, pos, n2))
    found = bin_losses(Regions(*sums, np.zeros(3), (leaves, leaves), (leaves, leaves)))
    for k in range(3):
        here = bins == k
        total, w, rate = n[here].sum(), n[here] / n[here].sum(), pos[here] / n[here]
        mean, one_over = w @ rate, n2[here].sum() / total**2
        v = np.diag([noise(r, own) for r, own in zip(rate, n2[here] / n[here] ** 2, strict=True)])
        m = np.diag(w) - np.outer(w, w)
        assert found.loss[k] == pytest.approx(rate @ m @ rate - (w @ np.diag(v) - noise(mean, one_over)))
        off = np.eye(len(w)) - w  # row j: what leaf j's frequency has beyond that of the bin
        true_square = (off @ rate) ** 2 - np.diag(off @ v @ off.T)
        positive = np.maximum(true_square, 0)
        moved = w @ positive**2 - (w @ positive) ** 2
        # Two halves are averaged, here of the same leaves.
        assert 2 * found.first[k] == pytest.approx(4 * (w**2 * true_square) @ np.diag(v) + moved * one_over)
        assert 2 * found.second[k] == pytest.approx(2 * np.trace(m @ v @ m @ v), abs=1e-15)


def test_sums_of_bins_and_the_variance_of_the_fit_inside_them_are_weighted() -> None:
    score, label, weight, features = featured_rows(400)
    rows = Rows(score, label, weight, features=features)
    regions = build_regions(rows, seed=0, bins=4)
    number = np.searchsorted(rows.table.score[rows.table.bin_starts(4)], score, side="right") - 1
    fit = Curve.fitted(rows.table).of(score)
    for k in range(4):
        w, of = weight[number == k], fit[number == k]
        spread = np.average((of - np.average(of, weights=w)) ** 2, weights=w)
        sums = regions.n[k], regions.pos[k], regions.n2[k], regions.induced[k]
        assert sums == pytest.approx((w.sum(), w @ label[number == k], w @ w, spread), rel=1e-9)


def test_a_region_moves_by_its_mean_deviation_as_far_as_four_squared_errors_do_not_explain_it() -> None:
    score, label, weight, features = featured_rows(400)
    rule = RegionRule(Rows(score, label, weight, features=features), np.random.default_rng(0), 0)
    node, fit = rule.tree.apply(with_score(score, features)), rule.isotonic.of(score)
    for k in np.unique(node):
        w, off, p = (each[node == k] for each in (weight, label - fit, fit))
        mean, error = w @ off / w.sum(), np.sqrt(w**2 @ (p * (1 - p))) / w.sum()
        assert rule.shift[k] == pytest.approx(mean * max(1 - DOUBT * (error / mean) ** 2, 0))
    assert (rule.shift != 0).any() and (rule.shift[np.unique(node)] == 0).any()
