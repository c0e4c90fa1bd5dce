"""The decision task: a 2 x 2 utility matrix, its threshold, and every spelling of it that a user may give."""

from __future__ import annotations

import csv
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from decal_cli.documents import json_of, read_document, toml_of
from decal_cli.errors import DecalError
from decal_cli.limits import MAX_SETTINGS_BYTES, MAX_UTILITY

Matrix = tuple[tuple[float, float], tuple[float, float]]
MAX_DIGITS = 9
"""Digits of a threshold that a user may have meant exactly."""


@dataclass(frozen=True)
class BinaryTask:
    """A binary decision with utilities: Perez-Lebel et al. 2025, eq. 2-5.

    utility[i][j] is the utility of deciding i when the outcome is j. decision_threshold is where the model is
    operated: decide 1 iff score >= decision_threshold; by default the optimal threshold t* of the utilities.
    """

    utility: Matrix
    decision_threshold: float

    @property
    def u_delta(self) -> float:
        """U00 - U10 + U11 - U01 > 0: the worth of correcting both wrong decisions (Perez-Lebel et al. 2025, eq. 4)."""
        (u00, u01), (u10, u11) = self.utility
        return (u00 - u10) + (u11 - u01)

    @cached_property
    def threshold(self) -> float:
        """t* = (U00 - U10) / u_delta, in (0, 1): act when a calibrated score >= t* (Perez-Lebel et al. 2025, eq. 4)."""
        return _decimal((self.utility[0][0] - self.utility[1][0]) / self.u_delta)

    @classmethod
    def of_utility(cls, utility: Sequence[Sequence[float]], decision_threshold: float | None = None) -> BinaryTask:
        """Check a utility matrix and make it a task."""
        matrix = _matrix(utility)
        (u00, u01), (u10, u11) = matrix
        u_delta = (u00 - u10) + (u11 - u01)
        shown = f"utility {_show(matrix)}"
        if u_delta == 0:
            raise DecalError(
                f"{shown} has u_delta = 0: the best action does not depend on the score",
                "make a right decision worth more than a wrong one: u00 + u11 > u10 + u01",
            )
        if abs(u_delta) < 1 / MAX_UTILITY:
            raise DecalError(f"{shown} has u_delta = {u_delta:g}, below {1 / MAX_UTILITY:g}", "take a smaller unit")
        if u_delta < 0:
            raise DecalError(
                f"{shown} has u_delta = {u_delta:g} < 0: its rows look swapped",
                f"row 0 is the utility of deciding 0; swapped it reads {_show((matrix[1], matrix[0]))}",
            )
        threshold = (u00 - u10) / u_delta
        if not 0 < threshold < 1:
            best = 1 if threshold <= 0 else 0
            raise DecalError(
                f"{shown} has t* = {threshold:g}, outside (0, 1): deciding {best} is never worse, no score is needed",
                "each decision must be the better one for some outcome: u00 > u10 and u11 > u01",
            )
        return cls(matrix, _checked_decision(decision_threshold, _decimal(threshold)))

    @classmethod
    def of_threshold(cls, threshold: float, decision_threshold: float | None = None) -> BinaryTask:
        """The unit task of a threshold: u_delta = 1, minus its expected utility is Tasche's loss [T 3.3a]."""
        if not 0 < threshold < 1:
            hint = f"; did you mean {threshold / 100:g}?" if 1 < threshold < 100 else ""
            fix = f"give a probability between 0 and 1{hint}"
            raise DecalError(f"threshold {threshold:g} is not inside (0, 1)", fix)
        return cls.of_utility(((0.0, -(1 - threshold)), (-threshold, 0.0)), decision_threshold)

    @classmethod
    def of_costs(cls, cost_fp: float, cost_fn: float, decision_threshold: float | None = None) -> BinaryTask:
        """Costs of the two errors: t* = cost_fp / (cost_fp + cost_fn), Gao et al. 2017, claim 1."""
        for name, cost in (("--cost-fp", cost_fp), ("--cost-fn", cost_fn)):
            if not (cost > 0 and math.isfinite(cost)):
                raise DecalError(f"{name} {cost:g} is not a positive number", "give what one such error costs, above 0")
        return cls.of_utility(((0.0, -cost_fn), (-cost_fp, 0.0)), decision_threshold)


def parse_odds(text: str, decision_threshold: float | None = None) -> BinaryTask:
    """'1:19', false positives to false negatives: t* = 1 / 20."""
    parts = text.split(":")
    try:
        cost_fp, cost_fn = (float(part) for part in parts)
    except ValueError:
        raise DecalError(f"odds {text!r} are not of the form a:b", "give for example --odds 1:19 (t* = .05)") from None
    return BinaryTask.of_costs(cost_fp, cost_fn, decision_threshold)


