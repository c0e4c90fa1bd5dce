"""How a metric is declared: one decorated function carries everything that is ever said about it.

The signature carries the parameters (keyword-only, annotated with their help text), the positional annotations say
what it needs (Table, Task, BinaryTask, Seed, Regions, Probed: see `inputs`), the docstring is the text the user reads.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, Literal, NamedTuple, TypeVar, get_type_hints

from decal_cli.declarations.document import Hidden, Size
from decal_cli.declarations.spec import Declaration, Registry, parameters_of
from decal_cli.metrics.at_capacity import WorthAtCapacity
from decal_cli.metrics.confidence import POPULATION, Interval, holding
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
"""Which end of an interval says something, where the other is only the most, or the least, that there can be."""


class WorstCaseTask(NamedTuple):
    """Where a supremum over decision tasks is attained; payoffs in [0, 1].

    utility[i][j]: payoff of action i at outcome j, two actions for one threshold, three for two; of several classes any
    number of actions, and no thresholds. loss: what is lost in it; given as --utility, the metric shown_by shows that.
    of_two: the worst task of two actions, where this has three.
    """

    utility: tuple[tuple[float, ...], ...]
    thresholds: tuple[float, ...]
    loss: float
    shown_by: str
    of_two: WorstCaseTask | None = None


class Within(NamedTuple):
    """How exact a value from cells of the score is. bound: how far it may be from that of the rows, 0 where it is
    exact. drawn: whether it rests on folds or draws of cells; the bound is then of what they estimate.
    """

    bound: Size
    drawn: bool = False


@dataclass(frozen=True)
class Result:
    """A metric's value with its interval; value null, and the reason, where it is undefined."""

    value: float | None
    interval: Interval | None = None
    reason: str | None = None
    worst_case_task: Hidden[WorstCaseTask | None] = None
    """The task that attains a supremum."""
    text: Hidden[str] = ""
    """How the value is written where rounding it as usual would change what it means; empty elsewhere."""
    within: Hidden[Within | None] = None
    """How exact a value from cells of the score is."""
    no_interval: Hidden[str | None] = None
    """Why there is no interval, where the metric has one on other rows."""
    side: Hidden[Side | None] = None
    """Which end of the interval says something, where the other is only what the quantity can be."""
    levels: Hidden[str] = ""
    """What levels=auto has taken; empty where that was not asked for."""

    @property
    def missing(self) -> str | None:
        """Why the value, or its interval, is not there; None where nothing is missing."""
        return f"no interval: {self.no_interval}" if self.no_interval else self.reason


T = TypeVar("T")


def known_values(results: Mapping[T, Result]) -> dict[T, float]:
    """The values of those that have one."""
    return {key: each.value for key, each in results.items() if each.value is not None}


F = TypeVar("F", bound=Callable[..., "float | Estimate | Measured"])
Better = Literal["lower", "higher", "zero", "one", "neither"]
IntervalOf = Callable[..., Interval] | Literal["normal", "wilson", "bootstrap", "own"] | None
"""How an interval is made: by a function, from the estimate, from draws of the table, or by the value itself."""
_HOW = {
    "normal": "mean of a per-row payoff: normal, from its standard error",
    "wilson": "Wilson score interval",
    "bootstrap": "bias-corrected bootstrap of the table",
    None: "none",
}
Unit = Literal[
    "probability", "squared probability", "nats", "utility", "share", "count", "z", "score", "slope", "p-value"
]


@dataclass(frozen=True)
class Measured:
    """A value that knows its interval, by the confidence and the seed."""

    value: float
    interval: Callable[[float, Seed], Interval]

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class Biased(Measured):
    """A value to which chance adds so much on average, by the confidence that it is not all noise, and the seed."""

    chance: Callable[[float, Seed], float]


