"""`--amount` and the other columns of utilities as a user meets them."""

import re
from pathlib import Path

import numpy as np
import pytest

import decal_cli as decal_api
from tests.helpers.command import Decal, valid_json
from tests.helpers.seeded import write_amounts

OWN = ("--amount", "amount", "--cost-fp", "5")


@pytest.fixture(autouse=True)
def table(tmp_path: Path) -> Path:
    write_amounts(tmp_path / "a.csv")
    return tmp_path / "a.csv"


def test_evaluate_shows_utilities_and_what_the_amount_alone_would_win(decal: Decal) -> None:
    done = decal("evaluate", "a.csv", "-s", "p", *OWN)
    text = done.text
    assert done.code == 0 and "act when score >= t* of the row, 5 / (5 + amount): t* from" in text
    document = decal.json("evaluate", "a.csv", "-s", "p", *OWN)
    for name, shown in (("expected_utility", "as it is"), ("eu_by_amount", "by amount alone"),
                        ("gain_recalibration", "recalibration")):  # fmt: skip
        measured = document["metrics"][name]
        ends = ", ".join(f"{1000 * end:,.0f}" for end in measured["interval"])
        assert f" {shown} {1000 * measured['value']:,.0f} [{ends}]" in text
    assert f" always 1 {1000 * document['metrics']['eu_always']['value']:,.0f} " in text
    assert "Share of possible utility" not in text and "task:amount=amount,cost_fp=5" in text
    own = document["row_task"]
    assert document["task"] is None and own["columns"] == {"amount": ["amount"]} and own["cost_fp"] == 5
    assert "all rows share" in document["metrics"]["utility_share"]["reason"]


def test_the_same_decision_in_three_spellings(decal: Decal, table: Path) -> None:
    def eu(*options: str) -> float:
        document = decal.json("evaluate", "a.csv", "-s", "p", *options, "-m", "expected_utility")
        number: float = document["metrics"]["expected_utility"]["value"]
        return number

    costs = eu("--amount", "amount", "--cost-fp-column", "fee")
    assert eu("--cost-fn-column", "amount", "--cost-fp-column", "fee") == pytest.approx(costs, rel=1e-12)
    assert eu("--utility-columns", "tn,fn,fp,tp") == pytest.approx(costs, rel=1e-12)
    assert eu(*(part for name in ("tn", "fn", "fp", "tp") for part in ("--utility-columns", name))) == pytest.approx(
        costs, rel=1e-12
    )
    answer = decal_api.evaluate(table, score="p", utility_columns="tn,fn,fp,tp", metrics="expected_utility")
    assert answer["expected_utility"].value == pytest.approx(costs, rel=1e-12)


def test_settings_and_arrays_take_it_too(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "decal.toml").write_text('score = "p"\namount = "amount"\ntask = {cost_fp = 5}\n')
    names = ("expected_utility", "gain_recalibration", "eu_by_amount", "brier")
    asked = ("evaluate", "a.csv", *(word for name in names for word in ("-m", name)), "-f", "json")
    by_settings = valid_json(decal(*asked).out)["metrics"]
    # A whole task on the line is in place of the columns of the settings.
    assert valid_json(decal(*asked, "-t", "0.3").out)["task"]["threshold"] == 0.3
    rows = np.genfromtxt(tmp_path / "a.csv", delimiter=",", names=True)
    answer = decal_api.evaluate(rows["p"], rows["y"].astype(int), amount=rows["amount"], cost_fp=5, metrics=names)
    for name in names:
        assert answer[name].value == pytest.approx(by_settings[name]["value"], rel=1e-12)
    # An amount may be 0: the row with it is not acted on.
    free = decal_api.evaluate([0.8, 0.8], [1, 0], amount=[0.0, 3.0], cost_fp=5, metrics="expected_utility")
    assert free["expected_utility"].value == pytest.approx(-5 / 2)


def test_advice_is_in_amounts(decal: Decal) -> None:
    document = decal.json("recommend", "a.csv", "-s", "p", *OWN, "--cluster", "site")
    assert document["recommendation"]["stakes"] > 0 and document["recommendation"]["path"]
    text = decal("recommend", "a.csv", "-s", "p", *OWN).text
    assert "recalibrated -" in text and "large amounts alone -" in text and "probability of each row's own" in text
    assert "or more to miss, whatever its score, is worth" in text


