"""Tasks that differ in one number: the price of abstention, one entry of the utility, or the share of labels 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_THRESHOLDS, MAX_UTILITY, MIN_PREVALENCE
from decal_cli.task.actions import ABSTAIN, ClassDecision, RowTask, Task, few_names, task_of_rows
from decal_cli.task.spelling import abstaining

N_VALUES = 21
"""Values of 'LOW:HIGH', evenly spaced."""
PREVALENCE: Final = "prevalence"
"""What is written for the share of labels 1 where decisions are made."""
CAPACITY: Final = "capacity"
"""What is written for the rows that can be acted on."""
COST_FP: Final = "cost-fp"
"""What is written for a factor of what a false positive costs in every row."""
Kind = Literal["abstain", "entry", "prevalence", "capacity", "cost-fp"]
FACTORS = tuple(float(f"{10 ** (k / 10):.3g}") for k in range(-10, 11))
"""Factors of the cost of a false positive where none are named: from a tenth to ten times."""
PRICES = "0.02:0.98:0.02"
"""Prices of abstention where none are named."""
_WHOLE = "write 'capacity=50:500', 'prevalence=0.01:0.1' or 'abstain=0.05:0.5:0.05'"
_FIX = f"write 'ACTION:CLASS=LOW:HIGH', such as fp:fraud=1:50; or {_WHOLE}"
"""What to write in place of a text that says no values."""


@dataclass(frozen=True)
class Varied:
    """What varies, as the user spells it. name: 'ACTION:CLASS', 'abstain', 'prevalence' or 'capacity'; values:
    increasing.
    """

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class TaskSeries:
    """Tasks by the value of what varies. title: what that is, in words; own: its value in the user's task, if any.

    kind: the price of abstention, an entry of the utility, the share of label 1, a capacity, or a factor on the cost of
    a false positive in every row; share and capacity leave the task as it is. entry: the numbers of its action and
    class. counted: whether capacities are counts of rows, not shares.
    """

    kind: Kind
    title: str
    values: tuple[float, ...]
    tasks: tuple[Task | ClassDecision | RowTask, ...]
    own: float | None
    entry: tuple[int, ...] = ()
    counted: bool = False

    @property
    def name(self) -> str:
        """What varies, in few letters for a signature."""
        return ":".join(map(str, self.entry)) or self.kind

    @property
    def task_at_each(self) -> Sequence[Task | ClassDecision | RowTask | None]:
        """The task at each value; None at each where capacities vary and there is no task."""
        return self.tasks or (None,) * len(self.values)


def parse_varied(text: str) -> Varied:
    """'ACTION:CLASS=LOW:HIGH', '..=LOW:HIGH:STEP' or '..=v1,v2,v3'. Errors: DecalError."""
    shown = Hint("vary", f"{text!r}").words
    name, found, given = text.rpartition("=")
    if not found or not name.strip():
        raise DecalError(f"{shown} does not say what takes which values", _FIX)
    return Varied(name.strip(), _parse_values(given, shown))


def _parse_values(given: str, shown: str) -> tuple[float, ...]:
    """'LOW:HIGH', 'LOW:HIGH:STEP' or 'v1,v2,v3', increasing."""
    try:
        ends = [float(part) for part in given.split(":" if ":" in given else ",")]
        if not all(abs(value) <= MAX_UTILITY for value in ends):
            raise ValueError
        if ":" not in given:
            values = sorted(set(ends))
        elif len(ends) == 3:
            values = stepped(*ends)
        else:
            low, high = ends
            if not low < high:
                raise ValueError
            values = sorted({float(f"{low + (high - low) * k / (N_VALUES - 1):.12g}") for k in range(N_VALUES)})
    except (ValueError, OverflowError):
        raise DecalError(f"{shown}: {given!r} are no values", _FIX) from None
    if len(values) > MAX_THRESHOLDS:
        raise DecalError(f"{shown} names more than {MAX_THRESHOLDS} values", "take a larger step")
    return tuple(values)


def stepped(start: float, end: float, step: float) -> list[float]:
    """Values from start to end, the end included, at most one more than MAX_THRESHOLDS. Errors: ValueError."""
    if not (step > 0 and end >= start and all(map(math.isfinite, (start, end, step)))):
        raise ValueError
    steps = math.floor(min((end - start) / step + 1e-9, MAX_THRESHOLDS))
    # Rounded to decimals as written: 0.05 + 5 * 0.05 is not 0.3, and a score of 0.3 must meet its threshold.
    return [round(start + step * k, 12) for k in range(steps + 1)]


def by_price(varied: Varied | None, classes: Sequence[str], own: float | None) -> TaskSeries:
    """Naming the class or abstaining, by the price of abstention; own: that of the user's task."""
    values = (varied or parse_varied(f"{ABSTAIN}={PRICES}")).values
    if outside := [price for price in values if not 0 <= price <= 1]:
        raise DecalError(f"{Hint('vary', ABSTAIN)}: the price {outside[0]:g} is not in [0, 1]", "a right answer wins 1")
    values = tuple(sorted({*values, *(() if own is None else (own,))}))
    tasks = tuple(abstaining(price).for_classes(classes) for price in values)
    return TaskSeries(ABSTAIN, "price of abstention", values, tasks, own)


