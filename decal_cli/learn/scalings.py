"""Recalibration of the probabilities of several classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between
from decal_cli.learn.curves import Curve
from decal_cli.learn.method import Applied, Training, are_probabilities, for_classes, is_finite, method, model, need
from decal_cli.learn.scaling import Scaling, fit_matrix, fit_temperature, fit_vector, logarithms, softmax_fit, structure
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats

Penalty = Annotated[float, "of half the squared entries beside the diagonal, and intercepts", Between(1e-9, 1e9)]


@model
@dataclass(frozen=True, eq=False)
class ClassScaling:
    """p' = softmax(weight @ log p + intercept), p clipped at 1e-6; weight: shape (K, K), intercept: (K,)."""

    weight: Floats
    intercept: Floats

    def __post_init__(self) -> None:
        """Refuse a map that is not of K classes to K classes. Errors: ValueError."""
        classes = len(self.intercept)
        need(self.weight.shape == (classes, classes) and classes > 1, "a scaling needs K x K slopes and K intercepts")
        need(is_finite(self.weight) and is_finite(self.intercept), "slopes must be finite")

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(Scaling(self.weight, self.intercept)(of_size(rows, len(self.intercept))))


@model
@dataclass(frozen=True, eq=False)
class ClassCurves:
    """An increasing curve for each class against the rest; what they give is divided by its sum."""

    curves: tuple[Curve, ...]

    def __call__(self, rows: Unlabelled) -> Applied:
        score = of_size(rows, len(self.curves))
        each = np.column_stack(
            [np.interp(column, curve.at, curve.value) for column, curve in zip(score.T, self.curves, strict=True)]
        )
        total = each.sum(axis=1, keepdims=True)
        # Where every curve says 0, nothing is known that the probabilities do not say.
        return Applied(np.where(total > 0, each / np.where(total > 0, total, 1.0), score))


def of_size(rows: Unlabelled, classes: int) -> Floats:
    """The probabilities of rows of so many classes. Errors: ValueError, where there are others."""
    need(rows.score.ndim == 2 and rows.score.shape[1] == classes, f"a model of {classes} classes meets other rows")
    return rows.score


def scaled(scaling: Scaling) -> ClassScaling:
    """The scaling as a model."""
    return ClassScaling(scaling.weight, scaling.intercept)


@for_classes("temperature")
def temperature(rows: Training) -> ClassScaling:
    """p' in proportion to p^(1/T), with the likeliest T."""
    return scaled(fit_temperature(rows.score, rows.label, rows.weights))


@for_classes("isotonic")
def isotonic(rows: Training) -> ClassCurves:
    """Isotonic regression of each class against the rest; the fits are divided by their sum."""
    c = rows.class_table
    return ClassCurves(tuple(Curve.fitted(c.one_vs_rest(k)) for k in range(len(rows.classes))))


@method(
    title="Structured vector scaling",
    kind="recalibration",
    source="Berta et al. 2025, structured matrix scaling, its diagonal part",
    classes="several",
)
def structured_vector(rows: Training) -> ClassScaling:
    """A slope and an intercept for the logarithm of each class's probability, near temperature scaling.

    p' = softmax(a_k log p_k + b_k). What a and b move away from the best temperature is penalised, so that few rows
    move them little. Probabilities are clipped at 1e-6 before the logarithm.
    """
    return scaled(fit_vector(rows.score, rows.label, rows.weights))


@method(
    title="Structured matrix scaling",
    kind="recalibration",
    source="Berta et al. 2025, structured matrix scaling",
    classes="several",
)
def structured_matrix(rows: Training) -> ClassScaling:
    """A linear map of the logarithms of all probabilities, near temperature scaling; for at most 20 classes.

    p' = softmax(W log p + b). The diagonal of W and b are penalised for what they move away from the best temperature,
    entries beside the diagonal more, the more the more classes there are.
    """
    return scaled(fit_matrix(rows.score, rows.label, rows.weights))


