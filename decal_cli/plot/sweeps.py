"""Pictures of a sweep, of thresholds or of another number of the task: panels on a page, or characters."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from decal_cli.analysis.recommend import amounts_in
from decal_cli.analysis.sweep import Sweep, Swept, VariedReport, VariedSweep, ladder_results
from decal_cli.curves.crossings import Roc
from decal_cli.curves.kinds import MetricCurve
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.learn.regions import Curve, Regions
from decal_cli.numbers import PER_DECISION, plain, short
from decal_cli.plot import panels
from decal_cli.plot.page import Draw, Panel, figure_of, in_rows, on_axes, ready, saved
from decal_cli.plot.style import (
    COLOURS,
    GREY,
    AnySweep,
    amounts_on,
    axis_of,
    band,
    below,
    curve,
    drawable,
    key,
    key_of_others,
    looks,
    mark_at,
    names_in,
    style_of,
    with_drawable_names,
)
from decal_cli.render.blocks import Block, Blocks, Paragraph, Picture
from decal_cli.render.results.ways import ladder
from decal_cli.render.terms import PLAIN, StatedTerms
from decal_cli.tables.table import BINS, Floats
from decal_cli.task import ABSTAIN, CAPACITY, BinaryTask, Task

SHARED = ("brier", "decision", "roc")
"""Pictures that show all models and groups in one panel."""
PICTURES = (*SHARED, "reliability", "grouping", "waterfall")
_MOST, _MOST_ALONE = 4, 3
"""Panels in a row at most: of several models and groups, and where the panels are no rows of a picture."""
_MAX_SHARES = 4
"""Shares of rows that are drawn with a band."""
OTHER_RANKINGS = {"eu_score_ranking": (":", "ranked by score"), "eu_amount_ranking": ("-.", "ranked by amount")}
"""Utilities at capacity of other lists: line and label."""


def pictures_of(sweep: Sweep | VariedSweep, asked: Sequence[str]) -> tuple[str, ...]:
    """What is drawn: as asked, else the main ones. Errors: DecalError, for what this sweep does not show."""
    offered: tuple[str, ...] = PICTURES
    main = "brier", "decision"
    not_drawn, more = "shows a number of the task that varies, and t* varies here", f", or give {Hint('vary')}"
    if isinstance(sweep, VariedSweep):
        kind, tasks = sweep.series.kind, sweep.series.tasks
        shown = {
            "utility": kind != CAPACITY or tasks,
            "actions": True,
            "risk-coverage": kind == ABSTAIN,
            "reliability": sweep.reports[0].tables,
        }
        offered = tuple(name for name, there in shown.items() if there)
        main = "utility", "risk-coverage" if kind == ABSTAIN else "actions"
        not_drawn, more = "is not drawn where this varies", ""
    if "all" in asked:
        return offered
    if other := [picture for picture in asked if picture not in offered]:
        raise DecalError(f"{Hint('picture', other[0])} {not_drawn}", f"choose one of {', '.join(offered)}{more}")
    return tuple(dict.fromkeys(asked)) or tuple(picture for picture in main if picture in offered)


def draw(sweep: AnySweep, pictures: tuple[str, ...], path: str, terms: StatedTerms = PLAIN) -> bytes:
    """The pictures as one page, in the format that the path's suffix names: png, svg or pdf. terms: of amounts."""
    form = ready(path)
    with looks():
        return saved(figure_of(rows_of(with_drawable_names(sweep, form), pictures, terms)), form)


def draw_on(sweep: AnySweep, picture: str, axes: Any, number: int, terms: StatedTerms) -> Any:
    """One picture in axes: those that are given, else those of a new figure, which notebooks show. Returns the axes.

    number: which model and group, where the picture shows one. terms: of amounts in it.
    """
    offered = panels_of(with_drawable_names(sweep, "png"), picture, terms, narrow=True)
    return on_axes(axes, offered[min(number, len(offered) - 1)].draw)


def rows_of(
    sweep: Sweep | VariedSweep, pictures: tuple[str, ...], terms: StatedTerms = PLAIN
) -> list[tuple[int, Sequence[Panel]]]:
    """Panels by row, with how many fit in it: of one model all of them, of several each picture in rows of its own."""
    drawn = [panels_of(sweep, picture, terms) for picture in sorted(pictures, key=lambda each: each not in SHARED)]
    every = [panel for of_picture in drawn for panel in of_picture]
    if isinstance(sweep, VariedSweep) or len(sweep.reports) == 1:
        return in_rows(every, min(len(every), 2 if len(every) == 4 else _MOST_ALONE))
    shared = [panel for panel in every if panel.number is None]
    most = math.ceil(len(sweep.reports) / math.ceil(len(sweep.reports) / _MOST))
    own = [row for of_picture in drawn if of_picture[0].number is not None for row in in_rows(of_picture, most)]
    return [*in_rows(shared, max(len(shared), 1)), *own]


