"""What to see in each picture, in words."""

from __future__ import annotations

from decal_cli.numbers import plain
from decal_cli.task import BinaryTask

TITLES = {
    "waterfall": "What can be won",
    "brier": "What deciding costs at every threshold",
    "decision": "Net benefit at every threshold",
    "reliability": "Reliability",
    "grouping": "What equal scores hide",
}
"""Of the pictures, in the order in which the page shows them."""


def caption(picture: str, task: BinaryTask | None, features: bool, confidence: float) -> str:
    """How to read a picture of this kind, in two to four sentences."""
    return " ".join(_sentences(picture, task, features, confidence))


def _sentences(picture: str, task: BinaryTask | None, features: bool, confidence: float) -> list[str]:
    level = f"{100 * confidence:g} %"
    line = [] if task is None else [f"The dashed vertical line is your threshold, t* = {plain(task.threshold)}."]
    if picture == "waterfall":
        last = (
            "the last bar is what using the features adds"
            if features
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
            *([] if task is None else [changes]),
        ]
    differ = "A thin bar is how far the rows of a bin may differ without changing a decision; filled: they differ more."
    return [
        "Each grey dot is a group of rows with nearly equal scores and similar features.",
        "Dots far above and below the dashed line show rows that differ although their scores agree:",
        "only post-training on the features can tell them apart. Some spread is chance.",
        *([] if task is None else [differ]),
        *line,
    ]
