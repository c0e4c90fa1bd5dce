"""Tasks of more than two classes: a utility for each action and class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_ACTIONS, MAX_UTILITY
from decal_cli.task.actions import ABSTAIN, ClassDecision, check_names

Payoff = tuple[float, ...]


@dataclass(frozen=True)
class ClassTask:
    """A task of K classes as the user spells it; what it means follows from the names of the classes.

    utility: a row for each action and a column for each class, () where only the price of abstention is given. names:
    of the actions, columns: of the classes, () where none are given. abstain: the price c of abstaining from the
    classes themselves as actions, worth 1 where right and 0 where wrong; abstaining is worth 1 - c.
    """

    utility: tuple[Payoff, ...] = ()
    names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    abstain: float | None = None

    def for_classes(self, classes: Sequence[str]) -> ClassDecision:
        """The task for these classes. Errors: DecalError, where its columns are not one for each of them."""
        if not classes:
            raise DecalError(
                "the task has a utility for each of several classes, and the scores are of two",
                f"name the class probabilities with {Hint('proba')}, or give a task of two classes",
            )
        if self.abstain is not None:
            right = [tuple(float(k == j) for j in range(len(classes))) for k in range(len(classes))]
            return ClassDecision((*right, (1 - self.abstain,) * len(classes)), (*classes, ABSTAIN))
        width = len(self.utility[0])
        if width != len(classes):
            raise DecalError(
                f"the utility has {width} columns, and there are {len(classes)} classes: {few_names(classes)}",
                "give it a column for each class, in this order or with the names of the classes in a first row",
            )
        order = list(range(width))
        if self.columns:
            unknown = [name for name in self.columns if name not in classes]
            if unknown or len(set(self.columns)) < width:
                wrong = unknown[0] if unknown else next(n for n in self.columns if self.columns.count(n) > 1)
                what = "is no class" if unknown else "is named twice"
                raise DecalError(f"the utility: column {wrong!r} {what}", f"the classes are {few_names(classes)}")
            order = [self.columns.index(name) for name in classes]
        rows = tuple(tuple(row[k] for k in order) for row in self.utility)
        names = self.names or (tuple(classes) if len(rows) == width else tuple(map(str, range(len(rows)))))
        return ClassDecision(rows, names)


def class_task(rows: Sequence[Sequence[float]], names: Sequence[str] = (), columns: Sequence[str] = ()) -> ClassTask:
    """Check a utility with a row for each action and a column for each of several classes, and make it a task."""
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise DecalError("the rows of the utility are not equally long", "give every action a number for each class")
    if columns and len(columns) != width:
        raise DecalError(
            f"the utility has {width} columns of numbers and {len(columns)} names of classes", "name every column"
        )
    if len(rows) > MAX_ACTIONS:
        raise DecalError(f"the utility has {len(rows):,} rows, and {MAX_ACTIONS} are taken at most", "leave some out")
    if not all(abs(cell) <= MAX_UTILITY for row in rows for cell in row):
        raise DecalError(
            f"the utility holds a value that is not finite, or beyond {MAX_UTILITY:g}", "give numbers in another unit"
        )
    check_names(names, len(rows))
    return ClassTask(tuple(tuple(map(float, row)) for row in rows), tuple(names), tuple(columns))


def abstaining(price: float) -> ClassTask:
    """The task of naming the class or abstaining, at this price."""
    if not 0 <= price <= 1:
        raise DecalError(
            f"{Hint('abstain', f'{price:g}')} is not in [0, 1]", "give a part of what a right answer is worth"
        )
    return ClassTask(abstain=float(price))


def few_names(classes: Sequence[str]) -> str:
    """Names in a message, of many the first."""
    return ", ".join(classes[:8]) + (f", ... ({len(classes)})" if len(classes) > 8 else "")
