"""The interval of the debiased squared calibration error."""

from __future__ import annotations

import math

from decal_cli.errors import Undefined
from decal_cli.metrics.gaps import concentration, debiased_square
from decal_cli.metrics.intervals import Interval, normal
from decal_cli.table import Estimate, Strategy, Table

INTERVAL_TEXT = "normal; variance of each bin's squared gap with its second-order term"


def ece_debiased_interval(t: Table, *, confidence: float, bins: int = 15, strategy: Strategy = "mass") -> Interval:
    """Interval of sum_k P(bin k) (E[p | k] - E[y | k])^2, the population's value for these edges."""
    levels = t.bins(bins, strategy)
    return normal(Estimate(debiased_square(levels), debiased_square_error(levels)), confidence, low=-0.5, high=1.0)


def debiased_square_error(levels: Table) -> float:
    """Standard error of the debiased square: of (d + e)^2 - v, with e of variance v, sqrt(4 d^2 v + 2 v^2).

    The first term vanishes for a calibrated model and the second is then all there is. d^2 is estimated without bias,
    by (gap^2 - v), and the sum over bins kept from going below 0. v = h (1 - h) / (rows - 1), rows the effective ones.
    """
    one_over = concentration(levels)
    some = one_over < 1 - 1e-9
    if not some.any():
        raise Undefined("no bin holds two rows")
    rate, one_over = (levels.pos / levels.n)[some], one_over[some]
    noise = rate * (1 - rate) * one_over / (1 - one_over)
    share = (levels.n / levels.total)[some]
    gap = rate - levels.score[some]
    first = 4 * float((share**2 * (gap**2 - noise) * noise).sum())
    second = 2 * float((share**2 * noise**2).sum())
    return math.sqrt(max(first, 0.0) + second)
