"""Rows that were sampled in clusters: the visits of a patient, the answers to a question.

The cluster is the unit that is independent. Errors of means sum over clusters (sandwich, no small-sample factor),
resamples draw clusters, and folds keep them whole. What else there is of intervals rests on effective rows, which are
the rows over the design effect of label less score: how much larger the variance of its mean is than that of as many
independent rows.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.limits import MIN_RISK
from decal_cli.tables import resample as draw
from decal_cli.tables.design import Counted, Counts, Design, Floats, Replicates, Resample, as_weighted
from decal_cli.tables.estimate import dot
from decal_cli.tables.threads import one_thread

Ints = NDArray[np.int64]

MIN_CLUSTERS = draw.FOLDS
"""Effective clusters below which there is no interval, and clusters below which none can be held out."""
FEW_CLUSTERS = 30
"""Effective clusters below which intervals of clustered rows are rough."""
MAX_DENSE = 1 << 21
"""Clusters times cells up to which their counts are held as a whole matrix."""
MAX_ROUNDING = 1e-9
"""Parts of rows that are less come of sums of floats, which are added up in several orders."""
MAX_POINTS = 4
"""Scores that all rows of one cluster, cell and label are taken to have at most."""
MAX_GRAM_CELLS = 1024
"""Cells up to which every pair of them has its covariance."""


class RowsOfCells(NamedTuple):
    """The rows behind the cells of a table, in order of their cells: cell, cluster, label, weight and its square.

    Of rows that were counted an entry is all rows of one cell, cluster and label, with the sums of both. weighted:
    whether rows have weights of their own.
    """

    cell: Ints
    unit: Ints
    label: NDArray[Any]
    weight: Floats
    square: Floats
    weighted: bool

    @classmethod
    def of(cls, cell: Ints, unit: Ints, label: NDArray[Any], weight: Floats | None) -> RowsOfCells:
        """Rows that are held each, with weights, or None where each counts one."""
        each = np.ones(len(cell)) if weight is None else weight
        return cls(cell, unit, label, each, each**2, weight is not None)

    def take(self, which: NDArray[Any]) -> RowsOfCells:
        """Some of the rows, by mask or index."""
        weight, square = self.weight[which], self.square[which]
        return RowsOfCells(self.cell[which], self.unit[which], self.label[which], weight, square, self.weighted)


class Clustered(Design):
    """Rows were sampled in clusters. times: how often each cluster was drawn, (G,). effect: of squared weights.

    size: the number of cells.
    """

    plain = False
    clustered = True

    def __init__(self, rows: RowsOfCells, size: int, times: Floats, effect: float) -> None:
        self.rows = rows
        self.size = size
        self.times = times
        self.effect = effect
        self.weighted = rows.weighted
        self._residuals: tuple[Floats, Floats] | None = None

    @classmethod
    def of_rows(cls, rows: RowsOfCells, size: int, score: Floats) -> Clustered:
        """Each cluster drawn once. score: of every row."""
        times = np.ones(int(rows.unit.max()) + 1)
        effect = design_effect(rows.label - score, rows.weight, rows.unit, rows.square)
        return cls(rows, size, times, max(effect, 1.0))

    @cached_property
    def _times_of_rows(self) -> Floats | float:
        """How often the cluster of each row was drawn; 1 where each was drawn once, which needs no look at the rows."""
        return 1.0 if (self.times == 1).all() else self.times[self.rows.unit]

    @cached_property
    def _totals(self) -> Floats:
        """Summed weight of each cluster, shape (G,)."""
        return np.bincount(self.rows.unit, self.rows.weight, len(self.times)).astype(np.float64)

    def effect_on(self, values: Floats) -> float:
        """The design effect on the mean of a value of each label and cell, (2, m)."""
        rows = self.rows
        of_rows = values[(rows.label > 0).astype(np.intp), rows.cell]
        return design_effect(of_rows, rows.weight, rows.unit, rows.square)

    @property
    def clusters(self) -> int:
        """Clusters that have rows."""
        return int(np.count_nonzero((self._totals > 0) & (self.times > 0)))

    @property
    def effective_clusters(self) -> float:
        """As many clusters of one size say as much."""
        return float((self.times @ self._totals) ** 2 / (self.times @ self._totals**2))

    def confidence(self, confidence: float) -> float | None:
        return confidence_of(self.effective_clusters, confidence)

    @cached_property
    def _own(self) -> tuple[Floats, Floats]:
        """Squared weights of each cell, of all rows and of those with label 1; the design effect counts them up."""
        rows = self.rows
        each = rows.square * self._times_of_rows * self.effect
        pos2 = np.bincount(rows.cell, each * rows.label, self.size).astype(np.float64)
        n2 = np.bincount(rows.cell, each, self.size).astype(np.float64)
        return n2, np.minimum(pos2, n2)

    def own_squares(self, cells: Counted) -> tuple[Counts, Counts]:
        return self._own

    def taken(self, which: NDArray[Any]) -> Design:
        kept = np.arange(self.size)[which]
        place = np.full(self.size, -1)
        place[kept] = np.arange(len(kept))
        return self._placed(place, len(kept))

    def merged(self, starts: NDArray[Any]) -> Design:
        place = np.zeros(self.size, dtype=np.int64)
        place[starts[1:]] = 1
        return self._placed(np.cumsum(place), len(starts))

    def grouped(self, place: NDArray[Any], groups: int) -> Design:
        return self._placed(place, groups)

    def _placed(self, place: Ints, size: int) -> Clustered:
        """Cell i as cell place[i], or not at all where that is -1."""
        rows = self.rows._replace(cell=place[self.rows.cell])
        if (rows.cell < 0).any():
            rows = rows.take(rows.cell >= 0)
        if (np.diff(rows.cell) < 0).any():
            rows = rows.take(np.argsort(rows.cell, kind="stable"))
        return Clustered(rows, size, self.times, self.effect)

    def counted(self, per_row: Floats) -> tuple[Floats, Floats]:
        """Sums over the rows of each cell, of label 0 and of label 1, of their weights times this."""
        rows = self.rows
        place = rows.cell + self.size * (rows.label > 0)
        sums = np.bincount(place, self.rows.weight * per_row, 2 * self.size).astype(np.float64)
        return sums[: self.size], sums[self.size :]

    def resample(self, cells: Counted, rng: np.random.Generator, draws: int | None = None) -> Resample:
        """The Poisson bootstrap of clusters."""
        if draws is not None:
            each = [self.resample(cells, rng) for _ in range(draws)]
            return Resample(np.stack([one.neg for one in each]), np.stack([one.pos for one in each]), self)
        times = rng.poisson(self.times).astype(np.float64)
        neg, pos = self.counted(times[self.rows.unit])
        return Resample(neg, pos, Clustered(self.rows, self.size, times, self.effect))

    def need_folds(self) -> None:
        if self.clusters < draw.FOLDS:
            raise Undefined(f"needs at least {draw.FOLDS} clusters to learn from some and judge on others")

    def fold_of_clusters(self, rng: np.random.Generator) -> Ints:
        """The fold of each cluster."""
        self.need_folds()
        return rng.permutation(len(self.times)) % draw.FOLDS

    def split(self, cells: Counted, rng: np.random.Generator) -> tuple[Counts, Counts]:
        return self.of_folds(self.fold_of_clusters(rng))

    def of_folds(self, fold: Ints) -> tuple[Counts, Counts]:
        """Negatives and positives of each cell in each fold, (FOLDS, m); fold: of each cluster."""
        rows, shape = self.rows, (draw.FOLDS, self.size)
        place = rows.cell + self.size * fold[rows.unit]
        number = place + draw.FOLDS * self.size * (rows.label > 0)
        sums = np.bincount(number, rows.weight, 2 * draw.FOLDS * self.size)
        neg, pos = np.split(sums if self.weighted else sums.astype(np.int64), 2)
        return neg.reshape(shape), pos.reshape(shape)

    def parts(self, cells: Counted, rng: np.random.Generator) -> list[tuple[Counts, Counts, Design]]:
        fold = self.fold_of_clusters(rng)
        designs = []
        for k in range(draw.FOLDS):
            designs.append(Clustered(self.rows, self.size, self.times * (fold == k), self.effect))
        return list(zip(*self.of_folds(fold), designs, strict=True))

    def relabelled(self, cells: Counted, rng: np.random.Generator, chance: Floats) -> tuple[Counts, Design]:
        """Positives that vary together as what the labels of clusters differ from these chances by.

        Of too many cells, as many labels as there are effective rows, drawn independently.
        """
        root = self._root_of_residuals(chance)
        if root is None:
            return as_weighted(cells).relabelled(cells, rng, chance)
        # Not by the linear algebra library: in many small products its threads only wait for each other.
        off = np.einsum("ij,j->i", root, rng.standard_normal(len(root)))
        return np.clip(cells.n * chance + off, 0.0, cells.n), self

    def _root_of_residuals(self, chance: Floats) -> Floats | None:
        """A root of the covariance of what positives differ from these chances by, kept for the next draw."""
        if self._residuals is None or not np.array_equal(self._residuals[0], chance):
            products = self.gram()
            if products is None:
                return None
            self._residuals = chance, root_of(residual_products(products, chance))
        return self._residuals[1]

    def part(self, cells: Counted, neg: Floats, pos: Floats) -> Design:
        return as_weighted(cells).part(cells, neg, pos)

    def squares(self, weight: Floats) -> Floats:
        n2, pos2 = self._own
        return np.concatenate((n2 - pos2, pos2))

    def covariance(self, influence: Floats, weight: Floats) -> Floats:
        rows = self.rows
        place = rows.cell + self.size * (rows.label > 0)
        units = len(self.times)
        sums = np.stack([np.bincount(rows.unit, each[place] * self.rows.weight, units) for each in influence])
        return np.asarray((self.times * sums) @ sums.T)

    def between(self, values: Floats) -> float:
        """What clusters add to the variance of the sum of a value of each label and cell, (2, m)."""
        influence = values.ravel()
        alone = float(self.squares(influence) @ influence**2) / self.effect
        return float(self.covariance(influence[None], influence)[0, 0]) - alone

    def gram(self) -> Floats | None:
        return self._gram

    @cached_property
    def _gram(self) -> Floats | None:
        if self.size > MAX_GRAM_CELLS:
            return None
        rows = self.rows
        weight = self.rows.weight * np.sqrt(self._times_of_rows)
        place = rows.cell + self.size * (rows.label > 0)
        if len(self.times) * self.size <= MAX_DENSE:
            size = 2 * self.size
            sums = np.bincount(rows.unit * size + place, weight, len(self.times) * size).reshape(-1, size)
            return np.asarray(sums.T @ sums)
        from scipy.sparse import csr_matrix

        # A cluster that was drawn several times counts by the root of it, so that products count by it.
        counts = csr_matrix((weight, (rows.unit, place)), shape=(len(self.times), 2 * self.size))
        return np.asarray((counts.T @ counts).toarray())

    def scattered(self, cells: Counted, rng: np.random.Generator) -> tuple[Floats, Floats]:
        chance = rng.standard_normal(len(self.times)) * np.sqrt(self.times)
        return self.counted(chance[self.rows.unit])

    def replicates(
        self, cells: Counted, chance: Floats, times: int, folds: int, rng: np.random.Generator
    ) -> Replicates:
        """Normal, with the covariance of the clusters' counts in the cells."""
        root = self._root
        if root is None:
            return as_weighted(cells).replicates(cells, chance, times, folds, rng)
        mean = np.concatenate((cells.n * (1 - chance), cells.n * chance)) / folds
        off = rng.standard_normal((times, folds, len(root)))
        with one_thread():
            counts = mean + off @ root.T / math.sqrt(folds)
        return Replicates(counts[..., : self.size], counts[..., self.size :], 1.0)

    @cached_property
    def _root(self) -> Floats | None:
        """Of the covariance of the clusters' counts in the cells."""
        covariance = self.gram()
        return None if covariance is None else root_of(covariance)


