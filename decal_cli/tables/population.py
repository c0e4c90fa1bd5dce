"""Rows of one population counted as those of another, where labels 1 are rarer or more frequent."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from decal_cli.tables.aggregated import Aggregated
from decal_cli.tables.recount import Recount
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats


def population_share(rows: Rows) -> float:
    """The share of labels 1, by weight."""
    if isinstance(rows, Aggregated):
        return rows.table.base_rate
    return float(rows.weights @ rows.label / rows.weights.sum())


@dataclass(frozen=True)
class Population:
    """Where decisions are made. prevalence: the share of labels 1 there; sampled: in the rows, by weight.

    kept: scores are as the rows have them; else they are moved with the share of labels 1. known: whether prevalence is
    known, and not told from the rows.
    """

    prevalence: float
    sampled: float
    kept: bool
    known: bool = True

    @property
    def factors(self) -> tuple[float, float]:
        """What a row of label 0, and one of label 1, counts there [T (5.5)]."""
        return (1 - self.prevalence) / (1 - self.sampled), self.prevalence / self.sampled

    def moved(self, score: Floats | float) -> Floats:
        """Scores that were made for the rows, as probabilities there; it never changes their order."""
        zero, one = self.factors
        numerator = one * np.asarray(score)
        moved: Floats = numerator / (numerator + zero * (1 - np.asarray(score)))
        return moved

    def as_made(self, score: float) -> float:
        """The score of the rows that moves to this one."""
        zero, one = self.factors
        return zero * score / (zero * score + one * (1 - score))

    def counted(self, rows: Rows) -> Rows:
        """The rows with the weights, and unless they are kept the scores, that they have there. Errors: DecalError."""
        if isinstance(rows, Aggregated):
            return rows.recounted(Recount(self.factors, None if self.kept else self.moved, self.known))
        weight = rows.weights * np.array(self.factors)[np.asarray(rows.label, dtype=np.intp)]
        score = rows.score if self.kept else self.moved(rows.score)
        return replace(rows, weight=weight, score=score, share_known=self.known)
