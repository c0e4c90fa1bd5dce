"""Cells of the scores of two models at once: what is left of pairs that are too many to keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from decal_cli.tables.cells import CellTable, LogLoss, PowerLoss
from decal_cli.tables.estimate import MeanEstimate, Moments
from decal_cli.tables.pairs import PairTable
from decal_cli.tables.table import Loss, Table

PAIR_GRID = 1 << 8
"""Cells of equal width on each side."""


@dataclass(frozen=True, eq=False)
class CellPairs(PairTable):
    """Cells of two scores, each as one pair of mean scores, with the exact sums of what the two losses differ by.

    sides: the tables of A and of B, in cells. squared, logarithmic: moments of B - A of the squared loss and of the log
    loss. What the rows of a cell are decided is exact where the threshold is an edge of both sides.
    """

    sides: tuple[CellTable, CellTable] = field(kw_only=True)
    squared: Moments = field(kw_only=True)
    logarithmic: Moments = field(kw_only=True)

    @cached_property
    def tables(self) -> tuple[Table, Table]:
        """The tables of A and of B, in cells."""
        return self.sides

    @cached_property
    def cells(self) -> PairTable:
        """This: it is small."""
        return self

    def difference(self, loss: Loss) -> MeanEstimate:
        """Exact for the losses whose sums are known, and for decisions at edges of cells."""
        if isinstance(loss, PowerLoss):
            return self.estimate(self.squared)
        if isinstance(loss, LogLoss):
            return self.estimate(self.logarithmic)
        return super().difference(loss)

    def decided_at(self, threshold: float) -> bool:
        """Whether every row is known to be decided at a threshold, by both models."""
        return all(side.straddled(threshold) is None for side in self.sides)
