"""Tables on a page of some width: how cells are wrapped and columns dropped before a table is split into banks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from decal_cli.render.blocks import Cell, Column, TextTable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

_BETWEEN = 3
"""Columns between sections that stand side by side."""
_TONES = {"good": "green", "doubtful": "yellow", "": ""}


@dataclass(frozen=True)
class Layout:
    """One way to write a table.

    breaks: how many pieces of a cell begin a line of their own. dropped: which columns are dropped (Column.drops up to
    this). short: short headings. heading: which of Column.breaks is used. fewer: with fewer decimals.
    """

    breaks: int = 0
    dropped: int = 0
    short: bool = False
    heading: int = 0
    fewer: bool = False

    def cell(self, cell: Cell) -> str:
        """The text of a cell, perhaps on several lines."""
        parts = (self.fewer and cell.fewer) or (self.short and cell.short) or cell.parts
        text = "\n".join(filter(None, (*parts[: self.breaks], " ".join(parts[self.breaks :]))))
        return f"{text} {cell.parameters}" if cell.parameters else text

    def title(self, column: Column, widest: int) -> str:
        """The heading of a column whose widest cell takes so many characters."""
        text = column.short if self.short and column.short else column.heading
        if column.breaks:
            width = column.breaks[min(self.heading, len(column.breaks) - 1)]
            text = "\n".join(_broken(text, max(widest, width)))
        return "\n".join(filter(None, (text, column.under)))


def layouts(table: TextTable) -> list[Layout]:
    """The ways to write a table, the widest first.

    Shorter headings come first, then columns are dropped, then cells are wrapped; fewer decimals are the last resort.
    """
    cells = [cell for row in table.rows for cell in row.cells]
    least = 1 if table.stacked else 0
    most = max((len(cell.parts) - 1 for cell in cells), default=0)
    drops = sorted({0, *(column.drops for column in table.columns)})
    ways = [
        Layout(breaks, dropped, short, heading)
        for breaks in range(least, max(least, most) + 1)
        for dropped in (drops if breaks == least else drops[-1:])
        for short in ((False, True) if any(column.short for column in table.columns) else (False,))
        for heading in range(max(1, *(len(column.breaks) for column in table.columns)))
    ]
    if any(cell.fewer for cell in cells):
        ways.append(replace(ways[-1], fewer=True))
    return ways


def banks(table: TextTable, width: int) -> list[RichTable]:
    """The table as it fits the width, else its columns in as few banks as do; too wide where neither helps."""
    ways = layouts(table)
    for way in ways:
        kept = _kept(table, way)
        if _total(table, _widths(table, way), kept) <= width:
            return [_rich(table, way, kept)]
    if not table.keys:
        return [_rich(table, way, kept)]
    # What was the last resort against a cut is not needed beside one.
    way = ways[max(len(ways) - 2, 0)]
    kept = _kept(table, way)
    keys, rest = kept[: table.keys], kept[table.keys :]
    widths = _widths(table, way)
    for size in dict.fromkeys(math.ceil(len(rest) / count) for count in range(2, len(rest) + 1)):
        parts = [[*keys, *rest[k : k + size]] for k in range(0, len(rest), size)]
        if size == 1 or all(_total(table, widths, part) <= width for part in parts):
            return [_rich(table, way, part) for part in parts]
    return [_rich(table, way, kept)]


def side_by_side(table: TextTable, width: int) -> list[list[str | tuple[str, str]]]:
    """Lines, in parts with their styles: its sections beside each other, as many in a row as the width takes."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for row in table.rows:
        sections.setdefault(row.section, []).append((row.cells[0].text, row.cells[1].text))
    blocks = []
    for heading, rows in sections.items():
        names, values = (_widest(texts) for texts in zip(*rows, strict=True))
        total = max(len(heading), names + values + 1)
        lines = [f"{name:<{names}} {value:>{total - names - 1}}" for name, value in rows]
        blocks.append((total, heading, lines))
    banked: list[list[tuple[int, str, list[str]]]] = []
    for block in blocks:
        if banked and sum(each[0] + _BETWEEN for each in banked[-1]) + block[0] <= width:
            banked[-1].append(block)
        else:
            banked.append([block])
    written: list[list[str | tuple[str, str]]] = []
    for bank in banked:
        if written:
            written.append([""])
        gaps = [" " * _BETWEEN] * (len(bank) - 1) + [""]
        written.append(
            [(f"{heading:<{total}}{gap}", "bold") for (total, heading, _), gap in zip(bank, gaps, strict=True)]
        )
        for k in range(max(len(lines) for _, _, lines in bank)):
            parts = [
                f"{lines[k] if k < len(lines) else '':<{total}}{gap}"
                for (total, _, lines), gap in zip(bank, gaps, strict=True)
            ]
            written.append(["".join(parts)])
    return written


