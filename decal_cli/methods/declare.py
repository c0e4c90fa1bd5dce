"""How a post-training method is declared: one decorated function carries everything that is ever said about it.

A method is a function from training rows to a fitted model; a fitted model is a frozen dataclass of plain numbers and
arrays that maps new rows to new scores. That is all a model file holds, and why it can be read by a person.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from decal_cli.crossfit.encoding import CategoryColumn, Encoder, encoded
from decal_cli.crossfit.regions import Regions
from decal_cli.declarations.defaults import SEED
from decal_cli.declarations.spec import Declaration, Registry, Spec, parameters_of
from decal_cli.errors import Undefined
from decal_cli.hints import Hint, said
from decal_cli.metrics.inputs import INPUT_KINDS
from decal_cli.metrics.numerics.class_decisions import actions_of
from decal_cli.tables.rows import Rows, Unlabelled
from decal_cli.tables.table import Floats, Ints
from decal_cli.task import BinaryTask, ClassDecision, Task

T = TypeVar("T")
NO_FEATURES = "needs the features that the model was fitted with"
Kind = Literal["recalibration", "post-training"]
"""What a method costs to run and to keep: a function of the score, or a model on the features."""
Need = Literal["features", "groups", "task"]
NEEDS: dict[Need, str] = {
    "features": INPUT_KINDS[Regions].absent,
    "groups": f"needs groups: name the columns with {Hint('group')}",
    "task": INPUT_KINDS[BinaryTask].absent,
}
"""What a method may need beyond scores and labels, and what is said where the user did not give it."""


@dataclass(frozen=True, eq=False)
class Training(Rows):
    """Rows that a method learns from, and the task and seed it learns with; labels of two classes are float64.

    feature_names: of the columns of features as the user has them; empty where they have none.
    """

    task: BinaryTask | None = field(default=None, kw_only=True)
    decision: Task | ClassDecision | None = field(default=None, kw_only=True)
    """What decisions are judged by, where that is no task of two actions."""
    seed: int = field(default=SEED, kw_only=True)
    feature_names: tuple[str, ...] = field(default=(), kw_only=True)
    cache: dict[object, Any] = field(default_factory=dict, repr=False, kw_only=True)
    """What was computed from these rows for any task: see `cached`."""

    @property
    def decided_by(self) -> Task | ClassDecision | None:
        """The task that decisions are judged by, whatever its actions and classes."""
        return self.decision if self.task is None else self.task

    def lacks(self, need: Need) -> bool:
        """Whether the user did not give this."""
        return not self.groups if need == "groups" else getattr(self, need) is None

    def cached(self, key: object, compute: Callable[[], T]) -> T:
        """compute(), computed once under this key for these rows, and shared by all tasks."""
        if key not in self.cache:
            self.cache[key] = compute()
        return self.cache[key]

    def generator(self, *purpose: int) -> np.random.Generator:
        """Random numbers for one purpose."""
        return np.random.default_rng([self.seed, *purpose])

    def _cut(self, which: NDArray[Any]) -> dict[str, Any]:
        return super()._cut(which) | {"cache": {}}


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
        """The action of each row: of two 1 from t*, or from the model's own thresholds, upwards."""
        if self.threshold is not None:
            return (self.score >= self.threshold).astype(np.int64)
        return actions_taken(self.score, task, at_best=True)


def actions_taken(score: Floats, task: Task | ClassDecision, at_best: bool = False) -> Ints:
    """The action of each row by its score: a row of `payoffs`. at_best: at the best thresholds, not at those in use."""
    if isinstance(task, ClassDecision):
        return actions_of(score, task)
    return np.searchsorted(task.thresholds if at_best else task.decision_thresholds, score, side="right")


def payoffs(task: Task | ClassDecision) -> Floats:
    """The utility of every action that is ever taken, at each label, shape (A, K)."""
    return np.array(task.utility if isinstance(task, ClassDecision) else task.undominated)


class Model(Protocol):
    """A fitted method: a frozen dataclass whose fields are numbers, text, arrays, other models, or tuples of these."""

    def __call__(self, rows: Unlabelled) -> Applied:
        """New scores of rows; deterministic, row by row: a row's score does not depend on the others."""


def note_of(fitted: Model) -> str | None:
    """What a fitted model has to say of itself, for models that decide from the rows how much they do."""
    return getattr(fitted, "note", None)


M = TypeVar("M", bound=type)
MODELS: dict[str, type] = {}
"""Every class that a model file may hold, by name."""


SAVED_AS: dict[type, str] = {}
"""The name of each in a model file."""


def model(cls: M, saved_as: str = "") -> M:
    """Declare a class of fitted models; model files name it, as it is called where they say nothing else."""
    SAVED_AS[cls] = saved_as or cls.__name__
    MODELS[SAVED_AS[cls]] = cls
    return cls


model(CategoryColumn)
model(Encoder)


