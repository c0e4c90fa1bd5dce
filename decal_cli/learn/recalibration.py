"""Cross-fitting on the table: folds drawn from its counts, decisions that each fold learns, and what they win.

Isotonic recalibration decides 1 from a threshold on the score upwards. The threshold that a fold learns for one t* is
where the sum of what acting is worth, taken from the top, is largest: an argmax of a cumulative sum, no isotonic fit.

How a threshold, or a share of what is possible, varies is taken from a parametric bootstrap of the whole procedure,
with labels drawn from a smoothed calibration curve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.learn.held_out import need_rows
from decal_cli.tables.resample import TIE
from decal_cli.tables.table import Floats, Table
from decal_cli.task import Task

Weights = NDArray[Any]
"""Counts as int64, or weights as float64."""

REPLICATES = 200
N_CELLS, N_FINE_CELLS = 256, 512
"""Equal-mass cells on which the gain, and the threshold, are replayed."""
_SHARES = 1 - np.concatenate((np.linspace(0, 2, 401), np.geomspace(2, 1000, 200)[1:]))
"""From 1, all that there is to win, down to shares so bad that they have no number."""
BANDWIDTH = 0.08
"""Of the smoothed calibration curve at 2,000 rows, as a share of the rows."""


def from_top(worth: Weights) -> Weights:
    """Sums of the last axis from each index to the end, with the empty sum appended: shape (.., m) to (.., m + 1)."""
    sums = np.zeros((*worth.shape[:-1], worth.shape[-1] + 1), dtype=worth.dtype)
    sums[..., :-1] = np.cumsum(worth[..., ::-1], axis=-1)[..., ::-1]
    return sums


def highest(worth: Floats) -> NDArray[np.int64]:
    """Index at which sums from the top are highest, the first of those that tie, along the last axis: shape (..).

    At t* = 0.3, what 3 positives win is what 7 negatives cost, so that ties are common.
    """
    least = worth.max(axis=-1, keepdims=True) - TIE * np.abs(worth).max(axis=-1, keepdims=True)
    return np.argmax(worth >= least, axis=-1)


def learned_cuts(neg: Weights, pos: Weights, threshold: float) -> NDArray[np.int64]:
    """Level from which each fold's isotonic fit, made on the other folds, is at least t*; m where it never is.

    neg, pos: shape (folds, m). The level is one that the other folds hold.
    """
    others_neg, others_pos = neg.sum(axis=0) - neg, pos.sum(axis=0) - pos
    best = highest(from_top(others_pos * (1 - threshold) - others_neg * threshold))
    held = others_neg + others_pos > 0
    return np.array([cut + int(np.argmax(np.append(level[cut:], True))) for cut, level in zip(best, held, strict=True)])


class Switch(NamedTuple):
    """A step from one action to the next: taken from the score `now` on, worth it from the probability threshold on.

    share: its part of the u_delta of the whole task.
    """

    threshold: float
    now: float
    share: float = 1.0


def switches(task: Task) -> tuple[Switch, ...]:
    """The steps of a task, taken where the model is operated."""
    steps = zip(task.thresholds, task.decision_thresholds, task.shares, strict=True)
    return tuple(Switch(*step) for step in steps)


def smoothed_gain(t: Table, steps: Sequence[Switch], rng: np.random.Generator) -> float:
    """What acting by the other folds' isotonic fits wins by the smoothed calibration curve, per unit of u_delta.

    The curve knows all labels, so that this is less noisy, and rather too high.
    """
    world = _World(t, [step.now for step in steps], N_CELLS)
    neg, pos = t.cells.split(rng)
    rows, rows_of_world = (from_top(cells.n * 1.0) for cells in (t.cells, world.cells))

    def of_step(threshold: float, now: float) -> float:
        worth = world.true(threshold)
        learned = np.interp(rows[learned_cuts(neg, pos, threshold)], rows_of_world[::-1], worth[::-1])
        return float(learned.mean() - worth[world.place(now)])

    return sum(share * of_step(threshold, now) for threshold, now, share in steps)


def smoothed(cells: Table) -> Floats:
    """The calibration curve of some equal-mass cells, smoothed by local lines over the rows' ranks, shape (m,)."""
    mass = cells.n / cells.total
    rank = np.cumsum(mass) - mass / 2
    width = BANDWIDTH * (cells.effective_rows / 2000) ** -0.2
    off = rank - rank[:, None]
    kernel = np.exp(-0.5 * (off / width) ** 2)
    k0, k1, k2 = kernel @ mass, (kernel * off) @ mass, (kernel * off**2) @ mass
    positive = cells.pos / cells.total
    y0, y1 = kernel @ positive, (kernel * off) @ positive
    spread = k0 * k2 - k1**2
    flat = spread <= 1e-9 * k0**2
    line = (k2 * y0 - k1 * y1) / np.where(flat, 1.0, spread)
    return np.clip(np.where(flat, y0 / k0, line), 0.0, 1.0)


