"""Isotonic regression of the labels on the score, and the threshold that it amounts to for one decision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.crossfit.regions import IsotonicFit
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats


@model
@dataclass(frozen=True, eq=False)
class Curve:
    """A piecewise linear, increasing function of the score: at, value, shape (k,) each; constant outside."""

    at: Floats
    value: Floats

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(np.interp(rows.score, self.at, self.value))


@method(title="Isotonic regression", kind="recalibration", source="Zadrozny & Elkan 2002")
def isotonic(rows: Training) -> Curve:
    """The increasing function of the score that fits the labels best in squares.

    Found by pooling adjacent violators; linear between fitted points, constant outside of them. It has no parameter,
    may return exactly 0 and 1, and is calibrated on the rows it was fitted to.
    """
    fit = IsotonicFit(rows.table)
    return Curve(fit.at, fit.value)
