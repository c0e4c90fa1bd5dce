"""A forecaster whose loss to recalibration is small for every decision task at once."""

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
from decal_cli.sequential.randomness import uniform
from decal_cli.sequential.resumable import Kept, float_array
from decal_cli.tables.table import Floats

_LEAST_FACTOR = 1e-12
"""What a weight is multiplied by at least in a round: 0 could never be recovered from."""

_N_COINS = 1024
"""Random numbers that are drawn at once."""


class Draw(NamedTuple):
    """What is predicted, before it is rounded up to its bucket: `low`, with this chance, else `high`."""

    low: float
    high: float
    chance: float


@online("cdl-algorithm", source=cite("Hu and Wu 2024", "alg. 1"))
class CdlForecaster(Forecaster):
    """Probabilities on a grid, whose calibration decision loss vanishes as log T / sqrt(T), whatever the labels are.

    Algorithm 1 of Hu and Wu 2024. There are m = sqrt(T) / log T buckets ((i-1)/m, i/m]. Two experts for each bucket
    win the bias there, one each way; a further one wins nothing. Each prediction is drawn so that the experts, by their
    weights, expect to win at most 1/T, whatever the label will be. Without a horizon T it starts over at rows 1, 2, 4,
    8 and so on, each time for as many rows as were before.
    """

    title = "CDL algorithm"
    randomised = True
    needs_score = False
    uses_horizon = True
    on_grid = True
    KEPT: ClassVar[Kept] = {
        **dict.fromkeys(("row", "learned", "start", "rows"), int),
        "drawn": lambda values: deque(map(float, values)),
        **dict.fromkeys(("log_weight", "squares"), float_array),
    }

    def __init__(self, seed: int = 0, horizon: int | None = None) -> None:
        self.seed, self.horizon = seed, horizon
        self.row = self.learned = 0
        self._coins: Floats = np.empty(0)
        self.drawn: deque[float] = deque()
        self._start(horizon or 1)

    def _start(self, horizon: int) -> None:
        """Experts of equal weight for so many rows."""
        self.start, self.rows = self.row, horizon
        self.buckets = max(2, round(math.sqrt(horizon) / math.log(max(horizon, 2))))
        experts = 2 * self.buckets + 1
        self.log_weight, self.squares = np.zeros(experts), np.ones(experts)
        self.rate = self._rates()
        self._lead: Floats | None = None

    def _rates(self) -> Floats:
        return np.minimum(0.5, np.sqrt(math.log(len(self.squares)) / self.squares))

    def lead(self) -> Floats:
        """Of each bucket, shape (m,): the share of the expert that wins where p is above y, less that of the other."""
        if self._lead is None:
            share = self.rate * np.exp(self.log_weight - self.log_weight.max())
            share /= share.sum()
            self._lead = np.asarray(share[: self.buckets] - share[self.buckets : -1])
        return self._lead

    def draw(self) -> Draw:
        """From which two numbers, and with which chance, the next prediction is drawn."""
        lead = self.lead()
        if lead[0] >= 0:
            return Draw(0.0, 0.0, 1.0)
        if lead[-1] <= 0:
            return Draw(1.0, 1.0, 1.0)
        # The first bucket is below 0 and the last above: somewhere the sign changes upwards.
        place = int(np.argmax((lead[:-1] < 0) & (lead[1:] >= 0)))
        boundary = (place + 1) / self.buckets
        chance = float(lead[place + 1] / (lead[place + 1] - lead[place]))
        return Draw(boundary, boundary + min(1 / self.rows, 0.5 / self.buckets), chance)

    def predict_one(self, score: float) -> float:
        """The upper end of the bucket of what is drawn."""
        if self.horizon is None and self.row + 1 >= 2 * (self.start + 1):
            self._start(self.row + 1)
        draw = self.draw()
        place = self.row % _N_COINS
        if place == 0 or not len(self._coins):
            self._coins = uniform(self.seed, np.arange(self.row - place, self.row - place + _N_COINS))
        coin = self._coins[place]
        self.drawn.append(draw.low if coin < draw.chance else draw.high)
        self.row += 1
        return (self._bucket(self.drawn[-1]) + 1) / self.buckets

    def learn_one(self, score: float, label: int) -> None:
        """Let the experts win or lose on the oldest prediction without a label; those of an earlier start are past."""
        drawn, row = self.drawn.popleft(), self.learned
        self.learned += 1
        if row < self.start:
            return
        bucket, bias = self._bucket(drawn), drawn - label
        regret = np.full(len(self.log_weight), -float(self.lead()[bucket]) * bias)
        regret[bucket] += bias
        regret[self.buckets + bucket] -= bias
        self.squares += regret**2
        before, self.rate = self.rate, self._rates()
        self.log_weight += np.log(np.maximum(1 + before * regret, _LEAST_FACTOR))
        self.log_weight *= self.rate / before
        self._lead = None

    def awaits(self, score: Floats, group: NDArray[Any]) -> bool:
        """Whether so many rows wait for their labels."""
        return len(self.drawn) == len(score)

    def _check(self) -> None:
        start, log_weight, squares = self.start, self.log_weight, self.squares
        consistent(
            0 <= self.learned <= self.row <= MAX_ROWS,
            (start, self.rows) == (0, self.horizon) if self.horizon else (start <= self.row and self.rows == start + 1),
        )
        self._start(self.rows)
        self.start, self.log_weight, self.squares = start, log_weight, squares
        if not len(self.log_weight) == len(self.squares) == 2 * self.buckets + 1:
            raise ValueError("there are not two experts for each bucket, and one more")
        consistent(
            len(self.drawn) == self.row - self.learned,
            all(0 <= each <= 1 for each in self.drawn),
            ((self.squares >= 1) & (self.squares <= 1 + 4 * MAX_ROWS)).all(),
            (np.abs(self.log_weight) <= -math.log(_LEAST_FACTOR) * (self.learned + 1)).all(),
        )
        self.rate = self._rates()
        self._lead, self._coins = None, np.empty(0)

    def guarantee(self, rows: int) -> Guarantee:
        """The order log T / sqrt(T) of the expected loss: the theorem has a constant that it does not name."""
        horizon = max(self.horizon or rows, 2)
        return Guarantee("cdl", math.log(horizon) / math.sqrt(horizon), "the expectation, up to a constant")

    def _bucket(self, drawn: float) -> int:
        """From 0; a boundary belongs to the bucket below it."""
        return max(math.ceil(drawn * self.buckets - 1e-9) - 1, 0)
