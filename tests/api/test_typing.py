"""What a type checker and an editor see: every verb's keywords, their defaults and what comes back."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import decal_cli as decal
from decal_cli.declarations.defaults import CONFIDENCE, N_STUDY_SEEDS, SEED, STUDY_FOLDER
from decal_cli.roles import DECLARATIONS, DEFAULTS, ROW_UTILITIES, several
from decal_cli.task import SPELLINGS
from tests.helpers.command import ROOT

JUDGING = [decal.evaluate, decal.recommend, decal.gate, decal.compare, decal.sweep, decal.report, decal.fit]
SCRIPT = """
from pathlib import Path

import numpy as np

import decal_cli as decal

rng = np.random.default_rng(0)
p = rng.random(500)
y = rng.random(500) < p
answer: decal.EvaluateAnswer = decal.evaluate(p, y, metrics="brier", threshold=0.3)
value: float | None = answer["brier"].value
advice: decal.RecommendAnswer = decal.recommend({"p": p, "y": y}, score="p", label="y", cost_fp=1, cost_fn=2.5)
action: str = advice.advice.action
gate: decal.GateAnswer = decal.gate(p, y, rules=["brier<=0.2"], baseline=answer)
passed: bool | None = gate.passed
both: decal.CompareAnswer = decal.compare({"a": p, "b": p**2}, y, odds="1:3")
curves: decal.SweepAnswer = decal.sweep(p, y, thresholds=[0.1, 0.2])
page: decal.ReportAnswer = decal.report(p, y, utility=[[0, -1], [-0.3, 0]], missing="drop")
page.save(Path("report.html"))
model: decal.FitAnswer = decal.fit(p, y, method="isotonic", seed=1)
rows = decal.apply(model, {"score": p}, name="better")
study: decal.StudyAnswer = decal.study(["a.csv", Path("b.csv")], methods=["isotonic"], seeds=2)
calibrator: decal.Calibrator = decal.Calibrator(method="platt", threshold=0.2)
display: decal.ReliabilityDisplay = decal.ReliabilityDisplay.from_predictions(y, p)
text: str = answer.to_text("markdown") + repr(both) + curves._repr_html_()
frame = gate.to_frame("polars")
"""
WRONG = """
import decal_cli as decal

decal.evaluate([0.2], [1], treshold=0.3)
decal.evaluate([0.2], [1], missing="dorp")
decal.gate([0.2], [1])
decal.sweep([0.2], [1]).passed
"""


def checked(folder: Path, script: str) -> list[str]:
    """What mypy --strict says of a script."""
    (folder / "script.py").write_text(script, encoding="utf-8")
    cache = ("--cache-dir", str(folder / "cache"))
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", *cache, "script.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if "error:" in line]


def test_mypy_takes_a_script_of_every_verb_and_finds_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "decal_cli").symlink_to(ROOT / "decal_cli")
    assert checked(tmp_path, SCRIPT) == []
    wrong = checked(tmp_path, WRONG)
    assert [line.split(":")[1] for line in wrong] == ["4", "5", "6", "7"], wrong


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "decal_cli" / "py.typed").exists()
    assert '"py.typed"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


OF_THESE_ROWS = {"margin", "prevalence", "sampled_negatives", "keep_scores", "aggregated", "capacity", "per"}


def _refused(verb: object) -> set[str]:
    """What speaks of several classes, other populations, utilities of rows and margins: these verbs do not take it."""
    given = {"proba", "classes", "abstain", *OF_THESE_ROWS}
    return given | set(ROW_UTILITIES) if verb is decal.study else given if verb is decal.fit else set()


@pytest.mark.parametrize("verb", JUDGING, ids=lambda verb: verb.__name__)
def test_keywords_and_defaults_are_those_declared(verb: object) -> None:
    keywords = inspect.signature(verb).parameters
    assert {*DECLARATIONS, *SPELLINGS} - _refused(verb) <= keywords.keys()
    assert not [each for each in keywords.values() if each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    for name in DECLARATIONS.keys() & keywords.keys():
        assert keywords[name].default == (() if several(name) else DEFAULTS[name])
    assert (keywords["confidence"].default, keywords["seed"].default) == (CONFIDENCE, SEED)


def test_the_defaults_of_a_study_are_those_declared() -> None:
    keywords = inspect.signature(decal.study).parameters
    assert (keywords["seeds"].default, keywords["folder"].default) == (N_STUDY_SEEDS, STUDY_FOLDER)
    assert DECLARATIONS.keys() - _refused(decal.study) <= keywords.keys()


def test_every_public_name_is_there() -> None:
    assert not [name for name in decal.__all__ if not hasattr(decal, name)]
    with pytest.raises(AttributeError, match="evalute"):
        decal.evalute  # noqa: B018
