"""Isotonic regression of the labels on the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from decal_cli.crossfit.regions import IsotonicFit
from decal_cli.declarations.papers import cite
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.methods.numerics.checks import are_probabilities, is_increasing, need
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats, Table


@model
@dataclass(frozen=True, eq=False)
class Curve:
    """A piecewise linear, increasing function of the score: at, value, shape (k,) each; constant outside."""

    at: Floats
    value: Floats

    def __post_init__(self) -> None:
        """Refuse what is no increasing curve of probabilities. Errors: ValueError."""
        need(self.at.shape == self.value.shape != (0,), "a curve needs one value for each of its points")
        need(is_increasing(self.at) and is_increasing(self.value), "a curve must not decrease")
        need(are_probabilities(self.value), "a curve's values lie in [0, 1]")

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(np.interp(rows.score, self.at, self.value))

    @classmethod
    def fitted(cls, table: Table) -> Self:
        """The isotonic regression of a table."""
        fit = IsotonicFit(table)
        return cls(fit.at, fit.value)


@method(title="Isotonic regression", kind="recalibration", source=cite("Zadrozny and Elkan 2002"))
def isotonic(rows: Training) -> Curve:
    """The increasing function of the score that fits the labels best by squared error.

    It is fitted by pooling adjacent violators; it is linear between fitted points and constant outside of them. It has
    no parameters, may return exactly 0 and 1, and is calibrated on the rows it was fitted to.
    """
    return Curve.fitted(rows.table)
