"""Gains and payoffs of decisions, for the task family.

The action is how many of the task's decision thresholds the score reaches. A step from one action to the next, on rows
with weight n and positives m, is worth u_delta (m - t* n), with u_delta and t* of the step: the gains here are such
sums over T, in units of the task's u_delta, added over its steps. A task of two actions is one step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.tables.confusion import Confusion
from decal_cli.tables.table import CellRun, Floats, Table
from decal_cli.task import BinaryTask, Task

_CELLS = {"tn": (0, 0), "fn": (0, 1), "fp": (1, 0), "tp": (1, 1)}
"""Decision and label of each cell, where there are two actions."""


INTERVENTIONS = 100.0
"""Rows that interventions avoided are counted of: true negatives, less false negatives at the odds of not acting."""


def cells(t: Table, task: Task) -> Confusion:
    """Weights of the cells of action and label."""
    return t.confusion(*task.decision_thresholds)


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


def swapped(t: Table, task: Task) -> float:
    """What the best fixed map of the actions taken to other actions adds."""
    lost = 0.0
    for action, (neg, pos) in enumerate(cells(t, task).weight):
        rows = neg + pos
        for number, (share, step) in enumerate(zip(task.shares, task.steps, strict=True)):
            gain = float(pos - step.threshold * rows) / t.total
            lost += share * max(-gain if action > number else gain, 0.0)
    return lost


def decision_loss(levels: Table, task: Task) -> float:
    """Utility lost by acting on the score of a level instead of on its label frequency."""

    def of_step(step: BinaryTask) -> float:
        threshold = step.threshold

        def loss(block: CellRun) -> Floats:
            gain = block.pos - threshold * block.n
            return np.maximum(np.where(block.score >= step.decision_threshold, -gain, gain), 0.0)

        return levels.sum(loss) / levels.total

    return task.u_delta * task.in_steps(of_step)


def net_benefit_payoff(threshold: Any) -> tuple[tuple[float, float], tuple[Any, float]]:
    """Net benefit of one row, payoff[decision][label]; the threshold is a number or an array."""
    return (0.0, 0.0), (-threshold / (1 - threshold), 1.0)


def external_regret_payoff(base_rate: float, threshold: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """What the better constant action adds to one row, payoff[decision][label], for u_delta 1; threshold as above."""
    act = base_rate > threshold
    on_zero = np.where(act, -threshold, 0.0), np.where(act, 1 - threshold, 0.0)
    on_one = np.where(act, 0.0, threshold), np.where(act, 0.0, threshold - 1)
    return on_zero, on_one


def added(at: Confusion, names: str, squared: bool = False) -> float:
    """Sum of the named cells of two actions, 'tp fn', or of their squared weights."""
    values = at.squares if squared else at.weight
    return float(sum(values[_CELLS[name]] for name in names.split()))


def rows_of_share(at: Confusion, part: str, whole: str) -> float:
    """The effective rows that the share of some cells among others rests on."""
    among = added(at, whole)
    if at.products is not None:
        share = added(at, part) / among
        off = np.zeros((2, 2))
        for name in whole.split():
            off[_CELLS[name]] = (1.0 if name in part.split() else 0.0) - share
        variance = at.variance(off)
        if variance > 0:
            return float(share * (1 - share) * among**2 / variance)
    return float(among**2 / added(at, whole, squared=True))


def rate(t: Table, task: BinaryTask, part: str, whole: str, empty: str) -> float:
    """Sum of some cells over the sum of others; Undefined, with this reason, where the others are empty."""
    at = cells(t, task)
    among = added(at, whole)
    if among <= 0:
        raise Undefined(empty)
    return min(added(at, part) / among, 1.0)


def calibration_regret(rate: Floats, below: Floats, above: Floats, threshold: Floats | float) -> Floats:
    """Regret of acting on p in bins with these frequencies, per unit of u_delta; shape (.., bins) to (..).

    below, above: the bin's rows below, and at or above, the decision threshold, as shares of all rows.
    """
    return (np.where(rate >= threshold, below, above) * np.abs(rate - threshold)).sum(axis=-1)
