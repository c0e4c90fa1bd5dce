"""What `decal recommend` prints, asks for and writes."""

from pathlib import Path

import pytest

import decal_cli as decal_api
from tests.helpers.command import FIXTURES, Decal, few_rows, valid_json

NAMED = ("rows.csv", "--score", "p", "--label", "y")


@pytest.fixture(autouse=True)
def rows(tmp_path: Path) -> None:
    few_rows(tmp_path, 800)


class TestRecommend:
    def test_a_cost_above_the_gain_advises_against(self, decal: Decal) -> None:
        costly = decal("recommend", *NAMED, "--features", "x*", "-t", "0.3", "--cost", "0.5", "-f", "json")
        assert valid_json(costly.out)["recommendation"]["action"] == "do-not-post-train"
        total = decal(
            "recommend", *NAMED, "--features", "x*", "-t", "0.3", "--cost", "1", "--decisions", "1e6", "-f", "json"
        )
        assert valid_json(total.out)["recommendation"]["action"] == "post-train"

    @pytest.mark.parametrize("given", [[], ["--threshold", "0.1:0.4"], ["--cost-fp", "1", "--cost-fn", "3:8"]])
    def test_where_costs_are_not_known_it_says_which_advice_holds_where(self, decal: Decal, given: list[str]) -> None:
        asked = decal.json("recommend", *NAMED, *given)["range"]
        assert (asked["low"], asked["high"]) == {"0": (0.01, 0.99), "2": (0.1, 0.4), "4": (3, 8)}[str(len(given))]
        ends = [(stretch["low"], stretch["high"]) for stretch in asked["stretches"]]
        assert ends[0][0] == asked["low"] and ends[-1][1] == asked["high"] and ends == sorted(ends)


def test_advice_says_what_moving_the_scores_wins(decal: Decal, tmp_path: Path) -> None:
    done, document = decal.text_and_json("recommend", *NAMED, "-t", "0.3", "--prevalence", "0.05")
    assert document["population"]["prevalence"] == 0.05 and document["population"]["scores"] == "moved"
    moving = document["moving"]
    assert moving["moved"] == pytest.approx(document["metrics"]["expected_utility"]["value"])
    assert moving["gain"] == pytest.approx(moving["moved"] - moving["kept"])
    assert "are counted as a population with 5 % positive; scores are moved to it" in done.out
    assert f"act on them from about {moving['threshold']:.4g} on" in done.text
    assert "|prevalence:0.05" in done.out
    kept = decal.json("recommend", *NAMED, "-t", "0.3", "--prevalence", "0.05", "--keep-scores")
    assert kept["moving"]["kept"] == pytest.approx(kept["metrics"]["expected_utility"]["value"])
    assert kept["moving"]["kept"] == pytest.approx(moving["kept"])


@pytest.mark.usefixtures("undrawn")
def test_every_verb_that_judges_takes_it(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "decal.toml").write_text("prevalence = 0.05\n")
    whole = decal_api.evaluate(
        tmp_path / "rows.csv", score="p", label="y", threshold=0.3, prevalence=0.05, metrics="brier"
    )
    measured = decal.json("evaluate", *NAMED, "-t", "0.3", "-m", "brier")["metrics"]
    assert measured["brier"]["value"] == pytest.approx(whole["brier"].value)
    assert decal("gate", *NAMED, "--rule", "brier<=0.1").code == 0
    assert "5 % positive" in decal("sweep", *NAMED, "--no-intervals", "--thresholds", ".2,.4").out
    assert "5 % positive" in decal("compare", *NAMED, "--score", "x1", "--logit", "-m", "brier").out
    done = decal("report", *NAMED, "-t", "0.3", "-o", "page.html")
    assert done.code == 0 and "moving them to it wins" in (tmp_path / "page.html").read_text()


def test_a_model_for_the_population_says_so(decal: Decal) -> None:
    fitted = decal("fit", "isotonic", *NAMED, "--prevalence", ".02", "-o", "m.json")
    assert "calibrated for a population with 2 % positive; it takes scores as they come" in fitted.text
    kept = decal("fit", "isotonic", *NAMED, "--prevalence", ".02", "--keep-scores", "-o", "kept.json")
    assert "calibrated for a population with 2 % positive." in kept.out
    applied = decal("apply", "m.json", "rows.csv", "-o", "out.csv")
    assert "The model is calibrated for a population with 2 % positive." in applied.err
    judged = ("evaluate", "out.csv", "-s", "p_isotonic", "-y", "y", "--prevalence", ".02", "--keep-scores", "-m", "ece")
    assert decal(*judged, "-f", "json").code == 0


CLASSES = (str(FIXTURES / "multiclass_n1500_k3.csv"), "--proba", "p_*", "--abstain", ".2")


def test_several_classes_have_a_share_each(decal: Decal) -> None:
    done, document = decal.text_and_json("evaluate", *CLASSES, "--prevalence", "0=.5,1=.3")
    population = document["population"]
    assert population["prevalence"] == pytest.approx({"0": 0.5, "1": 0.3, "2": 0.2}) and population["scores"] == "moved"
    assert "are counted as a population with 50 % 0, 30 % 1, 20 % 2" in done.text
    assert "|prevalence:0=0.5,1=0.3,2=0.2" in done.out.replace("|\n", "|")
