"""Recalibration by a logistic curve that may bend: quadratic and spline scaling of the logit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.methods.families.sigmoid import smoothed
from decal_cli.methods.numerics.checks import is_finite, is_increasing, need
from decal_cli.methods.numerics.likelihood import logit, maximum, need_different_scores
from decal_cli.tables.logistic import expit
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats, Table

MAX_LOGIT = 10.0
"""Logits are cut here: a bend must not rest on the few rows of exactly 0 or 1."""
KNOT_SHARES = (0.05, 0.275, 0.5, 0.725, 0.95)
"""Quantiles of the logits at which a spline may bend (Harrell 2001, five knots)."""
MIN_KNOTS = 3


@model
@dataclass(frozen=True)
class Quadratic:
    """s(square * z^2 + slope * z + intercept), s the logistic function, z the logit of the score cut to +-10."""

    square: float
    slope: float
    intercept: float

    def __call__(self, rows: Unlabelled) -> Applied:
        z = _cut(rows.score)
        return Applied(expit(self.square * z**2 + self.slope * z + self.intercept))


@model
@dataclass(frozen=True, eq=False)
class Spline:
    """s of a natural cubic spline of z, the logit of the score cut to +-10.

    knots: (k,), increasing; slope of z, bends of the k - 2 terms that are cubic between the knots and linear beyond.
    """

    knots: Floats
    slope: float
    bends: Floats
    intercept: float

    def __post_init__(self) -> None:
        """Refuse parts that form no spline. Errors: ValueError."""
        need(is_increasing(self.knots) and len(self.knots) >= MIN_KNOTS, "a spline needs increasing knots")
        need(bool((np.diff(self.knots) > 0).all()), "a spline needs different knots")
        need(
            self.bends.shape == (len(self.knots) - 2,) and is_finite(self.bends), "a spline needs a bend for each knot"
        )

    def __call__(self, rows: Unlabelled) -> Applied:
        z = _cut(rows.score)
        total = self.slope * z + self.intercept
        for bend, term in zip(self.bends, _bent(z, self.knots), strict=True):
            total = total + bend * term
        return Applied(expit(total))


def _cut(score: Floats) -> Floats:
    return np.asarray(np.clip(logit(score), -MAX_LOGIT, MAX_LOGIT))


def _bent(z: Floats, knots: Floats) -> list[Floats]:
    """The terms of a natural cubic spline beside 1 and z, shape (k - 2, T): linear beyond the outer knots."""
    last, before = knots[-1], knots[-2]

    def cube(knot: float) -> Floats:
        return np.asarray(np.maximum(z - knot, 0.0) ** 3)

    return [
        (cube(knot) - cube(before) * (last - knot) / (last - before) + cube(last) * (before - knot) / (last - before))
        / (last - knots[0]) ** 2
        for knot in knots[:-2]
    ]


@method(
    title="Quadratic scaling",
    kind="recalibration",
    source="logistic regression on logit(p) and its square; Platt's targets as for platt",
)
def quadratic(rows: Training) -> Quadratic:
    """A logistic curve with a quadratic term in logit(p), by maximum likelihood.

    p' = s(a z^2 + b z + c), where s is the logistic function and z = logit(p), cut to [-10, 10]. The targets are those
    of `platt`, so that a maximum always exists. It bends where Platt scaling cannot, for one parameter more, and needs
    three distinct scores. Far from most scores it may turn round.
    """
    need_different_scores(rows.table, 3)
    return fit_quadratic(rows.table)


def fit_quadratic(t: Table) -> Quadratic:
    """Quadratic scaling of a table of at least three levels."""
    z = _cut(t.score)
    square, slope, intercept = maximum([z**2, z], smoothed(t))
    return Quadratic(float(square), float(slope), float(intercept))


@method(
    title="Spline scaling",
    kind="recalibration",
    source="Harrell 2001, restricted cubic splines; Lucena 2018, for calibration; Platt's targets as for platt",
)
def spline(rows: Training) -> Spline:
    """A logistic curve through a natural cubic spline of logit(p), by maximum likelihood.

    p' = s(f(z)), where s is the logistic function, z = logit(p), cut to [-10, 10], and f is cubic between five knots,
    at the quantiles .05, .275, .5, .725 and .95 of z, and linear beyond them. The targets are those of `platt`. It
    follows calibration curves of any smooth shape with five parameters. It needs three different knots.
    """
    return fit_spline(rows.table)


def fit_spline(t: Table) -> Spline:
    """Spline scaling of a table. Errors: Undefined, where the scores are too few to bend between."""
    z = _cut(t.score)
    reached = np.cumsum(t.n) / t.total
    knots = np.unique(z[np.minimum(np.searchsorted(reached, KNOT_SHARES), len(z) - 1)])
    if len(knots) < MIN_KNOTS:
        raise Undefined(f"needs at least {MIN_KNOTS} different knots; the quantiles of these scores give {len(knots)}")
    slope, *bends, intercept = maximum([z, *_bent(z, knots)], smoothed(t))
    return Spline(knots, float(slope), np.array(bends), float(intercept))
