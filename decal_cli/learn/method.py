"""How a post-training method is declared, fitted, and judged on rows that it has not seen.

One decorated function carries everything that is ever said about a method. It maps training rows to a fitted model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from decal_cli.data import Predictions
from decal_cli.declarations.defaults import SEED
from decal_cli.declarations.spec import Declaration, Registry, Spec, parameters_of
from decal_cli.errors import Undefined
from decal_cli.hints import NEEDS_FEATURES, NEEDS_TASK, Hint, said
from decal_cli.learn.encoding import Encoded, encoded
from decal_cli.learn.held_out import too_few
from decal_cli.learn.models import Applied, Model
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import FEWEST_ROWS, Ints, Mask
from decal_cli.task import BinaryTask, Decision, Task

T = TypeVar("T")
Kind = Literal["recalibration", "post-training"]
"""What a method costs to run and to keep: a function of the score, or a model on the features."""
Need = Literal["features", "groups", "task"]
NEEDS: dict[Need, str] = {
    "features": NEEDS_FEATURES,
    "groups": f"needs groups: name the columns with {Hint('group')}",
    "task": NEEDS_TASK,
}
"""What a method may need beyond scores and labels, and what is said where the user did not give it."""


@dataclass(frozen=True, eq=False)
class Training(Rows):
    """Rows that a method learns from, and the task and seed it learns with; labels of two classes are float64.

    feature_names: of the columns of features as the user has them; empty where they have none.
    """

    task: Decision | None = field(default=None, kw_only=True)
    """What decisions are judged by; a BinaryTask where it has two actions."""
    seed: int = field(default=SEED, kw_only=True)
    feature_names: tuple[str, ...] = field(default=(), kw_only=True)
    cache: dict[object, Any] = field(default_factory=dict, repr=False, kw_only=True)
    """What was computed from these rows for any task: see `cached`."""

    @property
    def binary(self) -> BinaryTask | None:
        """The task, where it has two actions."""
        return self.task if isinstance(self.task, BinaryTask) else None

    def lacks(self, need: Need) -> bool:
        """Whether the user did not give this."""
        return not {"groups": self.groups, "task": self.binary, "features": self.has_features}[need]

    def cached(self, key: object, compute: Callable[[], T]) -> T:
        """compute(), computed once under this key for these rows, and shared by all tasks."""
        if key not in self.cache:
            self.cache[key] = compute()
        return self.cache[key]

    def generator(self, *purpose: int) -> np.random.Generator:
        """Random numbers for one purpose."""
        return np.random.default_rng([self.seed, *purpose])

    def take(self, which: NDArray[Any]) -> Self:
        return super(Training, replace(self, cache={})).take(which)


@dataclass(frozen=True, kw_only=True)
class Method(Declaration):
    """A declared method; everything decal says about it is read from here.

    needs: what it cannot do without; uses: what it takes as well where the user gave it. for_two, of_classes: whether
    it is for rows of two classes, and for those of several.
    """

    home = "decal_cli.learn.methods"
    function: Callable[..., Model]
    for_two: bool = True
    of_classes: bool = False
    kind: Kind
    needs: tuple[Need, ...]
    uses: tuple[Need, ...]

    def takes(self, what: Need) -> bool:
        """Whether it looks at this, if the user gave it."""
        return what in self.needs or what in self.uses


MethodSpec = Spec[Method]
METHODS: Registry[Method] = Registry("method", "platt(on=p)", sigmoid="platt", boosting="stack-boosting")
"""Every declared method by name, in the order of declaration; scikit-learn's users know some by other names."""


def missing(spec: MethodSpec, rows: Training) -> str:
    """Why the method cannot be fitted to what the user gave; "" where it can."""
    if rows.classes and not spec.declared.of_classes:
        return "is for scores of two classes"
    if not rows.classes and not spec.declared.for_two:
        return f"is for several classes: name their columns with {Hint('proba').words}"
    return next((said(NEEDS[need]) for need in spec.declared.needs if rows.lacks(need)), "")


def fit(spec: MethodSpec, rows: Training) -> Model:
    """The fitted model. Errors: Undefined, where the rows do not allow it."""
    if reason := missing(spec, rows):
        raise Undefined(reason)
    return fit_each(spec, rows, [rows.binary])[0]


def fit_each(spec: MethodSpec, rows: Training, tasks: Sequence[BinaryTask | None]) -> list[Model]:
    """A model for each task; what does not depend on the task is learned once. Errors: as for `fit`."""
    method = spec.declared
    rows = rows.in_order()
    if not rows.classes:
        rows.table.need_both_classes()
    elif np.count_nonzero(np.bincount(rows.label, rows.weights)) < 2:
        raise Undefined("needs rows of two classes at least")
    encoder, rows = encoded(rows, seed=rows.seed) if method.takes("features") else (None, rows)
    each = [None] if rows.classes else tasks
    models = [method.function(replace(rows, task=task), **spec.parameters) for task in each]
    models = [Encoded(encoder, fitted) for fitted in models] if encoder else models
    return models * len(tasks) if rows.classes else models


