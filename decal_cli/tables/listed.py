"""Limited capacity: which rows are acted on where one can act on so many of them only.

Rows are acted on from the highest score down, until the places are taken. The rows of a level that has fewer places
than rows share them: each is acted on with the same chance, and everything is counted in expectation. A row below the
threshold of the decision is not acted on, even if places are free. Every period, such as a day, has a list of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.local_rate import LocalRates, local_rates
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats

_ROUNDING = 1e-12
"""Places that differ from a whole number by so little, relatively, differ by rounding."""


@dataclass(frozen=True)
class Capacity:
    """So many places among so many rows; among None: among all rows, or those of each period. text: as it was given."""

    text: str
    places: float
    among: float | None = None

    def share(self, rows: Floats) -> Floats:
        """The share of lists of so many rows each that has a place."""
        if self.among is None:
            return np.minimum(self.places / rows, 1.0)
        return np.full(np.shape(rows), self.places / self.among)


@dataclass(frozen=True, eq=False)
class Lists:
    """The lists of all rows, one for each period, shape (D,) each.

    room: the weight that has a place. acted: the weight that is acted on. next: the score of the row that one more
    place would take, NaN where none would be acted on. threshold: the lowest score that is acted on; where places are
    free, the threshold of the decision. rows: those that the lists are made of.
    """

    capacity: Capacity
    rows: Rows
    room: Floats
    acted: Floats
    next: Floats
    threshold: Floats

    def __len__(self) -> int:
        """Number of lists, D."""
        return len(self.room)

    @property
    def full(self) -> NDArray[np.bool_]:
        """Where every place is taken and another would be."""
        return ~np.isnan(self.next)

    @cached_property
    def rates(self) -> LocalRates | None:
        """The frequency of label 1 at the next row of each full list; None where none is full."""
        return local_rates(self.rows, self.next[self.full]) if self.full.any() else None


@dataclass(frozen=True, eq=False)
class Listed:
    """What the lists say of each row, shape (T,) each.

    acted: the chance that it is acted on. chance: the frequency of label 1 at the next row of its list; NaN where that
    is not to be counted, because places are free. gives: the places that a row brings with it, per weight. lists: those
    of all rows, also where these rows are some of them.
    """

    acted: Floats
    chance: Floats
    gives: Floats
    lists: Lists

    def take(self, which: NDArray[Any]) -> Listed:
        """Those of some of the rows."""
        return replace(self, acted=self.acted[which], chance=self.chance[which], gives=self.gives[which])

    @property
    def given(self) -> Listed:
        """The same where the threshold of the list is given, as it is for a part of its rows."""
        return replace(self, chance=np.full(len(self.chance), np.nan))


def listed(rows: Rows, capacity: Capacity, act_from: float | None) -> Rows:
    """The rows with what their lists say of them; act_from: the score below which none is acted on."""
    period = np.zeros(len(rows), dtype=np.int64) if rows.period is None else rows.period
    order = rows.by_score[::-1]
    if rows.period is not None:
        order = order[np.argsort(period[order], kind="stable")]
    s, w, of_period = rows.score[order], rows.weights[order], period[order]
    starts = np.concatenate(([True], of_period[1:] != of_period[:-1]))
    levels = np.flatnonzero(starts | np.concatenate(([True], s[1:] != s[:-1])))
    n, score = np.add.reduceat(w, levels), s[levels]
    firsts, number = np.flatnonzero(starts[levels]), np.cumsum(starts[levels]) - 1
    size = np.diff(np.flatnonzero(starts), append=len(s)).astype(np.float64)
    share = capacity.share(size)
    room = _whole(share * np.add.reduceat(n, firsts))
    taken = np.cumsum(n) - n
    chance = np.clip((room[number] - (taken - taken[firsts][number])) / n, 0.0, 1.0)
    wanted = np.full(len(score), True) if act_from is None else score >= act_from
    chance = np.where(wanted, np.where(chance >= 1 - _ROUNDING, 1.0, np.where(chance <= _ROUNDING, 0.0, chance)), 0.0)
    at = np.arange(len(score))
    following = np.minimum.reduceat(np.where(wanted & (chance < 1), at, len(at)), firsts)
    lowest = np.maximum.reduceat(np.where(chance > 0, at, -1), firsts)
    full = following < len(at)
    threshold = np.where(lowest >= 0, score[lowest], score[firsts])
    if act_from is not None:
        threshold = np.where(full, threshold, act_from)
    next_score = np.where(full, score[np.minimum(following, len(at) - 1)], np.nan)
    lists = Lists(capacity, rows, room, np.add.reduceat(n * chance, firsts), next_score, threshold)
    rates = np.full(len(lists), np.nan)
    if lists.rates is not None:
        rates[full] = lists.rates.rate
    level = np.repeat(at, np.diff(levels, append=len(s)))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = level
    of_row = number[place]
    # A share of the rows grows with them, and a count does not; of weighted rows, both grow with the weight.
    brought = share if capacity.among is not None or rows.weight is not None else np.zeros(len(share))
    return replace(rows, listed=Listed(chance[place], rates[of_row], brought[of_row], lists))


def _whole(room: Floats) -> Floats:
    near = np.round(room)
    return np.where(np.abs(room - near) <= _ROUNDING * np.maximum(near, 1.0), near, room)