def root_of(covariance: Floats) -> Floats:
    """A root R of a covariance R R', (m, m), by its axes: rounding may leave it a little short of definite."""
    with one_thread():
        strength, axes = np.linalg.eigh(covariance)
    root: Floats = axes * np.sqrt(np.maximum(strength, 0.0))
    return root


def confidence_of(effective: float, confidence: float) -> float | None:
    """The confidence at which the normal quantile is the t quantile of so many effective clusters less one.

    None where there are too few of them for any interval.
    """
    if effective < MIN_CLUSTERS:
        return None
    from scipy.special import ndtr, stdtrit

    reach = stdtrit(effective - 1, (1 + confidence) / 2)
    return min(float(2 * ndtr(reach) - 1), 1 - MIN_RISK)


def residual_products(products: Floats, chance: Floats) -> Floats:
    """Products of labels less these chances, (m, m), from those of the counts of both labels, (2m, 2m)."""
    m = len(chance)
    neg_neg, neg_pos, pos_pos = products[:m, :m], products[:m, m:], products[m:, m:]
    mixed = np.outer(chance, 1 - chance) * neg_pos
    both: Floats = np.outer(chance, chance) * neg_neg + np.outer(1 - chance, 1 - chance) * pos_pos
    return both - mixed - mixed.T


