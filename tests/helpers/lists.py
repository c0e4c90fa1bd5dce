"""Limited capacities, and the lists that they allow, written out."""

import itertools

import numpy as np

from decal_cli.tables.selection import Capacity


def share(part: float) -> Capacity:
    return Capacity(str(part), part, 1.0)


def count(places: int) -> Capacity:
    return Capacity(str(places), places)


def written_out(rank: np.ndarray, places: int, wanted: np.ndarray) -> list[np.ndarray]:
    """Every list of so many rows that their ranks allow: rows that tie for the last places take them in turn."""
    order = sorted(np.flatnonzero(wanted), key=lambda row: -rank[row])
    if len(order) <= places:
        return [np.array(order, dtype=int)]
    last = rank[order[places - 1]]
    sure = [row for row in order if rank[row] > last]
    tied = [row for row in order if rank[row] == last]
    chosen = itertools.combinations(tied, places - len(sure))
    return [np.array([*sure, *some], dtype=int) for some in chosen]
