"""How a metric is declared: one decorated function carries everything that is ever said about it.

The signature carries the parameters (keyword-only, annotated with their help text), the positional annotations say
what it needs (Table, Task, Regions, a random Generator), the docstring is the text the user reads.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from decal_cli.errors import DecalError, Undefined
from decal_cli.regions import Regions
from decal_cli.table import Table
from decal_cli.task import Task

Better = Literal["lower", "higher", "zero", "one", "neither"]
Unit = Literal[
    "probability", "squared probability", "nats", "utility", "share", "count", "z", "score", "slope", "p-value"
]
Interval = tuple[float, float]

NEEDS: dict[type, tuple[str, str]] = {
    Table: ("table", ""),
    Task: ("task", "needs a task: --threshold, --utility, --cost-fp/--cost-fn or --odds"),
    Regions: ("features", "needs features: name the columns with --features"),
    np.random.Generator: ("seed", ""),
}
"""What a metric may ask for by annotation: its name, and why it is undefined where the user did not give it."""


class Between(NamedTuple):
    """The open interval that a parameter lies in; its default may lie on the end."""

    low: float
    high: float


ANY = Between(-math.inf, math.inf)
COUNT = Between(0, 100_001)
"""A number of bins."""


@dataclass(frozen=True)
class Parameter:
    """One keyword parameter of a metric, as the user writes it in 'ece(bins=20)'."""

    name: str
    default: Any
    kind: type
    choices: tuple[str, ...]
    text: str
    limits: Between = ANY

    def parse(self, text: str) -> Any:
        """The value that the user wrote, or a DecalError that lists what is possible."""
        if self.choices:
            if text in self.choices:
                return text
            raise DecalError(f"{self.name}={text} is not one of {', '.join(self.choices)}", "choose one of them")
        try:
            value = self.kind(text)
        except ValueError:
            raise DecalError(f"{self.name}={text} is not a number", f"give {self.text}") from None
        if value != self.default and not self.limits.low < value < self.limits.high:
            low, high = self.limits
            raise DecalError(f"{self.name}={text} is not between {low:g} and {high:g}", f"give {self.text}")
        return value


@dataclass(frozen=True)
class Metric:
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

    @property
    def summary(self) -> str:
        """The first docstring line: the sentence the user sees."""
        return self.text.splitlines()[0]

    @cached_property
    def text(self) -> str:
        """The whole docstring."""
        return inspect.getdoc(self.function) or ""

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

    @cached_property
    def _interval_needs(self) -> tuple[type, ...]:
        return _positional(self.interval) if callable(self.interval) else ()


@dataclass(frozen=True)
class Choice:
    """A metric with its parameters: what `--metric` and gate rules name, and what a key of the JSON stands for."""

    metric: Metric
    given: tuple[tuple[str, Any], ...] = ()

    @cached_property
    def key(self) -> str:
        """The metric's name plus the parameters that differ from their defaults; parses back to this choice."""
        if not self.given:
            return self.metric.name
        return f"{self.metric.name}({','.join(f'{name}={value}' for name, value in self.given)})"

    def value(self, inputs: Mapping[type, Any]) -> float:
        """The metric's value; raises Undefined with its reason. Never NaN or infinite."""
        value = float(self.metric.function(*self.metric.arguments(inputs), **dict(self.given)))
        if not math.isfinite(value):
            raise Undefined("is not finite for this table")
        return value

    def interval(self, inputs: Mapping[type, Any], confidence: float) -> Interval | None:
        """The analytic interval where the metric declares one; None where it does not."""
        if not callable(self.metric.interval):
            return None
        try:
            low, high = self.metric.interval(
                *self.metric.interval_arguments(inputs), confidence=confidence, **dict(self.given)
            )
        except Undefined:
            return None
        return (float(low), float(high)) if math.isfinite(low) and math.isfinite(high) else None


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
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Declare the decorated function as a metric.

    range is in multiples of u_delta where the unit is utility. size_free: doubling every row leaves the value as it
    is. shown: among the readable choice that a table prints unasked. interval: a function that asks by annotation as
    the metric does, with the metric's parameters and `confidence`, or 'bootstrap', or None; interval_text says in
    words how the interval is made.
    """

    def declare(function: Callable[..., float]) -> Callable[..., float]:
        name = function.__name__
        if name in METRICS:
            raise ValueError(f"metric {name} is declared twice")
        hints = get_type_hints(function, include_extras=True)
        signature = inspect.signature(function).parameters.values()
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
            parameters=tuple(_parameter(p, hints[p.name]) for p in signature if p.kind is p.KEYWORD_ONLY),
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


def _parameter(parameter: inspect.Parameter, hint: Any) -> Parameter:
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    text = next((note for note in notes if isinstance(note, str)), "")
    limits = next((note for note in notes if isinstance(note, Between)), ANY)
    return Parameter(parameter.name, parameter.default, str if choices else kind, choices, text, limits)


_CHOICE = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*(?:\((?P<arguments>[^()]*)\))?\s*")


def parse(text: str) -> Choice:
    """'ece(bins=20)' -> Choice; a DecalError names the near match or the parameters there are."""
    match = _CHOICE.fullmatch(text)
    if match is None:
        raise DecalError(f"metric {text!r} does not parse", "write a name, or name(parameter=value): 'ece(bins=20)'")
    metric = named(match["name"])
    known = {parameter.name: parameter for parameter in metric.parameters}
    given: dict[str, Any] = {}
    for part in filter(str.strip, (match["arguments"] or "").split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in known:
            listed = ", ".join(f"{p.name}={p.default}" for p in metric.parameters) or "none"
            raise DecalError(f"{metric.name} has no parameter {part.strip()!r}", f"its parameters: {listed}")
        if name in given:
            raise DecalError(f"{metric.name}: {name} is given twice", "keep one")
        given[name] = known[name].parse(value)
    differing = ((p.name, given[p.name]) for p in metric.parameters if p.name in given and given[p.name] != p.default)
    return Choice(metric, tuple(differing))


def named(name: str) -> Metric:
    """The metric of this name, or a DecalError with the nearest names."""
    if name in METRICS:
        return METRICS[name]
    raise DecalError(f"there is no metric {name!r}", near(name, METRICS) or "`decal metrics` lists them all")


def near(name: str, names: Sequence[str] | Mapping[str, Any]) -> str:
    """'did you mean ...?' for a name that is not among these; empty where none is close."""
    import difflib

    matches = difflib.get_close_matches(name, list(names), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(matches)}?" if matches else ""
