"""Rows that were counted, as rows again as far as it goes: those of one score, or pair of scores, and label
are one row of their weight.

What rows of one score and label add to a sum of rows is alike but for their weights. So sums over rows, and their
errors, are those over bundles, as long as a bundle says how many rows it has and what their squared weights add up to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.tables.cells import CellTable
from decal_cli.tables.design import Counted
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats, Table

_ROUNDING = 1e-9
"""Of sums of squared weights."""


@dataclass(frozen=True, eq=False)
class Bundles(Rows):
    """Rows that are counted by score and label. levels: the table of their scores."""

    levels: Table = field(kw_only=True)

    @cached_property
    def table(self) -> Table:
        return self.levels

    @property
    def weighted(self) -> bool:
        return self.levels.weighted


def bundles(cells: Counted, table: Table, score: Floats, count: int) -> Bundles:
    """The rows of levels, or of pairs of scores, and the table of these scores; there are so many rows.

    Errors: DecalError, where they do not tell enough of rows.
    """
    if isinstance(table, CellTable) and not table.exact:
        raise DecalError(
            f"{Hint('capacity')} ranks rows by their score, and only cells of it are known",
            f"count every score (round them in {Hint('query')}, or drop {Hint('cells')}), or give a file of rows",
        )
    if cells.design.clustered:
        raise DecalError(
            f"{Hint('capacity')} with {Hint('cluster')} needs the rows, and only counts are known",
            "give a file of rows",
        )
    n, pos, n2, pos2 = (np.asarray(each, dtype=np.float64) for each in (cells.n, cells.pos, cells.n2, cells.pos2))
    weight, squares = (np.column_stack((both - ones, ones)).ravel() for both, ones in ((n, pos), (n2, pos2)))
    some = weight > 0
    weight, squares = weight[some], squares[some]
    spread = squares / weight**2
    if abs(float((1 / spread).sum()) - count) > _ROUNDING * count:
        raise DecalError(
            f"{Hint('capacity')} of rows of different weights needs the rows: counts do not tell how many have "
            "each score",
            "give a file of rows",
        )
    label, score = np.tile([0, 1], len(n))[some], np.repeat(score, 2)[some]
    return Bundles(score, label=label, weight=weight, copies=1 / spread, spread=spread, levels=table, counted=True)
