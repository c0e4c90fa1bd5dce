"""How rows were sampled, and what follows: resamples, folds, errors.

A design is a part of its table: every table made from another (bins, a fold, a resample) has errors of its own. Rows
are sampled each by itself, or in clusters, such as visits of a patient. Errors of means sum over clusters (sandwich, no
small-sample factor), resamples draw them, folds keep them whole. Other intervals count rows over the design effect of
label less score.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.limits import MIN_RISK
from decal_cli.tables import resample as draw
from decal_cli.tables.estimate import CellRun, counted_rows, dot, ratio
from decal_cli.tables.threads import MANY, meanwhile, one_thread
from decal_cli.tables.units import (
    Floats,
    Independent,
    Ints,
    Products,
    Sampling,
    Units,
    begins_of,
    ones,
    runs,
    squares_about,
    squares_of,
    summed,
)

Counts = NDArray[Any]
"""Rows as int64, or their weights as float64."""
MIN_CLUSTERS = draw.FOLDS
"""Effective clusters below which there is no interval, and clusters below which none can be held out."""
FEW_CLUSTERS = 30
"""Effective clusters below which intervals of clustered rows are rough."""
MAX_DENSE = 1 << 24
"""Clusters times cells whose counts are held as a whole matrix at a time."""
FEW_PRODUCTS, DENSE = 1 << 31, 30
"""Counts of clusters are multiplied as dense matrices up to FEW_PRODUCTS products, or DENSE times the pairs of rows
within clusters; above both as sparse ones, which take longer for each product."""
MAX_WHOLE = 1 << 24
"""Whole numbers up to this one are exact in 32 bits, in which matrices are multiplied in half the time."""
MAX_ROUNDING = 1e-9
"""A smaller part of a row is rounding: sums of floats are added up in several orders."""
MAX_POINTS = 4
"""Scores that all rows of one cluster, cell and label are taken to have at most."""
MAX_GRAM_CELLS = 1024
"""Cells up to which every pair of them has its covariance."""


class Counted:
    """Cells with their rows and positives: what tables and tables of pairs have in common.

    n, pos: shape (m,), n > 0, 0 <= pos <= n: rows and positives, or their summed weights.
    """

    n: Counts
    pos: Counts
    design: Design

    @cached_property
    def total(self) -> float:
        """Rows, or their summed weight."""
        return float(self.n.sum(dtype=np.float64))

    @cached_property
    def positives(self) -> float:
        """Rows with label 1, or their summed weight."""
        return float(self.pos.sum(dtype=np.float64))

    @cached_property
    def negatives(self) -> float:
        """Rows with label 0, or their summed weight, which a difference of sums would round."""
        if self.n.dtype.kind == "f":
            return float((self.n - self.pos).sum())
        return self.total - self.positives

    @property
    def base_rate(self) -> float:
        """Share of label 1."""
        return self.positives / self.total

    @property
    def weighted(self) -> bool:
        """Whether n and pos are sums of weights; else they are counts of rows."""
        return self.design.weighted

    @property
    def of_labels(self) -> tuple[Floats, Floats]:
        """Rows of label 0 and of label 1 in each cell, or their summed weights, shape (m,) each."""
        pos = np.asarray(self.pos, dtype=np.float64)
        return self.n - pos, pos

    @property
    def squares_of_labels(self) -> tuple[Floats, Floats]:
        """Sums of squared weights of the rows of label 0 and of label 1 in each cell, shape (m,) each."""
        return self.design.of_labels or self.of_labels

    @property
    def squares_of_rows(self) -> tuple[Counts, Counts]:
        """Sums of squared weights in each cell, of all and of those with label 1; where every row is one, counts."""
        return self.design.own or (self.n, self.pos)

    @property
    def n2(self) -> Counts:
        """Sum of squared weights in each cell, shape (m,)."""
        return self.squares_of_rows[0]

    @property
    def pos2(self) -> Counts:
        """Sum of squared weights of the rows with label 1 in each cell, shape (m,)."""
        return self.squares_of_rows[1]

    @cached_property
    def effective_rows(self) -> float:
        """Effective rows: (sum w)^2 / sum w^2, which is the rows where w = 1; for clusters over the design effect."""
        if self.design.plain:
            return self.total
        return counted_rows(self.total * self.total / float(self.design.sums_of_labels.sum()))

    @property
    def fewer_rows(self) -> float:
        """Effective rows of the label that has fewer, whatever share of a population they stand for."""
        return counted_rows(float(np.min(np.array((self.negatives, self.positives)) / self.unit_of_labels)))

    @property
    def rows_of_cells(self) -> Floats:
        """Effective rows of each cell, shape (m,)."""
        n = np.asarray(self.n, dtype=np.float64)
        return n if self.design.plain else n**2 / self.n2

    @property
    def unit(self) -> float:
        """Weight of one effective row."""
        return 1.0 if self.design.plain else float(self.design.sums_of_labels.sum()) / self.total

    @property
    def unit_of_labels(self) -> Floats:
        """Weight of one effective row of label 0 and of label 1, shape (2,): a known share makes the two differ."""
        if self.design.plain:
            return np.ones(2)
        return np.maximum(self.design.sums_of_labels, 1e-300) / np.maximum((self.negatives, self.positives), 1e-300)

    @cached_property
    def units(self) -> Units:
        """The rows of label 0 of each cell, then those of label 1."""
        return CellUnits(self)

    def decided(self, action: Callable[[], Ints], weight: Floats, others: Any = False) -> tuple[Units, Ints]:
        """The rows of each action and label as units, of all actions that some row gets, and the action of each.

        action: returns the action of each cell, shape (m,). weight: of each action and label, shape (actions, 2).
        others: whether a row that could have been missed may get an action, bool (actions,).
        """
        used = np.flatnonzero(weight.any(axis=1) | others)
        design = self.design if self.design.plain else self.design.grouped(action(), len(weight))
        design = design if len(used) == len(weight) else design.select(used)
        units = design.units_of(weight[used].T, self.design.share_known)
        return replace(units, kind=np.arange(len(units))), np.tile(used, 2)

    def split(self, rng: np.random.Generator) -> tuple[Counts, Counts]:
        """The rows of each cell dealt to folds: negatives and positives, shape (FOLDS, m) each."""
        return self.design.split(self, rng)


class CellUnits(Units):
    """A unit for the rows of each cell and label, made when one looks at them: a table may have many cells."""

    def __init__(self, cells: Counted) -> None:
        vars(self).update(cells=cells, sampling=cells.design, share_known=cells.design.share_known)

    cells: Counted

    @cached_property
    def label(self) -> Ints:
        return np.repeat((0, 1), len(self.cells.n))

    @cached_property
    def weight(self) -> Floats:
        return np.concatenate(self.cells.of_labels)

    @cached_property
    def rows(self) -> float:
        return self.cells.effective_rows

    @cached_property
    def total(self) -> float:
        return self.cells.total

    def weight_of(self, label: int) -> float:
        return self.cells.positives if label else self.cells.negatives


class Moments(NamedTuple):
    """Sums of a value of each row, by label: weighted, (2,); and of squared weights times value^0, 1 and 2, (2, 3).

    sums, weights: where rows are in clusters, the weighted sums of the value and the summed weights by label and
    cluster, (2, G). times: how often each cluster was drawn, (G,).
    """

    first: Floats
    squares: Floats
    sums: Floats = np.empty((2, 0))
    weights: Floats = np.empty((2, 0))
    times: Floats = np.empty(0)

    def spread(self, centre: Floats, scale: Floats) -> float:
        """Sum over clusters of the square of their summed deviations from a centre.

        centre, scale: of each label, (2,) each; the deviations of a label are multiplied by its scale.
        """
        sums = scale @ (self.sums - centre[:, None] * self.weights)
        return float((self.times * sums) @ sums)

    def between(self, centre: Floats) -> float:
        """What clusters add to the variance of the sum of deviations from a centre of each label, (2,)."""
        alone = float(squares_about(centre, self.squares).sum()) if len(self.times) else 0.0
        return self.spread(centre, np.ones(2)) - alone


class Design(Sampling):
    """Every row was sampled by itself.

    own: sums of squared weights of each cell, of all rows and of those with label 1, (m,) each; () where every row
    counts one. Its units are the rows of label 0 of each cell, then those of label 1. Rows of weights w act as
    (sum w)^2 / sum w^2 rows of weight sum w^2 / sum w each.
    """

    effect: float = 1.0
    """Design effect: how many rows say as much as one independent row. Squared weights are multiplied by it."""
    share_known = False
    """Whether weights make the share of label 1 what it is known to be."""
    gram: Floats | None = None
    """Sum over clusters of the products of their counts in the cells of label 0, then of label 1: (2m, 2m).

    None where rows are independent, or there are too many cells.
    """

    def __init__(self, own: tuple[()] | tuple[Counts, Counts] = ()) -> None:
        self.own = own
        self.weighted = bool(own)
        """Whether cells hold sums of weights; else they hold counts of rows."""
        self.plain = not own
        """Whether every row is one by itself, so that squared weights are the counts."""

    def with_known_share(self) -> Design:
        """The design of these rows where weights make the share of label 1 what it is known to be."""
        known = copy.copy(self)
        known.share_known = True
        return known

    def confidence(self, confidence: float | None) -> float | None:
        """The confidence to ask of normal quantiles; None where none is asked for, or too little for any interval."""
        return confidence

    @property
    def of_labels(self) -> tuple[()] | tuple[Floats, Floats]:
        """Sums of squared weights of the rows of label 0 and of label 1, (m,) each; () where every row counts one."""
        return (self.own[0] - self.own[1], self.own[1]) if self.own else ()

    @property
    def sums_of_labels(self) -> Floats:
        """Sums of squared weights of all rows of label 0 and of label 1, (2,)."""
        return np.array([each.sum(dtype=np.float64) for each in self.of_labels])

    def squares(self, weight: Floats) -> Floats:
        return np.concatenate(self.of_labels) if self.own else weight

    def units_of(self, weight: Floats, share_known: bool = False) -> Units:
        """A unit for the rows of each label and cell, with the covariance of every two units where it is known.

        weight: of each label and cell, (2, m).
        """
        flat, label = weight.ravel(), np.repeat((0, 1), weight.shape[1])
        squares = self.squares(flat)
        sampling: Sampling = self if self.clustered else Independent(squares)
        if self.gram is not None:
            sampling = Products(squares, self.gram)
        return Units(label, flat, sampling, share_known, float(flat.sum()) ** 2 / float(squares.sum()))

    def within_cells(self, chance: Floats) -> Design:
        """The design of independent rows of which the positives of each cell vary as they do in these rows.

        chance: of label 1 in each cell, (m,).
        """
        return self

    def that_draws(self, chance: Floats) -> Design:
        """The design that draws labels of these chances: of clusters in too many cells, that of independent rows."""
        return self

    def need_folds(self) -> None:
        """Raise Undefined where there are too few clusters to hold some out."""

    def select(self, which: NDArray[Any]) -> Design:
        """The design of some of the cells, by mask or index."""
        return self._changed(lambda squares: squares[which])

    def _changed(self, change: Callable[[Counts], Counts]) -> Design:
        """The design of other cells. change: makes their squared weights from those of these cells."""
        return weighted(*map(change, self.own)) if self.own else self

    def merged(self, starts: NDArray[Any]) -> Design:
        """The design of runs of cells that are put together, given by the index of their first cell."""
        return self._changed(lambda squares: np.add.reduceat(squares, starts))

    def grouped(self, place: NDArray[Any], groups: int) -> Design:
        """The design of cells that are put together by number: cell i goes into group place[i] of this many."""
        return self._changed(lambda squares: np.bincount(place, squares, groups))

    def moments(self, blocks: Iterable[tuple[CellRun, Floats]]) -> Moments:
        """The moments of a value of each label and cell. blocks: every run of cells with its values, (2, k)."""
        first, squares = np.zeros(2), np.zeros((2, 3))
        for block, values in blocks:
            for label, (weight, weight2) in enumerate(block.by_label):
                weighted = weight2 * values[label]
                first[label] += (sums := dot(weight, values[label]))
                cross = sums if weight2 is weight else weighted.sum()
                squares[label] += weight2.sum(), cross, dot(weighted, values[label])
        return Moments(first, squares)

    def resample(self, cells: Counted, rng: np.random.Generator) -> tuple[Floats, Floats, Design]:
        """A bootstrap draw of the rows, made from the cells alone: negatives and positives, (m,), and their design.

        The weight of a label in a cell becomes (W2/W) * Poisson(W^2/W2): a draw of mean W and variance W2.
        """
        if not self.own:
            neg, pos = (draw.poisson(rng, each) for each in cells.of_labels)
            return neg, pos, self
        of_labels = zip(cells.of_labels, self.of_labels, strict=True)
        (neg, neg2), (pos, pos2) = (draw.weighted_poisson(rng, *each) for each in of_labels)
        return neg, pos, Design((neg2 + pos2, pos2))

    def split(self, cells: Counted, rng: np.random.Generator) -> tuple[Counts, Counts]:
        """The rows of each cell dealt to folds, each row for itself: negatives and positives, shape (FOLDS, m)."""
        if self.own:
            of_labels = zip(cells.of_labels, self.of_labels, strict=True)
            zeros, ones = (draw.deal_weights(*each, rng) for each in of_labels)
            return zeros, ones
        n, pos = np.asarray(cells.n, dtype=np.int64), np.asarray(cells.pos, dtype=np.int64)
        if len(n) == cells.total:
            fold = rng.integers(draw.FOLDS, size=len(n)) == np.arange(draw.FOLDS)[:, None]
            return fold * (1 - pos), fold * pos
        return draw.deal(n - pos, rng), draw.deal(pos, rng)

    def relabelled(self, cells: Counted, rng: np.random.Generator, chance: Floats) -> tuple[Counts, Design]:
        """Positives of each cell where labels are drawn with this chance, and the design of the rows then."""
        if not self.own:
            return draw.binomial(rng, np.asarray(cells.n, dtype=np.int64), chance), self
        n2, _ = self.own
        rows = draw.as_whole(cells.n**2 / n2)
        share = draw.binomial(rng, rows, chance) / rows
        return cells.n * share, Design((n2, n2 * share))

    def part(self, cells: Counted, neg: Floats, pos: Floats) -> Design:
        """The design of a part of the rows: these negatives and positives of each cell.

        Rows of a cell and a label have their mean square, whichever part they are in.
        """
        if not self.own:
            return self
        neg2, pos2 = (ratio(*each) for each in zip(self.of_labels, cells.of_labels, strict=True))
        return Design((neg * neg2 + pos * pos2, pos * pos2))

    def parts(self, cells: Counted, rng: np.random.Generator) -> list[tuple[Counts, Counts, Design]]:
        """The folds: their negatives and positives of each cell, and the design of their rows."""
        return [(neg, pos, self.part(cells, neg, pos)) for neg, pos in zip(*self.split(cells, rng), strict=True)]

    def scattered(self, cells: Counted, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Negatives and positives of each cell with weights times standard normal numbers: one a row, or a cluster."""
        neg2, pos2 = cells.squares_of_labels
        pos = np.sqrt(pos2) * rng.standard_normal(len(pos2))
        return np.sqrt(np.maximum(neg2, 0.0)) * rng.standard_normal(len(neg2)), pos

    def replicates(
        self, cells: Counted, chance: Floats, times: int, rng: np.random.Generator
    ) -> tuple[Counts, Counts, float]:
        """Negatives and positives of each cell in draws of all rows, shape (times, m) each, and the unit of the counts.

        chance: of label 1, for a row of each cell, (m,).
        """
        rows = np.asarray(cells.n / cells.unit)
        shape = (times, len(rows))
        pos, neg = rng.poisson(rows * chance, shape), rng.poisson(rows * (1 - chance), shape)
        return neg, pos, cells.unit


