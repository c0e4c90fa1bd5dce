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

from collections.abc import Iterator
from dataclasses import replace

from decal_cli.analysis.flowchart.advice import ActNow, Advice, Interim, Step
from decal_cli.analysis.flowchart.evidence import (
    BEYOND,
    CONSTANT_LEAD,
    GAINS,
    NEW_THRESHOLD,
    OVER_CONSTANT,
    POST_TRAINING,
    RECALIBRATION,
    SIGNAL,
    SMOOTHED,
    UTILITY,
    WORST_CASE,
    Action,
    Answer,
    Evidence,
    Interval,
    Item,
)
from decal_cli.data.words import listed
from decal_cli.hints import Hint, Verb, said
from decal_cli.learn.held_out import MIN_ISOTONIC_ROWS
from decal_cli.metrics import power
from decal_cli.numbers import alike, around, chance_words, plain

TRY = (
    f"`{Verb('recommend', 'try')}` fits the methods, compares them on held-out rows and starts over with the best one."
)
"""Said to whoever has not tried yet."""

_BACKWARDS = (
    "The score ranks backwards: higher scores go with fewer positives (AUC below 0.5). Check the label column, "
    f"{Hint('positive')} and the direction of the score."
)
_SUBJECT = {
    RECALIBRATION: "recalibration",
    BEYOND: "using the features on top of recalibration",
    POST_TRAINING: "both together",
}
_SIGNS = {RECALIBRATION: NEW_THRESHOLD, BEYOND: SIGNAL}
"""What may show that there is such a gain before its interval does."""


def walk(evidence: Evidence) -> Advice:
    """The advice that follows from this evidence."""
    advice = _walk(evidence)
    advice = replace(
        advice,
        act_now=_act_now(evidence, advice),
        stakes=evidence.stakes,
        tolerance=evidence.tolerated,
        acted_on=evidence.acted_on,
        constant=evidence.constant,
        useless=evidence.useless,
        fits=evidence.fits,
        interim=_interim(evidence),
    )
    return replace(advice, lead=tuple(_lead(evidence, advice)))


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
    origin, natural = _enough(evidence)
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


# Question 1: is there anything to win?


def suboptimal(evidence: Evidence) -> Step:
    """Question 1, regret > 0."""
    gains = {metric: evidence.gain(metric) for metric in (RECALIBRATION, BEYOND, POST_TRAINING)}
    shown = [RECALIBRATION, BEYOND, POST_TRAINING] if evidence.features else [RECALIBRATION, WORST_CASE]
    clear = [metric for metric in (RECALIBRATION, BEYOND) if gains[metric] == "yes"]
    if not clear and gains[POST_TRAINING] == "yes":
        clear = [POST_TRAINING]
    answer: Answer
    if clear:
        answer = "yes"
    elif gains[RECALIBRATION] == "no" and (gains[BEYOND] == "no" or _harmless(evidence)):
        answer = "unknown" if evidence.unlearnable else "no"
    else:
        answer = "unknown"
    small = bool(clear) and all(evidence.small(metric) for metric in clear)
    if answer == "unknown":
        shown += [sign for metric, sign in _SIGNS.items() if _held_back(evidence, metric)]
        if evidence.smooths:
            shown.insert(1, SMOOTHED)
    # Several classes have no worst case.
    items = tuple(evidence.item(metric) for metric in shown if metric in evidence.items or metric != WORST_CASE)
    reason = _clear_reason(evidence, clear, small) if clear else _other_reason(evidence, answer)
    return Step(1, "Does acting on the score lose anything?", answer, reason, items, small)


def _harmless(evidence: Evidence) -> bool:
    """Whether even the worst case of what features could win lies within the tolerance."""
    interval = evidence.item(WORST_CASE).interval
    return not evidence.features and interval is not None and interval[1] <= evidence.tolerated


