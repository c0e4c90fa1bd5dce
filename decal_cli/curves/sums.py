"""The mean worth of decisions, at every threshold at once, from cumulative sums over levels.

A rule decides 1 on a level iff its key (a score, a calibrated or a refined probability) is at least t*. Its mean at any
t* follows from sums over the levels above t*: one sort, one cumulative sum, one search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from decal_cli.curves.grid import Grid
from decal_cli.tables.estimate import with_missed
from decal_cli.tables.table import Floats, MeanEstimate, Table


class LevelSums(NamedTuple):
    """Rows by a key, shape (m,) each: weights of label 0 and 1, and their squared weights."""

    key: Floats
    neg: Floats
    pos: Floats
    neg2: Floats
    pos2: Floats
    products: Floats | None = None
    """Of rows in clusters, sums over clusters of the products of their weights, of label 0 and then 1: (2m, 2m)."""

    @property
    def total(self) -> float:
        """Summed weight of the rows."""
        return float(self.neg.sum() + self.pos.sum())

    @property
    def rows(self) -> float:
        """Effective rows."""
        return self.total**2 / float(self.neg2.sum() + self.pos2.sum())


class Means(NamedTuple):
    """A mean over rows at each t* of a grid and its standard error, shape (K,), and its expectation under the prior."""

    value: Floats
    error: Floats
    expected: MeanEstimate | None


def levels_of(t: Table, key: Floats | None = None) -> LevelSums:
    """The levels of a table under their score or another key, shape (m,)."""
    n, pos = np.asarray(t.n, dtype=np.float64), np.asarray(t.pos, dtype=np.float64)
    n2, pos2 = (n, pos) if t.design.plain else (t.n2, t.pos2)
    squares = np.maximum(n2 - pos2, 0.0), pos2
    return LevelSums(t.score if key is None else key, n - pos, pos, *squares, t.design.gram())


def levels_of_rows(key: Floats, label: Floats, weight: Floats, effect: float) -> LevelSums:
    """Every row a level: key, label 0/1, weight, shape (T,) each. effect: the design effect of squared weights."""
    pos = weight * label
    return LevelSums(key, weight - pos, pos, effect * weight * (weight - pos), effect * weight * pos)


def _variances(levels: LevelSums, at0: Floats, at1: Floats, mean: Floats | float) -> Floats:
    """Variances of the means of values at label 0 and 1 of each level, shape (.., m) each, of rows in clusters."""
    values = np.concatenate((at0, at1), axis=-1) - np.asarray(mean)[..., None]
    return np.asarray(np.einsum("...i,...i->...", values @ levels.products, values)) / levels.total**2


def above(key: Floats, values: Sequence[Floats], at: Floats) -> list[Floats]:
    """Sums of the values of levels with key >= t*, shape (K,) each."""
    order = np.argsort(key, kind="stable") if (np.diff(key) < 0).any() else slice(None)
    cut = np.searchsorted(key[order], at, side="left")
    return [np.append(np.cumsum(value[order][::-1])[::-1], 0.0)[cut] for value in values]


def of_decisions(levels: LevelSums, payoff: Sequence[Sequence[Any]], grid: Grid) -> Means:
    """Mean of payoff[decision][label], each a number or of shape (K,), for the rule that decides 1 iff key >= t*."""
    at, total = grid.at, levels.total
    (u00, u01), (u10, u11) = ((np.broadcast_to(cell, at.shape) for cell in row) for row in payoff)
    up = above(levels.key, levels[1:5], at)
    down = [values.sum() - part for values, part in zip(levels[1:5], up, strict=True)]
    mean = (down[0] * u00 + down[1] * u01 + up[0] * u10 + up[1] * u11) / total
    if levels.products is not None:
        acts = levels.key >= at[:, None]
        at0, at1 = (np.where(acts, high[:, None], low[:, None]) for low, high in ((u00, u10), (u01, u11)))
        variance = _variances(levels, at0, at1, mean)
    else:
        squares = (down[2], u00), (down[3], u01), (up[2], u10), (up[3], u11)
        variance = sum(np.maximum(weight, 0.0) * (cell - mean) ** 2 for weight, cell in squares) / total**2
    # A row that could have been missed may have either label, with an action that some row has.
    farthest = np.max(
        [
            (cell - mean) ** 2 * (side > 0)
            for side, *cells in ((down[0] + down[1], u00, u01), (up[0] + up[1], u10, u11))
            for cell in cells
        ],
        axis=0,
    )
    error = with_missed(variance, farthest, levels.rows)
    return Means(mean, error, _expected_of_decisions(levels, (u00, u01, u10, u11), grid))


def _expected_of_decisions(levels: LevelSums, cells: Sequence[Floats], grid: Grid) -> MeanEstimate | None:
    if grid.weight is None:
        return None
    u00, u01, u10, u11 = cells
    at0, at1 = (
        float(grid.weight @ low) + _up_to(levels.key, high - low, grid) for low, high in ((u00, u10), (u01, u11))
    )
    return _estimate(levels, at0, at1)


def _up_to(key: Floats, values: Floats, grid: Grid) -> Floats:
    """Sum of prior weight times value over the thresholds at or below the key, shape (m,)."""
    assert grid.weight is not None
    return np.append(0.0, np.cumsum(grid.weight * values))[np.searchsorted(grid.at, key, side="right")]


def _estimate(levels: LevelSums, at0: Floats, at1: Floats) -> MeanEstimate:
    """Mean over rows of values at label 0 and at label 1 of each level."""
    mean = float(levels.neg @ at0 + levels.pos @ at1) / levels.total
    off = (at0 - mean) ** 2, (at1 - mean) ** 2
    if levels.products is not None:
        variance = float(_variances(levels, at0, at1, mean))
    else:
        variance = float(levels.neg2 @ off[0] + levels.pos2 @ off[1]) / levels.total**2
    farthest = max(float((levels.neg + levels.pos) @ each) for each in off) / levels.total
    return MeanEstimate(mean, float(with_missed(variance, farthest, levels.rows)))


def of_changes(levels: LevelSums, instead_of: Floats, grid: Grid) -> Means:
    """Mean gain, for u_delta 1, of deciding by the levels' key instead of by another, shape (m,), and its paired error.

    A row on which the two disagree gains or loses y - t*.
    """
    at, total = grid.at, levels.total
    new, old = (above(key, levels[1:3], at) for key in (levels.key, instead_of))
    mean = ((new[1] - old[1]) * (1 - at) - (new[0] - old[0]) * at) / total
    high, low = np.maximum(levels.key, instead_of), np.minimum(levels.key, instead_of)
    neg2, pos2 = (one - both for one, both in zip(*(above(key, levels[3:5], at) for key in (high, low)), strict=True))
    everything = float(levels.neg2.sum() + levels.pos2.sum())
    first = _cross(levels, instead_of, at)
    second = np.maximum(pos2, 0.0) * (1 - at) ** 2 + np.maximum(neg2, 0.0) * at**2
    variance = (second - 2 * mean * first + mean**2 * everything) / total**2
    if levels.products is not None:
        turned = (levels.key >= at[:, None]).astype(np.float64) - (instead_of >= at[:, None])
        variance = _variances(levels, -turned * at[:, None], turned * (1 - at[:, None]), mean)
    # A row that could have been missed is one of those on which the two disagree, where there are any.
    farthest = np.where(neg2 + pos2 > 0, (np.maximum(at, 1 - at) + np.abs(mean)) ** 2, mean**2)
    error = with_missed(variance, farthest, levels.rows)
    expected = None
    if grid.weight is not None:
        at1, at0 = (_up_to(levels.key, v, grid) - _up_to(instead_of, v, grid) for v in (1 - at, -at))
        expected = _estimate(levels, at0, at1)
    return Means(mean, error, expected)


def _cross(levels: LevelSums, instead_of: Floats, at: Floats) -> Floats:
    """Sum of squared weights times gain."""
    new, old = (above(key, levels[3:5], at) for key in (levels.key, instead_of))
    return (new[1] - old[1]) * (1 - at) - (new[0] - old[0]) * at


def brier_of(levels: LevelSums) -> float:
    """Twice the exact area under the levels' Brier curve, which is their Brier score: Tasche 2021, eq. 4.2a.

    A row of key q and label 1 loses 1 - t at every t above q, one of label 0 loses t at every t up to q.
    """
    return float(levels.pos @ (1 - levels.key) ** 2 + levels.neg @ levels.key**2) / levels.total
