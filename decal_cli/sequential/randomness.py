"""Random numbers by seed and row: the same row gets the same number, however the rows are cut into runs."""

from __future__ import annotations

import numpy as np

from decal_cli.tables.table import Floats, Ints

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_WORD = 1 << 64


def uniform(seed: int, rows: Ints) -> Floats:
    """Numbers in (0, 1), shape (T,), for rows counted from 0: SplitMix64 (Steele et al. 2014) at its place `row`."""
    start = _mixed(np.array([seed * _GOLDEN % _WORD], dtype=np.uint64))[0]
    bits = _mixed((np.asarray(rows).astype(np.uint64) + np.uint64(1)) * np.uint64(_GOLDEN) + start)
    return np.asarray(((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)


def logistic(seed: int, rows: Ints) -> Floats:
    """Standard logistic numbers, shape (T,)."""
    u = uniform(seed, rows)
    return np.asarray(np.log(u / (1 - u)))


def _mixed(bits: np.ndarray) -> np.ndarray:
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return np.asarray(bits ^ (bits >> np.uint64(31)))
