"""The panels: each draws one thing into given axes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from decal_cli.analysis.described import ActionCounts, regimes_of
from decal_cli.analysis.recommend import amounts_in
from decal_cli.analysis.sweep import Positions, Risk, Sweep, Swept
from decal_cli.curves.crossings import Roc, consistency_band
from decal_cli.hints import Hint
from decal_cli.learn.regions import Curve, Regions
from decal_cli.metrics import Result
from decal_cli.metrics.families.calibration import ece
from decal_cli.numbers import Interval, decimals_of, rounded, short
from decal_cli.plot.style import (
    DOTTED,
    GREY,
    LINES,
    PALE,
    THRESHOLD,
    WAY_LINES,
    Style,
    amounts_on,
    axis_of,
    band,
    below,
    curve,
    diagonal,
    drawable,
    key,
    key_of_others,
    mark_at,
    marks,
    names_in,
    score_range,
    style_of,
    value_range,
)
from decal_cli.render.cells import counted
from decal_cli.render.results.ways import CONSTANT_WAYS, WAYS, ways_of
from decal_cli.render.terms import StatedTerms
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.table import BINS, Floats, Table
from decal_cli.task import BinaryTask

MAX_DASHED = 3
"""Most models and groups for which a panel also draws each one recalibrated."""
MAX_NAMED = 6
"""Most classes that get a colour and a name; where there are more, the least calibrated get them."""
MAX_WRITTEN = 11
"""Most actions and classes for which cells have text; where there are more, cells are only coloured."""
MAX_WIDE = 60
"""Most characters of a line below an axis."""
MAX_TICKS = 24
"""Most names along an axis."""


def _ways(
    axes: Any, lines: Mapping[str, tuple[str, str]], drawn: Sequence[tuple[str | None, Floats, Mapping[str, Floats]]]
) -> None:
    """Each way of deciding by its line; of several models the first two, of many only the first.

    drawn: of each model and group its name, None where it is pale, thresholds, and each way over them.
    """
    alone, few = len(drawn) == 1, len(drawn) <= MAX_DASHED
    for number, (name, at, curves) in enumerate(drawn):
        if name is None:
            axes.plot(at, curves[next(iter(lines))], **PALE)
            continue
        for place, (way, (line, words)) in enumerate(lines.items()):
            if way in curves and (alone or place <= few):
                label = words if alone else name if place == 0 else None
                look = marks(number, len(at), len(drawn)) if way == "brier" else {}
                axes.plot(at, curves[way], line, color=style_of(number).colour, label=label,
                          lw=1.3 if place else 1.8, **look)  # fmt: skip
    key_of_others(axes, [name for name, *_ in drawn])


def _over_thresholds(axes: Any, sweep: Sweep, title: str, measured: str, **more: Any) -> None:
    axes.set(title=title, xlabel="threshold t*", ylabel=measured, xlim=_thresholds(sweep), **more)
    _mark_thresholds(axes, sweep.thresholds)
    below(axes)


def brier(axes: Any, sweep: Sweep) -> None:
    """Brier curves: as it is, calibrated, by region; of several models the first two, of many only the first."""
    at, reports = sweep.grid.thresholds, sweep.reports
    curves = [{name: each.value for name, each in report.curves.items()} for report in reports]
    _ways(axes, LINES, [(name, at, drawn) for name, drawn in zip(names_in(reports), curves, strict=True)])
    if len(reports) == 1:
        now, fit = reports[0].curves["brier"], reports[0].curves["brier_calibrated"].value
        band(axes, at, now, style_of(0).colour)
        rate = reports[0].table.base_rate
        axes.plot(at, np.minimum((1 - at) * rate, at * (1 - rate)), color=GREY, lw=1, ls=DOTTED,
                  label="better constant decision")  # fmt: skip
        if (now.value > fit).any():
            axes.fill_between(at, fit, now.value, facecolor="none", edgecolor="0.6", hatch="////", lw=0,
                              label="miscalibration")  # fmt: skip
    elif len(reports) <= MAX_DASHED:
        key(axes, "-", "as it is")
        key(axes, "--", LINES["brier_calibrated"][1])
    _over_thresholds(axes, sweep, "Brier curves", "lost per decision\n(both costs add up to 1)")
    axes.set_ylim(bottom=0)


def decision(axes: Any, sweep: Sweep) -> None:
    """Net benefit of the models, of treating all and of treating none."""
    at, reports = sweep.grid.thresholds, sweep.reports
    won, rate = [report.curves["net_benefit"] for report in reports], reports[0].table.base_rate
    names = names_in(reports)
    for number, name in enumerate(names):
        curve(axes, at, won[number], number, len(reports), name)
    key_of_others(axes, names)
    rates_differ = any(report.table.base_rate != rate for report in reports)
    label = "treat all, groups in their colours" if rates_differ else "treat all"
    for number, report in enumerate(reports):
        of_group = names[number] is not None and not report.of_all_rows
        if number == 0 or (of_group and report.table.base_rate != rate):
            axes.plot(at, report.curves["net_benefit_all"].value, ls=(0, (5, 2, 1, 2)), lw=1.1,
                      color=style_of(number).colour if number else "0.35", label=None if number else label)  # fmt: skip
    axes.axhline(0, color="0.35", lw=1.1, ls=DOTTED, label="treat none")
    values = np.array([drawn.value for drawn in won])
    top, lowest = max(0.0, rate, float(values.max())), float(values.min())
    # Far below zero there is nothing to see: treating all falls to minus infinity.
    title = "Decision curve (cut off below)" if lowest < -top else "Decision curve"
    ends = max(min(1.1 * lowest, -0.25 * top), -top), 1.08 * top
    _over_thresholds(axes, sweep, title, "net benefit\n(true positives per row)", ylim=ends)


def roc(axes: Any, sweep: Sweep) -> None:
    """ROC curves at every score, and their hulls, which the calibrated Brier curves give back; t* as a point."""
    diagonal(axes)
    several, task, hulls = len(sweep.reports) > 1, sweep.head.plan.task, "calibrated: its hull"
    at = np.linspace(0, 1, 201)
    names = names_in(sweep.reports)
    for number, (report, name) in enumerate(zip(sweep.reports, names, strict=True)):
        t, style = report.table, style_of(number)
        points = Roc.of_table(t)
        x, y = (np.append(each, 0.0) for each in (points.false_alarms, points.recall))
        if name is None:
            axes.plot(x, y, **PALE)
            continue
        fit = t.isotonic.pos / t.isotonic.n
        kinks = fit[fit < 1]
        hull = Roc.of_brier(Roc.of_table(t.isotonic).brier(kinks), kinks, t.base_rate, at)
        axes.plot(x, y, "-", color=style.colour, lw=1.4, label=name if several else "as it is",
                  **marks(number, len(x), len(sweep.reports)))  # fmt: skip
        axes.plot(at, hull.recall, "--", color=style.colour, lw=1.1, label=None if several else hulls)
        if task is not None:
            own = Roc.of_table(t, np.array(task.decision_thresholds))
            label = None if number else named(sweep.thresholds)
            axes.plot(own.false_alarms, own.recall, style.marker, color=THRESHOLD, ms=6, ls="", label=label)
    key_of_others(axes, names)
    if several:
        key(axes, "--", hulls)
    axes.set(title="ROC curves", xlabel="false positive rate", ylabel="recall", xlim=(0, 1), ylim=(0, 1.01))
    below(axes)


def worth(axes: Any, sweep: Sweep, positions: Sequence[Positions], unit: float, words: str) -> None:
    """What ways of acting win over the better constant decision, at every t*; of several models, by the first two.

    unit: what turns gains for u_delta 1 into amounts, which are measured in these words.
    """
    left, right = _thresholds(sweep)
    drawn = []
    for name, each in zip(names_in(sweep.reports), positions, strict=True):
        shown = (each.at >= left) & (each.at <= right)
        won = {way: unit * value[shown] for way, value in each.over_constant().items()}
        drawn.append((name, each.at[shown], won))
    _ways(axes, WAY_LINES, drawn)
    if 1 < len(drawn) <= MAX_DASHED:
        key(axes, "--", WAY_LINES["recalibrate"][1])
    axes.axhline(0, color=GREY, lw=1, ls=DOTTED, label="better constant decision")
    _over_thresholds(axes, sweep, "Won over the better constant decision", words)
    amounts_on(axes.yaxis)


def reliability_curve(axes: Any, sweep: Sweep, number: int) -> None:
    """The isotonic fit over the score, the band of a calibrated model, and the frequencies of equal-mass bins."""
    report, style = sweep.reports[number], style_of(number)
    t, plan = report.table, sweep.head.plan
    calibrated = consistency_band(t, plan.confidence, np.random.default_rng([plan.seed, number]))
    axes.fill_between(calibrated.score, calibrated.low, calibrated.high, color="0.85", lw=0,
                      label=f"a calibrated model, {100 * plan.confidence:g} %")  # fmt: skip
    diagonal(axes)
    fit = Curve.fitted(t)
    axes.plot(fit.at, fit.value, "-", color=style.colour, label="isotonic fit")
    bins = t.bins(BINS)
    axes.plot(bins.score, bins.pos / bins.n, ls="", marker=style.marker, ms=5, mfc="white", mec=style.colour,
              label=f"{BINS} bins of as many rows")  # fmt: skip
    left, right = score_range([t], sweep.head.plan.edges)
    shown = (calibrated.score >= left) & (calibrated.score <= right)
    heights = (bins.pos / bins.n, calibrated.high[shown], fit.of(np.array([left, right])), [left, right])
    low, high = value_range(np.concatenate(heights))
    axes.set(title=f"Reliability: {report.name}", ylabel="frequency of label 1", xlim=(left, right))
    axes.set_ylim(low - 0.02 * (high - low), high + 0.02 * (high - low))
    _mark_thresholds(axes, sweep.thresholds)
    _mark_changes(axes, fit, sweep.task, (left, right))


def reliability(axes: Any, sweep: Sweep, number: int) -> None:
    """The isotonic fit over the score, the band of a calibrated model; how scores are spread; what is what."""
    above, middle, lowest = axes.get_subplotspec().subgridspec(3, 1, height_ratios=(4, 1, 0.75), hspace=0.03)
    axes.set_subplotspec(above)
    strip, legend = axes.figure.add_subplot(middle), axes.figure.add_subplot(lowest)
    reliability_curve(axes, sweep, number)
    t, style = sweep.reports[number].table, style_of(number)
    left, right = axes.get_xlim()
    axes.tick_params(labelbottom=False)
    edges = np.linspace(left, right, 41)
    # Counts of single rows are int8, which a sum over a bar would overflow.
    total, ones = (np.histogram(t.score, edges, weights=np.asarray(v, dtype=np.float64))[0] for v in (t.n, t.pos))
    bars = (("1", ones, 0 * ones, style.colour), ("0", total - ones, ones / t.total, "0.8"))
    for label, rows, bottom, colour in bars:
        strip.bar(edges[:-1], rows / t.total, edges[1] - edges[0], bottom=bottom, align="edge", color=colour, lw=0,
                  label=f"rows with label {label}")  # fmt: skip
    strip.set(xlabel="score", ylabel="share\nof rows", xlim=(left, right))
    strip.grid(False)
    handles = [pair for drawn in (axes, strip) for pair in zip(*drawn.get_legend_handles_labels(), strict=True)]
    legend.axis("off")
    legend.legend(*zip(*handles, strict=True), loc="upper center", ncols=2, borderaxespad=0)


def grouping(axes: Any, sweep: Sweep, number: int) -> None:
    """Frequencies of regions within bins of the score, around the calibration curve."""
    report, style = sweep.reports[number], style_of(number)
    loss = report.grouping_loss
    title = "Grouping" if loss is None else f"Grouping (loss seen {short(loss, 4)})"
    axes.set(title=f"{title}: {report.name}", xlabel="score (mean of the bin)", ylabel="frequency of label 1",
             xlim=score_range([report.table], sweep.head.plan.edges), ylim=(-0.02, 1.02))  # fmt: skip
    regions = report.inputs.find(Regions)
    if not regions:
        axes.text(0.5, 0.5, f"needs {Hint('features').words}", ha="center", color=GREY, transform=axes.transAxes)
        return
    bins = report.table.bins(BINS)
    diagonal(axes)
    _mark_thresholds(axes, sweep.thresholds)
    largest = max(float(half.n.max()) for half in regions.halves)
    for side, half in enumerate(regions.halves):
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
    regimes = regimes_of(report.inputs.at(task))
    if not regimes:
        return
    bins = ((r.score, r.rate, r.least_variance, r.grouping_loss or 0.0) for r in regimes.bins)
    score, rate, least, loss = np.transpose([*bins])
    axes.errorbar(score, rate, least**0.5, fmt="none", ecolor="0.2", lw=0.9, capsize=2.5, zorder=2.5,
                  label="may differ so far without another decision")  # fmt: skip
    crossed = loss > least
    if crossed.any():
        axes.plot(score[crossed], rate[crossed], ls="", marker=style.marker, ms=5, color=style.colour, zorder=4,
                  label="rows differ more")  # fmt: skip


def _thresholds(sweep: Sweep) -> tuple[float, float]:
    """The ends of the axis of thresholds, which leave out what lies beyond all scores or the thresholds asked for."""
    left, right = score_range([report.table for report in sweep.reports], sweep.head.plan.edges)
    first, last = axis_of(sweep)
    low, high = max(left, first), min(right, last)
    return (low, high) if low < high else (first, last)


def named(thresholds: Sequence[float]) -> str:
    """The words of the legend for the user's thresholds."""
    return f"t* = {', '.join(f'{at:.4g}' for at in thresholds)}"


