"""Gate and compare on rows of several classes: differences row by row, and every rule as for two classes."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.command import Decal

CLASSES = ("a", "b", "c")


def write(path: Path, seed: int = 0, rows: int = 300, models: str = "mn", only: str = "") -> Path:
    """Rows of three classes; m is calibrated, n is too sure of itself."""
    rng = np.random.default_rng(seed)
    m = rng.dirichlet(np.full(3, 0.8), rows)
    n = m**2 / (m**2).sum(axis=1, keepdims=True)
    label = [CLASSES[rng.choice(3, p=each)] for each in m]
    score = {"m": m, "n": n}
    names = [name for name in models if name in (only or models)]
    head = ["id", "y", "g", *(f"{name}:{c}" for name in names for c in CLASSES)]
    lines = [
        [str(k), label[k], "uv"[k % 2], *(repr(float(p)) for name in names for p in score[name][k])]
        for k in range(rows)
    ]
    path.write_text("\n".join(",".join(line) for line in [head, *lines]) + "\n")
    return path


def test_the_command_compares_in_words_and_as_data(decal: Decal, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv")
    line = ("compare", path, "--proba", "m:*", "--proba", "n:*", "--abstain", ".3", "--group", "g")
    ran = decal(*line, COLUMNS="100")
    assert ran.code == 0, ran.err
    assert "the two take different actions" in ran.out and "Thresholds" not in ran.out and "Splice" not in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100
    document = decal.json(*line)
    contests = document["comparison"]["contests"]
    assert [contest["group"] for contest in contests] == [None, "u", "v"]
    assert contests[0]["thresholds"] is None and contests[0]["positives"] is None
    for option in (("--plot", "-"), ("--write-splice", str(tmp_path / "s.csv"))):
        assert "for scores of two classes" in decal(*line, *option).err


def test_two_files_join_on_ids(decal: Decal, tmp_path: Path) -> None:
    both = write(tmp_path / "both.csv")
    one, other = write(tmp_path / "one.csv", only="m"), write(tmp_path / "other.csv", only="n")
    rows = other.read_text().splitlines()
    other.write_text("\n".join([rows[0], *rows[:0:-1]]) + "\n")
    split = decal("compare", one, other, "--id", "id", "--proba", "m:*", "--proba", "n:*", "--abstain", ".3",
                  "-f", "json")  # fmt: skip
    whole = decal("compare", both, "--proba", "m:*", "--proba", "n:*", "--abstain", ".3", "-f", "json")
    assert split.code == 0, split.err
    metrics = [json.loads(ran.out)["comparison"]["contests"][0]["metrics"] for ran in (split, whole)]
    # Rows come in another order, so that sums may differ in their last digits.
    for key, of_split in metrics[0].items():
        of_whole = metrics[1][key]
        assert [of_split[side] for side in "ab"] == pytest.approx([of_whole[side] for side in "ab"], nan_ok=True), key
        assert of_split["difference"]["interval"] == pytest.approx(of_whole["difference"]["interval"]), key


RULES = {
    "brier<=1.2": 0,
    "upper(delta(expected_utility))<=0.05": 0,
    "expected_utility@group=u>=0.99": 1,
    "max(ece_top)<=0.9": 0,
    "positives>=3": 2,
    "grouping_loss<=.1": 2,
}


@pytest.mark.parametrize("rule", RULES)
def test_a_gate_judges_rules_on_several_classes(decal: Decal, tmp_path: Path, rule: str) -> None:
    path = write(tmp_path / "rows.csv")
    ran = decal("gate", path, "--proba", "m:*", "--proba", "n:*", "--abstain", ".3", "--group", "g", "-r", rule)
    assert ran.code == RULES[rule], ran.out + ran.err


def test_a_bound_that_nothing_can_pass_is_refused(decal: Decal, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv")
    ran = decal("gate", path, "--proba", "m:*", "--abstain", ".3", "-r", "brier<=2.1")
    assert ran.code == 2 and "lies from 0 to 2" in ran.err
    ran = decal("gate", path, "--proba", "m:*", "--abstain", ".3", "-r", "swap_regret<=1.1")
    assert ran.code == 2 and "lies from 0 to 1" in ran.err


@pytest.mark.usefixtures("undrawn")
def test_a_page_for_people_holds_advice_classes_and_pictures(decal: Decal, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv")
    ran = decal("report", path, "--proba", "m:*", "--proba", "n:*", "--abstain", ".3", "-o", tmp_path / "page.html")
    assert ran.code == 0, ran.err
    page = (tmp_path / "page.html").read_text()
    assert "Classes, and the actions taken for them" in page and "best constant action" in page
    for title in ("What can be won", "What is done for each class", "Reliability of each class"):
        assert all(page.count(f"{title}, {model}.") == 1 for model in "mn"), title
    assert page.count("Errors among the surest rows.") == 1 and page.count("<img") == 7
    assert "t* =" not in page and "the right class is worth 1, a wrong one 0, abstain 0.7." in page


@pytest.mark.usefixtures("undrawn")
def test_a_page_of_three_actions_holds_what_is_done(decal: Decal, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    score = rng.random(200)
    lines = [f"{p!r},{int(rng.random() < p)}" for p in score.tolist()]
    (tmp_path / "rows.csv").write_text("\n".join(["p,y", *lines]) + "\n")
    utility = "wait,0,-20;test,-2,-3;treat,-5,-1"
    ran = decal("report", tmp_path / "rows.csv", "-s", "p", "--utility", utility, "-o", tmp_path / "page.html")
    assert ran.code == 0, ran.err
    page = (tmp_path / "page.html").read_text()
    label = np.array([int(line[-1]) for line in lines])
    taken = np.searchsorted([2 / 19, 0.6], score, side="right")
    assert "actions taken, by label: rows" in page and "your thresholds, t* = 0.1053, 0.6" in page
    assert f">{int(((taken == 1) & (label == 0)).sum())}</td>" in page


def test_a_report_on_several_classes_is_a_baseline(decal: Decal, tmp_path: Path) -> None:
    path, report = write(tmp_path / "rows.csv"), tmp_path / "report.json"
    line = (path, "--proba", "m:*", "--abstain", ".3")
    assert decal("evaluate", *line, "-o", report).code == 0
    rules = ("-r", "brier<=baseline+0.001", "-r", "expected_utility>=baseline-0.001")
    ran = decal("gate", *line, *rules, "--baseline", report)
    assert ran.code == 0, ran.out + ran.err
    ran = decal("gate", path, "--proba", "m:*", "--abstain", ".2", *rules, "--baseline", report)
    assert ran.code == 2 and "the tasks differ" in ran.out
