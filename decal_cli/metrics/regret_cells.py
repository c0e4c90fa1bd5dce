"""Rows in cells (bins, levels, or actions with a margin): what acting on the label shares of each cell would add.

max_a U[a].h - U[taken].h, h the label shares of the cell, is the calibration regret where cells are bins and the loss
of [C 2.14] where they are levels. Scores of two classes, probabilities of K and rows with stakes of their own differ in
how their cells lose; what is asked of cells is the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from decal_cli.learn.regions import bounds_of_bins
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import gaps
from decal_cli.metrics.confidence import Interval, holding
from decal_cli.metrics.decisions import Decisions, decide, second_best
from decal_cli.metrics.gaps import Levels, at_levels, levels_or_cells
from decal_cli.metrics.grouping import sides
from decal_cli.tables.classes import ClassTable, best_actions
from decal_cli.tables.design import MAX_ROUNDING, root_of
from decal_cli.tables.estimate import ratio
from decal_cli.tables.row_utilities import RowStakes, RowUtilities
from decal_cli.tables.rows import Rows, of_rows
from decal_cli.tables.table import Floats, Ints, Mask, Table, tabulate
from decal_cli.tables.units import Units, index_type, runs, summed
from decal_cli.tables.utilities import Utilities
from decal_cli.task import ClassDecision, Task, task_of_rows

N_REGRET_DRAWS = 400
PULL = 1.0
"""Standard errors by which parts are pulled towards 0, where noise biases most, for the low end."""

CLIPPED_TEXT = (
    "the upper end from 400 draws about what is seen; the low end less what chance adds where parts within a standard "
    "error of 0 are 0; and the value itself"
)


class SwitchGains(NamedTuple):
    """What each step would add in each cell, with standard errors, shape (steps, cells) each, per u_delta of the step.

    up: the factor of a positive gain that is lost, the share of the cell's rows decided below the step, times the
    step's share of the task's u_delta. down: that of a negative gain, with the rows decided above the step.
    """

    gain: Floats
    error: Floats
    up: Floats
    down: Floats

    def lost(self, gain: Floats) -> Floats:
        """Regret of these gains, shape (.., steps, cells) to (..)."""
        return np.asarray(np.maximum(self.up * gain, -self.down * gain).sum(axis=(-2, -1)))


def clipped(value: float, seen: Floats, biased: Floats, confidence: float) -> Interval:
    """The interval from draws about what is seen, and what chance adds where parts that noise may explain are 0."""
    tail = (1 - confidence) / 2
    low = value - float(np.quantile(biased, 1 - tail))
    return holding((max(low, 0.0), float(np.quantile(seen, 1 - tail))), value)


class _Bin(NamedTuple):
    """Rows of one bin by threshold, shape (m,); sums up to each of them, shape (m + 1,), of weight times u_delta.

    The first row of `size` and `at` is of rows that are not acted on, the second of those that are; at: the same sums,
    times the threshold.
    """

    threshold: Floats
    size: Floats
    at: Floats

    @property
    def middle(self) -> float:
        """The mean threshold of the rows, by their u_delta."""
        return float(self.at[:, -1].sum() / max(self.size[:, -1].sum(), 1e-300))

    def lost(self, rate: Floats, low: int = 0, high: int | None = None) -> Floats:
        """What rows `low` to `high` lose, per row of all, where the bin has these frequencies, shape (..)."""
        end = len(self.threshold) if high is None else high
        cut = np.clip(np.searchsorted(self.threshold, rate), low, end)
        idle = rate * (self.size[0, cut] - self.size[0, low]) - (self.at[0, cut] - self.at[0, low])
        acted = (self.at[1, end] - self.at[1, cut]) - rate * (self.size[1, end] - self.size[1, cut])
        return np.asarray(np.maximum(idle, 0.0) + np.maximum(acted, 0.0))

    def pulled(self, rate: float, error: float, noise: Floats) -> Floats:
        """What is lost where rows within an error of the frequency have nothing to win, and noise is added."""
        low, high = np.searchsorted(self.threshold, (rate - error, rate + error)).tolist()
        near = self.size[:, high] - self.size[:, low]
        nothing_to_win = np.maximum(noise, 0.0) * near[0] + np.maximum(-noise, 0.0) * near[1]
        return self.lost(rate - error + noise, 0, low) + self.lost(rate + error + noise, high) + nothing_to_win


class RowCells:
    """Rows in cells. cells: their table; of_row: the number of each row's cell, (T,); acts: its decision, (T,)."""

    def __init__(self, utilities: RowUtilities, cells: Table, of_row: Ints, acts: Mask) -> None:
        self.utilities, self.cells, self.acts = utilities, cells, acts
        self.rate: Floats = cells.pos / cells.n
        order = np.arange(len(of_row), dtype=index_type(len(of_row)))
        # Rows in order of their score are in order of their bin.
        if any((np.diff(of_row[part.start : part.stop + 1]) < 0).any() for part in runs(len(of_row))):
            order = order[np.argsort(of_row, kind="stable")]
        ends = np.cumsum(np.bincount(of_row, minlength=len(cells)))
        self.rows_of_bins = np.split(order, ends[:-1])
        for rows in self.rows_of_bins:
            rows[:] = rows[np.argsort(utilities.threshold[rows])]

    @property
    def bins(self) -> Iterator[_Bin]:
        """The bins, one after the other: together they would take more memory than the rows."""
        return (_bin(self.utilities, self.acts, rows) for rows in self.rows_of_bins)

    @cached_property
    def _of_bins(self) -> tuple[Floats, Floats]:
        """What each bin loses per decision, and its mean threshold by u_delta, (m,) each."""
        each = [(float(of.lost(rate)), of.middle) for of, rate in zip(self.bins, self.rate, strict=True)]
        lost, middle = np.array(each).T
        return lost, middle

    @property
    def value(self) -> float:
        """Utility lost per decision."""
        return float(sum(self._of_bins[0].tolist()))

    def interval(self, rng: Generator, confidence: float) -> Interval:
        """The interval of the regret that the population's frequencies would give."""
        rows, middle = self.cells.rows_of_cells, self._of_bins[1]
        # One more row of the bin's mean threshold: a bin that shows a single class errs as well.
        rates = (self.rate * rows + middle) / (rows + 1)
        error = np.sqrt((rates * (1 - middle) ** 2 + (1 - rates) * middle**2) / rows)
        noise = error * rng.standard_normal((N_REGRET_DRAWS, len(middle)))
        biased, seen = np.zeros((2, len(noise)))
        for each, rate, reach, moved in zip(self.bins, self.rate, PULL * error, noise.T, strict=True):
            seen += each.lost(rate + moved)
            biased += each.pulled(rate, reach, moved) - each.pulled(rate, reach, np.zeros(1))
        return clipped(self.value, seen, biased, confidence)

    def null(self, rng: Generator) -> Floats:
        """The value in draws of labels from the mean scores of cells, shape (N_NULL_DRAWS,)."""
        cells = self.cells.with_free_levels
        pos = np.array([drawn.pos for drawn in cells.null(rng, gaps.N_NULL_DRAWS)])
        lost = (each.lost(rate) for each, rate in zip(self.bins, (pos / cells.n).T, strict=True))
        return np.asarray(sum(lost), dtype=np.float64)


