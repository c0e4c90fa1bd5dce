"""Who is acted on by one model's list and not by the other's, where so many rows can be acted on only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from decal_cli.declarations.document import Said, Size
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats

MAX_NAMED = 1000
"""Rows of a side that are named; there may be millions."""
Ids = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class SwapPart:
    """Rows, of weighted ones as many as their share of the weight says, in expectation where rows tie for a place.

    positives: those with label 1. ids: of the rows that have a better chance of a place here, MAX_NAMED at most.
    """

    rows: Size
    positives: Size
    ids: Annotated[tuple[Any, ...], Said(kind=list[str | int])] = ()


@dataclass(frozen=True)
class Swap:
    """Rows that both models act on, that only A does, and that only B does."""

    both: SwapPart
    only_a: SwapPart
    only_b: SwapPart


def swap(a: Rows, b: Rows, ids: Ids | None = None) -> Swap | None:
    """The same rows with the scores of A and of B; None where there is no limit. ids: what rows are called, (T,)."""
    if a.listed is None or b.listed is None:
        return None
    of_a, of_b, weight = a.listed.acted, b.listed.acted, a.weights / (float(a.weights.sum()) / len(a))
    label = np.asarray(a.label, dtype=np.float64)

    # Rows that were counted have no names.
    ids = None if a.counted else ids

    def part(chance: Floats, named: bool = True) -> SwapPart:
        mass = weight * chance
        names = tuple(ids[np.flatnonzero(chance > 0)[:MAX_NAMED]].tolist()) if named and ids is not None else ()
        return SwapPart(float(mass.sum()), float(mass @ label), names)

    shared = np.minimum(of_a, of_b)
    return Swap(part(shared, named=False), part(of_a - shared), part(of_b - shared))
