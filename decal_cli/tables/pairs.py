"""Two models on the same rows: the joint distribution of their scores and the labels.

As a table ignores the order of rows, so does a pair table: it holds the distinct pairs of scores in sorted order with
their rows and positives. Paired statistics need no more than that. It is resampled from its cells alone, and one draw
gives the tables of both models, so that what the models share cancels in their difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.tables import resample as draw
from decal_cli.tables.table import CELLS, Estimate, Floats, Ints, Loss, Table

PairLoss = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""Maps the scores of A and of B, shape (k,) each, to a difference B - A per row at label 0 and at label 1."""


@dataclass(frozen=True, eq=False)
class PairTable:
    """Distinct pairs of scores, in increasing order of (a, b), each with its rows and positives.

    a, b, n, pos: shape (k,); scores in [0, 1], n > 0, 0 <= pos <= n: rows and positives, or their summed weights.
    n2, pos2: sums of squared weights, None where every row counts one.
    """

    a: Floats
    b: Floats
    n: NDArray[Any]
    pos: NDArray[Any]
    n2: Floats | None = None
    pos2: Floats | None = None

    def __len__(self) -> int:
        """Number of distinct pairs, k."""
        return len(self.a)

    @cached_property
    def total(self) -> float:
        """Rows, or their summed weight."""
        return float(self.n.sum(dtype=np.float64))

    @property
    def effective_rows(self) -> float:
        """Rows; for weighted ones (sum w)^2 / sum w^2."""
        return self.total if self.n2 is None else self.total**2 / float(self.n2.sum())

    @cached_property
    def tables(self) -> tuple[Table, Table]:
        """The tables of A and of B."""
        return self._table(self.n, self.pos, self.n2, self.pos2, 0), self._table(
            self.n, self.pos, self.n2, self.pos2, 1
        )

    @cached_property
    def levels(self) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints]]:
        """Of A and of B: the distinct scores, and each pair's place among them, shape (k,)."""
        return tuple(np.unique(score, return_inverse=True) for score in (self.a, self.b))  # type: ignore[return-value]

    def mean_of(self, loss: PairLoss) -> Estimate:
        """Mean over rows of a difference and its standard error, sqrt(sum w^2 (d - mean)^2) / sum w."""
        at0, at1 = (np.broadcast_to(np.asarray(at, dtype=np.float64), self.a.shape) for at in loss(self.a, self.b))
        n, pos = self.n.astype(np.float64), self.pos.astype(np.float64)
        n2, pos2 = (n, pos) if self.n2 is None or self.pos2 is None else (self.n2, self.pos2)
        mean = float(((n - pos) * at0 + pos * at1).sum()) / self.total
        spread = float(((n2 - pos2) * (at0 - mean) ** 2 + pos2 * (at1 - mean) ** 2).sum())
        return Estimate(mean, float(np.sqrt(max(spread, 0.0))) / self.total)

    def difference(self, loss: Loss) -> Estimate:
        """Mean over rows of a loss of B minus that of A, and its standard error."""

        def between(a: Floats, b: Floats) -> tuple[Floats, Floats]:
            (a0, a1), (b0, b1) = loss(a), loss(b)
            return np.subtract(b0, a0), np.subtract(b1, a1)

        return self.mean_of(between)

    @cached_property
    def cells(self) -> PairTable:
        """This pair table, or CELLS cells of about equal mass where it has more pairs.

        The pairs are cut into 256 strips of equal mass along A, and each strip into 256 cells along B; a cell scores
        the mean scores of its rows.
        """
        if len(self) <= CELLS:
            return self
        side = int(np.sqrt(CELLS))
        strip = _equal_mass(self.n, np.zeros(len(self), dtype=np.int64), side)
        order = np.lexsort((self.a, self.b, strip))
        cell = strip[order] * side + _equal_mass(self.n[order], strip[order], side)
        return self._pooled(order, np.flatnonzero(np.diff(cell, prepend=-1)))

    def _pooled(self, order: Ints, starts: Ints) -> PairTable:
        def summed(values: NDArray[Any]) -> Floats:
            return np.add.reduceat(np.asarray(values, dtype=np.float64)[order], starts)

        n, pos = summed(self.n), summed(self.pos)
        a, b = (np.clip(summed(score * self.n) / n, 0.0, 1.0) for score in (self.a, self.b))
        n2, pos2 = (None, None) if self.n2 is None or self.pos2 is None else (summed(self.n2), summed(self.pos2))
        return PairTable(a, b, n, pos, n2, pos2)

    def resample(self, rng: np.random.Generator) -> tuple[Table, Table]:
        """A bootstrap draw of the rows, as the tables of A and of B; drawn from the cells as Table.resample does."""
        if self.n2 is None or self.pos2 is None:
            neg, pos = draw.poisson(rng, self.n - self.pos), draw.poisson(rng, self.pos)
            if not (neg.any() or pos.any()):
                raise Undefined("the resample is empty")
            return self._table(neg + pos, pos, None, None, 0), self._table(neg + pos, pos, None, None, 1)
        neg, neg2 = draw.weighted_poisson(rng, self.n - self.pos, self.n2 - self.pos2)
        pos, pos2 = draw.weighted_poisson(rng, self.pos, self.pos2)
        if not (neg.any() or pos.any()):
            raise Undefined("the resample is empty")
        first, second = (self._table(neg + pos, pos, neg2 + pos2, pos2, side) for side in (0, 1))
        return first, second

    def _table(self, n: Any, pos: Any, n2: Any, pos2: Any, side: int) -> Table:
        """The table of one side from the counts of the cells; levels without rows are left out."""
        score, place = self.levels[side]
        whole = n.dtype.kind in "iub"

        def summed(values: Any) -> Any:
            if values is None:
                return None
            sums = np.bincount(place, weights=values, minlength=len(score))
            return sums.astype(np.int64) if whole else sums

        sums = [summed(values) for values in (n, pos, n2, pos2)]
        there = sums[0] > 0
        if not there.all():
            score, sums = score[there], [None if values is None else values[there] for values in sums]
        n, pos, n2, pos2 = sums
        return Table(score, n, np.minimum(pos, n), n2, None if pos2 is None else np.minimum(pos2, n2))