def _clear_reason(evidence: Evidence, clear: list[str], small: bool) -> str:
    subjects = " and ".join(_SUBJECT[metric] for metric in clear)
    plural = len(clear) > 1 or clear == [POST_TRAINING]
    text = f"On held-out rows, {subjects} {'win' if plural else 'wins'}: the interval lies above 0."
    if not small:
        return text
    most = max(clear, key=lambda metric: (evidence.item(metric).interval or (0.0, 0.0))[1])
    return f"{text} The gain is small: {_at_most(evidence, most)}, within the tolerance of {_tolerance(evidence)}."


def _other_reason(evidence: Evidence, answer: Answer) -> str:
    if answer == "unknown":
        return " ".join(_doubts(evidence))
    one, tolerance = _at_most(evidence, RECALIBRATION), _tolerance(evidence)
    if evidence.features:
        both = f"Recalibration wins {one}, the features {_at_most(evidence, BEYOND)} on top of it"
        return f"{both}: no more than the tolerance, {tolerance}."
    worst = _at_most(evidence, WORST_CASE)
    return f"Recalibration wins {one}, and features {worst} even in the worst case; the tolerance is {tolerance}."


def _doubts(evidence: Evidence) -> list[str]:
    """Why it is unknown whether there is anything to win, a sentence for each gain."""
    sentences, tolerance = [], _tolerance(evidence)
    for metric in (RECALIBRATION, BEYOND) if evidence.features else (RECALIBRATION,):
        item, subject = evidence.item(metric), _SUBJECT[metric].capitalize()
        if item.interval is None:
            sentences.append(f"What {_SUBJECT[metric]} wins is unknown: it {item.reason or 'has no interval'}.")
        elif item.interval[1] <= evidence.tolerated:
            few = _but(evidence, metric) if _held_back(evidence, metric) else "."
            sentences.append(f"{subject} wins {_at_most(evidence, metric)}, within the tolerance of {tolerance}{few}")
        else:
            sentences.append(
                f"{subject} may win nothing, or more than the tolerance of {tolerance}: too few rows to tell."
            )
    if not evidence.features:
        sentences.append("What features would add to the score is unknown: none were named.")
    return [*sentences, *_unlearnable(evidence)]


def _unlearnable(evidence: Evidence) -> Iterator[str]:
    """What is said of features of which nothing can be learned as they are."""
    if evidence.unlearnable:
        names = listed(evidence.unlearnable)
        yield f"Nothing can be learned from {names} in this form; what it stands for may add to the score."


def _held_back(evidence: Evidence, metric: str) -> bool:
    """Whether only a sign of this gain keeps it from being too small to matter."""
    interval = evidence.item(metric).interval
    return evidence.gain(metric) == "unknown" and interval is not None and interval[1] <= evidence.tolerated


def _but(evidence: Evidence, metric: str) -> str:
    if metric == BEYOND:
        p_value = evidence.item(SIGNAL).value or 0.0
        what = f"the features clearly say more than the score (p-value {p_value:.2g})"
    else:
        interval = evidence.item(NEW_THRESHOLD).interval or (0.0, 1.0)
        low, high, now = alike((*interval, evidence.acts_from or 0.0))
        what = f"the best threshold to act from, {low} to {high}, is clearly not {now}"
    return f", by these rows. But {what}, and more rows may show more to win."


def _at_most(evidence: Evidence, metric: str) -> str:
    """The end of the interval of a gain, in words."""
    interval = evidence.item(metric).interval or (0.0, 0.0)
    return f"at most {evidence.say(interval[1], like=interval)}" if interval[1] > 0 else "nothing"


def _tolerance(evidence: Evidence) -> str:
    return evidence.say(evidence.tolerated)


# Question 2: is recalibration enough?


