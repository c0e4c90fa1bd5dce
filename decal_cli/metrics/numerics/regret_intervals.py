"""Intervals of regrets of bins, per unit of u_delta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from decal_cli.learn.probe import Probed
from decal_cli.learn.regions import Regions, task_bounds
from decal_cli.metrics.confidence import Interval, holding, within
from decal_cli.metrics.numerics import clipped, decisions, gaps, grouping
from decal_cli.tables.resample import as_whole
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Floats, Table
from decal_cli.task import BinaryTask, Task

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
WIDENED_HELD_OUT = (
    f"{HELD_OUT} and by the judge, widened because folds learn from each other's rows, and half of what both differ by"
)
WIDENED_OF_TWO = f"{HELD_OUT}, of two classes widened because folds learn from each other's rows"
OF_SUM = "normal; standard error of the sum of gain_recalibration and gain_beyond"


def sides(t: Table, levels: Table, step: BinaryTask) -> tuple[Floats, Floats]:
    """Shares of all rows in each bin below, and at or above, the decision threshold; it cuts at most one bin."""
    rows_below = t.confusion(step.decision_threshold).weight[0].sum()
    below = np.clip(rows_below - (np.cumsum(levels.n) - levels.n), 0, levels.n)
    return below / t.total, (levels.n - below) / t.total


def worst(t: Table, task: Task, rng: np.random.Generator, confidence: float, bins: int) -> Interval:
    """Of the grouping regret at the largest grouping loss that bins can have."""
    levels = t.bins(bins)
    rows, share = 1 / gaps.concentration(levels), levels.n / t.total
    rate = levels.pos / levels.n
    counts = as_whole(rows)
    shares = rng.poisson(counts, (clipped.N_REGRET_DRAWS, len(counts))) * (share / counts)
    shares /= np.maximum(shares.sum(axis=-1, keepdims=True), 1e-300)
    value, ends = float(worst_bound(rate, share, task)), []
    # The frequencies spread at most as observed, and at least as noise does not explain; or those near t* are at it,
    # where noise takes most. Each of these may be the world.
    at_thresholds = [_drawn_to(rate, rows, threshold) for threshold in task.thresholds]
    for spread in (rate, _less_noise(rate, rows, share, t.base_rate), *at_thresholds):
        known = (spread * rows + t.base_rate) / (rows + 1)
        draws = worst_bound(rng.binomial(counts, known, shares.shape) / counts, shares, task)
        # Noise takes from what bends down: the value lies as far below the truth as the draws lie below their world.
        bias = float(worst_bound(known, share, task) - draws.mean())
        ends.append(np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2]) - draws.mean() + value + bias)
    low, high = float(min(one[0] for one in ends)), float(max(one[1] for one in ends))
    return within(holding((low, high), value), (0.0, grouping.MOST_REGRET))


def _less_noise(rate: Floats, rows: Floats, share: Floats, base_rate: float) -> Floats:
    """Frequencies of bins, drawn towards the base rate by the part of their spread that noise explains."""
    noise = base_rate * (1 - base_rate) / rows
    spread = max(float(share @ ((rate - base_rate) ** 2 - noise)), 0.0)
    kept = spread / (spread + noise) if spread else np.zeros_like(noise)
    return np.asarray(base_rate + kept * (rate - base_rate))


def _drawn_to(rate: Floats, rows: Floats, threshold: float) -> Floats:
    """Frequencies of bins; the threshold in place of those within NEAR standard errors of it."""
    error = np.sqrt(threshold * (1 - threshold) / rows)
    return np.where(np.abs(rate - threshold) <= NEAR * error, threshold, rate)


def worst_bound(rate: Floats, share: Floats, task: Task) -> Floats:
    """The sharp bound at the largest grouping loss, t* (1 - c) or c (1 - t*): what knowing every label adds."""
    return task_bounds(rate * (1 - rate), rate, share, task).sharp


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


def bracket(
    regions: Regions,
    probed: Probed,
    task: Task,
    seed: Seed,
    confidence: float,
    calibration: Callable[[Floats], Floats] | None = None,
) -> grouping.Brackets:
    """Of the bounds on the grouping regret; `calibration`: a regret of the bins' frequencies to add to each."""
    missed = grouping.missed(regions, probed, confidence)
    return grouping.bracket(regions, task, seed.generator("regret"), confidence, missed, calibration)
