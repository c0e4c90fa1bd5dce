"""Sentences on advice, for decision-makers."""

from __future__ import annotations

from collections.abc import Iterator

from decal_cli.analysis.evaluate import Report, Result
from decal_cli.analysis.flowchart import Advice, Item
from decal_cli.analysis.recommend import ece_advice, ece_disagrees
from decal_cli.metrics import named
from decal_cli.render.blocks import Conclusion, Step, Steps
from decal_cli.render.numbers import apart, plain, short, span


def walk_of(advice: Advice) -> Steps:
    """The walk through the flowchart."""
    return Steps(
        tuple(
            Step(step.question, step.answer, step.reason, tuple(map(_evidence, step.evidence))) for step in advice.steps
        )
    )


def _evidence(item: Item) -> str:
    value = "undefined" if item.value is None else f"{short(item.value, 4)} {span(item.interval, 4)}".rstrip()
    return f"{named(item.metric).title.lower()}: {value}"


def constant_line(report: Report, advice: Advice) -> str | None:
    """What is told before anything else: acting on the score is worth no more than a constant decision."""
    constant, now = advice.constant, report.results["expected_utility"].value
    if constant is None or now is None:
        return None
    if not constant.lead > 0:
        worth = f"both are worth {short(1000 * now, 3)} per 1,000 decisions"
        return f"Acting on this score is worth no more than always deciding {constant.decision}: {worth}."
    worth = f"{' against '.join(apart(1000 * (now + constant.lead), 1000 * now, 3))} per 1,000 decisions"
    doubt = "" if constant.clear else ", though chance could explain the difference"
    return f"Always deciding {constant.decision} is worth more than acting on this score: {worth}{doubt}."


def conclusion_of(report: Report, advice: Advice) -> Conclusion:
    """The action, what to expect of it, and what to do next."""
    return Conclusion(advice.headline, tuple(_sentences(report, advice)))


def _sentences(report: Report, advice: Advice) -> Iterator[str]:
    if advice.gain is not None:
        yield _gain_sentence(advice.gain, advice)
    yield from advice.next_steps
    yield from filter(None, (_ece_sentence(report, advice),))


def _gain_sentence(gain: float, advice: Advice) -> str:
    """The expected gain of the method, per decision and per 1,000."""
    ends = thousand = ""
    if advice.interval is not None:
        low, high = advice.interval
        ends = f" ({plain(low)} to {plain(high)})"
        thousand = f" ({plain(1000 * low)} to {plain(1000 * high)})"
    return (
        f"Expected gain of {advice.method}: {plain(gain)} utility per decision{ends}, "
        f"{plain(1000 * gain)} per 1,000 decisions{thousand}."
    )


def _ece_sentence(report: Report, advice: Advice) -> str | None:
    """What ECE says, which is the same for every t*, beside what recalibration wins at this one."""
    ece, null = report.results["ece"].value, report.results["ece_null"].value
    gain = report.results["gain_recalibration"]
    if ece is None or null is None or gain.value is None:
        return None
    sentence = (
        f"ECE is {short(ece, 4)} for every t* (a calibrated model would show {short(null, 4)}); at this t*, "
        f"recalibration {_verb(gain)} {short(gain.value, 4)} {span(gain.interval, 4)}".rstrip()
        + "."
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
