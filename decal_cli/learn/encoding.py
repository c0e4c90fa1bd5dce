"""Features as numbers: what some rows teach about categories, texts and missing values, applied to others.

No label has a part in the features of its own row. A row that teaches takes the log-odds of its category from the rows
before it in a random order, and the number of its text from a regression on other folds. Numbers stay what they are,
and missing ones stay NaN. Numbers without gaps need no encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.learn.models import NO_FEATURES, Applied, Model, are_places, is_finite, model, need
from decal_cli.tables.estimate import ratio
from decal_cli.tables.features import CODED, Features, Kind, Matrix
from decal_cli.tables.logistic import climb, expit, log_odds, row_slopes
from decal_cli.tables.raw_texts import BUCKETS, raw_texts
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Rows, Unlabelled
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BLOCK, Floats, Ints, Mask
from decal_cli.tables.threads import one_thread

MIN_CATEGORY_ROWS = 10
"""Rows of a category that has an indicator."""
MAX_INDICATORS, MAX_ALL_INDICATORS = 32, 512
"""Categories of a column that have an indicator, the most frequent ones; and of all columns together."""
PRIOR_ROWS = 10.0
"""Rows of the base rate that are added to a category's own rows."""

MIN_TEXT_ROWS, MAX_TEXT_ROWS = 3, 16_384
"""Texts, among those that teach, that an n-gram stands in to count; and the most rows that teach what texts say."""
STRENGTH, EAGERNESS = 0.03, 10.0
"""The regression on texts: prior variance of a slope, and how many times that is added for each unit of z^2 above 1."""
NEAR, HOLD = 3e-3, 0.25
"""The regression on texts: largest slope of its mean loss at the end; and what keeps the line on the score, and tests
of few texts, in bounds."""
MAX_TEXT_CLASSES = 8
"""Classes that have a number each for a column of texts: the most frequent ones."""
LEAST_SCORE = 1e-3
"""Distance from 0 and 1 at which scores are clipped before their log-odds stand beside n-grams."""

R = TypeVar("R", bound=Rows)
Weights = NDArray[np.float32]


# A category column becomes an indicator for each of its frequent categories, one for all others together, and one
# number: the log-odds of label 1 among the rows of the category, drawn towards those of all rows (ordered target
# statistics, Prokhorenkova et al. 2018). Missing is a category like any other; one that no row taught counts as one of
# the others.
@model()
class CategoryColumn:
    """One column of categories as numbers.

    A category, by its place in `names`, then missing, then one that is not among them, have each: indicator, the number
    of their indicator column, -1 for none; log_odds, empty where the indicators say all there is to say.
    """

    names: tuple[str, ...]
    indicator: Ints
    log_odds: Floats

    def _check(self) -> None:
        """Refuse arrays that do not belong to the names. Errors: ValueError."""
        places = len(self.names) + 2
        each = self.indicator.shape == (places,) and self.log_odds.shape in ((0,), (places,))
        need(each, "a category column needs one entry for each category, for missing and for others")
        different = len(set(self.names)) == len(self.names) and are_places(self.indicator, -1, places)
        need(different, "a category column needs different names and indicators among its columns")
        few = self.indicator.max() <= MAX_INDICATORS
        need(few, f"a category column has at most {MAX_INDICATORS + 1} indicators")
        need(is_finite(self.log_odds), "log-odds of categories must be finite")

    def _places(self, codes: NDArray[Any], names: Sequence[str]) -> Ints:
        """Place of each row's category, shape (T,)."""
        known = {name: place for place, name in enumerate(self.names)}
        unseen = len(self.names) + 1
        # A missing value has code -1, which takes the last entry.
        return np.array([*(known.get(name, unseen) for name in names), len(self.names)], dtype=np.int64)[codes]

    def columns(self, codes: NDArray[Any], names: tuple[str, ...]) -> list[Floats]:
        """The column's indicators, then its log-odds, shape (T,) each."""
        place = self._places(codes, names)
        indicators = self.indicator[place]
        columns = [(indicators == k).astype(np.float64) for k in range(int(self.indicator.max()) + 1)]
        return columns + ([self.log_odds[place]] if len(self.log_odds) else [])

    def unseen(self, codes: NDArray[Any], names: tuple[str, ...]) -> Mask:
        """Which rows have a category that is not among the names."""
        return self._places(codes, names) == len(self.names) + 1