@dataclass(frozen=True, kw_only=True)
class Metric(Declaration):
    """A declared metric; everything decal says about it is read from here."""

    home = "decal_cli.metrics"
    function: Callable[..., float | Estimate | Measured]
    family: str
    better: Better
    unit: Unit
    range: tuple[float, float] = (-math.inf, math.inf)
    """The range of the value, in multiples of u_delta where the unit is utility."""
    size_free: bool = True
    """Whether doubling every row leaves the value as it is."""
    shown: bool = False
    """Whether it is among the readable choice that a table prints unasked."""
    interval: IntervalOf = "bootstrap"
    """'normal' or 'wilson', of a metric that returns an Estimate; 'own', of one that returns a Measured; a function
    that asks by annotation as the metric does and gets the metric's parameters and `confidence`; 'bootstrap'; or
    None."""
    how: str = ""
    """How the interval is made."""
    estimand: str = POPULATION
    """What the interval is meant to hold, or why there is none."""
    needs: tuple[type, ...] = ()
    worst_case_task: Callable[..., WorstCaseTask] | None = None
    """A function of the metric's own arguments that gives the task at which a supremum is attained."""
    loads: str = ""
    """A heavy module that the metric imports late."""
    bootstraps: bool = True
    """Whether two models may be compared by a bootstrap of their difference: not where noise alone puts the metric
    above 0, the more so the better a model is calibrated, nor where it is a place at which a curve crosses."""
    rarer: int = 0
    """Rows of the rarer label below which there is no interval, because it would hold the truth too seldom."""
    side: Side | None = None
    """Which end of its interval says something, where the other one is only what the quantity can be."""
    slow: bool = False
    """Whether it takes seconds: it is then measured only where it, or every metric, is asked for."""
    value_text: Callable[..., str] | None = None
    """A function of the metric's own arguments that writes the value, where rounding would change what it means."""
    within_cells: tuple[Callable[..., float], bool] | None = None
    """Computes how far its value from cells of the score may be from that of rows; and whether it rests on draws."""
    of_classes: Metric | None = None
    """The metric for rows of several classes, where it is computed in another way there."""
    of_rows: Metric | None = None
    """The metric where every row has utilities of its own, where it is computed in another way there."""
    less_same: str = ""
    """The metric from which something is subtracted that is the same for all models, so that two differ by as much."""

    @property
    def interval_text(self) -> str:
        """How the interval is made, and when there is none."""
        fewer = self.rarer if self.interval else 0
        return self.how + (f"; none with fewer than {fewer} rows of the rarer label" if fewer else "")

    @property
    def bounds_in_u_delta(self) -> bool:
        """Whether the range is written in multiples of the task's u_delta."""
        return self.unit == "utility"

    def takes(self, classes: bool) -> bool:
        """Whether it has a meaning for rows of several classes, or for those of two."""
        of_several = self._asks(ClassTable, ClassRegrets)
        every = (Decisions, Regrets, Seed, WorthAtCapacity)
        of_any = all(kind in every or issubclass(kind, Change) for kind in self.needs)
        return (of_several or of_any or self.of_classes is not None) if classes else not of_several

    def form(self, classes: bool) -> Metric:
        """What is computed for rows of several classes, or for those of two."""
        return self.of_classes if classes and self.of_classes is not None else self

    def on(self, classes: bool, by_row: bool) -> Metric:
        """What is computed: for rows of several classes or of two; by_row: where every row has utilities of its own."""
        return self.of_rows if by_row and self.of_rows is not None else self.form(classes)

    def _asks(self, *kinds: type) -> bool:
        return any(issubclass(kind, kinds) for kind in self.needs)

    @cached_property
    def smooth(self) -> bool:
        """Whether it returns an Estimate, which says what each unit adds."""
        return get_type_hints(self.function)["return"] is Estimate

    @property
    def pairs(self) -> bool:
        """Whether what each unit adds tells how two models differ: units of held-out folds are each model's own."""
        return self.smooth and not self._asks(Change)

    @property
    def takes_task(self) -> bool:
        """Whether the value depends on the decision."""
        return self._asks(Task, ClassDecision, Decisions, Change, Regrets, WorthAtCapacity)

    @property
    def shares_task(self) -> bool:
        """Whether it is for utilities that all rows share."""
        return self._asks(Task, ClassDecision, ScoreRegrets, ClassRegrets)

    @property
    def decides(self) -> bool:
        """Whether it depends on the decision, of all rows or of each row."""
        return self.takes_task or self._asks(RowUtilities)

    def bounds(self, task: Task | ClassDecision | None) -> Interval:
        """The range in the units of the value."""
        unit = task.unit if self.bounds_in_u_delta and task is not None else 1.0
        return self.range[0] * unit, self.range[1] * unit

    @cached_property
    def interval_needs(self) -> tuple[type, ...]:
        """What its interval asks for, which may be more than the value does: a seed, to draw from it."""
        return _positional(self.interval) if callable(self.interval) else ()

    def like(self, function: Callable[..., Any], **others: Any) -> Metric:
        """This metric with another function and other fields. What only its own function has is dropped."""
        own = {"worst_case_task": None, "loads": "", "value_text": None, "needs": _positional(function)}
        return replace(self, function=function, **own | others)


