"""Tasks: utilities of actions at two outcomes, and the thresholds between them; of several classes; of each row.

Over the scores from 0 to 1, the best of several actions is the upper envelope of their lines
(1 - p) U[a][0] + p U[a][1]. Each kink is the threshold of a step to the next action: a task of two actions. So any task
of two outcomes is a sum of such tasks, and its regrets are sums over steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from decal_cli.errors import DecalError
from decal_cli.hints import Hint, Verb
from decal_cli.limits import MAX_ACTIONS, MAX_UTILITY, MIN_THRESHOLD

Matrix = tuple[tuple[float, float], tuple[float, float]]
UtilityRows = tuple[tuple[float, float], ...]
"""A row for each action; in it the utility at label 0 and at label 1."""
ABSTAIN: Final = "abstain"
"""The action that --abstain adds."""
_BACKWARDS = (("1", "0"), ("true", "false"))
"""Two classes that a task of labels 0 and 1 would take for each other, by the order of their columns."""
MAX_DIGITS = 9
"""Digits of a threshold that a user may have meant exactly."""


@dataclass(frozen=True)
class ClassDecision:
    """A task whose classes are known. utility[a][k]: of action a where the class is k; actions: their names."""

    utility: tuple[tuple[float, ...], ...]
    actions: tuple[str, ...]

    @property
    def undominated(self) -> tuple[tuple[float, ...], ...]:
        """The utilities of the actions that may be taken."""
        return self.utility

    @property
    def taken(self) -> tuple[str, ...]:
        """The names of the actions that may be taken."""
        return self.actions

    @property
    def unit(self) -> float:
        """What the ranges of metrics are multiples of: the most that one decision can be worth more than another."""
        return max(max(column) - min(column) for column in zip(*self.utility, strict=True))

    @property
    def u_delta(self) -> float:
        """2 / K times the sum over the K classes of what the best action is worth beyond the worst."""
        return 2 * sum(max(column) - min(column) for column in zip(*self.utility, strict=True)) / len(self.utility[0])

    @property
    def limited(self) -> tuple[int, ...]:
        """The actions that need one of a limited number of places: abstaining, if one may; () for all but the first."""
        classes = len(self.utility[0])
        return (classes,) if len(self.actions) == classes + 1 and self.actions[-1] == ABSTAIN else ()


@dataclass(frozen=True)
class Task:
    """A decision between actions, with utilities at two outcomes: Perez-Lebel et al. 2025, eq. 2-5, for A actions.

    utility[a][j] is the utility of action a when the outcome is j. names: of the actions, () where the user gave none.
    """

    utility: UtilityRows
    names: tuple[str, ...] = ()

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the actions, else their numbers from 0."""
        return self.names or tuple(str(number) for number in range(len(self.utility)))

    @cached_property
    def envelope(self) -> tuple[int, ...]:
        """Numbers of the actions that are best for some score, from low scores to high ones."""
        return _envelope(self.utility)

    @property
    def taken(self) -> tuple[str, ...]:
        """The names of the actions on the envelope."""
        return tuple(self.actions[action] for action in self.envelope)

    @cached_property
    def steps(self) -> tuple[BinaryTask, ...]:
        """The tasks of two actions that this task is the sum of: from each action on the envelope to the next."""
        rows = [self.utility[action] for action in self.envelope]
        pairs = zip(rows, rows[1:], self.taken, self.taken[1:], strict=False)
        return tuple(
            BinaryTask((low, high), (first, second), decision_threshold=_threshold(low, high), dominated=self.dominated)
            for low, high, first, second in pairs
        )

    @property
    def undominated(self) -> UtilityRows:
        """The utilities of the actions on the envelope."""
        return tuple(self.utility[action] for action in self.envelope)

    @property
    def dominated(self) -> tuple[str, ...]:
        """Actions that are best for no score, and never taken."""
        return tuple(name for number, name in enumerate(self.actions) if number not in self.envelope)

    @property
    def u_delta(self) -> float:
        """The sum over outcomes of what the best undominated action is worth there beyond the worst."""
        return sum(step.u_delta for step in self.steps)

    @property
    def unit(self) -> float:
        """What the ranges of metrics are multiples of: u_delta."""
        return self.u_delta

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The kinks of the envelope, increasing: from each on, the next action is the best one."""
        return tuple(step.threshold for step in self.steps)

    @property
    def decision_thresholds(self) -> tuple[float, ...]:
        """Where the model is operated: from each on, the next action is taken."""
        return tuple(step.decision_threshold for step in self.steps)

    @property
    def two_actions(self) -> BinaryTask | None:
        """The task where two of its actions are ever taken; else None."""
        return self.steps[0] if len(self.steps) == 1 else None

    @property
    def limited(self) -> tuple[int, ...]:
        """The actions that need one of a limited number of places: () for all but the first."""
        return ()

    @property
    def operated_at_best(self) -> Task:
        """This task, operated at its best thresholds."""
        return self

    def for_classes(self, classes: Sequence[str]) -> Task | ClassDecision:
        """The decision on rows of these classes, () for one score. Errors: DecalError, where they do not fit it."""
        if not classes:
            return self
        if len(classes) > 2:
            raise DecalError(
                f"the task is of two classes, and there are {len(classes)}",
                f"give {Hint('utility')} with a column for each class, or {Hint('abstain')}",
            )
        if self.decision_thresholds != self.thresholds:
            raise DecalError(
                f"{Hint('decision_threshold')} is of one score, and rows have probabilities of two classes", "drop it"
            )
        if tuple(classes) in _BACKWARDS:
            raise DecalError(
                f"the task is of labels 0 and 1, and the columns are of {classes[0]} and then {classes[1]}",
                f"name the first column alone, with {Hint('score')}",
            )
        return ClassDecision(self.undominated, self.taken)

    def in_steps(self, of_step: Callable[[BinaryTask], float]) -> float:
        """The sum over steps, in units of this task's u_delta. of_step: gives each in units of the step's u_delta."""
        return sum(share * of_step(step) for share, step in zip(self.shares, self.steps, strict=True))

    @property
    def shares(self) -> tuple[float, ...]:
        """The u_delta of each step, as a share of the task's."""
        return tuple(step.u_delta / self.u_delta for step in self.steps)


