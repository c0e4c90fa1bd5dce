"""Rows of one population counted as those of another, where some labels are rarer or more frequent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from decal_cli.tables.aggregated import Aggregated
from decal_cli.tables.recount import Recount
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats

Shares = tuple[float, ...]
"""The share of each label, by weight."""


def population_share(rows: Rows) -> float:
    """The share of labels 1, by weight."""
    if isinstance(rows, Aggregated):
        return rows.table.base_rate
    return float(rows.weights @ rows.label / rows.weights.sum())


def class_shares(rows: Rows) -> Shares:
    """The share of each class, by weight."""
    counts = np.bincount(rows.label, rows.weights, len(rows.classes))
    return tuple((counts / counts.sum()).tolist())


def moved_scores(score: Floats | float, factors: Sequence[float] | Floats) -> Floats:
    """Probabilities where a row of each label counts so much, of scores of label 1 or of K classes, (T,) or (T, K)."""
    if np.ndim(score) == 2:
        numerators: Floats = np.asarray(score) * np.asarray(factors)
        return np.asarray(numerators / numerators.sum(axis=1, keepdims=True))
    zero, one = factors
    numerator = one * np.asarray(score)
    moved: Floats = numerator / (numerator + zero * (1 - np.asarray(score)))
    return moved


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
        """Of labels 0 and 1, by the share of labels 1 there and in the rows."""
        return cls((1 - prevalence, prevalence), (1 - sampled, sampled), kept, known)

    @property
    def prevalence(self) -> float | dict[str, float]:
        """The share of labels 1 there; of several classes that of each."""
        return dict(zip(self.classes, self.there, strict=True)) if self.classes else self.there[1]

    @property
    def sampled(self) -> float | dict[str, float]:
        """The same in the rows."""
        return dict(zip(self.classes, self.here, strict=True)) if self.classes else self.here[1]

    @property
    def factors(self) -> Shares:
        """What a row of each label counts there [T (5.5)]."""
        return tuple(there / here for there, here in zip(self.there, self.here, strict=True))

    def moved(self, score: Floats | float) -> Floats:
        """Scores that were made for the rows, as probabilities there; those of label 1 keep their order."""
        return moved_scores(score, self.factors)

    def as_made(self, score: float) -> float:
        """The score of the rows that moves to this one, of label 1."""
        zero, one = self.factors
        return zero * score / (zero * score + one * (1 - score))

    def counted(self, rows: Rows) -> Rows:
        """The rows with the weights, and unless they are kept the scores, that they have there. Errors: DecalError."""
        if isinstance(rows, Aggregated):
            zero, one = self.factors
            return rows.recounted(Recount((zero, one), None if self.kept else self.moved, self.known))
        weight = rows.weights * np.array(self.factors)[np.asarray(rows.label, dtype=np.intp)]
        score = rows.score if self.kept else self.moved(rows.score)
        return replace(rows, weight=weight, score=score, share_known=self.known)
