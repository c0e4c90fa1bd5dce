"""Rows counted batch by batch, with memory that does not grow with them: exact levels while they fit, else cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.cells import N_POWERS, N_SUMS, CellTable, cell_of, count_of_cells, log_losses
from decal_cli.tables.design import Weighted
from decal_cli.tables.table import BLOCK, Floats, Table

N_LEVELS = 1 << 20
"""Distinct scores that are kept, of all models and groups together; of more, cells."""
_BLOCK = 1 << 17
"""Rows that are added at once: about as many as there are sums of a power, so that adding these costs little, and few
enough for the cache of a processor."""


@dataclass(frozen=True, eq=False)
class BatchRows:
    """Some rows. score: float64 (k,); label: 0 or 1; weight: float64, or None; unit: numbers of clusters, or None."""

    score: Floats
    label: NDArray[Any]
    weight: Floats | None = None
    unit: NDArray[np.int64] | None = None

    def take(self, which: NDArray[Any] | slice) -> BatchRows:
        """These rows, by mask, index or slice."""
        weight = None if self.weight is None else self.weight[which]
        return BatchRows(self.score[which], self.label[which], weight, None if self.unit is None else self.unit[which])

    @classmethod
    def joined(cls, parts: Sequence[BatchRows]) -> BatchRows:
        """All rows of several batches."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([each.score for each in parts]),
            np.concatenate([each.label for each in parts]),
            *(_joined([getattr(each, name) for each in parts]) for name in ("weight", "unit")),
        )


