"""A method fitted: what is said of the rows it is judged on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from decal_cli.analysis.fit import shared_rows
from decal_cli.data import Columns, read
from tests.helpers.command import FIXTURES, Decal, refusal

FIT, NEW = FIXTURES / "fox_news_fit.parquet", FIXTURES / "fox_news_new.parquet"
STORY = ("--score", "p_hatesonar", "--label", "y", "--features", "x*", "--threshold", "0.3")
COLUMNS = Columns(score=("p_hatesonar",), label="y", features=("x*",))


def mixed(path: Path, seen: int, unseen: int) -> Path:
    """Some training rows and some others, shuffled."""
    table = pa.concat_tables([pq.read_table(FIT).slice(0, seen), pq.read_table(NEW).slice(0, unseen)])
    pq.write_table(table.take(np.random.default_rng(0).permutation(len(table))), path)
    return path


def test_training_rows_in_a_test_file_are_counted(tmp_path: Path) -> None:
    training = read([str(FIT)], COLUMNS).models[0].rows
    for seen, unseen in ((0, 50), (30, 20), (50, 0)):
        test = read([str(mixed(tmp_path / "test.parquet", seen, unseen))], COLUMNS).models[0].rows
        assert shared_rows(training, test) == seen


def test_equal_rows_of_few_scores_say_nothing() -> None:
    few = read([str(FIXTURES / "ties_edges_n300.csv")], Columns(score=("p",), label="y")).models[0].rows
    assert shared_rows(few, few) is None


def test_the_figures_say_which_rows_they_are_of(decal: Decal, tmp_path: Path) -> None:
    for seen, words in (
        (0, "on the 200 rows of the test file, which the model was not fitted to:"),
        (120, "200 rows of the test file; 120 of them are in the training file too, so these figures are optimistic"),
    ):
        test = mixed(tmp_path / "test.parquet", seen, 200 - seen)
        done = decal("fit", "platt", FIT, *STORY, "-o", "m.json", "--force", "--test", test)
        assert done.code == 0 and words in " ".join(done.out.split())


def test_rows_left_out_are_not_counted_as_judged(decal: Decal, tmp_path: Path) -> None:
    table = pacsv.read_csv(FIXTURES / "binary_n2000.csv")
    score = table["p"].to_numpy().copy()
    score[:100] = np.nan
    pq.write_table(table.set_column(table.column_names.index("p"), "p", pa.array(score)), tmp_path / "gaps.parquet")
    done = decal("fit", "platt", "gaps.parquet", "--score", "p", "--label", "y", "--missing", "drop", "-o", "m.json")
    assert "fitted to 1,900 rows" in done.out and "folds of the 1,900 rows" in " ".join(done.out.split())


class TestAuto:
    def test_costs_count_as_they_do_for_recommend(self, decal: Decal) -> None:
        cheap = decal("fit", "auto", FIT, *STORY, "-o", "m.json", "--cost", "0.001")
        assert cheap.code == 0 and "(blend), fitted to" in cheap.out
        dear = decal("fit", "auto", FIT, *STORY, "-o", "n.json", "--cost", "0.5")
        assert dear.code == 2 and "the advice is: Do not post-train" in refusal(dear)

    def test_where_the_advice_cannot_tell_it_says_what_it_leans_to(self, decal: Decal, tmp_path: Path) -> None:
        pq.write_table(pq.read_table(FIT).slice(0, 300), tmp_path / "few.parquet")
        done = decal("fit", "auto", "few.parquet", *STORY, "-o", "m.json")
        assert done.code == 2 and "cannot tell yet" in refusal(done) and "leans to" in done.err

    def test_of_few_rows_it_takes_the_curve_that_predicts_best(self, decal: Decal, tmp_path: Path) -> None:
        rng = np.random.default_rng(4)
        logit = rng.normal(1.5, 2.0, 400)
        score, label = 1 / (1 + np.exp(-logit)), rng.random(400) < 1 / (1 + np.exp(1.2 - 0.5 * logit))
        named = ("-s", "p", "-y", "y", "-t", "0.5")
        for rows, method in ((400, "platt"), (1200, "isotonic")):
            repeated = np.tile(np.arange(400), rows // 400)
            table = pa.table({"p": score[repeated], "y": label[repeated].astype(int)})
            pq.write_table(table, tmp_path / f"{rows}.parquet")
            done = decal("fit", "auto", f"{rows}.parquet", *named, "-o", f"{rows}.json", "-f", "json")
            fit = json.loads(done.out)["fit"]
            assert fit["method"] == method and ("why" in fit) == (rows == 400)
            advice = decal("recommend", f"{rows}.parquet", *named).out
            assert ("takes a curve with few parameters" in " ".join(advice.split())) == (rows == 400)
        text = " ".join(decal("fit", "auto", "400.parquet", *named, "-o", "again.json").out.split())
        assert "With few rows, platt has the lowest Brier score on held-out rows" in text

    def test_the_method_comes_before_the_files(self, decal: Decal) -> None:
        line = refusal(decal("fit", FIT, *STORY, "-o", "m.json"))
        assert "is a file, and the method comes first; name one: decal fit isotonic" in line


def test_no_result_takes_the_place_of_what_it_is_made_from(decal: Decal, tmp_path: Path) -> None:
    for arguments in (
        ("evaluate", "data.csv", *STORY, "-o", "data.csv"),
        ("recommend", "data.csv", *STORY, "-o", "./data.csv"),
        ("sweep", "data.parquet", *STORY[:4], "-o", "data.parquet"),
        ("report", "data.html", *STORY, "-o", "data.html"),
        ("fit", "platt", "data.parquet", *STORY, "-o", "data.parquet", "--force"),
        ("fit", "platt", NEW, *STORY, "--test", "data.parquet", "-o", "data.parquet", "--force"),
    ):
        shutil.copy(FIT, tmp_path / "data.parquet")
        for name in ("data.csv", "data.html"):
            pacsv.write_csv(pq.read_table(FIT), tmp_path / name)
        before = {path.name: path.read_bytes() for path in tmp_path.glob("data.*")}
        done = decal(*arguments)
        assert done.code == 2 and "is one of the files to be read" in refusal(done), arguments
        assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_a_model_goes_to_a_file(decal: Decal) -> None:
    for name in ("-", ""):
        done = decal("fit", "platt", FIT, *STORY, "-o", name)
        assert done.code == 2 and "is not the name of a file" in refusal(done)
