"""What decisions make of rows: weights by action and label."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.design import Counts, Floats

Ints = NDArray[np.int64]


class Confusion(NamedTuple):
    """Weights of the cells of action and label, shape (actions, 2), and their sums of squared weights.

    products: of rows in clusters, sums over clusters of the products of their weights in the cells, those of label 0
    before those of label 1, shape (2 actions, 2 actions). share_known: whether weights make the share of label 1 what
    it is known to be, so that a mean varies only as far as rows of one label do among each other.
    """

    weight: Floats
    squares: Floats
    products: Floats | None = None
    share_known: bool = False


def parted(n: Counts, pos: Counts, cuts: Ints, total: float, positives: float) -> Floats:
    """Sums of the negatives and positives of the levels up to the first cut, between cuts, and from the last on."""
    if n.dtype.kind == "f":
        # Each part is summed by itself: what is left of a sum of weights may be rounding where there are no rows.
        each = [slice(start, end) for start, end in zip((0, *cuts), (*cuts, len(n)), strict=True)]
        return np.array([[max(float((n[run] - pos[run]).sum()), 0.0), float(pos[run].sum())] for run in each])
    runs = [slice(start, end) for start, end in zip((0, *cuts), cuts, strict=False)]
    below = [[float(values[run].sum(dtype=np.float64)) for values in (n, pos)] for run in runs]
    parts = [(rows - ones, ones) for rows, ones in below]
    last = total - positives - sum(part[0] for part in parts), positives - sum(part[1] for part in parts)
    return np.array((*parts, last), dtype=np.float64)
