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

_STYLE = """
:root { color-scheme: light dark; --page: #fff; --text: #1a1a1a; --soft: #5c5c5c; --line: #d5d5d5; --tint: #f3f5f9;
  --bar: #3f66a0; --link: #1b3a6b; --mark: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --page: #14161a; --text: #e8e8e8; --soft: #a9adb5; --line: #3a3e46;
  --tint: #1e222a; --bar: #7fa6e0; --link: #a9c7f5; --mark: #ff9a90; } img { filter: invert(.92) hue-rotate(180deg); } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); margin: 0; }
main { max-width: 68rem; margin: 0 auto; padding: 1.2rem 1.2rem 3rem; overflow-wrap: break-word; }
h1 { font-size: 1.2rem; font-weight: 600; color: var(--soft); margin: .2rem 0 1rem; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .6rem; border-bottom: 1px solid var(--line); } h3 { margin: 1.2rem 0 .3rem; }
p, li, dd, summary, figcaption { max-width: 46rem; } code { font-size: .87em; overflow-wrap: anywhere; }
.soft { color: var(--soft); font-size: .9rem; }
.headline { background: var(--tint); border-left: .35rem solid var(--bar); padding: .9rem 1.1rem; margin: 1rem 0; }
.headline p { margin: 0; } .headline .action { font-size: 1.45rem; font-weight: 650; line-height: 1.3; }
.number { font-size: 2.3rem; font-weight: 700; margin-right: .5rem; white-space: nowrap; }
.action { font-size: 1.15rem; font-weight: 600; margin: .2rem 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
caption { text-align: left; font-weight: 600; font-size: 1rem; padding: .5rem 0 .2rem; }
th, td { padding: .3rem .7rem; text-align: right; vertical-align: top; border-bottom: 1px solid var(--line); }
td { white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: min(15rem, 45vw); max-width: 34rem; }
tr.family th { text-align: left; color: var(--soft); padding-top: 1rem; font-weight: normal; }
tr.chosen td { font-weight: 600; } td.words, th.words { text-align: left; }
.ends { display: block; color: var(--soft); font-size: .85rem; }
details { margin: .3rem 0; } details summary { cursor: pointer; }
details p, details li, details dl { font-size: .9rem; white-space: normal; text-align: left; }
dl { margin: .4rem 0; } dt { font-weight: 600; } dd { margin: 0 0 .5rem 1.2rem; }
.bars { display: grid; grid-template-columns: max-content max-content minmax(3rem, 26rem); gap: .15rem .8rem; }
.bars .value { text-align: right; } .bar { display: block; height: .8rem; margin-top: .35rem; background: var(--bar); }
figure { display: inline-block; vertical-align: top; width: min(100%, 31rem); margin: .6rem 1.4rem .8rem 0; }
figcaption { color: var(--soft); font-size: .9rem; } img { width: 100%; height: auto; }
.frame { position: relative; display: block; } .dot { position: absolute; width: .8rem; height: .8rem;
  margin: -.4rem; border: 2px solid var(--page); border-radius: 50%; background: var(--mark); }
[hidden] { display: none !important; } .controls { background: var(--tint); padding: .6rem 1rem; margin: .6rem 0; }
.movable table { width: 100%; } th { white-space: normal; vertical-align: bottom; } td.wraps { white-space: normal; }
.controls p { margin: .3rem 0; max-width: none; } .controls label { display: inline-grid; align-items: center;
  grid-template-columns: 9rem auto; }
.controls input { width: min(20rem, 50vw); height: 1.6rem; accent-color: var(--bar); }
.controls button, .controls select { font: inherit; padding: .2rem .6rem; min-height: 1.8rem; max-width: 60vw; }
pre { overflow-x: auto; } ol > li { margin-bottom: .5rem; }
@media (min-width: 58rem) { figure:has(+ figure), figure + figure { max-width: calc(50% - 1.6rem); } }
/* A picture alone in its row has its words beside it. */
@media (min-width: 60rem) { .movable td:first-child { min-width: 17rem; }
  figure:not(figure + figure):not(:has(+ figure)) { display: grid; width: auto; align-items: center; gap: 1.6rem;
    grid-template-columns: 31rem 1fr; } }
@media (max-width: 34rem) { .bars { grid-template-columns: 1fr max-content; } .bars .track { grid-column: 1 / -1; }
  th, td { padding: .3rem .4rem; } main { padding: .8rem; } .controls label { display: block; }
  .controls input, .controls select { display: block; width: 100%; max-width: 100%; margin: 0; }
  .stacks thead { display: none; }
  .stacks, .stacks tbody, .stacks tr, .stacks td, .stacks caption { display: block; max-width: none; }
  .stacks td { border: 0; padding: .1rem 0; white-space: normal; text-align: right; }
  .stacks td[data-head]::before { content: attr(data-head); float: left; color: var(--soft); margin-right: 1rem; }
  .stacks td:first-child { font-weight: 600; text-align: left; } .stacks tr { padding: .5rem 0; }
  .stacks td::after { content: ""; display: block; clear: both; } .stacks tr { border-bottom: 1px solid var(--line); } }
@media print { html { font-size: 12px; } main { max-width: none; padding: 0; } h2, h3, summary { break-after: avoid; }
  body { font-size: 1rem; } figure { width: 48%; margin-right: 1%; } h2 { margin-top: 1.4rem; }
  figure, tr, .headline { break-inside: avoid; } .wide { overflow: visible; } td { white-space: normal; }
  figure:not(figure + figure):not(:has(+ figure)) { display: grid; grid-template-columns: 1fr 1fr; width: auto;
    align-items: center; gap: 1.6rem; }
  main > details, .controls { display: none; } td details::marker, td summary { list-style: none; } }
"""
_SCRIPT = Path(__file__).with_name("page.js")
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
        """The same within another page, such as a notebook."""
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
        kinds = [f"{'words' * (column.words and k > 0)}{' wraps' * column.wraps}".strip()
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
