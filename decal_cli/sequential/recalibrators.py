"""Forecasters that recalibrate a score while labels come in. All are deterministic."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from decal_cli.crossfit.regions import IsotonicFit, isotonic_fit
from decal_cli.sequential.forecaster import Forecaster
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.table import Floats, Ints

N_WARM_UP = 1000
"""Rows that the frozen recalibration learns from."""
N_WINDOW = 1000
"""Rows that the rolling isotonic regression holds."""
N_REFITS = 20
"""Refits of the rolling isotonic regression in the time that its window takes to pass."""
MIN_SCORE = 1e-6
"""Scores nearer to 0 or 1 are moved here before their log-odds are taken."""


class AsItIs(Forecaster):
    """The score, unchanged."""

    title = "as it is"

    def predict_one(self, score: float) -> float:
        """The score."""
        return score

    def learn_one(self, score: float, label: int) -> None:
        """Nothing is learned."""

    def replay(self, score: Floats, label: NDArray[np.uint8], known: Ints) -> Floats:
        """The scores."""
        return score.astype(np.float64)


class FrozenIsotonic(Forecaster):
    """Isotonic regression learned from the first rows and kept; the score as it is until their labels are known."""

    title = "frozen isotonic"

    def __init__(self, warm_up: int = N_WARM_UP) -> None:
        self.warm_up = warm_up
        self.rows: list[tuple[float, int]] = []
        self.fit: IsotonicFit | None = None

    def predict_one(self, score: float) -> float:
        """The score as it is, or recalibrated."""
        return score if self.fit is None else float(self.fit(np.array([score]))[0])

    def learn_one(self, score: float, label: int) -> None:
        """Keep a row of the warm-up; after the last of them, fit."""
        if self.fit is None:
            self.rows.append((score, label))
            if len(self.rows) == self.warm_up:
                self.fit = _fit_of(self.rows)

    def replay(self, score: Floats, label: NDArray[np.uint8], known: Ints) -> Floats:
        """All predictions at once."""
        first = int(np.searchsorted(known, self.warm_up))
        predictions = score.astype(np.float64)
        if first < len(known):
            fit = isotonic_fit(predictions[: self.warm_up], label[: self.warm_up], None)
            predictions[first:] = fit(predictions[first:])
        return predictions


class RollingIsotonic(Forecaster):
    """Isotonic regression of the latest rows with known labels; the score as it is until a whole window is known.

    It is fitted anew 20 times in the time that a window takes to pass.
    """

    title = "rolling isotonic"

    def __init__(self, window: int = N_WINDOW) -> None:
        self.window = window
        self.every = max(1, window // N_REFITS)
        self.rows: deque[tuple[float, int]] = deque(maxlen=window)
        self.learned = 0
        self.fit: IsotonicFit | None = None

    def predict_one(self, score: float) -> float:
        """The score as it is, or recalibrated."""
        return score if self.fit is None else float(self.fit(np.array([score]))[0])

    def learn_one(self, score: float, label: int) -> None:
        """Take a row into the window, the oldest out of it, and fit where it is time."""
        self.rows.append((score, label))
        self.learned += 1
        if self.learned % self.every == 0 and self.learned >= self.window:
            self.fit = _fit_of(self.rows)

    def replay(self, score: Floats, label: NDArray[np.uint8], known: Ints) -> Floats:
        """All predictions at once, fit by fit."""
        exact = score.astype(np.float64)
        predictions = exact.copy()
        fits = known // self.every
        starts = np.flatnonzero(np.diff(fits, prepend=-1))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(known)], strict=True):
            until = int(fits[start]) * self.every
            if until >= self.window:
                latest = slice(until - self.window, until)
                predictions[start:end] = isotonic_fit(exact[latest], label[latest], None)(exact[start:end])
        return predictions


class OnlinePlatt(Forecaster):
    """Platt scaling, expit(a logit p + b), whose a and b follow the labels by one online Newton step for each.

    The steps follow Gupta and Ramdas 2023. a = 1 and b = 0 at the start, |(a, b)| <= 100, step length 10, regulariser
    100: the score is trusted at first, and some hundred labels move it.
    """

    title = "online Platt"
    STEP, REGULARISER, RADIUS = 10.0, 100.0, 100.0

    def __init__(self) -> None:
        self.slope, self.intercept = 1.0, 0.0
        self.curvature = (self.REGULARISER, 0.0, self.REGULARISER)

    def predict_one(self, score: float) -> float:
        """The score on the present curve."""
        x = log_odds(np.array([score]), MIN_SCORE)
        return float(expit(self.slope * x + self.intercept)[0])

    def learn_one(self, score: float, label: int) -> None:
        """One Newton step on the log loss of a row."""
        self._step(float(log_odds(np.array([score]), MIN_SCORE)[0]), label)

    def replay(self, score: Floats, label: NDArray[np.uint8], known: Ints) -> Floats:
        """All predictions at once; only the steps are one by one."""
        x = log_odds(score.astype(np.float64), MIN_SCORE)
        used = int(known[-1])
        slopes, intercepts = np.empty(used + 1), np.empty(used + 1)
        slopes[0], intercepts[0] = self.slope, self.intercept
        for row, (value, outcome) in enumerate(zip(x[:used].tolist(), label[:used].tolist(), strict=True), start=1):
            self._step(value, outcome)
            slopes[row], intercepts[row] = self.slope, self.intercept
        return expit(slopes[known] * x + intercepts[known])

    def _step(self, x: float, label: int) -> None:
        z = self.slope * x + self.intercept
        # exp of a large positive number overflows; that of its negative does not.
        fit = 1 / (1 + math.exp(-z)) if z >= 0 else 1 - 1 / (1 + math.exp(z))
        by_intercept = fit - label
        by_slope = by_intercept * x
        first, mixed, second = self.curvature
        first, mixed, second = first + by_slope**2, mixed + by_slope * by_intercept, second + by_intercept**2
        self.curvature = first, mixed, second
        determinant = first * second - mixed * mixed
        self.slope -= self.STEP * (second * by_slope - mixed * by_intercept) / determinant
        self.intercept -= self.STEP * (first * by_intercept - mixed * by_slope) / determinant
        if self.slope**2 + self.intercept**2 > self.RADIUS**2:
            self.slope, self.intercept = projected(self.slope, self.intercept, self.curvature, self.RADIUS)


def projected(
    slope: float, intercept: float, curvature: tuple[float, float, float], radius: float
) -> tuple[float, float]:
    """The point of the disc of this radius that is nearest in the metric of the curvature (its xx, xy and yy)."""
    matrix = np.array([[curvature[0], curvature[1]], [curvature[1], curvature[2]]])
    values, vectors = np.linalg.eigh(matrix)
    along = vectors.T @ np.array([slope, intercept])
    # On the circle the point is values / (values + m) times the old one, with m >= 0 by bisection.
    low, high = 0.0, float(values[-1]) * float(np.hypot(slope, intercept)) / radius
    for _ in range(100):
        middle = (low + high) / 2
        outside = float(np.sum((values / (values + middle) * along) ** 2)) > radius**2
        low, high = (middle, high) if outside else (low, middle)
    nearest = vectors @ (values / (values + high) * along)
    return float(nearest[0]), float(nearest[1])


def _fit_of(rows: Iterable[tuple[float, int]]) -> IsotonicFit:
    scores, labels = zip(*rows, strict=True)
    return isotonic_fit(np.array(scores), np.array(labels), None)
