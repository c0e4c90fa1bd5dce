"""The loss of every two-action agent as a curve over its threshold, and the agents that lose most on it.

A proper decision rule with payoffs in [0, 1] is a measure nu >= 0 of kinks with int mu dnu <= 1 and
int (1 - mu) dnu <= 1, and its loss is int curve dnu. One kink may weigh 1 / max(mu, 1 - mu); over all measures the
supremum is twice the upper concave envelope of the curve at 1/2. A curve here is linear between scores but for convex
kinks, and jumps at scores, so only the one-sided limits at the scores matter, and the point 1/2 for one kink.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import decal_cli.tables.table as tables
from decal_cli.tables.table import CellRun, Floats, Ints, Table

Convex = Callable[[Floats], Floats]

CHUNK = 256
"""Levels whose largest loss is kept."""
_TIE = 1e-12
_ROUNDING = 1e-15


class Kink(NamedTuple):
    """A threshold, the curve's larger one-sided limit there, and its side: 1 just above, -1 just below, 0 at it."""

    at: float
    loss: float
    side: int

    @property
    def alone(self) -> float:
        """Loss of the agent with this kink only."""
        return self.loss / max(self.at, 1 - self.at)


class Vertices(NamedTuple):
    """Candidate kinks, shape (k,) each."""

    at: Floats
    loss: Floats
    side: Ints


class Worst(NamedTuple):
    """The worst agent: what it loses, its kinks and their weights in nu."""

    loss: float
    kinks: tuple[Kink, ...]
    weights: tuple[float, ...]


_ENDS = (Kink(0.0, 0.0, 1), Kink(1.0, 0.0, -1))


