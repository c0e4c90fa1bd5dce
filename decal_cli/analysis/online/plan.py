"""Which labels are known when: rows in time order, whose labels come in after a delay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

import numpy as np

from decal_cli.data import Clock
from decal_cli.data.times import MAX_NS, NS_PER_DAY
from decal_cli.declarations.defaults import CONFIDENCE, SEED, WARM_UP
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_ROWS_OVER_TIME
from decal_cli.numbers import many
from decal_cli.sequential import ONLINE, OnlineSpec, parse
from decal_cli.tables.table import Ints, Values
from decal_cli.task import BinaryTask


def known_after_rows(rows: int, delay: int) -> Ints:
    """How many first labels are known before each row, shape (T,), where a label comes in after `delay` more rows."""
    return np.maximum(np.arange(rows, dtype=int) - delay, 0)


def known_after_time(time: Values, delay: float) -> Ints:
    """How many first labels are known before each row, shape (T,), where labels come `delay` after their row.

    delay: in units of `time`, int64 or float64 (T,), which never decreases.

    Rows of one time are all predicted before a label of them is known. Without a delay, a label is known at any later
    time.
    """
    if time.dtype.kind == "i":
        # Nothing is earlier than the first time that can be told.
        time_then = np.maximum(time, np.iinfo(time.dtype).min + int(delay)) - int(delay)
    else:
        time_then = time - delay
    known = np.searchsorted(time, time_then, side="right" if delay else "left")
    return np.asarray(known, dtype=int)


def known_after_arrival(time: Values, arrival: Values) -> Ints:
    """How many first labels are known before each row, shape (T,), where `arrival`, (T,), says when each came in.

    A label that comes in before an earlier row's label waits for that one.

    A label is known at the time at which it came in, though never at the time of its own row.
    """
    came = np.searchsorted(np.maximum.accumulate(arrival), time, side="right")
    return np.minimum(came, np.searchsorted(time, time, side="left")).astype(int)


AS_IT_IS, BASE_RATE, FROZEN = "as-it-is", "running-mean", "frozen-isotonic"
"""What others are compared with: the score itself, and without a score the base rate; and what warm-up rows teach."""
MAX_WINDOWS = 24
"""Windows that are chosen unasked."""
MIN_WARM_UP, MAX_WARM_UP = 2, 1_000_000
CALENDAR: dict[str, str] = {"hour": "h", "day": "D", "week": "W", "month": "M", "quarter": "M", "year": "Y"}
"""Periods of the calendar, from the shortest, and the unit of numpy that each is made of."""
_UNITS = {"s": 1 / 86_400, "m": 1 / 1440, "h": 1 / 24, "d": 1.0, "w": 7.0}
"""Days by the first letter of a unit."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w|(?:second|minute|hour|day|week)s?)")
_MONDAY = 3
"""Days from the Thursday that 1970 began with back to a Monday."""


@dataclass(frozen=True)
class Delay:
    """When the label of a row becomes known: after so many rows or nanoseconds, or when a column says.

    text: as the user writes it.
    """

    text: str = "0"
    kind: Literal["rows", "time", "column"] = "rows"
    amount: int = 0

    @classmethod
    def parse(cls, given: int | str | timedelta) -> Delay:
        """500 rows, a time or '7d' ('7 days'; s, min, h, d, w), or the name of a column."""
        if isinstance(given, timedelta):
            whole = given == timedelta(given.days)
            text = f"{given.days}d" if whole else f"{np.format_float_positional(given.total_seconds(), trim='-')}s"
        else:
            text = str(given).strip()
        if re.fullmatch(r"\d{1,12}", text):
            return cls(text, "rows", int(text))
        if duration := _DURATION.fullmatch(text):
            return cls(text, "time", min(round(float(duration[1]) * _UNITS[duration[2][0]] * NS_PER_DAY), MAX_NS))
        if not text or re.fullmatch(r"[-+]?[\d.]+\D{0,3}", text):
            raise DecalError(
                f"{Hint('delay', text)} is no delay", "give rows, such as 500, or a time, such as 7d, or a column"
            )
        return cls(text, "column")

    @property
    def late(self) -> bool:
        """Whether labels come in later than at the next row, or the next time."""
        return self.kind == "column" or self.amount > 0

    @property
    def column(self) -> str:
        """The column that says when labels came in; "" where none does."""
        return self.text if self.kind == "column" else ""

    def known(self, time: Values, arrival: Values, clock: Clock) -> Ints:
        """How many of the first labels are known before each row, shape (T,); arrival: when the labels came in."""
        if self.kind == "time":
            return known_after_time(time, self.amount)
        if self.kind == "column":
            return known_after_arrival(time, arrival)
        known = known_after_rows(len(time), self.amount)
        return known if clock == "rows" else np.minimum(known, known_after_time(time, 0))


