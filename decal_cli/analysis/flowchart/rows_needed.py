"""How many rows would settle a question that the intervals leave open, in 4 of 5 samples of so many."""

from __future__ import annotations

import math
from statistics import NormalDist

from decal_cli.analysis.flowchart.evidence import Evidence, Item
from decal_cli.metrics.confidence import quantile

MAX_ROWS = 1e12
"""More rows than this are not worth naming."""
POWER = 0.8
"""How often so many rows show the effect. Where the half-width only equals it, every second sample does."""


def rows_to_settle(evidence: Evidence, item: Item) -> int | None:
    """Rows that show a gain above 0, or one within its limit, were the gain as estimated."""
    if item.value is None:
        return None
    return rows_for(evidence, item, max(item.value, evidence.limit(item.metric) - item.value))


def rows_for(evidence: Evidence, item: Item, effect: float) -> int | None:
    """Rows whose interval ends beyond an effect of this size with probability POWER: errors fall as 1 / sqrt(rows)."""
    if item.interval is None or not effect > 0:
        return None
    reach = quantile(evidence.confidence)
    error = (item.interval[1] - item.interval[0]) / (2 * reach)
    # No power: beyond the range of floats it is an error, where a product is infinite.
    ratio = (reach + NormalDist().inv_cdf(POWER)) * error / effect
    needed = evidence.rows * ratio * ratio
    if not needed < MAX_ROWS:
        return None
    unit = 10 ** max(math.floor(math.log10(max(needed, 1))) - 1, 0)
    return max(unit * math.ceil(needed / unit - 1e-9), evidence.rows + 1)


def more_rows(rows: int | None, what: str) -> tuple[str, ...]:
    """The sentence that names them; empty where there is no number."""
    return () if rows is None else (f"About {rows:,} rows like these show {what} in 4 of 5 cases.",)
