"""Rows in clusters over time: a cluster enters as one step, by the average over its rows, when it is over.

Rows of a cluster are not independent, so that a row says little once the labels of the rows before it are known. What
holds at all times at once then rests on the clusters before, not on the rows before: an average of bets, each of which
has an expectation of at most 1, is such a bet, and an average of differences lies in their range, whatever the rows of
a cluster have to do with each other. Every cluster counts the same, however many rows it has.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.documents import consistent
from decal_cli.limits import MAX_ROWS_OVER_TIME as MAX_ROWS
from decal_cli.sequential.calibration_alarm import BETS, MAX_LOG_E, RESTART, CalibrationAlarm
from decal_cli.sequential.difference import Sums
from decal_cli.sequential.resumable import Kept, Resumable, log_array
from decal_cli.tables.table import Floats, Ints
from decal_cli.task import BinaryTask

MAX_GUESS = 0.25
"""Of the range, how far from 0 a guess may lie."""


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

    KEPT: ClassVar[Kept] = {"steps": int, "total": float, "squares": float, "open": float}

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


class ClusterAlarm(Resumable):
    """The e-process of `CalibrationAlarm`, where a bet on a cluster is the average of the bets on its rows."""

    KEPT: ClassVar[Kept] = {
        "steps": dict,
        "log_e": float,
        "open": log_array,
        "first_rows": lambda pairs: {int(step): int(row) for step, row in pairs},
    }

    def __init__(self) -> None:
        self.steps = CalibrationAlarm()
        self.log_e = 0.0
        self.open = np.full(len(BETS), -np.inf)
        self.first_rows = {0: 0}

    def advance(self, score: Floats, label: NDArray[np.uint8], runs: Runs) -> Floats:
        """log of the e-process of the clusters that are over when each of these rows comes, shape (T,)."""
        over = len(runs.size) - 1
        begun = self.steps.rows + np.arange(len(runs.size))
        self.first_rows |= {
            step: row for step, row in zip(begun.tolist(), runs.first.tolist(), strict=True) if step % RESTART == 0
        }
        factors = np.full((len(BETS), len(runs.size)), -np.inf)
        factors[:, 0] = self.open
        for sums, log_factors in zip(factors, CalibrationAlarm.log_factors(score, label), strict=True):
            np.logaddexp.at(sums, runs.of_row, log_factors)
        self.open = factors[:, -1].copy()
        after = np.concatenate(([self.log_e], self._enter(factors[:, :over] - np.log(runs.size[:over]))))
        return np.asarray(after[runs.of_row])

    def close(self, size: int) -> float:
        """log of the e-process when the latest cluster, of so many rows, is over."""
        factors, self.open = self.open[:, None] - np.log(size), np.full(len(BETS), -np.inf)
        self._enter(factors)
        return self.log_e

    def _enter(self, factors: Floats) -> Floats:
        log_e = self.steps.enter(self.steps.rows + np.arange(factors.shape[1]), factors)
        self.log_e = float(log_e[-1]) if len(log_e) else self.log_e
        led = {*self.steps.leader.tolist()}
        self.first_rows = {step: row for step, row in self.first_rows.items() if step in led or step >= self.steps.rows}
        return log_e

    def rows_of_starts(self) -> set[int]:
        """The rows at which a start stands that an alarm may name, now or when the latest cluster is over."""
        return set(self.first_rows.values())

    def likely_start(self) -> int:
        """The row, counted from 0, at which the start stands whose bet has won most by now: to a hundred clusters."""
        return self.first_rows[self.steps.likely_start()]

    def state(self) -> dict[str, Any]:
        """What is carried over, as JSON."""
        return super().state() | {"first_rows": [[step, self.first_rows[step]] for step in sorted(self.first_rows)]}

    def _check(self) -> None:
        if len(self.open) != len(BETS) or not {*self.steps.leader.tolist()} <= self.first_rows.keys():
            raise ValueError("there are not as many bets as there should be, or a start has no row")
        consistent(
            abs(self.log_e) <= MAX_LOG_E,
            np.isinf(self.open).all() or (np.abs(self.open) <= 2 * MAX_LOG_E).all(),
            all(0 <= row <= MAX_ROWS for row in self.first_rows.values()),
        )
