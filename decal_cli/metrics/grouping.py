"""The grouping loss of each bin, the bounds on regret that follow from it, and the intervals of regrets of bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.learn.probe import Probed, squared_loss_won
from decal_cli.learn.regions import Bounds, Leaves, Regions, bin_losses, task_bounds
from decal_cli.metrics import decisions, regret_cells
from decal_cli.metrics.confidence import Interval, holding, normal, one_sided, quantile, within
from decal_cli.tables.estimate import MeanEstimate
from decal_cli.tables.resample import as_whole
from decal_cli.tables.table import Floats, Table
from decal_cli.task import BinaryTask, Task

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

    @property
    def shown(self) -> Brackets:
        """From the low end of the lower bound on: noise adds to the upper bounds in every bin."""
        return Brackets(*((self.lower[0], min(high, MOST_REGRET)) for _, high in self))


def loss(regions: Regions, leaves: tuple[Leaves, Leaves] | None = None) -> MeanEstimate:
    """The mean over bins of the unclipped grouping loss, and its standard error."""
    bins = bin_losses(regions, leaves)
    variance = max(float(bins.share**2 @ bins.first), 0.0) + float(bins.share**2 @ bins.second)
    return MeanEstimate(float(bins.share @ bins.loss), float(np.sqrt(variance)))


def missed(regions: Regions, probed: Probed, confidence: float) -> float:
    """How much to raise the upper end of the loss's interval for the grouping that trees on these rows miss.

    What trees miss falls about as one over the root of the rows they are grown on: trees on a quarter of the rows miss
    twice as much, so 2 full - sketch estimates the loss on unlimited rows. The loss is at least as
    large as what the probe wins of it, which learns from all bins together.
    """
    full, sketch = loss(regions), loss(regions, regions.sketches)
    critical_value = quantile(confidence)
    ends = [2 * full.mean - sketch.mean + critical_value * float(np.hypot(2 * full.error, sketch.error))]
    if len(probed.probe):
        won = squared_loss_won(probed)
        ends.append(won.mean + critical_value * won.error)
    return max(max(ends) - (full.mean + critical_value * full.error), 0.0)


def need_seen(regions: Regions, probed: Probed, confidence: float) -> None:
    """Raise Undefined where the probe clearly wins more than the trees show, as of a product of two features.

    What there is has another shape there than trees see, and nothing says how much of it the probe misses.
    """
    high = normal(loss(regions), confidence, -1.0, 1.0)[1]
    if len(probed.probe) and normal(squared_loss_won(probed), confidence)[0] > high:
        raise Undefined("a probe on the features clearly wins more than its small trees show")


def loss_interval(regions: Regions, confidence: float) -> Interval:
    """The interval of the mean grouping loss: up to the most that any loss can be, as trees may not see all of it."""
    seen = loss(regions)
    low = normal(seen, one_sided(confidence), -1.0, MOST_LOSS)[0]
    return max(low, min(seen.mean, 0.0)), max(MOST_LOSS, seen.mean)


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
    calibration: Callable[[Floats], Floats | float] = lambda rate: 0.0,
) -> Brackets:
    """Intervals of the bounds; `calibration` gives a regret of the bins' frequencies to add to each.

    missed: grouping loss that the trees may have missed; upper ends are raised as far as it would raise the bounds.
    """
    bins = bin_losses(regions)
    shape = N_JITTERS, len(bins.loss)
    # Losses and frequencies of bins, each with a normal error of its own.
    loss = bins.loss + np.sqrt(np.maximum(bins.first, 0.0) + bins.second) * rng.standard_normal(shape)
    rate = np.clip(bins.rate + bins.rate_error * rng.standard_normal(shape), 0.0, 1.0)
    plug_in, draws = estimated_bounds(regions, task), task_bounds(loss, rate, bins.share, task)
    raised = estimated_bounds(regions, task, missed)
    value, added = float(calibration(bins.rate)), calibration(rate)
    ends = []
    for bound, top, drawn_bound in zip(plug_in, raised, draws, strict=True):
        # Bias-corrected and normal, of what cannot be negative.
        drawn = drawn_bound + added
        middle, half_width = 2 * (float(bound) + value) - float(drawn.mean()), quantile(confidence) * float(drawn.std())
        ends.append((max(middle - half_width, 0.0), min(max(middle + half_width, 0.0) + float(top - bound), 1.0)))
    return Brackets(*ends)


NEAR = 2.0
"""Standard errors of a frequency within which it may be t* itself."""
JITTERED = (
    "bias-corrected normal; bins drawn 400 times with their errors; the upper end allows for what trees miss and the "
    "probe sees"
)
BRACKET = "from the low end of the lower bound to the high end of the {} bound"
REGRET = (
    "from the value, or the low end (at least 0) of gain_post_training, whichever is less; to the value, the high end "
    "of that gain, or that of calibration regret plus sharp upper bound, whichever is most"
)
CROSSINGS = (
    "the thresholds that fall short of the best one by no more than the true one does in 200 replicates, with labels "
    "drawn from the smoothed calibration curve"
)
AS_TREES_SEE = (
    "as far as trees of 5 leaves in each bin could see it on more rows, or the probe on these: a part of what only "
    "products of features show"
)
UNLESS_UNSEEN = (
    "no interval where the probe clearly wins more than trees of 5 leaves in each bin show, as of products of "
    "features: there the value is too small, and nothing says by how much"
)
HELD_OUT = "normal; standard error of the gain on held-out labels"
WIDENED_HELD_OUT = f"{HELD_OUT} and by the judge, which they move, widened because folds learn from each other's rows"
WIDENED_OF_TWO = f"{HELD_OUT}, of two classes widened because folds learn from each other's rows"
OF_SUM = "normal; standard error of the sum of gain_recalibration and gain_beyond"


def sides(t: Table, levels: Table, step: BinaryTask) -> tuple[Floats, Floats]:
    """Shares of all rows in each bin below, and at or above, the decision threshold; it cuts at most one bin."""
    rows_below = t.weight_by_action(step.decision_threshold)[0].sum()
    below = np.clip(rows_below - (np.cumsum(levels.n) - levels.n), 0, levels.n)
    return below / t.total, (levels.n - below) / t.total


def worst(t: Table, task: Task, rng: np.random.Generator, confidence: float, bins: int) -> Interval:
    """The interval of the grouping regret at the largest grouping loss that bins can have."""
    levels = t.bins(bins)
    rows, share = levels.rows_of_cells, levels.n / t.total
    rate = levels.pos / levels.n
    counts = as_whole(rows)
    shares = rng.poisson(counts, (regret_cells.N_REGRET_DRAWS, len(counts))) * (share / counts)
    shares /= np.maximum(shares.sum(axis=-1, keepdims=True), 1e-300)
    value, ends = float(worst_bound(rate, share, task)), []
    # Frequencies may spread as observed, or only as far as noise does not explain; or those near t* may be at t*, where
    # noise takes most. Each of these may be the world.
    spreads, noise = [rate], t.base_rate * (1 - t.base_rate) / rows
    explained = max(float(share @ ((rate - t.base_rate) ** 2 - noise)), 0.0)
    kept = explained / (explained + noise) if explained else np.zeros_like(noise)
    spreads.append(t.base_rate + kept * (rate - t.base_rate))
    for threshold in task.thresholds:
        error = np.sqrt(threshold * (1 - threshold) / rows)
        spreads.append(np.where(np.abs(rate - threshold) <= NEAR * error, threshold, rate))
    for spread in spreads:
        known = (spread * rows + t.base_rate) / (rows + 1)
        draws = worst_bound(rng.binomial(counts, known, shares.shape) / counts, shares, task)
        # Noise takes from what bends down: the value lies as far below the truth as the draws lie below their world.
        bias = float(worst_bound(known, share, task) - draws.mean())
        ends.append(np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2]) - draws.mean() + value + bias)
    low, high = float(min(one[0] for one in ends)), float(max(one[1] for one in ends))
    return within(holding((low, high), value), (0.0, MOST_REGRET))


def worst_bound(rate: Floats, share: Floats, task: Task) -> Floats:
    """The sharp bound at the largest grouping loss: what knowing every label adds, t* (1 - c) or c (1 - t*)."""
    steps = zip(task.shares, task.thresholds, strict=True)
    return sum(of_step * ((np.minimum(rate, at) - at * rate) * share).sum(axis=-1) for of_step, at in steps)


def calibration_of(t: Table, task: Task, levels: Table, which: Any) -> Callable[[Floats], Floats]:
    """The calibration regret of some bins, by their frequencies, shape (.., bins) to (..); per unit of u_delta."""
    steps = [(step, sides(t, levels, step)) for step in task.steps]

    def of_rates(rate: Floats) -> Floats:
        losses = (
            decisions.calibration_regret(rate, below[which], above[which], step.threshold)
            for step, (below, above) in steps
        )
        return np.asarray(sum(share * loss for share, loss in zip(task.shares, losses, strict=True)))

    return of_rates
