"""What `decal recommend` asks for and says of another prevalence; answers.txt has what the lines say."""

from pathlib import Path

import pytest

import decal_cli as decal_api
from tests.helpers.command import FIXTURES, Decal, few_rows

NAMED = ("rows.csv", "--score", "p", "--label", "y")


@pytest.fixture(autouse=True)
def rows(tmp_path: Path) -> None:
    few_rows(tmp_path, 800)


@pytest.mark.ci
@pytest.mark.usefixtures("one_deal")
def test_a_cost_above_the_gain_advises_against(decal: Decal) -> None:
    asked = ("recommend", *NAMED, "--features", "x*", "-t", "0.3", "--cost")
    assert decal.json(*asked, "0.5")["recommendation"]["action"] == "do-not-post-train"
    assert decal.json(*asked, "1", "--decisions", "1e6")["recommendation"]["action"] == "post-train"


def test_a_page_without_next_steps_has_one_blank_line_before_its_rows(decal: Decal) -> None:
    asked = ("--proba", "p_*", "--label", "y", "--features", "id", "--abstain", "0.4", "--tolerance", "0.5")
    out = decal("recommend", FIXTURES / "multiclass_n1500_k3.csv", *asked, "--satisfied-at", "0.1").out
    assert "4. Is the expected utility good enough?  yes" in out and "1,500 rows" in out
    assert "\n\n\n" not in out


def test_settings_and_models_know_the_population(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "decal.toml").write_text("prevalence = 0.05\n")
    asked = {"score": "p", "label": "y", "threshold": 0.3, "prevalence": 0.05, "metrics": "brier"}
    whole = decal_api.evaluate(tmp_path / "rows.csv", **asked)
    measured = decal.json("evaluate", *NAMED, "-t", "0.3", "-m", "brier")["metrics"]
    assert measured["brier"]["value"] == pytest.approx(whole["brier"].value)
    assert decal("fit", "isotonic", *NAMED, "-o", "m.json").code == 0
    applied = decal("apply", "m.json", "rows.csv", "-o", "out.csv")
    assert "The model is for a population with 5 % positive." in applied.err
    assert "judge it with --prevalence 0.05 --keep-scores." in applied.err
    # A threshold moves no score.
    moved = decal("fit", "threshold", *NAMED, "-t", "0.3", "-o", "t.json").text
    assert "The model is for a population with 5 % positive; it takes scores as they come." in moved
    assert decal("evaluate", "out.csv", "-s", "p_isotonic", "-y", "y", "--keep-scores", "-m", "ece").code == 0
