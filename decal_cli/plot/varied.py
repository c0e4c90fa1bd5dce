"""Pictures of a sweep in which a number of the task varies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from decal_cli.analysis.sweep import VariedReport, VariedSweep
from decal_cli.curves.kinds import MetricCurve
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.numbers import PER_DECISION
from decal_cli.plot.classes import class_reliability, risk_coverage
from decal_cli.plot.names import any_name, drawable
from decal_cli.plot.page import Panelled, layout, on_axes, ready, saved
from decal_cli.plot.style import COLOURS, GREY, MAX_BANDS, RC, THRESHOLD, below, marks, style_of
from decal_cli.plot.text import MARKS, canvas
from decal_cli.render.blocks import Block
from decal_cli.task import ABSTAIN, CAPACITY, TaskSeries

_WIDE, _HIGH = 5.0, 4.3
_MOST = 3
"""Panels in a row at most."""
OTHER_RANKINGS = {"eu_score_ranking": (":", "ranked by score"), "eu_amount_ranking": ("-.", "ranked by amount")}
"""Utilities at capacity of other lists: line and label."""


def task_pictures(series: TaskSeries, of_classes: bool, asked: Sequence[str]) -> tuple[str, ...]:
    """What is drawn: as asked, else the main ones. Errors: DecalError, for what this sweep does not show."""
    offered = ["utility", "actions", *(["risk-coverage"] if series.kind == ABSTAIN else []),
               *(["reliability"] if of_classes else [])]  # fmt: skip
    if series.kind == CAPACITY and not series.tasks:
        offered.remove("utility")
    if not asked:
        wanted = "utility", "risk-coverage" if series.kind == ABSTAIN else "actions"
        return tuple(picture for picture in wanted if picture in offered)
    if "all" in asked:
        return tuple(offered)
    if other := [picture for picture in asked if picture not in offered]:
        raise DecalError(
            f"{Hint('picture', other[0])} is not drawn where this varies", f"choose of {', '.join(offered)}"
        )
    return tuple(dict.fromkeys(asked))


def draw_tasks(sweep: VariedSweep, pictures: tuple[str, ...], path: str) -> bytes:
    """The pictures as one page, in the format that the path's suffix names: png, svg or pdf."""
    form = ready(path)
    import matplotlib
    from matplotlib.figure import Figure

    sweep = replace(sweep, reports=tuple(_named(report, form) for report in sweep.reports))
    cells = [cell for picture in pictures for cell in panels_of(sweep, picture)]
    across = min(len(cells), 2 if len(cells) == 4 else _MOST)
    down = math.ceil(len(cells) / across)
    with matplotlib.rc_context(RC), any_name():
        figure = Figure(figsize=(_WIDE * max(across, 1.2), _HIGH * down), layout=layout())
        grid = figure.add_gridspec(down, across)
        for k, cell in enumerate(cells):
            cell(figure.add_subplot(grid[k // across, k % across]))
        return saved(figure, form)


def draw_tasks_on(axes: Any, sweep: VariedSweep, picture: str, number: int) -> Any:
    """One picture in axes: those that are given, else those of a new figure. Returns the axes.

    number: which model and group, where it shows one.
    """
    sweep = replace(sweep, reports=tuple(_named(report, "png") for report in sweep.reports))
    cells = panels_of(sweep, picture)
    return on_axes(axes, cells[min(number, len(cells) - 1)])


def draw_tasks_text(sweep: VariedSweep, pictures: tuple[str, ...], width: int) -> tuple[Block, ...]:
    """The pictures in characters, one below the other. Errors: DecalError, for what needs a file."""
    drawn: list[Block] = []
    at = sweep.values
    ends = (float(at[0]), float(at[-1])) if len(at) > 1 else (float(at[0]) - 0.5, float(at[0]) + 0.5)
    for picture in pictures:
        if picture == "reliability":
            raise DecalError(
                f"{Hint('picture')} reliability of several classes is not drawn in the terminal",
                f"{Hint('plot', 'FILE')}",
            )
        if picture == "utility":
            series = [(MARKS[i % 8], r.name, at, r.worth[_utility_of(sweep)].value)
                      for i, r in enumerate(sweep.reports)]  # fmt: skip
            low = min(float(np.nanmin(y)) for *_, y in series)
            title = sweep.reports[0].worth[_utility_of(sweep)].kind.title
            drawn.append(canvas(f"{title} over the {sweep.series.title}", series, width, low, ends=ends))
        elif picture == "risk-coverage":
            risks = [(MARKS[i % 8], r.name, r.risk.coverage, r.risk.error)
                     for i, r in enumerate(sweep.reports) if r.risk is not None]  # fmt: skip
            drawn.append(canvas("Errors among the surest rows over their share of all", risks, width, 0.0))
        else:
            for report in sweep.reports:
                shares = [(MARKS[i % 8], course.kind.heading, at, course.value)
                          for i, course in enumerate(_shares(sweep, report))]  # fmt: skip
                drawn.append(canvas(f"{report.name}: shares of rows", shares, width, 0.0, 1.0, ends))
    return tuple(drawn)


def _named(report: VariedReport, form: str) -> VariedReport:
    group = None if report.group is None else drawable(report.group, form)
    return replace(report, model=drawable(report.model, form), group=group)


def panels_of(sweep: VariedSweep, picture: str, factor: float = 1.0, worth: str = PER_DECISION) -> list[Panelled]:
    """The panels of a picture: one of all reports together, or one of each.

    factor: of utilities per decision, and worth, what amounts are then.
    """
    if picture == "utility":
        return [lambda axes: _utility(axes, sweep, factor, worth)]
    if picture == "risk-coverage":
        curves = [(report.name, report.risk) for report in sweep.reports if report.risk is not None]
        return [lambda axes: risk_coverage(axes, curves)]
    if picture == "actions":
        return [_one(_actions, sweep, report) for report in sweep.reports]
    return [_one(_reliability, sweep, report) for report in sweep.reports]


def _one(panel: Any, sweep: VariedSweep, report: VariedReport) -> Panelled:
    return lambda axes: panel(axes, sweep, report)


def _utility_of(sweep: VariedSweep) -> str:
    """The metric that says what decisions are worth."""
    return "utility_at_capacity" if sweep.series.kind == CAPACITY else "expected_utility"


def _shares(sweep: VariedSweep, report: VariedReport) -> list[MetricCurve]:
    """What is drawn of the rows that something is done with."""
    if sweep.series.kind != CAPACITY:
        return list(report.done.values())
    return [report.done[name] for name in ("capture", "value_capture", "precision_at_capacity") if name in report.done]


def _utility(axes: Any, sweep: VariedSweep, factor: float, worth: str) -> None:
    """What decisions are worth at each value, of every model, with its interval; dashed: the best constant action.

    Over capacities, dashed: the same scores without a limit; where every row has utilities of its own, dotted: ranked
    by the score alone, dash-dotted: by the amount alone.
    """
    at = sweep.values
    for number, report in enumerate(sweep.reports):
        style, now = style_of(number), report.worth[_utility_of(sweep)]
        each = marks(number, len(at), len(sweep.reports))
        axes.plot(at, factor * now.value, color=style.colour, label=report.name, **each)
        if now.low is not None and now.high is not None and len(sweep.reports) <= MAX_BANDS:
            axes.fill_between(at, factor * now.low, factor * now.high, color=style.colour, alpha=0.13, lw=0)
        if sweep.series.kind == CAPACITY:
            unlimited = now.value + report.worth["capacity_cost"].value
            axes.plot(at, factor * unlimited, "--", color=style.colour, lw=1.2)
            for name, (line, _) in OTHER_RANKINGS.items():
                if name in report.worth:
                    axes.plot(at, factor * report.worth[name].value, line, color=style.colour, lw=1.2)
            continue
        gain = report.worth["gain_recalibration"].value
        if not np.isnan(gain).all():
            axes.plot(at, factor * (now.value + gain), ":", color=style.colour, lw=1.2)
    if sweep.series.kind == CAPACITY:
        axes.plot([], [], "--", color=GREY, label="without a limit")
        for name, (line, label) in OTHER_RANKINGS.items():
            if name in sweep.reports[0].worth:
                axes.plot([], [], line, color=GREY, label=label)
    else:
        first = sweep.reports[0].worth
        constant = first["expected_utility"].value + first["external_regret"].value
        axes.plot(at, factor * constant, "--", color=GREY, label="best constant action")
        axes.plot([], [], ":", color=GREY, label="recalibrated, on held-out rows")
    axes.set(title="What decisions are worth", xlabel=sweep.series.title, ylabel=worth)
    _mark_own(axes, sweep)
    below(axes)


def _actions(axes: Any, sweep: VariedSweep, report: VariedReport) -> None:
    """Shares of rows by what is done with them."""
    courses = _shares(sweep, report)
    for number, course in enumerate(courses):
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(sweep.values, course.value, color=colour, label=drawable(course.kind.heading, "png"))
        if course.low is not None and len(courses) <= 4:
            axes.fill_between(sweep.values, course.low, course.high, color=colour, alpha=0.13, lw=0)
    title = "Which rows are acted on" if sweep.series.kind == CAPACITY else "What is done"
    axes.set(title=f"{title}: {report.name}", xlabel=sweep.series.title, ylabel="share of rows", ylim=(0, 1.01))
    _mark_own(axes, sweep)
    below(axes)


def _reliability(axes: Any, sweep: VariedSweep, report: VariedReport) -> None:
    assert report.table is not None  # offered for rows of several classes only
    class_reliability(axes, report.table, report.name)


def _mark_own(axes: Any, sweep: VariedSweep) -> None:
    if sweep.series.own is not None:
        axes.axvline(sweep.series.own, color=THRESHOLD, lw=1.1, ls=(0, (4, 2)), label=f"yours: {sweep.series.own:.4g}")
