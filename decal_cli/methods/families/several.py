"""Post-training on the probabilities of several classes and the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.crossfit.class_folds import ClassRegression, class_blend, mixed
from decal_cli.crossfit.learners import standardised
from decal_cli.crossfit.scaling import linear, logarithms, softmax
from decal_cli.methods.declare import Applied, Training, for_classes, model
from decal_cli.methods.families.scalings import ClassScaling, of_size, scaled
from decal_cli.methods.numerics.checks import is_finite, need
from decal_cli.methods.numerics.features import features_of
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats, Ints


@model
@dataclass(frozen=True, eq=False)
class ClassPlane:
    """Logits: weight @ log p + slopes @ z + intercept, z the features in `column`, standardised and cut.

    weight: (K, K); slopes: (K, d); intercept: (K,); column, largest, centre, spread: (d,).
    """

    weight: Floats
    slopes: Floats
    intercept: Floats
    column: Ints
    largest: Floats
    centre: Floats
    spread: Floats

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together. Errors: ValueError."""
        classes, columns = len(self.intercept), len(self.column)
        need(self.weight.shape == (classes, classes), "a plane needs K x K slopes on the probabilities")
        need(self.slopes.shape == (classes, columns), "a plane needs a slope for each class and feature")
        need(all(each.shape == (columns,) for each in (self.largest, self.centre, self.spread)), "features lack units")
        need(bool((self.largest > 0).all() and (self.spread > 0).all()), "units must be positive")
        need(all(map(is_finite, (self.weight, self.slopes, self.intercept, self.centre))), "slopes must be finite")

    def logits(self, rows: Unlabelled) -> Floats:
        """Of rows, shape (T, K)."""
        score = of_size(rows, len(self.intercept))
        columns = standardised(features_of(rows), self.column, self.largest, self.centre, self.spread)
        return linear(logarithms(score), self.weight, self.intercept) + linear(
            columns, self.slopes, np.zeros(len(self.intercept))
        )

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(softmax(self.logits(rows)))

    @classmethod
    def of(cls, fitted: ClassRegression) -> ClassPlane:
        """The plane of a regression on features that are numbers."""
        units = fitted.standard
        return cls(
            fitted.weight, fitted.slopes, fitted.intercept, units.column, units.largest, units.centre, units.spread
        )


@model
@dataclass(frozen=True, eq=False)
class ClassMixture:
    """Logits of a regression and of recalibrated probabilities, mixed by two weights."""

    regression: ClassPlane
    scaling: ClassScaling
    weights: Floats

    def __post_init__(self) -> None:
        """Refuse weights that do not belong to the parts. Errors: ValueError."""
        need(self.weights.shape == (2,) and is_finite(self.weights), "a mixture needs two finite weights")

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(mixed(self.weights, self.regression.logits(rows), self.scaling(rows).score))


@for_classes("stack")
def stack(rows: Training, *, penalty: float = 1.0) -> ClassPlane:
    """Multinomial regression on the logarithms of the probabilities and the features."""
    return ClassPlane.of(ClassRegression(rows, rows.seed, 3.0 * penalty))


@for_classes("refit")
def refit(rows: Training, *, penalty: float = 1.0, units: str = "standard") -> ClassPlane:
    """Multinomial regression on the features alone."""
    return ClassPlane.of(ClassRegression(rows, rows.seed, penalty, score=False))


@for_classes("blend")
def blend(rows: Training) -> ClassMixture:
    """Multinomial regression on the probabilities and the features, mixed with the recalibrated probabilities."""
    fitted = class_blend(rows, rows.seed)
    return ClassMixture(ClassPlane.of(fitted.regression), scaled(fitted.scaling), fitted.weights)
