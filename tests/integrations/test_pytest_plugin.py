"""`decal_gate` in a run of pytest: a test fails with the lines of the gate."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from tests.helpers.command import BINARY, ROOT, SHELL

TESTS = f"""
ROWS = dict(score="p", label="y", threshold=0.3)

def test_it_holds(decal_gate):
    assert decal_gate({str(BINARY)!r}, **ROWS, rules=["gain_recalibration<=0.01"]).passed

def test_it_fails(decal_gate):
    decal_gate({str(BINARY)!r}, **ROWS, rules=["gain_recalibration<=0.01", "auc>=0.8"])

def test_it_cannot_be_judged(decal_gate):
    decal_gate({str(BINARY)!r}, **ROWS, rules=["regret<=0.01"])

def test_it_does_not_parse(decal_gate):
    decal_gate({str(BINARY)!r}, **ROWS, rules=["breir<=0.01"])
"""


@pytest.mark.ci
def test_a_test_fails_with_the_lines_of_the_gate(tmp_path: Path) -> None:
    (tmp_path / "test_model.py").write_text(TESTS)
    # Whether the package is installed with its entry points or not, the plugin is there once.
    plugin = [
        "-p",
        "no:decal",
        "-p",
        "decal_cli.integrations.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        ".",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *plugin],
        cwd=tmp_path,
        env={**SHELL, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "3 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "PASS gain_recalibration<=0.01" in done.stdout and "FAIL auc>=0.8  0.7429 [0.7198, 0.7647]" in done.stdout
    assert "needs features" in done.stdout and "did you mean brier?" in done.stdout
    assert "Traceback" not in done.stdout and "words.py" not in done.stdout


def test_entry_points_lead_to_what_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert import_module(project["entry-points"]["pytest11"]["decal"]).decal_gate
    module, _, name = project["entry-points"]["mlflow.model_evaluator"]["decal"].partition(":")
    assert f"class {name}(" in (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
