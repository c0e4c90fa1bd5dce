"""Intervals: what they are for, how they are made from errors or from draws, and how many rows make it short."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from statistics import NormalDist
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.limits import MIN_RISK
from decal_cli.numbers import many
from decal_cli.tables.design import MIN_CLUSTERS, confidence_of
from decal_cli.tables.estimate import MeanEstimate
from decal_cli.tables.table import Floats
from decal_cli.tables.threads import meanwhile
from decal_cli.tables.units import Interval as Interval
from decal_cli.tables.units import quantile as quantile
from decal_cli.tables.units import wilson as wilson
from decal_cli.tables.units import wilson_ends as wilson_ends
from decal_cli.tables.units import within as within

POPULATION = "the population's value"
_BIASED = "noise alone makes the value too large, so the truth lies in the lower part more often than in the upper"
POPULATION_BELOW = f"{POPULATION}; {_BIASED}"
_EDGES = "the bins that these rows have, their edges held fixed"
OF_BINS = f"{POPULATION} for {_EDGES}"
OF_BINS_BELOW = f"{OF_BINS}; {_BIASED}"
FEW_ROWS = "no interval for exact levels that hold few rows: there the value is noise and estimates nothing"
OF_LEVELS_BELOW = f"{POPULATION} for the levels used, these exact ones or {_EDGES}; {_BIASED}; {FEW_ROWS}"
LEARNED = "the mean gain, in the population, of the rules that the folds learned"
JUMPS = "nothing: where a supremum is attained jumps between far-apart thresholds that are almost as bad"


MEAN = "mean of a per-row score: normal, from its standard error"
WILSON = "Wilson score interval"
_MIN_BEND = 1e-6
"""Below it the transformation is the identity, but for rounding."""


def one_sided(confidence: float) -> float:
    """The confidence of the two-sided interval each end of which holds at this one: 0.9 for 0.95; near 0 up to 0.5."""
    return max(2 * confidence - 1, MIN_RISK)


def normal(estimate: MeanEstimate, confidence: float, low: float = -math.inf, high: float = math.inf) -> Interval:
    """estimate -/+ z standard errors, cut to the range the quantity can have."""
    half_width = quantile(confidence) * estimate.error
    return within((estimate.mean - half_width, estimate.mean + half_width), (low, high))


def skewed(estimate: MeanEstimate, bend: float, confidence: float) -> Interval:
    """The interval of a mean of skewed values, by the cubic transformation of Hall 1992: longer where the tail is.

    bend: the skewness of the mean, which is that of one value over the root of how many there are.
    """
    if abs(bend) < _MIN_BEND:
        return normal(estimate, confidence)

    def studentised(z: float) -> float:
        return 3 / bend * (float(np.cbrt(1 + bend * (z - bend / 6))) - 1)

    critical_value = quantile(confidence)
    return estimate.mean - estimate.error * studentised(critical_value), estimate.mean - estimate.error * studentised(
        -critical_value
    )


def holding(interval: Interval, value: float) -> Interval:
    """The interval, widened to the value: where noise biases that upward, what is likely may lie below it."""
    return min(interval[0], value), max(interval[1], value)


def bias_corrected(value: float, draws: Floats, confidence: float, centre: float | None = None) -> Interval:
    """The value, less the bias of its bootstrap draws, -/+ z of their standard deviations.

    The bias is the mean of the draws less the centre: what the rows give that the draws were made from, or the value.
    """
    middle = value - (float(draws.mean()) - (value if centre is None else centre))
    half_width = quantile(confidence) * float(draws.std(ddof=1))
    return middle - half_width, middle + half_width


RESAMPLES = 200
"""Bootstrap draws; their mean and standard deviation are used, not their tails, so this many are enough."""
MIN_DEFINED = RESAMPLES // 2
"""A statistic that is defined on no more draws than these gets no interval."""
MANY = 4096
"""Up to this many cells a second thread costs more than it saves."""

K = TypeVar("K")
Draw = TypeVar("Draw")
Draw_co = TypeVar("Draw_co", covariant=True)


class Resampled(Protocol[Draw_co]):
    """Rows as cells that a bootstrap draws from: a table, or a table of pairs."""

    def __len__(self) -> int:
        """Number of cells."""

    def resample(self, rng: np.random.Generator) -> Draw_co:
        """One draw of the rows; raises Undefined where it is empty."""


def bootstrapped(
    values: Mapping[K, float],
    statistic: Callable[[K, Draw], float],
    original: Draw,
    cells: Resampled[Draw],
    confidence: float,
    seed: int,
) -> dict[K, Interval]:
    """Bias-corrected normal intervals by key.

    values: the statistics on all rows. statistic: gives its value on a draw, or raises Undefined.
    cells: what is drawn from; original: all cells, in the form of a draw. On cells a statistic differs a little from
    its value on all rows; draws are compared with their own kind.
    """
    if not values:
        return {}
    draws: dict[K, list[float]] = {key: [] for key in values}
    for draw in _resamples(cells, np.random.default_rng([seed, RESAMPLES])):
        for key, defined in draws.items():
            with suppress(Undefined):
                defined.append(statistic(key, draw))
    bootstrapped = {}
    for key, value in values.items():
        with suppress(Undefined):
            centre, resampled = statistic(key, original), np.array(draws[key])
            if len(resampled) > MIN_DEFINED:
                bootstrapped[key] = bias_corrected(value, resampled, confidence, centre)
    return bootstrapped


def _resamples(cells: Resampled[Draw], rng: np.random.Generator) -> Iterator[Draw]:
    """The draws that are not empty; of many cells the next is made by a second thread while this one is evaluated."""
    coming = meanwhile(partial(cells.resample, rng), len(cells) > MANY)
    for left in reversed(range(RESAMPLES)):
        drawn = []
        with suppress(Undefined):  # It came out empty, as it may of very few rows.
            drawn.append(coming())
        if left:
            coming = meanwhile(partial(cells.resample, rng), len(cells) > MANY)
        yield from drawn


MAX_ROWS = 1e12
"""More rows than this are not worth naming."""
POWER = 0.8
"""How often so many rows show the effect. Where the half-width only equals it, every second sample does."""


class Reach(NamedTuple):
    """On so many rows: how far an interval of this confidence reaches to a bound, and how far the value is from it.

    clusters: the effective ones, infinitely many of independent rows; of fewer rows there are as many fewer.
    fewest: rows without which there is no value. bend: how many times as long intervals of samples at the bound are as
    at the value.
    """

    rows: float
    half_width: float
    effect: float
    confidence: float
    clusters: float = math.inf
    fewest: int = 1
    bend: float = 1.0

    @classmethod
    def to_bound(
        cls, rows: float, value: float, interval: Interval, bound: float, confidence: float, clusters: float
    ) -> Reach:
        """The reach of an interval of so many rows, whose value lies on the side of the bound where it is to end.

        An interval that reaches further towards the bound than away from it is longer the nearer a sample is to it: its
        square is taken to grow evenly, as that of a share nearly does.
        """
        half_width, effect = (interval[1] - interval[0]) / 2, abs(value - bound)
        towards = value - interval[0] if value > bound else interval[1] - value
        further = max(towards / half_width - 1, 0.0) / half_width if half_width > 0 else 0.0
        bend = math.sqrt(1 + 2 * effect * further)
        return cls(rows, bend * half_width, effect, confidence, clusters, bend=bend)

    def _quantile(self, size: float) -> float:
        """Standard errors that an interval of so many rows reaches; infinite of too few clusters for any."""
        adjusted: float | None = self.confidence
        if self.clusters < math.inf:
            adjusted = confidence_of(self.clusters * size / self.rows, self.confidence)
        return math.inf if adjusted is None else quantile(adjusted)

    def half_width_of(self, size: float) -> float:
        """How far an interval of so many rows reaches."""
        return self.half_width * self._quantile(size) / self._quantile(self.rows) * math.sqrt(self.rows / size)

    def power(self, size: float) -> float:
        """How often the interval of so many rows ends before the bound."""
        half_width, standard = self.half_width_of(size), self._quantile(size)
        if math.isinf(standard) or size < self.fewest:
            return 0.0
        return NormalDist().cdf(self.bend * standard * (self.effect / half_width - 1)) if half_width > 0 else 1.0

    def needed(self, power: float = POWER) -> int | None:
        """Rows whose interval ends before the bound so often: two digits, rounded up; None for none worth naming."""
        if not self.effect > 0:
            return None
        # No power: beyond the range of floats it is an error, where a product is infinite.
        noise = NormalDist().inv_cdf(power) / (self.bend * quantile(self.confidence))
        ratio = (1 + noise) * self.half_width / self.effect
        alone = self.rows * ratio * ratio
        return self.least(alone, lambda size: self.power(size) >= power) if alone < MAX_ROWS else None

    def least(self, alone: float, enough: Callable[[int], bool]) -> int:
        """The least number of rows, of two digits, that is enough; alone: of independent ones."""
        if math.isinf(self.clusters):
            return max(two_digits(alone), self.fewest)
        size = max(two_digits(MIN_CLUSTERS * self.rows / self.clusters), self.fewest)
        while not enough(size):
            size = two_digits(size + 1)
        return size


def two_digits(needed: float) -> int:
    """A number of rows rounded up to two digits, which are enough."""
    unit = 10 ** max(math.floor(math.log10(max(needed, 1))) - 1, 0)
    return int(unit * math.ceil(needed / unit - 1e-9))


class Clustering(NamedTuple):
    """How many clusters some rows come in, and as many of one size as say as much; of independent rows the defaults."""

    number: int | None = None
    effective: float = math.inf

    def words(self, needed: int, rows: float) -> str:
        """What stands behind a number of rows to collect: the clusters they come in, where so many rows come in some.

        More rows of the same clusters would say little more.
        """
        return "" if self.number is None else f" in about {many(two_digits(needed * self.number / rows), 'cluster')}"


INDEPENDENT = Clustering()
"""The clustering of rows that are not in clusters."""
