"""Two Brier curves on the same rows: where each model wins, where the curves cross, and how certain that is.

B(t) is the cost-weighted loss of deciding 1 iff score >= t (Tasche 2021, def. 5.1). Between neighbouring scores of
either model both curves are straight lines, so their difference D(t) = B_b(t) - B_a(t) is known exactly from its
coefficients on these segments, its zeros and jumps are the crossings, and its standard error comes from the rows on
which the two decide differently. Curves of samples cross many times by noise alone: a crossing counts where a model
that was ahead beyond chance gives way to the other that is ahead beyond chance. Noise is assessed at all thresholds at
once: whoever looks at hundreds of them finds some where one model is ahead at any one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.metrics.confidence import quantile
from decal_cli.tables.pairs import PairTable
from decal_cli.tables.table import Floats

Side = Literal["a", "b"]
MAX_GAP = 0.05
"""A lead continues over a range of thresholds without evidence that is no wider than this."""
N_BAND_DRAWS = 400
"""Draws of the difference of the curves, for the band that holds at all thresholds at once."""
MIN_DIFFERENT_ROWS = 6
"""Rows on which the two must decide differently: on fewer, an exact sign test cannot reach 5 %."""


@dataclass(frozen=True)
class Lead:
    """A range of thresholds on which one model is ahead beyond chance, except in gaps no wider than MAX_GAP.

    low, high: the first and last threshold with such evidence. most: the largest loss saved per decision (u_delta 1),
    `at` the threshold where that is, with its standard error.
    """

    side: Side
    low: float
    high: float
    most: float
    error: float
    at: float


@dataclass(frozen=True)
class Crossing:
    """A change of the leader beyond chance: the crossing that best separates the two leads, and who leads below it."""

    threshold: float
    below: Side


@dataclass(frozen=True, eq=False)
class BrierDifference:
    """The difference of two Brier curves, D(t) = alpha + beta t for t in (edge[k], edge[k + 1]].

    edge: shape (s + 1,), from 0 to 1. alpha, beta: shape (s,). squares, signed: shape (s, 2), sums of squared weights
    of the rows with label 1 and with label 0 on which the two decide differently, and the same with the sign of what
    B loses there. count: shape (s,), how many rows these are (effective ones where rows are weighted). total, total2:
    sum of the weights and of their squares.
    """

    edge: Floats
    alpha: Floats
    beta: Floats
    squares: Floats
    signed: Floats
    count: Floats
    total: float
    total2: float

    def at(self, threshold: float) -> tuple[float, float]:
        """D at a threshold in (0, 1], and its standard error."""
        k = min(max(int(np.searchsorted(self.edge, threshold, side="left")) - 1, 0), len(self.alpha) - 1)
        value = float(self.alpha[k] + self.beta[k] * threshold)
        return value, float(self._error(np.array([threshold]), np.array([value]), np.array([k]))[0])

    def _error(self, t: Floats, value: Floats, k: NDArray[np.int64]) -> Floats:
        costs = np.stack([1 - t, t], axis=1)
        second = (self.squares[k] * costs**2).sum(axis=1)
        first = (self.signed[k] * costs).sum(axis=1)
        variance = second - 2 * value * first + value**2 * self.total2
        return np.sqrt(np.maximum(variance, 0.0)) / self.total

    @cached_property
    def ends(self) -> tuple[Floats, Floats, Floats]:
        """Thresholds just after each segment's start and at its end, D and its error there, shape (2 s,) each.

        The error counts one more row of each label among those decided differently: near 0 and 1 the rows may not yet
        hold the rare label, which costs most, and their spread would then miss it.
        """
        k = np.repeat(np.arange(len(self.alpha)), 2)
        t = np.stack([self.edge[:-1], self.edge[1:]], axis=1).ravel()
        value = self.alpha[k] + self.beta[k] * t
        unseen = self.total2 / self.total**2 * np.hypot(t, 1 - t)
        return t, value, np.hypot(self._error(t, value, k), unseen)

    @cached_property
    def zeros(self) -> Floats:
        """Every crossing on these rows: where D changes its sign, by a zero inside a segment or a jump."""
        t, value, _ = self.ends
        signed = np.flatnonzero(value != 0)
        sign = np.sign(value[signed])
        change = np.flatnonzero(sign[1:] != sign[:-1])
        before, after = signed[change], signed[change + 1]
        inside = (before % 2 == 0) & (after == before + 1)
        step = np.where(inside, value[before] - value[after], 1.0)
        share = np.where(inside, value[before] / step, 0.0)
        # At a jump, or after a stretch where the curves coincide, it is the start of the new leader's first segment.
        return np.where(inside, t[before] + share * (t[after] - t[before]), t[after - after % 2])

    @cached_property
    def area(self) -> Floats:
        """The integral of D from 0 to each edge, shape (s + 1,); twice the last is the difference of Brier scores."""
        steps = self.alpha * np.diff(self.edge) + self.beta * np.diff(self.edge**2) / 2
        return np.concatenate(([0.0], np.cumsum(steps)))

    def areas_to(self, thresholds: Floats) -> Floats:
        """The integral of D from 0 to each threshold."""
        k = np.clip(np.searchsorted(self.edge, thresholds, side="left") - 1, 0, len(self.alpha) - 1)
        low = self.edge[k]
        return self.area[k] + self.alpha[k] * (thresholds - low) + self.beta[k] * (thresholds**2 - low**2) / 2

    @cached_property
    def enough(self) -> NDArray[np.bool_]:
        """Of the ends: where the two decide differently on enough rows."""
        return np.repeat(self.count >= MIN_DIFFERENT_ROWS, 2)

    @property
    def dominates(self) -> Side | None:
        """The model whose curve lies nowhere above the other's on these rows, and somewhere below."""
        value = self.ends[1]
        if not (value != 0).any():
            return None
        return "b" if bool((value <= 0).all()) else "a" if bool((value >= 0).all()) else None

    def leads(self, z: float) -> tuple[Lead, ...]:
        """Ranges of thresholds on which one model is ahead by more than z standard errors, gaps to MAX_GAP joined."""
        t, value, error = self.ends
        where = np.flatnonzero(self.enough)
        where = where[np.abs(value[where]) > z * error[where]] if np.isfinite(z) else where[:0]
        if not len(where):
            return ()
        sign, at = np.sign(value[where]), t[where]
        breaks = np.flatnonzero((sign[1:] != sign[:-1]) | (np.diff(at) > MAX_GAP)) + 1
        return tuple(self._lead(part) for part in np.split(where, breaks))

    def _lead(self, where: NDArray[np.int64]) -> Lead:
        t, value, error = self.ends
        best = where[int(np.argmax(np.abs(value[where])))]
        side: Side = "a" if value[best] > 0 else "b"
        return Lead(side, *(float(x) for x in (t[where[0]], t[where[-1]], abs(value[best]), error[best], t[best])))

    def crossings(self, z: float) -> tuple[Crossing, ...]:
        """Crossings beyond noise: one between neighbouring leads of different sides, where splicing saves most."""
        leads = self.leads(z)
        crossings = []
        for left, right in pairwise(leads):
            if left.side == right.side:
                continue
            between = self.zeros[(self.zeros >= left.high) & (self.zeros <= right.low)]
            if not len(between):
                between = np.array([right.low])
            sign = 1.0 if left.side == "a" else -1.0
            crossings.append(Crossing(float(between[int(np.argmax(sign * self.areas_to(between)))]), left.side))
        return tuple(crossings)


