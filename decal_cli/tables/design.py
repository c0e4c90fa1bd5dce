"""How rows were sampled. A design is one class, and it alone knows what follows from it: resamples, folds, errors.

A table or a table of pairs holds cells, each with its rows and positives, and the design of these rows. Every table
made from another (its bins, a fold, a resample) carries its design along, because each of them has its own standard
errors and may be resampled itself. That is why the design is a part of the table and not something beside it.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables import resample as draw
from decal_cli.tables.units import Floats, Ints, Sampled, Sampling, products_of

Counts = NDArray[Any]
"""Rows as int64, or their weights as float64."""


class Resample(NamedTuple):
    """Negatives and positives of each cell in a draw, shape (.., m) each, and the design of one draw's rows."""

    neg: Floats
    pos: Floats
    design: Design


class Replicates(NamedTuple):
    """Negatives and positives of each cell in replicates, shape (times, folds, m), in units of this weight."""

    neg: Counts
    pos: Counts
    unit: float


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
    def n2(self) -> Counts:
        """Sum of squared weights in each cell, shape (m,)."""
        return self.design.own_squares(self)[0]

    @property
    def pos2(self) -> Counts:
        """The same of the rows with label 1."""
        return self.design.own_squares(self)[1]

    @cached_property
    def effective_rows(self) -> float:
        """Rows; of weighted ones (sum w)^2 / sum w^2; of clustered ones that over their design effect."""
        return self.total if self.design.plain else self.total * self.total / float(self.n2.sum(dtype=np.float64))

    @property
    def rarer_rows(self) -> float:
        """Effective rows of the rarer label."""
        return min(self.positives, self.negatives) / self.total * self.effective_rows

    @property
    def rows_of_cells(self) -> Floats:
        """Effective rows of each cell, shape (m,)."""
        n = np.asarray(self.n, dtype=np.float64)
        return n if self.design.plain else n**2 / self.n2

    @property
    def unit(self) -> float:
        """Weight of one effective row."""
        return 1.0 if self.design.plain else float(self.n2.sum(dtype=np.float64)) / self.total

    @property
    def squares_of_rows(self) -> tuple[Counts, Counts]:
        """n2 and pos2, which are n and pos where every row is one by itself."""
        return (self.n, self.pos) if self.design.plain else self.design.own_squares(self)

    @cached_property
    def units(self) -> Sampled:
        """The rows of label 0 of each cell, then those of label 1."""
        return CellUnits(self)

    def split(self, rng: np.random.Generator) -> tuple[Counts, Counts]:
        """The rows of each cell dealt to folds: negatives and positives, shape (FOLDS, m) each."""
        return self.design.split(self, rng)


@dataclass(frozen=True, eq=False)
class CellUnits(Sampled):
    """A unit for the rows of each cell and label, made when one looks at them: a table may have many cells."""

    cells: Counted
    kind = ()

    @cached_property
    def label(self) -> Ints:  # type: ignore[override]
        return np.repeat((0, 1), len(self.cells.n))

    @cached_property
    def weight(self) -> Floats:  # type: ignore[override]
        pos = np.asarray(self.cells.pos, dtype=np.float64)
        return np.concatenate((self.cells.n - pos, pos))

    @cached_property
    def sampling(self) -> Sampling:  # type: ignore[override]
        return self.cells.design

    @cached_property
    def share_known(self) -> bool:  # type: ignore[override]
        return self.cells.design.share_known

    @cached_property
    def rows(self) -> float:  # type: ignore[override]
        return self.cells.effective_rows

    @cached_property
    def total(self) -> float:
        return self.cells.total

    def weight_of(self, label: int) -> float:
        return self.cells.positives if label else self.cells.negatives


