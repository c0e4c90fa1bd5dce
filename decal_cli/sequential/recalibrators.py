"""Forecasters that recalibrate a score while labels come in. All are deterministic."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.declarations.defaults import WARM_UP
from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between
from decal_cli.documents import consistent
from decal_cli.learn.regions import isotonic_fit
from decal_cli.limits import MAX_ROWS_OVER_TIME as MAX_ROWS
from decal_cli.sequential.forecaster import Forecaster, online
from decal_cli.sequential.resumable import Kept, float_array
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.table import Floats, Ints

N_WINDOW = 1000
"""Rows that the rolling isotonic regression holds."""
N_REFITS = 20
"""Refits of the rolling isotonic regression in the time that its window takes to pass."""
MIN_SCORE = 1e-6
"""Scores nearer to 0 or 1 are moved here before their log-odds are taken."""
NEVER = 1 << 62
"""More labels than there will ever be."""


N_HALF_LIFE = 500
"""Rows after which a row counts half in the fading isotonic regression."""
N_HALF_LIVES = 8
"""Half-lives after which a row is dropped: it counts less than 1/256."""
HALF_LIFE = Between(0, 100_001)
MANY = Between(1, 1_000_001)
"""Rows that an isotonic regression learns from."""


class OnlineCurve(NamedTuple):
    """A calibration curve: fitted points, linear between them and constant outside."""

    at: Floats
    value: Floats

    @classmethod
    def of_rows(cls, score: Floats, label: NDArray[np.uint8], weight: Floats | None = None) -> OnlineCurve:
        """The isotonic regression of rows."""
        fit = isotonic_fit(score, label, weight)
        return cls(fit.at, fit.value)

    def __call__(self, score: Floats) -> Floats:
        """The fitted probability at these scores."""
        return np.interp(score, self.at, self.value)

    def reaches(self, value: float) -> float | None:
        """The least score at which the curve is this much, None where there is none."""
        if value > self.value[-1]:
            return None
        place = int(np.argmax(self.value >= value))
        if not place:
            return 0.0
        below, above = self.value[place - 1], self.value[place]
        share = (value - below) / (above - below)
        return float(self.at[place - 1] + share * (self.at[place] - self.at[place - 1]))


def _curve_of(state: Any) -> OnlineCurve | None:
    if state is None:
        return None
    at, value = (np.array(each, dtype=float) for each in state)
    if len(at) != len(value) or not len(at) or (np.diff(at) < 0).any() or (np.diff(value) < 0).any():
        raise ValueError("a calibration curve is none")
    if not all(((each >= 0) & (each <= 1)).all() for each in (at, value)):
        raise ValueError("a calibration curve is none")
    return OnlineCurve(at, value)


@online("as-it-is", source="the score itself")
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
        return score[len(score) - len(known) :].astype(np.float64)


class Fitted(Forecaster):
    """A forecaster that learns isotonic regressions of rows with known labels; the score as it is before the first.

    scores, labels: the rows that it holds, the latest last; learned: how many labels it learned in all.
    """

    KEPT: ClassVar[Kept] = {
        "scores": float_array,
        "labels": lambda labels: np.array(labels, dtype=np.uint8),
        "learned": int,
        "curve": _curve_of,
    }

    def __init__(self) -> None:
        self.scores: Floats = np.empty(0)
        self.labels: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)
        self.learned = 0
        self.curve: OnlineCurve | None = None

    def predict_one(self, score: float) -> float:
        """The score as it is, or recalibrated."""
        return score if self.curve is None else float(self.curve(np.array([score]))[0])

    def learn_one(self, score: float, label: int) -> None:
        """Take a row, and fit where it is time."""
        self._learn(np.array([score]), np.array([label], dtype=np.uint8))

    def acts_from(self, threshold: float) -> float | None:
        """The least score from which the latest fit is this much."""
        return threshold if self.curve is None else self.curve.reaches(threshold)

    @abstractmethod
    def _learn(self, score: Floats, label: NDArray[np.uint8]) -> None:
        """Take rows, the last of which may be one after which it is time to fit."""

    @abstractmethod
    def _rows_held(self) -> int:
        """How many rows it holds, by how many labels it learned, and whether there is a fit."""

    @abstractmethod
    def _rows_to_fit(self) -> int:
        """How many more labels it takes until the next fit; more than there will ever be where there is none."""

    def replay(self, score: Floats, label: NDArray[np.uint8], known: Ints) -> Floats:
        """All predictions at once, fit by fit."""
        exact = score.astype(np.float64)
        new = exact[len(score) - len(known) :]
        predictions = new.copy()
        learned = row = 0
        while row < len(known):
            until = learned + self._rows_to_fit()
            end = int(np.searchsorted(known, until))
            if self.curve is not None:
                predictions[row:end] = self.curve(new[row:end])
            row, before = end, learned
            learned = until if end < len(known) else int(known[-1])
            self._learn(exact[before:learned], label[before:learned])
        return predictions

    def _check(self) -> None:
        if len(self.scores) != len(self.labels):
            raise ValueError("a row that is held lacks a score or a label")
        consistent(
            0 <= self.learned <= MAX_ROWS,
            len(self.scores) == self._rows_held(),
            ((self.scores >= 0) & (self.scores <= 1)).all(),
            (self.labels <= 1).all(),
        )


@online("frozen-isotonic", source="the usual practice")
class FrozenIsotonic(Fitted):
    """Isotonic regression learned from the first rows and kept; the score as it is until their labels are known."""

    title = "frozen isotonic"

    def __init__(self, *, warm_up: Annotated[int, "number of rows that it learns from", MANY] = WARM_UP) -> None:
        super().__init__()
        self.warm_up = warm_up

    def _rows_held(self) -> int:
        consistent((self.curve is None) == (self.learned < self.warm_up))
        return self.learned if self.curve is None else 0

    def _rows_to_fit(self) -> int:
        return NEVER if self.curve is not None else self.warm_up - self.learned

    def _learn(self, score: Floats, label: NDArray[np.uint8]) -> None:
        self.learned += len(score)
        if self.curve is not None:
            return
        self.scores, self.labels = np.append(self.scores, score), np.append(self.labels, label)
        if self.learned == self.warm_up:
            self.curve = OnlineCurve.of_rows(self.scores, self.labels)
            self.scores, self.labels = self.scores[:0], self.labels[:0]


@online("rolling-isotonic", source="the usual practice")
class RollingIsotonic(Fitted):
    """Isotonic regression of the latest rows with known labels; the score as it is until a whole window is known.

    It is fitted anew 20 times in the time that a window takes to pass.
    """

    title = "rolling isotonic"

    def __init__(self, *, window: Annotated[int, "number of latest rows that it learns from", MANY] = N_WINDOW) -> None:
        super().__init__()
        self.window, self.every = window, max(1, window // N_REFITS)
        self.first = -(-window // self.every) * self.every

    def _rows_held(self) -> int:
        consistent((self.curve is None) == (self.learned < self.first))
        return min(self.learned, self.window)

    def _rows_to_fit(self) -> int:
        return max(self.first - self.learned, self.every - self.learned % self.every)

    def _learn(self, score: Floats, label: NDArray[np.uint8]) -> None:
        until_fit = self._rows_to_fit()
        self.scores = np.append(self.scores, score)[-self.window :]
        self.labels = np.append(self.labels, label)[-self.window :]
        self.learned += len(score)
        if len(score) == until_fit:
            self.curve = OnlineCurve.of_rows(self.scores, self.labels, self._weights())

    def _weights(self) -> Floats | None:
        """How much each row that it holds counts; None: all alike."""
        return None


@online("fading-isotonic", source="the usual practice")
class FadingIsotonic(RollingIsotonic):
    """Isotonic regression in which a row counts half as much as one that came `half_life` rows later.

    It holds the rows of 8 half-lives. It is fitted first when the rows of two half-lives are known, and then 10 times
    in each half-life; before that the score stays as it is.
    """

    title = "fading isotonic"

    def __init__(
        self, *, half_life: Annotated[int, "number of rows after which a row counts half", HALF_LIFE] = N_HALF_LIFE
    ) -> None:
        super().__init__(window=N_HALF_LIVES * half_life)
        self.every = max(1, 2 * half_life // N_REFITS)
        self.first = -(-2 * half_life // self.every) * self.every
        self.half_life = half_life

    def _weights(self) -> Floats:
        return np.asarray(0.5 ** (np.arange(len(self.scores))[::-1] / self.half_life))


@online("online-platt", source=cite("Gupta and Ramdas 2023"))
class OnlinePlatt(Forecaster):
    """Platt scaling, expit(a logit p + b), whose a and b follow the labels by one online Newton step for each.

    The constants are those of the authors' code (beta = .1, D = 1): step length 1 / beta = 10, regulariser
    1 / (beta D)^2 = 100, |(a, b)| <= 100. They start at a = b = 0, here a = 1 and b = 0 at the start: the score is
    trusted at first, and some hundred labels move it.
    """

    title = "online Platt"
    STEP, REGULARISER, RADIUS = 10.0, 100.0, 100.0
    KEPT: ClassVar[Kept] = {"slope": float, "intercept": float, "curvature": lambda values: tuple(map(float, values))}

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
        used = int(known[-1]) if len(known) else 0
        slopes, intercepts = np.empty(used + 1), np.empty(used + 1)
        slopes[0], intercepts[0] = self.slope, self.intercept
        for row, (value, outcome) in enumerate(zip(x[:used].tolist(), label[:used].tolist(), strict=True), start=1):
            self._step(value, outcome)
            slopes[row], intercepts[row] = self.slope, self.intercept
        return expit(slopes[known] * x[len(x) - len(known) :] + intercepts[known])

    def _check(self) -> None:
        first, mixed, second = self.curvature
        most = self.REGULARISER * math.log(MIN_SCORE) ** 2 * MAX_ROWS
        consistent(
            math.hypot(self.slope, self.intercept) <= self.RADIUS * (1 + 1e-9),
            self.REGULARISER <= first <= most,
            self.REGULARISER <= second <= most,
            first * second - mixed * mixed > 0,
        )

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
