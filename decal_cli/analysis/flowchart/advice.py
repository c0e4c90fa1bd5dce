"""Where the flowchart ends: the answers on the way, the action, what it wins and what to do until it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from decal_cli.analysis.flowchart.evidence import FITS, LIKELY, Action, Answer, Constant, Interval, Item
from decal_cli.declarations.document import Hidden


@dataclass(frozen=True)
class Step:
    """One question of the flowchart with its answer. number: of the question, 1 to 4. small: "yes", but the gain is
    within the tolerance.
    """

    number: int
    question: str
    answer: Answer
    reason: str
    evidence: tuple[Item, ...] = ()
    small: bool = False


@dataclass(frozen=True)
class Interim:
    """What can be done at once and at no cost: act from another threshold, or always decide the same.

    threshold: the number to act from, as it is to be written; decision: the constant decision. One of both is None.
    gain, interval: what it wins over acting on the score as it is, per decision, on held-out rows.
    """

    threshold: str | None
    decision: int | str | None
    gain: float
    interval: Interval | None


Now = Literal["done", "recalibrate", "post-train"]
"""What can be done today."""


@dataclass(frozen=True)
class ActNow:
    """What to do today, however sure it is.

    method: as `decal fit` knows it; None for "done". gain: what it is expected to win after its cost, per decision; 0
    for "done". chance: that it wins anything, of "done" that no method wins more than the tolerance; None where no
    error is known.
    """

    action: Now
    method: str | None
    gain: float
    chance: float | None
    costly: Hidden[bool] = False
    """Whether a cost was taken off the gain."""


Certainty = Literal["clear", "likely", "open"]


@dataclass(frozen=True)
class Advice:
    """The action with what it rests on.

    gain, interval: what `method` is expected to win, per decision; None where the action wins nothing. small: the gain
    is clear but within the tolerance. stakes: what perfect decisions are worth more than the best constant one.
    tolerance: the gain that is too small to matter. constant: the constant decision that the score does not beat.
    interim: what wins something at once. rows_needed: rows that settle an "unknown" in 4 of 5 cases; None where more
    rows alone would not, or nothing is unknown. lean: the action with the largest estimated net gain, where the walk
    cannot tell. act_now: what to do today. lead: the sentences that say so, the first of them the action and what it
    wins.
    """

    steps: tuple[Step, ...]
    action: Action
    gain: float | None = None
    interval: Interval | None = None
    small: bool = False
    next_steps: tuple[str, ...] = ()
    stakes: float = 0.0
    tolerance: float = 0.0
    constant: Constant | None = None
    useless: bool = False
    interim: Interim | None = None
    rows_needed: int | None = None
    lean: Action | None = None
    act_now: ActNow = ActNow("done", None, 0.0, None)
    lead: tuple[str, ...] = ()
    acted_on: Hidden[float] = 0.0
    """The gain from which what is not clear is acted on."""
    fits: Mapping[Action, str] = field(default_factory=lambda: FITS)
    """The method that each action names."""

    @property
    def method(self) -> str | None:
        """The method that the action names, as `decal fit` knows it; None where there is nothing to fit."""
        return self.fits.get(self.action)

    @property
    def same(self) -> tuple[Now, str | None, str | None]:
        """What makes advice the same: what to do now, its method, and a constant decision in place of the score."""
        now, constant = self.act_now, self.constant
        instead = constant is not None and constant.gain > 0 and now.action == "done"
        return now.action, now.method, constant.words if instead and constant is not None else None

    @property
    def certainty(self) -> Certainty:
        """How sure act_now is: the flowchart answers and its gain is above 0, or it is likely all the same, or open."""
        shown = self.interval is None or self.interval[0] > 0
        if self.action != "cannot-tell" and (shown or self.act_now.costly):
            return "clear"
        return "likely" if (self.act_now.chance or 0.0) >= LIKELY else "open"

    @property
    def headline(self) -> str:
        """The action as one sentence."""
        if self.action in ("recalibrate", "post-train"):
            what = "Recalibrate" if self.action == "recalibrate" else "Post-train on the features"
            return f"{what} with {self.method}{': the gain is clear but small' if self.small else ''}."
        if self.action == "done" and self.constant is not None:
            worth = "worth more" if self.constant.gain > 0 else "worth as much"
            return f"Nothing to fit: no method wins anything that matters, and {self.constant.doing} is {worth}."
        if self.action == "find-better-features" and self.useless and self.constant is not None:
            return f"Find better features; until then {self.constant.words}."
        if self.action == "do-not-post-train" and self.constant is not None and self.constant.gain > 0:
            return f"Do not post-train; {self.constant.words}, which is free."
        return _HEADLINES[self.action]


_HEADLINES = {
    "done": "Done: use the model as it is.",
    "do-not-post-train": "Do not post-train: it costs more than it wins.",
    "find-better-features": "Find better features: post-training cannot win what is missing.",
    "cannot-tell": "Cannot tell yet.",
}
