"""Recalibration of the probabilities of several classes by a linear map of their logarithms.

All scalings are one map: p' = softmax(W log p + b). Temperature scaling has W = s I and b = 0; vector scaling has a
diagonal W; matrix scaling a full one. Structured ones begin at temperature scaling and pay for what they move away from
it: little for the diagonal and b, more beside the diagonal, so that few rows move it little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.learn.models import Applied, model, need
from decal_cli.tables.estimate import dot
from decal_cli.tables.logistic import climb
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import BLOCK, Floats, Ints, Mask
from decal_cli.tables.threads import one_thread

LEAST = 1e-6
"""Probabilities are at least this before their logarithm is taken: many models print exact zeros."""
DIAGONAL, INTERCEPT, BESIDE = 10.0, 2.0, 20.0
"""Penalties of the squared moves of the structured scalings: of a diagonal entry, an intercept, and, times the number
of classes, an entry beside the diagonal."""
MAX_FULL = 20
"""Classes up to which what lies beside the diagonal is learned; of more there are too many entries for any rows."""
MAX_STEPS = 200
MAX_SCALE = 100.0
"""The largest inverse temperature: where the most probable class is always the label, none is the likeliest."""
_TOLERANCE = 1e-9


@model(weight="K,K finite", intercept="K finite")
class ClassScaling:
    """p' = softmax(weight @ log p + intercept), p clipped at 1e-6; weight: shape (K, K), intercept: (K,)."""

    weight: Floats
    intercept: Floats

    def _check(self) -> None:
        need(len(self.intercept) > 1, "a scaling needs several classes")

    def of(self, score: Floats) -> Floats:
        """New probabilities, shape (T, K)."""
        out = np.empty(score.shape)
        for start in range(0, len(score), BLOCK):
            part = slice(start, start + BLOCK)
            out[part] = softmax(linear(logarithms(score[part]), self.weight, self.intercept))
        return out

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(self.of(of_size(rows, len(self.intercept))))


def of_size(rows: Unlabelled, classes: int) -> Floats:
    """The probabilities of rows of so many classes. Errors: ValueError, where there are others."""
    need(rows.score.ndim == 2 and rows.score.shape[1] == classes, f"a model of {classes} classes meets other rows")
    return rows.score


def tempered(inverse: float, classes: int) -> ClassScaling:
    """p^s, rescaled to sum 1, by the inverse temperature s."""
    return ClassScaling(inverse * np.eye(classes), np.zeros(classes))


def linear(columns: Floats, weight: Floats, intercept: Floats) -> Floats:
    """columns @ weight.T + intercept, shape (T, K), for weight of shape (K, d)."""
    if weight.shape[0] == weight.shape[1] and not np.any(weight - np.diag(np.diag(weight))):
        return np.asarray(columns * np.diag(weight) + intercept)
    return summed_by_column(columns, weight, intercept)


def summed_by_column(columns: Floats, weight: Floats, intercept: Floats) -> Floats:
    """columns @ weight.T + intercept, shape (T, K), column by column, for weight of shape (K, d)."""
    total = np.tile(intercept, (len(columns), 1))
    # Column by column: a matrix product may round a row differently when other rows stand beside it.
    for column, coefficient in zip(columns.T, weight.T, strict=True):
        total += column[:, None] * coefficient
    return total


def logarithms(score: Floats) -> Floats:
    """log p of clipped probabilities."""
    return np.asarray(np.log(np.maximum(score, LEAST)))


