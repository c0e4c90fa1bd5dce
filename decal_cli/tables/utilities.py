"""The utility of each action at each class: a number that all units share, or a column where each unit has its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from decal_cli.tables.table import Floats, Ints


@dataclass(frozen=True, eq=False)
class Followed:
    """A column, and after it the numbers of some of its rows once more; the column is not copied."""

    column: Any
    like: Ints

    def __getitem__(self, which: Any) -> Floats:
        rows = len(self.column)
        if not isinstance(which, slice):
            return np.asarray(self.column[np.where(which < rows, which, self.like[np.maximum(which - rows, 0)])])
        start, stop, _ = which.indices(rows + len(self.like))
        if stop <= rows:
            return np.asarray(self.column[start:stop])
        again = self.like[max(start - rows, 0) : stop - rows]
        return np.concatenate((self.column[start:rows], self.column[again]))


def actions_at(thresholds: Sequence[float] | Floats, score: Floats) -> Ints:
    """The action of each score: how many of these increasing thresholds it reaches."""
    if len(thresholds) == 1:
        return (score >= thresholds[0]).view(np.int8)  # takes a thirtieth of the time of a search
    return np.searchsorted(thresholds, score, side="right").astype(np.int32)


@dataclass(frozen=True, eq=False)
class Utilities:
    """shared: numbers, (A, K). own: by action and class, columns in place of some of these, (m,)."""

    shared: Floats
    own: Mapping[tuple[int, int], Any] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> Utilities:
        """For each action a row with a number, or a column, for each class."""
        own = {(a, k): each for a, row in enumerate(rows) for k, each in enumerate(row) if np.ndim(each)}
        shared = [[0.0 if (a, k) in own else each for k, each in enumerate(row)] for a, row in enumerate(rows)]
        return cls(np.array(shared, dtype=np.float64), own)

    def __len__(self) -> int:
        """Number of actions, A."""
        return len(self.shared)

    @property
    def classes(self) -> int:
        """Number of classes, K."""
        return self.shared.shape[1]

    def __getitem__(self, place: tuple[int, int]) -> Any:
        """The utility of an action at a class: a number, or that of each unit, (m,)."""
        return self.own.get(place, self.shared[place])

    def of_some(self, place: tuple[int, int], which: Any) -> Any:
        """The utility of an action at a class: a number, or that of some of the units."""
        column = self.own.get(place)
        return self.shared[place] if column is None else column[which]

    def _at_class(self, k: int) -> list[Any]:
        return [self[a, k] for a in range(len(self))]

    def take(self, which: Any) -> Utilities:
        """The utilities of some of the units, by slice, mask or index."""
        return replace(self, own={place: column[which] for place, column in self.own.items()})

    def of_actions(self, actions: Sequence[int]) -> Utilities:
        """The utilities of some of the actions, which are numbered anew."""
        number = {action: new for new, action in enumerate(actions)}
        own = {(number[a], k): column for (a, k), column in self.own.items() if a in number}
        return Utilities(self.shared[list(actions)], own)

    def followed(self, like: Ints) -> Utilities:
        """The utilities of all units, and after them those of some units once more; like: the numbers of these."""
        return replace(self, own={place: Followed(column, like) for place, column in self.own.items()})

    def at(self, action: Any, label: Any) -> Floats:
        """The utility of the action of each unit at its label, (m,); either may be one for all."""
        place = action * self.classes + label
        worth = self.shared.ravel()[place]
        for (a, k), column in self.own.items():
            worth = np.where(place == a * self.classes + k, column, worth)
        return worth

    def expected(self, chance: Iterable[Floats]) -> Floats:
        """What each action is expected to be worth, by the chance of each class, K of (m,), shape (A, m)."""
        chance = list(chance)
        return np.array([sum(self[a, k] * each for k, each in enumerate(chance)) for a in range(len(self))])

    def beyond(self, action: int) -> Utilities:
        """What each action is worth more than this one."""
        classes = range(self.classes)
        return Utilities.of([[self[a, k] - self[action, k] for k in classes] for a in range(len(self))])

    @property
    def _all(self) -> list[Any]:
        return [self[a, k] for a in range(len(self)) for k in range(self.classes)]

    @property
    def least(self) -> Any:
        """The least of any action at any class: a number, or that of each unit."""
        return reduce(np.minimum, self._all)

    @property
    def most(self) -> Any:
        """The most of any action at any class: a number, or that of each unit."""
        return reduce(np.maximum, self._all)

    @property
    def largest(self) -> Any:
        """The largest number, by size: one, or that of each unit."""
        return np.maximum(-self.least, self.most)

    @property
    def best(self) -> list[Any]:
        """What the best action is worth, by class."""
        return [reduce(np.maximum, self._at_class(k)) for k in range(self.classes)]

    @property
    def undominated(self) -> Utilities:
        """Without actions that are worth no more than another at any class, and less at one, where units share them."""
        if self.own:
            return self
        no_better = (self.shared[:, None] <= self.shared).all(axis=2)
        return Utilities(self.shared[~np.any(no_better & ~no_better.T, axis=1)])

    @property
    def apart(self) -> list[Any]:
        """What the best action is worth more than the worst, by class."""
        worst = [reduce(np.minimum, self._at_class(k)) for k in range(self.classes)]
        return [most - least for most, least in zip(self.best, worst, strict=True)]