@dataclass(frozen=True)
class BinaryTask(Task):
    """A task of two actions.

    decision_threshold is where the model is operated: decide 1 iff score >= decision_threshold; by default the optimal
    threshold t* of the utilities.
    """

    utility: Matrix
    decision_threshold: float = field(kw_only=True)
    dominated: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def steps(self) -> tuple[BinaryTask, ...]:
        """The task itself."""
        return (self,)

    @property
    def two_actions(self) -> BinaryTask:
        """The task itself."""
        return self

    @property
    def operated_at_best(self) -> BinaryTask:
        """This task, operated at t*."""
        return replace(self, decision_threshold=self.threshold)

    def moved_to(self, threshold: float) -> BinaryTask:
        """The task of another t*, with costs that add up to the same; operated there, unless it was elsewhere."""
        alarm, miss = self.u_delta * threshold, self.u_delta * (1 - threshold)
        elsewhere = None if self.decision_threshold == self.threshold else self.decision_threshold
        return self.of_utility(((0.0, -miss), (-alarm, 0.0)), elsewhere, self.names)

    @property
    def costs(self) -> tuple[float, float]:
        """What a false alarm and a miss cost, beside the right decision."""
        (u00, u01), (u10, u11) = self.utility
        return u00 - u10, u11 - u01

    @property
    def u_delta(self) -> float:
        """U00 - U10 + U11 - U01 > 0: the worth of correcting both wrong decisions (Perez-Lebel et al. 2025, eq. 4)."""
        alarm, miss = self.costs
        return alarm + miss

    @cached_property
    def threshold(self) -> float:
        """t* = (U00 - U10) / u_delta, in (0, 1): act when a calibrated score >= t* (Perez-Lebel et al. 2025, eq. 4)."""
        return _threshold(*self.utility)

    @classmethod
    def of_utility(
        cls,
        utility: Sequence[Sequence[float]],
        decision_threshold: float | None = None,
        names: Sequence[str] = (),
    ) -> BinaryTask:
        """Check a utility matrix of two rows and make it a task."""
        rows = _checked_rows(utility)
        if len(rows) != 2:
            raise DecalError(f"the utility has {len(rows)} rows, and is to be 2 x 2", "write it as 'u00,u01;u10,u11'")
        matrix = rows[0], rows[1]
        (u00, u01), (u10, u11) = matrix
        u_delta = (u00 - u10) + (u11 - u01)
        shown = f"utility {_show(matrix)}"
        if u_delta < 0:
            raise DecalError(
                f"{shown} has u_delta = {u_delta:g} < 0: its rows look swapped",
                f"row 0 is the utility of deciding 0; swapped it reads {_show((matrix[1], matrix[0]))}",
            )
        if u_delta == 0:
            always = "both are worth the same" if u00 == u10 else f"deciding {int(u00 < u10)} is always better"
            raise DecalError(
                f"{shown} has u_delta = 0: the best action does not depend on the score, {always}",
                "make a right decision worth more than a wrong one: u00 + u11 > u10 + u01",
            )
        if u_delta < 1 / MAX_UTILITY:
            raise DecalError(f"{shown} has u_delta = {u_delta:g}, below {1 / MAX_UTILITY:g}", "take a smaller unit")
        threshold = (u00 - u10) / u_delta
        if not 0 < threshold < 1:
            best = 1 if threshold <= 0 else 0
            raise DecalError(
                f"{shown} has t* = {threshold:g}, outside (0, 1): deciding {best} is never worse, no score is needed",
                "each decision must be the better one for some outcome: u00 > u10 and u11 > u01",
            )
        if threshold < MIN_THRESHOLD:
            raise DecalError(
                f"{shown} has t* = {threshold:g}, below {MIN_THRESHOLD:g}",
                "make the errors cost amounts that differ by less",
            )
        at = _threshold(*matrix) if decision_threshold is None else float(decision_threshold)
        if not 0 <= at <= 1:
            raise DecalError(f"decision threshold {at:g} is not in [0, 1]", "give a probability")
        return cls(matrix, tuple(names), decision_threshold=at)

    @classmethod
    def of_threshold(cls, threshold: float, decision_threshold: float | None = None) -> BinaryTask:
        """The unit task of a threshold: u_delta = 1, minus its expected utility is Tasche's loss [T 3.3a]."""
        if not 0 < threshold < 1:
            hint = f"; did you mean {threshold / 100:g}?" if 1 < threshold < 100 else ""
            fix = f"give a probability between 0 and 1{hint}"
            raise DecalError(f"threshold {threshold:g} is not inside (0, 1)", fix)
        return cls.of_utility(_unit(threshold), decision_threshold)

    @classmethod
    def of_costs(cls, cost_fp: float, cost_fn: float, decision_threshold: float | None = None) -> BinaryTask:
        """Costs of the two errors: t* = cost_fp / (cost_fp + cost_fn), Gao et al. 2017, claim 1."""
        for name, cost in (("cost_fp", cost_fp), ("cost_fn", cost_fn)):
            if not (cost > 0 and math.isfinite(cost)):
                raise DecalError(
                    f"{Hint(name, f'{cost:g}')} is not a positive number", "give what one such error costs, above 0"
                )
        return cls.of_utility(((0.0, -cost_fn), (-cost_fp, 0.0)), decision_threshold)


