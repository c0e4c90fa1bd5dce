"""How every picture looks: colours, markers and lines, names of others, and the part of an axis that shows something.

Colour and marker are a model, line style is a way of deciding.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from decal_cli.analysis.sweep import Sweep, VariedSweep
from decal_cli.errors import printable
from decal_cli.tables.table import Floats, Table

GREY = "0.55"
PALE: Any = {"color": "0.85", "lw": 0.8, "zorder": 1}
"""How lines look that have no name, where too many would have one."""
THRESHOLD = "#b3261e"
"""The colour of the user's threshold and of the decisions that change there."""
COLOURS = ("#1b3a6b", "#e0701a", "#14664a", "#c77cc0", "#6b2a2a", "#4aa8de", "#5f5500", "#a8a8d0")
"""Dark and light in turn, so that neighbours differ in grey as well."""
MARKERS = "osD^vPX*"
DOTTED: Any = (0, (1, 1.5))
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
"""Line style and words of each way of acting, in pictures of what they win."""

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
"""Most curves that are drawn with a band; more bands would hide each other."""
_LEGEND, _KEY = 84, 7
"""Characters that fit side by side in the legend of a page's panel, and those that a line of it takes."""
_AXIS = 27
"""Points that the numbers and the name of an axis take beneath a panel."""
MAX_NAME = 32
"""Most characters of a name in a picture."""
_IGNORED = "Glyph |Matplotlib currently does not support|constrained_layout not applied"


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


def band(axes: Any, at: Any, ends: Any, colour: str, curves: int = 1, factor: float = 1.0) -> None:
    """The interval around a curve, which has `low` and `high`; none where so many curves would hide each other's."""
    if ends.low is not None and curves <= MAX_BANDS:
        axes.fill_between(at, factor * ends.low, factor * ends.high, color=colour, alpha=0.13, lw=0)


def names_in(reports: Sequence[Any]) -> list[str | None]:
    """The name of each model and group that has a colour, of many the one of most rows; None for each other."""
    most: dict[str, int] = {}
    for number in sorted(range(len(reports)), key=lambda number: reports[number].rows, reverse=True):
        most.setdefault(style_of(number).colour, number)
    return [each.name if number in most.values() else None for number, each in enumerate(reports)]


def key_of_others(axes: Any, names: Sequence[str | None]) -> None:
    """The line of the legend for those without a colour, where there are any."""
    if others := names.count(None):
        key(axes, "-", f"{others} others", PALE["color"])


def curve(axes: Any, at: Any, drawn: Any, number: int, of: int, label: str | None, factor: float = 1.0) -> None:
    """The curve of a model, one of so many, with its marks and its interval; pale without a label."""
    if label is None:
        axes.plot(at, factor * drawn.value, **PALE)
        return
    colour = style_of(number).colour
    axes.plot(at, factor * drawn.value, "-", color=colour, label=label, **marks(number, len(at), of))
    band(axes, at, drawn, colour, of, factor)


def mark_at(axes: Any, at: float, label: str | None) -> None:
    """The user's threshold, or another number of the user's task, as a vertical line."""
    axes.axvline(at, color=THRESHOLD, lw=1.1, ls=(0, (4, 2)), label=label)


def diagonal(axes: Any) -> None:
    """Where frequencies are the probabilities, or both rates are equal."""
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=DOTTED)


def key(axes: Any, line: str, words: str, colour: str = GREY) -> None:
    """A line of the legend that stands for no curve of its own."""
    axes.plot([], [], line, color=colour, label=words)


def below(axes: Any, columns: int = 2) -> None:
    """The legend beneath the panel, where it hides nothing; columns: at most, fewer where labels are long."""
    from matplotlib.transforms import ScaledTranslation

    longest = max((len(label) for label in axes.get_legend_handles_labels()[1]), default=0)
    columns = min(columns, max(_LEGEND // (longest + _KEY), 1))
    # In points, not in parts of the panel: a long legend makes the panel low, and would lie on the axis.
    beneath = axes.transAxes + ScaledTranslation(0, -_AXIS / 72, axes.figure.dpi_scale_trans)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=beneath, ncols=columns, handlelength=3.2,
                columnspacing=1.4)  # fmt: skip


AnySweep = TypeVar("AnySweep", Sweep, VariedSweep)


def with_drawable_names(sweep: AnySweep, form: str) -> AnySweep:
    """The sweep with the names of its models and groups as a picture of this format shows them."""

    def shown(report: Any) -> Any:
        group = None if report.group is None else drawable(report.group, form)
        return replace(report, model=drawable(report.model, form), group=group)

    return replace(sweep, reports=tuple(map(shown, sweep.reports)))


def drawable(name: str, form: str = "png") -> str:
    """A name as a picture of this format shows it; what displays an SVG file brings fonts of its own."""
    text = printable(name)
    if form != "svg":
        text = "".join(c if ord(c) in _glyphs() else ascii(c)[1:-1] for c in text)
    if len(text) > MAX_NAME:
        text = f"{text[: MAX_NAME // 2]}...{text[-MAX_NAME // 4 :]}"
    # A legend does not show what begins with an underscore.
    return f" {text}" if text.startswith("_") else text


@contextmanager
def looks() -> Iterator[None]:
    """Within it, matplotlib draws in this style, and does not warn of names that its font lacks, or has no room for."""
    import matplotlib

    with matplotlib.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_IGNORED)
        yield


@cache
def _glyphs() -> frozenset[int]:
    """What the font of the pictures can draw."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties())).get_charmap())


def amounts_on(axis: Any) -> None:
    """Numbers of an axis of amounts in full, as the text writes them: not as -450000, nor as -4 beside '1e6'."""
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}".replace("-", "\N{MINUS SIGN}"))


Range = tuple[float, float]
TAIL = 0.02
"""Share of the rows at either end that may lie outside of the axis."""
MAX_ZOOMED = 0.6
"""Largest part of an axis from 0 to 1 that is zoomed to; where more is needed, all of it is shown."""
PAD = 0.04


def axis_of(sweep: Sweep) -> Range:
    """The thresholds that were asked for; all of [0, 1] where they are almost all of it, or there is but one."""
    first, last = float(sweep.grid.thresholds[0]), float(sweep.grid.thresholds[-1])
    return (0.0, 1.0) if first == last or last - first > 1 - 2 * PAD else (first, last)


def score_range(tables: Sequence[Table], edges: Sequence[float]) -> Range:
    """The part of [0, 1] that holds almost all scores of these tables, and the thresholds of the decision."""
    ends = [*edges]
    for t in tables:
        # Scores between which all but a share TAIL of the rows at either end lie.
        places = np.searchsorted(np.cumsum(t.n, dtype=np.float64) / t.total, [TAIL, 1 - TAIL])
        ends += t.score[places].tolist()
    return value_range(np.array(ends))


def value_range(values: Floats) -> Range:
    """The range within [0, 1] of these values, with a margin; all of [0, 1] where it is most of it or has no width."""
    low, high = float(values.min()), float(values.max())
    if not 0 < high - low <= MAX_ZOOMED:
        return 0.0, 1.0
    margin = PAD * (high - low)
    # Near an end of [0, 1], that end is where people look for it.
    low = 0.0 if low - margin < (high - low) / 2 else low - margin
    high = 1.0 if high + margin > 1 - (high - low) / 2 else high + margin
    return low, high
