"""`--amount` and the other columns of utilities as a user meets them; answers.txt has what the lines say."""

from pathlib import Path

import numpy as np
import pytest

import decal_cli as decal_api
from tests.helpers.command import Decal, valid_json
from tests.helpers.seeded import write_amounts

OWN = ("--amount", "amount", "--cost-fp", "5")


@pytest.fixture(autouse=True)
def rows(tmp_path: Path) -> np.ndarray:
    write_amounts(tmp_path / "a.csv")
    return np.genfromtxt(tmp_path / "a.csv", delimiter=",", names=True)


def test_settings_and_arrays_take_it_too(decal: Decal, tmp_path: Path, rows: np.ndarray) -> None:
    (tmp_path / "decal.toml").write_text('score = "p"\namount = "amount"\ntask = {cost_fp = 5}\n')
    names = ("expected_utility", "gain_recalibration", "eu_by_amount", "brier")
    asked = ("evaluate", "a.csv", *(word for name in names for word in ("-m", name)), "-f", "json")
    by_settings = valid_json(decal(*asked).out)["metrics"]
    # A whole task on the line is in place of the columns of the settings.
    assert valid_json(decal(*asked, "-t", "0.3").out)["task"]["threshold"] == 0.3
    # A part of it is beside them.
    assert valid_json(decal(*asked, "--cost-fp", "5").out)["metrics"] == by_settings
    answer = decal_api.evaluate(rows["p"], rows["y"].astype(int), amount=rows["amount"], cost_fp=5, metrics=names)
    for name in names:
        assert answer[name].value == pytest.approx(by_settings[name]["value"], rel=1e-12)
    # An amount may be 0: the row with it is not acted on.
    free = decal_api.evaluate([0.8, 0.8], [1, 0], amount=[0.0, 3.0], cost_fp=5, metrics="expected_utility")
    assert free["expected_utility"].value == pytest.approx(-5 / 2)
    in_words = {"score": "p", "utility_columns": "tn,fn,fp,tp", "metrics": "expected_utility"}
    answer = decal_api.evaluate(tmp_path / "a.csv", **in_words)
    assert answer["expected_utility"].value == pytest.approx(-0.844475, abs=1e-12)  # as answers.txt has it


def test_compare_pairs_the_utilities_of_each_row(decal: Decal, rows: np.ndarray) -> None:
    both = ("a.csv", "-s", "p", "-s", "q", *OWN)
    measured = ("-m", "expected_utility", "-m", "gain_over_amount", "-m", "eu_by_amount")
    contest = decal.json("compare", *both, *measured)["comparison"]["contests"][0]["metrics"]

    def paid(score: np.ndarray) -> np.ndarray:
        acts = score >= 5 / (5 + rows["amount"])
        return np.where(acts, np.where(rows["y"] == 0, -5.0, 0.0), np.where(rows["y"] == 1, -rows["amount"], 0.0))

    apart = paid(rows["q"]) - paid(rows["p"])
    # A row that could have been missed has the decisions and the amount of a row that is there, and either label.
    acts = [rows[score] >= 5 / (5 + rows["amount"]) for score in "pq"]
    more = acts[1].astype(int) - acts[0]
    kinds = [acts[0] + 2 * acts[1] == kind for kind in range(4)]
    missed = max(((each[kind] - apart.mean()) ** 2).mean()
                 for each in (-5 * more, rows["amount"] * more) for kind in kinds if kind.any())  # fmt: skip
    reach = 1.959964 * np.sqrt(apart.var() / len(apart) + 1.5 * missed / len(apart) ** 2)
    each = contest["expected_utility"]["difference"]
    assert each["value"] == pytest.approx(apart.mean())
    assert each["interval"] == pytest.approx([apart.mean() - reach, apart.mean() + reach], abs=1e-5)
    # What acting by the amount alone is worth is the same for both models.
    over_amount = contest["gain_over_amount"]["difference"]
    assert over_amount["value"] == pytest.approx(apart.mean())
    assert over_amount["interval"] == pytest.approx(each["interval"], rel=1e-9)
    named = ("-m", "utility_at_capacity", "-m", "gain_over_amount_ranking")
    limited = decal.json("compare", *both, "--capacity", "0.1", *named)["comparison"]["contests"][0]["metrics"]
    at_capacity, over_ranking = (limited[name]["difference"] for name in named[1::2])
    assert over_ranking["value"] == pytest.approx(at_capacity["value"])
    assert over_ranking["interval"] == pytest.approx(at_capacity["interval"], rel=1e-9)
    assert contest["eu_by_amount"]["difference"]["value"] == pytest.approx(0, abs=1e-9)
    rules = ("-r", "upper(delta(expected_utility))<=100", "-r", "lower(gain_over_amount)>-100")
    assert decal("gate", *both, *rules).code == 0


@pytest.mark.ci
def test_methods_are_tried_on_utilities_of_each_row(decal: Decal, rows: np.ndarray) -> None:
    line = ("recommend", "a.csv", "-s", "p", *OWN, "--capacity", "50/1000", "--method", "isotonic", "--method", "platt")
    document = decal.json(*line)
    tried = {each["method"]: each["achieved"]["value"] for each in document["recommendation"]["tried"][0]["attempts"]}
    # By the fit of the same folds: what `fit` says that it wins.
    fitted = decal.json("fit", "platt", "a.csv", "-s", "p", *OWN, "-o", "m.json")
    assert tried["platt"] == pytest.approx(fitted["fit"]["gain"]["value"], rel=1e-12)
    as_it_is, *others, perfect = document["at_capacity"]
    assert {each["method"] for each in others} == set(tried) and perfect["method"] == "perfect ranking"
    worth = np.sort(np.where(rows["y"] == 1, rows["amount"], 0.0))[::-1]
    most = (worth[:20].sum() - rows["amount"][rows["y"] == 1].sum()) / 400
    assert perfect["utility"] == pytest.approx(most) and perfect["gain"] == pytest.approx(most - as_it_is["utility"])