class _World:
    """A smoothed world on equal-mass cells, which draws labels; what acting from each cell upwards is worth in it.

    Worth is for u_delta 1, per row of the whole: shape (.., m + 1), the last for acting nowhere.
    """

    def __init__(self, t: Table, decision_thresholds: Sequence[float], cells: int) -> None:
        need_rows(t)
        key = "grid", tuple(decision_thresholds), cells
        self.cells = t.cached(key, lambda table: _grid(table, decision_thresholds, cells))
        self.curve = smoothed(self.cells)

    def true(self, threshold: float) -> Floats:
        """Worth under the curve."""
        return from_top(self.cells.n * (self.curve - threshold)) / self.cells.total

    def seen(self, threshold: float) -> Floats:
        """Worth on the rows themselves."""
        return from_top(self.cells.pos - self.cells.n * threshold) / self.cells.total

    def draw(self, folds: int, rng: np.random.Generator) -> Drawn:
        """Replicates of all rows in this many folds."""
        neg, pos, unit = self.cells.design.replicates(self.cells, self.curve, REPLICATES, folds, rng)
        return Drawn(neg, pos, unit / self.cells.total)

    def place(self, score: float) -> int:
        """The first cell from this score on."""
        return int(np.searchsorted(self.cells.score, score, side="left"))


class Drawn(NamedTuple):
    """Negatives and positives of each cell in replicates, shape (REPLICATES, folds, m); unit: the weight of a row."""

    neg: Weights
    pos: Weights
    unit: float

    def worth(self, threshold: float) -> Floats:
        """Of acting from each cell upwards."""
        return from_top((self.pos * (1 - threshold) - self.neg * threshold) * self.unit)


def share_range(t: Table, steps: Sequence[Switch], rng: np.random.Generator, confidence: float) -> tuple[float, float]:
    """Shares s of the possible utility for which what is won less s times what is possible is 0 but for noise.

    As Fieller has it: where what is possible is 0 but for noise, so is every share, and there is no interval.
    """
    world = _World(t, [step.now for step in steps], N_CELLS)

    def parts(worth_of: Callable[[float], Floats]) -> Floats:
        total: Any = 0.0
        for threshold, now, share in steps:
            worth = worth_of(threshold)
            constant = np.maximum(worth[..., 0], 0.0)
            total += share * np.stack((worth[..., world.place(now)] - constant, worth.max(axis=-1) - constant))
        return np.asarray(total)

    drawn = world.draw(1, rng)
    errors = parts(drawn.worth)[..., 0] - parts(world.true)[:, None]
    won, possible = parts(world.seen)
    tails = (1 - confidence) / 2, (1 + confidence) / 2
    if possible <= np.quantile(errors[1], tails[1]):
        raise Undefined("what these scores can give is within its noise")
    drawn_left = errors[0] - _SHARES[:, None] * errors[1]
    low, high = np.quantile(drawn_left, tails, axis=1)
    # Noise makes what is possible look larger; less so than in a smooth world where few rows fall short of it.
    high = np.maximum(high, high - drawn_left.mean(axis=1))
    left = won - _SHARES * possible
    held = np.flatnonzero((low <= left) & (left <= high))
    if not len(held) or held[-1] == len(_SHARES) - 1:
        raise Undefined("what these scores can give is within its noise")
    return float(_SHARES[held[-1]]), float(_SHARES[held[0]])


def threshold_range(t: Table, threshold: float, rng: np.random.Generator, confidence: float) -> tuple[float, float]:
    """Scores at which the calibration curve may cross t*: those at which acting falls short of the best by no more than

    it does, where the truth is known, at the true crossing. Ends of levels between which no row lies act the same; what
    acts on every row reaches down to 0, and what acts on none up to 1.
    """
    world = _World(t, [threshold], N_FINE_CELLS)
    drawn = world.draw(1, rng).worth(threshold)[:, 0]
    short = drawn.max(axis=-1) - drawn[:, highest(world.true(threshold))]
    cells = world.cells
    worth = from_top(cells.pos * (1 - threshold) - (cells.n - cells.pos) * threshold) / cells.total
    allowed = float(np.quantile(short, confidence)) + TIE * float(np.abs(worth).max())
    held = np.flatnonzero(worth.max() - worth <= allowed)
    before, score = np.append(0.0, cells.score), np.append(cells.score, 1.0)
    return float(before[held[0]]), float(score[held[-1]])


def _grid(t: Table, decision_thresholds: Sequence[float], cells: int) -> Table:
    """Equal-mass cells, one of which begins at each decision threshold."""
    if len(t) <= cells:
        return t
    lows = np.searchsorted(t.score, decision_thresholds, side="left")
    starts = np.unique(np.append(t.bin_starts(cells), lows))
    return t.merge_levels(starts[starts < len(t)])
