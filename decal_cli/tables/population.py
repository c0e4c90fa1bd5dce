"""Rows of one population counted as those of another, where some labels are rarer or more frequent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.tables.aggregated import CountedData
from decal_cli.tables.cells import CellTable
from decal_cli.tables.design import Clustered, Counted, Design, weighted
from decal_cli.tables.pairs import CellPairs, PairTable
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats, Table
from decal_cli.tables.units import runs_of

Shares = tuple[float, ...]
"""The share of each label, by weight."""


def population_share(rows: Rows) -> float:
    """The share of labels 1, by weight."""
    if isinstance(rows, CountedData):
        return rows.table.base_rate
    return _shares_of_labels(rows, 2)[1]


def class_shares(rows: Rows) -> Shares:
    """The share of each class, by weight."""
    return _shares_of_labels(rows, len(rows.classes))


def _shares_of_labels(rows: Rows, labels: int) -> Shares:
    # Summed in order of size: the order of rows would change the last bit, and trees on these weights split elsewhere.
    sums = np.array([np.sort(rows.weights[rows.label == label]).sum() for label in range(labels)])
    return tuple((sums / sums.sum()).tolist())


_DECIMALS, MOVED_ROUNDING = 4, 1e-13
"""Moved scores this near to a decimal of so many digits, relatively, are that decimal."""


def moved_scores(score: Floats | float, factors: Sequence[float] | Floats) -> Floats:
    """Scores as probabilities in a population. factors: what a row of each label counts there.

    score: of label 1, (T,), or of K classes, (T, K).
    """
    if np.ndim(score) == 2:
        numerators: Floats = np.asarray(score) * np.asarray(factors)
        return _settled(numerators / numerators.sum(axis=1, keepdims=True))
    zero, one = factors
    numerator = one * np.asarray(score)
    return _settled(numerator / (numerator + zero * (1 - np.asarray(score))))


def _settled(score: Floats) -> Floats:
    """Scores, of which those that are short decimals but for rounding are these: they may be thresholds."""
    near = np.round(score, _DECIMALS)
    return np.where((np.abs(score - near) <= MOVED_ROUNDING * near) & (near < 1), near, score)


@dataclass(frozen=True)
class Population:
    """Where decisions are made. there: the share of each label there; here: in the rows.

    kept: scores are as the rows have them; else they are moved with the shares. known: whether the shares there are
    known, and not told from the rows. classes: the names of several classes, () for labels 0 and 1.
    """

    there: Shares
    here: Shares
    kept: bool
    known: bool = True
    classes: tuple[str, ...] = ()

    @classmethod
    def of_ones(cls, prevalence: float, sampled: float, kept: bool, known: bool = True) -> Self:
        """A population of labels 0 and 1. prevalence, sampled: the share of label 1 there and in the rows."""
        return cls((1 - prevalence, prevalence), (1 - sampled, sampled), kept, known)

    @property
    def prevalence(self) -> float | dict[str, float]:
        """The share of label 1 in the population; with several classes the share of each."""
        return self._named(self.there)

    @property
    def sampled(self) -> float | dict[str, float]:
        """The share of label 1 in the rows; with several classes the share of each."""
        return self._named(self.here)

    def _named(self, shares: Shares) -> float | dict[str, float]:
        return dict(zip(self.classes, shares, strict=True)) if self.classes else shares[1]

    @property
    def factors(self) -> Shares:
        """What a row of each label counts there [T (5.5)]."""
        return tuple(there / here for there, here in zip(self.there, self.here, strict=True))

    def moved(self, score: Floats | float) -> Floats:
        """Scores that were made for the rows, as probabilities there; those of label 1 keep their order."""
        return moved_scores(score, self.factors)

    def as_made(self, score: float) -> float:
        """The score of label 1 in the rows that `moved` turns into this one."""
        zero, one = self.factors
        return zero * score / (zero * score + one * (1 - score))

    def counted(self, rows: Rows) -> Rows:
        """The rows with the weights, and unless they are kept the scores, that they have there. Errors: DecalError."""
        if isinstance(rows, CountedData):
            return rows.recounted(self)
        weight = rows.weights * np.array(self.factors)[np.asarray(rows.label, dtype=np.intp)]
        score = rows.score if self.kept else self.moved(rows.score)
        return replace(rows, weight=weight, score=score, share_known=self.known)

    def table(self, t: Table) -> Table:
        """A table of counted rows as it is there. Errors: DecalError, where cells do not tell how scores move."""
        if isinstance(t, CellTable):
            if not self.kept:
                raise DecalError("cells do not tell how the scores of their rows move", f"add {Hint('keep_scores')}")
            by_label = np.array(self.factors)[:, None, None]
            again: Table = CellTable.of_sums(t.least, t.greatest, t.sums * by_label, t.squares * by_label**2)
        else:
            (score,), n, pos, design = self._merged(t, t.score)
            again = Table(score, n, pos, design)
        return again.with_known_share() if self.known else again

    def pairs(self, pairs: PairTable) -> PairTable:
        """A pair table of counted rows as it is there. Errors: DecalError, where its pairs are cells."""
        if isinstance(pairs, CellPairs):
            raise DecalError(
                "cells of two scores are of the rows as they are, and not of another population",
                f"compare levels, or drop {Hint('prevalence')} and {Hint('sampled_negatives')}",
            )
        (a, b), n, pos, design = self._merged(pairs, pairs.a, pairs.b)
        again = PairTable(a, b, n, pos, design)
        return again.with_known_share() if self.known else again

    def _merged(self, cells: Counted, *scores: Floats) -> tuple[list[Floats], Floats, Floats, Design]:
        """Scores, rows, positives and design, sorted by the moved scores; cells whose scores became equal are one."""
        zero, one = self.factors
        moved = list(scores if self.kept else map(self.moved, scores))
        order, starts = runs_of(moved)
        moved = [values[order[starts]] for values in moved]

        def sums(all_of: NDArray[Any], ones: NDArray[Any], zero: float, one: float) -> tuple[Floats, Floats]:
            positive = np.asarray(ones, dtype=np.float64) * one
            whole = (all_of - ones) * zero + positive
            return np.add.reduceat(whole[order], starts), np.add.reduceat(positive[order], starts)

        n, pos = sums(cells.n, cells.pos, zero, one)
        if not isinstance(cells.design, Clustered):
            return moved, n, pos, weighted(*sums(*cells.squares_of_rows, zero**2, one**2))
        rows = cells.design.select(order).merged(starts).rows
        factor = np.where(rows.label > 0, one, zero)
        rows = rows._replace(weight=rows.weight * factor, square=rows.square * factor**2, weighted=True)
        return moved, n, pos, Clustered.of_rows(rows, len(starts), np.mean(moved, axis=0))