# A column of raw texts becomes one number: what its n-grams add to the log-odds of label 1 beyond the score, by a
# logistic regression on them (tf-idf) and on the score. Of several classes there is a number for each frequent one.
@model()
class TextColumn:
    """One column of raw texts as numbers.

    gram: int64 (k,), increasing, the n-grams that count, by bucket. rarity: (k,), the inverse document frequency of
    each. weight: (numbers, k), what it adds to each number, in a text of length 1.
    """

    gram: Ints
    rarity: Weights
    weight: Weights

    def _check(self) -> None:
        """Refuse arrays that do not belong to the n-grams. Errors: ValueError."""
        each = self.gram.ndim == 1 and self.rarity.shape == self.weight.shape[1:] == self.gram.shape
        need(each, "a text column needs one entry for each n-gram")
        rises = are_places(self.gram, 0, BUCKETS + 1) and bool((np.diff(self.gram) > 0).all())
        need(rises, f"n-grams are numbers up to {BUCKETS:,}, in order")
        positive = is_finite(self.rarity) and is_finite(self.weight) and bool((self.rarity > 0).all())
        need(positive, "weights of n-grams must be finite")

    def columns(self, codes: NDArray[Any], names: tuple[str, ...]) -> list[Floats]:
        """What the n-grams of each row add up to, shape (T,) each; 0 where none of them counts."""
        texts = raw_texts(names)
        different, row = np.unique(codes, return_inverse=True)
        values = np.zeros((len(self.weight), len(different)))
        for start in range(0, len(different), BLOCK):
            part = slice(start, start + BLOCK)
            values[:, part] = self._values(texts.grams(different[part]))
        return list(values[:, row])

    def _values(self, grams: Any) -> Floats:
        """The numbers of texts by their n-grams, shape (numbers, texts)."""
        rarity, weight = np.zeros(BUCKETS + 1), np.zeros((BUCKETS + 1, len(self.weight)))
        rarity[self.gram], weight[self.gram] = self.rarity, self.rarity.astype(np.float64)[:, None] * self.weight.T
        length = np.sqrt(grams @ rarity**2)
        return ratio((grams @ weight).T, length)


# A number that is missing somewhere gets an indicator. Trees take that side of a split that suits these rows best,
# linear models take the mean.
@model()
class Encoder:
    """Typed features as numbers.

    kinds: of the columns that it was taught. kept: the columns of numbers in which some row has a value; gaps: which of
    them get an indicator of missing values. categories: one for each column of categories or texts.
    """

    kinds: tuple[Kind, ...]
    kept: Ints
    gaps: Ints
    categories: tuple[CategoryColumn | TextColumn, ...]

    def _check(self) -> None:
        """Refuse columns that are not there. Errors: ValueError."""
        coded = [kind for kind in self.kinds if kind in CODED]
        columns = np.concatenate((self.kept, self.gaps))
        of_kind = {"category": CategoryColumn, "text": TextColumn}
        fits = [type(each) for each in self.categories] == [of_kind[kind] for kind in coded]
        need(fits, "an encoder needs one entry for each column of categories or texts")
        need(are_places(columns, 0, len(self.kinds) - len(coded)), "an encoder needs columns that are there")
        once = all((np.diff(each) > 0).all() for each in (self.kept, self.gaps))
        need(once, "an encoder takes every column once, in order")

    def __call__(self, features: Features) -> Matrix:
        """The features of new rows as numbers, shape (T, columns). Errors: Undefined, where a column's kind changed."""
        features = features.as_kinds(self.kinds)
        return self.matrix(features, [each.columns(codes, names) for each, codes, names in self._coded(features)])

    def unseen(self, features: Features) -> Mask:
        """Which rows have a category that no row taught, shape (T,)."""
        unseen = np.zeros(len(features), dtype=bool)
        for each, codes, names in self._coded(features.as_kinds(self.kinds)):
            # Every text has n-grams.
            if isinstance(each, CategoryColumn):
                unseen |= each.unseen(codes, names)
        return unseen

    def matrix(self, features: Features, coded: Sequence[Sequence[Floats]]) -> Matrix:
        """The numbers of rows, beside what their categories and texts become, column by column."""
        numbers = features.numbers
        missing = [np.isnan(numbers[:, k]).astype(np.float64) for k in self.gaps]
        return np.column_stack((numbers[:, self.kept], *missing, *(column for each in coded for column in each)))

    def _coded(self, features: Features) -> list[tuple[CategoryColumn | TextColumn, NDArray[Any], tuple[str, ...]]]:
        return list(zip(self.categories, features.codes.T, features.categories, strict=True))


@model()
class Encoded:
    """A model on features with categories or missing values, and the encoder that makes numbers of them for it."""

    encoder: Encoder
    fitted: Model

    def __call__(self, rows: Unlabelled) -> Applied:
        if not rows.has_features:
            raise Undefined(NO_FEATURES)
        return self.fitted(replace(rows, features=self.encoder(rows.typed)))


