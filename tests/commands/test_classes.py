"""Several classes as a user meets them: their columns, gate and compare."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binomtest, t

from decal_cli.analysis.evaluate import all_choices
from tests.helpers.command import Decal, valid_json

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


def test_different_actions_are_counted_by_who_is_worth_more(decal: Decal, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    m = rng.dirichlet(np.full(3, 0.8), 300)
    score = {"m": m, "n": m**2 / (m**2).sum(axis=1, keepdims=True)}
    label = np.array([rng.choice(3, p=each) for each in m])
    weight, cluster = rng.uniform(0.5, 2, 300), np.arange(300) // 5
    columns = {f"{name}:{CLASSES[k]}": p[:, k] for name, p in score.items() for k in range(3)}
    names = [CLASSES[each] for each in label]
    pq.write_table(pa.table({"y": names, "w": weight, "c": cluster, **columns}), tmp_path / "rows.parquet")
    acts = [np.where(p.max(axis=1) < 0.7, 3, p.argmax(axis=1)) for p in score.values()]
    worth = [np.where(act == 3, 0.7, act == label) for act in acts]
    apart, lead = acts[0] != acts[1], np.sign(worth[0] - worth[1])
    line = ("compare", "rows.parquet", "--proba", "m:*", "--proba", "n:*", "--abstain", ".3", "-m", "accuracy")
    by_weight = weight / weight.mean()  # which adds up to the rows
    for counted, more in ((np.ones(300), ()), (by_weight, ("--weight", "w", "--cluster", "c"))):
        found = decal.json(*line, *more)["comparison"]["contests"][0]["disagreements"]
        sides = [counted[apart & (lead == side)].sum() for side in (1, -1, 0)]
        assert [found[key] for key in ("a_better", "b_better", "same")] == pytest.approx(sides)
        gains = (counted * (worth[1] - worth[0]))[apart]
        assert sum(pair["gain"] for pair in found["pairs"]) == pytest.approx(gains.sum(), abs=1e-9)
        expected = binomtest(round(sides[0]), round(sides[0] + sides[1])).pvalue
        if more:
            leads, size = np.bincount(cluster[apart], (counted * lead)[apart]), np.bincount(cluster, counted)
            freedom = size.sum() ** 2 / (size @ size) - 1
            expected = 2 * t.cdf(-abs(leads.sum()) / np.sqrt(leads @ leads), freedom)
        assert found["p_value"] == pytest.approx(expected)


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


def write_classes(path: Path, header: str, *lines: str) -> Path:
    path.write_text("\n".join((header, *lines)) + "\n")
    return path


SOUND = ("y,m:a,m:b,m:c", "a,.5,.3,.2", "b,.2,.5,.3", "c,.1,.2,.7")


def test_the_command_prints_classes_and_actions(decal: Decal, tmp_path: Path) -> None:
    path = write_classes(tmp_path / "sound.csv", *SOUND)
    ran = decal("evaluate", path, "--proba", "m:*", "--label", "y", "--abstain", ".45", "--no-intervals")
    assert ran.code == 0, ran.err
    assert "the action worth most by the probabilities, of: a, b, c, abstain" in ran.out
    assert re.search(r"^as it is +700 ", ran.out, re.MULTILINE)  # 1,000 (.55 + .55 + 1) / 3
    ran = decal("evaluate", path, "--proba", "m:*", "--utility", "x,c,a,b;keep,2,0,0;drop,0,1,1", "-f", "json")
    document = valid_json(ran.out)
    assert document["class_task"]["utility"] == [[0, 0, 2], [1, 1, 0]]
    assert document["by_class"]["decisions"]["rows"] == [[0, 0, 1], [1, 1, 0]]
    assert [each["right"] for each in document["by_class"]["classes"]] == [1, 1, 1]
    assert document["metrics"].keys() == {spec.name for spec in all_choices(of_classes=True)}


def random_file(path: Path, names: tuple[str, str, str], rows: int = 60) -> Path:
    rng = np.random.default_rng(2)
    score = rng.dirichlet(np.ones(3), rows)
    lines = [",".join(["abc"[rng.choice(3, p=p)], *map(repr, p.tolist())]) for p in score]
    return write_classes(path, ",".join(("y", *names)), *lines)


def test_columns_called_by_their_classes_are_found_where_they_match_the_labels(decal: Decal, tmp_path: Path) -> None:
    path = random_file(tmp_path / "p.csv", ("p_a", "p_b", "p_c"))
    ran = decal("evaluate", path, "--abstain", ".3", "--no-intervals")
    assert ran.code == 0 and "proba p_a, p_b, p_c (found by its usual name)" in ran.out
    ran = decal("evaluate", random_file(tmp_path / "q.csv", ("p_a", "p_b", "p_d")), "--no-intervals")
    assert ran.code == 2 and "3 columns could be the score" in ran.err


def test_a_list_in_each_row_is_what_columns_are(decal: Decal, tmp_path: Path) -> None:
    path = random_file(tmp_path / "p.csv", ("m:a", "m:b", "m:c"))
    lines = [line.split(",") for line in path.read_text().splitlines()[1:]]
    score = [[float(value) for value in line[1:]] for line in lines]

    def as_list(rows: list[list[float] | None]) -> Path:
        table = pa.table({"y": [line[0] for line in lines], "m": pa.array(rows, pa.list_(pa.float64()))})
        pq.write_table(table, tmp_path / "list.parquet")
        return tmp_path / "list.parquet"

    task = ("--abstain", ".3", "--no-intervals", "-f", "json")
    one = decal("evaluate", path, "--proba", "m:*", *task)
    other = decal("evaluate", as_list([*score]), "--proba", "m", "--classes", "a,b,c", *task)
    assert other.code == 0, other.err
    assert valid_json(one.out)["metrics"] == valid_json(other.out)["metrics"]
    ran = decal("evaluate", as_list([*score[:-1], score[0][:2]]), "--proba", "m", "--classes", "a,b,c")
    assert ran.code == 2 and "row 60: holds 2 numbers, and --classes names 3" in ran.err
    ran = decal("evaluate", as_list([*score[:-1], None]), "--proba", "m", "--classes", "a,b,c")
    assert ran.code == 2 and "probability missing in 1 of 60 rows" in ran.err
    ran = decal("evaluate", path, "--proba", "m:a", "--classes", "a,b,c")
    assert ran.code == 2 and "holds no lists" in ran.err
    ran = decal("evaluate", as_list([*score]), "--proba", "m", "--classes", "a,b,b")
    assert ran.code == 2 and "are not different names" in ran.err
    ran = decal("fit", "temperature", as_list([*score]), "--proba", "m", "--classes", "a,b,c", "-o", "m.json")
    assert ran.code == 2 and "takes a column for each class" in ran.err


def test_costs_are_utilities_turned_and_cells_say_what_they_lose(decal: Decal, tmp_path: Path) -> None:
    path = random_file(tmp_path / "p.csv", ("m:a", "m:b", "m:c"))
    line = ("evaluate", path, "--proba", "m:*", "--no-intervals")
    costs = decal(*line, "--cost-matrix", "keep,0,5,9;drop,1,0,4", "-f", "json")
    worth = decal(*line, "--utility", "keep,0,-5,-9;drop,-1,0,-4", "-f", "json")
    one, other = valid_json(costs.out), valid_json(worth.out)
    assert one["metrics"] == other["metrics"] and one["by_class"] == other["by_class"]
    done = one["by_class"]["decisions"]
    best = np.array(done["utility"]).max(axis=0)
    lost = np.array(done["rows"]) * (best - np.array(done["utility"])) / 60
    assert np.array(done["loss"]) == pytest.approx(lost, abs=1e-12)
    constant = one["metrics"]["expected_utility"]["value"] + np.array(done["loss"]).sum()
    rates = np.array(done["rows"]).sum(axis=0) / 60
    assert constant == pytest.approx(rates @ best, abs=1e-12)
    table = decal(*line, "--cost-matrix", "keep,0,5,9;drop,1,0,4", "-f", "csv").out
    assert '"rows[keep, a]"' in table and '"loss[drop, c]"' in table


def test_missing_rows_are_dropped_and_unseen_classes_are_said(decal: Decal, tmp_path: Path) -> None:
    path = write_classes(tmp_path / "gaps.csv", *SOUND[:3], "a,.5,,.5", ",.2,.3,.5", "b,.2999,.4,.3")
    ran = decal("evaluate", path, "--proba", "m:*", "--missing", "drop", "-f", "json", "--no-intervals")
    document = valid_json(ran.out)
    assert document["rows"] == 3 and document["dropped"] == 2
    assert "no row has class c" in document["notes"][0]
    assert any("divided by their sum" in note for note in document["notes"])


def test_77_classes_fit_on_100_columns(decal: Decal, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    score = rng.dirichlet(np.ones(77), 200)
    names = [f"a_rather_long_name_of_class_{k}" for k in range(77)]
    label = [names[k] for k in score.argmax(axis=1)]
    lines = [",".join([name, *map(repr, row)]) for name, row in zip(label, score.tolist(), strict=True)]
    path = write_classes(tmp_path / "many.csv", ",".join(["y", *(f"lr:{name}" for name in names)]), *lines)
    ran = decal("evaluate", path, "--proba", "lr:*", "--abstain", ".9", COLUMNS="100")
    assert ran.code == 0, ran.err
    assert max(map(len, ran.out.splitlines())) <= 100
    assert "cells of action and class that lose most" in ran.out and "the 20 of 77 with the lowest recall" in ran.out
    decal.json("evaluate", path, "--proba", "lr:*")


def test_a_gate_judges_rules_on_several_classes(decal: Decal, tmp_path: Path) -> None:
    rules = {
        "brier<=1.2": True,
        "upper(delta(expected_utility))<=0.05": True,
        "expected_utility@group=u>=0.99": False,
        "max(ece_top)<=0.9": True,
    }
    words = [word for rule in rules for word in ("-r", rule)]
    models = ("--proba", "m:*", "--proba", "n:*", "--abstain", ".3", "--group", "g")
    gates = decal.json("gate", write(tmp_path / "rows.csv"), *models, *words)["gates"]
    assert {rule: all(gate["passed"] for gate in gates if gate["rule"] == rule) for rule in rules} == rules
    assert {gate["passed"] for gate in gates} == {True, False}
