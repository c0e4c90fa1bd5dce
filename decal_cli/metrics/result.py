"""What measuring gives: a value with its interval, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from decal_cli.metrics.confidence import Interval
from decal_cli.task import Matrix


class Witness(NamedTuple):
    """Where a supremum over decision tasks is attained; payoffs in [0, 1].

    utility[i][j]: payoff of action i at outcome j, two actions for one threshold, three for two. pasted: the worst task
    of two actions, which --utility takes, and loss: what is lost in it, shown there by the metric shown_by.
    """

    utility: tuple[tuple[float, float], ...]
    thresholds: tuple[float, ...]
    pasted: Matrix
    loss: float
    shown_by: str


@dataclass(frozen=True)
class Result:
    """A metric's value with its interval, or the reason why it is undefined; the task that attains a supremum.

    text: how the value is written where rounding it as usual would change what it means; empty elsewhere.
    """

    value: float | None
    interval: Interval | None = None
    reason: str | None = None
    witness: Witness | None = None
    text: str = ""
