"""The evaluation procedure of [R, appendix A] as data: evidence in, the answers on the way and the action out.

A clear gain within the tolerance is "yes" and marked small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal

from decal_cli.analysis.evidence import (
    BEYOND,
    CONSTANT_LEAD,
    GAINS,
    NEW_THRESHOLD,
    OVER_CONSTANT,
    POST_TRAINING,
    RECALIBRATION,
    SIGNAL,
    UTILITY,
    WORST_CASE,
    Action,
    Answer,
    Constant,
    Evidence,
    Item,
)
from decal_cli.data.words import listed
from decal_cli.declarations.document import Hidden, Limit, Names
from decal_cli.hints import Hint, Verb, said
from decal_cli.learn.held_out import MIN_ISOTONIC_ROWS
from decal_cli.metrics.confidence import Reach
from decal_cli.numbers import (
    LIKELY,
    Interval,
    alike,
    around,
    bounds,
    chance_words,
    p_value,
    plain,
    shifted,
)

Now = Literal["done", "recalibrate", "post-train"]
"""What can be done today."""
Certainty = Literal["clear", "likely", "open"]
CLEAR_CHANCE = 0.975
"""A chance that needs no word beside it."""

TRY = (
    f"`{Verb('recommend', 'try')}` fits the methods, compares them on held-out rows and starts over with the best one."
)
"""Said to whoever has not tried yet."""
_SIGNS = {RECALIBRATION: NEW_THRESHOLD, BEYOND: SIGNAL}
"""What may show that there is such a gain before its interval does."""
_BACKWARDS = (
    "The score ranks backwards: higher scores go with fewer positives (AUC below 0.5). Check the label column, "
    f"{Hint('positive')} and the direction of the score."
)
_BETTER_FEATURES = "Find features that separate the outcomes better, train"
_SUBJECT = {
    RECALIBRATION: "recalibration",
    BEYOND: "using the features on top of recalibration",
    POST_TRAINING: "both together",
}


@dataclass(frozen=True)
class Step:
    """A question of the flowchart with its answer. small: "yes", but the gain is within the tolerance."""

    number: Annotated[int, Limit(minimum=1, maximum=4)]
    question: str
    answer: Answer
    small: bool
    reason: str
    evidence: tuple[Item, ...]


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


@dataclass(frozen=True)
class ActNow:
    """What to do today.

    method: as `decal fit` knows it; None for "done". gain: what it is expected to win after its cost, per decision; 0
    for "done". chance: that it wins anything beyond what is free, of "done" that no method wins more than the
    tolerance; None where no error is known. costly: whether a cost was taken off the gain. decision: the constant
    decision to take in place of the score, where the action is "done" and that is worth more.
    """

    action: Now
    method: str | None
    gain: float
    chance: float | None
    interval: Hidden[Interval | None] = None
    """The interval of the gain, after its cost as well."""
    costly: Hidden[bool] = False
    decision: int | str | None = None


@dataclass(frozen=True)
class Advice:
    """The action with the evidence that it rests on.

    gain, interval: what `method` is expected to win, per decision; None where the action wins nothing. small: the gain
    is clear but within the tolerance. rows_needed: rows that settle an "unknown" in 4 of 5 cases; None where more rows
    alone would not, or nothing is unknown. fallback_action: what to do today, where the walk cannot tell.
    """

    evidence: Evidence = field(repr=False)
    steps: tuple[Step, ...]
    action: Action
    gain: float | None = None
    interval: Interval | None = None
    small: bool = False
    next_steps: Names = ()
    rows_needed: int | None = None
    fallback_action: Action | None = None

    @property
    def constant(self) -> Constant | None:
        """The constant decision that the score does not beat."""
        return self.evidence.constant

    @property
    def instead(self) -> Constant | None:
        """The constant decision, where it is worth more than acting on the score; else None."""
        return self.constant if self.evidence.free > 0 else None

    @property
    def method(self) -> str | None:
        """The method that the action names, as `decal fit` knows it; None where there is nothing to fit."""
        return self.evidence.fits.get(self.action)

    @cached_property
    def act_now(self) -> ActNow:
        """What to do today: the action where that is one, else the one with the largest shrunken gain."""
        evidence, action = self.evidence, self.fallback_action or self.action
        if action == "recalibrate" or action == "post-train":
            net, chance = evidence.net(action) or 0.0, evidence.chance(action)
            ends = shifted(evidence.item(GAINS[action]).interval, -evidence.costs.get(action, 0.0))
            return ActNow(action, evidence.fits[action], net, chance, ends, action in evidence.costs)
        # What features would win is unknown; so is what methods that turn a score around would.
        is_open = not evidence.features and (self.action == "cannot-tell" or evidence.backwards)
        known = () if is_open else GAINS
        chances = [evidence.chance(each, evidence.tolerated) for each in known]
        chance = min((1 - chance for chance in chances if chance is not None), default=None)
        return ActNow("done", None, 0.0, chance, decision=self.instead.decision if self.instead else None)

    @property
    def todo(self) -> str:
        """What to do now, in a few words."""
        now = self.act_now
        if now.method is not None:
            return f"{now.action} with {now.method}"
        return self.instead.words if self.instead else "use as it is"

    @property
    def wins(self) -> tuple[float | None, Interval | None]:
        """What that wins per decision, after its cost, with its interval; None where the score is used as it is."""
        now, instead = self.act_now, self.instead
        if now.action == "done":
            return (instead.gain, instead.interval) if instead else (None, None)
        return now.gain, now.interval

    @property
    def same(self) -> tuple[Now, str | None, str | None]:
        """What makes advice the same: what to do now, its method, and a constant decision in place of the score."""
        now = self.act_now
        return now.action, now.method, self.instead.words if self.instead and now.action == "done" else None

    @property
    def certainty(self) -> Certainty:
        """How sure act_now is: the flowchart answers and its gain is above 0, or it is likely all the same, or open.

        Post-training is clear only where recalibration clearly is not enough: on the next rows both may be clear. And
        where a constant decision is worth more than the score, a method must clearly win more than that. Where costs
        decide, the gain must be above 0 after its cost, and that no method is worth its cost must be as sure.
        """
        enough_is_open = self.action == "post-train" and any((s.number, s.answer) == (2, "unknown") for s in self.steps)
        chance = self.act_now.chance or 0.0
        # So sure is what lies above the lower end of an interval.
        sure = chance > (1 + self.evidence.confidence) / 2
        nothing_to_win = self.interval is None and self.action != "do-not-post-train"
        if self.action != "cannot-tell" and not enough_is_open and (sure or nothing_to_win):
            return "clear"
        return "likely" if chance >= LIKELY else "open"

    @cached_property
    def interim(self) -> Interim | None:
        """What wins at once: a constant decision where no threshold is known to beat it, else the adjusted one."""
        gain, threshold = self.evidence.item(RECALIBRATION), self.evidence.item(NEW_THRESHOLD)
        if self.evidence.useless or gain.value is None:
            instead = self.instead
            return Interim(None, instead.decision, instead.gain, instead.interval) if instead else None
        if not gain.value > 0 or threshold.value is None:
            return None
        return Interim(threshold.text or repr(threshold.value), None, gain.value, gain.interval)

    @property
    def headline(self) -> str:
        """The action as one sentence."""
        constant = self.constant
        if self.action in ("recalibrate", "post-train"):
            what = "Recalibrate" if self.action == "recalibrate" else "Post-train on the features"
            return f"{what} with {self.method}{': the gain is clear but small' if self.small else ''}."
        if self.action == "done" and constant is not None:
            worth = "worth more" if constant.gain > 0 else "worth as much"
            return f"Nothing to fit: no method wins anything that matters, and {constant.doing} is {worth}."
        if self.action == "find-better-features" and self.evidence.useless and constant is not None:
            return f"Find better features; until then {constant.words}."
        if self.action == "do-not-post-train" and self.instead:
            return f"Do not post-train; {self.instead.words}, which is free."
        return {
            "done": "Done: use the model as it is.",
            "do-not-post-train": "Do not post-train: it costs more than it wins.",
            "find-better-features": "Find better features: post-training cannot win what is missing.",
            "cannot-tell": "Cannot tell yet.",
        }[self.action]

    @cached_property
    def lead(self) -> Names:
        """What to do today and what it wins, how sure that is, what of it is free, and what the score is worth."""
        return tuple(_lead(self, self.evidence, self.act_now))


def walk(evidence: Evidence) -> Advice:
    """The advice that follows from this evidence."""
    first = _suboptimal(evidence)
    if first.answer == "no":
        return _satisfied(evidence, (first,), "done")
    if first.answer == "unknown":
        return _undecided(evidence, first)
    origin, natural = _enough(evidence)
    steps: tuple[Step, ...] = (first, origin)
    whole = evidence.item(POST_TRAINING).value
    # By the estimates post-training wins no more than a constant decision.
    outdone = evidence.constant is not None and whole is not None and whole <= evidence.free
    if evidence.useless if natural == "recalibrate" else outdone:
        return _constant_instead(evidence, steps, natural)
    worth = _worth(evidence, natural)
    steps = (*steps, worth)
    if evidence.costs_known:
        # The action with the largest gain after its cost, beside the one that question 2 points to.
        best = evidence.best
        if best == "done" or (best == "recalibrate" and evidence.useless):
            return _satisfied(evidence, steps, "do-not-post-train")
        return _act(evidence, steps if best == natural else (*steps, _worth(evidence, best)), best)
    if _pays(evidence, natural, worth):
        return _act(evidence, steps, natural)
    if natural == "post-train" and evidence.gain(RECALIBRATION) == "yes" and not evidence.useless:
        cheaper = _worth(evidence, "recalibrate")
        steps = (*steps, cheaper)
        if _pays(evidence, "recalibrate", cheaper):
            return _act(evidence, steps, "recalibrate")
    return _satisfied(evidence, steps, "do-not-post-train")


# Question 1: is there anything to win?


def _suboptimal(evidence: Evidence) -> Step:
    """Question 1, regret > 0."""
    gains = {metric: evidence.gain(metric) for metric in (RECALIBRATION, BEYOND, POST_TRAINING)}
    shown = list(gains) if evidence.features else [RECALIBRATION, WORST_CASE]
    clear = [metric for metric in (RECALIBRATION, BEYOND) if gains[metric] == "yes"]
    if not clear and gains[POST_TRAINING] == "yes":
        clear = [POST_TRAINING]
    # Even the worst case of what features could win may lie within the tolerance; and where a row that could have been
    # missed does not widen the interval of a gain, no row can be decided wrongly.
    no_choice = bounds(evidence.item(RECALIBRATION).interval) == (0.0, 0.0)
    harmless = not evidence.features and (no_choice or evidence.item(WORST_CASE).most <= evidence.tolerated)
    nothing = gains[RECALIBRATION] == "no" and (gains[BEYOND] == "no" or harmless) and not evidence.unlearnable
    answer: Answer = "yes" if clear else "no" if nothing else "unknown"
    small = bool(clear) and all(map(evidence.small, clear))
    if answer == "unknown":
        shown += [sign for metric, sign in _SIGNS.items() if evidence.held_back(metric)]
    # Several classes have no worst case.
    items = tuple(evidence.item(metric) for metric in shown if metric in evidence.items or metric != WORST_CASE)
    one, tolerance = evidence.at_most(RECALIBRATION), evidence.say(evidence.tolerated)
    if clear:
        subjects = " and ".join(_SUBJECT[metric] for metric in clear)
        plural = len(clear) > 1 or clear == [POST_TRAINING]
        ends = [bounds(evidence.item(metric).interval) for metric in clear]
        just = "just " if len(clear) == 1 and 100 * ends[0][0] < ends[0][1] else ""
        above = f"the interval lies {just}above" if len(clear) == 1 else "both intervals lie above"
        reason = f"On held-out rows, {subjects} {'win' if plural else 'wins'}: {above} 0."
        if small:
            most = evidence.at_most(max(clear, key=lambda metric: evidence.item(metric).most))
            reason += f" The gain is small: {most}, within the tolerance of {tolerance}."
    elif answer == "unknown":
        reason = " ".join(_doubts(evidence))
    elif evidence.features:
        both = f"Recalibration wins {one}, the features {evidence.at_most(BEYOND)} on top of it"
        reason = f"{both}: no more than the tolerance, {tolerance}."
    else:
        most = evidence.at_most(WORST_CASE)
        reason = f"Recalibration wins {one}, and features {most} even in the worst case; the tolerance is {tolerance}."
    return Step(1, "Does acting on the score lose anything?", answer, small, reason, items)


def _doubts(evidence: Evidence) -> Iterator[str]:
    """Why it is unknown whether there is anything to win, a sentence for each gain."""
    tolerance = evidence.say(evidence.tolerated)
    for metric in (RECALIBRATION, BEYOND) if evidence.features else (RECALIBRATION,):
        item, subject = evidence.item(metric), _SUBJECT[metric]
        if item.interval is None:
            yield f"What {subject} wins is unknown: it {item.missing}."
        elif item.most <= evidence.tolerated:
            few = _sign(evidence, metric) if evidence.held_back(metric) else "."
            yield f"{subject.capitalize()} wins {evidence.at_most(metric)}, within the tolerance of {tolerance}{few}"
        else:
            yield (
                f"{subject.capitalize()} may win nothing, or more than the tolerance of {tolerance}: "
                "too few rows to tell."
            )
    if not evidence.features:
        yield "What features would add to the score is unknown: none were named."
    yield from evidence.not_learned


def _sign(evidence: Evidence, metric: str) -> str:
    """What shows that there is such a gain, though it is small on these rows."""
    if metric == BEYOND:
        shown = p_value(evidence.item(SIGNAL).value or 0.0)
        what = f"the features clearly say more than the score (p-value {shown})"
    else:
        interval = evidence.item(NEW_THRESHOLD).interval or (0.0, 1.0)
        low, high, now = alike((*interval, evidence.acts_from or 0.0))
        what = f"the best threshold to act from, {low} to {high}, is clearly not {now}"
    return f", by these rows. But {what}, and more rows may show more to win."


# Question 2: is recalibration enough?


def _enough(evidence: Evidence) -> tuple[Step, Action]:
    """Question 2, regret ~ regret_calibration, and the action that it leads to.

    Recalibration is enough where the features add nothing that matters, or a small gain where it clearly wins more than
    is small; it is not where they clearly add to it otherwise. Unknown leads to recalibration, which is the cheaper
    step, where its gain is clear.
    """
    recalibration, beyond = evidence.gain(RECALIBRATION), evidence.gain(BEYOND)
    answer: Answer = "unknown"
    action: Action = "recalibrate"
    share = _share_of_recalibration(evidence)
    top = evidence.item(BEYOND).value
    # The features clearly say more than the score, and by the estimates win what matters on top of it.
    promising = top is not None and top > evidence.tolerated / 2 and evidence.informative
    if recalibration != "yes" and beyond != "yes":
        action = "post-train"
        reason = "Neither of the two is clear alone, only both together: a method that does both is needed."
    elif beyond == "yes" and recalibration != "yes":
        answer, action = "no", "post-train"
        reason = f"Recalibration alone wins {evidence.at_most(RECALIBRATION)}; the features win on top of it."
        if recalibration == "unknown":
            alone = "whether recalibration alone wins is unknown"
            reason = f"On top of recalibration, the features clearly win; {alone}.{share}"
    elif beyond == "yes" and evidence.small(BEYOND) and not evidence.small(RECALIBRATION):
        answer, reason = "yes", f"The features add only a small gain, {evidence.at_most(BEYOND)}.{share}"
    elif beyond == "yes":
        answer, action = "no", "post-train"
        reason = f"The features clearly add to what recalibration wins.{share}"
    elif beyond == "no":
        answer, reason = "yes", f"The features win {evidence.at_most(BEYOND)} on top of it, within the tolerance."
    elif not evidence.features:
        reason = "Recalibration wins; what features would add is unknown: none were named."
    elif (
        promising
        and evidence.gain(POST_TRAINING) == "yes"
        and evidence.shrunken("post-train") > evidence.shrunken("recalibrate")
    ):
        action = "post-train"
        reason = (
            "The features clearly say more than the score, and by the estimate they win on top of it, though that gain "
            f"alone is not clear.{share}"
        )
    else:
        reason = f"Recalibration wins, and it is the cheaper step; whether the features add to it is unknown.{share}"
    shown = (RECALIBRATION, BEYOND) if evidence.features else (RECALIBRATION,)
    return Step(2, "Is recalibration enough?", answer, False, reason, tuple(map(evidence.item, shown))), action


def _share_of_recalibration(evidence: Evidence) -> str:
    """The share of the whole gain that recalibration alone wins, with its interval within 0 and 1.

    By the delta method for independent parts; empty where a part is undefined or negative.
    They are not both 0: there is a gain.
    """
    one, other = evidence.item(RECALIBRATION), evidence.item(BEYOND)
    if one.value is None or other.value is None or one.interval is None or other.interval is None:
        return ""
    if min(one.value, other.value) < 0:
        return ""
    both = one.value + other.value
    of_one, of_other = ((high - low) / 2 for low, high in (one.interval, other.interval))
    share, half = one.value / both, math.hypot(other.value * of_one, one.value * of_other) / both**2
    low, high = max(share - half, 0.0), min(share + half, 1.0)
    return f" Of the gain, {100 * share:.0f} % [{100 * low:.0f}, {100 * high:.0f}] comes from recalibration."


# Question 3: what does it cost, and is something free as good?


def _pays(evidence: Evidence, action: Action, worth: Step) -> bool:
    """Whether to go on with an action; where the intervals do not say and there is a cost, the estimate decides."""
    if worth.answer != "unknown" or action not in evidence.costs:
        return worth.answer != "no"
    net = evidence.net(action)
    return net is None or net > evidence.free


def _worth(evidence: Evidence, action: Action) -> Step:
    """Question 3, what the method costs against what it wins."""
    what = "recalibration" if action == "recalibrate" else "post-training"
    item, cost = evidence.item(GAINS[action]), evidence.costs.get(action)

    def answered(answer: Answer, reason: str) -> Step:
        return Step(3, f"Is {what} with {evidence.fits[action]} worth its cost?", answer, False, reason, (item,))

    if cost is None:
        return answered("unknown", f"No {Hint('cost').words} given: compare this gain with your cost.")
    if item.value is None or item.interval is None:
        return answered("unknown", f"Its gain is unknown: it {item.missing}.")
    low, high = item.interval
    net, constant, say = item.value - cost, evidence.constant, evidence.say
    numbers = f"it costs {say(cost)} and wins {say(item.value, item.interval)}"
    if high < cost:
        return answered("no", f"It costs more than it wins: {numbers}.")
    numbers_after = f"{numbers}, so {say(net)} after its cost"
    if constant is not None and constant.gain > max(net, 0.0):
        reason = f"{numbers_after}; {constant.doing} wins {say(constant.gain)}"
        return answered("no", f"A constant decision is free and wins more: {reason}.")
    other: Action = "recalibrate" if action == "post-train" else "post-train"
    of_other = evidence.net(other) if evidence.costs_known else None
    if of_other is not None and of_other > max(net, 0.0):
        name = evidence.fits[other]
        reason = f"{numbers_after}; {name} wins {say(of_other)} after its cost"
        return answered("no", f"By the estimates {name} is the better buy: {reason}.")
    if low > cost:
        return answered("yes", f"It wins more than it costs: {numbers}.")
    estimate = "by the estimate it pays" if net > 0 else "by the estimate it does not pay"
    return answered("unknown", f"The interval of the gain holds the cost; {estimate}: {numbers}.")


def _act(evidence: Evidence, steps: tuple[Step, ...], action: Action) -> Advice:
    item, method = evidence.item(GAINS[action]), evidence.fits[action]
    # What clearly wins over the score is not ahead yet of a constant decision, which is free.
    if not (item.clear and evidence.ahead(action)) and not evidence.worthwhile(action):
        return _open_in_itself(evidence, steps, action)
    fit = f"`{Verb('fit', method=method).words}` fits it and evaluates it on held-out rows."
    if method in ("isotonic", "platt") and evidence.rows < MIN_ISOTONIC_ROWS:
        fit += (
            f" `{Verb('fit', method='auto').words}` takes a curve with few parameters where that predicts "
            "these few rows better."
        )
    small = evidence.small(item.metric) or steps[0].small
    return Advice(evidence, steps, action, item.value, item.interval, small, (fit, said(TRY)))


def _constant_instead(evidence: Evidence, steps: tuple[Step, ...], natural: Action) -> Advice:
    """What post-training would win is what a constant decision wins, which needs no model."""
    if natural == "recalibrate":
        question, shown = "Does recalibration beat a constant decision?", [OVER_CONSTANT]
        reason = "Even recalibrated, the score decides no better than a constant decision, which is free."
    else:
        question, shown = "Does post-training beat a constant decision?", [POST_TRAINING, CONSTANT_LEAD]
        reason = "By the estimates, the constant decision wins as much as post-training or more, and it is free."
    steps = (*steps, Step(3, question, "no", False, reason, tuple(map(evidence.item, shown))))
    backwards = (said(_BACKWARDS),) if evidence.backwards else ()
    if evidence.features and evidence.gain(BEYOND) == "unknown" and not evidence.too_dear:
        more = "Whether a model on the features beats it is unknown: there are too few rows to tell."
        today: Action = "post-train" if evidence.now == "post-train" else "done"
        return Advice(evidence, steps, "cannot-tell", next_steps=(*backwards, more, said(TRY)), fallback_action=today)
    text = f"{_BETTER_FEATURES} a new model, and start over with it."
    if not evidence.features:
        text = f"{evidence.name_features} to learn whether a model on them beats it, or find better ones."
    return Advice(evidence, steps, "find-better-features", next_steps=(*backwards, text))


# Question 4, and where nothing is to be done or known.


def _satisfied(evidence: Evidence, steps: tuple[Step, ...], otherwise: Action) -> Advice:
    """Question 4, and where it leads: better features, or nothing more to do."""
    item, wanted = evidence.item(UTILITY), evidence.satisfied_at
    answer: Answer = "unknown"
    rows = None
    if wanted is None:
        reason = f"No {Hint('satisfied_at').words} given: compare this utility with what you need."
    elif item.interval is None or item.value is None:
        reason = f"It is unknown: it {item.missing}."
    else:
        enough, shown = evidence.say(wanted), evidence.say(item.value, item.interval)
        if item.interval[0] >= wanted:
            answer, reason = "yes", f"It is at least {enough}: {shown}."
        elif item.interval[1] < wanted:
            answer, reason = "no", f"It is below {enough}: {shown}."
        else:
            reason = f"It could be below or above {enough}: {shown}."
            rows = rows_for(evidence, item, abs(item.value - wanted))
    steps = (*steps, Step(4, "Is the expected utility good enough?", answer, False, reason, (item,)))
    if answer == "no":
        text = f"{_BETTER_FEATURES} again, and start over with the new model."
        return Advice(evidence, steps, "find-better-features", next_steps=(text,))
    then = _more_rows(evidence, rows, "whether it is good enough")
    return Advice(evidence, steps, otherwise, next_steps=then, rows_needed=rows)


def _undecided(evidence: Evidence, first: Step) -> Advice:
    """Unknown whether anything is to be won: not worth it at any rate, or say what would settle it."""
    costs = [_worth(evidence, action) for action in ("recalibrate", "post-train") if action in evidence.costs]
    if evidence.features and len(costs) == len(GAINS) and all(step.answer == "no" for step in costs):
        return _satisfied(evidence, (first, *costs), "do-not-post-train")
    # Rows that show a gain above 0, or one within its limit, were the gain as estimated.
    doubtful = [evidence.item(metric) for metric in (RECALIBRATION, BEYOND) if evidence.gain(metric) == "unknown"]
    counts = (
        rows_for(evidence, item, max(item.value, evidence.limit(item.metric) - item.value))
        for item in doubtful
        if item.value is not None
    )
    rows = max((count for count in counts if count is not None), default=None)
    if evidence.features:
        what = "whether there is anything to win"
        then = []
        if evidence.unlearnable:
            names = listed(evidence.unlearnable)
            then = [
                f"Leave {names} out of the features, or give what it stands for as numbers or as categories that recur."
            ]
    else:
        what = "whether recalibration wins"
        then = [f"{evidence.name_features}: more rows alone do not show what features would add to the score."]
    unlearned = evidence.item(RECALIBRATION)
    if unlearned.value is None and unlearned.missing.startswith("needs"):
        # Where every label is the same, features have nothing to add.
        add = "clusters" if "clusters" in unlearned.missing else "rows"
        then = [f"Add {add}: recalibration {unlearned.missing}.", *(then if evidence.item(WORST_CASE).value else ())]
    return Advice(
        evidence,
        (first,),
        "cannot-tell",
        next_steps=(*then, *_more_rows(evidence, rows, what)),
        rows_needed=rows if evidence.features else None,
        fallback_action="done" if evidence.adds_nothing else evidence.now,
    )


def _open_in_itself(evidence: Evidence, steps: tuple[Step, ...], action: Action) -> Advice:
    """What leads to a method is clear, and that it wins is not, or that it wins more than a constant decision."""
    item, won = evidence.item(GAINS[action]), evidence.net(action) or 0.0
    what = f"whether {'recalibration' if action == 'recalibrate' else 'post-training'} wins"
    constant = evidence.constant
    if constant is not None and evidence.free > 0:
        # Of the features it is not measured.
        item = evidence.item(OVER_CONSTANT) if action == "recalibrate" else Item(OVER_CONSTANT)
        won, what = (item.value or 0.0) - evidence.costs.get(action, 0.0), f"{what} more than {constant.doing}"
    rows = rows_for(evidence, item, max(won, evidence.tolerated - won))
    then = (*_more_rows(evidence, rows, what), said(TRY))
    return Advice(evidence, steps, "cannot-tell", next_steps=then, rows_needed=rows, fallback_action=evidence.now)


def rows_for(evidence: Evidence, item: Item, effect: float) -> int | None:
    """Rows whose interval ends beyond an effect of this size in 4 of 5 samples of so many."""
    if item.interval is None:
        return None
    half_width = (item.interval[1] - item.interval[0]) / 2
    needed = Reach(evidence.rows, half_width, effect, evidence.confidence, evidence.clusters.effective).needed()
    return None if needed is None else max(needed, evidence.rows + 1)


def _more_rows(evidence: Evidence, rows: int | None, what: str) -> Names:
    """The sentence that names them; empty where there is no number."""
    return () if rows is None else (f"About {evidence.to_collect(rows, ' like these')} show {what} in 4 of 5 cases.",)


# What is said first.


def _lead(advice: Advice, evidence: Evidence, now: ActNow) -> Iterator[str]:
    """What to do today and what it wins, how sure that is, what of it is free, and what the score is worth as it is."""
    constant, instead, say = advice.constant, advice.instead, evidence.say
    after_cost = " after its cost" if now.costly or (now.action == "done" and evidence.costs) else ""
    if now.action == "done":
        yield _use_as_it_is(advice)
        beyond = " beyond that" if instead is not None else ""
        likely = f"no method wins more than the tolerance of {say(evidence.tolerated)}{beyond}{after_cost}"
    else:
        what, words = {
            "recalibrate": ("Recalibrate", "a function of the score alone"),
            "post-train": ("Post-train on the features", "a small model on score and features"),
        }[now.action]
        small = ", which is clear but small" if advice.small and advice.action == now.action else ""
        yield f"{what} with {now.method} ({words}): wins {say(now.gain, now.interval)}{after_cost}{small}."
        likely = f"it wins {'anything' if instead is None else f'more than {instead.doing}'}{after_cost}"
    if now.chance is not None:
        settled = ", see below what would settle it" if advice.action == "cannot-tell" else ""
        sure = {"clear": "", "likely": ": likely, but not clear", "open": f": open{settled}"}
        word = sure[advice.certainty] if now.chance < CLEAR_CHANCE else ""
        yield f"The chance that {likely} is {chance_words(now.chance)}{word}."
    elif advice.certainty == "open":
        yield f"Whether any method wins{'' if instead is None else ' more'} is open: see below what would settle it."
    if now.action == "done" and advice.action == "cannot-tell" and evidence.best != "done":
        yield _too_little(evidence)
    yield from evidence.not_learned
    yield from _free_today(advice)
    if constant is None or (now.action == "done" and instead is not None):
        return
    if instead is None:
        worth = say(evidence.item(UTILITY).value or 0.0)
        yield f"As it is, acting on this score is worth no more than {constant.doing}: {worth}."
    else:
        doubt = "" if bounds(instead.interval)[0] > 0 else "; chance could explain that"
        less = say(instead.gain, instead.interval)
        yield f"As it is, acting on this score is worth {less} less than {instead.doing}{doubt}."


def _use_as_it_is(advice: Advice) -> str:
    """Where nothing is to be fitted."""
    instead = advice.instead
    why = {
        "done": "no method wins anything that matters",
        "do-not-post-train": "post-training costs more than it wins",
        "find-better-features": "it is not good enough, and post-training cannot win what is missing",
        "cannot-tell": f"no method is sure enough to win{'' if instead is None else ' more'}",
    }[advice.action]
    if instead is None:
        return f"Use the model as it is: {why}."
    words = f"{instead.words[0].upper()}{instead.words[1:]}"
    if advice.action == "do-not-post-train":
        why = "no method wins more than that after its cost"
    if advice.evidence.useless and advice.evidence.backwards:
        why = "the score ranks backwards: a method that keeps its order does no better"
    elif advice.evidence.useless:
        better = (advice.evidence.item(OVER_CONSTANT).value or 0.0) > 0
        why = "even recalibrated, the score " + ("hardly does better" if better else "does no better")
    wins = advice.evidence.say(instead.gain, instead.interval)
    return f"{words}: that wins {wins} over acting on the score, and {why}."


def _too_little(evidence: Evidence) -> str:
    """Why the largest gain by the estimates is not acted on."""
    best = evidence.best
    net = evidence.net(best) or 0.0
    wins = f"By the estimates, {evidence.fits[best]} wins {evidence.say(net)}"
    wins += " after its cost" if best in evidence.costs else ""
    if evidence.adds_nothing:
        return f"{wins}, and no more than a constant decision does."
    if net - evidence.free < evidence.acted_on:
        beyond = f" more than {evidence.constant.doing} does" if evidence.constant and evidence.free > 0 else ""
        return f"{wins}, less than {'half ' if evidence.tolerance is None else ''}the tolerance{beyond}."
    return f"{wins}, and chance could explain that easily."


def _free_today(advice: Advice) -> Iterator[str]:
    """What needs no new model: another threshold on the same score."""
    interim, evidence, action = advice.interim, advice.evidence, advice.act_now.action
    if interim is None or interim.threshold is None or (action == "done" and advice.action != "do-not-post-train"):
        return
    low, high = bounds(interim.interval)
    if high <= 0 or (action == "done" and advice.instead is not None and interim.gain <= advice.instead.gain):
        return
    ends, start = evidence.item(NEW_THRESHOLD).interval, interim.threshold
    step = f"act from a score of {start if ends is None else around(start, ends)} on"
    if evidence.acts_from is not None:
        step += f" instead of {plain(evidence.acts_from)}"
    wins = evidence.say(interim.gain, interim.interval)
    if action == "recalibrate":
        yield f"For this decision the same is free today: {step}."
    elif low > 0 and action == "post-train":
        yield f"Of that, {wins} is free today: {step}."
    elif low > 0 or interim.gain >= evidence.acted_on:
        yield f"Free today: {step}, which {'wins' if low > 0 else 'may win'} {wins}."
