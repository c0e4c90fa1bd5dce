"""Units: the rows, or what a GROUP BY leaves of them. An estimate is a value and what each unit adds to it.

A unit stands for rows that agree in what a number depends on. A smooth function of means has an influence: what one
more unit of weight would add to it. Sums, products and ratios follow by the delta method. Only the sampling knows how
units vary: weights, clusters, known shares of labels (Deville 1999, linearised variables).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.tables.estimate import Floats, MeanEstimate, counted_rows, dot, ratio, with_missed

Ints = NDArray[np.int64]
MAX_ROUNDING = 1e-13
BLOCK = 1 << 16
"""Rows whose temporaries fit the processor's cache: of many rows the kernel takes longer to clear those of full length
than it takes to compute them."""
EVERY = slice(None)
"""All units."""
Interval = tuple[float, float]
"""The low and the high end."""


class Sampling(ABC):
    """How units were sampled: what makes their weights vary."""

    clustered = False
    """Whether rows were sampled in clusters, which are what is independent."""

    @abstractmethod
    def squares(self, weight: Floats) -> Floats:
        """Each unit's own part of the variance: the sum of the squared weights of its rows, shape (m,)."""

    def covariance(self, influence: Floats, weight: Floats) -> Floats:
        """The covariance of k estimates, shape (k, k), by the influence of each unit on each of them, shape (k, m)."""
        return np.asarray((influence * self.squares(weight)) @ influence.T)

    def variance(self, influence: Floats | Influence, weight: Floats) -> float:
        """The variance of one estimate, by the influence of each unit on it, shape (m,)."""
        return float(self.covariance(influence[:][None], weight)[0, 0])

    @property
    def keys(self) -> tuple[Ints, ...]:
        """What tells units apart in the sampling, shape (m,) each."""
        return ()

    def reduced(self, order: Ints, starts: Ints, weight: Floats) -> Sampling:
        """The sampling of runs of units that are put together: the units in an order, and where each run starts."""
        place = np.empty(len(order), dtype=np.int64)
        place[order] = run_of_each(starts, len(order))
        return Parts(self, weight, place)