def design_effect(values: Floats, weight: Floats | None, unit: Ints, squared: Floats | None = None) -> float:
    """Variance of the weighted mean of rows in clusters over that of independent rows; shape (T,) each.

    squared: squared weights, of rows that were counted the sums of them.
    """
    w = np.ones(len(values)) if weight is None else weight
    each = values - dot(w, values) / float(w.sum())
    off = w * each
    alone = dot(off, off) if squared is None else dot(squared * each, each)
    together = np.bincount(unit, off).astype(np.float64)
    return dot(together, together) / alone if alone > 0 else 1.0


def places(unit: Ints | None, rows: int, rng: np.random.Generator, parts: int) -> Ints:
    """Random places of rows, from 0; modulo the number of parts they are parts, and clusters stay whole."""
    if unit is None:
        return rng.permutation(rows)
    clusters = int(unit.max()) + 1
    if clusters < parts:
        raise Undefined(f"needs at least {parts} clusters to learn from some and judge on others")
    place = rng.permutation(clusters)[unit]
    return (place * rows // clusters) // parts * parts + place % parts


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

    def design(self, size: int, score: Floats) -> Clustered | None:
        """The design of so many cells, each of which has a score, (size,); None where every cluster is one row."""
        some = np.flatnonzero(self.rows > 0)
        some = some[np.argsort(self.cell[some], kind="stable")]
        names, unit = np.unique(self.unit[some], return_inverse=True)
        if len(names) == round(float(self.rows.sum())):
            return None
        cell, label = self.cell[some], self.label[some]
        if self.weight is None or self.squares is None:
            behind = RowsOfCells(cell, unit, label, self.rows[some], self.rows[some], False)
        else:
            behind = RowsOfCells(cell, unit, label, self.weight[some], self.squares[some], True)
        return Clustered.of_rows(behind, size, score[cell])

    def parted(self, cells: Floats, mean: Floats, spread: Floats, ends: tuple[Floats, Floats]) -> CountedRows:
        """The same by the cells within their cells, which have so much weight of each label, (2, m), in order.

        mean, spread, ends: of the scores of these rows, their standard deviation, the least and the greatest, (k,). The
        rows of a label go to the parts in order of their scores, which are taken to be as far apart as they spread. So
        each is where it belongs where one or two rows are counted at a time, and nearly there where more are.
        """
        parts = []
        for label, of_parts in enumerate(cells):
            some = np.flatnonzero((self.label == label) & (self.rows > 0))
            points = np.minimum(self.rows[some], MAX_POINTS).astype(np.int64)
            mine = np.repeat(some, points)
            number = np.arange(len(mine)) - np.repeat(np.cumsum(points) - points, points)
            points = np.repeat(points, points)
            off = (number - (points - 1) / 2) / np.sqrt(np.maximum(points**2 - 1, 1) / 12)
            score = np.clip(mean[mine] + spread[mine] * off, ends[0][mine], ends[1][mine])
            order = np.lexsort((self.unit[mine], score))
            if self.weight is None:
                # Whole numbers of rows stay whole.
                weight = self.rows[mine] * (number + 1) // points - self.rows[mine] * number // points
            else:
                weight = self.weight[mine] / points
            mine, of_rows, of_cells = mine[order], np.cumsum(weight[order]), np.cumsum(of_parts)
            cuts = np.union1d(of_rows, of_cells)
            size = np.diff(cuts, prepend=0.0)
            entry = np.searchsorted(of_rows, cuts - size / 2, side="right")
            cell = np.searchsorted(of_cells, cuts - size / 2, side="right")
            within = (entry < len(mine)) & (cell < len(of_parts))
            from_, size, cell = mine[entry[within]], size[within], cell[within]
            share = size / (self.rows if self.weight is None else self.weight)[from_]
            kept = share > MAX_ROUNDING
            parts.append((cell[kept], from_[kept], share[kept]))
        cell, entry, share = (np.concatenate(each) for each in zip(*parts, strict=True))
        again = CountedRows(cell, self.unit[entry], self.label[entry], self.rows[entry] * share)
        if self.weight is None or self.squares is None:
            return again
        return again._replace(weight=self.weight[entry] * share, squares=self.squares[entry] * share)
