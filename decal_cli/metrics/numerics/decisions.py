"""Gains and payoffs of decisions, for the task family.

A decision is 1 iff score >= the decision threshold at which the model is operated. Deciding 1 instead of 0 on rows with
weight n and positives m is worth u_delta (m - t* n): the gains here are such sums over T, in units of u_delta.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.tables.table import CellRun, Confusion, Floats, Table
from decal_cli.task import BinaryTask


def cells(t: Table, task: BinaryTask) -> Confusion:
    """Weights of the four cells of decision and label."""
    return t.confusion(task.decision_threshold)


def headroom(t: Table, task: BinaryTask) -> float:
    """What acting on the isotonic fit adds to the better constant action.

    The fit acts above the cut that leaves the least worth below it, so that no fit is needed.
    """
    n = pos = worth = least = 0.0
    for block in t.blocks():
        rows, positives = n + np.cumsum(block.n), pos + np.cumsum(block.pos)
        below = positives - task.threshold * rows
        n, pos, worth = float(rows[-1]), float(positives[-1]), float(below[-1])
        least = min(least, float(below.min()))
    return (min(worth, 0.0) - least) / t.total


def advantage(t: Table, task: BinaryTask) -> float:
    """What the decisions add to never deciding 1."""
    at = cells(t, task)
    return (at.tp - task.threshold * (at.tp + at.fp)) / t.total


def best_constant(t: Table, task: BinaryTask) -> float:
    """What the better constant action adds to never deciding 1."""
    return max(0.0, t.base_rate - task.threshold)


def by_decision(t: Table, task: BinaryTask) -> tuple[float, float]:
    """Gain of deciding 1 on the rows decided 0, and on the rows decided 1; both are per row of the table."""
    at, threshold = cells(t, task), task.threshold
    on_zero = at.fn - threshold * (at.fn + at.tn)
    on_one = at.tp - threshold * (at.tp + at.fp)
    return on_zero / t.total, on_one / t.total


def decision_loss(levels: Table, task: BinaryTask) -> float:
    """Utility lost by acting on the score of a level instead of on its label frequency."""
    threshold = task.threshold

    def loss(block: CellRun) -> Floats:
        gain = block.pos - threshold * block.n
        return np.maximum(np.where(block.score >= task.decision_threshold, -gain, gain), 0.0)

    return task.u_delta * levels.sum(loss) / levels.total


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
    """Sum of the named cells, 'tp fn', or of their squared weights."""
    return float(sum(getattr(at, name + "2" * squared) for name in names.split()))


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
