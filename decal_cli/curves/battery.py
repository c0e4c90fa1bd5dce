"""All curves of one table: what decisions cost at each t* as the score is, calibrated, and by region."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from decal_cli.curves import heldout, sums
from decal_cli.curves.grid import Grid
from decal_cli.curves.kinds import CURVE_KINDS, ThresholdCurve
from decal_cli.curves.roc import Roc
from decal_cli.curves.sums import LevelSums, Means, levels_of
from decal_cli.declarations.defaults import CONFIDENCE, SEED
from decal_cli.errors import Undefined
from decal_cli.learn import held_out
from decal_cli.learn.probe import Probed, all_deals
from decal_cli.learn.regions import HeldOutRegions, Regions
from decal_cli.metrics import bootstrap
from decal_cli.metrics.confidence import bias_corrected, normal, quantile
from decal_cli.metrics.decisions import Acting, Decisions
from decal_cli.metrics.families.practice import false_positive_rate
from decal_cli.metrics.families.task import ppv, sensitivity
from decal_cli.metrics.numerics import corp, decisions, grouping
from decal_cli.metrics.numerics.at_levels import at_levels
from decal_cli.metrics.regret_cells import ScoreRegrets
from decal_cli.tables import resample as draw
from decal_cli.tables.cells import CellTable
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, Floats, Ints, MeanEstimate, Table
from decal_cli.tables.units import Estimate
from decal_cli.task import BinaryTask

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

A = TypeVar("A")
B = TypeVar("B")

MAX_ONE_THREAD = 1 << 14
"""Up to so many levels a second thread costs more than it saves."""
N_REPLAY_CELLS = 128
"""Equal-mass cells, besides those that begin at a threshold, on which the cross-fit is replayed."""


class Setup(NamedTuple):
    """What the curves of one table are computed from; segments: the table merged at every t* and every bin."""

    table: Table
    segments: Table
    grid: Grid
    confidence: float | None
    seed: int

    def rng(self) -> np.random.Generator:
        """The generator of the metrics of regret, for the same folds and draws."""
        return Seed(self.seed).generator("regret")


class FeaturedRows(NamedTuple):
    """What the features show of the rows; held: None where there are too few rows to hold some out."""

    regions: Regions
    held: HeldOutRegions | None
    probed: Probed


def curves_of(
    t: Table, featured: FeaturedRows | None, grid: Grid, *, confidence: float | None = CONFIDENCE, seed: int = SEED
) -> dict[str, ThresholdCurve]:
    """Every curve by name, for the unit task (u_delta = 1) of each t*; without intervals where confidence is None.

    Means over rows have normal intervals from their standard error, with isotonic fit, levels and regions held fixed;
    threshold_adjusted has a normal one from 100 replays of the procedure that all t* share; all others have those of
    `evaluate`. Intervals are pointwise: each holds at its own t*.
    """
    cut = np.searchsorted(t.score, grid.at, side="left")
    cells = np.arange(len(t)) if len(t) <= 2 * N_REPLAY_CELLS else t.bin_starts(N_REPLAY_CELLS)
    starts = np.unique(np.concatenate((cut, t.bin_starts(), cells)))
    setup = Setup(t, t.merge_levels(starts[starts < len(t)]), grid, confidence, seed)
    curves = {curve.kind.name: curve for curve in _without_features(setup)}
    if featured is not None:
        curves |= {curve.kind.name: curve for curve in _with_features(setup, featured)}
        curves["gain_post_training"] = _post_training(setup, curves["gain_recalibration"], curves["gain_beyond"])
    return {name: curves[name] for name in CURVE_KINDS if name in curves}


def _without_features(s: Setup) -> Iterator[ThresholdCurve]:
    at = s.grid.at
    recalibrated, calibration_regret = _meanwhile(s, lambda: _held_out_gains(s), lambda: _calibration_regret(s))
    segments, pools = levels_of(s.segments), s.table.isotonic
    fitted = levels_of(pools, pools.pos / pools.n)
    now = sums.of_decisions(segments, _cost(at), s.grid)
    yield _mean(s, "brier", now, brier=_brier(s.table))
    yield _mean(s, "brier_calibrated", sums.of_decisions(fitted, _cost(at), s.grid), brier=sums.brier_of(fitted))
    for curve in _recalibrated(s, recalibrated, fitted):
        yield curve
        if curve.kind.name == "gain_recalibration":
            yield _loss_ratio(s, now.value[s.grid.shown], curve)
    never, acts = decisions.net_benefit_payoff(at)
    yield _mean(s, "net_benefit", sums.of_decisions(segments, (never, acts), s.grid))
    yield _mean(s, "net_benefit_all", sums.of_decisions(segments, (acts, acts), s.grid))
    avoided = (decisions.INTERVENTIONS, -decisions.INTERVENTIONS * (1 - at) / at), (0.0, 0.0)
    yield _mean(s, "interventions_avoided", sums.of_decisions(segments, avoided, s.grid))
    regret = decisions.external_regret_payoff(s.table.base_rate, at)
    yield _v_regret(s, sums.of_decisions(segments, regret, s.grid))
    levels = at_levels(s.table, "auto")
    best = levels_of(levels, levels.pos / levels.n)
    yield _mean(s, "cfdl", sums.of_changes(best, levels.score, s.grid))
    yield calibration_regret()
    yield from _ranking(s, segments)


def _meanwhile(s: Setup, first: Callable[[], A], second: Callable[[], B]) -> tuple[Callable[[], A], Callable[[], B]]:
    """Two calls for later; on a large table a second thread makes them meanwhile, one after the other.

    With a third thread they would wait for the interpreter's lock longer than they run.
    """
    if len(s.table) <= MAX_ONE_THREAD:
        return first, second
    thread = _second_thread(os.getpid())
    futures = thread.submit(first), thread.submit(second)
    return futures[0].result, futures[1].result


@cache
def _second_thread(process: int) -> ThreadPoolExecutor:
    """The second thread of this process (a fork has none); it is kept, and its memory, for the next model or group."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1)


