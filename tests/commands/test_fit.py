"""`decal fit` and `decal apply` as a user meets them."""

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from decal_cli.learn.model_file import from_text
from tests.helpers.command import BINARY, FOX, Decal, refusal, run_here, start_installed

P_AND_Y = ("--score", "p", "--label", "y")
PROFANITY = ("--score", "p_profanity", "--label", "y", "--features", "x*", "--threshold", "0.3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the score alone, and rows enough to be stopped among."""
    folder = tmp_path_factory.mktemp("fit")
    assert run_here(folder, ("fit", "isotonic", BINARY, *P_AND_Y, "-o", "isotonic.json")).code == 0
    pq.write_table(pa.table({"p": np.random.default_rng(0).random(500_000)}), folder / "new.parquet")
    return folder


def test_a_method_that_clearly_loses_is_not_praised(decal: Decal, tmp_path: Path) -> None:
    """Only scores of 0.9 are worth acting on, and the others have a logistic curve fall."""
    rows = ("0.1,1\n" * 11 + "0.1,0\n" * 9 + "0.5,0\n" * 20 + "0.9,1\n" * 4) * 20
    (tmp_path / "rows.csv").write_text(f"p,y\n{rows}")
    text = decal("fit", "platt(on=p)", "rows.csv", *P_AND_Y, "-t", "0.6", "-o", "m.json").text
    assert "Here platt(on=p) clearly loses: keep the score as it is, or take the method that `decal recommend" in text


def test_what_a_fit_adds_and_moves_is_named(decal: Decal) -> None:
    fitted = decal("fit", "venn-abers", BINARY, *P_AND_Y, "-t", "0.3", "-o", "v.json").text
    assert "adds p_venn_abers, lower_* and upper_* to the rows" in fitted
    assert "act on the new score " in fitted and "clearly loses" not in fitted
    moved = decal("fit", "threshold", BINARY, *P_AND_Y, "-t", "0.3", "-o", "t.json").text
    assert "act from the new threshold on" in moved and "act on the new score" not in moved


def test_fit_apply_evaluate_is_one_story(decal: Decal, tmp_path: Path) -> None:
    """One half of the shipped real data, dealt at random, teaches what the other half wins."""
    rows = pq.read_table(FOX)
    rows = rows.take(np.random.default_rng(2).permutation(len(rows)))
    pq.write_table(rows.slice(0, 759), tmp_path / "train.parquet")
    pq.write_table(rows.slice(759), tmp_path / "other.parquet")
    fitted = decal("fit", "glar", "train.parquet", *PROFANITY, "-o", "glar.json")
    assert fitted.code == 0, fitted.err
    for words in (
        "GLAR (glar), fitted to 759 rows, written to glar.json", "cross-fitted in 5 folds of the 759 rows",
        "Expected utility per 1,000 decisions", "gain ", "Calibration regret",
        "Next: decal apply glar.json NEW -o OUT adds p_profanity_glar to the rows of NEW.",
    ):  # fmt: skip
        assert words in fitted.text, words
    applied = decal("apply", "glar.json", "other.parquet", "-o", "out.parquet")
    wrote = "wrote out.parquet: 760 rows; added p_profanity_glar (method: glar)\n"
    assert (applied.code, applied.out, applied.err) == (0, "", wrote)
    before, after = rows.slice(759), pq.read_table(tmp_path / "out.parquet")
    assert after.column_names == [*before.column_names, "p_profanity_glar"]
    assert after.drop(["p_profanity_glar"]).equals(before)
    measured = ("-y", "y", "-t", "0.3", "-m", "regret_calibration", "-m", "expected_utility", "-m", "brier")
    old, new = (
        decal.json("evaluate", "out.parquet", "-s", score, *measured, "--no-intervals")["metrics"]
        for score in ("p_profanity", "p_profanity_glar")
    )
    assert new["regret_calibration"]["value"] < old["regret_calibration"]["value"]
    assert new["expected_utility"]["value"] > old["expected_utility"]["value"]
    assert new["brier"]["value"] < old["brier"]["value"]


def test_a_model_is_written_over_with_force_alone(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text("mine")
    refusal(decal("fit", "isotonic", "nowhere.csv", "-o", "m.json"))
    assert (tmp_path / "m.json").read_text() == "mine"
    assert decal("fit", "isotonic", BINARY, *P_AND_Y, "-o", "m.json", "--force").code == 0
    from_text((tmp_path / "m.json").read_text(), "m.json")


def test_what_to_act_on_is_said_in_the_names_of_the_actions(decal: Decal, tmp_path: Path) -> None:
    (tmp_path / "low.csv").write_text("p,y\n" + "".join(f"{k / 100},{int(k % 10 == 0)}\n" for k in range(40)))
    line = ("fit", "threshold", "low.csv", *P_AND_Y, "-t", ".6", "--names", "keep,drop", "-o", "m.json")
    assert "No recalibrated score reaches t*: always decide 'keep'." in decal(*line).out


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

    def test_it_writes_over_nothing_without_force_and_onto_its_own_input_with_it(
        self, decal: Decal, folder: Path, tmp_path: Path
    ) -> None:
        again = ("apply", folder / "isotonic.json", "new.parquet", "-o", "new.parquet")
        pq.write_table(pa.table({"p": [0.1, 0.5, 0.9], "id": ["a", "b", "c"]}), tmp_path / "new.parquet")
        before = (tmp_path / "new.parquet").read_bytes()
        assert "output new.parquet is there already; add --force" in refusal(decal(*again))
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

    @pytest.mark.parametrize(
        ("method", "added", "says"),
        [
            ("threshold", ("threshold_p", "decision_p"), "; p does not change, decision_p holds the decisions)"),
            ("glar(adjust=threshold)", ("threshold_p", "decision_p"), "; p does not change, decision_p holds"),
            ("venn-abers", ("p_venn_abers", "lower_p_venn_abers", "upper_p_venn_abers"), "venn-abers)"),
        ],
    )
    def test_what_is_written_beside_a_score_is_no_score(
        self, decal: Decal, tmp_path: Path, method: str, added: tuple[str, ...], says: str
    ) -> None:
        fitted = decal("fit", method, BINARY, *P_AND_Y, "--features", "x*", "-t", "0.3", "-o", "m.json")
        assert fitted.code == 0 and ("only the threshold moves." in fitted.out) == ("threshold" in method)
        done = decal("apply", "m.json", BINARY, "-o", "out.parquet")
        assert f"2,000 rows; added {', '.join(added[:-1])} and {added[-1]} (method: " in done.err and says in done.err
        back = pq.read_table(tmp_path / "out.parquet")
        assert back.column_names == [*pacsv.read_csv(BINARY).column_names, *added]
        columns = [back[name].to_numpy() for name in added]
        if len(added) == 3:
            middle, low, high = columns
            assert ((low >= 0) & (low <= middle) & (middle <= high) & (high <= 1)).all()
        else:
            np.testing.assert_array_equal(columns[1], back["p"].to_numpy() >= columns[0])
            assert (len(set(columns[0])) == 1) == (method == "threshold")
        text = decal("evaluate", "out.parquet", "-s", "p*", "-y", "y", "-m", "brier", "-f", "csv").out
        assert {line.split(",")[0] for line in text.splitlines()[1:]} == {"p", *added[: len(added) - 2]}
        assert f"a column '{added[0]}' already" in refusal(decal("apply", "m.json", "out.parquet", "-o", "no.csv"))
        assert decal("apply", "m.json", BINARY, "-o", "named.parquet", "--name", "v").code == 0
        named = pq.read_table(tmp_path / "named.parquet").column_names[-len(added) :]
        assert named == [name.replace("p_venn_abers", "v").replace("_p", "_v") for name in added]

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


class TestStopped:
    """A run that is ended in the middle leaves nothing half-written."""

    @pytest.mark.parametrize(
        ("number", "exists"),
        [(signal.SIGTERM, True), (signal.SIGINT, False), (signal.SIGHUP, False), (signal.SIGKILL, False)],
    )
    def test_nothing_stands_under_the_name_and_nothing_beside_it(
        self, folder: Path, tmp_path: Path, number: signal.Signals, exists: bool
    ) -> None:
        if exists:
            (tmp_path / "out.csv").write_text("mine")
        process = start_installed(
            tmp_path, "apply", folder / "isotonic.json", folder / "new.parquet", "-o", "out.csv", "--force"
        )
        while not list(tmp_path.glob(".decal-*.part")):
            assert process.poll() is None, "it has begun to write before it ends"
            time.sleep(0.005)
        process.send_signal(number)
        error = process.communicate()[1]
        if number == signal.SIGKILL:
            # Nothing can clean up after that; the next run that writes here does.
            assert list(tmp_path.glob(".decal-*.part"))
            run_here(tmp_path, ("evaluate", BINARY, *P_AND_Y, "-m", "brier", "-o", "next.json"))
            (tmp_path / "next.json").unlink()
        left = os.listdir(tmp_path)
        assert left == (["out.csv"] if exists else [])
        if exists:
            assert (tmp_path / "out.csv").read_text() == "mine"
        if number == signal.SIGKILL:
            assert process.returncode == -signal.SIGKILL
        else:
            assert process.returncode == 130
            assert "Traceback" not in error and len(error.strip().splitlines()) <= 1, error
