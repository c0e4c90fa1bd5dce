"""Recalibrated scores of rows that the models have not seen; and what the amount alone wins, where rows differ in it.

Five folds, clusters whole. The calibrator of a fold is the one of CALIBRATORS with the lowest log loss on held-out rows
of the other four. Nothing here knows the decision: the same scores serve every task. Few rows are dealt into folds
several times, and numbers are means over the deals, which vary less with the seed.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.tables.design import Clustered
from decal_cli.tables.isotonic import first_of_pools
from decal_cli.tables.logistic import expit, lines, log_odds, separated
from decal_cli.tables.order import lexical_order
from decal_cli.tables.resample import FOLDS, TIE
from decal_cli.tables.row_utilities import RowUtilities
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import CELLS, FEWEST_ROWS, Counts, Floats, Ints, Table
from decal_cli.tables.units import Dealt, Independent, Units, index_type, runs, units_of_rows
from decal_cli.task import Task

SURE = 1e-6
"""Distance from 0 and 1 at which scores are clipped before their log-odds are taken."""
TOLERANCE = 1e-9
STREAM = "regret"
WIDENED = 1.2
"""Factor on the error of held-out differences, because folds learn from each other's rows (docs/simulation.md)."""
Method = Literal["chosen", "isotonic"]
"""The calibrator that is chosen inside the folds, or isotonic regression in each."""


MAX_DEALS = 8
WORK = 40_000
"""Rows that are dealt, in all deals together: fewer rows are dealt more often."""
MIN_ISOTONIC_ROWS = 1000
"""Rows below which curves with few parameters often recalibrate better than isotonic regression."""
LEVELS_TO_CHOOSE = 4_096
"""A calibrator is chosen by its loss on so many runs of levels, where a score has more levels."""
TWICE = 200_000
"""Up to so many rows are dealt twice at least."""