def by_prevalence(varied: Varied, task: Task) -> TaskSeries:
    """One task where labels 1 are rarer or more frequent. Errors: DecalError, for what is no share."""
    least = MIN_PREVALENCE
    if outside := [value for value in varied.values if not least <= value <= 1 - least]:
        raise DecalError(f"the prevalence {outside[0]:g} is not a share between 0 and 1", "give for example 0.01:0.1")
    tasks = (task,) * len(varied.values)
    return TaskSeries(PREVALENCE, "share of labels 1", varied.values, tasks, None)


def by_factor(varied: Varied | None, task: RowTask, to_act_or_not: bool = True) -> TaskSeries:
    """Utilities of rows in which a false positive costs so many times as much. Errors: DecalError.

    to_act_or_not: whether these are the two actions; with others the factor is of what any costs more than the first.
    """
    if varied and varied.name != COST_FP:
        raise DecalError(
            f"{Hint('vary', varied.name)}: every row has utilities of its own, and what varies is what a false "
            "positive costs",
            f"write for example '{COST_FP}=0.5:2', in times of what it costs now",
        )
    values = tuple(sorted({*varied.values, 1.0})) if varied else FACTORS
    if values[0] <= 0:
        raise DecalError(f"{Hint('vary', COST_FP)}: {values[0]:g} is not above 0", f"give for example {COST_FP}=0.5:2")
    tasks = tuple(replace(task, factor=value) for value in values)
    what = "cost of a false positive" if to_act_or_not else "what another action costs more than the first"
    return TaskSeries(COST_FP, f"{what} (1: as it is today)", values, tasks, 1.0)


def by_entry(varied: Varied, task: Task | ClassDecision, classes: Sequence[str], costs: bool) -> TaskSeries:
    """The task with one entry varied. costs: whether entries are named as costs, which are utilities of minus sign."""
    action, label = _entry(varied.name, task.actions, classes)
    sign = -1.0 if costs else 1.0
    own = 0.0 + sign * task.utility[action][label]
    values = tuple(sorted({*varied.values, own}))
    kind = "cost" if costs else "utility"
    title = f"{kind} of {task.actions[action]!r} where the class is {classes[label]!r}"
    tasks = tuple(
        _with(task, action, label, sign * value, f"{Hint('vary', varied.name).words}={value:g}") for value in values
    )
    return TaskSeries("entry", title, values, tasks, own, entry=(action, label))


def _entry(name: str, actions: Sequence[str], classes: Sequence[str]) -> tuple[int, int]:
    """The numbers of the action and the class that 'ACTION:CLASS' names; names may hold colons themselves."""
    places = [k for k, letter in enumerate(name) if letter == ":"]
    for place in places:
        action, label = name[:place].strip(), name[place + 1 :].strip()
        if action in actions and label in classes:
            return list(actions).index(action), list(classes).index(label)
    known = f"the actions are {few_names(actions)}; the classes are {few_names(classes)}; or {_WHOLE}"
    raise DecalError(f"{Hint('vary', f'{name!r}')} names no action and class of the task", known)


def _with(task: Task | ClassDecision, action: int, label: int, value: float, shown: str) -> Task | ClassDecision:
    rows = [list(row) for row in task.utility]
    rows[action][label] = value
    if isinstance(task, ClassDecision):
        return replace(task, utility=tuple(map(tuple, rows)))
    try:
        return task_of_rows(rows, names=task.names)
    except DecalError as error:
        raise DecalError(f"{shown}: {error.problem}", "vary it in a narrower range") from None
