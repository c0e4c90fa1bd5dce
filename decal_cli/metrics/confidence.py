"""Analytic intervals, shared by the families: what a metric passes as `interval=`."""

from __future__ import annotations

import math

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.limits import MIN_RISK
from decal_cli.tables.estimate import MeanEstimate
from decal_cli.tables.table import Floats
from decal_cli.tables.units import Interval as Interval
from decal_cli.tables.units import quantile as quantile

MEAN = "mean of a per-row score: normal, from its standard error"
WILSON = "Wilson score interval"
_MIN_BEND = 1e-6
"""Below it the transformation is the identity, but for rounding."""


def one_sided(confidence: float) -> float:
    """The confidence of the two-sided interval each end of which holds at this one: 0.9 for 0.95; near 0 up to 0.5."""
    return max(2 * confidence - 1, MIN_RISK)


def normal(estimate: MeanEstimate, confidence: float, low: float = -math.inf, high: float = math.inf) -> Interval:
    """estimate -/+ z standard errors, cut to the range the quantity can have."""
    reach = quantile(confidence) * estimate.error
    return min(max(low, estimate.mean - reach), high), max(min(high, estimate.mean + reach), low)


def skewed(estimate: MeanEstimate, skewness: float, rows: float, confidence: float) -> Interval:
    """The interval of a mean of skewed values, by the cubic transformation of Hall 1992: longer where the tail is.

    skewness: of the values, not of their mean; rows: as many independent ones say as much.
    """
    bend = skewness / math.sqrt(rows)
    if abs(bend) < _MIN_BEND:
        return normal(estimate, confidence)

    def studentised(z: float) -> float:
        return 3 / bend * (float(np.cbrt(1 + bend * (z - bend / 6))) - 1)

    reach = quantile(confidence)
    return estimate.mean - estimate.error * studentised(reach), estimate.mean - estimate.error * studentised(-reach)


def within(interval: Interval, bounds: Interval) -> Interval:
    """The interval with both ends cut to the range that the quantity can have."""
    low, high = (min(max(end, bounds[0]), bounds[1]) for end in interval)
    return low, high


def holding(interval: Interval, value: float) -> Interval:
    """The interval, widened to the value: where noise biases that upward, what is likely may lie below it."""
    return min(interval[0], value), max(interval[1], value)


def bias_corrected(value: float, draws: Floats, confidence: float, centre: float | None = None) -> Interval:
    """The value, less the bias of its bootstrap draws, -/+ z of their standard deviations.

    The bias is the mean of the draws less the centre: what the rows give that the draws were made from, or the value.
    """
    middle = value - (float(draws.mean()) - (value if centre is None else centre))
    reach = quantile(confidence) * float(draws.std(ddof=1))
    return middle - reach, middle + reach


def wilson(part: float, whole: float, effective: float, confidence: float) -> Interval:
    """Wilson's score interval of a proportion part/whole that rests on this many effective rows."""
    if whole <= 0 or effective <= 0:
        raise Undefined("rests on no rows")
    low, high = wilson_ends(np.array([part / whole]), np.array([effective]), confidence)
    return float(low[0]), float(high[0])


def wilson_ends(rate: Floats, effective: Floats, confidence: float) -> Floats:
    """Wilson's score intervals of proportions that rest on so many effective rows: lower and upper ends, (2, k)."""
    z2 = quantile(confidence) ** 2 / effective
    centre = (rate + z2 / 2) / (1 + z2)
    reach = np.sqrt(z2 * (np.maximum(rate * (1 - rate), 0.0) + z2 / 4)) / (1 + z2)
    return np.array((np.maximum(centre - reach, 0.0), np.minimum(centre + reach, 1.0)))