def _mark_thresholds(axes: Any, thresholds: Sequence[float]) -> None:
    """The user's thresholds as vertical lines."""
    for k, at in enumerate(thresholds):
        mark_at(axes, at, None if k else named(thresholds))


def _mark_changes(axes: Any, fit: Curve, task: BinaryTask | None, ends: tuple[float, float]) -> None:
    """Where deciding by the recalibrated score differs from deciding by the score: Perez-Lebel et al. 2025, fig. 1.

    t_f is the least score whose recalibrated score reaches t*.
    """
    if task is None:
        return
    at = np.linspace(*ends, 2001)
    reached = fit.of(at) >= task.threshold
    differ = (at >= task.decision_threshold) != reached
    if reached.any() and not reached.all():
        adjusted = at[reached.argmax()]
        label = f"recalibrated, t* is reached at {adjusted:.3g}"
        axes.axvline(adjusted, color=THRESHOLD, lw=1.1, ls=DOTTED, label=label)
    if differ.any():
        axes.fill_between(at, 0, 1, where=differ, transform=axes.get_xaxis_transform(), color=THRESHOLD, alpha=0.12,
                          lw=0, label="decisions that change")  # fmt: skip


def class_reliability(axes: Any, c: ClassTable, name: str) -> None:
    """How often each class occurs where it has a probability, in equal-mass bins; and how often the top class is right.

    Of many classes, those with the largest ECE have a colour.
    """
    diagonal(axes)
    errors = c.each_class(lambda t: ece(t).value)
    order = sorted(range(len(c.classes)), key=errors.__getitem__, reverse=True)
    for k in order[MAX_NAMED:]:
        axes.plot(*_bins(c.one_vs_rest(k)), **PALE)
    for place, k in enumerate(sorted(order[:MAX_NAMED]), 1):
        style = style_of(place)
        axes.plot(*_bins(c.one_vs_rest(k)), color=style.colour, marker=style.marker, ms=3.5, lw=1.1,
                  label=drawable(c.classes[k]))  # fmt: skip
    axes.plot(*_bins(c.top), color=style_of(0).colour, marker="o", ms=4.5, lw=2.2, label="top class")
    if len(order) > MAX_NAMED:
        key(axes, "-", f"{len(order) - MAX_NAMED} classes with less ECE", PALE["color"])
    axes.set(title=f"Reliability: {name}", xlabel="probability", ylabel="frequency", xlim=(0, 1), ylim=(-0.02, 1.02))
    below(axes, 3)