def _enough(evidence: Evidence) -> tuple[Step, Action]:
    """Question 2, regret ~ regret_calibration, and the action that it leads to.

    Recalibration is enough where the features add nothing that matters, and is not where they clearly add more than is
    small. Unknown leads to recalibration, which is the cheaper step, where its gain is clear.
    """
    recalibration, beyond = evidence.gain(RECALIBRATION), evidence.gain(BEYOND)
    answer: Answer = "unknown"
    action: Action = "recalibrate"
    if recalibration != "yes" and beyond != "yes":
        action, reason = (
            "post-train",
            "Neither of the two is clear alone, only both together: a method that does both is needed.",
        )
    elif beyond == "yes" and recalibration == "no":
        answer, action = "no", "post-train"
        reason = f"Recalibration alone wins {_at_most(evidence, RECALIBRATION)}; the features win on top of it."
    elif beyond == "yes" and recalibration == "unknown":
        answer, action = "no", "post-train"
        reason = f"The features clearly win; whether recalibration alone wins is unknown.{_share(evidence)}"
    elif beyond == "yes" and evidence.small(BEYOND) and not evidence.small(RECALIBRATION):
        answer, reason = "yes", f"The features add only a small gain, {_at_most(evidence, BEYOND)}.{_share(evidence)}"
    elif beyond == "yes":
        answer, action = "no", "post-train"
        reason = f"The features clearly add to what recalibration wins.{_share(evidence)}"
    elif beyond == "no":
        answer, reason = "yes", f"The features win {_at_most(evidence, BEYOND)} on top of it, within the tolerance."
    elif not evidence.features:
        reason = "Recalibration wins; what features would add is unknown: none were named."
    elif evidence.promising and evidence.shrunken("post-train") > evidence.shrunken("recalibrate"):
        action = "post-train"
        reason = (
            "The features clearly say more than the score, and by the estimate they win on top of it, though that gain "
            f"alone is not clear.{_share(evidence)}"
        )
    else:
        reason = "Recalibration wins, and it is the cheaper step; whether the features add to it is unknown."
        reason += _share(evidence)
    shown = (RECALIBRATION, BEYOND) if evidence.features else (RECALIBRATION,)
    return Step(2, "Is recalibration enough?", answer, reason, tuple(map(evidence.item, shown))), action


def _share(evidence: Evidence) -> str:
    share = evidence.share_of_recalibration
    if share is None:
        return ""
    value, (low, high) = share
    return f" Of the gain, {100 * value:.0f} % [{100 * low:.0f}, {100 * high:.0f}] comes from recalibration."


# Question 3: what does it cost, and is something free as good?


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


def _worth(evidence: Evidence, action: Action) -> Step:
    """Question 3, what the method costs against what it wins."""
    what = "recalibration" if action == "recalibrate" else "post-training"
    item, cost = evidence.item(GAINS[action]), evidence.costs.get(action)
    items: tuple[Item, ...] = (item,)

    def answered(answer: Answer, reason: str) -> Step:
        return Step(3, f"Is {what} with {evidence.fits[action]} worth its cost?", answer, reason, items)

    if cost is None:
        return answered("unknown", f"No {Hint('cost').words} given: compare this gain with your cost.")
    if item.value is None or item.interval is None:
        return answered("unknown", f"Its gain is unknown: it {item.reason or 'has no interval'}.")
    low, high = item.interval
    other, expected, constant = _other(evidence, action), evidence.expected(action) or 0.0, evidence.constant
    net, say = expected - cost, evidence.say
    numbers = f"it costs {say(cost)} and wins {say(item.value, item.interval)}"
    if evidence.smooths:
        numbers += f", {say(expected)} by the smoothed estimate"
        items = (item, evidence.item(SMOOTHED))
    if high < cost:
        return answered("no", f"It costs more than it wins: {numbers}.")
    if constant is not None and constant.gain > max(net, 0.0):
        reason = f"{numbers}, so {say(net)} after its cost; {constant.doing} wins {say(constant.gain)}"
        return answered("no", f"A constant decision is free and wins more: {reason}.")
    if other is not None and other[1] > net:
        name = evidence.fits[other[0]]
        reason = f"{numbers}, so {say(net)} after its cost; {name} wins {say(other[1])} after its cost"
        return answered("no", f"By the estimates {name} is the better buy: {reason}.")
    if low > cost:
        return answered("yes", f"It wins more than it costs: {numbers}.")
    estimate = "by the estimate it pays" if net > 0 else "by the estimate it does not pay"
    return answered("unknown", f"The interval of the gain holds the cost; {estimate}: {numbers}.")


