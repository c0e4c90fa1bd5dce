"""HTML: one page without network, readable on screen and on paper; a script of its own only moves its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decal_cli.errors import printable
from decal_cli.render.format import BlockFormat

if TYPE_CHECKING:
    from decal_cli.render import blocks as b

_SCRIPT, _SHEET = map(Path(__file__).with_name, ("page.js", "page.css"))
_STYLE = "\n" + _SHEET.read_text(encoding="utf-8")
MAX_BESIDE = 3
"""Columns that a phone shows beside each other; of more, each row is a list there."""
_MARKS = {True: "pass", False: "fail", None: "cannot judge"}


class Html(BlockFormat[str]):
    """HTML: one page without network, readable on screen and on paper."""

    name = "html"
    suffix = ".html"

    moves = False
    """Whether something on the page moves, so that it needs its script."""

    def write(self, result: Any) -> str:
        title = escape(printable(result.title))
        view = "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        shown = self._body(result)
        script = _SCRIPT.read_text(encoding="utf-8") if self.moves else ""
        head = f"<meta charset='utf-8'>{_policy(script)}{view}<title>{title}</title>"
        run = f"<script>{script}</script>" if script else ""
        body = f"<body><main>\n<h1>{title}</h1>\n{shown}\n</main>{run}</body>"
        return f"<!DOCTYPE html>\n<html lang='en'>\n<head>{head}<style>{_STYLE}</style></head>\n{body}\n</html>\n"

    def embedded(self, result: Any) -> str:
        """The result as HTML to stand within another page, such as a notebook."""
        style = _STYLE.replace(":root {", "& {").replace("body {", "& {")
        return f"<div class='decal'><style>.decal {{ {style} }}</style>\n{self._body(result)}\n</div>"

    def _body(self, result: Any) -> str:
        return "\n".join(map(self.block, result.blocks()))

    def heading(self, block: b.Heading) -> str:
        return f"<h{block.level + 1}>{escape(block.text)}</h{block.level + 1}>"

    def paragraph(self, block: b.Paragraph) -> str:
        strong = f"<b>{escape(block.strong)}</b> " if block.strong else ""
        return f"<p>{strong}{_prose(block.text)}</p>"

    def points(self, block: b.Points) -> str:
        return "\n".join(f"<p><b>{escape(name)}:</b> {_prose(text)}</p>" for name, text in block.items)

    def notes(self, block: b.Notes) -> str:
        return _paragraphs(block.lines, soft=block.quiet)

    def text_table(self, block: b.TextTable) -> str:
        names = [escape(column.name) for column in block.columns]
        kinds = [f"{'words' if column.words and k > 0 else ''}{' wraps' if column.wraps else ''}".strip()
                 for k, column in enumerate(block.columns)]  # fmt: skip
        kinds = [f" class='{kind}'" if kind else "" for kind in kinds]
        # One without a text heads nothing.
        heads = (
            f"<th scope='col'{kind}>{name}</th>" if name else "<td></td>"
            for kind, name in zip(kinds, names, strict=True)
        )
        rows = [f"<thead><tr>{''.join(heads)}</tr></thead>"]
        stacks = len(kinds) > MAX_BESIDE and not any(cell.details for row in block.rows for cell in row.cells)
        if stacks:
            kinds[1:] = [f"{kind} data-head='{name}'" for kind, name in zip(kinds[1:], names[1:], strict=True)]
        for section, of_section in groupby(block.rows, lambda row: row.section):
            rows.append("<tbody>")
            if section:
                wide = f"scope='rowgroup' colspan='{len(block.columns)}'"
                rows.append(f"<tr class='family'><th {wide}>{escape(section)}</th></tr>")
            rows += [self._row(row, kinds) for row in of_section]
            rows.append("</tbody>")
        above = f"<p class='soft'>{escape(block.caption)}</p>\n" if block.caption else ""
        title = f"<caption>{escape(block.title)}</caption>" if block.title else ""
        # Who has no mouse scrolls a wide table with the keyboard, once it can have the focus.
        named = escape(block.title or f"Table of {block.columns[0].name or 'results'}")
        box = f"<div class='wide' tabindex='0' role='group' aria-label='{named}'>"
        return f"{above}{box}<table{' class=stacks' if stacks else ''}>{title}{''.join(rows)}</table></div>"

    def _row(self, row: b.Row, kinds: Sequence[str]) -> str:
        cells = "".join(f"<td{kind}>{self._cell(cell)}</td>" for kind, cell in zip(kinds, row.cells, strict=True))
        known = f" data-way='{escape(row.key)}'" if row.key else ""
        return f"<tr{known}{' class=chosen' if row.chosen else ''}>{cells}</tr>"

    def _cell(self, cell: b.Cell) -> str:
        first, rest = escape(cell.parts[0]) if cell.parts else "", " ".join(cell.parts[1:])
        if cell.reason:
            return f"<span title='{escape(cell.reason)}'>{first}</span>"
        text = f"{first} <code>{escape(cell.code)}</code>" if cell.code else first
        text += f"<span class='ends'>{escape(rest)}</span>" if rest else ""
        if cell.details is None:
            return text
        return f"<details><summary>{text}</summary>{''.join(map(self.block, cell.details()))}</details>"

    def movable(self, block: b.Movable) -> str:
        """The table, and above it sliders, which stay hidden until the script of the page runs."""
        import json

        data, self.moves = block.data, True
        # No name in it ends the element that holds it.
        held = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
        places = data["places"]
        names = "".join(f"<option value='{k}'>{escape(name)}</option>" for k, name in enumerate(block.names))
        hidden = " hidden" if len(block.names) < 2 else ""
        sliders = (
            ("threshold", "t", "Threshold t*", f"min='0' max='{len(data['at']) - 1}' value='{data['own']}'"),
            ("places", "room", "Act on at most", f"min='0' max='{places}' value='{round(places * data['room'])}'"),
            ("ones", "share", "Rows with label 1", f"min='1' max='{places - 1}'"),
        )
        controls = "".join(
            f"<p><label>{label} <input type='range' name='{name}' {ends}></label> <output name='{said}'></output></p>"
            for name, said, label, ends in sliders
        )
        apart = data["room"] < 1 and not all(report["limited"] for report in data["reports"])
        still = "<noscript><p>Worths of groups are without your capacity.</p></noscript>" if apart else ""
        return (
            f"<section class='movable'>{still}{self.text_table(block.table)}<div class='controls' hidden>"
            f"<p{hidden}><label>Model and group <select name='report'>{names}</select></label></p>{controls}"
            "<p><button type='button' name='back'>Back to your decision</button></p>"
            f"<p class='action'><output name='advice'></output></p></div>"
            f"<script type='application/json'>{held}</script></section>"
        )

    def bars(self, block: b.Bars) -> str:
        rows = []
        for bar in block.items:
            # Its width is an attribute, since the policy of the page allows no style but the one at its head.
            length = f"<span class='track'><svg class='bar' width='{100 * bar.share:.1f}%'></svg></span>"
            rows.append(f"<span>{escape(bar.name)}</span><span class='value'>{escape(bar.text)}</span>{length}")
        return f"<p>{escape(block.title)}</p><div class='bars'>{''.join(rows)}</div>"

    def answered_questions(self, block: b.AnsweredQuestions) -> str:
        items = []
        for step in block.items:
            evidence = "".join(f"<li>{escape(text)}</li>" for text in step.evidence)
            asked = f"<b>{escape(step.question)} {escape(step.answer)}.</b>"
            items.append(f"<li value='{step.number}'>{asked} {_prose(step.reason)}<ul>{evidence}</ul></li>")
        return f"<ol>{''.join(items)}</ol>"

    def conclusion(self, block: b.Conclusion) -> str:
        action = f"<p class='action'>{escape(block.text)}</p>\n" if block.text else ""
        return action + _paragraphs(block.sentences)

    def headline(self, block: b.Headline) -> str:
        number = f"<p><span class='number'>{escape(block.number)}</span>{escape(block.words)}</p>"
        return f"<div class='headline'><p class='action'>{escape(block.text)}</p>{number}</div>"

    def facts(self, block: b.Facts) -> str:
        parts = []
        for heading, facts in block.groups:
            listed = "".join(f"<dt>{escape(name)}</dt><dd>{_prose(words)}</dd>" for name, words in facts)
            parts.append((f"<h3>{escape(heading)}</h3>" if heading else "") + f"<dl>{listed}</dl>")
        return "".join(parts)

    def picture(self, block: b.Picture) -> str:
        if not block.svg:
            return f"<pre>{escape(chr(10).join(block.lines))}</pre>"
        import base64

        source = base64.b64encode(block.svg).decode("ascii")
        title = f"<b>{escape(block.title)}.</b> " if block.title else ""
        said = escape(block.finding or block.title or block.caption)
        image = f"<span class='frame'><img alt='{said}' src='data:image/svg+xml;base64,{source}'></span>"
        frame = f" data-frame='{block.kind} {' '.join(f'{end:.6g}' for end in block.frame)}'" if block.frame else ""
        return f"<figure{frame}>{image}<figcaption>{title}{escape(block.caption)}</figcaption></figure>"

    def folded(self, block: b.Folded) -> str:
        inside = "".join(map(self.block, block.blocks))
        return f"<details><summary>{escape(block.summary)}</summary>{inside}</details>"

    def checks(self, block: b.Checks) -> str:
        from decal_cli.render import blocks as b

        columns = [b.Column(name, words=True) for name in ("", "rule", "model", "outcome")]
        rows = ((_MARKS[check.passed], check.rule, check.place, check.outcome) for check in block.items)
        return self.text_table(b.TextTable(columns, [b.Row(tuple(b.Cell((text,)) for text in row)) for row in rows]))

    def signature(self, block: b.Signature) -> str:
        return f"<p class='soft'>Signature: <code>{escape(block.text)}</code></p>"


def _policy(script: str) -> str:
    """What a browser may do with the page: show its own style and pictures, run its own script, and nothing else."""
    import base64
    import hashlib

    def hashed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"

    runs = f"script-src {hashed(script)}; " if script else ""
    policy = f"default-src 'none'; img-src data:; {runs}style-src {hashed(_STYLE)}; base-uri 'none'; form-action 'none'"
    return f'<meta http-equiv="Content-Security-Policy" content="{policy}">'


def _paragraphs(lines: Iterable[str], soft: bool = False) -> str:
    start = "<p class='soft'>" if soft else "<p>"
    return "\n".join(f"{start}{_prose(line)}</p>" for line in lines)


def _prose(text: str) -> str:
    """Running text, what stands between backticks as code."""
    import re

    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def escape(text: str) -> str:
    """Text as HTML has it."""
    # Loaded late, as it brings the names of all characters with it.
    from html import escape

    return escape(text)
