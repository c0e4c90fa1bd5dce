"""Random counts for resampled and for calibrated tables; fast where they are many and large."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MANY = 25.0
"""From this variance on a count is drawn as a rounded normal: resampling 65,536 cells is then five times faster."""


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
    some = weight > 0
    unit = np.divide(squares, weight, out=np.zeros_like(weight), where=some)
    count = poisson(rng, np.divide(weight, unit, out=np.zeros_like(weight), where=some))
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
