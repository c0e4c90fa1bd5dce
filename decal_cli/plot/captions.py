"""What to see in each picture of a report, in words."""

from __future__ import annotations

from decal_cli.numbers import plain
from decal_cli.task import Task

TITLES = {
    "places": "Which rows have a place",
    "capacity": "What decisions are worth with so many places",
    "factor": "What decisions are worth if a false positive costs more or less",
    "waterfall": "What can be won",
    "brier": "What deciding costs at every threshold",
    "decision": "Net benefit at every threshold",
    "reliability": "Reliability",
    "grouping": "What equal scores hide",
    "confusion": "What is done for each class",
    "class-reliability": "Reliability of each class",
    "risk-coverage": "Errors among the surest rows",
}
"""Of the pictures, in the order in which the page shows them."""

_OF_OTHER_TASKS = {
    "places": (
        "Capture is the share of the rows of label 1 that have a place, precision the share of label 1 among the rows "
        "with a place; of value, each row counts by what missing it costs.",
        "Bands are {} intervals. The dashed vertical line is your capacity.",
    ),
    "capacity": (
        "Higher is better. The solid line is what acting on the rows with a place is worth; dashed, without a limit.",
        "Its slope is what one more place is worth. Where rows have utilities of their own, the other lines give the "
        "same places to the highest scores, and to the largest costs of a miss.",
        "Bands are {} intervals. The dashed vertical line is your capacity.",
    ),
    "factor": (
        "Higher is better. To the right a false positive costs so many times as much as it does now in every row.",
        "The dotted line is the recalibrated score on held-out rows, the grey one the better constant decision.",
        "Bands are {} intervals. The dashed vertical line is what it costs now.",
    ),
}
"""How to read pictures over other tasks and capacities; {}: the confidence."""
_OF_CLASSES = {
    "confusion": (
        "Each cell: rows for which the action was taken, by their class, and below what they lose per 1,000 rows of "
        "all against the best action for the class.",
        "The darker a cell, the more it loses.",
    ),
    "class-reliability": (
        "Each line is how often a class occurs where it has this probability, in bins of equally many rows; the thick "
        "one how often the most probable class is right.",
        "On the dotted diagonal the probability is right. Where there are many classes, the least calibrated have a "
        "colour.",
    ),
    "risk-coverage": (
        "The share of errors among the rows that the model is surest of, as more and more rows are accepted.",
        "Lower is better; bands are {} intervals. AURC is the mean height of the line.",
    ),
}
"""How to read pictures of several classes; {}: the confidence."""


def caption(picture: str, task: Task | None, features: bool, confidence: float, several: bool = False) -> str:
    """How to read a picture of this kind, in two to four sentences; several: of rows of several classes."""
    return " ".join(_sentences(picture, task, features, confidence, several))


def _sentences(picture: str, task: Task | None, features: bool, confidence: float, several: bool) -> list[str]:
    level = f"{100 * confidence:g} %"
    if texts := _OF_OTHER_TASKS.get(picture, _OF_CLASSES.get(picture)):
        return [text.format(level) for text in texts]
    at = () if task is None else task.thresholds
    plural = "s are your thresholds" if len(at) > 1 else " is your threshold"
    line = [f"The dashed vertical line{plural}, t* = {', '.join(map(plain, at))}."] if at else []
    if picture == "waterfall":
        last = (
            "the last bar is what using the features adds"
            if features
            else "no features were named, so what they would add is not known"
            if several
            else "the dotted bar is only an upper limit, reached if every label were known: no features were named"
        )
        return [
            "Further right is better. The dot is what acting on the score as it is is worth.",
            f"The first bar is what recalibration adds on held-out rows; {last}.",
            f"Thin lines are {level} intervals. A bar whose interval begins left of the bar's start may win nothing.",
        ]
    if picture == "brier":
        regions = " The other lines also use the features." if features else ""
        return [
            "Lower is better. The solid line is the utility that acting on the score loses at each threshold,",
            f"the dashed line what is lost once the score is recalibrated on these rows.{regions}",
            "The hatched area between both lines is miscalibration.",
            "Where the solid line lies above the dotted one, a constant decision loses less.",
            *line,
        ]
    if picture == "decision":
        return [
            "Higher is better. Net benefit counts true positives, less false positives at their cost.",
            "Where a model lies below 'treat all' or 'treat none', a constant decision is worth more than the model.",
            *line,
        ]
    if picture == "reliability":
        changes = (
            "In the shaded range, up to t_f, where the recalibrated score reaches t*, recalibration decides otherwise."
        )
        return [
            "The line is how often label 1 occurs at each score. On the dotted diagonal the score is right;",
            f"the fit of a calibrated model lies in the grey band {level} of the time.",
            *line,
            *([] if len(at) != 1 else [changes]),
        ]
    differ = "A thin bar is how far the rows of a bin may differ without changing a decision; filled: they differ more."
    return [
        "Each grey dot is a group of rows with nearly equal scores and similar features.",
        "Dots far above and below the dashed line show rows that differ although their scores agree:",
        "only post-training on the features can tell them apart. Some spread is chance.",
        *([] if len(at) != 1 else [differ]),
        *line,
    ]