def _widths(table: TextTable, way: Layout) -> list[int]:
    """Characters that each column takes, measured once."""
    from rich.cells import cell_len

    shown = [row for row in table.rows if not row.empty]
    widths = []
    for k, column in enumerate(table.columns):
        lines = [line for row in shown for line in way.cell(row.cells[k]).splitlines()]
        texts = [*lines, *way.title(column, _widest(lines)).splitlines()]
        if k == 0:
            texts = [f"→ {text}" for text in lines] * table.picks + texts + [row.section for row in shown]
        widest = max(map(cell_len, texts), default=0)
        widths.append(min(widest, column.most or widest))
    return widths


def _widest(lines: Sequence[str]) -> int:
    return max(map(len, lines), default=0)


def _total(table: TextTable, widths: Sequence[int], columns: Sequence[int]) -> int:
    """Characters that these columns take beside each other."""
    return sum(widths[k] for k in columns) + _gap(table) * (len(columns) - 1)


def _gap(table: TextTable) -> int:
    return 1 if table.dense else 2


def width_of(table: RichTable) -> int:
    """Columns of the page that a table takes."""
    wide = _wide_console()
    return table.__rich_measure__(wide, wide.options).maximum


def _kept(table: TextTable, way: Layout) -> list[int]:
    return [k for k, column in enumerate(table.columns) if not 0 < column.drops <= way.dropped]


def _rich(table: TextTable, way: Layout, columns: Sequence[int]) -> RichTable:
    from rich.table import Table as RichTable
    from rich.text import Text

    rich = RichTable(box=None, padding=(0, _gap(table), 0, 0), pad_edge=False, header_style="bold")
    shown = [row for row in table.rows if not row.empty]
    for k in columns:
        column = table.columns[k]
        widest = _widest([line for row in shown for line in way.cell(row.cells[k]).splitlines()])
        rich.add_column(
            Text(way.title(column, widest)),
            justify="left" if column.words else "right",
            no_wrap=not column.wraps,
            max_width=column.most,
        )
    section = ""
    for number, row in enumerate(shown):
        if number and (row.apart or row.section != section):
            rich.add_row()
        if row.section != section:
            section = row.section
            rich.add_row(Text(section, style="dim"))
        cells = [Text(way.cell(row.cells[k]), style=_TONES[row.cells[k].tone]) for k in columns]
        if table.picks:
            cells[0] = Text("→ " if row.chosen else "  ").append(cells[0])
        rich.add_row(*cells, style="bold" if row.chosen else "")
    return rich


def _broken(text: str, width: int) -> list[str]:
    """Lines of a heading; an arrow stays with what it points to."""
    tied = text.replace("→ ", "→\xa0")
    lines = textwrap.wrap(tied, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


@cache
def _wide_console() -> Console:
    """A wide console to measure tables on."""
    from rich.console import Console

    return Console(width=10_000, color_system=None, legacy_windows=False, force_jupyter=False)