INDEPENDENT = Design()


def weighted(n2: NDArray[Any], pos2: NDArray[Any]) -> Design:
    """Independent rows with weights, by the sums of their squares in each cell, of all and of those with label 1."""
    return Design((n2, np.minimum(pos2, n2)))


def count_rows(
    scores: Sequence[Floats], label: NDArray[Any], weight: Floats | None, unit: Ints | None, order: Ints | None = None
) -> tuple[list[Floats], Counts, Counts, Design]:
    """Distinct scores, or pairs of them, in order, with their rows and positives, (m,) each, and how they were sampled.

    scores: (T,) each; unit: the cluster of each row, None where rows are independent; order: by score, where it is
    known.
    """
    # Sorted by label and weight as well: sums of floats depend on their order, and must not depend on that of the rows.
    within = () if weight is None else (weight, label)
    order = np.lexsort((*within, *scores[::-1])) if order is None else order
    others: list[Any] = [label.astype(np.int8, copy=False), weight, unit]
    in_order: Any = meanwhile(lambda: [None if each is None else each[order] for each in others], len(order) > MANY)
    scores = [score[order] for score in scores]
    for score in scores:
        score += 0.0  # makes -0.0 the zero that it equals
    begins, design, rows = begins_of(scores), INDEPENDENT, len(order)
    label, weight, unit = in_order()
    cell: Any
    if weight is None and begins.all():
        cell, n, pos = np.arange(rows, dtype=np.int32), np.broadcast_to(np.int8(1), rows), label
    else:
        starts = np.flatnonzero(begins)
        cell, scores = _cells(starts, rows), [score[starts] for score in scores]
        n, pos = np.diff(starts, append=rows), np.add.reduceat(label, starts, dtype=np.int64)
        if weight is not None:
            positive = weight * label
            n, pos, n2, pos2 = (np.add.reduceat(each, starts) for each in (weight, positive, weight**2, positive**2))
            pos, design = np.minimum(pos, n), weighted(n2, pos2)
    if unit is not None:
        each = ones(rows) if weight is None else weight
        behind = RowsOfCells(cell, unit, label, each, squares_of(each), weight is not None)
        score = scores[0] if len(scores) == 1 else np.mean(scores, axis=0)
        design = Clustered.of_rows(behind, len(score), score)
    return scores, n, pos, design