def unseen_categories(fitted: Model, rows: Unlabelled) -> int:
    """How many rows have a category that the model was not fitted on."""
    return int(fitted.encoder.unseen(rows.typed).sum()) if isinstance(fitted, Encoded) else 0


def encoded(rows: R, *, seed: int) -> tuple[Encoder | None, R]:
    """What rows in canonical order teach, and these rows with numbers as features.

    None, and the rows as they are, where the features are numbers without gaps, or where there are none. With several
    classes, log-odds of categories are those of the most frequent class against the rest.
    """
    features = rows.typed
    if features.plain:
        return None, rows
    order = Seed(seed).generator("encoding").permutation(len(rows))
    coded = [kind for kind in features.kinds if kind in CODED]
    most = max(1, min(MAX_INDICATORS, MAX_ALL_INDICATORS // max(1, coded.count("category"))))
    taught = [
        _taught_texts(codes, names, rows, order) if kind == "text" else _taught(codes, names, rows, order, most)
        for kind, codes, names in zip(coded, features.codes.T, features.categories, strict=True)
    ]
    some = ~np.isnan(features.numbers).all(axis=0)
    encoder = Encoder(
        features.kinds,
        np.flatnonzero(some),
        _different(features.numbers, np.flatnonzero(features.gaps & some)),
        tuple(column for column, _ in taught),
    )
    return encoder, replace(rows, features=encoder.matrix(features, [own for _, own in taught]))


def encoded_for(rows: Rows, learn: Mask, *, seed: int) -> Matrix:
    """The features of all rows as numbers, shape (T, columns), as some of them teach. rows: in canonical order."""
    encoder, taught = encoded(rows.take(learn), seed=seed)
    if not encoder:
        return rows.matrix
    others = encoder(rows.typed[~learn])
    matrix = np.empty((len(rows), others.shape[1]))
    matrix[learn], matrix[~learn] = taught.matrix, others
    return matrix


def _different(numbers: Matrix, columns: Ints) -> Ints:
    """The first of all columns that are missing in the same rows: an embedding has one such column for each number."""
    first: dict[bytes, int] = {}
    for column in columns.tolist():
        first.setdefault(np.packbits(np.isnan(numbers[:, column])).tobytes(), column)
    return np.array(sorted(first.values()), dtype=np.int64)


def _taught(
    codes: NDArray[Any], names: tuple[str, ...], rows: Rows, order: Ints, most: int
) -> tuple[CategoryColumn, list[Floats]]:
    """A column of categories, and its numbers for the rows that taught it, with each row's own ordered log-odds."""
    known = codes[codes >= 0]
    count = np.bincount(known)
    taught = np.flatnonzero(count)
    # Places in the column: the names that these rows have, missing, others. A missing value has code -1.
    place = np.append(np.cumsum(count > 0) - 1, len(taught))[codes]
    rows_of = np.append(count[taught], len(codes) - len(known))
    indicator = _indicators(rows_of, most)
    kept = tuple(names[int(k)] for k in taught)
    if np.count_nonzero(rows_of) < 3:
        column = CategoryColumn(kept, indicator, np.empty(0))
        return column, column.columns(codes, names)
    weight = rows.weights / rows.weights.mean()
    positive = weight * _targets(rows)[0][0]
    # One row more, half of each label: some of these rows may have one label only.
    rate = float((positive.sum() + 0.5) / (weight.sum() + 1))
    all_rows, all_positive = (np.append(np.bincount(place, each, len(taught) + 1), 0.0) for each in (weight, positive))
    rows_before, positive_before = (_sums_before(place, order, each) for each in (weight, positive))
    column = CategoryColumn(kept, indicator, _drawn(all_rows, all_positive, rate))
    return column, [*column.columns(codes, names)[:-1], _drawn(rows_before, positive_before, rate)]


def _targets(rows: Rows) -> list[tuple[Floats, Floats]]:
    """Targets as 0 and 1, with their scores, shape (T,) each: label 1, or the frequent classes, most frequent first."""
    if not rows.classes:
        return [(rows.label.astype(np.float64), rows.score)]
    frequent = np.argsort(-np.bincount(rows.label, rows.weights, len(rows.classes)), kind="stable")
    return [((rows.label == k).astype(np.float64), rows.score[:, k]) for k in frequent[:MAX_TEXT_CLASSES]]


def _taught_texts(
    codes: NDArray[Any], names: tuple[str, ...], rows: Rows, order: Ints
) -> tuple[TextColumn, list[Floats]]:
    """A column of texts, and its numbers for the rows that taught it, each by regressions on other folds."""
    texts = raw_texts(names)
    some = np.sort(order[:MAX_TEXT_ROWS])
    grams, targets = texts.grams(codes[some]), [(label[some], score[some]) for label, score in _targets(rows)]
    weight = rows.weights[some]
    with one_thread():
        column = _regressed(grams, targets, weight)
        own, fold = column.columns(codes, texts), _folds(rows, order)[some]
        for k in range(FOLDS):
            here = fold == k
            others = [(label[~here], score[~here]) for label, score in targets]
            part = _regressed(grams[~here], others, weight[~here])
            for values, mine in zip(own, part.columns(codes[some[here]], texts), strict=True):
                values[some[here]] = mine
    return column, own


def _folds(rows: Rows, order: Ints) -> Ints:
    """The fold of each row; clusters stay whole, as far as there are enough of them."""
    fold = np.empty(len(rows), dtype=np.int64)
    fold[order] = np.arange(len(rows)) % FOLDS
    if rows.unit is None or rows.clusters < FOLDS:
        return fold
    return fold[np.unique(rows.unit, return_index=True)[1]][rows.unit]


def _regressed(grams: Any, targets: Sequence[tuple[Floats, Floats]], weight: Floats) -> TextColumn:
    """A penalised regression of each target on the n-grams of texts and its score.

    An n-gram that the score clearly does not explain, by a score test of its own, is penalised less.
    """
    count = np.bincount(grams.indices, minlength=BUCKETS + 1)
    gram = np.flatnonzero((count >= MIN_TEXT_ROWS) & (count < grams.shape[0]))
    rarity = (np.log((1 + grams.shape[0]) / (1 + count[gram])) + 1).astype(np.float32)
    columns = grams[:, gram].astype(np.float64)
    row = np.repeat(np.arange(grams.shape[0]), np.diff(columns.indptr))
    columns.data = rarity[columns.indices].astype(np.float64)
    columns.data /= np.sqrt(np.bincount(row, columns.data**2, grams.shape[0]))[row]
    slopes = [_slopes(columns, row, log_odds(score, LEAST_SCORE), label, weight) for label, score in targets]
    return TextColumn(gram, rarity, np.array(slopes, dtype=np.float32))


def _slopes(columns: Any, row: Ints, known: Floats, label: Floats, weight: Floats) -> Floats:
    """The slopes of the n-grams in the regression of the labels; 0 where there is one label only.

    columns: sparse, shape (T, n-grams). row: of each entry of the columns. known: log-odds of the scores, (T,).
    """
    from scipy.optimize import minimize

    slopes = np.zeros(columns.shape[1])
    if len(np.unique(label)) < 2:
        return slopes
    weight = weight / weight.mean()
    line, hold = np.vstack((np.ones(len(label)), known)), np.full(2, HOLD)
    start, _ = climb(lambda at: row_slopes(line, weight, weight * label, at, hold, np.zeros(2)), np.zeros(2), NEAR)
    expected = expit(start @ line)
    off, spread = weight * (label - expected), weight**2 * expected * (1 - expected)
    sums = [np.bincount(columns.indices, each[row], columns.shape[1]) for each in (off, spread)]
    scale = np.sqrt(1 + EAGERNESS * np.maximum(sums[0] ** 2 / (sums[1] + HOLD) - 1, 0.0))
    turned = columns.T

    def loss(at: Floats) -> tuple[float, Floats]:
        """The penalised log loss per row and its gradient, at the line's two parameters and the scaled slopes."""
        total = at[:2] @ line + columns @ (scale * at[2:])
        value = weight @ (np.logaddexp(0.0, total) - label * total) + at[2:] @ at[2:] / (2 * STRENGTH)
        less = weight * (expit(total) - label)
        gradient = np.concatenate((line @ less, scale * (turned @ less) + at[2:] / STRENGTH))
        return float(value) / len(label), gradient / len(label)

    found = minimize(loss, np.append(start, slopes), jac=True, method="L-BFGS-B", options={"gtol": NEAR})
    return np.asarray(scale * found.x[2:])


def _drawn(weight: Floats, positive: Floats, rate: float) -> Floats:
    """Log-odds of frequencies after PRIOR_ROWS rows of the base rate are added."""
    return log_odds((positive + rate * PRIOR_ROWS) / (weight + PRIOR_ROWS))


def _sums_before(place: Ints, order: Ints, values: Floats) -> Floats:
    """For each row the sum of values over the rows of its place that come before it in the order, shape (T,)."""
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
    if others >= MIN_CATEGORY_ROWS and len(frequent):
        # What no row taught counts as one of them. Of fewer others a regression would learn too much for it.
        indicator[indicator < 0] = len(frequent)
    return indicator
