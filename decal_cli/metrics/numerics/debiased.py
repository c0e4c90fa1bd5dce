"""The interval of the debiased squared calibration error."""

from __future__ import annotations

import math

from decal_cli.errors import Undefined
from decal_cli.metrics.confidence import Interval, quantile
from decal_cli.metrics.numerics.gaps import debiased_square, noise
from decal_cli.tables.table import Strategy, Table

INTERVAL_TEXT = "score interval; variance of the bins' squared gaps with its second-order term"


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
