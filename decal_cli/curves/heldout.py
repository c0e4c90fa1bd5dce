"""Recalibration at every threshold at once: what held-out scores win, and how much the adjusted threshold varies.

One set of held-out scores serves every t*, and `evaluate` has the same: a sweep is a loop over decisions on units that
are reduced to what the thresholds tell apart. The error of the adjusted threshold is that of the procedure replayed in
a smoothed world. All replicates are pooled in one call, each raised by 2 above the one before, so that no pool crosses
from one to the next; all t* share the draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decal_cli.learn.probe import WIDENED
from decal_cli.learn.recalibration import Weights, smoothed
from decal_cli.tables import resample as draw
from decal_cli.tables.estimate import one_missed
from decal_cli.tables.isotonic import pool
from decal_cli.tables.resample import TIE
from decal_cli.tables.table import Floats, Ints, Table
from decal_cli.tables.units import Units

N_REPLICATES = 100


class Gains(NamedTuple):
    """Gains per row for u_delta 1, their errors and what they may be off by besides, shape (K,) each.

    expected: the same three numbers of their mean under a prior; None without one.
    """

    value: Floats
    error: Floats
    bias: Floats
    expected: tuple[float, float, float] | None


def gains(
    units: Units, now: Floats, then: Floats, at: Floats, prior: Floats | None = None, judge: Floats | None = None
) -> Gains:
    """What acting on the scores `then` wins over acting on the scores `now`, at each t*.

    judge: a probability of label 1 that counts by half, and the label by half.
    """
    size = len(at) + 1
    key = np.searchsorted(at, now, side="right") * size + np.searchsorted(at * (1 - TIE), then, side="right")
    # No two rows have the same judge.
    reduced, places = units.by(key) if judge is None else (units, key)
    before, after = places // size, places % size
    label = reduced.label.astype(np.float64)
    positive, doubt = (label, 0.0) if judge is None else ((label + judge) / 2, (label - judge) / 2)
    value, error, off, spread = np.empty(len(at)), np.empty(len(at)), np.zeros(len(at)), np.zeros(len(reduced))
    one_row = float(one_missed(1.0, units.effective_rows))
    for k, t in enumerate(at):
        changed = (after > k).astype(np.float64) - (before > k)
        gain = reduced.mean(changed * (positive - t))
        value[k], error[k] = gain.value, WIDENED * np.sqrt(gain.seen**2 + t * (1 - t) * one_row)
        spread += 0.0 if prior is None else prior[k] * gain.influence
        off[k] = 0.0 if judge is None else float(reduced.sums(changed * doubt) / reduced.total)
    if prior is None:
        return Gains(value, error, np.abs(off), None)
    variance = float(reduced.covariance(spread[None])[0, 0]) + float(prior @ (at * (1 - at))) * one_row
    expected = float(prior @ value), WIDENED * float(np.sqrt(variance)), abs(float(prior @ off))
    return Gains(value, error, np.abs(off), expected)


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