def deals_of(rows: float, most: int = MAX_DEALS, work: float = WORK) -> int:
    """How often so many rows are dealt into folds."""
    return int(np.clip(work // max(round(rows), 1), 2 if rows <= TWICE else 1, most))


class HeldOutScores(NamedTuple):
    """Units, each with the number of its level and of its fold, shape (m,), and what calibrators make of the levels.

    Folds are numbered over all deals. chosen: the calibrator of each fold. levels: the levels of the score; of_levels:
    what the calibrator of each fold, which has not seen its units, makes of them, (deals x FOLDS, levels).
    """

    units: Units
    level: Ints
    fold: Ints
    chosen: tuple[str, ...]
    levels: Floats
    of_levels: Floats

    @property
    def score(self) -> Floats:
        """The score of each unit's level, shape (m,)."""
        return self.levels[self.level]

    @property
    def recalibrated(self) -> Floats:
        """What a calibrator that has not seen a unit makes of its level, shape (m,)."""
        return self.of_levels[self.fold, self.level]


def of_table(t: Table, seed: int, method: Method = "chosen") -> HeldOutScores:
    """The held-out scores of a table's levels, or of its cells where it has many.

    A unit has one level, fold and label.
    """
    need_rows(t)
    return t.cached(("held out", seed, method), lambda _: _of_cells(t.cells, seed, method))


def method_like(t: Table, seed: int) -> str:
    """The method, as `decal fit` knows it, that recalibrates all rows as the folds did theirs. Errors: Undefined."""
    rows = t.effective_rows
    return method_of(of_table(t, seed).chosen if rows < MIN_ISOTONIC_ROWS else (), rows)


def method_of(chosen: Sequence[str], rows: float) -> str:
    """Platt scaling of few rows where more folds chose a logistic curve than isotonic regression; else the latter."""
    votes = Counter(chosen)
    logistic = votes["shift"] + votes["platt"] > votes["isotonic"]
    return "platt" if rows < MIN_ISOTONIC_ROWS and logistic else "isotonic"


def of_rows(rows: Rows, seed: int, method: Method = "chosen") -> HeldOutScores:
    """The held-out scores of each row, in the order of their content. The folds are of these rows alone."""
    rows = rows.in_order()
    need_rows(rows.table)
    rng, deals = Seed(seed).generator(STREAM), deals_of(rows.table.effective_rows)
    folds = [rows.folds(rng) for _ in range(deals)]
    levels, level, fitted, chosen = zip(*(recalibrated_levels(rows, fold, method) for fold in folds), strict=True)
    at = np.concatenate(level), _of_deals(folds)
    return HeldOutScores(rows.units.dealt(deals), *at, sum(chosen, ()), levels[0], np.concatenate(fitted))


def recalibrated_levels(
    rows: Rows, fold: Ints, method: Method = "chosen"
) -> tuple[Floats, NDArray[np.int32], Floats, tuple[str, ...]]:
    """The levels of rows, the level of each row, what the calibrator of each fold makes of levels, and its name.

    Where there are many levels, equal-mass cells take their place.
    """
    t = rows.table
    levels, first = t.cells.score, t.score if t.cells is t else t.score[t.bin_starts(CELLS)]
    level, size = np.empty(len(rows), dtype=np.int32), len(levels)
    counts = np.zeros(2 * FOLDS * size)
    for part in runs(len(rows), len(counts)):
        level[part] = np.searchsorted(first, rows.score[part], side="right") - 1
        place = (fold[part] * 2 + rows.label[part].astype(np.int64)) * size + level[part]
        counts += np.bincount(place, None if rows.weight is None else rows.weight[part], len(counts))
    neg, pos = counts.reshape(FOLDS, 2, size).swapaxes(0, 1)
    fitted, chosen = recalibrated(levels, neg, pos, t.unit, method)
    return levels, level, fitted, chosen


def too_few(needed: int = FEWEST_ROWS, what: str = "rows") -> Undefined:
    """The reason that there are too few rows, or clusters, to hold some out."""
    return Undefined(f"needs at least {needed} {what} to learn from some and judge on others")


def too_few_of(rows: int) -> Undefined:
    """The reason that none of these rows can be held out: they are too few, or else their clusters are."""
    return too_few() if rows < FEWEST_ROWS else too_few(FOLDS, "clusters")


def need_rows(t: Table) -> None:
    """Raise Undefined where there are too few rows, or clusters, to hold some out."""
    if t.effective_rows < FEWEST_ROWS:
        raise too_few(what="effective rows" if t.design.weighted else "rows")
    t.design.need_folds()


def _of_cells(cells: Table, seed: int, method: Method) -> HeldOutScores:
    rng, deals, design = Seed(seed).generator(STREAM), deals_of(cells.effective_rows), cells.design
    if isinstance(design, Clustered):
        # Rows of one cluster stay together in the errors too, so that each is a unit.
        of_clusters = [design.fold_of_clusters(rng) for _ in range(deals)]
        neg, pos = np.array([design.of_folds(fold) for fold in of_clusters], dtype=np.float64).swapaxes(0, 1)
        rows = design.rows
        level, fold = np.tile(rows.cell, deals), _of_deals([each.astype(np.int8)[rows.unit] for each in of_clusters])
        units = units_of_rows(rows.label, rows.weight, rows.unit, rows=cells.effective_rows).dealt(deals)
    else:
        neg, pos = np.array([cells.split(rng) for _ in range(deals)], dtype=np.float64).swapaxes(0, 1)
        of_labels, part = np.stack((neg, pos), axis=2), design.part(cells, neg, pos)
        at = deal, fold, label, level = np.nonzero(of_labels > 0)
        squares = np.stack((np.maximum(part.own[0] - part.own[1], 0.0), part.own[1]), axis=2) if part.own else of_labels
        fold, square = deal * FOLDS + fold, squares[at] / deals
        sampling = Independent(square) if deals == 1 else Dealt(2 * level + label, deal, deals, square)
        units = Units(label, of_labels[at] / deals, sampling, design.share_known, cells.effective_rows)
    fitted, chosen = zip(
        *(recalibrated(cells.score, *of, cells.unit, method) for of in zip(neg, pos, strict=True)), strict=True
    )
    return HeldOutScores(units, level, fold, sum(chosen, ()), cells.score, np.concatenate(fitted))


def _of_deals(folds: Sequence[NDArray[Any]]) -> Ints:
    """The folds of rows, numbered over all deals."""
    return np.concatenate([k * FOLDS + fold for k, fold in enumerate(folds)])


Fit = Callable[[Floats], Floats]
"""Maps scores, shape (k,), to probabilities, (.., k)."""


class LevelCounts(NamedTuple):
    """Levels of a score in increasing order, (m,), with their negatives and positives, (.., m), some without any."""

    score: Floats
    neg: Floats
    pos: Floats


def recalibrated(
    score: Floats, neg: Floats, pos: Floats, unit: float = 1.0, method: Method = "chosen"
) -> tuple[Floats, tuple[str, ...]]:
    """Held-out probabilities of each level in each fold, and the calibrator of each.

    neg, pos: rows of label 0 and 1, (FOLDS, m), or their summed weights; unit: the weight of one effective row.
    """
    losses = _inner_losses(*_in_runs(score, neg / unit, pos / unit)) if method == "chosen" else {}
    folds = range(len(neg))
    chosen = [_first_of_least({each: loss[k] for each, loss in losses.items()}) if losses else method for k in folds]
    fitted = np.empty(neg.shape)
    for name in set(chosen):
        mine = [k for k in folds if chosen[k] == name]
        fitted[mine] = CALIBRATORS[name](_without(score, neg, pos, [(k,) for k in mine]))(score)
    return fitted, tuple(chosen)


def _first_of_least(losses: Mapping[str, float]) -> str:
    """The first name whose loss is the least but for rounding."""
    least = min(losses.values()) * (1 + TIE)
    return next(name for name, loss in losses.items() if loss <= least)


def _in_runs(score: Floats, neg: Floats, pos: Floats) -> tuple[Floats, Floats, Floats]:
    """Levels put together, LEVELS_TO_CHOOSE at most: four curves differ as much on these, in a fraction of the time."""
    if len(score) <= LEVELS_TO_CHOOSE:
        return score, neg, pos
    ends = np.linspace(0, len(score), LEVELS_TO_CHOOSE + 1).astype(np.int64)
    neg, pos = (np.add.reduceat(counts, ends[:-1], axis=1) for counts in (neg, pos))
    return score[(ends[:-1] + ends[1:]) // 2], neg, pos


def _inner_losses(score: Floats, neg: Floats, pos: Floats) -> dict[str, Floats]:
    """Log loss of each calibrator on the held-out rows of the other folds, shape (FOLDS,) by name."""
    pairs = list(itertools.combinations(range(len(neg)), 2))
    others = _without(score, neg, pos, pairs)
    # No more sure than so many rows allow: isotonic regression says 0 and 1 of what it has seen once.
    least = 1 / ((others.neg + others.pos).sum(axis=1, keepdims=True) + 2)
    losses = {}
    for name, fit in CALIBRATORS.items():
        p = np.clip(fit(others)(score), least, 1 - least)
        # Fitted without j and k: what it says of j counts in the choice for k, and the other way round.
        of_folds = -np.log(p) @ pos.T - np.log1p(-p) @ neg.T
        losses[name] = np.zeros(len(neg))
        for (j, k), of_fold in zip(pairs, of_folds, strict=True):
            losses[name][k] += of_fold[j]
            losses[name][j] += of_fold[k]
    return losses


def _without(score: Floats, neg: Floats, pos: Floats, left_out: Sequence[Sequence[int]]) -> LevelCounts:
    """The rows of all folds but these, (.., m)."""
    kept = np.array([[k not in folds for k in range(len(neg))] for folds in left_out], dtype=np.float64)
    return LevelCounts(score, kept @ neg, kept @ pos)


def _as_it_is(rows: LevelCounts) -> Fit:
    return lambda score: np.broadcast_to(score, (*rows.neg.shape[:-1], len(score)))


def _logistic(rows: LevelCounts, sloped: bool) -> Fit:
    """expit(a + b logit score); b is 1, or 0 or more. The score as it is where no such curve is found."""
    n, pos = np.atleast_2d(rows.neg + rows.pos), np.atleast_2d(rows.pos)
    total, ones = n.sum(axis=1), pos.sum(axis=1)
    x, rate = log_odds(rows.score, SURE), ones / np.maximum(total, 1e-300)
    # Newton's method would climb for all its steps where the steepest curve is the likeliest.
    possible = (ones > 0) & (ones < total) & (not sloped or ~separated(pos, n))
    at = np.full((len(n), 2), np.nan)
    at[possible] = (lines if sloped else _shifts)(x, n[possible], pos[possible], TOLERANCE)

    def fitted(score: Floats) -> Floats:
        a, b = at[:, :1], at[:, 1:]
        curve = np.where(b > 0, expit(a + b * log_odds(score, SURE)), rate[:, None])
        return np.where(np.isnan(b), score, curve).reshape(*rows.neg.shape[:-1], len(score))

    return fitted


def _shifts(x: Floats, n: Floats, pos: Floats, tolerance: float) -> Floats:
    """The intercept at which the mean probability is the share of label 1, by Newton's method between two ends; and 1.

    x (m,), n, pos (B, m) to (B, 2). Both labels have some weight. Where all scores are far too low or too high, a full
    step may pass the intercept by more than it was off.
    """
    share, seen = log_odds(pos.sum(axis=1) / n.sum(axis=1)), n > 0
    low, high = share - np.where(seen, x, -np.inf).max(axis=1), share - np.where(seen, x, np.inf).min(axis=1)
    at = np.minimum(np.maximum(0.0, low), high)
    for _ in range(100):
        p = expit(x + at[:, None])
        missing = (pos - n * p).sum(axis=1)
        low, high = np.where(missing > 0, (at, high), (low, at))
        step = missing / np.maximum((n * p * (1 - p)).sum(axis=1), 1e-300)
        ahead = at + step
        at = np.where((low <= ahead) & (ahead <= high), ahead, (low + high) / 2)
        found = (np.abs(step) < tolerance) | (high - low < tolerance)
        if found.all():
            break
    return np.column_stack((at, np.where(found, 1.0, np.nan)))


def _isotonic(rows: LevelCounts) -> Fit:
    """The isotonic fit; a level that was not seen gets the fit of the next lower one."""
    each = [_steps(rows.score, *of) for of in zip(np.atleast_2d(rows.neg), np.atleast_2d(rows.pos), strict=True)]
    return lambda score: np.array([fit(score) for fit in each]).reshape(*rows.neg.shape[:-1], len(score))


def _steps(score: Floats, neg: Floats, pos: Floats) -> Fit:
    some = np.flatnonzero(neg + pos > 0)
    if not len(some):
        return lambda new: new
    n, pos = (neg + pos)[some], pos[some]
    starts = first_of_pools(n, pos)
    begins, value = score[some][starts], np.add.reduceat(pos, starts) / np.add.reduceat(n, starts)
    return lambda new: value[np.maximum(np.searchsorted(begins, new, side="right") - 1, 0)]


CALIBRATORS: dict[str, Callable[[LevelCounts], Fit]] = {
    "as it is": _as_it_is,
    "shift": partial(_logistic, sloped=False),
    "platt": partial(_logistic, sloped=True),
    "isotonic": _isotonic,
}
"""The calibrators by name, the simplest first, which is chosen among equal losses."""


class FlagByCost(NamedTuple):
    """Whether the cost of a miss is at least the one from which acting won most on the other folds, bool (T,)."""

    large: NDArray[np.bool_]


def build_by_amount(utilities: RowUtilities, *, seed: int) -> FlagByCost:
    """Five folds, clusters whole, which no score decides: all models have the same ones.

    Errors: Undefined, where there are too few rows to hold some out.
    """
    rows = utilities.rows
    need_rows_to_hold_out(rows)
    keys = [column for values in rows.amounts.values() for column in np.atleast_2d(values.T)]
    some = [each for each in (rows.weight, rows.unit) if each is not None]
    order = lexical_order((*some, rows.label, *keys)).astype(index_type(len(rows)))
    fold = np.empty(len(rows), dtype=np.int8)
    sorted_rows = rows if rows.unit is None else rows.take(order)
    fold[order] = sorted_rows.folds(Seed(seed).generator("amounts"))
    if all((np.diff(utilities.benefit(order[part.start : part.stop + 1])) >= 0).all() for part in runs(len(order))):
        # The amount is what a miss costs, so that one sort is enough.
        vars(utilities).setdefault("by_benefit", order[::-1])
    least = np.array(least_amounts(utilities, fold, range(FOLDS)))
    return FlagByCost(np.concatenate([utilities.benefit(part) >= least[fold[part]] for part in runs(len(rows))]))


def need_rows_to_hold_out(rows: Rows) -> None:
    """Raise Undefined where there are too few rows, or clusters, to hold some out."""
    if rows.too_few_to_hold_out:
        raise too_few_of(len(rows))


def least_amounts(utilities: RowUtilities, fold: NDArray[Any], without: Sequence[int]) -> list[float]:
    """The cost of a miss from which acting on every row wins most, without each of some folds.

    fold: of each row, (T,). Infinity where acting never wins.
    """
    order, weights = utilities.by_benefit, utilities.rows.units.weight
    won, least = [0.0] * len(without), [math.inf] * len(without)
    most = list(won)
    for run in runs(len(order)):
        rows = order[run]
        amount = utilities.benefit(order[run.start : run.stop + 1])
        # A threshold cannot part rows of one amount.
        last = np.flatnonzero(np.append(amount[1:] != amount[:-1], True)[: len(rows)])
        amount = amount[: len(rows)]
        worth = weights[rows] * np.where(utilities.label[rows] > 0, amount, -utilities.cost(rows))
        fold_of_run = fold[rows]
        for k, left_out in enumerate(without):
            of_part = worth * (fold_of_run != left_out)
            of_part[0] += won[k]
            so_far = np.cumsum(of_part)
            won[k] = float(so_far[-1])
            best = last[int(np.argmax(so_far[last]))] if len(last) else 0
            if len(last) and so_far[best] > most[k]:
                most[k], least[k] = float(so_far[best]), float(amount[best])
    return least


Weights = NDArray[Any]
"""Counts as int64, or weights as float64."""

REPLICATES = 200
N_CELLS, N_FINE_CELLS = 256, 512
"""Equal-mass cells on which the gain, and the threshold, are replayed."""
_SHARES = 1 - np.concatenate((np.linspace(0, 2, 401), np.geomspace(2, 1000, 200)[1:]))
"""Shares of the possible utility that are tried: from 1, all that there is to win, down to -999."""
BANDWIDTH = 0.08
"""Bandwidth of the smoothed calibration curve at 2,000 rows, as a share of the rows."""


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


class Switch(NamedTuple):
    """A step from one action to the next. now: the score from which it is taken; threshold: the probability from which
    it is worth taking; share: its part of the u_delta of the whole task.
    """

    threshold: float
    now: float
    share: float = 1.0


def switches(task: Task) -> tuple[Switch, ...]:
    """The steps of a task, taken where the model is operated."""
    steps = zip(task.thresholds, task.decision_thresholds, task.shares, strict=True)
    return tuple(Switch(*step) for step in steps)


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
        self.curve = self.cells.cached("smoothed", smoothed)

    def true(self, threshold: float) -> Floats:
        """Worth under the curve."""
        return from_top(self.cells.n * (self.curve - threshold)) / self.cells.total

    def seen(self, threshold: float) -> Floats:
        """Worth on the rows themselves."""
        return from_top(self.cells.pos - self.cells.n * threshold) / self.cells.total

    def drawn(self, seed: Seed, purpose: str) -> Callable[[float], Floats]:
        """Worth, by t*, in replicates of all rows, shape (REPLICATES, m + 1)."""

        def drawn(cells: Table) -> tuple[Counts, Counts, float]:
            return cells.design.replicates(cells, self.curve, REPLICATES, seed.generator(purpose))

        neg, pos, unit = self.cells.cached(("drawn", seed, purpose), drawn)
        of_row = unit / self.cells.total
        return lambda threshold: from_top((pos * (1 - threshold) - neg * threshold) * of_row)

    def place(self, score: float) -> int:
        """The first cell from this score on."""
        return int(np.searchsorted(self.cells.score, score, side="left"))


class ShareOfPossible(NamedTuple):
    """What is won over the better constant action, and what the best threshold would win; and in draws of a smoothed
    world, less what these are there, what chance adds to both, (2, draws).
    """

    won: float
    possible: float
    errors: Floats

    def need_possible(self, confidence: float) -> None:
        """Undefined where what is possible is 0 but for noise."""
        if self.possible <= np.quantile(self.errors[1], (1 + confidence) / 2):
            raise Undefined("what these scores can give is within its noise")

    def chance(self, confidence: float) -> float:
        """What chance adds to won / possible on average, to first order; Undefined as for `need_possible`."""
        self.need_possible(confidence)
        of_won, of_possible = self.errors.mean(axis=1)
        return float((of_won - of_possible * min(self.won / self.possible, 1.0)) / self.possible)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Shares s of the possible utility for which (what is won) - s (what is possible) is 0 but for noise.

        This is Fieller's interval: where what is possible is 0 but for noise, every share fits, and there is none.
        """
        self.need_possible(confidence)
        drawn_left = self.errors[0] - _SHARES[:, None] * self.errors[1]
        low, high = np.quantile(drawn_left, ((1 - confidence) / 2, (1 + confidence) / 2), axis=1)
        # Noise makes what is possible look larger; less so than in a smooth world where few rows fall short of it.
        high = np.maximum(high, high - drawn_left.mean(axis=1))
        left = self.won - _SHARES * self.possible
        held = np.flatnonzero((low <= left) & (left <= high))
        if not len(held) or held[-1] == len(_SHARES) - 1:
            raise Undefined("what these scores can give is within its noise")
        return float(_SHARES[held[-1]]), float(_SHARES[held[0]])


def share_of_possible(t: Table, steps: Sequence[Switch], seed: Seed) -> ShareOfPossible:
    """What is won and what is possible on these rows, and how far both are off in draws."""
    world = _World(t, [step.now for step in steps], N_CELLS)

    def parts(worth_of: Callable[[float], Floats]) -> Floats:
        total: Any = 0.0
        for threshold, now, share in steps:
            worth = worth_of(threshold)
            constant = np.maximum(worth[..., 0], 0.0)
            total += share * np.stack((worth[..., world.place(now)] - constant, worth.max(axis=-1) - constant))
        return np.asarray(total)

    errors = parts(world.drawn(seed, "task")) - parts(world.true)[:, None]
    won, possible = parts(world.seen).tolist()
    return ShareOfPossible(won, possible, errors)


def threshold_range(t: Table, threshold: float, seed: Seed, confidence: float) -> tuple[float, float]:
    """Scores at which the calibration curve may cross t*: those at which acting falls short of the best by no more than

    it does, where the truth is known, at the true crossing. Ends of levels between which no row lies act the same; what
    acts on every row reaches down to 0, and what acts on none up to 1.
    """
    # The same cells and draws serve every t*.
    world = _World(t, (), N_FINE_CELLS)
    drawn = world.drawn(seed, "regret")(threshold)
    short = drawn.max(axis=-1) - drawn[:, highest(world.true(threshold))]
    cells = world.cells
    worth = from_top(cells.pos - cells.n * threshold) / cells.total
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
