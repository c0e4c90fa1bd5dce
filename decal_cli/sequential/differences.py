"""Confidence sequences for a mean that may be looked at after every row.

What is covered is the running mean of the conditional expectations of a difference, given all rows before: it needs no
assumption on how the rows depend on each other. Empirical Bernstein sequences (Howard et al. 2021, Choe and Ramdas
2024) with the boundary of the gamma-exponential mixture.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.documents import consistent
from decal_cli.limits import MAX_ROWS_OVER_TIME as MAX_ROWS
from decal_cli.sequential.resumable import Resumable
from decal_cli.tables.table import Floats, Ints
from decal_cli.task import BinaryTask

MAX_GUESS = 0.25
"""Of the range, how far from 0 a guess may lie."""
TIGHTEST = 25.0
"""The sum of squares, in squared ranges, at which the boundary is tightest: some hundred rows that differ."""
_LEAST_SQUARES, _STEP = 1e-2, 1.005
"""The boundary is computed where the sum of squares is 0 or this times a power of the step."""


class Sequence(NamedTuple):
    """The running mean after every row, and the ends of what covers its expectation, shape (T,) each."""

    mean: Floats
    low: Floats
    high: Floats


def mean_sequence(difference: Floats, guess: Floats, width: float, alpha: float) -> Sequence:
    """Ends that hold for all rows at once with probability 1 - alpha.

    difference: shape (T,). guess: of each difference, shape (T,), made from the rows before it; it lies in the range
    that the difference can have, whose ends are known before and are at most `width` apart.
    """
    squares = np.cumsum(((difference - guess) / width) ** 2)
    return sequence_of_sums(np.cumsum(difference), squares, np.arange(1, len(difference) + 1), width, alpha)


def sequence_of_sums(total: Floats, squares: Floats, rows: Ints, width: float, alpha: float) -> Sequence:
    """The same from sums: of the differences, and of the squares of what they miss their guess by, in widths."""
    mean = total / rows
    margin = width * boundary(squares, alpha / 2) / rows
    return Sequence(mean, mean - margin, mean + margin)


def boundary(squares: Floats, alpha: float) -> Floats:
    """What the sum of sub-exponential differences of scale 1 exceeds at any time with probability at most alpha.

    squares: the sum of squares so far, shape (T,). The boundary is taken at the next point of a fixed grid, so that it
    is never too small, and the same however the rows are cut into pieces.
    """
    with np.errstate(divide="ignore"):
        place = np.ceil(np.log(squares / _LEAST_SQUARES) / math.log(_STEP)).clip(min=-1)
    place = np.where(_LEAST_SQUARES * _STEP**place < squares, place + 1, place)
    place = np.where(squares > 0, place.clip(min=0), -1)
    points, at = np.unique(place, return_inverse=True)
    grid = np.where(points < 0, 0.0, _LEAST_SQUARES * _STEP**points)
    return np.asarray(_mixture_boundary(grid, alpha)[at])


def _mixture_boundary(squares: Floats, alpha: float) -> Floats:
    """The sum at which the gamma-exponential mixture is 1/alpha, by bisection, shape (k,): the end above it."""
    rho = TIGHTEST / (2 * math.log(1 / alpha) + math.log(1 + 2 * math.log(1 / alpha)))
    low, high = np.zeros_like(squares), np.ones_like(squares)
    while bool((below := log_mixture(high, squares, rho) < -math.log(alpha)).any()):
        high = np.where(below, 2 * high, high)
    for _ in range(60):
        middle = (low + high) / 2
        below = log_mixture(middle, squares, rho) < -math.log(alpha)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


def log_mixture(total: Floats, squares: Floats, rho: float) -> Floats:
    """log of the gamma-exponential mixture supermartingale at a sum and its sum of squares, for scale 1.

    Howard et al. 2021, prop. 9: the mean of exp(lambda total - (-log(1 - lambda) - lambda) squares) over 1 - lambda
    in (0, 1) with a truncated gamma density of shape and rate rho.
    """
    from scipy.special import gammainc, gammaln

    start = rho * math.log(rho) - gammaln(rho) - math.log(gammainc(rho, rho))
    shape, rate = squares + rho, total + squares + rho
    return np.asarray(start + gammaln(shape) + np.log(gammainc(shape, rate)) - shape * np.log(rate) + total + squares)


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

    rows: int
    total: float
    squares: float
    differing: list[int]
    positives: list[int]

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


class Runs(NamedTuple):
    """Rows that follow each other and are of one cluster. The first run may have begun before these rows.

    of_row: the run of each row, shape (T,), from 0. size: rows of each run so far, shape (R,). first: the number of the
    first row of each. Every run but the last is over.
    """

    of_row: Ints
    size: Ints
    first: Ints

    def up_to(self, rows: int) -> Runs:
        """The runs of the first so many rows; what the last one has of them is not counted anew, as it is not over."""
        runs = int(self.of_row[rows - 1]) + 1
        return Runs(self.of_row[:rows], self.size[:runs], self.first[:runs])


class RunningMeans(Resumable):
    """Sums of the averages over clusters of what one way to decide wins over another; clusters come in pieces.

    An average lies within u_delta max(t*, 1 - t*) of 0. It is guessed by the mean of those before, as long as this is a
    small part of that range: the less a guess can miss, the tighter the sequence.
    """

    steps: int
    total: float
    squares: float
    open: float

    def __init__(self, task: BinaryTask) -> None:
        self.reach = max(task.threshold, 1 - task.threshold) * task.u_delta
        self.farthest = MAX_GUESS * self.reach
        self.width = self.reach + self.farthest
        self.steps, self.total, self.squares, self.open = 0, 0.0, 0.0, 0.0

    def advance(self, difference: Floats, runs: Runs) -> Sums:
        """The sums after each cluster that is over by now; difference: of each row, shape (T,)."""
        totals = np.zeros(len(runs.size))
        totals[0] = self.open
        # One by one, so that the sum does not depend on how the rows are cut into pieces.
        np.add.at(totals, runs.of_row, difference)
        self.open = float(totals[-1])
        return self._enter(totals[:-1] / runs.size[:-1])

    def close(self, size: int) -> Sums:
        """The sums when the latest cluster, of so many rows, is over."""
        mean, self.open = self.open / size, 0.0
        return self._enter(np.array([mean]))

    def _enter(self, means: Floats) -> Sums:
        steps = np.arange(self.steps, self.steps + len(means) + 1)
        totals = np.cumsum(np.concatenate(([self.total], means)))
        guess = np.clip(totals[:-1] / np.maximum(steps[:-1], 1), -self.farthest, self.farthest)
        squares = np.cumsum(np.concatenate(([self.squares], ((means - guess) / self.width) ** 2)))
        self.steps, self.total, self.squares = int(steps[-1]), float(totals[-1]), float(squares[-1])
        return Sums(steps[1:], totals[1:], squares[1:], self.width)

    @property
    def sums(self) -> Sums:
        """The sums after the latest cluster that is over."""
        return Sums(np.array([self.steps]), np.array([self.total]), np.array([self.squares]), self.width)

    def _check(self) -> None:
        consistent(
            0 <= self.steps <= MAX_ROWS,
            abs(self.total) <= self.reach * (self.steps + 1),
            0 <= self.squares <= 4 * (self.steps + 1),
            abs(self.open) <= self.reach * MAX_ROWS,
        )


def difference_sequence(
    first: Acts, second: Acts, label: NDArray[np.uint8], task: BinaryTask, alpha: float
) -> Sequence:
    """The running mean of that difference, and its confidence sequence of level 1 - alpha."""
    return RunningDifference(task).advance(first, second, label).sequence(alpha)
