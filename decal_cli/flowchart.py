"""The evaluation procedure of [R, appendix A] as data: questions, pure rules, answers with the numbers they rest on.

Every rule is statistical. A gain is there ("yes") where its interval lies above 0, it does not matter ("no") where its
interval ends at or below the tolerance, and is unknown in between. The gains are those judged on held-out rows: the
plug-in regrets are shown, but noise alone makes them positive and nothing is decided on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Interval = tuple[float, float]
Answer = Literal["yes", "no", "unknown"]
Action = Literal["done", "recalibrate", "post-train", "do-not-post-train", "find-better-features", "cannot-tell"]

RECALIBRATION, REGIONS, TOGETHER = "gain_recalibration", "gain_regions", "gain_post_training"
WORST, UTILITY, NEW_THRESHOLD = "regret_grouping_worst", "expected_utility", "threshold_adjusted"

EVIDENCE_KEYS = (
    RECALIBRATION,
    REGIONS,
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

METHODS: Mapping[Action, str] = {
    "recalibrate": "isotonic recalibration",
    "post-train": "stacking on the score and the features",
}
FITS: Mapping[Action, str] = {"recalibrate": "isotonic", "post-train": "stack"}
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
        """The gain per decision that does not matter."""
        return TOLERANCE * self.u_delta if self.tolerance is None else self.tolerance

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


@dataclass(frozen=True)
class Step:
    """One question of the flowchart with its answer."""

    question: str
    answer: Answer
    reason: str
    evidence: tuple[Item, ...] = ()


@dataclass(frozen=True)
class Advice:
    """Where the walk ended. gain, interval: to expect from the action, per decision; None where it wins nothing."""

    steps: tuple[Step, ...]
    action: Action
    method: str | None = None
    gain: float | None = None
    interval: Interval | None = None
    next_steps: tuple[str, ...] = ()
    rows_needed: int | None = None
    """Rows that would settle an "unknown"; None where more rows alone would not, or nothing is unknown."""
    lean: Action | None = None
    """The action of the largest estimated net gain, where the walk cannot tell."""

    @property
    def fit(self) -> str | None:
        """The method of `decal fit` that carries the action out; None where there is nothing to fit."""
        return FITS.get(self.action)


def walk(evidence: Evidence) -> Advice:
    """The advice that the flowchart gives on this evidence."""
    suboptimal = _suboptimal(evidence)
    if suboptimal.answer == "no":
        return _satisfied(evidence, (suboptimal,), "done")
    if suboptimal.answer == "unknown":
        return _undecided(evidence, suboptimal)
    origin = _origin(evidence)
    chosen: Action = "post-train" if origin.answer == "no" else "recalibrate"
    worth = _worth(evidence, chosen)
    steps: tuple[Step, ...] = (suboptimal, origin, worth)
    if worth.answer != "no":
        return _method(evidence, steps, chosen)
    if chosen == "post-train" and evidence.gain(RECALIBRATION) == "yes":
        cheaper = _worth(evidence, "recalibrate")
        steps = (*steps, cheaper)
        if cheaper.answer != "no":
            return _method(evidence, steps, "recalibrate")
    return _satisfied(evidence, steps, "do-not-post-train")


def _suboptimal(evidence: Evidence) -> Step:
    """Question 1, regret > 0."""
    found = {metric: evidence.gain(metric) for metric in (RECALIBRATION, REGIONS, TOGETHER)}
    shown = [RECALIBRATION, REGIONS, TOGETHER] if evidence.features else [RECALIBRATION, WORST]
    answer: Answer
    if "yes" in found.values():
        answer = "yes"
    elif found[RECALIBRATION] == "no" and (found[REGIONS] == "no" or _harmless(evidence)):
        answer = "no"
    else:
        answer = "unknown"
    items = tuple(evidence.item(metric) for metric in shown)
    question = "Does acting on the score lose utility that post-training could win?"
    return Step(question, answer, _suboptimal_reason(evidence, answer, found), items)


def _harmless(evidence: Evidence) -> bool:
    """Whether even the worst case of what features could win lies within the tolerance."""
    interval = evidence.item(WORST).interval
    return not evidence.features and interval is not None and interval[1] <= evidence.tolerated


def _suboptimal_reason(evidence: Evidence, answer: Answer, found: Mapping[str, Answer]) -> str:
    limit = f"{evidence.tolerated:.4g} per decision"
    if answer == "yes":
        clear = [metric for metric in (RECALIBRATION, REGIONS) if found[metric] == "yes"] or [TOGETHER]
        won_by = " and by ".join(_WON_BY[metric] for metric in clear)
        return f"Judged on rows held out, utility is won by {won_by}: the interval lies above 0."
    if answer == "no":
        if evidence.features:
            return f"Neither recalibration nor the features could win more than {limit}, the tolerance."
        return f"Recalibration could win at most {limit}, the tolerance; features, even in the worst case, no more."
    return " ".join(_doubts(evidence, limit))


def _doubts(evidence: Evidence, limit: str) -> list[str]:
    """Why it is unknown whether there is anything to win, a sentence for each gain."""
    said = []
    for metric in (RECALIBRATION, REGIONS) if evidence.features else (RECALIBRATION,):
        item, who = evidence.item(metric), _WON_BY[metric]
        if item.interval is None:
            said.append(f"What {who} wins cannot be said: it {item.reason or 'has no interval'}.")
        elif evidence.gain(metric) == "no":
            said.append(f"What {who} could win is at most {limit}, the tolerance.")
        else:
            said.append(f"What {who} wins may be nothing and may be more than {limit}, the tolerance: too few rows.")
    if not evidence.features:
        said.append("What features know beyond the score cannot be said without them.")
    return said


_WON_BY = {
    RECALIBRATION: "recalibration",
    REGIONS: "deciding by region of the features (on top of recalibration)",
    TOGETHER: "recalibration and regions together",
}


def _origin(evidence: Evidence) -> Step:
    """Question 2, regret ~ regret_calibration: miscalibration unless regions clearly win more."""
    items = [evidence.item(metric) for metric in ("regret_calibration", RECALIBRATION)]
    if evidence.features:
        items += [evidence.item(metric) for metric in ("regret_grouping", "grouping_loss", REGIONS)]
    recalibration, regions = evidence.gain(RECALIBRATION), evidence.gain(REGIONS)
    question = "Does the loss come from miscalibration?"
    answer: Answer
    if regions == "yes":
        answer, reason = "no", _BEYOND[recalibration].format(limit=f"{evidence.tolerated:.4g} per decision")
    elif recalibration != "yes":
        answer, reason = "no", "Neither cause alone is clear, only both together: a method that removes both is needed."
    elif regions == "no":
        answer, reason = "yes", f"Beyond recalibration, regions win at most {evidence.tolerated:.4g} per decision."
    elif not evidence.features:
        answer = "unknown"
        reason = "Recalibration wins; what features know beyond the score cannot be said without them."
    else:
        answer = "unknown"
        reason = "Recalibration wins; whether regions win more is not clear, and recalibration is the cheaper step."
    return Step(question, answer, reason, tuple(items))


_BEYOND: Mapping[Answer, str] = {
    "yes": "Only in part: recalibration wins some of it, deciding by region of the features clearly more.",
    "unknown": "Not alone: recalibration may win part of it; deciding by region of the features clearly wins more.",
    "no": (
        "Recalibration wins at most {limit}, the tolerance; rows of one score differ by features, and deciding by "
        "region wins."
    ),
}


def _worth(evidence: Evidence, action: Action) -> Step:
    """Question 3, the cost of the method against what it wins."""
    question = f"Is {METHODS[action].split(',')[0]} worth its cost?"
    item, cost = evidence.item(GAINS[action]), evidence.costs.get(action)
    if cost is None:
        reason = "No cost was given (--cost): the gain stands against whatever the method costs."
        return Step(question, "unknown", reason, (item,))
    if item.value is None or item.interval is None:
        return Step(question, "unknown", f"Its gain cannot be said: it {item.reason or 'has no interval'}.", (item,))
    low, high = item.interval
    compared = f"{cost:.4g} per decision against {item.value:.4g} ({low:.4g} to {high:.4g})"
    if low > cost:
        return Step(question, "yes", f"It costs less than it wins: {compared}.", (item,))
    if high < cost:
        return Step(question, "no", f"It costs more than it wins: {compared}.", (item,))
    return Step(question, "unknown", f"Cost and gain cannot be told apart: {compared}.", (item,))


def _satisfied(evidence: Evidence, steps: tuple[Step, ...], otherwise: Action) -> Advice:
    """Question 4, and where it leads: better features, or nothing more to do."""
    item, wanted = evidence.item(UTILITY), evidence.satisfied_at
    question = "Is the expected utility good enough?"
    if wanted is None:
        step = Step(question, "unknown", "No level was given that would be good enough (--satisfied-at).", (item,))
    elif item.interval is None:
        step = Step(question, "unknown", f"It cannot be said: it {item.reason or 'has no interval'}.", (item,))
    elif item.interval[0] >= wanted:
        step = Step(question, "yes", f"It is at least {wanted:.4g}: {_span(item)}.", (item,))
    elif item.interval[1] < wanted:
        step = Step(question, "no", f"It is below {wanted:.4g}: {_span(item)}.", (item,))
    else:
        step = Step(question, "unknown", f"It cannot be told apart from {wanted:.4g}: {_span(item)}.", (item,))
    steps = (*steps, step)
    if step.answer == "no":
        advice = "Look for features that separate the outcomes better, train again, and start over with the new model."
        return Advice(steps, "find-better-features", next_steps=(advice,))
    rows = None
    if step.answer == "unknown" and wanted is not None and item.value is not None:
        rows = _rows_for(evidence.rows, item, abs(item.value - wanted))
    return Advice(steps, otherwise, next_steps=_more_rows(rows, "the last question"), rows_needed=rows)


def _method(evidence: Evidence, steps: tuple[Step, ...], action: Action) -> Advice:
    item = evidence.item(GAINS[action])
    after = "Evaluate the new model on rows that its post-training has not seen: start over with it."
    steps_next: tuple[str, ...] = (after,)
    moved = evidence.item(NEW_THRESHOLD).value
    if action == "recalibrate" and moved is not None:
        same = f"For this decision alone the same is won without a new model: decide 1 from a score of {moved:.4g} on."
        steps_next = (same, after)
    return Advice(steps, action, METHODS[action], item.value, item.interval, steps_next)


def _undecided(evidence: Evidence, suboptimal: Step) -> Advice:
    """Unknown whether anything is to be won: not worth it at any rate, or say what would settle it."""
    costs = [_worth(evidence, action) for action in ("recalibrate", "post-train") if action in evidence.costs]
    asked = 2 if evidence.features else 1
    if evidence.features and len(costs) == asked and all(step.answer == "no" for step in costs):
        return _satisfied(evidence, (suboptimal, *costs), "do-not-post-train")
    doubtful = [metric for metric in (RECALIBRATION, REGIONS) if evidence.gain(metric) == "unknown"]
    counts = [_rows_to_settle(evidence, evidence.item(metric)) for metric in doubtful]
    known = [rows for rows in counts if rows is not None]
    if evidence.features:
        rows = max(known, default=None)
        return Advice((suboptimal,), "cannot-tell", next_steps=_more_rows(rows, "the question"), rows_needed=rows)
    advice = "Name the feature columns (--features): more rows alone do not show what lies beyond the score."
    about_recalibration = _more_rows(max(known, default=None), "whether recalibration wins")
    return Advice((suboptimal,), "cannot-tell", next_steps=(advice, *about_recalibration))


def _rows_to_settle(evidence: Evidence, item: Item) -> int | None:
    """Rows at which this gain's interval would leave 0 or stay within the tolerance, were the gain what it seems."""
    if item.value is None:
        return None
    tolerated = evidence.tolerated
    return _rows_for(evidence.rows, item, max(item.value, tolerated - item.value, tolerated / 2))


def _rows_for(rows: int, item: Item, margin: float) -> int | None:
    """Rows at which the interval reaches no further than the margin: its width shrinks as 1 / sqrt(rows)."""
    if item.interval is None or not margin > 0:
        return None
    needed = rows * ((item.interval[1] - item.interval[0]) / 2 / margin) ** 2
    if not needed < 1e12:
        return None
    unit = 10 ** max(math.floor(math.log10(max(needed, 1))) - 1, 0)
    return max(unit * math.ceil(needed / unit - 1e-9), rows + 1)


def _more_rows(rows: int | None, what: str) -> tuple[str, ...]:
    return () if rows is None else (f"About {rows:,} rows like these would settle {what}.",)


def _span(item: Item) -> str:
    low, high = item.interval or (math.nan, math.nan)
    return f"{item.value:.4g} ({low:.4g} to {high:.4g})"
