"""Features as numbers: what some rows teach about categories and missing values, applied to others.

A category column becomes an indicator for each of its frequent categories, one for all others together, and one number:
the log-odds of label 1 among the rows of the category, drawn towards those of all rows. A row that teaches takes this
number from the rows before it in a random order alone (ordered target statistics, Prokhorenkova et al. 2018), so that
no label has a part in its own row's features. Missing is a category like any other; one that no row taught counts as
one of the others.

Numbers stay what they are, with an indicator of where they are missing; missing values stay NaN. Trees take that side
of a split that suits these rows best, linear models take the mean.

Features that are numbers without gaps need no encoder and are not touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.features import Features, Kind, Matrix
from decal_cli.tables.logistic import log_odds
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Floats, Ints

MIN_CATEGORY_ROWS = 10
"""Rows of a category that has an indicator."""
MAX_INDICATORS, MAX_ALL_INDICATORS = 32, 512
"""Categories of a column that have an indicator, the most frequent ones; and of all columns together."""
PRIOR_ROWS = 10.0
"""Rows of the base rate that a category's own rows are drawn to."""

R = TypeVar("R", bound=Rows)


@dataclass(frozen=True, eq=False)
class CategoryColumn:
    """One column of categories as numbers.

    A category, by its place in `names`, then missing, then one that is not among them, have each: indicator, the number
    of their indicator column, -1 for none; log_odds, empty where the indicators say all there is to say.
    """

    names: tuple[str, ...]
    indicator: Ints
    log_odds: Floats

    def __post_init__(self) -> None:
        """Refuse arrays that do not belong to the names. Errors: ValueError."""
        places = len(self.names) + 2
        if self.indicator.shape != (places,) or self.log_odds.shape not in ((0,), (places,)):
            raise ValueError("a category column needs one entry for each category, for missing and for others")
        if len(set(self.names)) < len(self.names) or self.indicator.min() < -1 or self.indicator.max() >= places:
            raise ValueError("a category column needs different names and indicators among its columns")
        if self.indicator.max() > MAX_INDICATORS:
            raise ValueError(f"a category column has at most {MAX_INDICATORS + 1} indicators")
        if not np.isfinite(self.log_odds).all():
            raise ValueError("log-odds of categories must be finite")

    def places(self, codes: NDArray[Any], names: Sequence[str]) -> Ints:
        """Place of each row's category, shape (T,). names: what the codes stand for."""
        known = {name: place for place, name in enumerate(self.names)}
        unseen = len(self.names) + 1
        # A missing value has code -1, which takes the last entry.
        return np.array([*(known.get(name, unseen) for name in names), len(self.names)], dtype=np.int64)[codes]

    def columns(self, place: Ints) -> list[Floats]:
        """The column's indicators, then its log-odds, shape (T,) each."""
        indicators = self.indicator[place]
        columns = [(indicators == k).astype(np.float64) for k in range(int(self.indicator.max()) + 1)]
        return columns + ([self.log_odds[place]] if len(self.log_odds) else [])


@dataclass(frozen=True, eq=False)
class Encoder:
    """Typed features as numbers.

    kinds: of the columns that it was taught. kept: which columns of numbers are taken, those that some row has a value
    of; gaps: which of them get an indicator of missing values. categories: one for each column of categories.
    """

    kinds: tuple[Kind, ...]
    kept: Ints
    gaps: Ints
    categories: tuple[CategoryColumn, ...]

    def __post_init__(self) -> None:
        """Refuse columns that are not there. Errors: ValueError."""
        n_categories = self.kinds.count("category")
        columns = np.concatenate((self.kept, self.gaps))
        if len(self.categories) != n_categories or np.any((columns < 0) | (columns >= len(self.kinds) - n_categories)):
            raise ValueError("an encoder needs one entry for each column of categories, and columns that are there")
        if any((np.diff(each) <= 0).any() for each in (self.kept, self.gaps)):
            raise ValueError("an encoder takes every column once, in order")

    def __call__(self, features: Features) -> Matrix:
        """The features of new rows as numbers, shape (T, columns). Errors: Undefined, where a column's kind changed."""
        features = features.as_kinds(self.kinds)
        return self._matrix(features, [each.columns(place) for each, place in self._places(features)])

    def unseen(self, features: Features) -> NDArray[np.bool_]:
        """Which rows have a category that no row taught, shape (T,)."""
        unseen = np.zeros(len(features), dtype=bool)
        for each, place in self._places(features.as_kinds(self.kinds)):
            unseen |= place == len(each.names) + 1
        return unseen

    def taught_by(self, features: Features, statistics: Sequence[Floats | None]) -> Matrix:
        """The features of the rows that taught it, with each row's own ordered statistics."""
        columns = [
            each.columns(place) if own is None else [*each.columns(place)[:-1], own]
            for (each, place), own in zip(self._places(features), statistics, strict=True)
        ]
        return self._matrix(features, columns)

    def _places(self, features: Features) -> list[tuple[CategoryColumn, Ints]]:
        columns = zip(self.categories, features.codes.T, features.categories, strict=True)
        return [(each, each.places(codes, names)) for each, codes, names in columns]

    def _matrix(self, features: Features, columns: Sequence[Sequence[Floats]]) -> Matrix:
        numbers = features.numbers
        missing = [np.isnan(numbers[:, k]).astype(np.float64) for k in self.gaps]
        indicators = [column for each in columns for column in each]
        return np.column_stack((numbers[:, self.kept], *missing, *indicators))


