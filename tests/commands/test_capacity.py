"""`--capacity` as a user meets it."""

import re
from pathlib import Path

import pytest

import decal_cli as decal_api
from decal_cli.metrics import METRICS
from tests.helpers.command import BINARY, FIXTURES, Decal, few_rows, refusal

COLUMNS = (BINARY, "--score", "p", "--label", "y")
FEW = ("rows.csv", *COLUMNS[1:])
KEYS = [name for name in METRICS if METRICS[name].family == "capacity"]


def test_a_table_shows_what_the_places_are_worth_and_says_who_gets_them(decal: Decal) -> None:
    shown = [word for name in KEYS for word in ("-m", name)]
    line = ("evaluate", *COLUMNS, "-t", "0.3", "-m", "expected_utility", *shown, "--capacity")
    done = decal(*line, "50/1000")
    text = done.text
    assert "capacity 50/1000: the rows with the highest scores are acted on; a row below 0.3 is not, even if" in text
    assert "100 of 2,000 rows are acted on, from a score of" in text and "|capacity:50/1000" in text
    document = decal.json(*line, "100")
    places, metrics = document["places"], document["metrics"]
    assert places["places"] == places["acted"] == pytest.approx(100) and document["capacity"] == "100"
    assert metrics["capacity_threshold"]["value"] == places["thresholds"][0]
    assert metrics["utility_at_capacity"]["value"] + metrics["capacity_cost"]["value"] == pytest.approx(
        metrics["expected_utility"]["value"]
    )
    assert metrics["lift"]["value"] == pytest.approx(metrics["capture"]["value"] / 0.05)


def test_per_is_the_column_of_days_and_a_time_stands_with_the_decisions(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "decal.toml").write_text('decisions = "1e6/year"\nscore = "p"\nlabel = "y"\n')
    line = ("recommend", BINARY, "-t", "0.3", "--capacity", "50")
    text = decal(*line, "--per", "group").out
    assert "a year" in text and "per group" in text
    (tmp_path / "decal.toml").write_text('per = "year"\ndecisions = 1e6\nscore = "p"\nlabel = "y"\n')
    assert "decisions a year are --decisions 100000/year" in refusal(decal("recommend", BINARY, "-t", "0.3"))
    (tmp_path / "decal.toml").write_text('per = "group"\ncapacity = "5"\nscore = "p"\nlabel = "y"\n')
    assert "capacity 5 for each value of group" in decal("evaluate", BINARY, "-m", "capture").text


def test_every_day_has_its_places(decal: Decal, tmp_path: Path) -> None:
    lines = [f"2026-01-0{1 + k % 3} 1{k % 9}:00,{(k * 37) % 100 / 100},{k % 2}" for k in range(90)]
    (tmp_path / "days.csv").write_text("day,p,y\n" + "\n".join(lines) + "\n")
    by_day = decal.json("evaluate", "days.csv", "--capacity", "7", "--per", "day")
    assert by_day["places"]["lists"] == by_day["places"]["full"] == 3
    assert by_day["places"]["acted"] == pytest.approx(21)
    assert by_day["columns"]["per"] == "day"
    text = decal("evaluate", "days.csv", "--capacity", "7", "--per", "day").text
    assert "capacity 7 for each value of day" in text and "every place is taken in 3 of 3 values of day" in text
    # More places than rows: all are acted on.
    all_of_them = decal("evaluate", "days.csv", "--capacity", "31", "--per", "day")
    assert "90 of 90 places are taken, and no row that would be acted on is without one" in all_of_them.out


def test_two_models_are_compared_by_who_is_acted_on(decal: Decal) -> None:
    line = ("compare", BINARY, "--score", "q", "--score", "p", "--label", "y", "-t", "0.3", "--capacity", "100")
    line += ("-m", "precision_at_capacity", "-m", "utility_at_capacity", "-m", "capture")
    document = decal.json(*line)
    contest = document["comparison"]["contests"][0]
    swap, metrics = contest["swap"], contest["metrics"]
    assert contest["disagreements"] is None
    for side, other in (("only_a", "a"), ("only_b", "b")):
        assert swap["both"]["rows"] + swap[side]["rows"] == pytest.approx(100)
        right = swap["both"]["positives"] + swap[side]["positives"]
        assert right / 100 == pytest.approx(metrics["precision_at_capacity"][other])
        assert len(swap[side]["ids"]) == round(swap[side]["rows"])
    gained = swap["only_b"]["positives"] - swap["only_a"]["positives"]
    # Of as many rows, each positive more is worth a hit and no false alarm.
    assert metrics["utility_at_capacity"]["difference"]["value"] == pytest.approx(gained * (0.7 + 0.3) / 2000)
    low, high = metrics["utility_at_capacity"]["difference"]["interval"]
    assert low < metrics["utility_at_capacity"]["difference"]["value"] < high
    text = decal(*line, "--group", "group").text
    assert "Decisions at t* = 0.3, capacity 100:" in text and "Rows acted on: both act on" in text
    assert "by utility at capacity" in text
    gate = ("gate", BINARY, "--score", "q", "--score", "p", "--label", "y", "--capacity", "100")
    assert decal(*gate, "--rule", f"delta(capture)>={metrics['capture']['difference']['value'] - 1e-9}").code == 0
    assert decal(*gate, "--rule", "lower(delta(lift))>=3").code == 1


