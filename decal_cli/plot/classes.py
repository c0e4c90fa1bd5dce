"""Panels on rows of several classes: reliability of each class, what is done for it, errors among the surest rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from decal_cli.analysis.described import ActionCounts
from decal_cli.analysis.sweep import RiskCoverage
from decal_cli.metrics.families.calibration import ece
from decal_cli.numbers import short, span
from decal_cli.plot.names import drawable
from decal_cli.plot.style import GREY, MAX_BANDS, below, style_of
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.table import BINS, Table

MAX_NAMED = 6
"""Classes that have a colour and a name; of more, those that are least calibrated."""
MAX_WRITTEN = 11
"""Actions and classes up to which every cell is written; of more it is only coloured."""
MAX_TICKS = 24
"""Names along an axis."""


def class_reliability(axes: Any, c: ClassTable, name: str) -> None:
    """How often each class occurs where it has a probability, in equal-mass bins; and how often the top class is right.

    Of many classes, those with the largest ECE have a colour.
    """
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=(0, (1, 1.5)))
    errors = c.each_class(("ece", BINS, "mass"), ece)
    order = sorted(range(len(c.classes)), key=lambda k: -errors[k])
    named = sorted(order[:MAX_NAMED])
    for k in order[MAX_NAMED:]:
        axes.plot(*_bins(c.one_vs_rest(k)), color="0.85", lw=0.8, zorder=1)
    for place, k in enumerate(named):
        style = style_of(place + 1)
        axes.plot(*_bins(c.one_vs_rest(k)), color=style.colour, marker=style.marker, ms=3.5, lw=1.1,
                  label=drawable(c.classes[k], "png"))  # fmt: skip
    axes.plot(*_bins(c.top), color=style_of(0).colour, marker="o", ms=4.5, lw=2.2, label="top class")
    if len(order) > MAX_NAMED:
        axes.plot([], [], color="0.85", label=f"{len(order) - MAX_NAMED} classes with less ECE")
    axes.set(title=f"Reliability: {name}", xlabel="probability", ylabel="frequency", xlim=(0, 1), ylim=(-0.02, 1.02))
    below(axes, 3)


def _bins(t: Table) -> tuple[np.ndarray, np.ndarray]:
    bins = t.bins(BINS)
    return bins.score, np.asarray(bins.pos / bins.n)


def confusion(axes: Any, done: ActionCounts, classes: Sequence[str], name: str) -> None:
    """Each action by class: rows, and what they lose against the best action for the class, which is its colour."""
    lost, rows = 1000 * np.array(done.loss), np.array(done.rows)
    axes.imshow(lost, cmap="Oranges", aspect="auto", vmin=0, vmax=max(float(lost.max()), 1e-12))
    if max(lost.shape) <= MAX_WRITTEN:
        size = 8 if max(lost.shape) <= 5 else 6 if max(lost.shape) <= 8 else 5
        for a, k in np.ndindex(*lost.shape):
            dark = lost[a, k] > 0.6 * lost.max() > 0
            loss = f"\n-{short(float(lost[a, k]), 1)}" if lost[a, k] > 0 else ""
            axes.text(k, a, f"{_count(float(rows[a, k]))}{loss}", ha="center", va="center", fontsize=size,
                      color="white" if dark else "black")  # fmt: skip
    for axis, names in ((axes.xaxis, classes), (axes.yaxis, done.actions)):
        # From the last one, which is to abstain where that is an action.
        step = math.ceil(len(names) / MAX_TICKS)
        shown = range(len(names) - 1, -1, -step)
        labels = [drawable(names[k], "png") for k in shown]
        axis.set_ticks(shown, labels, fontsize=8 if len(labels) <= 10 else 6)
    if len(classes) > 4:
        axes.tick_params(axis="x", rotation=90)
    axes.grid(False)
    axes.set(title=f"Actions by class: {name}", xlabel="class", ylabel="action taken")


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def risk_coverage(axes: Any, curves: Sequence[tuple[str, RiskCoverage]]) -> None:
    """Errors among the surest rows by their share of all, with its interval; the area under each in the legend."""
    for number, (name, risk) in enumerate(curves):
        style = style_of(number)
        area = "" if risk.area.value is None else f" {short(risk.area.value, 4)} {span(risk.area.interval, 4)}".rstrip()
        axes.plot(risk.coverage, risk.error, color=style.colour, marker=style.marker, markevery=10, ms=4.5,
                  label=f"{name}: AURC{area}" if area else name)  # fmt: skip
        if risk.low is not None and len(curves) <= MAX_BANDS:
            axes.fill_between(risk.coverage, risk.low, risk.high, color=style.colour, alpha=0.13, lw=0)
    axes.set(title="Risk-coverage curve", xlabel="share of rows that are accepted, the surest first",
             ylabel="share of errors among them", xlim=(0, 1))  # fmt: skip
    axes.set_ylim(bottom=0)
    below(axes, 1)
