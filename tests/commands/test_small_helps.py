"""What saves a step: the threshold that is printed, standard output, files that lack a score, names for completion."""

import json
from pathlib import Path

import pytest

from decal_cli.commands.options import rule_names
from tests.helpers.command import BINARY, DECAL, FOX, Decal, run_installed

FIT = ("fit", "threshold", BINARY, "-s", "p", "-y", "y", "-t", "0.3", "-o", "model.json")


def test_fit_threshold_prints_the_threshold(decal: Decal, tmp_path: Path) -> None:
    done = decal(*FIT)
    kept = json.loads((tmp_path / "model.json").read_text())
    assert done.code == 0 and "Act when score >= 0." in done.out
    printed = done.out.split("Act when score >= ")[1].split()[0].rstrip(".")
    assert printed in json.dumps(kept)


def test_apply_writes_to_standard_output(decal: Decal, tmp_path: Path) -> None:
    assert decal(*FIT).code == 0
    assert decal("apply", "model.json", BINARY, "-o", "scored.csv").code == 0
    done = run_installed(tmp_path, ("apply", "model.json", BINARY, "-o", "-"), None, {})
    assert done.code == 0 and done.out == (tmp_path / "scored.csv").read_text()
    assert "wrote standard output: 2,000 rows" in done.err
    (tmp_path / "bad.csv").write_text("p,y\n0.5,1\n7,0\n")
    bad = run_installed(tmp_path, ("apply", "model.json", "bad.csv", "-o", "-"), None, {})
    assert bad.code == 2 and bad.out == ""


def test_a_study_skips_files_that_lack_the_score(decal: Decal) -> None:
    small = ("--seeds", 1, "--method", "isotonic", "--thresholds", "0.3", "--workers", 1, "-o", "s")
    done = decal("study", FOX, BINARY, "-s", "p_hatesonar", "-y", "y", *small)
    assert done.code == 0 and f"{BINARY}: skipped p_hatesonar, which it lacks" in done.err
    assert "no column 'p_hatesona'; did you mean 'p_hatesonar'" in decal("study", FOX, "-s", "p_hatesona", *small).err


def test_rules_and_columns_complete(tmp_path: Path) -> None:
    assert rule_names("posi") == ["positives"] and "brier" in rule_names("bri")
    words = f"decal evaluate {FOX} --score p_s"
    told = {"_DECAL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "4"}
    assert run_installed(tmp_path, (), None, told).out.split() == ["p_svm_waseem"]
    assert DECAL.exists()


@pytest.mark.parametrize("command", ["evaluate", "recommend", "sweep", "gate"])
def test_reports_are_always_there(decal: Decal, command: str) -> None:
    rule = ("--rule", "brier<=1") if command == "gate" else ()
    fast = ("--no-intervals",) if command in ("evaluate", "sweep") else ()
    document = decal.json(command, BINARY, "-s", "p", "-y", "y", "-t", ".3", *rule, *fast)
    (report,) = document["reports"]
    assert report == {key: value for key, value in document.items() if key not in ("reports", "gates")}
