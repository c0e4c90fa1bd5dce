"""The table: distinct scores with their rows and positives. All that ignores row identity is a function of it.

A table merges by adding, can be resampled from its cells alone, and does not know in which order rows came. The one
sort of the project is here. Large tables are walked in blocks that fit the processor's cache (`Table.blocks`), because
on ten million levels a full-length temporary costs more than the sort itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.tables.design import INDEPENDENT, Counted, Counts, Design, count_rows, joined
from decal_cli.tables.estimate import CellRun
from decal_cli.tables.isotonic import first_of_pools
from decal_cli.tables.memo import Remembering, once
from decal_cli.tables.resample import TIE
from decal_cli.tables.threads import sort
from decal_cli.tables.units import Estimate, Units, runs_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Labels = NDArray[np.uint8]
Values = NDArray[Any]
Strategy = Literal["mass", "width"]
Loss = Callable[[Floats], Floats]
"""Maps scores, shape (k,), to their losses at label 0 and at label 1, shape (labels, k)."""

BLOCK = 1 << 15
ONE_LABEL = "needs rows of more than one label"
BINS = 15  # of the score, where no other number is given
CELLS = 1 << 16
"""Above this many levels, resampling works on this many equal-mass cells."""
FEWEST_ROWS = 10
"""Rows from which on some are held out."""
NO_POSITIVES = "no row has label 1"


@dataclass(frozen=True, eq=False)
class Table(Counted, Remembering):
    """Levels of a score, strictly increasing in [0, 1], each with its rows and positives.

    score, n, pos: shape (m,), n > 0, 0 <= pos <= n: rows and positives, or their summed weights. design: how the rows
    were sampled. Nothing is checked here: `data` checks what comes in.
    """

    score: Floats
    n: Counts
    pos: Counts
    design: Design = INDEPENDENT

    @classmethod
    def merge(cls, tables: Sequence[Table]) -> Table:
        """The table of all rows of several tables: levels of one score are added."""
        score = np.concatenate([table.score for table in tables])
        order, starts = runs_of((score,))

        def added(columns: Sequence[Counts]) -> Counts:
            values = np.concatenate(columns)[order]
            return np.add.reduceat(values, starts, dtype=np.int64 if values.dtype.kind in "iu" else np.float64)

        n, pos = added([table.n for table in tables]), added([table.pos for table in tables])
        return cls(score[order[starts]], n, pos, joined(tables).select(order).merged(starts))

    def __len__(self) -> int:
        """Number of distinct scores, m."""
        return len(self.score)

    def need_both_classes(self) -> None:
        """Raise Undefined where only one class is there."""
        if self.positives <= 0 or self.positives >= self.total:
            raise Undefined(f"{ONE_LABEL}; every label is {int(self.positives > 0)}")

    def blocks(self) -> Iterator[CellRun]:
        """The levels in runs of at most BLOCK."""
        ones = np.ones(min(BLOCK, len(self)) if self.one_row_each else 0)
        ones.flags.writeable = False

        def squares_of(part: slice) -> tuple[Floats, Floats]:
            n2, pos2 = self.squares_of_rows
            return n2[part], pos2[part]

        for start in range(0, len(self), BLOCK):
            part = slice(start, start + BLOCK)
            pos = self.pos[part].astype(np.float64)
            n = ones[: len(pos)] if self.one_row_each else self.n[part].astype(np.float64)
            yield CellRun(self.score[part], n, pos, None if self.design.plain else partial(squares_of, part))

    def sum(self, term: Callable[[CellRun], Floats]) -> float:
        """Sum over levels of a term that is computed block by block."""
        return float(sum(float(term(block).sum()) for block in self.blocks()))

    @once
    def mean_of(self, loss: Loss) -> Estimate:
        """Mean over rows of a loss; computed once per loss function, block by block."""
        blocks = ((block, np.broadcast_to(loss(block.score), (2, len(block.score)))) for block in self.blocks())
        sums = self.design.moments(blocks)
        return self.units.mean_of_sums(sums.first, sums.squares, lambda: loss(self.score).ravel(), sums.between)

    def of_units(self, values: Floats) -> Floats:
        """Numbers of each label and level, (2, m), as numbers of each unit."""
        return values.ravel()

    def with_known_share(self) -> Self:
        """The table of these rows where weights make the share of label 1 what it is known to be."""
        return replace(self, design=self.design.with_known_share())

    def weight_by_action(self, *thresholds: float) -> Floats:
        """Weights by action and label, (actions, 2); the action is how many increasing thresholds the score reaches."""
        cuts = np.searchsorted(self.score, thresholds, side="left")
        # Each part is summed by itself: what is left of a sum of weights may be rounding where there are no rows.
        runs = [slice(start, end) for start, end in zip((0, *cuts), (*cuts, len(self)), strict=True)]
        of_labels = [(self.n[run] - self.pos[run], self.pos[run]) for run in runs]
        return np.maximum([[each.sum(dtype=np.float64) for each in of] for of in of_labels], 0.0)

    @once
    def by_action(self, *thresholds: float) -> tuple[Units, Ints]:
        """The rows of each action and label as units, and the action of each."""

        def action() -> Ints:
            cuts = np.searchsorted(self.score, thresholds, side="left")
            return np.repeat(np.arange(len(cuts) + 1, dtype=np.int16), np.diff((0, *cuts, len(self))))

        return self.decided(action, self.weight_by_action(*thresholds))

    def merge_levels(self, starts: NDArray[Any]) -> Table:
        """Pool runs of levels, given by the index of their first level; a pool scores the mean score of its rows."""
        mass, n, pos = self._sums(starts)
        # A mean lies between the ends of its pool; rounding must not carry it out and break the order of levels.
        ends = np.append(starts[1:], len(self)) - 1
        score = np.clip(mass / n, self.score[starts], self.score[ends])
        if self.n.dtype.kind in "iu":
            n, pos = n.astype(np.int64), pos.astype(np.int64)
        return Table(score, n, pos, self.design.merged(starts))

    def _sums(self, starts: NDArray[Any]) -> tuple[Floats, Floats, Floats]:
        """Sums of n * score, n and pos over runs of levels, without a full-length temporary."""
        mass, n, pos = (np.zeros(len(starts)) for _ in range(3))
        for number, block in enumerate(self.blocks()):
            low, high = number * BLOCK, number * BLOCK + len(block.score)
            first = int(np.searchsorted(starts, low, side="right")) - 1
            inside = np.concatenate(([low], starts[first + 1 : np.searchsorted(starts, high, side="left")])) - low
            of_block = slice(first, first + len(inside))
            pos[of_block] += np.add.reduceat(block.pos, inside)
            if self.one_row_each:
                mass[of_block] += np.add.reduceat(block.score, inside)
                continue
            mass[of_block] += np.add.reduceat(block.score * block.n, inside)
            n[of_block] += np.add.reduceat(block.n, inside)
        return mass, np.diff(starts, append=len(self)).astype(np.float64) if self.one_row_each else n, pos

    def bins(self, bins: int = BINS, strategy: Strategy = "mass") -> Table:
        """The table of bins: a level is a non-empty bin, its score the mean score in it.

        mass: `bin_edges`, each of which belongs to the bin below it. width: edges i/k; a score on an interior edge
        belongs to the upper bin, 1 to the last.
        """
        return self.cached(("bins", bins, strategy), lambda t: t.merge_levels(t.bin_starts(bins, strategy)))

    def bin_starts(self, bins: int = BINS, strategy: Strategy = "mass") -> Ints:
        """First level of each non-empty bin."""
        edges = self.bin_edges(bins) if strategy == "mass" else np.arange(1, bins) / bins
        cuts = np.searchsorted(self.score, edges, side="right" if strategy == "mass" else "left")
        return np.unique(np.append(0, cuts[cuts < len(self)]))

    def bin_edges(self, bins: int = BINS) -> Floats:
        """The edges between non-empty equal-mass bins, increasing; a score equal to one belongs to the bin below it.

        The edges are the i/k quantiles of the rows, 0 < i < k, linearly interpolated (for weighted rows the inverse of
        the cumulative weight). The smallest score may be an edge, so that a lowest level of more than 1/k of the rows
        is its own bin; the largest never is. Among edges between the same two levels the lowest stays.
        """
        edges = self.quantiles(bins)[1:-1]
        starts, first = np.unique(np.searchsorted(self.score, edges, side="right"), return_index=True)
        return edges[first[starts < len(self)]]

    def quantiles(self, k: int) -> Floats:
        """The i/k quantiles of the scores of the rows, i = 0..k, shape (k + 1,)."""
        share = np.arange(k + 1) / k
        if self.weighted:
            return self.score[np.searchsorted(self._rows_to, share * (1 - TIE) * self._rows_to[-1], side="left")]
        position = share * (self.total - 1)
        low = np.floor(position)
        below, above = (self._score_of_row(rows) for rows in (low, np.ceil(position)))
        part, step = position - low, above - below
        # As numpy interpolates, so that edges agree with numpy's quantiles to the last bit.
        return np.where(part >= 0.5, above - step * (1 - part), below + step * part)

    @cached_property
    def one_row_each(self) -> bool:
        """Whether every level is one row."""
        # Weights that are drawn may sum to the number of levels as well.
        return not self.weighted and self.total == len(self) and bool(self.n.min() == 1)

    def _score_of_row(self, rows: Floats) -> Floats:
        if self.one_row_each:
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

    def resample(self, rng: np.random.Generator) -> Table:
        """A bootstrap draw of the rows, made from the cells alone (never from row order)."""
        neg, pos, design = self.design.resample(self, rng)
        n = neg + pos
        some = n > 0
        if not some.any():
            raise Undefined("the resample is empty")
        return Table(self.score[some], n[some], pos[some], design.select(some))

    @property
    def with_free_levels(self) -> Table:
        """This table with independent rows: in each level as many as vary as much as those of its clusters."""
        design = self.design.within_cells(self.score)
        return self if design is self.design else replace(self, design=design)

    def null(self, rng: np.random.Generator, times: int) -> Iterator[Table]:
        """So many tables of these scores with labels drawn as if every score were the true probability."""
        return self.relabelled(rng, times, self.score)

    def relabelled(self, rng: np.random.Generator, times: int, chance: Floats) -> Iterator[Table]:
        """So many tables of these scores with labels drawn, 1 with this chance of each score, (m,)."""
        drawn_by = self.design.that_draws(chance)
        for _ in range(times):
            pos, design = drawn_by.relabelled(self, rng, chance)
            yield Table(self.score, self.n, pos, design)


def bin_of(score: Floats, edges: Floats) -> Ints:
    """The number of each score's equal-mass bin; a score equal to an edge belongs to the bin below it."""
    return np.searchsorted(edges, score, side="left")


