"""Limited capacity: which rows are acted on where one can act on so many of them only.

Rows are acted on from the highest rank down: by score, or by what acting is expected to win. Rows that tie for the last
places share them with equal chance, and all is counted in expectation. A row below the threshold of the decision is not
acted on, even if places are free. Every period has its own list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.local_rate import NOWHERE, LocalMeans, Neighbours
from decal_cli.tables.rows import Rows, of_rows
from decal_cli.tables.table import Floats, Ints
from decal_cli.tables.units import run_of_each

_ROUNDING = 1e-12
"""Places that differ from a whole number by so little, relatively, differ by rounding."""


@dataclass(frozen=True)
class Capacity:
    """A number of places among a number of rows. among 0: all rows, or all of each period. text: as it was given."""

    text: str
    places: float
    among: float = 0.0

    def share(self, rows: Floats) -> Floats:
        """The share of the rows that has a place, for each list. rows: of each list, (D,)."""
        if self.among:
            return np.full(np.shape(rows), self.places / self.among)
        return np.minimum(self.places / rows, 1.0)


def limit_text(capacity: str, per: object) -> str:
    """A capacity, and the column whose values have it each."""
    return capacity if per is None else f"{capacity} for each value of {per}"


@dataclass(frozen=True, eq=False)
class TopK:
    """The lists of all rows, one for each period, shape (D,) each.

    room: the weight that has a place. acted: the weight that is acted on. next: the rank of the row that one more place
    would take, NaN where none would be acted on. threshold: the lowest rank that is acted on; where places are free,
    the one from which on rows are. rows: all rows of the lists; rank: what orders them, (T,).
    """

    capacity: Capacity
    rows: Rows
    rank: Floats
    room: Floats
    acted: Floats
    next: Floats
    threshold: Floats

    def __len__(self) -> int:
        """Number of lists, D."""
        return len(self.room)

    @property
    def full(self) -> NDArray[np.bool_]:
        """Which lists have every place taken and a row that would take one more, shape (D,)."""
        return ~np.isnan(self.next)

    @property
    def by_score(self) -> bool:
        """Whether rows are ranked by their score."""
        return self.rank is self.rows.score

    @cached_property
    def order(self) -> Ints:
        """Indices that sort the rows by their rank."""
        return self.rows.by_score if self.by_score else self.rows.by_rank(self.rank)

    @cached_property
    def _neighbours(self) -> tuple[Ints, Neighbours]:
        order = self.order[np.isfinite(self.rank[self.order])]
        rows, at = self.rows, self.next[self.full]
        return order, Neighbours(self.rank[order], rows.weights[order], of_rows(rows.unit, order), at)

    def at_next(self, values: Floats) -> LocalMeans:
        """The means of these numbers of the rows, (T,), at the next row of each full list."""
        if not self.full.any():
            return NOWHERE
        order, around = self._neighbours
        return around.means(values[order])

    @cached_property
    def rates(self) -> LocalMeans:
        """The frequency of label 1 at the next row of each full list."""
        return self.at_next(np.asarray(self.rows.label, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Selection:
    """What the lists say of each row, shape (T,) each.

    wanted: whether it would be acted on, were there no limit. acted: the chance that it is. number: of its list. gives:
    the places that a row brings with it, per weight. lists: the lists of all rows, also where these rows are a part of
    them. moves: whether one more row moves the threshold of its list. beside: the selections by other orders, by name.
    """

    wanted: NDArray[np.bool_]
    acted: Floats
    number: Ints
    gives: Floats
    lists: TopK
    moves: bool = True
    beside: Mapping[str, Selection] = field(default_factory=dict)

    def take(self, which: NDArray[Any]) -> Selection:
        """The selection of some of the rows, by mask or index."""
        return replace(self, **{each.name: of_rows(getattr(self, each.name), which) for each in fields(self)})

    @property
    def with_fixed_threshold(self) -> Selection:
        """This selection with the threshold of each list fixed, as it is for a part of the list's rows."""
        return replace(
            self, moves=False, beside={name: each.with_fixed_threshold for name, each in self.beside.items()}
        )

    def at_next(self, means: Floats) -> Floats:
        """The mean at the next row of each row's list, shape (T,); 0 where the list is not full or its threshold fixed.

        means: at the next row of each full list, shape (F,).
        """
        of_lists = np.zeros(len(self.lists))
        if self.moves:
            of_lists[self.lists.full] = means
        return of_lists[self.number]


def selected(rows: Rows, capacity: Capacity, act_from: float | None, rank: Floats | None = None) -> Rows:
    """The rows with what their lists say of them.

    rank: by what rows are ranked, shape (T,), None for their score; -infinity: never acted on. act_from: the rank below
    which none is acted on.
    """
    rank = rows.score if rank is None else rank
    period = np.zeros(len(rows), dtype=np.int64) if rows.period is None else rows.period
    order = (rows.by_score if rank is rows.score else rows.by_rank(rank))[::-1]
    if rows.period is not None:
        order = order[np.argsort(period[order], kind="stable")]
    s, w, of_period = rank[order], rows.weights[order], period[order]
    starts = np.concatenate(([True], of_period[1:] != of_period[:-1]))
    levels = np.flatnonzero(starts | np.concatenate(([True], s[1:] != s[:-1])))
    n, height = np.add.reduceat(w, levels), s[levels]
    firsts, number = np.flatnonzero(starts[levels]), np.cumsum(starts[levels]) - 1
    share = capacity.share(np.diff(np.flatnonzero(starts), append=len(s)).astype(np.float64))
    room = _whole(share * np.add.reduceat(n, firsts))
    taken = np.cumsum(n) - n
    chance = np.clip((room[number] - (taken - taken[firsts][number])) / n, 0.0, 1.0)
    wanted = height > -np.inf if act_from is None else height >= act_from
    chance = np.where(wanted, _whole(chance), 0.0)
    at = np.arange(len(height))
    following = np.minimum.reduceat(np.where(wanted & (chance < 1), at, len(at)), firsts)
    threshold = height[np.maximum(np.maximum.reduceat(np.where(chance > 0, at, 0), firsts), firsts)]
    if act_from is not None:
        threshold = np.where(following < len(at), threshold, act_from)
    next_rank = np.append(height, np.nan)[following]
    acted = np.add.reduceat(n * chance, firsts)
    lists = TopK(capacity, rows, rank, room, acted, next_rank, threshold)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = run_of_each(levels, len(s))
    of_row = number[place]
    # A share of the rows grows with them, and a count does not; of weighted rows, both grow with the weight.
    brought = share if capacity.among or rows.weighted else np.zeros(len(share))
    return replace(rows, selection=Selection(wanted[place], chance[place], of_row, brought[of_row], lists))


def _whole(room: Floats) -> Floats:
    near = np.round(room)
    return np.where(np.isclose(room, near, rtol=_ROUNDING, atol=_ROUNDING), near, room)
