"""How a post-training method is declared, fitted, and judged on rows that it has not seen.

One decorated function carries everything that is ever said about a method. It maps training rows to a fitted model; a
fitted model is a frozen dataclass of plain numbers and arrays that maps new rows to new scores. That is all a model
file holds, and why it can be read by a person."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from decal_cli.data import Predictions
from decal_cli.declarations.defaults import SEED
from decal_cli.declarations.spec import Declaration, Registry, Spec, parameters_of
from decal_cli.errors import Undefined
from decal_cli.hints import NEEDS_FEATURES, NEEDS_TASK, Hint, said
from decal_cli.learn.encoding import CategoryColumn, Encoder, TextColumn, encoded
from decal_cli.learn.probe import WIDENED
from decal_cli.tables.classes import best_actions
from decal_cli.tables.estimate import MeanEstimate
from decal_cli.tables.features import Matrix
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Rows, Unlabelled
from decal_cli.tables.table import FEWEST_ROWS, Floats, Ints
from decal_cli.tables.units import mean_over
from decal_cli.task import BinaryTask, ClassDecision, Task

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
    return values.ndim == 1 and bool(((values >= first) & (values < count)).all())


T = TypeVar("T")
NO_FEATURES = "needs the features that the model was fitted with"
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
        return best_actions(score, np.array(task.utility))
    return np.searchsorted(task.thresholds if at_best else task.decision_thresholds, score, side="right")


def payoffs(task: Task | ClassDecision) -> Floats:
    """The utility of every action that is ever taken, at each label, shape (A, K)."""
    return np.array(task.undominated)


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


def _in_files(cls: type) -> None:
    SAVED_AS[cls] = getattr(cls, "SAVED_AS", cls.__name__)
    MODELS[SAVED_AS[cls]] = cls


_in_files(CategoryColumn)
_in_files(TextColumn)
_in_files(Encoder)


@dataclass_transform(frozen_default=True, eq_default=False)
def model(cls: M) -> M:
    """Declare a class of fitted models: a frozen dataclass, whose `_check` refuses, with a ValueError, what is none.

    Model files name it as it is called, or by its SAVED_AS.
    """
    if hasattr(cls, "_check"):
        cls.__post_init__ = cls._check  # type: ignore[attr-defined]
    dataclass(frozen=True, eq=False)(cls)
    _in_files(cls)
    return cls


@model
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
METHODS: Registry[Method] = Registry("method", "platt(on=p)", sigmoid="platt", boosting="stack-boosting")
"""Every declared method by name, in the order of declaration; scikit-learn's users know some by other names."""


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
        encoder, rows = encoded(rows, seed=rows.seed)
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


def features_of(rows: Unlabelled) -> Matrix:
    """The features of rows as numbers, shape (T, d), NaN where missing. Errors: Undefined, where there are none."""
    if rows.features is None:
        raise Undefined(NO_FEATURES)
    return rows.matrix


@dataclass(frozen=True, eq=False)
class Performance:
    """How a method does on rows, each scored by a model that has not seen it; rows as they were given.

    gain: utility per decision won over acting on the score as it is, and its error; None without a task. seconds:
    processor time of all fits.
    """

    chosen: MethodSpec
    applied: Applied
    gain: MeanEstimate | None
    seconds: float


def try_out(spec: MethodSpec, rows: Training) -> Performance:
    """Cross-fit a method. Errors: Undefined, where there are too few rows or a part of them cannot be fitted."""
    before = time.process_time()
    columns: dict[str, Floats] = {}
    for here, model, _ in fitted_folds(spec, rows):
        for name, values in model(rows.take(here))._asdict().items():
            if values is not None:
                columns.setdefault(name, np.empty((len(rows), *values.shape[1:])))[here] = values
    applied = Applied(**columns)
    seconds = time.process_time() - before
    return Performance(spec, applied, _gain(applied, rows, WIDENED), seconds)


class Predicting(NamedTuple):
    """A method and its loss on held-out rows."""

    chosen: MethodSpec
    loss: float