@dataclass(frozen=True)
class ClassTask:
    """A task of K classes as the user spells it; what it means follows from the names of the classes.

    utility: a row for each action and a column for each class, () where only the price of abstention is given. names:
    of the actions, columns: of the classes, () where none are given. abstain: the price c of abstaining from the
    classes themselves as actions, worth 1 where right and 0 where wrong; abstaining is worth 1 - c.
    """

    utility: tuple[tuple[float, ...], ...] = ()
    names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    abstain: float | None = None

    def for_classes(self, classes: Sequence[str]) -> ClassDecision:
        """The task for these classes. Errors: DecalError, where its columns are not one for each of them."""
        if not classes:
            raise _of_task(
                "the task has a utility for each of several classes, and the scores are of two",
                f"name the class probabilities with {Hint('proba')}, or give a task of two classes",
            )
        if self.abstain is not None:
            if ABSTAIN in classes:
                raise _of_task(
                    f"a class is called {ABSTAIN!r}, as the action that {Hint('abstain')} adds",
                    f"call the class something else, or give {Hint('utility')} with names of the actions",
                )
            right = [tuple(float(k == j) for j in range(len(classes))) for k in range(len(classes))]
            return ClassDecision((*right, (1 - self.abstain,) * len(classes)), (*classes, ABSTAIN))
        width = len(self.utility[0])
        if width != len(classes):
            raise _of_task(
                f"the utility has {width} columns, and there are {len(classes)} classes: {few_names(classes)}",
                "give it a column for each class, in this order or with the names of the classes in a first row",
            )
        order = list(range(width))
        if self.columns:
            unknown = [name for name in self.columns if name not in classes]
            if unknown or len(set(self.columns)) < width:
                wrong = unknown[0] if unknown else next(n for n in self.columns if self.columns.count(n) > 1)
                what = "is no class" if unknown else "is named twice"
                raise _of_task(f"the utility: column {wrong!r} {what}", f"the classes are {few_names(classes)}")
            order = [self.columns.index(name) for name in classes]
        rows = tuple(tuple(row[k] for k in order) for row in self.utility)
        names = self.names or (tuple(classes) if len(rows) == width else tuple(map(str, range(len(rows)))))
        return ClassDecision(rows, names)


