"""Confidence sequences for a mean that may be looked at after every row.

What is covered is the running mean of the conditional expectations of a difference, given all rows before: it needs no
assumption on how the rows depend on each other. Empirical Bernstein sequences (Howard et al. 2021, Choe and Ramdas
2024) with the boundary of the gamma-exponential mixture.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from decal_cli.tables.table import Floats

TIGHTEST = 25.0
"""The sum of squares, in squared ranges, at which the boundary is tightest: some hundred rows that differ."""
_N_GRID = 2000


class Sequence(NamedTuple):
    """The running mean after every row, and the ends of what covers its expectation, shape (T,) each."""

    mean: Floats
    low: Floats
    high: Floats


def mean_sequence(difference: Floats, guess: Floats, width: float, alpha: float) -> Sequence:
    """Ends that hold for all rows at once with probability 1 - alpha.

    difference: shape (T,). guess: of each difference, shape (T,), made from the rows before it; it lies in the range
    that the difference can have, whose ends are known before and are at most `width` apart.
    """
    rows = np.arange(1, len(difference) + 1)
    mean = np.cumsum(difference) / rows
    squares = np.cumsum(((difference - guess) / width) ** 2)
    margin = width * boundary(squares, alpha / 2) / rows
    return Sequence(mean, mean - margin, mean + margin)


def boundary(squares: Floats, alpha: float) -> Floats:
    """What the sum of sub-exponential differences of scale 1 exceeds at any time with probability at most alpha.

    squares: the sum of squares so far, shape (T,), never decreasing. The boundary is computed on a grid of it and
    taken at the next point, so that it is never too small.
    """
    top = max(float(squares[-1]), 1.0)
    grid = np.concatenate(([0.0], np.geomspace(1e-2, top * (1 + 1e-9), _N_GRID)))
    ends = _mixture_boundary(grid, alpha)
    return np.asarray(ends[np.searchsorted(grid, squares)])


def _mixture_boundary(squares: Floats, alpha: float) -> Floats:
    """The sum at which the gamma-exponential mixture is 1/alpha, by bisection, shape (k,): the end above it."""
    rho = TIGHTEST / (2 * math.log(1 / alpha) + math.log(1 + 2 * math.log(1 / alpha)))
    low, high = np.zeros_like(squares), np.ones_like(squares)
    while bool((below := log_mixture(high, squares, rho) < -math.log(alpha)).any()):
        high = np.where(below, 2 * high, high)
    for _ in range(60):
        middle = (low + high) / 2
        below = log_mixture(middle, squares, rho) < -math.log(alpha)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


def log_mixture(total: Floats, squares: Floats, rho: float) -> Floats:
    """log of the gamma-exponential mixture supermartingale at a sum and its sum of squares, for scale 1.

    Howard et al. 2021, prop. 9: the mean of exp(lambda total - (-log(1 - lambda) - lambda) squares) over 1 - lambda
    in (0, 1) with a truncated gamma density of shape and rate rho.
    """
    from scipy.special import gammainc, gammaln

    start = rho * math.log(rho) - gammaln(rho) - math.log(gammainc(rho, rho))
    shape, rate = squares + rho, total + squares + rho
    return np.asarray(start + gammaln(shape) + np.log(gammainc(shape, rate)) - shape * np.log(rate) + total + squares)
