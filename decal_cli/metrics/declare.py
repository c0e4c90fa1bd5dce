"""How a metric is declared: one decorated function carries everything that is ever said about it.

The signature carries the parameters (keyword-only, annotated with their help text), the positional annotations say
what it needs (Table, BinaryTask, Regions, Probed, a random Generator), the docstring is the text the user reads.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_type_hints

import numpy as np

from decal_cli.crossfit.probe import Probed
from decal_cli.crossfit.regions import Regions
from decal_cli.errors import DecalError, Undefined
from decal_cli.metrics.confidence import Interval
from decal_cli.spec import Declared, Described, Given, Parameter, near, parameters_of, parse_call, written
from decal_cli.tables.table import Table
from decal_cli.task import BinaryTask, Matrix

Better = Literal["lower", "higher", "zero", "one", "neither"]
Unit = Literal[
    "probability", "squared probability", "nats", "utility", "share", "count", "z", "score", "slope", "p-value"
]

_FEATURES = "needs features: name the columns with --features"
NEEDS: dict[type, tuple[str, str]] = {
    Table: ("table", ""),
    BinaryTask: ("task", "needs a task: --threshold, --utility, --cost-fp/--cost-fn or --odds"),
    Regions: ("features", _FEATURES),
    Probed: ("features", _FEATURES),
    np.random.Generator: ("seed", ""),
}
"""What a metric may ask for by annotation: its name, and why it is undefined where the user did not give it."""


class Witness(NamedTuple):
    """Where a supremum over decision tasks is attained; payoffs in [0, 1].

    utility[i][j]: payoff of action i at outcome j, two actions for one threshold, three for two. pasted: the worst task
    of two actions, which --utility takes, and loss: what is lost in it, shown there by the metric shown_by.
    """

    utility: tuple[tuple[float, float], ...]
    thresholds: tuple[float, ...]
    pasted: Matrix
    loss: float
    shown_by: str


@dataclass(frozen=True)
class Metric(Described):
    """A declared metric; everything decal says about it is read from here."""

    name: str
    family: str
    title: str
    better: Better
    unit: Unit
    source: str
    range: tuple[float, float]
    size_free: bool
    shown: bool
    interval_text: str
    function: Callable[..., float]
    interval: Callable[..., Interval] | Literal["bootstrap"] | None
    needs: tuple[type, ...]
    parameters: tuple[Parameter, ...] = field(default=())
    witness: Callable[..., Witness] | None = None
    loads: str = ""
    noisy: bool = False

    @property
    def bounds_in_u_delta(self) -> bool:
        """Whether the range is written in multiples of the task's u_delta."""
        return self.unit == "utility"

    def arguments(self, inputs: Mapping[type, Any]) -> list[Any]:
        """The positional arguments out of what there is; Undefined names what the user did not give."""
        return _given(self.needs, inputs)

    def interval_arguments(self, inputs: Mapping[type, Any]) -> list[Any]:
        """The same for the interval, which may ask for more than the value does: to draw, a Generator."""
        return _given(self._interval_needs, inputs)

    def asks(self, need: type, intervals: bool) -> bool:
        """Whether the value, or with intervals the interval, asks for this."""
        return need in self.needs or (intervals and need in self._interval_needs)

    @cached_property
    def _interval_needs(self) -> tuple[type, ...]:
        return _positional(self.interval) if callable(self.interval) else ()


