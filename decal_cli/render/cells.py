"""Cells of tables: numbers rounded once, with their interval in a piece of its own; names of metrics."""

from __future__ import annotations

from decal_cli.metrics import parse
from decal_cli.numbers import DASH, Interval, short, span
from decal_cli.render.blocks import Cell

ARROWS = {"lower": "↓", "higher": "↑", "zero": "→0", "one": "→1", "neither": ""}
"""By a metric's direction."""


def words(text: str) -> Cell:
    """A text, or nothing."""
    return Cell((text,) if text else ())


def number(
    value: float | None,
    interval: Interval | None = None,
    decimals: int = 4,
    fewer: int | None = None,
    reason: str | None = None,
    text: str = "",
) -> Cell:
    """A number with its interval, or a dash; fewer: decimals where there is little room; reason: why it is a dash.

    text: the number as it must be written, where it must not be rounded.
    """
    if value is None:
        return Cell((DASH,), reason=reason or "")
    parts = _parts(value, interval, decimals, text)
    return Cell(parts, fewer=() if fewer is None else _parts(value, interval, fewer, text))


def _parts(value: float, interval: Interval | None, decimals: int, text: str = "") -> tuple[str, ...]:
    return tuple(filter(None, (text or short(value, decimals), span(interval, decimals))))


def metric_cells(key: str) -> tuple[Cell, Cell]:
    """What a metric is called, and which way is better."""
    metric = parse(key).declared
    name = Cell((metric.title,), code=key, parameters=key.removeprefix(metric.name))
    return name, words(ARROWS[metric.better])


def per_thousand(value: float, ends: Interval | None = None, plus: bool = False) -> Cell:
    """A utility per 1,000 decisions with its interval, all to as many decimals as the largest needs."""
    scaled = [1000 * part for part in (value, *(ends or ()))]
    decimals = 1 if max(map(abs, scaled)) >= 1 else 3
    first, *rest = (f"{part:,.{decimals}f}" for part in scaled)
    sign = "+" if plus and scaled[0] > 0 else ""
    return Cell((sign + first, *((f"[{rest[0]},", f"{rest[1]}]") if rest else ())))
