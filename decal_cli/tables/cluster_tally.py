"""Rows counted batch by batch by cluster and coarse cell of the score; the more counts there are, the coarser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.cells import MAX_SPLITS, CellTable, cell_of, coarse_cells, count_of_cells
from decal_cli.tables.coarse_clusters import CoarseClusters
from decal_cli.tables.counted_clusters import CountedRows
from decal_cli.tables.design import Floats
from decal_cli.tables.table import BLOCK, Table
from decal_cli.tables.tally import BatchRows

Ints = NDArray[np.int64]


@lru_cache(maxsize=4)
def _coarse(thresholds: tuple[float, ...], splits: int) -> Ints:
    return coarse_cells(thresholds, splits)


@dataclass(frozen=True, eq=False)
class ClusterCounts:
    """Rows of one cluster, coarse cell and label each. keys: of these three, increasing, shape (k,).

    sums: of 1, and where rows are weighted of weights and of their squares, shape (1, k) or (3, k). splits: how fine
    the coarse cells are.
    """

    keys: Ints
    sums: Floats
    splits: int

    @classmethod
    def of(cls, rows: BatchRows, thresholds: Sequence[float], splits: int) -> ClusterCounts:
        """The counts of some rows, whose clusters are known."""
        assert rows.unit is not None
        cell = _coarse(tuple(thresholds), splits)[cell_of(rows.score, thresholds)]
        keys = (rows.unit * count_of_cells(thresholds) + cell) * 2 + rows.label
        ones = np.ones(len(keys))
        sums = ones[None] if rows.weight is None else np.stack((ones, rows.weight, rows.weight**2))
        return cls._added(keys, sums, splits)

    @classmethod
    def _added(cls, keys: Ints, sums: Floats, splits: int) -> ClusterCounts:
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        return cls(keys[starts], np.add.reduceat(sums[:, order], starts, axis=1), splits)

    @classmethod
    def merged(cls, parts: Sequence[ClusterCounts], thresholds: Sequence[float], splits: int) -> ClusterCounts:
        """Several of them, in coarse cells no finer than this."""
        parts = [part.coarser(thresholds, splits) for part in parts]
        if len(parts) == 1:
            return parts[0]
        keys, sums = np.concatenate([part.keys for part in parts]), [part.sums for part in parts]
        return cls._added(keys, np.concatenate(sums, axis=1), splits)

    def coarser(self, thresholds: Sequence[float], splits: int) -> ClusterCounts:
        """The same in coarser cells."""
        if self.splits == splits:
            return self
        unit, cell, label = self.parts(thresholds)
        cell = _coarse(tuple(thresholds), splits)[cell]
        return self._added((unit * count_of_cells(thresholds) + cell) * 2 + label, self.sums, splits)

    def parts(self, thresholds: Sequence[float]) -> tuple[Ints, Ints, Ints]:
        """Of every key: the number of the cluster, the first cell of the coarse cell, and the label."""
        rest, label = np.divmod(self.keys, 2)
        unit, cell = np.divmod(rest, count_of_cells(thresholds))
        return unit, cell, label


class ClusterTally:
    """The rows of one model and group, by cluster. thresholds: edges of cells; most: counts that are kept."""

    def __init__(self, thresholds: Sequence[float], most: int) -> None:
        self.thresholds = tuple(thresholds)
        self.most = most
        self.splits = MAX_SPLITS
        self._merged: list[ClusterCounts] = []
        self._fresh: list[ClusterCounts] = []

    @property
    def known(self) -> bool:
        """Whether the rows have clusters."""
        return bool(self._merged or self._fresh)

    @property
    def coarse(self) -> bool:
        """Whether there were too many counts for cells of the finest kind."""
        return self.splits < MAX_SPLITS

    def add(self, part: ClusterCounts) -> None:
        """Add what a batch adds."""
        self._fresh.append(part)
        known = sum(len(each.keys) for each in self._merged)
        if sum(len(each.keys) for each in self._fresh) > max(known, BLOCK):
            self._merge()

    def _merge(self) -> None:
        counts = ClusterCounts.merged([*self._merged, *self._fresh], self.thresholds, self.splits)
        while len(counts.keys) > self.most and self.splits > 0:
            self.splits -= 1
            counts = counts.coarser(self.thresholds, self.splits)
        self._merged, self._fresh = [counts], []

    def clustered(self, t: Table, scale: float) -> Table:
        """The table of the same rows, counted as independent ones, with their clusters; weights are multiplied."""
        self._merge()
        counts = self._merged[0]
        unit, cell, label = counts.parts(self.thresholds)
        own = cell_of(t.least if isinstance(t, CellTable) else t.score, self.thresholds)
        numbers, coarse = np.unique(_coarse(self.thresholds, counts.splits)[own], return_inverse=True)
        counted = CountedRows(np.searchsorted(numbers, cell), unit, label, counts.sums[0])
        if len(counts.sums) > 1:
            counted = counted._replace(weight=counts.sums[1] * scale, squares=counts.sums[2] * scale**2)
        return replace(t, design=CoarseClusters.of_counts(counted, t, t.score, coarse) or t.design)