def _joined(columns: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    known = [column for column in columns if column is not None]
    return np.concatenate(known) if known else None


class CellSums:
    """Sums of the rows of cells, by label: shape (N_SUMS, k); squares: the same of squared weights.

    at: which cells, counted through those of label 0 and then those of label 1; None: all of them. least, greatest:
    scores of their rows, infinite where there is none, shape (k,).
    """

    def __init__(self, at: NDArray[np.int64] | None, wide: int, weighted: bool) -> None:
        self.at = at
        self.sums = np.zeros((N_SUMS, wide))
        self.squares = np.zeros((N_SUMS, wide)) if weighted else None
        self.least = np.full(wide, np.inf)
        self.greatest = np.full(wide, -np.inf)

    @classmethod
    def of(cls, rows: BatchRows, thresholds: Sequence[float]) -> CellSums:
        """The sums of some rows."""
        return cls._of(rows, None if rows.weight is None else rows.weight**2, thresholds)

    @classmethod
    def of_levels(cls, t: Table, thresholds: Sequence[float]) -> CellSums:
        """The sums of the rows of a table, in all cells."""
        total = cls.none(thresholds, t.weighted)
        n2, pos2 = t.n2, t.pos2
        for label, n, squares in ((0, t.n - t.pos, n2 - pos2), (1, t.pos, pos2)):
            some = np.asarray(n) > 0
            labels = np.full(int(np.count_nonzero(some)), label, dtype=np.uint8)
            rows = BatchRows(t.score[some], labels, n[some].astype(np.float64))
            total.add(cls._of(rows, np.asarray(squares[some], dtype=np.float64) if t.weighted else None, thresholds))
        return total

    @classmethod
    def none(cls, thresholds: Sequence[float], weighted: bool) -> CellSums:
        """All cells, without rows."""
        return cls(None, 2 * count_of_cells(thresholds), weighted)

    @classmethod
    def _of(cls, rows: BatchRows, squares: Floats | None, thresholds: Sequence[float]) -> CellSums:
        """squares: of the weights; None: their sums are not kept."""
        weighted = squares is not None
        if len(rows.label) < count_of_cells(thresholds):
            at, place = np.unique(_places(rows, thresholds), return_inverse=True)
            counted = cls(at, len(at), weighted)
            counted._count(place, rows, squares)
            return counted
        counted = cls.none(thresholds, weighted)
        for start in range(0, len(rows.label), _BLOCK):
            part = slice(start, start + _BLOCK)
            block = rows.take(part)
            counted._count(_places(block, thresholds), block, None if squares is None else squares[part])
        return counted

    def _count(self, place: NDArray[np.int64], rows: BatchRows, squares: Floats | None) -> None:
        """Add rows at these places."""
        score, loss = rows.score, log_losses(rows.score, rows.label)
        for sums, weight in ((self.sums, rows.weight), (self.squares, squares)):
            if sums is None:
                continue
            term = np.ones(len(score)) if weight is None else weight.copy()
            for k, factor in enumerate((None, *(score,) * (N_POWERS - 1), loss, loss)):
                if k == N_POWERS:
                    term[:] = 1.0 if weight is None else weight
                if factor is not None:
                    term *= factor
                sums[k] += np.bincount(place, term, sums.shape[1])
        np.minimum.at(self.least, place, score)
        np.maximum.at(self.greatest, place, score)

    def add(self, other: CellSums) -> None:
        """Add the rows of others to all cells."""
        which = slice(None) if other.at is None else other.at
        self.sums[:, which] += other.sums
        if self.squares is not None and other.squares is not None:
            self.squares[:, which] += other.squares
        self.least[which] = np.minimum(self.least[which], other.least)
        self.greatest[which] = np.maximum(self.greatest[which], other.greatest)

    def table(self, scale: float) -> Table:
        """The cells that have rows."""
        shape = (N_SUMS, 2, self.sums.shape[1] // 2)
        sums = self.sums.reshape(shape)
        some = sums[0].sum(axis=0) > 0
        sums = sums[:, :, some].swapaxes(0, 1) * scale
        squares = self.squares
        if squares is not None:
            squares = squares.reshape(shape)[:, :, some].swapaxes(0, 1) * scale**2
        least, greatest = self.least.reshape(shape[1:]).min(axis=0), self.greatest.reshape(shape[1:]).max(axis=0)
        return CellTable.of_sums(least[some], greatest[some], sums, squares)


def _places(rows: BatchRows, thresholds: Sequence[float]) -> NDArray[np.int64]:
    """The cell of each row; those of label 1 come after all of label 0."""
    place = cell_of(rows.score, thresholds)
    place += np.multiply(rows.label, count_of_cells(thresholds), dtype=np.int64)
    return place


class Tally:
    """The rows of one model and group, counted. thresholds: edges of cells; most: levels that are kept."""

    def __init__(self, thresholds: Sequence[float], most: int) -> None:
        self.thresholds = thresholds
        self.most = most
        self.rows = self.ones = 0
        self.weight = 0.0
        self.cells: CellSums | None = None
        self._merged: list[Table] = []
        self._fresh: list[Table] = []

    def add(self, part: Table | CellSums, rows: int, ones: int, weight: float) -> None:
        """Add what a batch adds."""
        self.rows, self.ones, self.weight = self.rows + rows, self.ones + ones, self.weight + weight
        if isinstance(part, CellSums):
            assert self.cells is not None
            self.cells.add(part)
        elif self.cells is not None:
            self.cells.add(CellSums.of_levels(part, self.thresholds))
        else:
            self._fresh.append(part)
            known = sum(map(len, self._merged))
            if sum(map(len, self._fresh)) > max(known, BLOCK):
                self._merge()

    def _merge(self) -> None:
        if len(self._merged) + len(self._fresh) > 1:
            self._merged = [Table.merge([*self._merged, *self._fresh])]
        else:
            self._merged = [*self._merged, *self._fresh]
        self._fresh = []
        if len(self._merged[0]) > self.most:
            self.cells = CellSums.of_levels(self._merged[0], self.thresholds)
            self._merged = []

    @property
    def scale(self) -> float:
        """One over the power of two nearest to the mean weight, by which weights are multiplied as those in memory."""
        return 1.0 if not self.weight else float(2.0 ** -round(np.log2(self.weight / self.rows)))

    def counted(self) -> Table:
        """The rows, with weights as those in memory have them."""
        if self.cells is None:
            self._merge()
        if self.cells is not None:
            return self.cells.table(self.scale)
        return _scaled(self._merged[0], self.scale)


def _scaled(t: Table, scale: float) -> Table:
    """The table of the same rows with weights times a power of two."""
    if scale == 1.0:
        return t
    return Table(t.score, t.n * scale, t.pos * scale, Weighted(t.n2 * scale**2, t.pos2 * scale**2))
