"""A deterministic forecaster near perfect calibration, whatever the labels are."""

from __future__ import annotations

import math
from collections import deque
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.declarations.papers import cite
from decal_cli.documents import consistent
from decal_cli.limits import MAX_ROWS_OVER_TIME as MAX_ROWS
from decal_cli.sequential.forecaster import Forecaster, Guarantee, online
from decal_cli.sequential.resumable import Kept, int_array
from decal_cli.tables.table import Floats


class Pair(NamedTuple):
    """Two neighbours on a grid of so many steps from 0 to 1: `lower`, counted in steps, and the next one."""

    lower: int
    steps: int


@online("almost-one-step-ahead", source=cite("Arunachaleswaran et al. 2025", "alg. 2"))
class AlmostOneStepAhead(Forecaster):
    """Probabilities on a grid, within 2 sqrt(T) + 1 of perfect calibration, whatever the labels are.

    Arunachaleswaran et al. 2025. The bias of a point of the grid 0, 1/m, ..., 1 is the sum of point - label over the
    rows that count to it. There are always two neighbours of which the lower one has a bias of at most 0 and the upper
    one of at least 0. Of such pairs it takes the one nearest to the share of label 1 so far, and predicts its end that
    is further from 1/2; once the label is known, the row counts to the end that is nearer to the label. So no bias
    exceeds 1, and no row counts further off than 1/m. m is sqrt(T), rounded. Without a horizon T it is the power of 2
    whose square is at most 8 times the row's number, and what counted to a point of the old grid counts to it on the
    new one: the distance is at most 4 sqrt(T).
    """

    title = "almost one step ahead"
    needs_score = False
    uses_horizon = True
    on_grid = True
    KEPT: ClassVar[Kept] = {
        **dict.fromkeys(("row", "learned", "positives", "moved"), int),
        "bias": int_array,
        "pairs": lambda pairs: deque(Pair(int(lower), int(steps)) for lower, steps in pairs),
    }

    def __init__(self, horizon: int | None = None) -> None:
        self.horizon = horizon
        self.row = self.learned = self.positives = 0
        self.steps = _steps(1, horizon)
        # In steps, so that it is a whole number and no rounding adds up.
        self.bias = np.zeros(self.steps + 1, dtype=np.int64)
        self.moved = 0
        self.pairs: deque[Pair] = deque()

    def predict_one(self, score: float) -> float:
        """One of two neighbours of which one will have been right."""
        self.row += 1
        self._refine(_steps(self.row, self.horizon))
        # The bias of 0 is never above 0 and that of 1 never below: there is such a pair.
        lowers = np.flatnonzero((self.bias[:-1] <= 0) & (self.bias[1:] >= 0))
        share = self.positives / self.learned if self.learned else 0.5
        # Any pair serves the theorem. One near the share is where labels that come late are awaited.
        lower = int(lowers[np.abs(lowers + 0.5 - share * self.steps).argmin()])
        self.pairs.append(Pair(lower, self.steps))
        return _predicted(lower, self.steps) / self.steps

    def learn_one(self, score: float, label: int) -> None:
        """Count the oldest row without a label to the neighbour that is nearer to it."""
        self.learned += 1
        self.positives += label
        lower, steps = self.pairs.popleft()
        finer = self.steps // steps
        point = (lower + label) * finer
        self.bias[point] += point - self.steps * label
        self.moved += abs(lower + label - _predicted(lower, steps)) * finer

    def _refine(self, steps: int) -> None:
        finer = steps // self.steps
        if finer > 1:
            bias = np.zeros(steps + 1, dtype=np.int64)
            bias[::finer] = finer * self.bias
            self.steps, self.bias, self.moved = steps, bias, finer * self.moved

    def awaits(self, score: Floats, group: NDArray[Any]) -> bool:
        """Whether so many rows wait for their labels."""
        return len(self.pairs) == len(score)

    def _check(self) -> None:
        consistent(0 <= self.positives <= self.learned <= self.row <= MAX_ROWS)
        self.steps = _steps(max(self.row, 1), self.horizon)
        consistent(len(self.pairs) == self.row - self.learned, 0 <= self.moved <= self.steps * self.learned)
        if len(self.bias) != self.steps + 1 or self.bias[0] > 0 or self.bias[-1] < 0:
            raise ValueError("the biases are not those of this grid")
        consistent((np.abs(self.bias) <= self.steps * self.learned).all())
        if any(not 0 <= lower < steps or self.steps % steps for lower, steps in self.pairs):
            raise ValueError("a pair lies on another grid")

    def account(self) -> float:
        """What its rows were moved to the points that they count to, and the bias of these."""
        return float(self.moved + np.abs(self.bias).sum()) / self.steps

    def guarantee(self, rows: int) -> Guarantee:
        """The distance to calibration per row: what the rows count off, and a bias of 1 of each point inside."""
        if self.horizon is not None:
            off = rows / self.steps
        else:
            off = sum((min(rows + 1, _first(k + 1)) - _first(k)) / 2**k for k in range(1, _power(rows) + 1))
        # The bias of 0 and of 1 is always 0: no label can make it anything else.
        return Guarantee("dist_cal", (off + _steps(rows, self.horizon) - 1) / rows, "for certain")


def _predicted(lower: int, steps: int) -> int:
    """The end of a pair that is further from 1/2, in steps."""
    return lower if 2 * lower < steps else lower + 1


def _steps(row: int, horizon: int | None) -> int:
    """m at this row, counted from 1."""
    return 2 ** _power(row) if horizon is None else max(1, round(math.sqrt(horizon)))


def _power(row: int) -> int:
    """The largest k with 4^k <= 8 row."""
    return ((8 * row).bit_length() - 1) // 2


def _first(power: int) -> int:
    """The first row of this power."""
    return -(-(4**power) // 8)
