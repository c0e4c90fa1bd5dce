"""The evaluation procedure of [R, appendix A]: questions, rules, and answers with the numbers they rest on.

Every rule is statistical. A gain exists ("yes") where its interval lies above 0, it does not matter ("no") where its
interval reaches above 0 by no more than the tolerance and does not lie above 0, and is unknown otherwise. Where there
is a sign of the gain (the best threshold is clearly another one, or the features clearly say more than the score), it
does not matter within half, or a third, of the tolerance only. A clear gain within the tolerance is "yes" and marked
small. All gains are estimated on held-out rows; the plug-in regrets of [R] are positive by noise alone, so nothing is
decided on them.

Where the user gave costs, an interval that cannot tell a gain from its cost does not stop the walk: the action with the
largest estimated gain after its cost is taken, because waiting has a price as well. For this choice the gain of
recalibration is smoothed, which errs less. A cost never makes a gain matter that is too small to matter without it.
"""

from __future__ import annotations

from dataclasses import replace

from decal_cli.analysis.flowchart.advice import ActNow, Advice, Interim, Step
from decal_cli.analysis.flowchart.evidence import (
    BEYOND,
    CONSTANT_LEAD,
    GAINS,
    MIN_ISOTONIC_ROWS,
    NEW_THRESHOLD,
    OVER_CONSTANT,
    POST_TRAINING,
    RECALIBRATION,
    SMOOTHED,
    UTILITY,
    Action,
    Answer,
    Evidence,
    Interval,
    Item,
)
from decal_cli.analysis.flowchart.rows_needed import more_rows, rows_for, rows_to_settle
from decal_cli.analysis.flowchart.suboptimal import limit_text, suboptimal
from decal_cli.hints import Hint, Verb, said
from decal_cli.numbers import PER_DECISION, alike, per_decision, with_ends

TRY = (
    f"`{Verb('recommend', 'try')}` fits the methods, compares them on held-out rows and starts over with the best one."
)
"""Said to whoever has not tried yet."""

_BACKWARDS = (
    "The score ranks backwards: higher scores go with fewer positives (AUC below .5). Check the label column, "
    f"{Hint('positive')} and the direction of the score."
)


def walk(evidence: Evidence) -> Advice:
    """The advice that follows from this evidence."""
    advice = _walk(evidence)
    return replace(
        advice,
        act_now=_act_now(evidence, advice),
        stakes=evidence.stakes,
        tolerance=evidence.tolerated,
        constant=evidence.constant,
        useless=evidence.useless,
        fits=evidence.fits,
        interim=_interim(evidence),
    )


def _act_now(evidence: Evidence, advice: Advice) -> ActNow:
    """The action of the flowchart where that is one, else the one with the largest shrunken gain."""
    action = advice.lean if advice.action == "cannot-tell" else advice.action
    if action == "recalibrate" or action == "post-train":
        net, chance = evidence.net(action) or 0.0, evidence.chance(action, evidence.free)
        return ActNow(action, evidence.fits[action], net, chance, action in evidence.costs)
    if advice.action == "cannot-tell" and not evidence.features:
        # What features would win is unknown.
        return ActNow("done", None, 0.0, None)
    chances = [evidence.chance(each, evidence.free + evidence.tolerated) for each in GAINS]
    return ActNow("done", None, 0.0, min((1 - chance for chance in chances if chance is not None), default=None))


def _walk(evidence: Evidence) -> Advice:
    first = suboptimal(evidence)
    if first.answer == "no":
        return _satisfied(evidence, (first,), "done")
    if first.answer == "unknown":
        return _undecided(evidence, first)
    origin = _origin(evidence)
    natural: Action = "post-train" if origin.answer == "no" else "recalibrate"
    steps: tuple[Step, ...] = (first, origin)
    if evidence.useless if natural == "recalibrate" else evidence.outdone:
        return _constant_instead(evidence, steps, natural)
    if set(evidence.costs) >= set(GAINS):
        return _best_buy(evidence, steps, natural)
    worth = _worth(evidence, natural)
    steps = (*steps, worth)
    if _pays(evidence, natural, worth):
        return _act(evidence, steps, natural)
    if natural == "post-train" and evidence.gain(RECALIBRATION) == "yes" and not evidence.useless:
        cheaper = _worth(evidence, "recalibrate")
        steps = (*steps, cheaper)
        if _pays(evidence, "recalibrate", cheaper):
            return _act(evidence, steps, "recalibrate")
    return _satisfied(evidence, steps, "do-not-post-train")


def _pays(evidence: Evidence, action: Action, worth: Step) -> bool:
    """Whether to go on with an action; where the intervals do not say and there is a cost, the estimate decides."""
    if worth.answer != "unknown" or action not in evidence.costs:
        return worth.answer != "no"
    net = evidence.net(action)
    return net is None or net > evidence.free


