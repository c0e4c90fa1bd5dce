"""Markdown, for pull requests and wikis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from decal_cli.errors import printable
from decal_cli.render.format import BlockFormat

if TYPE_CHECKING:
    from decal_cli.render import blocks as b

_MARKS = {True: "pass", False: "**fail**", None: "**cannot judge**"}
_OURS = re.compile(r"(`decal [^`]*`)")
"""A command that a sentence names, which stays code."""
_ACTIVE = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|\Z)|[`*~$]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#?\w+;)|\](?=[(\[:])"
)
"""What Markdown would take for code, emphasis, a formula, HTML or a link; not the underscores inside a name.

A backslash at the end would act on what we put after it, such as the ** of a heading.
"""
_FIRST = re.compile(r"^(\s*)(?=[#>+=-])|^(\s*\d+)(?=[.)])")
"""Where a line begins with what Markdown would take for a heading, a quotation or a list."""


class Markdown(BlockFormat[list[str]]):
    """Markdown, for pull requests and wikis.

    It is a fragment without headings that can be pasted anywhere; `document`, and a result that is a whole page, has
    headings.
    """

    name = "markdown"
    suffix = ".md"
    page_of_its_own = False

    def write(self, result: Any) -> str:
        whole_page = getattr(result, "whole_page", False)
        return self.document(result) if whole_page else self._fragment(result)

    def _fragment(self, result: Any) -> str:
        from decal_cli.render.blocks import Notes

        text, before = "", None
        for block in result.blocks():
            # Notes that go on are one list; anything else stands apart, or it would be read as part of what is above.
            one_list = block.close and isinstance(block, Notes) and isinstance(before, Notes)
            text += ("\n" if one_list else "\n\n") if text else ""
            text += "\n".join(self.block(block))
            before = block
        return text + "\n"

    def document(self, result: Any) -> str:
        """A page of its own, with a title."""
        self.page_of_its_own = True
        return f"# {_plain(printable(result.title))}\n\n{self._fragment(result)}"

    def _title(self, text: str) -> str:
        return f"## {_plain(text)}" if self.page_of_its_own else f"**{_plain(text)}**"

    def heading(self, block: b.Heading) -> list[str]:
        return [self._title(": ".join(filter(None, (block.text, block.summary))))]

    def paragraph(self, block: b.Paragraph) -> list[str]:
        return [" ".join(filter(None, (_strong(block.strong), _line(block.text))))]

    def points(self, block: b.Points) -> list[str]:
        return [f"- {_strong(f'{name}:')} {_plain(text)}" for name, text in block.items]

    def notes(self, block: b.Notes) -> list[str]:
        return _items(block.lines)

    def text_table(self, block: b.TextTable) -> list[str]:
        above = [self._title(block.title)] if block.title else []
        above += [_line(block.caption)] if block.caption else []
        rows, section = [], ""
        for row in block.rows:
            if row.section != section:
                section = row.section
                rows.append([_strong(section), *[""] * (len(block.columns) - 1)])
            rows.append([("→ " if row.chosen else "") + _cell(row.cells[0]), *map(_cell, row.cells[1:])])
        heads = [_plain(each.name) for each in block.columns]
        return [*(line for text in above for line in (text, "")), *_table(heads, rows)]

    def bars(self, block: b.Bars) -> list[str]:
        rows = [[_plain(bar.name), _plain(bar.text)] for bar in block.items]
        return _table([_plain(block.names), _plain(block.values)], rows)

    def answered_questions(self, block: b.AnsweredQuestions) -> list[str]:
        lines = []
        for step in block.items:
            lines += [_strong(f"{step.number}. {step.question} {step.answer}"), "", _line(step.reason)]
            lines += [*_items(step.evidence), ""]
        return lines[:-1]

    def conclusion(self, block: b.Conclusion) -> list[str]:
        if not block.text:
            return _items(block.sentences)
        return "\n\n".join([_strong(f"→ {block.text}"), *map(_line, block.sentences)]).split("\n")

    def headline(self, block: b.Headline) -> list[str]:
        return [f"**{block.text}**", "", f"**{block.number}** {block.words}"]

    def facts(self, block: b.Facts) -> list[str]:
        lines = []
        for heading, facts in block.groups:
            lines += [self._title(heading), ""] if heading else []
            lines += [*(f"- {_strong(f'{name}:')} {_plain(words)}" for name, words in facts), ""]
        return lines[:-1]

    def picture(self, block: b.Picture) -> list[str]:
        if block.file:
            return [f"![{_plain(block.caption)}]({block.file})", "", _line(block.caption)]
        return [f"    {line}" for line in block.lines]

    def folded(self, block: b.Folded) -> list[str]:
        return [line for each in block.blocks for line in (*self.block(each), "")][:-1]

    def checks(self, block: b.Checks) -> list[str]:
        rows = [
            [_MARKS[check.passed], _code(check.rule), _plain(check.place), _plain(check.outcome)]
            for check in block.items
        ]
        return _table(["", "rule", "model", "outcome"], rows)

    def signature(self, block: b.Signature) -> list[str]:
        return [_code(block.text)]


def _plain(text: str) -> str:
    """Text as Markdown has it."""
    parts = _OURS.split(text)
    parts[::2] = (_ACTIVE.sub(r"\\\g<0>", part) for part in parts[::2])
    return "".join(parts)


def _line(text: str) -> str:
    """Text that begins a line."""
    return _FIRST.sub(lambda start: f"{start[0]}\\", _plain(text))


def _items(lines: Iterable[str]) -> list[str]:
    return [f"- {_line(line)}" for line in lines]


def _strong(text: str) -> str:
    return f"**{_plain(text)}**" if text else ""


def _code(text: str) -> str:
    """Text as code, between more backticks than it holds in a row."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    gap = " " if "`" in text else ""
    return f"{fence}{gap}{text}{gap}{fence}"


def _cell(cell: b.Cell) -> str:
    return f"{_plain(cell.text)} ({_code(cell.code)})" if cell.code else _plain(cell.text)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