def _other(evidence: Evidence, action: Action) -> tuple[Action, float] | None:
    """The other action with its gain after its cost, where both costs are known and it wins anything."""
    if not set(evidence.costs) >= set(GAINS):
        return None
    other: Action = "recalibrate" if action == "post-train" else "post-train"
    net = evidence.net(other)
    return (other, net) if net is not None and net > 0 else None


def _act(evidence: Evidence, steps: tuple[Step, ...], action: Action) -> Advice:
    item = evidence.item(GAINS[action])
    fit = f"`{Verb('fit', method=evidence.fits[action]).words}` fits it and evaluates it on held-out rows."
    if evidence.fits[action] in ("isotonic", "platt") and evidence.rows < MIN_ISOTONIC_ROWS:
        fit += (
            f" `{Verb('fit', method='auto').words}` takes a curve with few parameters where that predicts "
            "these few rows better."
        )
    small = evidence.small(GAINS[action]) or steps[0].small
    return Advice(steps, action, item.value, item.interval, small, next_steps=(fit, said(TRY)))


def _constant_instead(evidence: Evidence, steps: tuple[Step, ...], natural: Action) -> Advice:
    """What post-training would win is what a constant decision wins, which needs no model."""
    shown: tuple[str, ...]
    if natural == "recalibrate":
        reason = (
            "Even recalibrated, the score decides no better at any threshold than a constant decision, which is free."
        )
        question, shown = "Does recalibration beat a constant decision?", (OVER_CONSTANT,)
    else:
        reason = "By the estimates, the constant decision wins as much as post-training or more, and it is free."
        question, shown = "Does post-training beat a constant decision?", (POST_TRAINING, CONSTANT_LEAD)
    steps = (*steps, Step(3, question, "no", reason, tuple(map(evidence.item, shown))))
    backwards = (said(_BACKWARDS),) if evidence.backwards else ()
    if evidence.features and evidence.gain(BEYOND) == "unknown":
        more = "Whether a model on the features beats it is unknown: there are too few rows to tell."
        lean: Action = "post-train" if evidence.now == "post-train" else "done"
        return Advice(steps, "cannot-tell", next_steps=(*backwards, more, said(TRY)), lean=lean)
    text = "Find features that separate the outcomes better, train a new model, and start over with it."
    if not evidence.features:
        text = (
            f"{said(_NAME_FEATURES[evidence.counted])} to learn whether a model on them beats it, or find better ones."
        )
    return Advice(steps, "find-better-features", next_steps=(*backwards, text))


_NAME_FEATURES = {
    False: f"Name the feature columns ({Hint('features')})",
    True: f"Give rows instead of counts, and name their feature columns ({Hint('features')})",
}
"""By whether rows were counted before."""


# Question 4, and where nothing is to be done or known.


def _satisfied(evidence: Evidence, steps: tuple[Step, ...], otherwise: Action) -> Advice:
    """Question 4, and where it leads: better features, or nothing more to do."""
    item, wanted = evidence.item(UTILITY), evidence.satisfied_at
    answer: Answer = "unknown"
    if wanted is None:
        reason = f"No {Hint('satisfied_at').words} given: compare this utility with what you need."
    elif item.interval is None:
        reason = f"It is unknown: it {item.reason or 'has no interval'}."
    else:
        answer, reason = _compared(evidence, item.value or 0.0, item.interval, wanted)
    steps = (*steps, Step(4, "Is the expected utility good enough?", answer, reason, (item,)))
    if answer == "no":
        text = "Find features that separate the outcomes better, train again, and start over with the new model."
        return Advice(steps, "find-better-features", next_steps=(text,))
    rows = None
    if answer == "unknown" and wanted is not None and item.value is not None:
        rows = rows_for(evidence, item, abs(item.value - wanted))
    return Advice(steps, otherwise, next_steps=_more_rows(rows, "whether it is good enough"), rows_needed=rows)


def _compared(evidence: Evidence, value: float, interval: Interval, wanted: float) -> tuple[Answer, str]:
    """Whether the expected utility is as high as the user wants it, and why."""
    enough, shown = evidence.say(wanted), evidence.say(value, interval)
    if interval[0] >= wanted:
        return "yes", f"It is at least {enough}: {shown}."
    if interval[1] < wanted:
        return "no", f"It is below {enough}: {shown}."
    return "unknown", f"It could be below or above {enough}: {shown}."


