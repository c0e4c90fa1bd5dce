"""Sentences on advice, for decision-makers."""

from __future__ import annotations

from collections.abc import Iterator

from decal_cli.analysis.evaluate import Report
from decal_cli.analysis.flowchart import Advice, Item
from decal_cli.analysis.recommend import ece_advice, ece_disagrees
from decal_cli.metrics import named
from decal_cli.render.blocks import Conclusion, Step, Steps
from decal_cli.render.numbers import plain, short, span

ACTIONS = {
    "done": "Done: use the model as it is.",
    "recalibrate": "Recalibrate.",
    "post-train": "Post-train beyond recalibration.",
    "do-not-post-train": "Do not post-train: it would cost more than it wins.",
    "find-better-features": "Find better features: post-training cannot win what is missing.",
    "cannot-tell": "Cannot tell yet.",
}


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


def conclusion_of(report: Report, advice: Advice) -> Conclusion:
    """The action, what to expect of it, and what to do next."""
    method = f" Method: {advice.method}." if advice.method else ""
    return Conclusion(ACTIONS[advice.action] + method, tuple(_sentences(report, advice)))


def _sentences(report: Report, advice: Advice) -> Iterator[str]:
    if advice.gain is not None:
        yield _gain_sentence(advice.gain, advice)
    yield from advice.next_steps
    yield from filter(None, (_constant_sentence(report), _ece_sentence(report, advice)))


def _constant_sentence(report: Report) -> str | None:
    """Where deciding the same always is worth more than the score as it is."""
    now = report.results["expected_utility"].value
    constant = {0: report.results["eu_never"].value, 1: report.results["eu_always"].value}
    worth = {action: value for action, value in constant.items() if value is not None}
    if now is None or not worth:
        return None
    best = max(worth, key=lambda action: worth[action])
    if worth[best] <= now:
        return None
    return (
        f"Always deciding {best} is worth more on these rows than the score as it is: "
        f"{short(1000 * worth[best], 3)} against {short(1000 * now, 3)} per 1,000 decisions."
    )


def _gain_sentence(gain: float, advice: Advice) -> str:
    """The gain to expect, per decision and per 1,000."""
    ends = thousand = ""
    if advice.interval is not None:
        low, high = advice.interval
        ends = f" (between {plain(low)} and {plain(high)})"
        thousand = f" ({plain(1000 * low)} to {plain(1000 * high)})"
    return (
        f"Gain to expect: {plain(gain)} utility per decision{ends}, {plain(1000 * gain)} per 1,000 decisions{thousand}."
    )


def _ece_sentence(report: Report, advice: Advice) -> str | None:
    """What ECE says, which is the same for every t*, beside what recalibration wins at this one."""
    ece, null = report.results["ece"].value, report.results["ece_null"].value
    gain = report.results["gain_recalibration"]
    if ece is None or null is None or gain.value is None:
        return None
    verb = "wins" if gain.value > 0 else "wins nothing:"
    sentence = (
        f"ECE is {short(ece, 4)} whatever t* is (a perfectly calibrated model would show {short(null, 4)}); "
        f"at this t*, recalibration {verb} {short(gain.value, 4)} {span(gain.interval, 4)}".rstrip()
        + "."
    )
    if not ece_disagrees(report, advice):
        return sentence
    if ece_advice(report) == "leave":
        return f"{sentence} ECE alone would have advised to leave the model as it is."
    why = (
        "it does not see what differs between rows of one score"
        if advice.action == "post-train"
        else "it does not ask whether the error crosses t*"
    )
    return f"{sentence} ECE alone would have advised to recalibrate: {why}."
