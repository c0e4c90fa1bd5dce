"""Rows of several classes on the command line: what is printed, what is found by itself, and what is refused."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decal_cli.analysis.evaluate import all_choices
from tests.helpers.command import FIXTURES, Decal, valid_json


def write(path: Path, header: str, *lines: str) -> Path:
    path.write_text("\n".join((header, *lines)) + "\n")
    return path


SOUND = ("y,m:a,m:b,m:c", "a,.5,.3,.2", "b,.2,.5,.3", "c,.1,.2,.7")


def test_the_command_prints_classes_and_actions(decal: Decal, tmp_path: Path) -> None:
    path = write(tmp_path / "sound.csv", *SOUND)
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
    return write(path, ",".join(("y", *names)), *lines)


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
    path = write(tmp_path / "gaps.csv", *SOUND[:3], "a,.5,,.5", ",.2,.3,.5", "b,.2999,.4,.3")
    ran = decal("evaluate", path, "--proba", "m:*", "--missing", "drop", "-f", "json", "--no-intervals")
    document = valid_json(ran.out)
    assert document["rows"] == 3 and document["dropped"] == 2
    assert "no row has class c" in document["notes"][0]
    assert any("divided by their sum" in note for note in document["notes"])


@pytest.mark.parametrize("verb", ["recommend", "sweep"])
def test_a_task_of_classes_is_not_for_a_score(decal: Decal, verb: str) -> None:
    ran = decal(verb, FIXTURES / "binary_n2000.csv", "-s", "p", "-y", "y", "--abstain", ".3")
    assert ran.code == 2 and "of two" in ran.err


def test_a_task_of_classes_needs_classes(decal: Decal) -> None:
    ran = decal("evaluate", FIXTURES / "binary_n2000.csv", "-s", "p", "-y", "y", "--abstain", ".3")
    assert ran.code == 2 and "the scores are of two" in ran.err


def test_77_classes_fit_on_100_columns(decal: Decal, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    score = rng.dirichlet(np.ones(77), 200)
    names = [f"a_rather_long_name_of_class_{k}" for k in range(77)]
    label = [names[k] for k in score.argmax(axis=1)]
    lines = [",".join([name, *map(repr, row)]) for name, row in zip(label, score.tolist(), strict=True)]
    path = write(tmp_path / "many.csv", ",".join(["y", *(f"lr:{name}" for name in names)]), *lines)
    ran = decal("evaluate", path, "--proba", "lr:*", "--abstain", ".9", COLUMNS="100")
    assert ran.code == 0, ran.err
    assert max(map(len, ran.out.splitlines())) <= 100
    assert "cells of action and class that lose most" in ran.out and "the 20 of 77 with the lowest recall" in ran.out
    decal.json("evaluate", path, "--proba", "lr:*")
