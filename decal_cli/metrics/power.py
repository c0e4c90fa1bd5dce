"""How many rows show an effect: errors fall as 1 / sqrt(rows)."""

from __future__ import annotations

import math
from statistics import NormalDist

from decal_cli.metrics.confidence import quantile

MAX_ROWS = 1e12
"""More rows than this are not worth naming."""
POWER = 0.8
"""How often so many rows show the effect. Where the half-width only equals it, every second sample does."""


def rows_for(rows: float, half_width: float, effect: float, confidence: float, power: float = POWER) -> int | None:
    """Rows whose interval ends beyond an effect of this size with this probability; None for none worth naming.

    half_width: of the interval of this confidence on so many rows. Two digits of the number are given, rounded up.
    """
    if not effect > 0:
        return None
    reach = quantile(confidence)
    # No power: beyond the range of floats it is an error, where a product is infinite.
    ratio = (1 + NormalDist().inv_cdf(power) / reach) * half_width / effect
    needed = rows * ratio * ratio
    if not needed < MAX_ROWS:
        return None
    unit = 10 ** max(math.floor(math.log10(max(needed, 1))) - 1, 0)
    return int(unit * math.ceil(needed / unit - 1e-9))
