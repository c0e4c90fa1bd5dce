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


class Sums(NamedTuple):
    """Sums after every row, shape (T,) each: rows, the difference, and the squares of what its guess missed, in widths.

    A difference lies in a range whose ends are known before and are at most `width` apart, and so does its guess, which
    is made from the rows before it.
    """

    rows: Ints
    total: Floats
    squares: Floats
    width: float

    def sequence(self, alpha: float) -> Sequence:
        """The running mean, and ends that hold for all rows at once with probability 1 - alpha."""
        mean = self.total / self.rows
        margin = self.width * boundary(self.squares, alpha / 2) / self.rows
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


class RunningSums(Resumable):
    """Sums of differences that come in pieces. width: of the range that holds what a guess can miss.

    reach: how far from 0 a difference lies at most.
    """

    def __init__(self, reach: float, width: float) -> None:
        self.reach, self.width = reach, width
        self.total = self.squares = 0.0

    def _enter(self, before: int, difference: Floats, guess: Floats) -> Sums:
        """The sums after each of the next differences; before: how many there were."""
        total = cumulated(self.total, difference)
        squares = cumulated(self.squares, ((difference - guess) / self.width) ** 2)
        self.total, self.squares = float(total[-1]), float(squares[-1])
        return Sums(np.arange(before + 1, before + len(total)), total[1:], squares[1:], self.width)

    def sums_after(self, count: int) -> Sums:
        """The sums after the latest difference, of so many."""
        return Sums(np.array([count]), np.array([self.total]), np.array([self.squares]), self.width)

    def _check_sums(self, count: int) -> None:
        consistent(
            0 <= count <= MAX_ROWS,
            abs(self.total) <= self.reach * (count + 1),
            0 <= self.squares <= 4 * (count + 1),
        )


def cumulated(start: float, values: Floats) -> Floats:
    """The sum so far, and after each of these values, shape (T + 1,): the same however the rows are cut into pieces."""
    return np.cumsum(np.concatenate(([start], values)))


class RunningDifference(RunningSums):
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
        super().__init__(task.u_delta, task.u_delta)
        self.task, self.rows = task, 0
        # Rows that only the second acts on, and rows that only the first does; of each, how many have label 1.
        self.differing, self.positives = [0, 0], [0, 0]

    def advance(self, first: Acts, second: Acts, label: NDArray[np.uint8]) -> Sums:
        """The sums after each of the next rows."""
        task = self.task
        guess = np.zeros(len(label))
        for way, (differs, sign) in enumerate(((second & ~first, 1.0), (first & ~second, -1.0))):
            positives = self.positives[way] + np.concatenate(([0], np.cumsum(label[differs], dtype=np.int64)))
            count = len(positives) - 1
            share = (positives[:-1] + task.threshold) / (self.differing[way] + np.arange(1, count + 1))
            guess[differs] = sign * task.u_delta * (share - task.threshold)
            self.differing[way], self.positives[way] = self.differing[way] + count, int(positives[-1])
        sums = self._enter(self.rows, utility_difference(first, second, label, task), guess)
        self.rows += len(label)
        return sums

    def _check(self) -> None:
        if not len(self.differing) == len(self.positives) == 2:
            raise ValueError("there are two ways to differ")
        self._check_sums(self.rows)
        consistent(
            all(0 <= of_way <= rows for of_way, rows in zip(self.positives, self.differing, strict=True)),
            0 <= sum(self.differing) <= self.rows,
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


class RunningMeans(RunningSums):
    """Sums of the averages over clusters of what one way to decide wins over another; clusters come in pieces.

    An average lies within u_delta max(t*, 1 - t*) of 0. It is guessed by the mean of those before, as long as this is a
    small part of that range: the less a guess can miss, the tighter the sequence.
    """

    steps: int
    total: float
    squares: float
    open: float

    def __init__(self, task: BinaryTask) -> None:
        reach = max(task.threshold, 1 - task.threshold) * task.u_delta
        self.farthest = MAX_GUESS * reach
        super().__init__(reach, reach + self.farthest)
        self.steps, self.open = 0, 0.0

    def advance(self, difference: Floats, runs: Runs) -> Sums:
        """The sums after each cluster that is over by now; difference: of each row, shape (T,)."""
        totals = np.zeros(len(runs.size))
        totals[0] = self.open
        # One by one, so that the sum does not depend on how the rows are cut into pieces.
        np.add.at(totals, runs.of_row, difference)
        self.open = float(totals[-1])
        return self._enter_means(totals[:-1] / runs.size[:-1])

    def close(self, size: int) -> Sums:
        """The sums when the latest cluster, of so many rows, is over."""
        mean, self.open = self.open / size, 0.0
        return self._enter_means(np.array([mean]))

    def _enter_means(self, means: Floats) -> Sums:
        before = np.arange(self.steps, self.steps + len(means))
        mean = cumulated(self.total, means)[:-1] / np.maximum(before, 1)
        self.steps += len(means)
        return self._enter(self.steps - len(means), means, np.clip(mean, -self.farthest, self.farthest))

    def _check(self) -> None:
        self._check_sums(self.steps)
        consistent(abs(self.open) <= self.reach * MAX_ROWS)
