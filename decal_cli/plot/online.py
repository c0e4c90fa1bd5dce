"""Pictures of a replay: what recalibration has won so far, the evidence against the score, reliability by period."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis.online import Judged, Window
from decal_cli.plot.page import layout, ready, saved
from decal_cli.plot.style import GREY, RC, THRESHOLD, below, style_of
from decal_cli.render.blocks import Picture
from decal_cli.sequential.alarm import MAX_LOG_E
from decal_cli.sequential.differences import Sums

N_PERIODS = 4
"""Periods whose reliability is drawn."""
MIN_ROWS = 20
"""Rows that a point of a reliability curve stands on at least."""
_WIDE, _HIGH = 5.4, 4.0


def draw_replay(judged: Judged, path: str) -> bytes:
    """All pictures side by side, in the format that the path's suffix names: png, svg or pdf."""
    form = ready(path)
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(RC):
        panels = _panels(judged)
        figure = Figure(figsize=(_WIDE * len(panels), _HIGH), layout=layout())
        for axes, (_, _, panel) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True):
            panel(axes, judged)
        return saved(figure, form)


def replay_pictures(judged: Judged) -> tuple[Picture, ...]:
    """Each picture as a block of a page."""
    import matplotlib
    from matplotlib.figure import Figure

    pictures = []
    with matplotlib.rc_context(RC):
        for title, caption, panel in _panels(judged):
            figure = Figure(figsize=(_WIDE, _HIGH), layout=layout())
            panel(figure.subplots(), judged)
            pictures.append(Picture(caption, title=title, svg=saved(figure, "svg", transparent=True)))
    return tuple(pictures)


Drawn = Callable[[Any, Judged], None]


def _measure(judged: Judged) -> str:
    """What the evidence is."""
    return "e-value" if judged.p_value is None else "inverse of the p-value"


def _panels(judged: Judged) -> list[tuple[str, str, Drawn]]:
    level = f"{100 * judged.plan.confidence:g} %"
    gain = f"A band above 0 means that recalibration wins; the {level} band holds at all times at once."
    if judged.clusters is not None:
        gain = "No band is drawn, because rows of a cluster are not independent; the table has intervals."
    evidence = f"The {_measure(judged)} grows while the score is wrong; the dashed line is where the alarm is raised."
    evidence += " The axis is logarithmic: a step up multiplies it by the same factor everywhere."
    # A p-value is 2 over the most that either of two e-processes has been.
    most = MAX_LOG_E if judged.p_value is None else MAX_LOG_E - math.log(2)
    if max(judged.course.log_e, default=0.0) >= most:
        evidence += f" It is counted up to {math.exp(most):.0e} and is flat from there on."
    reliability = "Points on the diagonal are calibrated; periods from light to dark."
    panels: list[tuple[str, str, Drawn]] = [("Utility won by recalibration, added up", gain, _gain)]
    if not judged.course.total:
        panels = []
    if judged.has_e_value:
        panels.append(("Evidence that the score is not calibrated", evidence, _evidence))
    return [*panels, ("Reliability by period", reliability, _reliability)]


def _times(judged: Judged) -> NDArray[Any]:
    """Where the points of the course stand."""
    course = judged.course
    if judged.plan.clock == "dates":
        return np.array(course.time, dtype="M8[ns]")
    return np.array(course.row if judged.plan.clock == "rows" else course.time)


def _name_axis(axes: Any, judged: Judged) -> None:
    if judged.plan.clock == "dates":
        axes.tick_params(axis="x", labelrotation=30)
        axes.set_xlabel("")
    else:
        axes.set_xlabel("row" if judged.plan.clock == "rows" else str(judged.plan.time))


def _gain(axes: Any, judged: Judged) -> None:
    """Cumulative utility over the first method: all recalibrators, the best of them with its band."""
    course, plan, at = judged.course, judged.plan, _times(judged)
    rows = np.array(course.row)
    methods = list(plan.candidates) or list(course.total)
    best = judged.advice.method or max(methods, key=lambda key: course.total[key][-1] if course.total[key] else 0.0)
    for number, key in enumerate(methods):
        total, style = np.array(course.total[key]), style_of(number)
        axes.plot(at, total, color=style.colour, lw=2.0 if key == best else 1.0, label=judged.report(key).title)
        if key == best and len(rows) and judged.clusters is None:
            ends = Sums(rows, total, np.array(course.squares[key]), plan.task.u_delta).sequence(plan.alpha)
            axes.fill_between(at, rows * ends.low, rows * ends.high, color=style.colour, alpha=0.15, lw=0)
    axes.axhline(0, color=GREY, lw=0.8)
    axes.set_title(f"Utility over {judged.methods[0].title}, added up")
    _name_axis(axes, judged)
    below(axes)


def _evidence(axes: Any, judged: Judged) -> None:
    """The evidence on a logarithmic axis, the level of the alarm, and the alarm."""
    from matplotlib.ticker import MaxNLocator

    at, plan = _times(judged), judged.plan
    axes.plot(at, np.array(judged.course.log_e) / math.log(10), color=style_of(0).colour, label=_measure(judged))
    level = -math.log10(plan.alpha)
    axes.axhline(level, color=THRESHOLD, lw=1.0, ls="--", label=f"alarm: {1 / plan.alpha:.3g}")
    if judged.alarm is not None:
        time = judged.alarm.time
        where = (
            np.datetime64(time, "ns") if plan.clock == "dates" else judged.alarm.row if plan.clock == "rows" else time
        )
        axes.axvline(where, color=THRESHOLD, lw=0.8)
    axes.set_title("Evidence against calibration")
    # Logarithms on a linear axis: an e-value may be smaller than the least number that a logarithmic axis can show.
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.yaxis.set_major_formatter(lambda power, _: f"{10.0**power:,.6g}" if abs(power) < 300 else f"1e{power:+.0f}")
    axes.set_ylabel(f"{_measure(judged)} (logarithmic axis)")
    _name_axis(axes, judged)
    below(axes)


def _reliability(axes: Any, judged: Judged) -> None:
    """The frequency of label 1 over the score, in some periods one after the other."""
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8)
    periods = np.array_split(np.arange(len(judged.windows)), min(N_PERIODS, len(judged.windows)))
    for number, places in enumerate(periods):
        windows = [judged.windows[place] for place in places]
        score, share = _curve(windows)
        shade = 0.25 + 0.75 * (number + 1) / len(periods)
        axes.plot(score, share, "o-", ms=4, color=style_of(0).colour, alpha=shade, label=_span(judged, windows))
    axes.set(title="Reliability by period", ylabel="frequency of label 1", xlim=(0, 1), ylim=(0, 1))
    axes.set_xlabel("score" if judged.plan.score else "forecast")
    below(axes)


def _curve(windows: Sequence[Window]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean score and frequency of label 1 in each part of the score that holds enough rows."""
    n, positives, scores = (
        np.sum([getattr(window, name) for window in windows], axis=0) for name in ("n", "positives", "scores")
    )
    held = n >= MIN_ROWS
    return scores[held] / n[held], positives[held] / n[held]


def _span(judged: Judged, windows: Sequence[Window]) -> str:
    """What a period is called: its first and last window."""
    name = judged.plan.every.name
    first, last = name(windows[0].place), name(windows[-1].place)
    if judged.plan.every.rows is not None:
        return f"rows {first.split('–')[0]}–{last.split('–')[-1]}"
    return first if first == last else f"{first} to {last}"
