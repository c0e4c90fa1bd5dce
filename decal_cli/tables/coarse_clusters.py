"""Rows in clusters that were counted by cluster and coarse cell of the score, too many to count by every score.

What clusters add to a variance shows between coarse cells: the variance of independent rows, plus that of the clusters
on the coarse cells, less that of independent rows on these. It is that of the rows where what is summed is the same
all over each coarse cell, as decisions are whose thresholds are edges; elsewhere it takes the rows of one cluster in
one coarse cell as independent within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables import resample as draw
from decal_cli.tables.clusters import MAX_GRAM_CELLS, Clustered, Ints, RowsOfCells
from decal_cli.tables.design import Counted, Counts, Design, Floats, Resample
from decal_cli.tables.estimate import CellRun


class CountedRows(NamedTuple):
    """All rows of one cell, cluster and label each, shape (k,).

    cell: numbers in any order. unit: any numbers of clusters. rows: how many. weight, squares: sums of their weights
    and of their squared weights, or None.
    """

    cell: Ints
    unit: Ints
    label: Ints
    rows: Floats
    weight: Floats | None = None
    squares: Floats | None = None


def clustered(counted: CountedRows, size: int, score: Floats) -> Clustered | None:
    """The design of their cells, of which there are so many; None where every cluster is one row.

    score: of each cell, shape (size,).
    """
    behind = rows_behind(counted)
    return None if behind is None else Clustered.of_rows(behind, size, score[behind.cell])


def rows_behind(counted: CountedRows) -> RowsOfCells | None:
    """The same in order of their cells, with clusters numbered from 0; None where every cluster is one row."""
    some = np.flatnonzero(counted.rows > 0)
    some = some[np.argsort(counted.cell[some], kind="stable")]
    names, unit = np.unique(counted.unit[some], return_inverse=True)
    rows = counted.rows[some]
    if len(names) == rows.sum():
        return None
    cell, label = counted.cell[some], counted.label[some]
    if counted.weight is None or counted.squares is None:
        return RowsOfCells(cell, unit, label, rows, alike=True)
    return RowsOfCells(cell, unit, label, counted.weight[some], counted.squares[some])


class Pieces(NamedTuple):
    """What cells of a table hold of coarse cells: a piece is one cell's part of one coarse cell.

    cell, coarse: shape (p,). n, squares: rows and squared weights by label, shape (2, p).
    """

    cell: Ints
    coarse: Ints
    n: Floats
    squares: Floats

    @classmethod
    def of(cls, cells: Counted, coarse: Ints) -> Pieces:
        """Cells that lie in one coarse cell each."""
        by_label = []
        for all_of, ones in ((cells.n, cells.pos), cells.squares_of_rows):
            pos = np.asarray(ones, dtype=np.float64)
            by_label.append(np.stack((np.maximum(all_of - pos, 0.0), pos)))
        return cls(np.arange(len(coarse)), coarse, *by_label)

    def placed(self, place: Ints) -> Pieces:
        """With cell i as cell place[i], or not at all where that is -1."""
        cell = place[self.cell]
        some = cell >= 0
        width = int(self.coarse.max(initial=0)) + 1
        keys, number = np.unique(cell[some] * width + self.coarse[some], return_inverse=True)
        n, squares = (_summed(values[:, some], number, len(keys)) for values in (self.n, self.squares))
        return Pieces(*np.divmod(keys, width), n, squares)


class CoarseClusters(Clustered):
    """Cells whose rows were sampled in clusters, which are known by coarse cell.

    coarse: the design of the coarse cells. pieces: of the cells; size: how many cells there are.
    """

    def __init__(self, coarse: Clustered, pieces: Pieces, size: int, effect: float = 1.0) -> None:
        super().__init__(coarse.rows, size, coarse.times, effect)
        self.coarse = coarse
        self.pieces = pieces
        self.whole = np.stack(coarse.counted(coarse.times[coarse.rows.unit]))
        n2, pos2 = coarse.own_squares
        self.whole_squares = np.stack((n2 - pos2, pos2))

    @classmethod
    def of_counts(cls, counted: CountedRows, cells: Counted, score: Floats, coarse: Ints) -> Design | None:
        """The design of some cells, each in one coarse cell; None where every cluster is one row.

        counted: rows by coarse cell. cells: counted as independent rows. score: of each cell, shape (m,).
        """
        behind = rows_behind(counted)
        if behind is None:
            return None
        units = int(behind.unit.max()) + 1
        by_coarse_cell = Clustered(behind, int(coarse.max()) + 1, np.ones(units), 1.0)
        design = cls(by_coarse_cell, Pieces.of(cells, coarse), len(coarse))
        off = np.stack((-score, 1 - score))
        design.effect = max(design.effect_on(off), 1.0)
        return design

    def effect_on(self, values: Floats) -> float:
        off = (values - self._sum(values) / float(self.pieces.n.sum()))[None, :, self.pieces.cell]
        alone = float(self._alone(off)[0, 0])
        return max(alone + float(self._between(off)[0, 0]), 0.0) / alone if alone > 0 else 1.0

    def _sum(self, values: Floats) -> float:
        return float((self.pieces.n * values[:, self.pieces.cell]).sum())

    @cached_property
    def _share(self) -> Floats:
        """The share of its coarse cell's rows of each label that a piece holds, (2, p)."""
        whole = self.whole[:, self.pieces.coarse]
        return np.divide(self.pieces.n, whole, out=np.zeros_like(whole), where=whole > 0)

    def _alone(self, of_pieces: Floats) -> Floats:
        """Sums of products of values (k, 2, p) over independent rows, (k, k)."""
        return np.asarray(np.einsum("yp,iyp,jyp->ij", self.pieces.squares, of_pieces, of_pieces, optimize=True))

    def _between(self, of_pieces: Floats) -> Floats:
        """What clusters add to that, as far as their coarse cells tell."""
        size = self.coarse.size
        means = np.stack([_summed(self._share * values, self.pieces.coarse, size) for values in of_pieces])
        rows, units = self.coarse.rows, len(self.times)
        place = rows.cell + size * (rows.label > 0)
        flat = means.reshape(len(means), -1)
        sums = np.stack([np.bincount(rows.unit, each[place] * self.coarse.weights, units) for each in flat])
        alone = np.einsum("yc,iyc,jyc->ij", self.whole_squares, means, means, optimize=True)
        return np.asarray((self.times * sums) @ sums.T - alone)

    def added(self, values: Floats) -> Floats:
        """What clusters add to sums of products of some values by label, (k, 2, m), and of 1: shape (k + 1, k + 1)."""
        return self._between(self._and_one(values))

    def _and_one(self, values: Floats) -> Floats:
        return np.concatenate((values, np.ones((1, *values.shape[1:]))))[:, :, self.pieces.cell]

    def _over_units(self, blocks: Iterable[tuple[CellRun, Sequence[Floats]]], values: int) -> Floats | None:
        columns, at = np.empty((values, 2, self.size)), 0
        for block, of_block in blocks:
            run = slice(at, at + len(block.score))
            for number, each in enumerate(of_block):
                for label in (0, 1):
                    columns[number, label, run] = each[label]
            at = run.stop
        of_pieces = self._and_one(columns)
        return self._alone(of_pieces) + self._between(of_pieces)

    def spread(self, neg: Floats, pos: Floats) -> float:
        of_pieces = np.stack((neg, pos))[None, :, self.pieces.cell]
        return max(float(self._alone(of_pieces)[0, 0] + self._between(of_pieces)[0, 0]), 0.0)

    @cached_property
    def own_squares(self) -> tuple[Floats, Floats]:
        neg2, pos2 = _summed(self.pieces.squares, self.pieces.cell, self.size) * self.effect
        return neg2 + pos2, pos2

    def _placed(self, place: Ints, size: int) -> CoarseClusters:
        return CoarseClusters(self.coarse, self.pieces.placed(place), size, self.effect)

    def resample(self, cells: Counted, rng: np.random.Generator, draws: int | None = None) -> Resample:
        """The Poisson bootstrap of clusters; and of rows, within what clusters have of a coarse cell."""
        if draws is not None:
            return super().resample(cells, rng, draws)
        times = rng.poisson(self.times).astype(np.float64)
        drawn, squares = (
            values.reshape(self.pieces.n.shape)
            for values in draw.weighted_poisson(rng, self.pieces.n.ravel(), self.pieces.squares.ravel())
        )
        n = self._within(np.stack(self.coarse.counted(times[self.rows.unit])), drawn)
        squares *= np.divide(n, drawn, out=np.zeros_like(n), where=drawn > 0)
        neg, pos = _summed(n, self.pieces.cell, self.size)
        return Resample(neg, pos, self._drawn(times, n, squares))

    def _drawn(self, times: Floats, n: Floats, squares: Floats) -> CoarseClusters:
        """Where each cluster counts so often, and pieces hold so much."""
        coarse = Clustered(self.coarse.rows, self.coarse.size, times, 1.0)
        return CoarseClusters(coarse, self.pieces._replace(n=n, squares=squares), self.size, self.effect)

    def _within(self, whole: Floats, pieces: Floats) -> Floats:
        """Counts of pieces, (.., 2, p), made to add up to those of the coarse cells, (.., 2, K)."""
        coarse, size = self.pieces.coarse, self.coarse.size
        sums = _summed(pieces.reshape(-1, pieces.shape[-1]), coarse, size).reshape(*pieces.shape[:-1], size)
        factor = np.divide(whole, sums, out=np.zeros_like(sums), where=sums > 0)
        return np.where(sums[..., coarse] > 0, pieces * factor[..., coarse], self._share * whole[..., coarse])

    def split(self, cells: Counted, rng: np.random.Generator) -> tuple[Counts, Counts]:
        neg, pos = _by_cell(self._dealt(self.fold_of_clusters(rng), rng), self.pieces.cell, self.size)
        return neg, pos

    def parts(self, cells: Counted, rng: np.random.Generator) -> list[tuple[Counts, Counts, Design]]:
        fold = self.fold_of_clusters(rng)
        dealt = self._dealt(fold, rng)
        share = np.divide(dealt, self.pieces.n, out=np.zeros_like(dealt), where=self.pieces.n > 0)
        designs = [
            self._drawn(self.times * (fold == k), n, self.pieces.squares * part)
            for k, (n, part) in enumerate(zip(dealt, share, strict=True))
        ]
        return list(zip(*_by_cell(dealt, self.pieces.cell, self.size), designs, strict=True))

    def _dealt(self, fold: Ints, rng: np.random.Generator) -> Floats:
        """Counts of pieces in each fold, (FOLDS, 2, p); fold: of each cluster."""
        whole = np.stack([np.asarray(values, dtype=np.float64) for values in self.coarse.of_folds(fold)], axis=1)
        of_pieces = zip(self.pieces.n, self.pieces.squares, strict=True)
        return self._within(whole, np.stack([draw.deal_weights(*each, rng) for each in of_pieces], axis=1))

    @cached_property
    def _gram(self) -> Floats | None:
        if self.size > MAX_GRAM_CELLS:
            return None
        from scipy.sparse import csr_matrix, diags

        size = self.coarse.size
        place = np.concatenate((self.pieces.cell, self.pieces.cell + self.size))
        within = np.concatenate((self.pieces.coarse, self.pieces.coarse + size))
        shares = csr_matrix((self._share.ravel(), (within, place)), shape=(2 * size, 2 * self.size))
        between = self.coarse.gram()
        if between is None:
            by_cluster = self.coarse.by_cluster() @ shares
            products = (by_cluster.T @ by_cluster).toarray()
        else:
            products = shares.T @ (shares.T @ between).T
        alone = (shares.T @ diags(self.whole_squares.ravel()) @ shares).toarray()
        own = np.bincount(place, self.pieces.squares.ravel(), 2 * self.size)
        return np.asarray(products - alone + np.diag(own))

    def scattered(self, cells: Counted, rng: np.random.Generator) -> tuple[Floats, Floats]:
        chance = rng.standard_normal(len(self.times)) * np.sqrt(self.times)
        whole = np.stack(self.coarse.counted(chance[self.rows.unit]))
        own = np.sqrt(self.pieces.squares) * rng.standard_normal(self.pieces.squares.shape)
        own -= self._share * _summed(own, self.pieces.coarse, self.coarse.size)[:, self.pieces.coarse]
        neg, pos = _summed(self._share * whole[:, self.pieces.coarse] + own, self.pieces.cell, self.size)
        return neg, pos


def _summed(values: Floats, place: NDArray[np.int64], size: int) -> Floats:
    """Sums of the last axis by place, shape (k, size)."""
    return np.stack([np.bincount(place, each, size).astype(np.float64) for each in values])


def _by_cell(of_pieces: Floats, cell: Ints, size: int) -> Floats:
    """Counts of pieces in folds, (FOLDS, 2, p), by label, fold and cell: shape (2, FOLDS, size)."""
    return np.stack([_summed(of_label, cell, size) for of_label in of_pieces.swapaxes(0, 1)])
