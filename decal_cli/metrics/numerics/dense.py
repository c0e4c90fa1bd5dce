"""The worst agents of many tables with the same few scores, all at once."""

from __future__ import annotations

import numpy as np

from decal_cli.tables.table import Floats


def of_levels(score: Floats, n: Floats, pos: Floats, kinks: int) -> Floats:
    """cdl (two kinks) or v_cdl (one) of tables with these levels; n and pos of shape (..., m)."""
    at = _candidates(score)
    rate = np.divide(pos, n, out=np.zeros(pos.shape), where=n > 0)
    convex = np.einsum("...ki,...i->...k", np.maximum(at[:, None] - rate[..., None, :], 0.0), n)
    return _largest(at, *_sides(score, n, pos, convex), kinks)


def highest_of_constant(score: Floats, n: Floats, pos: Floats) -> Floats:
    """v_cal_kleinberg."""
    return 2 * of_constant(score, n, pos, 0)


def of_constant(score: Floats, n: Floats, pos: Floats, kinks: int) -> Floats:
    """u_cal (two kinks) or v_cal (one); the supremum of the curve itself (none)."""
    total, positives = n.sum(axis=-1, keepdims=True), pos.sum(axis=-1, keepdims=True)
    convex = np.maximum(_candidates(score) * total - positives, 0.0)
    return _largest(_candidates(score), *_sides(score, n, pos, convex), kinks)


def _candidates(score: Floats) -> Floats:
    return np.concatenate((score, [0.5]))


def _sides(score: Floats, n: Floats, pos: Floats, convex: Floats) -> tuple[Floats, Floats]:
    """The curve just above and just below each candidate, per row; only the inner side counts at 0 and 1."""
    upto = int(np.searchsorted(score, 0.5, side="right"))
    above, below = (np.zeros(convex.shape) for _ in range(2))
    rows, positives = np.cumsum(n, axis=-1), np.cumsum(pos, axis=-1)
    above[..., :-1] = positives - score * rows + convex[..., :-1]
    below[..., :-1] = above[..., :-1] + n * score - pos
    if upto:
        above[..., -1] = positives[..., upto - 1] - 0.5 * rows[..., upto - 1]
    above[..., -1] += convex[..., -1]
    below[..., -1] = above[..., -1]
    above[..., :-1][..., score == 1] = 0.0
    below[..., :-1][..., score == 0] = 0.0
    total = rows[..., -1:]
    return above / total, below / total


def _largest(at: Floats, above: Floats, below: Floats, kinks: int) -> Floats:
    loss = np.maximum(np.maximum(above, below), 0.0)
    if kinks == 0:
        return np.asarray(loss.max(axis=-1))
    if kinks == 1:
        return np.asarray((loss / np.maximum(at, 1 - at)).max(axis=-1))
    left, right = at <= 0.5, at >= 0.5
    nothing = np.zeros((*loss.shape[:-1], 1))
    x0, f0 = np.append(at[left], 0.0), np.concatenate((loss[..., left], nothing), axis=-1)
    x1, f1 = np.append(at[right], 1.0), np.concatenate((loss[..., right], nothing), axis=-1)
    gap = x1 - x0[:, None]
    weight = np.where(gap > 0, x1 - 0.5, 1.0) / np.where(gap > 0, gap, 1.0)
    chords = f0[..., None] * weight
    chords += f1[..., None, :] * (1 - weight)
    return np.asarray(2 * chords.max(axis=(-1, -2)))