def _best_buy(evidence: Evidence, steps: tuple[Step, ...], natural: Action) -> Advice:
    """Both costs are known: the action with the largest gain after its cost, beside the one question 2 points to."""
    best = evidence.best
    steps = (*steps, _worth(evidence, natural))
    if best == "done" or (best == "recalibrate" and evidence.useless):
        return _satisfied(evidence, steps, "do-not-post-train")
    if best != natural:
        steps = (*steps, _worth(evidence, best))
    return _act(evidence, steps, best)


def _origin(evidence: Evidence) -> Step:
    """Question 2, regret ~ regret_calibration: miscalibration, unless the features win more than is small."""
    shown = (RECALIBRATION, BEYOND) if evidence.features else (RECALIBRATION,)
    answer, reason = _origin_answer(evidence)
    question = "Does the loss come from miscalibration?"
    return Step(question, answer, reason, tuple(evidence.item(metric) for metric in shown))


def _origin_answer(evidence: Evidence) -> tuple[Answer, str]:
    recalibration, beyond, limit = evidence.gain(RECALIBRATION), evidence.gain(BEYOND), limit_text(evidence)
    if recalibration != "yes" and beyond != "yes":
        return "no", "Neither cause is clear alone, only both together: a method that removes both is needed."
    if beyond == "yes" and recalibration != "yes":
        if recalibration == "no":
            return "no", f"Recalibration wins at most {limit}, the tolerance; using the features wins on top of it."
        return "no", f"Using the features clearly wins; whether recalibration alone wins is unknown.{_shares(evidence)}"
    if beyond == "yes" and evidence.small(BEYOND) and not evidence.small(RECALIBRATION):
        return "yes", f"The features add only a small gain: at most {limit}, the tolerance.{_shares(evidence)}"
    if beyond == "yes":
        return "no", f"Only in part: the features clearly add to what recalibration wins.{_shares(evidence)}"
    if beyond == "no":
        return "yes", f"Beyond recalibration, the features win at most {limit}, the tolerance."
    if not evidence.features:
        return "unknown", "Recalibration wins; what features would add is unknown: none were named."
    if evidence.promising:
        what = "the features clearly say more than the score, and by the estimate they win on top of it"
        return "no", f"Only in part: {what}.{_shares(evidence)}"
    return "unknown", "Recalibration wins, and it is the cheaper step; whether the features add to it is unknown."


def _shares(evidence: Evidence) -> str:
    share = evidence.share_of_recalibration
    if share is None:
        return ""
    return f" Recalibration has {share:.0%} of the estimated gain, the features {1 - share:.0%}."


def _worth(evidence: Evidence, action: Action) -> Step:
    """Question 3, what the method costs against what it wins."""
    what = "recalibration" if action == "recalibrate" else "post-training"
    question = f"Is {what} with {evidence.fits[action]} worth its cost?"
    item, cost = evidence.item(GAINS[action]), evidence.costs.get(action)
    if cost is None:
        return Step(question, "unknown", f"No {Hint('cost').words} given: compare this gain with your cost.", (item,))
    if item.value is None or item.interval is None:
        return Step(question, "unknown", f"Its gain is unknown: it {item.reason or 'has no interval'}.", (item,))
    low, high = item.interval
    other, expected, constant = _other(evidence, action), evidence.expected(action) or 0.0, evidence.constant
    net, lead, rival = expected - cost, 0.0 if constant is None else constant.gain, 0.0 if other is None else other[1]
    texts = alike((cost, item.value, low, high, net, lead, rival, expected))
    numbers = f"it costs {texts[0]} and wins {with_ends(texts[1:4], PER_DECISION)}"
    items: tuple[Item, ...] = (item,)
    if evidence.smooths:
        numbers += f", {texts[7]} by the smoothed estimate"
        items = (item, evidence.item(SMOOTHED))
    if high < cost:
        return Step(question, "no", f"It costs more than it wins: {numbers}.", items)
    if constant is not None and lead > max(net, 0.0):
        reason = f"{numbers}, so {texts[4]} after its cost; always deciding {constant.decision} wins {texts[5]}"
        return Step(question, "no", f"A constant decision is free and wins more: {reason}.", items)
    if other is not None and rival > net:
        reason = f"{numbers}, so {texts[4]} after its cost; {evidence.fits[other[0]]} wins {texts[6]} after its cost"
        return Step(question, "no", f"By the estimates {evidence.fits[other[0]]} is the better buy: {reason}.", items)
    if low > cost:
        return Step(question, "yes", f"It wins more than it costs: {numbers}.", items)
    estimate = "by the estimate it pays" if net > 0 else "by the estimate it does not pay"
    return Step(question, "unknown", f"The interval of the gain holds the cost; {estimate}: {numbers}.", items)


