"""Tables and their cells: numbers rounded once, with their interval in a piece of its own; names of metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Literal, TypeVar

from decal_cli.data.words import grouped
from decal_cli.metrics import parse
from decal_cli.numbers import DASH, Interval, bracketed, decimal, pieces
from decal_cli.render.blocks import Cell, Column, Notes, Row, TextTable

T = TypeVar("T")
Columns = Sequence[tuple[Column | str, str | Callable[[T], Cell | str | float | None]] | Literal[False]]
"""The heading of each column, and what it says of an item, or the name of the attribute that does: a number is rounded,
a text is not. False for no column.
"""
ARROWS = {"lower": "↓", "higher": "↑", "zero": "→0", "one": "→1", "neither": ""}
"""By a metric's direction."""


def left(heading: str, **more: Any) -> Column:
    """A column of words."""
    return Column(heading, words=True, **more)


def table(
    items: Iterable[T], columns: Columns[T], row: Callable[[T], Mapping[str, Any]] = lambda _: {}, **more: Any
) -> TextTable:
    """A row for each item; row: what else is said of it."""

    def cell(said: Cell | str | float | None) -> Cell:
        return said if isinstance(said, Cell) else words(said) if isinstance(said, str) else number(said)

    shown = [each for each in columns if each]
    says = [attrgetter(of) if isinstance(of, str) else of for _, of in shown]
    heads = [head if isinstance(head, Column) else Column(head) for head, _ in shown]
    rows = [Row(tuple(cell(say(item)) for say in says), **row(item)) for item in items]
    return TextTable(heads, rows, **more)


def texts(heads: Sequence[Column | str], rows: Iterable[Sequence[str]], **more: Any) -> TextTable:
    """Rows of texts, the first of which names its row."""
    first, *others = (head if isinstance(head, Column) else Column(head) for head in heads)
    return TextTable((replace(first, words=True), *others), [Row(tuple(map(words, row))) for row in rows], **more)


def reasons(named: Iterable[tuple[str, str | None]], together: bool = False, quiet: bool = True) -> Iterator[Notes]:
    """Why cells show a dash, a line for each name, or together for each reason; nothing where none has a reason."""
    by = grouped((("" if together else name, reason), name) for name, reason in named if reason is not None)
    if by:
        lines = (f"{DASH} {', '.join(names)}: {reason}" for (_, reason), names in by.items())
        yield Notes(lines, quiet=quiet, close=True)


def words(text: str) -> Cell:
    """A text, or nothing."""
    return Cell((text,) if text else ())


def written(text: str, more: str = "") -> Cell:
    """A number as it is written, its interval in a piece of its own; more: the number where it must not be rounded."""
    value, _, ends = text.partition(" ")
    return Cell(tuple(filter(None, (more or value, ends))))


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


def amount(value: float, interval: Interval | None, decimals: int) -> Cell:
    """A number of exactly so many decimals with its interval, for columns of one unit."""
    return written(bracketed(decimal(each, decimals) for each in (value, *(interval or ()))))


def _parts(value: float, interval: Interval | None, decimals: int, text: str, side: str | None) -> tuple[str, ...]:
    first, *ends = pieces(value, interval, decimals, side)
    return (text or first, *ends)


def by_words(text: str) -> Cell:
    """A text of which each word may begin a line of its own where there is little room."""
    return Cell(tuple(text.split()))


def counted(rows: float) -> str:
    """A number of rows, by their weight."""
    return f"{rows:,.0f}" if rows == round(rows) else f"{rows:,.1f}"


def metric_name(key: str) -> Cell:
    """What a metric is called."""
    metric = parse(key).declared
    return Cell((metric.title,), code=key, parameters=key.removeprefix(metric.name))


def better(key: str) -> str:
    """Which way a metric is better."""
    return ARROWS[parse(key).declared.better]
