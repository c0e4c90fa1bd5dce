"""`decal fit` as a user meets it."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from decal_cli.learn.methods import METHODS
from decal_cli.learn.model_file import from_text, to_text
from tests.helpers.command import BINARY, Decal, refusal, valid_json
from tests.helpers.fitted import P_AND_Y, PROFANITY, fit_models


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
