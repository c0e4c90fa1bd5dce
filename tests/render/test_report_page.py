"""The page of `decal report` in a real browser: what its sliders show, how it reads, prints and is built."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from decal_cli import evaluate, recommend
from tests.helpers.browser import AXE, DARK, browse, defects, in_a_browser, in_page
from tests.helpers.command import FIXTURES
from tests.helpers.page import printed_as

pytestmark = pytest.mark.ci
"""They read whole pages, of many fits."""
ROWS = 600
SEVERAL = ("-s", "p", "-s", "p_squared", "--group", "g", "-t", "0.3")
POSITIONS = np.linspace(0.03, 0.97, 25).round(2)
MOVE = """
const box = document.querySelector('.movable'), find = name => box.querySelector(`[name='${name}']`), found = [];
const data = JSON.parse(box.querySelector("[type='application/json']").textContent);
for (const [report, t, places, ones] of asked) {
  find('report').value = report;
  find('report').dispatchEvent(new Event('change'));
  find('threshold').value = t === null ? data.own : data.at.indexOf(t);
  if (places !== null) find('places').value = places;
  else find('places').value = find('places').max;
  if (ones !== null) find('ones').value = ones;
  find('threshold').dispatchEvent(new Event('input'));
  const rows = {};
  box.querySelectorAll('tbody:not([hidden]) tr[data-way]').forEach(row => {
    rows[row.dataset.way] = [...row.querySelectorAll('td')].slice(1).map(cell => cell.textContent);
  });
  const pictures = [...document.querySelectorAll('figure:has(.dot:not([hidden])) figcaption')];
  const explained = pictures.filter(each => each.textContent.split('The dot is').length === 2);
  found.push([rows, find('advice').textContent, explained.length]);
}
return found;
"""
"""Moves the sliders to each place and reads the table."""
AT_FIRST = """
const rows = {};
document.querySelectorAll('.movable tr[data-way]').forEach(row => {
  rows[row.dataset.way] = [...row.querySelectorAll('td')].slice(1).map(cell => cell.textContent);
});
return [[rows, document.querySelector("[name='advice']").textContent, 0]];
"""
"""Reads the table where the sliders start."""


def rows_of(folder: Path) -> Path:
    """Few rows with two scores and two groups."""
    head, *lines = (FIXTURES / "binary_n2000.csv").read_text().splitlines()[: ROWS + 1]
    at = head.split(",").index("p")
    squares = [float(line.split(",")[at]) ** 2 for line in lines]
    rows = [f"{line},{square:.6f},{'ab'[k % 2]}" for k, (line, square) in enumerate(zip(lines, squares, strict=True))]
    (folder / "rows.csv").write_text("\n".join([f"{head},p_squared,g", *rows]) + "\n")
    return folder / "rows.csv"


def report(folder: Path, *options: str) -> Path:
    from decal_cli.commands.app import run

    assert run(["report", str(rows_of(folder)), "-y", "y", *options, "-o", str(folder / "page.html")]) == 0
    return folder / "page.html"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report(tmp_path_factory.mktemp("one"), "-s", "p", "--features", "x*", "--cost-fp", "1", "--cost-fn", "5")


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report(tmp_path_factory.mktemp("several"), *SEVERAL)


def read_at(page: Path, folder: Path, asked: list[tuple[Any, ...]]) -> list[Any]:
    return list(in_page(page, folder, f"const asked = {json.dumps(asked)}; {MOVE}"))


def agrees(shown: str, value: float) -> bool:
    return printed_as(shown.removeprefix("+"), value)


@in_a_browser
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 5))])
def test_at_every_threshold_the_page_shows_what_evaluate_says(several: Path, tmp_path: Path, part: int) -> None:
    measured = ("expected_utility", "eu_never", "eu_always", "gain_recalibration", "sensitivity", "false_positive_rate")
    asked = [(k, float(t), None, None) for t in POSITIONS[part::5] for k in range(6)]
    shown = iter(read_at(several, tmp_path, asked))
    for t in POSITIONS[part::5]:
        answer = evaluate(
            several.with_name("rows.csv"), label="y", score=["p", "p_squared"], group="g", threshold=float(t),
            metrics=measured,
        )  # fmt: skip
        for each in answer.reports:
            (rows, _, dots), value = next(shown), {name: result.value for name, result in each.results.items()}
            assert agrees(rows["never"][0], 1000 * value["eu_never"])
            assert agrees(rows["always"][0], 1000 * value["eu_always"])
            assert agrees(rows["now"][0], 1000 * value["expected_utility"])
            gain, ends = rows["recalibrate"][1].rstrip("]").split("[")
            assert agrees(gain, 1000 * value["gain_recalibration"])
            low, high = each.results["gain_recalibration"].interval
            assert all(agrees(end, 1000 * limit) for end, limit in zip(ends.split(", "), (low, high), strict=True))
            positive = 1000 * each.positives / each.rows
            alarms, misses = (1000 - positive) * value["false_positive_rate"], positive * (1 - value["sensitivity"])
            counts = positive - misses + alarms, alarms, misses
            assert all(agrees(text, count) for text, count in zip(rows["now"][2:], counts, strict=True))
            assert dots == 2


@in_a_browser
def test_with_features_and_costs_it_shows_them_too(one: Path, tmp_path: Path) -> None:
    """The sum of both costs stays 6 as the threshold moves."""
    places = (0.1, 0.45, 0.8)
    shown = read_at(one, tmp_path, [(0, t, None, None) for t in places])
    for t, (rows, advice, _) in zip(places, shown, strict=True):
        answer = evaluate(
            one.with_name("rows.csv"), label="y", score="p", features="x*", cost_fp=6 * t, cost_fn=6 - 6 * t,
            metrics=["expected_utility", "gain_post_training"],
        )  # fmt: skip
        assert agrees(rows["now"][0], 1000 * answer["expected_utility"].value)
        gain = answer["gain_post_training"]
        texts = [rows["post-train"][1].split("[")[0], *rows["post-train"][1].rstrip("]").split("[")[1].split(", ")]
        assert all(agrees(text, 1000 * each) for text, each in zip(texts, (gain.value, *gain.interval), strict=True))
        assert advice.startswith("If you decide at this threshold: ")


@in_a_browser
def test_with_few_places_or_another_share_of_label_1_worths_move_and_intervals_go(
    several: Path, tmp_path: Path
) -> None:
    rows = several.with_name("rows.csv")
    asked = [(0, None, 50, None), (0, None, None, 100), (0, None, None, None)]
    few, rare, own = read_at(several, tmp_path, asked)
    limited = evaluate(rows, label="y", score="p", threshold=0.3, capacity=ROWS * 50 // 1000,
                       metrics=["utility_at_capacity"])  # fmt: skip
    assert agrees(few[0]["now"][0], 1000 * limited["utility_at_capacity"].value)
    assert few[0]["now"][2] == "50"
    there = evaluate(rows, label="y", score="p", threshold=0.3, prevalence=0.1, keep_scores=True,
                     metrics=["expected_utility", "eu_always"])  # fmt: skip
    assert agrees(rare[0]["now"][0], 1000 * there["expected_utility"].value)
    assert agrees(rare[0]["always"][0], 1000 * there["eu_always"].value)
    for moved_rows, advice, _ in (few, rare):
        assert "[" not in moved_rows["recalibrate"][1]
        assert "intervals and the other numbers on this page do not move" in advice
    assert "[" in own[0]["recalibrate"][1] and "do not move" not in own[1]


@in_a_browser
def test_the_capacity_starts_where_the_user_has_it(tmp_path: Path) -> None:
    """47 of 600 rows are no whole number of thousandths, and the worth is theirs all the same."""
    page = report(tmp_path, "-s", "p", "-t", "0.3", "--capacity", "47")
    ((rows, advice, _),) = list(in_page(page, tmp_path, AT_FIRST))
    ((moved, *_),) = read_at(page, tmp_path, [(0, 0.5, 47, None)])
    assert "[" not in moved["recalibrate"][1]
    limited = evaluate(page.with_name("rows.csv"), label="y", score="p", threshold=0.3, capacity=47,
                       metrics=["utility_at_capacity"])  # fmt: skip
    assert agrees(rows["now"][0], 1000 * limited["utility_at_capacity"].value)
    assert agrees(rows["now"][2], 1000 * 47 / ROWS)
    # At the user's own capacity the table is that of the scores with these places, with their intervals.
    answer = recommend(page.with_name("rows.csv"), score="p", label="y", threshold=0.3, capacity=47)
    (ranked,) = (each for each in answer.result.recommendation.ranked["p"] if each.kind == "recalibration")
    assert agrees(rows["recalibrate"][1].split("[")[0], 1000 * ranked.gain) and "[" in rows["recalibrate"][1]
    assert advice.startswith("At your capacity: act on the rows that the score puts first (")


@in_a_browser
def test_at_the_users_threshold_the_page_advises_what_recommend_does(several: Path, tmp_path: Path) -> None:
    answer = recommend(several.with_name("rows.csv"), label="y", score=["p", "p_squared"], group="g", threshold=0.3)
    said = {"recalibrate": "recalibrate the score", "post-train": "post-train on the features"}
    shown = read_at(several, tmp_path, [(k, None, None, None) for k in range(len(answer.advised))])
    for (_, text, _), (_, advice) in zip(shown, answer.advised, strict=True):
        ahead = advice.constant is not None and advice.constant.gain > 0
        constant = advice.constant.words if ahead else "act on the score as it is"
        assert text.startswith(f"If you decide at this threshold: {said.get(advice.act_now.action, constant)} (")


def test_at_every_threshold_the_page_advises_what_recommend_does_there(tmp_path: Path) -> None:
    page = report(tmp_path, "-s", "p", "-t", "0.3").read_text()
    data = json.loads(page.split("<script type='application/json'>")[1].split("</script>")[0])
    assert data["at"][data["own"]] == 0.3
    advised = [data["ways"][way] for way in data["reports"][0]["advice"]]
    changes = [k for k in range(1, len(advised)) if advised[k] != advised[k - 1]]
    assert len(changes) >= 2
    for k in {data["own"], changes[0], changes[0] - 1}:
        advice = recommend(tmp_path / "rows.csv", label="y", score="p", threshold=data["at"][k]).advice
        action, _, constant = advice.same
        assert advised[k] == (
            {"always act": "always", "never act": "never"}.get(constant, "now") if action == "done" else action
        )


@in_a_browser
def test_the_script_leaves_the_numbers_of_the_static_page_as_they_are(one: Path, tmp_path: Path) -> None:
    still = re.findall(r"<tr data-way='([\w-]+)'>(.*?)</tr>", one.read_text())
    ((rows, _, _),) = read_at(one, tmp_path, [(0, None, None, None)])
    assert [way for way, _ in still] == list(rows)
    for way, cells in still:
        texts = [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", cells)]
        assert texts[1:] == rows[way]


@in_a_browser
@pytest.mark.parametrize(("width", "dark"), [(390, False), (768, False), (1200, False), (390, True), (1200, True)])
def test_nothing_is_cut_or_hard_to_read_at_any_width(one: Path, tmp_path: Path, width: int, dark: bool) -> None:
    assert defects(one, tmp_path, width, dark) == {}


@in_a_browser
def test_two_models_and_groups_fit_a_phone(several: Path, tmp_path: Path) -> None:
    assert defects(several, tmp_path, 390) == {} and len(several.read_text()) < 3_000_000


@in_a_browser
def test_a_page_of_one_model_is_printed_on_few_sheets(one: Path, tmp_path: Path) -> None:
    browse(one, tmp_path / "profile", "--no-pdf-header-footer", f"--print-to-pdf={tmp_path / 'page.pdf'}")
    assert 2 <= (tmp_path / "page.pdf").read_bytes().count(b"/Type /Page\n") <= 8


@in_a_browser
@pytest.mark.skipif(not AXE.exists(), reason="axe-core was not fetched: .ci/run does")
def test_the_page_keeps_to_wcag(one: Path, several: Path, tmp_path: Path) -> None:
    tags = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']"
    check = f"{AXE.read_text()}\nconst found = await axe.run({{runOnly: {tags}}}); return [found.violations.map(each =>"
    check += " `${each.id}: ${each.nodes[0].html}`), found.passes.length];"
    for page in (one, several):
        for look in ((), (DARK,)):
            found, passed = in_page(page, tmp_path, check, *look)
            assert found == []
            assert passed > 20
    (tmp_path / "bad.html").write_text(one.read_text().replace("<html lang='en'>", "<html>").replace("<label>", "<b>"))
    found, _ = in_page(tmp_path / "bad.html", tmp_path, check)
    assert {each.split(":")[0] for each in found} == {"html-has-lang", "label"}


def test_the_page_opens_with_the_decision_the_answer_and_its_number(one: Path) -> None:
    assert len(one.read_text()) < 3_000_000
    text = re.sub("<[^>]*>", " ", one.read_text().split("<main>")[1])
    start = [" ".join(line.split()) for line in text.split("What each way of acting is worth")[0].splitlines()]
    decision, answer = (line for line in start if line and line != "Decisions by p")
    assert decision == (
        "600 rows, 28.2 % with label 1; a miss costs 5, a false alarm 1: acting pays from a probability of 0.1667 on."
    )
    assert re.search(r"\+\d+ .*per 1,000 decisions: what .* wins over .*; always acting is worth -718; perfect "
                     r"decisions are worth 0\.", answer)  # fmt: skip


def test_tables_of_models_and_groups_have_no_empty_cells(several: Path) -> None:
    text = several.read_text()
    assert len(re.findall("<tr data-way=", text)) == 6 * 5
    assert not re.findall(r"<td[^>]*></td>", text.split("</section>")[0])
