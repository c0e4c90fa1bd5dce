"""The calibration line: logistic regression of the labels on the log-odds of the score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.tables import estimate
from decal_cli.tables.estimate import MeanEstimate, dot
from decal_cli.tables.logistic import climb, expit, log_odds, separated
from decal_cli.tables.table import Floats, Table

_TOLERANCE = 1e-6
"""Of a Newton step."""


class CalibrationLine(NamedTuple):
    """logit P(y = 1) = intercept + slope * logit p, each with its sandwich standard error."""

    intercept: MeanEstimate
    slope: MeanEstimate


class _Slopes(NamedTuple):
    """Gradient and curvature of the log-likelihood, and the summed squares of the per-row gradients, at one point."""

    gradient: Floats
    curvature: Floats
    squares: Floats


def calibration_line(t: Table) -> CalibrationLine:
    """The maximum-likelihood fit, made once per table; Undefined where there is none."""
    return t.cached(calibration_line, _fit)


def _fit(t: Table) -> CalibrationLine:
    _check(t)
    start = np.array([0.0, 1.0])
    if len(t.cells) < len(t):
        start, _ = climb(lambda at: _slopes(t.cells, at), start, _TOLERANCE)
    line, slopes = climb(lambda at: _slopes(t, at), start, _TOLERANCE)
    inverse = np.linalg.inv(slopes.curvature)
    squares = [inverse @ (slopes.squares + missed) @ inverse for missed in _missed(t, line)]
    errors = np.sqrt(np.maximum(np.max([np.diag(each) for each in squares], axis=0), 0.0))
    return CalibrationLine(
        *(MeanEstimate(float(value), float(error)) for value, error in zip(line, errors, strict=True))
    )


def _check(t: Table) -> None:
    t.need_both_classes()
    at_ends = (float(t.n[0]) if t.score[0] == 0 else 0.0) + (float(t.n[-1]) if t.score[-1] == 1 else 0.0)
    if at_ends:
        rows = f"{at_ends:g} rows have" if not t.weighted else f"rows of weight {at_ends:g} have"
        raise Undefined(f"{rows} a score of exactly 0 or 1, which has no logit")
    if len(t) < 2:
        raise Undefined("every score is the same")
    if separated(t.pos, t.n):
        raise Undefined("a threshold separates the labels, so the likelihood has no maximum")


def _slopes(t: Table, at: Floats) -> _Slopes:
    """One pass over the levels."""
    intercept, slope = at
    total = np.zeros((3, 3))
    for block in t.blocks():
        x, n, pos, n2, pos2 = log_odds(block.score), block.n, block.pos, block.n2, block.pos2
        fit = expit(intercept + slope * x)
        weights = pos - n * fit, n * fit * (1 - fit), pos2 * (1 - fit) ** 2 + (n2 - pos2) * fit**2
        total += [(weight.sum(), dot(weight, x), dot(weight * x, x)) for weight in weights]
    gradient, curvature, squares = total
    return _Slopes(gradient[:2], _square(curvature), _square(squares))


def _missed(t: Table, at: Floats) -> list[Floats]:
    """What rows that could have been missed, of label 0 or of label 1, would add to the summed squares."""
    total = np.zeros((2, 3))
    for block in t.blocks():
        x, n = log_odds(block.score), block.n
        fit = expit(at[0] + at[1] * x)
        total += [(weight.sum(), dot(weight, x), dot(weight * x, x)) for weight in (n * fit**2, n * (1 - fit) ** 2)]
    return [estimate.MISSED_ROWS * t.unit**2 * _square(moments / t.total) for moments in total]


def _square(moments: Floats) -> Floats:
    return np.array([[moments[0], moments[1]], [moments[1], moments[2]]])
