"""Tables on a page of some width: how cells are wrapped and columns dropped before a table is split into banks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING

from decal_cli.data.words import grouped
from decal_cli.render.blocks import Cell, Column, Row, TextTable

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

    table: TextTable
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

    @property
    def kept(self) -> list[int]:
        """The columns that are not dropped."""
        return [k for k, column in enumerate(self.table.columns) if not 0 < column.drops <= self.dropped]

    @property
    def shown(self) -> list[Row]:
        """The rows that say something."""
        return [row for row in self.table.rows if not row.empty]

    @property
    def gap(self) -> int:
        """Characters between columns."""
        return 1 if self.table.dense else 2

    def lines(self, k: int) -> list[str]:
        """The lines of text in the cells of column k."""
        return [line for row in self.shown for line in self.cell(row.cells[k]).splitlines()]

    def width(self, k: int, wrapped: bool = False) -> int:
        """Characters that a column takes; wrapped: where its text goes on in the next line after any word."""
        from rich.cells import cell_len

        column, lines = self.table.columns[k], self.lines(k)
        texts = [*lines, *self.title(column, _widest(lines)).splitlines()]
        if k == 0:
            texts += [f"→ {text}" for text in lines] * self.table.picks + [row.section for row in self.shown]
        if wrapped and column.wraps:
            texts = [word for text in texts for word in text.split()]
        widest = max(map(cell_len, texts), default=0)
        return min(widest, column.most or widest)

    def fits(self, columns: Sequence[int], width: int, wrapped: bool = False) -> bool:
        """Whether these columns have room beside each other."""
        return sum(self.width(k, wrapped) for k in columns) + self.gap * (len(columns) - 1) <= width

    def widths(self, columns: Sequence[int], page: int) -> dict[int, int]:
        """Characters of each of these columns on a page of this width.

        A column whose text may go on in the next line gets its longest word, and then of the room that is left what it
        can use, the one that lacks least first.
        """
        widths = {k: self.width(k, wrapped=True) for k in columns}
        room = max(page - sum(widths.values()) - self.gap * (len(columns) - 1), 0)
        lacking = {k: self.width(k) - widths[k] for k in columns}
        for k in sorted(lacking, key=lacking.__getitem__):
            more = min(lacking[k], room)
            widths[k], room = widths[k] + more, room - more
        return widths

    def rich(self, columns: Sequence[int], page: int) -> RichTable:
        """These columns beside each other, on a page of this width."""
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(box=None, padding=(0, self.gap, 0, 0), pad_edge=False, header_style="bold")
        widths = self.widths(columns, page)
        for k in columns:
            column = self.table.columns[k]
            table.add_column(
                Text(self.title(column, _widest(self.lines(k)))),
                justify="left" if column.words else "right",
                no_wrap=not column.wraps,
                width=widths[k],
            )
        section = ""
        for number, row in enumerate(self.shown):
            if number and (row.apart or row.section != section):
                table.add_row()
            if row.section != section:
                section = row.section
                table.add_row(Text(section, style="dim"))
            cells = [Text(self.cell(row.cells[k]), style=_TONES[row.cells[k].tone]) for k in columns]
            if self.table.picks:
                cells[0] = Text("→ " if row.chosen else "  ").append(cells[0])
            table.add_row(*cells, style="bold" if row.chosen else "")
        return table


def layouts(table: TextTable) -> list[Layout]:
    """The ways to write a table, the widest first.

    Shorter headings come first, then columns are dropped, then cells are wrapped; fewer decimals are the last resort.
    """
    cells = [cell for row in table.rows for cell in row.cells]
    least = 1 if table.stacked else 0
    most = max((len(cell.parts) - 1 for cell in cells), default=0)
    drops = sorted({0, *(column.drops for column in table.columns)})
    ways = [
        Layout(table, breaks, dropped, short, heading)
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
    tightest = {way.breaks: way for way in ways}
    for way in ways:
        # A text goes on in the next line before more of the numbers do, and no word is cut where there is another way.
        wrapped = not table.keys and way.breaks > 0 and way is tightest[way.breaks]
        if way.fits(way.kept, width) or (wrapped and way.fits(way.kept, width, wrapped)):
            return [way.rich(way.kept, width)]
    if not table.keys:
        return [way.rich(way.kept, width)]
    # What was the last resort against a cut is not needed beside one.
    way = ways[max(len(ways) - 2, 0)]
    keys, rest = way.kept[: table.keys], way.kept[table.keys :]
    widths = {k: way.width(k) for k in way.kept}
    for size in dict.fromkeys(math.ceil(len(rest) / count) for count in range(2, len(rest) + 1)):
        parts = [[*keys, *rest[k : k + size]] for k in range(0, len(rest), size)]
        fits = all(sum(widths[k] for k in part) + way.gap * (len(part) - 1) <= width for part in parts)
        if size == 1 or fits:
            return [way.rich(part, width) for part in parts]
    return [way.rich(way.kept, width)]


def side_by_side(table: TextTable, width: int) -> list[tuple[str, str]]:
    """Lines with their styles: its sections beside each other, as many in a row as the width takes."""
    sections = grouped((row.section, (row.cells[0].text, row.cells[1].text)) for row in table.rows)
    banked: list[list[list[str]]] = []
    for heading, rows in sections.items():
        names, values = (_widest(texts) for texts in zip(*rows, strict=True))
        total = max(len(heading), names + values + 1)
        block = [f"{heading:<{total}}", *(f"{name:<{names}} {value:>{total - names - 1}}" for name, value in rows)]
        if banked and sum(len(each[0]) + _BETWEEN for each in banked[-1]) + total <= width:
            banked[-1].append(block)
        else:
            banked.append([block])
    lines: list[tuple[str, str]] = []
    for bank in banked:
        lines += [("", "")] if lines else []
        widths = [len(block[0]) for block in bank]
        for k, parts in enumerate(zip_longest(*bank, fillvalue="")):
            lines.append(((" " * _BETWEEN).join(map(str.ljust, parts, widths)), "" if k else "bold"))
    return lines


def _widest(lines: Sequence[str]) -> int:
    return max(map(len, lines), default=0)


def width_of(table: RichTable) -> int:
    """Columns of the page that a table takes."""
    wide = _wide_console()
    return table.__rich_measure__(wide, wide.options).maximum


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
