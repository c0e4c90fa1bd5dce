"""Rows counted batch by batch, with memory that does not grow with them: exact levels while they fit, else cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.cells import N_POWERS, N_SUMS, CellTable, cell_of, edges, log_losses
from decal_cli.tables.design import Weighted
from decal_cli.tables.table import BLOCK, Floats, Table

N_LEVELS = 1 << 20
"""Distinct scores that are kept, of all models and groups together; of more, cells."""


@dataclass(frozen=True, eq=False)
class BatchRows:
    """Some rows. score: float64 (k,); label: 0 or 1; weight: float64, or None; unit: numbers of clusters, or None."""

    score: Floats
    label: NDArray[Any]
    weight: Floats | None = None
    unit: NDArray[np.int64] | None = None

    def take(self, which: NDArray[Any]) -> BatchRows:
        """These rows, by mask or index."""
        weight, unit = (None if each is None else each[which] for each in (self.weight, self.unit))
        return BatchRows(self.score[which], self.label[which], weight, unit)

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

    def __init__(self, at: NDArray[np.int64] | None, sums: Floats, squares: Floats | None) -> None:
        self.at = at
        self.sums = sums
        self.squares = squares
        self.least = np.full(sums.shape[1], np.inf)
        self.greatest = np.full(sums.shape[1], -np.inf)

    @classmethod
    def of(cls, rows: BatchRows, thresholds: Sequence[float]) -> CellSums:
        """The sums of some rows."""
        loss = log_losses(rows.score, rows.label)
        return cls._of(rows.score, rows.label, loss, (rows.weight, None), thresholds)

    @classmethod
    def of_levels(cls, t: Table, thresholds: Sequence[float]) -> CellSums:
        """The sums of the rows of a table, in all cells."""
        total = cls.none(thresholds, t.weighted)
        n2, pos2 = t.n2, t.pos2
        for label, n, squares in ((0, t.n - t.pos, n2 - pos2), (1, t.pos, pos2)):
            some = np.asarray(n) > 0
            score, labels = t.score[some], np.full(int(np.count_nonzero(some)), label)
            weights = n[some].astype(np.float64), np.asarray(squares[some], dtype=np.float64) if t.weighted else None
            total.add(cls._of(score, labels, log_losses(score, labels), weights, thresholds))
        return total

    @classmethod
    def none(cls, thresholds: Sequence[float], weighted: bool) -> CellSums:
        """All cells, without rows."""
        sums, squares = np.zeros((2, N_SUMS, 2 * len(edges(thresholds)[0])))
        return cls(None, sums, squares if weighted else None)

    @classmethod
    def _of(
        cls,
        score: Floats,
        label: NDArray[Any],
        loss: Floats,
        weights: tuple[Floats | None, Floats | None],
        thresholds: Sequence[float],
    ) -> CellSums:
        """weights: and what stands for their squares, where that is not their square."""
        cells = len(edges(thresholds)[0])
        place, wide, at = cell_of(score, thresholds), 2 * cells, None
        place += np.asarray(label, dtype=np.int64) * cells
        if len(place) < cells:
            at, place = np.unique(place, return_inverse=True)
            wide = len(at)
        weight, second = weights
        if second is None and weight is not None:
            second = weight**2
        terms = [None, *(score**power for power in range(1, N_POWERS)), loss, loss**2]
        sums = np.empty((N_SUMS, wide))
        squares = None if second is None else np.empty((N_SUMS, wide))
        for k, term in enumerate(terms):
            sums[k] = np.bincount(place, _times(weight, term), wide)
            if squares is not None:
                squares[k] = np.bincount(place, _times(second, term), wide)
        counted = cls(at, sums, squares)
        np.minimum.at(counted.least, place, score)
        np.maximum.at(counted.greatest, place, score)
        return counted

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


def _times(weight: Floats | None, term: Floats | None) -> Floats | None:
    if weight is None or term is None:
        return weight if term is None else term
    return weight * term


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
