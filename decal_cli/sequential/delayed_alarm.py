"""The alarm where labels come in late: blocks of rows, each of which bets when labels two blocks before it are known.

A forecast that is made before the labels of the last rows are known need not follow from them: labels of windows that
overlap hang together, and products of bets on single rows are then no fair game (of calibrated forecasts thirty rows
ahead they raise the alarm nearly always). A block begins when the labels of all blocks but the one before it are known.
So a bet on a block is fair given the blocks two, four and six before it: the even blocks are one e-process, the odd
ones another. The chance that either reaches 2/alpha is at most alpha. A bet on a block is the average of those on its
rows, over as many rows as the block before it has: that is known when the block begins, whatever its labels will be.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.documents import consistent
from decal_cli.limits import MAX_ROWS_OVER_TIME as MAX_ROWS
from decal_cli.sequential.calibration_alarm import BETS, MAX_LOG_E, CalibrationAlarm
from decal_cli.sequential.resumable import Kept, Resumable, plain
from decal_cli.tables.table import Floats, Ints


class DelayedBlock(NamedTuple):
    """Rows that follow each other, so far. first: the number of the first; size: how many; shared: over how many rows
    a bet on it is the average; log_sums: of each bet, the sum over those of them that it has, shape (bets,).
    """

    first: int
    size: int
    shared: int
    log_sums: Floats


class DelayedAlarm(Resumable):
    """Two e-processes of `CalibrationAlarm`, of every other block each. A block enters when its labels are known.

    turns: of even and of odd blocks. log_inverse: log of 1 over the p-value: half of the most that either has been.
    rows, begun: rows and blocks so far; held: the latest two blocks, which wait.
    """

    KEPT: ClassVar[Kept] = {"rows": int, "begun": int, "log_inverse": float, "turns": tuple, "held": tuple}

    def __init__(self) -> None:
        self.turns = (CalibrationAlarm(), CalibrationAlarm())
        self.log_inverse = 0.0
        self.rows = self.begun = 0
        self.held: list[DelayedBlock] = []

    def advance(self, score: Floats, label: NDArray[np.uint8], known: Ints) -> Floats:
        """log of 1 over the p-value after each of the next rows, shape (T,): it never falls.

        known: of how many first rows of the stream the label is known when each of these is predicted, shape (T,).
        """
        row = np.arange(self.rows, self.rows + len(score))
        first = np.array([*(block.first for block in self.held), *self._begins(known)])
        size = np.diff(first, append=self.rows + len(score))
        old = len(self.held)
        shared = np.concatenate(([1], size[:-1]))
        shared[:old] = [block.shared for block in self.held]
        of_row = np.searchsorted(first, row, side="right") - 1
        bets = row - first[of_row] < shared[of_row]
        log_sums = np.full((len(BETS), len(first)), -np.inf)
        log_sums[:, :old] = np.transpose([block.log_sums for block in self.held]) if old else 0.0
        for sums, log_factors in zip(log_sums, CalibrationAlarm.log_factors(score[bets], label[bets]), strict=True):
            # One by one, so that the sum does not depend on how the rows are cut into pieces.
            np.logaddexp.at(sums, of_row[bets], log_factors)
        log_inverse = self._enter(first[:-2], size[:-2], shared[:-2], log_sums[:, :-2])
        self.held = [
            DelayedBlock(int(first[place]), int(size[place]), int(shared[place]), log_sums[:, place].copy())
            for place in range(max(len(first) - 2, 0), len(first))
        ]
        self.rows, self.begun = self.rows + len(score), self.begun + len(first) - old
        # The blocks up to two before that of a row have entered.
        return np.asarray(log_inverse[np.maximum(of_row - 1, 0)])

    def _begins(self, known: Ints) -> list[int]:
        """The first rows of the blocks that begin here: the labels of all blocks but the latest are known there."""
        begins = [] if self.held else [0]
        latest, until = self.held[-1].first if self.held else 0, known.tolist()
        while True:
            place = bisect_left(until, latest, max(latest + 1 - self.rows, 0))
            if place == len(until):
                return begins
            latest = self.rows + place
            begins.append(latest)

    def _enter(self, first: Ints, size: Ints, shared: Ints, log_sums: Floats) -> Floats:
        """log of 1 over the p-value before any of these blocks has entered, and after each, shape (blocks + 1,)."""
        turn = (self.begun - len(self.held) + np.arange(len(first))) % 2
        with np.errstate(divide="ignore"):
            # Of a block that has fewer rows than its bet is shared among, the rest is not bet.
            log_factors = np.logaddexp(log_sums, np.log(np.maximum(shared - size, 0))) - np.log(shared)
        log_e = np.full(len(first), -np.inf)
        for number, e_process in enumerate(self.turns):
            log_e[turn == number] = e_process.enter(first[turn == number], log_factors[:, turn == number])
        log_inverse = np.maximum.accumulate(np.concatenate(([self.log_inverse], log_e - math.log(2))))
        self.log_inverse = float(log_inverse[-1])
        return np.asarray(log_inverse)

    def rows_of_starts(self) -> set[int]:
        """The rows at which a start stands that an alarm may name, now or when the blocks that wait have entered."""
        return set().union(*(turn.rows_of_starts() for turn in self.turns), {block.first for block in self.held})

    def likely_start(self) -> int:
        """The row, counted from 0, at which the start stands whose bet has won most by now."""
        return max(turn.strongest() for turn in self.turns).row

    def state(self) -> dict[str, Any]:
        """What is carried over, as JSON."""
        return super().state() | {"held": [plain(block._asdict()) for block in self.held]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there. Errors: KeyError, TypeError or ValueError, where it is no state."""
        self.rows, self.begun, self.log_inverse = int(state["rows"]), int(state["begun"]), float(state["log_inverse"])
        for turn, known in zip(self.turns, state["turns"], strict=True):
            turn.restore(known)
        self.held = [
            DelayedBlock(
                int(block["first"]),
                int(block["size"]),
                int(block["shared"]),
                np.array(block["log_sums"], dtype=float),
            )
            for block in state["held"]
        ]
        if any(len(block.log_sums) != len(BETS) for block in self.held):
            raise ValueError("there are not as many bets as there should be")
        ends = [block.first + block.size for block in self.held]
        logs = np.array([block.log_sums for block in self.held])
        consistent(
            0 <= self.log_inverse <= MAX_LOG_E,
            len(self.held) == min(self.begun, 2),
            0 <= self.begun <= self.rows <= MAX_ROWS,
            ends[-1:] == [self.rows] if self.rows else not self.held,
            ends[:-1] == [block.first for block in self.held[1:]],
            all(block.first >= 0 and block.size > 0 and 0 < block.shared <= self.rows for block in self.held),
            (np.abs(logs) <= 2 * MAX_LOG_E).all(),
            all(turn.rows <= self.rows for turn in self.turns),
        )
