"""Rows in cells (bins, levels, or actions with a margin): what acting on the label shares of each cell would add.

max_a U[a].h - U[taken].h, h the label shares of the cell, is the calibration regret where cells are bins and the loss
of [C 2.14] where they are levels. Scores of two classes, probabilities of K and rows with stakes of their own differ in
how their cells lose; what is asked of cells is the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.decisions import Decisions
from decal_cli.metrics.numerics import class_decisions, clipped, gaps
from decal_cli.metrics.numerics.at_levels import Levels, at_levels, levels_or_cells, need_rows
from decal_cli.metrics.numerics.regret_intervals import sides
from decal_cli.metrics.numerics.row_regrets import RowCells
from decal_cli.tables.classes import ClassTable, best_actions
from decal_cli.tables.clusters import root_of
from decal_cli.tables.resample import as_whole
from decal_cli.tables.row_utilities import RowStakes, RowUtilities
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats, Ints, Table
from decal_cli.tables.units import Units
from decal_cli.task import ClassDecision, Task, task_of_rows

MOST_ROW_DRAWS, MIN_DRAWS = 40_000_000, 100
"""Rows times draws, and draws at least, of cells whose rows have utilities of their own."""


class Lost(Protocol):
    """What decisions lose beside better ones."""

    @property
    def value(self) -> float:
        """Utility per row that the best action of each cell adds to the decisions there."""

    def interval(self, rng: np.random.Generator, confidence: float) -> Interval:
        """For what the population's label shares would give."""


class Cells(Lost, Protocol):
    """Rows in cells, by the decisions on them."""

    def null(self, rng: np.random.Generator) -> Floats:
        """The value in draws of labels from the scores of each cell, shape (N_NULL_DRAWS,)."""


class Regrets(ABC):
    """Decisions as they are made, on rows that can be put in cells."""

    @abstractmethod
    def swaps(self) -> Lost:
        """All rows that get one action as one cell."""

    @abstractmethod
    def bins(self, bins: int) -> Cells:
        """Equal-mass bins of the score."""

    @abstractmethod
    def levels(self, levels: Levels) -> Cells:
        """Levels of the score, or bins with their mean scores in place of the scores."""

    @abstractmethod
    def need_rows(self) -> None:
        """Raise Undefined where levels hold too few rows for what they show to estimate anything but noise."""


@dataclass(frozen=True, eq=False)
class ScoreRegrets(Regrets):
    """On scores of two classes."""

    t: Table
    task: Task

    def swaps(self) -> Lost:
        return Swaps(Decisions.of_table(self.t, self.task))

    def bins(self, bins: int) -> ScoreCells:
        cells = self.t.bins(bins)
        below = [sides(self.t, cells, step)[0] * self.t.total for step in self.task.steps]
        return ScoreCells(cells, np.array(below), self.task)

    def levels(self, levels: Levels) -> Cells:
        cells = at_levels(self.t, levels)
        at = np.array(self.task.decision_thresholds)[:, None]
        return ScoreCells(cells, np.where(cells.score < at, cells.n, 0.0), self.task)

    def need_rows(self) -> None:
        need_rows(self.t)


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """below: the rows of each cell that are decided below each step of the task, shape (steps, m)."""

    cells: Table
    below: Floats
    task: Task

    @cached_property
    def parts(self) -> clipped.SwitchGains:
        """What each step would add in each cell."""
        n, pos = np.asarray(self.cells.n, dtype=np.float64), np.asarray(self.cells.pos, dtype=np.float64)
        return clipped.parts(n, pos, gaps.concentration(self.cells), self.cells.total, self.task, self.below)

    @property
    def value(self) -> float:
        return self.task.u_delta * max(float(self.parts.lost(self.parts.gain)), 0.0)

    def interval(self, rng: np.random.Generator, confidence: float) -> Interval:
        low, high = clipped.interval(self.parts, rng, confidence)
        return self.task.u_delta * low, self.task.u_delta * min(high, 1.0)

    def null(self, rng: np.random.Generator) -> Floats:
        cells, at = self.cells, np.array(self.task.thresholds)[:, None]
        draws = (cells.design.relabelled(cells, rng, cells.score)[0] for _ in range(gaps.N_NULL_DRAWS))
        return self.task.u_delta * np.array([self.parts.lost((pos - at * cells.n) / cells.total) for pos in draws])


def regrets_of_rows(u: RowStakes) -> Regrets:
    """Where every row has stakes of its own."""
    return ThresholdRegrets(u) if isinstance(u, RowUtilities) else StakesRegrets(u)


