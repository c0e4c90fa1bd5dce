"""Recalibrated scores that models give to rows they have not seen.

Five folds, clusters whole. The calibrator of a fold is chosen inside the other four by log loss on their own held-out
rows: the score as it is, an intercept shift, Platt scaling with a slope that is not negative, or isotonic regression.
Nothing here knows the decision: the same scores serve every task, every threshold of a sweep and every count.

Few rows are dealt into folds several times, and every number is the mean over the deals: it varies less from seed to
seed, and what it varies still is part of its error.

Beside them, for decisions on rows that differ in what they are worth, what the amount alone wins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.tables.clusters import Clustered
from decal_cli.tables.design import Counts
from decal_cli.tables.isotonic import first_of_pools
from decal_cli.tables.logistic import climb, expit, log_odds, row_slopes
from decal_cli.tables.resample import FOLDS, TIE
from decal_cli.tables.row_utilities import RowUtilities
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import FEWEST_ROWS, Floats, Ints, Table
from decal_cli.tables.units import Dealt, Independent, Units, units_of_rows

SURE = 1e-6
"""Scores are kept so far from 0 and 1 in log-odds."""
TOLERANCE = 1e-9
STREAM = "regret"
Method = Literal["chosen", "isotonic"]
"""The calibrator that is chosen inside the folds, or isotonic regression in each."""


MAX_DEALS = 8
WORK = 40_000
"""Rows that are dealt, in all deals together: fewer rows are dealt more often."""
TWICE = 200_000
"""Up to so many rows are dealt twice at least."""


def deals_of(rows: float, most: int = MAX_DEALS, work: float = WORK) -> int:
    """How often so many rows are dealt into folds."""
    return int(np.clip(work // max(round(rows), 1), 2 if rows <= TWICE else 1, most))


class HeldOutScores(NamedTuple):
    """Units, shape (m,): the score as it is, what a calibrator that has not seen it makes of it, and its fold.

    Folds are numbered over all deals. chosen: the calibrator of each fold. levels: the levels of the score; of_levels:
    what the calibrator of each fold makes of them, (deals x FOLDS, levels).
    """

    units: Units
    score: Floats
    recalibrated: Floats
    fold: Ints
    chosen: tuple[str, ...]
    levels: Floats
    of_levels: Floats


def of_table(t: Table, seed: int, method: Method = "chosen") -> HeldOutScores:
    """Of the levels of a table, or of its cells where it has many. A unit has one level, fold and label."""
    need_rows(t)
    return t.cached(("held out", seed, method), lambda _: _of_cells(t.cells, seed, method))


def of_rows(rows: Rows, seed: int, method: Method = "chosen") -> HeldOutScores:
    """Of each row, in the order of their content, with the folds of these rows."""
    rows = rows.in_order()
    need_rows(rows.table)
    rng, deals = Seed(seed).generator(STREAM), deals_of(rows.table.effective_rows)
    folds = [rows.places(rng) % FOLDS for _ in range(deals)]
    levels, level, fitted, chosen = zip(*(recalibrated_levels(rows, fold, method) for fold in folds), strict=True)
    fold, of_levels = np.concatenate([k * FOLDS + fold for k, fold in enumerate(folds)]), np.concatenate(fitted)
    recalibrated = of_levels[fold, np.concatenate(level)]
    units, score = rows.units.dealt(deals), np.tile(rows.score, deals)
    return HeldOutScores(units, score, recalibrated, fold, sum(chosen, ()), levels[0], of_levels)


def cuts_of_folds(levels: Floats, of_levels: Floats, threshold: float) -> Floats:
    """The level from which the calibrator of each fold reaches a threshold, inf where none does; shape (folds,).

    levels, of_levels: as HeldOutScores has them.
    """
    reached = of_levels >= threshold * (1 - TIE)
    first = np.where(reached.any(axis=1), reached.argmax(axis=1), len(levels))
    return np.append(levels, np.inf)[first]


def recalibrated_rows(rows: Rows, fold: Ints) -> Floats:
    """Held-out probabilities of rows in these folds, shape (T,)."""
    _, level, fitted, _ = recalibrated_levels(rows, fold)
    return np.asarray(fitted[fold, level])


def recalibrated_levels(
    rows: Rows, fold: Ints, method: Method = "chosen"
) -> tuple[Floats, Ints, Floats, tuple[str, ...]]:
    """The levels of rows, that of each row, what the calibrators of these folds make of levels, and their names."""
    score = rows.score + 0.0
    levels, level = np.unique(score, return_inverse=True)
    size = len(levels)
    place = (fold * 2 + rows.label.astype(np.int64)) * size + level
    counts = np.bincount(place, rows.weight, 2 * FOLDS * size).reshape(FOLDS, 2, size).astype(np.float64)
    fitted, chosen = recalibrated(levels, counts[:, 0], counts[:, 1], method)
    return levels, level, fitted, chosen


def need_rows(t: Table) -> None:
    """Raise Undefined where there are too few rows, or clusters, to hold some out."""
    if t.effective_rows < FEWEST_ROWS:
        raise Undefined(f"needs at least {FEWEST_ROWS} rows to learn from some and judge on others")
    t.design.need_folds()


def _of_cells(cells: Table, seed: int, method: Method) -> HeldOutScores:
    rng, deals = Seed(seed).generator(STREAM), deals_of(cells.effective_rows)
    each = [_one_deal(cells, rng, method) for _ in range(deals)]
    if deals == 1:
        return each[0]
    units = each[0].units.dealt(deals) if type(cells.design) is Clustered else _units_of_deals(cells, each)
    return HeldOutScores(
        units,
        np.concatenate([one.score for one in each]),
        np.concatenate([one.recalibrated for one in each]),
        np.concatenate([k * FOLDS + one.fold for k, one in enumerate(each)]),
        tuple(name for one in each for name in one.chosen),
        each[0].levels,
        np.concatenate([one.of_levels for one in each]),
    )


def _units_of_deals(cells: Table, each: Sequence[HeldOutScores]) -> Units:
    """Units of all deals, each of the cell and label that it is a part of."""
    units, deals = [one.units for one in each], len(each)
    label = np.concatenate([one.label for one in units])
    origin = 2 * np.concatenate([np.searchsorted(cells.score, one.score) for one in each]) + label
    deal = np.repeat(np.arange(deals), [len(one) for one in units])
    square = np.concatenate([one.sampling.squares(one.weight) for one in units]) / deals
    weight = np.concatenate([one.weight for one in units]) / deals
    return replace(units[0], label=label, weight=weight, sampling=Dealt(origin, deal, deals, square))


def _one_deal(cells: Table, rng: np.random.Generator, method: Method) -> HeldOutScores:
    if type(cells.design) is Clustered:
        # Rows of one cluster stay together in the errors too, so that each is a unit.
        of_cluster = cells.design.fold_of_clusters(rng)
        neg, pos = cells.design.of_folds(of_cluster)
        rows = cells.design.rows
        level, fold = rows.cell, of_cluster[rows.unit]
        units = units_of_rows(rows.label, rows.weight, rows.unit, rows=cells.effective_rows)
    else:
        parts = cells.design.parts(cells, rng)
        neg, pos = np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts])
        square = np.stack([_squares(cells, *part[:2]) for part in parts])
        weight = np.stack((neg, pos), axis=1).astype(np.float64)
        fold, label, level = np.nonzero(weight > 0)
        at = fold, label, level
        units = Units(label, weight[at], Independent(square[at]), cells.design.share_known, cells.effective_rows)
    fitted, chosen = recalibrated(cells.score, neg.astype(np.float64), pos.astype(np.float64), method)
    return HeldOutScores(units, cells.score[level], fitted[fold, level], fold, chosen, cells.score, fitted)


def _squares(cells: Table, neg: Counts, pos: Counts) -> Floats:
    """Sums of squared weights of a fold's negatives and positives, shape (2, m)."""
    part = cells.design.part(cells, neg.astype(np.float64), pos.astype(np.float64))
    if part.plain:
        return np.stack((neg, pos)).astype(np.float64)
    n2, pos2 = part.squares(cells)
    return np.stack((np.maximum(np.asarray(n2) - pos2, 0.0), np.asarray(pos2))).astype(np.float64)


