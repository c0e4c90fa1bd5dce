"""Several classes as a user meets them: their columns, and compare; answers.txt has what the lines say."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binomtest, t

from decal_cli.analysis.evaluate import all_choices
from tests.helpers.command import Decal, refusal, valid_json

CLASSES = ("a", "b", "c")


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


def test_a_table_of_all_cells_that_lose_says_no_number_of_others(decal: Decal, tmp_path: Path) -> None:
    """Each class is half sure of in three rows, so that abstaining in all of them loses 0.3 a row."""
    names, score = "abcdefghij", 0.5 * np.eye(10) + 0.05
    lines = [",".join([name, *map(str, row)]) for name, row in zip(names, score, strict=True)]
    heads = ",".join(("y", *(f"m:{name}" for name in names)))
    (tmp_path / "p.csv").write_text("\n".join([heads, *lines * 3]) + "\n")
    out = decal("evaluate", "p.csv", "--proba", "m:*", "--abstain", ".3").out
    assert "the 10 cells of action and class that lose most\n" in out
    assert re.search(r"class +rows +adds to the loss per 1,000 rows\nabstain +a +3 +30\n", out), out


def test_the_brier_score_of_two_classes_is_said_of_one_too(decal: Decal, tmp_path: Path) -> None:
    score, label = np.arange(1, 41) / 50, np.arange(40) % 3 == 0
    lines = [f"{p:.2f},{1 - p:.2f},{'ab'[int(y)]}" for p, y in zip(score, label, strict=True)]
    (tmp_path / "p.csv").write_text("\n".join(["m:b,m:a,y", *lines]) + "\n")
    both, one = 2 * np.mean((score - label) ** 2), np.mean((score - label) ** 2)
    for more in ((), ("-m", "brier")):
        out = decal("evaluate", "p.csv", "--proba", "m:*", *more).out
        assert f"Brier score is the sum over both classes; that of one class is {one:.4f}" in " ".join(out.split())
    assert decal.json("evaluate", "p.csv", "--proba", "m:*")["metrics"]["brier"]["value"] == pytest.approx(both)


def test_a_report_says_which_levels_are_taken(decal: Decal, tmp_path: Path) -> None:
    """Two scores of 30 rows each, and a score of 60 levels; of three classes as well."""
    rng, two = np.random.default_rng(2), np.arange(60) % 2
    few, many = np.where(two, 0.7, 0.2), np.arange(1, 61) / 61
    heads, rows = "y,k,few,many,f:a,f:b,f:c,m:a,m:b,m:c", []
    for k in range(60):
        rest, wide = (1 - few[k]) / 2, rng.dirichlet(np.ones(3))
        numbers = (few[k], many[k], few[k], rest, rest, *wide)
        rows.append(",".join([str(int(rng.random() < few[k])), CLASSES[k % 3], *map(str, numbers)]))
    (tmp_path / "p.csv").write_text("\n".join([heads, *rows]) + "\n")
    of_scores = ("evaluate", "p.csv", "-y", "y", "-s", "few", "-s", "many", "-t", ".5", "-m", "cdl", "-m", "cfdl")
    of_both = "levels=auto of cdl, cfdl on few: exact levels\nlevels=auto of cdl, cfdl on many: 15 equal-mass bins\n"
    assert of_both in decal(*of_scores).out and of_both in decal("compare", *of_scores[1:]).out
    of_each = [each["metrics"]["cdl"]["levels"] for each in decal.json(*of_scores)["reports"]]
    assert of_each == ["exact levels", "15 equal-mass bins"]
    for name, of_three in (("f", "exact levels"), ("m", "up to 32 cells")):
        out = decal("evaluate", "p.csv", "-y", "k", "--proba", f"{name}:*", "-m", "cal_l1", "-m", "cdl").out
        assert f"levels=auto of cal_l1, cdl: {of_three}\n" in out
    assert "levels=auto" not in decal("evaluate", "p.csv", "-y", "y", "-s", "few", "-m", "cdl(levels=exact)").out


@pytest.mark.parametrize("more", [(), ("--weight", "w"), ("--prevalence", "a=0.2,b=0.5", "--keep-scores")])
def test_models_that_are_right_on_the_same_rows_may_differ_on_others(
    decal: Decal, tmp_path: Path, more: tuple[str, ...]
) -> None:
    rng = np.random.default_rng(4)
    m = rng.dirichlet(np.full(3, 0.8), 300)
    score = {"m": m, "n": m**2 / (m**2).sum(axis=1, keepdims=True)}
    columns = {f"{name}:{'abc'[k]}": p[:, k] for name, p in score.items() for k in range(3)}
    columns |= {"y": ["abc"[rng.choice(3, p=each)] for each in m], "w": rng.uniform(0.5, 2, 300)}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    line = ("compare", "rows.parquet", "--proba", "m:*", "--proba", "n:*", "--utility", "1,0,0;0,1,0;0,0,1", *more)
    found = decal.json(*line, "-m", "accuracy", "-m", "expected_utility")["comparison"]["contests"][0]
    right, worth = (found["metrics"][key]["difference"] for key in ("accuracy", "expected_utility"))
    assert right["value"] == worth["value"] == 0
    assert right["interval"] == pytest.approx(worth["interval"]) and right["interval"][1] > 0
    assert "Different actions" not in decal(*line).out


def random_file(path: Path, names: tuple[str, str, str], rows: int = 60) -> Path:
    rng = np.random.default_rng(2)
    score = rng.dirichlet(np.ones(3), rows)
    lines = [",".join(["abc"[rng.choice(3, p=p)], *map(repr, p.tolist())]) for p in score]
    path.write_text("\n".join([",".join(("y", *names)), *lines]) + "\n")
    return path


def test_a_list_in_each_row_is_what_columns_are(decal: Decal, tmp_path: Path) -> None:
    path = random_file(tmp_path / "p.csv", ("m:a", "m:b", "m:c"))
    lines = [line.split(",") for line in path.read_text().splitlines()[1:]]
    score = [[float(value) for value in line[1:]] for line in lines]

    def as_list(rows: list[list[float] | None], name: str = "list") -> Path:
        table = pa.table({"y": [line[0] for line in lines], "m": pa.array(rows, pa.list_(pa.float64()))})
        pq.write_table(table, tmp_path / f"{name}.parquet")
        return tmp_path / f"{name}.parquet"

    task = ("--abstain", ".3", "--no-intervals", "-f", "json")
    one = decal("evaluate", path, "--proba", "m:*", *task)
    other = decal("evaluate", as_list([*score]), "--proba", "m", "--classes", "a,b,c", *task)
    assert other.code == 0, other.err
    assert valid_json(one.out)["metrics"] == valid_json(other.out)["metrics"]
    listed, named, off = ("--proba", "m"), ("--classes", "a,b,c"), tmp_path / "off.csv"
    off.write_text(path.read_text().rstrip().rpartition(",")[0] + ",1.5\n")
    for line, words in (
        (("evaluate", as_list([*score[:-1], score[0][:2]], "short"), *listed, *named), "row 60: holds 2 numbers, and"),
        (("evaluate", as_list([*score[:-1], None], "gap"), *listed, *named), "probability missing in 1 of 60 rows"),
        (("evaluate", off, "--proba", "m:*"), "'m:c', row 60 (line 61): probability 1.5"),
        (("evaluate", path, "--proba", "m:a", *named), "holds no lists"),
        (("evaluate", as_list([*score]), *listed, "--classes", "a,b,b"), "are not different names"),
        (("fit", "temperature", as_list([*score]), *listed, *named, "-o", "m"), "takes a column for each class"),
    ):
        assert words in refusal(decal(*line))


def test_two_named_classes_are_classes_whatever_the_task_is_of(decal: Decal, tmp_path: Path) -> None:
    """A task of two actions on two probabilities a row: rows by action are shown, and a prevalence is taken."""
    path, rng = tmp_path / "two.csv", np.random.default_rng(0)
    score = rng.dirichlet(np.ones(2), 200).round(4)
    lines = [f"{'ab'[int(rng.random() < b)]},{1 - b!r},{b!r}" for b in score[:, 1].tolist()]
    path.write_text("\n".join(["y,m:a,m:b", *lines]) + "\n")
    asked = ("recommend", path, "--proba", "m:*", "--utility", "0,-1;-2,0")
    for more in ((), ("--prevalence", "a=.2,b=.8")):
        assert "takes 0  takes 1" in decal(*asked, *more).out


def test_cells_say_what_they_lose(decal: Decal, tmp_path: Path) -> None:
    path = random_file(tmp_path / "p.csv", ("m:a", "m:b", "m:c"))
    one = decal.json("evaluate", path, "--proba", "m:*", "--no-intervals", "--cost-matrix", "keep,0,5,9;drop,1,0,4")
    done = one["by_class"]["decisions"]
    best = np.array(done["utility"]).max(axis=0)
    lost = np.array(done["rows"]) * (best - np.array(done["utility"])) / 60
    assert np.array(done["loss"]) == pytest.approx(lost, abs=1e-12)
    constant = one["metrics"]["expected_utility"]["value"] + np.array(done["loss"]).sum()
    rates = np.array(done["rows"]).sum(axis=0) / 60
    assert constant == pytest.approx(rates @ best, abs=1e-12)
    assert one["metrics"].keys() == {spec.name for spec in all_choices(of_classes=True)}


@pytest.mark.ci
def test_77_classes_fit_on_100_columns(decal: Decal, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    score = rng.dirichlet(np.ones(77), 200)
    names = [f"a_rather_long_name_of_class_{k}" for k in range(77)]
    label = [names[k] for k in score.argmax(axis=1)]
    lines = [",".join([name, *map(repr, row)]) for name, row in zip(label, score.tolist(), strict=True)]
    path = tmp_path / "many.csv"
    path.write_text("\n".join([",".join(["y", *(f"lr:{name}" for name in names)]), *lines]))
    ran = decal("evaluate", path, "--proba", "lr:*", "--abstain", ".9", COLUMNS="100")
    assert ran.code == 0, ran.err
    assert max(map(len, ran.out.splitlines())) <= 100
    assert "cells of action and class that lose most" in ran.out and "the 20 of 77 with the lowest recall" in ran.out
    decal.json("evaluate", path, "--proba", "lr:*")


def test_advice_names_the_best_constant_action(decal: Decal, tmp_path: Path) -> None:
    """Of ten classes no column says how many rows get each action."""
    names, score = "abcdefghij", 0.5 * np.eye(10) + 0.05
    lines = [",".join([name, *map(str, row)]) for name, row in zip(names, score, strict=True)]
    heads = ",".join(("y", *(f"m:{name}" for name in names)))
    (tmp_path / "rows.csv").write_text("\n".join((heads, *lines * 20, *lines[3:4] * 20)) + "\n")
    assert "best constant action: d" in decal("recommend", "rows.csv", "--proba", "m:*", "--abstain", "0.95").out
