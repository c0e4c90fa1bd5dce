"""How a metric is declared: one decorated function carries everything that is ever said about it.

The signature carries the parameters (keyword-only, annotated with their help text), the positional annotations say
what it needs (Table, Task, BinaryTask, Seed, Regions, Probed: see `inputs`), the docstring is the text the user reads.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, Literal, NamedTuple, TypeVar, get_type_hints

from decal_cli.declarations.document import Size
from decal_cli.declarations.spec import Declaration, Registry, parameters_of
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics.at_capacity import WorthAtCapacity
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.decisions import Change, Decisions
from decal_cli.metrics.gaps import central
from decal_cli.metrics.regret_cells import ClassRegrets, Regrets, ScoreRegrets
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.row_utilities import RowUtilities
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Floats
from decal_cli.tables.units import Estimate
from decal_cli.task import ClassDecision, Task

Side = Literal["at least", "at most"]
"""Of an interval one end of which alone says something: the other is the most, or least, that there can be."""


class Witness(NamedTuple):
    """Where a supremum over decision tasks is attained; payoffs in [0, 1].

    utility[i][j]: payoff of action i at outcome j, two actions for one threshold, three for two; of several classes any
    number of actions, and no thresholds. loss: what is lost in it; given as --utility, the metric shown_by shows that.
    of_two: the worst task of two actions, where this has three.
    """

    utility: tuple[tuple[float, ...], ...]
    thresholds: tuple[float, ...]
    loss: float
    shown_by: str
    of_two: Witness | None = None


class Within(NamedTuple):
    """Of a value from cells of the score. bound: how far it may be from that of the rows, 0 where it is exact. drawn:
    it rests on folds or draws of cells, and bound is of what they estimate.
    """

    bound: Size
    drawn: bool = False


@dataclass(frozen=True)
class Result:
    """A metric's value with its interval, or the reason why it is undefined; the task that attains a supremum.

    text: how the value is written where rounding it as usual would change what it means; empty elsewhere. within: of a
    value from cells of the score. no_interval: why there is no interval, where the metric has one on other rows. side:
    which end of the interval says something, where the other is but what the quantity can be.
    """

    value: float | None
    interval: Interval | None = None
    reason: str | None = None
    witness: Witness | None = None
    text: str = ""
    within: Within | None = None
    no_interval: str | None = None
    side: Side | None = None

    @property
    def missing(self) -> str | None:
        """Why the value, or its interval, is not there; None where nothing is missing."""
        return f"no interval: {self.no_interval}" if self.no_interval else self.reason


F = TypeVar("F", bound=Callable[..., float | Estimate])
Better = Literal["lower", "higher", "zero", "one", "neither"]
IntervalOf = Callable[..., Interval] | Literal["normal", "wilson", "bootstrap"] | None
"""A function that gives it, that of the estimate, or draws of the table."""
Unit = Literal[
    "probability", "squared probability", "nats", "utility", "share", "count", "z", "score", "slope", "p-value"
]


@dataclass(frozen=True, kw_only=True)
class Metric(Declaration):
    """A declared metric; everything decal says about it is read from here."""

    function: Callable[..., float | Estimate]
    family: str
    better: Better
    unit: Unit
    range: tuple[float, float]
    size_free: bool
    shown: bool
    interval_text: str
    covers: str
    interval: IntervalOf
    needs: tuple[type, ...]
    witness: Callable[..., Witness] | None = None
    loads: str = ""
    noisy: bool = False
    rarer: int = 0
    """Rows of the rarer label below which its interval holds the truth too seldom, so that there is none."""
    side: Side | None = None
    """Which end of its interval says something, where that is one."""
    slow: bool = False
    """Takes seconds: measured where it is named, or every metric is."""
    value_text: Callable[..., str] | None = None
    within_cells: tuple[Callable[..., float], bool] | None = None
    """How far its value from cells of the score may be from that of the rows, and whether it rests on draws besides."""
    of_classes: Metric | None = None
    """What it is for rows of several classes, where it is something else there."""
    of_rows: Metric | None = None
    """What it is where every row has utilities of its own, where it needs a task."""

    @property
    def bounds_in_u_delta(self) -> bool:
        """Whether the range is written in multiples of the task's u_delta."""
        return self.unit == "utility"

    def takes(self, classes: bool) -> bool:
        """Whether it has a meaning for rows of several classes, or for those of two."""
        of_several = bool({ClassTable, ClassRegrets} & set(self.needs))
        every = (Decisions, Regrets, Seed, WorthAtCapacity)
        of_any = all(kind in every or issubclass(kind, Change) for kind in self.needs)
        return (of_several or of_any or self.of_classes is not None) if classes else not of_several

    def form(self, classes: bool) -> Metric:
        """What is computed for rows of several classes, or for those of two."""
        return self.of_classes if classes and self.of_classes is not None else self

    def on(self, classes: bool, by_row: bool) -> Metric:
        """What is computed: for rows of several classes or of two; by_row: where every row has utilities of its own."""
        if by_row and self.takes_task and self.of_rows is not None:
            return self.of_rows
        return self.form(classes)

    @cached_property
    def smooth(self) -> bool:
        """Whether it returns an Estimate, which says what each unit adds."""
        return get_type_hints(self.function)["return"] is Estimate

    @property
    def pairs(self) -> bool:
        """Whether what each unit adds tells how two models differ: units of held-out folds are each model's own."""
        return self.smooth and not any(issubclass(kind, Change) for kind in self.needs)

    @property
    def takes_task(self) -> bool:
        """Whether the value depends on the decision."""
        return any(
            issubclass(kind, (Task, ClassDecision, Decisions, Change, Regrets, WorthAtCapacity)) for kind in self.needs
        )

    @property
    def shares_task(self) -> bool:
        """Whether it is for utilities that all rows share."""
        return any(issubclass(kind, (Task, ClassDecision, ScoreRegrets, ClassRegrets)) for kind in self.needs)

    @property
    def decides(self) -> bool:
        """Whether it depends on the decision, of all rows or of each row."""
        return self.takes_task or RowUtilities in self.needs

    def bounds(self, task: Task | ClassDecision | None) -> Interval:
        """The range in the units of the value."""
        unit = task.unit if self.bounds_in_u_delta and task is not None else 1.0
        return self.range[0] * unit, self.range[1] * unit

    @cached_property
    def interval_needs(self) -> tuple[type, ...]:
        """What its interval asks for, which may be more than the value does: a seed, to draw from it."""
        return _positional(self.interval) if callable(self.interval) else ()