Fit = Callable[[Floats], Floats]
"""Maps scores, shape (k,), to probabilities."""


class LevelCounts(NamedTuple):
    """Levels of a score in increasing order, with their negatives and positives, shape (m,) each, some without any."""

    score: Floats
    neg: Floats
    pos: Floats


def recalibrated(score: Floats, neg: Floats, pos: Floats, method: Method = "chosen") -> tuple[Floats, tuple[str, ...]]:
    """Held-out probabilities of each level in each fold, and the calibrator of each; neg, pos: shape (FOLDS, m)."""
    losses = _inner_losses(score, neg, pos) if method == "chosen" else {}
    fitted, chosen = np.empty(neg.shape), []
    for k in range(len(neg)):
        name = method if method != "chosen" else min(CALIBRATORS, key=lambda each: losses[each][k])
        fitted[k] = CALIBRATORS[name](_without(score, neg, pos, (k,)))(score)
        chosen.append(name)
    return fitted, tuple(chosen)


def _inner_losses(score: Floats, neg: Floats, pos: Floats) -> dict[str, Floats]:
    """Log loss of each calibrator on the held-out rows of the other folds, shape (FOLDS,) by name."""
    losses = {name: np.zeros(len(neg)) for name in CALIBRATORS}
    for j in range(len(neg)):
        for k in range(j + 1, len(neg)):
            others = _without(score, neg, pos, (j, k))
            # No more sure than so many rows allow: isotonic regression says 0 and 1 of what it has seen once.
            least = 1 / (float((others.neg + others.pos).sum()) + 2)
            for name, fit in CALIBRATORS.items():
                p = np.clip(fit(others)(score), least, 1 - least)
                of_one, of_zero = -np.log(p), -np.log1p(-p)
                # Fitted without j and k: what it says of j counts in the choice for k, and the other way round.
                losses[name][k] += float(of_one @ pos[j] + of_zero @ neg[j])
                losses[name][j] += float(of_one @ pos[k] + of_zero @ neg[k])
    return losses


