"""Calibration errors that are continuous in the scores: no bins, and a small change of scores changes them little."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import like, metric
from decal_cli.metrics.families import interval
from decal_cli.metrics.numerics import heat, rays, smooth_calibration, transport
from decal_cli.tables.estimate import MeanEstimate
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Floats, Table

Method = Annotated[
    Literal["exact", "relplot"],
    "exact: the definition; relplot: as relplot 1.0.3 computes it, width and integral on grids",
]

_MAX_EXACT = 1 << 17
_N_CELLS = 1 << 16
_DRAWN_ON = 128
"""Above this many levels chance is drawn on this many equal-mass cells, for sm_cal, where each draw costs."""
_WAVES_ON = 512
_NARROWEST = 0.004
"""Width below which chance is not drawn: there are too many waves then."""


def _levels(t: Table) -> Table:
    """The table, or above _MAX_EXACT levels its cells of width 1 / _N_CELLS; no score moves farther than that."""
    return t if len(t) <= _MAX_EXACT else t.bins(_N_CELLS, "width")


def _gap(score: Floats, n: Floats, pos: Floats) -> Floats:
    return np.asarray((n * score - pos) / n.sum(axis=-1, keepdims=True))


def _parts(t: Table) -> tuple[float, float]:
    """|mean gap|, and the cost of matching the rest: sm_cal is their sum."""

    def parts(table: Table) -> tuple[float, float]:
        levels = _levels(table)
        unmatched, matched = smooth_calibration.unmatched_and_matched(
            levels.score, _gap(levels.score, levels.n, levels.pos)[None]
        )
        return float(unmatched[0]), float(matched[0])

    return t.cached(_parts, parts)


def _sm_cal_interval(t: Table, seed: Seed, *, confidence: float) -> Interval:
    cells = rays.cells(rays.cells(t), _DRAWN_ON)

    def smooth(gap: Floats) -> Floats:
        return np.asarray(np.sum(smooth_calibration.unmatched_and_matched(cells.score, gap), axis=0))

    return rays.interval(
        sm_cal(t),
        rays.worlds(cells, seed.generator("smooth")),
        smooth,
        confidence,
        # The error is more than that of all rows together: this end is held to more than the confidence.
        least_high=rays.whole(cells, (1 + confidence) / 2),
    )


@metric(
    "Smooth calibration error",
    "lower",
    "probability",
    f"{cite('Hu and Wu 2024', 'def. 2.5')}; {cite('Kakade and Foster 2008')}",
    (0, 1),
    interval=_sm_cal_interval,
    interval_text=rays.INVERSION_TEXT,
    noisy=True,
    covers=covered.POPULATION_BELOW,
)
def sm_cal(t: Table) -> float:
    """Largest mean of (score - label) times a smooth function of the score; no bins, and continuous in the scores.

    max over 1-Lipschitz z with |z| <= 1 of sum (p - y) z(p) / T. It is exact up to 131,072 distinct scores; above that,
    it uses the mean scores of cells of width 1/65,536, which changes it by less than 1/65,536.
    """
    return min(sum(_parts(t)), 1.0)


def _sm_ece(t: Table, method: str = "exact") -> float:
    def error(table: Table) -> float:
        levels = _levels(table)
        if method == "relplot":
            return heat.relplot_error(levels.score, levels.n, levels.pos)
        return heat.smooth_error(levels.score, _gap(levels.score, levels.n, levels.pos))

    return t.cached((_sm_ece, method), error)


def _sm_ece_interval(t: Table, seed: Seed, *, confidence: float, method: Method) -> Interval:
    cells, width = rays.cells(t, _WAVES_ON), max(_sm_ece(t), _NARROWEST)

    # Smoothed at one width w, a world's error is at least w just where the width that equals its error is at least w.
    def smoothed(modes: Floats) -> Floats:
        return heat.error_of_modes(modes, width)

    waves = rays.worlds(cells, seed.generator("smooth")).mapped(lambda gap: heat.modes_at(cells.score, gap, width))
    # Without waves that are short for it, a world's own width is a little too small.
    lost = min(_sm_ece(t) / max(float(heat.widths(waves.gap[None], width)[0]), 1e-300), 2.0)
    return rays.interval(
        _sm_ece(t, method),
        waves,
        smoothed,
        confidence,
        truth=lambda waves: np.minimum(lost * heat.widths(waves, width), 1.0),
        least_high=rays.whole(cells, confidence),
        widened=rays.WIDENED,
    )


@like("sm_cal", "Smooth ECE", cite("Blasiok and Nakkiran 2023"), interval=_sm_ece_interval)
def sm_ece(t: Table, *, method: Method = "exact") -> float:
    """ECE with a kernel instead of bins: mean absolute score - label after smoothing over neighbouring scores.

    int |sum (p - y) K(t, p) / T| dt, where K is the Gaussian reflected at 0 and 1, and its width equals the value
    (at least 8.3e-5). Each score is shared between two points of a grid of step 1/65,536, which changes the value by
    about 1e-8; above 131,072 distinct scores, the mean scores of the grid's cells are used. method=relplot gives the
    number of that package, which ends its search at a width up to 1/1024 larger and takes a mean over 200 points: the
    two differ by about 2e-5.
    """
    return min(max(_sm_ece(t, method), 0.0), 1.0)


def _lower(t: Table) -> MeanEstimate:
    """The bound by the best test functions, and its standard error as if they had been chosen beforehand."""

    def bound(table: Table) -> MeanEstimate:
        levels = _levels(table)
        functions = transport.best_functions(levels)
        mean = levels.mean_of(functions.of)
        return MeanEstimate(mean.value - (1 / _N_CELLS if levels is not table else 0.0), mean.error)

    return t.cached(_lower, bound)


def _dist_cal_lower_interval(t: Table, *, confidence: float) -> Interval:
    low, high = intervals.normal(MeanEstimate(dist_cal_lower(t), _lower(t).error), confidence, 0.0, 1.0)
    # The best of many functions is above 0 by noise alone: the interval excludes 0 only where calibration is rejected.
    return (0.0 if interval.c_emp_pvalue(t) > 1 - confidence else low), high


@metric(
    "Distance to calibration, lower bound",
    "lower",
    "probability",
    (
        f"lower distance to calibration: {cite('Blasiok et al. 2023')}; a lower bound on the distance of "
        f"{cite('Hu and Wu 2024', 'def. 2.6')}"
    ),
    (0, 1),
    interval=_dist_cal_lower_interval,
    interval_text="normal, from the standard error of the test functions' mean; 0 is in it unless c_emp_pvalue rejects",
    loads="scipy.optimize",
    noisy=True,
    covers="the population's value of the bound: the distance itself may be larger",
)
def dist_cal_lower(t: Table) -> float:
    """Scores must move at least this far, on average, to become calibrated; never below half of sm_cal.

    The mean of u_y(p) for the best functions u_0, u_1 of slopes up to 1 with (1 - g) u_0(g) + g u_1(g) <= 0 on [0, 1]:
    a linear program finds them on 512 steps, and their violation between the steps (at most 2e-6) is subtracted. Never
    below max(|W|, (D |W| + 2 C) / (D + 2 B)), where W is the mean of p - y, C = sm_cal - |W|, D the range of the
    scores, and B the largest distance of a label from a score. Above 131,072 distinct scores, 1/65,536 is subtracted.
    """
    unmatched, matched = _parts(t)
    if len(t) > _MAX_EXACT:
        matched = max(matched - 1 / _N_CELLS, 0.0)
    low, high = float(t.score[0]), float(t.score[-1])
    spread, reach = high - low, max(high, 1 - low)
    return min(max(unmatched, (spread * unmatched + 2 * matched) / (spread + 2 * reach), _lower(t).mean), 1.0)


@metric(
    "Distance to calibration, upper bound",
    "lower",
    "probability",
    f"an upper bound on the distance of {cite('Hu and Wu 2024', 'def. 2.6')}, by merging neighbouring levels",
    (0, 1),
    size_free=False,
    interval=None,
    covers="nothing: noise adds to it at every level, so it falls with the rows and estimates no fixed quantity",
)
def dist_cal_upper(t: Table) -> float:
    """Scores become calibrated by moving at most this far, on average; never above ece_exact.

    min over partitions of the sorted levels into runs of sum |p - h(run of p)| / T, where h is the label frequency of
    the run, by dynamic programming. Above 512 levels, runs begin only at the edges of 512 equal-mass bins, or
    everywhere; above 131,072 levels, cells of width 1/65,536 are used, and 1/65,536 is added.
    """
    everywhere = t.sum(lambda block: np.abs(block.n * block.score - block.pos)) / t.total
    return min(transport.cheapest_merge(_levels(t)) + (1 / _N_CELLS if len(t) > _MAX_EXACT else 0.0), everywhere)
