"""Every spelling of a task that a user may give."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from decal_cli.documents import json_of, read_document, toml_of
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_SETTINGS_BYTES
from decal_cli.task.actions import BinaryTask, Task, task_of_rows
from decal_cli.task.classes import ClassTask, abstaining, class_task

_SHAPE = "a matrix of numbers, 2 x 2 or with more rows"


def parse_odds(text: str, decision_threshold: float | None = None) -> BinaryTask:
    """'1:19', false positives to false negatives: t* = 1 / 20."""
    parts = text.split(":")
    try:
        cost_fp, cost_fn = (float(part) for part in parts)
    except ValueError:
        raise DecalError(
            f"odds {text!r} are not of the form a:b", f"give for example {Hint('odds', '1:19')} (t* = 0.05)"
        ) from None
    return BinaryTask.of_costs(cost_fp, cost_fn, decision_threshold)


def parse_utility(text: str, decision_threshold: float | None = None, what: str = "utility") -> Task | ClassTask:
    """'u00,u01;u10,u11', a row for each action and maybe its name first, or a .json, .toml or .csv file of that.

    With a column for each of several classes, names of the classes may stand in a first row. what: 'utility', or 'cost
    matrix', whose numbers are utilities once their sign is turned.
    """
    reader = _FILE_READERS.get(Path(text).suffix.lower())
    if reader is None:
        rows: Any = [row.split(",") for row in text.split(";")]
        where = f"{what} {text!r}"
    else:
        where = f"{what} file {text}"
        fix = f"name a readable file that holds {_SHAPE}"
        rows = reader(read_document(text, where, fix, MAX_SETTINGS_BYTES), where, fix)
    return _task_of_cells(rows, where, decision_threshold, what == COSTS)


COSTS = "cost matrix"


def _task_of_cells(rows: Any, where: str, decision_threshold: float | None, costs: bool = False) -> Task | ClassTask:
    """The task of rows of cells, each maybe with its name first, or of a mapping of names to rows."""
    try:
        columns, rows = _header_of(rows)
        names, matrix = _named_rows(rows)
    except (TypeError, ValueError, LookupError, OverflowError):
        columns, names, matrix = (), (), []
    if costs:
        matrix = [[0.0 - cell for cell in row] for row in matrix]
    if len(matrix) >= 2 and len(matrix[0]) > 2:
        if decision_threshold is not None:
            raise DecalError(f"{Hint('decision_threshold')} is for scores of two classes", "drop it")
        return class_task(matrix, names, columns)
    if len(matrix) < 2 or columns:
        raise DecalError(
            f"{where} is not {_SHAPE}", "write it as 'u00,u01;u10,u11', or with names: 'wait,0,-9;treat,-1,0'"
        )
    return task_of_rows(matrix, decision_threshold, names)


def utility_text(utility: Sequence[Sequence[float]], names: Sequence[str] = ()) -> str:
    """The spelling 'u00,u01;u10,u11', names first where there are any, that parse_utility reads to the last bit."""
    cells = [[repr(cell).removesuffix(".0") for cell in row] for row in utility]
    named = [[name, *row] for name, row in zip(names, cells, strict=True)] if names else cells
    return ";".join(",".join(row) for row in named)


def _named_rows(rows: Any) -> tuple[tuple[str, ...], list[list[float]]]:
    """Names of the actions, () where they have none, and their rows. Errors: TypeError, ValueError, LookupError."""
    if isinstance(rows, Mapping):
        return tuple(map(str, rows)), [_numbers(row) for row in rows.values()]
    names = tuple(str(row[0]).strip() if len(row) > 2 and not _is_number(row[0]) else None for row in rows)
    matrix = [_numbers(row if name is None else row[1:]) for name, row in zip(names, rows, strict=True)]
    if all(name is None for name in names):
        return (), matrix
    return tuple(name or "" for name in names), matrix


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _numbers(row: Any) -> list[float]:
    if isinstance(row, str) or len(row) < 2:
        raise TypeError
    return [float(cell) for cell in row]


def _header_of(rows: Any) -> tuple[tuple[str, ...], Any]:
    """The names of the classes, where a first row holds them, and the other rows."""
    if isinstance(rows, Mapping) or any(_is_number(cell) for cell in rows[0]):
        return (), rows
    width = len(rows[1])
    named = width > 0 and not _is_number(rows[1][0])
    columns = tuple(str(cell).strip() for cell in rows[0])
    return columns[1:] if named and len(columns) == width else columns, rows[1:]


def task_of(
    *,
    threshold: float | None = None,
    utility: str | Sequence[Sequence[float]] | Mapping[str, Sequence[float]] | None = None,
    cost_matrix: str | Sequence[Sequence[float]] | Mapping[str, Sequence[float]] | None = None,
    cost_fp: float | None = None,
    cost_fn: float | None = None,
    odds: str | None = None,
    abstain: float | None = None,
    decision_threshold: float | None = None,
) -> Task | ClassTask | None:
    """The task that a user named in one of its spellings; None where none was named."""
    if (cost_fp is None) != (cost_fn is None):
        missing = Hint("cost_fn").words if cost_fn is None else Hint("cost_fp").words
        raise DecalError("one cost alone does not make a task", f"give {missing} too, or use {Hint('threshold')}")
    named: dict[str, Callable[[], Task | ClassTask]] = {}
    if threshold is not None:
        named[Hint("threshold").words] = lambda: BinaryTask.of_threshold(threshold, decision_threshold)
    if utility is not None:
        named[Hint("utility").words] = lambda: (
            parse_utility(utility, decision_threshold)
            if isinstance(utility, str)
            else _task_of_cells(utility, "the utility", decision_threshold)
        )
    if cost_matrix is not None:
        named[Hint("cost_matrix").words] = lambda: (
            parse_utility(cost_matrix, decision_threshold, COSTS)
            if isinstance(cost_matrix, str)
            else _task_of_cells(cost_matrix, f"the {COSTS}", decision_threshold, costs=True)
        )
    if cost_fp is not None and cost_fn is not None:
        named[f"{Hint('cost_fp').words}/{Hint('cost_fn').words}"] = lambda: BinaryTask.of_costs(
            cost_fp, cost_fn, decision_threshold
        )
    if odds is not None:
        named[Hint("odds").words] = lambda: parse_odds(odds, decision_threshold)
    if abstain is not None:
        named[Hint("abstain").words] = lambda: abstaining(abstain)
    if abstain is not None and decision_threshold is not None:
        raise DecalError(
            f"{Hint('decision_threshold')} is for scores of two classes, and {Hint('abstain')} for several", "drop one"
        )
    if len(named) > 1:
        raise DecalError(f"the task is given more than once: {', '.join(named)}", "keep one of them")
    if not named:
        if decision_threshold is not None:
            raise DecalError(
                f"{Hint('decision_threshold')} alone does not make a task",
                f"say what the decision is worth: {Hint('threshold')}, {Hint('utility')}, "
                f"{Hint('cost_fp')}/{Hint('cost_fn')} or {Hint('odds')}",
            )
        return None
    return next(iter(named.values()))()


SPELLINGS = tuple(inspect.signature(task_of).parameters)
"""What a task is named by: options of the command line, keys of a settings file, keywords of the Python API."""


def _utility_entry(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    return document.get("utility", document.get("cost_matrix", document))


def _csv_rows(text: str, where: str, fix: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(text.splitlines()) if row]
    except csv.Error as error:
        raise DecalError(f"{where}: is not CSV ({error})", fix) from None


_FILE_READERS: dict[str, Callable[[str, str, str], Any]] = {
    ".json": lambda text, where, fix: _utility_entry(json_of(text, where, fix, constants=True)),
    ".toml": lambda text, where, fix: _utility_entry(toml_of(text, where, fix)),
    ".csv": _csv_rows,
}
