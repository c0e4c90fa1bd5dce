"""Rows that were counted before, with other weights by label and other scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.tables.cells import CellTable
from decal_cli.tables.clusters import Clustered
from decal_cli.tables.design import Counted, Design, Floats, Weighted
from decal_cli.tables.pairs import CellPairs, PairTable
from decal_cli.tables.table import Table


@dataclass(frozen=True)
class Recount:
    """What rows count, and how they score, from now on.

    factors: of the weight of a row of label 0, and of label 1. moved: an increasing function of scores, or None.
    share_known: whether these make the share of label 1 what it is known to be.
    """

    factors: tuple[float, float]
    moved: Callable[[Floats], Floats] | None
    share_known: bool = False

    def table(self, t: Table) -> Table:
        """The table of the same rows. Errors: DecalError, where cells do not tell how scores move."""
        again = self._table(t)
        return again.with_known_share() if self.share_known else again

    def of_group(self) -> Recount:
        """The same for a part of the rows, whose share of label 1 is not known."""
        return replace(self, share_known=False)

    def _table(self, t: Table) -> Table:
        if isinstance(t, CellTable):
            if self.moved is not None:
                raise DecalError("cells do not tell how the scores of their rows move", f"add {Hint('keep_scores')}")
            by_label = np.array(self.factors)[:, None, None]
            squares = t.sums if t.squares is None else t.squares
            return CellTable.of_sums(t.least, t.greatest, t.sums * by_label, squares * by_label**2)
        (score,), n, pos, design = self._merged((t.score,), t)
        return Table(score, n, pos, design)

    def pairs(self, pairs: PairTable) -> PairTable:
        """The pairs of the same rows. Errors: DecalError, where they are cells."""
        if isinstance(pairs, CellPairs):
            raise DecalError(
                "cells of two scores are of the rows as they are, and not of another population",
                f"compare levels, or drop {Hint('prevalence')} and {Hint('sampled_negatives')}",
            )
        (a, b), n, pos, design = self._merged((pairs.a, pairs.b), pairs)
        return PairTable(a, b, n, pos, design)

    def _merged(self, scores: tuple[Floats, ...], cells: Counted) -> tuple[tuple[Floats, ...], Floats, Floats, Design]:
        """Scores, rows, positives and design, in order of the scores and with those that became equal as one."""
        zero, one = self.factors
        if self.moved is not None:
            scores = tuple(map(self.moved, scores))
        order = np.lexsort(scores[::-1])
        scores = tuple(values[order] for values in scores)
        starts = np.flatnonzero(np.append(True, np.logical_or.reduce([s[1:] != s[:-1] for s in scores])))
        scores = tuple(values[starts] for values in scores)

        def summed(all_of: NDArray[Any], ones: NDArray[Any], zero: float, one: float) -> tuple[Floats, Floats]:
            positive = np.asarray(ones, dtype=np.float64) * one
            whole = (all_of - ones) * zero + positive
            return np.add.reduceat(whole[order], starts), np.add.reduceat(positive[order], starts)

        n, pos = summed(cells.n, cells.pos, zero, one)
        if not isinstance(cells.design, Clustered):
            return scores, n, pos, Weighted(*summed(*cells.squares_of_rows, zero**2, one**2))
        design = cells.design.taken(order).merged(starts)
        assert isinstance(design, Clustered)
        return scores, n, pos, self._clustered(design, np.mean(scores, axis=0))

    def _clustered(self, design: Clustered, score: Floats) -> Clustered:
        behind = design.rows
        factor = np.array(self.factors)[np.asarray(behind.label, dtype=np.intp)]
        rows = behind._replace(weight=behind.weight * factor, square=behind.square * factor**2, weighted=True)
        return Clustered.of_rows(rows, design.size, score[behind.cell])
