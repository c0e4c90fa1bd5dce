"""Gains and payoffs of decisions, for the task family.

The action is how many of the task's decision thresholds the score reaches. A step from one action to the next, on rows
with weight n and positives m, is worth u_delta (m - t* n), with u_delta and t* of the step: the gains here are such
sums over T, in units of the task's u_delta, added over its steps. A task of two actions is one step.
"""

from __future__ import annotations

import numpy as np

from decal_cli.tables.table import Floats, Table
from decal_cli.task import BinaryTask, Task


def headroom(t: Table, task: Task) -> float:
    """What acting on the isotonic fit adds to the best constant action."""
    return task.in_steps(lambda step: _headroom(t, step.threshold))


def _headroom(t: Table, threshold: float) -> float:
    """The fit acts above the cut that leaves the least worth below it, so that no fit is needed."""
    n = pos = worth = least = 0.0
    for block in t.blocks():
        rows, positives = n + np.cumsum(block.n), pos + np.cumsum(block.pos)
        below = positives - threshold * rows
        n, pos, worth = float(rows[-1]), float(positives[-1]), float(below[-1])
        least = min(least, float(below.min()))
    return (min(worth, 0.0) - least) / t.total


def advantage(t: Table, task: Task) -> float:
    """What the decisions add to always taking the first action."""

    def of_step(step: BinaryTask) -> float:
        fp, tp = t.confusion(step.decision_threshold).weight[1]
        return float(tp - step.threshold * (tp + fp)) / t.total

    return task.in_steps(of_step)


def best_constant(t: Table, task: Task) -> float:
    """What the best constant action adds to always taking the first one."""
    return task.in_steps(lambda step: max(0.0, t.base_rate - step.threshold))


def calibration_regret(rate: Floats, below: Floats, above: Floats, threshold: Floats | float) -> Floats:
    """Regret of acting on p in bins with these frequencies, per unit of u_delta; shape (.., bins) to (..).

    below, above: the bin's rows below, and at or above, the decision threshold, as shares of all rows.
    """
    return (np.where(rate >= threshold, below, above) * np.abs(rate - threshold)).sum(axis=-1)
