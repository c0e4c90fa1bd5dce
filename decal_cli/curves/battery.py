"""All curves of one table: a loop over decisions on units that are reduced to what the thresholds tell apart.

A curve is an estimate at each t*, as `evaluate` has it for that task, so that its interval is the metric's. What is
expected under a prior is a weighted sum of these estimates, and has an interval for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from decal_cli.curves.grid import Grid
from decal_cli.curves.kinds import CURVE_KINDS, Expectation, MetricCurve
from decal_cli.declarations.defaults import CONFIDENCE, SEED
from decal_cli.errors import Undefined
from decal_cli.learn import held_out
from decal_cli.learn.held_out import WIDENED
from decal_cli.learn.probe import Judge, Probed
from decal_cli.learn.regions import HeldOutRegions, Regions
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import grouping
from decal_cli.metrics.confidence import bias_corrected
from decal_cli.metrics.decisions import Acting
from decal_cli.metrics.families import scores
from decal_cli.metrics.families.regret import threshold_adjusted
from decal_cli.metrics.families.task import (
    expected_utility,
    external_regret,
    false_positive_rate,
    interventions_avoided,
    net_benefit,
    ppv,
    sensitivity,
)
from decal_cli.metrics.regret_cells import ScoreCells, ScoreRegrets
from decal_cli.tables import resample as draw
from decal_cli.tables.design import Design
from decal_cli.tables.estimate import one_missed, ratio
from decal_cli.tables.resample import TIE
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, NO_POSITIVES, ONE_LABEL, Floats, Ints, Table
from decal_cli.tables.threads import meanwhile
from decal_cli.tables.units import Estimate, Independent, Interval, Units
from decal_cli.tables.utilities import Utilities
from decal_cli.task import BinaryTask, constant_words

OfDecisions = Callable[[Acting], Estimate]

MAX_ONE_THREAD = 1 << 14
"""Up to so many levels a second thread costs more than it saves."""


class Setup(NamedTuple):
    """What the curves of one table are computed from; segments: the table merged at every t*."""

    table: Table
    segments: Table
    grid: Grid
    confidence: float | None
    seed: int

    def rng(self, family: str = "regret") -> np.random.Generator:
        """The generator of the metrics of a family, for the same draws."""
        return Seed(self.seed).generator(family)

    def point(self, each: Estimate, interval: Callable[[Estimate, float], Interval]) -> tuple[float, ...]:
        """A value, and the ends of its interval if they are asked for."""
        return (each.value, *(() if self.confidence is None else interval(each, self.confidence)))

    @property
    def tasks(self) -> list[BinaryTask]:
        """The unit task of every t*."""
        return [BinaryTask.of_threshold(float(t)) for t in self.grid.at]


class FeaturedRows(NamedTuple):
    """What the features show of the rows. held: None where there are too few rows to hold some out."""

    regions: Regions
    held: HeldOutRegions | None
    probed: Probed


class Keyed(NamedTuple):
    """Units with a key by which they are decided: 1 where it is at least t*. key: shape (m,)."""

    units: Units
    key: Floats

    @property
    def brier(self) -> float:
        """Twice the exact area under the Brier curve, which is the Brier score: Tasche 2021, eq. 4.2a."""
        lost = np.where(self.units.label == 1, (1 - self.key) ** 2, self.key**2)
        return float(self.units.sums(lost)) / self.units.total


def levels_of(t: Table, share_known: bool, key: Floats | None = None) -> Keyed:
    """The levels of a table by their score or another key, shape (m,): a unit for each level and label."""
    units = t.design.units_of(np.stack(t.of_labels), share_known)
    return Keyed(units, np.tile(t.score if key is None else key, 2))


def curves_of(
    t: Table, featured: FeaturedRows | None, grid: Grid, *, confidence: float | None = CONFIDENCE, seed: int = SEED
) -> dict[str, MetricCurve]:
    """Every curve by name, for the unit task (u_delta = 1) of each t*; without intervals where confidence is None.

    Metrics have the intervals of `evaluate`. The Brier curves of the isotonic fit and of regions have normal ones, with
    fit and regions held fixed. Intervals are pointwise: each holds at its own t*.
    """
    starts = np.unique(np.append(np.searchsorted(t.score, grid.at, side="left"), 0))
    setup = Setup(t, t.merge_levels(starts[starts < len(t)]), grid, confidence, seed)
    curves = {curve.name: curve for curve in _without_features(setup)}
    if featured is not None:
        curves |= {curve.name: curve for curve in _with_features(setup, featured)}
        curves["gain_post_training"] = _post_training(setup, curves["gain_recalibration"], curves["gain_beyond"])
    return {name: curves[name] for name in CURVE_KINDS if name in curves}


def _without_features(s: Setup) -> Iterator[MetricCurve]:
    # With a third thread they would wait for the interpreter's lock longer than they run.
    recalibrated = meanwhile(partial(_recalibration, s), len(s.table) > MAX_ONE_THREAD)
    known, pools = s.table.design.share_known, s.table.isotonic
    segments, fitted = levels_of(s.segments, known), levels_of(pools, known, pools.pos / pools.n)
    now = _of_decisions(s, "brier", segments, _lost, s.table.mean_of(scores.squared).value)
    yield now
    yield _of_decisions(s, "brier_calibrated", fitted, _lost, fitted.brier)
    gain = recalibrated()
    yield gain
    yield _loss_ratio(now.value, gain)
    yield _threshold_adjusted(s)
    yield _of_decisions(s, "net_benefit", segments, net_benefit)
    yield _of_decisions(s, "net_benefit_all", segments._replace(key=np.full(len(segments.key), np.inf)), net_benefit)
    yield _of_decisions(s, "interventions_avoided", segments, interventions_avoided)
    yield _of_decisions(s, "v_regret", segments, lambda d: 2 * external_regret(d))
    regrets = [ScoreRegrets(s.table, task) for task in s.tasks]
    yield _lost_in_cells(s, "cfdl", "task", [each.levels("auto") for each in regrets])
    yield _lost_in_cells(s, "regret_calibration", "regret", [each.bins(BINS) for each in regrets])
    yield _rate(s, "sensitivity", segments, sensitivity)
    yield _rate(s, "false_positive_rate", segments, false_positive_rate)
    precision = _rate(s, "ppv", segments, ppv)
    yield precision
    share = s.table.base_rate
    yield precision.times(1 / share, CURVE_KINDS["lift"]) if share else _undefined(s, "lift", NO_POSITIVES)


def _lost(d: Acting) -> Estimate:
    """Cost-weighted loss per row: Tasche 2021, eq. 3.3a."""
    return -expected_utility(d)


def _decided(keyed: Keyed, at: Floats, which: Ints) -> Iterator[Acting]:
    """The decisions by a key at the thresholds of these numbers, on units that all of them share."""
    units, reached = keyed.units.by(np.searchsorted(at, keyed.key, side="right"))
    units = replace(units, kind=np.arange(len(units)))
    for k in which:
        stakes = Utilities.of(BinaryTask.of_threshold(float(at[k])).utility)
        yield Acting(units, stakes, (reached > k).astype(int))


def _of_decisions(s: Setup, name: str, keyed: Keyed, metric: OfDecisions, brier: float | None = None) -> MetricCurve:
    """A metric of the decisions by a key at each t*."""
    decided = _decided(keyed, s.grid.at, np.arange(len(s.grid.at)))
    return _of_estimates(s, name, map(metric, decided), brier)


def _of_estimates(s: Setup, name: str, estimates: Iterable[Estimate], brier: float | None = None) -> MetricCurve:
    """A curve of estimates on the same units, one for each t*, with normal intervals and the expectation."""
    kind, prior, points, shown = CURVE_KINDS[name], s.grid.weight, [], set(s.grid.shown.tolist())
    sums, influence, units = np.zeros(3), 0.0, None
    for k, each in enumerate(estimates):
        if k in shown:
            points.append(s.point(each, Estimate.normal))
        if prior is not None:
            sums, units = sums + prior[k] * np.array((each.value, each.extra, each.missed)), each.units
            influence = influence + prior[k] * each.influence
    curve = MetricCurve.of(kind, np.array(points).T, brier=brier)
    if units is None:
        return curve
    mean, extra, missed = sums.tolist()
    expected = Estimate(mean, np.asarray(influence), units.by_label, *kind.range, extra, missed)
    interval = None if s.confidence is None else expected.normal(s.confidence)
    return replace(curve, expectation=Expectation(mean, interval))


def _rate(s: Setup, name: str, keyed: Keyed, metric: OfDecisions) -> MetricCurve:
    """A curve of a share at each t*, with Wilson's intervals; NaN where nothing is there to take a share of."""
    points, reason = [], None
    for decided in _decided(keyed, s.grid.at, s.grid.shown):
        try:
            points.append(s.point(metric(decided), Estimate.wilson))
        except Undefined as undefined:
            points.append((np.nan,) * (1 if s.confidence is None else 3))
            reason = undefined.reason
    return MetricCurve.of(CURVE_KINDS[name], np.array(points).T, reason)