def pair_up(a: Floats, b: Floats, label: NDArray[Any], weight: Floats | None = None) -> PairTable:
    """Rows to a pair table: scores of A and B in [0, 1], label 0/1, weight > 0 or None, shape (T,) each, T > 0."""
    a, b = a + 0.0, b + 0.0  # + 0.0 makes -0.0 the zero that it equals
    # Sorted by label and weight as well: sums of floats depend on their order, and must not depend on that of the rows.
    order = np.lexsort((b, a)) if weight is None else np.lexsort((weight, label, b, a))
    a, b, label = a[order], b[order], label[order]
    starts = np.flatnonzero(np.concatenate(([True], (a[1:] != a[:-1]) | (b[1:] != b[:-1]))))
    if weight is None:
        n = np.diff(np.append(starts, len(a)))
        return PairTable(a[starts], b[starts], n, np.add.reduceat(label, starts, dtype=np.int64))
    weight = weight[order]
    positive = weight * label
    sums = (np.add.reduceat(values, starts) for values in (weight, positive, weight**2, positive**2))
    n, pos, n2, pos2 = sums
    return PairTable(a[starts], b[starts], n, np.minimum(pos, n), n2, np.minimum(pos2, n2))


def _equal_mass(n: NDArray[Any], strip: Ints, parts: int) -> Ints:
    """The part of its strip, 0 .. parts - 1, that each entry falls into; entries sorted within strips, shape (k,)."""
    mass = n.astype(np.float64)
    to = np.cumsum(mass)
    whole = np.bincount(strip, weights=mass)
    middle = to - mass / 2 - (np.cumsum(whole) - whole)[strip]
    return np.clip((parts * middle / whole[strip]).astype(np.int64), 0, parts - 1)
