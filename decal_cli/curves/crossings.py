"""Two Brier curves on the same rows: where each model wins, where the curves cross, and how sure that is.

B(t) is the cost-weighted loss of deciding 1 iff the score is at least t [T def. 5.1]. Between neighbouring scores of
either model both curves are straight lines, so their difference D(t) = B_b(t) - B_a(t) is known exactly from its
coefficients on these segments, its zeros and jumps are the crossings, and its standard error comes from the rows on
which the two decide differently. Curves of samples cross many times by noise alone: a crossing counts where a model
that was ahead beyond chance gives way to the other that is ahead beyond chance. Chance is judged at all thresholds at
once: whoever looks at hundreds of them finds some where one model is ahead at any one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.pairs import PairTable
from decal_cli.tables.table import Floats

Side = Literal["a", "b"]
BRIDGE = 0.05
"""Stretches of thresholds without evidence that do not end a lead."""
DRAWS = 400
"""Of the difference of the curves, for the band that holds at all thresholds at once."""
FEWEST = 6
"""Rows on which the two must decide differently: an exact sign test cannot reach 5 % on fewer."""


@dataclass(frozen=True)
class Lead:
    """A range of thresholds on which one model is ahead beyond chance, but for gaps narrower than BRIDGE.

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
    """A change of the leader beyond chance: z, the exact crossing that parts the two best; who leads below it."""

    threshold: float
    below: Side


@dataclass(frozen=True, eq=False)
class Curves:
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

        The error counts one more row of each label among those decided differently: near 0 and 1 the rare label,
        which costs most, may not have been seen yet, and the spread of what was seen would not know of it.
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
        return np.repeat(self.count >= FEWEST, 2)

    @property
    def dominates(self) -> Side | None:
        """The model whose curve lies nowhere above the other's on these rows, and somewhere below."""
        value = self.ends[1]
        if not (value != 0).any():
            return None
        return "b" if bool((value <= 0).all()) else "a" if bool((value >= 0).all()) else None

    def leads(self, z: float) -> tuple[Lead, ...]:
        """Ranges of thresholds by who is ahead beyond z standard errors; gaps narrower than BRIDGE are passed over."""
        t, value, error = self.ends
        where = np.flatnonzero(self.enough)
        where = where[np.abs(value[where]) > z * error[where]] if np.isfinite(z) else where[:0]
        if not len(where):
            return ()
        sign, at = np.sign(value[where]), t[where]
        breaks = np.flatnonzero((sign[1:] != sign[:-1]) | (np.diff(at) > BRIDGE)) + 1
        return tuple(self._lead(part) for part in np.split(where, breaks))

    def _lead(self, where: NDArray[np.int64]) -> Lead:
        t, value, error = self.ends
        best = where[int(np.argmax(np.abs(value[where])))]
        side: Side = "a" if value[best] > 0 else "b"
        return Lead(side, *(float(x) for x in (t[where[0]], t[where[-1]], abs(value[best]), error[best], t[best])))

    def crossings(self, z: float) -> tuple[Crossing, ...]:
        """Crossings beyond noise: one between neighbouring leads of both sides, where splicing saves most."""
        leads = self.leads(z)
        found = []
        for left, right in pairwise(leads):
            if left.side == right.side:
                continue
            between = self.zeros[(self.zeros >= left.high) & (self.zeros <= right.low)]
            if not len(between):
                between = np.array([right.low])
            sign = 1.0 if left.side == "a" else -1.0
            found.append(Crossing(float(between[int(np.argmax(sign * self.areas_to(between)))]), left.side))
        return tuple(found)


def compare_curves(pairs: PairTable) -> Curves:
    """The difference of the two Brier curves of a pair table; O(k log k)."""
    edge, first, last, side = _segments(pairs)
    (n, pos), (n2, pos2) = _counts(pairs)

    def over_segments(n: Floats, pos: Floats, sign: Floats) -> Floats:
        """Sums over the pairs that disagree on each segment, at label 1 and at label 0, shape (s, 2)."""
        return np.stack([_spread(sign * values, first, last, len(edge)) for values in (pos, n - pos)], axis=1)

    one = np.ones(len(n))
    # Where the two decide alike every sum is 0, whatever rounding left of it.
    apart = over_segments(2 * one, one, (side != 0).astype(np.float64)).sum(axis=1, keepdims=True) > 0.5
    # A row with label 1 that A alone acts on costs B (1 - t); one with label 0 that A alone acts on saves B t.
    lost, signed = (over_segments(*sums, side) * apart * (1, -1) for sums in ((n, pos), (n2, pos2)))
    weight, squares = (np.maximum(over_segments(*sums, abs(side)) * apart, 0.0) for sums in ((n, pos), (n2, pos2)))
    whole, whole2 = weight.sum(axis=1), squares.sum(axis=1)
    count = np.divide(whole**2, whole2, out=np.zeros_like(whole), where=whole2 > 0)
    total = float(n.sum())
    alpha, at1 = lost[:, 0] / total, lost[:, 1] / total
    return Curves(edge, alpha, at1 - alpha, squares, signed, count, total, float(n2.sum()))


def band(pairs: PairTable, confidence: float, rng: np.random.Generator) -> float:
    """How many standard errors wide a band around D is that holds at all thresholds at once.

    The quantile of the largest |D* - D| / error over all thresholds, in Gaussian draws of what the rows of each cell
    contribute (a multiplier bootstrap); never below the pointwise quantile. Infinite where the two never disagree on
    enough rows.
    """
    cells = pairs.cells
    curves = compare_curves(cells)
    t, value, error = curves.ends
    looked = curves.enough & (error > 0)
    if not looked.any():
        return float("inf")
    edge, first, last, side = _segments(cells)
    _, (n2, pos2) = _counts(cells)
    of_pos, of_neg = np.sqrt(pos2), np.sqrt(np.maximum(n2 - pos2, 0.0))
    segment = np.repeat(np.arange(len(edge) - 1), 2)
    largest = np.empty(DRAWS)
    for k in range(DRAWS):
        at1, at0 = of_pos * rng.standard_normal(len(cells)), of_neg * rng.standard_normal(len(cells))
        lost1, lost0 = (_spread(side * values, first, last, len(edge))[segment] for values in (at1, at0))
        drawn = ((1 - t) * lost1 - t * lost0 - value * (at1.sum() + at0.sum())) / curves.total
        largest[k] = np.max(np.abs(drawn[looked]) / error[looked])
    return max(float(np.quantile(largest, confidence)), NormalDist().inv_cdf((1 + confidence) / 2))


def _counts(pairs: PairTable) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Rows and positives of each pair as float64, and their sums of squared weights."""
    plain = np.asarray(pairs.n, dtype=np.float64), np.asarray(pairs.pos, dtype=np.float64)
    return plain, plain if pairs.n2 is None or pairs.pos2 is None else (pairs.n2, pairs.pos2)


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
