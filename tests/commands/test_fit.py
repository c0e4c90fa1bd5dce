"""`decal fit` and `decal apply` as a user meets them."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from decal_cli.learn.methods import METHODS
from decal_cli.learn.model_file import from_text, to_text
from tests.helpers.command import BINARY, Decal, refusal, start_installed, valid_json
from tests.helpers.fitted import P_AND_Y, PROFANITY, fit_models, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Halves of the shipped data, and models fitted to them."""
    folder = tmp_path_factory.mktemp("fit")
    fit_models(folder)
    return folder


def test_fit_apply_evaluate_is_one_story(decal: Decal, folder: Path, tmp_path: Path) -> None:
    fitted = decal("fit", "glar", folder / "train.parquet", *PROFANITY, "-o", "glar.json")
    assert fitted.code == 0, fitted.err
    for words in (
        "GLAR (glar), fitted to 759 rows, written to glar.json",
        "cross-fitted in 5 folds of the 759 rows",
        "Expected utility per 1,000 decisions",
        "gain ",
        "Calibration regret",
        "Next: decal apply glar.json NEW -o OUT adds p_profanity_glar to the rows of NEW.",
    ):
        assert words in fitted.text, words
    applied = decal("apply", "glar.json", folder / "other.parquet", "-o", "out.parquet")
    assert applied.code == 0, applied.err
    assert applied.out == ""
    assert applied.err == "wrote out.parquet: 760 rows; added p_profanity_glar (method: glar)\n"
    before, after = pq.read_table(folder / "other.parquet"), pq.read_table(tmp_path / "out.parquet")
    assert after.column_names == [*before.column_names, "p_profanity_glar"]
    assert after.drop(["p_profanity_glar"]).equals(before)

    def regrets(score: str) -> dict[str, float]:
        named = (
            "-s",
            score,
            "-y",
            "y",
            "-t",
            "0.3",
            "-m",
            "regret_calibration",
            "-m",
            "expected_utility",
            "-m",
            "brier",
        )
        report = decal.json("evaluate", "out.parquet", *named, "--no-intervals")
        return {key: result["value"] for key, result in report["metrics"].items()}

    old, new = regrets("p_profanity"), regrets("p_profanity_glar")
    assert new["regret_calibration"] < old["regret_calibration"]
    assert new["expected_utility"] > old["expected_utility"]
    assert new["brier"] < old["brier"]


