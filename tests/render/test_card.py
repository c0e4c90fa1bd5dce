"""The model card: its items, its numbers beside those of recommend, and every kind of rows and decision."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from decal_cli.analysis.described import reliability_bins
from decal_cli.data import from_arrays
from decal_cli.render.results.card import SECTIONS, UNKNOWN
from tests.helpers.command import Decal, run_here, valid_json
from tests.helpers.seeded import write_seeded

pytestmark = pytest.mark.usefixtures("one_deal")
TWO = ("rows.csv", "--score", "p", "--label", "y")
WORLDS: dict[str, tuple[str, ...]] = {
    "two classes": (*TWO, "-t", "0.4"),
    "groups, weights, clusters": (*TWO, "-t", "0.4", "--group", "g", "--weight", "w", "--cluster", "c"),
    "two models, features": (*TWO, "--score", "q", "-t", "0.4", "--features", "x1"),
    "costs of each row": (*TWO, "--amount", "amount", "--cost-fp-column", "alarm"),
    "several classes": ("rows.csv", "--proba", "a:*", "--label", "z", "--abstain", "0.4"),
    "three actions": (*TWO, "--utility", "wait,0,-20;test,-2,-3;treat,-5,-1"),
    "a capacity, another prevalence": (*TWO, "-t", "0.4", "--capacity", "10", "--prevalence", "0.2"),
}
NUMBERS = (
    *("1", "2", "3a", "3b", "3c", "4", "5a", "5b", "6a", "6b", "6c", "7", "8a", "8b", "8c", "9a", "9b", "9c", "10"),
    *("11", "12a", "12b", "12c", "12d", "12e", "12f", "12g", "13", "14", "15", "16", "17"),
    *("18a", "18b", "18c", "18d", "18e", "18f", "19", "20a", "20b", "20c", "21", "22", "23a", "23b", "24", "25", "26"),
    *("27a", "27b", "27c"),
)
"""Items of TRIPOD+AI (Collins et al. 2024, table 2)."""


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seeded")
    write_seeded(folder, 60)
    return folder


@cache
def card_of(folder: Path, *words: str) -> dict[str, Any]:
    done = run_here(folder, ("report", *words, "--card", "-o", "card.json"))
    assert done.code == 0, done.err
    return valid_json((folder / "card.json").read_text(encoding="utf-8"))


def test_every_item_stands_once_in_a_section() -> None:
    items = [number for items in SECTIONS.values() for number, *_ in items]
    assert sorted(items) == sorted(NUMBERS) and len(NUMBERS) == 52


@pytest.mark.ci
def test_at_a_capacity_what_to_do_without_it_is_called_that(seeded: Path, decal: Decal) -> None:
    line = (str(seeded / "rows.csv"), *TWO[1:], "--score", "q", "-t", "0.4")
    assert "  do now  " in decal("recommend", *line).out
    limited = decal("recommend", *line, "--capacity", "0.1").out
    assert "  do without the limit  " in limited and "do now" not in limited
    (said,) = [item["known"] for item in card_of(seeded, *TWO, "-t", "0.4")["items"] if item["tripod_ai"] == "25"]
    assert " Do now: " in said
    card = card_of(seeded, *TWO, "-t", "0.4", "--capacity", "0.1")
    (said,) = [item["known"] for item in card["items"] if item["tripod_ai"] == "25"]
    assert said.startswith("At capacity 0.1, ") and " Do without the limit: " in said and "Do now" not in said


def test_a_constant_decision_wins_what_the_table_says(tmp_path: Path, decal: Decal) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("p,y,g\n" + "".join(f"{k % 10 / 10},{int(k % 4 > 0)},{'ab'[k % 2]}\n" for k in range(400)))
    page = decal("recommend", str(path), "-s", "p", "-y", "y", "--group", "g", "-t", "0.3").out
    won, *_ = re.findall(r"Always act: that wins (.*) per 1,000 decisions", page)
    (row,) = [text for text in page.splitlines() if re.match("p +all rows", text)]
    assert re.fullmatch(rf"p +all rows +always act +{re.escape(won)}  \w+", row)


def test_bins_of_tiny_scores_are_told_apart(tmp_path: Path, decal: Decal) -> None:
    rows = "".join(f"{k + 1}e-9,{int(k % 9 == 0)}\n" for k in range(300))
    (tmp_path / "rows.csv").write_text(f"p,y\n{rows}")
    done = decal("report", str(tmp_path / "rows.csv"), "-s", "p", "-y", "y", "--card", "-o", str(tmp_path / "card.md"))
    assert done.code == 0
    card = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert "| 1e-09 | 2e-08 | 20 | 1.05e-08 |" in card and "what was fitted" not in card


QUICK = ("groups, weights, clusters", "several classes")


@pytest.mark.ci
@pytest.mark.parametrize(
    "world", [pytest.param(each, marks=[] if each in QUICK else pytest.mark.long) for each in WORLDS]
)
def test_numbers_are_those_of_recommend(world: str, seeded: Path, decal: Decal) -> None:
    card = card_of(seeded, *WORLDS[world])
    advice = decal.json("recommend", *WORLDS[world], cwd=seeded)
    shared = {key: value for key, value in advice.items() if key in card and key not in ("reports", "title")}
    assert {key: card[key] for key in shared} == shared
    for mine, theirs in zip(card["reports"], advice["reports"], strict=True):
        bins = mine["reliability"]
        own = {key: value for key, value in mine.items() if key != "reliability"}
        assert own == {key: value for key, value in theirs.items() if key in own}
        assert {"metrics", "recommendation", "counts", "amounts"} <= own.keys()
        assert bool(bins) == (world != "several classes")


@pytest.mark.parametrize(
    "world",
    [
        *("costs of each row", "several classes", "no decision"),
        pytest.param("two models, features", marks=pytest.mark.long),
    ],
)
def test_what_is_not_known_is_said_in_both_forms(world: str, seeded: Path, decal: Decal) -> None:
    words = WORLDS.get(world, TWO)
    card = card_of(seeded, *words)
    text = decal("report", *words, "--card", cwd=seeded).out
    assert [each["tripod_ai"] for each in card["items"]] == [number for of in SECTIONS.values() for number, *_ in of]
    lines = {line.partition(":** ")[0]: line for line in text.splitlines() if line.startswith("- **")}
    for each in card["items"]:
        line = lines[f"- **{each['asks']} ({each['tripod_ai']})"]
        assert each["known"] or each["unknown"]
        assert (f"{UNKNOWN}: {each['unknown']}." in line) if each["unknown"] else UNKNOWN not in line
    assert text.startswith("# Model card: ") and card["signature"] in text


def test_without_a_decision_it_says_so_and_advises_nothing(seeded: Path, decal: Decal) -> None:
    card = card_of(seeded, *TWO)
    items = {each["tripod_ai"]: each["known"] for each in card["items"]}
    assert "No decision was named" in items["15"] and "nothing is advised" in items["15"]
    assert items["24"] is items["25"] is items["27c"] is None
    (report,) = card["reports"]
    assert "recommendation" not in report and report["metrics"]["auc"]["value"] > 0.5
    assert report["metrics"]["expected_utility"]["value"] is None


@pytest.mark.ci
def test_what_is_known_follows_from_the_numbers(seeded: Path, decal: Decal) -> None:
    card = card_of(seeded, *WORLDS["groups, weights, clusters"])
    items = {each["tripod_ai"]: each["known"] for each in card["items"]}
    whole = card["reports"][0]
    assert items["20a"].startswith(f"60 rows, {whole['positives']} with label 1 (")
    assert items["20a"].endswith("; 0 dropped.")
    low, high = (f"{end:.4g}" for end in whole["holds"])
    assert f"The advice holds for thresholds from {low} to {high}." in items["15"]
    assert f"Acting from a score of {whole['counts']['threshold']['adjusted']}" in items["15"]
    assert f"how sure that is: {whole['recommendation']['certainty']}." in items["25"]
    assert "each value of g" in items["14"] and "of c." in items["12d"]
    assert card["inputs"][0]["sha256"] in items["5a"]


@pytest.mark.ci
def test_rows_with_times_are_judged_on_later_ones_and_names_of_models_stay(seeded: Path, decal: Decal) -> None:
    words = ("rows.csv", "--score", "p", "--score", "q", "--label", "y", "-t", "0.4", "--time", "x1")
    card = card_of(seeded, *words)
    items = {each["tripod_ai"]: each["known"] or "" for each in card["items"]}
    assert items["5b"] == "Each row has its time in column x1." and " p: without --features" in f" {items['26']}"
    assert all("on later rows" in items[number] and "held" not in items[number] for number in ("12f", "21", "24"))
    assert f"({', '.join(str(each['over_time']['rows']) for each in card['reports'])} rows)" in items["21"]
    assert "Gain by the age of the fit of q" in decal("report", *words, "--card", cwd=seeded).out


class TestReliabilityBins:
    def test_they_are_counted_by_hand(self) -> None:
        label = np.array([0, 1, 0, 0, 1, 1])
        rows = from_arrays({"p": np.array([0.1, 0.1, 0.1, 0.7, 0.7, 0.7])}, label).models[0].rows
        low, high = reliability_bins(rows, 0.95)
        assert (low.low, low.high, low.rows, low.rate) == (0.1, 0.1, 3.0, 1 / 3)
        assert (high.low, high.high, high.rows, high.rate) == (0.7, 0.7, 3.0, 2 / 3)
        assert low.interval == pytest.approx((0.06149, 0.79234), abs=1e-5)  # Wilson 1927, 1 of 3
        assert [each.interval for each in reliability_bins(rows, None)] == [None, None]

    def test_they_add_up_to_ece(self, seeded: Path, decal: Decal) -> None:
        (report,) = card_of(seeded, *WORLDS["two classes"])["reports"]
        bins = report["reliability"]
        ece = sum(each["rows"] * abs(each["rate"] - each["score"]) for each in bins) / sum(
            each["rows"] for each in bins
        )
        assert ece == pytest.approx(report["metrics"]["ece"]["value"], abs=1e-12)
        assert all(each["interval"][0] <= each["rate"] <= each["interval"][1] for each in bins)


@pytest.mark.ci
def test_models_of_other_rows_are_all_spoken_of_and_an_upper_limit_has_the_unit(seeded: Path) -> None:
    """All of 60 rows have a score p, and q is missing in six of label 0; 18 rows have label 1."""
    lines = [f"{(k % 20 + 1) / 21:.3f},{'' if k < 6 else (k % 7 + 1) / 8},{k >= 42:d}" for k in range(60)]
    (seeded / "gaps.csv").write_text("\n".join(["p,q,y", *lines]) + "\n")
    scores = ("gaps.csv", "--score", "p", "--score", "q", "--label", "y", "--missing", "drop")
    card = card_of(seeded, *scores, "-t", "0.4", "--unit", "EUR")
    known = {each["tripod_ai"]: each["known"] or "" for each in card["items"]}
    assert known["15"].startswith("54 to 60 rows, 30 % to 33.3 % with label 1; a miss costs 0.6 EUR")
    worst = card["reports"][0]["metrics"]["regret_grouping_worst"]["value"]
    assert (
        f"p: without --features, the gain beyond recalibration is unknown: between 0 and {worst:.4g} EUR per"
        in (known["26"])
    )
