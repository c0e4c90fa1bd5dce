"""Isotonic regression by pooling adjacent violators, on arrays of any length without a Python loop over them.

Pooling may happen in any order, so whole runs of violators are pooled at once: first inside blocks that fit the cache,
then over what is left, and at the end one linear scalar pass over the few pools that remain. Start-up is why this does
not call a library: the one that has it takes as long to import as a small file takes to evaluate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SWEEPS = 24
"""Vectorised sweeps before the scalar pass; random labels leave a few hundred pools after about ten."""


def pool(starts: Ints, n: Floats, pos: Floats) -> tuple[Ints, Floats, Floats]:
    """Pools of the isotonic fit of pos / n: first index, summed n and pos of each, shape (k,) each.

    starts: first index of each given group, increasing; n > 0, pos >= 0. Neighbouring pools of one value are merged,
    so that the values pos / n of the pools strictly increase.
    """
    for _ in range(_SWEEPS):
        rate = pos / n
        keep = np.empty(len(n), dtype=bool)
        keep[:1] = True
        np.greater(rate[1:], rate[:-1], out=keep[1:])
        if keep.all():
            return starts, n, pos
        first = np.flatnonzero(keep)
        starts, n, pos = starts[first], np.add.reduceat(n, first), np.add.reduceat(pos, first)
    return _scalar_pool(starts, n, pos)


def levels_or_runs(n: Floats, pos: Floats) -> tuple[Ints, Floats, Floats]:
    """What to pool of some levels: the levels, or where each holds one row the runs 1..1 0..0, which any fit pools."""
    if float(n.max()) > 1 or float(n.min()) < 1 or bool(((pos != 0) & (pos != 1)).any()):
        return np.arange(len(n), dtype=np.int64), n, pos
    starts = np.concatenate(([0], np.flatnonzero(pos[1:] > pos[:-1]) + 1))
    falls = np.flatnonzero(pos[1:] < pos[:-1]) + 1
    ones_end = np.concatenate(([0] * int(pos[0] == 0), falls, [len(n)] * int(pos[-1] == 1)))
    return starts, np.diff(starts, append=len(n)).astype(np.float64), ones_end - starts.astype(np.float64)


def _scalar_pool(starts: Ints, n: Floats, pos: Floats) -> tuple[Ints, Floats, Floats]:
    """The textbook stack, linear in the number of groups."""
    stack: list[tuple[int, float, float]] = []
    for start, rows, positives in zip(starts.tolist(), n.tolist(), pos.tolist(), strict=True):
        while stack and positives * stack[-1][1] <= stack[-1][2] * rows:
            start, rows_before, positives_before = stack.pop()
            rows, positives = rows + rows_before, positives + positives_before
        stack.append((start, rows, positives))
    columns = list(zip(*stack, strict=True))
    return np.array(columns[0], dtype=np.int64), np.array(columns[1]), np.array(columns[2])
