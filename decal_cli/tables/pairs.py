"""Two models on the same rows: the joint distribution of their scores and the labels.

As a table ignores the order of rows, so does a pair table: it holds the distinct pairs of scores in sorted order with
their rows and positives. Paired statistics need no more than that. It is resampled from its cells alone, and one draw
gives the tables of both models, so that what the models share cancels in their difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.tables.cells import CellTable
from decal_cli.tables.design import INDEPENDENT, Counted, Counts, Design, count_rows
from decal_cli.tables.memo import once
from decal_cli.tables.table import CELLS, Floats, Ints, Loss, Table
from decal_cli.tables.units import Estimate, Units
from decal_cli.tables.utilities import actions_at

Sums = tuple[Floats, Floats]
"""Sums of a value over the rows of each label, (2,), and of squared weights times value^0, 1 and 2, (2, 3)."""
PAIR_GRID = 1 << 8
"""Cells of equal width on each side."""


@dataclass(frozen=True, eq=False)
class PairTable(Counted):
    """Distinct pairs of scores, in increasing order of (a, b), each with its rows and positives.

    a, b, n, pos: shape (k,); scores in [0, 1], n > 0, 0 <= pos <= n: rows and positives, or their summed weights.
    design: how the rows were sampled.
    """

    a: Floats
    b: Floats
    n: Counts
    pos: Counts
    design: Design = INDEPENDENT

    def __len__(self) -> int:
        """Number of distinct pairs, k."""
        return len(self.a)

    def with_known_share(self) -> PairTable:
        """The pairs of these rows where weights make the share of label 1 what it is known to be."""
        return replace(self, design=self.design.with_known_share())

    @property
    def tables(self) -> tuple[Table, Table]:
        """The tables of A and of B."""
        return self.on_units

    @cached_property
    def on_units(self) -> tuple[Table, Table]:
        """The tables of A and of B, whose estimates are on the units of the pairs."""
        a, b = (self._table(side, self.n, self.pos, self.design) for side in (0, 1))
        if self.design.share_known:
            a, b = a.with_known_share(), b.with_known_share()
        of_a, of_b = (
            SideTable(t.score, t.n, t.pos, t.design, pairs=self, place=place)
            for t, (_, place) in zip((a, b), self.levels, strict=True)
        )
        return of_a, of_b

    @cached_property
    def levels(self) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints]]:
        """The distinct scores of A and of B, each with the place of every pair among them, shape (k,)."""
        return np.unique(self.a, return_inverse=True), np.unique(self.b, return_inverse=True)

    def by_action(self, *thresholds: float) -> tuple[Units, Ints]:
        """The rows of each action and label as units; the action of A times the number of actions, plus that of B.

        Where different scores decide every row alike, units without weight are of rows that may be decided differently.
        """
        actions = len(thresholds) + 1
        of_a, of_b = (actions_at(thresholds, scores) for scores in (self.a, self.b))
        place, size = of_a * actions + of_b, actions**2
        of_labels = np.maximum(self.n - self.pos, 0), self.pos
        weight = np.stack([np.bincount(place, values, size) for values in of_labels], axis=1).astype(np.float64)
        apart = np.abs(np.subtract.outer(np.arange(actions), np.arange(actions))).ravel()
        alike = not weight[apart > 0].any() and not np.array_equal(self.a, self.b)
        return self.decided(lambda: place, weight, alike & (apart == 1))

    @cached_property
    def by_b(self) -> bool:
        """Whether draws go through the pairs in the order of (b, a): the same order if A were called B."""
        for ours, theirs in self._of_both():
            apart = np.flatnonzero(ours != theirs)
            if len(apart):
                return bool(theirs[apart[0]] < ours[apart[0]])
        return False

    def _of_both(self) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """What tells A from B: the levels of each, how many they are, and the pairs in the order of each."""
        (a, _), (b, _) = self.levels
        both = min(len(a), len(b))
        yield from ((a[:both], b[:both]), (np.array([len(a)]), np.array([len(b)])))
        order = np.lexsort((self.a, self.b))
        for ours, theirs in ((self.a, self.b), (self.b, self.a), (self.n, self.n), (self.pos, self.pos)):
            yield ours, theirs[order]

    @cached_property
    def to_draw(self) -> PairTable:
        """The pairs in the order in which they are drawn."""
        if not self.by_b:
            return self
        order = np.lexsort((self.a, self.b))
        of_pairs = self.a[order], self.b[order], self.n[order], self.pos[order]
        return self._of_these_rows(PairTable(*of_pairs, self.design.select(order)))

    def _of_these_rows(self, pairs: PairTable) -> PairTable:
        """Other pairs of all these rows, whose share of label 1 is known where it is here."""
        return pairs.with_known_share() if self.design.share_known else pairs

    @cached_property
    def cells(self) -> PairTable:
        """The pairs in the order in which they are drawn, or CELLS cells of about equal mass where there are more.

        The pairs are cut into 256 strips of equal mass along A, or along B where draws go by B, and each strip into 256
        cells along the other; a cell scores the mean scores of its rows.
        """
        pairs = self.to_draw
        if len(pairs) <= CELLS:
            return pairs
        side = int(np.sqrt(CELLS))
        first, second = (pairs.b, pairs.a) if self.by_b else (pairs.a, pairs.b)
        strip = _equal_mass(pairs.n, np.zeros(len(pairs), dtype=np.int64), side)
        order = np.lexsort((first, second, strip))
        cell = strip[order] * side + _equal_mass(pairs.n[order], strip[order], side)
        starts = np.flatnonzero(np.diff(cell, prepend=-1))

        def summed(values: NDArray[Any]) -> Floats:
            return np.add.reduceat(np.asarray(values, dtype=np.float64)[order], starts)

        n, pos = summed(pairs.n), summed(pairs.pos)
        a, b = (_mean_within(score[order], summed(score * pairs.n) / n, starts) for score in (pairs.a, pairs.b))
        return self._of_these_rows(PairTable(a, b, n, pos, pairs.design.select(order).merged(starts)))

    def part(self, neg: Counts, pos: Counts, design: Design | None = None) -> PairTable:
        """The pairs of a part of the rows, given by its negatives and positives of each pair; maybe without any.

        design: of these rows, where it is known better than from the counts.
        """
        n = neg + pos
        some = n > _NOTHING * self.total
        design = self.design.part(self, neg, pos) if design is None else design
        return PairTable(self.a[some], self.b[some], n[some], pos[some], design.select(some))

    def resample(self, rng: np.random.Generator) -> tuple[Table, Table]:
        """A bootstrap draw of the rows, as the tables of A and of B; drawn from the cells as Table.resample does."""
        neg, pos, design = self.design.resample(self, rng)
        if not (neg.any() or pos.any()):
            raise Undefined("the resample is empty")
        return self._table(0, neg + pos, pos, design), self._table(1, neg + pos, pos, design)

    def _table(self, side: int, n: Counts, pos: Counts, design: Design) -> Table:
        """The table of one side from the counts of the pairs; levels without rows are dropped."""
        score, place = self.levels[side]
        kind = np.int64 if n.dtype.kind in "iub" else np.float64
        n, pos = (np.bincount(place, values, len(score)).astype(kind) for values in (n, pos))
        some = n > 0
        design = design.grouped(place, len(score)).select(some)
        return Table(score[some], n[some], np.minimum(pos, n)[some], design)


@dataclass(frozen=True, eq=False)
class SideTable(Table):
    """The table of one model of two. place: the level of each pair, shape (k,)."""

    pairs: PairTable = field(kw_only=True)
    place: Ints = field(kw_only=True)

    @cached_property
    def units(self) -> Units:
        """The units of the pairs, which the tables of both models share."""
        return self.pairs.units

    def of_units(self, values: Floats) -> Floats:
        return values[:, self.place].ravel()

    @once
    def mean_of(self, loss: Loss) -> Estimate:
        """Mean over rows of a loss."""
        return self.units.mean(self.of_units(loss(self.score)))


@dataclass(frozen=True, eq=False)
class CellPairs(PairTable):
    """Cells of two scores, each as one pair of mean scores, with the exact sums of what the two losses differ by.

    sides: the tables of A and of B, in cells. sums: of B - A of the squared loss and of the log loss, by the name
    of its mean, as `Units.mean_of_sums` takes them. Decisions on the rows of a cell are exact where the threshold is
    an edge of both sides.
    """

    sides: tuple[CellTable, CellTable] = field(kw_only=True)
    sums: Mapping[str, Sums] = field(kw_only=True)

    def difference(self, name: str) -> Estimate:
        """What the losses of two models differ by on average, B - A."""
        return self.units.mean_of_sums(*self.sums[name], lambda: np.zeros(2 * len(self)))

    @property
    def tables(self) -> tuple[Table, Table]:
        """The tables of A and of B, in cells."""
        return self.sides

    @cached_property
    def cells(self) -> PairTable:
        """This pair table, which is small enough."""
        return self

    def decided_at(self, threshold: float) -> bool:
        """Whether every row is known to be decided at a threshold, by both models."""
        return not any(len(side.straddled(threshold)) for side in self.sides)


_NOTHING = 1e-12
"""Share of all weight up to which a pair's weight is rounding."""


def pair_up(
    a: Floats, b: Floats, label: NDArray[Any], weight: Floats | None = None, unit: Ints | None = None
) -> PairTable:
    """Rows to a pair table: scores of A and B in [0, 1], label 0/1, weight > 0 or None, shape (T,) each, T > 0.

    unit: the number of each row's cluster; None where rows are independent.
    """
    (a, b), n, pos, design = count_rows((a, b), label, weight, unit)
    return PairTable(a, b, n, pos, design)


def _mean_within(score: Floats, mean: Floats, starts: Ints) -> Floats:
    """The means of runs, within their scores: rounding must not tell apart runs whose scores tie."""
    return np.clip(mean, np.minimum.reduceat(score, starts), np.maximum.reduceat(score, starts))


def _equal_mass(n: NDArray[Any], strip: Ints, parts: int) -> Ints:
    """The part of its strip, 0 .. parts - 1, that each entry falls into; entries sorted within strips, shape (k,)."""
    mass = n.astype(np.float64)
    to = np.cumsum(mass)
    whole = np.bincount(strip, weights=mass)
    middle = to - mass / 2 - (np.cumsum(whole) - whole)[strip]
    return np.clip((parts * middle / whole[strip]).astype(np.int64), 0, parts - 1)
