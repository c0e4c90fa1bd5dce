"""The evaluation procedure of [R, appendix A] as data: questions, pure rules, answers with the numbers they rest on.

Every rule is statistical. A gain is there ("yes") where its interval lies above 0, it does not matter ("no") where its
interval ends at or below the tolerance, and is unknown in between. The gains are those judged on held-out rows: the
plug-in regrets are shown, but noise alone makes them positive and nothing is decided on them.

Where costs are given, intervals that cannot tell a gain from its cost do not stop the walk: between actions the one
with the largest estimated gain after its cost is taken, because waiting has a price as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from decal_cli.analysis.flowchart.evidence import (
    BEYOND,
    FITS,
    GAINS,
    MEANS,
    NEW_THRESHOLD,
    RECALIBRATION,
    TOGETHER,
    UTILITY,
    WORST,
    Action,
    Answer,
    Evidence,
    Interval,
    Item,
)


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
        advice = _satisfied(evidence, (suboptimal,), "done")
        return replace(advice, next_steps=(*advice.next_steps, _UNSEEN)) if evidence.features else advice
    if suboptimal.answer == "unknown":
        return _undecided(evidence, suboptimal)
    origin = _origin(evidence)
    natural: Action = "post-train" if origin.answer == "no" else "recalibrate"
    steps: tuple[Step, ...] = (suboptimal, origin)
    if set(evidence.costs) >= set(GAINS):
        return _bought(evidence, steps, natural)
    worth = _worth(evidence, natural)
    steps = (*steps, worth)
    if _pays(evidence, natural, worth):
        return _method(evidence, steps, natural)
    if natural == "post-train" and evidence.gain(RECALIBRATION) == "yes":
        cheaper = _worth(evidence, "recalibrate")
        steps = (*steps, cheaper)
        if _pays(evidence, "recalibrate", cheaper):
            return _method(evidence, steps, "recalibrate")
    return _satisfied(evidence, steps, "do-not-post-train")


TRY = "`decal recommend --try` compares methods and starts over with the best."
"""Said to whoever has not tried yet."""
_UNSEEN = (
    "What only products of features show is not seen here (docs/probe.md); `decal recommend --try` fits trees too."
)
"""Said where nothing seems to be won: the estimate's blind spot."""


def _pays(evidence: Evidence, action: Action, worth: Step) -> bool:
    """Whether to go on with an action: where the intervals do not say, and there is a cost, by the estimate."""
    if worth.answer != "unknown" or action not in evidence.costs:
        return worth.answer != "no"
    net = evidence.net(action)
    return net is None or net > 0


def _bought(evidence: Evidence, steps: tuple[Step, ...], natural: Action) -> Advice:
    """Both costs are known: the action that leaves most, with the one that question 2 points to shown beside it."""
    best = evidence.best
    steps = (*steps, _worth(evidence, natural))
    if best == "done":
        return _satisfied(evidence, steps, "do-not-post-train")
    if best != natural:
        steps = (*steps, _worth(evidence, best))
    return _method(evidence, steps, best)


def _suboptimal(evidence: Evidence) -> Step:
    """Question 1, regret > 0."""
    found = {metric: evidence.gain(metric) for metric in (RECALIBRATION, BEYOND, TOGETHER)}
    shown = [RECALIBRATION, BEYOND, TOGETHER] if evidence.features else [RECALIBRATION, WORST]
    answer: Answer
    if "yes" in found.values():
        answer = "yes"
    elif found[RECALIBRATION] == "no" and (found[BEYOND] == "no" or _harmless(evidence)):
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
        clear = [metric for metric in (RECALIBRATION, BEYOND) if found[metric] == "yes"] or [TOGETHER]
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
    for metric in (RECALIBRATION, BEYOND) if evidence.features else (RECALIBRATION,):
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
    BEYOND: "deciding by the features (on top of recalibration)",
    TOGETHER: "recalibration and the features together",
}


def _origin(evidence: Evidence) -> Step:
    """Question 2, regret ~ regret_calibration: miscalibration unless the features clearly win more."""
    items = [evidence.item(metric) for metric in ("regret_calibration", RECALIBRATION)]
    if evidence.features:
        items += [evidence.item(metric) for metric in ("regret_grouping", "grouping_loss", BEYOND)]
    recalibration, beyond = evidence.gain(RECALIBRATION), evidence.gain(BEYOND)
    question = "Does the loss come from miscalibration?"
    answer: Answer
    if beyond == "yes":
        answer, reason = "no", _REASONS[recalibration].format(limit=f"{evidence.tolerated:.4g} per decision")
    elif recalibration != "yes":
        answer, reason = "no", "Neither cause alone is clear, only both together: a method that removes both is needed."
    elif beyond == "no":
        answer, reason = "yes", f"Beyond recalibration, the features win at most {evidence.tolerated:.4g} per decision."
    elif not evidence.features:
        answer = "unknown"
        reason = "Recalibration wins; what features know beyond the score cannot be said without them."
    else:
        answer = "unknown"
        reason = (
            "Recalibration wins; whether the features win more is not clear, and recalibration is the cheaper step."
        )
    return Step(question, answer, reason, tuple(items))