def _cells(starts: Ints, rows: int) -> Ints:
    """The number of each row's cell, of rows in order, in few bits: tables of many rows keep it for all their bins."""
    numbers = np.arange(len(starts), dtype=np.min_scalar_type(~len(starts)))
    return np.repeat(numbers, np.diff(starts, append=rows))


def joined(parts: Sequence[Counted]) -> Design:
    """The design of the cells of several tables, one after the other; clusters count as their effective rows."""
    if all(part.design.plain for part in parts):
        return INDEPENDENT
    n2, pos2 = zip(*(part.squares_of_rows for part in parts), strict=True)
    return Design((np.concatenate(n2).astype(np.float64), np.concatenate(pos2).astype(np.float64)))


class RowsOfCells(NamedTuple):
    """The rows behind the cells of a table, in order of their cells: cell, cluster, label, weight and its square.

    Where rows were counted, an entry is all rows of one cell, cluster and label, with their summed weights and squared
    weights. weighted: whether rows have weights of their own.
    """

    cell: Ints
    unit: Ints
    label: NDArray[Any]
    weight: Floats
    square: Floats
    weighted: bool

    def of_cells(self, values: Floats, begin: int, part: slice) -> Floats:
        """The value of each row in a run of rows. values: of each label and cell, (2, k), from cell `begin` on."""
        return values.reshape(-1)[self.cell[part] - begin + values.shape[1] * (self.label[part] > 0)]

    def values(self, values: Callable[[slice], Floats], part: slice) -> Floats:
        """The value of each row in a run of rows. values: computes those of each label and a run of cells, (2, k)."""
        begin, last = self.cell[part][[0, -1]].tolist()
        return self.of_cells(values(slice(begin, last + 1)), begin, part)

    def add_by_cluster(self, sums: Floats, part: slice, values: Floats) -> None:
        """Add numbers of a run of rows to sums of each label and cluster, (2, G)."""
        np.add.at(sums.reshape(-1), self.unit[part] + sums.shape[1] * (self.label[part] > 0), values)

    def take(self, which: NDArray[Any]) -> RowsOfCells:
        """Some of the rows, by mask or index."""
        weight, square = self.weight[which], self.square[which]
        return RowsOfCells(self.cell[which], self.unit[which], self.label[which], weight, square, self.weighted)


