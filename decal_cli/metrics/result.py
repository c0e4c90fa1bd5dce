"""What measuring gives: a value with its interval, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from decal_cli.metrics.confidence import Interval

Side = Literal["at least", "at most"]
"""Of an interval one end of which alone says something: the other is the most, or least, that there can be."""


class Witness(NamedTuple):
    """Where a supremum over decision tasks is attained; payoffs in [0, 1].

    utility[i][j]: payoff of action i at outcome j, two actions for one threshold, three for two; of several classes any
    number of actions, and no thresholds. loss: what is lost in it; given as --utility, the metric shown_by shows that.
    of_two: the worst task of two actions, where this has three.
    """

    utility: tuple[tuple[float, ...], ...]
    thresholds: tuple[float, ...]
    loss: float
    shown_by: str
    of_two: Witness | None = None


class Within(NamedTuple):
    """Of a value computed from cells of the score: how far it may be from that of the rows; 0 is exact.

    drawn: it rests on folds or draws, which are of cells besides; bound is of what they estimate.
    """

    bound: float
    drawn: bool = False


@dataclass(frozen=True)
class Result:
    """A metric's value with its interval, or the reason why it is undefined; the task that attains a supremum.

    text: how the value is written where rounding it as usual would change what it means; empty elsewhere. within: of a
    value from cells of the score. no_interval: why there is no interval, where the metric has one on other rows. side:
    which end of the interval says something, where the other is but what the quantity can be.
    """

    value: float | None
    interval: Interval | None = None
    reason: str | None = None
    witness: Witness | None = None
    text: str = ""
    within: Within | None = None
    no_interval: str | None = None
    side: Side | None = None

    @property
    def missing(self) -> str | None:
        """Why the value, or its interval, is not there; None where nothing is missing."""
        return f"no interval: {self.no_interval}" if self.no_interval else self.reason
