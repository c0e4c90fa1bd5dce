"""The table: distinct scores with their rows and positives. Whatever ignores row identity is a function of it.

A table merges by adding, can be resampled from its cells alone, and does not know in which order rows came. The one
sort of the project is here. Large tables are walked in blocks that fit the processor's cache (`Table.blocks`), because
on ten million levels a full-length temporary costs more than the sort itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.tables import resample as draw
from decal_cli.tables.isotonic import first_of_pools

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Strategy = Literal["mass", "width"]
Loss = Callable[[Floats], tuple[Floats | float, Floats | float]]
T = TypeVar("T")

BLOCK = 1 << 15
BINS = 15  # of the score, where no other number is given
CELLS = 1 << 16
"""Above this many levels, resampling works on this many equal-mass cells."""
FOLDS = 5
"""Parts of the rows; what is learned on the others is judged on each."""
FEWEST_ROWS = 10
"""Rows from which on some are held out."""


def dot(a: Floats, b: Floats) -> float:
    """sum a b; not by the linear algebra library, whose threads make it slower here and its last bit theirs."""
    return float(np.einsum("i,i->", a, b))


class Estimate(NamedTuple):
    """A mean over rows and its standard error."""

    mean: float
    error: float


class Block(NamedTuple):
    """A run of levels as float64, shape (k,) each; n2 and pos2 are the sums of squared weights."""

    score: Floats
    n: Floats
    pos: Floats
    n2: Floats
    pos2: Floats


class Confusion(NamedTuple):
    """Weights of the four cells of decision and label at a threshold, and their sums of squared weights."""

    tn: float
    fn: float
    fp: float
    tp: float
    tn2: float
    fn2: float
    fp2: float
    tp2: float

    def mean(self, utility: Sequence[Sequence[float]]) -> Estimate:
        """Mean over rows of utility[decision][label], and its standard error."""
        (u00, u01), (u10, u11) = utility
        values = np.array([u00, u01, u10, u11])
        weights = np.array(self[:4])
        mean = float(values @ weights / weights.sum())
        return Estimate(mean, float(np.sqrt(np.array(self[4:]) @ (values - mean) ** 2) / weights.sum()))


@dataclass(frozen=True, eq=False)
class Table:
    """Levels of a score, strictly increasing in [0, 1].

    score, n, pos: shape (m,), n > 0, 0 <= pos <= n: rows and positives, or their summed weights. n2, pos2: sums of
    squared weights, None where every row counts one (they then equal n and pos).
    """

    score: Floats
    n: NDArray[Any]
    pos: NDArray[Any]
    n2: Floats | None = None
    pos2: Floats | None = None

    def __len__(self) -> int:
        """Number of distinct scores, m."""
        return len(self.score)

    @cached_property
    def total(self) -> float:
        """Rows, or their summed weight."""
        return float(self.n.sum(dtype=np.float64))

    @cached_property
    def positives(self) -> float:
        """Rows with label 1, or their summed weight."""
        return float(self.pos.sum(dtype=np.float64))

    @property
    def negatives(self) -> float:
        """Rows with label 0, or their summed weight."""
        return self.total - self.positives

    @property
    def base_rate(self) -> float:
        """Share of label 1."""
        return self.positives / self.total

    @cached_property
    def effective_rows(self) -> float:
        """Rows; for weighted ones (sum w)^2 / sum w^2."""
        return self.total if self.n2 is None else self.total**2 / float(self.n2.sum())

    def need_both_classes(self) -> None:
        """Raise Undefined where only one class is there."""
        if self.positives <= 0 or self.positives >= self.total:
            raise Undefined(f"needs both classes; every label is {int(self.positives > 0)}")

    def blocks(self) -> Iterator[Block]:
        """The levels in runs of at most BLOCK."""
        for start in range(0, len(self), BLOCK):
            part = slice(start, start + BLOCK)
            n, pos = self.n[part].astype(np.float64), self.pos[part].astype(np.float64)
            n2 = n if self.n2 is None else self.n2[part]
            pos2 = pos if self.pos2 is None else self.pos2[part]
            yield Block(self.score[part], n, pos, n2, pos2)

    def sum(self, term: Callable[[Block], Floats]) -> float:
        """Sum over levels of a term that is computed block by block."""
        return float(sum(float(term(block).sum()) for block in self.blocks()))

    def mean_of(self, loss: Loss) -> Estimate:
        """Mean over rows of a loss and its standard error; computed once per loss function.

        loss maps scores, shape (k,), to their losses at label 0 and at label 1. The error is that of a ratio of sums,
        sqrt(sum w^2 (loss - mean)^2) / sum w, so it holds for weighted rows as well.
        """
        return self.cached(loss, lambda t: t.average((block, *loss(block.score)) for block in t.blocks()))

    def cached(self, key: object, compute: Callable[[Table], T]) -> T:
        """compute(self), computed once under this key: metrics that share a pass over the table share its result."""
        if key not in self._cache:
            self._cache[key] = compute(self)
        return self._cache[key]

    @cached_property
    def _cache(self) -> dict[object, Any]:
        return {}

    def average(self, values: Iterable[tuple[Block, Floats | float, Floats | float]]) -> Estimate:
        """Mean over rows of values given block by block, at label 0 and at label 1, and its standard error."""
        first = cross = second = squares = 0.0
        for (score, n, pos, n2, pos2), *labels in values:
            at0, at1 = (np.broadcast_to(np.asarray(at, dtype=np.float64), score.shape) for at in labels)
            first += dot(n - pos, at0) + dot(pos, at1)
            rows0, rows1 = (n2 - pos2) * at0, pos2 * at1
            cross += float(rows0.sum() + rows1.sum())
            second += dot(rows0, at0) + dot(rows1, at1)
            squares += float(n2.sum())
        mean = first / self.total
        variance = max(second - 2 * mean * cross + mean * mean * squares, 0.0)
        return Estimate(mean, float(np.sqrt(variance)) / self.total)

    def confusion(self, threshold: float) -> Confusion:
        """Weights by decision (1 iff score >= threshold) and label."""
        cut = int(np.searchsorted(self.score, threshold, side="left"))
        fn, fn2 = self._below(self.pos, cut), self._below(self.pos2, cut)
        tn, tn2 = self._below(self.n, cut) - fn, self._below(self.n2, cut) - fn2
        # Differences of sums of weights: rounding must not make them negative.
        tp, fp = max(self.positives - fn, 0.0), max(self.negatives - tn, 0.0)
        if self.n2 is None or self.pos2 is None:
            return Confusion(tn, fn, fp, tp, tn, fn, fp, tp)
        tp2 = max(float(self.pos2.sum()) - fn2, 0.0)
        fp2 = max(float(self.n2.sum()) - fn2 - tn2 - tp2, 0.0)
        return Confusion(max(tn, 0.0), fn, fp, tp, max(tn2, 0.0), fn2, fp2, tp2)

    @staticmethod
    def _below(values: NDArray[Any] | None, cut: int) -> float:
        return 0.0 if values is None else float(values[:cut].sum(dtype=np.float64))

    def merge_levels(self, starts: NDArray[Any]) -> Table:
        """Pool runs of levels, given by the index of their first level; a pool scores the mean score of its rows."""
        mass, n, pos, n2, pos2 = self._sums(starts)
        # A mean lies between the ends of its pool; rounding must not carry it out and break the order of levels.
        ends = np.append(starts[1:], len(self)) - 1
        score = np.clip(mass / n, self.score[starts], self.score[ends])
        if self.n2 is None:
            whole = self.n.dtype.kind in "iu"
            return Table(score, n.astype(np.int64), pos.astype(np.int64)) if whole else Table(score, n, pos)
        return Table(score, n, pos, n2, pos2)

    def _sums(self, starts: NDArray[Any]) -> list[Floats]:
        """Sums of n * score, n, pos, n2 and pos2 over runs of levels, without a full-length temporary."""
        sums = [np.zeros(len(starts)) for _ in range(3 if self.n2 is None else 5)]
        for number, block in enumerate(self.blocks()):
            low, high = number * BLOCK, number * BLOCK + len(block.score)
            first = int(np.searchsorted(starts, low, side="right")) - 1
            inside = np.concatenate(([low], starts[first + 1 : np.searchsorted(starts, high, side="left")])) - low
            columns = (block.score, block.pos) if self._one_row_each else (block.score * block.n, *block[1:])
            for total, values in zip(sums, columns, strict=False):
                total[first : first + len(inside)] += np.add.reduceat(values, inside)
        if self._one_row_each:
            sums = [sums[0], np.diff(starts, append=len(self)).astype(np.float64), sums[1]]
        return sums if self.n2 is not None else [*sums, *sums[1:]]

    def bins(self, bins: int = BINS, strategy: Strategy = "mass") -> Table:
        """The table of bins: a level is a non-empty bin, its score the mean score in it.

        mass: edges are the i/k quantiles of the rows, linearly interpolated (for weighted rows the inverse of the
        cumulative weight); a score equal to an interior edge belongs to the lower bin, equal edges are merged.
        width: edges i/k; a score on an interior edge belongs to the upper bin, 1 to the last.
        """
        return self.cached(("bins", bins, strategy), lambda t: t.merge_levels(t.bin_starts(bins, strategy)))

    def bin_starts(self, bins: int = BINS, strategy: Strategy = "mass") -> Ints:
        """First level of each non-empty bin."""
        if strategy == "mass":
            edges = _distinct(self.quantiles(bins))[1:-1]
            cuts = np.searchsorted(self.score, edges, side="right")
        else:
            cuts = np.searchsorted(self.score, np.arange(1, bins) / bins, side="left")
        starts = _distinct(np.concatenate(([0], cuts)))
        return starts[starts < len(self)]

    def quantiles(self, k: int) -> Floats:
        """The i/k quantiles of the scores of the rows, i = 0..k, shape (k + 1,)."""
        share = np.arange(k + 1) / k
        if self.n2 is not None:
            levels = np.searchsorted(self._rows_to, share * self._rows_to[-1], side="left")
            return self.score[np.minimum(levels, len(self) - 1)]
        position = share * (self.total - 1)
        low = np.floor(position)
        below, above = (self._score_of_row(rows) for rows in (low, np.ceil(position)))
        part, step = position - low, above - below
        # As numpy interpolates, so that edges agree with numpy's quantiles to the last bit.
        return np.where(part >= 0.5, above - step * (1 - part), below + step * part)

    @property
    def _one_row_each(self) -> bool:
        return self.n2 is None and self.total == len(self)

    def _score_of_row(self, rows: Floats) -> Floats:
        if self._one_row_each:
            return self.score[rows.astype(np.int64)]
        return self.score[np.searchsorted(self._rows_to, rows, side="right")]

    @cached_property
    def _rows_to(self) -> Floats:
        """Rows up to and including each level."""
        return np.cumsum(self.n, dtype=np.float64)

    @cached_property
    def cells(self) -> Table:
        """This table, or its equal-mass cells where it has more than CELLS levels."""
        return self if len(self) <= CELLS else self.bins(CELLS)

    @cached_property
    def pools(self) -> Ints:
        """First level of each pool of the isotonic fit."""
        return first_of_pools(self.n, self.pos)

    @cached_property
    def isotonic(self) -> Table:
        """The table of the isotonic fit's pools: pos / n strictly increases and is the fitted probability."""
        return self.merge_levels(self.pools)

    def calibrated_blocks(self) -> Iterator[tuple[Block, Floats]]:
        """The blocks, each with the isotonic fit at its levels."""
        starts, fit = self.pools, self.isotonic.pos / self.isotonic.n
        for number, block in enumerate(self.blocks()):
            low, high = number * BLOCK, number * BLOCK + len(block.score)
            first, last = int(np.searchsorted(starts, low, side="right")) - 1, int(np.searchsorted(starts, high))
            lengths = np.diff(np.concatenate(([low], starts[first + 1 : last], [high])))
            yield block, np.repeat(fit[first:last], lengths)

    def resample(self, rng: np.random.Generator) -> Table:
        """A bootstrap draw of the rows, made from the cells alone (never from row order).

        The weight of label c in a level with sums W and W2 becomes (W2/W) * Poisson(W^2/W2): for unweighted rows the
        Poisson bootstrap, for weighted ones a draw with the same mean W and variance W2.
        """
        if self.n2 is None or self.pos2 is None:
            neg, pos = draw.poisson(rng, self.n - self.pos), draw.poisson(rng, self.pos)
            neg2 = pos2 = None
        else:
            neg, neg2 = draw.weighted_poisson(rng, self.n - self.pos, self.n2 - self.pos2)
            pos, pos2 = draw.weighted_poisson(rng, self.pos, self.pos2)
        return self._kept(neg, pos, neg2, pos2)

    def null(self, rng: np.random.Generator, chance: Floats | None = None) -> Table:
        """These scores with labels drawn as if every score, or this chance, were the true probability."""
        chance = self.score if chance is None else chance
        if self.n2 is None:
            return Table(self.score, self.n, draw.binomial(rng, np.asarray(self.n, dtype=np.int64), chance))
        # Rows of unequal weight in one level act as n^2/n2 rows of equal weight.
        rows = np.maximum(np.rint(self.n**2 / self.n2), 1).astype(np.int64)
        share = draw.binomial(rng, rows, chance) / rows
        return Table(self.score, self.n, self.n * share, self.n2, self.n2 * share)

    def _kept(self, neg: Floats, pos: Floats, neg2: Floats | None, pos2: Floats | None) -> Table:
        n = neg + pos
        there = n > 0
        if not there.any():
            raise Undefined("the resample is empty")
        if neg2 is None or pos2 is None:
            return Table(self.score[there], n[there], pos[there])
        return Table(self.score[there], n[there], pos[there], (neg2 + pos2)[there], pos2[there])