_REASONS: Mapping[Answer, str] = {
    "yes": "Only in part: recalibration wins some of it, the features clearly more.",
    "unknown": "Not alone: recalibration may win part of it; the features clearly win more.",
    "no": (
        "Recalibration wins at most {limit}, the tolerance; rows of one score differ by features, and deciding by "
        "these wins."
    ),
}


def _worth(evidence: Evidence, action: Action) -> Step:
    """Question 3, the cost of the method against what it wins."""
    question = f"Is {MEANS[action].split(',')[0]} worth its cost?"
    item, cost = evidence.item(GAINS[action]), evidence.costs.get(action)
    if cost is None:
        reason = "No cost was given (--cost): the gain stands against whatever the method costs."
        return Step(question, "unknown", reason, (item,))
    if item.value is None or item.interval is None:
        return Step(question, "unknown", f"Its gain cannot be said: it {item.reason or 'has no interval'}.", (item,))
    low, high = item.interval
    compared = f"{cost:.4g} per decision against {item.value:.4g} ({low:.4g} to {high:.4g})"
    if high < cost:
        return Step(question, "no", f"It costs more than it wins: {compared}.", (item,))
    other, left = _other(evidence, action), item.value - cost
    if other is not None and other[1] > left:
        reason = f"{compared}, which leaves {left:.4g}; {MEANS[other[0]]} leaves more after its cost, {other[1]:.4g}."
        return Step(question, "no", f"By the estimates it is not the better buy: {reason}", (item,))
    if low > cost:
        return Step(question, "yes", f"It costs less than it wins: {compared}.", (item,))
    estimate = "by the estimate it pays" if left > 0 else "by the estimate it does not pay"
    return Step(question, "unknown", f"Cost and gain cannot be told apart, {estimate}: {compared}.", (item,))


def _other(evidence: Evidence, action: Action) -> tuple[Action, float] | None:
    """The other action with what it leaves after its cost, where both have a cost and it leaves anything."""
    if not set(evidence.costs) >= set(GAINS):
        return None
    other: Action = "recalibrate" if action == "post-train" else "post-train"
    left = evidence.net(other)
    return (other, left) if left is not None and left > 0 else None


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
    after = f"`decal fit {FITS[action]}` carries it out and judges it on rows it has not seen."
    steps_next: tuple[str, ...] = (after, TRY)
    moved = evidence.item(NEW_THRESHOLD).value
    if action == "recalibrate" and moved is not None:
        same = f"For this decision alone the same is won without a new model: decide 1 from a score of {moved:.4g} on."
        steps_next = (same, after, TRY)
    return Advice(steps, action, MEANS[action], item.value, item.interval, steps_next)


def _undecided(evidence: Evidence, suboptimal: Step) -> Advice:
    """Unknown whether anything is to be won: not worth it at any rate, or say what would settle it."""
    costs = [_worth(evidence, action) for action in ("recalibrate", "post-train") if action in evidence.costs]
    asked = 2 if evidence.features else 1
    if evidence.features and len(costs) == asked and all(step.answer == "no" for step in costs):
        return _satisfied(evidence, (suboptimal, *costs), "do-not-post-train")
    doubtful = [metric for metric in (RECALIBRATION, BEYOND) if evidence.gain(metric) == "unknown"]
    counts = [_rows_to_settle(evidence, evidence.item(metric)) for metric in doubtful]
    known = [rows for rows in counts if rows is not None]
    lean = evidence.best
    if evidence.features:
        rows = max(known, default=None)
        then = (*_more_rows(rows, "the question"), _leaning(evidence, lean))
        return Advice((suboptimal,), "cannot-tell", next_steps=then, rows_needed=rows, lean=lean)
    advice = "Name the feature columns (--features): more rows alone do not show what lies beyond the score."
    about_recalibration = _more_rows(max(known, default=None), "whether recalibration wins")
    then = (advice, *about_recalibration, _leaning(evidence, lean))
    return Advice((suboptimal,), "cannot-tell", next_steps=then, lean=lean)


def _leaning(evidence: Evidence, lean: Action) -> str:
    """What to do for whoever cannot wait."""
    if lean == "done":
        return "If it must be decided now: leave the model as it is; by the estimates nothing pays."
    after = " after its cost" if lean in evidence.costs else ""
    left = evidence.net(lean) or 0.0
    return f"If it must be decided now: {MEANS[lean]}, which by the estimates wins {left:.4g} per decision{after}."


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
