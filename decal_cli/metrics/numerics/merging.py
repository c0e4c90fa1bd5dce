"""The cheapest way to make scores calibrated by moving runs of neighbouring levels to one common score each."""

from __future__ import annotations

import numpy as np

from decal_cli.tables.table import Table

MAX_CUTS = 512
"""Above this many levels, runs begin only at the starts of as many equal-mass bins."""


def cheapest_merge(t: Table) -> float:
    """min over partitions into runs of sum over runs of sum n |q - h| / T, h the label frequency of the run.

    Dynamic programming over the places where a run may begin; every cost is exact at the levels of the table.
    """
    cuts = np.append(np.arange(len(t)) if len(t) <= MAX_CUTS else t.bin_starts(MAX_CUTS), len(t))
    n, pos, mass = (np.concatenate(([0.0], np.cumsum(column))) for column in (t.n * 1.0, t.pos * 1.0, t.n * t.score))
    best = np.zeros(len(cuts))
    for end in range(1, len(cuts)):
        # Runs from every earlier cut to this one: n |q - h| summed is n (q - h) summed, plus twice what lies below h.
        first, last = cuts[:end], cuts[end]
        rows = n[last] - n[first]
        rate = (pos[last] - pos[first]) / rows
        middle = np.clip(np.searchsorted(t.score, rate), first, last)
        lower = rate * (n[middle] - n[first]) - (mass[middle] - mass[first])
        cost = np.maximum(mass[last] - mass[first] - rate * rows + 2 * lower, 0.0)
        best[end] = (best[:end] + cost).min()
    return float(best[-1]) / t.total
