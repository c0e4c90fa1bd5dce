"""Logistic regression of the labels on the logit of the score: Newton on cells, then on every level."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.tables.table import Estimate, Floats, Table, dot

_STEPS = 60
_SETTLED = 1e-6
"""A Newton step this small leaves an error of about its square."""


class Recalibration(NamedTuple):
    """logit P(y = 1) = intercept + slope * logit p, each with its sandwich standard error."""

    intercept: Estimate
    slope: Estimate


class _Sums(NamedTuple):
    """Gradient, Hessian (of minus the log-likelihood) and summed squares of the per-row gradients, at one point."""

    gradient: Floats
    hessian: Floats
    squares: Floats


def recalibration(t: Table) -> Recalibration:
    """The maximum-likelihood fit, made once per table; Undefined where there is none."""
    return t.once(recalibration, _fit)


def _fit(t: Table) -> Recalibration:
    _check(t)
    at = np.array([0.0, 1.0]) if len(t.cells) == len(t) else _newton(t.cells, np.array([0.0, 1.0]))[0]
    at, sums = _newton(t, at)
    inverse = np.linalg.inv(sums.hessian)
    errors = np.sqrt(np.maximum(np.diag(inverse @ sums.squares @ inverse), 0.0))
    return Recalibration(Estimate(float(at[0]), float(errors[0])), Estimate(float(at[1]), float(errors[1])))


def _check(t: Table) -> None:
    t.need_both_classes()
    at_ends = (float(t.n[0]) if t.score[0] == 0 else 0.0) + (float(t.n[-1]) if t.score[-1] == 1 else 0.0)
    if at_ends:
        rows = f"{at_ends:g} rows have" if t.n2 is None else f"rows of weight {at_ends:g} have"
        raise Undefined(f"{rows} a score of exactly 0 or 1, which has no logit")
    if len(t) < 2:
        raise Undefined("every score is the same")
    first_pos, last_pos = _ends(t.pos > 0)
    first_neg, last_neg = _ends(t.pos < t.n)
    if last_neg <= first_pos or last_pos <= first_neg:
        raise Undefined("a threshold separates the labels, so the likelihood has no maximum")


def _ends(there: NDArray[np.bool_]) -> tuple[int, int]:
    return int(there.argmax()), len(there) - 1 - int(there[::-1].argmax())


def _newton(t: Table, at: Floats) -> tuple[Floats, _Sums]:
    """Newton's method from a start; halves a step for as long as it does not bring the gradient down."""
    sums = _sums(t, at)
    for _ in range(_STEPS):
        step: Floats = np.linalg.solve(sums.hessian, sums.gradient).astype(np.float64)
        if float(np.abs(step).max()) < _SETTLED * (1 + float(np.abs(at).max())):
            return at + step, sums
        at, sums = _shorten(t, at, step, sums)
    raise Undefined("the logistic fit does not converge")


def _shorten(t: Table, at: Floats, step: Floats, sums: _Sums) -> tuple[Floats, _Sums]:
    """The likelihood is concave: where the gradient still points along the step, the maximum lies ahead."""
    for _ in range(_STEPS):
        ahead = _sums(t, at + step)
        if float(ahead.gradient @ step) >= -0.5 * float(sums.gradient @ step) and np.linalg.det(ahead.hessian) > 0:
            return at + step, ahead
        step = step / 2
    raise Undefined("the logistic fit does not converge")


def _sums(t: Table, at: Floats) -> _Sums:
    """One pass over the levels."""
    total = np.zeros((3, 3))
    for row, (weight, x) in _weights(t, at):
        total[row] += weight.sum(), dot(weight, x), dot(weight * x, x)
    gradient = total[0, :2]
    return _Sums(gradient, _square(total[1]), _square(total[2]))


def _weights(t: Table, at: Floats) -> Iterator[tuple[int, tuple[Floats, Floats]]]:
    intercept, slope = at
    for score, n, pos, n2, pos2 in t.blocks():
        x = np.log(score / (1 - score))
        with np.errstate(over="ignore"):
            fit = 1 / (1 + np.exp(-(intercept + slope * x)))
        yield 0, (pos - n * fit, x)
        yield 1, (n * fit * (1 - fit), x)
        yield 2, (pos2 * (1 - fit) ** 2 + (n2 - pos2) * fit**2, x)


def _square(moments: Floats) -> Floats:
    return np.array([[moments[0], moments[1]], [moments[1], moments[2]]])
