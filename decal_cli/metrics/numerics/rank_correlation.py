"""Rank correlations of two columns of weighted rows, ties included."""

from __future__ import annotations

import math

import numpy as np

from decal_cli.tables.estimate import dot
from decal_cli.tables.table import Floats, Ints


def spearman(x: Floats, y: Floats, weight: Floats) -> float:
    """Correlation of the mid-ranks; NaN where a column does not vary."""
    ranks = [_mid_ranks(column, weight) for column in (x, y)]
    total = float(weight.sum())
    first, second = (rank - dot(weight, rank) / total for rank in ranks)
    norm = math.sqrt(dot(weight * first, first) * dot(weight * second, second))
    return dot(weight * first, second) / norm if norm > 0 else math.nan


def kendall(x: Floats, y: Floats, weight: Floats) -> float:
    """tau-b: pairs of rows in one order less those in the other, over those that are not tied; NaN where all are."""
    ranks = [np.unique(column, return_inverse=True)[1] for column in (x, y)]
    order = np.lexsort(ranks[::-1])
    (x_rank, y_rank), weight = (rank[order] for rank in ranks), weight[order]
    tied_x, tied_y = _tied(x_rank, weight), _tied(y_rank, weight)
    tied = _tied(x_rank * (int(y_rank.max()) + 1) + y_rank, weight)
    pairs = _pairs(np.array([weight.sum()]), np.array([dot(weight, weight)]))
    norm = math.sqrt(max(pairs - tied_x, 0.0) * max(pairs - tied_y, 0.0))
    ordered = pairs - tied_x - tied_y + tied - 2 * _discordant(y_rank, weight)
    return ordered / norm if norm > 0 else math.nan


def _mid_ranks(column: Floats, weight: Floats) -> Floats:
    place = np.unique(column, return_inverse=True)[1]
    mass = np.bincount(place, weight)
    return np.asarray((np.cumsum(mass) - mass / 2)[place])


def _pairs(total: Floats, squares: Floats) -> float:
    """Weight of the pairs of different rows within groups of these sums of weights and of their squares."""
    return float((total**2 - squares).sum()) / 2


def _tied(rank: Ints, weight: Floats) -> float:
    place = np.unique(rank, return_inverse=True)[1]
    total, squares = (np.bincount(place, mass).astype(np.float64) for mass in (weight, weight**2))
    return _pairs(total, squares)


def _discordant(rank: Ints, weight: Floats) -> float:
    """Weight of the pairs whose first row has the higher rank.

    Two ranks differ first at one bit: among rows that agree in all bits above it, those with the bit set that come
    before each row without it.
    """
    lost = 0.0
    for bit in range(int(rank.max()).bit_length()):
        order = np.argsort(rank >> (bit + 1), kind="stable")
        group, high, mass = rank[order] >> (bit + 1), (rank[order] >> bit) & 1, weight[order]
        before = np.cumsum(mass * high)
        start = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
        above = before - np.repeat(np.append(0.0, before)[start], np.diff(start, append=len(rank)))
        lost += dot(mass * (1 - high), above)
    return lost
