"""Compact pictures for the terminal, from characters alone."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

import numpy as np

from decal_cli.analysis.sweep import Sweep, Swept, VariedSweep, ladder_results
from decal_cli.curves.roc import Roc
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.learn.regions import IsotonicFit
from decal_cli.numbers import short
from decal_cli.plot.style import axis_of
from decal_cli.plot.sweeps import PER_1000, shares_of, task_or_middle, worth_of
from decal_cli.render.blocks import Block, Paragraph, Picture
from decal_cli.render.results.recommendation import ladder
from decal_cli.tables.table import BINS, Floats

HIGH = 14
MAX_WIDTH = 100
MARKS = "ox+*#@%&"
Series = tuple[str, str, Floats, Floats]
"""A mark, its words, and where it stands: x and y."""


def marked(lines: Iterable[tuple[str, Floats, Floats]]) -> list[Series]:
    """Each line, of words, x and y, with a mark of its own."""
    return [(MARKS[k % len(MARKS)], *line) for k, line in enumerate(lines)]


def draw_text(sweep: Sweep | VariedSweep, pictures: tuple[str, ...], width: int) -> tuple[Block, ...]:
    """The pictures in characters, one below the other. Errors: DecalError, for what needs a file."""
    if isinstance(sweep, VariedSweep):
        return tuple(block for picture in pictures for block in _varied(sweep, picture, width))
    return tuple(block for picture in pictures for block in _parts(sweep, picture, min(width, MAX_WIDTH)))


def _parts(sweep: Sweep, picture: str, width: int) -> Iterator[Block]:
    at, ends, reports = sweep.grid.thresholds, axis_of(sweep), sweep.reports
    if picture == "brier":
        title = "Brier curves: utility lost per decision over t*"
        yield canvas(title, _brier(sweep), width, low=0.0, ends=ends)
    elif picture == "decision":
        series = marked((r.name, at, r.curves["net_benefit"].value) for r in reports)
        top = max(float(np.max(y)) for *_, y in series)
        all_and_none: list[Series] = [("/", "treat all", at, reports[0].curves["net_benefit_all"].value)]
        all_and_none += [("-", "treat none", at, np.zeros(len(at)))]
        title = "Net benefit: true positives per row over t*"
        yield canvas(title, [*all_and_none, *series], width, -0.25 * max(top, 1e-9), ends=ends)
    elif picture == "roc":
        rocs = [(r.name, Roc.of_table(r.table)) for r in reports]
        series = marked((name, one.false_alarms, one.recall) for name, one in rocs)
        yield canvas("ROC curves: recall over the false positive rate", series, width, low=0.0, high=1.0)
    elif picture == "waterfall":
        task = task_or_middle(sweep)
        thresholds = ", ".join(f"{at:g}" for at in task.thresholds)
        for report in reports:
            title = f"{report.name}: expected utility per 1,000 decisions at t* = {thresholds}"
            yield ladder(ladder_results(report, task, sweep.head.plan), PER_1000, title)
    else:
        for report in reports:
            series = _reliability(report) if picture == "reliability" else _grouping(report)
            if series:
                title = f"{picture.capitalize()} of {report.name}: frequency of label 1 over the score"
                yield canvas(title, series, width, low=0.0, high=1.0)
            else:
                yield Paragraph(f"{picture} of {report.name}: needs {Hint('features').words}")


def _brier(sweep: Sweep) -> list[Series]:
    at = sweep.grid.thresholds
    if len(sweep.reports) > 1:
        return marked((r.name, at, r.curves["brier"].value) for r in sweep.reports)
    curves = sweep.reports[0].curves
    marks = {"brier_regions": "+", "brier_calibrated": "x", "brier": "o"}
    return [(mark, curves[n].kind.heading, at, curves[n].value) for n, mark in marks.items() if n in curves]


def _reliability(report: Swept) -> list[Series]:
    diagonal = np.linspace(0, 1, 200)
    fit = IsotonicFit(report.table)
    inside = np.linspace(fit.at[0], fit.at[-1], 200)
    return [("·", "calibrated", diagonal, diagonal), ("o", "isotonic fit", inside, fit(inside))]


def _grouping(report: Swept) -> list[Series]:
    if report.regions is None:
        return []
    bins, halves = report.table.bins(BINS), report.regions.halves
    x = np.concatenate([bins.score[half.bin[half.n > 0]] for half in halves])
    y = np.concatenate([half.pos[half.n > 0] / half.n[half.n > 0] for half in halves])
    return [("·", "regions", x, y), ("o", "whole bin of the score", bins.score, bins.pos / bins.n)]


def _varied(sweep: VariedSweep, picture: str, width: int) -> Iterator[Block]:
    at, reports = sweep.values, sweep.reports
    ends = (float(at[0]), float(at[-1])) if len(at) > 1 else (float(at[0]) - 0.5, float(at[0]) + 0.5)
    if picture == "reliability":
        raise DecalError(
            f"{Hint('picture')} reliability of several classes is not drawn in the terminal", f"{Hint('plot', 'FILE')}"
        )
    if picture == "utility":
        series = marked((report.name, at, worth_of(sweep, report).value) for report in reports)
        low = min(float(np.nanmin(y)) for *_, y in series)
        title = f"{worth_of(sweep, reports[0]).kind.title} over the {sweep.series.title}"
        yield canvas(title, series, width, low, ends=ends)
    elif picture == "risk-coverage":
        risks = marked((r.name, r.risk.coverage, r.risk.error) for r in reports if r.risk is not None)
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
        if len(x) > 1 and (np.diff(x) > 0).all():
            dense = np.linspace(x[0], x[-1], 4 * wide)
            y = np.interp(dense, x, y)
        rows = (top - y) / (top - low) * (HIGH - 1)
        here = np.isfinite(rows) & (rows >= -0.5) & (rows <= HIGH - 0.5)
        columns = np.clip(((dense[here] - left) / (right - left) * (wide - 1)).round().astype(int), 0, wide - 1)
        cells[np.clip(rows[here].round().astype(int), 0, HIGH - 1), columns] = mark
    labels = {0: top, HIGH // 2: top - (top - low) * (HIGH // 2) / (HIGH - 1), HIGH - 1: low}
    lines = [title]
    for row in range(HIGH):
        lines.append(f"{short(labels[row], 3) if row in labels else '':>7} │{''.join(cells[row])}".rstrip())
    lines.append(f"{'':>7} └{'─' * wide}")
    first, middle, last = (f"{value:.4g}" for value in (left, (left + right) / 2, right))
    lines.append(f"{'':>8} {first}{middle:^{wide - len(first) - len(last)}}{last}")
    key = textwrap.wrap("   ".join(f"{mark} {words}" for mark, words, *_ in series), wide)
    return Picture(title, lines=(*lines, *(f"{'':>9}{line}" for line in key)))
