"""Gaps between label frequency and mean score over given levels (bins or exact ones), and what chance makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from decal_cli.metrics.intervals import Interval
from decal_cli.table import Floats, Table

Norm = Callable[[Floats, Floats], Floats]
"""(share of rows, gap) of levels along the last axis -> the calibration error."""

BinnedInterval = Callable[..., Interval]

DRAWS = 400
COARSE = 4096
"""Above this many levels a null is drawn on this many equal-mass cells; the scores within one hardly differ."""


def mean_gap(share: Floats, gap: Floats) -> Floats:
    """sum share |gap|."""
    return np.asarray((share * np.abs(gap)).sum(axis=-1))


def mean_square(share: Floats, gap: Floats) -> Floats:
    """sum share gap^2."""
    return np.asarray((share * gap**2).sum(axis=-1))


def largest(share: Floats, gap: Floats) -> Floats:
    """max |gap|."""
    return np.asarray(np.abs(gap).max(axis=-1))


def value(levels: Table, norm: Norm) -> float:
    """The plug-in value: observed frequency minus score, level by level."""
    return float(norm(levels.n / levels.total, levels.pos / levels.n - levels.score))


def concentration(levels: Table) -> Floats:
    """sum w^2 / (sum w)^2 of each level: one over its effective rows."""
    return 1 / levels.n if levels.n2 is None else levels.n2 / levels.n.astype(np.float64) ** 2


def debiased_square(levels: Table) -> float:
    """sum share (gap^2 - h (1 - h) / (n - 1)), levels of one row left out; (Kumar et al. 2019)."""
    one_over = concentration(levels)
    some = one_over < 1 - 1e-9
    rate, one_over = (levels.pos / levels.n)[some], one_over[some]
    noise = rate * (1 - rate) * one_over / (1 - one_over)
    share = levels.n[some] / levels.total
    return float((share * ((rate - levels.score[some]) ** 2 - noise)).sum())


def shrunk_gaps(levels: Table) -> Floats:
    """The gaps of the levels, shrunk by the factor that takes the noise off their mean square."""
    gap = levels.pos / levels.n - levels.score
    plug_in = float(mean_square(levels.n / levels.total, gap))
    return gap * math.sqrt(min(max(debiased_square(levels), 0.0) / plug_in, 1.0)) if plug_in > 0 else gap


def shrunk_interval(levels: Table, gap: Floats, norm: Norm, rng: np.random.Generator, confidence: float) -> Interval:
    """Interval of the population's value, which may lie below the plug-in.

    Labels are drawn in a world with these (shrunk) gaps; the interval is the value minus quantiles of (drawn value -
    that world's value), cut to [0, 1]. A plain bootstrap adds noise to noise, and near calibration misses the truth.
    """
    share = levels.n / levels.total
    chance = np.clip(levels.score + gap, 0.0, 1.0)
    truth = float(norm(share, chance - levels.score))
    rows = np.maximum(np.rint(1 / concentration(levels)), 1).astype(np.int64)
    drawn = np.array([norm(share, rng.binomial(rows, chance) / rows - levels.score) for _ in range(DRAWS)])
    low, high = central(drawn - truth, confidence)
    plain = value(levels, norm)
    return float(np.clip(plain - high, 0.0, 1.0)), float(np.clip(plain - low, 0.0, 1.0))


def null_draws(t: Table, statistic: Callable[[Table], float], rng: np.random.Generator) -> Floats:
    """The statistic on tables with these scores and labels drawn from them, shape (DRAWS,)."""
    return np.array([statistic(t.null(rng)) for _ in range(DRAWS)])


def coarse(t: Table, bins: int) -> Table:
    """The table on which the null of this many bins is drawn."""
    most = max(COARSE, 16 * bins)
    return t if len(t) <= most else t.bins(most)


def central(drawn: Floats, confidence: float) -> Interval:
    """The central range of draws."""
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