def _bin(utilities: RowUtilities, acts: Mask, rows: Ints) -> _Bin:
    """The bin of the rows of these numbers, which are in order of their threshold."""
    threshold = utilities.threshold[rows]
    inside = utilities.decidable(rows)
    rows, threshold, units = rows[inside], threshold[inside], utilities.rows.units
    size = units.weight[rows] * utilities.u_delta(rows) / units.total
    sums = np.zeros((2, 2, len(rows) + 1))
    for row, mine in enumerate((~acts[rows], acts[rows])):
        sums[0, row, 1:] = np.cumsum(size * mine)
        sums[1, row, 1:] = np.cumsum(size * threshold * mine)
    return _Bin(threshold, sums[0], sums[1])


MOST_ROW_DRAWS, MIN_DRAWS = 40_000_000, 100
"""Rows times draws, and draws at least, of cells whose rows have utilities of their own."""


class Lost(Protocol):
    """What decisions lose compared with better ones."""

    @property
    def value(self) -> float:
        """Utility per row that the best action of each cell adds to the decisions there."""

    def interval(self, rng: Generator, confidence: float) -> Interval:
        """The interval of what the population's label shares would give."""


class Cells(Lost, Protocol):
    """Rows in cells, by the decisions on them."""

    def null(self, rng: Generator) -> Floats:
        """The value in draws of labels from the scores of each cell, shape (N_NULL_DRAWS,)."""