@dataclass(frozen=True)
class Choice:
    """A metric with its parameters: what `--metric` and gate rules name, and what a key of the JSON stands for."""

    metric: Metric
    given: Given = ()

    @cached_property
    def key(self) -> str:
        """The metric's name plus the parameters that differ from their defaults; parses back to this choice."""
        return written(self.metric.name, self.given)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Every parameter of the metric with its value; its interval and its witness get the same ones."""
        return {each.name: each.default for each in self.metric.parameters} | dict(self.given)

    def value(self, inputs: Mapping[type, Any]) -> float:
        """The metric's value; raises Undefined with its reason. Never NaN or infinite."""
        value = float(self.metric.function(*self.metric.arguments(inputs), **self.parameters))
        if not math.isfinite(value):
            raise Undefined("is not finite for this table")
        return value

    def interval(self, inputs: Mapping[type, Any], confidence: float) -> Interval | None:
        """The analytic interval where the metric declares one; None where it does not."""
        if not callable(self.metric.interval):
            return None
        try:
            low, high = self.metric.interval(
                *self.metric.interval_arguments(inputs), confidence=confidence, **self.parameters
            )
        except Undefined:
            return None
        return (float(low), float(high)) if math.isfinite(low) and math.isfinite(high) else None

    def witness(self, inputs: Mapping[type, Any]) -> Witness | None:
        """The task that attains the value, where the metric declares one and there is one."""
        if self.metric.witness is None:
            return None
        try:
            return self.metric.witness(*self.metric.arguments(inputs), **self.parameters)
        except Undefined:
            return None


METRICS: dict[str, Metric] = {}
"""Every declared metric by name, in the order of declaration."""


def metric(
    *,
    title: str,
    better: Better,
    unit: Unit,
    source: str,
    range: tuple[float, float] = (-math.inf, math.inf),
    size_free: bool = True,
    shown: bool = False,
    interval: Callable[..., Interval] | Literal["bootstrap"] | None = "bootstrap",
    interval_text: str = "",
    witness: Callable[..., Witness] | None = None,
    loads: str = "",
    noisy: bool = False,
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Declare the decorated function as a metric.

    range is in multiples of u_delta where the unit is utility. size_free: doubling every row leaves the value as it
    is. shown: among the readable choice that a table prints unasked. interval: a function that asks by annotation as
    the metric does and gets the metric's parameters and `confidence`, or 'bootstrap', or None; interval_text says in
    words how the interval is made. witness: a function of the metric's own arguments that gives the task at which a
    supremum is attained. loads: a heavy module that the metric imports late. noisy: above 0 by noise alone, the more
    so the better the model is calibrated, so that two models cannot be compared by a bootstrap of their difference.
    """

    def declare(function: Callable[..., float]) -> Callable[..., float]:
        name = function.__name__
        if name in METRICS:
            raise ValueError(f"metric {name} is declared twice")
        METRICS[name] = Metric(
            name=name,
            family=function.__module__.rpartition(".")[2],
            title=title,
            better=better,
            unit=unit,
            source=source,
            range=range,
            size_free=size_free,
            shown=shown,
            interval=interval,
            interval_text=interval_text or _INTERVAL_TEXTS.get(interval if not callable(interval) else "", "analytic"),
            function=function,
            needs=_positional(function),
            parameters=parameters_of(function),
            witness=witness,
            loads=loads,
            noisy=noisy,
        )
        return function

    return declare


_INTERVAL_TEXTS: dict[Any, str] = {
    "bootstrap": "bias-corrected bootstrap of the table",
    None: "none",
}


def _positional(function: Callable[..., Any]) -> tuple[type, ...]:
    """The annotations of a function's positional parameters."""
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    return tuple(hints[p.name] for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)


def _given(needs: tuple[type, ...], inputs: Mapping[type, Any]) -> list[Any]:
    for need in needs:
        if inputs.get(need) is None:
            raise Undefined(NEEDS[need][1])
    return [inputs[need] for need in needs]


def parse(text: str) -> Choice:
    """'ece(bins=20)' -> Choice; a DecalError names the near match or the parameters there are."""
    name, given = parse_call(text, "metric", "ece(bins=20)", _declared)
    return Choice(METRICS[name], given)


def _declared(name: str) -> Declared:
    return Declared(name, named(name).parameters)


def named(name: str) -> Metric:
    """The metric of this name, or a DecalError with the nearest names."""
    if name in METRICS:
        return METRICS[name]
    raise DecalError(f"there is no metric {name!r}", near(name, METRICS) or "`decal metrics` lists them all")