@model
@dataclass(frozen=True, eq=False)
class EnsembleTemperature:
    """A mixture of p^s, rescaled to sum 1, of p and of equal probabilities; weights: (3,), of sum 1."""

    inverse: float
    weights: Floats

    def __post_init__(self) -> None:
        """Refuse weights that are none. Errors: ValueError."""
        need(self.weights.shape == (3,) and are_probabilities(self.weights), "a mixture needs three weights in [0, 1]")
        need(abs(float(self.weights.sum()) - 1) < 1e-6 and is_finite(self.inverse), "weights must sum to 1")

    def __call__(self, rows: Unlabelled) -> Applied:
        each = _tempered(rows.score, self.inverse)
        mixture = sum(weight * part for weight, part in zip(self.weights, each, strict=True))
        return Applied(np.asarray(mixture / mixture.sum(axis=1, keepdims=True)))


def _tempered(score: Floats, inverse: float) -> tuple[Floats, Floats, Floats]:
    classes = score.shape[1]
    scaling = Scaling(inverse * np.eye(classes), np.zeros(classes))
    return scaling(score), score, np.full_like(score, 1 / classes)


N_MIXING_STEPS = 1000
"""At most so many steps of expectation and maximisation: each makes the labels likelier."""


@method(
    title="Ensemble temperature scaling",
    kind="recalibration",
    source="Zhang et al. 2020, Mix-n-Match",
    classes="several",
)
def ensemble_temperature(rows: Training) -> EnsembleTemperature:
    """Temperature scaling mixed with the probabilities as they are and with equal ones.

    p' = w1 p^(1/T), rescaled to sum 1, + w2 p + w3 / K, with the likeliest T first and then the likeliest weights of
    sum 1. The order of the classes of a row stays as it is.
    """
    inverse = float(fit_temperature(rows.score, rows.label, rows.weights).weight[0, 0])
    at_label = np.column_stack([part[np.arange(len(rows)), rows.label] for part in _tempered(rows.score, inverse)])
    share, weights = rows.weights / rows.weights.sum(), np.full(3, 1 / 3)
    for _ in range(N_MIXING_STEPS):
        parts = at_label * weights
        ahead = share @ (parts / np.maximum(parts.sum(axis=1, keepdims=True), 1e-300))
        done = bool(np.abs(ahead - weights).max() < 1e-10)
        weights = ahead
        if done:
            break
    return EnsembleTemperature(inverse, weights / weights.sum())


@method(title="Vector scaling", kind="recalibration", source=cite("Guo et al. 2017"), classes="several")
def vector(rows: Training) -> ClassScaling:
    """A slope and an intercept for the logarithm of each class's probability, by maximum likelihood.

    p' = softmax(a_k log p_k + b_k). A penalty of .001 keeps the maximum finite where classes are separated.
    """
    return _likeliest(rows, 1e-3, 1e9)


@method(
    title="Dirichlet calibration",
    kind="recalibration",
    source="Kull et al. 2019, with their penalty of what lies beside the diagonal",
    classes="several",
)
def dirichlet(rows: Training, *, penalty: Penalty = 10.0) -> ClassScaling:
    """A linear map of the logarithms of all probabilities, as if they followed a Dirichlet distribution in each class.

    p' = softmax(W log p + b), by maximum likelihood, less `penalty` / 2 times the squared entries of W beside its
    diagonal and of b.
    """
    return _likeliest(rows, 1e-3, penalty, intercept=penalty)


def _likeliest(rows: Training, diagonal: float, beside: float, intercept: float = 1e-3) -> ClassScaling:
    classes = len(rows.classes)
    _, centre = structure(classes)
    slopes = np.full((classes, classes), beside)
    np.fill_diagonal(slopes, diagonal)
    penalty = np.vstack((np.full(classes, intercept), slopes))
    at = softmax_fit(logarithms(rows.score), rows.label, rows.weights, penalty, centre)
    return ClassScaling(at[1:].T.copy(), at[0])