class Regrets(ABC):
    """Decisions as they are made, on rows that can be put in cells."""

    table: Table | ClassTable

    @abstractmethod
    def swaps(self) -> Lost:
        """All rows that get one action as one cell."""

    @abstractmethod
    def bins(self, bins: int) -> Cells:
        """Equal-mass bins of the score."""

    @abstractmethod
    def levels(self, levels: Levels) -> Cells:
        """Levels of the score, or bins with their mean scores in place of the scores."""


@dataclass(frozen=True, eq=False)
class ScoreRegrets(Regrets):
    """Decisions on scores of two classes, which can be put in cells."""

    table: Table
    task: Task

    def swaps(self) -> Lost:
        return Swaps(Decisions.of_table(self.table, self.task))

    def bins(self, bins: int) -> ScoreCells:
        cells = self.table.bins(bins)
        below = [sides(self.table, cells, step)[0] * self.table.total for step in self.task.steps]
        return ScoreCells(cells, np.array(below), self.task)

    def levels(self, levels: Levels) -> ScoreCells:
        cells = at_levels(self.table, levels)
        at = np.array(self.task.decision_thresholds)[:, None]
        return ScoreCells(cells, np.where(cells.score < at, cells.n, 0.0), self.task)


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """below: the rows of each cell that are decided below each step of the task, shape (steps, m)."""

    cells: Table
    below: Floats
    task: Task

    @cached_property
    def parts(self) -> SwitchGains:
        """What each step would add in each cell."""
        n, pos = self.cells.n, self.cells.pos
        rows, total = self.cells.rows_of_cells, self.cells.total
        threshold, size = np.array(self.task.thresholds)[:, None], np.array(self.task.shares)[:, None]
        # One more row of t* in each cell: one that shows a single class errs as well.
        rate = (pos / n * rows + threshold) / (rows + 1)
        error = n / total * np.sqrt((rate * (1 - threshold) ** 2 + (1 - rate) * threshold**2) / rows)
        share = self.below / n
        return SwitchGains((pos - threshold * n) / total, error, size * share, size * (1 - share))

    @property
    def value(self) -> float:
        return self.task.u_delta * max(float(self.parts.lost(self.parts.gain)), 0.0)

    def interval(self, rng: Generator, confidence: float) -> Interval:
        """The interval of the value. All steps of a cell share its noise."""
        gain, error, lost = self.parts.gain, self.parts.error, self.parts.lost
        noise = error * rng.standard_normal((N_REGRET_DRAWS, 1, gain.shape[-1]))
        pulled = gaps.shrunken(gain, PULL * error)
        biased = lost(pulled + noise) - lost(pulled)
        low, high = clipped(max(float(lost(gain)), 0.0), lost(gain + noise), biased, confidence)
        return self.task.u_delta * low, self.task.u_delta * min(high, 1.0)

    def null(self, rng: Generator) -> Floats:
        cells, at = self.cells.with_free_levels, np.array(self.task.thresholds)[:, None]
        draws = (drawn.pos for drawn in cells.null(rng, gaps.N_NULL_DRAWS))
        return self.task.u_delta * np.array([self.parts.lost((pos - at * cells.n) / cells.total) for pos in draws])


