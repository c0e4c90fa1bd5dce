"""HTML: one page without script or network, readable on screen and on paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from decal_cli.render.format import BlockFormat

if TYPE_CHECKING:
    from decal_cli.render import blocks as b

_STYLE = """
:root { color-scheme: light; --line: #d5d5d5; --soft: #666; --bar: #4a6fa5; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; margin: 2rem auto; max-width: 72rem; padding: 0 1.2rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.4rem; border-bottom: 1px solid var(--line); } h3 { margin-bottom: .3rem; }
code { font-size: .85em; overflow-wrap: anywhere; } .soft { color: var(--soft); font-size: .9rem; }
.action { font-size: 1.15rem; font-weight: 600; margin: .2rem 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .3rem .7rem; text-align: right; vertical-align: top; }
th, td { border-bottom: 1px solid #eee; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 15rem; max-width: 34rem; }
tr.family th { text-align: left; color: var(--soft); padding-top: 1rem; font-weight: normal; }
tr.chosen td { font-weight: 600; } td.words, th.words { text-align: left; }
.ends { display: block; color: var(--soft); font-size: .82rem; }
details summary { cursor: pointer; } details p, details li { font-size: .88rem; white-space: normal; text-align: left; }
.ladder td { border: 0; padding: .1rem .7rem; } .ladder td:last-child { width: 26rem; text-align: left; }
.bar { display: inline-block; height: .8rem; background: var(--bar); }
img { max-width: 100%; height: auto; } ol > li { margin-bottom: .5rem; }
@media print { body { margin: 0; } h2 { break-after: avoid; } img, table { break-inside: avoid; } }
"""
_MARKS = {True: "pass", False: "fail", None: "cannot judge"}


class Html(BlockFormat[str]):
    """A page of its own."""

    name = "html"
    suffix = ".html"

    def write(self, result: Any) -> str:
        title = escape(result.title)
        head = f"<meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>{title}</title>"
        body = "\n".join(["<body>", f"<h1>{title}</h1>", *map(self.block, result.blocks()), "</body>"])
        return f"<!DOCTYPE html>\n<html lang='en'>\n<head>{head}<style>{_STYLE}</style></head>\n{body}\n</html>\n"

    def source(self, block: b.Source) -> str:
        return _paragraphs(block.lines)

    def heading(self, block: b.Heading) -> str:
        return f"<h{block.level + 1}>{escape(block.text)}</h{block.level + 1}>"

    def paragraph(self, block: b.Paragraph) -> str:
        strong = f"<b>{escape(block.strong)}</b> " if block.strong else ""
        return f"<p>{strong}{escape(block.text)}</p>"

    def points(self, block: b.Points) -> str:
        return "\n".join(f"<p><b>{escape(name)}:</b> {escape(text)}</p>" for name, text in block.items)

    def notes(self, block: b.Notes) -> str:
        return _paragraphs(block.lines, soft=block.quiet)

    def table(self, block: b.Table) -> str:
        words = [" class='words'" if column.words and k else "" for k, column in enumerate(block.columns)]
        heads = zip(words, block.columns, strict=True)
        rows = [f"<tr>{''.join(f'<th{kind}>{escape(column.name)}</th>' for kind, column in heads)}</tr>"]
        section = ""
        for row in block.rows:
            if row.section != section:
                section = row.section
                rows.append(f"<tr class='family'><th colspan='{len(block.columns)}'>{escape(section)}</th></tr>")
            cells = "".join(f"<td{kind}>{self._cell(cell)}</td>" for kind, cell in zip(words, row.cells, strict=True))
            rows.append(f"<tr{' class=chosen' if row.chosen else ''}>{cells}</tr>")
        above = f"<h3>{escape(block.title)}</h3>\n" if block.title else ""
        above += f"<p class='soft'>{escape(block.caption)}</p>\n" if block.caption else ""
        return f"{above}<div class='wide'><table>{''.join(rows)}</table></div>"

    def _cell(self, cell: b.Cell) -> str:
        first, rest = escape(cell.parts[0]) if cell.parts else "", " ".join(cell.parts[1:])
        if cell.reason:
            return f"<span title='{escape(cell.reason)}'>{first}</span>"
        text = f"{first} <code>{escape(cell.code)}</code>" if cell.code else first
        text += f"<span class='ends'>{escape(rest)}</span>" if rest else ""
        if cell.details is None:
            return text
        return f"<details><summary>{text}</summary>{''.join(map(self.block, cell.details()))}</details>"

    def bars(self, block: b.Bars) -> str:
        rows = []
        for bar in block.items:
            length = f"<span class='bar' style='width:{100 * bar.share:.1f}%'></span>"
            rows.append(f"<tr><td>{escape(bar.name)}</td><td>{escape(bar.text)}</td><td>{length}</td></tr>")
        return f"<p>{escape(block.title)}</p><table class='ladder'>{''.join(rows)}</table>"

    def steps(self, block: b.Steps) -> str:
        items = []
        for step in block.items:
            evidence = "".join(f"<li>{escape(text)}</li>" for text in step.evidence)
            asked = f"<b>{escape(step.question)} {escape(step.answer)}.</b>"
            items.append(f"<li>{asked} {escape(step.reason)}<ul>{evidence}</ul></li>")
        return f"<ol>{''.join(items)}</ol>"

    def conclusion(self, block: b.Conclusion) -> str:
        action = f"<p class='action'>{escape(block.text)}</p>\n" if block.text else ""
        return action + _paragraphs(block.sentences)

    def facts(self, block: b.Facts) -> str:
        parts = []
        for heading, facts in block.groups:
            listed = "".join(f"<li>{escape(name)}: {escape(words)}</li>" for name, words in facts)
            parts.append((f"<h3>{escape(heading)}</h3>" if heading else "") + f"<ul>{listed}</ul>")
        return "".join(parts)

    def picture(self, block: b.Picture) -> str:
        caption = escape(block.caption)
        if block.svg:
            import base64

            source = base64.b64encode(block.svg).decode("ascii")
            return f"<h2>{caption}</h2>\n<img alt='{caption}' src='data:image/svg+xml;base64,{source}'>"
        return f"<pre>{escape(block.text)}</pre>"

    def folded(self, block: b.Folded) -> str:
        inside = "".join(map(self.block, block.blocks))
        return f"<details><summary>{escape(block.summary)}</summary>{inside}</details>"

    def checks(self, block: b.Checks) -> str:
        from decal_cli.render import blocks as b

        columns = tuple(b.Column(name, words=True) for name in ("", "rule", "model", "outcome"))
        rows = [(_MARKS[check.passed], check.rule, check.place, check.outcome) for check in block.items]
        return self.table(b.Table(columns, tuple(b.Row(tuple(b.Cell((text,)) for text in row)) for row in rows)))

    def signature(self, block: b.Signature) -> str:
        return f"<p class='soft'>Signature: <code>{escape(block.text)}</code></p>"


def _paragraphs(lines: Sequence[str], soft: bool = False) -> str:
    start = "<p class='soft'>" if soft else "<p>"
    return "\n".join(f"{start}{escape(line)}</p>" for line in lines)


def escape(text: str) -> str:
    """Text as HTML has it."""
    # Loaded late, as it brings the names of all characters with it.
    from html import escape

    return escape(text)
