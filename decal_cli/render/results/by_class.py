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
MAX_CLASSES_SHOWN, N_LOWEST = 30, 20
"""Classes that the table of classes shows; of more, so many with the lowest recall."""


class ClassData(TypedDict):
    """One class. rows: with this label; predicted: for which it is the most probable class; right: both."""

    name: str
    rows: Size
    predicted: Size
    right: Size
    precision: Share | None
    recall: Share | None


class ActionsData(TypedDict):
    """Rows by action and class, or their summed weights, and the utility of each cell; a row for each action.

    loss: what each cell loses against the best action for its class, per row of all.
    """

    actions: list[str]
    rows: list[list[float]]
    utility: list[list[float]]
    loss: list[list[float]]


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
        rows, utility, loss = ([list(row) for row in cells] for cells in (done.rows, done.utility, done.loss))
        document["decisions"] = {"actions": list(done.actions), "rows": rows, "utility": utility, "loss": loss}
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
    shown, size = counted.classes, len(counted.classes)
    if size > MAX_CLASSES_SHOWN:
        shown = tuple(sorted(shown, key=lambda each: (each.recall is None, each.recall or 0.0, each.name))[:N_LOWEST])
    for each in shown:
        counts = (Cell((_count(value),)) for value in (each.rows, each.predicted, each.right))
        rows.append(Row((words(each.name), *counts, number(each.precision), number(each.recall))))
    which = "" if len(shown) == size else f", the {len(shown)} of {size} with the lowest recall (--format json has all)"
    yield Table(tuple(columns), tuple(rows), title=f"{whose}classes{which}", keys=1)
    if counted.actions is not None:
        names = tuple(each.name for each in counted.classes)
        few = len(names) <= MAX_ACROSS and len(counted.actions.actions) <= 2 * MAX_ACROSS
        if not few:
            yield _costliest(counted.actions, names, whose)
            return
        yield _across(counted.actions, counted.actions.rows, names, f"{whose}actions taken, by class: rows")
        title = f"{whose}what each loses against the best action for the class, per 1,000 rows"
        lost = tuple(tuple(round(1000 * loss, 2) for loss in row) for row in counted.actions.loss)
        yield _across(counted.actions, lost, names, title)


def action_tables(done: ActionCounts) -> Iterator[Table]:
    """What is done with scores of two classes where there are more than two actions."""
    labels = "label 0", "label 1"
    yield _across(done, done.rows, labels, "actions taken, by label: rows")
    lost = tuple(tuple(round(1000 * loss, 2) for loss in row) for row in done.loss)
    yield _across(done, lost, labels, "what each loses against the best action for the label, per 1,000 rows")


def cell_rows(counted: ByClass) -> Iterator[tuple[str, float]]:
    """Rows and loss of every cell that holds rows, by a key, for CSV."""
    done = counted.actions
    if done is None:
        return
    for what, cells in (("rows", done.rows), ("loss", done.loss)):
        for a, action in enumerate(done.actions):
            for k, each in enumerate(counted.classes):
                if done.rows[a][k] > 0:
                    yield f"{what}[{action}, {each.name}]", cells[a][k]


def _across(done: ActionCounts, cells: tuple[tuple[float, ...], ...], names: tuple[str, ...], title: str) -> Table:
    columns = (Column("action", words=True), *(Column(name) for name in names))
    rows = [
        Row((words(action), *(Cell((_count(value),)) for value in row)))
        for action, row in zip(done.actions, cells, strict=True)
    ]
    return Table(columns, tuple(rows), title=title, keys=1)


def _costliest(done: ActionCounts, names: tuple[str, ...], whose: str) -> Table:
    """The cells of action and class that lose most against the best action for the class."""
    lost = done.loss
    cells = [
        (lost[a][k], done.actions[a], names[k], rows) for a, row in enumerate(done.rows) for k, rows in enumerate(row)
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
