"""Smooth calibration as a monotone regression, on arrays of any length without a Python loop over them.

max sum w_i z_i over |z| <= 1, |z_i - z_(i+1)| <= d_i matches positive with negative mass at a cost of d per unit;
unmatched mass costs 1. Distances are below 2, so no pair stays unmatched: the unmatched mass is |W_m|, of one sign
(W: the prefix sums of w), and the rest costs min over monotone g from 0 to W_m of sum d_i |g_i - W_i|. That is isotonic
median regression of a walk, solved by splitting at a value: where the best two-valued fit steps up, every best fit is
below the value on the left and above it on the right. All parts are split at once.
"""

from __future__ import annotations

import itertools

import numpy as np

from decal_cli.tables.table import BLOCK, Floats, Ints

_FAR = 1e6
"""Above any prefix sum."""


def unmatched_and_matched(score: Floats, gap: Floats) -> tuple[Floats, Floats]:
    """|W_m| and the cost of matching the rest, (draws,) each; scores of shape (m,), their gaps w of (draws, m)."""
    walk = np.cumsum(gap, axis=-1)
    end = walk[:, -1]
    walk = walk[:, :-1] * np.where(end < 0, -1.0, 1.0)[:, None]
    distance = np.diff(score)
    draws, steps = walk.shape
    if steps == 0:
        return np.abs(end), np.zeros(draws)
    inside = np.clip(walk, 0.0, np.abs(end)[:, None])
    walk -= inside
    outside = (np.abs(walk, out=walk) * distance).sum(axis=-1)
    if draws == 1:
        return np.abs(end), outside + _by_groups(inside[0], distance)
    weight = np.broadcast_to(distance, inside.shape).ravel()
    return np.abs(end), outside + monotone_cost(inside.ravel(), weight, np.arange(draws) * steps)


def _by_groups(value: Floats, weight: Floats) -> float:
    """The cost of one part, taken in groups of separable parts that fit the cache."""
    starts = _separable(value)
    firsts = np.unique(np.searchsorted(starts, np.arange(0, len(value), BLOCK)))
    groups = np.append(starts[firsts[firsts < len(starts)]], len(value))
    cost = 0.0
    for low, high in itertools.pairwise(groups.tolist()):
        inner = starts[np.searchsorted(starts, low) : np.searchsorted(starts, high)] - low
        cost += float(monotone_cost(value[low:high], weight[low:high], inner).sum())
    return cost


def _separable(value: Floats) -> Ints:
    """Starts of parts that can be fitted alone: nothing before is above anything after. Many where W drifts."""
    before = np.maximum.accumulate(value)[:-1]
    after = np.minimum.accumulate(value[::-1])[-2::-1]
    return np.concatenate(([0], np.flatnonzero(before <= after) + 1))


def monotone_cost(value: Floats, weight: Floats, starts: Ints) -> Floats:
    """min over nondecreasing g of sum weight |g - value| in each part; parts begin at starts, values in [0, _FAR)."""
    cost = np.zeros(len(starts))
    part, lengths = np.arange(len(starts)), np.diff(starts, append=len(value))
    low, high = np.minimum.reduceat(value, starts), np.maximum.reduceat(value, starts)
    value, weight, (part, lengths, low, high) = _unsettled(value, weight, part, lengths, low, high)
    while len(value):
        starts = np.cumsum(lengths) - lengths
        middle = low + (high - low) / 2
        over = value > np.repeat(np.where(middle < high, middle, low), lengths)
        # Arithmetic, because choosing by a random mask is ten times slower.
        below = np.maximum.reduceat(value * ~over, starts)
        above = np.minimum.reduceat(value + ~over * _FAR, starts)
        left = _steps(weight * (over - 0.5), starts, lengths)
        lengths = np.stack((left, lengths - left), axis=1).ravel()
        low, high = np.stack((low, above), axis=1).ravel(), np.stack((below, high), axis=1).ravel()
        part = np.repeat(part, 2)
        some = lengths > 0
        part, lengths, low, high = part[some], lengths[some], low[some], high[some]
        moved = np.maximum(value, np.repeat(low, lengths))
        np.minimum(moved, np.repeat(high, lengths), out=moved)
        lost = value - moved
        np.abs(lost, out=lost)
        lost *= weight
        cost += np.bincount(part, np.add.reduceat(lost, np.cumsum(lengths) - lengths), minlength=len(cost))
        value, weight, (part, lengths, low, high) = _unsettled(moved, weight, part, lengths, low, high)
    return cost


def _steps(signed: Floats, starts: Ints, lengths: Ints) -> Ints:
    """How many values of each part lie before its step up: where the prefix sum is least, 0 included."""
    sums = np.cumsum(signed)
    least = np.minimum.reduceat(sums, starts)
    before = np.concatenate(([0.0], sums[starts[1:] - 1]))
    hits = np.flatnonzero(sums == np.repeat(least, lengths))
    first = hits[np.searchsorted(hits, starts)]
    return np.where(least >= before, 0, first + 1 - starts)


def _unsettled(
    value: Floats, weight: Floats, part: Ints, lengths: Ints, low: Floats, high: Floats
) -> tuple[Floats, Floats, tuple[Ints, Ints, Floats, Floats]]:
    """The parts whose values fall somewhere (the others are their own fit), with neighbours of one value merged."""
    starts = np.cumsum(lengths) - lengths
    falls, fresh = np.zeros(len(value), dtype=bool), np.ones(len(value), dtype=bool)
    np.less(value[1:], value[:-1], out=falls[1:])
    np.not_equal(value[1:], value[:-1], out=fresh[1:])
    falls[starts], fresh[starts] = False, True
    keep = np.logical_or.reduceat(falls, starts)
    if 8 * min(int(lengths[keep].sum()), int(fresh.sum())) > 7 * len(value):
        return value, weight, (part, lengths, low, high)
    runs = np.flatnonzero(fresh)
    lengths = np.diff(np.searchsorted(runs, np.append(starts, len(value))))
    kept = np.flatnonzero(np.repeat(keep, lengths))
    weight = np.add.reduceat(weight, runs)[kept]
    return value[runs[kept]], weight, (part[keep], lengths[keep], low[keep], high[keep])
