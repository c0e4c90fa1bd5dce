"""Sentences about data, tasks and advice, for decision-makers; the terminal and Markdown share them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decal_cli.analysis.evaluate import Evaluation, Report
from decal_cli.analysis.flowchart import Advice
from decal_cli.analysis.recommend import ece_advice, ece_disagrees
from decal_cli.metrics import named
from decal_cli.metrics.declare import Witness
from decal_cli.render.numbers import plain, short, span
from decal_cli.task import BinaryTask, utility_text

Line = tuple[int, str, str]
"""Indent, style, text."""

_BAR = 40
"""Columns of the longest bar."""

ACTIONS = {
    "done": "Done: use the model as it is.",
    "recalibrate": "Recalibrate.",
    "post-train": "Post-train beyond recalibration.",
    "do-not-post-train": "Do not post-train: it would cost more than it wins.",
    "find-better-features": "Find better features: post-training cannot win what is missing.",
    "cannot-tell": "Cannot tell yet.",
}


def data_lines(evaluation: Evaluation) -> list[str]:
    """What was read, which columns were taken, and the decision."""
    lines = [
        f"{item.path}: {item.rows:,} rows, {item.positives:,} positive ({100 * item.positives / item.rows:.1f} %)"
        for item in evaluation.inputs
    ]
    columns = []
    for role, taken in evaluation.columns.items():
        names = taken if isinstance(taken, str) else _listed(taken)
        columns.append(f"{role} {names}{' (found by its usual name)' if role in evaluation.found else ''}")
    lines += ["; ".join(columns)] if columns else []
    lines += [task_line(evaluation.task)] if evaluation.task else []
    return lines + list(evaluation.notes)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{names[0]} … {names[-1]} ({len(names)} columns)"


def task_line(task: BinaryTask) -> str:
    """The decision in words."""
    (u00, u01), (u10, u11) = task.utility
    at = "" if task.decision_threshold == task.threshold else f", operated at {plain(task.decision_threshold)}"
    worth = f"utilities {plain(u00)}, {plain(u01)}; {plain(u10)}, {plain(u11)}"
    return f"decide 1 from t* = {plain(task.threshold)} on{at}; {worth} (u_delta = {plain(task.u_delta)})"


def unknown_lines(evaluation: Evaluation) -> list[str]:
    """Without features: what cannot be known, with the worst case, as such."""
    lines = []
    for report in evaluation.reports:
        worst = report.results.get("regret_grouping_worst")
        grouping = report.results.get("regret_grouping")
        if report.group or worst is None or worst.value is None or grouping is None or grouping.value is not None:
            continue
        name = "" if len(evaluation.reports) == 1 else f"{report.model}: "
        lines.append(
            f"{name}without features, what better features or post-training could win beyond recalibration is not "
            f"known: between 0 and {plain(worst.value)} per decision (a worst case, not an estimate)"
        )
    return lines


def worst_lines(reports: Sequence[Report]) -> list[str]:
    """The tasks of the worst agents, to be pasted: one line for all metrics of a report that share one."""
    lines = []
    for report in reports:
        keys: dict[str, list[str]] = {}
        for key, result in report.results.items():
            if result.witness is not None:
                keys.setdefault(_worst(result.witness), []).append(key)
        where = "" if len(reports) == 1 else f" on {report.model}{', ' + report.group if report.group else ''}"
        lines += [f"worst agent of {', '.join(shared)}{where}: {text}" for text, shared in keys.items()]
    return lines


def _worst(witness: Witness) -> str:
    paste = f"--utility '{utility_text(witness.pasted)}' (loses {plain(witness.loss)}, see {witness.shown_by})"
    if len(witness.utility) == 2:
        return paste
    kinks = " and ".join(plain(threshold) for threshold in witness.thresholds)
    return f"{len(witness.utility)} actions, thresholds {kinks}; the worst with two: {paste}"


def ladder(report: Report) -> list[tuple[str, float]]:
    """Expected utility per 1,000 decisions, from the constant decisions to what post-training may reach.

    The last rungs add the gains judged on held-out rows to what the score yields as it is.
    """
    rungs = [
        ("always decide 0", "eu_never", None),
        ("always decide 1", "eu_always", None),
        ("by the score as it is", "expected_utility", None),
        ("by the score recalibrated", "expected_utility", "gain_recalibration"),
        ("by score and features", "expected_utility", "gain_post_training"),
    ]
    found = []
    for name, base, gain in rungs:
        value = report.results[base].value
        more = 0.0 if gain is None else report.results[gain].value
        if value is not None and more is not None:
            found.append((name, 1000 * (value + more)))
    return found


def ladder_lines(report: Report) -> Iterator[Line]:
    """The ladder as bars: each reaches from the lowest rung to its own."""
    rungs = ladder(report)
    lowest, highest = min(value for _, value in rungs), max(value for _, value in rungs)
    wide = max(len(name) for name, _ in rungs)
    yield 0, "", "Expected utility per 1,000 decisions"
    for name, value in rungs:
        length = round(_BAR * (value - lowest) / (highest - lowest)) if highest > lowest else 0
        yield 3, "", f"{name:<{wide}}  {short(value, 3):>8}  {'█' * length}".rstrip()


def advice_lines(report: Report, advice: Advice) -> Iterator[Line]:
    """The walk through the flowchart, the action, and what to do next."""
    for number, step in enumerate(advice.steps, 1):
        yield 0, "bold", f"{number}. {step.question}  {step.answer}"
        yield 3, "", step.reason
        for item in step.evidence:
            value = "undefined" if item.value is None else f"{short(item.value, 4)} {span(item.interval, 4)}".rstrip()
            yield 5, "dim", f"{named(item.metric).title.lower()}: {value}"
    yield 0, "", ""
    yield 0, "bold", f"→ {ACTIONS[advice.action]}{' Method: ' + advice.method + '.' if advice.method else ''}"
    if advice.gain is not None:
        yield 2, "", gain_sentence(advice)
    for text in advice.next_steps:
        yield 2, "", text
    for said in (constant_sentence(report), ece_sentence(report, advice)):
        if said:
            yield 2, "", said


def constant_sentence(report: Report) -> str | None:
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


def gain_sentence(advice: Advice) -> str:
    """The gain to expect, per decision and per 1,000."""
    gain = advice.gain or 0.0
    ends = "" if advice.interval is None else f" (between {plain(advice.interval[0])} and {plain(advice.interval[1])})"
    thousand = ""
    if advice.interval is not None:
        thousand = f" ({plain(1000 * advice.interval[0])} to {plain(1000 * advice.interval[1])})"
    return (
        f"Gain to expect: {plain(gain)} utility per decision{ends}, {plain(1000 * gain)} per 1,000 decisions{thousand}."
    )


def ece_sentence(report: Report, advice: Advice) -> str | None:
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
        else ("it does not ask whether the error crosses t*")
    )
    return f"{sentence} ECE alone would have advised to recalibrate: {why}."
