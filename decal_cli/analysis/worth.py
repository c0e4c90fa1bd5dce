"""What acting on a score is worth, beside the best constant decision and perfect knowledge, or beside no limit."""

from __future__ import annotations

from dataclasses import dataclass

from decal_cli.metrics import Inputs
from decal_cli.metrics.at_capacity import WorthAtCapacity
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.decisions import Decisions
from decal_cli.tables.units import Estimate
from decal_cli.task import ClassDecision, Task

OF_ONE_ROW = ("shadow_price", "least_gain")
"""What one row is worth, and not the mean over all decisions."""


@dataclass(frozen=True)
class Amount:
    """A utility per decision and its interval, None where there is none."""

    value: float
    interval: Interval | None


@dataclass(frozen=True)
class Worth:
    """Utilities per decision. now: of acting on the score. constant: of `action`, the best one for all rows.

    over: now less constant, on the same rows. perfect: of knowing every label.
    """

    now: Amount
    over: Amount
    constant: float
    action: str
    perfect: float


@dataclass(frozen=True)
class LimitedWorth:
    """The same where so many rows can be acted on only. idle: of acting on none; unlimited: where there is no limit."""

    now: Amount
    over: Amount
    idle: float
    unlimited: float


def worth_of(inputs: Inputs, confidence: float | None) -> Worth | LimitedWorth | None:
    """None where there is no decision, or its worth is undefined. confidence: None for no intervals."""

    def measured(estimate: Estimate) -> Amount:
        return Amount(estimate.value, None if confidence is None else estimate.normal(confidence))

    decisions, at = inputs.find(Decisions), inputs.find(WorthAtCapacity)
    if decisions is None:
        return None
    if at is not None:
        idle = at.units.mean(at.idle)
        return LimitedWorth(measured(at.utility), measured(at.utility - idle), idle.value, decisions.utility.value)
    best = decisions.best_constant
    over = decisions.mean(decisions.won - decisions.worth[best], decisions.stakes - decisions.stakes[best])
    ideal = decisions.units.mean(decisions.worth.max(axis=0))
    constant = decisions.constant(best)
    return Worth(measured(decisions.utility), measured(over), constant.value, _name(inputs, best), ideal.value)


def _name(inputs: Inputs, action: int) -> str:
    return inputs.decision.taken[action] if isinstance(inputs.decision, Task | ClassDecision) else str(action)
