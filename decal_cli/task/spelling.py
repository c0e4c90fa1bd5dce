"""Every spelling of a task that a user may give."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from decal_cli.documents import json_of, read_document, toml_of
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_SETTINGS_BYTES, MAX_UTILITY
from decal_cli.task.actions import BinaryTask, ClassTask, RowTask, Task, class_task, task_of_rows

_SHAPE = "a matrix of numbers, 2 x 2 or with more rows"
COSTS = "cost matrix"


def parse_odds(text: str, decision_threshold: float | None = None) -> BinaryTask:
    """'1:19', false positives to false negatives: t* = 1 / 20."""
    parts = text.split(":")
    try:
        cost_fp, cost_fn = (float(part) for part in parts)
        if not (0 < cost_fp < math.inf and 0 < cost_fn < math.inf):
            raise ValueError
    except ValueError:
        fix = f"give for example {Hint('odds', '1:19')} (t* = 0.05)"
        raise DecalError(f"odds {text!r} are not of the form a:b, two numbers above 0", fix) from None
    return BinaryTask.of_costs(cost_fp, cost_fn, decision_threshold)


def parse_utility(given: Any, decision_threshold: float | None = None, what: str = "utility") -> Task | ClassTask:
    """'u00,u01;u10,u11', a row for each action and maybe its name first, or a .json, .toml or .csv file of that.

    Also rows of numbers, or a mapping of names to rows. With a column for each of several classes, names of the classes
    may stand in a first row. what: 'utility', or 'cost matrix', whose numbers are utilities once their sign is turned.
    """
    rows, where = given, f"the {what}"
    if isinstance(given, str):
        reader = _FILE_READERS.get(Path(given).suffix.lower())
        where = f"{what} file {given}" if reader else f"{what} {given!r}"
        if not reader:
            rows = [row.split(",") for row in given.split(";")]
        else:
            fix = f"name a readable file that holds {_SHAPE}"
            rows = reader(read_document(given, where, fix, MAX_SETTINGS_BYTES), where, fix)
    try:
        columns, rows = _header_of(rows)
        names, matrix = _named_rows(rows)
    except (TypeError, ValueError, LookupError, OverflowError):
        columns, names, matrix = (), (), []
    if what == COSTS:
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
    names = tuple(None if _is_number(row[0]) else str(row[0]).strip() for row in rows)
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
    named = not _is_number(rows[1][0])
    columns = tuple(str(cell).strip() for cell in rows[0])
    return columns[1:] if named and (len(columns) == width or not columns[0]) else columns, rows[1:]


SPELLINGS = ("threshold", "utility", "cost_matrix", "cost_fp", "cost_fn", "odds", "abstain", "decision_threshold")
"""What a task is named by: options of the command line, keys of a settings file, keywords of the Python API."""


def task_of(**spelled: Any) -> Task | ClassTask | None:
    """The task that a user named in one of its SPELLINGS; None where none was named. Errors: DecalError."""
    given = {name: value for name, value in spelled.items() if value is not None}
    at = given.pop("decision_threshold", None)
    costs = f"{Hint('cost_fp').words}/{Hint('cost_fn').words}"
    if ("cost_fp" in given) != ("cost_fn" in given):
        missing = Hint("cost_fn" if "cost_fp" in given else "cost_fp").words
        raise DecalError("one cost alone does not make a task", f"give {missing} too, or use {Hint('threshold')}")
    spellings: dict[str, Callable[[Any], Task | ClassTask]] = {
        "threshold": lambda threshold: BinaryTask.of_threshold(threshold, at),
        "utility": lambda utility: parse_utility(utility, at),
        "cost_matrix": lambda matrix: parse_utility(matrix, at, COSTS),
        "cost_fp": lambda cost: BinaryTask.of_costs(cost, given["cost_fn"], at),
        "odds": lambda odds: parse_odds(odds, at),
        "abstain": abstaining,
    }
    named = [name for name in spellings if name in given]
    if at is not None and "abstain" in named:
        raise DecalError(
            f"{Hint('decision_threshold')} is for scores of two classes, and {Hint('abstain')} for several", "drop one"
        )
    if len(named) > 1:
        raise _twice(costs if name == "cost_fp" else Hint(name).words for name in named)
    if at is not None and not named:
        raise DecalError(
            f"{Hint('decision_threshold')} alone does not make a task",
            f"say what the decision is worth: {Hint('threshold')}, {Hint('utility')}, {costs} or {Hint('odds')}",
        )
    return spellings[named[0]](given[named[0]]) if named else None


def _twice(named: Iterable[str]) -> DecalError:
    return DecalError(f"the task is given more than once: {', '.join(named)}", "keep one of them")


def row_task_of(columns: Sequence[str], spelled: Mapping[str, Any]) -> RowTask:
    """The task that columns, by role, and other spelled parts of a task make up. Errors: DecalError."""
    first = Hint(columns[0])
    if "decision_threshold" in spelled:
        raise DecalError(
            f"{Hint('decision_threshold')} is one threshold, and {first} gives every row its own",
            "drop one of them",
        )
    named = (*columns, *spelled)
    of_miss = [name for name in named if name in ("amount", "cost_fn_column", "cost_fn")]
    of_alarm = [name for name in named if name in ("cost_fp_column", "cost_fp")]
    others = [name for name in named if name not in (*of_miss, *of_alarm)]
    for twice in (list(named),) if others else (of_miss, of_alarm):
        if len(twice) > 1:
            raise _twice(f"{Hint(name)}" for name in twice)
    if others:
        return RowTask(tuple(columns))
    if not of_alarm:
        raise DecalError(f"{first} says what a miss costs", f"give {Hint('cost_fp')}, or {Hint('cost_fp_column')}, too")
    if not of_miss:
        raise DecalError(f"{first} says what a false alarm costs", f"give {Hint('amount')}, or {Hint('cost_fn')}, too")
    costs = {name: spelled[name] for name in ("cost_fp", "cost_fn") if name in spelled}
    for name, cost in costs.items():
        if not 0 < cost <= MAX_UTILITY:
            raise DecalError(
                f"{Hint(name, f'{cost:g}')} is not a positive number", "give what one such error costs, above 0"
            )
    return RowTask(tuple(columns), **costs)


def abstaining(price: float) -> ClassTask:
    """The task of naming the class or abstaining, at this price."""
    if not 0 <= price <= 1:
        raise DecalError(
            f"{Hint('abstain', f'{price:g}')} is not in [0, 1]", "give a part of what a right answer is worth"
        )
    return ClassTask(abstain=float(price))


def _utility_entry(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    return document.get("utility", document.get("cost_matrix", document))


def _csv_rows(text: str, where: str, fix: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(text.splitlines()) if row]
    except csv.Error as error:
        raise DecalError(f"{where} is not CSV ({error})", fix) from None


_FILE_READERS: dict[str, Callable[[str, str, str], Any]] = {
    ".json": lambda text, where, fix: _utility_entry(json_of(text, where, fix, constants=True)),
    ".toml": lambda text, where, fix: _utility_entry(toml_of(text, where, fix)),
    ".csv": _csv_rows,
}