def _undecided(evidence: Evidence, suboptimal: Step) -> Advice:
    """Unknown whether anything is to be won: not worth it at any rate, or say what would settle it."""
    costs = [_worth(evidence, action) for action in ("recalibrate", "post-train") if action in evidence.costs]
    if evidence.features and len(costs) == len(GAINS) and all(step.answer == "no" for step in costs):
        return _satisfied(evidence, (suboptimal, *costs), "do-not-post-train")
    doubtful = [metric for metric in (RECALIBRATION, BEYOND) if evidence.gain(metric) == "unknown"]
    counts = [rows_to_settle(evidence, evidence.item(metric)) for metric in doubtful]
    rows = max((count for count in counts if count is not None), default=None)
    lean: Action = "done" if _adds_nothing(evidence) else evidence.now
    if evidence.features:
        then = (*_without(evidence), *_more_rows(rows, "whether there is anything to win"))
        return Advice((suboptimal,), "cannot-tell", next_steps=then, rows_needed=rows, lean=lean)
    name = said(_NAME_FEATURES[evidence.counted])
    advice = f"{name}: more rows alone do not show what features would add to the score."
    then = (advice, *_more_rows(rows, "whether recalibration wins"))
    return Advice((suboptimal,), "cannot-tell", next_steps=then, lean=lean)


def _without(evidence: Evidence) -> Iterator[str]:
    if evidence.unlearnable:
        names = listed(evidence.unlearnable)
        yield f"Leave {names} out of the features, or give what it stands for as numbers or as categories that recur."


def _adds_nothing(evidence: Evidence) -> bool:
    """Whether recalibration is the best buy by the estimates, and yet no better than a constant decision."""
    return evidence.best == "recalibrate" and evidence.useless


def rows_to_settle(evidence: Evidence, item: Item) -> int | None:
    """Rows that show a gain above 0, or one within its limit, were the gain as estimated, in 4 of 5 samples."""
    if item.value is None:
        return None
    return rows_for(evidence, item, max(item.value, evidence.limit(item.metric) - item.value))


def rows_for(evidence: Evidence, item: Item, effect: float) -> int | None:
    """Rows whose interval ends beyond an effect of this size in 4 of 5 samples of so many."""
    if item.interval is None:
        return None
    half_width = (item.interval[1] - item.interval[0]) / 2
    needed = power.rows_for(evidence.rows, half_width, effect, evidence.confidence)
    return None if needed is None else max(needed, evidence.rows + 1)


def _more_rows(rows: int | None, what: str) -> tuple[str, ...]:
    """The sentence that names them; empty where there is no number."""
    return () if rows is None else (f"About {rows:,} rows like these show {what} in 4 of 5 cases.",)


# What is said first.


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


_WHAT = {
    "recalibrate": ("Recalibrate", "a function of the score alone"),
    "post-train": ("Post-train on the features", "a small model on score and features"),
}
"""The action as advice, and what its method is."""


def _lead(evidence: Evidence, advice: Advice) -> Iterator[str]:
    """What to do today and what it wins, how sure that is, what of it is free, and what the score is worth as it is."""
    now, constant, say = advice.act_now, evidence.constant, evidence.say
    if now.action == "done":
        yield _use_as_it_is(evidence, advice)
    else:
        what, words = _WHAT[now.action]
        interval, costs = evidence.item(GAINS[now.action]).interval, evidence.costs.get(now.action, 0.0)
        ends = None if interval is None else (interval[0] - costs, interval[1] - costs)
        wins = f"wins {say(now.gain, ends)}" + (" after its cost" if now.costly else "")
        small = ", which is clear but small" if advice.small and advice.action == now.action else ""
        yield f"{what} with {now.method} ({words}): {wins}{small}."
    if now.chance is not None:
        sure = _SURE[advice.certainty] if now.chance < CLEAR_CHANCE else ""
        yield f"{_chance_of(evidence, advice)} is {chance_words(now.chance)}{sure}."
    elif advice.certainty == "open":
        yield "Whether any method wins is open: see below what would settle it."
    if now.action == "done" and advice.action == "cannot-tell" and evidence.best != "done":
        yield _too_little(evidence)
    yield from _unlearnable(evidence)
    yield from _free_today(evidence, advice)
    if constant is not None and (now.action != "done" or not constant.gain > 0):
        yield _no_better(evidence)


