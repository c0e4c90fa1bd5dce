"""Pictures of a replay: what recalibration has won so far, the evidence against the score, reliability by period."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from decal_cli.analysis.online.judged import Judged
from decal_cli.analysis.online.replay import Window
from decal_cli.plot.page import Draw, Panel, drawn_alone, figure_of, ready, saved
from decal_cli.plot.style import GREY, THRESHOLD, below, looks, style_of
from decal_cli.render.blocks import Picture
from decal_cli.render.results.online import power_of_ten
from decal_cli.sequential.anytime import MAX_LOG_E, Sums

N_PERIODS = 4
"""Number of periods whose reliability is drawn."""
MIN_ROWS = 20
"""Fewest rows behind a point of a reliability curve."""
_WIDE, _HIGH = 5.4, 4.0


def draw_replay(judged: Judged, path: str) -> bytes:
    """All pictures side by side, in the format that the path's suffix names: png, svg or pdf."""
    form = ready(path)
    panels = [Panel(None, draw) for draw in pictures_of(judged).values()]
    with looks():
        return saved(figure_of([(len(panels), panels)], _WIDE, _HIGH, 1), form)


def replay_pictures(judged: Judged) -> tuple[Picture, ...]:
    """Each picture as a block of a page."""
    return tuple(
        Picture(caption, title=title, svg=drawn_alone(partial(draw, judged=judged), _WIDE, _HIGH)[0])
        for _, title, caption, draw in _panels(judged)
    )


def pictures_of(judged: Judged) -> dict[str, Draw]:
    """What draws each picture into axes, by its name."""
    return {name: partial(draw, judged=judged) for name, *_, draw in _panels(judged)}


def _measure(judged: Judged) -> str:
    """The words for the measure of evidence."""
    return "e-value" if judged.p_value is None else "inverse of the p-value"


def _panels(judged: Judged) -> Iterator[tuple[str, str, str, Callable[..., None]]]:
    """Name, title, caption and drawing of each."""
    if judged.course.total:
        level = f"{100 * judged.plan.confidence:g} %"
        caption = f"A band above 0 means that recalibration wins; the {level} band holds at all times at once."
        if judged.clusters is not None:
            caption = "No band is drawn, because rows of a cluster are not independent; the table has intervals."
        yield "gain", "Utility won by recalibration, added up", caption, _gain
    if judged.has_e_value:
        caption = (
            f"The {_measure(judged)} grows while the score is wrong; the dashed line is where the alarm is raised. The "
            "axis is logarithmic: a step up multiplies it by the same factor everywhere."
        )
        # A p-value is 2 over the most that either of two e-processes has been.
        most = MAX_LOG_E if judged.p_value is None else MAX_LOG_E - math.log(2)
        if max(judged.course.log_e, default=0.0) >= most:
            caption += f" It is counted up to about {power_of_ten(most / math.log(10))} and is flat from there on."
        yield "evidence", "Evidence that the score is not calibrated", caption, _evidence
    caption = "Points on the diagonal are calibrated; periods from light to dark. "
    caption += f"A point stands for at least {MIN_ROWS} rows of like scores: periods without them are not drawn."
    yield "reliability", "Reliability by period", caption, _reliability


def _place(judged: Judged, row: Any, time: Any) -> Any:
    """The places of rows and times on the axis."""
    if judged.plan.clock == "dates":
        return np.array(time, dtype="M8[ns]")
    return np.array(row if judged.plan.clock == "rows" else time)


def _name_axis(axes: Any, judged: Judged) -> None:
    if judged.plan.clock == "dates":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        # Whole dates at every tick would run into the legend.
        locator = AutoDateLocator(maxticks=8)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.set_xlabel({"dates": "", "rows": "row"}.get(judged.plan.clock, str(judged.plan.time)))
    below(axes)


def _gain(axes: Any, judged: Judged) -> None:
    """Cumulative utility over the first method: all recalibrators, the best of them with its band."""
    course, plan = judged.course, judged.plan
    at, rows = _place(judged, course.row, course.time), np.array(course.row)
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


def _evidence(axes: Any, judged: Judged) -> None:
    """The evidence on a logarithmic axis, the level of the alarm, and the alarm."""
    from matplotlib.ticker import MaxNLocator

    course, alarm, alpha = judged.course, judged.alarm, judged.plan.alpha
    at = _place(judged, course.row, course.time)
    axes.plot(at, np.array(course.log_e) / math.log(10), color=style_of(0).colour, label=_measure(judged))
    axes.axhline(-math.log10(alpha), color=THRESHOLD, lw=1.0, ls="--", label=f"alarm: {1 / alpha:.3g}")
    if alarm is not None:
        axes.axvline(_place(judged, alarm.row, alarm.time), color=THRESHOLD, lw=0.8)
    axes.set_title("Evidence against calibration")
    # Logarithms on a linear axis: an e-value may be smaller than the least number that a logarithmic axis can show.
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.yaxis.set_major_formatter(lambda power, _: power_of_ten(power))
    axes.set_ylabel(f"{_measure(judged)} (logarithmic axis)")
    _name_axis(axes, judged)


def _reliability(axes: Any, judged: Judged) -> None:
    """The frequency of label 1 over the score, in some periods one after the other."""
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8)
    periods = np.array_split(np.arange(len(judged.windows)), min(N_PERIODS, len(judged.windows)))
    for number, places in enumerate(periods, 1):
        windows = [judged.windows[place] for place in places]
        sums = np.sum([(window.n, window.positives, window.scores) for window in windows], axis=0)
        # In each part of the score that holds enough rows.
        n, positives, scores = sums[:, sums[0] >= MIN_ROWS]
        if not len(n):
            continue
        axes.plot(scores / n, positives / n, "o-", ms=4, color=style_of(0).colour,
                  alpha=0.25 + 0.75 * number / len(periods), label=_span(judged, windows))  # fmt: skip
    axes.set(title="Reliability by period", ylabel="frequency of label 1", xlim=(0, 1), ylim=(0, 1),
             xlabel="score" if judged.plan.score else "forecast")  # fmt: skip
    if len(axes.lines) > 1:
        below(axes)
    else:
        axes.text(0.5, 0.4, f"no period has {MIN_ROWS} rows of like scores", ha="center", color=GREY)


def _span(judged: Judged, windows: Sequence[Window]) -> str:
    """The name of a period: its first and last window."""
    name = judged.plan.every.name
    first, last = (name(each.place, each.rows) for each in (windows[0], windows[-1]))
    if judged.plan.every.rows is not None:
        return f"rows {first.split('–')[0]}–{last.split('–')[-1]}"
    return first if first == last else f"{first} to {last}"
