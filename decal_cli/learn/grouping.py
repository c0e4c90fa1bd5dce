"""The grouping loss of each bin of the score, by what trees on one half of its rows tell apart on the other; and the
bounds on regret that follow from it.
"""

from __future__ import annotations

import operator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.learn.regions import Leaves, Regions
from decal_cli.tables.table import Floats
from decal_cli.task import Task


class BinLosses(NamedTuple):
    """Grouping loss of each bin that has an estimate, shape (bins,) each."""

    share: Floats
    rate: Floats
    """Frequency of label 1."""
    rate_error: Floats
    loss: Floats
    """Unclipped."""
    first: Floats
    """Variance of the loss that vanishes where there is no grouping; its sum over bins is to be kept above 0."""
    second: Floats
    """Variance of the loss that is left where there is none."""
    judged: NDArray[np.int64]
    """Numbers of these bins."""


class Bounds(NamedTuple):
    """Bounds on the grouping regret per unit of u_delta, averaged over bins.

    lower, upper: Perez-Lebel et al. 2025, thm. 3.4, 3.5. sharp: the best possible upper bound.
    """

    lower: Floats
    upper: Floats
    sharp: Floats

    @property
    def middle(self) -> Floats:
        """The estimate: Perez-Lebel et al. 2025, def. 3.6, with the sharp upper bound."""
        return (self.lower + self.sharp) / 2


def bin_losses(regions: Regions) -> BinLosses:
    """The mean of both halves' estimates, less the spread of the isotonic fit inside the bin."""
    return losses_in(regions, regions.halves)


def losses_in(regions: Regions, leaves: tuple[Leaves, Leaves]) -> BinLosses:
    halves = [_half_losses(half, len(regions.n)) for half in leaves]
    loss, first, second = (np.array(parts) for parts in zip(*halves, strict=True))
    count = np.isfinite(loss).sum(axis=0)
    judged = np.flatnonzero(count)
    if not len(judged):
        raise Undefined("needs more rows: no bin of the score has two in each half")
    count = count[judged]
    mean = np.nansum(loss[:, judged], axis=0) / count
    n, rate = regions.n[judged], regions.pos[judged] / regions.n[judged]
    one_over = regions.n2[judged] / n**2
    return BinLosses(
        n / n.sum(),
        rate,
        np.sqrt(rate * (1 - rate) * one_over / np.maximum(1 - one_over, one_over)),
        mean - regions.induced[judged],
        np.nansum(first[:, judged], axis=0) / count**2,
        np.nansum(second[:, judged], axis=0) / count**2,
        judged,
    )


def _half_losses(leaves: Leaves, bins: int) -> tuple[Floats, Floats, Floats]:
    """Debiased variance of the leaves' frequencies and the two parts of its variance; NaN where a bin says nothing."""

    def per_bin(values: Floats) -> Floats:
        return np.bincount(leaves.bin, values, minlength=bins).astype(np.float64, copy=False)

    n, pos, n2 = per_bin(leaves.n), per_bin(leaves.pos), per_bin(leaves.n2)
    rate, one_over = _ratio(pos, n, np.nan), _ratio(n2, n**2, 1.0)
    noise = _noise(rate, one_over)
    leaf_rate = _ratio(leaves.pos, leaves.n, np.nan)
    leaf_noise = np.nan_to_num(_noise(leaf_rate, _ratio(leaves.n2, leaves.n**2, 1.0)))
    weight = _ratio(leaves.n, n[leaves.bin], 0.0)
    square = (leaf_rate - rate[leaves.bin]) ** 2
    loss = per_bin(weight * square) - (per_bin(weight * leaf_noise) - noise)
    # The frequency of the bin moves with that of its leaves: their distance is less noisy than a leaf on its own.
    true_square = square - leaf_noise * (1 - 2 * weight) - per_bin(weight**2 * leaf_noise)[leaves.bin]
    positive = np.maximum(true_square, 0.0)
    mass = per_bin(weight * positive**2) - per_bin(weight * positive) ** 2
    first = 4 * per_bin(weight**2 * true_square * leaf_noise) + mass * one_over
    # 2 tr((M V)^2) with M = diag(w) - w w', V = diag(noise): the variance of the quadratic form in the leaves' noise.
    own = (weight * leaf_noise) ** 2
    second = 2 * (per_bin(own * ((1 - weight) ** 2 - weight**2)) + per_bin(weight**2 * leaf_noise) ** 2)
    return loss, first, second