class LossCurve:
    """loss(mu) = (sum over scores <= mu of (pos - mu n) + convex(mu)) / T.

    One pass over the levels keeps the largest loss of each chunk of them; the chunks in which the maximum can lie are
    then worked out again, which is a few.
    """

    def __init__(self, t: Table, convex: Convex) -> None:
        self._table, self._convex = t, convex
        largest, rows, positives = [], [], []
        n_before = pos_before = 0.0
        for block in t.blocks():
            starts = np.arange(0, len(block.score), CHUNK)
            n, pos = np.cumsum(block.n), np.cumsum(block.pos)
            n += n_before
            pos += pos_before
            rows.append(n[starts] - block.n[starts])
            positives.append(pos[starts] - block.pos[starts])
            n_before, pos_before = float(n[-1]), float(pos[-1])
            largest.append(np.maximum.reduceat(np.maximum(*self._limits(block, n, pos)), starts))
        self._starts = np.concatenate(
            [np.arange(low, min(low + tables.BLOCK, len(t)), CHUNK) for low in range(0, len(t), tables.BLOCK)]
        )
        self._ends = np.append(self._starts[1:], len(t))
        self._largest, self._rows, self._positives = map(np.concatenate, (largest, rows, positives))
        self._low, self._high = t.score[self._starts], t.score[self._ends - 1]
        self._known: dict[int, Vertices] = {}

    def _limits(self, block: CellRun, n: Floats, pos: Floats) -> tuple[Floats, Floats]:
        """The curve just above and just below each score; n and pos are sums up to it. Kinks lie in (0, 1)."""
        above = block.score * n
        np.subtract(pos, above, out=above)
        above += self._convex(block.score)
        below = block.n * block.score
        below -= block.pos
        below += above
        above /= self._table.total
        below /= self._table.total
        if block.score[0] == 0:
            below[0] = 0.0
        if block.score[-1] == 1:
            above[-1] = 0.0
        return above, below

    def _points(self, chunks: Ints) -> Vertices:
        """The candidates of these chunks."""
        for chunk in set(chunks.tolist()) - set(self._known):
            part = slice(int(self._starts[chunk]), int(self._ends[chunk]))
            n, pos = self._table.n[part].astype(np.float64), self._table.pos[part].astype(np.float64)
            block = CellRun(self._table.score[part], n, pos)
            up_to = np.cumsum(n) + self._rows[chunk], np.cumsum(pos) + self._positives[chunk]
            above, below = self._limits(block, *up_to)
            larger = above >= below - _TIE
            side = np.where(larger, 1, -1).astype(np.int64)
            self._known[chunk] = Vertices(block.score, np.where(larger, above, below), side)
        return Vertices(*map(np.concatenate, zip(*(self._known[chunk] for chunk in chunks.tolist()), strict=True)))

    def _half(self) -> Kink:
        """The kink at 1/2, whether or not a score lies there."""
        last = int(np.searchsorted(self._table.score, 0.5, side="right")) - 1
        at, rows, positives = np.array([0.5]), 0.0, 0.0
        if last >= 0:
            chunk = int(np.searchsorted(self._starts, last, side="right")) - 1
            if self._table.score[last] == 0.5:
                return _kink(self._points(np.array([chunk])), last - int(self._starts[chunk]))
            part = slice(int(self._starts[chunk]), last + 1)
            rows = float(self._rows[chunk] + self._table.n[part].sum(dtype=np.float64))
            positives = float(self._positives[chunk] + self._table.pos[part].sum(dtype=np.float64))
        return Kink(0.5, (positives - 0.5 * rows + float(self._convex(at)[0])) / self._table.total, 0)

    def one_kink(self) -> Worst:
        """The worst agent with two actions; of several, the one with the lowest threshold."""
        far = np.maximum(np.maximum(self._low, 1 - self._high), 0.5)
        bound = self._largest / far
        half = self._half()
        first = self._points(np.array([np.argmax(bound)]))
        reached = max(float(np.max(_alone(first))), half.alone)
        if reached <= _TIE:
            return Worst(0.0, (), ())
        points = self._points(np.flatnonzero(bound >= reached - _TIE))
        points = Vertices(*map(np.append, points, half))
        alone = _alone(points)
        best = float(alone.max())
        tied = np.flatnonzero(alone >= best - _TIE)
        at = int(tied[np.argmin(points.at[tied])])
        kink = _kink(points, at)
        return Worst(min(max(best, 0.0), 1.0), (kink,), (1 / max(kink.at, 1 - kink.at),))

    def highest(self) -> float:
        """The supremum of the curve itself, as a kink of weight 1 anywhere loses it; not below 0."""
        return max(float(self._largest.max()), 0.0)

    def any_kinks(self) -> Worst:
        """The worst agent with any number of actions: one or two kinks, twice the envelope at 1/2."""
        half = self._half()
        kinks, reached = [*_ENDS, *self.one_kink().kinks], -1.0
        while True:
            left, right, height = _bridge(kinks)
            if height <= reached:
                break
            reached = height
            better = self._above((right.loss - left.loss) / (right.at - left.at), height)
            if not better:
                break
            kinks = [left, right, *better]
        share = (right.at - 0.5) / (right.at - left.at)
        pair = [(left, 2 * share), (right, 2 * (1 - share))]
        if half.loss >= height - _TIE:
            pair, height = [(half, 2.0)], max(height, half.loss)
        losing = [(kink, weight) for kink, weight in pair if kink.loss > _TIE]
        return Worst(min(max(2 * height, 0.0), 1.0), tuple(k for k, _ in losing), tuple(w for _, w in losing))

    def _above(self, slope: float, height: float) -> list[Kink]:
        """The candidates farthest above the line through (1/2, height), at most one on either side."""
        reach = np.maximum(-slope * (self._low - 0.5), -slope * (self._high - 0.5))
        chunks = np.flatnonzero(self._largest + reach > height + _ROUNDING)
        if not len(chunks):
            return []
        points = self._points(chunks)
        over = points.loss - slope * (points.at - 0.5) - height
        farthest = []
        for side in (points.at < 0.5, points.at > 0.5):
            best = int(np.argmax(np.where(side, over, -np.inf)))
            if side[best] and over[best] > _ROUNDING:
                farthest.append(_kink(points, best))
        return farthest


def _alone(points: Vertices) -> Floats:
    return np.asarray(points.loss / np.maximum(points.at, 1 - points.at))


def _kink(points: Vertices, at: int) -> Kink:
    return Kink(float(points.at[at]), float(points.loss[at]), int(points.side[at]))


def _bridge(kinks: list[Kink]) -> tuple[Kink, Kink, float]:
    """The two kinks, one on either side of 1/2, whose chord is highest there; and its height."""
    best = (*_ENDS, -1.0)
    for left in kinks:
        for right in kinks:
            if left.at < 0.5 < right.at:
                height = (left.loss * (right.at - 0.5) + right.loss * (0.5 - left.at)) / (right.at - left.at)
                best = max(best, (left, right, height), key=lambda pair: pair[2])
    return best


