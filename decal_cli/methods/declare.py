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

from decal_cli.crossfit.regions import Regions
from decal_cli.defaults import SEED
from decal_cli.errors import DecalError, Undefined
from decal_cli.metrics.declare import NEEDS as METRIC_NEEDS
from decal_cli.spec import Declared, Described, Given, Parameter, near, parameters_of, parse_call, written
from decal_cli.tables.rows import Rows, Unlabelled
from decal_cli.tables.table import Floats
from decal_cli.task import BinaryTask

T = TypeVar("T")
Kind = Literal["recalibration", "post-training"]
"""What a method costs to run and to keep: a function of the score, or a model on the features."""
Need = Literal["features", "groups", "task"]
NEEDS: dict[Need, str] = {
    "features": METRIC_NEEDS[Regions][1],
    "groups": "needs groups: name the columns with --group",
    "task": METRIC_NEEDS[BinaryTask][1],
}
"""What a method may need beyond scores and labels, and what is said where the user did not give it."""


@dataclass(frozen=True, eq=False)
class Training(Rows):
    """Rows that a method learns from, with labels as float64, and the task and seed it learns with."""

    task: BinaryTask | None = field(default=None, kw_only=True)
    seed: int = field(default=SEED, kw_only=True)
    kept: dict[object, Any] = field(default_factory=dict, repr=False, kw_only=True)
    """What was computed of these rows, whatever the task: see `once`."""

    def lacks(self, need: Need) -> bool:
        """Whether the user did not give this."""
        return not self.groups if need == "groups" else getattr(self, need) is None

    def once(self, key: object, compute: Callable[[], T]) -> T:
        """compute(), kept under this key for these rows and whatever task they are given next."""
        if key not in self.kept:
            self.kept[key] = compute()
        return self.kept[key]

    def generator(self, *purpose: int) -> np.random.Generator:
        """Random numbers for one purpose."""
        return np.random.default_rng([self.seed, *purpose])

    def _cut(self, which: NDArray[Any]) -> dict[str, Any]:
        return super()._cut(which) | {"kept": {}}


class Applied(NamedTuple):
    """What a fitted model says of rows, shape (T,) each.

    score: in [0, 1]. threshold: the score from which to decide 1 in place of t*, for models that move the threshold
    and leave the score. lower, upper: an interval of the probability, for models that have one.
    """

    score: Floats
    threshold: Floats | None = None
    lower: Floats | None = None
    upper: Floats | None = None

    def acts(self, task: BinaryTask) -> NDArray[np.bool_]:
        """Decisions: 1 from t*, or from the model's own thresholds, upwards."""
        return self.score >= (task.threshold if self.threshold is None else self.threshold)


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


def model(cls: M) -> M:
    """Declare a class of fitted models; model files name it."""
    MODELS[cls.__name__] = cls
    return cls


@dataclass(frozen=True)
class Method(Described):
    """A declared method; everything decal says about it is read from here.

    needs: what it cannot do without; uses: what it takes as well where the user gave it.
    """

    name: str
    title: str
    kind: Kind
    needs: tuple[Need, ...]
    uses: tuple[Need, ...]
    source: str
    function: Callable[..., Model]
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class Chosen:
    """A method with its parameters, as a user names it: 'platt(on=p)'."""

    method: Method
    given: Given = ()

    @property
    def key(self) -> str:
        """The name plus the parameters that differ from their defaults; parses back to this."""
        return written(self.method.name, self.given)

    def missing(self, rows: Training) -> str | None:
        """Why the method cannot be fitted to what the user gave; None where it can."""
        return next((NEEDS[need] for need in self.method.needs if rows.lacks(need)), None)

    def fit_each(self, rows: Training, tasks: Sequence[BinaryTask]) -> list[Model]:
        """A model for each task; what does not depend on the task is learned once. Errors: as for `fit`."""
        rows = rows.in_order()
        rows.table.need_both_classes()
        return [self.method.function(replace(rows, task=task), **dict(self.given)) for task in tasks]

    def fit(self, rows: Training) -> Model:
        """The fitted model. Errors: Undefined, where the rows do not allow it."""
        missing = self.missing(rows)
        if missing is not None:
            raise Undefined(missing)
        rows = rows.in_order()
        rows.table.need_both_classes()
        return self.method.function(rows, **dict(self.given))


METHODS: dict[str, Method] = {}
"""Every declared method by name, in the order of declaration."""


def method(
    *, title: str, kind: Kind, source: str, needs: tuple[Need, ...] = (), uses: tuple[Need, ...] = ()
) -> Callable[[Callable[..., Model]], Callable[..., Model]]:
    """Declare the decorated function as a method, under its own name with dashes.

    The function takes a Training, in canonical order, with both classes, and what `needs` lists; its keyword-only
    parameters are the method's. It raises Undefined where it cannot be fitted, and is deterministic given the seed.
    """

    def declare(function: Callable[..., Model]) -> Callable[..., Model]:
        name = function.__name__.replace("_", "-")
        METHODS[name] = Method(name, title, kind, needs, uses, source, function, parameters_of(function))
        return function

    return declare


def named(name: str) -> Method:
    """The method of this name, or a DecalError with the nearest names."""
    if name in METHODS:
        return METHODS[name]
    raise DecalError(f"there is no method {name!r}", near(name, METHODS) or "`decal methods` lists them all")


def parse(text: str) -> Chosen:
    """'platt(on=p)' -> Chosen; a DecalError names the near match or the parameters there are."""
    name, given = parse_call(text, "method", "platt(on=p)", lambda wanted: Declared(wanted, named(wanted).parameters))
    return Chosen(METHODS[name], given)
