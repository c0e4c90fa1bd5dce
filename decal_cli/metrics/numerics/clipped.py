"""Intervals of sums of what is cut at 0: regrets of cells, each of which noise can make positive and never negative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from decal_cli.metrics.confidence import Interval, holding
from decal_cli.metrics.numerics import gaps
from decal_cli.tables.table import Floats
from decal_cli.task import Task

N_REGRET_DRAWS = 400
PULL = 1.0
"""Standard errors by which parts are pulled towards 0, where noise biases most, for the low end."""

CLIPPED_TEXT = (
    "the upper end from 400 draws about what is seen; the low end less what chance adds where parts within a standard "
    "error of 0 are 0; and the value itself"
)


class SwitchGains(NamedTuple):
    """What each step would add in each cell, with standard errors, shape (steps, cells) each, per u_delta of the step.

    up: the share of it that is lost where it is positive, down where it is negative: shares of the cell's rows that
    are decided below the step, and above it, times the step's share of the task's u_delta.
    """

    gain: Floats
    error: Floats
    up: Floats
    down: Floats

    def lost(self, gain: Floats) -> Floats:
        """Regret of these gains, shape (.., steps, cells) to (..)."""
        return np.asarray(np.maximum(self.up * gain, -self.down * gain).sum(axis=(-2, -1)))


def parts(n: Floats, pos: Floats, one_over: Floats, total: float, task: Task, below: Floats) -> SwitchGains:
    """Of cells with rows n, positives, one over their effective rows, shape (cells,) each.

    below: how many of the rows are decided below each step of the task, shape (steps, cells).
    """
    rows = 1 / np.maximum(one_over, 1e-300)
    threshold, size = np.array(task.thresholds)[:, None], np.array(task.shares)[:, None]
    # One more row of t* in each cell: one that shows a single class errs as well.
    rate = (pos / n * rows + threshold) / (rows + 1)
    spread = rate * (1 - threshold) ** 2 + (1 - rate) * threshold**2
    share = below / n
    return SwitchGains(
        (pos - threshold * n) / total, n / total * np.sqrt(spread * one_over), size * share, size * (1 - share)
    )


class Moved(NamedTuple):
    """What other actions would add in place of the one that is taken, (A,); and a root of their covariance, (A, r)."""

    gain: Floats
    root: Floats
    taken: int


def best_of_each(moved: Sequence[Moved], rng: np.random.Generator, confidence: float) -> Interval:
    """For the sum of what the best action adds in each cell, were it none to keep the one that is taken."""

    def lost(gain: Floats) -> Floats:
        return np.maximum(gain.max(axis=-1), 0.0)

    seen, biased, value = np.zeros(N_REGRET_DRAWS), np.zeros(N_REGRET_DRAWS), 0.0
    for gain, root, taken in moved:
        noise = rng.standard_normal((N_REGRET_DRAWS, root.shape[1])) @ root.T
        noise[:, taken] = 0.0
        pulled = gaps.shrunken(gain, PULL * np.sqrt((root**2).sum(axis=1)))
        value += float(lost(gain))
        seen += lost(gain + noise)
        biased += lost(pulled + noise) - lost(pulled)
    tail = (1 - confidence) / 2
    low = value - float(np.quantile(biased, 1 - tail))
    return holding((max(low, 0.0), float(np.quantile(seen, 1 - tail))), value)


def interval(seen: SwitchGains, rng: np.random.Generator, confidence: float) -> Interval:
    """For the regret that the population's gains would give; all steps of a cell share its noise."""
    value, tail = max(float(seen.lost(seen.gain)), 0.0), (1 - confidence) / 2
    noise = seen.error * rng.standard_normal((N_REGRET_DRAWS, 1, seen.gain.shape[-1]))
    pulled = gaps.shrunken(seen.gain, PULL * seen.error)
    biased = seen.lost(pulled + noise) - seen.lost(pulled)
    low = value - float(np.quantile(biased, 1 - tail))
    return holding((max(low, 0.0), float(np.quantile(seen.lost(seen.gain + noise), 1 - tail))), value)
