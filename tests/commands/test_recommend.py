"""What `decal recommend` asks for and says of another prevalence; answers.txt has what the lines say."""

from pathlib import Path

import pytest

import decal_cli as decal_api
from tests.helpers.command import Decal, few_rows

NAMED = ("rows.csv", "--score", "p", "--label", "y")


@pytest.fixture(autouse=True)
def rows(tmp_path: Path) -> None:
    few_rows(tmp_path, 800)


@pytest.mark.usefixtures("one_deal")
def test_a_cost_above_the_gain_advises_against(decal: Decal) -> None:
    asked = ("recommend", *NAMED, "--features", "x*", "-t", "0.3", "--cost")
    assert decal.json(*asked, "0.5")["recommendation"]["action"] == "do-not-post-train"
    assert decal.json(*asked, "1", "--decisions", "1e6")["recommendation"]["action"] == "post-train"


@pytest.mark.parametrize("given", [[], ["--threshold", "0.1:0.4"], ["--cost-fp", "1", "--cost-fn", "3:8"]])
def test_where_costs_are_not_known_it_says_which_advice_holds_where(decal: Decal, given: list[str]) -> None:
    asked = decal.json("recommend", *NAMED, *given)["range"]
    assert (asked["low"], asked["high"]) == {"0": (0.01, 0.99), "2": (0.1, 0.4), "4": (3, 8)}[str(len(given))]
    ends = [(stretch["low"], stretch["high"]) for stretch in asked["stretches"]]
    assert ends[0][0] == asked["low"] and ends[-1][1] == asked["high"] and ends == sorted(ends)


def test_advice_says_what_moving_the_scores_wins(decal: Decal) -> None:
    done, document = decal.text_and_json("recommend", *NAMED, "-t", "0.3", "--prevalence", "0.05")
    assert document["population"]["prevalence"] == 0.05 and document["population"]["scores"] == "moved"
    moving = document["moving"]
    assert moving["moved"] == pytest.approx(document["metrics"]["expected_utility"]["value"])
    assert moving["gain"] == pytest.approx(moving["moved"] - moving["kept"])
    assert f"act on them from about {moving['threshold']:.4g} on" in done.text
    kept = decal.json("recommend", *NAMED, "-t", "0.3", "--prevalence", "0.05", "--keep-scores")
    assert kept["moving"]["kept"] == pytest.approx(kept["metrics"]["expected_utility"]["value"])
    assert kept["moving"]["kept"] == pytest.approx(moving["kept"])


def test_settings_and_models_know_the_population(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "decal.toml").write_text("prevalence = 0.05\n")
    asked = {"score": "p", "label": "y", "threshold": 0.3, "prevalence": 0.05, "metrics": "brier"}
    whole = decal_api.evaluate(tmp_path / "rows.csv", **asked)
    measured = decal.json("evaluate", *NAMED, "-t", "0.3", "-m", "brier")["metrics"]
    assert measured["brier"]["value"] == pytest.approx(whole["brier"].value)
    assert decal("fit", "isotonic", *NAMED, "-o", "m.json").code == 0
    applied = decal("apply", "m.json", "rows.csv", "-o", "out.csv")
    assert "The model is calibrated for a population with 5 % positive." in applied.err
    assert decal("evaluate", "out.csv", "-s", "p_isotonic", "-y", "y", "--keep-scores", "-m", "ece").code == 0
