"""Logistic regression as plain arrays: how a model file keeps scikit-learn's fit, and how it is applied."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from decal_cli.crossfit.regions import LARGEST, fits_of_other_folds
from decal_cli.errors import Undefined
from decal_cli.methods.declare import Training, model
from decal_cli.methods.families.isotonic import Curve
from decal_cli.methods.numerics.features import features_of
from decal_cli.tables.logistic import log_odds
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats
from decal_cli.tables.threads import one_thread

MAX_ROUNDING = 1e-12
"""A column whose standard deviation is at most this share of its largest entry varies only by rounding."""
MAX_ITERATIONS = 1000
"""Of the solver; on standardised columns it takes far fewer."""
CONVERGED = 1e-6
"""Largest slope of the mean loss at the end; Newton's method takes one step more than for scikit-learn's 1e-4."""
MAX_NEWTON_COLUMNS = 300
"""Up to so many columns, Newton's method is quick and its optimum exact; beyond, its matrix is too large."""


def float_columns(rows: Unlabelled) -> Floats:
    """The features as float64, shape (T, d), no larger than LARGEST; NaN where missing."""
    return np.clip(features_of(rows).astype(np.float64), -LARGEST, LARGEST)


@partial(model, saved_as="Units")
@dataclass(frozen=True, eq=False)
class ColumnScale:
    """The unit of each column: it is shifted by mean and divided by scale, shape (columns,) each.

    A missing value counts as 0 in these units: as the mean, where the columns are standardised.
    """

    mean: Floats
    scale: Floats

    def __post_init__(self) -> None:
        """Refuse a scale that divides by zero. Errors: ValueError."""
        if self.mean.ndim != 1 or self.mean.shape != self.scale.shape:
            raise ValueError("every column needs one mean and one scale")
        if not (np.isfinite(self.mean).all() and np.isfinite(self.scale).all() and (self.scale > 0).all()):
            raise ValueError("means must be finite and scales positive")

    def __call__(self, columns: Floats) -> Floats:
        """Columns in their units, shape (T, columns)."""
        if columns.shape[1] != len(self.mean):
            raise ValueError(f"a linear model of {len(self.mean)} columns meets rows of {columns.shape[1]}")
        with np.errstate(over="ignore"):
            return _filled(np.clip((columns - self.mean) / self.scale, -LARGEST, LARGEST))

    @classmethod
    def of(cls, columns: Floats, weight: Floats, standard: bool = True) -> ColumnScale:
        """Weighted mean and standard deviation of the columns; 1 for constant ones. Not standard: shift 0, scale 1."""
        if not standard:
            return cls(np.zeros(columns.shape[1]), np.ones(columns.shape[1]))
        if _has_gaps(columns):
            return cls(*np.concatenate([_known_units(column, weight) for column in columns.T], axis=1))
        mean = np.average(columns, axis=0, weights=weight)
        scale = np.sqrt(np.average((columns - mean) ** 2, axis=0, weights=weight))
        constant = scale <= MAX_ROUNDING * np.abs(columns).max(axis=0)
        return cls(mean, np.where(constant, 1.0, scale))


def _has_gaps(columns: Floats) -> bool:
    """Whether a value is missing: NaN survives every sum."""
    with np.errstate(invalid="ignore", over="ignore"):
        return bool(np.isnan(columns.sum()))


def _filled(columns: Floats) -> Floats:
    """The columns with 0 for missing values."""
    return np.nan_to_num(columns, copy=False, nan=0.0) if _has_gaps(columns) else columns


def _known_units(column: Floats, weight: Floats) -> Floats:
    """Mean and scale of a column's known values, shape (2, 1)."""
    known = ~np.isnan(column)
    if not known.any():
        return np.array([[0.0], [1.0]])
    units = ColumnScale.of(column[known, None], weight[known])
    return np.array([units.mean, units.scale])


@model
@dataclass(frozen=True, eq=False)
class Planes:
    """Linear functions of columns in their units. coefficient: shape (planes, columns); intercept: (planes,)."""

    units: ColumnScale
    coefficient: Floats
    intercept: Floats

    def __post_init__(self) -> None:
        """Refuse coefficients that do not belong to the columns. Errors: ValueError."""
        if self.intercept.ndim != 1 or self.coefficient.shape != (len(self.intercept), len(self.units.mean)):
            raise ValueError("a linear model needs one coefficient for each column and one intercept")
        if not (np.isfinite(self.coefficient).all() and np.isfinite(self.intercept).all()):
            raise ValueError("coefficients must be finite")

    def __call__(self, columns: Floats) -> Floats:
        """The functions' values, shape (T, planes)."""
        scaled = self.units(columns)
        total = np.tile(self.intercept, (len(scaled), 1))
        # Column by column: a matrix product may round a row differently when other rows stand beside it.
        for column, coefficient in zip(scaled.T, self.coefficient.T, strict=True):
            total += column[:, None] * coefficient
        return total


@model
@dataclass(frozen=True, eq=False)
class ScoreColumn:
    """The log-odds of the recalibrated score, placed before the features.

    least: the recalibrated score is clipped to [least, 1 - least].
    """

    curve: Curve
    least: float

    def __post_init__(self) -> None:
        """Refuse log-odds that may be infinite. Errors: ValueError."""
        if not 0 < self.least <= 0.5:
            raise ValueError("log-odds need probabilities that are kept away from 0 and 1")

    def __call__(self, rows: Unlabelled) -> Floats:
        """Columns of rows, shape (T, 1 + d)."""
        return np.column_stack((self.log_odds(self.curve(rows).score), float_columns(rows)))

    def log_odds(self, score: Floats) -> Floats:
        """Log-odds of probabilities, kept away from 0 and 1."""
        return log_odds(score, self.least)


def with_recalibrated(rows: Training) -> tuple[ScoreColumn, Floats]:
    """The column of the recalibrated score for new rows, and the columns of the training rows, shape (T, 1 + d).

    A training row is recalibrated by the other folds, so that its own label has no part in its score.
    """
    # No more certain than the rule of succession is after as many rows of one label.
    column = ScoreColumn(Curve.fitted(rows.table), 1 / (len(rows) + 2))
    fold = rows.places(rows.generator(FOLDS)) % FOLDS
    score = fits_of_other_folds(rows, fold)
    return column, np.column_stack((column.log_odds(score), float_columns(rows)))


def planes_of(
    columns: Floats, label: Floats, weights: list[Floats], units: ColumnScale, penalty: float = 1.0
) -> Planes:
    """One penalised logistic regression for each array of weights, shape (T,).

    penalty: of half the squared coefficients, added to the weighted sum of the log loss: a weight of 2 is two rows.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    solver = "newton-cholesky" if columns.shape[1] <= MAX_NEWTON_COLUMNS else "lbfgs"
    regression = LogisticRegression(
        C=1 / penalty, solver=solver, tol=CONVERGED, max_iter=MAX_ITERATIONS, warm_start=True
    )
    scaled = units(columns)
    coefficient: list[NDArray[np.float64]] = []
    intercept: list[float] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"), one_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        for weight in weights:
            regression.fit(scaled, label > 0.5, weight)
            coefficient.append(regression.coef_[0].copy())
            intercept.append(float(regression.intercept_[0]))
    if not (np.isfinite(coefficient).all() and np.isfinite(intercept).all()):
        raise Undefined("needs features of similar size: the regression did not converge")
    return Planes(units, np.array(coefficient), np.array(intercept))