def tabulate(score: Floats, label: NDArray[Any], weight: Floats | None = None, unit: Ints | None = None) -> Table:
    """Rows to a table: score float64 in [0, 1], label 0/1, weight > 0 or None, shape (T,) each, T > 0.

    unit: the number of each row's cluster; None where rows are independent.

    Unweighted rows take one plain sort: non-negative floats sort as the integers of their bits, which leaves the
    lowest bit of the shifted key for the label.
    """
    if weight is None and unit is None:
        key = _keys(score, label)
        sort(key)
        return table_of_sorted(key)
    order = np.argsort(_keys(score, label)) if weight is None else None
    (score,), n, pos, design = count_rows((score,), label, weight, unit, order)
    return Table(score, n, pos, design)


def _keys(score: Floats, label: NDArray[Any]) -> NDArray[np.uint64]:
    """The bits of the score shifted left, and the label in the lowest bit."""
    rows = len(score)
    key = np.empty(rows, dtype=np.uint64)
    one = np.uint64(1)
    for start in range(0, rows, BLOCK):
        part = slice(start, start + BLOCK)
        bits = (score[part] + 0.0).view(np.uint64)  # + 0.0 makes -0.0 the zero that sorts first
        np.left_shift(bits, one, out=bits)
        np.bitwise_or(bits, label[part].astype(np.uint64), out=key[part])
    return key


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