def test_a_sweep_goes_over_capacities(decal: Decal, tmp_path: Path) -> None:
    line = ("sweep", *COLUMNS, "-t", "0.3", "--capacity-range")
    document = decal.json(*line, "0.1:0.3:0.1", "--capacity", "50/1000")
    vary = document["vary"]
    assert vary["at"] == [0.05, 0.1, 0.2, 0.3] and vary["own"] == 0.05
    answer = decal_api.evaluate(BINARY, score="p", label="y", metrics=KEYS, threshold=0.3, capacity=0.2)
    for key in KEYS:
        curve = vary["curves"][key]
        assert curve["value"][2] == pytest.approx(answer[key].value, abs=1e-12)
        assert [curve["low"][2], curve["high"][2]] == pytest.approx(answer[key].interval, abs=1e-12)
    text = decal(*line, "50:150:50", "--plot", "-", "--no-intervals").text
    assert "capacity (count of the rows) varies" in text and "Utility at capacity over the capacity" in text
    assert "p: shares of rows" in text and "|vary:capacity=50..150x3" in text
    assert decal(*line, "0.1:0.3", "--no-intervals", "--plot", "curves.svg").code == 0
    assert "without a limit" in (tmp_path / "curves.svg").read_text(encoding="utf-8")


def test_advice_says_what_each_score_is_worth_at_the_capacity(decal: Decal, tmp_path: Path) -> None:
    few_rows(tmp_path)
    line = ("recommend", *FEW, "-t", "0.3", "--method", "isotonic", "--method", "platt")
    # Where all rows have a place, the gains are those without a limit.
    document = decal.json(*line, "--capacity", "500")
    as_it_is, *others, perfect = document["at_capacity"]
    assert as_it_is["utility"] == pytest.approx(document["metrics"]["expected_utility"]["value"])
    tried = {each["method"]: each["achieved"]["value"] for each in document["recommendation"]["tried"][0]["attempts"]}
    assert {each["method"]: each["gain"] for each in others} == pytest.approx(tried)
    assert perfect["utility"] == pytest.approx(0)
    # Of fifty places, recalibration changes none, and the text says so.
    done = decal("recommend", *FEW, "-t", "0.3", "--capacity", "50")
    text = done.text
    assert "At capacity 50. The limit costs" in text and text.index("At capacity 50.") < text.index("never act ")
    assert "All else on this page is of decisions without this limit." in text
    assert "which of them reach 0.3: on the rows with a place, that changes nothing. Only another order" in text


@pytest.mark.usefixtures("undrawn")
def test_a_page_shows_the_capacity_and_what_others_would_be_worth(decal: Decal, tmp_path: Path) -> None:
    few_rows(tmp_path)
    assert decal("report", *FEW, "-t", "0.3", "--capacity", "50/1000", "-o", "a.html").code == 0
    page = (tmp_path / "a.html").read_text()
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    shown = (
        "At other capacities",
        "At other thresholds",
        "At capacity 50/1000. The limit costs",
        "Which rows have a place.",
    )
    places = [text.index(words) for words in shown]
    assert places == sorted(places)
    # Metrics of the capacity are among those that say most; those of rows with utilities of their own are not.
    most = re.split(r"\d+ more of", text[text.index("The metrics that say most") :])[0]
    assert "Capture at capacity" in most and "Capture of value" not in most
    # Without a decision, all places are taken: there is nothing to be worth.
    assert decal("report", *FEW, "--capacity", "60", "-o", "b.html").code == 0
    text = (tmp_path / "b.html").read_text()
    assert "Which rows have a place." in text and "At other capacities" not in text


def test_places_may_be_for_any_actions_and_classes(decal: Decal, tmp_path: Path) -> None:
    """The page says which action needs a place, and what the places are worth stands beside what no limit is worth."""
    three = ("--utility", "wait,0,-9;test,-1,-2;treat,-2,0", "--capacity", "60")
    few_rows(tmp_path)
    text = decal("recommend", *FEW, *three).text
    assert "so many rows can get another action than 'wait', those where that is expected to win most" in text
    classes = (str(FIXTURES / "multiclass_n1500_k3.csv"), "--proba", "p_*", "--abstain", ".2", "--capacity", "100")
    text = decal("evaluate", *classes).text
    assert "capacity 100: so many rows can get 'abstain', those where that is expected to win most" in text
    document = decal.json("recommend", *classes)
    values = {key: document["metrics"][key]["value"] for key in ("expected_utility", "utility_at_capacity")}
    assert document["metrics"]["capacity_cost"]["value"] == pytest.approx(
        values["expected_utility"] - values["utility_at_capacity"]
    )
    assert [each["method"] for each in document["at_capacity"]] == [None, "temperature", "perfect ranking"]
