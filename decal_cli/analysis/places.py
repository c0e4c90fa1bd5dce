"""Who has a place where one can act on so many rows only, how many places there are, and how many rows have none."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from decal_cli.declarations.document import Count, Positive, Size
from decal_cli.errors import Undefined
from decal_cli.learn.held_out import build_by_amount
from decal_cli.metrics.at_capacity import AMOUNT_RANKING, SCORE_RANKING
from decal_cli.metrics.inputs import row_stakes, stakes_on
from decal_cli.tables.listed import Capacity, Listed, listed
from decal_cli.tables.row_utilities import RowUtilities
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats
from decal_cli.task import ClassDecision, RowTask, Task


@dataclass(frozen=True)
class Places:
    """Places and rows, of weighted rows as many as their share of the weight says.

    lists: one, or one for each period; full: those with no place left for a row that would be acted on. places: of all
    lists. acted: the rows that are acted on. reaching: those that would be, were there no limit. ranked_by: what the
    places go by; thresholds: the lowest and the highest of it from which on the lists act.
    """

    lists: Positive
    full: Count
    places: Size
    acted: Size
    reaching: Size
    ranked_by: Literal["score", "expected gain"]
    thresholds: tuple[float, float]

    @property
    def without(self) -> float:
        """Rows that would be acted on and have no place."""
        return self.reaching - self.acted


def listed_rows(rows: Rows, capacity: Capacity, task: Task | ClassDecision | RowTask | None, seed: int) -> Rows:
    """The rows with what their lists say of them.

    By their score, of which a row below the threshold of the task is not acted on; where rows have utilities of their
    own, or there are more than two actions or classes, by what a place is expected to win.
    """
    binary = task.two_actions if isinstance(task, Task) else None
    act_from = None if binary is None else binary.decision_threshold
    if task is None or binary is not None:
        return listed(rows, capacity, act_from)
    stakes = stakes_on(rows, task)
    by_gain = listed(rows, capacity, 0.0, stakes.in_place(rows.score).wins)
    if isinstance(task, RowTask) and isinstance(stakes, RowUtilities):
        return _with_others(by_gain, capacity, stakes, task, seed)
    return by_gain


def _with_others(by_gain: Rows, capacity: Capacity, utilities: RowUtilities, task: RowTask, seed: int) -> Rows:
    """The same with lists beside it: of the highest scores, and of the rows that cost most to miss.

    Each is among the rows that it would act on without a limit.
    """
    rows = utilities.rows
    others = {SCORE_RANKING: np.where(utilities.acts(rows.score), rows.score, -np.inf)}
    if np.ptp(utilities.benefit):
        # Of too few rows there is none, and a metric that asks for it says so.
        with contextlib.suppress(Undefined):
            others[AMOUNT_RANKING] = _by_amount(rows, task, seed)
    assert by_gain.listed is not None  # it was made just now
    beside = {name: _listed(rows, capacity, rank) for name, rank in others.items()}
    return replace(by_gain, listed=replace(by_gain.listed, beside=beside))


def _listed(rows: Rows, capacity: Capacity, rank: Floats) -> Listed:
    in_order = listed(rows, capacity, None, rank).listed
    assert in_order is not None  # it was made just now
    return in_order


def _by_amount(rows: Rows, task: RowTask, seed: int) -> Floats:
    """What missing each row costs, where flagging by amount alone acts on it; -infinity elsewhere, shape (T,)."""
    plain = replace(rows, features=None, groups={})
    utilities = row_stakes(plain.in_order(), task)
    assert isinstance(utilities, RowUtilities)  # asked of them
    rank = np.empty(len(rows))
    large = build_by_amount(utilities, seed=seed).large
    rank[plain.order] = np.where(large, utilities.benefit, -np.inf)
    return rank


def places_of(rows: Rows) -> Places | None:
    """Of these rows, among those that the lists are made of; None where there is no limit."""
    if rows.listed is None:
        return None
    lists, weight = rows.listed.lists, rows.weights
    unit = float(weight.sum()) / len(rows)
    room = lists.room * len(lists.rows) / float(lists.rows.weights.sum())
    return Places(
        len(lists),
        int(np.count_nonzero(lists.full)),
        float(room.sum()),
        float(weight @ rows.listed.acted) / unit,
        float(weight[rows.listed.wanted].sum()) / unit,
        "score" if lists.by_score else "expected gain",
        (float(lists.threshold.min()), float(lists.threshold.max())),
    )