def of_levels(t: Table) -> LossCurve:
    """CFDL of the kink: (1/T) sum n |h - mu| over levels whose score and frequency h lie on either side of mu."""
    rate, rows = _rates(t)
    n = np.concatenate(([0.0], np.cumsum(rows)))
    pos = np.concatenate(([0.0], np.cumsum(rows * rate)))

    def convex(mu: Floats) -> Floats:
        upto = np.searchsorted(rate, mu, side="right")
        return np.asarray(mu * n[upto] - pos[upto])

    return LossCurve(t, convex)


def of_constant(t: Table) -> LossCurve:
    """What always predicting the base rate would have gained over the scores, before it is cut at 0."""
    return LossCurve(t, lambda mu: np.maximum(mu * t.total - t.positives, 0.0))


def _rates(t: Table) -> tuple[Floats, Floats]:
    """The distinct label frequencies of the levels, increasing, and their rows."""
    rates, rows = [], []
    for block in t.blocks():
        rate, which = np.unique(block.pos / block.n, return_inverse=True)
        rates.append(rate)
        rows.append(np.bincount(which, weights=block.n))
    rate, which = np.unique(np.concatenate(rates), return_inverse=True)
    return rate, np.bincount(which, weights=np.concatenate(rows)).astype(np.float64)


def losses_of_levels(score: Floats, n: Floats, pos: Floats, kinks: int) -> Floats:
    """cdl (two kinks) or v_cdl (one) of tables with these levels; n and pos of shape (..., m)."""
    at = _candidates(score)
    rate = np.divide(pos, n, out=np.zeros(pos.shape), where=n > 0)
    convex = np.einsum("...ki,...i->...k", np.maximum(at[:, None] - rate[..., None, :], 0.0), n)
    return _largest(at, *_sides(score, n, pos, convex), kinks)


def highest_of_constant(score: Floats, n: Floats, pos: Floats) -> Floats:
    """v_cal_kleinberg."""
    return 2 * losses_of_constant(score, n, pos, 0)


def losses_of_constant(score: Floats, n: Floats, pos: Floats, kinks: int) -> Floats:
    """u_cal (two kinks) or v_cal (one); the supremum of the curve itself (none)."""
    total, positives = n.sum(axis=-1, keepdims=True), pos.sum(axis=-1, keepdims=True)
    convex = np.maximum(_candidates(score) * total - positives, 0.0)
    return _largest(_candidates(score), *_sides(score, n, pos, convex), kinks)


def _candidates(score: Floats) -> Floats:
    return np.concatenate((score, [0.5]))


def _sides(score: Floats, n: Floats, pos: Floats, convex: Floats) -> tuple[Floats, Floats]:
    """The curve just above and just below each candidate, per row; only the inner side counts at 0 and 1."""
    upto = int(np.searchsorted(score, 0.5, side="right"))
    above, below = (np.zeros(convex.shape) for _ in range(2))
    rows, positives = np.cumsum(n, axis=-1), np.cumsum(pos, axis=-1)
    above[..., :-1] = positives - score * rows + convex[..., :-1]
    below[..., :-1] = above[..., :-1] + n * score - pos
    if upto:
        above[..., -1] = positives[..., upto - 1] - 0.5 * rows[..., upto - 1]
    above[..., -1] += convex[..., -1]
    below[..., -1] = above[..., -1]
    above[..., :-1][..., score == 1] = 0.0
    below[..., :-1][..., score == 0] = 0.0
    total = rows[..., -1:]
    return above / total, below / total


def _largest(at: Floats, above: Floats, below: Floats, kinks: int) -> Floats:
    loss = np.maximum(np.maximum(above, below), 0.0)
    if kinks == 0:
        return np.asarray(loss.max(axis=-1))
    if kinks == 1:
        return np.asarray((loss / np.maximum(at, 1 - at)).max(axis=-1))
    left, right = at <= 0.5, at >= 0.5
    nothing = np.zeros((*loss.shape[:-1], 1))
    x0, f0 = np.append(at[left], 0.0), np.concatenate((loss[..., left], nothing), axis=-1)
    x1, f1 = np.append(at[right], 1.0), np.concatenate((loss[..., right], nothing), axis=-1)
    gap = x1 - x0[:, None]
    weight = np.where(gap > 0, x1 - 0.5, 1.0) / np.where(gap > 0, gap, 1.0)
    chords = f0[..., None] * weight
    chords += f1[..., None, :] * (1 - weight)
    return np.asarray(2 * chords.max(axis=(-1, -2)))