def _distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct ones of values that are in order already, which need no search."""
    return values[np.append(True, values[1:] != values[:-1])]


def tabulate(score: Floats, label: NDArray[Any], weight: Floats | None = None) -> Table:
    """Rows to a table: score float64 in [0, 1], label 0/1, weight > 0 or None, shape (T,) each, T > 0.

    Unweighted rows take one plain sort: non-negative floats sort as the integers of their bits, which leaves the
    lowest bit of the shifted key for the label.
    """
    if weight is not None:
        return _tabulate_weighted(score, label, weight)
    rows = len(score)
    key = np.empty(rows, dtype=np.uint64)
    one = np.uint64(1)
    for start in range(0, rows, BLOCK):
        part = slice(start, start + BLOCK)
        bits = (score[part] + 0.0).view(np.uint64)  # + 0.0 makes -0.0 the zero that sorts first
        np.left_shift(bits, one, out=bits)
        np.bitwise_or(bits, label[part].astype(np.uint64), out=key[part])
    key.sort()
    return table_of_sorted(key)


def table_of_sorted(key: NDArray[np.uint64]) -> Table:
    """The table of sorted keys (score bits shifted left, label in the lowest bit); overwrites the keys."""
    rows = len(key)
    label = np.empty(rows, dtype=np.int8)
    fresh = np.empty(rows, dtype=bool)
    fresh[0] = True
    one, before = np.uint64(1), key[0] >> np.uint64(1)
    for start in range(0, rows, BLOCK):
        part = key[start : start + BLOCK]
        np.bitwise_and(part, one, out=label[start : start + BLOCK], casting="unsafe")
        np.right_shift(part, one, out=part)
        fresh[start] = start == 0 or part[0] != before
        np.not_equal(part[1:], part[:-1], out=fresh[start + 1 : start + len(part)])
        before = part[-1]
    score = key.view(np.float64)
    if fresh.all():
        return Table(score, np.broadcast_to(np.int8(1), rows), label)
    starts = np.flatnonzero(fresh)
    n = np.diff(np.append(starts, rows))
    return Table(score[starts], n, np.add.reduceat(label, starts, dtype=np.int64))


def _tabulate_weighted(score: Floats, label: NDArray[Any], weight: Floats) -> Table:
    score = score + 0.0
    # Sorted by weight as well: sums of floats depend on their order, and the table must not depend on that of the rows.
    order = np.lexsort((weight, label, score))
    score, weight = score[order], weight[order]
    positive = weight * label[order]
    starts = np.flatnonzero(np.concatenate(([True], score[1:] != score[:-1])))
    n, pos, n2, pos2 = (np.add.reduceat(values, starts) for values in (weight, positive, weight**2, positive**2))
    return Table(score[starts], n, np.minimum(pos, n), n2, np.minimum(pos2, n2))


def merge(tables: Sequence[Table]) -> Table:
    """The table of all rows of several tables: levels of one score are added."""
    score = np.concatenate([table.score for table in tables])
    order = np.argsort(score, kind="stable")
    score = score[order]
    starts = np.flatnonzero(np.concatenate(([True], score[1:] != score[:-1])))

    def added(name: Literal["n", "pos", "n2", "pos2"]) -> NDArray[Any]:
        columns = ((getattr(table, name), getattr(table, name[:-1], None)) for table in tables)
        values = np.concatenate([column if column is not None else plain for column, plain in columns])[order]
        return np.add.reduceat(values, starts, dtype=np.int64 if values.dtype.kind in "iu" else np.float64)

    if all(table.n2 is None for table in tables):
        return Table(score[starts], added("n"), added("pos"))
    return Table(score[starts], added("n"), added("pos"), added("n2"), added("pos2"))
