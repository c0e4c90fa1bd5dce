"""`--capacity` as a user meets it; answers.txt has what the lines say."""

import re
from pathlib import Path

import numpy as np
import pytest

import decal_cli as decal_api
from decal_cli.metrics import METRICS
from decal_cli.render.results.advised import advised_in
from decal_cli.render.terms import PLAIN
from tests.helpers.command import BINARY, Decal, few_rows, refusal

COLUMNS = (BINARY, "--score", "p", "--label", "y")
FEW = ("rows.csv", *COLUMNS[1:])
KEYS = [name for name in METRICS if METRICS[name].family == "capacity"]


def test_per_is_the_column_of_days_and_a_time_stands_with_the_decisions(decal: Decal, tmp_path: Path) -> None:
    few_rows(tmp_path)
    named = 'score = "p"\nlabel = "y"\n'
    (tmp_path / "decal.toml").write_text(f'decisions = "1e6/year"\n{named}')
    text = decal("recommend", "rows.csv", "-t", "0.3", "--capacity", "50", "--per", "group").out
    assert "a year" in text and "per group" in text
    assert "At capacity 50 for each value of group, act on" in " ".join(text.split())
    (tmp_path / "decal.toml").write_text(f'per = "year"\ndecisions = 1e6\n{named}')
    assert "decisions a year are --decisions 100000/year" in refusal(decal("recommend", "rows.csv", "-t", "0.3"))
    (tmp_path / "decal.toml").write_text(f'per = "group"\ncapacity = "5"\n{named}')
    assert "capacity 5 for each value of group" in decal("evaluate", "rows.csv", "-m", "capture").text


def test_who_recalibration_gives_the_places_of_a_day_does_not_depend_on_the_order_of_rows() -> None:
    """Rows of one score and label that are of other days are dealt into folds by their day."""
    rng = np.random.default_rng(0)
    score = rng.integers(1, 6, 150) / 6
    rows = {"p": score, "y": (rng.random(150) < score**2).astype(int), "day": rng.integers(0, 12, 150)}
    decision = decal_api.Decision(0.4).at_capacity(3, per="day")
    orders = (np.arange(150), *(rng.permutation(150) for _ in range(3)))
    shown = [
        decal_api.recommend({name: of[order] for name, of in rows.items()}, decision).to_dict() for order in orders
    ]
    utilities = [[each["utility"] for each in one["at_capacity"]] for one in shown]
    assert utilities[1:] == [pytest.approx(utilities[0], abs=1e-12)] * 3


@pytest.mark.parametrize("capacity", [None, 50, 400])
def test_a_way_of_acting_is_worth_what_the_rows_that_it_acts_on_are(capacity: int | None, tmp_path: Path) -> None:
    """Of 500 rows: a false alarm costs .3 and a miss .7, also where places are given by chance."""
    few_rows(tmp_path)
    answer = decal_api.recommend(tmp_path / "rows.csv", score="p", label="y", threshold=0.3, capacity=capacity)
    (advised,) = advised_in(answer.result.recommendation, PLAIN)
    assert {"never", "always", "now", "perfect"} <= {way.key for way in advised.ways}
    for way in advised.ways:
        cells = way.decided
        lost = 0.3 * cells.false_positives + 0.7 * cells.false_negatives
        assert way.worth == pytest.approx(-lost / 500, abs=1e-12), way.key
        assert cells.true_positives + cells.false_negatives == pytest.approx(advised.report.positives)
        assert cells.true_positives + cells.false_positives <= (capacity or 500) + 1e-9


def test_every_day_has_its_places(decal: Decal, tmp_path: Path) -> None:
    lines = [f"2026-01-0{1 + k % 3} 1{k % 9}:00,{(k * 37) % 100 / 100},{k % 2}" for k in range(90)]
    (tmp_path / "days.csv").write_text("day,p,y\n" + "\n".join(lines) + "\n")
    done, by_day = decal.text_and_json("evaluate", "days.csv", "--capacity", "7", "--per", "day")
    assert by_day["places"]["lists"] == by_day["places"]["full"] == 3
    assert by_day["places"]["acted"] == pytest.approx(21)
    assert by_day["columns"]["per"] == "day"
    assert "every place is taken in 3 of 3 values of day" in done.text
    assert "capacity 7 for each value of day" in done.text
    # More places than rows: all are acted on.
    all_of_them = decal("evaluate", "days.csv", "--capacity", "31", "--per", "day")
    assert "90 of 90 places are taken, and no row that would be acted on is without one" in all_of_them.out


def test_a_sweep_goes_over_capacities(decal: Decal) -> None:
    vary = decal.json("sweep", *COLUMNS, "-t", "0.3", "--vary", "capacity=0.1:0.3:0.1", "--capacity", "50/1000")["vary"]
    assert vary["at"] == [0.05, 0.1, 0.2, 0.3] and vary["own"] == 0.05
    answer = decal_api.evaluate(BINARY, score="p", label="y", metrics=KEYS, threshold=0.3, capacity=0.2)
    for key in KEYS:
        curve = vary["curves"][key]
        assert curve["value"][2] == pytest.approx(answer[key].value, abs=1e-12)
        assert [curve["low"][2], curve["high"][2]] == pytest.approx(answer[key].interval, abs=1e-12)


@pytest.mark.ci
def test_where_all_rows_have_a_place_the_gains_are_those_without_a_limit(decal: Decal, tmp_path: Path) -> None:
    few_rows(tmp_path)
    line = ("recommend", *FEW, "-t", "0.3", "--method", "isotonic", "--method", "platt", "--capacity", "500")
    document = decal.json(*line)
    as_it_is, *others, perfect = document["at_capacity"]
    assert as_it_is["utility"] == pytest.approx(document["metrics"]["expected_utility"]["value"])
    tried = {each["method"]: each["achieved"]["value"] for each in document["recommendation"]["tried"][0]["attempts"]}
    assert {each["method"]: each["gain"] for each in others} == pytest.approx(tried)
    assert perfect["utility"] == pytest.approx(0)


@pytest.mark.ci
def test_pictures_and_pages_show_the_capacity(decal: Decal, tmp_path: Path) -> None:
    """Its metrics are among those that say most; those of rows with utilities of their own are not."""
    few_rows(tmp_path)
    line = ("sweep", *COLUMNS, "-t", "0.3", "--vary", "capacity=0.1:0.3", "--no-intervals", "--plot", "curves.svg")
    assert decal(*line).code == 0 and "without a limit" in (tmp_path / "curves.svg").read_text(encoding="utf-8")
    assert decal("report", *FEW, "-t", "0.3", "--capacity", "50/1000", "-o", "a.html").code == 0
    text = " ".join(re.sub(r"<[^>]+>", " ", (tmp_path / "a.html").read_text()).split())
    shown = ("At other capacities", "At other thresholds", "At capacity 50/1000. The limit costs", "Which rows have a")
    places = [text.index(words) for words in shown]
    assert places == sorted(places)
    most = re.split(r"\d+ more of", text[text.index("The metrics that say most") :])[0]
    assert "Capture at capacity" in most and "Capture of value" not in most