def method(
    *,
    title: str,
    kind: Kind,
    source: str,
    needs: tuple[Need, ...] = (),
    uses: tuple[Need, ...] = (),
    classes: Literal["two", "several", "any"] = "two",
) -> Callable[[Callable[..., Model]], Callable[..., Model]]:
    """Declare the decorated function as a method, under its own name with dashes.

    The function takes a Training, in canonical order, with both classes, and what `needs` lists; its keyword-only
    parameters are the method's. It raises Undefined where it cannot be fitted, and is deterministic given the seed.
    classes: the kind of rows that it is for; where that is any, the function asks `rows.classes`.
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
                for_two=classes != "several",
                of_classes=classes != "two",
            )
        )
        return function

    return declare


@dataclass(frozen=True, eq=False)
class Performance:
    """What a method says of rows, each scored by a model that has not seen it; `rows.judged` as they were given.

    seconds: processor time of all fits.
    """

    chosen: MethodSpec
    applied: Applied
    seconds: float = 0.0


def try_out(spec: MethodSpec, rows: Training) -> Performance:
    """The performance of a cross-fitted method on `rows.judged`.

    Errors: Undefined, where there are too few rows or a part of them cannot be fitted.
    """
    before = time.process_time()
    folds = [(np.flatnonzero(here), model(rows.take(here))) for here, model, _ in fitted_folds(spec, rows)]
    order = np.argsort(np.concatenate([here for here, _ in folds]))
    columns = zip(*(applied for _, applied in folds), strict=True)
    each: list[Any] = [None if values[0] is None else np.concatenate(values)[order] for values in columns]
    return Performance(spec, Applied(*each), time.process_time() - before)


def folds_of(rows: Training) -> Ints:
    """The fold that each row is held out in when a method is tried, shape (T,); rows with a time: their block."""
    if rows.in_time:
        return rows.block
    fold = np.empty(len(rows), dtype=np.int64)
    fold[rows.order] = rows.take(rows.order).folds(rows.generator(FOLDS))
    return fold


def fitted_folds(spec: MethodSpec, rows: Training) -> Iterator[tuple[Mask, Model, Training]]:
    """Each fold as a mask of rows, the model fitted to the other folds, or to earlier blocks of time, and its rows."""
    if len(rows) < 2 * FEWEST_ROWS:
        raise too_few(2 * FEWEST_ROWS)
    fold = folds_of(rows)
    for k in range(int(rows.in_time), int(fold.max()) + 1):
        others = rows.take(fold < k if rows.in_time else fold != k)
        yield fold == k, fit(spec, others), others


def training_rows(model: Predictions, task: Decision | None, seed: int) -> Training:
    """A model's rows as methods take them."""
    rows = model.rows
    binary = task.two_actions if isinstance(task, Task) else None
    return Training(
        rows.score,
        rows.label if rows.classes else rows.label.astype(np.float64),
        rows.weight,
        rows.cluster,
        rows.period,
        groups=rows.groups,
        amounts=rows.amounts,
        features=rows.typed if rows.has_features else None,
        time=rows.time,
        classes=rows.classes,
        task=binary or task,
        seed=seed,
        feature_names=model.feature_names,
    )


def new_name(score: str, spec: MethodSpec) -> str:
    """What the post-trained score is called: 'p_isotonic' of 'p'."""
    return f"{score}_{spec.name.replace('-', '_')}"


THRESHOLD, DECISION = "threshold_", "decision_"
"""How columns begin that hold each row's threshold and its decision."""


def added_columns(applied: Applied, score: str, name: str, classes: Sequence[str]) -> dict[str, NDArray[Any]]:
    """What scoring rows adds to them: the new score and the ends of its interval, or the moved threshold and decisions.

    score: the old score's column; name: the new one's. All but scores are named by what they are first, so that 'p_*'
    takes none of them for a score. classes: where there are several, each has a column 'name:class'.
    """
    if classes:
        return {f"{name}:{each}": applied.score[:, k] for k, each in enumerate(classes)}
    if applied.threshold is not None:
        acts = (applied.score >= applied.threshold).astype(np.uint8)
        return {f"{THRESHOLD}{score}": applied.threshold, f"{DECISION}{score}": acts}
    ends = {f"lower_{name}": applied.lower, f"upper_{name}": applied.upper}
    return {name: applied.score} | {key: values for key, values in ends.items() if values is not None}


def with_score(model: Predictions, applied: Applied, name: str) -> Predictions:
    """The model's rows with the new score in place of the old one."""
    return replace(model, name=name, columns=(name,), rows=replace(model.rows, score=applied.score))