Loss = Callable[[MethodSpec, Applied], float]


def compared(specs: Sequence[MethodSpec], rows: Training, loss: Loss) -> list[Predicting]:
    """Methods that can be fitted, by the loss of what they say of held-out rows, the lowest first."""
    results = []
    for spec in specs:
        try:
            results.append(Predicting(spec, loss(spec, try_out(spec, rows).applied)))
        except Undefined:
            continue
    return sorted(results, key=lambda each: each.loss)


def brier_score(applied: Applied, rows: Training) -> float:
    """Of scores of two classes."""
    return float(np.average((applied.score - rows.label) ** 2, weights=rows.weights))


def folds_of(rows: Training) -> Ints:
    """The fold that each row is held out in when a method is tried, shape (T,)."""
    fold = np.empty(len(rows), dtype=np.int64)
    fold[rows.order] = rows.take(rows.order).places(rows.generator(FOLDS)) % FOLDS
    return fold


def fitted_folds(spec: MethodSpec, rows: Training) -> Iterator[tuple[NDArray[np.bool_], Model, Training]]:
    """Each fold as a mask of the rows, with the model that the other folds fit, and these."""
    if len(rows) < 2 * FEWEST_ROWS:
        raise Undefined(f"needs at least {2 * FEWEST_ROWS} rows to learn from some and judge on others")
    fold = folds_of(rows)
    for k in range(FOLDS):
        here = fold == k
        others = rows.take(~here)
        yield here, fit(spec, others), others


def judge(spec: MethodSpec, model: Model, rows: Training) -> Performance:
    """A fitted model on rows that it has not seen."""
    applied = model(rows)
    return Performance(spec, applied, _gain(applied, rows, 1.0), 0.0)


def _gain(applied: Applied, rows: Training, widened: float) -> MeanEstimate | None:
    task = rows.decided_by
    return None if task is None else won(applied.acts(task), rows, task, widened)


def won(acts: NDArray[Any], rows: Training, task: Task | ClassDecision, widened: float = 1.0) -> MeanEstimate:
    """Utility per decision of these decisions less that of acting on the score as it is, and its paired error."""
    return won_over(acts, actions_taken(rows.score, task), rows, task, widened)


def won_over(
    acts: NDArray[Any], others: NDArray[Any], rows: Training, task: Task | ClassDecision, widened: float = WIDENED
) -> MeanEstimate:
    """Utility per decision of some decisions less that of others on the same rows, and its paired error."""
    if isinstance(task, BinaryTask):
        gain = task.u_delta * (acts.astype(np.float64) - others) * (rows.label - task.threshold)
    else:
        utility, label = payoffs(task), rows.label.astype(np.int64)
        gain = utility[acts, label] - utility[others, label]
    mean, error = mean_over(gain, rows.weights, rows.unit)
    return MeanEstimate(mean, widened * error)


def training_rows(model: Predictions, task: Task | ClassDecision | None, seed: int) -> Training:
    """A model's rows as methods take them."""
    rows = model.rows
    binary = task.two_actions if isinstance(task, Task) else None
    return Training(
        rows.score,
        rows.label if rows.classes else rows.label.astype(np.float64),
        rows.weight,
        rows.cluster,
        groups=rows.groups,
        amounts=rows.amounts,
        features=None if rows.features is None else rows.typed,
        classes=rows.classes,
        task=binary,
        decision=task if binary is None else None,
        seed=seed,
        feature_names=model.feature_names,
    )


def new_name(score: str, spec: MethodSpec) -> str:
    """What the post-trained score is called: 'p_isotonic' of 'p'."""
    return f"{score}_{spec.name.replace('-', '_')}"


THRESHOLD, DECISION = "threshold_", "decision_"
"""How columns begin that hold each row's threshold and its decision."""


def added_columns(applied: Applied, score: str, name: str, classes: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
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
    """The same rows under the new score."""
    return replace(model, name=name, columns=(name,), rows=replace(model.rows, score=applied.score))