def test_compare_pairs_the_utilities_of_each_row(decal: Decal, table: Path) -> None:
    both = ("a.csv", "-s", "p", "-s", "q", *OWN)
    measured = ("-m", "expected_utility", "-m", "gain_over_amount", "-m", "eu_by_amount")
    contest = decal.json("compare", *both, *measured)["comparison"]["contests"][0]["metrics"]
    rows = np.genfromtxt(table, delimiter=",", names=True)

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
    assert contest["gain_over_amount"]["difference"]["value"] == pytest.approx(apart.mean())
    assert contest["eu_by_amount"]["difference"]["value"] == pytest.approx(0, abs=1e-9)
    rules = ("-r", "upper(delta(expected_utility))<=100", "-r", "lower(gain_over_amount)>-100")
    assert decal("gate", *both, *rules).code == 0


LIMITED = (*OWN, "--capacity", "50/1000")


def test_places_go_to_what_acting_is_expected_to_win(decal: Decal) -> None:
    done = decal("evaluate", "a.csv", "-s", "p", *LIMITED)
    text = done.text
    assert "capacity 50/1000: the rows where acting is expected to win most are acted on" in text
    assert "20 of 400 rows are acted on, from an expected gain of" in text
    document = decal.json("evaluate", "a.csv", "-s", "p", *LIMITED)
    metrics, places = document["metrics"], document["places"]
    # One place is one row, and no mean over 1,000 decisions.
    for name, shown, per in (("utility_at_capacity", "as it is", 1000), ("shadow_price", "one more place", 1)):
        ends = ", ".join(f"{per * end:,.0f}" for end in metrics[name]["interval"])
        assert f" {shown} {per * metrics[name]['value']:,.0f} [{ends}]" in text
    assert f" value captured {metrics['value_capture']['value']:.2f} [" in text
    assert "Threshold at capacity" not in text
    assert places["ranked_by"] == "expected gain" and places["thresholds"][0] == metrics["least_gain"]["value"]


def test_methods_are_tried_on_utilities_of_each_row(decal: Decal, table: Path) -> None:
    line = ("recommend", "a.csv", "-s", "p", *LIMITED, "--method", "isotonic", "--method", "platt", "-f", "json")
    document = valid_json(decal(*line).out)
    tried = {each["method"]: each["achieved"]["value"] for each in document["recommendation"]["tried"][0]["attempts"]}
    # By the fit of the same folds: what `fit` says that it wins.
    fitted = decal.json("fit", "platt", "a.csv", "-s", "p", *OWN, "-o", "m.json")
    assert tried["platt"] == pytest.approx(fitted["fit"]["gain"]["value"], rel=1e-12)
    as_it_is, *others, perfect = document["at_capacity"]
    assert {each["method"] for each in others} == set(tried) and perfect["method"] == "perfect ranking"
    rows = np.genfromtxt(table, delimiter=",", names=True)
    worth = np.sort(np.where(rows["y"] == 1, rows["amount"], 0.0))[::-1]
    most = (worth[:20].sum() - rows["amount"][rows["y"] == 1].sum()) / 400
    assert perfect["utility"] == pytest.approx(most) and perfect["gain"] == pytest.approx(most - as_it_is["utility"])


@pytest.mark.usefixtures("undrawn")
def test_a_page_of_utilities_of_each_row(decal: Decal, tmp_path: Path) -> None:
    assert decal("report", "a.csv", "-s", "p", *LIMITED, "-o", "r.html").code == 0
    text = " ".join(re.sub(r"<[^>]+>", " ", (tmp_path / "r.html").read_text()).split())
    for words in ("At capacity 50/1000. The limit costs", "Which rows have a place.", "What can be won.",
                  "At other capacities", "If a false positive costs more, or less"):  # fmt: skip
        assert words in text, words
    assert "At other thresholds" not in text
    most = re.split(r"\d+ more of", text[text.index("The metrics that say most") :])[0]
    for title in ("Capture of value at capacity", "Gain over ranking by score", "Utility of flagging by amount alone"):
        assert title in most
    # Where all rows are alike, the page is that of one task.
    rows = ["p,y,amount", *(f"{k % 10 / 10},{int(k % 7 < 3)},4" for k in range(60))]
    (tmp_path / "alike.csv").write_text("\n".join(rows))
    assert decal("report", "alike.csv", *OWN, "-o", "s.html").code == 0
    assert "At other thresholds" in (tmp_path / "s.html").read_text()
