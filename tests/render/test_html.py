"""The HTML page: whole in itself, safe against hostile names, and opened in a real browser."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from decal_cli.metrics import METRICS
from tests.helpers.command import FIXTURES, Decal

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
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
VOID = {"meta", "img", "br"}


class Tags(HTMLParser):
    """Counts tags and checks that they nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen[tag] = self.seen.get(tag, 0) + 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from decal_cli.commands.app import run

    target = tmp_path_factory.mktemp("report") / "report.html"
    arguments = ["report", str(FIXTURES / "binary_n2000.csv"), "-s", "p", "-y", "y", "--features", "x*", "-t", "0.3"]
    assert run([*arguments, "-o", str(target)]) == 0
    return target


def test_the_page_is_whole_in_itself(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert "script" not in tags.seen and "link" not in tags.seen
    assert not re.search(r"(src|href)=['\"](?!data:)", text)
    assert tags.seen["img"] == 4
    assert tags.seen["details"] == len(METRICS) + 1  # each metric's explanation, and how the advice was concluded
    for words in (
        "Post-train on the features with blend",
        "Expected utility per 1,000 decisions",
        "decal:0.1",
        "Perez-Lebel et al. 2025, Decision from Suboptimal Classifiers",
    ):
        assert words in text


def test_names_of_columns_are_escaped(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text('"<script>alert(1)</script>",y\n' + "0.2,0\n0.8,1\n0.4,1\n0.6,0\n" * 10)
    done = decal("report", "odd.csv", "--score", "<script>*", "-y", "y", "-o", "odd.html")
    assert (done.code, done.out) == (0, "")
    text = (tmp_path / "odd.html").read_text()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "No decision was named" in text


def test_the_page_needs_a_file(decal: Decal) -> None:
    done = decal("report", FIXTURES / "binary_n2000.csv", "-s", "p", "-y", "y")
    assert done.code == 2
    assert "-o report.html" in done.err


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_a_browser_shows_it(page: Path, tmp_path: Path) -> None:
    def browse(*arguments: str) -> str:
        command = [str(BROWSER), *QUIET, f"--user-data-dir={tmp_path / 'profile'}", *arguments, page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    page_text = browse("--dump-dom")
    assert page_text.count("<summary>") == len(METRICS) + 1
    picture = tmp_path / "page.png"
    browse("--window-size=1200,2400", f"--screenshot={picture}")
    assert picture.stat().st_size > 50_000  # a blank page of this size is a tenth of it
