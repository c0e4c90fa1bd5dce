"""Forecasters of the base rate, which need no score."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from decal_cli.declarations.papers import cite
from decal_cli.documents import consistent
from decal_cli.limits import MAX_ROWS_OVER_TIME as MAX_ROWS
from decal_cli.sequential.classes import perturbed_shares
from decal_cli.sequential.forecaster import Forecaster, Guarantee, online
from decal_cli.sequential.randomness import logistic
from decal_cli.sequential.resumable import Kept
from decal_cli.tables.table import Floats, Ints


class CountForecaster(Forecaster):
    """A forecaster that looks at nothing but how many labels are known, and how many of them are 1."""

    needs_score = False
    KEPT: ClassVar[Kept] = {"row": int, "rows": int, "positives": int}

    def __init__(self) -> None:
        self.row = self.rows = self.positives = 0

    def predict_one(self, score: float) -> float:
        """The prediction from the labels learned."""
        row = np.array([self.row], dtype=np.int64)
        self.row += 1
        return float(self._predictions(row, np.array([self.positives]), np.array([self.rows]))[0])

    def learn_one(self, score: float, label: int) -> None:
        """Count a label."""
        self.rows += 1
        self.positives += label

    def replay(self, score: Floats, label: NDArray[np.uint8], known: Ints) -> Floats:
        """All predictions at once."""
        count, learned = len(known), int(known[-1]) if len(known) else 0
        to_row = self.positives + np.concatenate(([0], np.cumsum(label[:learned], dtype=np.int64)))
        rows = self.row + np.arange(count, dtype=np.int64)
        predictions = self._predictions(rows, to_row[known], self.rows + known)
        self.row, self.rows, self.positives = self.row + count, self.rows + learned, int(to_row[learned])
        return predictions

    def _check(self) -> None:
        consistent(0 <= self.positives <= self.rows <= self.row <= MAX_ROWS)

    def awaits(self, score: Floats, group: NDArray[Any]) -> bool:
        """Whether it predicted so many rows more than it learned."""
        return self.row - self.rows == len(score)

    @abstractmethod
    def _predictions(self, row: Ints, positives: Ints, rows: Ints) -> Floats:
        """Predictions for these rows, shape (k,), when so many labels are known, of which so many are 1."""


@online("running-mean", source=cite("Kleinberg et al. 2023", "ex. 3"))
class RunningMean(CountForecaster):
    """The share of label 1 so far; 1/2 before the first label.

    It has no guarantee: on the labels 0, 1, 0, 1, ... its V-regret is T/4.
    """

    title = "running mean"

    def _predictions(self, row: Ints, positives: Ints, rows: Ints) -> Floats:
        return np.where(rows > 0, positives / np.maximum(rows, 1), 0.5)


@online("hedge", source=cite("Kleinberg et al. 2023", "alg. 1"))
class ForecastHedge(CountForecaster):
    """The share of label 1 so far, moved by logistic noise: whatever the labels are, no threshold does badly.

    Algorithm 1 of Kleinberg et al. 2023. With n labels learned, s of them 1, it predicts s/n + L/(eta n), clipped to
    [0, 1]; L is a standard logistic number of the seed and the row. eta = sqrt(8 ln 2 / T) where the horizon T is
    known; then the expected V-regret at each fixed threshold is at most sqrt(T ln 2 / 2). Without a horizon eta of row
    t is sqrt(8 ln 2 / t), and the bound twice that.
    """

    title = "ForecastHedge"
    randomised = True
    uses_horizon = True

    def __init__(self, seed: int = 0, horizon: int | None = None) -> None:
        super().__init__()
        self.seed, self.horizon = seed, horizon

    def _predictions(self, row: Ints, positives: Ints, rows: Ints) -> Floats:
        horizon = row + 1.0 if self.horizon is None else float(self.horizon)
        moved = logistic(self.seed, row) * np.sqrt(horizon / (8 * math.log(2)))
        # Before the first label only the sign of the noise is left, which the clip turns into 0 or 1.
        total = np.where(rows > 0, positives + moved, np.sign(moved))
        return np.asarray(np.clip(total / np.maximum(rows, 1), 0.0, 1.0))

    def guarantee(self, rows: int) -> Guarantee:
        """The expected V-regret of a fixed threshold."""
        factor = 2.0 if self.horizon is None else 1.0
        total = factor * math.sqrt(math.log(2) / 2 * (self.horizon or rows))
        return Guarantee("v_regret", total / rows, "the expectation at a fixed threshold")


@online("ftpl", source=cite("Kleinberg et al. 2023", "alg. 2"))
class ForecastFTPL(CountForecaster):
    """The share of label 1 after a fresh random number of rows is added to each label's count.

    Algorithm 2 of Kleinberg et al. 2023 for two classes: the numbers are uniform on 1 .. ceil(sqrt(T)), or
    ceil(sqrt(t)) in row t without a horizon T. Its expected regret grows as sqrt(T) for each fixed proper scoring rule.
    """

    title = "ForecastFTPL"
    randomised = True
    uses_horizon = True

    def __init__(self, seed: int = 0, horizon: int | None = None) -> None:
        super().__init__()
        self.seed, self.horizon = seed, horizon

    def _predictions(self, row: Ints, positives: Ints, rows: Ints) -> Floats:
        counts = np.stack((rows - positives, positives), axis=1)
        return perturbed_shares(counts, row, self.seed, self.horizon)[:, 1]

    def guarantee(self, rows: int) -> Guarantee:
        """The expected V-regret of a fixed threshold, as the proof of theorem 21 gives it for these payoffs.

        A row decides other than one that counted its own label with chance 1 / ceil(sqrt(T)) at most; that one loses
        at most what was added to one of the counts.
        """
        horizon = self.horizon or rows
        most = math.ceil(math.sqrt(horizon))
        decided_otherwise = horizon / most if self.horizon else 2 * math.sqrt(rows)
        return Guarantee(
            "v_regret", (decided_otherwise + (most + 1) / 2) / rows, "the expectation at a fixed threshold"
        )
