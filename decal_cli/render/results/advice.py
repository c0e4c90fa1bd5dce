"""Sentences on advice, for decision-makers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decal_cli.analysis.evaluate import Report, Result
from decal_cli.analysis.flowchart import Advice, Item
from decal_cli.analysis.recommend import ece_advice, ece_disagrees
from decal_cli.metrics import named
from decal_cli.numbers import apart, per_decision, short, span, with_ends
from decal_cli.render.blocks import Conclusion, Step, Steps
from decal_cli.render.results.counts import counted_sentences
from decal_cli.render.terms import Terms
from decal_cli.task import BinaryTask


def walk_of(advice: Advice, terms: Terms) -> Steps:
    """The walk through the flowchart."""
    return Steps(
        tuple(
            Step(step.question, step.answer, terms.worded(step.reason), tuple(_evidence(step.evidence, terms)))
            for step in advice.steps
        )
    )


def _evidence(items: Sequence[Item], terms: Terms) -> Iterator[str]:
    """What a step rests on, a line each; utilities are amounts of one size, where the user said what amounts mean."""
    amounts = [item.value for item in items if item.value is not None and _is_amount(item, terms)]
    for item in items:
        if item.value is None:
            value = "undefined"
        elif _is_amount(item, terms):
            value = terms.amount(item.value, item.interval, amounts)
        else:
            value = f"{short(item.value, 4)} {span(item.interval, 4)}".rstrip()
        yield f"{named(item.metric).title.lower()}: {value}"


def _is_amount(item: Item, terms: Terms) -> bool:
    return terms.with_amounts and named(item.metric).unit == "utility"


def constant_line(report: Report, advice: Advice, terms: Terms) -> str | None:
    """What is told before anything else: acting on the score is worth no more than a constant decision."""
    constant, now = advice.constant, report.results["expected_utility"].value
    if constant is None or now is None:
        return None
    factor, unit = terms.scale(now, now + constant.lead)
    per = " ".join(filter(None, (unit, terms.span)))
    if not constant.lead > 0:
        worth = f"both are worth {short(factor * now, 3)} {per}"
        return terms.worded(f"Acting on this score is worth no more than always deciding {constant.decision}: {worth}.")
    worth = f"{' against '.join(apart(factor * (now + constant.lead), factor * now, 3))} {per}"
    doubt = "" if constant.clear else ", though chance could explain the difference"
    return terms.worded(f"Always deciding {constant.decision} is worth more than acting on this score: {worth}{doubt}.")


def conclusion_of(report: Report, advice: Advice, task: BinaryTask | None, terms: Terms) -> Conclusion:
    """The action, what to expect of it, and what to do next."""
    return Conclusion(terms.worded(advice.headline), tuple(map(terms.worded, _sentences(report, advice, task, terms))))


def _sentences(report: Report, advice: Advice, task: BinaryTask | None, terms: Terms) -> Iterator[str]:
    if task is not None:
        yield from counted_sentences(report, advice, task, terms)
    if advice.gain is not None:
        yield _gain_sentence(advice.gain, advice, terms)
    yield from advice.next_steps
    yield from filter(None, (_ece_sentence(report, advice, terms),))


def _gain_sentence(gain: float, advice: Advice, terms: Terms) -> str:
    """The expected gain of the method, per decision and as an amount."""
    numbers = (gain, *(advice.interval or ()))
    amounts, words = terms.amounts(*numbers)
    each = terms.worded(per_decision(gain, advice.interval))
    return f"Expected gain of {advice.method}: {each}, {with_ends(amounts, f'{words} {terms.span}'.strip())}."


def _ece_sentence(report: Report, advice: Advice, terms: Terms) -> str | None:
    """What ECE says, which is the same for any decision, beside what recalibration wins for this one."""
    if "ece" not in report.results:
        return None
    ece, null = report.results["ece"].value, report.results["ece_null"].value
    gain = report.results["gain_recalibration"]
    if ece is None or null is None or gain.value is None:
        return None
    sentence = (
        f"ECE is {short(ece, 4)} for any decision (a calibrated model would show {short(null, 4)}); for this one, "
        f"recalibration {_verb(gain)} {terms.worded(per_decision(gain.value, gain.interval))}."
    )
    if not ece_disagrees(report, advice):
        return sentence
    if ece_advice(report) == "leave":
        return f"{sentence} ECE alone would leave the model as it is."
    return f"{sentence} ECE alone would advise recalibration: {_blind_spot(advice)}."


def _blind_spot(advice: Advice) -> str:
    """What ECE does not see that leads elsewhere."""
    if advice.action == "post-train":
        return "it does not see how rows with equal scores differ"
    if advice.useless:
        return "it does not see that a constant decision wins as much"
    if advice.action == "do-not-post-train":
        return "it does not know what recalibration costs"
    return "it does not ask whether the error crosses t*"


def _verb(gain: Result) -> str:
    """What recalibration does by its gain and its interval."""
    if gain.interval is not None and gain.interval[0] > 0:
        return "wins"
    if gain.interval is not None and gain.interval[1] <= 0:
        return "loses: its gain is"
    return "may win or lose: its gain is"
