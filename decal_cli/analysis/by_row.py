"""What utilities that differ from row to row come to: their thresholds, and what the amount alone decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from decal_cli.data import Dataset
from decal_cli.learn.held_out import least_amount
from decal_cli.learn.probe import WIDENED
from decal_cli.metrics.decisions import Change, Decisions
from decal_cli.metrics.inputs import row_stakes
from decal_cli.tables.estimate import MeanEstimate
from decal_cli.tables.row_utilities import RowStakes, RowUtilities
from decal_cli.tables.table import Floats
from decal_cli.task import RowTask


@dataclass(frozen=True)
class ByRow:
    """Thresholds of the rows of the first model, and their mean u_delta.

    columns: the names of columns by role. thresholds: the lowest, the median and the highest one in (0, 1), None where
    there is none. never, always: rows on which acting never, or always, pays, whatever the class. least_amount: the
    cost of a miss from which acting on every row wins most on these rows, None where it never wins or is the same
    everywhere.
    """

    task: RowTask
    columns: dict[str, tuple[str, ...]]
    thresholds: tuple[float, float, float] | None
    never: int
    always: int
    u_delta: float
    least_amount: float | None
    shape: tuple[int, int]
    """How many actions and classes the utilities are of."""

    @property
    def to_act_or_not(self) -> bool:
        """Whether the actions are to act on a row or not, by one threshold of each row."""
        return self.shape == (2, 2)

    @property
    def text(self) -> str:
        """What the utilities are made of."""
        return stakes_text(self.columns, self.task.cost_fp, self.task.cost_fn)


def by_row_of(dataset: Dataset, task: RowTask) -> ByRow:
    """Of the rows that the first model is evaluated on."""
    utilities = utilities_for(dataset, task)[0]
    inside, amount = np.empty(0), float("inf")
    if isinstance(utilities, RowUtilities):
        inside = utilities.threshold[(utilities.threshold > 0) & (utilities.threshold < 1)]
        amount = least_amount(utilities) if np.ptp(utilities.benefit) else amount
    never, always = utilities.settled
    named = {role: dataset.columns[role] for role in task.columns}
    return ByRow(
        task,
        {role: (names,) if isinstance(names, str) else names for role, names in named.items()},
        tuple(np.quantile(inside, (0, 0.5, 1)).tolist()) if len(inside) else None,
        never,
        always,
        utilities.rows.units.mean(utilities.u_delta).value,
        amount if np.isfinite(amount) else None,
        (len(utilities.utility), utilities.utility.shape[1]),
    )


def utilities_for(dataset: Dataset, task: RowTask) -> list[RowStakes]:
    """The utilities of the rows of each model."""
    return [row_stakes(model.rows, task) for model in dataset.models]


def won_by_row(stakes: RowStakes, score: Floats, over: Floats) -> MeanEstimate:
    """Utility per row won by acting on one held-out score over acting on another, each row by its own utilities."""
    gain = Change(Decisions.of_rows(stakes, over), Decisions.of_rows(stakes, score), WIDENED).gain
    return MeanEstimate(gain.value, gain.error)


def stakes_text(columns: Mapping[str, Sequence[str]], cost_fp: float | None, cost_fn: float | None) -> str:
    """What the utilities are made of, in few letters: the columns by role, and the costs that all rows share."""
    parts = [f"{role.removesuffix('_column')}={','.join(names)}" for role, names in sorted(columns.items())]
    costs = {"cost_fp": cost_fp, "cost_fn": cost_fn}
    return ",".join([*parts, *(f"{name}={cost:.12g}" for name, cost in costs.items() if cost is not None)])
