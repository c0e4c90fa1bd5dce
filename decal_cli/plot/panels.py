"""The panels: each draws one thing into given axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from decal_cli.analysis.described import regimes_of
from decal_cli.analysis.positions import Positions
from decal_cli.analysis.sweep import Sweep, Swept
from decal_cli.curves.nulls import consistency_band
from decal_cli.curves.roc import Roc
from decal_cli.hints import Hint
from decal_cli.learn.regions import IsotonicFit
from decal_cli.metrics import Inputs
from decal_cli.numbers import short
from decal_cli.plot.scale import axis_of, score_range, value_range
from decal_cli.plot.style import GREY, LINES, THRESHOLD, WAY_LINES, Style, below, marks, style_of
from decal_cli.tables.table import BINS
from decal_cli.task import BinaryTask

MAX_DASHED = 3
"""Models and groups up to which a panel shows each of them recalibrated as well."""


def brier(axes: Any, sweep: Sweep) -> None:
    """Brier curves: as it is, calibrated, by region; of several models the first two, of many only the first."""
    at, reports = sweep.grid.thresholds, sweep.reports
    alone, few = len(reports) == 1, len(reports) <= MAX_DASHED
    for number, report in enumerate(reports):
        style = style_of(number)
        for name, (line, words) in LINES.items():
            curve = report.curves.get(name)
            if curve is None or (not alone and name not in ("brier", "brier_calibrated")[: 1 + few]):
                continue
            main = name == "brier"
            label = words if alone else (report.name if main else None)
            axes.plot(at, curve.value, line, color=style.colour, label=label, lw=1.8 if main else 1.3,
                      **(marks(number, len(at), len(reports)) if main else {}))  # fmt: skip
        if alone:
            now, fit = report.curves["brier"], report.curves["brier_calibrated"]
            if now.low is not None:
                axes.fill_between(at, now.low, now.high, color=style.colour, alpha=0.13, lw=0)
            lost = 2 * np.maximum(now.value - fit.value, 0)
            rate = report.table.base_rate
            axes.plot(at, np.minimum((1 - at) * rate, at * (1 - rate)), color=GREY, lw=1, ls=(0, (1, 1.5)),
                      label="better constant decision")  # fmt: skip
            if lost.max() > 0:
                axes.fill_between(at, fit.value, now.value, facecolor="none", edgecolor="0.6", hatch="////", lw=0,
                                  label="miscalibration")  # fmt: skip
    if not alone and few:
        axes.plot([], [], "-", color=GREY, label="as it is")
        axes.plot([], [], "--", color=GREY, label=LINES["brier_calibrated"][1])
    axes.set(title="Brier curves", xlabel="threshold t*", xlim=_thresholds(sweep))
    axes.set_ylabel("lost per decision\n(both costs add up to 1)")
    axes.set_ylim(bottom=0)
    _mark_thresholds(axes, sweep.thresholds)
    below(axes)


def decision(axes: Any, sweep: Sweep) -> None:
    """Net benefit of the models, of treating all and of treating none."""
    at, reports = sweep.grid.thresholds, sweep.reports
    top = 0.0
    for number, report in enumerate(reports):
        style, curve = style_of(number), report.curves["net_benefit"]
        axes.plot(at, curve.value, "-", color=style.colour, label=report.name, **marks(number, len(at), len(reports)))
        if curve.low is not None and len(reports) <= 2:
            axes.fill_between(at, curve.low, curve.high, color=style.colour, alpha=0.13, lw=0)
        top = max(top, float(np.max(curve.value)), reports[0].table.base_rate)
    for number, report in enumerate(reports):
        if number and (report.group is None or report.table.base_rate == reports[0].table.base_rate):
            continue
        label = "treat all" if number == 0 else f"treat all, {report.group}"
        axes.plot(at, report.curves["net_benefit_all"].value, ls=(0, (5, 2, 1, 2)), color="0.35" if number == 0 else
                  style_of(number).colour, lw=1.1, label=label)  # fmt: skip
    axes.axhline(0, color="0.35", lw=1.1, ls=(0, (1, 1.5)), label="treat none")
    # Far below zero there is nothing to see: treating all falls to minus infinity.
    axes.set(title="Decision curve", xlabel="threshold t*", ylabel="net benefit\n(true positives per row)")
    axes.set_xlim(_thresholds(sweep))
    lowest = min(float(np.min(report.curves["net_benefit"].value)) for report in reports)
    axes.set_ylim(max(1.1 * lowest, -top) if lowest < -0.25 * top else -0.25 * top, 1.08 * top)
    if lowest < -top:
        axes.set_title("Decision curve (cut off below)")
    _mark_thresholds(axes, sweep.thresholds)
    below(axes)


def roc(axes: Any, sweep: Sweep) -> None:
    """ROC curves at every score, and their hulls, which the calibrated Brier curves give back; t* as a point."""
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=(0, (1, 1.5)))
    several = len(sweep.reports) > 1
    at = np.linspace(0, 1, 201)
    for number, report in enumerate(sweep.reports):
        t, style = report.table, style_of(number)
        fit = t.isotonic.pos / t.isotonic.n
        kinks = fit[(fit > 0) & (fit < 1)]
        hull = Roc.of_brier(Roc.of_table(t.isotonic).brier(kinks), kinks, t.base_rate, at)
        points = Roc.of_table(t)
        x, y = (np.append(each, 0.0) for each in (points.false_alarms, points.recall))
        axes.plot(x, y, "-", color=style.colour, lw=1.4, label=report.name if several else "as it is",
                  **marks(number, len(x), len(sweep.reports)))  # fmt: skip
        axes.plot(at, hull.recall, "--", color=style.colour, lw=1.1, label=None if several else "calibrated: its hull")
        if sweep.head.plan.task is not None:
            own = Roc.of_table(t, np.array(sweep.head.plan.task.decision_thresholds))
            label = _named(sweep.thresholds) if number == 0 else None
            axes.plot(own.false_alarms, own.recall, style.marker, color=THRESHOLD, ms=6, ls="", label=label)
    if several:
        axes.plot([], [], "--", color=GREY, label="calibrated: its hull")
    axes.set(title="ROC curves", xlabel="false positive rate", ylabel="recall", xlim=(0, 1), ylim=(0, 1.01))
    below(axes)


def worth(axes: Any, sweep: Sweep, positions: Sequence[Positions], unit: float, words: str) -> None:
    """What ways of acting win over the better constant decision, at every t*; of several models, by the first two.

    unit: what turns gains for u_delta 1 into amounts, which are measured in these words.
    """
    alone, few, (left, right) = len(positions) == 1, len(positions) <= MAX_DASHED, _thresholds(sweep)
    for number, (report, each) in enumerate(zip(sweep.reports, positions, strict=True)):
        won, shown = each.over_constant(), (each.at >= left) & (each.at <= right)
        for way, (line, label) in WAY_LINES.items():
            if way not in won or not (alone or way == "now" or (way == "recalibrate" and few)):
                continue
            said = label if alone else report.name if way == "now" else None
            axes.plot(each.at[shown], unit * won[way][shown], line, color=style_of(number).colour, label=said,
                      lw=1.8 if way == "now" else 1.3)  # fmt: skip
    if not alone and few:
        axes.plot([], [], "--", color=GREY, label=WAY_LINES["recalibrate"][1])
    axes.axhline(0, color=GREY, lw=1, ls=(0, (1, 1.5)), label="better constant decision")
    axes.set(title="Won over the better constant decision", xlabel="threshold t*", ylabel=words, xlim=(left, right))
    _mark_thresholds(axes, sweep.thresholds)
    below(axes)


def reliability_curve(axes: Any, sweep: Sweep, number: int) -> None:
    """The isotonic fit over the score, the band of a calibrated model, and the frequencies of equal-mass bins."""
    report, style = sweep.reports[number], style_of(number)
    t, plan = report.table, sweep.head.plan
    band = consistency_band(t, plan.confidence, np.random.default_rng([plan.seed, number]))
    axes.fill_between(band.score, band.low, band.high, color="0.85", lw=0,
                      label=f"a calibrated model, {100 * plan.confidence:g} %")  # fmt: skip
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=(0, (1, 1.5)))
    fit = IsotonicFit(t)
    axes.plot(fit.at, fit.value, "-", color=style.colour, label="isotonic fit")
    bins = t.bins(BINS)
    axes.plot(bins.score, bins.pos / bins.n, ls="", marker=style.marker, ms=5, mfc="white", mec=style.colour,
              label=f"{BINS} bins of as many rows")  # fmt: skip
    left, right = score_range([t], sweep.head.plan.task)
    shown = (band.score >= left) & (band.score <= right)
    high = value_range([bins.pos / bins.n, band.high[shown], fit(np.array([left, right])), np.array([left, right])])
    axes.set(title=f"Reliability: {report.name}", ylabel="frequency of label 1", xlim=(left, right))
    axes.set_ylim(high[0] - 0.02 * (high[1] - high[0]), high[1] + 0.02 * (high[1] - high[0]))
    _mark_thresholds(axes, sweep.thresholds)
    _mark_changes(axes, fit, sweep.task, (left, right))


def reliability(parts: Sequence[Any], sweep: Sweep, number: int) -> None:
    """The isotonic fit over the score, the band of a calibrated model; how scores are spread; what is what."""
    axes, strip, key = parts
    reliability_curve(axes, sweep, number)
    t, style = sweep.reports[number].table, style_of(number)
    left, right = axes.get_xlim()
    axes.tick_params(labelbottom=False)
    edges = np.linspace(left, right, 41)
    # Counts of single rows are int8, which a sum over a bar would overflow.
    total, ones = (np.histogram(t.score, edges, weights=np.asarray(v, dtype=np.float64))[0] for v in (t.n, t.pos))
    wide = edges[1] - edges[0]
    strip.bar(edges[:-1], ones / t.total, wide, align="edge", color=style.colour, lw=0, label="rows with label 1")
    strip.bar(edges[:-1], (total - ones) / t.total, wide, bottom=ones / t.total, align="edge", color="0.8", lw=0,
              label="rows with label 0")  # fmt: skip
    strip.set(xlabel="score", ylabel="share\nof rows", xlim=(left, right))
    strip.grid(False)
    handles = [pair for drawn in (axes, strip) for pair in zip(*drawn.get_legend_handles_labels(), strict=True)]
    key.axis("off")
    key.legend(*zip(*handles, strict=True), loc="upper center", ncols=2, borderaxespad=0)


def grouping(axes: Any, sweep: Sweep, number: int) -> None:
    """Frequencies of regions within bins of the score, around the calibration curve."""
    report, style = sweep.reports[number], style_of(number)
    loss = report.grouping_loss
    title = "Grouping" if loss is None else f"Grouping (loss seen {short(loss, 4)})"
    axes.set(title=f"{title}: {report.name}", xlabel="score (mean of the bin)", ylabel="frequency of label 1",
             xlim=score_range([report.table], sweep.head.plan.task), ylim=(-0.02, 1.02))  # fmt: skip
    if report.regions is None:
        axes.text(0.5, 0.5, f"needs {Hint('features').words}", ha="center", color=GREY, transform=axes.transAxes)
        return
    bins = report.table.bins(BINS)
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=(0, (1, 1.5)))
    _mark_thresholds(axes, sweep.thresholds)
    largest = max(float(half.n.max()) for half in report.regions.halves)
    for side, half in enumerate(report.regions.halves):
        here = half.n > 0
        axes.scatter(bins.score[half.bin[here]], half.pos[here] / half.n[here], s=4 + 70 * half.n[here] / largest,
                     facecolor="0.75", edgecolor="0.35", lw=0.6, alpha=0.8, zorder=2,
                     label="region (area: rows)" if side == 0 else None)  # fmt: skip
    axes.plot(bins.score, bins.pos / bins.n, "--", color=style.colour, marker=style.marker, ms=5, mfc="white",
              mec=style.colour, zorder=3, label="whole bin of the score")  # fmt: skip
    _mark_crossing(axes, report, sweep.task, style)
    below(axes)


def _mark_crossing(axes: Any, report: Swept, task: BinaryTask | None, style: Style) -> None:
    """How far the rows of each bin may differ without changing a decision, and the bins where they differ more.

    Perez-Lebel et al. 2025, fig. 2: the root of Vmin, and grouping losses above Vmin.
    """
    bins = regimes_of(Inputs.of(report.table, report.regions, task))
    if not bins:
        return
    reach = [each.least_variance**0.5 for each in bins]
    axes.errorbar([each.score for each in bins], [each.rate for each in bins], reach, fmt="none", ecolor="0.2", lw=0.9,
                  capsize=2.5, zorder=2.5, label="may differ so far without another decision")  # fmt: skip
    crossed = [each for each in bins if (each.grouping_loss or 0.0) > each.least_variance]
    if crossed:
        axes.plot([each.score for each in crossed], [each.rate for each in crossed], ls="", marker=style.marker, ms=5,
                  color=style.colour, zorder=4, label="rows differ more")  # fmt: skip


def _thresholds(sweep: Sweep) -> tuple[float, float]:
    """Of the axis of thresholds: beyond all scores there is nothing to see, nor beyond the thresholds asked for."""
    (left, right), (first, last) = _score_range(sweep), axis_of(sweep)
    low, high = max(left, first), min(right, last)
    return (low, high) if low < high else (first, last)


def _score_range(sweep: Sweep) -> tuple[float, float]:
    return score_range([report.table for report in sweep.reports], sweep.head.plan.task)


def _named(thresholds: Sequence[float]) -> str:
    return f"t* = {', '.join(f'{at:.4g}' for at in thresholds)}"


def _mark_thresholds(axes: Any, thresholds: Sequence[float]) -> None:
    """The user's thresholds as vertical lines."""
    for k, at in enumerate(thresholds):
        label = _named(thresholds) if k == 0 else None
        axes.axvline(at, color=THRESHOLD, lw=1.1, ls=(0, (4, 2)), label=label)


def _mark_changes(axes: Any, fit: IsotonicFit, task: BinaryTask | None, ends: tuple[float, float]) -> None:
    """Where deciding by the recalibrated score differs from deciding by the score: Perez-Lebel et al. 2025, fig. 1.

    t_f is the least score whose recalibrated score reaches t*.
    """
    if task is None:
        return
    at = np.linspace(*ends, 2001)
    reached = fit(at) >= task.threshold
    differ = (at >= task.decision_threshold) != reached
    if reached.any() and not reached.all():
        adjusted = at[reached.argmax()]
        axes.axvline(
            adjusted, color=THRESHOLD, lw=1.1, ls=(0, (1, 1.5)), label=f"recalibrated, t* is reached at {adjusted:.3g}"
        )
    if differ.any():
        axes.fill_between(at, 0, 1, where=differ, transform=axes.get_xaxis_transform(), color=THRESHOLD, alpha=0.12,
                          lw=0, label="decisions that change")  # fmt: skip
