"""A decision whose utilities differ from row to row, as the user spells it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_UTILITY


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
        """The same: the utilities of the rows say of how many classes they are."""
        return self


def row_task_of(columns: Sequence[str], spelled: Mapping[str, Any]) -> RowTask:
    """The task of columns, by role, and of what else is spelled of a task. Errors: DecalError."""
    options = [_option(name) for name in columns]
    if "decision_threshold" in spelled:
        raise DecalError(
            f"{Hint('decision_threshold')} is one threshold, and {options[0]} gives every row its own",
            "drop one of them",
        )
    named = (*columns, *spelled)
    of_miss = [name for name in named if name in ("amount", "cost_fn_column", "cost_fn")]
    of_alarm = [name for name in named if name in ("cost_fp_column", "cost_fp")]
    others = [name for name in named if name not in (*of_miss, *of_alarm)]
    for twice in (list(named),) if others else (of_miss, of_alarm):
        if len(twice) > 1:
            shown = ", ".join(map(_option, twice))
            raise DecalError(f"the task is given more than once: {shown}", "keep one of them")
    if others:
        return RowTask(tuple(columns))
    if not of_alarm:
        raise DecalError(
            f"{options[0]} says what a miss costs", f"give {Hint('cost_fp')}, or {Hint('cost_fp_column')}, too"
        )
    if not of_miss:
        raise DecalError(
            f"{options[0]} says what a false alarm costs", f"give {Hint('amount')}, or {Hint('cost_fn')}, too"
        )
    costs = {name: spelled[name] for name in ("cost_fp", "cost_fn") if name in spelled}
    for name, cost in costs.items():
        if not (0 < cost <= MAX_UTILITY and math.isfinite(cost)):
            raise DecalError(
                f"{_option(name)} {cost:g} is not a positive number", "give what one such error costs, above 0"
            )
    return RowTask(tuple(columns), **costs)


def _option(name: str) -> str:
    return f"{Hint(name)}"
