"""The evaluator against a real MLflow with a store on this disk; skipped where .ci/run could not install MLflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import decal_cli as decal
from tests.helpers.command import BINARY, FIXTURES

mlflow = pytest.importorskip("mlflow")

pytestmark = [pytest.mark.ci, pytest.mark.filterwarnings("ignore")]
METRICS = ["brier", "expected_utility", "ece(bins=20)"]


@pytest.fixture(scope="module")
def logged_run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("mlflow")
    rows = pd.read_csv(BINARY)
    mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    mlflow.create_experiment("test", artifact_location=str(folder / "artifacts"))
    mlflow.set_experiment("test")
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(
            data=rows[["p", "y"]],
            predictions="p",
            targets="y",
            model_type="classifier",
            evaluators="decal",
            evaluator_config={"threshold": 0.3, "metrics": METRICS},
        )
    return result, mlflow.get_run(run.info.run_id).data


def test_metrics_and_their_ends_are_logged(logged_run: Any) -> None:
    result, logged = logged_run
    answer = decal.evaluate(BINARY, score="p", label="y", threshold=0.3, metrics=METRICS)
    low, high = answer["brier"].interval or (0, 0)
    assert logged.metrics["brier"] == pytest.approx(answer["brier"].value)
    assert (logged.metrics["brier/lower"], logged.metrics["brier/upper"]) == pytest.approx((low, high))
    assert logged.metrics["ece bins 20"] == pytest.approx(answer["ece(bins=20)"].value)
    assert logged.tags["decal.signature"].startswith("decal:0.") and logged.metrics == result.metrics
    assert "<html" in result.artifacts["decal_report.html"].content


def evaluated(rows: pd.DataFrame, predictions: str | None = None, model: Any = None, **config: Any) -> Any:
    """What MLflow has of these rows, whose labels are in the column y."""
    given = {"data": rows, "targets": "y", "predictions": predictions, "model": model, "model_type": "classifier"}
    given |= {"evaluators": "decal", "evaluator_config": {"page": False, "metrics": ["brier"], **config}}
    with mlflow.start_run():
        return mlflow.models.evaluate(**given)


@pytest.mark.usefixtures("logged_run")
def test_columns_of_the_data_are_named_and_the_scores_are_those_that_are_meant() -> None:
    rows = pd.read_csv(BINARY)[["p", "x1", "y"]]
    weighed = decal.evaluate(rows, score="p", label="y", weight=rows["x1"].abs(), metrics="brier")["brier"].value
    result = evaluated(rows.assign(w=rows["x1"].abs()), "p", weight="w")
    assert result.metrics["brier"] == pytest.approx(weighed)
    named = rows.assign(y=np.where(rows["y"] == 1, "high", "low"))
    proba = lambda given: np.c_[given["p"], 1 - given["p"]]  # noqa: E731  # of high and low
    for positive in ("high", "low"):
        assert evaluated(named, model=proba, positive=positive).metrics["brier"] == pytest.approx(
            np.mean((rows["p"] - rows["y"]) ** 2)
        )
    two = lambda given: pd.DataFrame({"p": given["p"], "decided": 1})  # noqa: E731
    assert evaluated(rows, "p", two).metrics["brier"] == pytest.approx(np.mean((rows["p"] - rows["y"]) ** 2))
    for predictions, says in ((None, "name the one that holds scores"), ("q", "'q' is not one of 'p', 'decided'")):
        with pytest.raises(ValueError, match=says):
            evaluated(rows, predictions, two)


@pytest.mark.usefixtures("logged_run")
def test_several_classes_are_judged() -> None:
    rows = pd.read_csv(FIXTURES / "multiclass_n1500_k3.csv")
    scores = sorted(name for name in rows if name.startswith("p"))
    measured = decal.evaluate(rows, proba="p_*", label="y", metrics="brier")["brier"].value
    result = evaluated(rows, model=lambda given: given[scores].to_numpy(), abstain=0.2)
    assert result.metrics["brier"] == pytest.approx(measured)


def test_rules_are_thresholds(logged_run: Any) -> None:
    from decal_cli.integrations.mlflow import thresholds

    result, _ = logged_run
    validate = mlflow.validate_evaluation_results
    validate(candidate_result=result, validation_thresholds=thresholds(["brier<=0.2", "lower(ece(bins=20))<=0.1"]))
    with pytest.raises(Exception, match="brier/upper value threshold check failed"):
        validate(candidate_result=result, validation_thresholds=thresholds(["upper(brier)<=0.1"]))
    with pytest.raises(ValueError, match="more than a threshold"):
        thresholds("drop(auc)<=0.01")


def test_it_runs_only_where_it_is_asked_for() -> None:
    from decal_cli.integrations.mlflow import DecalEvaluator

    assert not DecalEvaluator.can_evaluate(model_type="classifier", evaluator_config={})
    assert not DecalEvaluator.can_evaluate(model_type="regressor", evaluator_config={"threshold": 0.3})