def _bins(t: Table) -> tuple[np.ndarray, np.ndarray]:
    bins = t.bins(BINS)
    return bins.score, np.asarray(bins.pos / bins.n)


def confusion(axes: Any, done: ActionCounts, name: str) -> None:
    """Each action by class: rows, and what they lose against the best action for the class, which is its colour."""
    lost = 1000 * np.array(done.loss)
    most, size = float(lost.max()), max(lost.shape)
    axes.imshow(lost, cmap="Oranges", aspect="auto", vmin=0, vmax=max(most, 1e-12))
    if size <= MAX_WRITTEN:
        for (a, k), loss in np.ndenumerate(lost):
            less = f"\n-{short(float(loss), 1)}" if loss > 0 else ""
            axes.text(k, a, f"{counted(float(done.rows[a][k]))}{less}", ha="center", va="center",
                      fontsize=8 if size <= 5 else 6 if size <= 8 else 5,
                      color="white" if loss > 0.6 * most > 0 else "black")  # fmt: skip
    for axis, names in ((axes.xaxis, done.classes), (axes.yaxis, done.actions)):
        # From the last one, which is to abstain where that is an action.
        step = math.ceil(len(names) / MAX_TICKS)
        shown = range(len(names) - 1, -1, -step)
        labels = [drawable(names[k]) for k in shown]
        axis.set_ticks(shown, labels, fontsize=8 if len(labels) <= 10 else 6)
    if len(done.classes) > 4:
        axes.tick_params(axis="x", rotation=90)
    axes.grid(False)
    axes.set(title=f"Actions by class: {name}", xlabel="class", ylabel="action taken")