METRICS: Registry[Metric] = Registry("metric", "ece(bins=20)")
"""Every declared metric by name, in the order of declaration."""
_family = [""]


FAMILIES: dict[str, str] = {}
"""What the metrics of each family say, in a sentence."""


def family(name: str, says: str | None) -> None:
    """The metrics that are declared from here on are of this family; says: begins with a line on what they say."""
    _family[0], FAMILIES[name] = name, (says or "").partition("\n")[0]


def metric(
    title: str,
    better: Better,
    unit: Unit,
    source: str,
    range: tuple[float, float] = (-math.inf, math.inf),
    **others: Any,
) -> Callable[[F], F]:
    """Declare the decorated function as a metric; others: fields of Metric.

    How the interval is made is said where it is none of the usual ones. A function that returns a Measured has that
    one's own interval.
    """
    declared = {"title": title, "better": better, "unit": unit, "source": source, "range": range, **others}

    def declare(function: F) -> F:
        needs, parameters = _positional(function), parameters_of(function)
        given = {"interval": _usual(function), **declared}
        given = {"name": function.__name__, "how": _HOW.get(given["interval"], "analytic"), **given}
        METRICS.add(Metric(function=function, parameters=parameters, family=_family[0], needs=needs, **given))
        return function

    return declare


def like(name: str, title: str, source: str = "", **others: Any) -> Callable[[F], F]:
    """Declare the decorated function as a metric that is in all else as another one, which is declared before it."""
    of = METRICS[name]

    def declare(function: F) -> F:
        new: dict[str, Any] = {"name": function.__name__, "title": title, "source": source or of.source}
        new |= {"family": _family[0], "parameters": parameters_of(function)}
        new |= {"side": None, "of_classes": None, "of_rows": None}
        new |= {"interval": "own"} if _usual(function) == "own" else {}
        METRICS.add(of.like(function, **new | others))
        return function

    return declare


def form_of(name: str, rows: Literal["of_classes", "of_rows"], **others: Any) -> Callable[[F], F]:
    """Declare what a metric is for rows of several classes, or where every row has utilities of its own.

    Fields that are not given are those of the metric. The function has the metric's parameters, and asks by annotation
    for such rows. Users read its docstring.
    """

    def declare(function: F) -> F:
        of_two = METRICS[name]
        how = of_two.how if others["interval"] else _HOW[None]
        form: dict[str, Any] = {rows: of_two.like(function, how=how, **others)}
        METRICS[name] = replace(of_two, **form)
        return function

    return declare


Draws = Callable[..., Floats]


def null_of(name: str, title: str, source: str = "parametric bootstrap") -> Callable[[Draws], Callable[..., Measured]]:
    """Declare the value that chance alone gives a metric of a perfectly calibrated model: the mean of its draws.

    The decorated function gives the draws. The unit, and whether a table prints it unasked, are those of the metric,
    which is declared before it. Its interval is the central range of the draws.
    """

    def declare(draws: Draws) -> Callable[..., Measured]:
        @wraps(draws)
        def mean(*given: Any, **parameters: Any) -> Measured:
            drawn = draws(*given, **parameters)
            value = float(drawn.mean())
            return Measured(value, lambda confidence, _: holding(central(drawn, confidence), value))

        return computed_null_of(name, title, source)(mean)

    return declare


def computed_null_of(name: str, title: str, source: str, **others: Any) -> Callable[[F], F]:
    """Declare the value that chance alone gives a metric of a perfectly calibrated model, where it is not drawn.

    The decorated function computes the mean. In all else this is as `null_of`.
    """
    of = METRICS[name]
    texts = {
        "how": f"central range of the {name} of a calibrated model",
        "estimand": f"no quantity: the central range of {name} over samples of these scores from a perfectly "
        "calibrated model, of which a new sample's lies inside as often as the confidence says",
    }
    given = {"size_free": False, "shown": of.shown, "interval": "own", "bootstraps": False, **texts, **others}
    return metric(title, "neither", of.unit, source, (0, 1), **given)


def _usual(function: Callable[..., Any]) -> IntervalOf:
    """The interval of a metric whose declaration names none."""
    return "own" if get_type_hints(function)["return"] is Measured else "bootstrap"


def _positional(function: Callable[..., Any]) -> tuple[type, ...]:
    """The annotations of a function's positional parameters."""
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    return tuple(hints[p.name] for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