def _of_task(problem: str, fix: str) -> DecalError:
    """An error of what a task of several classes may be named by, so that it names the settings that hold the task."""
    error = DecalError(problem, fix)
    error.about |= {"utility", "cost_matrix", "abstain"}
    return error


@dataclass(frozen=True)
class RowTask:
    """Which columns say what decisions on a row are worth, and what is the same in every row.

    columns: the roles that are named. cost_fp, cost_fn: of every row, None where a column says it. factor: what the
    cost of a false positive is multiplied by.
    """

    columns: tuple[str, ...]
    cost_fp: float | None = None
    cost_fn: float | None = None
    factor: float = 1.0

    @property
    def actions(self) -> tuple[str, str]:
        """The names of the actions."""
        return "0", "1"

    def for_classes(self, classes: Sequence[str]) -> RowTask:
        """This task: the utilities of the rows say how many classes there are."""
        return self


Decision = Task | ClassDecision | RowTask
"""A decision on scores of two classes; on several classes, which are known; or with utilities of each row."""
GivenDecision = Task | ClassTask | RowTask
"""A decision as the user gives it, before the classes of the rows are known."""


def constant_words(decision: int | str, doing: bool = False) -> str:
    """What deciding all rows alike is called: 'never act', or where the action has a name "always decide 'wait'".

    decision: 0, 1 or the name. doing: as what one does, 'never acting'.
    """
    if str(decision) in ("0", "1"):
        return f"{'always' if int(decision) else 'never'} {'acting' if doing else 'act'}"
    return f"always {'deciding' if doing else 'decide'} '{decision}'"


def few_names(classes: Sequence[str]) -> str:
    """Names for a message: at most eight, and their number where there are more."""
    return ", ".join(classes[:8]) + (f", ... ({len(classes)})" if len(classes) > 8 else "")


def task_of_rows(
    utility: Sequence[Sequence[float]], decision_threshold: float | None = None, names: Sequence[str] = ()
) -> Task:
    """Check a utility with a row for each action and make it a task: of two actions where it has two rows."""
    rows = _checked_rows(utility)
    _check_names(names, len(rows))
    if len(rows) == 2:
        return BinaryTask.of_utility(rows, decision_threshold, names)
    if decision_threshold is not None:
        raise DecalError(
            f"{Hint('decision_threshold')} is one threshold, and a task of {len(rows)} actions has more",
            "drop it: decisions are then made at the thresholds of the utilities",
        )
    task = Task(rows, tuple(names))
    if not task.steps:
        (best,) = task.taken
        raise DecalError(
            f"utility {_show(rows)}: action {best!r} is never worse than another, no score is needed",
            "at least two actions must each be the best one for some score",
        )
    if task.u_delta < 1 / MAX_UTILITY:
        raise DecalError(
            f"utility {_show(rows)} has u_delta = {task.u_delta:g}, below {1 / MAX_UTILITY:g}", "take a smaller unit"
        )
    return task


def class_task(rows: Sequence[Sequence[float]], names: Sequence[str] = (), columns: Sequence[str] = ()) -> ClassTask:
    """Check a utility with a row for each action and a column for each of several classes, and make it a task."""
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise DecalError("the rows of the utility are not equally long", "give every action a number for each class")
    if columns and len(columns) != width:
        raise DecalError(
            f"the utility has {width} columns of numbers and {len(columns)} names of classes", "give one name for each"
        )
    _check_size(rows)
    _check_names(names, len(rows))
    return ClassTask(tuple(tuple(map(float, row)) for row in rows), tuple(names), tuple(columns))


