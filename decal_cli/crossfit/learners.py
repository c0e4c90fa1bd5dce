"""What the probe is made of: a logistic regression, boosted trees, and weights that combine what they say.

The two learners are small enough to be fitted once for every fold, and good enough to predict what `blend` wins
(docs/probe.md). The weights are those of `blend` itself.
"""

from __future__ import annotations

import numpy as np

from decal_cli.crossfit.regions import LARGEST, Narrow, narrow, with_score
from decal_cli.tables.estimate import dot
from decal_cli.tables.features import Matrix
from decal_cli.tables.logistic import climb, expit, log_odds, row_slopes
from decal_cli.tables.table import Floats, Ints

MAX_DISTANCE = 8.0
"""Standard deviations at which a standardised feature is cut: one row must not carry a regression."""
MIN_DEVIATION = 1e-9
"""Standard deviation, of features scaled to at most 1 or of log-odds, up to which they count as constant."""
PENALTY = 0.5
"""Of the squared slopes of a regression, as in scikit-learn's LogisticRegression with C = 1."""
N_SEEDS = 2**32
"""scikit-learn takes seeds below this."""
N_TREES, LEARNING_RATE, MAX_LEAVES, MAX_BINS = 40, 0.18, 8, 63
"""Boosting: trees, learning rate, leaves of a tree, bins of a feature."""
LEAF_PENALTY = 10.0
"""Of the squared value of a leaf."""
SPLIT_SHARE, MAX_SPLIT = 0.5, 64
"""Share of the columns that a split considers, drawn at random, and their largest number."""
LEAF_PART, LEAF_RANGE = 30, (5, 40)
"""A leaf holds one in LEAF_PART of the rows, within this range."""
SURE = 1e-3
"""Recalibrated scores are clipped at this distance from 0 and 1 before their log-odds are weighted."""
EQUAL = np.array([0.0, 0.5, 0.5, 0.0])
"""Intercept and weights to begin with: the mean log-odds of regression and trees, nothing of the recalibrated score."""
HOLD = np.array([0.25, 10.0, 10.0, 10.0])
"""Penalty of their squared distance from EQUAL."""
_TOLERANCE = 1e-8
"""Of a Newton step."""


def logistic_fit(columns: Floats, label: Floats, weight: Floats, penalty: Floats, centre: Floats) -> Floats:
    """Intercept and slopes, shape (1 + d,), of the logistic regression with the largest penalised likelihood.

    columns: shape (T, d). penalty: of the squared distance from the centre; shape (1 + d,) each, the intercept first.
    """
    x = np.vstack((np.ones(len(label)), columns.T))
    at, _ = climb(lambda at: row_slopes(x, weight, weight * label, at, penalty, centre), centre, _TOLERANCE)
    return at


def blend_weights(each: Floats, label: Floats, weight: Floats) -> Floats:
    """Intercept and weights of log-odds, shape (4,), by how well they predict rows that their models have not seen.

    each: log-odds by regression, trees and recalibrated score, shape (T, 3). weight: of mean 1.
    """
    return logistic_fit(each, label, weight, HOLD, EQUAL)


def blended(each: Floats, weights: Floats) -> Floats:
    """Probabilities from log-odds, shape (T, 3), and their weights, shape (4,)."""
    total = np.full(len(each), weights[0])
    # Column by column: a matrix product may round a row differently when other rows stand beside it.
    for column, of_column in zip(each.T, weights[1:], strict=True):
        total += of_column * column
    return expit(total)


class Standard:
    """Features with mean 0 and variance 1, cut; constant columns are dropped, and missing values become the mean.

    Learned on all rows and without labels, so that folds may share it.
    """

    def __init__(self, features: Matrix, weight: Floats) -> None:
        kept = []
        for column in range(features.shape[1]):
            values = _finite(features[:, column])
            known = ~np.isnan(values)
            largest = float(np.abs(values[known]).max(initial=0.0)) or 1.0
            centre, spread = _moments(values[known] / largest, weight[known])
            if spread > MIN_DEVIATION:
                kept.append((column, largest, centre, spread))
        self.column = np.array([entry[0] for entry in kept], dtype=np.int64)
        self.largest, self.centre, self.spread = np.array([entry[1:] for entry in kept]).reshape(-1, 3).T

    def __call__(self, features: Matrix) -> Floats:
        """The standardised features of rows, shape (k, d') for features of shape (k, d)."""
        return standardised(features, self.column, self.largest, self.centre, self.spread)


