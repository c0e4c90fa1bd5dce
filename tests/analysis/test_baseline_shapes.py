"""Baselines of another shape: refused in one line, or a rule that cannot be judged."""

from typing import Any

import pytest

from decal_cli.analysis.baseline import baseline_of
from decal_cli.errors import DecalError, Undefined
from decal_cli.metrics import parse

REPORT: dict[str, Any] = {
    "schema": 1,
    "task": None,
    "inputs": [{"path": "a.csv", "rows": 3, "positives": 1, "sha256": "ab"}],
    "model": "p",
    "group": None,
    "metrics": {"brier": {"value": 0.2, "parameters": {}}},
}


@pytest.mark.parametrize(
    "change",
    [
        {"metrics": {"brier": "low"}},
        {"metrics": {"brier": {}}},
        {"metrics": {"brier": {"value": 0.2, "parameters": True}}},
        {"metrics": ["brier"]},
        {"inputs": [3]},
        {"inputs": [{"path": "a.csv"}]},
        {"inputs": [{"path": "a.csv", "rows": 1e999, "positives": 1, "sha256": "ab"}]},
        {"task": {"utility": True}},
        {"reports": 3},
        {"model": ["p"], "group": ["a"]},
    ],
    ids=str,
)
def test_it_is_refused(change: dict[str, Any]) -> None:
    assert baseline_of(REPORT, "b.json").metrics
    with pytest.raises(DecalError, match=r"b\.json|utility"):
        baseline_of({**REPORT, **change}, "b.json")


@pytest.mark.parametrize("interval", [3, "ab", [1], [0.1, "x"]], ids=str)
def test_an_interval_that_is_none_cannot_be_judged(interval: object) -> None:
    metrics = {"brier": {"value": 0.2, "parameters": {}, "interval": interval}}
    baseline = baseline_of({**REPORT, "metrics": metrics}, "b.json")
    with pytest.raises(Undefined, match="brier is not a number in the baseline"):
        baseline.value_of(parse("brier"), "p", None, None)
