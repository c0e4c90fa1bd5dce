"""Intervals of sums of what is cut at 0: regrets of cells, each of which noise can make positive and never negative."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decal_cli.metrics.confidence import Interval, holding
from decal_cli.metrics.numerics import gaps
from decal_cli.tables.confusion import Confusion
from decal_cli.tables.table import Floats
from decal_cli.task import Task

N_REGRET_DRAWS = 400
PULL = 1.0
"""Standard errors by which parts are pulled towards 0, where noise biases most, for the low end."""

CLIPPED_TEXT = (
    "the upper end from 400 draws about what is seen; the low end less what chance adds where parts within a standard "
    "error of 0 are 0; and the value itself"
)


class Parts(NamedTuple):
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


def parts(n: Floats, pos: Floats, one_over: Floats, total: float, task: Task, below: Floats) -> Parts:
    """Of cells with rows n, positives, one over their effective rows, shape (cells,) each.

    below: how many of the rows are decided below each step of the task, shape (steps, cells).
    """
    rows = 1 / np.maximum(one_over, 1e-300)
    threshold, size = np.array(task.thresholds)[:, None], np.array(task.shares)[:, None]
    # One more row of t* in each cell: one that shows a single class errs as well.
    rate = (pos / n * rows + threshold) / (rows + 1)
    spread = rate * (1 - threshold) ** 2 + (1 - rate) * threshold**2
    share = below / n
    return Parts(
        (pos - threshold * n) / total, n / total * np.sqrt(spread * one_over), size * share, size * (1 - share)
    )


def of_decisions(at: Confusion, total: float, task: Task) -> Parts:
    """Of a cell for each action: the rows that take it."""
    n, n2 = at.weight.sum(axis=1), at.squares.sum(axis=1)
    some = n > 0
    # Row for row of the steps: an action stands below the steps that lead to later ones.
    stands_below = np.arange(len(n)) <= np.arange(len(n) - 1)[:, None]
    n, pos, below = n[some], at.weight[some, 1], (stands_below * n)[:, some]
    return parts(n, pos, n2[some] / n**2, total, task, below)


def interval(seen: Parts, rng: np.random.Generator, confidence: float) -> Interval:
    """For the regret that the population's gains would give; all steps of a cell share its noise."""
    value, tail = float(seen.lost(seen.gain)), (1 - confidence) / 2
    noise = seen.error * rng.standard_normal((N_REGRET_DRAWS, 1, seen.gain.shape[-1]))
    pulled = gaps.shrunken(seen.gain, PULL * seen.error)
    biased = seen.lost(pulled + noise) - seen.lost(pulled)
    low = value - float(np.quantile(biased, 1 - tail))
    return holding((max(low, 0.0), float(np.quantile(seen.lost(seen.gain + noise), 1 - tail))), value)