def _of_ends(s: Setup, name: str, value: Floats, ends: Floats | None) -> MetricCurve:
    """A curve with given ends, shape (2, K); the interval of its expectation is the expectation of the ends."""
    points = value[None] if ends is None else np.vstack((value, ends))
    curve = MetricCurve.of(CURVE_KINDS[name], points[:, s.grid.shown])
    if s.grid.weight is None:
        return curve
    mean, *edges = (points @ s.grid.weight).tolist()
    return replace(curve, expectation=Expectation(mean, (edges[0], edges[1]) if edges else None))


def _undefined(s: Setup, name: str, reason: str) -> MetricCurve:
    return MetricCurve(CURVE_KINDS[name], np.full(len(s.grid.shown), np.nan), reason=reason)


def _recalibration(s: Setup) -> MetricCurve:
    """The gain of recalibration, from the held-out scores that `evaluate` uses too: one set serves every t*."""
    if not s.table.fewer_rows:
        return _undefined(s, "gain_recalibration", ONE_LABEL)
    try:
        held = held_out.of_table(s.table, s.seed)
    except Undefined as undefined:
        return _undefined(s, "gain_recalibration", undefined.reason)
    return _of_estimates(s, "gain_recalibration", gains(held.units, held.score, held.recalibrated, s.grid.at))


