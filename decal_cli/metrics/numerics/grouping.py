"""The grouping loss of each bin, and the bounds on regret that follow from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.learn.probe import Probed, squared_loss_won
from decal_cli.learn.regions import BinLosses, Bounds, Regions, bin_losses, losses_in, task_bounds
from decal_cli.metrics.confidence import Interval, normal, one_sided, quantile
from decal_cli.tables.estimate import MeanEstimate
from decal_cli.tables.table import Floats
from decal_cli.task import Task

N_JITTERS = 400
MOST_LOSS = 0.25
"""The variance of a probability is no larger."""
MOST_REGRET = 0.25
"""No grouping regret is larger, per unit of u_delta: t* (1 - t*) at most, where labels are as frequent as t*."""


class Brackets(NamedTuple):
    """Intervals of these bounds."""

    lower: Interval
    upper: Interval
    sharp: Interval


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
    full, sketch = loss(regions), _mean_loss(losses_in(regions, regions.sketches))
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


def loss_interval(regions: Regions, confidence: float) -> Interval:
    """Of the mean grouping loss, from its lower bound on: what trees do not see has no bound but that of any loss."""
    seen = loss(regions)
    low = normal(seen, one_sided(confidence), -1.0, MOST_LOSS)[0]
    return max(low, min(seen.mean, 0.0)), max(MOST_LOSS, seen.mean)


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
