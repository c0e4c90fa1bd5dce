"""What a fitted model is: a frozen dataclass of plain numbers and arrays that maps rows to scores.

That is all a model file holds, and why it can be read by a person.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.tables.classes import best_actions
from decal_cli.tables.features import Matrix
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats, Ints, Mask
from decal_cli.task import ClassDecision, Task

NO_FEATURES = "needs the features that the model was fitted with"
ROUNDING = 1e-9


def need(condition: bool, reason: str) -> None:
    """Raise a ValueError with the reason where the condition does not hold."""
    if not condition:
        raise ValueError(reason)


def is_finite(values: Any) -> bool:
    """Whether every number is finite."""
    return bool(np.isfinite(values).all())


def is_increasing(values: Floats) -> bool:
    """Whether finite numbers, shape (k,), never fall, but for rounding."""
    return values.ndim == 1 and is_finite(values) and bool((np.diff(values) >= -ROUNDING).all())


def are_probabilities(values: Floats) -> bool:
    """Whether numbers lie in [0, 1], but for rounding."""
    return bool(((values >= -ROUNDING) & (values <= 1 + ROUNDING)).all())


def are_places(values: NDArray[Any], first: int, count: int) -> bool:
    """Whether whole numbers, shape (k,), lie in [first, count)."""
    whole = values.ndim == 1 and np.issubdtype(values.dtype, np.integer)
    return whole and bool(((values >= first) & (values < count)).all())


class Applied(NamedTuple):
    """What a fitted model predicts for rows, shape (T,) each.

    score: in [0, 1]; of several classes (T, K), rows of sum 1. threshold: the score from which to decide 1 in place of
    t*, for models that move the threshold and leave the score. lower, upper: an interval of the probability, for models
    that have one.
    """

    score: Floats
    threshold: Floats | None = None
    lower: Floats | None = None
    upper: Floats | None = None

    def acts(self, task: Task | ClassDecision) -> Ints:
        """The action of each row. With two actions it is 1 from t* on, or from the model's own thresholds on."""
        if self.threshold is not None:
            return (self.score >= self.threshold).astype(np.int64)
        return actions_taken(self.score, task, at_best=True)


def actions_taken(score: Floats, task: Task | ClassDecision, at_best: bool = False) -> Ints:
    """The action of each row by its score, of those that may be taken. at_best: not at the thresholds in use."""
    if isinstance(task, ClassDecision):
        return best_actions(score, np.array(task.utility))
    return np.searchsorted(task.thresholds if at_best else task.decision_thresholds, score, side="right")


def deciding_as(acts: Mask, threshold: Floats, score: Floats) -> Floats:
    """Thresholds of rows, changed by less than rounding so that each row is acted on as given, (T,) each."""
    return np.where(acts, np.minimum(threshold, score), np.maximum(threshold, np.nextafter(score, np.inf)))


class Model(Protocol):
    """A fitted method: a frozen dataclass whose fields are numbers, text, arrays, other models, or tuples of these."""

    def __call__(self, rows: Unlabelled) -> Applied:
        """New scores of rows; deterministic, row by row: a row's score does not depend on the others."""


def note_of(fitted: Model) -> str | None:
    """What a fitted model, or the one inside it, says of how much it does, where it decides that from the rows."""
    inside: Model | None = getattr(fitted, "fitted", None)
    return getattr(fitted, "note", None) if inside is None else note_of(inside)


M = TypeVar("M", bound=type)
MODELS: dict[str, type] = {}
"""Every class that a model file may hold, by the name that it has there."""


ENTRIES: dict[str, Callable[[Any], bool]] = {
    "": lambda values: True,
    "finite": is_finite,
    "positive": lambda values: is_finite(values) and bool((values > 0).all()),
    "increasing": is_increasing,
    "rising": lambda values: is_increasing(values) and bool((np.diff(values) > 0).all()),
    "in [0, 1]": are_probabilities,
    "increasing in [0, 1]": lambda values: is_increasing(values) and are_probabilities(values),
}
"""What the entries of an array can be declared to be."""


@dataclass_transform(frozen_default=True, eq_default=False)
def model(**arrays: str) -> Callable[[M], M]:
    """Declare a class of fitted models: a frozen dataclass that refuses, with a ValueError, what is no such model.

    arrays: of fields, the shape, in letters that fields share, and the entries: value="k+1 in [0, 1]". A `_check` says
    what else must hold. Model files name the class as it is called, or by its SAVED_AS.
    """

    def declare(cls: M) -> M:
        def check(self: Any) -> None:
            sizes: dict[str, int] = {}
            for name, (shape, _, entries) in ((name, holds.partition(" ")) for name, holds in arrays.items()):
                values = getattr(self, name)
                fits = _has_shape(values, shape, sizes) and ENTRIES[entries](values)
                need(fits, f"{name} of {cls.__name__} must be {entries or 'numbers'}, of shape ({shape})")
            if hasattr(self, "_check"):
                self._check()

        cls.__post_init__ = check  # type: ignore[attr-defined]
        dataclass(frozen=True, eq=False)(cls)
        MODELS[name_of(cls)] = cls
        return cls

    return declare


def _has_shape(values: NDArray[Any], shape: str, sizes: dict[str, int]) -> bool:
    """Whether an array has a shape such as 'K,d+1'; sizes: what the letters stand for, as far as it is known."""
    axes = [axis.partition("+") for axis in shape.split(",")]
    if values.ndim != len(axes):
        return False
    for size, (letter, _, more) in zip(values.shape, axes, strict=True):
        rest = size - int(more or 0)
        if rest != (int(letter) if letter.isdigit() else sizes.setdefault(letter, rest)):
            return False
    return True


def name_of(cls: type) -> str:
    """The name that a class has in a model file, if it is one of models."""
    return str(vars(cls).get("SAVED_AS", cls.__name__))


def features_of(rows: Unlabelled) -> Matrix:
    """The features of rows as numbers, shape (T, d), NaN where missing. Errors: Undefined, where there are none."""
    if not rows.has_features:
        raise Undefined(NO_FEATURES)
    return rows.matrix
