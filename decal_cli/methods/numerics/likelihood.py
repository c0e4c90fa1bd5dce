"""Maximum likelihood for a logistic curve in a few terms of the score, on the levels of a table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.tables import logistic
from decal_cli.tables.table import Floats, Table

_TOLERANCE = 1e-9
"""Of a Newton step, on terms of standard deviation 1."""
MIN_SCORE = 1e-12
"""Scores are clipped to [MIN_SCORE, 1 - MIN_SCORE] before a logarithm, as scikit-learn clips them."""


def clipped(score: Floats) -> Floats:
    """Scores that have a logarithm on both sides."""
    return np.clip(score, MIN_SCORE, 1 - MIN_SCORE)


def logit(score: Floats) -> Floats:
    """log(p / (1 - p)) of clipped scores."""
    return logistic.log_odds(score, MIN_SCORE)


class LabelCounts(NamedTuple):
    """Rows and positives of each level, shape (m,) each; positives may be expected ones (smoothed targets)."""

    n: Floats
    pos: Floats


def counts_of(t: Table) -> LabelCounts:
    """The counts of the labels as they are."""
    return LabelCounts(t.n.astype(np.float64), t.pos.astype(np.float64))


def need_different_scores(t: Table, least: int = 2) -> None:
    """Raise Undefined where there are fewer distinct scores than a curve has parameters."""
    if len(t) < least:
        few = "every score is the same" if len(t) == 1 else f"there are {len(t)}"
        raise Undefined(f"needs at least {least} distinct scores; {few}")


def need_overlap(t: Table) -> None:
    """Raise Undefined where a threshold separates the labels, so that the steepest curve is the likeliest."""
    if logistic.separated(t):
        raise Undefined("needs overlapping labels: a threshold separates them, so the likelihood has no maximum")


def maximum(terms: list[Floats], counts: LabelCounts, intercept: bool = True) -> Floats:
    """Coefficients of the terms, then the intercept, that make the counts likeliest; terms: shape (m,) each.

    Errors: Undefined, where there is no maximum or it is not found.
    """
    x = np.array(terms, dtype=np.float64).reshape(len(terms), len(counts.n))
    total = counts.n.sum()
    # Terms of mean 0 and deviation 1, so that one tolerance serves scores of any spread.
    middle = x @ counts.n / total if intercept else np.zeros(len(x))
    x = x - middle[:, None]
    scale = np.sqrt(x**2 @ counts.n / total)
    scale[scale == 0] = 1.0
    x /= scale[:, None]
    if intercept:
        x = np.vstack((x, np.ones(x.shape[1])))
    start = np.zeros(len(x))
    best, _ = logistic.climb(lambda at: logistic.row_slopes(x, *counts, at), start, _TOLERANCE, collinear=True)
    coefficients: Floats = best[: len(terms)] / scale
    return np.append(coefficients, best[-1] - coefficients @ middle) if intercept else coefficients


def log_likelihood(terms: list[Floats], counts: LabelCounts, coefficients: Floats) -> float:
    """The log-likelihood of coefficients with an intercept at their end."""
    x = np.vstack([*terms, np.ones(len(counts.n))])
    eta = coefficients @ x
    return float(counts.pos @ eta - counts.n @ np.logaddexp(0.0, eta))
