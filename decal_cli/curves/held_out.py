"""Scores that others take the place of, at every threshold at once; and how much the adjusted threshold varies.

The error of the adjusted threshold is that of the procedure replayed in a smoothed world. All replicates are pooled in
one call, each raised by 2 above the one before, so that no pool crosses from one to the next; all t* share the draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from decal_cli.learn.held_out import Weights, smoothed
from decal_cli.learn.probe import WIDENED
from decal_cli.tables import resample as draw
from decal_cli.tables.estimate import one_missed
from decal_cli.tables.isotonic import pool
from decal_cli.tables.resample import TIE
from decal_cli.tables.table import Floats, Ints, Table
from decal_cli.tables.units import Estimate, Units

N_REPLICATES = 100


def gains(units: Units, now: Floats, then: Floats, at: Floats, judge: Floats | None = None) -> Iterator[Estimate]:
    """What acting on the held-out scores `then` wins over acting on the scores `now`, at each t* (u_delta 1).

    judge: a probability of label 1 that counts by half, and the label by half. Errors as those of metrics.decisions:
    widened, and with one more row that might have changed.
    """
    one_row = WIDENED**2 * float(one_missed(1.0, units.effective_rows))
    # No two rows have the same judge.
    reduced, before, after = _reached(units, now, then, at, TIE, keep=judge is not None)
    label = reduced.label.astype(np.float64)
    positive, doubt = (label, 0.0) if judge is None else ((label + judge) / 2, (label - judge) / 2)
    for k, t in enumerate(at):
        changed = (after > k).astype(np.float64) - (before > k)
        gain = reduced.mean(changed * (positive - t))
        bias = 0.0 if judge is None else abs(float(reduced.sums(changed * doubt)) / reduced.total)
        yield replace(gain, adds=WIDENED * gain.influence, extra=t * (1 - t) * one_row, missed=0.0, bias=bias)


def replaced(units: Units, now: Floats, then: Floats, at: Floats) -> Iterator[Estimate]:
    """The same where the scores `then` are held fixed, and a row that could have been missed is one that changes."""
    reduced, before, after = _reached(units, now, then, at, 0.0)
    for k, t in enumerate(at):
        changed = (after > k).astype(np.float64) - (before > k)
        gain = reduced.mean(changed * (reduced.label - t))
        most = max(t, 1 - t) if changed.any() else 0.0
        yield replace(gain, missed=(most + abs(gain.value)) ** 2)


def _reached(
    units: Units, now: Floats, then: Floats, at: Floats, tie: float, keep: bool = False
) -> tuple[Units, Ints, Ints]:
    """Units that differ in how many thresholds the two scores reach, and these numbers; keep: the units as they are."""
    size = len(at) + 1
    key = np.searchsorted(at, now, side="right") * size + np.searchsorted(at * (1 - tie), then, side="right")
    reduced, key = (units, key) if keep else units.by(key)
    return reduced, key // size, key % size


def _cuts(neg: Weights, pos: Weights, at: Floats) -> Ints:
    """The first level whose isotonic fit reaches each t*, of a batch of counts, (batch, m) each; shape (batch, K)."""
    batch, m = neg.shape
    n = (neg + pos).ravel()
    filled = np.flatnonzero(n > 0)
    lift, n = 2 * (filled // m), n[filled]
    starts, n, pos = pool(filled, n, pos.ravel()[filled] + lift * n)
    start_of = np.append(starts, batch * m)
    wanted = 2.0 * np.arange(batch)[:, None] + at - TIE
    first = start_of[np.searchsorted(pos / n, wanted, side="left")]
    return np.minimum(first - m * np.arange(batch)[:, None], m)


def threshold_error(cells: Table, at: Floats, rng: np.random.Generator) -> Floats:
    """Standard error of the adjusted threshold at each t*, shape (K,), on labels drawn from the smoothed curve."""
    curve = smoothed(cells)
    rows = np.asarray(cells.n / cells.unit)
    counts = (draw.poisson(rng, np.tile(rows * chance, N_REPLICATES)) for chance in (1 - curve, curve))
    neg, pos = (values.astype(np.int64).reshape(N_REPLICATES, -1) for values in counts)
    cut = _cuts(neg, pos, at)
    score = np.append(cells.score, 1.0)
    width = (np.append(score[1:], 1.0) - score)[np.median(cut, axis=0).astype(np.int64)]
    return np.sqrt(score[cut].var(axis=0) + width**2 / 12)