def brier_difference(pairs: PairTable) -> BrierDifference:
    """The difference of the two Brier curves of a pair table; O(k log k)."""
    edge, first, last, side = _segments(pairs)
    (n, pos), (n2, pos2) = _counts(pairs)

    def over_segments(n: Floats, pos: Floats, sign: Floats) -> Floats:
        """Sums over the pairs that disagree on each segment, at label 1 and at label 0, shape (s, 2)."""
        return np.stack([_spread(sign * values, first, last, len(edge)) for values in (pos, n - pos)], axis=1)

    one = np.ones(len(n))
    # Where the two decide alike every sum is 0, except for rounding.
    apart = over_segments(2 * one, one, (side != 0).astype(np.float64)).sum(axis=1, keepdims=True) > 0.5
    # A row with label 1 that A alone acts on costs B (1 - t); one with label 0 that A alone acts on saves B t.
    lost, signed = (over_segments(*sums, side) * apart * (1, -1) for sums in ((n, pos), (n2, pos2)))
    weight, squares = (np.maximum(over_segments(*sums, abs(side)) * apart, 0.0) for sums in ((n, pos), (n2, pos2)))
    whole, whole2 = weight.sum(axis=1), squares.sum(axis=1)
    count = np.divide(whole**2, whole2, out=np.zeros_like(whole), where=whole2 > 0)
    total = float(n.sum())
    alpha, at1 = lost[:, 0] / total, lost[:, 1] / total
    return BrierDifference(edge, alpha, at1 - alpha, squares, signed, count, total, float(n2.sum()))


