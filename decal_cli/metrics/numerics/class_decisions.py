"""Decisions on the probabilities of several classes: the action of each row, its promise, and what others would add."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decal_cli.tables.classes import ClassTable, best_by_block
from decal_cli.tables.resample import as_whole
from decal_cli.tables.table import BINS, BLOCK, Floats, Ints, tabulate
from decal_cli.task.classes import ClassDecision

N_DRAWS = 400
MAX_PROMISE_CELLS = 2048
"""Cells of the promised utility on which its error is drawn."""


class DecidedRows(NamedTuple):
    """What each row decides, shape (T,) each. action: its number; promise: its expected utility by the row's own
    probabilities; margin: how much the second-best action is worth less by them; won: its utility at the label.
    """

    action: Ints
    promise: Floats
    margin: Floats
    won: Floats


def decide(c: ClassTable, decision: ClassDecision) -> DecidedRows:
    """The best action for every row's probabilities."""
    return c.cached(("decided", decision), lambda: _decide(c, decision))


def _decide(c: ClassTable, decision: ClassDecision) -> DecidedRows:
    promise, margin = np.empty(len(c)), np.empty(len(c))
    action = np.empty(len(c), dtype=np.int64)
    for part, worth, first in best_by_block(c.score, np.array(decision.utility)):
        rows = np.arange(len(first))
        action[part], promise[part] = first, worth[first, rows]
        worth[first, rows] = -np.inf
        margin[part] = promise[part] - worth.max(axis=0)
    return DecidedRows(action, promise, margin, np.array(decision.utility)[action, c.label])


class MarginCells(NamedTuple):
    """Cells of rows that take one action with about one margin. of_row: each row's cell, (T,); action: of each cell."""

    of_row: Ints
    action: Ints


def margin_cells(c: ClassTable, decision: ClassDecision, bins: int = BINS) -> MarginCells:
    """The cells of every action taken: equal-mass bins of the margin among its rows."""
    key = "margin cells", decision, bins
    return c.cached(key, lambda: cells_of_margins(*decide(c, decision)[0:3:2], c.weight, bins))


def cells_of_margins(action: Ints, margin: Floats, weight: Floats | None, bins: int) -> MarginCells:
    """The same of any decisions on rows, with how much the second-best action is worth less; shape (T,) each."""
    number, actions = np.empty(len(action), dtype=np.int64), list[int]()
    for taken in np.unique(action):
        here = np.flatnonzero(action == taken)
        of_action = np.maximum(margin[here], 0.0)
        table = tabulate(of_action, np.zeros(len(here), dtype=np.int8), None if weight is None else weight[here])
        edges = table.score[table.bin_starts(bins)]
        number[here] = np.searchsorted(edges, of_action, side="right") - 1 + len(actions)
        actions += [int(taken)] * len(edges)
    return MarginCells(number, np.array(actions))


def calibrated_counts(c: ClassTable, cell: Ints, chance: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Class counts of the cells of a calibrated model, shape (draws, m, K), weighted as the rows of each cell are.

    cell: of each row, (T,); chance: of each class in each cell, (m, K), rows of sum 1.
    """
    squares, rows = c.count(cell, len(chance), squares=True), c.count(cell, len(chance))
    effective = as_whole(rows / (squares / rows))
    labels = rng.multinomial(effective, chance, (draws, len(chance)))
    return np.asarray(labels * (rows / effective)[:, None], dtype=np.float64)


class Promises(NamedTuple):
    """Rows by their promise, shape (m,) each, in cells of at most MAX_PROMISE_CELLS: sums over rows, divided by T.

    gap: of promise less utility. noise: of the variance of that gap. null: of its variance were the model calibrated.
    """

    gap: Floats
    noise: Floats
    null: Floats


def promises(c: ClassTable, decision: ClassDecision, most: int | None = None) -> Promises:
    """The levels of the promise, in increasing order; most: at most so many runs of them."""
    return c.cached(("promises", decision, most), lambda: _promises(c, decision, most))


class _ByPromise(NamedTuple):
    """Rows in order of their promise: their numbers, promises, promises less utilities, weights, (T,) each.

    starts: the first row of each level.
    """

    order: Ints
    promise: Floats
    gap: Floats
    weight: Floats
    starts: Ints


def _by_promise(c: ClassTable, decision: ClassDecision) -> _ByPromise:
    decided = decide(c, decision)
    order = np.argsort(decided.promise, kind="stable")
    promise = decided.promise[order]
    starts = np.flatnonzero(np.concatenate(([True], promise[1:] != promise[:-1])))
    weight = np.ones(len(c)) if c.weight is None else c.weight[order]
    return _ByPromise(order, promise, promise - decided.won[order], weight, starts)


def _promises(c: ClassTable, decision: ClassDecision, most: int | None) -> Promises:
    order, promise, gap, weight, starts = c.cached(("by promise", decision), lambda: _by_promise(c, decision))
    if most is not None and len(starts) > most:
        starts = starts[np.unique(np.linspace(0, len(starts), most, endpoint=False).astype(np.int64))]
    gaps = np.add.reduceat(weight * gap, starts) / c.total
    if most is None:
        return Promises(gaps, gaps, gaps)
    squared = _promised_squares(c, decision)[order] - promise**2
    weight2 = c.effect * weight**2
    noise, null = (np.add.reduceat(weight2 * each, starts) / c.total**2 for each in (gap**2, squared))
    return Promises(gaps, noise, np.maximum(null, 0.0))


def _promised_squares(c: ClassTable, decision: ClassDecision) -> Floats:
    """The expected squared utility of each row's action by the row's own probabilities, shape (T,)."""
    squares, action, total = np.array(decision.utility).T ** 2, decide(c, decision).action, np.zeros(len(c))
    for start in range(0, len(c), BLOCK):
        part = slice(start, start + BLOCK)
        for column, of_class in zip(c.score[part].T, squares, strict=True):
            total[part] += column * of_class[action[part]]
    return total


def reach(gap: Floats) -> Floats:
    """Largest sum over an interval of levels, in size; shape (.., m) to (..)."""
    walk = np.cumsum(gap, axis=-1)
    return np.asarray(np.maximum(walk.max(axis=-1), 0.0) - np.minimum(walk.min(axis=-1), 0.0))
