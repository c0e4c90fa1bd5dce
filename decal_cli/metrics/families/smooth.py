"""Calibration errors that are continuous in the scores: no bins, and small moves of scores move them little."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from decal_cli.metrics import confidence as intervals
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import metric
from decal_cli.metrics.families import interval
from decal_cli.metrics.numerics import chain, chance, heat, heatgrid, merging, transport
from decal_cli.tables.table import Estimate, Floats, Table

Method = Annotated[
    Literal["exact", "relplot"],
    "exact: the definition; relplot: as relplot 1.0.3 computes it, width and integral on grids",
]

_EXACT = 1 << 17
_CELLS = 1 << 16
_RESAMPLED = f"bias-corrected bootstrap; above {chance.CELLS} levels, of as many equal-mass cells"


def _levels(t: Table) -> Table:
    """The table, or above _EXACT levels its cells of width 1 / _CELLS, which moves every score by less than that."""
    return t if len(t) <= _EXACT else t.bins(_CELLS, "width")


def _gap(score: Floats, n: Floats, pos: Floats) -> Floats:
    return np.asarray((n * score - pos) / n.sum(axis=-1, keepdims=True))


def _smooth(score: Floats, n: Floats, pos: Floats) -> Floats:
    over, matched = chain.smooth(score, _gap(score, n, pos))
    return np.clip(over + matched, 0.0, 1.0)


def _parts(t: Table) -> tuple[float, float]:
    """|mean gap|, and the cost of matching the rest: sm_cal is their sum."""

    def parts(table: Table) -> tuple[float, float]:
        levels = _levels(table)
        over, matched = chain.smooth(levels.score, _gap(levels.score, levels.n, levels.pos)[None])
        return float(over[0]), float(matched[0])

    return t.once(_parts, parts)


def _sm_cal_interval(t: Table, rng: np.random.Generator, *, confidence: float) -> Interval:
    return chance.resampled(t, _smooth, rng, confidence, sm_cal(t))


@metric(
    title="Smooth calibration error",
    better="lower",
    unit="probability",
    source="[C] def. 2.5, Kakade & Foster 2008",
    range=(0, 1),
    interval=_sm_cal_interval,
    interval_text=_RESAMPLED,
    noisy=True,
)
def sm_cal(t: Table) -> float:
    """The most that any smooth function of the score correlates with score - label; no bins, continuous in the scores.

    max over 1-Lipschitz z with |z| <= 1 of sum (p - y) z(p) / T. Exact up to 131,072 distinct scores; above that on
    the mean scores of cells of width 1/65,536, which changes it by less than 1/65,536.
    """
    return min(sum(_parts(t)), 1.0)


def _sm_ece(t: Table, method: str = "exact") -> float:
    def error(table: Table) -> float:
        levels = _levels(table)
        if method == "relplot":
            return heatgrid.smooth_error(levels.score, levels.n, levels.pos)
        return heat.smooth_error(levels.score, _gap(levels.score, levels.n, levels.pos))

    return t.once((_sm_ece, method), error)


def _sm_ece_interval(t: Table, rng: np.random.Generator, *, confidence: float, method: Method) -> Interval:
    width, value = _sm_ece(t), _sm_ece(t, method)

    def statistic(score: Floats, n: Floats, pos: Floats) -> Floats:
        return heat.near(score, _gap(score, n, pos), width)

    return chance.resampled(t, statistic, rng, confidence, value)


@metric(
    title="Smooth ECE",
    better="lower",
    unit="probability",
    source="Blasiok & Nakkiran 2023",
    range=(0, 1),
    interval=_sm_ece_interval,
    interval_text=_RESAMPLED,
    noisy=True,
)
def sm_ece(t: Table, *, method: Method = "exact") -> float:
    """ECE with a kernel instead of bins: mean size of score - label once smoothed over neighbouring scores.

    int |sum (p - y) K(t, p) / T| dt, K the Gaussian reflected at 0 and 1, its width the one that equals the value
    (held at 8.3e-5 where the value is smaller). Scores are shared between points of a grid of step 1/65,536, which
    moves the value by some 1e-8; above 131,072 distinct scores they are the mean scores of its cells. method=relplot
    gives the number of that package, which stops its search at a width up to 1/1024 above and takes a mean over 200
    points: some 2e-5 away.
    """
    return min(max(_sm_ece(t, method), 0.0), 1.0)


def _lower(t: Table) -> Estimate:
    """The bound by the best test functions, and its standard error were they given beforehand."""

    def bound(table: Table) -> Estimate:
        levels = _levels(table)
        probe = transport.best_probe(levels)
        mean, error = levels.average((block, *probe.of(block.score)) for block in levels.blocks())
        return Estimate(mean - (1 / _CELLS if levels is not table else 0.0), error)

    return t.once(_lower, bound)


def _dist_cal_lower_interval(t: Table, *, confidence: float) -> Interval:
    low, high = intervals.normal(Estimate(dist_cal_lower(t), _lower(t).error), confidence, 0.0, 1.0)
    # The best of many functions is above 0 by noise alone: 0 is left out only where calibration is rejected.
    return (0.0 if interval.c_emp_pvalue(t) > 1 - confidence else low), high


@metric(
    title="Distance to calibration, lower bound",
    better="lower",
    unit="probability",
    source="lower distance to calibration, Blasiok et al. 2023; bounds [C] def. 2.6 from below",
    range=(0, 1),
    interval=_dist_cal_lower_interval,
    interval_text="normal, from the standard error of the test functions' mean; from 0 unless c_emp_pvalue rejects",
    loads="scipy.optimize",
    noisy=True,
)
def dist_cal_lower(t: Table) -> float:
    """At least this far, on average, scores must move to become calibrated; never below half of sm_cal.

    The mean of u_y(p), the best u_0, u_1 of slopes up to 1 with (1 - g) u_0(g) + g u_1(g) <= 0 on [0, 1]: a linear
    program finds them on 512 steps, what they violate between them (at most 2e-6) is taken off. Never below
    max(|W|, (D |W| + 2 C) / (D + 2 B)): W the mean of p - y, C = sm_cal - |W|, D the range of the scores, B the
    greatest distance of a label from one. Above 131,072 distinct scores 1/65,536 is taken off.
    """
    over, matched = _parts(t)
    if len(t) > _EXACT:
        matched = max(matched - 1 / _CELLS, 0.0)
    low, high = float(t.score[0]), float(t.score[-1])
    spread, reach = high - low, max(high, 1 - low)
    return min(max(over, (spread * over + 2 * matched) / (spread + 2 * reach), _lower(t).mean), 1.0)


@metric(
    title="Distance to calibration, upper bound",
    better="lower",
    unit="probability",
    source="bounds [C] def. 2.6 from above by merging neighbouring levels",
    range=(0, 1),
    size_free=False,
    interval=None,
)
def dist_cal_upper(t: Table) -> float:
    """This far, on average, is enough for scores to move to become calibrated; at most ece_exact.

    min over partitions of the sorted levels into runs of sum |p - h(run of p)| / T, h the label frequency of the run,
    by dynamic programming; where the levels are calibrated nothing moves. Above 512 levels runs begin at the edges of
    512 equal-mass bins only, or everywhere; above 131,072 on cells of width 1/65,536, and that is added.
    """
    everywhere = t.sum(lambda block: np.abs(block.n * block.score - block.pos)) / t.total
    return min(merging.cheapest_merge(_levels(t)) + (1 / _CELLS if len(t) > _EXACT else 0.0), everywhere)