@dataclass(frozen=True, eq=False)
class ThresholdRegrets(Regrets):
    """Where every row has a threshold of its own."""

    u: RowUtilities

    def swaps(self) -> Lost:
        acts = self.u.acts(self.u.rows.score)
        actions, of_row = np.unique(acts, return_inverse=True)
        decided = replace(self.u.rows, score=actions[of_row].astype(np.float64))
        return RowCells(self.u, decided.table, of_row, acts)

    def bins(self, bins: int) -> RowCells:
        rows = self.u.rows
        of_row = _of_row(rows, rows.table.bin_starts(bins))
        return RowCells(self.u, rows.table.bins(bins), of_row, self.u.acts(rows.score))

    def levels(self, levels: Levels) -> Cells:
        cells, of_row = _at_levels(self.u.rows, levels)
        return RowCells(self.u, cells, of_row, self.u.acts(cells.score[of_row]))

    def need_rows(self) -> None:
        need_rows(self.u.rows.table)


@dataclass(frozen=True, eq=False)
class StakesRegrets(Regrets):
    """Where every row has its own utilities of any number of actions and classes."""

    u: RowStakes

    @cached_property
    def _taken(self) -> Ints:
        return self.u.response(self.u.rows.score)

    def _cells(self, cell: Ints, action: Ints) -> Cells:
        units, score = self.u.rows.units, self.u.rows.score
        of_classes = score if score.ndim > 1 else np.column_stack((1 - score, score))
        return StakesCells(units, units.sampling.squares(units.weight), self.u.utility, of_classes, cell, action)

    def swaps(self) -> Lost:
        return self._cells(np.unique(self._taken, return_inverse=True)[1], self._taken)

    def bins(self, bins: int) -> Cells:
        rows = self.u.rows
        if rows.classes:
            worth = np.sort(self.u.expected_each(rows.score), axis=0)
            margins = class_decisions.cells_of_margins(self._taken, worth[-1] - worth[-2], rows.weight, bins)
            return self._cells(margins.of_row, self._taken)
        return self._cells(_of_row(rows, rows.table.bin_starts(bins)), self._taken)

    def levels(self, levels: Levels) -> Cells:
        rows = self.u.rows
        if rows.classes:
            used = levels_or_cells(rows.class_table, levels)
            return self._cells(used.of_row, self.u.response(used.score[used.of_row]))
        cells, of_row = _at_levels(rows, levels)
        return self._cells(of_row, self.u.response(cells.score[of_row]))

    def need_rows(self) -> None:
        if self.u.rows.classes:
            need_class_rows(self.u.rows.class_table)
        else:
            need_rows(self.u.rows.table)


def _of_row(rows: Rows, starts: Ints) -> Ints:
    """The number of each row's cell, by the first level of each."""
    return np.searchsorted(rows.table.score[starts], rows.score, side="right") - 1


def _at_levels(rows: Rows, levels: Levels) -> tuple[Table, Ints]:
    """Levels of the score, or bins in their place, and the number of each row's."""
    table = rows.table
    cells = at_levels(table, levels)
    return cells, _of_row(rows, np.arange(len(table)) if cells is table else table.bin_starts())