def risk_coverage(axes: Any, curves: Sequence[tuple[str, Risk]]) -> None:
    """Errors among the surest rows by their share of all, with its interval; the area under each in the legend."""
    for number, (name, risk) in enumerate(curves):
        style = style_of(number)
        area = "" if risk.area is None else f" {rounded(risk.area, risk.area_interval, 4)}"
        axes.plot(risk.coverage, risk.error, color=style.colour, marker=style.marker, markevery=10, ms=4.5,
                  label=f"{name}: AURC{area}" if area else name)  # fmt: skip
        band(axes, risk.coverage, risk, style.colour, len(curves))
    axes.set(title="Risk-coverage curve", xlabel="share of rows that are accepted, the surest first",
             ylabel="share of errors among them", xlim=(0, 1), ylim=(0, None))  # fmt: skip
    below(axes, 1)


class _Step(NamedTuple):
    """A gain that is added to where the chain stands. estimated: it is no upper limit."""

    name: str
    start: float
    gain: float
    interval: Interval | None
    look: dict[str, Any]
    estimated: bool = True

    @property
    def ends(self) -> tuple[float, ...]:
        """Where the chain may stand after it."""
        return tuple(self.start + end for end in self.interval or (self.gain,))


def waterfall(axes: Any, name: str, number: int, rungs: Mapping[str, Result], task: str, terms: StatedTerms) -> None:
    """Each step starts where the last one ended, on an axis in the user's terms.

    name: of the model and group. task: the decision in words, '' for none. Without features the last step leads up to
    what decisions are worth with every label known.
    """
    style = style_of(number)
    now = rungs["expected_utility"].value or 0.0
    ways = ways_of(rungs)
    steps = _steps(rungs, now, style.colour, next((way.worth for way in ways if way.key == "perfect"), None))
    constants = {
        WAYS[way.key][0] if way.key == "constant" else way.name: way.worth for way in ways if way.key in CONSTANT_WAYS
    }
    scale, own = terms.scale(*amounts_in([rungs])), len(constants)
    factor = scale.factor
    low, high = (factor * end for end in _reach(now, list(constants.values()), steps))
    scale = replace(scale, decimals=decimals_of(high - low))
    for row, value in enumerate(constants.values()):
        _constant(axes, row, factor * value, low, high, scale(value))
    axes.plot(factor * now, own, marker=style.marker, ms=8, color=style.colour)
    _say(axes, factor * now, own, scale(now))
    axes.axvline(factor * now, color=style.colour, lw=0.8, ls=DOTTED)
    for row, step in enumerate(steps, own + 1):
        axes.barh(row, factor * step.gain, left=factor * step.start, height=0.55, lw=0.8, **step.look)
        if step.interval is not None:
            axes.plot([factor * end for end in step.ends], [row, row], color="black", lw=1.1, marker="|", ms=6)
        reach = factor * max(step.start, *step.ends)
        _say(axes, min(reach, high), row, scale(step.gain, "+") + (" →" if reach > high else ""))
    names = [*constants, "act on the score as it is", *(step.name for step in steps)]
    axes.set_yticks(range(len(names)), map(terms.worded, names))
    axes.invert_yaxis()
    # Room for the numbers, which stand to the right of what they belong to.
    axes.set_xlim(low - 0.04 * (high - low), high + 0.22 * (high - low))
    axes.locator_params(axis="x", nbins=5)
    amounts_on(axes.xaxis)
    axes.grid(axis="y", visible=False)
    below_axis = [f"expected utility {scale.heading}", *textwrap.wrap(f"({task})" if task else "", MAX_WIDE)]
    axes.set(title=f"Gains: {name}", xlabel="\n".join(below_axis))


