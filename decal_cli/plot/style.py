"""What colours, markers and lines mean, in every picture: colour and marker a model, line style a way of deciding."""

from __future__ import annotations

from typing import Any, NamedTuple

GREY = "0.55"
THRESHOLD = "#b3261e"
"""Of the user's threshold and what changes there."""
COLOURS = ("#1b3a6b", "#e0701a", "#14664a", "#c77cc0", "#6b2a2a", "#4aa8de", "#5f5500", "#a8a8d0")
"""Dark and light in turn, so that neighbours differ in grey as well."""
MARKERS = "osD^vPX*"
LINES = {
    "brier": ("-", "as it is"),
    "brier_calibrated": ("--", "recalibrated (same rows)"),
    "brier_regions": ("-.", "with features (held out)"),
    "brier_regions_plug_in": (":", "with features (same rows)"),
}
"""Line style and words of each way of deciding."""
WAY_LINES = {
    "now": ("-", "score as it is"),
    "recalibrate": ("--", "recalibrated (held out)"),
    "post-train": ("-.", "with features (held out)"),
}
"""The same of what each way of acting wins."""

RC: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "text.parse_math": False,
    "svg.hashsalt": "decal",
    "svg.fonttype": "none",
}


MAX_BANDS = 2
"""Curves that are drawn with a band; those of more hide each other."""


class Style(NamedTuple):
    """A model's colour and marker."""

    colour: str
    marker: str


def style_of(number: int) -> Style:
    """The style of the model of this number, the same in every panel."""
    return Style(COLOURS[number % len(COLOURS)], MARKERS[(number + number // len(COLOURS)) % len(MARKERS)])


def marks(number: int, points: int, models: int) -> dict[str, Any]:
    """Markers at some ten points of a curve, staggered between models so that none hides another."""
    step = max(points // 8, 1)
    start = (number * step) // max(models, 1)
    look = {"markersize": 4.5, "markeredgecolor": "white", "markeredgewidth": 0.5}
    return {"marker": style_of(number).marker, "markevery": (start, step), **look}


def below(axes: Any, columns: int = 2) -> None:
    """The legend beneath the panel, where it hides nothing."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns, handlelength=3.2, columnspacing=1.4)