def _ratio(part: Floats, whole: Floats, otherwise: float) -> Floats:
    return np.divide(part, whole, out=np.full(len(whole), otherwise), where=whole > 0)


def _noise(rate: Floats, one_over: Floats) -> Floats:
    """Unbiased variance of a frequency, one_over its effective rows; NaN for a single row."""
    single = one_over > 1 - 1e-9
    return np.where(single, np.nan, rate * (1 - rate) * one_over / np.where(single, 1.0, 1 - one_over))


def least_variance(rate: Floats, threshold: Floats | float) -> Floats:
    """Vmin: the largest grouping loss at which recalibrated decisions may be right for every row of a bin."""
    off = rate - threshold
    return np.where(off >= 0, (1 - rate) * off, -rate * off)


def bounds_of_bins(loss: Floats, rate: Floats, threshold: Floats | float) -> Bounds:
    """The bounds of each bin, in any shape; losses are cut to [0, c (1 - c)]."""
    loss, off = np.clip(loss, 0.0, rate * (1 - rate)), rate - threshold
    lower = np.maximum(loss - least_variance(rate, threshold), 0.0)
    upper = (np.sqrt(loss + off**2) - np.abs(off)) / 2
    return Bounds(lower, upper, _sharp(loss, rate, threshold, upper))


def _sharp(loss: Floats, rate: Floats, threshold: Floats | float, upper: Floats) -> Floats:
    """The most that knowing the true probability Q wins over knowing its mean c, of all Q in [0, 1] of this variance.

    Two values of Q win most: those of theorem 3.5, as far from t* on either side, unless one of them lies outside
    [0, 1]; then it is 0, or 1.
    """
    at_0 = 2 * rate * threshold <= rate**2 + loss
    at_1 = 2 * (1 - rate) * (1 - threshold) <= (1 - rate) ** 2 + loss
    high = np.where(at_1, _won_from_0(loss, 1 - rate, 1 - threshold), upper)
    return np.where(at_0, _won_from_0(loss, rate, threshold), high)


def _won_from_0(loss: Floats, rate: Floats, threshold: Floats | float) -> Floats:
    """Where Q is 0 or (c^2 + GL) / c."""
    square = rate**2 + loss
    won = np.where(rate >= threshold, threshold * loss, rate * (square - threshold * rate))
    return np.divide(won, square, out=np.zeros_like(won), where=square > 0)


def bounds(loss: Floats, rate: Floats, share: Floats, threshold: float) -> Bounds:
    """Bounds from grouping losses and frequencies of bins, shape (.., bins) each; losses are cut to [0, c (1 - c)].

    share: of the rows, (bins,), or (.., bins) where it differs from draw to draw.
    """
    each = bounds_of_bins(loss, rate, threshold)
    if share.ndim == 1:
        return Bounds(*(bound @ share for bound in each))
    return Bounds(*((bound * share).sum(axis=-1) for bound in each))


def task_bounds(loss: Floats, rate: Floats, share: Floats, task: Task) -> Bounds:
    """The same for a task, per unit of its u_delta: the sum over its steps bounds what all of them lose."""
    each = [bounds(loss, rate, share, threshold) for threshold in task.thresholds]
    return Bounds(*(np.asarray(sum(map(operator.mul, task.shares, bound))) for bound in zip(*each, strict=True)))