class Clustered(Design):
    """Rows were sampled in clusters. times: how often each cluster was drawn, (G,). size: the number of cells.

    effect: the design effect, by which squared weights are multiplied.
    """

    clustered = True
    plain = False

    def __init__(self, rows: RowsOfCells, size: int, times: Floats, effect: float) -> None:
        self.rows = rows
        self.size = size
        self.times = times
        self.effect = effect
        self.weighted = rows.weighted

    @classmethod
    def of_rows(cls, rows: RowsOfCells, size: int, score: Floats) -> Clustered:
        """Each cluster drawn once. score: of every cell."""
        times = np.ones(int(rows.unit.max()) + 1)
        off = partial(rows.values, lambda run: np.stack((-score[run], 1 - score[run])))
        return cls(rows, size, times, max(design_effect(off, rows.weight, rows.unit, rows.square), 1.0))

    def _squares(self, part: slice) -> Floats:
        """Squared weights of some of the rows, as often as their clusters were drawn."""
        square = self.rows.square[part]
        return square if self._once else square * self.times[self.rows.unit[part]]

    @cached_property
    def _once(self) -> bool:
        """Whether each cluster was drawn once, which needs no look at the rows."""
        return bool((self.times == 1).all())

    @cached_property
    def _of_clusters(self) -> Floats:
        """Summed weight of each label in each cluster, shape (2, G)."""
        sums = np.zeros((2, len(self.times)))
        for part in runs(len(self.rows.cell)):
            self.rows.add_by_cluster(sums, part, self.rows.weight[part])
        return sums

    @property
    def _totals(self) -> Floats:
        """Summed weight of each cluster, shape (G,)."""
        return np.asarray(self._of_clusters.sum(axis=0))

    @cached_property
    def sums_of_labels(self) -> Floats:
        return self.effect * summed(self.rows.label, lambda part: self._squares(part)[None], 2)[0]

    def effect_on(self, values: Callable[[slice], Floats]) -> float:
        """The design effect on the mean of a value of each label and cell, which is computed for a run of cells."""
        rows = self.rows
        return design_effect(partial(rows.values, values), rows.weight, rows.unit, rows.square)

    def moments(self, blocks: Iterable[tuple[CellRun, Floats]]) -> Moments:
        rows, begin, first_sums = self.rows, 0, np.zeros(2)
        squares, sums = np.zeros((2, 3)), np.zeros((2, len(self.times)))
        for block, of_cells in blocks:
            first_sums += dot(block.n - block.pos, of_cells[0]), dot(block.pos, of_cells[1])
            end = begin + len(block.n)
            first, last = np.searchsorted(rows.cell, np.array((begin, end), dtype=rows.cell.dtype)).tolist()
            for part in runs(last, start=first):
                value, square = rows.of_cells(of_cells, begin, part), self._squares(part)
                rows.add_by_cluster(sums, part, rows.weight[part] * value)
                for label in (0, 1):
                    of_label = square * (rows.label[part] == label)
                    squares[label] += of_label.sum(), dot(of_label, value), dot(of_label * value, value)
            begin = end
        return Moments(first_sums, squares, sums, self._of_clusters, self.times)

    @property
    def clusters(self) -> int:
        """Clusters that have rows."""
        return int(np.count_nonzero(self._totals * self.times))

    @property
    def effective_clusters(self) -> float:
        """How many clusters of equal weight would say as much: (sum w)^2 / sum w^2 over the weights of clusters."""
        return float((self.times @ self._totals) ** 2 / (self.times @ self._totals**2))

    def confidence(self, confidence: float | None) -> float | None:
        return None if confidence is None else confidence_of(self.effective_clusters, confidence)

    @cached_property
    def own(self) -> tuple[Floats, Floats]:  # type: ignore[override]
        """Squared weights of each cell, of all rows and of those with label 1, times the design effect."""
        neg2, pos2 = self._summed(lambda part: self._squares(part) * self.effect)[:, 0]
        return neg2 + pos2, pos2

    def select(self, which: NDArray[Any]) -> Clustered:
        kept = np.arange(self.size)[which]
        place = np.full(self.size, -1)
        place[kept] = np.arange(len(kept))
        return self.grouped(place, len(kept))

    def merged(self, starts: NDArray[Any]) -> Clustered:
        # Rows stay in order.
        first = np.searchsorted(self.rows.cell, starts.astype(self.rows.cell.dtype))
        rows = self.rows._replace(cell=_cells(first, len(self.rows.cell)))
        return Clustered(rows, len(starts), self.times, self.effect)

    def grouped(self, place: NDArray[Any], groups: int) -> Clustered:
        """Cell i as cell place[i], or not at all where that is -1."""
        rows = self.rows._replace(cell=place[self.rows.cell])
        if (rows.cell < 0).any():
            rows = rows.take(rows.cell >= 0)
        if (np.diff(rows.cell) < 0).any():
            rows = rows.take(np.argsort(rows.cell, kind="stable"))
        return Clustered(rows, groups, self.times, self.effect)

    def _place(self, part: Any) -> Ints:
        """The number of the cell and label of some rows, those of label 0 first."""
        return self.rows.cell[part] + self.size * (self.rows.label[part] > 0)

    def counted(self, of_cluster: Floats) -> tuple[Floats, Floats]:
        """Sums over the rows of each cell, of label 0 and of label 1, of weights times a number of their cluster."""
        rows = self.rows
        neg, pos = self._summed(lambda part: rows.weight[part] * of_cluster[rows.unit[part]])[:, 0]
        return neg, pos

    def _summed(
        self, values: Callable[[slice], Floats], fold: Callable[[slice], Any] = lambda part: 0, folds: int = 1
    ) -> Floats:
        """Sums over the rows of each label, fold and cell, (2, folds, m), of what is computed for a run of rows."""
        sums = np.zeros((2, folds, self.size))
        for part in runs(len(self.rows.cell)):
            begin, last = self.rows.cell[part][[0, -1]].tolist()
            shape = 2, folds, last + 1 - begin
            place = self.rows.cell[part] - begin + shape[2] * (fold(part) + folds * (self.rows.label[part] > 0))
            sums[..., begin : last + 1] += np.bincount(place, values(part), math.prod(shape)).reshape(shape)
        return sums

    def resample(self, cells: Counted, rng: np.random.Generator) -> tuple[Floats, Floats, Design]:
        """The Poisson bootstrap of clusters."""
        times = rng.poisson(self.times).astype(np.float64)
        neg, pos = self.counted(times)
        return neg, pos, Clustered(self.rows, self.size, times, self.effect)

    def need_folds(self) -> None:
        need_clusters(self.clusters)

    def fold_of_clusters(self, rng: np.random.Generator) -> Ints:
        """The fold of each cluster."""
        self.need_folds()
        return rng.permutation(len(self.times)) % draw.FOLDS

    def split(self, cells: Counted, rng: np.random.Generator) -> tuple[Counts, Counts]:
        return self.of_folds(self.fold_of_clusters(rng))

    def of_folds(self, fold: Ints) -> tuple[Counts, Counts]:
        """Negatives and positives of each cell in each fold, (FOLDS, m); fold: of each cluster."""
        rows = self.rows
        sums = self._summed(lambda part: rows.weight[part], lambda part: fold[rows.unit[part]], draw.FOLDS)
        neg, pos = sums if self.weighted else sums.astype(np.int64)
        return neg, pos

    def parts(self, cells: Counted, rng: np.random.Generator) -> list[tuple[Counts, Counts, Design]]:
        fold = self.fold_of_clusters(rng)
        designs = [Clustered(self.rows, self.size, self.times * (fold == k), self.effect) for k in range(draw.FOLDS)]
        return list(zip(*self.of_folds(fold), designs, strict=True))

    def relabelled(self, cells: Counted, rng: np.random.Generator, chance: Floats) -> tuple[Counts, Design]:
        """Draw positives, of which labels in a cluster correlate as the design effect says.

        The part of a label that is its own is drawn as of independent rows, the rest as a normal number of its cluster.
        """
        assert self._root_of_all is not None  # it is asked of the design `that_draws`
        expected = cells.n * chance
        own = self._alone.relabelled(cells, rng, chance)[0] - expected
        # Not by the linear algebra library: in many small products its threads only wait for each other.
        shared = np.einsum("ij,j->i", self._root_of_all, rng.standard_normal(self.size))
        shared *= np.sqrt(chance * (1 - chance))
        return expected + math.sqrt(1 - self.correlation) * own + math.sqrt(self.correlation) * shared, self

    @cached_property
    def correlation(self) -> float:
        """Correlation of labels less scores of two rows in one cluster, by the design effect; from 0 to 1."""
        most = float(self.times @ self._totals**2) * self.effect / float(self.sums_of_labels.sum())
        return min((self.effect - 1) / (most - 1), 1.0) if most > 1 else 0.0

    def that_draws(self, chance: Floats) -> Design:
        return self.within_cells(chance) if self._root_of_all is None else self

    def within_cells(self, chance: Floats) -> Design:
        rows = self.rows
        off = (rows.label > 0) - chance[rows.cell]
        within = squares_within_cells(rows.cell, rows.unit, rows.weight, rows.square, [off], self.times)
        n2, ones = self.own
        return weighted(within, ratio(ones, n2) * within)

    @cached_property
    def _alone(self) -> Design:
        """The design of these rows if each were sampled by itself."""
        n2, ones = (each / self.effect for each in self.own)
        return weighted(n2, ones)

    def part(self, cells: Counted, neg: Floats, pos: Floats) -> Design:
        return joined([cells]).part(cells, neg, pos)

    def covariance(self, influence: Floats, weight: Floats) -> Floats:
        rows = self.rows
        sums = summed(rows.unit, lambda part: influence[:, self._place(part)] * rows.weight[part], len(self.times))
        return np.asarray((self.times * sums) @ sums.T)

    @cached_property
    def gram(self) -> Floats | None:  # type: ignore[override]
        if self.size > MAX_GRAM_CELLS:
            return None
        unit, clusters, size = self.rows.unit, len(self.times), 2 * self.size
        rows_of = summed(unit, lambda part: ones(part.stop - part.start)[None]).ravel()
        if clusters * size**2 > max(FEW_PRODUCTS, DENSE * dot(rows_of, rows_of)):
            from scipy.sparse import csr_matrix

            every = slice(None)
            counts = csr_matrix((self._rooted(every), (unit, self._place(every))), shape=(clusters, size))
            return np.asarray((counts.T @ counts).toarray())
        whole = self._once and all((np.rint(w := self.rows.weight[part]) == w).all() for part in runs(len(unit)))
        products = self._dense_products(np.float32) if whole else None
        # No product of two cells is more than the most of one with itself.
        exact = products is not None and products.max() < MAX_WHOLE
        return products if exact else self._dense_products(np.float64)

    def _rooted(self, some: Any) -> Floats:
        """Weights of some rows, times the root of how often their cluster was drawn, so that products count by it."""
        weight = self.rows.weight[some]
        return weight if self._once else weight * np.sqrt(self.times)[self.rows.unit[some]]

    def _dense_products(self, kind: type[np.floating[Any]]) -> Floats:
        """`gram` of some clusters at a time, multiplied in numbers of this kind."""
        unit, clusters, size = self.rows.unit, len(self.times), 2 * self.size
        products, step = np.zeros((size, size)), min(max(MAX_DENSE // size, 1), clusters)
        space = np.empty(step * size, kind)
        for start in range(0, clusters, step):
            rows = min(step, clusters - start)
            sums = space[: rows * size]
            sums[:] = 0.0
            for part in runs(len(unit)):
                some: Any = part
                if rows < clusters:
                    some = np.flatnonzero((unit[part] >= start) & (unit[part] < start + rows)) + part.start
                place = (unit[some].astype(np.int64) - start) * size + self._place(some)
                np.add.at(sums, place, self._rooted(some).astype(kind, copy=False))
            with one_thread():
                of_clusters = sums.reshape(rows, size)
                products += of_clusters.T @ of_clusters
        return products

    def scattered(self, cells: Counted, rng: np.random.Generator) -> tuple[Floats, Floats]:
        chance = rng.standard_normal(len(self.times)) * np.sqrt(self.times)
        return self.counted(chance)

    def replicates(
        self, cells: Counted, chance: Floats, times: int, rng: np.random.Generator
    ) -> tuple[Counts, Counts, float]:
        """Normal, with the covariance of the clusters' counts in the cells."""
        root = self._root
        if root is None:
            return joined([cells]).replicates(cells, chance, times, rng)
        mean = np.concatenate((cells.n * (1 - chance), cells.n * chance))
        off = rng.standard_normal((times, len(root)))
        with one_thread():
            counts = mean + off @ root.T
        return counts[..., : self.size], counts[..., self.size :], 1.0

    @cached_property
    def _root(self) -> Floats | None:
        """A root of the covariance of the clusters' counts, (2m, 2m); None where there are too many cells."""
        return None if self.gram is None else root_of(self.gram)

    @cached_property
    def _root_of_all(self) -> Floats | None:
        """As `_root`, of the counts of both labels together, (m, m)."""
        if self.gram is None:
            return None
        return root_of(self.gram.reshape(2, self.size, 2, self.size).sum(axis=(0, 2)))


def root_of(covariance: Floats) -> Floats:
    """The symmetric root R of a covariance R R, (m, m). Eigenvalues that are 0 but for rounding count as 0.

    Of all roots it is the one that does not depend on the signs and order of eigenvectors, which differ from one
    processor to another: equal seeds draw equal numbers everywhere.
    """
    with one_thread():
        strength, axes = np.linalg.eigh(covariance)
        zero = strength.max(initial=0.0) * len(strength) * np.finfo(np.float64).eps
        return np.asarray((axes * np.sqrt(np.where(strength > zero, strength, 0.0))) @ axes.T)


def confidence_of(effective: float, confidence: float) -> float | None:
    """The confidence at which the normal quantile is the t quantile of so many effective clusters less one.

    None where there are too few of them for any interval.
    """
    if effective < MIN_CLUSTERS:
        return None
    from scipy.special import ndtr, stdtrit

    critical_value = stdtrit(effective - 1, (1 + confidence) / 2)
    return min(float(2 * ndtr(critical_value) - 1), 1 - MIN_RISK)


def residual_products(products: Floats, chance: Floats) -> Floats:
    """Products of labels less these chances, (m, m), from those of the counts of both labels, (2m, 2m)."""
    m = len(chance)
    neg_neg, neg_pos, pos_pos = products[:m, :m], products[:m, m:], products[m:, m:]
    mixed = np.outer(chance, 1 - chance) * neg_pos
    both: Floats = np.outer(chance, chance) * neg_neg + np.outer(1 - chance, 1 - chance) * pos_pos
    return both - mixed - mixed.T


def design_effect(
    values: Floats | Callable[[slice], Floats], weight: Floats | None, unit: Ints, squares: Floats | None = None
) -> float:
    """Variance of the weighted mean of rows in clusters over that of independent rows; shape (T,) each.

    values: of all rows, or a function that computes them for a run of rows. squares: squared weights, or for counted
    rows the sums of them.
    """
    of_run: Callable[[slice], Floats] = values if callable(values) else values.__getitem__
    w = ones(len(unit)) if weight is None else weight
    squares = squares_of(w) if squares is None else squares
    mean = sum(dot(w[part], of_run(part)) for part in runs(len(unit))) / float(w.sum())
    alone, together = 0.0, np.zeros(int(unit.max()) + 1)
    for part in runs(len(unit)):
        each = of_run(part) - mean
        alone += dot(squares[part] * each, each)
        np.add.at(together, unit[part], w[part] * each)
    return dot(together, together) / alone if alone > 0 else 1.0


def squares_within_cells(
    cell: Ints, unit: Ints, weight: Floats, squares: Floats, off: Iterable[Floats], times: Floats
) -> Floats:
    """Squared weights of each cell, (m,), of independent rows whose labels vary as those of the cell do.

    Rows of one cluster in one cell correlate as such rows do on average; those of different cells may agree less. What
    the labels of a cell are off by altogether is no agreement of its clusters.
    cell, unit, weight, squares: of each row, (T,); off: whether it is of a class, less the chance of that, for each
    class, (T,); times: how often each cluster was drawn, (G,).
    """
    _, first, part = np.unique(cell.astype(np.int64) * len(times) + unit, return_index=True, return_inverse=True)
    squares, of_cell, often = times[unit] * squares, cell[first], times[unit[first]]
    size, own = np.bincount(part, weight), np.bincount(cell, squares)
    total, whole = np.bincount(of_cell, often * size), np.bincount(of_cell, often * size**2)
    # About the mean of a cell clusters vary by so much less. Of cells of one cluster each it says nothing.
    free = 1 - whole / np.maximum(total**2, 1e-300)
    centred = float(free @ (whole - own)) > MAX_ROUNDING * own.sum()
    free = free if centred else np.ones(len(own))
    alone = together = 0.0
    for each in off:
        sums = np.bincount(part, weight * each)
        mean = centred * np.bincount(of_cell, often * sums) / np.maximum(total, 1e-300)
        alone += dot(squares, each**2) / own.sum()
        together += float((often * (sums - size * mean[of_cell]) ** 2).sum())
    most = alone * float(free @ (whole - own))
    correlation = min(max((together - alone * float(free @ own)) / most, 0.0), 1.0) if most > 0 else 0.0
    return np.asarray(own + correlation * (whole - own))


def need_clusters(clusters: int, parts: int = draw.FOLDS) -> None:
    """Raise Undefined where there are fewer clusters than parts."""
    if clusters < parts:
        raise Undefined(f"needs at least {parts} clusters to learn from some and judge on others")


class CountedRows(NamedTuple):
    """Entries in any order, each for all rows of one cell, cluster and label; rows: how many these are, shape (k,)."""

    behind: RowsOfCells
    rows: Floats

    def design(self, size: int, score: Floats) -> Clustered | None:
        """The design of so many cells, each of which has a score, (size,); None where every cluster is one row."""
        some = np.flatnonzero(self.rows > 0)
        behind = self.behind.take(some[np.argsort(self.behind.cell[some], kind="stable")])
        names, unit = np.unique(behind.unit, return_inverse=True)
        if len(names) == round(float(self.rows.sum())):
            return None
        return Clustered.of_rows(behind._replace(unit=unit), size, score)

    def parted(self, cells: Floats, mean: Floats, spread: Floats, ends: tuple[Floats, Floats]) -> CountedRows:
        """These rows dealt to finer cells, in order of score. cells: the weight of each label in each, (2, m).

        mean, spread, ends: the mean, the standard deviation, and the least and the greatest of each entry's scores,
        (k,). The scores of an entry are taken to lie evenly with this mean and spread, which is exact for one or two
        rows and nearly right for more. The rows of a label fill the cells in order of these scores.
        """
        parts, behind = [], self.behind
        for label, of_parts in enumerate(cells):
            some = np.flatnonzero((behind.label == label) & (self.rows > 0))
            points = np.minimum(self.rows[some], MAX_POINTS).astype(np.int64)
            mine = np.repeat(some, points)
            number = np.arange(len(mine)) - np.repeat(np.cumsum(points) - points, points)
            points = np.repeat(points, points)
            off = (number - (points - 1) / 2) / np.sqrt(np.maximum(points**2 - 1, 1) / 12)
            score = np.clip(mean[mine] + spread[mine] * off, ends[0][mine], ends[1][mine])
            order = np.lexsort((behind.unit[mine], score))
            weight = behind.weight[mine] / points
            if not behind.weighted:
                # Whole numbers of rows stay whole.
                weight = self.rows[mine] * (number + 1) // points - self.rows[mine] * number // points
            mine, of_rows, of_cells = mine[order], np.cumsum(weight[order]), np.cumsum(of_parts)
            cuts = np.union1d(of_rows, of_cells)
            size = np.diff(cuts, prepend=0.0)
            entry = np.searchsorted(of_rows, cuts - size / 2, side="right")
            cell = np.searchsorted(of_cells, cuts - size / 2, side="right")
            within = (entry < len(mine)) & (cell < len(of_parts))
            from_, size, cell = mine[entry[within]], size[within], cell[within]
            share = size / behind.weight[from_]
            kept = share > MAX_ROUNDING
            parts.append((cell[kept], from_[kept], share[kept]))
        cell, entry, share = (np.concatenate(each) for each in zip(*parts, strict=True))
        again = behind.take(entry)
        again = again._replace(cell=cell, weight=again.weight * share, square=again.square * share)
        return CountedRows(again, self.rows[entry] * share)
