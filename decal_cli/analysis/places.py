"""How many places there are where one can act on so many rows only, and how many rows have none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.tables.rows import Rows


@dataclass(frozen=True)
class Places:
    """Places and rows, of weighted rows as many as their share of the weight says.

    lists: one, or one for each period; full: those with no place left for a row that would be acted on. places: of all
    lists. acted: the rows that are acted on. reaching: those that would be, were there no limit. thresholds: the lowest
    and the highest of the lists' thresholds.
    """

    lists: int
    full: int
    places: float
    acted: float
    reaching: float
    thresholds: tuple[float, float]

    @property
    def without(self) -> float:
        """Rows that would be acted on and have no place."""
        return self.reaching - self.acted


def places_of(rows: Rows, act_from: float | None) -> Places | None:
    """Of these rows, among those that the lists are made of; None where there is no limit."""
    if rows.listed is None:
        return None
    lists, weight = rows.listed.lists, rows.weights
    unit = float(weight.sum()) / len(rows)
    reaching = weight if act_from is None else weight[rows.score >= act_from]
    room = lists.room * len(lists.rows) / float(lists.rows.weights.sum())
    return Places(
        len(lists),
        int(np.count_nonzero(lists.full)),
        float(room.sum()),
        float(weight @ rows.listed.acted) / unit,
        float(reaching.sum()) / unit,
        (float(lists.threshold.min()), float(lists.threshold.max())),
    )