def encoded(rows: R, *, seed: int) -> tuple[Encoder | None, R]:
    """What rows in canonical order teach, and these rows with numbers as features.

    None, and the rows as they are, where the features are numbers without gaps, or where there are none.
    """
    if rows.features is None or (features := rows.typed).plain:
        return None, rows
    order = Seed(seed).generator("encoding").permutation(len(rows))
    most = max(1, min(MAX_INDICATORS, MAX_ALL_INDICATORS // max(1, len(features.categories))))
    taught = [
        _taught(codes, names, rows, order, most)
        for codes, names in zip(features.codes.T, features.categories, strict=True)
    ]
    some = ~np.isnan(features.numbers).all(axis=0)
    encoder = Encoder(
        features.kinds,
        np.flatnonzero(some),
        _different(features.numbers, np.flatnonzero(features.gaps & some)),
        tuple(column for column, _ in taught),
    )
    matrix = encoder.taught_by(features, [own for _, own in taught])
    return encoder, replace(rows, features=matrix)


def encoded_for(rows: Rows, learn: NDArray[np.bool_], *, seed: int) -> Matrix:
    """The features of all rows as numbers, shape (T, columns), as some of them teach. rows: in canonical order."""
    encoder, taught = encoded(rows.take(learn), seed=seed)
    if encoder is None:
        return rows.matrix
    others = encoder(rows.typed[~learn])
    matrix = np.empty((len(rows), others.shape[1]))
    matrix[learn], matrix[~learn] = taught.matrix, others
    return matrix


def _different(numbers: Matrix, columns: Ints) -> Ints:
    """Of columns that are missing in the same rows the first: an embedding has as many as it has numbers."""
    first: dict[bytes, int] = {}
    for column in columns.tolist():
        first.setdefault(np.packbits(np.isnan(numbers[:, column])).tobytes(), column)
    return np.array(sorted(first.values()), dtype=np.int64)


def _taught(
    codes: NDArray[Any], names: Sequence[str], rows: Rows, order: Ints, most: int
) -> tuple[CategoryColumn, Floats | None]:
    """A column of categories, and the ordered log-odds of the rows that taught it; None where it has none."""
    count = np.bincount(codes + 1, minlength=len(names) + 1)
    taught = np.flatnonzero(count[1:])
    # Places in the column: the names that these rows have, missing, others.
    place_of = np.full(len(names) + 1, len(taught), dtype=np.int64)
    place_of[taught] = np.arange(len(taught))
    place, rows_of = place_of[codes], np.append(count[1:][taught], count[0])
    indicator = _indicators(rows_of, most)
    kept = tuple(names[int(k)] for k in taught)
    if np.count_nonzero(rows_of) < 3:
        return CategoryColumn(kept, indicator, np.empty(0)), None
    weight = rows.weights / rows.weights.mean()
    positive = weight * rows.label
    # One row more, half of each label: some of these rows may have one label only.
    rate = float((positive.sum() + 0.5) / (weight.sum() + 1))
    all_rows, all_positive = (np.append(np.bincount(place, each, len(taught) + 1), 0.0) for each in (weight, positive))
    rows_before, positive_before = (_sums_before(place, order, each) for each in (weight, positive))
    column = CategoryColumn(kept, indicator, _drawn(all_rows, all_positive, rate))
    return column, _drawn(rows_before, positive_before, rate)


def _drawn(weight: Floats, positive: Floats, rate: float) -> Floats:
    """Log-odds of frequencies that are drawn to the base rate."""
    return log_odds((positive + rate * PRIOR_ROWS) / (weight + PRIOR_ROWS))


def _sums_before(place: Ints, order: Ints, values: Floats) -> Floats:
    """Of each row the sum of values over the rows of its place that come before it in the order, shape (T,)."""
    by_place = order[np.argsort(place[order], kind="stable")]
    running = np.cumsum(values[by_place]) - values[by_place]
    first = np.searchsorted(place[by_place], np.arange(int(place.max()) + 1))
    sums = np.empty(len(place))
    sums[by_place] = np.maximum(running - running[first[place[by_place]]], 0.0)
    return sums


def _indicators(rows_of: Ints, most: int) -> Ints:
    """Number of the indicator column of each place, and of others; rows_of: rows of each category, then of missing."""
    indicator = np.full(len(rows_of) + 1, -1, dtype=np.int64)
    present = np.flatnonzero(rows_of)
    if len(present) < 2:
        return indicator
    if len(present) == 2:
        # What no row taught counts as the more frequent one.
        indicator[present[0] if rows_of[present[0]] < rows_of[present[1]] else present[1]] = 0
        return indicator
    frequent = present[np.argsort(-rows_of[present], kind="stable")][:most]
    frequent = np.sort(frequent[rows_of[frequent] >= MIN_CATEGORY_ROWS])
    indicator[frequent] = np.arange(len(frequent))
    others = rows_of[np.setdiff1d(present, frequent)].sum()
    if others and len(frequent):
        # What no row taught counts as one of them.
        indicator[indicator < 0] = len(frequent)
    return indicator
