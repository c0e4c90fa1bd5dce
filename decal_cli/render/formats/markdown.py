"""Markdown, for pull requests and wikis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from decal_cli.render.format import BlockFormat

if TYPE_CHECKING:
    from decal_cli.render import blocks as b

_MARKS = {True: "pass", False: "**fail**", None: "**cannot judge**"}


class Markdown(BlockFormat[list[str]]):
    """A fragment without headings that can be pasted anywhere; `document` is a page with headings."""

    name = "markdown"
    suffix = ".md"
    page_of_its_own = False

    def write(self, result: Any) -> str:
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
        return f"# {result.title}\n\n{self.write(result)}"

    def _title(self, text: str) -> str:
        return f"## {text}" if self.page_of_its_own else f"**{text}**"

    def source(self, block: b.Source) -> list[str]:
        return [f"- {line}" for line in block.lines]

    def heading(self, block: b.Heading) -> list[str]:
        return [self._title(": ".join(filter(None, (block.text, block.gist))))]

    def paragraph(self, block: b.Paragraph) -> list[str]:
        return [" ".join(filter(None, (f"**{block.strong}**" if block.strong else "", block.text)))]

    def points(self, block: b.Points) -> list[str]:
        return [f"- **{name}:** {text}" for name, text in block.items]

    def notes(self, block: b.Notes) -> list[str]:
        return [f"- {line}" for line in block.lines]

    def table(self, block: b.Table) -> list[str]:
        above = [self._title(block.title)] if block.title else []
        above += [block.caption] if block.caption else []
        rows = [[("→ " if row.chosen else "") + _cell(row.cells[0]), *map(_cell, row.cells[1:])] for row in block.rows]
        return [*(line for text in above for line in (text, "")), *_table([each.name for each in block.columns], rows)]

    def bars(self, block: b.Bars) -> list[str]:
        return _table([block.names, block.values], [[bar.name, bar.text] for bar in block.items])

    def steps(self, block: b.Steps) -> list[str]:
        lines = []
        for number, step in enumerate(block.items, 1):
            lines += [f"**{number}. {step.question}  {step.answer}**", "", step.reason]
            lines += [*(f"- {text}" for text in step.evidence), ""]
        return lines[:-1]

    def conclusion(self, block: b.Conclusion) -> list[str]:
        if not block.text:
            return [f"- {sentence}" for sentence in block.sentences]
        return "\n\n".join([f"**→ {block.text}**", *block.sentences]).split("\n")

    def headline(self, block: b.Headline) -> list[str]:
        return [f"**{block.text}**", "", f"**{block.number}** {block.words}"]

    def facts(self, block: b.Facts) -> list[str]:
        lines = []
        for heading, facts in block.groups:
            lines += [self._title(heading), ""] if heading else []
            lines += [*(f"- **{name}:** {words}" for name, words in facts), ""]
        return lines[:-1]

    def picture(self, block: b.Picture) -> list[str]:
        if block.file:
            return [f"![{block.caption}]({block.file})", "", block.caption]
        return ["```", *block.text.splitlines(), "```"]

    def folded(self, block: b.Folded) -> list[str]:
        return [line for each in block.blocks for line in (*self.block(each), "")][:-1]

    def checks(self, block: b.Checks) -> list[str]:
        rows = [[_MARKS[check.passed], f"`{check.rule}`", check.place, check.outcome] for check in block.items]
        return _table(["", "rule", "model", "outcome"], rows)

    def signature(self, block: b.Signature) -> list[str]:
        return [f"`{block.text}`"]


def _cell(cell: b.Cell) -> str:
    return f"{cell.text} (`{cell.code}`)" if cell.code else cell.text


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [_row(head), _row(["---"] * len(head))]
    return lines + [_row([cell.replace("|", "\\|") for cell in row]) for row in rows]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
