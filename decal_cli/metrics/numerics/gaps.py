"""Gaps between label frequency and mean score over given levels (bins or exact ones), and what chance makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from decal_cli.metrics.confidence import Interval, quantile
from decal_cli.tables.table import Floats, Ints, Table

Norm = Callable[[Floats, Floats], Floats]
"""(share of rows, gap) of levels along the last axis -> the calibration error."""

BinnedInterval = Callable[..., Interval]

DRAWS = 400
_INVERTED_DRAWS = 200
_NORMAL_DRAWS = 40
_MANY = 256
_FACTORS = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.05, 1.2, 1.4, 1.7, 2.0)
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


def observed(levels: Table) -> Floats:
    """Label frequency minus score, shape (m,)."""
    return levels.pos / levels.n - levels.score


def value(levels: Table, norm: Norm) -> float:
    """The plug-in value: the norm of the observed gaps."""
    return float(norm(levels.n / levels.total, observed(levels)))


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


def shrunk(levels: Table) -> Floats:
    """The gaps of the levels, shrunk by the factor that takes the noise off their mean square."""
    gap = observed(levels)
    plug_in = float(mean_square(levels.n / levels.total, gap))
    return gap * math.sqrt(min(max(debiased_square(levels), 0.0) / plug_in, 1.0)) if plug_in > 0 else gap


def spread(t: Table, gap: Floats) -> Floats:
    """Gaps of the equal-mass bins, given to each level."""
    return np.repeat(gap, np.diff(t.bin_starts(), append=len(t)))


def smoothed(t: Table) -> Floats:
    """A chance for each level: its score plus the shrunk gap of its equal-mass bin."""
    return np.clip(t.score + spread(t, shrunk(t.bins())), 0.0, 1.0)


def inverted_interval(levels: Table, gap: Floats, norm: Norm, rng: np.random.Generator, confidence: float) -> Interval:
    """Interval of the population's value, which may lie below the plug-in: 0 belongs to it where chance explains all.

    Labels are drawn in worlds whose gaps are these ones times a factor, from 0, a calibrated world, upwards; the
    interval holds the values of the worlds in which the observed value is none of the extreme ones. (A bootstrap adds
    noise to noise, and near calibration it misses the truth.)
    """
    share, plain = levels.n / levels.total, value(levels, norm)
    rows = np.maximum(np.rint(1 / concentration(levels)), 1).astype(np.int64)
    truths, lows, highs = [], [], []
    for factor in _FACTORS:
        chance = np.clip(levels.score + factor * gap, 0.0, 1.0)
        truths.append(float(norm(share, chance - levels.score)))
        low, high = _range_of(lambda rate: norm(share, rate - levels.score), rows, chance, rng, confidence)
        lows.append(low)
        highs.append(high)
    # The least world whose upper end reaches the observed value, and the greatest whose lower end does not exceed it.
    least = float(np.interp(plain, np.maximum.accumulate(highs), truths))
    greatest = float(np.interp(plain, np.maximum.accumulate(lows), truths))
    return least, max(least, greatest)


def _range_of(
    error: Callable[[Floats], Floats], rows: Ints, chance: Floats, rng: np.random.Generator, confidence: float
) -> Interval:
    """Central range of an error over draws of the levels' rates; over many levels it is normal, and few draws do."""
    if len(rows) <= _MANY:
        return central(error(rng.binomial(rows, chance, size=(_INVERTED_DRAWS, len(rows))) / rows), confidence)
    drawn = np.array([float(error(rng.binomial(rows, chance) / rows)) for _ in range(_NORMAL_DRAWS)])
    reach = quantile(confidence) * float(drawn.std(ddof=1))
    return float(drawn.mean()) - reach, float(drawn.mean()) + reach


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
