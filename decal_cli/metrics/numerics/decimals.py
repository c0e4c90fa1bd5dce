"""Numbers written so that acting on what is written is acting on the number."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal

import numpy as np

from decal_cli.tables.table import Floats

MIN_DECIMALS, MAX_DECIMALS = 2, 17


def shortest_between(below: float, value: float) -> str:
    """The shortest decimal above `below` and at most `value`, with at least two decimals before trailing zeros go.

    It parses to a float in (below, value], so that whoever acts from it decides between these two as from the value.
    """
    exact = Decimal(repr(float(value)))
    for decimals in range(MIN_DECIMALS, MAX_DECIMALS + 1):
        rounded = exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_FLOOR)
        if below < float(rounded) <= value:
            return f"{rounded.normalize():f}"
    return repr(float(value))


def shortest_deciding_as(score: Floats, value: float) -> str:
    """The shortest decimal that decides every one of these increasing scores as the value does."""
    level = int(np.searchsorted(score, value))
    return shortest_between(float(score[level - 1]) if level else -math.inf, value)
