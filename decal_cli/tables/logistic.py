"""Logistic curves: the function, its inverse, and Newton's method for the likeliest curve.

A log-likelihood of these curves is concave, so that its gradient alone says whether a step was too long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.tables.table import Floats

_MAX_STEPS = 100


def expit(x: Floats) -> Floats:
    """1 / (1 + exp(-x))."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))


def log_odds(p: Floats, least: float = 0.0) -> Floats:
    """log(p / (1 - p)), the inverse of expit; p is clipped to [least, 1 - least] where least is above 0."""
    if least:
        p = np.clip(p, least, 1 - least)
    return np.asarray(np.log(p / (1 - p)))


def separated(pos: NDArray[Any], n: NDArray[Any]) -> bool:
    """Whether a threshold separates labels, both of which are there: the steepest curve is then the likeliest.

    pos, n: rows of label 1, and all rows, of each level in increasing order, shape (m,).
    """
    first_pos, last_pos = _ends(pos > 0)
    first_neg, last_neg = _ends(pos < n)
    return last_neg <= first_pos or last_pos <= first_neg


def _ends(mask: NDArray[np.bool_]) -> tuple[int, int]:
    return int(mask.argmax()), len(mask) - 1 - int(mask[::-1].argmax())


def row_slopes(
    x: Floats, n: Floats, pos: Floats, at: Floats, penalty: Floats | float = 0.0, centre: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """Slopes of sum pos log p + (n - pos) log(1 - p) - sum penalty (at - centre)^2, p = expit(at @ x).

    They are its gradient, shape (k,), and its curvature, minus the Hessian, shape (k, k). x: shape (k, m); penalty,
    centre: one number or shape (k,).
    """
    fit = expit(at @ x)
    gradient, curvature = x @ (pos - n * fit), (x * (n * fit * (1 - fit))) @ x.T
    return gradient - 2 * penalty * (at - centre), curvature + 2 * penalty * np.eye(len(at))


S = TypeVar("S", bound=tuple[Floats, ...])
"""A log-likelihood at one point: gradient, curvature, and what else the caller needs."""


def climb(slopes: Callable[[Floats], S], start: Floats, tolerance: float, collinear: bool = False) -> tuple[Floats, S]:
    """The maximum by Newton's method, and the slopes one step before it.

    A step below the tolerance, as a share of 1 + |at|, is the last: it leaves an error of about its square. collinear:
    the terms may be collinear, which leaves the curvature singular everywhere. Errors: Undefined, where the maximum is
    not found.
    """
    at, here = start, slopes(start)
    for _ in range(_MAX_STEPS):
        try:
            step = (
                np.linalg.lstsq(here[1], here[0], rcond=1e-14)[0] if collinear else np.linalg.solve(here[1], here[0])
            ).astype(np.float64)
        except np.linalg.LinAlgError:
            raise _not_found() from None
        if float(np.abs(step).max(initial=0.0)) < tolerance * (1 + float(np.abs(at).max(initial=0.0))):
            return at + step, here
        at, here = _shortened(slopes, at, here, step, collinear)
    raise _not_found()


def _shortened(slopes: Callable[[Floats], S], at: Floats, here: S, step: Floats, collinear: bool) -> tuple[Floats, S]:
    """The step, halved until the gradient at its end does not point far back and the next step can be computed."""
    for _ in range(_MAX_STEPS):
        # A step too far has slopes that are not finite.
        with np.errstate(over="ignore", invalid="ignore"):
            ahead = slopes(at + step)
            enough = float(ahead[0] @ step) >= -0.5 * float(here[0] @ step)
        if enough and (collinear or np.linalg.slogdet(ahead[1])[0] > 0):
            return at + step, ahead
        step = step / 2
    raise _not_found()


def _not_found() -> Undefined:
    return Undefined("needs labels that overlap more: the logistic fit does not converge")
