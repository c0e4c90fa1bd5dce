"""Rows of several classes counted: each class for itself, and what is done with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.declarations.document import Absent, Share, Size, as_key
from decal_cli.metrics import Inputs
from decal_cli.metrics.decisions import Decisions
from decal_cli.tables.classes import ClassTable
from decal_cli.task import ClassDecision, Task


@dataclass(frozen=True)
class ClassCounts:
    """One class: its rows, the rows for which it is the most probable class, and both; or their summed weights."""

    name: str
    rows: Size
    predicted: Size
    right: Size

    @property
    @as_key
    def precision(self) -> Share | None:
        """Share of right ones among the rows for which it is predicted; None where there are none."""
        return self.right / self.predicted if self.predicted > 0 else None

    @property
    @as_key
    def recall(self) -> Share | None:
        """Share of its rows for which it is predicted; None where there are none."""
        return self.right / self.rows if self.rows > 0 else None


@dataclass(frozen=True)
class ActionCounts:
    """Rows by action and class, or their summed weights, and the utility of each cell; a row for each action.

    loss: what each cell loses against the best action for its class, per row of all.
    """

    actions: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]
    utility: tuple[tuple[float, ...], ...]

    @property
    @as_key
    def loss(self) -> tuple[tuple[float, ...], ...]:
        """What each cell loses against the best action for its class, summed and divided by all rows."""
        best = [max(column) for column in zip(*self.utility, strict=True)]
        total = sum(map(sum, self.rows))
        cells = zip(self.rows, self.utility, strict=True)
        return tuple(
            tuple(n * (most - u) / total for n, u, most in zip(rows, utility, best, strict=True))
            for rows, utility in cells
        )


@dataclass(frozen=True)
class ByClass:
    """Every class; with a task, what is done."""

    classes: tuple[ClassCounts, ...]
    decisions: Absent[ActionCounts | None]


def by_class(inputs: Inputs) -> ByClass:
    """The counts of rows of several classes."""
    c = inputs.get(ClassTable)
    size = len(c.classes)
    rows, predicted = c.count(c.label, size), c.count(c.predicted, size)
    agreeing = np.where(c.predicted == c.label, c.label, size)
    right = c.count(agreeing, size + 1)[:size]
    numbers = zip(c.classes, rows.tolist(), predicted.tolist(), right.tolist(), strict=True)
    return ByClass(tuple(ClassCounts(*each) for each in numbers), _by_action(inputs))


def by_action(inputs: Inputs) -> ActionCounts | None:
    """Rows of scores by action and label, where a task of two classes has more than two actions; else None."""
    task = inputs.task
    return None if inputs.of_classes or task is None or task.two_actions is not None else _by_action(inputs)


def _by_action(inputs: Inputs) -> ActionCounts | None:
    """None where no task says it of all rows."""
    task, decisions = inputs.decision, inputs.find(Decisions)
    if decisions is None or not isinstance(task, Task | ClassDecision):
        return None
    cells = np.zeros((len(task.taken), decisions.stakes.shape[1]))
    np.add.at(cells, (decisions.action, decisions.units.label), decisions.units.weight)
    return ActionCounts(task.taken, tuple(map(tuple, cells.tolist())), task.undominated)
