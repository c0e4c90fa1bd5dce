"""Tables and their cells: numbers rounded once, with their interval in a piece of its own; names of metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from decal_cli.metrics import parse
from decal_cli.numbers import DASH, Interval, short, span
from decal_cli.render.blocks import Cell, Column, Notes, Row, TextTable

T = TypeVar("T")
Columns = Sequence[tuple[Column | str, Callable[[T], Cell | str | float | None]]]
"""The heading of each column, and what it says of an item: a number is rounded, a text is not."""
ARROWS = {"lower": "↓", "higher": "↑", "zero": "→0", "one": "→1", "neither": ""}
"""By a metric's direction."""


def left(heading: str, **more: Any) -> Column:
    """A column of words."""
    return Column(heading, words=True, **more)


def table(
    items: Iterable[T], columns: Columns[T], chosen: Callable[[T], bool] = lambda _: False, **more: Any
) -> TextTable:
    """A row for each item; chosen: whether it is the one that was picked."""
    heads = tuple(head if isinstance(head, Column) else Column(head) for head, _ in columns)
    rows = (Row(tuple(_cell(say(item)) for _, say in columns), chosen=chosen(item)) for item in items)
    return TextTable(heads, tuple(rows), **more)


def _cell(said: Cell | str | float | None) -> Cell:
    return said if isinstance(said, Cell) else words(said) if isinstance(said, str) else number(said)


def reasons(named: Iterable[tuple[str, str | None]], together: bool = False, quiet: bool = True) -> Iterator[Notes]:
    """Why cells show a dash, a line for each name, or together for each reason; nothing where none has a reason."""
    by: dict[tuple[str, str], list[str]] = {}
    for name, reason in named:
        if reason is not None:
            by.setdefault(("" if together else name, reason), []).append(name)
    if by:
        lines = (f"{DASH} {', '.join(names)}: {reason}" for (_, reason), names in by.items())
        yield Notes(tuple(lines), quiet=quiet, close=True)


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
    side: str | None = None,
) -> Cell:
    """A number with its interval, or a dash; fewer: decimals where there is little room; reason: why it is a dash.

    text: the number as it must be written, where it must not be rounded. side: the end that alone says something.
    """
    if value is None:
        return Cell((DASH,), reason=reason or "")
    parts = _parts(value, interval, decimals, text, side)
    return Cell(parts, fewer=() if fewer is None else _parts(value, interval, fewer, text, side))


def _parts(value: float, interval: Interval | None, decimals: int, text: str, side: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (text or short(value, decimals), span(interval, decimals, side))))


def counted(rows: float) -> str:
    """A number of rows, or their summed weight."""
    return f"{rows:,.0f}" if rows == round(rows) else f"{rows:,.1f}"


def metric_cells(key: str) -> tuple[Cell, Cell]:
    """What a metric is called, and which way is better."""
    metric = parse(key).declared
    name = Cell((metric.title,), code=key, parameters=key.removeprefix(metric.name))
    return name, words(ARROWS[metric.better])
