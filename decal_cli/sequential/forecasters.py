"""Forecasters predict one row, later learn its label, and never look ahead: how one is declared, and all of them.

Some recalibrate a score while labels come in, others need no score.
"""

from __future__ import annotations

import math
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from decal_cli.declarations.defaults import WARM_UP
from decal_cli.declarations.document import Size, Words
from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between, Declaration, Registry, Spec, parameters_of
from decal_cli.documents import consistent
from decal_cli.learn.regions import Curve
from decal_cli.limits import MAX_ROWS_OVER_TIME as MAX_ROWS
from decal_cli.sequential.resumable import Resumable
from decal_cli.tables.estimate import ratio
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.table import Floats, Ints, Labels, Values, tabulate


class Guarantee(NamedTuple):
    """What a theorem says of a forecaster, where labels are known before the next row.

    metric: v_regret, cdl or dist_cal. bound: what it is at most, per row. holds: of what it is the bound.
    """

    metric: Literal["v_regret", "cdl", "dist_cal"]
    bound: Size
    holds: Words


class Forecaster(Resumable, ABC):
    """Predicts rows one after the other, and learns labels in the order of the rows.

    It has a `replay` of its own or a `predict_one`; each is made of the other. title: for users. randomised: whether
    predictions rest on random numbers, of its `seed`. needs_score: whether it looks at the score. uses_horizon: whether
    it is made for a number of rows, its `horizon`. on_grid: whether it predicts points of a grid, so that many rows
    have the same prediction.
    """

    title: ClassVar[str]
    randomised: ClassVar[bool] = False
    needs_score: ClassVar[bool] = True
    uses_horizon: ClassVar[bool] = False
    on_grid: ClassVar[bool] = False

    def predict_one(self, score: float) -> float:
        """The probability of label 1 of the next row, from the labels learned so far."""
        nothing = np.zeros(1, dtype=int)
        return float(self.replay(np.array([score]), nothing.astype(np.uint8), nothing)[0])

    @abstractmethod
    def learn_one(self, score: float, label: int) -> None:
        """Learn the label of the next row whose label is not learned yet."""

    def guarantee(self, rows: int) -> Guarantee | None:
        """What is guaranteed after so many rows, whatever the labels are; None where nothing is."""
        return None

    @property
    def waiting(self) -> int | None:
        """How many rows it predicted whose labels it has not learned; None where it does not count them."""
        return None

    def awaits(self, score: Floats, group: Values) -> bool:
        """Whether these rows, shape (P,), can be those that it predicted and has not learned."""
        return self.waiting in (None, len(score))

    def account(self) -> float | None:
        """A bound on the summed distance from calibration of the rows that it learned; None: it keeps no account."""
        return None

    def replay(self, score: Floats, label: Labels, known: Ints) -> Floats:
        """What is predicted for each of the next rows, shape (T,): `one_by_one`, faster.

        score, label: of the P rows that were predicted and whose labels are not learned yet, then of the T next rows,
        shape (P + T,). known: int64 (T,), never decreasing, at most P + t: how many of those first rows have a known
        label when row t is predicted. A stream that is cut into pieces is predicted as a whole one.
        """
        return one_by_one(self, score, label, known)

    def acts_from(self, threshold: float) -> float | None:
        """The least score from which its prediction reaches a threshold; None where there is none, or no curve."""
        return None


def one_by_one(forecaster: Forecaster, score: Floats, label: Labels, known: Ints) -> Floats:
    """The predictions of a forecaster that is asked and taught row by row, shape (T,)."""
    predictions = np.empty(len(known))
    learned, before = 0, len(score) - len(known)
    for row, until in enumerate(known.tolist()):
        while learned < until:
            forecaster.learn_one(float(score[learned]), int(label[learned]))
            learned += 1
        predictions[row] = forecaster.predict_one(float(score[before + row]))
    return predictions


