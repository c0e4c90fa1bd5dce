"""Maximum likelihood for a logistic curve in a few terms of the score: Newton's method on the levels of a table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.tables.table import Floats, Table

_STEPS = 100
_SETTLED = 1e-9
"""A Newton step this small, on terms of standard deviation 1, leaves an error of about its square."""
CLIPPED = 1e-12
"""Scores are cut to [CLIPPED, 1 - CLIPPED] before a logarithm, as scikit-learn cuts them: 0 and 1 have none."""


def logistic(x: Floats) -> Floats:
    """1 / (1 + exp(-x))."""
    with np.errstate(over="ignore"):
        value: Floats = 1 / (1 + np.exp(-x))
    return value


def clipped(score: Floats) -> Floats:
    """Scores that have a logarithm on both sides."""
    return np.clip(score, CLIPPED, 1 - CLIPPED)


def logit(score: Floats) -> Floats:
    """log(p / (1 - p)) of clipped scores."""
    p = clipped(score)
    value: Floats = np.log(p) - np.log1p(-p)
    return value


class Sums(NamedTuple):
    """Rows and positives of each level, shape (m,) each; positives may be expected ones (smoothed targets)."""

    n: Floats
    pos: Floats


def sums_of(t: Table) -> Sums:
    """Of the labels as they are."""
    return Sums(t.n.astype(np.float64), t.pos.astype(np.float64))


def need_different_scores(t: Table, least: int = 2) -> None:
    """Raise Undefined where there are fewer distinct scores than a curve has parameters."""
    if len(t) < least:
        few = "every score is the same" if len(t) == 1 else f"there are {len(t)}"
        raise Undefined(f"needs at least {least} distinct scores; {few}")


def need_overlap(t: Table) -> None:
    """Raise Undefined where a threshold separates the labels, so that the steepest curve is the likeliest."""
    has_pos, has_neg = np.flatnonzero(t.pos > 0), np.flatnonzero(t.pos < t.n)
    if has_neg[-1] <= has_pos[0] or has_pos[-1] <= has_neg[0]:
        raise Undefined("needs overlapping labels: a threshold separates them, so the likelihood has no maximum")


def maximum(terms: list[Floats], sums: Sums, intercept: bool = True) -> Floats:
    """Coefficients of the terms, then the intercept, that make the sums likeliest; terms: shape (m,) each.

    Errors: Undefined, where there is no maximum or it is not found.
    """
    x = np.array(terms, dtype=np.float64).reshape(len(terms), len(sums.n))
    total = sums.n.sum()
    # Terms of mean 0 and deviation 1, so that one tolerance serves scores of any spread.
    middle = x @ sums.n / total if intercept else np.zeros(len(x))
    x = x - middle[:, None]
    scale = np.sqrt(x**2 @ sums.n / total)
    scale[scale == 0] = 1.0
    x /= scale[:, None]
    if intercept:
        x = np.vstack((x, np.ones(x.shape[1])))
    found = _climb(x, sums)
    coefficients = found[: len(terms)] / scale
    return np.append(coefficients, found[-1] - coefficients @ middle) if intercept else coefficients


def log_likelihood(terms: list[Floats], sums: Sums, coefficients: Floats) -> float:
    """Of coefficients with an intercept at their end."""
    x = np.vstack([*terms, np.ones(len(sums.n))])
    eta = coefficients @ x
    return float(sums.pos @ eta - sums.n @ np.logaddexp(0.0, eta))


def _climb(x: Floats, sums: Sums) -> Floats:
    at = np.zeros(len(x))
    gradient, hessian = _slopes(x, sums, at)
    for _ in range(_STEPS):
        # Least squares, because collinear terms leave the system singular.
        step = np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0]
        if float(np.abs(step).max(initial=0.0)) < _SETTLED * (1 + float(np.abs(at).max(initial=0.0))):
            found: Floats = at + step
            return found
        for _ in range(_STEPS):
            ahead = _slopes(x, sums, at + step)
            # The likelihood is concave: a gradient that does not point far back says that the step was not too long.
            if float(ahead[0] @ step) >= -0.5 * float(gradient @ step):
                break
            step = step / 2
        at, (gradient, hessian) = at + step, ahead
    raise Undefined("needs labels that overlap more: the likelihood has no maximum that could be found")


def _slopes(x: Floats, sums: Sums, at: Floats) -> tuple[Floats, Floats]:
    """Gradient of the log-likelihood and minus its Hessian."""
    fit = logistic(at @ x)
    return x @ (sums.pos - sums.n * fit), (x * (sums.n * fit * (1 - fit))) @ x.T