def _threshold_adjusted(s: Setup) -> MetricCurve:
    """The adjusted threshold at each t*; without an interval where there are too few rows for one."""
    tasks, points, reason = s.tasks, np.full((3, len(s.grid.shown)), np.nan), None
    for k, shown in enumerate(s.grid.shown):
        try:
            each = threshold_adjusted(s.table, tasks[shown])
        except Undefined:
            reason = f"the isotonic fit does not reach t*: {constant_words(0)}"
            continue
        points[0, k] = each.value
        if s.confidence is not None:
            with suppress(Undefined):
                points[1:, k] = each.interval(s.confidence, Seed(s.seed))
    known = 1 if np.isnan(points[1:]).all() else 3
    return MetricCurve.of(CURVE_KINDS["threshold_adjusted"], points[:known], reason)


def _loss_ratio(loss: Floats, gain: MetricCurve) -> MetricCurve:
    """The held-out loss after recalibration over the loss now; the interval takes the loss now as fixed."""
    if gain.reason is not None:
        return MetricCurve(CURVE_KINDS["loss_ratio"], gain.value, reason=gain.reason)
    won = [each for each in (gain.value, gain.high, gain.low) if each is not None]
    points = [ratio(np.maximum(loss - each, 0.0), loss, np.nan) for each in won]
    return MetricCurve.of(CURVE_KINDS["loss_ratio"], points, None if (loss > 0).all() else "nothing is lost as it is")


def _lost_in_cells(s: Setup, name: str, family: str, at_each: Sequence[ScoreCells]) -> MetricCurve:
    """What acting on the label shares of cells would add at each t*, in cells that all t* share."""
    value = np.array([each.value for each in at_each])
    if s.confidence is None:
        return _of_ends(s, name, value, None)
    curve = _of_ends(s, name, value, np.array([each.interval(s.rng(family), s.confidence) for each in at_each]).T)
    if s.grid.weight is None or curve.expectation is None:
        return curve
    # All t* share the draws of the rows of each cell; the share of a cell below a t* is the same in every draw.
    cells, rng = at_each[0].cells, s.rng(family)
    neg, pos = (_drawn(rng, *each) for each in zip(cells.of_labels, cells.squares_of_labels, strict=True))
    total, lost = np.maximum((neg + pos).sum(axis=1), 1e-300)[:, None], np.zeros(len(pos))
    for each, at, weight in zip(at_each, s.grid.at, s.grid.weight, strict=True):
        lost += weight * each.parts.lost(((pos - at * (neg + pos)) / total)[:, None])
    low, high = bias_corrected(curve.expectation.value, lost, s.confidence)
    return replace(curve, expectation=replace(curve.expectation, interval=(max(low, 0.0), max(high, 0.0))))


def _drawn(rng: np.random.Generator, weight: Floats, squares: Floats) -> Floats:
    """Poisson draws of weights, shape (RESAMPLES, m)."""
    many = (np.tile(values, intervals.RESAMPLES) for values in (weight, squares))
    return draw.weighted_poisson(rng, *many)[0].reshape(intervals.RESAMPLES, -1)


def _with_features(s: Setup, featured: FeaturedRows) -> Iterator[MetricCurve]:
    rows, probed = featured.held, featured.probed
    leaves = _leaves(featured.regions)
    yield _of_decisions(s, "brier_regions_plug_in", leaves, _lost, leaves.brier)
    yield from _bounds(s, featured.regions, probed)
    if rows is None or not s.table.fewer_rows:
        reason = ONE_LABEL if rows else "needs more rows: too few to fit on some and evaluate on the others"
        yield from (_undefined(s, name, reason) for name in ("brier_regions", "gain_beyond"))
        return
    squares = Independent(s.table.design.effect * rows.weight**2)
    by_region = Keyed(Units(np.asarray(rows.label, dtype=int), rows.weight, squares), rows.region)
    yield _of_decisions(s, "brier_regions", by_region, _lost, by_region.brier)
    dealt = probed.all_deals
    won = gains(dealt.units, dealt.recalibrated, dealt.probe, s.grid.at, dealt.judge)
    yield _of_estimates(s, "gain_beyond", won)


