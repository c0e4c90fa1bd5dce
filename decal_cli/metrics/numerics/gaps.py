"""Gaps between label frequency and mean score on given levels (bins or exact ones), and the gaps that chance makes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.metrics.confidence import Interval, quantile
from decal_cli.tables.clusters import residual_products
from decal_cli.tables.resample import as_whole
from decal_cli.tables.table import Floats, Ints, Strategy, Table

Norm = Callable[[Floats, Floats], Floats]
"""(share of rows, gap) of levels along the last axis -> the calibration error."""

N_NULL_DRAWS = 400
MAX_NULL_LEVELS = 4096
"""Above this many levels, labels are drawn on as many equal-mass cells; the scores in one cell hardly differ."""


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


def shrunken(gap: Floats, by: Floats) -> Floats:
    """Gaps drawn towards 0 by so much; those that are smaller are 0."""
    return np.asarray(np.maximum(np.abs(gap) - by, 0.0) * np.sign(gap))


def value(levels: Table, norm: Norm) -> float:
    """The plug-in value: the norm of the observed gaps."""
    return float(norm(levels.n / levels.total, observed(levels)))


def concentration(levels: Table) -> Floats:
    """sum w^2 / (sum w)^2 of each level: one over its effective rows."""
    return 1 / levels.rows_of_cells


def whole_rows(levels: Table) -> Ints:
    """The effective rows of each level, as whole numbers to draw labels for."""
    return as_whole(1 / concentration(levels))


class Noise(NamedTuple):
    """How much the label frequencies of levels vary, of those that hold more than one row or cluster.

    some: which these are, bool (m,). variance: theirs, shape (k,). covariance: (k, k), None where it is diagonal.
    """

    some: NDArray[np.bool_]
    variance: Floats
    covariance: Floats | None


def noise(levels: Table) -> Noise:
    """h (1 - h) / (n - 1) of independent rows; of clusters, sums over clusters with the same correction."""
    products = levels.design.gram()
    if products is None:
        one_over = concentration(levels)
        some = one_over < 1 - 1e-9
        rate, one_over = (levels.pos / levels.n)[some], one_over[some]
        return Noise(some, rate * (1 - rate) * one_over / (1 - one_over), None)
    m, both = len(levels), products.diagonal()
    sizes = both[:m] + both[m:] + 2 * products[:m, m:].diagonal()
    some = sizes < (1 - 1e-9) * np.asarray(levels.n, dtype=np.float64) ** 2
    off = residual_products(products, levels.pos / levels.n)
    one_over = (sizes / levels.n**2)[some]
    scale = 1 / (levels.n[some] * np.sqrt(1 - one_over))
    covariance = off[np.ix_(some, some)] * np.outer(scale, scale)
    return Noise(some, covariance.diagonal(), covariance)


def debiased_square(levels: Table) -> float:
    """sum share (gap^2 - h (1 - h) / (n - 1)), without levels of one row; Kumar et al. 2019."""
    some, variance, _ = noise(levels)
    rate = (levels.pos / levels.n)[some]
    share = levels.n[some] / levels.total
    return float((share * ((rate - levels.score[some]) ** 2 - variance)).sum())


def shrunk(levels: Table) -> Floats:
    """The gaps of the levels, times the factor that removes the noise from their mean square."""
    gap = observed(levels)
    plug_in = float(mean_square(levels.n / levels.total, gap))
    return gap * math.sqrt(min(max(debiased_square(levels), 0.0) / plug_in, 1.0)) if plug_in > 0 else gap


def spread(t: Table, gap: Floats) -> Floats:
    """Each level with the gap of its equal-mass bin."""
    return np.repeat(gap, np.diff(t.bin_starts(), append=len(t)))


def smoothed(t: Table) -> Floats:
    """A probability for each level: its score plus the shrunk gap of its equal-mass bin."""
    return np.clip(t.score + spread(t, shrunk(t.bins())), 0.0, 1.0)


def null_draws(t: Table, statistic: Callable[[Table], float], rng: np.random.Generator) -> Floats:
    """The statistic on tables with these scores and labels drawn from them, shape (N_NULL_DRAWS,)."""
    return np.array([statistic(t.null(rng)) for _ in range(N_NULL_DRAWS)])


def coarse(t: Table, bins: int, most: int = MAX_NULL_LEVELS) -> Table:
    """The table on which the labels of a calibrated model are drawn for this many bins."""
    # The labels of clusters vary together, which takes the covariance of every two cells.
    cells = 16 * bins if t.design.clustered else max(most, 16 * bins)
    return t if len(t) <= cells else t.bins(cells)


def central(draws: Floats, confidence: float) -> Interval:
    """The central range of draws."""
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


DEBIASED_TEXT = "score interval; variance of the bins' squared gaps with its second-order term"


def ece_debiased_interval(t: Table, *, confidence: float, bins: int, strategy: Strategy) -> Interval:
    """Interval of theta = sum_k P(bin k) (E[p | k] - E[y | k])^2, the population's value for these edges.

    The thetas that the value is less than z standard errors away from, the error being the one it has at that theta:
    with the error at the value, small values look sharper than they are and theta lies above the interval too often.
    """
    levels = t.bins(bins, strategy)
    value, (slope, floor) = debiased_square(levels), variance_terms(levels)
    z2 = quantile(confidence) ** 2
    flat = math.sqrt(z2 * floor)
    middle = value + z2 * slope / 2
    reach = math.sqrt(max(z2 * (slope * value + z2 * slope**2 / 4 + floor), 0.0))
    low = value - flat if value < flat else middle - reach
    high = value + flat if value < -flat else middle + reach
    return max(low, -0.5), min(high, 1.0)


def variance_terms(levels: Table) -> tuple[float, float]:
    """Variance of the debiased square where the true one is theta: slope * max(theta, 0) + floor.

    A bin's (d + e)^2 - v, e of variance v, has variance 4 d^2 v + 2 v^2. The floor sums the second term, all there is
    for a calibrated model; the slope is the mean of 4 share v over bins, each by its part in the squared gaps.
    v = h (1 - h) / (rows - 1), rows the effective ones; of clusters, bins vary together.
    """
    some, variance, covariance = noise(levels)
    if not some.any():
        raise Undefined("no bin holds two rows")
    rate = (levels.pos / levels.n)[some]
    share = (levels.n / levels.total)[some]
    gap = rate - levels.score[some]
    part = share * gap**2
    if covariance is not None:
        weighted = share * gap
        slope = 4 * float(weighted @ covariance @ weighted) / max(float(part.sum()), 1e-300)
        return slope, 2 * float(share @ covariance**2 @ share)
    slope = 4 * float((part * share * variance).sum()) / max(float(part.sum()), 1e-300)
    return slope, 2 * float((share**2 * variance**2).sum())