def _cost(at: Floats) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Cost-weighted loss of one row, payoff[decision][label]: Tasche 2021, eq. 3.3a."""
    return (0.0, 1 - at), (at, 0.0)


def _brier(t: Table) -> float:
    """The Brier score, twice the exact area under the Brier curve: Tasche 2021, eq. 4.2a."""
    if isinstance(t, CellTable):  # whose mean scores do not know it, and whose sums do
        return t.mean_of(corp.squared).mean
    if t.one_row_each:  # the same with a third of the work
        return t.sum(lambda b: (b.pos - b.score) ** 2) / t.total
    return t.sum(lambda b: b.pos * (1 - b.score) ** 2 + (b.n - b.pos) * b.score**2) / t.total


def _mean(s: Setup, name: str, means: Means, brier: float | None = None) -> ThresholdCurve:
    """A curve of means with normal intervals."""
    reach = None if s.confidence is None else quantile(s.confidence) * means.error
    return _curve(s, name, means.value, reach, means.expected, brier)


def _curve(
    s: Setup,
    name: str,
    value: Floats,
    reach: Floats | None,
    expected: MeanEstimate | None,
    brier: float | None = None,
) -> ThresholdCurve:
    """The curve of value -/+ reach on the thresholds shown, cut to the range."""
    kind = CURVE_KINDS[name]
    shown = value[s.grid.shown]
    low = high = None
    if reach is not None:
        width = reach[s.grid.shown]
        low, high = np.clip(shown - width, *kind.range), np.clip(shown + width, *kind.range)
    mean = None if expected is None else expected.mean
    ends = None if expected is None or s.confidence is None else normal(expected, s.confidence, *kind.range)
    return ThresholdCurve(kind, shown, low, high, mean, ends, brier)


def _undefined(s: Setup, name: str, reason: str) -> ThresholdCurve:
    return ThresholdCurve(CURVE_KINDS[name], np.full(len(s.grid.shown), np.nan), reason=reason)


def _ranking(s: Setup, segments: LevelSums) -> Iterator[ThresholdCurve]:
    """The ROC curve and what follows from it, as `evaluate` has it; the interval of lift holds the base rate fixed."""
    roc = Roc.of_levels(segments, s.grid.at)
    tasks = [BinaryTask.of_threshold(float(t)) for t in s.grid.at[s.grid.shown]]
    decided = [Acting.of(Decisions.of_table(s.segments, task)) for task in tasks]
    yield _rate(s, "sensitivity", roc.recall, [partial(sensitivity, d) for d in decided], "no row has label 1")
    alarms = [partial(false_positive_rate, d) for d in decided]
    yield _rate(s, "false_positive_rate", roc.false_alarms, alarms, "no row has label 0")
    precision = [partial(ppv, d) for d in decided]
    yield _rate(s, "ppv", roc.precision, precision, "no row is decided 1")
    yield _rate(s, "lift", roc.precision, precision, "no row is decided 1", 1 / max(s.table.base_rate, 1e-300))


def _rate(
    s: Setup, name: str, rate: Floats, shares: Sequence[Callable[[], Estimate]], none: str, factor: float = 1.0
) -> ThresholdCurve:
    """A share, or a multiple of it."""
    shown, low, high = rate[s.grid.shown], None, None
    if s.confidence is not None:
        ends = [
            (np.nan, np.nan) if np.isnan(r) else f().wilson(s.confidence) for r, f in zip(shown, shares, strict=True)
        ]
        low, high = factor * np.array(ends).T
    return ThresholdCurve(CURVE_KINDS[name], factor * shown, low, high, reason=none if np.isnan(shown).any() else None)


def _v_regret(s: Setup, means: Means) -> ThresholdCurve:
    """Twice the curve and its interval, signed: below 0 where the score beats the base rate."""
    z = 0.0 if s.confidence is None else quantile(s.confidence)
    value, low, high = (2 * (means.value + side * z * means.error) for side in (0, -1, 1))
    return _of_ends(s, "v_regret", value, low, high)


def _of_ends(s: Setup, name: str, value: Floats, low: Floats, high: Floats) -> ThresholdCurve:
    """A curve with given ends; the interval of its expectation is the expectation of the ends, which is wide enough."""
    w, shown, some = s.grid.weight, s.grid.shown, s.confidence is not None
    return ThresholdCurve(
        CURVE_KINDS[name],
        value[shown],
        low[shown] if some else None,
        high[shown] if some else None,
        None if w is None else float(w @ value),
        None if w is None or not some else (float(w @ low), float(w @ high)),
    )


def _held_out_gains(s: Setup) -> heldout.Gains | Undefined:
    try:
        held = held_out.of_table(s.table, s.seed)
    except Undefined as undefined:
        return undefined
    return heldout.gains(held.units, held.score, held.recalibrated, s.grid.at, s.grid.weight)


def _of_gains(s: Setup, name: str, gains: heldout.Gains) -> ThresholdCurve:
    z = 0.0 if s.confidence is None else quantile(s.confidence)
    reach = None if s.confidence is None else z * gains.error + gains.bias
    curve = _curve(s, name, gains.value, reach, None)
    if gains.expected is None:
        return curve
    value, error, bias = gains.expected
    low, high = np.clip((value - z * error - bias, value + z * error + bias), *curve.kind.range).tolist()
    return replace(curve, expectation=value, expectation_interval=None if reach is None else (low, high))


def _recalibrated(
    s: Setup, gains: Callable[[], heldout.Gains | Undefined], fitted: LevelSums
) -> Iterator[ThresholdCurve]:
    """The held-out gain of recalibration, and the threshold that recalibrates."""
    at, shown = s.grid.at, s.grid.shown
    z = 0.0 if s.confidence is None else quantile(s.confidence)
    first = np.searchsorted(fitted.key, at, side="left")
    adjusted = np.append(s.table.score[s.table.pools], np.nan)[first]
    won = gains()
    if isinstance(won, Undefined):
        yield _undefined(s, "gain_recalibration", won.reason)
        yield ThresholdCurve(CURVE_KINDS["threshold_adjusted"], adjusted[shown], reason=_unreached(adjusted[shown]))
        return
    yield _of_gains(s, "gain_recalibration", won)
    reach = None if s.confidence is None else z * heldout.threshold_error(s.segments, at, s.rng())
    crossing = _curve(s, "threshold_adjusted", adjusted, reach, None)
    yield ThresholdCurve(crossing.kind, crossing.value, crossing.low, crossing.high, reason=_unreached(crossing.value))


def _loss_ratio(s: Setup, loss: Floats, gain: ThresholdCurve) -> ThresholdCurve:
    """What is lost after recalibration, on held-out rows, over what is lost now, which the interval holds fixed."""
    if gain.reason is not None:
        return _undefined(s, "loss_ratio", gain.reason)

    def ratio(won: Floats | None) -> Floats | None:
        if won is None:
            return None
        return np.divide(np.maximum(loss - won, 0.0), loss, out=np.full_like(loss, np.nan), where=loss > 0)

    value = ratio(gain.value)
    assert value is not None
    reason = "nothing is lost as it is" if np.isnan(value).any() else None
    return ThresholdCurve(CURVE_KINDS["loss_ratio"], value, ratio(gain.high), ratio(gain.low), reason=reason)


def _unreached(adjusted: Floats) -> str | None:
    missing = np.isnan(adjusted)
    return "the isotonic fit does not reach t*: decide 0" if missing.any() else None


def _calibration_regret(s: Setup) -> ThresholdCurve:
    """The plug-in on equal-mass bins, and its bias-corrected interval; bins and segments are resampled together."""
    t, at, segments = s.table, s.grid.at, levels_of(s.segments)
    first = np.searchsorted(s.segments.score, t.score[t.bin_starts()], side="left")
    cut = np.searchsorted(segments.key, at, side="left")
    value = _regret_of(segments.neg[None], segments.pos[None], first, cut, at)[0]
    if s.confidence is None:
        return _of_ends(s, "regret_calibration", value, value, value)
    # At each t* the interval of the metric.
    tasks = [BinaryTask.of_threshold(float(each)) for each in at]
    ends = [ScoreRegrets(t, task).bins(BINS).interval(s.rng(), s.confidence) for task in tasks]
    curve = _of_ends(s, "regret_calibration", value, *np.array(ends).T)
    w = s.grid.weight
    if w is None:
        return curve
    rng = s.rng()
    neg, pos = (_resampled(rng, *pair) for pair in ((segments.neg, segments.neg2), (segments.pos, segments.pos2)))
    draws = _regret_of(neg, pos, first, cut, at)
    low, high = bias_corrected(float(w @ value), draws @ w, s.confidence)
    expected = max(low, 0.0), max(high, 0.0)
    return ThresholdCurve(curve.kind, curve.value, curve.low, curve.high, curve.expectation, expected)


def _resampled(rng: np.random.Generator, weight: Floats, squares: Floats) -> Floats:
    """Poisson draws of weights, shape (RESAMPLES, s)."""
    many = (np.tile(values, bootstrap.RESAMPLES) for values in (weight, squares))
    return draw.weighted_poisson(rng, *many)[0].reshape(bootstrap.RESAMPLES, -1)


def _regret_of(neg: Floats, pos: Floats, first: Ints, cut: Ints, at: Floats) -> Floats:
    """Calibration regret at each t*, shape (draws, K), from weights of segments, shape (draws, s) each.

    first: first segment of each bin; cut: first segment at or above each t*.
    """
    zero = np.zeros((len(neg), 1))
    n = np.concatenate((zero, np.cumsum(neg + pos, axis=1)), axis=1)
    rows, positives = np.add.reduceat(neg + pos, first, axis=1), np.add.reduceat(pos, first, axis=1)
    rate = np.divide(positives, rows, out=np.zeros_like(rows), where=rows > 0)
    total = np.maximum(n[:, -1:], 1e-300)
    regret = np.zeros((len(neg), len(cut)))
    for k in range(len(first)):
        below = np.clip(n[:, cut] - n[:, first[k], None], 0, rows[:, k, None]) / total
        above = rows[:, k, None] / total - below
        regret += decisions.calibration_regret(rate[:, k, None, None], below[..., None], above[..., None], at[:, None])
    return regret


def _with_features(s: Setup, featured: FeaturedRows) -> Iterator[ThresholdCurve]:
    at, rows = s.grid.at, featured.held
    leaves = _leaves(featured.regions)
    yield _mean(s, "brier_regions_plug_in", sums.of_decisions(leaves, _cost(at), s.grid), sums.brier_of(leaves))
    yield from _bounds(s, featured.regions, featured.probed)
    if rows is None:
        reason = "needs more rows: too few to fit on some and evaluate on the others"
        for name in ("brier_regions", "gain_beyond"):
            yield _undefined(s, name, reason)
        return
    by_region = sums.levels_of_rows(rows.region, rows.label, rows.weight, s.table.design.effect)
    yield _mean(s, "brier_regions", sums.of_decisions(by_region, _cost(at), s.grid), sums.brier_of(by_region))
    probed = featured.probed
    dealt = all_deals(probed)
    scores = dealt.recalibrated, dealt.probe, at, s.grid.weight, dealt.judge
    yield _of_gains(s, "gain_beyond", heldout.gains(dealt.units, *scores))


def _post_training(s: Setup, first: ThresholdCurve, second: ThresholdCurve) -> ThresholdCurve:
    """The sum of the gain of recalibration and the gain beyond it, so that the three curves add up at every t*."""
    if first.reason or second.reason:
        return _undefined(s, "gain_post_training", first.reason or second.reason or "")
    kind, value = CURVE_KINDS["gain_post_training"], first.value + second.value
    expectation = None if s.grid.weight is None else (first.expectation or 0.0) + (second.expectation or 0.0)
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return ThresholdCurve(kind, value, expectation=expectation)
    # As `gain_post_training` of metrics.held_out adds their errors.
    reach = np.hypot(first.high - first.low, second.high - second.low) / 2
    low, high = (np.clip(value + side * reach, *kind.range) for side in (-1, 1))
    return ThresholdCurve(kind, value, low, high, expectation, _ends_of_sum(expectation, first, second))


def _ends_of_sum(expectation: float | None, *parts: ThresholdCurve) -> tuple[float, float] | None:
    ends = [part.expectation_interval for part in parts]
    if expectation is None or None in ends:
        return None
    reach = math.hypot(*(high - low for low, high in filter(None, ends))) / 2
    return expectation - reach, expectation + reach


def _leaves(regions: Regions) -> LevelSums:
    """Leaves of both halves by their own label frequency; squared weights are divided between the labels."""
    n, pos, n2 = (np.concatenate([getattr(half, name) for half in regions.halves]) for name in ("n", "pos", "n2"))
    n, pos, n2 = (values[n > 0] for values in (n, pos, n2))
    rate = pos / n
    return LevelSums(rate, n - pos, pos, n2 * (1 - rate), n2 * rate)


def _where_seen(s: Setup, regions: Regions, probed: Probed) -> Setup:
    """The same without intervals where the probe clearly wins more than the trees show."""
    try:
        if s.confidence is not None:
            grouping.need_seen(regions, probed, s.confidence)
    except Undefined:
        return s._replace(confidence=None)
    return s


def _bounds(s: Setup, regions: Regions, probed: Probed) -> Iterator[ThresholdCurve]:
    """Bounds on the grouping regret, with the intervals that `evaluate` gives them."""
    names = "regret_grouping_lower", "regret_grouping_upper", "regret_grouping_upper_sharp"
    try:
        plug_in = [grouping.estimated_bounds(regions, BinaryTask.of_threshold(float(t))) for t in s.grid.at]
    except Undefined as undefined:
        yield from (_undefined(s, name, undefined.reason) for name in names)
        return
    values = np.array([[float(bound) for bound in bounds] for bounds in plug_in]).T
    ends = np.repeat(values[..., None], 2, axis=2)
    s = _where_seen(s, regions, probed)
    if s.confidence is not None:
        # The metrics draw from the generator of their family, so one bracket serves them all.
        missed = grouping.missed(regions, probed, s.confidence)
        tasks = [BinaryTask.of_threshold(float(t)) for t in s.grid.at]
        brackets = [grouping.bracket(regions, task, s.rng(), s.confidence, missed) for task in tasks]
        ends = np.array(brackets).transpose(1, 0, 2)
    for name, value, (low, high) in zip(names, values, ends.transpose(0, 2, 1), strict=True):
        yield _of_ends(s, name, value, *np.clip((low, high), *CURVE_KINDS[name].range))