METRICS: Registry[Metric] = Registry("metric", "ece(bins=20)")
"""Every declared metric by name, in the order of declaration."""


_family = [""]


def family(name: str) -> None:
    """The metrics that are declared from here on are of this family."""
    _family[0] = name


def metric(
    title: str,
    better: Better,
    unit: Unit,
    source: str,
    range: tuple[float, float] = (-math.inf, math.inf),
    *,
    size_free: bool = True,
    shown: bool = False,
    interval: IntervalOf = "bootstrap",
    interval_text: str = "",
    covers: str = intervals.POPULATION,
    witness: Callable[..., Witness] | None = None,
    loads: str = "",
    noisy: bool = False,
    rarer: int = 0,
    text: Callable[..., str] | None = None,
    side: Side | None = None,
) -> Callable[[F], F]:
    """Declare the decorated function as a metric.

    range is in multiples of u_delta where the unit is utility. size_free: doubling every row leaves the value as it
    is. shown: among the readable choice that a table prints unasked. interval: 'normal' or 'wilson', of a metric that
    returns an Estimate; a function that asks by annotation as the metric does and gets the metric's parameters and
    `confidence`; 'bootstrap'; or None. interval_text says in words how the interval is made; covers: what it is meant
    to hold, or why there is none. witness: a function of the metric's own arguments that gives the task at which a
    supremum is attained. loads: a heavy module that the metric imports late. noisy: above 0 by noise alone, the more so
    the better the model is calibrated, so that two models cannot be compared by a bootstrap of their difference.
    rarer: rows of the rarer label from which on there is an interval. text: a function of the metric's own arguments
    that writes the value, where rounding would change what it means. side: which end of the interval says something,
    where the other one is but what the quantity can be.
    """

    def declare(function: F) -> F:
        METRICS.add(
            Metric(
                name=function.__name__,
                title=title,
                source=source,
                function=function,
                parameters=parameters_of(function),
                family=_family[0],
                better=better,
                unit=unit,
                range=range,
                size_free=size_free,
                shown=shown,
                interval_text=(interval_text or _text_of(interval)) + _from(rarer),
                covers=covers,
                interval=interval,
                needs=_positional(function),
                witness=witness,
                loads=loads,
                noisy=noisy,
                rarer=rarer,
                value_text=text,
                side=side,
            )
        )
        return function

    return declare