def panels_of(
    sweep: Sweep | VariedSweep, picture: str, terms: StatedTerms = PLAIN, *, narrow: bool = False
) -> list[Panel]:
    """The panels of a picture: one of all reports together, or one of each. narrow: each has one pair of axes."""
    if isinstance(sweep, VariedSweep):
        return _varied(sweep, picture, terms)
    draws: dict[str, Callable[..., None]] = {
        "brier": panels.brier,
        "decision": panels.decision,
        "roc": panels.roc,
        "reliability": _reliability if narrow else panels.reliability,
        "grouping": panels.grouping,
        "waterfall": partial(_waterfall, terms=terms),
    }
    draw, high = partial(draws[picture], sweep=sweep), 1.25 if picture == "reliability" else 1.0
    if picture in SHARED:
        return [Panel(None, draw)]
    return [Panel(number, partial(draw, number=number), high) for number in range(len(sweep.reports))]


def _reliability(axes: Any, sweep: Sweep, number: int) -> None:
    panels.reliability_curve(axes, sweep, number)
    axes.set_xlabel("score")
    below(axes)


def _waterfall(axes: Any, sweep: Sweep, number: int, terms: StatedTerms) -> None:
    report, task = sweep.reports[number], task_or_middle(sweep)
    words = panels.named(task.thresholds)
    if isinstance(task, BinaryTask):
        words += ": a false alarm costs {}, a miss {}".format(*map(plain, task.costs))
    panels.waterfall(axes, report.name, number, ladder_results(report, task, sweep.head.plan), words, terms)


