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


def separated(pos: NDArray[Any], n: NDArray[Any]) -> Any:
    """Whether a threshold separates labels, both of which are there: the steepest curve is then the likeliest.

    pos, n: rows of label 1, and all rows, of each level in increasing order, shape (.., m) to (..).
    """
    first_pos, last_pos = _ends(pos > 0)
    first_neg, last_neg = _ends(pos < n)
    return (last_neg <= first_pos) | (last_pos <= first_neg)


def _ends(mask: NDArray[np.bool_]) -> tuple[Any, Any]:
    return mask.argmax(axis=-1), mask.shape[-1] - 1 - mask[..., ::-1].argmax(axis=-1)


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


def lines(x: Floats, n: Floats, pos: Floats, tolerance: float) -> Floats:
    """Intercept and slope of the likeliest curve of each of many counts of the same levels: x (m,), n (B, m) to (B, 2).

    As `climb`, from the identity on, for all at once; nan where there is no maximum or it is not found.
    """

    terms = np.vstack((np.ones(len(x)), x, x**2))

    def slopes(at: Floats) -> tuple[Floats, Floats, Floats]:
        """The gradient, (2, B), the three numbers of the curvature, (3, B), and its determinant, (B,)."""
        fit = expit(at[:, :1] + at[:, 1:] * x)
        expected = n * fit
        curvature = terms @ (expected * (1 - fit)).T
        return terms[:2] @ (pos - expected).T, curvature, curvature[0] * curvature[2] - curvature[1] ** 2

    at, small = np.tile((0.0, 1.0), (len(n), 1)), np.zeros(len(n), dtype=bool)
    with np.errstate(all="ignore"):
        gradient, (one, mixed, square), determinant = slopes(at)
        for _ in range(_MAX_STEPS):
            step = np.array((square * gradient[0] - mixed * gradient[1], one * gradient[1] - mixed * gradient[0]))
            step = np.where(determinant > 0, step / determinant, np.nan).T
            # Whatever has no maximum is as good as done.
            small = ~(np.abs(step).max(axis=1) >= tolerance * (1 + np.abs(at).max(axis=1)))
            if small.all():
                return at + step
            step[small] *= 0
            for _ in range(_MAX_STEPS):
                ahead, curvature, determinant = slopes(at + step)
                back = (ahead.T * step).sum(axis=1) < -0.5 * (gradient.T * step).sum(axis=1)
                too_far = (back | ~(determinant > 0)) & ~small
                if not too_far.any():
                    break
                step[too_far] /= 2
            step[too_far] = np.nan
            at, gradient, (one, mixed, square) = at + step, ahead, curvature
    return np.where(small[:, None], at, np.nan)


def _not_found() -> Undefined:
    return Undefined("needs labels that overlap more: the logistic fit does not converge")
