"""Cross-fitting on the table: folds drawn from its counts, decisions that each fold learns, and what they win.

Isotonic recalibration decides 1 from a threshold on the score upwards. The threshold that a fold learns for one t* is
where the sum of what acting is worth, taken from the top, is largest: an argmax of a cumulative sum, no isotonic fit.

The error of the cross-fitted gain is not the paired one: folds learn from each other's rows, so their errors move
together, and where nothing is to be won the first-order variance vanishes. It is taken instead from a parametric
bootstrap of the whole procedure, labels drawn from a smoothed calibration curve, each replicate compared with what its
own decisions are worth under that curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.table import FEWEST_ROWS, FOLDS, Floats, Table

REPLICATES = 200
GRID = 512
"""Equal-mass cells on which the bootstrap of the procedure runs."""
BANDWIDTH = 0.08
"""Of the smoothed calibration curve at 2,000 rows, as a share of the rows."""


@dataclass(frozen=True)
class Worlds:
    """Errors of a procedure in replicates of a smoothed world, shape (replicates,)."""

    gain: Floats
    """Cross-fitted gain minus the gain its decisions have in that world, per unit of u_delta."""
    threshold: Floats
    """Score from which the whole sample learns to act, minus the score at which that world's curve crosses t*."""


def split(t: Table, rng: np.random.Generator, folds: int = FOLDS) -> tuple[Floats, Floats]:
    """Rows of each level to folds, every row for itself: negatives and positives, shape (folds, m) each.

    A weighted level acts as W^2/W2 rows of weight W2/W of each label, W and W2 its sums of weights and of squares.
    """
    if t.n2 is None or t.pos2 is None:
        n, pos = np.asarray(t.n, dtype=np.int64), np.asarray(t.pos, dtype=np.int64)
        if len(n) == t.total:
            fold = rng.integers(folds, size=len(n)) == np.arange(folds)[:, None]
            return fold * (1.0 - pos), fold * pos.astype(np.float64)
        return _dealt(n - pos, rng, folds), _dealt(pos, rng, folds)
    return _dealt_weighted(t.n - t.pos, t.n2 - t.pos2, rng, folds), _dealt_weighted(t.pos, t.pos2, rng, folds)


def _dealt(counts: NDArray[Any], rng: np.random.Generator, folds: int) -> Floats:
    return rng.multinomial(counts, np.full(folds, 1 / folds)).T.astype(np.float64)


def _dealt_weighted(weight: Floats, squares: Floats, rng: np.random.Generator, folds: int) -> Floats:
    weight, squares = np.maximum(weight, 0.0), np.maximum(squares, 0.0)
    some = (weight > 0) & (squares > 0)
    rows = np.zeros(len(weight), dtype=np.int64)
    rows[some] = np.maximum(np.rint(weight[some] ** 2 / squares[some]), 1).astype(np.int64)
    return _dealt(rows, rng, folds) * np.divide(weight, rows, out=np.zeros_like(weight), where=rows > 0)


def from_top(worth: Floats) -> Floats:
    """Sums of the last axis from each index to the end, with the empty sum appended: shape (.., m) to (.., m + 1)."""
    sums = np.zeros((*worth.shape[:-1], worth.shape[-1] + 1))
    sums[..., :-1] = np.cumsum(worth[..., ::-1], axis=-1)[..., ::-1]
    return sums


def learned_cuts(neg: Floats, pos: Floats, threshold: float) -> NDArray[np.int64]:
    """Level from which each fold's isotonic fit, made on the other folds, is at least t*; m where it never is.

    neg, pos: shape (folds, m). The level is one that the other folds hold.
    """
    others_neg, others_pos = neg.sum(axis=0) - neg, pos.sum(axis=0) - pos
    best = np.argmax(from_top(others_pos * (1 - threshold) - others_neg * threshold), axis=-1)
    held = others_neg + others_pos > 0
    return np.array([cut + int(np.argmax(np.append(there[cut:], True))) for cut, there in zip(best, held, strict=True)])


def crossfitted_gain(t: Table, threshold: float, decision_threshold: float, rng: np.random.Generator) -> float:
    """Mean gain on held-out rows of deciding as the other folds' isotonic fit says, per unit of u_delta."""
    need_rows(t)
    cells = t.cells
    neg, pos = split(cells, rng)
    cuts = learned_cuts(neg, pos, threshold)
    won = from_top(pos * (1 - threshold) - neg * threshold)[np.arange(len(cuts)), cuts].sum()
    now = t.confusion(decision_threshold)
    return float(won - (now.tp * (1 - threshold) - now.fp * threshold)) / t.total


def need_rows(t: Table) -> None:
    """Raise Undefined where there are too few rows to hold some out."""
    if t.effective_rows < FEWEST_ROWS:
        raise Undefined(f"needs at least {FEWEST_ROWS} rows to learn from some and judge on others")


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


def bootstrap(t: Table, threshold: float, decision_threshold: float, rng: np.random.Generator) -> Worlds:
    """Errors of the cross-fitted gain and of the learned threshold in replicates of the smoothed world."""
    need_rows(t)
    cells = _grid(t, decision_threshold)
    curve = smoothed(cells)
    unit = 1.0 if cells.n2 is None else float(cells.n2.sum() / cells.total)
    rows = cells.n / unit / FOLDS
    shape = (REPLICATES, FOLDS, len(cells))
    pos = rng.poisson(rows * curve, shape)
    neg = rng.poisson(rows * (1 - curve), shape)
    worth = from_top(pos * (1 - threshold) - neg * threshold)
    whole = worth.sum(axis=1, keepdims=True)
    cuts = np.argmax(whole - worth, axis=-1)
    acts = int(np.searchsorted(cells.score, decision_threshold, side="left"))
    won = np.take_along_axis(worth, cuts[..., None], axis=-1)[..., 0] - worth[..., acts]
    true = from_top(cells.n * (curve - threshold)) / cells.total
    gain = won.sum(axis=1) * unit / cells.total - (true[cuts] - true[acts]).mean(axis=1)
    score = np.append(cells.score, 1.0)
    return Worlds(gain, score[np.argmax(whole[:, 0], axis=-1)] - score[int(np.argmax(true))])


def _grid(t: Table, decision_threshold: float) -> Table:
    """Equal-mass cells, one of which begins at the decision threshold."""
    if len(t) <= GRID:
        return t
    low = int(np.searchsorted(t.score, decision_threshold, side="left"))
    starts = np.unique(np.append(t.bin_starts(GRID), low))
    return t.merge_levels(starts[starts < len(t)])
