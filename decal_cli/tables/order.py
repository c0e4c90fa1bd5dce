"""Orders of rows by one column or by several, as numpy finds them, in a fraction of the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.units import Ints, runs

_SIGN = np.uint64(1 << 63)


def lexical_order(keys: Sequence[NDArray[Any]]) -> Ints:
    """np.lexsort: indices that sort rows by the last key, those where it is the same by the one before, and so on."""
    order = stable_order(keys[0])
    for key in keys[1:]:
        order = order[stable_order(key[order])]
    return order


def stable_order(values: NDArray[Any]) -> Ints:
    """np.argsort(kind="stable"). Of floats, integers are sorted: the first bits of each number, and then its index."""
    rows = len(values)
    if values.dtype != np.float64:
        return np.argsort(values, kind="stable")
    key, width = np.empty(rows, dtype=np.uint64), np.uint64(rows.bit_length())
    for part in runs(rows):
        bits = (values[part] + 0.0).view(np.uint64)  # + 0.0 makes -0.0 the zero that sorts first
        # Bits sort as their numbers do, where all of a negative one are turned over, and the sign of a positive one.
        bits ^= (bits.view(np.int64) >> 63).view(np.uint64) | _SIGN
        key[part] = bits >> width << width | np.arange(part.start, part.stop, dtype=np.uint64)
    key.sort()
    order = (key & np.uint64((1 << int(width)) - 1)).view(np.int64)
    key >>= width
    wrong = [key[:0]]
    for part in runs(rows - 1):
        following = values[order[part.start : part.stop + 1]]
        wrong.append(key[part][following[1:] < following[:-1]])
    # Where numbers with the same first bits stand in a wrong order, all that have these bits are sorted.
    bits = np.unique(np.concatenate(wrong))
    first, end = (np.searchsorted(key, bits, side=side) for side in ("left", "right"))
    place = np.repeat(end - np.cumsum(end - first), end - first) + np.arange(np.sum(end - first))
    some = order[place]
    order[place] = some[np.lexsort((values[some], key[place]))]
    return order