def for_classes(
    name: str,
    *,
    interval: IntervalOf,
    range: tuple[float, float] | None = None,
    shown: bool | None = None,
    slow: bool = False,
    **texts: Any,
) -> Callable[[F], F]:
    """Declare what a metric of two classes is for rows of several; what is not given is as it is there.

    The function has the metric's parameters, and asks by annotation for a ClassTable. Its docstring is the sentence
    that users read of it.
    """

    def declare(function: F) -> F:
        form = _form(name, function, interval, range, **texts)
        shows = form.shown if shown is None else shown
        METRICS[name] = replace(METRICS[name], of_classes=replace(form, shown=shows, slow=slow))
        return function

    return declare


def for_rows(name: str, *, interval: IntervalOf, **texts: Any) -> Callable[[F], F]:
    """Declare what a metric that needs a task is where every row has utilities of its own, as `for_classes` does.

    The function asks by annotation for RowUtilities, and for what is held out by them.
    """

    def declare(function: F) -> F:
        METRICS[name] = replace(METRICS[name], of_rows=_form(name, function, interval, (-math.inf, math.inf), **texts))
        return function

    return declare


def _form(
    name: str,
    function: Callable[..., float | Estimate],
    interval: IntervalOf,
    range: tuple[float, float] | None,
    interval_text: str = "",
    covers: str = "",
    source: str = "",
    witness: Callable[..., Witness] | None = None,
) -> Metric:
    """What a declared metric is on other rows; what is not given is as it is on those it was declared for."""
    of_two = METRICS[name]
    return replace(
        of_two,
        function=function,
        range=range or of_two.range,
        interval=interval,
        interval_text=interval_text or (of_two.interval_text if interval else "none"),
        covers=covers or of_two.covers,
        needs=_positional(function),
        source=source or of_two.source,
        witness=witness,
        loads="",
        value_text=None,
    )


def like(name: str, title: str, source: str = "", **others: Any) -> Callable[[F], F]:
    """Declare the decorated function as a metric that is in all else as another one, which is declared before it."""
    of = METRICS[name]
    shared = ("better", "unit", "range", "size_free", "shown", "interval", "covers", "noisy", "rarer")
    given = {each: getattr(of, each) for each in shared}
    given["interval_text"] = of.interval_text.removesuffix(_from(of.rarer))
    return metric(title, source=source or of.source, **given | others)


Draws = Callable[..., Floats]


def null_of(name: str, title: str, source: str = "parametric bootstrap") -> Callable[[Draws], Callable[..., float]]:
    """Declare the value that chance alone gives a metric of a perfectly calibrated model: the mean of its draws.

    The decorated function gives the draws. The unit, and whether a table prints it unasked, are those of the metric,
    which is declared before it. Its interval is the central range of the draws.
    """

    def declare(draws: Draws) -> Callable[..., float]:
        @wraps(draws)
        def mean(*given: Any, **parameters: Any) -> float:
            return float(draws(*given, **parameters).mean())

        @wraps(draws)
        def interval(*given: Any, confidence: float, **parameters: Any) -> Interval:
            return central(draws(*given, **parameters), confidence)

        return computed_null_of(name, title, source, interval)(mean)

    return declare


def computed_null_of(
    name: str, title: str, source: str, interval: Callable[..., Interval], **texts: Any
) -> Callable[[F], F]:
    """The same where the mean is computed, not drawn: the decorated function gives it."""
    of = METRICS[name]
    texts = {
        "interval_text": f"central range of the {name} of a calibrated model",
        "covers": f"no quantity: the central range of {name} over samples of these scores from a perfectly calibrated "
        "model, of which a new sample's lies inside as often as the confidence says",
    } | texts
    return metric(
        title, "neither", of.unit, source, (0, 1), size_free=False, shown=of.shown, interval=interval, **texts
    )


def _from(rarer: int) -> str:
    return f"; none with fewer than {rarer} rows of the rarer label" if rarer else ""


def _text_of(interval: IntervalOf) -> str:
    """How the interval is made, where the declaration does not say it."""
    if callable(interval):
        return "analytic"
    return {
        "normal": "mean of a per-row payoff: normal, from its standard error",
        "wilson": "Wilson score interval",
        "bootstrap": "bias-corrected bootstrap of the table",
        None: "none",
    }[interval]


def _positional(function: Callable[..., Any]) -> tuple[type, ...]:
    """The annotations of a function's positional parameters."""
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    return tuple(hints[p.name] for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