def task_or_middle(sweep: Sweep) -> Task:
    """The decision the waterfall shows: the user's, or that of the middle threshold."""
    at = sweep.grid.thresholds
    return sweep.head.plan.task or BinaryTask.of_threshold(float(at[len(at) // 2]))


def _varied(sweep: VariedSweep, picture: str, terms: StatedTerms) -> list[Panel]:
    if picture == "utility":
        said = (terms.number, f"{terms.noun} {terms.span}") if terms.with_amounts else ()
        return [Panel(None, utility_panel(sweep, *said))]
    if picture == "risk-coverage":
        curves = [(report.name, risk) for report in sweep.reports for risk in report.risks]
        return [Panel(None, partial(panels.risk_coverage, curves=curves))]
    draws: list[Draw] = [partial(_actions, sweep=sweep, report=each) for each in sweep.reports]
    if picture != "actions":
        tables = ((table, each.name) for each in sweep.reports for table in each.tables)
        draws = [partial(panels.class_reliability, c=table, name=name) for table, name in tables]
    return [Panel(*each) for each in enumerate(draws)]


def worth_of(sweep: VariedSweep, report: VariedReport) -> MetricCurve:
    """What decisions are worth at each value."""
    return report.worth["utility_at_capacity" if sweep.series.kind == CAPACITY else "expected_utility"]


def shares_of(sweep: VariedSweep, report: VariedReport) -> list[MetricCurve]:
    """What is drawn of the rows that something is done with."""
    if sweep.series.kind != CAPACITY:
        return list(report.done.values())
    return [report.done[name] for name in ("capture", "value_capture", "precision_at_capacity") if name in report.done]


def utility_panel(sweep: VariedSweep, factor: float = 1.0, worth: str = PER_DECISION) -> Draw:
    """What decisions are worth at each value. factor: of utilities per decision, and worth, what amounts are then."""
    return partial(_utility, sweep=sweep, factor=factor, worth=worth)


def _utility(axes: Any, sweep: VariedSweep, factor: float, worth: str) -> None:
    """Draw what decisions are worth for every model, with its interval; dashed: the best constant action.

    Over capacities, dashed: the same scores without a limit; where every row has utilities of its own, dotted: ranked
    by the score alone, dash-dotted: by the amount alone.
    """
    at, limited, first = sweep.values, sweep.series.kind == CAPACITY, sweep.reports[0].worth
    rankings = {name: look for name, look in OTHER_RANKINGS.items() if limited and name in first}
    for number, (report, name) in enumerate(zip(sweep.reports, names_in(sweep.reports), strict=True)):
        colour, now = style_of(number).colour, worth_of(sweep, report)
        curve(axes, at, now, number, len(sweep.reports), name, factor)
        if name is None:
            continue
        line, more = ("--", "capacity_cost") if limited else (":", "gain_recalibration")
        others = [(line, now.value + report.worth[more].value)]
        others += [(line, report.worth[name].value) for name, (line, _) in rankings.items()]
        for line, value in others:
            if not np.isnan(value).all():
                axes.plot(at, factor * value, line, color=colour, lw=1.2)
    if limited:
        for line, label in (("--", "without a limit"), *rankings.values()):
            key(axes, line, label)
    else:
        constant = first["expected_utility"].value + first["external_regret"].value
        axes.plot(at, factor * constant, "--", color=GREY, label="best constant action")
        key(axes, ":", "recalibrated, on held-out rows")
    key_of_others(axes, names_in(sweep.reports))
    axes.set(title="What decisions are worth", xlabel=sweep.series.title, ylabel=worth)
    amounts_on(axes.yaxis)
    _mark_own(axes, sweep)
    below(axes)


def _actions(axes: Any, sweep: VariedSweep, report: VariedReport) -> None:
    """Shares of rows by what is done with them."""
    courses = shares_of(sweep, report)
    for number, course in enumerate(courses):
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(sweep.values, course.value, color=colour, label=drawable(course.kind.heading))
        if len(courses) <= _MAX_SHARES:
            band(axes, sweep.values, course, colour)
    title = "Which rows are acted on" if sweep.series.kind == CAPACITY else "What is done"
    axes.set(title=f"{title}: {report.name}", xlabel=sweep.series.title, ylabel="share of rows", ylim=(0, 1.01))
    _mark_own(axes, sweep)
    below(axes)


def _mark_own(axes: Any, sweep: VariedSweep) -> None:
    if sweep.series.own is not None:
        mark_at(axes, sweep.series.own, f"yours: {sweep.series.own:.4g}")


HIGH = 14
MAX_WIDTH = 100
MARKS = "ox+*#@%&"
Series = tuple[str, str, Floats, Floats]
"""A mark, its words, and where it stands: x and y."""


def marked(lines: Iterable[tuple[str, Floats, Floats]]) -> list[Series]:
    """Each line, of words, x and y, with a mark of its own."""
    return [(MARKS[k % len(MARKS)], *line) for k, line in enumerate(lines)]


def draw_text(
    sweep: Sweep | VariedSweep, pictures: tuple[str, ...], width: int, terms: StatedTerms = PLAIN
) -> tuple[Block, ...]:
    """The pictures in characters, one below the other. Errors: DecalError, for what needs a file."""
    if isinstance(sweep, VariedSweep):
        return tuple(block for picture in pictures for block in _varied_parts(sweep, picture, width, terms))
    return tuple(block for picture in pictures for block in _parts(sweep, picture, min(width, MAX_WIDTH), terms))


def _parts(sweep: Sweep, picture: str, width: int, terms: StatedTerms) -> Blocks:
    at, ends, reports = sweep.grid.thresholds, axis_of(sweep), sweep.reports
    if picture == "brier":
        title = "Brier curves: utility lost per decision over t*"
        yield canvas(title, _brier_marks(sweep), width, low=0.0, ends=ends)
    elif picture == "decision":
        series = marked((r.name, at, r.curves["net_benefit"].value) for r in reports)
        top = max(float(np.max(y)) for *_, y in series)
        everyone: Series = ("/", "treat all", at, reports[0].curves["net_benefit_all"].value)
        none: Series = ("-", "treat none", at, np.zeros(len(at)))
        title = "Net benefit: true positives per row over t*"
        yield canvas(title, [everyone, none, *series], width, -0.25 * max(top, 1e-9), ends=ends)
    elif picture == "roc":
        rocs = ((r.name, Roc.of_table(r.table)) for r in reports)
        series = marked((name, one.false_alarms, one.recall) for name, one in rocs)
        yield canvas("ROC curves: recall over the false positive rate", series, width, low=0.0, high=1.0)
    elif picture == "waterfall":
        task = task_or_middle(sweep)
        thresholds = ", ".join(f"{at:g}" for at in task.thresholds)
        for report in reports:
            results = ladder_results(report, task, sweep.head.plan)
            heading = terms.scale(*amounts_in([results])).heading
            yield ladder(results, terms, f"{report.name}: expected utility {heading} at t* = {thresholds}")
    else:
        for report in reports:
            series = _fit_marks(report) if picture == "reliability" else _region_marks(report)
            if series:
                title = f"{picture.capitalize()} of {report.name}: frequency of label 1 over the score"
                yield canvas(title, series, width, low=0.0, high=1.0)
            else:
                yield Paragraph(
                    f"The picture {picture} of {report.name} needs feature columns: {Hint('features').words}."
                )


def _brier_marks(sweep: Sweep) -> list[Series]:
    at = sweep.grid.thresholds
    if len(sweep.reports) > 1:
        return marked((r.name, at, r.curves["brier"].value) for r in sweep.reports)
    curves = sweep.reports[0].curves
    marks = {"brier_regions": "+", "brier_calibrated": "x", "brier": "o"}
    return [(mark, curves[n].kind.heading, at, curves[n].value) for n, mark in marks.items() if n in curves]


def _fit_marks(report: Swept) -> list[Series]:
    diagonal = np.linspace(0, 1, 200)
    fit = Curve.fitted(report.table)
    inside = np.linspace(fit.at[0], fit.at[-1], 200)
    return [("·", "calibrated", diagonal, diagonal), ("o", "isotonic fit", inside, fit.of(inside))]


def _region_marks(report: Swept) -> list[Series]:
    regions = report.inputs.find(Regions)
    if not regions:
        return []
    bins, halves = report.table.bins(BINS), regions.halves
    x = np.concatenate([bins.score[half.bin[half.n > 0]] for half in halves])
    y = np.concatenate([half.pos[half.n > 0] / half.n[half.n > 0] for half in halves])
    return [("·", "regions", x, y), ("o", "whole bin of the score", bins.score, bins.pos / bins.n)]


def _varied_parts(sweep: VariedSweep, picture: str, width: int, terms: StatedTerms) -> Blocks:
    at, reports = sweep.values, sweep.reports
    ends = (float(at[0]), float(at[-1])) if len(at) > 1 else (float(at[0]) - 0.5, float(at[0]) + 0.5)
    if picture == "reliability":
        raise DecalError(
            f"{Hint('picture')} reliability of several classes is not drawn in the terminal",
            f"give {Hint('plot', 'FILE')}",
        )
    if picture == "utility":
        factor = terms.number if terms.with_amounts else 1.0
        series = marked((report.name, at, factor * worth_of(sweep, report).value) for report in reports)
        low = min(float(np.nanmin(y)) for *_, y in series)
        unit = f", {terms.noun} {terms.span}" if terms.with_amounts else ""
        title = f"{worth_of(sweep, reports[0]).kind.title} over the {sweep.series.title}{unit}"
        yield canvas(title, series, width, low, ends=ends)
    elif picture == "risk-coverage":
        risks = marked((report.name, risk.coverage, risk.error) for report in reports for risk in report.risks)
        yield canvas("Errors among the surest rows over their share of all", risks, width, 0.0)
    else:
        for report in reports:
            shares = marked((each.kind.heading, at, each.value) for each in shares_of(sweep, report))
            yield canvas(f"{report.name}: shares of rows", shares, width, 0.0, 1.0, ends)


def canvas(
    title: str,
    series: list[Series],
    width: int,
    low: float,
    high: float | None = None,
    ends: tuple[float, float] = (0.0, 1.0),
) -> Picture:
    """Series as marks on a grid; later ones stand on earlier ones. ends: of the axis."""
    left, right = ends
    wide = width - 9
    values = np.concatenate([y for *_, y in series])
    top = float(np.nanmax(values)) if high is None else high
    top = top if top > low else low + 1
    cells = np.full((HIGH, wide), " ")
    for mark, _, x, y in series:
        dense = x
        if (np.diff(x) > 0).all():
            dense = np.linspace(x[0], x[-1], 4 * wide)
            y = np.interp(dense, x, y)
        rows = ((top - y) / (top - low) * (HIGH - 1)).round()
        here = (rows >= 0) & (rows < HIGH)
        columns = ((dense[here] - left) / (right - left) * (wide - 1)).round()
        cells[rows[here].astype(int), columns.astype(int)] = mark
    labels = {0: top, HIGH // 2: top - (top - low) * (HIGH // 2) / (HIGH - 1), HIGH - 1: low}
    lines = [title]
    for row, line in enumerate(cells):
        lines.append(f"{short(labels[row], 3) if row in labels else '':>7} │{''.join(line)}".rstrip())
    lines.append(f"{'':>7} └{'─' * wide}")
    first, middle, last = (f"{value:.4g}" for value in (left, (left + right) / 2, right))
    lines.append(f"{'':>8} {first}{middle:^{wide - len(first) - len(last)}}{last}")
    legend = textwrap.wrap("   ".join(f"{mark} {words}" for mark, words, *_ in series), wide)
    return Picture(title, lines=(*lines, *(f"{'':>9}{line}" for line in legend)))