def standardised(features: Matrix, column: Ints, largest: Floats, centre: Floats, spread: Floats) -> Floats:
    """These columns in these units, cut; missing values become the mean."""
    x = (_finite(features[:, column]) / largest - centre) / spread
    return np.nan_to_num(np.clip(x, -MAX_DISTANCE, MAX_DISTANCE), copy=False, nan=0.0)


def _finite(values: Matrix) -> Floats:
    """A copy as float64 without infinities; missing values stay missing."""
    return np.clip(values.astype(np.float64), -LARGEST, LARGEST)


def _moments(values: Floats, weight: Floats) -> tuple[float, float]:
    """Mean and standard deviation; those of no values are 0."""
    total = float(weight.sum()) or 1.0
    centre = dot(weight, values) / total
    return centre, float(np.sqrt(dot(weight, (values - centre) ** 2) / total))


class Regression:
    """Logistic regression on the log-odds of the recalibrated score and the standardised features."""

    def __init__(self, recalibrated: Floats, features: Floats, label: Floats, weight: Floats) -> None:
        self.middle, self.spread = float(recalibrated.mean()), float(recalibrated.std())
        if self.spread <= MIN_DEVIATION:
            self.spread = 1.0
        columns = self._columns(recalibrated, features)
        penalty, centre = np.full(1 + columns.shape[1], PENALTY), np.zeros(1 + columns.shape[1])
        penalty[0], centre[:1] = 0.0, log_odds(np.average(label[None], axis=1, weights=weight))
        self.coefficient = logistic_fit(columns, label, weight, penalty, centre)

    def _columns(self, recalibrated: Floats, features: Floats) -> Floats:
        return np.column_stack(((recalibrated - self.middle) / self.spread, features))

    def __call__(self, recalibrated: Floats, features: Floats) -> Floats:
        """Log-odds of rows, shape (k,)."""
        return self.coefficient[0] + self._columns(recalibrated, features) @ self.coefficient[1:]


class Trees:
    """Boosted trees on the score and the features as they come; missing values are one side of a split.

    A split considers only some of the columns, so that a feature that says nothing by itself, but much beside another,
    is split on now and then.
    """

    def __init__(self, score: Floats, features: Matrix, label: Floats, weight: Floats | None, seed: int) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier

        columns = _columns(score, features)
        boosting = HistGradientBoostingClassifier(
            max_iter=N_TREES,
            learning_rate=LEARNING_RATE,
            max_leaf_nodes=MAX_LEAVES,
            max_bins=MAX_BINS,
            max_features=min(SPLIT_SHARE, MAX_SPLIT / columns.shape[1]),
            l2_regularization=LEAF_PENALTY,
            min_samples_leaf=int(np.clip(len(label) // LEAF_PART, *LEAF_RANGE)),
            early_stopping=False,
            random_state=seed % N_SEEDS,
        )
        self.boosting = boosting.fit(without_empty(columns), label > 0.5, weight)

    def __call__(self, score: Floats, features: Matrix) -> Floats:
        """Log-odds of rows, shape (k,)."""
        total: Floats = self.boosting.decision_function(_columns(score, features))
        return total


def without_empty(columns: Narrow) -> Narrow:
    """The columns with 0 in those that have no value at all: scikit-learn's boosting cannot take such a column."""
    empty = np.isnan(columns).all(axis=0)
    return np.where(empty, np.float32(0), columns) if empty.any() else columns


def _columns(score: Floats, features: Matrix) -> Narrow:
    return with_score(score, narrow(features))