@dataclass(frozen=True)
class Period:
    """How rows are cut into windows: by a period of the calendar, or by so many rows."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Period:
        """'month' or '1000'."""
        text = text.strip().lower()
        if text in CALENDAR or (re.fullmatch(r"\d{1,12}", text) and int(text) > 0):
            return cls(text)
        raise DecalError(
            f"{Hint('every', text)} is no window", f"give {', '.join(CALENDAR)}, or a number of rows such as 1000"
        )

    @property
    def rows(self) -> int | None:
        """So many rows; None for a period of the calendar."""
        return None if self.text in CALENDAR else int(self.text)

    def places(self, time: Values, first: int) -> Ints:
        """The number of the window of each row, shape (T,); first: the number of the first of them in the stream."""
        if self.rows is not None:
            return np.arange(first, first + len(time)) // self.rows
        if self.text == "week":
            return (time // NS_PER_DAY + _MONDAY) // 7
        places = time.astype("datetime64[ns]").astype(f"datetime64[{CALENDAR[self.text]}]").astype(int)
        return places // 3 if self.text == "quarter" else places

    def name(self, place: int, rows: int) -> str:
        """What a window of so many rows is called."""
        if self.rows is not None:
            first = place * self.rows
            return f"{first + 1:,}–{first + rows:,}"
        if self.text == "week":
            return str(np.datetime64(7 * place - _MONDAY, "D"))
        if self.text == "quarter":
            return f"{1970 + place // 4} Q{place % 4 + 1}"
        start = np.array([place]).astype(f"datetime64[{CALENDAR[self.text]}]")[0]
        return str(start).replace("T", " ")


@dataclass(frozen=True)
class OnlinePlan:
    """What a replay does, all of which its state holds.

    methods: the first is what the others are compared with. score, time, group, cluster: columns, None where there is
    none; inside each group every forecaster runs on its own. logit: whether scores are log-odds. horizon: how many rows
    there will be; None where that is not known.
    """

    task: BinaryTask
    methods: tuple[OnlineSpec, ...]
    clock: Clock
    score: str | None = None
    time: str | None = None
    group: str | None = None
    cluster: str | None = None
    logit: bool = False
    delay: Delay = Delay()
    every: Period = Period("1000")
    warm_up: int = WARM_UP
    horizon: int | None = None
    seed: int = SEED
    confidence: float = CONFIDENCE

    @property
    def alpha(self) -> float:
        """The chance of a false alarm."""
        return 1 - self.confidence

    @property
    def baseline(self) -> str:
        """What the others are compared with."""
        return self.methods[0].key

    @property
    def candidates(self) -> tuple[str, ...]:
        """The recalibrators without random numbers, among which the advice chooses."""
        return tuple(spec.key for spec in self.methods[1:] if needs_score(spec) and not spec.declared.randomised)


def needs_score(spec: OnlineSpec) -> bool:
    """Whether a forecaster looks at the score, or runs inside bins of it."""
    return spec.declared.function.needs_score or bool(spec.parameters["bins"])


def check_horizon(horizon: int | None, rows: int = 0) -> None:
    """Raise a DecalError where there cannot be so many rows, or there are more by now."""
    if horizon is not None and rows > horizon:
        # What is promised of so many rows is false of more.
        raise DecalError(
            f"there are {many(rows, 'row')}, more than {Hint('horizon', horizon)}", "give how many there will be"
        )
    if horizon is not None and not 1 <= horizon <= MAX_ROWS_OVER_TIME:
        raise DecalError(
            f"{Hint('horizon', horizon)} is no number of rows up to {MAX_ROWS_OVER_TIME:,}",
            "give how many rows there will be",
        )


def online_plan(named: Sequence[str], warm_up: int, plan: OnlinePlan) -> OnlinePlan:
    """The plan with the methods that are named, or all; before them what they are compared with. Errors: DecalError."""
    if not MIN_WARM_UP <= warm_up <= MAX_WARM_UP:
        raise DecalError(
            f"{Hint('warm_up', warm_up)} is not between {MIN_WARM_UP} and {MAX_WARM_UP:,}", "give a number of rows"
        )
    check_horizon(plan.horizon)
    if plan.clock != "dates":
        is_time = {"delay": plan.delay.kind == "time", "every": plan.every.rows is None}
        for name in (name for name, wrong in is_time.items() if wrong):
            raise DecalError(
                f"{Hint(name, getattr(plan, name).text)} is a time, and rows have no dates",
                f"give {Hint('time').words} with a column of dates, or rows",
            )
    if plan.delay.kind == "column" and plan.clock == "rows":
        raise DecalError(
            f"{Hint('delay', plan.delay.text)} names a column of times, and rows have none", f"give {Hint('time')} too"
        )
    given = [parse(text) for text in named] or [parse(name) for name in ONLINE]
    if plan.score is None:
        if named and (needing := [spec.key for spec in given if needs_score(spec)]):
            raise DecalError(f"{needing[0]} needs a score, and there is none", f"name its column with {Hint('score')}")
        given = [spec for spec in given if not needs_score(spec)]
    first = parse(BASE_RATE if plan.score is None else AS_IT_IS)
    learned = parse(f"{FROZEN}(warm_up={warm_up})")
    given = [learned if spec == parse(FROZEN) else spec for spec in given]
    return replace(plan, methods=tuple(dict.fromkeys((first, *given))), warm_up=warm_up)


def unasked_period(time: Values, clock: Clock, whole: bool = True) -> Period:
    """Windows that are few enough to read: of the calendar where time is dates, else of a round number of rows.

    whole: whether these are all rows; otherwise they cannot say how many windows there will be.
    """
    if not whole:
        return Period("month" if clock == "dates" else "1000")
    if clock == "dates":
        for name in CALENDAR:
            places = Period(name).places(time[[0, -1]], 0)
            if places[1] - places[0] < MAX_WINDOWS:
                return Period(name)
    sizes = (factor * 10**power for power in range(2, 12) for factor in (1, 2, 5))
    return Period(str(next(size for size in sizes if len(time) <= size * MAX_WINDOWS)))