def _steps(rungs: Mapping[str, Result], now: float, colour: str, perfect: float | None) -> list[_Step]:
    recalibration, beyond = (rungs.get(name, Result(None)) for name in ("gain_recalibration", "gain_beyond"))
    if recalibration.value is None:
        return []
    steps = [_Step("recalibrated", now, recalibration.value, recalibration.interval, {"color": colour})]
    after = now + recalibration.value
    if beyond.value is not None:
        steps.append(_Step("with the features", after, beyond.value, beyond.interval, {"color": "0.6"}))
    elif perfect is not None:
        look = {"facecolor": "0.95", "edgecolor": "0.4", "linestyle": ":"}
        steps.append(_Step("every label known\n(upper limit, no estimate)", after, perfect - after, None, look, False))
    return steps


def _reach(now: float, constants: Sequence[float], steps: Sequence[_Step]) -> tuple[float, float]:
    """Ends of the axis: around the score, the better constant decision and what is won by estimate.

    A constant decision or an upper limit that lies further away than this range is wide does not set the scale.
    """
    near = [now, *([max(constants)] if constants else [])]
    for step in steps:
        near += [step.start, *step.ends] if step.estimated else []
    low, high = min(near), max(near)
    wide = high - low or max(abs(now), 1e-9)
    others = [*constants, *(step.start + step.gain for step in steps)]
    low = min([low, *(value for value in others if low - wide <= value)])
    high = max([high, *(value for value in others if value <= high + wide)])
    return (low, high) if high > low else (low - wide, high + wide)


def _constant(axes: Any, row: int, at: float, low: float, high: float, text: str) -> None:
    """A constant decision as a stroke; beyond the axis, an arrow at its end."""
    outside = not low <= at <= high
    place = float(np.clip(at, low, high))
    mark = {"marker": "<" if at < low else ">", "ms": 7, "mew": 0} if outside else {"marker": "|", "ms": 14, "mew": 2}
    axes.plot(place, row, color="0.35", clip_on=False, **mark)
    _say(axes, place, row, text + (", off the axis" if outside else ""))


def _say(axes: Any, x: float, y: float, text: str) -> None:
    axes.annotate(text, (x, y), xytext=(9, 0), textcoords="offset points", va="center", fontsize=8,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0})  # fmt: skip
