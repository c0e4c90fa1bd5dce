"""Rows in clusters that were counted by cluster before decal saw them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decal_cli.tables.clusters import Clustered, Ints, RowsOfCells
from decal_cli.tables.design import Floats


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
