"""Curves of scores, and the bounds of what knowing more than the score can win."""

from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decal_cli.errors import Undefined
from decal_cli.learn.regions import Curve, Leaves, Regions, bin_losses, bounds_of_bins
from decal_cli.tables.table import tabulate


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


@pytest.mark.parametrize(("second", "judged"), [(1e-8, True), (1e-10, False)])
def test_a_row_that_outweighs_the_other_by_far_says_no_more_than_a_single_one(second: float, judged: bool) -> None:
    sums = np.array([[1 + second], [1.0], [1 + second**2]])
    leaves = Leaves(np.array([0]), *sums)
    regions = Regions(*sums, np.zeros(1), (leaves, leaves), (leaves, leaves))
    with nullcontext() if judged else pytest.raises(Undefined, match="no bin of the score has two in each half"):
        assert bin_losses(regions).judged.tolist() == [0]