def _other(evidence: Evidence, action: Action) -> tuple[Action, float] | None:
    """The other action with its gain after its cost, where both costs are known and it wins anything."""
    if not set(evidence.costs) >= set(GAINS):
        return None
    other: Action = "recalibrate" if action == "post-train" else "post-train"
    net = evidence.net(other)
    return (other, net) if net is not None and net > 0 else None


def _satisfied(evidence: Evidence, steps: tuple[Step, ...], otherwise: Action) -> Advice:
    """Question 4, and where it leads: better features, or nothing more to do."""
    item, wanted = evidence.item(UTILITY), evidence.satisfied_at
    question = "Is the expected utility good enough?"
    answer: Answer = "unknown"
    if wanted is None:
        reason = f"No {Hint('satisfied_at').words} given: compare this utility with what you need."
    elif item.interval is None:
        reason = f"It is unknown: it {item.reason or 'has no interval'}."
    else:
        answer, reason = _compared(item.value or 0.0, item.interval, wanted)
    steps = (*steps, Step(question, answer, reason, (item,)))
    if answer == "no":
        text = "Find features that separate the outcomes better, train again, and start over with the new model."
        return Advice(steps, "find-better-features", next_steps=(text,))
    rows = None
    if answer == "unknown" and wanted is not None and item.value is not None:
        rows = rows_for(evidence, item, abs(item.value - wanted))
    free = _free_step(evidence) if otherwise == "do-not-post-train" else ()
    return Advice(steps, otherwise, next_steps=(*free, *more_rows(rows, "whether it is good enough")), rows_needed=rows)


def _compared(value: float, interval: Interval, wanted: float) -> tuple[Answer, str]:
    """Whether the expected utility is as high as the user wants it, and why."""
    numbers = alike((wanted, value, *interval))
    shown = with_ends(numbers[1:], PER_DECISION)
    if interval[0] >= wanted:
        return "yes", f"It is at least {numbers[0]}: {shown}."
    if interval[1] < wanted:
        return "no", f"It is below {numbers[0]}: {shown}."
    return "unknown", f"It could be below or above {numbers[0]}: {shown}."


def _act(evidence: Evidence, steps: tuple[Step, ...], action: Action) -> Advice:
    item = evidence.item(GAINS[action])
    fit = f"`{Verb('fit', method=evidence.fits[action]).words}` fits it and evaluates it on held-out rows."
    if evidence.fits[action] == "isotonic" and evidence.rows < MIN_ISOTONIC_ROWS:
        fit += (
            f" `{Verb('fit', method='auto').words}` takes a curve with few parameters where that predicts "
            "these few rows better."
        )
    return Advice(
        steps,
        action,
        item.value,
        item.interval,
        evidence.small(GAINS[action]) or steps[0].small,
        next_steps=(*_free_step(evidence, action), fit, said(TRY)),
    )


def _interim(evidence: Evidence) -> Interim | None:
    """What wins something at once: a constant decision where no threshold beats it, else the adjusted threshold."""
    gain, threshold = evidence.item(RECALIBRATION), evidence.item(NEW_THRESHOLD)
    if evidence.useless:
        constant = evidence.constant
        if constant is None or not constant.gain > 0:
            return None
        return Interim(None, constant.decision, constant.gain, constant.interval)
    if gain.value is None or not gain.value > 0 or threshold.value is None:
        return None
    return Interim(threshold.text or repr(threshold.value), None, gain.value, gain.interval)


def _free_step(evidence: Evidence, action: Action | None = None) -> tuple[str, ...]:
    """The sentence that names the free step and what it wins."""
    interim = _interim(evidence)
    if interim is None or (interim.interval is not None and interim.interval[1] <= 0):
        return ()
    wins = per_decision(interim.gain, interim.interval)
    clear = "wins" if interim.interval is not None and interim.interval[0] > 0 else "may win"
    what = (
        f"always decide {interim.decision}" if interim.threshold is None else f"act when score >= {interim.threshold}"
    )
    if action == "recalibrate":
        return (f"For this decision alone the same gain is free, without a new model: {what}.",)
    if action != "post-train":
        return (f"Free step: {what}, which {clear} {wins}.",)
    gain = evidence.item(POST_TRAINING).value
    more = "" if gain is None else f" Fitting {evidence.fits[action]} wins {alike((gain - interim.gain,))[0]} more."
    return (f"Free step until then: {what}, which {clear} {wins}.{more}",)