@dataclass(frozen=True, kw_only=True)
class OnlineMethod(Declaration):
    """A declared forecaster. function: its class; parameters: the keyword-only ones that users may set."""

    home = "decal_cli.sequential"
    function: type[Forecaster]

    @property
    def randomised(self) -> bool:
        """Whether its predictions rest on random numbers."""
        return self.function.randomised


OnlineSpec = Spec[OnlineMethod]
ONLINE: Registry[OnlineMethod] = Registry("method", "rolling-isotonic(window=500)")
"""Every declared forecaster by name, in the order of declaration."""

F = TypeVar("F", bound=type[Forecaster])


def _inside(
    *, bins: Annotated[int, "bins of the score, each with a forecaster of its own; 0: none", Between(0, 1001)] = 0
) -> None:
    """What every forecaster takes: see Inside."""


def online(name: str, *, source: str) -> Callable[[F], F]:
    """Declare the decorated forecaster under this name; source: where it comes from.

    Its keyword-only parameters are those that users may set; `seed` and `horizon` come before them, where it uses them.
    """

    def declare(forecaster: F) -> F:
        parameters = (*parameters_of(forecaster.__init__), *parameters_of(_inside))
        ONLINE.add(
            OnlineMethod(name=name, title=forecaster.title, source=source, function=forecaster, parameters=parameters)
        )
        return forecaster

    return declare


def forecaster_of(spec: OnlineSpec, seed: int, horizon: int | None, *, groups: bool = False) -> Forecaster:
    """A fresh forecaster; horizon: how many rows there will be, None where that is not known.

    groups: whether it is to run in each group on its own. Nobody knows how many rows a part will have, so that inside
    parts the horizon is not used.
    """
    parameters = dict(spec.parameters)
    bins = parameters.pop("bins", 0)

    def alone(seed: int, horizon: int | None = None) -> Forecaster:
        forecaster = spec.declared.function
        made_with: dict[str, int | None] = {"seed": seed} if forecaster.randomised else {}
        if forecaster.uses_horizon:
            made_with["horizon"] = horizon
        return forecaster(**made_with, **parameters)

    def in_bins(seed: int, horizon: int | None = None) -> Forecaster:
        return Inside(alone, seed, bins) if bins else alone(seed, horizon)

    return Inside(in_bins, seed) if groups else in_bins(seed, horizon)


