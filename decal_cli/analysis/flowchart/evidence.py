"""What the walk looks at: gains and their intervals, costs, and what does not matter; actions and what they go by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Interval = tuple[float, float]
Answer = Literal["yes", "no", "unknown"]
Action = Literal["done", "recalibrate", "post-train", "do-not-post-train", "find-better-features", "cannot-tell"]

RECALIBRATION, BEYOND, TOGETHER = "gain_recalibration", "gain_beyond", "gain_post_training"
WORST, UTILITY, NEW_THRESHOLD = "regret_grouping_worst", "expected_utility", "threshold_adjusted"

EVIDENCE_KEYS = (
    RECALIBRATION,
    BEYOND,
    TOGETHER,
    "regret_calibration",
    "regret_grouping",
    "grouping_loss",
    WORST,
    UTILITY,
    NEW_THRESHOLD,
)
"""Keys of the metrics that an Evidence holds."""

TOLERANCE = 0.01
"""Gain per decision, in multiples of u_delta, that does not matter unless the user says otherwise."""

MEANS: Mapping[Action, str] = {
    "recalibrate": "isotonic recalibration",
    "post-train": "stacking on the score and the features",
}
FITS: Mapping[Action, str] = {"recalibrate": "isotonic", "post-train": "blend"}
"""The method of `decal fit` that each action names."""
GAINS: Mapping[Action, str] = {"recalibrate": RECALIBRATION, "post-train": TOGETHER}


@dataclass(frozen=True)
class Item:
    """A metric with its interval; value None, and the reason, where it is undefined."""

    metric: str
    value: float | None = None
    interval: Interval | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Evidence:
    """All that the walk looks at. Utilities, tolerance and costs are per decision, in the user's unit.

    items: by metric, EVIDENCE_KEYS; one that is missing counts as undefined. costs: by action, "recalibrate" and
    "post-train"; satisfied_at: the expected utility that is good enough; features: whether the user gave some.
    """

    items: Mapping[str, Item]
    u_delta: float
    rows: int
    features: bool
    tolerance: float | None = None
    costs: Mapping[str, float] = field(default_factory=dict)
    satisfied_at: float | None = None

    @property
    def tolerated(self) -> float:
        """The gain per decision that does not matter: as the user says, else TOLERANCE, or the least cost below it."""
        if self.tolerance is not None:
            return self.tolerance
        return min([TOLERANCE * self.u_delta, *(cost for cost in self.costs.values() if cost > 0)])

    def net(self, action: Action) -> float | None:
        """The estimated gain of an action after its cost, 0 where none was given; None where it is undefined."""
        value = self.item(GAINS[action]).value
        return None if value is None else value - self.costs.get(action, 0.0)

    @property
    def best(self) -> Action:
        """The action of the largest estimated gain after its cost; "done" where none is above 0."""
        found = {action: net for action in GAINS if (net := self.net(action)) is not None and net > 0}
        return max(found, key=lambda action: found[action], default="done")

    def item(self, metric: str) -> Item:
        """The metric, as undefined where it was not computed."""
        return self.items.get(metric, Item(metric, reason="was not computed"))

    def gain(self, metric: str) -> Answer:
        """Whether there is such a gain."""
        interval = self.item(metric).interval
        if interval is None:
            return "unknown"
        if interval[1] <= self.tolerated:
            return "no"
        return "yes" if interval[0] > 0 else "unknown"
