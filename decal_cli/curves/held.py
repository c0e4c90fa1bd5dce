"""Recalibration judged on rows held out, at every threshold at once, and how much its gain varies.

What a fold learns for any t* is read off one isotonic fit of the other folds: act from the first pool that reaches t*.
The error is that of `crossfit`: the procedure replayed in a smoothed world. All replicates and folds are pooled in one
call, each lifted by 2 above the one before, so that no pool crosses from one to the next; every t* shares the draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decal_cli import draw
from decal_cli.crossfit import from_top, need_rows, smoothed, split
from decal_cli.isotonic import pool
from decal_cli.table import FOLDS, Floats, Ints, Table

REPLICATES = 100


def worth_held_out(t: Table, at: Floats, rng: np.random.Generator) -> Floats:
    """Per row, for u_delta 1, what acting as the other folds' isotonic fits say is worth on held-out rows, shape (K,).

    The folds are those of `crossfit.crossfitted_gain` with the same generator.
    """
    need_rows(t)
    neg, pos = split(t.cells, rng)
    all_neg, all_pos = neg.sum(axis=0), pos.sum(axis=0)
    won = np.zeros(len(at))
    for here_neg, here_pos in zip(neg, pos, strict=True):
        cut = cuts(all_neg - here_neg, all_pos - here_pos, at)
        won += from_top(here_pos)[cut] * (1 - at) - from_top(here_neg)[cut] * at
    return won / t.total


def cuts(neg: Floats, pos: Floats, at: Floats) -> Ints:
    """First level, shape (K,), from which the isotonic fit of these counts, shape (m,) each, is at least t*; else m."""
    return _cuts(neg[None], pos[None], at)[0]


def _cuts(neg: Floats, pos: Floats, at: Floats) -> Ints:
    """The same of a batch of counts, shape (batch, m) each; shape (batch, K)."""
    batch, m = neg.shape
    n = (neg + pos).ravel()
    there = np.flatnonzero(n > 0)
    lift = 2.0 * (there // m)
    starts, n, pos = pool(there, n[there], pos.ravel()[there] + lift * n[there])
    start_of = np.append(starts, batch * m)
    wanted = 2.0 * np.arange(batch)[:, None] + at
    found = start_of[np.searchsorted(pos / n, wanted, side="left")]
    return np.minimum(found - m * np.arange(batch)[:, None], m)


class Replay(NamedTuple):
    """Errors of the gain, shape (REPLICATES, K), and standard errors of the adjusted threshold, shape (K,)."""

    gain: Floats
    threshold: Floats


def replay(cells: Table, at: Floats, rng: np.random.Generator) -> Replay:
    """The cross-fit on labels drawn from the cells' smoothed calibration curve; a cell begins at every t*.

    A gain's error is what it shows in a replicate minus what its decisions win under that curve.
    """
    curve, total = smoothed(cells), cells.total
    unit = 1.0 if cells.n2 is None else float(cells.n2.sum()) / total
    rows = np.asarray(cells.n / unit / FOLDS)
    drawn = [draw.poisson(rng, np.tile(rows * chance, REPLICATES * FOLDS)) for chance in (1 - curve, curve)]
    neg, pos = (values.reshape(REPLICATES, FOLDS, -1) for values in drawn)
    every_neg, every_pos = neg.sum(axis=1), pos.sum(axis=1)
    batch = (REPLICATES * FOLDS, len(rows))
    cut = _cuts((every_neg[:, None] - neg).reshape(batch), (every_pos[:, None] - pos).reshape(batch), at)
    acts = np.broadcast_to(np.searchsorted(cells.score, at, side="left"), cut.shape)

    def won(neg: Floats, pos: Floats) -> Floats:
        """What turning from score to recalibrated score wins, shape (batch, K)."""
        up_neg, up_pos = from_top(neg), from_top(pos)
        more_neg, more_pos = (
            np.take_along_axis(up, cut, -1) - np.take_along_axis(up, acts, -1) for up in (up_neg, up_pos)
        )
        return more_pos * (1 - at) - more_neg * at

    seen = won(neg.reshape(batch), pos.reshape(batch)).reshape(REPLICATES, FOLDS, -1).sum(axis=1) * unit
    world_neg, world_pos = (np.broadcast_to(cells.n * chance, batch) for chance in (1 - curve, curve))
    true = won(world_neg, world_pos).reshape(REPLICATES, FOLDS, -1).mean(axis=1)
    return Replay((seen - true) / total, _threshold_error(cells, every_neg, every_pos, at))


def _threshold_error(cells: Table, neg: Floats, pos: Floats, at: Floats) -> Floats:
    """Spread of the score at which the fit of all rows reaches t*, with what the width of a cell adds to it."""
    cut = _cuts(neg, pos, at)
    score = np.append(cells.score, 1.0)
    width = (np.append(score[1:], 1.0) - score)[np.median(cut, axis=0).astype(np.int64)]
    return np.sqrt(score[cut].var(axis=0) + width**2 / 12)
