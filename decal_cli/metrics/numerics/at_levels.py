"""Levels of a score, or bins in their place where levels hold too few rows to show anything but noise."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.tables.classes import MIN_LEVEL_ROWS, ClassLevels, ClassTable
from decal_cli.tables.table import BINS, Table

Levels = Literal["auto", "exact", "bins"]

AtLevels = Annotated[
    Levels, f"exact levels, {BINS} equal-mass bins, or auto: exact where the median level has {MIN_LEVEL_ROWS} rows"
]

AtCells = Annotated[
    Levels, f"exact levels, cells of about equal rows, or auto: exact where the median level has {MIN_LEVEL_ROWS} rows"
]
_CELLS, _MAX_NUMBERS = (8, 32), 160
"""Cells of several classes, at least and at most, and times classes at most: noise fills more of them."""


def levels_used(t: Table) -> Literal["exact", "bins"]:
    """What levels=auto means here: exact where the median level holds 30 or more (effective) rows, else bins."""
    # At least half of the levels hold the median or more, which spares most tables the median.
    # Clusters change intervals and no value, so that the levels are those of the same rows without them.
    if t.effective_rows * t.design.effect < MIN_LEVEL_ROWS / 2 * len(t):
        return "bins"
    return "exact" if float(np.median(t.rows_of_cells)) * t.design.effect >= MIN_LEVEL_ROWS * (1 - 1e-9) else "bins"


def at_levels(t: Table, levels: Levels) -> Table:
    """The table itself, or the table with every score replaced by the mean score of its equal-mass bin."""
    used = levels_used(t) if levels == "auto" else levels
    return t if used == "exact" else t.bins()


def as_score(c: ClassTable) -> Table | None:
    """Two classes as a score; None of more."""
    return c.one_vs_rest(1) if len(c.classes) == 2 else None


def on_exact_levels(c: ClassTable, levels: Levels) -> bool:
    """Whether rows of several classes are taken by levels of equal probabilities, by the rule of `levels_used`."""
    return levels == "exact" or (levels == "auto" and c.levels_count)


def levels_or_cells(c: ClassTable, levels: Levels) -> ClassLevels:
    """The rows of several classes by level, or by cell where levels hold few rows; few levels are cells each."""
    if on_exact_levels(c, levels):
        return c.at_levels()
    return c.in_cells(int(np.clip(_MAX_NUMBERS // len(c.classes), *_CELLS)))


def need_rows(t: Table) -> None:
    """Raise Undefined where levels hold too few rows for what they show to estimate anything but noise."""
    if levels_used(t) != "exact":
        raise Undefined(f"the median level holds fewer than {MIN_LEVEL_ROWS} rows")
