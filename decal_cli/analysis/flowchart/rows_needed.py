"""How many rows would settle a question that the intervals leave open."""

from __future__ import annotations

import math

from decal_cli.analysis.flowchart.evidence import Evidence, Item

MAX_ROWS = 1e12
"""More rows than this are not worth naming."""


def rows_to_settle(evidence: Evidence, item: Item) -> int | None:
    """Rows at which this gain's interval would leave 0 or stay within its limit, were the gain as estimated."""
    if item.value is None:
        return None
    limit = evidence.limit(item.metric)
    return rows_for(evidence.rows, item, max(item.value, limit - item.value, limit / 2))


def rows_for(rows: int, item: Item, margin: float) -> int | None:
    """Rows at which the interval reaches no further than the margin: its width shrinks as 1 / sqrt(rows)."""
    if item.interval is None or not margin > 0:
        return None
    # No power: beyond the range of floats it is an error, where a product is infinite.
    ratio = (item.interval[1] - item.interval[0]) / 2 / margin
    needed = rows * ratio * ratio
    if not needed < MAX_ROWS:
        return None
    unit = 10 ** max(math.floor(math.log10(max(needed, 1))) - 1, 0)
    return max(unit * math.ceil(needed / unit - 1e-9), rows + 1)


def more_rows(rows: int | None, what: str) -> tuple[str, ...]:
    """The sentence that names them; empty where there is no number."""
    return () if rows is None else (f"About {rows:,} rows like these would settle {what}.",)
