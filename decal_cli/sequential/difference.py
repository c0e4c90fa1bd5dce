"""What one way to decide is worth more than another, row by row, and its confidence sequence."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.documents import consistent
from decal_cli.limits import MAX_ROWS_OVER_TIME as MAX_ROWS
from decal_cli.sequential.confidence_sequence import Sequence, sequence_of_sums
from decal_cli.sequential.resumable import Kept, Resumable, wholes
from decal_cli.tables.table import Floats, Ints
from decal_cli.task import BinaryTask

Acts = NDArray[np.bool_]
"""Whether each row is acted on, shape (T,)."""


def utility_difference(first: Acts, second: Acts, label: NDArray[np.uint8], task: BinaryTask) -> Floats:
    """What deciding as the second wins over the first in every row, shape (T,)."""
    return (second.astype(np.float64) - first) * task.u_delta * (label - task.threshold)


class Sums(NamedTuple):
    """Sums after every row, shape (T,) each: rows, the difference, and the squares of what its guess missed, in widths.

    width: of the range that holds what a guess can miss.
    """

    rows: Ints
    total: Floats
    squares: Floats
    width: float

    def sequence(self, alpha: float) -> Sequence:
        """The running mean of the difference, and its confidence sequence of level 1 - alpha."""
        return sequence_of_sums(self.total, self.squares, self.rows, self.width, alpha)


class RunningDifference(Resumable):
    """Sums of the difference between two ways to decide, of rows that may come in pieces.

    Rows that both decide alike differ by 0 for certain, and widen nothing. A row that they decide differently is
    guessed from the rows before it that differ in the same direction; before the first of them the guess is 0.
    """

    KEPT: ClassVar[Kept] = {"rows": int, "total": float, "squares": float, "differing": wholes, "positives": wholes}

    def __init__(self, task: BinaryTask) -> None:
        self.task = task
        self.rows, self.total, self.squares = 0, 0.0, 0.0
        # Rows that only the second acts on, and rows that only the first does; of each, how many have label 1.
        self.differing, self.positives = [0, 0], [0, 0]

    def advance(self, first: Acts, second: Acts, label: NDArray[np.uint8]) -> Sums:
        """The sums after each of the next rows."""
        task = self.task
        difference = utility_difference(first, second, label, task)
        guess = np.zeros(len(label))
        for way, (differs, sign) in enumerate(((second & ~first, 1.0), (first & ~second, -1.0))):
            positives = self.positives[way] + np.concatenate(([0], np.cumsum(label[differs], dtype=np.int64)))
            count = len(positives) - 1
            share = (positives[:-1] + task.threshold) / (self.differing[way] + np.arange(1, count + 1))
            guess[differs] = sign * task.u_delta * (share - task.threshold)
            self.differing[way], self.positives[way] = self.differing[way] + count, int(positives[-1])
        rows = self.rows + np.arange(1, len(label) + 1)
        total = np.cumsum(np.concatenate(([self.total], difference)))[1:]
        squares = np.cumsum(np.concatenate(([self.squares], ((difference - guess) / task.u_delta) ** 2)))[1:]
        if len(label):
            self.rows, self.total, self.squares = int(rows[-1]), float(total[-1]), float(squares[-1])
        return Sums(rows, total, squares, task.u_delta)

    @property
    def sums(self) -> Sums:
        """The sums after the latest row."""
        return Sums(np.array([self.rows]), np.array([self.total]), np.array([self.squares]), self.task.u_delta)

    def _check(self) -> None:
        if not len(self.differing) == len(self.positives) == 2:
            raise ValueError("there are two ways to differ")
        consistent(
            all(0 <= of_way <= rows for of_way, rows in zip(self.positives, self.differing, strict=True)),
            0 <= sum(self.differing) <= self.rows <= MAX_ROWS,
            abs(self.total) <= self.task.u_delta * (self.rows + 1),
            0 <= self.squares <= 4 * (self.rows + 1),
        )


def difference_sequence(
    first: Acts, second: Acts, label: NDArray[np.uint8], task: BinaryTask, alpha: float
) -> Sequence:
    """The running mean of that difference, and its confidence sequence of level 1 - alpha."""
    return RunningDifference(task).advance(first, second, label).sequence(alpha)
