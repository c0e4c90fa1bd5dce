"""The cheapest way to make scores calibrated by moving runs of neighbouring levels to one common score each."""

from __future__ import annotations

import numpy as np

from decal_cli.table import Floats, Ints, Table

CUTS = 512
"""Above this many levels runs begin at the starts of as many equal-mass bins only."""


def cheapest_merge(t: Table) -> float:
    """min over partitions into runs of sum over runs of sum n |q - h| / T, h the label frequency of the run.

    Dynamic programming over the places where a run may begin; every cost is exact at the levels of the table.
    """
    starts = np.arange(len(t)) if len(t) <= CUTS else t.bin_starts(CUTS)
    cost = _costs(t, np.append(starts, len(t)))
    best = np.zeros(len(starts) + 1)
    for end in range(1, len(best)):
        best[end] = (best[:end] + cost[:end, end]).min()
    return float(best[-1]) / t.total


def _costs(t: Table, cuts: Ints) -> Floats:
    """cost[i, j] = sum over the levels from cut i to cut j of n |q - h|, h their label frequency, i < j."""
    n, pos, mass = (np.concatenate(([0.0], np.cumsum(column))) for column in (t.n * 1.0, t.pos * 1.0, t.n * t.score))
    rows, positives, masses = (np.subtract.outer(sums[cuts], sums[cuts]).T for sums in (n, pos, mass))
    inside = rows > 0
    rate = np.divide(positives, rows, out=np.zeros_like(rows), where=inside)
    middle = np.clip(np.searchsorted(t.score, rate), cuts[:, None], np.maximum(cuts, cuts[:, None]))
    lower = rate * (n[middle] - n[cuts][:, None]) - (mass[middle] - mass[cuts][:, None])
    # n |q - h| over all is n (q - h) over all, plus twice what lies below h.
    return np.where(inside, np.maximum(masses - rate * rows + 2 * lower, 0.0), np.inf)
