"""Rows with a probability for each of several classes, and what metrics of them share.

Probabilities of K classes hardly ever repeat, so these rows are not counted into levels as those of two classes are:
they are the table. What is one number a row (the highest probability, or that of one class) is counted as any score is.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.estimate import counted_rows
from decal_cli.tables.memo import Remembering, once
from decal_cli.tables.order import stable_order
from decal_cli.tables.table import BLOCK, Floats, Ints, Table, tabulate
from decal_cli.tables.units import Units, summed, units_of_rows

T = TypeVar("T")
NEARLY = 1e-12
"""Expected utilities this close, as a share of the largest utility, are equal: the first action is taken, or for two
classes the last. So are probabilities: the first class is predicted."""
MIN_LEVEL_ROWS = 30
"""Rows of a level from which on, as the median, levels count as they are."""


class ClassLevels(NamedTuple):
    """Rows put together: the number of each row's level, (T,); its mean probabilities and class counts, (m, K)."""

    of_row: Ints
    score: Floats
    counts: Floats

    @property
    def share(self) -> Floats:
        """Class counts as shares of all rows, (m, K)."""
        return np.asarray(self.counts / self.counts.sum())


@dataclass(frozen=True, eq=False)
class ClassTable(Remembering):
    """Labelled rows of K classes.

    score: float64 (T, K), rows of sum 1. label: (T,), numbers of classes. weight: float64 (T,), positive, or None.
    classes: the names of the classes. unit: the number of each row's cluster, or None. share_known: whether weights
    make the share of each class what it is known to be.
    """

    score: Floats
    label: NDArray[Any]
    weight: Floats | None
    classes: tuple[str, ...]
    unit: Ints | None = None
    share_known: bool = False

    def __len__(self) -> int:
        """Number of rows, T."""
        return len(self.label)

    @cached_property
    def weights(self) -> Floats:
        """Weights, ones where there are none."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @cached_property
    def total(self) -> float:
        """Rows, or their summed weight."""
        return float(self.weights.sum())

    @cached_property
    def effective_rows(self) -> float:
        """Effective rows: how many independent rows of one weight would say as much."""
        return counted_rows(self.total**2 / float((self.weights**2).sum()) / self.effect)

    @cached_property
    def units(self) -> Units:
        """A unit for each row."""
        return units_of_rows(self.label, self.weight, self.unit, self.effective_rows, self.share_known)

    def count(self, number: Ints, size: int) -> Floats:
        """Rows, or their summed weight, of each number from 0 to size - 1, shape (size,)."""
        return np.bincount(number, self.weights, size).astype(np.float64)

    @property
    def effect(self) -> float:
        """The design effect of squared weights: how many rows say as much as one by itself."""
        if self.unit is None:
            return 1.0
        # Of two classes it is that of their score, as where one column holds it.
        return (self.one_vs_rest(1) if len(self.classes) == 2 else self.top).design.effect

    @cached_property
    def of_label(self) -> Floats:
        """The probability that each row gives to its label, shape (T,)."""
        return self.score[np.arange(len(self)), self.label]

    def in_content_order(self, keys: Sequence[NDArray[Any]] = ()) -> Ints:
        """Indices that sort the rows by their content alone, in whatever order the classes stand; then by keys.

        By the probability of the label; rows that share it by the highest and the lowest too, then by all in increasing
        order, and after the keys by which class has which. keys: (T,) each, the last one first.
        """
        first = self.of_label
        order = stable_order(first)
        ranked = first[order]
        same = ranked[1:] == ranked[:-1]
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        if len(tied):
            rows = order[tied]
            each = np.sort(self.score[rows], axis=1).T
            classes = self._classes_by_content(rows)
            of_classes = np.argsort(classes)[self.label[rows]], *self.score[rows][:, classes].T
            others = (*of_classes, *(key[rows] for key in keys), *each)
            order[tied] = rows[np.lexsort((*others, each[0], each[-1], first[rows]))]
        return order

    def _classes_by_content(self, rows: Ints) -> list[int]:
        """The classes by what some rows hold of them: labels, then probabilities; wherever the classes stand."""
        counts = np.bincount(self.label[rows], minlength=len(self.classes)).tolist()
        # Any order will do that hangs on the content alone, so that bytes need not sort as their numbers do.
        return sorted(range(len(counts)), key=lambda k: (counts[k], np.sort(self.score[rows, k] + 0.0).tobytes()))

    @cached_property
    def _highest(self) -> tuple[Floats, Ints]:
        """The highest probability of each row and its class, column by column: that is how files hold them."""
        highest, predicted = np.empty(len(self)), np.zeros(len(self), dtype=np.int64)
        for start in range(0, len(self), BLOCK):
            part = slice(start, start + BLOCK)
            highest[part] = self.score[part, 0]
            for number, column in enumerate(self.score[part].T[1:], start=1):
                # Moved to other shares, equal probabilities differ in their last bit.
                higher = column > highest[part] + NEARLY
                np.copyto(highest[part], column, where=higher)
                np.copyto(predicted[part], number, where=higher)
        return highest, predicted

    @property
    def predicted(self) -> Ints:
        """The number of the most probable class of each row, the first of equals within NEARLY, shape (T,)."""
        return self._highest[1]

    @cached_property
    def top(self) -> Table:
        """The highest probability of each row, counted with whether that class is the label."""
        return tabulate(self._highest[0], self.predicted == self.label, self.weight, self.unit)

    @once
    def one_vs_rest(self, number: int) -> Table:
        """The probability of one class, counted with whether it is the label; sorted once for all who ask."""
        table = tabulate(np.ascontiguousarray(self.score[:, number]), self.label == number, self.weight, self.unit)
        return table.with_known_share() if self.share_known else table

    def each_class(self, of_class: Callable[[Table], T]) -> list[T]:
        """What a function gives for every class against the rest."""
        return [of_class(self.one_vs_rest(k)) for k in range(len(self.classes))]

    @cached_property
    def _levels(self) -> tuple[Floats, Ints, Ints]:
        """Distinct probabilities, (m, K); the number of each row's, (T,); rows of each, (m,)."""
        levels, number, rows = np.unique(self.score, axis=0, return_inverse=True, return_counts=True)
        return levels, number.reshape(-1), rows

    @property
    def n_levels(self) -> int:
        """How many different probabilities the rows have."""
        return len(self._levels[0])

    @property
    def levels_count(self) -> bool:
        """Whether levels hold enough rows, as the median, to count as they are."""
        return float(np.median(self._levels[2])) >= MIN_LEVEL_ROWS

    def at_levels(self) -> ClassLevels:
        """The rows by level."""
        return self._merged(self._levels[1])

    def by_row(self, most: int) -> ClassLevels:
        """Every row a level of its own; of more than `most` rows, so many that lie evenly in the order of content."""
        rows = np.arange(len(self))
        if len(rows) > most:
            rows = self.in_content_order()[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
        counts = np.zeros((len(rows), len(self.classes)))
        counts[np.arange(len(rows)), self.label[rows]] = self.weights[rows]
        return ClassLevels(rows, self.score[rows], counts)

    @once
    def in_cells(self, most: int) -> ClassLevels:
        """The rows in at most so many cells of about equally many rows."""
        return self._merged(self._cells(most))

    def _merged(self, number: Ints) -> ClassLevels:
        size = int(number.max()) + 1
        score = (
            summed(number, lambda part: self.weights[part] * self.score[part].T).T / self.count(number, size)[:, None]
        )
        classes = len(self.classes)
        counts = self.count(number * classes + self.label, size * classes).reshape(size, classes)
        return ClassLevels(number, score / score.sum(axis=1, keepdims=True), counts)

    def _cells(self, most: int) -> Ints:
        """The number of each row's cell, (T,): levels split at the median of the class that is widest spread.

        The cell of most rows is split first, until there are `most` cells, or no cell has more than one level.
        """
        levels, number, rows = self._levels
        # Of classes that are spread equally wide, the first one by content is split, wherever it stands.
        levels = levels[:, self._classes_by_content(np.arange(len(self)))]
        cell, count = np.empty(len(levels), dtype=np.int64), 0
        left, added = [(-len(self), 0, np.arange(len(levels)))], 0
        while left:
            _, _, here = heapq.heappop(left)
            spread = np.ptp(levels[here], axis=0)
            if count + len(left) + 1 >= most or spread.max() <= 0:
                cell[here], count = count, count + 1
                continue
            values = levels[here, int(np.argmax(spread))]
            middle = np.median(values)
            low = values < middle if (values < middle).any() else values <= middle
            for part in (here[low], here[~low]):
                added += 1
                heapq.heappush(left, (-int(rows[part].sum()), added, part))
        return cell[number]


WORTH_BLOCK = 1 << 13
"""Rows whose expected utilities are held at once: with those of ten actions they fit the processor's cache."""


def best_actions(score: Floats, utility: Floats) -> Ints:
    """The number of the best action for each row of probabilities, shape (T, K) to (T,); utility: (A, K)."""
    action = np.empty(len(score), dtype=np.int64)
    for part, _, first in best_by_block(score, utility):
        action[part] = first
    return action


def best_by_block(score: Floats, utility: Floats) -> Iterator[tuple[slice, Floats, Ints]]:
    """Blocks of rows, what every action is worth for each, shape (A, k), and the best one, shape (k,)."""
    near = NEARLY * float(np.abs(utility).max())
    actions = range(len(utility))
    for start in range(0, len(score), WORTH_BLOCK):
        part = slice(start, start + WORTH_BLOCK)
        worth = utility @ score[part].T
        enough = worth.max(axis=0) - near
        best = np.zeros(worth.shape[1], dtype=np.int64)
        # Of equal actions the one looked at last is taken: with several classes that is the first.
        for action in actions if score.shape[1] == 2 else reversed(actions):
            np.copyto(best, action, where=worth[action] >= enough)
        yield part, worth, best