def need_two_actions(task: object | None, what: str) -> BinaryTask | None:
    """The task where it has two actions. Errors: DecalError, where it has more actions or classes."""
    if not task:
        return None
    if not isinstance(task, Task):
        raise DecalError(
            f"{what} takes a decision on scores of two classes, and this task has more",
            f"{Verb('evaluate')} takes it",
        )
    if task.two_actions:
        return task.two_actions
    taken = f"{len(task.taken)} ({', '.join(task.taken)})"
    raise DecalError(
        f"{what} takes a decision between two actions, and this utility has {taken}",
        "give two of its rows; evaluate, gate and compare take all",
    )


def _checked_rows(utility: Sequence[Sequence[float]]) -> UtilityRows:
    """Rows of two finite numbers each. Errors: DecalError."""
    try:
        rows = tuple((float(u0), float(u1)) for u0, u1 in utility)
    except (TypeError, ValueError, OverflowError):
        rows = ()
    if len(rows) < 2:
        raise DecalError(
            "the utility is not a matrix of numbers, 2 x 2 or with more rows",
            "write it as 'u00,u01;u10,u11', a row for each action",
        )
    _check_size(rows)
    return rows


def _check_size(rows: Sequence[Sequence[float]]) -> None:
    if len(rows) > MAX_ACTIONS:
        raise DecalError(f"the utility has {len(rows):,} rows, and {MAX_ACTIONS} are taken at most", "leave some out")
    if not all(abs(cell) <= MAX_UTILITY for row in rows for cell in row):
        raise DecalError(
            f"the utility holds a value that is not finite, or beyond {MAX_UTILITY:g}", "give numbers in another unit"
        )


def _check_names(names: Sequence[str], actions: int) -> None:
    if names and len(names) != actions:
        raise DecalError(f"the utility has {actions} rows and {len(names)} names of actions", "name every row, or none")
    for number, name in enumerate(names):
        if not name.strip() or set(name) & set(",;\n"):
            fix = "name every row, without commas and semicolons, or none"
            raise DecalError(f"the utility: action {number} has the name {name!r}", fix)
        if name in names[:number]:
            raise DecalError(f"the utility names the action {name!r} twice", "give every action a name of its own")


def _envelope(rows: UtilityRows) -> tuple[int, ...]:
    """The actions on the upper envelope of their lines over (0, 1), by where they begin to be best."""
    chain, begins = [max(range(len(rows)), key=lambda action: (*rows[action], -action))], [0.0]
    left = set(range(len(rows))) - {chain[0]}
    while True:
        now = rows[chain[-1]]
        # Of those that overtake at the same score the steepest: the others are best nowhere.
        overtaking = [
            (_crossing(now, rows[action]), rows[action][0] - rows[action][1], action)
            for action in left
            if rows[action][1] > now[1] and rows[action][0] < now[0]
        ]
        inside = [each for each in overtaking if 0 < each[0] < 1]
        if not inside:
            return tuple(chain)
        at, _, action = min(inside)
        if at <= begins[-1]:
            # Three lines meet in one point but for rounding.
            chain.pop()
            begins.pop()
            continue
        left.remove(action)
        chain.append(action)
        begins.append(at)


def _crossing(low: tuple[float, float], high: tuple[float, float]) -> float:
    """Where the line of `high` overtakes that of `low`."""
    return (low[0] - high[0]) / ((low[0] - high[0]) + (high[1] - low[1]))


def _unit(threshold: float) -> Matrix:
    """The utilities of u_delta 1, in which the threshold stands as it is."""
    return (0.0, -(1 - threshold)), (-threshold, 0.0)


def _threshold(low: tuple[float, float], high: tuple[float, float]) -> float:
    """Where `high` becomes the better one: read to the last bit where it stands in the rows, else divided.

    A quotient that is a short decimal but for rounding is that decimal: a score of t* then acts however the task is
    spelled.
    """
    named = -high[0]
    if (low, high) == _unit(named):
        return named
    threshold = _crossing(low, high)
    short = float(f"{threshold:.{MAX_DIGITS}g}")
    return short if short < 1 and math.isclose(short, threshold, rel_tol=2e-15) else threshold


def _show(rows: UtilityRows) -> str:
    return "'" + ";".join(",".join(f"{cell:g}" for cell in row) for row in rows) + "'"