def _constant_instead(evidence: Evidence, steps: tuple[Step, ...], natural: Action) -> Advice:
    """What post-training would win is what a constant decision wins, which needs no model."""
    constant = evidence.constant
    shown: tuple[str, ...]
    if natural == "recalibrate":
        reason = "Even after recalibration, the score decides no better at any threshold than a constant decision."
        question, shown = "Can this score, recalibrated, beat a constant decision?", (OVER_CONSTANT,)
    else:
        reason = "By the estimates, the constant decision wins as much as post-training or more, and it is free."
        question, shown = "Can post-training beat a constant decision?", (POST_TRAINING, CONSTANT_LEAD)
    steps = (*steps, Step(question, "no", reason, tuple(evidence.item(metric) for metric in shown)))
    backwards = (said(_BACKWARDS),) if evidence.backwards else ()
    now = () if constant is None else (f"Always decide {constant.decision} until a model beats it.",)
    if evidence.features and evidence.gain(BEYOND) == "unknown":
        more = "Whether a model on the features beats it is unknown: there are too few rows to tell."
        lean: Action = "post-train" if evidence.now == "post-train" else "done"
        return Advice(steps, "cannot-tell", next_steps=(*backwards, *now, more, said(TRY)), lean=lean)
    text = "Find features that separate the outcomes better, train a new model, and start over with it."
    if not evidence.features:
        text = (
            f"{said(_NAME_FEATURES[evidence.counted])} to learn whether a model on them beats it, or find better ones."
        )
    return Advice(steps, "find-better-features", next_steps=(*backwards, *now, text))


_NAME_FEATURES = {
    False: f"Name the feature columns ({Hint('features')})",
    True: f"Give rows instead of counts, and name their feature columns ({Hint('features')})",
}
"""By whether rows were counted before."""


def _undecided(evidence: Evidence, suboptimal: Step) -> Advice:
    """Unknown whether anything is to be won: not worth it at any rate, or say what would settle it."""
    costs = [_worth(evidence, action) for action in ("recalibrate", "post-train") if action in evidence.costs]
    if evidence.features and len(costs) == len(GAINS) and all(step.answer == "no" for step in costs):
        return _satisfied(evidence, (suboptimal, *costs), "do-not-post-train")
    doubtful = [metric for metric in (RECALIBRATION, BEYOND) if evidence.gain(metric) == "unknown"]
    counts = [rows_to_settle(evidence, evidence.item(metric)) for metric in doubtful]
    rows = max((count for count in counts if count is not None), default=None)
    lean = "done" if _adds_nothing(evidence) else evidence.now
    if evidence.features:
        then = (*more_rows(rows, "the answer"), _leaning(evidence, lean))
        return Advice((suboptimal,), "cannot-tell", next_steps=then, rows_needed=rows, lean=lean)
    name = said(_NAME_FEATURES[evidence.counted])
    advice = f"{name}: more rows alone do not show what features would add to the score."
    then = (advice, *more_rows(rows, "whether recalibration wins"), _leaning(evidence, lean))
    return Advice((suboptimal,), "cannot-tell", next_steps=then, lean=lean)


def _adds_nothing(evidence: Evidence) -> bool:
    """Whether recalibration is the best buy by the estimates, and yet no better than a constant decision."""
    return evidence.best == "recalibrate" and evidence.useless


def _leaning(evidence: Evidence, lean: Action) -> str:
    """What to do for whoever cannot wait."""
    start, estimates = "If you must decide now:", "smoothed estimates" if evidence.smooths else "estimates"
    if lean != "done":
        wins = per_decision(evidence.net(lean) or 0.0) + (" after its cost" if lean in evidence.costs else "")
        return f"{start} fit {evidence.fits[lean]}, which by the {estimates} wins {wins}."
    if _adds_nothing(evidence):
        return f"{start} {_otherwise(evidence)}; recalibration would add at most {limit_text(evidence)}, the tolerance."
    after = " after its cost" if evidence.costs else ""
    if evidence.best != "done" and not _adds_nothing(evidence):
        return f"{start} {_otherwise(evidence)}; {_too_little(evidence)}."
    if evidence.constant is not None:
        return f"{start} always decide {evidence.constant.decision}; by the {estimates} no method wins more{after}."
    return f"{start} leave the model as it is; by the {estimates} no method wins anything{after}."


def _otherwise(evidence: Evidence) -> str:
    """What needs no fit."""
    return "leave the model as it is" if evidence.constant is None else f"always decide {evidence.constant.decision}"


def _too_little(evidence: Evidence) -> str:
    """Why the largest gain by the estimates is not acted on; without costs, which another rule is for."""
    gain = evidence.net(evidence.best) or 0.0
    wins = f"{evidence.fits[evidence.best]} wins {per_decision(gain)} by the estimates"
    if gain < evidence.tolerated:
        return f"{wins}, less than {limit_text(evidence)}, the tolerance"
    return f"{wins}, and chance could explain that easily"
