"""Compact pictures for the terminal, from characters alone."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import numpy as np

from decal_cli.analysis.sweep import Sweep, Swept, ladder_results
from decal_cli.curves.roc import Roc
from decal_cli.hints import Hint
from decal_cli.learn.regions import IsotonicFit
from decal_cli.numbers import short
from decal_cli.plot.page import task_or_middle
from decal_cli.plot.scale import axis_of
from decal_cli.render.blocks import Block, Paragraph, Picture
from decal_cli.render.results.recommendation import ladder
from decal_cli.render.terms import StatedTerms
from decal_cli.tables.table import BINS, Floats

HIGH = 14
MAX_WIDTH = 100
MARKS = "ox+*#@%&"
Series = tuple[str, str, Floats, Floats]
"""A mark, its words, and where it stands: x and y."""


def draw_text(sweep: Sweep, pictures: tuple[str, ...], width: int) -> tuple[Block, ...]:
    """The pictures one below the other, at most so wide."""
    return tuple(block for picture in pictures for block in _parts(sweep, picture, min(width, MAX_WIDTH)))


def _parts(sweep: Sweep, picture: str, width: int) -> Iterator[Block]:
    at = sweep.grid.thresholds
    if picture == "brier":
        title = "Brier curves: utility lost per decision over t*"
        yield canvas(title, _brier(sweep), width, low=0.0, ends=axis_of(sweep))
    elif picture == "decision":
        series = [(MARKS[i % 8], r.name, at, r.curves["net_benefit"].value) for i, r in enumerate(sweep.reports)]
        everyone = sweep.reports[0].curves["net_benefit_all"].value
        top = max(float(np.max(y)) for *_, y in series)
        series = [("/", "treat all", at, everyone), ("-", "treat none", at, np.zeros(len(at))), *series]
        yield canvas(
            "Net benefit: true positives per row over t*", series, width, -0.25 * max(top, 1e-9), ends=axis_of(sweep)
        )
    elif picture == "roc":
        rocs = [Roc.of_table(r.table) for r in sweep.reports]
        series = [
            (MARKS[i % 8], r.name, one.false_alarms, one.recall)
            for i, (r, one) in enumerate(zip(sweep.reports, rocs, strict=True))
        ]
        yield canvas("ROC curves: recall over the false positive rate", series, width, low=0.0, high=1.0)
    elif picture == "waterfall":
        task = task_or_middle(sweep)
        for report in sweep.reports:
            results = ladder_results(report, task, sweep.head.plan)
            thresholds = ", ".join(f"{at:g}" for at in task.thresholds)
            title = f"{report.name}: expected utility per 1,000 decisions at t* = {thresholds}"
            yield ladder(results, StatedTerms(), title)
    else:
        for report in sweep.reports:
            series = _reliability(report) if picture == "reliability" else _grouping(report)
            if series:
                title = f"{picture.capitalize()} of {report.name}: frequency of label 1 over the score"
                yield canvas(title, series, width, low=0.0, high=1.0)
            else:
                yield Paragraph(f"{picture} of {report.name}: needs {Hint('features').words}")


def _brier(sweep: Sweep) -> list[Series]:
    at = sweep.grid.thresholds
    if len(sweep.reports) > 1:
        return [(MARKS[i % 8], r.name, at, r.curves["brier"].value) for i, r in enumerate(sweep.reports)]
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
