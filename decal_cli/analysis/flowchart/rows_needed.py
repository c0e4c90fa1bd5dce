"""How many rows would settle a question that the intervals leave open, in 4 of 5 samples of so many."""

from __future__ import annotations

from decal_cli.analysis.flowchart.evidence import Evidence, Item
from decal_cli.metrics import power


def rows_to_settle(evidence: Evidence, item: Item) -> int | None:
    """Rows that show a gain above 0, or one within its limit, were the gain as estimated."""
    if item.value is None:
        return None
    return rows_for(evidence, item, max(item.value, evidence.limit(item.metric) - item.value))


def rows_for(evidence: Evidence, item: Item, effect: float) -> int | None:
    """Rows whose interval ends beyond an effect of this size in 4 of 5 samples of so many."""
    if item.interval is None:
        return None
    half_width = (item.interval[1] - item.interval[0]) / 2
    needed = power.rows_for(evidence.rows, half_width, effect, evidence.confidence)
    return None if needed is None else max(needed, evidence.rows + 1)


def more_rows(rows: int | None, what: str) -> tuple[str, ...]:
    """The sentence that names them; empty where there is no number."""
    return () if rows is None else (f"About {rows:,} rows like these show {what} in 4 of 5 cases.",)
