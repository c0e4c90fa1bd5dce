"""Text for the terminal, laid out for its width."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from decal_cli.errors import inert
from decal_cli.render.format import BlockFormat

if TYPE_CHECKING:
    from decal_cli.render import blocks as b
    from decal_cli.render.format import Page

BAR = 40
"""Columns of the longest bar, where there is room."""
PROSE = 100
"""Columns of running text at most: longer lines are hard to read."""
_ASCII = str.maketrans(
    {"█": "#", "▉": "#", "─": "-", "–": "-", "−": "-", "→": "->", "↓": "v", "↑": "^", "…": "..", "±": "+/-", "│": "|"}
    | dict(zip("▁▂▃▄▅▆▇", "__..--=", strict=True))
    | {"≥": ">=", "≤": "<=", "×": "x", "·": ".", "\xa0": " "}
)
"""What stands for our signs on a page that takes ASCII only; names of others are escaped by the stream."""
_MARKS = {True: ("PASS", "green"), False: ("FAIL", "bold red"), None: ("????", "bold yellow")}


class Text(BlockFormat[None]):
    """Text for the terminal, laid out for its width."""

    name = "table"
    suffix = ".txt"

    def __init__(self, page: Page) -> None:
        import io

        from rich.console import Console

        super().__init__(page)
        self._prose = min(page.width, PROSE)
        # It writes into memory. Rich would show the text in a notebook itself, and hand on none.
        self.console = Console(
            file=io.StringIO(),
            width=page.width,
            force_terminal=page.color,
            no_color=not page.color,
            color_system="auto" if page.color else None,
            highlight=False,
            legacy_windows=False,
            force_jupyter=False,
        )

    def write(self, result: Any) -> str:
        return self.written(result.blocks())

    def written(self, blocks: Iterable[b.Block]) -> str:
        """These blocks, without spaces at the ends of lines; a break may have put what CI systems act on before one."""
        for number, block in enumerate(blocks):
            if number and not block.close:
                self.console.print()
            self.block(block)
        text = self.console.file.getvalue()  # type: ignore[attr-defined]
        text = text.translate(_ASCII) if self.page.ascii else text
        return "\n".join(inert(line.rstrip()) for line in text.splitlines()) + "\n"

    def _line(
        self, *parts: str | tuple[str, str], indent: int = 0, whole: bool = False, width: int | None = None
    ) -> None:
        """A line of text with its styles; broken at the width of the page or this one, unless it is to stay whole."""
        from rich.padding import Padding
        from rich.text import Text as RichText

        text = RichText.assemble(*parts)
        self.console.print(Padding(text, (0, 0, 0, indent)) if indent else text, soft_wrap=whole, width=width)

    def heading(self, block: b.Heading) -> None:
        from rich.rule import Rule
        from rich.text import Text as RichText

        self.console.print(Rule(RichText(block.text, style="bold"), align="left", style="dim", characters="─"))

    def paragraph(self, block: b.Paragraph) -> None:
        self._line((block.strong, "bold"), " " if block.strong and block.text else "", block.text, width=PROSE)

    def points(self, block: b.Points) -> None:
        for name, text in block.items:
            self._line((f"{name}: ", "bold"), text)

    def notes(self, block: b.Notes) -> None:
        for line in block.lines:
            self._line((line, "dim" if block.quiet else ""), whole=block.copy)

    def text_table(self, block: b.TextTable) -> None:
        from decal_cli.render.layout import banks, side_by_side, width_of

        if block.title:
            self._line((block.title, "bold"))
        if block.caption:
            self._line((block.caption, "dim"))
        if block.beside:
            for line in side_by_side(block, self.page.width):
                self._line(line, whole=True)
            return
        for number, table in enumerate(banks(block, self.page.width)):
            if number:
                self.console.print()
            # Wider than the page rather than cut off: names and intervals are there to be read.
            self.console.width = max(self.page.width, width_of(table))
            self.console.print(table)
            self.console.width = self.page.width

    def bars(self, block: b.Bars) -> None:
        wide, digits = (
            max(map(len, texts)) for texts in zip(*((bar.name, bar.text) for bar in block.items), strict=True)
        )
        low = max(0.0, *(-bar.share for bar in block.items))
        room = min(BAR, self.page.width - wide - digits - 8)
        scale = room / (1 + low)
        left = round(scale * low)
        self._line(block.title)
        for bar in block.items:
            size = round(scale * abs(bar.share))
            drawn = f"{'█' * size:>{left}}│" if bar.share < 0 else f"{' ' * left}│{'█' * size}"
            self._line(f"   {bar.name:<{wide}}  {bar.text:>{digits}}  {drawn if left else '█' * size}")

    def answered_questions(self, block: b.AnsweredQuestions) -> None:
        for step in block.items:
            self._line((f"{step.number}. {step.question}  {step.answer}", "bold"))
            self._line(step.reason, indent=3, width=self._prose)
            for text in step.evidence:
                self._line((text, "dim"), indent=5)

    def conclusion(self, block: b.Conclusion) -> None:
        if block.text:
            from rich.table import Table

            # Later lines begin where the first word does.
            grid = Table.grid()
            grid.add_column(no_wrap=True)
            grid.add_column()
            grid.add_row("→ ", block.text)
            self.console.print(grid, style="bold", width=self._prose)
        for sentence in block.sentences:
            self._line(sentence, indent=2, width=self._prose)

    def headline(self, block: b.Headline) -> None:
        self._line((block.text, "bold"))
        self._line((block.number, "bold"), f" {block.words}", indent=2)

    def facts(self, block: b.Facts) -> None:
        import textwrap

        wide = max(len(name) for _, facts in block.groups for name, _ in facts) + 2
        for number, (heading, facts) in enumerate(block.groups):
            if number:
                self.console.print()
            if heading:
                self._line(heading)
            indent = "  " if heading else ""
            for name, words in facts:
                first = f"{indent}{name:<{wide}}"
                lines = textwrap.fill(words, self._prose, initial_indent=first, subsequent_indent=" " * len(first))
                self._line(lines or first, whole=True)

    def picture(self, block: b.Picture) -> None:
        for line in block.lines:
            self._line(line, whole=True)

    def folded(self, block: b.Folded) -> None:
        self._line(block.summary)
        for each in block.blocks:
            self.block(each)

    def checks(self, block: b.Checks) -> None:
        for check in block.items:
            where = f" [{check.place}]" if block.places and check.place else ""
            self._line(_MARKS[check.passed], f" {check.rule}{where}  {check.outcome}", whole=True)

    def signature(self, block: b.Signature) -> None:
        line = ""
        for part in re.findall(r"[^|]*\|?", block.text):
            if line and len(line + part) > self.page.width:
                self._line((line, "dim"), whole=True)
                line = ""
            line += part
        self._line((line, "dim"), whole=True)