def band(pairs: PairTable, confidence: float, rng: np.random.Generator) -> float:
    """Half the width, in standard errors, of a band around D that holds at all thresholds at once.

    The quantile of the largest |D* - D| / error over all thresholds, in Gaussian draws of the contributions of the rows
    of each cell (a multiplier bootstrap); never below the pointwise quantile. Infinite where the two never disagree on
    enough rows.
    """
    cells = pairs.cells
    on_cells = brier_difference(cells)
    t, value, error = on_cells.ends
    looked = on_cells.enough & (error > 0)
    if not looked.any():
        return float("inf")
    edge, first, last, side = _segments(cells)
    segment = np.repeat(np.arange(len(edge) - 1), 2)
    largest = np.empty(N_BAND_DRAWS)
    for k in range(N_BAND_DRAWS):
        at0, at1 = cells.design.scattered(cells, rng)
        lost1, lost0 = (_spread(side * values, first, last, len(edge))[segment] for values in (at1, at0))
        difference = ((1 - t) * lost1 - t * lost0 - value * (at1.sum() + at0.sum())) / on_cells.total
        largest[k] = np.max(np.abs(difference[looked]) / error[looked])
    return max(float(np.quantile(largest, confidence)), quantile(confidence))


def _counts(pairs: PairTable) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Rows and positives of each pair as float64, and their sums of squared weights."""
    n, pos, n2, pos2 = (np.asarray(each, dtype=np.float64) for each in (pairs.n, pairs.pos, *pairs.squares_of_rows))
    return (n, pos), (n2, pos2)


def _segments(pairs: PairTable) -> tuple[Floats, NDArray[np.intp], NDArray[np.intp], Floats]:
    """Edges of the segments; the first segment on which each pair disagrees and the one after the last; who acts.

    The two decide differently for thresholds in (min, max] of a pair; A alone decides 1 where the sign is 1.
    """
    edge = np.unique(np.concatenate(([0.0], pairs.a, pairs.b, [1.0])))
    first = np.searchsorted(edge, np.minimum(pairs.a, pairs.b))
    last = np.searchsorted(edge, np.maximum(pairs.a, pairs.b))
    return edge, first, last, np.sign(pairs.a - pairs.b)


def _spread(values: Floats, first: NDArray[np.intp], last: NDArray[np.intp], edges: int) -> Floats:
    """Sums of values over the pairs that disagree on each segment, shape (edges - 1,)."""
    steps = np.bincount(first, values, edges) - np.bincount(last, values, edges)
    return np.cumsum(steps)[:-1]
