"""Recalibration evaluated on held-out rows, at every threshold at once, and how much its gain varies.

One isotonic fit of the other folds serves every t*: act from the first pool that reaches t*. The standard error is that
of `crossfit`: the procedure replayed in a smoothed world. All replicates and folds are pooled in one call, each raised
by 2 above the one before, so that no pool crosses from one to the next; all t* share the draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decal_cli.crossfit.recalibration import Weights, from_top, need_rows, smoothed
from decal_cli.tables import resample as draw
from decal_cli.tables.estimate import with_missed
from decal_cli.tables.isotonic import pool
from decal_cli.tables.resample import FOLDS, TIE
from decal_cli.tables.table import Floats, Ints, Table

N_REPLICATES = 100


def heldout_worth(t: Table, at: Floats, rng: np.random.Generator) -> Floats:
    """Worth per row, for u_delta 1, of acting by the other folds' isotonic fits on held-out rows, shape (K,).

    The folds are those of `crossfit.crossfitted_gain` with the same generator.
    """
    need_rows(t)
    neg, pos = t.cells.split(rng)
    all_neg, all_pos = neg.sum(axis=0), pos.sum(axis=0)
    won = np.zeros(len(at))
    for here_neg, here_pos in zip(neg, pos, strict=True):
        cut = cuts(all_neg - here_neg, all_pos - here_pos, at)
        won += from_top(here_pos)[cut] * (1 - at) - from_top(here_neg)[cut] * at
    return won / t.total


def cuts(neg: Weights, pos: Weights, at: Floats) -> Ints:
    """First level, shape (K,), from which the isotonic fit of these counts, shape (m,) each, is at least t*; else m."""
    return _cuts(neg[None], pos[None], at)[0]


def _cuts(neg: Weights, pos: Weights, at: Floats) -> Ints:
    """The same of a batch of counts, shape (batch, m) each; shape (batch, K)."""
    batch, m = neg.shape
    n = (neg + pos).ravel()
    filled = np.flatnonzero(n > 0)
    lift, n = 2 * (filled // m), n[filled]
    starts, n, pos = pool(filled, n, pos.ravel()[filled] + lift * n)
    start_of = np.append(starts, batch * m)
    wanted = 2.0 * np.arange(batch)[:, None] + at - TIE
    first = start_of[np.searchsorted(pos / n, wanted, side="left")]
    return np.minimum(first - m * np.arange(batch)[:, None], m)


class Replay(NamedTuple):
    """Errors of the gain, shape (N_REPLICATES, K), and standard errors of the adjusted threshold, shape (K,)."""

    gain: Floats
    threshold: Floats

    def of_gain(self, at: Floats, rows: float) -> Floats:
        """The standard error of the gain, shape (K,), with rows that could have been missed, as the metric has it."""
        return np.asarray(with_missed(self.gain.var(axis=0), np.maximum(at, 1 - at) ** 2, rows))


def replay(cells: Table, at: Floats, rng: np.random.Generator) -> Replay:
    """The cross-fit on labels drawn from the cells' smoothed calibration curve; a cell begins at every t*.

    The error of a gain is the gain in a replicate minus the gain of the same decisions under that curve.
    """
    curve, total = smoothed(cells), cells.total
    unit = cells.unit
    rows = np.asarray(cells.n / unit / FOLDS)
    counts = (draw.poisson(rng, np.tile(rows * chance, N_REPLICATES * FOLDS)) for chance in (1 - curve, curve))
    neg, pos = (values.astype(np.int64).reshape(N_REPLICATES, FOLDS, -1) for values in counts)
    every_neg, every_pos = neg.sum(axis=1), pos.sum(axis=1)
    batch = (N_REPLICATES * FOLDS, len(rows))
    cut = _cuts((every_neg[:, None] - neg).reshape(batch), (every_pos[:, None] - pos).reshape(batch), at)
    acts = np.searchsorted(cells.score, at, side="left")
    place = cut + (len(rows) + 1) * np.arange(len(cut))[:, None]

    def turned(values: Weights) -> Weights:
        """Sums over the rows that recalibration acts on, less those that the score acts on, shape (batch, K)."""
        up = from_top(values)
        return up.ravel()[place] - up[:, acts] if up.ndim > 1 else up[cut] - up[acts]

    def won(neg: Weights, pos: Weights) -> Floats:
        """The gain of that change in each replicate and fold."""
        return (turned(pos) * (1 - at) - turned(neg) * at).reshape(N_REPLICATES, FOLDS, -1)

    seen = won(neg.reshape(batch), pos.reshape(batch)).sum(axis=1) * unit
    true = won(cells.n * (1 - curve), cells.n * curve).mean(axis=1)
    return Replay((seen - true) / total, _threshold_error(cells, every_neg, every_pos, at))


def _threshold_error(cells: Table, neg: Ints, pos: Ints, at: Floats) -> Floats:
    """Spread of the score at which the fit of all rows reaches t*, including the width of a cell."""
    cut = _cuts(neg, pos, at)
    score = np.append(cells.score, 1.0)
    width = (np.append(score[1:], 1.0) - score)[np.median(cut, axis=0).astype(np.int64)]
    return np.sqrt(score[cut].var(axis=0) + width**2 / 12)
