"""The tags of a page; and what it looks like in headless Chromium, measured by a script that only the test adds."""

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_a_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
AXE = Path(__file__).parents[2] / ".ci" / "node_modules" / "axe-core" / "axe.min.js"
"""Checks of WCAG, where `.ci/run` could fetch them."""
DARK = "--blink-settings=preferredColorScheme=0"
MEASURE = """
<script>
function light(c) { return c / 255 <= .03928 ? c / 255 / 12.92 : ((c / 255 + .055) / 1.055) ** 2.4; }
function parts(c) { return c.match(/[\\d.]+/g).map(Number); }
function bright(c) { const [r, g, b] = parts(c).map(light); return .2126 * r + .7152 * g + .0722 * b; }
function behind(e) {
  for (; e; e = e.parentElement) {
    const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return getComputedStyle(e).backgroundColor;
  }
  return 'rgb(255,255,255)';
}
addEventListener('load', () => {
  document.querySelectorAll('details').forEach(e => { e.open = true; });
  const wide = innerWidth, found = {overflow: [], clipped: [], bars: [], contrast: [], pictures: [], order: []};
  const named = e => e.tagName + ' ' + (e.textContent || '').slice(0, 40);
  if (document.documentElement.scrollWidth > wide) found.overflow.push('page ' + document.documentElement.scrollWidth);
  document.querySelectorAll('body *').forEach(e => {
    const box = e.getBoundingClientRect();
    if (!e.closest('.wide, pre') && box.width && box.right > wide + 1) found.overflow.push(named(e));
    if (e.matches('p, li, td, th, dd, dt, figcaption, summary, h1, h2, h3') && e.scrollWidth > e.clientWidth + 1
        && getComputedStyle(e).display !== 'inline') found.clipped.push(named(e));
  });
  document.querySelectorAll('.bar').forEach(e => {
    const bar = e.getBoundingClientRect(), box = e.parentElement.getBoundingClientRect();
    if (bar.left < box.left - 1 || bar.right > box.right + 1 || !bar.height) found.bars.push(named(e));
  });
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || e.tagName === 'SCRIPT') continue;
    const [a, b] = [bright(getComputedStyle(e).color), bright(behind(e))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) found.contrast.push(named(e));
  }
  document.querySelectorAll('img').forEach(e => {
    if (!e.naturalWidth || !e.alt || !e.closest('figure').querySelector('figcaption')) found.pictures.push(e.alt);
  });
  let last = 0;
  document.querySelectorAll('h1, h2, h3').forEach(e => {
    const level = Number(e.tagName[1]);
    if (level > last + 1) found.order.push(named(e));
    last = level;
  });
  document.title = 'MEASURED' + JSON.stringify(found);
  parent.document.body.setAttribute('data-found', JSON.stringify(found));
});
</script>
"""


def browse(page: Path, profile: Path, *arguments: str) -> str:
    """What Chromium prints of a page."""
    command = [str(BROWSER), *QUIET, f"--user-data-dir={profile}", *arguments, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def in_page(page: Path, folder: Path, script: str, *arguments: str) -> Any:
    """What a script returns (a value, or the promise of one) that runs in a page after the page's own.

    The page keeps its policy, which names this script besides its own.
    """
    whole = (
        f"(async () => {{ {script} }})().catch(error => ({{error: String(error)}})).then(found =>"
        " document.body.setAttribute('data-found', JSON.stringify(found)));"
    )
    digest = base64.b64encode(hashlib.sha256(whole.encode()).digest()).decode()
    text = page.read_text(encoding="utf-8").replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    within = folder / "scripted.html"
    within.write_text(text.replace("</body>", f"<script>{whole}</script></body>"), encoding="utf-8")
    shown = browse(within, folder / "profile", "--virtual-time-budget=60000", *arguments, "--dump-dom")
    return json.loads(html.unescape(re.search(r'<body[^>]* data-found="([^"]*)"', shown)[1]))  # type: ignore[index]


def defects(page: Path, folder: Path, width: int, dark: bool = False) -> dict[str, list[str]]:
    """What is wrong with the page at this width: by kind, the elements that show it.

    The page stands in a frame of that width, since a window of a browser cannot be as narrow as a phone.
    """
    # The policy of the page forbids scripts: that of the measurement is let in, all else stays as it is.
    allowed = page.read_text(encoding="utf-8").replace(
        "default-src 'none'", "default-src 'none'; script-src 'unsafe-inline'"
    )
    inside = html.escape(allowed.replace("</head>", MEASURE + "</head>"))
    frame = folder / "frame.html"
    style = f"border:0;width:{width}px;height:3000px"
    frame.write_text(f"<!DOCTYPE html><body style='margin:0'><iframe style='{style}' srcdoc=\"{inside}\"></iframe>")
    shown = browse(frame, folder / "profile", "--window-size=1500,3000", *([DARK] if dark else []), "--dump-dom")
    attribute = re.search(r'data-found="([^"]*)"', shown[:100_000] if "data-found" in shown[:100_000] else shown)
    assert attribute is not None, "the page was not measured"
    found: dict[str, Any] = json.loads(html.unescape(attribute.group(1)))
    return {kind: elements for kind, elements in found.items() if elements}


class Tags(HTMLParser):
    """Counts tags and checks that they nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen[tag] = self.seen.get(tag, 0) + 1
        if tag not in ("meta", "img", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