class TestFit:
    def test_the_model_file_says_what_it_is_and_is_the_same_each_time(self, decal: Decal, folder: Path) -> None:
        decal("fit", "isotonic", BINARY, *P_AND_Y, "-o", folder / "again.json")
        text = (folder / "again.json").read_text()
        assert text == (folder / "isotonic.json").read_text()
        saved = from_text(text, "again.json")
        assert (saved.method, saved.score, saved.features, saved.task) == ("isotonic", "p", (), None)
        assert saved.fitted_on["rows"] == 2000
        assert to_text(saved) == text

    def test_json_is_valid(self, decal: Decal, folder: Path) -> None:
        named = (*P_AND_Y, "--threshold", "0.3", "--weight", "weight", "-f", "json", "--seed", "3")
        document = valid_json(decal("fit", "platt(on=p)", BINARY, *named, "-o", "platt.json").out)
        fit = document["fit"]
        assert fit["method"] == "platt(on=p)" and fit["kind"] == "recalibration"
        assert (fit["model_file"], fit["column"], fit["rows"]) == ("platt.json", "p_platt", 2000)
        assert fit["judged"] == "cross-fitted"
        low, high = fit["gain"]["interval"]
        assert low < fit["gain"]["value"] < high
        assert fit["gain"]["value"] == pytest.approx(fit["gain"]["after"] - fit["gain"]["before"])
        assert set(fit["metrics"]) == {"brier", "log_loss", "auc", "ece", "c_emp", "regret_calibration"}
        brier = fit["metrics"]["brier"]
        assert brier["difference"] == pytest.approx(brier["after"] - brier["before"])
        evaluated = decal.json("evaluate", BINARY, *P_AND_Y, "--weight", "weight", "-m", "brier")
        assert brier["before"] == pytest.approx(evaluated["metrics"]["brier"]["value"], abs=1e-12)

    def test_a_test_file_judges_in_place_of_folds(self, decal: Decal, folder: Path) -> None:
        files = (folder / "train.parquet", "--test", folder / "other.parquet")
        done = decal("fit", "isotonic", *files, *PROFANITY, "-o", "m.json", "-f", "json")
        document = valid_json(done.out)
        assert document["fit"]["judged"] == "test" and document["fit"]["rows"] == 759
        assert [item["rows"] for item in document["inputs"]] == [760]
        score = ("-s", "p_profanity", "-y", "y", "-m", "brier", "-f", "json")
        whole = valid_json(decal("evaluate", folder / "other.parquet", *score).out)
        assert document["fit"]["metrics"]["brier"]["before"] == whole["metrics"]["brier"]["value"]
        text = decal("fit", "isotonic", *files, *PROFANITY, "-o", "m2.json").out
        assert "on the 760 rows of the test file, which the model was not fitted to" in text

    def test_a_test_file_that_was_seen_is_refused(self, decal: Decal, tmp_path: Path) -> None:
        (tmp_path / "copy.csv").write_bytes(BINARY.read_bytes())
        line = refusal(decal("fit", "isotonic", BINARY, *P_AND_Y, "--test", "copy.csv", "-o", "m.json"))
        assert "--test copy.csv: holds the rows that the model is fitted to" in line

    def test_without_a_task_there_is_no_gain_and_no_regret(self, decal: Decal) -> None:
        document = decal.json("fit", "beta", BINARY, *P_AND_Y, "-o", "m.json")
        assert document["fit"]["gain"] is None and document["task"] is None
        assert set(document["fit"]["metrics"]) == {"brier", "log_loss", "auc", "ece", "c_emp"}

    def test_auto_is_what_recommend_advises(self, decal: Decal, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        score = rng.random(3000)
        pacsv.write_csv(pa.table({"p": score, "y": (rng.random(3000) < score**3).astype(int)}), tmp_path / "off.csv")
        named = ("off.csv", "-t", "0.5")
        advised = decal.json("recommend", *named)["recommendation"]["fit"]
        assert advised in METHODS
        done = decal("fit", "auto", *named, "-o", "m.json", "-f", "json")
        assert valid_json(done.out)["fit"]["method"] == advised, done.err

    def test_auto_says_where_there_is_nothing_to_fit(self, decal: Decal, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        score = rng.choice([0.02, 0.98], 4000)
        pacsv.write_csv(pa.table({"p": score, "y": (rng.random(4000) < score).astype(int)}), tmp_path / "good.csv")
        line = refusal(decal("fit", "auto", "good.csv", "-t", "0.5", "-o", "m.json"))
        assert "there is nothing to fit; the advice is: " in line
        assert not (tmp_path / "m.json").exists()
        assert "auto takes what `decal recommend` advises" in refusal(decal("fit", "auto", "good.csv", "-o", "m.json"))

    def test_the_place_of_the_model_is_looked_at_first(self, decal: Decal, tmp_path: Path) -> None:
        (tmp_path / "m.json").write_text("mine")
        line = refusal(decal("fit", "isotonic", "nowhere.csv", "-o", "m.json"))
        assert "m.json: is there already; add --force" in line
        assert (tmp_path / "m.json").read_text() == "mine"
        assert "there is no folder" in refusal(decal("fit", "isotonic", BINARY, *P_AND_Y, "-o", "no/m.json"))
        margins = decal("fit", "isotonic", BINARY, "--score", "x1", "--label", "y", "--margin", "-o", "margins.json")
        assert "give --logit" in refusal(margins) and not (tmp_path / "margins.json").exists()
        without = decal("fit", "isotonic", BINARY, *P_AND_Y)
        assert without.code == 2 and "--output" in without.err
        assert decal("fit", "isotonic", BINARY, *P_AND_Y, "-o", "m.json", "--force").code == 0
        from_text((tmp_path / "m.json").read_text(), "m.json")


class TestApply:
    def test_every_format_gives_the_same_scores(self, decal: Decal, folder: Path, tmp_path: Path) -> None:
        table = pacsv.read_csv(BINARY)
        pq.write_table(table, tmp_path / "new.parquet")
        (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
        scores_of = {}
        forms = {BINARY: "a.csv", "new.parquet": "b.csv", "new.jsonl": "c.parquet", "-": "d.parquet"}
        for source, out in forms.items():
            stdin = BINARY.read_bytes() if source == "-" else None
            done = decal("apply", folder / "isotonic.json", source, "-o", out, stdin=stdin)
            assert done.code == 0, done.err
            read = pacsv.read_csv if out.endswith("csv") else pq.read_table
            back = read(tmp_path / out)
            assert back.column_names == [*table.column_names, "p_isotonic"]
            assert back.select(table.column_names).to_pydict() == table.to_pydict(), (source, out)
            scores_of[source] = back["p_isotonic"].to_pylist()
        model = from_text((folder / "isotonic.json").read_text(), "").model
        expected = np.interp(table["p"].to_numpy(), model.at, model.value).tolist()
        assert all(scores == expected for scores in scores_of.values())

    @pytest.mark.parametrize("form", ["csv", "parquet"])
    def test_percentages_are_read_and_stay_as_they_are_written(
        self, decal: Decal, folder: Path, tmp_path: Path, form: str
    ) -> None:
        writes = {"csv": pacsv.write_csv, "parquet": pq.write_table}[form]
        texts, numbers = ["90%", "0.25", "40 %"], [0.9, 0.25, 0.4]
        for name, scores in (("texts", texts), ("numbers", numbers)):
            writes(pa.table({"p": scores}), tmp_path / f"{name}.{form}")
            done = decal("apply", folder / "isotonic.json", f"{name}.{form}", "-o", f"{name}.out.parquet")
            assert done.code == 0, done.err
        ours, expected = (pq.read_table(tmp_path / f"{name}.out.parquet") for name in ("texts", "numbers"))
        assert ours["p"].to_pylist() == texts
        assert ours["p_isotonic"].to_pylist() == expected["p_isotonic"].to_pylist()

    def test_it_says_that_these_are_the_rows_it_was_fitted_to(self, decal: Decal, folder: Path) -> None:
        done = decal("apply", folder / "isotonic.json", BINARY, "-o", "out.csv")
        assert "The model was fitted to these rows" in done.err
        other = decal("apply", folder / "isotonic.json", "-", "-o", "other.csv", stdin=b"p\n0.5\n")
        assert other.code == 0 and "fitted to" not in other.err

    def test_it_writes_over_nothing_without_force_and_onto_its_own_input_with_it(
        self, decal: Decal, folder: Path, tmp_path: Path
    ) -> None:
        again = ("apply", folder / "isotonic.json", "new.parquet", "-o", "new.parquet")
        pq.write_table(pa.table({"p": [0.1, 0.5, 0.9], "id": ["a", "b", "c"]}), tmp_path / "new.parquet")
        before = (tmp_path / "new.parquet").read_bytes()
        assert "output new.parquet: is there already; add --force" in refusal(decal(*again))
        assert (tmp_path / "new.parquet").read_bytes() == before
        assert decal(*again, "--force").code == 0
        back = pq.read_table(tmp_path / "new.parquet")
        assert back.column_names == ["p", "id", "p_isotonic"] and back["id"].to_pylist() == ["a", "b", "c"]
        line = refusal(decal(*again, "--force"))
        assert "there is a column 'p_isotonic' already; name the new one: --name" in line
        (tmp_path / "new.csv").write_text("p,id\n0.1,a\n0.9,b\n")
        named = ("new.csv", "-o", "new.csv", "--force", "--name", "q")
        assert decal("apply", folder / "isotonic.json", *named).code == 0
        assert (tmp_path / "new.csv").read_text().startswith("p,id,q\n0.1,a,0.")
        assert sorted(os.listdir(tmp_path)) == ["new.csv", "new.parquet"]

    def test_missing_values_are_an_error_or_kept_without_a_score(
        self, decal: Decal, folder: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "new.csv").write_text("p,id\n0.1,a\n,b\n0.9,c\n")
        line = refusal(decal("apply", folder / "isotonic.json", "new.csv", "-o", "out.csv"))
        assert "column 'p': score missing in 1 of 3 rows (row 2)" in line
        assert os.listdir(tmp_path) == ["new.csv"]
        done = decal("apply", folder / "isotonic.json", "new.csv", "-o", "out.csv", "--missing", "drop")
        assert "3 rows; added p_isotonic (method: isotonic); 1 rows have no new score (missing score)" in done.err
        back = pacsv.read_csv(tmp_path / "out.csv")
        assert back["id"].to_pylist() == ["a", "b", "c"]
        assert [value is None for value in back["p_isotonic"].to_pylist()] == [False, True, False]

    def test_the_threshold_method_writes_thresholds_and_decisions(self, decal: Decal, tmp_path: Path) -> None:
        fitted = decal("fit", "threshold", BINARY, *P_AND_Y, "-t", "0.3", "-o", "m.json")
        assert "The score does not change: only the threshold moves." in fitted.out
        done = decal("apply", "m.json", BINARY, "-o", "out.parquet")
        assert done.err.splitlines()[0] == (
            "wrote out.parquet: 2,000 rows; added threshold_p and decision_p "
            "(method: threshold; p does not change, decision_p holds the decisions)"
        )
        back = pq.read_table(tmp_path / "out.parquet")
        assert back.column_names == [*pacsv.read_csv(BINARY).column_names, "threshold_p", "decision_p"]
        limit, decision = back["threshold_p"].to_numpy(), back["decision_p"].to_numpy()
        assert len(set(limit)) == 1
        np.testing.assert_array_equal(decision, back["p"].to_numpy() >= limit)
        assert decal("apply", "m.json", BINARY, "-o", "named.parquet", "--name", "v").code == 0
        assert pq.read_table(tmp_path / "named.parquet").column_names[-2:] == ["threshold_v", "decision_v"]
        assert "a column 'threshold_p' already" in refusal(decal("apply", "m.json", "out.parquet", "-o", "no.csv"))

    def test_thresholds_of_each_row_are_not_taken_for_scores(self, decal: Decal, folder: Path, tmp_path: Path) -> None:
        fitted = decal("fit", "glar(adjust=threshold)", folder / "train.parquet", *PROFANITY, "-o", "m.json")
        assert fitted.code == 0, fitted.err
        done = decal("apply", "m.json", folder / "other.parquet", "-o", "out.parquet")
        assert "p_profanity does not change, decision_p_profanity holds the decisions" in done.err
        back = pq.read_table(tmp_path / "out.parquet")
        limit, decision = (back[f"{name}_p_profanity"].to_numpy() for name in ("threshold", "decision"))
        assert len(set(limit)) > 1
        np.testing.assert_array_equal(decision, back["p_profanity"].to_numpy() >= limit)
        scores = ("evaluate", "out.parquet", "-s", "p_prof*", "-y", "y", "-m", "brier", "-f", "json")
        assert valid_json(decal(*scores).out)["model"] == "p_profanity"

    def test_venn_abers_writes_its_interval(self, decal: Decal, tmp_path: Path) -> None:
        decal("fit", "venn-abers", BINARY, *P_AND_Y, "-o", "m.json")
        done = decal("apply", "m.json", BINARY, "-o", "out.parquet", "--name", "v")
        assert "2,000 rows; added v, lower_v and upper_v (method: venn-abers)\n" in done.err
        back = pq.read_table(tmp_path / "out.parquet")
        assert back.column_names[-3:] == ["v", "lower_v", "upper_v"]
        low, middle, high = (back[name].to_numpy() for name in ("lower_v", "v", "upper_v"))
        assert ((low >= 0) & (low <= middle) & (middle <= high) & (high <= 1)).all()

    def test_the_ends_of_an_interval_are_not_taken_for_scores(self, decal: Decal, tmp_path: Path) -> None:
        decal("fit", "venn-abers", BINARY, *P_AND_Y, "-o", "m.json")
        decal("apply", "m.json", BINARY, "-o", "out.parquet")
        added = ["p_venn_abers", "lower_p_venn_abers", "upper_p_venn_abers"]
        assert pq.read_table(tmp_path / "out.parquet").column_names[-3:] == added
        text = decal("evaluate", "out.parquet", "-s", "p*", "-y", "y", "-m", "brier", "-f", "csv").out
        assert "p_venn_abers" in text and "lower_" not in text and "upper_" not in text

    def test_log_odds_stay_log_odds(self, decal: Decal, tmp_path: Path) -> None:
        table = pacsv.read_csv(BINARY)
        p = table["p"].to_numpy()
        pacsv.write_csv(pa.table({"z": np.log(p / (1 - p)), "y": table["y"]}), tmp_path / "logits.csv")
        assert decal("fit", "platt", "logits.csv", "--logit", "--score", "z", "-o", "m.json").code == 0
        assert decal("apply", "m.json", "logits.csv", "-o", "out.csv").code == 0
        decal("fit", "platt", BINARY, *P_AND_Y, "-o", "n.json")
        decal("apply", "n.json", BINARY, "-o", "same.csv")
        scores = (pacsv.read_csv(tmp_path / name) for name in ("out.csv", "same.csv"))
        np.testing.assert_allclose(next(scores)["z_platt"], next(scores)["p_platt"], atol=1e-9)

    def test_groups_are_asked_for_where_a_method_may_use_them(self, decal: Decal, tmp_path: Path) -> None:
        named = (BINARY, *P_AND_Y, "--features", "x*", "--group", "group")
        assert decal("fit", "multicalibration", *named, "-o", "m.json").code == 0
        assert decal("apply", "m.json", BINARY, "-o", "out.csv").code == 0
        new = pacsv.read_csv(BINARY)
        pacsv.write_csv(new.drop(["group"]), tmp_path / "new.csv")
        assert "no column 'group', which the model was fitted on" in refusal(
            decal("apply", "m.json", "new.csv", "-o", "no.csv")
        )
        # A function of the score asks for nothing else, whatever it was fitted beside.
        assert decal("fit", "isotonic", *named, "-o", "i.json").code == 0
        pacsv.write_csv(new.select(["p"]), tmp_path / "scores.csv")
        assert decal("apply", "i.json", "scores.csv", "-o", "yes.csv").code == 0

    def test_groups_that_are_numbers_are_the_same_from_every_file(self, decal: Decal, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        score, x1 = rng.random((2, 3_000))
        numbers = rng.choice([1.0, 2.0, 2.5, 4.0], 3_000)
        label = (rng.random(3_000) < np.clip(score + np.where(numbers == 1, 0.3, -0.2), 0, 1)).astype(int)
        columns = {"p": score, "y": label, "x1": x1}
        pq.write_table(pa.table({**columns, "group": numbers}), tmp_path / "floats.parquet")
        texts = [str(number) for number in numbers]
        for name, groups in (("floats", texts), ("mixed", [text.removesuffix(".0") for text in texts])):
            pacsv.write_csv(pa.table({**columns, "group": groups}), tmp_path / f"{name}.csv")
        named = (*P_AND_Y, "--features", "x1", "--group", "group")
        assert decal("fit", "multicalibration", "mixed.csv", *named, "-o", "m.json").code == 0
        scores = []
        for name in ("mixed.csv", "floats.csv", "floats.parquet"):
            assert decal("apply", "m.json", name, "-o", "out.parquet", "--force").code == 0
            scores.append(pq.read_table(tmp_path / "out.parquet")["p_multicalibration"].to_numpy())
        np.testing.assert_array_equal(scores[0], scores[1])
        np.testing.assert_array_equal(scores[0], scores[2])

    def test_files_with_other_columns_are_refused(self, decal: Decal, folder: Path, tmp_path: Path) -> None:
        line = refusal(decal("apply", folder / "glar.json", BINARY, "-o", "out.parquet"))
        assert "no column 'p_profanity', which the model was fitted on" in line
        table = pq.read_table(folder / "other.parquet")
        pq.write_table(table.drop(["x07"]), tmp_path / "new.parquet")
        assert "no column 'x07'" in refusal(decal("apply", folder / "glar.json", "new.parquet", "-o", "out.parquet"))
        assert os.listdir(tmp_path) == ["new.parquet"]

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (lambda content: content.replace(b'"seed": 0', b'"seed": 7'), "was changed after it was written"),
            (lambda content: content.replace(b'"decal_model": 1', b'"decal_model": 2'), "is a model file of version 2"),
            (lambda content: b"PAR1\xff\xfe", "is not UTF-8 text"),
        ],
    )
    def test_other_model_files_are_refused(
        self, decal: Decal, folder: Path, tmp_path: Path, change: Callable[[bytes], bytes], says: str
    ) -> None:
        content = (folder / "glar.json").read_bytes()
        (tmp_path / "m.json").write_bytes(change(content))
        assert (tmp_path / "m.json").read_bytes() != content
        assert says in refusal(decal("apply", "m.json", folder / "other.parquet", "-o", "out.parquet"))
        assert os.listdir(tmp_path) == ["m.json"]

    def test_the_output_is_looked_at_first(self, decal: Decal, folder: Path) -> None:
        model = folder / "isotonic.json"
        assert "end the name with .csv or .parquet" in refusal(decal("apply", model, BINARY, "-o", "out.json"))
        assert "there is no folder" in refusal(decal("apply", model, BINARY, "-o", "no/out.csv"))
        assert "model file no.json: No such file" in refusal(decal("apply", "no.json", BINARY, "-o", "out.csv"))
        without = decal("apply", model, BINARY)
        assert without.code == 2 and "--output" in without.err


class TestStopped:
    """A run that is ended in the middle leaves nothing half-written."""

    @pytest.fixture(scope="class")
    @classmethod
    def slow(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """A model that takes a while, and rows enough for it."""
        folder = tmp_path_factory.mktemp("slow")
        run(folder, "fit", "stack-forest", BINARY, *P_AND_Y, "--features", "x*", "-o", "forest.json")
        rng = np.random.default_rng(0)
        columns = {"p": rng.random(200_000)} | {name: rng.normal(size=200_000) for name in ("x1", "x2", "x3")}
        pq.write_table(pa.table(columns), folder / "new.parquet")
        return folder

    @pytest.mark.parametrize(
        ("number", "exists"),
        [(signal.SIGTERM, True), (signal.SIGINT, False), (signal.SIGHUP, False), (signal.SIGKILL, False)],
    )
    def test_nothing_stands_under_the_name_and_nothing_beside_it(
        self, slow: Path, tmp_path: Path, number: signal.Signals, exists: bool
    ) -> None:
        if exists:
            (tmp_path / "out.parquet").write_text("mine")
        files = (slow / "forest.json", slow / "new.parquet")
        process = start_installed(tmp_path, "apply", *files, "-o", "out.parquet", "--force")
        while not list(tmp_path.glob(".decal-*.part")):
            assert process.poll() is None, "it has begun to write before it ends"
            time.sleep(0.005)
        process.send_signal(number)
        error = process.communicate()[1]
        if number == signal.SIGKILL:
            # Nothing can clean up after that; the next run that writes here does.
            assert list(tmp_path.glob(".decal-*.part"))
            run(tmp_path, "evaluate", BINARY, *P_AND_Y, "-m", "brier", "-o", "next.json")
            (tmp_path / "next.json").unlink()
        left = os.listdir(tmp_path)
        assert left == (["out.parquet"] if exists else [])
        if exists:
            assert (tmp_path / "out.parquet").read_text() == "mine"
        if number == signal.SIGKILL:
            assert process.returncode == -signal.SIGKILL
        else:
            assert process.returncode == 130
            assert "Traceback" not in error and len(error.strip().splitlines()) <= 1, error
