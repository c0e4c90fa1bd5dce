"""The grouping loss of each bin, and the bounds on regret that follow from it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.crossfit.probe import Probed, squared_loss_won
from decal_cli.crossfit.regions import Leaves, Regions
from decal_cli.errors import Undefined
from decal_cli.metrics.confidence import Interval, normal, quantile
from decal_cli.tables.table import Floats, MeanEstimate
from decal_cli.task import Task

N_JITTERS = 400
MOST_REGRET = 0.25
"""No grouping regret is larger, per unit of u_delta: t* (1 - t*) at most, where labels are as frequent as t*."""


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


class Brackets(NamedTuple):
    """Intervals of these bounds."""

    lower: Interval
    upper: Interval
    sharp: Interval


def bin_losses(regions: Regions) -> BinLosses:
    """The mean of both halves' estimates, less the spread of the isotonic fit inside the bin."""
    return _bin_losses(regions, regions.halves)


def _bin_losses(regions: Regions, leaves: tuple[Leaves, Leaves]) -> BinLosses:
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


def loss(regions: Regions) -> MeanEstimate:
    """The mean over bins of the unclipped grouping loss, and its standard error."""
    return _mean_loss(bin_losses(regions))


def _mean_loss(bins: BinLosses) -> MeanEstimate:
    variance = max(float(bins.share**2 @ bins.first), 0.0) + float(bins.share**2 @ bins.second)
    return MeanEstimate(float(bins.share @ bins.loss), float(np.sqrt(variance)))


def missed(regions: Regions, probed: Probed, confidence: float) -> float:
    """How much to raise the upper end of the loss's interval for the grouping that trees on these rows miss.

    What trees miss falls about as one over the root of the rows they are grown on: trees on a quarter of the rows miss
    twice as much, so 2 full - sketch estimates the loss that unlimited rows would show, with its standard error. And
    the loss is at least as large as what the probe wins of it, which learns from all bins together.
    """
    full, sketch = loss(regions), _mean_loss(_bin_losses(regions, regions.sketches))
    reach = quantile(confidence)
    ends = [2 * full.mean - sketch.mean + reach * float(np.hypot(2 * full.error, sketch.error))]
    if len(probed.probe):
        won = squared_loss_won(probed)
        ends.append(won.mean + reach * won.error)
    return max(max(ends) - (full.mean + reach * full.error), 0.0)


def need_seen(regions: Regions, probed: Probed, confidence: float) -> None:
    """Raise Undefined where the probe clearly wins more than the trees show, as of a product of two features.

    What there is has another shape there than trees see, and nothing says how much of it the probe misses.
    """
    high = normal(loss(regions), confidence, -1.0, 1.0)[1]
    if len(probed.probe) and normal(squared_loss_won(probed), confidence)[0] > high:
        raise Undefined("a probe on the features clearly wins more than its small trees show")


def loss_interval(regions: Regions, probed: Probed, confidence: float) -> Interval:
    """Of the mean grouping loss; the upper end allows for what trees on so few rows miss, and no loss is below 0."""
    need_seen(regions, probed, confidence)
    low, high = normal(loss(regions), confidence, -1.0, 1.0)
    return low, min(max(high + missed(regions, probed, confidence), 0.0), 1.0)


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


def jittered(bins: BinLosses, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Losses and frequencies of bins, each with a normal error of its own added, shape (N_JITTERS, bins) each."""
    spread = np.sqrt(np.maximum(bins.first, 0.0) + bins.second)
    loss = bins.loss + spread * rng.standard_normal((N_JITTERS, len(bins.loss)))
    rate = bins.rate + bins.rate_error * rng.standard_normal((N_JITTERS, len(bins.loss)))
    return loss, np.clip(rate, 0.0, 1.0)


def estimated_bounds(regions: Regions, task: Task, more: float = 0.0) -> Bounds:
    """Bounds on the grouping regret; `more` is a mean loss added to the bins, in proportion to c (1 - c)."""
    bins = bin_losses(regions)
    most = bins.rate * (1 - bins.rate)
    loss = np.maximum(bins.loss, 0.0) + more * most / max(float(bins.share @ most), 1e-300)
    return task_bounds(loss, bins.rate, bins.share, task)


def bracket(
    regions: Regions,
    task: Task,
    rng: np.random.Generator,
    confidence: float,
    missed: float,
    calibration: Callable[[Floats], Floats] | None = None,
) -> Brackets:
    """Intervals of the bounds; `calibration` gives a regret of the bins' frequencies to add to each.

    missed: grouping loss that the trees may have missed; upper ends are raised as far as it would raise the bounds.
    """
    bins = bin_losses(regions)
    loss, rate = jittered(bins, rng)
    plug_in, draws = estimated_bounds(regions, task), task_bounds(loss, rate, bins.share, task)
    raised = estimated_bounds(regions, task, missed)
    value, added = (0.0, 0.0) if calibration is None else (float(calibration(bins.rate)), calibration(rate))
    ends = []
    for bound, top, drawn_bound in zip(plug_in, raised, draws, strict=True):
        low, high = _corrected(float(bound) + value, drawn_bound + added, confidence)
        ends.append((low, min(high + float(top - bound), 1.0)))
    return Brackets(*ends)


def _corrected(value: float, draws: Floats, confidence: float) -> Interval:
    """The bias-corrected normal interval of a quantity that cannot be negative."""
    reach = quantile(confidence) * float(draws.std())
    middle = 2 * value - float(draws.mean())
    return max(middle - reach, 0.0), max(middle + reach, 0.0)