class Design(Sampling):
    """How the rows of cells were sampled. Its units are the rows of label 0 of each cell, then those of label 1."""

    weighted: bool
    """Whether cells hold sums of weights; else they hold counts of rows."""
    plain: bool
    """Whether every row is one by itself, so that squared weights are the counts."""
    effect: float = 1.0
    """How many rows say as much as one independent row; squared weights count it in."""
    clustered: bool = False
    """Whether rows were sampled in clusters, which are what is independent."""
    share_known: bool = False
    """Whether weights make the share of label 1 what it is known to be."""

    def with_known_share(self) -> Design:
        """The same rows, weighted to a share of label 1 that is known."""
        known = copy.copy(self)
        known.share_known = True
        return known

    def confidence(self, confidence: float) -> float | None:
        """The confidence to ask of normal quantiles; None where there is too little for any interval."""
        return confidence

    def squares(self, weight: Floats) -> Floats:
        return weight

    def covariance(self, influence: Floats, weight: Floats) -> Floats:
        return products_of(influence, self.squares(weight))

    def need_folds(self) -> None:
        """Raise Undefined where there are too few clusters to hold some out."""
        return None

    @abstractmethod
    def own_squares(self, cells: Counted) -> tuple[Counts, Counts]:
        """Sums of squared weights of all rows and of those with label 1, shape (m,) each."""

    @abstractmethod
    def taken(self, which: NDArray[Any]) -> Design:
        """The design of some of the cells, by mask or index."""

    @abstractmethod
    def merged(self, starts: NDArray[Any]) -> Design:
        """The design of runs of cells that are put together, given by the index of their first cell."""

    @abstractmethod
    def grouped(self, place: NDArray[Any], groups: int) -> Design:
        """The design of cells that are put together by number: cell i goes into group place[i] of this many."""

    @abstractmethod
    def resample(self, cells: Counted, rng: np.random.Generator, draws: int | None = None) -> Resample:
        """A bootstrap draw of the rows, made from the cells alone; or many at once, shape (draws, m)."""

    @abstractmethod
    def split(self, cells: Counted, rng: np.random.Generator) -> tuple[Counts, Counts]:
        """The rows of each cell dealt to folds, each row for itself: negatives and positives, shape (FOLDS, m)."""

    @abstractmethod
    def relabelled(self, cells: Counted, rng: np.random.Generator, chance: Floats) -> tuple[Counts, Design]:
        """Positives of each cell where labels are drawn with this chance, and the design of the rows then."""

    @abstractmethod
    def part(self, cells: Counted, neg: Floats, pos: Floats) -> Design:
        """The design of a part of the rows: these negatives and positives of each cell."""

    def parts(self, cells: Counted, rng: np.random.Generator) -> list[tuple[Counts, Counts, Design]]:
        """The folds: their negatives and positives of each cell, and the design of their rows."""
        return [(neg, pos, self.part(cells, neg, pos)) for neg, pos in zip(*self.split(cells, rng), strict=True)]

    def gram(self) -> Floats | None:
        """Sum over clusters of the products of their counts in the cells, of label 0 and then of label 1: (2m, 2m).

        None where rows are independent, or there are too many cells.
        """
        return None

    def scattered(self, cells: Counted, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Negatives and positives of each cell, with a standard normal number for the weight of each unit."""
        n2, pos2 = (np.asarray(values, dtype=np.float64) for values in cells.squares_of_rows)
        pos = np.sqrt(pos2) * rng.standard_normal(len(n2))
        return np.sqrt(np.maximum(n2 - pos2, 0.0)) * rng.standard_normal(len(n2)), pos

    def replicates(
        self, cells: Counted, chance: Floats, times: int, folds: int, rng: np.random.Generator
    ) -> Replicates:
        """Draws of all rows in so many folds, where a row of a cell has label 1 with this chance."""
        rows = np.asarray(cells.n / cells.unit / folds)
        shape = (times, folds, len(rows))
        pos, neg = rng.poisson(rows * chance, shape), rng.poisson(rows * (1 - chance), shape)
        return Replicates(neg, pos, cells.unit)


class IndependentRows(Design):
    """Every row was sampled by itself and counts one."""

    weighted = False
    plain = True

    def own_squares(self, cells: Counted) -> tuple[Counts, Counts]:
        return cells.n, cells.pos

    def taken(self, which: NDArray[Any]) -> Design:
        return self

    def merged(self, starts: NDArray[Any]) -> Design:
        return self

    def grouped(self, place: NDArray[Any], groups: int) -> Design:
        return self

    def resample(self, cells: Counted, rng: np.random.Generator, draws: int | None = None) -> Resample:
        """The Poisson bootstrap."""
        neg = draw.poisson(rng, _repeated(cells.n - cells.pos, draws))
        return Resample(neg, draw.poisson(rng, _repeated(cells.pos, draws)), self)

    def split(self, cells: Counted, rng: np.random.Generator) -> tuple[Counts, Counts]:
        n, pos = np.asarray(cells.n, dtype=np.int64), np.asarray(cells.pos, dtype=np.int64)
        if len(n) == cells.total:
            fold = rng.integers(draw.FOLDS, size=len(n)) == np.arange(draw.FOLDS)[:, None]
            return fold * (1 - pos), fold * pos
        return draw.deal(n - pos, rng), draw.deal(pos, rng)

    def relabelled(self, cells: Counted, rng: np.random.Generator, chance: Floats) -> tuple[Counts, Design]:
        return draw.binomial(rng, np.asarray(cells.n, dtype=np.int64), chance), self

    def part(self, cells: Counted, neg: Floats, pos: Floats) -> Design:
        return self


INDEPENDENT = IndependentRows()


class Weighted(Design):
    """Every row was sampled by itself and has a weight. n2, pos2: sums of squared weights of each cell, shape (m,).

    Rows of weights w act as (sum w)^2 / sum w^2 rows of weight sum w^2 / sum w each.
    """

    weighted = True
    plain = False

    def __init__(self, n2: Floats, pos2: Floats) -> None:
        self.n2 = n2
        self.pos2 = pos2

    def own_squares(self, cells: Counted) -> tuple[Counts, Counts]:
        return self.n2, self.pos2

    def squares(self, weight: Floats) -> Floats:
        return np.concatenate((self.n2 - self.pos2, self.pos2))

    def taken(self, which: NDArray[Any]) -> Design:
        return Weighted(self.n2[which], self.pos2[which])

    def merged(self, starts: NDArray[Any]) -> Design:
        return Weighted(np.add.reduceat(self.n2, starts), np.add.reduceat(self.pos2, starts))

    def grouped(self, place: NDArray[Any], groups: int) -> Design:
        n2, pos2 = (np.bincount(place, values, groups).astype(np.float64) for values in (self.n2, self.pos2))
        return Weighted(n2, np.minimum(pos2, n2))

    def resample(self, cells: Counted, rng: np.random.Generator, draws: int | None = None) -> Resample:
        """The weight of a label in a cell becomes (W2/W) * Poisson(W^2/W2): a draw of mean W and variance W2."""
        neg, neg2 = draw.weighted_poisson(
            rng, _repeated(cells.n - cells.pos, draws), _repeated(self.n2 - self.pos2, draws)
        )
        pos, pos2 = draw.weighted_poisson(rng, _repeated(cells.pos, draws), _repeated(self.pos2, draws))
        return Resample(neg, pos, Weighted(neg2 + pos2, pos2))

    def split(self, cells: Counted, rng: np.random.Generator) -> tuple[Counts, Counts]:
        neg = draw.deal_weights(cells.n - cells.pos, self.n2 - self.pos2, rng)
        return neg, draw.deal_weights(cells.pos, self.pos2, rng)

    def relabelled(self, cells: Counted, rng: np.random.Generator, chance: Floats) -> tuple[Counts, Design]:
        rows = draw.as_whole(cells.n**2 / self.n2)
        share = draw.binomial(rng, rows, chance) / rows
        return cells.n * share, Weighted(self.n2, self.n2 * share)

    def part(self, cells: Counted, neg: Floats, pos: Floats) -> Design:
        """Rows of a cell and a label have their mean square, whichever part they are in."""
        neg2 = neg * _ratio(self.n2 - self.pos2, cells.n - cells.pos)
        pos2 = pos * _ratio(self.pos2, cells.pos)
        return Weighted(neg2 + pos2, pos2)


def joined(parts: Sequence[Counted]) -> Design:
    """The design of the cells of several tables, one after the other."""
    if all(part.design.plain for part in parts):
        return INDEPENDENT
    n2, pos2 = (np.concatenate([part.design.own_squares(part)[k] for part in parts]).astype(np.float64) for k in (0, 1))
    return Weighted(n2, pos2)


def as_weighted(cells: Counted) -> Weighted:
    """The design of independent rows that have the squared weights of these."""
    n2, pos2 = (np.asarray(values, dtype=np.float64) for values in cells.squares_of_rows)
    return Weighted(n2, pos2)


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)


def _repeated(values: Counts, draws: int | None) -> Counts:
    return values if draws is None else np.broadcast_to(values, (draws, len(values)))
