"""A task is the same task however it is spelled: decisions, fits and advice are the same, utilities scale."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decal_cli.learn.model_file import to_text
from decal_cli.metrics import METRICS
from decal_cli.task import BinaryTask
from tests.helpers.command import run_here, valid_json
from tests.helpers.model_files import of_model
from tests.helpers.training import OF_TWO, fit_method, random_training
from tests.helpers.worlds import featured_rows

pytestmark = pytest.mark.usefixtures("one_deal")

UNIT = ("--threshold", "0.3")
COSTS, FACTOR = ("--cost-fp", "60", "--cost-fn", "140"), 200
"""The same decision in costs, with what they multiply every utility by."""
PAPER = ("--utility", "1,0;0,2.3333333333333335")
"""The same decision as in Perez-Lebel et al. 2025: u_delta = 1/t*, and a utility that no decision changes."""
NAMED = ("preds.parquet", "--score", "p", "--label", "y")
ON_FEATURES = (*NAMED, "--features", "x*")
OF_UTILITY = ("-m", "expected_utility", "-m", "regret_calibration", "-m", "swap_regret", "-m", "net_benefit")
COMMANDS = {
    "evaluate": (*ON_FEATURES, "--all", "--format", "json"),
    "recommend": (*ON_FEATURES, "--format", "json"),
    "recommend --try": (*ON_FEATURES, "--method", "isotonic", "--method", "glar", "--format", "json"),
    "compare": (*NAMED, "--score", "q", *OF_UTILITY, "--format", "json"),
    "sweep": (*ON_FEATURES, "--thresholds", "0.2,0.3", "--format", "json"),
}
SAID = {"task", "signature", "inputs", "worst_agent", "seconds", "parameters"}
"""What says the task in its own units, and what no two runs share."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores of two decimals, so that some are t*; features that know more."""
    folder = tmp_path_factory.mktemp("spellings")
    score, label, _, features = featured_rows(300)
    columns = {"p": score, "q": np.round(np.sqrt(score), 2), "y": label}
    columns |= {f"x{k}": column for k, column in enumerate(features.T)}
    pq.write_table(pa.table(columns)[:240], folder / "preds.parquet")
    assert (score[:240] == 0.3).any()
    return folder


@cache
def document(folder: Path, command: str, task: tuple[str, ...]) -> dict[str, Any]:
    done = run_here(folder, (*command.split(), *COMMANDS[command], *task))
    assert done.code == 0, done.err
    return valid_json(done.out)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every number and text of a document, without what says the task."""
    if isinstance(value, dict):
        for key in value.keys() - SAID:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from leaves(each, (*path, number))
    else:
        yield path, value


def in_utility(path: tuple[Any, ...]) -> bool | None:
    """Whether a number is a utility, by the metric that it belongs to; None where no metric says so."""
    names = [str(key).partition("(")[0] for key in path]
    units = [METRICS[name].unit == "utility" for name in names if name in METRICS]
    return units[0] if "metrics" in path and units else None


@pytest.mark.ci
@pytest.mark.parametrize(
    "command", [pytest.param(each, marks=[pytest.mark.long] if each == "recommend" else []) for each in COMMANDS]
)
def test_commands_say_the_same(command: str, folder: Path) -> None:
    unit, other = (dict(leaves(document(folder, command, each))) for each in (UNIT, COSTS))
    assert unit.keys() == other.keys()
    assert not [(path, value, other[path]) for path, value in unit.items() if not same(path, value, other[path])]


def same(path: tuple[Any, ...], value: Any, other: Any) -> bool:
    """Whether two values agree, scaled where they are utilities; texts but for their numbers."""
    if isinstance(value, str):
        return re.sub(r"[\d.,]+", "", other) == re.sub(r"[\d.,]+", "", value)
    if isinstance(value, bool) or value is None:
        return other is value
    known = in_utility(path)
    factors = {1, FACTOR} if known is None else {FACTOR if known else 1}
    return any(math.isclose(other, each * value, rel_tol=1e-9, abs_tol=1e-12 * each) for each in factors)


@pytest.mark.ci
def test_a_utility_that_no_decision_changes_changes_no_advice(folder: Path) -> None:
    unit, other = (document(folder, "recommend --try", each)["recommendation"] for each in (UNIT, PAPER))
    for key in ("action", "method", "fit", "small"):
        assert unit[key] == other[key], key
    assert [step["answer"] for step in unit["path"]] == [step["answer"] for step in other["path"]]
    assert other["gain"] == pytest.approx(unit["gain"] / 0.3, abs=1e-9)


@pytest.mark.parametrize("method", OF_TWO)
def test_methods_fit_the_same(method: str) -> None:
    rows = random_training(240, seed=0)
    one, other = (
        dict(leaves(json.loads(to_text(of_model(fit_method(method, replace(rows, task=task)))))["model"]))
        for task in (BinaryTask.of_threshold(0.3), BinaryTask.of_utility([[1.0, 0.0], [0.0, 7 / 3]]))
    )
    assert one.keys() == other.keys()
    for path, value in one.items():
        assert other[path] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value)