def parse_utility(text: str, decision_threshold: float | None = None) -> BinaryTask:
    """'u00,u01;u10,u11', or the path of a .json, .toml or .csv file that holds the 2 x 2 matrix."""
    reader = _FILE_READERS.get(Path(text).suffix.lower())
    if reader is None:
        rows: Any = [row.split(",") for row in text.split(";")]
        where = f"utility {text!r}"
    else:
        where = f"utility file {text}"
        fix = "name a readable file that holds a 2 x 2 matrix of numbers"
        rows = reader(read_document(text, where, fix, MAX_SETTINGS_BYTES), where, fix)
    try:
        matrix = [[float(cell) for cell in row] for row in rows]
    except (TypeError, ValueError, OverflowError):
        raise DecalError(f"{where} is not a 2 x 2 matrix of numbers", "write it as 'u00,u01;u10,u11'") from None
    return BinaryTask.of_utility(matrix, decision_threshold)


def utility_text(utility: Matrix) -> str:
    """The spelling 'u00,u01;u10,u11' that parse_utility reads back to the last bit."""
    return ";".join(",".join(repr(cell).removesuffix(".0") for cell in row) for row in utility)


def task_of(
    *,
    threshold: float | None = None,
    utility: str | Sequence[Sequence[float]] | None = None,
    cost_fp: float | None = None,
    cost_fn: float | None = None,
    odds: str | None = None,
    decision_threshold: float | None = None,
) -> BinaryTask | None:
    """The task that a user named in one of its spellings; None where none was named."""
    if (cost_fp is None) != (cost_fn is None):
        missing = "--cost-fn" if cost_fn is None else "--cost-fp"
        raise DecalError("one cost alone does not make a task", f"give {missing} too, or use --threshold")
    named: dict[str, Callable[[], BinaryTask]] = {}
    if threshold is not None:
        named["--threshold"] = lambda: BinaryTask.of_threshold(threshold, decision_threshold)
    if utility is not None:
        named["--utility"] = lambda: (
            parse_utility(utility, decision_threshold)
            if isinstance(utility, str)
            else BinaryTask.of_utility(utility, decision_threshold)
        )
    if cost_fp is not None and cost_fn is not None:
        named["--cost-fp/--cost-fn"] = lambda: BinaryTask.of_costs(cost_fp, cost_fn, decision_threshold)
    if odds is not None:
        named["--odds"] = lambda: parse_odds(odds, decision_threshold)
    if len(named) > 1:
        raise DecalError(f"the task is given more than once: {', '.join(named)}", "keep one of them")
    if not named:
        if decision_threshold is not None:
            raise DecalError(
                "--decision-threshold alone does not make a task",
                "say what the decision is worth: --threshold, --utility, --cost-fp/--cost-fn or --odds",
            )
        return None
    return next(iter(named.values()))()


SPELLINGS = tuple(inspect.signature(task_of).parameters)
"""What a task is named by: options of the command line, keys of a settings file, keywords of the Python API."""


def _matrix(utility: Sequence[Sequence[float]]) -> Matrix:
    try:
        (u00, u01), (u10, u11) = utility
        cells = (float(u00), float(u01), float(u10), float(u11))
    except (TypeError, ValueError, OverflowError):
        raise DecalError("the utility is not a 2 x 2 matrix of numbers", "write it as 'u00,u01;u10,u11'") from None
    if not all(abs(cell) <= MAX_UTILITY for cell in cells):
        raise DecalError(
            f"the utility holds a value that is not finite, or beyond {MAX_UTILITY:g}",
            "give four numbers in another unit",
        )
    return (cells[0], cells[1]), (cells[2], cells[3])


def _decimal(threshold: float) -> float:
    """The short decimal that a threshold is but for rounding: a score of t* then acts however the task is spelled."""
    short = float(f"{threshold:.{MAX_DIGITS}g}")
    return short if 0 < short < 1 and abs(short - threshold) <= 8 * math.ulp(threshold) else threshold


def _checked_decision(decision_threshold: float | None, threshold: float) -> float:
    if decision_threshold is None:
        return threshold
    if not 0 <= decision_threshold <= 1:
        raise DecalError(f"decision threshold {decision_threshold:g} is not in [0, 1]", "give a probability")
    return float(decision_threshold)


def _show(matrix: Matrix) -> str:
    return "'" + ";".join(",".join(f"{cell:g}" for cell in row) for row in matrix) + "'"


def _utility_entry(document: Any) -> Any:
    return document.get("utility") if isinstance(document, dict) else document


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
