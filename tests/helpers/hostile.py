"""Hostile names, and what must hold of everything that is written with such a name in it."""

import csv
import io
import json
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from markdown_it import MarkdownIt

from decal_cli.render.formats import html
from decal_cli.render.results.card import SECTIONS
from tests.helpers.command import valid_json

# fmt: off
PAYLOADS = (
    *("\x1b[31mred", "\x1b]0;title\x07", "\x1b[2J\x1b[H", "\x1bP1$r\x1b\\", "\x9b31mred", "\x9d0;t\x9c", "\x85next"),
    *("a\nb", "a\r\nb", "a\rb", "a\tb", "\x00nul", "\x07bell", "\x08\x08back", "\x0bvt", "\x0cff", "\x7fdel"),
    *("\u2028line", "\u2029para", "\u202egnp.exe", "\u2066iso\u2069", "\u200emark", "\u061calm", "\ufeffbom"),
    *("\ufffe", "\uffff", "\U0001fffe", "\ud800", "a\udcff", "\udfff\ud800", "\ue000", "\u00ad", "\u200b"),
    *("x[/nope]", "p[v1]", "[bold red]b", "[link=http://e.example]l", ":smile:", "$25_to_$50", "$$\\frac{"),
    *("a|b", "`code`", "```", "**bold**", "_em_", "__all__", "[l](http://e.example)", "![i](http://e.example/i)"),
    *("[r]: http://e.example", "<http://e.example>", "# title", "> quote", "- item", "1. one", "~~gone~~"),
    *("a\\|b", "<!-- c -->", "&lt;b&gt;", "\\x1b[31m", "\\u202e", "\\", "a\\", "\\n", "it's", '"double"'),
    *("=1+1", "@SUM(A1)", "+1", "-1", '=HYPERLINK("http://e.example")', "＝1", " =1+1", "'quote", 'a"b,c', "a b"),
    *("::error::x", "\n::error file=a::x", "::stop-commands::t", "##[error]x", "##vso[task.complete result=Failed;]x"),
    *("</script><script>x()</script>", "<img src=x onerror=x()>", "' onload='x", "]]>", "<?xml?>", "</title>"),
    *("missing", "", " ", "  padded  ", "a" * 300, "é" * 2000, "👩\u200d👧", "中文", "עברית", "e\u0301" * 40, "%0Ax"),
    *("../up", "a/b", "*", "p*", "?", "-", "--help", "-f", "@group=a", "a,b", "a;b", "a=b", "brier<=1", "{0}", "%s"),
    *("$(touch x)", "`touch x`", "; touch x", "NaN", "None", "true", "null", "0", "y"),
)
# fmt: on
_ACTIVE_TAGS = {
    *("script", "iframe", "frame", "object", "embed", "applet", "link", "base", "form", "input", "button", "textarea"),
    *("a", "area", "svg", "math", "template", "video", "audio", "source", "track", "portal", "marquee", "noscript"),
}
"""What no page of ours holds, but for its own pictures and sliders."""


def acted_on(line: str) -> bool:
    """Whether a CI system takes the line for a command, wherever in it."""
    return line.lstrip().startswith("::") or any(mark in line for mark in ("##[", "##vso[", "##teamcity["))


def check_text(text: str, form: str) -> None:
    """Nothing in it acts on anything, in the ways that are peculiar to its format too."""
    for line in text.split("\n"):
        assert line.isprintable(), repr(line)
        assert form == "github" or not acted_on(line), repr(line)
    {"json": _json, "csv": _csv, "html": _html, "markdown": _markdown, "junit": _junit, "github": _github}.get(
        form, lambda text: None
    )(text)


def _json(text: str) -> None:
    valid_json(text)


def _csv(text: str) -> None:
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert all(len(row) == len(head) for row in rows), text
    for cell in (cell for row in rows for cell in row):
        assert not cell.lstrip().startswith(("=", "+", "@", "＝")) and not (cell[:1] == "-" and not _number(cell)), cell


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_RANGE = {"type", "name", "min", "max", "value"}
_SCRIPT = (Path(html.__file__).parent / "page.js").read_text(encoding="utf-8")


def _is_own(tag: str, attrs: dict[str, str | None]) -> bool:
    """Whether it is one of the pictures and sliders of a page, which hold nothing of the user's."""
    if tag == "input":
        return attrs["type"] == "range" and attrs.keys() <= _RANGE
    return (tag, attrs) in (
        *(("script", {}), ("script", {"type": "application/json"}), ("noscript", {})),
        ("button", {"type": "button", "name": "back"}),
    ) or (tag == "svg" and attrs.keys() <= {"class", "width"})


class _Page(HTMLParser):
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in _ACTIVE_TAGS or _is_own(tag, dict(attrs)), tag
        for name, value in attrs:
            assert not name.startswith("on") and name not in ("href", "srcset", "srcdoc"), name
            assert name != "src" or (value or "").startswith("data:image/svg+xml;base64,"), value

    def handle_data(self, data: str) -> None:
        assert self.cdata_elem != "script" or data == _SCRIPT or json.loads(data)


def _html(text: str) -> None:
    assert text.startswith("<!DOCTYPE html>")
    _Page().feed(text)


def _markdown(text: str) -> None:
    """Only our own lists, tables, emphasis and code: no link, picture, heading or HTML."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    kinds = {each.type for token in tokens for each in (token, *(token.children or ()))}
    refused = {"html_block", "html_inline", "link_open", "s_open", "em_open", "blockquote_open", "fence", "hr"}
    assert not kinds & refused, (kinds & refused, text)
    own = {"Do the estimates predict the gains?", "What was dropped"}
    pictures = [each for token in tokens for each in token.children or () if each.type == "image"]
    assert all(str(each.attrs["src"]).endswith(".png") and "/" not in str(each.attrs["src"]) for each in pictures)
    if text.startswith("# Model card: "):
        headings = [tokens[k + 1].content for k, each in enumerate(tokens) if each.type == "heading_open"]
        assert headings[1:] == [*SECTIONS, "Software and signature"]
    elif not text.startswith("# Do the"):
        assert "heading_open" not in kinds, (own, text)


def _junit(text: str) -> None:
    ElementTree.fromstring(text)


def _github(text: str) -> None:
    lines = text.removesuffix("\n").split("\n")
    begins = ("::error title=decal gate ", "::notice title=decal gate ", "::notice title=decal gate::")
    assert all(line.startswith(begins) for line in lines), text
