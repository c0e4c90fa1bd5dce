"""Isotonic regression by pooling adjacent violators, on arrays of any length without a Python loop over them.

Whole runs of violators are pooled at once, and one linear scalar pass takes the few pools that remain. Whole numbers
are pooled on their cumulative sums, exactly and faster; weights are added, because differences of their long sums would
not be exact. No library is called, since importing it takes as long as evaluating a small file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Sums = NDArray[Any]
"""int64 or float64."""

_BLOCK = 1 << 18
"""Levels pooled at once: a sweep costs a few calls however short it is, and temporaries of full length cost memory."""
_FEW = 64
"""Levels that the scalar pass takes at once, in the time of two or three sweeps."""
_SWEEPS = 24
"""Vectorised sweeps before the scalar pass; random labels leave a few hundred pools after about ten."""


def first_of_pools(n: Sums, pos: Sums) -> Ints:
    """First level of each pool of the isotonic fit of pos / n, shape (k,), of levels of any number type."""
    parts = []
    for start in range(0, len(n), _BLOCK):
        starts, *sums = pool(*_levels_or_runs(n[start : start + _BLOCK], pos[start : start + _BLOCK]))
        parts.append((starts + start, *sums))
    return parts[0][0] if len(parts) == 1 else pool(*map(np.concatenate, zip(*parts, strict=True)))[0]


def _levels_or_runs(n: Sums, pos: Sums) -> tuple[Ints, Sums, Sums]:
    """What to pool of some levels: the levels, or where each holds one row the runs 1..1 0..0, which any fit pools."""
    if bool((n != 1).any()) or bool(((pos != 0) & (pos != 1)).any()):
        return np.arange(len(n), dtype=np.int64), _wide(n), _wide(pos)
    starts = np.concatenate(([0], np.flatnonzero(pos[1:] > pos[:-1]) + 1))
    falls = np.flatnonzero(pos[1:] < pos[:-1]) + 1
    ones_end = np.concatenate(([0] * int(pos[0] == 0), falls, [len(n)] * int(pos[-1] == 1))).astype(np.int64)
    return starts, np.diff(starts, append=len(n)), ones_end - starts


def _wide(values: Sums) -> Sums:
    """Sums as int64 or float64."""
    return values.astype(np.int64 if values.dtype.kind in "iu" else np.float64, copy=False)


def pool(starts: Ints, n: Sums, pos: Sums) -> tuple[Ints, Sums, Sums]:
    """Pools of the isotonic fit of pos / n: first index, summed n and pos of each, shape (k,) each.

    starts: first index of each given group, increasing; n > 0, pos >= 0. Neighbouring pools of one value are merged,
    so that the values pos / n of the pools strictly increase.
    """
    whole = n.dtype.kind == pos.dtype.kind == "i"
    # Cumulative sums with their 0, shape (k + 1,).
    sums_to = [np.concatenate(([0], np.cumsum(values))) for values in (n, pos)] if whole else []
    for _ in range(_SWEEPS):
        if len(n) <= _FEW:
            break
        first = _rising(n, pos)
        if len(first) == len(n):
            return starts, n, pos
        if whole:
            ends = np.append(first, len(n))
            sums_to = [each[ends] for each in sums_to]
            n, pos = (np.diff(each) for each in sums_to)
        else:
            n, pos = (np.add.reduceat(each, first) for each in (n, pos))
        starts = starts[first]
    return _scalar_pool(starts, n, pos)


def _rising(n: Sums, pos: Sums) -> Ints:
    """The first group, and those of a higher rate than the one before."""
    # A rate beyond the range of floats is infinite, which is above the others too.
    with np.errstate(over="ignore"):
        rate = pos / n
    keep = np.empty(len(n), dtype=bool)
    keep[:1] = True
    np.greater(rate[1:], rate[:-1], out=keep[1:])
    return np.flatnonzero(keep)


def _scalar_pool(starts: Ints, n: Sums, pos: Sums) -> tuple[Ints, Sums, Sums]:
    """The textbook stack, linear in the number of groups."""
    stack: list[tuple[int, float, float]] = []
    for start, rows, positives in zip(starts.tolist(), n.tolist(), pos.tolist(), strict=True):
        while stack and positives * stack[-1][1] <= stack[-1][2] * rows:
            start, rows_before, positives_before = stack.pop()
            rows, positives = rows + rows_before, positives + positives_before
        stack.append((start, rows, positives))
    columns = list(zip(*stack, strict=True))
    return np.array(columns[0], dtype=np.int64), np.array(columns[1]), np.array(columns[2])