def _without(score: Floats, neg: Floats, pos: Floats, folds: Sequence[int]) -> LevelCounts:
    kept = [k for k in range(len(neg)) if k not in folds]
    return LevelCounts(score, neg[kept].sum(axis=0), pos[kept].sum(axis=0))


def _as_it_is(rows: LevelCounts) -> Fit:
    return lambda score: score


def _logistic(rows: LevelCounts, sloped: bool) -> Fit:
    """expit(a + b logit score); b is 1, or 0 or more. The score as it is where no such curve is found."""
    pos, n = float(rows.pos.sum()), float((rows.neg + rows.pos).sum())
    if not 0 < pos < n:
        return _as_it_is(rows)
    logits = log_odds(rows.score, SURE)
    some = rows.neg + rows.pos > 0
    x, weight, ones = logits[some], (rows.neg + rows.pos)[some], rows.pos[some]
    try:
        if sloped:
            terms = np.vstack((np.ones(len(x)), x))
            (a, b), _ = climb(lambda at: row_slopes(terms, weight, ones, at), np.array((0.0, 1.0)), TOLERANCE)
            if b <= 0:
                rate = pos / n
                return lambda score: np.full(len(score), rate)
        else:
            a, b = _shift(x, weight, ones), 1.0
    except Undefined:
        return _as_it_is(rows)
    return lambda score: expit(a + b * log_odds(score, SURE))