class Inside(Forecaster):
    """A forecaster for each bin of the score, or each group: one is made when the first row of a part comes.

    make: a fresh one with this seed. bins: how many, of equal width, the last one with its upper end; a forecaster of
    the base rate becomes one that recalibrates the score. 0: by group, which predict_one, learn_one and replay take.
    """

    def __init__(self, make: Callable[[int], Forecaster], seed: int, bins: int = 0) -> None:
        self.make, self.seed, self.bins = make, seed, bins
        self.parts: dict[str, Forecaster] = {}
        self.title = make(seed).title  # type: ignore[misc]

    def part(self, name: str) -> Forecaster:
        """The forecaster of a part; each has random numbers of its own."""
        if name not in self.parts:
            self.parts[name] = self.make(zlib.crc32(f"{self.seed} {name}".encode()))
        return self.parts[name]

    def _parted(self, score: Floats, group: Any) -> tuple[Sequence[Any] | Values, Values]:
        """The parts, and the number of that of each row, shape (T,)."""
        if self.bins:
            return range(self.bins), np.minimum((score * self.bins).astype(int), self.bins - 1)
        return np.unique(np.array(group, dtype=str), return_inverse=True)

    def _of(self, score: float, group: str) -> Forecaster:
        parts, number = self._parted(np.array([score]), [group])
        return self.part(str(parts[number[0]]))

    def predict_one(self, score: float, group: str = "") -> float:
        """What the forecaster of the row's part predicts."""
        return self._of(score, group).predict_one(score)

    def learn_one(self, score: float, label: int, group: str = "") -> None:
        """Teach the forecaster of the row's part."""
        self._of(score, group).learn_one(score, label)

    def replay(self, score: Floats, label: Labels, known: Ints, group: Sequence[str] | None = None) -> Floats:
        """All predictions at once, part by part; group: of each of the P + T rows."""
        score = score.astype(float)
        parts, part = self._parted(score, [""] * len(score) if group is None else group)
        predictions, before = np.empty(len(known)), len(score) - len(known)
        last = int(known[-1]) if len(known) else 0
        for number in np.unique(part).tolist():
            forecaster, inside = self.part(str(parts[number])), part == number
            own_known = np.concatenate(([0], np.cumsum(inside)))[known]
            own, new = np.flatnonzero(inside), inside[before:]
            predictions[new] = forecaster.replay(score[own], label[own], own_known[new])
            # Labels that came after the part's own last row are learned too: nobody keeps them for it.
            learned = int(own_known[new][-1]) if new.any() else 0
            for row in own[learned : np.searchsorted(own, last)].tolist():
                forecaster.learn_one(float(score[row]), int(label[row]))
        return predictions

    def awaits(self, score: Floats, group: Values) -> bool:
        """Whether each part awaits its own of these rows."""
        parts, number = self._parted(score, group)
        name = np.array(parts, dtype=str)[number]
        return {*name.tolist()} <= self.parts.keys() and all(
            part.awaits(score[name == own], group[name == own]) for own, part in self.parts.items()
        )

    def account(self) -> float | None:
        """The sum of the accounts of all parts; None where there is no part, or one keeps none."""
        of_parts = [part.account() for part in self.parts.values()]
        known = [each for each in of_parts if each is not None]
        return sum(known) if known and len(known) == len(of_parts) else None

    def state(self) -> dict[str, Any]:
        """What each part knows."""
        return {"parts": {name: self.parts[name].state() for name in sorted(self.parts)}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state. Errors: ValueError, where it has a bin that there is not."""
        if self.bins and not {*state["parts"]} <= {*map(str, range(self.bins))}:
            raise ValueError(f"there are {self.bins} bins, and others here")
        self.parts = {}
        for name, known in state["parts"].items():
            self.part(name).restore(known)

    def guarantee(self, rows: int) -> Guarantee | None:
        """The sum of the guarantees of all bins, which is largest with equally many rows in each; None for groups."""
        per_bin = max(1, -(-rows // max(self.bins, 1)))
        of_bin = self.make(self.seed).guarantee(per_bin) if self.bins else None
        return None if of_bin is None else of_bin._replace(bound=of_bin.bound * per_bin * self.bins / rows)


_GOLDEN = 0x9E3779B97F4A7C15


def uniform(seed: int, rows: Ints) -> Floats:
    """Numbers in (0, 1), shape (T,), for rows counted from 0: SplitMix64 (Steele et al. 2014) at its place `row`."""
    start = _mixed(np.array([seed * _GOLDEN % 2**64], dtype=np.uint64))
    bits = _mixed((np.asarray(rows).astype(np.uint64) + 1) * _GOLDEN + start)
    return ((bits >> 11).astype(float) + 0.5) * 2.0**-53


def logistic(seed: int, rows: Ints) -> Floats:
    """Standard logistic numbers, shape (T,)."""
    u = uniform(seed, rows)
    return np.log(u / (1 - u))


def _mixed(bits: np.ndarray) -> np.ndarray:
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB
    return bits ^ (bits >> 31)


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


@online("as-it-is", source="the score itself")
class AsItIs(Forecaster):
    """The score, unchanged."""

    title = "as it is"

    def learn_one(self, score: float, label: int) -> None:
        """Nothing is learned."""

    def replay(self, score: Floats, label: Labels, known: Ints) -> Floats:
        """The scores."""
        return score[len(score) - len(known) :].astype(float)


class IsotonicForecaster(Forecaster):
    """A forecaster that learns isotonic regressions of rows with known labels; the score as it is before the first.

    window: how many of the latest rows it holds; first, every: after how many labels it is fitted first, and after how
    many more again; NEVER: only once, and then no row is held. half_life: rows after which a row counts half.
    scores, labels: the rows that it holds, the latest last; learned: how many labels it learned in all.
    """

    scores: Floats
    labels: Labels
    learned: int = 0
    curve: Curve | None = None

    def __init__(self, window: int, first: int, every: int, half_life: int = NEVER) -> None:
        self.window, self.first, self.every, self.half_life = window, first, every, half_life
        self.scores, self.labels = np.empty(0), np.empty(0, dtype=np.uint8)

    def learn_one(self, score: float, label: int) -> None:
        """Take a row, and fit where it is time."""
        self._learn(np.array([score]), np.array([label], dtype=np.uint8))

    def acts_from(self, threshold: float) -> float | None:
        """The least score from which the latest fit reaches the threshold."""
        return threshold if self.curve is None else self.curve.reaches(threshold)

    def _until_fit(self) -> int:
        """How many more labels it takes until the next fit."""
        return self.first - self.learned if self.learned < self.first else self.every - self.learned % self.every

    def _rows_held(self) -> int:
        return 0 if self.every == NEVER and self.learned >= self.first else min(self.learned, self.window)

    def _learn(self, score: Floats, label: Labels) -> None:
        """Take rows, the last of which may be one after which it is time to fit."""
        fits = len(score) == self._until_fit()
        self.learned += len(score)
        self.scores = np.append(self.scores, score)[-self.window :]
        self.labels = np.append(self.labels, label)[-self.window :]
        if fits:
            age = np.arange(len(self.scores))[::-1]
            weight = None if self.half_life == NEVER else 0.5 ** (age / self.half_life)
            self.curve = Curve.fitted(tabulate(self.scores, self.labels, weight))
        if not self._rows_held():
            self.scores, self.labels = self.scores[:0], self.labels[:0]

    def replay(self, score: Floats, label: Labels, known: Ints) -> Floats:
        """All predictions at once, fit by fit."""
        exact = score.astype(float)
        new = exact[len(score) - len(known) :]
        predictions = new.copy()
        learned = row = 0
        while row < len(known):
            until = learned + self._until_fit()
            end = int(np.searchsorted(known, until))
            if self.curve is not None:
                predictions[row:end] = self.curve.of(new[row:end])
            row, before = end, learned
            learned = until if end < len(known) else int(known[-1])
            self._learn(exact[before:learned], label[before:learned])
        return predictions

    def _check(self) -> None:
        if len(self.scores) != len(self.labels):
            raise ValueError("a row that is held lacks a score or a label")
        consistent(
            0 <= self.learned <= MAX_ROWS,
            (self.curve is None) == (self.learned < self.first),
            len(self.scores) == self._rows_held(),
            ((self.scores >= 0) & (self.scores <= 1)).all(),
            (self.labels <= 1).all(),
        )


@online("frozen-isotonic", source="the usual practice")
class FrozenIsotonic(IsotonicForecaster):
    """Isotonic regression learned from the first rows and kept; the score as it is until their labels are known."""

    title = "frozen isotonic"

    def __init__(self, *, warm_up: Annotated[int, "number of rows that it learns from", MANY] = WARM_UP) -> None:
        super().__init__(warm_up, warm_up, NEVER)


@online("rolling-isotonic", source="the usual practice")
class RollingIsotonic(IsotonicForecaster):
    """Isotonic regression of the latest rows with known labels; the score as it is until a whole window is known.

    It is fitted anew 20 times in the time that a window takes to pass.
    """

    title = "rolling isotonic"

    def __init__(self, *, window: Annotated[int, "number of latest rows that it learns from", MANY] = N_WINDOW) -> None:
        every = max(1, window // N_REFITS)
        super().__init__(window, -(-window // every) * every, every)


@online("fading-isotonic", source="the usual practice")
class FadingIsotonic(IsotonicForecaster):
    """Isotonic regression in which a row counts half as much as one that came `half_life` rows later.

    It holds the rows of 8 half-lives. It is fitted first when the rows of two half-lives are known, and then 10 times
    in each half-life; before that the score stays as it is.
    """

    title = "fading isotonic"

    def __init__(
        self, *, half_life: Annotated[int, "number of rows after which a row counts half", HALF_LIFE] = N_HALF_LIFE
    ) -> None:
        every = max(1, 2 * half_life // N_REFITS)
        super().__init__(N_HALF_LIVES * half_life, -(-2 * half_life // every) * every, every, half_life)


@online("online-platt", source=cite("Gupta and Ramdas 2023"))
class OnlinePlatt(Forecaster):
    """Platt scaling, expit(a logit p + b), whose a and b follow the labels by one online Newton step for each.

    The constants are those of the authors' code (beta = 0.1, D = 1): step length 1 / beta = 10, regulariser
    1 / (beta D)^2 = 100, |(a, b)| <= 100. They start at a = b = 0, here a = 1 and b = 0 at the start: the score is
    trusted at first, and some hundred labels move it.
    """

    title = "online Platt"
    STEP, REGULARISER, RADIUS = 10.0, 100.0, 100.0
    slope: float = 1.0
    intercept: float = 0.0
    curvature: tuple[float, ...] = (REGULARISER, 0.0, REGULARISER)

    def learn_one(self, score: float, label: int) -> None:
        """One Newton step on the log loss of a row."""
        self._step(float(log_odds(np.array([score]), MIN_SCORE)[0]), label)

    def replay(self, score: Floats, label: Labels, known: Ints) -> Floats:
        """All predictions at once; only the steps are one by one."""
        x = log_odds(score.astype(float), MIN_SCORE)
        used = int(known[-1]) if len(known) else 0
        slopes, intercepts = [self.slope], [self.intercept]
        for value, outcome in zip(x[:used].tolist(), label[:used].tolist(), strict=True):
            self._step(value, outcome)
            slopes.append(self.slope)
            intercepts.append(self.intercept)
        return expit(np.array(slopes)[known] * x[len(x) - len(known) :] + np.array(intercepts)[known])

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
        by_intercept = (1 + math.tanh(z / 2)) / 2 - label  # the logistic function of z, which cannot overflow
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


_AT_A_THRESHOLD = "the expectation at a fixed threshold"


class CountForecaster(Forecaster):
    """A forecaster that looks at nothing but how many labels are known, and how many of them are 1."""

    needs_score = False
    row: int = 0
    rows: int = 0
    positives: int = 0

    def __init__(self, seed: int = 0, horizon: int | None = None) -> None:
        self.seed, self.horizon = seed, horizon

    def learn_one(self, score: float, label: int) -> None:
        """Count a label."""
        self.rows += 1
        self.positives += label

    def replay(self, score: Floats, label: Labels, known: Ints) -> Floats:
        """All predictions at once."""
        count, learned = len(known), int(known[-1]) if len(known) else 0
        to_row = self.positives + np.concatenate(([0], np.cumsum(label[:learned], dtype=int)))
        rows = self.row + np.arange(count, dtype=int)
        predictions = self._predictions(rows, to_row[known], self.rows + known)
        self.row, self.rows, self.positives = self.row + count, self.rows + learned, int(to_row[learned])
        return predictions

    def _check(self) -> None:
        consistent(0 <= self.positives <= self.rows <= self.row <= MAX_ROWS)

    @property
    def waiting(self) -> int:
        """How many rows it predicted whose labels it has not learned."""
        return self.row - self.rows

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
        return ratio(positives, rows, 0.5)


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

    def _predictions(self, row: Ints, positives: Ints, rows: Ints) -> Floats:
        horizon = row + 1.0 if self.horizon is None else float(self.horizon)
        moved = logistic(self.seed, row) * np.sqrt(horizon / (8 * math.log(2)))
        # Before the first label only the sign of the noise is left, which the clip turns into 0 or 1.
        total = np.where(rows > 0, positives + moved, np.sign(moved))
        return np.clip(total / np.maximum(rows, 1), 0.0, 1.0)

    def guarantee(self, rows: int) -> Guarantee:
        """The expected V-regret of a fixed threshold."""
        factor = 2.0 if self.horizon is None else 1.0
        total = factor * math.sqrt(math.log(2) / 2 * (self.horizon or rows))
        return Guarantee("v_regret", total / rows, _AT_A_THRESHOLD)


@online("ftpl", source=cite("Kleinberg et al. 2023", "alg. 2"))
class ForecastFTPL(CountForecaster):
    """The share of label 1 after a fresh random number of rows is added to each label's count.

    Algorithm 2 of Kleinberg et al. 2023 for two classes: the numbers are uniform on 1 .. ceil(sqrt(T)), or
    ceil(sqrt(t)) in row t without a horizon T. Its expected regret grows as sqrt(T) for each fixed proper scoring rule.
    """

    title = "ForecastFTPL"
    randomised = True
    uses_horizon = True

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
        return Guarantee("v_regret", (decided_otherwise + (most + 1) / 2) / rows, _AT_A_THRESHOLD)


def perturbed_shares(counts: Ints, row: Ints, seed: int, horizon: int | None) -> Floats:
    """Shares of counts (T, K) after random numbers of these rows are added, shape (T, K)."""
    most = np.ceil(np.sqrt(row + 1.0)) if horizon is None else np.full(len(row), float(math.ceil(math.sqrt(horizon))))
    classes = counts.shape[1]
    added = uniform(seed, (classes * row[:, None] + np.arange(classes)).ravel()).reshape(counts.shape)
    total = counts + 1 + np.floor(most[:, None] * added)
    return total / total.sum(axis=1, keepdims=True)


_LEAST_FACTOR = 1e-12
"""The least factor on a weight in a round: a weight of 0 would stay 0."""

_N_COINS = 1024
"""Random numbers that are drawn at once."""


class Draw(NamedTuple):
    """The prediction before it is rounded up to its bucket: `low` with this chance, else `high`."""

    low: float
    high: float
    chance: float


class GridForecaster(Forecaster):
    """A forecaster that predicts the points of a grid, whatever the score is; row, learned: predictions and labels."""

    needs_score = False
    uses_horizon = True
    on_grid = True
    row: int = 0
    learned: int = 0

    @property
    def waiting(self) -> int:
        """How many rows it predicted whose labels it has not learned."""
        return self.row - self.learned


@online("cdl-algorithm", source=cite("Hu and Wu 2024", "alg. 1"))
class CdlForecaster(GridForecaster):
    """Probabilities on a grid, whose calibration decision loss vanishes as log T / sqrt(T), whatever the labels are.

    Algorithm 1 of Hu and Wu 2024. There are m = sqrt(T) / log T buckets ((i-1)/m, i/m]. Two experts for each bucket
    win the bias there, one each way; a further one wins nothing. Each prediction is drawn so that the experts, by their
    weights, expect to win at most 1/T, whatever the label will be. Without a horizon T it starts over at rows 1, 2, 4,
    8 and so on, each time for as many rows as were before.
    """

    title = "CDL algorithm"
    randomised = True
    start: int
    rows: int
    drawn: deque[float]
    log_weight: Floats
    squares: Floats

    def __init__(self, seed: int = 0, horizon: int | None = None) -> None:
        self.seed, self.horizon = seed, horizon
        self._coins: Floats = np.empty(0)
        self.drawn = deque()
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
        """For each bucket the share of the expert that wins where p is above y, less the other's, shape (m,)."""
        if self._lead is None:
            share = self.rate * np.exp(self.log_weight - self.log_weight.max())
            share /= share.sum()
            self._lead = np.asarray(share[: self.buckets] - share[self.buckets : -1])
        return self._lead

    def draw(self) -> Draw:
        """The two numbers from which the next prediction is drawn, and the chance of the lower one."""
        lead = self.lead()
        if lead[0] >= 0:
            return Draw(0.0, 0.0, 1.0)
        if lead[-1] <= 0:
            return Draw(1.0, 1.0, 1.0)
        # The first bucket is below 0 and the last above: somewhere the sign changes upwards.
        above = int(np.argmax(lead >= 0))
        boundary = above / self.buckets
        chance = float(lead[above] / (lead[above] - lead[above - 1]))
        return Draw(boundary, boundary + min(1 / self.rows, 0.5 / self.buckets), chance)

    def predict_one(self, score: float) -> float:
        """The upper end of the bucket that the drawn number lies in."""
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
            len(self.drawn) == self.waiting,
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
        """The number of the bucket of what is drawn, from 0; a boundary belongs to the bucket below it."""
        return max(math.ceil(drawn * self.buckets - 1e-9) - 1, 0)


class Pair(NamedTuple):
    """Two neighbours on a grid of so many steps from 0 to 1: `lower`, counted in steps, and the next one."""

    lower: int
    steps: int


@online("almost-one-step-ahead", source=cite("Arunachaleswaran et al. 2025", "alg. 2"))
class AlmostOneStepAhead(GridForecaster):
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
    positives: int = 0
    moved: int = 0
    bias: Ints
    pairs: deque[Pair]

    def __init__(self, horizon: int | None = None) -> None:
        self.horizon = horizon
        self.steps = _steps(1, horizon)
        # In steps, so that it is a whole number and no rounding adds up.
        self.bias = np.zeros(self.steps + 1, dtype=int)
        self.pairs = deque()

    def predict_one(self, score: float) -> float:
        """The prediction: one of two neighbours on the grid, one of which will have been right."""
        self.row += 1
        finer = _steps(self.row, self.horizon) // self.steps
        if finer > 1:
            bias = np.zeros(finer * self.steps + 1, dtype=int)
            bias[::finer] = finer * self.bias
            self.steps, self.bias, self.moved = finer * self.steps, bias, finer * self.moved
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

    def _check(self) -> None:
        consistent(0 <= self.positives <= self.learned <= self.row <= MAX_ROWS)
        self.steps = _steps(max(self.row, 1), self.horizon)
        consistent(len(self.pairs) == self.waiting, 0 <= self.moved <= self.steps * self.learned)
        if len(self.bias) != self.steps + 1 or self.bias[0] > 0 or self.bias[-1] < 0:
            raise ValueError("the biases are not those of this grid")
        consistent((np.abs(self.bias) <= self.steps * self.learned).all())
        if any(not 0 <= lower < steps or self.steps % steps for lower, steps in self.pairs):
            raise ValueError("a pair lies on another grid")

    def account(self) -> float:
        """How far its rows were moved to the points that they count to, plus the bias of these points."""
        return float(self.moved + np.abs(self.bias).sum()) / self.steps

    def guarantee(self, rows: int) -> Guarantee:
        """The distance to calibration per row: at most 1/m of each row, and a bias of 1 of each point inside."""
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
    """The steps m of the grid at this row, counted from 1."""
    return 2 ** _power(row) if horizon is None else max(1, round(math.sqrt(horizon)))


def _power(row: int) -> int:
    """The largest k with 4^k <= 8 row."""
    return ((8 * row).bit_length() - 1) // 2


def _first(power: int) -> int:
    """The first row of this power."""
    return -(-(4**power) // 8)
