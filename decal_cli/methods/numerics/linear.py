"""Logistic regression as plain arrays: what a model file keeps of scikit-learn's fit, and how it is applied."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.crossfit.regions import LARGEST, isotonic_fit
from decal_cli.errors import Undefined
from decal_cli.methods.declare import NEEDS, Training, model
from decal_cli.methods.families.isotonic import Curve
from decal_cli.tables.logistic import log_odds
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import FOLDS, Floats

CONSTANT = 1e-12
"""A column whose standard deviation is below this share of its largest entry is constant but for rounding."""
ROUNDS = 1000
"""Iterations that the solver may take; on standardised columns it takes far fewer."""
TIGHT = 1e-6
"""Largest slope of the mean loss at its end; Newton's method takes one step more than for scikit-learn's 1e-4."""
NEWTON = 300
"""Up to so many columns, Newton's method is quick and its optimum exact; beyond, the matrix of columns is too large."""


def float_columns(rows: Unlabelled) -> Floats:
    """The features as float64, shape (T, d), no larger than LARGEST."""
    if rows.features is None:
        raise Undefined(NEEDS["features"])
    return np.clip(rows.matrix.astype(np.float64), -LARGEST, LARGEST)


@model
@dataclass(frozen=True, eq=False)
class Units:
    """The unit of each column: it is shifted by mean and divided by scale, shape (columns,) each."""

    mean: Floats
    scale: Floats

    def __post_init__(self) -> None:
        """Refuse what divides by zero. Errors: ValueError."""
        if self.mean.ndim != 1 or self.mean.shape != self.scale.shape:
            raise ValueError("every column needs one mean and one scale")
        if not (np.isfinite(self.mean).all() and np.isfinite(self.scale).all() and (self.scale > 0).all()):
            raise ValueError("means must be finite and scales positive")

    def __call__(self, columns: Floats) -> Floats:
        """Columns in their units, shape (T, columns)."""
        if columns.shape[1] != len(self.mean):
            raise ValueError(f"a linear model of {len(self.mean)} columns meets rows of {columns.shape[1]}")
        with np.errstate(over="ignore"):
            return np.clip((columns - self.mean) / self.scale, -LARGEST, LARGEST)

    @classmethod
    def of(cls, columns: Floats, weight: Floats, standard: bool = True) -> Units:
        """Weighted mean and standard deviation of the columns; 1 for constant ones. Not standard: shift 0, scale 1."""
        if not standard:
            return cls(np.zeros(columns.shape[1]), np.ones(columns.shape[1]))
        mean = np.average(columns, axis=0, weights=weight)
        scale = np.sqrt(np.average((columns - mean) ** 2, axis=0, weights=weight))
        constant = scale <= CONSTANT * np.abs(columns).max(axis=0)
        return cls(mean, np.where(constant, 1.0, scale))


@model
@dataclass(frozen=True, eq=False)
class Planes:
    """Linear functions of columns in their units. coefficient: shape (planes, columns); intercept: (planes,)."""

    units: Units
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
        seen = self.units(columns)
        total = np.tile(self.intercept, (len(seen), 1))
        # Column by column: a matrix product may round a row differently when other rows stand beside it.
        for column, coefficient in zip(seen.T, self.coefficient.T, strict=True):
            total += column[:, None] * coefficient
        return total


@model
@dataclass(frozen=True, eq=False)
class ScoreColumn:
    """Puts the log-odds of the recalibrated score before the features. least: how close these come to 0 and 1."""

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
    """How new rows get the column of the recalibrated score, and the columns of the training rows, shape (T, 1 + d).

    A training row is recalibrated by the other folds: its own label must not speak through its score.
    """
    fit = isotonic_fit(rows.score, rows.label, rows.weight)
    # No more certain than the rule of succession is after as many rows of one label.
    made = ScoreColumn(Curve(fit.at, fit.value), 1 / (len(rows) + 2))
    fold = rows.generator(FOLDS).permutation(len(rows)) % FOLDS
    score = np.empty(len(rows))
    for k in range(FOLDS):
        here = fold == k
        if here.any():
            weight = None if rows.weight is None else rows.weight[~here]
            score[here] = isotonic_fit(rows.score[~here], rows.label[~here], weight)(rows.score[here])
    return made, np.column_stack((made.log_odds(score), float_columns(rows)))


def one_thread() -> AbstractContextManager[Any]:
    """One thread for scikit-learn: callers fit many models at a time, and sums come out the same on any machine."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits


def planes_of(columns: Floats, label: Floats, weights: list[Floats], units: Units, penalty: float = 1.0) -> Planes:
    """One penalised logistic regression for each array of weights, shape (T,).

    penalty: times half the squared coefficients, beside the log loss, weighted and summed: a weight of 2 is two rows.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    solver = "newton-cholesky" if columns.shape[1] <= NEWTON else "lbfgs"
    regression = LogisticRegression(C=1 / penalty, solver=solver, tol=TIGHT, max_iter=ROUNDS, warm_start=True)
    seen = units(columns)
    coefficient: list[NDArray[np.float64]] = []
    intercept: list[float] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"), one_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        for weight in weights:
            regression.fit(seen, label > 0.5, weight)
            coefficient.append(regression.coef_[0].copy())
            intercept.append(float(regression.intercept_[0]))
    if not (np.isfinite(coefficient).all() and np.isfinite(intercept).all()):
        raise Undefined("needs features of similar size: the regression did not converge")
    return Planes(units, np.array(coefficient), np.array(intercept))