@dataclass(frozen=True, eq=False)
class Parts(Sampling):
    """Units that are made of smaller ones, of this sampling and weight. place: the unit that each of these is in."""

    of: Sampling
    weight: Floats
    place: Ints

    @property
    def clustered(self) -> bool:  # type: ignore[override]
        return self.of.clustered

    def covariance(self, influence: Floats, weight: Floats) -> Floats:
        return self.of.covariance(influence[:, self.place], self.weight)

    def squares(self, weight: Floats) -> Floats:
        return np.bincount(self.place, self.of.squares(self.weight), len(weight)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Independent(Sampling):
    """Every row was sampled by itself. square: the summed squared weights of the rows of each unit, shape (m,)."""

    square: Floats

    def variance(self, influence: Floats | Influence, weight: Floats) -> float:
        each = ((self.square[part], influence[part]) for part in runs(len(weight)))
        return float(sum(np.einsum("i,i,i->", square, of_run, of_run) for square, of_run in each))

    def reduced(self, order: Ints, starts: Ints, weight: Floats) -> Independent:
        return replace(self, square=np.add.reduceat(self.square[order], starts, dtype=np.float64))

    def followed(self, count: int) -> Independent:
        """This sampling with so many units added that hold no row, and add nothing to the cluster they stand in."""
        return replace(self, **{name: with_zeros(each, count) for name, each in vars(self).items()})

    def squares(self, weight: Floats) -> Floats:
        return self.square


@dataclass(frozen=True, eq=False)
class InClusters(Independent):
    """Rows were sampled in clusters. cluster: the number of each unit's, shape (m,); square: as of independent rows."""

    cluster: Ints
    clustered = True

    def covariance(self, influence: Floats, weight: Floats) -> Floats:
        sums = summed(self.cluster, lambda part: influence[:, part] * weight[part])
        return np.asarray(sums @ sums.T)

    def variance(self, influence: Floats | Influence, weight: Floats) -> float:
        sums = summed(self.cluster, lambda part: (influence[part] * weight[part])[None])[0]
        return dot(sums, sums)

    @property
    def keys(self) -> tuple[Ints, ...]:
        return (self.cluster,)

    def reduced(self, order: Ints, starts: Ints, weight: Floats) -> Independent:
        return InClusters(np.add.reduceat(self.square[order], starts, dtype=np.float64), self.cluster[order[starts]])


@dataclass(frozen=True, eq=False)
class Products(Sampling):
    """Units that hold rows of many clusters. products: sums over clusters of the products of their weights, (m, m)."""

    square: Floats
    products: Floats
    clustered = True

    def covariance(self, influence: Floats, weight: Floats) -> Floats:
        return np.asarray(influence @ self.products @ influence.T)

    def squares(self, weight: Floats) -> Floats:
        return self.square


@dataclass(frozen=True, eq=False)
class Dealt(Sampling):
    """Rows that were dealt into folds several times: each row is a part of one unit of every deal.

    origin: the number of the row, cluster or cell that a unit is of, (m,). deal: its deal, (m,). square: where origins
    are cells of many rows, the summed squared weights of the unit's rows over the number of deals, (m,); else ().
    Weights are the weights of the rows over the number of deals.
    """

    origin: Ints
    deal: Ints
    deals: int
    square: Floats | tuple[()] = ()

    def covariance(self, influence: Floats, weight: Floats) -> Floats:
        """The covariance from the rows, by their mean influence over deals, and from the deals, over their number."""
        if isinstance(self.square, tuple):
            sums = summed(self.origin, lambda part: influence[:, part] * weight[part])
            of_rows = sums @ sums.T
        else:
            square = self._square_of_origins
            mean = summed(self.origin, lambda part: influence[:, part] * self.square[part])
            mean /= np.where(square > 0, square, 1.0)
            # Rows of one cell are in different folds, so that within a cell they differ too.
            within = (influence * self.square) @ influence.T
            of_rows = (1 - 1 / self.deals) * (mean * square) @ mean.T + within / self.deals
        of_deals = summed(self.deal, lambda part: influence[:, part] * weight[part])
        return np.asarray(of_rows + of_deals @ of_deals.T * self.deals / (self.deals - 1))

    @cached_property
    def _square_of_origins(self) -> Floats:
        return np.bincount(self.origin, self.square).astype(np.float64)

    @property
    def keys(self) -> tuple[Ints, ...]:
        return (self.origin, self.deal)

    def reduced(self, order: Ints, starts: Ints, weight: Floats) -> Dealt:
        square = () if isinstance(self.square, tuple) else np.add.reduceat(self.square[order], starts)
        return replace(self, origin=self.origin[order[starts]], deal=self.deal[order[starts]], square=square)

    def squares(self, weight: Floats) -> Floats:
        return weight**2 * self.deals if isinstance(self.square, tuple) else self.square


def squares_about(centre: Floats, squares: Floats) -> Floats:
    """Sums of squared deviations from the centre of each label, (2,). squares: sums of 1, value and value^2, (2, 3)."""
    return np.maximum(squares[:, 2] - 2 * centre * squares[:, 1] + centre**2 * squares[:, 0], 0.0)


def ones(rows: int) -> Floats:
    """So many ones, which take no memory."""
    return np.broadcast_to(np.float64(1.0), rows)


def with_zeros(values: NDArray[Any], count: int) -> NDArray[Any]:
    """Numbers of units, and after them so many zeros; `ones`, which took no memory, take a byte each."""
    small = not values.strides[0] and (values[:1] == 1).all()
    return np.append(values.astype(np.int8) if small else values, np.zeros(count, np.int8))


def squares_of(weight: Floats) -> Floats:
    """Squared weights; where all weights are one number in memory, so are their squares."""
    return weight**2 if weight.strides[0] else np.broadcast_to(weight[:1] ** 2, weight.shape)


def runs(end: int, sums: int = 0, start: int = 0) -> Iterator[slice]:
    """Slices of rows up to an end, of BLOCK rows, or of as many as there are sums that each slice is added to."""
    step = max(BLOCK, sums)
    return (slice(begin, min(begin + step, end)) for begin in range(start, end, step))


def summed(place: Ints, values: Callable[[slice], Any], places: int = 0) -> Floats:
    """Sums by place of k numbers of each unit, shape (k, places). values: computes those of a run of units, (k, r).

    places: how many there are at least.
    """
    places, sums = max(places, int(place.max()) + 1), np.zeros((1, 1))
    for part in runs(len(place), places):
        sums = sums + np.array([np.bincount(place[part], each, places) for each in values(part)])
    return sums


@dataclass(frozen=True, eq=False)
class Units:
    """Units and how they were sampled. label: the class of each, int (m,). weight: of all its rows, (m,).

    share_known: whether weights make the share of each label a known one, so that rows vary within their label only.
    rows: effective rows, nan where they follow from the weights. kind: of each unit, int (m,), () for its label: a row
    that could have been missed is like rows of one kind, which units without weight may show.
    """

    label: Ints
    weight: Floats
    sampling: Sampling
    share_known: bool = False
    rows: float = math.nan
    kind: Ints | tuple[()] = ()

    def __len__(self) -> int:
        """Number of units, m."""
        return len(self.label)

    @cached_property
    def total(self) -> float:
        """Summed weight."""
        return float(self.weight.sum())

    @cached_property
    def effective_rows(self) -> float:
        """Effective rows: how many independent rows of one weight would say as much."""
        return self._by_weights(slice(None)) if math.isnan(self.rows) else self.rows

    def weight_of(self, label: int) -> float:
        """Summed weight of a label."""
        return float(self.weight[self.label == label].sum())

    def rows_of(self, which: Any) -> float:
        """Effective rows of some of the units."""
        return self.effective_rows * self._by_weights(which) / self._by_weights(slice(None))

    def _by_weights(self, which: Any) -> float:
        squares = float(self.sampling.squares(self.weight)[which].sum())
        return counted_rows(float(self.weight[which].sum()) ** 2 / max(squares, 1e-300))

    @property
    def by_label(self) -> Units:
        """These units with their labels as kinds: a row that could have been missed is like those of its label."""
        return self if isinstance(self.kind, tuple) else replace(self, kind=())

    def beside(self, other: Units) -> Units:
        """These units with a kind for each pair of a kind here and a kind in the other units."""
        if other is self or other.kind is self.kind:
            return self
        return replace(self, kind=self.kinds.astype(np.int64) * (int(other.kinds.max()) + 1) + other.kinds)

    @property
    def kinds(self) -> Ints:
        """The number of each unit's kind, int (m,)."""
        return self.label if isinstance(self.kind, tuple) else self.kind

    def mean(self, values: Any) -> Estimate:
        """The mean over rows of a number of each unit: (m,), one for all, or a function that computes it of some."""
        if not callable(values):
            numbers = np.asarray(values)
            numbers = numbers if numbers.dtype == bool else numbers.astype(np.float64, copy=False)
            values = np.broadcast_to(numbers, len(self)).__getitem__
        total = self.total
        mean = sum(dot(self.weight[part], values(part)) for part in runs(len(self))) / total

        def off(which: Any) -> Floats:
            each = values(which) - mean
            each /= total
            return each

        return Estimate(mean, Influence(off), self)

    def share(self, part: Any, whole: Any = True, empty: str = "") -> Estimate:
        """The share of some units among others. Errors: Undefined, with this reason, where there are no others."""
        among = self.mean(whole)
        if among.value <= 0:
            raise Undefined(empty)
        share = (self.mean(np.logical_and(part, whole)) / among).within(0.0, 1.0)
        return replace(share, rows=self.rows_of(np.broadcast_to(whole, len(self))), of_rows=True)

    def linear(self, value: float, adds: Callable[[], Floats], extra: float = 0.0) -> Estimate:
        """The estimate of a value. adds: computes what each unit adds to it to first order, up to a constant, (m,).

        The influence is that less its mean, divided by the total weight.
        """

        def influence() -> Floats:
            values = adds()
            return (values - dot(self.weight, values) / self.total) / self.total

        return Estimate(value, influence, self, extra=extra)

    def mean_of_sums(
        self,
        first: Floats,
        squares: Floats,
        adds: Callable[[], Floats],
        between: Callable[[Floats], float] = lambda centre: 0.0,
    ) -> Estimate:
        """The mean over rows of a value that varies within units too. first: its sums by label, (2,).

        squares: sums over squared weights of 1, of the value and of its square, (2, 3). adds: computes the mean value
        of each unit, (m,). between: computes what clusters add to the variance of a sum about a centre of each label.
        """
        total = self.total
        mean = float(first.sum()) / total
        ones = float(self.weight_of(1))
        centre = first / np.maximum((total - ones, ones), 1e-300) if self.share_known else np.full(2, mean)
        off = squares_about(centre, squares)
        known = float(off.sum()) + between(centre)
        heavy = _heavier(squares[:, 0], np.array((total - ones, ones))) if self.share_known else 1.0
        missed = float((off / np.where(squares[:, 0] > 0, squares[:, 0], np.inf) * heavy**2).max())
        if not squares[:, 0].all():
            # A row that could have been missed may be of the label that no row has.
            missed = max(missed, self.farthest((adds() - mean) / total))
        return Estimate(mean, lambda: (adds() - mean) / total, self, known=known / total**2, missed=missed)

    def sums(self, values: Floats) -> Floats:
        """Sums over rows of k numbers of each unit, shape (k, m) to (k,)."""
        return np.asarray(values @ self.weight)

    def covariance(self, influence: Floats) -> Floats:
        """The covariance of k estimates, shape (k, k), by the influence of each unit on each of them, shape (k, m)."""
        return self.sampling.covariance(self._among_labels(influence), self.weight)

    def variance(self, influence: Floats | Influence) -> float:
        """The variance of one estimate, by the influence of each unit on it, shape (m,)."""
        return self.sampling.variance(self._among_labels(influence), self.weight)

    def spread(self, values: Floats) -> float:
        """The variance of the sum of a number of each unit whose mean is 0, (m,)."""
        return max(self.sampling.variance(values, self.weight), 0.0)

    def _among_labels(self, influence: Any) -> Any:
        """The influence less its mean within each label where the share of labels is known; elsewhere as it is."""
        if not self.share_known:
            return influence
        influence = influence[:].copy()
        for label in np.unique(self.label):
            of_label = self.label == label
            share = self.weight[of_label] / max(float(self.weight[of_label].sum()), 1e-300)
            influence[..., of_label] -= (influence[..., of_label] @ share)[..., None]
        return influence

    @cached_property
    def heavy(self) -> Floats:
        """Squared weight of a row of each label over that of a row of any, (K,); [1] where shares are not known."""
        if not self.share_known:
            return np.ones(1)
        own = self.sampling.squares(self.weight)
        return np.asarray(_heavier(np.bincount(self.label, own), np.bincount(self.label, self.weight)) ** 2)

    def farthest(self, influence: Floats | Influence) -> float:
        """Squared distance to a mean of the kind of row that is farthest from it, by the influence on it, (m,)."""
        influence = self._among_labels(influence)
        own, heavy = self.sampling.squares(self.weight), self.heavy

        def squares_of_units(which: Any) -> Floats:
            return np.asarray(influence[which] ** 2 * heavy[self.label[which] if self.share_known else 0])

        rows, without = self._rows_of_kinds
        squares = summed(self.kinds, lambda part: (own[part] * squares_of_units(part))[None], len(rows))[0]
        if len(without):
            squares = squares + np.bincount(self.kinds[without], squares_of_units(without), len(rows))
        mean = squares / np.maximum(rows, 1e-300)
        return float(mean.max()) * self.total**2

    @cached_property
    def _rows_of_kinds(self) -> tuple[Floats, Ints]:
        """The summed squared weights of each kind, and the units of kinds without any, which count alike."""
        own = self.sampling.squares(self.weight)
        (rows,) = summed(self.kinds, lambda part: own[part][None])
        without = np.flatnonzero((rows == 0)[self.kinds])
        if len(without):
            rows = rows + np.bincount(self.kinds[without], minlength=len(rows))
        return rows, without

    def dealt(self, deals: int) -> Units:
        """These units once for each deal into folds, one deal after the other; weights are over the number of deals."""
        if deals == 1:
            return self
        count = len(self)
        origin = self.sampling.cluster if isinstance(self.sampling, InClusters) else np.arange(count)
        return replace(
            self,
            label=np.tile(self.label, deals),
            weight=np.tile(self.weight / deals, deals),
            sampling=Dealt(np.tile(origin, deals), np.repeat(np.arange(deals), count), deals),
            rows=self.effective_rows,
            kind=np.tile(self.kinds, deals),
        )

    def by(self, key: Ints) -> tuple[Units, Ints]:
        """One unit for each (key, label, cluster) that has rows, and the key of each: a GROUP BY. key: int (m,)."""
        order, starts = runs_of((key, self.label, *self.sampling.keys))
        first = order[starts]
        weight = np.add.reduceat(self.weight[order], starts, dtype=np.float64)
        sampling = self.sampling.reduced(order, starts, self.weight)
        units = replace(self, label=self.label[first], weight=weight, sampling=sampling, kind=self.kinds[first])
        return units, key[first]


def _heavier(squares: NDArray[Any], weight: NDArray[Any]) -> Floats:
    """Weight of a row of each label over that of a row of any label, by sums of squared weights and weights, (k,)."""
    mean = float(squares.sum()) / float(weight.sum())
    return ratio(squares, weight * mean, 1.0)


@dataclass(frozen=True, eq=False)
class Influence:
    """What each unit adds to an estimate, (m,), computed for the units that one asks for: of many, in runs of them."""

    of: Callable[[Any], Floats]

    def __getitem__(self, which: Any) -> Floats:
        return self.of(which)


@dataclass(frozen=True, eq=False)
class Estimate:
    """A value, and what one more unit of weight of each unit would add to it.

    adds: the latter, (m,), or a function for it. low, high: range of the value. extra: variance that units do not show
    to first order. missed: squared distance of a row that could have been missed; nan: the farthest kind. rows:
    effective rows behind a share of 0 or 1; nan: all. known: variance that units show; nan: from influence. of_rows:
    whether it is a share.
    """

    value: float
    adds: Floats | Influence | Callable[[], Floats]
    units: Units
    low: float = -math.inf
    high: float = math.inf
    extra: float = 0.0
    missed: float = math.nan
    rows: float = math.nan
    known: float = math.nan
    of_rows: bool = False

    @property
    def influence(self) -> Floats:
        """What one more unit of weight of each unit would add, shape (m,)."""
        return self._in_runs[:]

    @cached_property
    def _in_runs(self) -> Floats | Influence:
        """The influence, which may be asked for a run of units at a time."""
        return self.adds() if callable(self.adds) else self.adds

    def __float__(self) -> float:
        return self.value

    def __add__(self, other: Estimate | float) -> Estimate:
        if isinstance(other, Estimate):
            ours, theirs = self._in_runs, other._in_runs
            return Estimate(
                self.value + other.value,
                Influence(lambda which: ours[which] + theirs[which]),
                self.units.beside(other.units),
                self.low + other.low,
                self.high + other.high,
                self.extra + other.extra,
                float(np.fmax(self.missed, other.missed)),
            )
        return replace(self, value=self.value + other, low=self.low + other, high=self.high + other)

    def __neg__(self) -> Estimate:
        return self * -1.0

    def __sub__(self, other: Estimate | float) -> Estimate:
        return self + -other

    def __mul__(self, factor: float) -> Estimate:
        low, high = sorted((self.low * factor, self.high * factor))
        extra, missed, known = (each * factor**2 for each in (self.extra, self.missed, self.known))
        # Of many rows an influence is computed only where it is asked for.
        adds = Influence(lambda which: self._in_runs[which] * factor)
        scaled = replace(self, value=self.value * factor, adds=adds)
        return replace(
            scaled, low=low, high=high, extra=extra, missed=missed, known=known, rows=math.nan, of_rows=False
        )

    __rmul__ = __mul__

    def __truediv__(self, other: Estimate) -> Estimate:
        ratio, ours, theirs = self.value / other.value, self._in_runs, other._in_runs
        return Estimate(ratio, Influence(lambda which: (ours[which] - ratio * theirs[which]) / other.value), self.units)

    def widened(self, factor: float) -> Estimate:
        """This estimate, with an error so many times as large."""
        return replace(self * factor, value=self.value, low=self.low, high=self.high)

    def within(self, low: float, high: float) -> Estimate:
        """This estimate of a quantity that cannot lie outside of a range: the value is cut to it."""
        return replace(self, value=min(max(self.value, low), high), low=low, high=high)

    @cached_property
    def seen(self) -> float:
        """Standard error, as far as the rows that are there show it."""
        units, known = self.units, self.known
        variance = units.variance(self._in_runs) if math.isnan(known) else known
        return math.sqrt(max(variance, 0.0) + self.extra)

    @cached_property
    def error(self) -> float:
        """Standard error."""
        missed = self.units.farthest(self._in_runs) if math.isnan(self.missed) else self.missed
        return float(with_missed(self.seen**2, missed, self.units.effective_rows))

    def half_width(self, confidence: float) -> float:
        """z standard errors."""
        return quantile(confidence) * self.error

    def normal(self, confidence: float) -> Interval:
        """value -/+ z standard errors, cut to the range."""
        half_width = self.half_width(confidence)
        return within((self.value - half_width, self.value + half_width), (self.low, self.high))

    def wilson(self, confidence: float) -> Interval:
        """Wilson's score interval of a share, which rests on as many rows as its error says."""
        share, units = min(max(self.value, 0.0), 1.0), self.units
        rows = units.effective_rows if math.isnan(self.rows) else self.rows
        # A share that is 0 or 1 but for rounding shows no variance.
        if share * (1 - share) > MAX_ROUNDING and self.seen > 0:
            most = rows if self.of_rows and not (units.share_known or units.sampling.clustered) else math.inf
            # Where the few heavy rows agree, the light ones show hardly any.
            rows = min(share * (1 - share) / self.seen**2, most)
        return wilson(share, rows, confidence)


def runs_of(keys: Sequence[NDArray[Any]]) -> tuple[Ints, Ints]:
    """The order of rows by some keys, (T,) each, the first one first, and where each run of equal ones starts in it."""
    order = np.lexsort(keys[::-1])
    return order, starts_of([key[order] for key in keys])


def starts_of(keys: Sequence[NDArray[Any]]) -> Ints:
    """Where each run of rows with equal keys starts, of rows in order."""
    return np.flatnonzero(begins_of(keys))


def begins_of(keys: Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
    """Whether a run of rows with equal keys begins at each row, of rows in order."""
    new = np.zeros(len(keys[0]), dtype=bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return new


def index_type(rows: int) -> type[np.signedinteger[Any]]:
    """What indices of so many rows fit into: 32 bits take half the memory."""
    return np.int32 if rows < 1 << 31 else np.int64


def run_of_each(starts: Ints, rows: int) -> Ints:
    """The number of the run that each of so many rows in order is in, by where runs start."""
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=rows))


def wilson_ends(rate: Floats | float, effective: Floats | float, confidence: float) -> Floats:
    """Wilson's score intervals of proportions that rest on so many effective rows: lower and upper ends, (2, k)."""
    z2 = quantile(confidence) ** 2 / effective
    centre = (rate + z2 / 2) / (1 + z2)
    half_width = np.sqrt(z2 * (np.maximum(rate * (1 - rate), 0.0) + z2 / 4)) / (1 + z2)
    return np.array((np.maximum(centre - half_width, 0.0), np.minimum(centre + half_width, 1.0)))


def quantile(confidence: float) -> float:
    """The two-sided normal quantile: 1.96 at confidence 0.95."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def within(interval: Interval, bounds: Interval) -> Interval:
    """The interval with both ends cut to the range that the quantity can have."""
    low, high = (min(max(end, bounds[0]), bounds[1]) for end in interval)
    return low, high


def wilson(share: float, rows: float, confidence: float) -> Interval:
    """Wilson's score interval of a share that rests on so many effective rows. Errors: Undefined, for no rows."""
    if rows <= 0:
        raise Undefined("rests on no rows")
    low, high = wilson_ends(share, rows, confidence).tolist()
    return low, high


def whole_numbers(label: NDArray[Any]) -> Ints:
    """Labels as numbers with a sign: small ones take an eighth of the memory of int64."""
    return label.view(np.int8) if label.dtype.kind + str(label.itemsize) in ("i1", "u1") else label.astype(np.int64)


def units_of_rows(
    label: NDArray[Any],
    weight: Floats | None,
    cluster: Ints | None,
    rows: float = math.nan,
    share_known: bool = False,
) -> Units:
    """A unit for each row. rows: the effective rows, where rows are in clusters."""
    label = whole_numbers(label)
    weight = ones(len(label)) if weight is None else np.asarray(weight, dtype=np.float64)
    square = squares_of(weight)
    if cluster is None:
        return Units(label, weight, Independent(square), share_known)
    return Units(label, weight, InClusters(square, cluster), share_known, rows)


def mean_over(values: Floats, weight: Floats, unit: Ints | None) -> MeanEstimate:
    """The weighted mean of a number of each row, (T,), and its standard error.

    A row that could have been missed may be like any one. unit: the cluster of each row; None where they are
    independent.
    """
    rows = float(weight.sum()) ** 2 / dot(weight, weight)
    each = replace(units_of_rows(np.zeros(len(values)), weight, unit), rows=rows, kind=np.arange(len(values)))
    mean = each.mean(values)
    return MeanEstimate(mean.value, mean.error)