@model
@dataclass(frozen=True, eq=False)
class Encoded:
    """A model on features with categories or missing values, and the encoder that makes numbers of them for it."""

    encoder: Encoder
    fitted: Model

    def __call__(self, rows: Unlabelled) -> Applied:
        if rows.features is None:
            raise Undefined(NO_FEATURES)
        return self.fitted(replace(rows, features=self.encoder(rows.typed)))

    @property
    def note(self) -> str | None:
        """What the model has to say of itself."""
        return note_of(self.fitted)


def unseen_categories(fitted: Model, rows: Unlabelled) -> int:
    """How many rows have a category that the model was not fitted on."""
    return int(fitted.encoder.unseen(rows.typed).sum()) if isinstance(fitted, Encoded) else 0


@dataclass(frozen=True, kw_only=True)
class Method(Declaration):
    """A declared method; everything decal says about it is read from here.

    needs: what it cannot do without; uses: what it takes as well where the user gave it. of_classes: what it does for
    several classes, None where it is for two alone; for_two: whether it is for two.
    """

    function: Callable[..., Model]
    of_classes: Callable[..., Model] | None = None
    for_two: bool = True
    kind: Kind
    needs: tuple[Need, ...]
    uses: tuple[Need, ...]

    def takes(self, what: Need) -> bool:
        """Whether it looks at this, if the user gave it."""
        return what in self.needs or what in self.uses


MethodSpec = Spec[Method]
METHODS: Registry[Method] = Registry("method", "platt(on=p)")
"""Every declared method by name, in the order of declaration."""


def methods_for_two() -> tuple[MethodSpec, ...]:
    """The methods for scores of two classes, at their defaults."""
    return tuple(spec for spec in METHODS.specs() if spec.declared.for_two)


def missing(spec: MethodSpec, rows: Training) -> str | None:
    """Why the method cannot be fitted to what the user gave; None where it can."""
    if rows.classes and spec.declared.of_classes is None:
        return "is for scores of two classes"
    if not rows.classes and not spec.declared.for_two:
        return f"is for several classes: {Hint('proba').words}"
    return next((said(NEEDS[need]) for need in spec.declared.needs if rows.lacks(need)), None)


def fit(spec: MethodSpec, rows: Training) -> Model:
    """The fitted model. Errors: Undefined, where the rows do not allow it."""
    reason = missing(spec, rows)
    if reason is not None:
        raise Undefined(reason)
    return fit_each(spec, rows, [rows.task])[0]


def fit_each(spec: MethodSpec, rows: Training, tasks: Sequence[BinaryTask | None]) -> list[Model]:
    """A model for each task; what does not depend on the task is learned once. Errors: as for `fit`."""
    method = spec.declared
    rows = rows.in_order()
    if rows.classes:
        return [_fit_classes(spec, replace(rows, task=None))] * len(tasks)
    rows.table.need_both_classes()
    encoder, rows = encoded(rows, seed=rows.seed) if method.takes("features") else (None, rows)
    models = [method.function(replace(rows, task=task), **spec.parameters) for task in tasks]
    return models if encoder is None else [Encoded(encoder, each) for each in models]


def _fit_classes(spec: MethodSpec, rows: Training) -> Model:
    """The model of rows of several classes, in canonical order."""
    function = spec.declared.of_classes
    seen = np.bincount(rows.label, rows.weights, len(rows.classes))
    if function is None or np.count_nonzero(seen) < 2:
        raise Undefined("needs rows of two classes at least")
    encoder = None
    if spec.declared.takes("features"):
        # What a category says is learned of the most frequent class against the rest.
        binary = replace(rows, label=(rows.label == np.argmax(seen)).astype(np.float64))
        encoder, binary = encoded(binary, seed=rows.seed)
        rows = replace(rows, features=binary.features)
    fitted = function(rows, **spec.parameters)
    return fitted if encoder is None else Encoded(encoder, fitted)


def method(
    *,
    title: str,
    kind: Kind,
    source: str,
    needs: tuple[Need, ...] = (),
    uses: tuple[Need, ...] = (),
    classes: Literal["two", "several"] = "two",
) -> Callable[[Callable[..., Model]], Callable[..., Model]]:
    """Declare the decorated function as a method, under its own name with dashes.

    The function takes a Training, in canonical order, with both classes, and what `needs` lists; its keyword-only
    parameters are the method's. It raises Undefined where it cannot be fitted, and is deterministic given the seed.
    classes: whether it is for rows of two classes or of several; `for_classes` adds the latter to a method of two.
    """

    def declare(function: Callable[..., Model]) -> Callable[..., Model]:
        METHODS.add(
            Method(
                name=function.__name__.replace("_", "-"),
                title=title,
                source=source,
                function=function,
                parameters=parameters_of(function),
                kind=kind,
                needs=needs,
                uses=uses,
                of_classes=function if classes == "several" else None,
                for_two=classes == "two",
            )
        )
        return function

    return declare


def for_classes(name: str) -> Callable[[Callable[..., Model]], Callable[..., Model]]:
    """Declare what a method of two classes does for rows of several; with its parameters."""

    def declare(function: Callable[..., Model]) -> Callable[..., Model]:
        METHODS[name] = replace(METHODS[name], of_classes=function)
        return function

    return declare