def _shift(x: Floats, weight: Floats, ones: Floats) -> float:
    """The intercept at which the mean probability is the share of label 1, by Newton's method."""
    at = 0.0
    for _ in range(100):
        p = expit(x + at)
        step = float((ones - weight * p).sum()) / max(float((weight * p * (1 - p)).sum()), 1e-300)
        at += float(np.clip(step, -5.0, 5.0))
        if abs(step) < TOLERANCE:
            return at
    raise Undefined("the shift does not converge")


def _shifted(rows: LevelCounts) -> Fit:
    return _logistic(rows, sloped=False)


def _platt(rows: LevelCounts) -> Fit:
    return _logistic(rows, sloped=True)


def _isotonic(rows: LevelCounts) -> Fit:
    """The fit of a level that was not seen is that of the next lower one."""
    n = rows.neg + rows.pos
    some = np.flatnonzero(n > 0)
    if not len(some):
        return _as_it_is(rows)
    n, pos = n[some], rows.pos[some]
    starts = first_of_pools(n, pos)
    value = np.add.reduceat(pos, starts) / np.add.reduceat(n, starts)
    begins = rows.score[some][starts]
    return lambda score: value[np.maximum(np.searchsorted(begins, score, side="right") - 1, 0)]


CALIBRATORS: dict[str, Callable[[LevelCounts], Fit]] = {
    "as it is": _as_it_is,
    "shift": _shifted,
    "platt": _platt,
    "isotonic": _isotonic,
}
"""By name, the simplest first: of equal losses it is chosen."""


class ByAmount(NamedTuple):
    """Whether the cost of a miss is at least the one from which acting won most on the other folds, bool (T,)."""

    large: NDArray[np.bool_]


def build_by_amount(utilities: RowUtilities, *, seed: int) -> ByAmount:
    """Five folds, clusters whole, which no score decides: all models have the same ones.

    Errors: Undefined, where there are too few rows to hold some out.
    """
    rows = utilities.rows
    need_rows_to_hold_out(rows)
    fold = _without_score(rows, Seed(seed).generator("amounts"))
    large = np.empty(len(rows), dtype=bool)
    for k in range(FOLDS):
        here = fold == k
        large[here] = utilities.benefit[here] >= least_amount(utilities, np.flatnonzero(~here))
    return ByAmount(large)


def need_rows_to_hold_out(rows: Rows) -> None:
    """Raise Undefined where there are too few rows, or clusters, to hold some out."""
    if rows.too_few_to_hold_out:
        if len(rows) >= FEWEST_ROWS:
            raise Undefined(f"needs at least {FOLDS} clusters to learn from some and judge on others")
        raise Undefined(f"needs at least {FEWEST_ROWS} rows to learn from some and judge on others")


def _without_score(rows: Rows, rng: np.random.Generator) -> Ints:
    """The fold of each row for what no score decides, shape (T,): the same for all models on these rows."""
    keys = [column for values in rows.amounts.values() for column in np.atleast_2d(values.T)]
    order = np.lexsort((rows.weights, *([] if rows.unit is None else [rows.unit]), rows.label, *keys))
    fold = np.empty(len(rows), dtype=np.int64)
    fold[order] = rows.take(order).places(rng) % FOLDS
    return fold


def least_amount(utilities: RowUtilities, which: Ints | slice = slice(None)) -> float:
    """The cost of a miss from which acting on every row wins most on these rows; infinity where it never wins."""
    amount, worth = utilities.benefit[which], (utilities.rows.weights * utilities.worth)[which]
    order = np.argsort(-amount, kind="stable")
    amount = amount[order]
    won = np.cumsum(worth[order])
    # A threshold cannot part rows of one amount.
    last = np.append(amount[1:] != amount[:-1], True)
    best = int(np.argmax(np.where(last, won, -np.inf)))
    return float(amount[best]) if won[best] > 0 else float("inf")
