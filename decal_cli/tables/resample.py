"""Random counts: for resampled tables, for calibrated ones, and for folds; fast where they are many and large."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.estimate import Floats, Ints, ratio

FOLDS = 5
"""Number of folds: a model is fitted on all but one and evaluated on that one."""
BLOCKS = FOLDS + 1
"""Blocks of time: models only learn from the first, so that as many fits are judged as there are folds."""
_MANY_LEVELS = 4096
"""Levels above which rows may be dealt one by one."""
_BITS = 63 // FOLDS
"""Bits for the rows of one level in one fold, where the counts of all folds share an integer."""
_MANY = 25.0
"""From this variance on a count is drawn as a rounded normal: resampling 65,536 cells is then five times faster."""

TIE = 1e-12
"""Relative difference up to which sums tie: only rounding, which depends on their order, tells them apart."""


def as_whole(rows: Floats) -> Ints:
    """Effective rows as whole numbers to draw for, at least 1; what ends in one half but for rounding goes down."""
    return np.maximum(np.rint(rows * (1 - TIE)), 1).astype(np.int64)


def poisson(rng: np.random.Generator, mean: NDArray[Any]) -> Floats:
    """Counts with these means."""
    mean = np.asarray(mean, dtype=np.float64)
    if len(mean) <= 4096:
        return rng.poisson(mean).astype(np.float64)
    drawn = np.maximum(np.rint(mean + np.sqrt(mean) * rng.standard_normal(len(mean), dtype=np.float32)), 0.0)
    few = np.flatnonzero(mean < _MANY)
    drawn[few] = rng.poisson(mean[few])
    return drawn


def weighted_poisson(rng: np.random.Generator, weight: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """Sums of weights and of their squares, of means weight and squares: (W2/W) * Poisson(W^2/W2)."""
    unit = ratio(squares, weight)
    # numpy draws otherwise from 10 on; rounding must not carry a mean of 10 below it.
    count = poisson(rng, ratio(weight, unit) * (1 + TIE))
    return unit * count, unit**2 * count


def binomial(rng: np.random.Generator, rows: Ints, chance: Floats) -> Ints:
    """Positives among these rows."""
    if len(rows) <= 4096:
        return rng.binomial(rows, chance)
    mean = rows * chance
    variance = mean * (1 - chance)
    drawn = np.rint(mean + np.sqrt(variance) * rng.standard_normal(len(rows), dtype=np.float32))
    few = np.flatnonzero(variance < _MANY)
    drawn[few] = rng.binomial(rows[few], chance[few])
    return np.clip(drawn, 0, rows).astype(np.int64)


def deal(counts: Ints, rng: np.random.Generator) -> Ints:
    """Counts of each level, shape (m,), to folds, shape (FOLDS, m)."""
    if len(counts) <= _MANY_LEVELS or counts.sum() >= 32 * len(counts):
        return np.ascontiguousarray(rng.multinomial(counts, np.full(FOLDS, 1 / FOLDS)).T)
    # Row by row: of few rows in many levels that is several times faster than a multinomial each.
    ends = np.cumsum(counts)
    fold = rng.integers(FOLDS, size=int(ends[-1]), dtype=np.uint8)
    sums = np.zeros(len(fold) + 1, dtype=np.int64)

    def by_level(values: NDArray[Any]) -> Ints:
        np.cumsum(values, out=sums[1:])
        return np.diff(sums[ends], prepend=0)

    if counts.max() >> _BITS:
        return np.array([by_level(fold == k) for k in range(FOLDS)])
    # The counts of all folds ride in one integer, so that one pass serves them.
    packed = by_level(np.left_shift(1, fold * np.uint8(_BITS), out=sums[1:], dtype=np.int64))
    return (packed >> np.arange(FOLDS)[:, None] * _BITS) & ((1 << _BITS) - 1)


def deal_weights(weight: Floats, squares: Floats, rng: np.random.Generator) -> Floats:
    """Weights of each level to folds, shape (FOLDS, m): a level acts as W^2/W2 rows of weight W2/W."""
    weight, squares = np.maximum(weight, 0.0), np.maximum(squares, 0.0)
    some = squares > 0
    rows = np.zeros(len(weight), dtype=np.int64)
    rows[some] = as_whole(weight[some] ** 2 / squares[some])
    return deal(rows, rng) * ratio(weight, rows)