def _post_training(s: Setup, first: MetricCurve, second: MetricCurve) -> MetricCurve:
    """The sum of the gain of recalibration and the gain beyond it, so that the three curves add up at every t*."""
    if first.reason or second.reason:
        return _undefined(s, "gain_post_training", first.reason or second.reason or "")

    value, curve = first.value + second.value, CURVE_KINDS["gain_post_training"]
    sum_of = MetricCurve.of(curve, [value, *_ends_of_sum(value, (first.low, first.high), (second.low, second.high))])
    if first.expectation is None or second.expectation is None:
        return sum_of
    parts = first.expectation, second.expectation
    mean = parts[0].value + parts[1].value
    ends = _ends_of_sum(mean, *(part.interval or (None, None) for part in parts))
    return replace(sum_of, expectation=Expectation(mean, (float(ends[0]), float(ends[1])) if ends else None))


def _ends_of_sum(value: Any, *parts: tuple[Any, Any]) -> tuple[Any, ...]:
    """The ends of a sum of two gains, whose errors add as in metrics.decisions; () where a gain has no interval."""
    if any(low is None for low, _ in parts):
        return ()
    half_width = np.hypot(*(high - low for low, high in parts)) / 2
    return value - half_width, value + half_width


def _leaves(regions: Regions) -> Keyed:
    """The leaves of both halves, decided by their own label frequency, which also splits their squared weights."""
    n, pos, n2 = (np.concatenate([getattr(half, name) for half in regions.halves]) for name in ("n", "pos", "n2"))
    n, pos, n2 = (values[n > 0] for values in (n, pos, n2))
    rate = pos / n
    return Keyed(Design((n2, n2 * rate)).units_of(np.stack((n - pos, pos))), np.tile(rate, 2))


def _bounds(s: Setup, regions: Regions, probed: Probed) -> Iterator[MetricCurve]:
    """Bounds on the grouping regret, with the intervals that `evaluate` gives them."""
    names = "regret_grouping_lower", "regret_grouping_upper", "regret_grouping_upper_sharp"
    try:
        plug_in = [grouping.estimated_bounds(regions, task) for task in s.tasks]
    except Undefined as undefined:
        yield from (_undefined(s, name, undefined.reason) for name in names)
        return
    values, ends = np.array([[float(bound) for bound in bounds] for bounds in plug_in]).T, None
    if s.confidence is not None:
        with suppress(Undefined):  # where the probe clearly wins more than the trees show
            grouping.need_seen(regions, probed, s.confidence)
            # The metrics draw from the generator of their family, so one bracket serves them all.
            missed = grouping.missed(regions, probed, s.confidence)
            each = [grouping.bracket(regions, task, s.rng(), s.confidence, missed) for task in s.tasks]
            low, high = np.array([bounds.shown for bounds in each]).transpose(2, 1, 0)
            ends = np.stack((np.minimum(low, values), np.maximum(high, values)), axis=1)
    for number, name in enumerate(names):
        yield _of_ends(s, name, values[number], None if ends is None else ends[number])


def gains(units: Units, now: Floats, then: Floats, at: Floats, judge: Judge | None = None) -> Iterator[Estimate]:
    """What acting on the held-out scores `then` wins over acting on the scores `now`, at each t* (u_delta 1).

    Errors are those of metrics.decisions, widened, and count one more row whose decision might have changed, as far as
    labels judge. judge: its probability of label 1 counts by half, and the label by half.
    """
    one_row = float(one_missed(1.0 if judge is None else 0.25, units.effective_rows))
    # Units that differ in how many thresholds the two scores reach; no two rows have the same judge.
    size = len(at) + 1
    key = np.searchsorted(at, now, side="right") * size + np.searchsorted(at * (1 - TIE), then, side="right")
    reduced, key = units.by(key) if judge is None else (units, key)
    before, after = key // size, key % size
    label = reduced.label.astype(float)
    positive = label if judge is None else (label + judge.chance.ravel()) / 2
    for k, t in enumerate(at):
        changed = (after > k).astype(float) - (before > k)
        gain = reduced.mean(changed * (positive - t))
        moved = 0.0 if judge is None else judge.moved(changed) / (2 * reduced.total)
        yield replace(gain, adds=WIDENED * (gain.influence + moved), extra=t * (1 - t) * one_row, missed=0.0)
