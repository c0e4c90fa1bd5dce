"""Rows of several classes: a table of the classes, and what is done with each; as blocks and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NotRequired, TypedDict

from decal_cli.analysis.by_class import ActionCounts, ByClass
from decal_cli.analysis.evaluate import Report
from decal_cli.numbers import plain
from decal_cli.render.blocks import Block, Cell, Column, Row, Table
from decal_cli.render.cells import number, words
from decal_cli.render.schema import Share, Size

MAX_ACROSS = 8
"""Classes that stand side by side; of more, the cells that cost most are listed."""
N_COSTLIEST = 10
"""So many of them."""


class ClassData(TypedDict):
    """One class. rows: with this label; predicted: for which it is the most probable class; right: both."""

    name: str
    rows: Size
    predicted: Size
    right: Size
    precision: Share | None
    recall: Share | None


class ActionsData(TypedDict):
    """Rows by action and class, or their summed weights, and the utility of each cell; a row for each action."""

    actions: list[str]
    rows: list[list[float]]
    utility: list[list[float]]


class ByClassData(TypedDict):
    """Every class; with a task, what is done."""

    classes: list[ClassData]
    decisions: NotRequired[ActionsData]


def by_class_data(counted: ByClass) -> ByClassData:
    """The counts as JSON has them."""
    document: ByClassData = {
        "classes": [
            {
                "name": each.name,
                "rows": each.rows,
                "predicted": each.predicted,
                "right": each.right,
                "precision": each.precision,
                "recall": each.recall,
            }
            for each in counted.classes
        ]
    }
    done = counted.actions
    if done is not None:
        rows, utility = ([list(row) for row in cells] for cells in (done.rows, done.utility))
        document["decisions"] = {"actions": list(done.actions), "rows": rows, "utility": utility}
    return document


def class_blocks(report: Report, named: bool) -> Iterator[Block]:
    """The tables of a report; named: whether its model and group stand above them."""
    counted = report.by_class
    if counted is None:
        return
    whose = f"{', '.join(filter(None, (report.model, report.group)))}: " if named else ""
    columns = [Column("class", words=True)]
    columns += [Column(name) for name in ("rows", "predicted", "right", "precision", "recall")]
    rows = []
    for each in counted.classes:
        counts = (Cell((_count(value),)) for value in (each.rows, each.predicted, each.right))
        rows.append(Row((words(each.name), *counts, number(each.precision), number(each.recall))))
    yield Table(tuple(columns), tuple(rows), title=f"{whose}classes", keys=1)
    if counted.actions is not None:
        names = tuple(each.name for each in counted.classes)
        few = len(names) <= MAX_ACROSS and len(counted.actions.actions) <= 2 * MAX_ACROSS
        yield _across(counted.actions, names, whose) if few else _costliest(counted.actions, names, whose)


def _across(done: ActionCounts, names: tuple[str, ...], whose: str) -> Table:
    columns = (Column("action", words=True), *(Column(name) for name in names))
    rows = [
        Row((words(action), *(Cell((_count(value),)) for value in cells)))
        for action, cells in zip(done.actions, done.rows, strict=True)
    ]
    return Table(columns, tuple(rows), title=f"{whose}actions taken, by class: rows", keys=1)


def _costliest(done: ActionCounts, names: tuple[str, ...], whose: str) -> Table:
    """The cells of action and class that lose most against the best action for the class."""
    best = [max(column) for column in zip(*done.utility, strict=True)]
    total = sum(map(sum, done.rows))
    cells = [
        (rows * (best[k] - done.utility[a][k]) / total, done.actions[a], names[k], rows)
        for a, row in enumerate(done.rows)
        for k, rows in enumerate(row)
    ]
    cells = sorted((each for each in cells if each[0] > 0), key=lambda each: (-each[0], each[1], each[2]))
    columns = (Column("action", words=True), Column("class", words=True), Column("rows"), Column("loss per row"))
    shown = [
        Row((words(action), words(name), Cell((_count(rows),)), Cell((plain(loss),))))
        for loss, action, name, rows in cells[:N_COSTLIEST]
    ]
    return Table(
        columns,
        tuple(shown),
        title=f"{whose}the {len(shown)} of {len(cells):,} cells of action and class that lose most",
        keys=2,
    )


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"