CLEAR_CHANCE = 0.975
"""A chance that needs no word beside it."""
_SURE = {"clear": "", "likely": ": likely, but not clear", "open": ": open, see below what would settle it"}


def _use_as_it_is(evidence: Evidence, advice: Advice) -> str:
    """Where nothing is to be fitted."""
    constant = evidence.constant
    why = {
        "done": "no method wins anything that matters",
        "do-not-post-train": "post-training costs more than it wins",
        "find-better-features": "it is not good enough, and post-training cannot win what is missing",
        "cannot-tell": "no method is sure enough to win",
    }[advice.action]
    if constant is None or not constant.gain > 0:
        return f"Use the model as it is: {why}."
    words = f"{constant.words[0].upper()}{constant.words[1:]}"
    if advice.useless:
        why = "even recalibrated, the score does no better"
    return f"{words}: that wins {evidence.say(constant.gain, constant.interval)} over acting on the score, and {why}."


def _chance_of(evidence: Evidence, advice: Advice) -> str:
    if advice.act_now.action != "done":
        constant = evidence.constant
        what = f"more than {constant.doing}" if constant is not None and constant.gain > 0 else "anything"
        return f"The chance that it wins {what}{' after its cost' if advice.act_now.costly else ''}"
    beyond = " beyond that" if evidence.free > 0 else ""
    return f"The chance that no method wins more than the tolerance of {_tolerance(evidence)}{beyond}"


def _too_little(evidence: Evidence) -> str:
    """Why the largest gain by the estimates is not acted on."""
    best, estimates = evidence.best, "smoothed estimates" if evidence.smooths else "estimates"
    wins = f"By the {estimates}, {evidence.fits[best]} wins {evidence.say(evidence.net(best) or 0.0)}"
    wins += " after its cost" if best in evidence.costs else ""
    if _adds_nothing(evidence):
        return f"{wins}, and no more than a constant decision does."
    if (evidence.net(best) or 0.0) < evidence.acted_on:
        return f"{wins}, less than {'half ' if evidence.tolerance is None else ''}the tolerance."
    return f"{wins}, and chance could explain that easily."


def _free_today(evidence: Evidence, advice: Advice) -> Iterator[str]:
    """What needs no new model: another threshold on the same score."""
    interim, now = advice.interim, advice.act_now
    if interim is None or interim.threshold is None or (now.action == "done" and advice.action != "do-not-post-train"):
        return
    clear = interim.interval is not None and interim.interval[0] > 0
    if interim.interval is not None and interim.interval[1] <= 0:
        return
    ends, start = evidence.item(NEW_THRESHOLD).interval, interim.threshold
    step = f"act from a score of {start if ends is None else around(start, ends)} on"
    if evidence.acts_from is not None:
        step += f" instead of {plain(evidence.acts_from)}"
    if now.action == "recalibrate":
        yield f"For this decision the same is free today: {step}."
    elif clear and now.action == "post-train":
        yield f"Of that, {evidence.say(interim.gain, interim.interval)} is free today: {step}."
    else:
        wins = "wins" if clear else "may win"
        yield f"Free today: {step}, which {wins} {evidence.say(interim.gain, interim.interval)}."


def _no_better(evidence: Evidence) -> str:
    """What acting on the score is worth beside a constant decision that is worth as much."""
    constant, now = evidence.constant, evidence.item(UTILITY).value or 0.0
    assert constant is not None  # asked where there is one
    if not constant.gain > 0:
        return f"As it is, acting on this score is worth no more than {constant.doing}: {evidence.say(now)}."
    less = evidence.say(constant.gain, constant.interval)
    doubt = "" if constant.clear else "; chance could explain that"
    return f"As it is, acting on this score is worth {less} less than {constant.doing}{doubt}."
