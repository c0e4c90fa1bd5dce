"""The HTML page: whole in itself, safe against hostile names, and opened in a real browser."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

from decal_cli.metrics import METRICS
from tests.helpers.browser import Tags, defects, in_a_browser
from tests.helpers.command import Decal, blank_pictures, few_rows, run_here
from tests.helpers.hostile import check_text

ASKED = ("rows.csv", "-s", "p", "-y", "y", "-t", "0.3")
OWN_STYLE = r"<[^>]*\s(style|on\w+)\s*="
"""An element with a style or a handler of its own, which the policy of the page would not let pass."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = few_rows(tmp_path_factory.mktemp("report"), 300)
    with blank_pictures(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("decal_cli.learn.probe.MAX_DEALS", 1)
        done = run_here(folder, ("report", *ASKED, "--features", "x*", "-o", "report.html"))
    assert done.code == 0, done.err
    return folder / "report.html"


@pytest.mark.ci
def test_without_matplotlib_pictures_are_left_out_and_the_page_says_so(
    decal: Decal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_rows(tmp_path, 200)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = "decal: there are no pictures: matplotlib is not installed; pip install 'decal[plot]'\n"
    done = decal("report", *ASKED, "-o", "plain.html")
    assert (done.code, done.err) == (0, said)
    text = (tmp_path / "plain.html").read_text()
    assert "<img" not in text
    assert "there are no pictures: matplotlib is not installed" in text
    assert len(re.findall("<tr data-way=", text)) >= 4  # the table and its sliders need no picture
    assert not re.search(OWN_STYLE, text)


@pytest.mark.ci
def test_the_page_is_whole_in_itself(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    check_text(text, "html")
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert tags.seen["script"] == 2 and "link" not in tags.seen  # the sums, and what moves them
    assert not re.search(r"https?://|fetch|XMLHttp|import\(", text.split("<script>")[1])
    assert not re.search(r"(src|href)=['\"](?!data:)", text)
    assert tags.seen["img"] == tags.seen["figcaption"] == 5
    of_two = [metric for metric in METRICS.values() if metric.takes(False)]
    families = {metric.family for metric in of_two if not metric.shown}
    # Each metric, each family, the bins of the score, the notes on values, and the words of the page.
    assert tags.seen["details"] == len(of_two) + len(families) + 3
    for words in (
        "Post-train on the features with blend",
        "what blend wins over the score as it is",
        "Words on this page",
        "decal:0.1",
        "Perez-Lebel et al. 2025, Decision from Suboptimal Classifiers",
    ):
        assert words in text


@pytest.mark.ci
def test_a_browser_is_told_to_take_the_style_script_and_pictures_of_the_page_and_nothing_else(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    (style,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    (script,) = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    of_style, of_script = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in (style, script))
    (policy,) = re.findall('<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    asked = dict(each.strip().split(" ", 1) for each in policy.split(";"))
    assert asked == {
        "default-src": "'none'",
        "img-src": "data:",
        "script-src": f"'sha256-{of_script}'",
        "style-src": f"'sha256-{of_style}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert text.index("Content-Security-Policy") < text.index("<style>")
    assert not re.search(OWN_STYLE, text)


@pytest.mark.ci
@in_a_browser
def test_the_measurement_sees_what_is_wrong(tmp_path: Path) -> None:
    body = (
        "<h1>a</h1><h3>skips a level</h3><p style='width:900px'>wide</p><p style='color:#aaa'>pale</p>"
        "<div style='width:50px'><span class='bar' style='display:block;width:90px'>bar</span></div>"
        "<figure><img alt='' src='data:,'></figure>"
    )
    (tmp_path / "bad.html").write_text(f"<!DOCTYPE html><html><head></head><body>{body}</body></html>")
    assert set(defects(tmp_path / "bad.html", tmp_path, 390)) == {"overflow", "bars", "contrast", "pictures", "order"}