class RowRegrets(Regrets):
    """Decisions on scores of two classes that can be put in cells, where every row has stakes of its own."""

    table: Table

    def __init__(self, u: RowStakes) -> None:
        self.u, self.table = u, u.rows.table

    @cached_property
    def _taken(self) -> Ints:
        return self.u.response(self.u.rows.score)

    def _cells(self, cell: Ints, action: Ints, table: Table) -> Cells:
        rows, score = self.u.rows, self.u.rows.score
        if isinstance(self.u, RowUtilities):
            return RowCells(self.u, table, cell, action == 1)
        return StakesCells(rows.units, self.u.utility, np.column_stack((1 - score, score)), cell, action)

    def swaps(self) -> Lost:
        actions, cell = np.unique(self._taken, return_inverse=True)
        table = replace(self.u.rows, score=actions[cell].astype(np.float64)).table
        return self._cells(cell.astype(np.int16), self._taken, table)

    def bins(self, bins: int) -> Cells:
        of_row = _of_row(self.u.rows, self.table.bin_starts(bins))
        return self._cells(of_row, self._taken, self.table.bins(bins))

    def levels(self, levels: Levels) -> Cells:
        rows, cells = self.u.rows, at_levels(self.table, levels)
        starts = np.arange(len(cells)) if cells is self.table else self.table.bin_starts()
        of_row = _of_row(rows, starts)
        return self._cells(of_row, self.u.response(cells.score[of_row]), cells)


def worst_of_rows(u: RowUtilities, bins: int) -> float:
    """What knowing every label adds to recalibrated decisions: the sharp bound, with the loss c (1 - c)."""
    table = u.rows.table
    cells, starts = table.bins(bins), table.bin_starts(bins)
    rates = cells.pos / cells.n

    def bound(part: slice) -> Floats:
        threshold, of_cell = u.threshold[part], rates[_cells_of(table, starts, u.rows.score[part])]
        inside = u.decidable(part)
        rate, lost = of_cell[inside], np.zeros(len(inside))
        lost[inside] = u.u_delta(part)[inside] * bounds_of_bins(rate * (1 - rate), rate, threshold[inside]).sharp
        return lost

    return u.rows.units.mean(bound).value


def _of_row(rows: Rows, starts: Ints) -> Ints:
    """The number of each row's cell, by the first level of each."""
    # Numbers of few bits are sorted by their digits.
    number: Ints = np.empty(len(rows), dtype=np.min_scalar_type(-len(starts)))
    for part in runs(len(rows)):
        number[part] = _cells_of(rows.table, starts, rows.score[part])
    return number


def _cells_of(table: Table, starts: Ints, score: Floats) -> Ints:
    """The number of the cell of each score, by the first level of each cell."""
    return np.searchsorted(table.score[starts], score, side="right") - 1


N_DRAWS = 400
MIN_CELL = 30
"""Effective rows in each bin of a margin, and in each pair of actions that is not pooled with others."""


def _by_pair(action: Ints, second: Ints, margin: Floats, units: Units, weight: Floats | None, bins: int) -> Ints:
    """Cells of rows with one action, one second-best action and about one margin: the number of each row's cell, (T,).

    second: the second-best action; margin: how much less it is worth, (T,). Cells are equal-mass bins of the margin
    among the rows of a pair, as many as leave MIN_CELL effective rows in each; rows of rarer pairs are pooled by their
    action.
    """
    actions, enough = (
        int(max(action.max(), second.max())) + 1,
        MIN_CELL * len(units) / units.effective_rows * (1 - MAX_ROUNDING),
    )
    pair = action * actions + second
    # No action is the second-best one to itself, so that the rarer pairs of an action are numbered as if it were.
    pair = np.where(np.bincount(pair)[pair] < enough, action * (actions + 1), pair).astype(
        np.min_scalar_type(actions**2)
    )
    order = np.argsort(pair, kind="stable")
    number, cells = np.empty(len(pair), dtype=np.int64), 0
    for here in np.split(order, np.flatnonzero(np.diff(pair[order])) + 1):
        table = tabulate(margin[here], np.zeros(len(here), dtype=np.int8), of_rows(weight, here))
        edges = table.score[table.bin_starts(int(np.clip(len(here) / enough, 1, bins)))]
        number[here] = np.searchsorted(edges, margin[here], side="right") - 1 + cells
        cells += len(edges)
    return number


