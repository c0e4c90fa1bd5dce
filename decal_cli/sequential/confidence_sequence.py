"""Confidence sequences for a mean that may be looked at after every row.

What is covered is the running mean of the conditional expectations of a difference, given all rows before: it needs no
assumption on how the rows depend on each other. Empirical Bernstein sequences (Howard et al. 2021, Choe and Ramdas
2024) with the boundary of the gamma-exponential mixture.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from decal_cli.tables.table import Floats, Ints

TIGHTEST = 25.0
"""The sum of squares, in squared ranges, at which the boundary is tightest: some hundred rows that differ."""
_LEAST_SQUARES, _STEP = 1e-2, 1.005
"""The boundary is computed where the sum of squares is 0 or this times a power of the step."""


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
    squares = np.cumsum(((difference - guess) / width) ** 2)
    return sequence_of_sums(np.cumsum(difference), squares, np.arange(1, len(difference) + 1), width, alpha)


def sequence_of_sums(total: Floats, squares: Floats, rows: Ints, width: float, alpha: float) -> Sequence:
    """The same from sums: of the differences, and of the squares of what they miss their guess by, in widths."""
    mean = total / rows
    margin = width * boundary(squares, alpha / 2) / rows
    return Sequence(mean, mean - margin, mean + margin)


def boundary(squares: Floats, alpha: float) -> Floats:
    """What the sum of sub-exponential differences of scale 1 exceeds at any time with probability at most alpha.

    squares: the sum of squares so far, shape (T,). The boundary is taken at the next point of a fixed grid, so that it
    is never too small, and the same however the rows are cut into pieces.
    """
    with np.errstate(divide="ignore"):
        place = np.ceil(np.log(squares / _LEAST_SQUARES) / math.log(_STEP)).clip(min=-1)
    place = np.where(_LEAST_SQUARES * _STEP**place < squares, place + 1, place)
    place = np.where(squares > 0, place.clip(min=0), -1)
    points, at = np.unique(place, return_inverse=True)
    grid = np.where(points < 0, 0.0, _LEAST_SQUARES * _STEP**points)
    return np.asarray(_mixture_boundary(grid, alpha)[at])


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