@dataclass(frozen=True, eq=False)
class StakesCells:
    """Rows in cells. square: squared weights, (T,). stakes: (A, K), or (A, K, T) where every row has its own.

    score: of each class, (T, K); cell: the number of each row's; action: what it gets, (T,).
    """

    units: Units
    square: Floats
    stakes: Floats
    score: Floats
    cell: Ints
    action: Ints

    @cached_property
    def _counts(self) -> tuple[Floats, Floats]:
        """Rows of each cell by class, (m, K), by weight and by squared weight."""
        classes = self.score.shape[1]
        place, shape = self.cell * classes + self.units.label, (int(self.cell.max()) + 1, classes)
        sums = (np.bincount(place, each, shape[0] * classes) for each in (self.units.weight, self.square))
        rows, squares = (each.reshape(shape).astype(np.float64) for each in sums)
        return rows, squares

    @cached_property
    def _of_cell(self) -> Ints:
        """The action of each cell, (m,), where rows share their stakes, so that all of its rows get one."""
        return self.action[np.unique(self.cell, return_index=True)[1]]

    def _lost(self, counts: Floats) -> float:
        """Per row, by the shares of the classes in each cell; counts: (m, K)."""
        if self.stakes.ndim == 2:
            worth = counts @ self.stakes.T
            lost = worth.max(axis=1) - worth[np.arange(len(counts)), self._of_cell]
            return float(lost.sum() / max(counts.sum(), 1e-300))
        n = counts.sum(axis=1, keepdims=True)
        share = np.divide(counts, n, out=np.zeros_like(counts), where=n > 0)[self.cell]
        worth = np.einsum("akt,tk->at", self.stakes, share)
        lost = worth.max(axis=0) - worth[self.action, np.arange(len(self.action))]
        return float(self.units.weight @ lost / self.units.total)

    @property
    def value(self) -> float:
        return self._lost(self._counts[0])

    @property
    def _draws(self) -> int:
        """As many as take some seconds."""
        if self.stakes.ndim == 2:
            return class_decisions.N_DRAWS
        return int(np.clip(MOST_ROW_DRAWS // len(self.cell), MIN_DRAWS, class_decisions.N_DRAWS))

    def interval(self, rng: np.random.Generator, confidence: float) -> Interval:
        """Bias-corrected: the classes of each cell drawn again from those seen there."""
        seen, squares = self._counts
        unit = np.divide(squares, seen, out=np.ones_like(seen), where=seen > 0)
        lost = np.array([self._lost(rng.poisson(seen / unit).astype(np.float64) * unit) for _ in range(self._draws)])
        low, high = intervals.bias_corrected(self.value, lost, confidence)
        # Near 0, where what is lost is cut, the draws are skewed: their spread falls short of their upper tail.
        return intervals.holding((max(low, 0.0), max(high, gaps.central(lost, confidence)[1])), self.value)

    def null(self, rng: np.random.Generator) -> Floats:
        rows, squares = (each.sum(axis=1) for each in self._counts)
        chance = np.array([np.bincount(self.cell, self.units.weight * column, len(rows)) for column in self.score.T]).T
        effective = as_whole(rows / (squares / rows))
        labels = rng.multinomial(effective, chance / chance.sum(axis=1, keepdims=True), (self._draws, len(rows)))
        return np.array([self._lost(draw * (rows / effective)[:, None]) for draw in labels])


@dataclass(frozen=True, eq=False)
class ClassRegrets(Regrets):
    """On the probabilities of several classes."""

    c: ClassTable
    decision: ClassDecision

    @cached_property
    def _as_scores(self) -> ScoreRegrets | None:
        """Two classes are a score and its task; None of more."""
        if len(self.c.classes) > 2:
            return None
        rows = tuple((row[0], row[1]) for row in self.decision.utility)
        return ScoreRegrets(self.c.one_vs_rest(1), task_of_rows(rows, names=self.decision.actions))

    @property
    def _utility(self) -> Floats:
        return np.array(self.decision.utility, dtype=np.float64)

    def _cells(self, cell: Ints, of_cell: Ints) -> Cells:
        c, square = self.c, self.c.effect * self.c.units.weight**2
        return StakesCells(c.units, square, self._utility, c.score, cell, of_cell[cell])

    def swaps(self) -> Lost:
        return Swaps(Decisions.of_classes(self.c, self.decision))

    def bins(self, bins: int) -> Cells:
        if self._as_scores is not None and self._as_scores.task.two_actions is not None:
            return self._as_scores.bins(bins)
        return self._cells(*class_decisions.margin_cells(self.c, self.decision, bins))

    def levels(self, levels: Levels) -> Cells:
        if self._as_scores is not None:
            return self._as_scores.levels(levels)
        used = levels_or_cells(self.c, levels)
        return self._cells(used.of_row, best_actions(used.score, self._utility))

    def need_rows(self) -> None:
        need_class_rows(self.c)


def need_class_rows(c: ClassTable) -> None:
    """Raise Undefined where levels hold too few rows for what they show to estimate anything but noise."""
    if not c.levels_count:
        raise Undefined("the median level holds fewer than 30 rows")


@dataclass(frozen=True, eq=False)
class Swaps:
    """What giving another action to all rows that get one adds, where rows share their stakes."""

    d: Decisions

    @cached_property
    def gains(self) -> Floats:
        """What giving action b in place of action a adds, per row of the whole, shape (A, A); 0 where a is b."""
        d, actions = self.d, len(self.d.stakes)
        sums = np.array([np.bincount(d.action, d.units.weight * each, actions) for each in d.worth]).T
        return np.asarray((sums - np.diagonal(sums)[:, None]) / d.units.total)

    @property
    def value(self) -> float:
        return float(self.gains.max(axis=1).sum())

    def interval(self, rng: np.random.Generator, confidence: float) -> Interval:
        moved = [clipped.Moved(self.gains[a], self._noise(a), a) for a in np.unique(self.d.action).tolist()]
        low, high = clipped.best_of_each(moved, rng, confidence)
        return low, max(min(high, self.d.most), self.value)

    def _noise(self, action: int) -> Floats:
        """A root of the covariance of what giving each other action in place of this one adds, (A, A).

        It holds a row that could have been missed, which might have shown another label.
        """
        units, actions = self._reduced
        worth = self.d.stakes[:, units.label]
        influence = np.where(actions == action, worth - worth[action], 0.0) / units.total
        return root_of(units.covariance(influence) + np.diag(np.full(len(worth), self.d.one_row)))

    @cached_property
    def _reduced(self) -> tuple[Units, Ints]:
        """Units that differ in action, label and cluster alone, and the action of each."""
        return self.d.units.by(self.d.action)
