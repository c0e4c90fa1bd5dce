"""What to see in each picture of a report, in words; and what it comes to, for those who do not see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decal_cli.analysis.evaluate import Evaluation, Report
from decal_cli.numbers import plain
from decal_cli.plot.panels import MAX_DASHED
from decal_cli.plot.style import MAX_BANDS

TITLES = {
    "places": "Which rows have a place",
    "capacity": "What decisions are worth with so many places",
    "factor": "What decisions are worth if a false positive costs more or less",
    "waterfall": "What can be won",
    "brier": "What deciding costs at every threshold",
    "worth": "What ways of acting win at every threshold",
    "reliability": "Reliability",
    "grouping": "What equal scores hide",
    "confusion": "What is done for each class",
    "class-reliability": "Reliability of each class",
    "risk-coverage": "Errors among the surest rows",
}
"""Of the pictures, in the order in which the page shows them."""
SURE = "Bands are {level} intervals."
_YOURS = "The dashed vertical line is your capacity."
WORDS: dict[str, str] = {
    "places": "Capture is the share of the rows of label 1 that have a place, precision the share of label 1 among the "
    f"rows with a place.{{by_row}} {SURE} {_YOURS}",
    "capacity": "Higher is better. The solid line is what acting on the rows with a place is worth; dashed, without a "
    f"limit. Its slope is what one more place is worth.{{by_row}} {SURE} {_YOURS}",
    "factor": "Higher is better. To the right a false positive costs so many times as much as it does now in every "
    "row. The dotted line is the recalibrated score on held-out rows, the grey one the better constant decision. "
    f"{SURE} The dashed vertical line is what it costs now.",
    "confusion": "Each cell: rows for which the action was taken, by their class, and below what they lose per 1,000 "
    "rows of all against the best action for the class. The darker a cell, the more it loses.",
    "class-reliability": "Each line is how often a class occurs where it has this probability, in bins of equally many "
    "rows; the thick one how often the most probable class is right. On the dotted diagonal the probability is right. "
    "Where there are many classes, the least calibrated have a colour.",
    "risk-coverage": "The share of errors among the rows that the model is surest of, as more and more rows are "
    f"accepted. Lower is better. {SURE} AURC is the mean height of the line.",
    "waterfall": "Further right is better. The marker is what acting on the score as it is is worth; the first bar is "
    "what recalibration adds on held-out rows; {last}. Thin lines are {level} intervals: a bar whose interval begins "
    "left of the bar's start may win nothing.",
    "grouping": "Each grey dot is a group of rows with nearly equal scores and similar features. Dots far above and "
    "below the dashed line show rows that differ although their scores agree: only post-training on the features can "
    "tell them apart. Some spread is chance.",
}
"""How to read a picture; level: the confidence; by_row: what else is drawn where rows have utilities of their own."""
BY_ROW = {
    "places": " Capture of value counts each row by what missing it costs.",
    "capacity": " The other lines give the same places to the highest scores, and to the largest costs of a miss.",
}


def caption(kind: str, evaluation: Evaluation) -> str:
    """How to read a picture of this kind, in two to five sentences; it names what is drawn and nothing else."""
    features = any(report.features for report in evaluation.reports)
    last = (
        "the last bar is what using the features adds"
        if features
        else "no features were named, so what they would add is not known"
        if evaluation.plan.task is None
        else "the dotted bar is only an upper limit, reached if every label were known: no features were named"
    )
    by_row = BY_ROW.get(kind, "") if evaluation.by_row is not None else ""
    level = f"{100 * evaluation.plan.confidence:g} %"
    words = {"brier": _of_brier, "worth": _of_worth, "reliability": _of_reliability}
    text = words[kind](len(evaluation.reports), features) if kind in words else WORDS[kind]
    crowded = kind in ("capacity", "factor", "risk-coverage") and len(evaluation.reports) > MAX_BANDS
    if crowded or not evaluation.plan.intervals:
        text = text.replace(f" {SURE}", "")
    return " ".join((text.format(level=level, last=last, by_row=by_row), *_thresholds(kind, evaluation)))


def _of_brier(reports: int, features: bool) -> str:
    start = "Lower is better. A solid line is the utility that acting on a score loses at each threshold"
    if reports > MAX_DASHED:
        return f"{start}. Each model and group has a colour."
    start += ", a dashed one what is lost once the score is recalibrated on these rows."
    if reports > 1:
        return f"{start} Each model and group has a colour."
    more = " The other lines also use the features." if features else ""
    return (
        f"{start}{more} The hatched area between both is miscalibration. Where the solid line lies above the dotted "
        f"one, a constant decision loses less. {SURE}"
    )


def _of_worth(reports: int, features: bool) -> str:
    lines = "the solid line is the score as it is, the dashed one the recalibrated score on held-out rows"
    if reports > 1:
        dashed = "" if reports > MAX_DASHED else ", dashed ones recalibrated"
        lines = f"solid lines are scores as they are{dashed}; each model and group has a colour"
    elif features:
        lines += ", the third the score with the features"
    return f"Higher is better: {lines}. Below 0 the better constant decision wins more."


def _of_reliability(reports: int, features: bool) -> str:
    return (
        "The line is how often label 1 occurs at each score. On the dotted diagonal the score is right; the fit of a "
        "calibrated model lies in the grey band {level} of the time."
    )


def _thresholds(kind: str, evaluation: Evaluation) -> Iterator[str]:
    """What marks the thresholds of the decision."""
    task = evaluation.plan.task
    if task is None or kind not in ("brier", "worth", "reliability", "grouping"):
        return
    plural = "s are your thresholds" if len(task.thresholds) > 1 else " is your threshold"
    yield f"The dashed vertical line{plural}, t* = {', '.join(map(plain, task.thresholds))}."
    if len(task.thresholds) == 1 and kind == "reliability":
        yield "In a shaded range recalibration decides otherwise; it ends where the recalibrated score reaches t*."
    if len(task.thresholds) == 1 and kind == "grouping":
        yield "A thin bar is how far rows of a bin may differ without another decision; filled: they differ more."


FINDINGS = {
    "places": ("capture", "{} of the rows of label 1 have a place"),
    "capacity": ("utility_at_capacity", "with the places there are, a decision is worth {}"),
    "factor": ("expected_utility", "with the costs of now, a decision by the score is worth {}"),
    "waterfall": ("gain_recalibration", "recalibration wins {} per decision"),
    "brier": ("regret", "of what acting on the score loses at your threshold, {} per decision could be won"),
    "worth": ("external_regret", "at your threshold a constant decision is worth {} more per decision than the score"),
    "reliability": ("ece", "scores and frequencies of label 1 differ by {} on average"),
    "grouping": ("grouping_loss", "rows with equal scores differ: trees see a grouping loss of {}, a lower bound"),
    "confusion": ("expected_utility", "a decision is worth {} on average"),
    "class-reliability": ("ece_top", "the largest probability and how often it is right differ by {} on average"),
    "risk-coverage": ("aurc", "the mean share of errors among the surest rows is {}"),
}
"""What a picture comes to: a metric, and a sentence on it."""
MAX_FOUND = 4
"""Models and groups whose finding is told."""


def finding(kind: str, reports: Sequence[Report]) -> str:
    """What a picture comes to, for those who do not see it; of several models and groups, of the first ones; '' where
    no number says it.
    """
    metric, said = FINDINGS[kind]
    found = []
    for report in reports[:MAX_FOUND]:
        value = report.results[metric].value if metric in report.results else None
        if value is not None:
            found.append(f"{report.model if report.group is None else f'{report.model}, {report.group}'}: "
                         f"{said.format(plain(value))}")  # fmt: skip
    return f"{'; '.join(found)}." if found else ""