def softmax(logits: Floats) -> Floats:
    """Probabilities in proportion to exp(logits), row by row."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def fit_temperature(score: Floats, label: Ints, weight: Floats) -> ClassScaling:
    """p^s, rescaled to sum 1, with the likeliest s >= 0 (1 / temperature); s is at most MAX_SCALE."""
    return tempered(inverse_temperature(logarithms(score), label, weight), score.shape[1])


def inverse_temperature(logs: Floats, label: Ints, weight: Floats) -> float:
    """The likeliest s, by Newton steps kept between what is known to be too small and too large."""
    own = logs[np.arange(len(label)), label]
    # A row for each class: sums over classes then run along whole rows.
    turned = np.ascontiguousarray(logs.T)
    above = turned - turned.max(axis=0)

    def slope(s: float) -> tuple[float, float]:
        raised = np.exp(s * above)
        total = raised.sum(axis=0)
        raised *= turned
        mean = raised.sum(axis=0) / total
        raised *= turned
        spread = raised.sum(axis=0) / total - mean**2
        return dot(weight, own - mean), -dot(weight, spread)

    low, high, at = 0.0, MAX_SCALE, 1.0
    if slope(low)[0] <= 0:
        return low
    if slope(high)[0] >= 0:
        return high
    for _ in range(MAX_STEPS):
        gradient, curvature = slope(at)
        low, high = (at, high) if gradient > 0 else (low, at)
        step = at - gradient / curvature if curvature < 0 else (low + high) / 2
        ahead = step if low < step < high else (low + high) / 2
        if abs(ahead - at) <= _TOLERANCE * (1 + at):
            return ahead
        at = ahead
    return at


def fit_structured(score: Floats, label: Ints, weight: Floats, full: bool) -> ClassScaling:
    """A slope and an intercept for each class, near the scaled temperature. Errors: Undefined.

    full: whether the other classes' logarithms count too, with slopes near 0; for at most MAX_FULL classes.
    """
    classes = score.shape[1]
    if full and classes > MAX_FULL:
        raise Undefined(f"is for at most {MAX_FULL} classes: structured-vector is for more")
    logs = logarithms(score)
    s = inverse_temperature(logs, label, weight)
    if s <= 0:
        raise Undefined("needs probabilities that rank some labels right: the likeliest temperature is infinite")
    penalty, centre = structure(classes)
    free = None if full else beside_fixed(classes)
    at = softmax_fit(s * logs, label, weight, penalty, centre, free)
    return ClassScaling(s * at[1:].T, at[0])


def structure(classes: int) -> tuple[Floats, Floats]:
    """Penalty and centre of the intercepts and of the slopes on the logarithms, shape (1 + K, K) each."""
    penalty = np.full((classes, classes), BESIDE * classes)
    np.fill_diagonal(penalty, DIAGONAL)
    centre = np.vstack((np.zeros(classes), np.eye(classes)))
    return np.vstack((np.full(classes, INTERCEPT), penalty)), centre


def beside_fixed(classes: int) -> Mask:
    """Which intercepts and slopes on the logarithms may move where those beside the diagonal may not, (1 + K, K)."""
    return np.vstack((np.ones(classes, dtype=bool), np.eye(classes, dtype=bool)))


def softmax_fit(
    x: Floats, label: Ints, weight: Floats, penalty: Floats, centre: Floats, free: Mask | None = None
) -> Floats:
    """Intercepts and slopes, shape (1 + d, K), of the multinomial regression with the largest penalised likelihood.

    x: shape (T, d). penalty: of half the squared distance from the centre, shape (1 + d, K) each, the intercepts first.
    free: which of them may move; by default all.
    """
    # Loaded late: whoever evaluates scores of two classes needs no scipy.
    from scipy.optimize import minimize

    free = np.ones(centre.shape, dtype=bool) if free is None else free
    rows, total = np.arange(len(label)), float(weight.sum())
    # Products are short: threads would spend their time on waiting for each other.
    with one_thread():
        # In units in which the loss bends about equally along every axis, few steps suffice.
        chance = softmax(x @ centre[1:] + centre[0])
        bends = weight[:, None] * chance * (1 - chance)
        unit = 1 / np.sqrt((np.vstack((bends.sum(axis=0), (x**2).T @ bends)) + penalty)[free] / total)

        # A row for each class: sums over classes then run along whole rows.
        turned = np.ascontiguousarray(x.T)

        def loss(moved: Floats) -> tuple[float, Floats]:
            at = centre.copy()
            at[free] += unit * moved
            raised = at[1:].T @ turned
            raised += at[0][:, None]
            own = raised[label, rows]
            top = raised.max(axis=0)
            raised -= top
            np.exp(raised, out=raised)
            sums = raised.sum(axis=0)
            value = dot(weight, np.log(sums) + top - own)
            raised *= weight / sums
            raised[label, rows] -= weight
            gradient = np.vstack((raised.sum(axis=1), turned @ raised.T))
            away = at - centre
            value += 0.5 * float((penalty * away**2).sum())
            return value / total, unit * (gradient + penalty * away)[free] / total

        reached = minimize(
            loss, np.zeros(int(free.sum())), jac=True, method="L-BFGS-B",
            options={"maxiter": MAX_STEPS, "ftol": 1e-11, "gtol": 1e-7, "maxcor": 20},
        )  # fmt: skip
        at = centre.copy()
        at[free] += unit * reached.x
        return at


MIXED_FROM, HELD_BY = np.array([1.0, 0.0]), 10.0
"""The weights that a mixture begins at, the regression alone, and the penalty of half their squared moves."""


def centred(logits: Floats) -> Floats:
    """Logits less their mean in each row: the same probabilities."""
    return np.asarray(logits - logits.mean(axis=1, keepdims=True))


def mixing_weights(each: Floats, label: Ints, weight: Floats) -> Floats:
    """Weights of several logits, shape (m, T, K) to (m,), by how well they predict rows that none has seen."""
    rows = np.arange(len(label))

    def slopes(at: Floats) -> tuple[Floats, Floats]:
        p = softmax(np.tensordot(at, each, 1))
        mean = np.einsum("tk,mtk->mt", p, each)
        gradient = (each[:, rows, label] - mean) @ weight
        curvature = np.einsum("tk,mtk,ntk->mn", weight[:, None] * p, each, each) - (mean * weight) @ mean.T
        away = HELD_BY * (at - MIXED_FROM)
        return gradient - away, curvature + HELD_BY * np.eye(len(at))

    return climb(slopes, MIXED_FROM, _TOLERANCE)[0]


SCALINGS: Mapping[str, Callable[[Floats, Ints, Floats], ClassScaling]] = {
    "temperature": fit_temperature,
    "structured-vector": partial(fit_structured, full=False),
    "structured-matrix": partial(fit_structured, full=True),
}
"""The fit of each scaling, by the name of the method that `decal fit` knows."""
