"""What utilities that differ from row to row come to: their thresholds, and what the amount alone decides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.crossfit.row_utilities import least_amount
from decal_cli.data import Dataset
from decal_cli.tables.row_utilities import RowUtilities, utilities_of
from decal_cli.tables.rows import Rows
from decal_cli.task import RowTask


@dataclass(frozen=True)
class ByRow:
    """Thresholds of the rows of the first model, and their mean u_delta.

    columns: the names of columns by role. low, middle, high: the lowest, the median and the highest threshold in (0,
    1), None where there is none. never, always: rows on which acting never, or always, pays. least_amount: the cost of
    a miss from which acting on every row wins most on these rows, None where it never wins or is the same everywhere.
    """

    task: RowTask
    columns: dict[str, tuple[str, ...]]
    low: float | None
    middle: float | None
    high: float | None
    never: int
    always: int
    u_delta: float
    least_amount: float | None


def by_row_of(dataset: Dataset, task: RowTask) -> ByRow:
    """Of the rows that the first model is evaluated on."""
    utilities = utilities_for(dataset, task)[0]
    thresholds = utilities.threshold
    inside = thresholds[(thresholds > 0) & (thresholds < 1)]
    low, middle, high = np.quantile(inside, (0, 0.5, 1)).tolist() if len(inside) else (None, None, None)
    named = {role: dataset.columns[role] for role in task.columns}
    amount = least_amount(utilities) if np.ptp(utilities.benefit) else float("inf")
    return ByRow(
        task,
        {role: (names,) if isinstance(names, str) else names for role, names in named.items()},
        low,
        middle,
        high,
        int(np.count_nonzero(thresholds >= 1)),
        int(np.count_nonzero(thresholds <= 0)),
        utilities.mean(utilities.u_delta).mean,
        amount if np.isfinite(amount) else None,
    )


def utilities_for(dataset: Dataset, task: RowTask) -> list[RowUtilities]:
    """The utilities of the rows of each model."""
    return [row_utilities(model.rows, task) for model in dataset.models]


def row_utilities(rows: Rows, task: RowTask) -> RowUtilities:
    """The utilities of rows, in their order."""
    return RowUtilities(rows, utilities_of(rows.amounts, task.cost_fp, task.cost_fn, task.factor))


def by_row_text(by_row: ByRow) -> str:
    """What the utilities are made of, in few letters for a signature."""
    task = by_row.task
    parts = [f"{role.removesuffix('_column')}={','.join(names)}" for role, names in by_row.columns.items()]
    parts += [f"{name}={cost:.12g}" for name in ("cost_fp", "cost_fn") if (cost := getattr(task, name)) is not None]
    return ",".join(parts)