@dataclass(frozen=True, eq=False)
class StakesCells:
    """Rows in cells. stakes: what all rows share, or each row's own.

    score: of each class, (T, K); cell: the number of each row's; action: what it gets, (T,).
    """

    units: Units
    stakes: Utilities
    score: Floats
    cell: Ints
    action: Ints

    @cached_property
    def _counts(self) -> tuple[Floats, Floats]:
        """Rows of each cell by class, (m, K), by weight and by squared weight, which counts the design effect in."""
        classes = self.score.shape[1]
        place, shape = self.cell.astype(np.int64) * classes + self.units.label, (int(self.cell.max()) + 1, classes)
        square = self.units.sampling.squares(self.units.weight)
        square = square * (self.units.total**2 / self.units.effective_rows / square.sum())
        sums = (np.bincount(place, each, shape[0] * classes) for each in (self.units.weight, square))
        rows, squares = (each.reshape(shape).astype(np.float64) for each in sums)
        return rows, squares

    @cached_property
    def _of_cell(self) -> Ints:
        """The action of each cell, (m,), where rows share their stakes, so that all of its rows get one."""
        return self.action[np.unique(self.cell, return_index=True)[1]]

    def _lost(self, counts: Floats) -> float:
        """Utility lost per row, by the counts of the classes in each cell, (m, K)."""
        if not self.stakes.own:
            worth = counts @ self.stakes.shared.T
            lost = worth.max(axis=1) - worth[np.arange(len(counts)), self._of_cell]
            return float(lost.sum() / max(counts.sum(), 1e-300))
        n = counts.sum(axis=1, keepdims=True)
        share = ratio(counts, n)[self.cell]
        worth = self.stakes.expected(share.T)
        lost = worth.max(axis=0) - worth[self.action, np.arange(len(self.action))]
        return float(self.units.weight @ lost / self.units.total)

    @property
    def value(self) -> float:
        return self._lost(self._counts[0])

    @property
    def _draws(self) -> int:
        """How many draws take some seconds."""
        if not self.stakes.own:
            return N_DRAWS
        return int(np.clip(MOST_ROW_DRAWS // len(self.cell), MIN_DRAWS, N_DRAWS))

    def interval(self, rng: Generator, confidence: float) -> Interval:
        """The bias-corrected interval: the classes of each cell are drawn again from those seen there."""
        seen, squares = self._counts
        unit = ratio(squares, seen, 1.0)
        lost = np.array([self._lost(rng.poisson(seen / unit).astype(np.float64) * unit) for _ in range(self._draws)])
        low, high = intervals.bias_corrected(self.value, lost, confidence)
        # Near 0, where what is lost is cut, the draws are skewed: their spread falls short of their upper tail.
        return intervals.holding((max(low, 0.0), max(high, gaps.central(lost, confidence)[1])), self.value)

    def null(self, rng: Generator) -> Floats:
        drawn = gaps.drawn_classes(self.units, self.score, self.cell, self._draws, rng)
        return np.array([self._lost(each) for each in drawn])


@dataclass(frozen=True, eq=False)
class ClassRegrets(Regrets):
    """Decisions on the probabilities of several classes, with stakes that all rows share or of each row."""

    table: ClassTable
    decision: ClassDecision | RowStakes

    @cached_property
    def _as_scores(self) -> ScoreRegrets | None:
        """The regrets of one score where there are two classes and shared stakes; None elsewhere."""
        if isinstance(self.decision, RowStakes) or len(self.table.classes) > 2:
            return None
        rows = tuple((row[0], row[1]) for row in self.decision.utility)
        return ScoreRegrets(self.table.one_vs_rest(1), task_of_rows(rows, names=self.decision.actions))

    def _best(self, score: Floats) -> Ints:
        if isinstance(self.decision, RowStakes):
            return self.decision.response(score)
        return best_actions(score, np.array(self.decision.utility))

    def _cells(self, cell: Ints, action: Ints) -> Cells:
        utility = self.decision.utility
        stakes = utility if isinstance(utility, Utilities) else Utilities.of(utility)
        return StakesCells(self.table.units, stakes, self.table.score, cell, action)

    def swaps(self) -> Lost:
        if not isinstance(self.decision, RowStakes):
            return Swaps(Decisions.of_classes(self.table, self.decision))
        taken = self._best(self.table.score)
        return self._cells(np.unique(taken, return_inverse=True)[1], taken)

    def bins(self, bins: int) -> Cells:
        if self._as_scores is not None and self._as_scores.task.two_actions is not None:
            return self._as_scores.bins(bins)
        c, decision = self.table, self.decision
        if isinstance(decision, RowStakes):
            action = self._best(c.score)
            second, margin = second_best(decision.expected_each(c.score), action)
        else:
            action, _, second, margin, _ = decide(c, decision)
        return self._cells(_by_pair(action, second, margin, c.units, c.weight, bins), action)

    def levels(self, levels: Levels) -> Cells:
        if self._as_scores is not None:
            return self._as_scores.levels(levels)
        used = levels_or_cells(self.table, levels)
        return self._cells(used.of_row, self._best(used.score[used.of_row]))


@dataclass(frozen=True, eq=False)
class Swaps:
    """What giving another action to all rows that get one adds, where rows share their stakes."""

    d: Decisions

    @cached_property
    def gains(self) -> Floats:
        """What giving action b in place of action a adds, per row of the whole, shape (A, A); 0 where a is b."""
        d, actions = self.d, len(self.d.stakes)
        sums = summed(
            d.action, lambda part: [d.worth(a, part) * d.units.weight[part] for a in range(actions)], actions
        ).T
        return np.asarray((sums - np.diagonal(sums)[:, None]) / d.units.total)

    @property
    def value(self) -> float:
        return float(self.gains.max(axis=1).sum())

    def interval(self, rng: Generator, confidence: float) -> Interval:
        """The interval of the value. Its noise counts a row that could have been missed, maybe of another label."""

        def lost(gain: Floats) -> Floats:
            return np.maximum(gain.max(axis=-1), 0.0)

        seen, biased, value = np.zeros(N_REGRET_DRAWS), np.zeros(N_REGRET_DRAWS), 0.0
        # Units that differ in action, label and cluster alone.
        units, actions = self.d.units.by(self.d.action)
        worth = self.d.stakes.shared[:, units.label]
        for taken in np.unique(self.d.action).tolist():
            influence = np.where(actions == taken, worth - worth[taken], 0.0) / units.total
            root = root_of(units.covariance(influence) + np.diag(np.full(len(worth), self.d.one_row)))
            noise = rng.standard_normal((N_REGRET_DRAWS, root.shape[1])) @ root.T
            noise[:, taken] = 0.0
            gain = self.gains[taken]
            pulled = gaps.shrunken(gain, PULL * np.sqrt((root**2).sum(axis=1)))
            value += float(lost(gain))
            seen += lost(gain + noise)
            biased += lost(pulled + noise) - lost(pulled)
        low, high = clipped(value, seen, biased, confidence)
        return low, max(min(high, self.d.most), self.value)
