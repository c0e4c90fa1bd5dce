"""An evaluator of MLflow, found by its entry point: metrics with intervals, rules as thresholds, a page as artifact.

It runs where it is asked for, by `evaluators=["decal"]` and `evaluator_config={"decal": {"threshold": 0.3}}`.
It was run with MLflow 3.17.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterable
from typing import Any

import mlflow
import numpy as np
from mlflow.entities import Metric
from mlflow.models.evaluation.artifacts import TextEvaluationArtifact
from mlflow.models.evaluation.base import EvaluationResult, ModelEvaluator
from mlflow.models.evaluation.validation import MetricThreshold
from mlflow.tracking import MlflowClient
from mlflow.utils.time import get_current_time_millis
from numpy.typing import NDArray

import decal_cli as decal
from decal_cli.analysis.rules import parse_rule
from decal_cli.api.asking import names_of
from decal_cli.api.words import one_of, spoken
from decal_cli.data.arrays import class_columns
from decal_cli.data.words import text_of
from decal_cli.errors import DecalError
from decal_cli.roles import ROLES

PAGE = "decal_report.html"


class DecalEvaluator(ModelEvaluator):
    """Classifiers, judged by what acting on their scores is worth.

    evaluator_config: keywords of `decal.evaluate`, such as threshold, cost_fp, cost_fn, weight or metrics, in which
    columns of the data have their names; and page=False for no HTML page. A metric is logged by its name, the ends of
    its interval as name/lower and name/upper.
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str, evaluator_config: Any, **kwargs: Any) -> bool:
        """Where something is said of the decision: whoever has decal installed need not want it."""
        return model_type == "classifier" and bool(evaluator_config)

    @spoken
    def evaluate(
        self,
        *,
        model_type: str,
        dataset: Any,
        run_id: str,
        evaluator_config: dict[str, Any],
        model: Any = None,
        predictions: str | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Measure, log and return. Errors: DecalError, where scores or labels cannot be judged."""
        fields = dict(evaluator_config)
        with_page = fields.pop("page", True)
        features, label = dataset.features_data, np.asarray(dataset.labels_data)
        predicted = dataset.predictions_data if model is None else _scores(model, features)
        score = _scores_in(predicted, predictions)
        # Other columns may hold anything: they are looked at where a role is named.
        names = () if ROLES.keys().isdisjoint(fields) else getattr(features, "columns", ())
        beside = {str(name): features[name] for name in names}
        if score.shape[1:] == (2,) and "positive" in fields:
            score = class_columns(score, label).get(f"p:{text_of(fields['positive'])}", score[:, 1])
        elif score.shape[1:] in ((1,), (2,)):
            score = score[:, -1]
        if score.ndim == 1:
            data = decal.Data({**beside, "score": score, "label": label}, score="score", label="label")
        else:
            data = decal.Data({**beside, **class_columns(score, label), "label": label}, proba="p:*", label="label")
        answer = decal.evaluate(data, **fields)
        if len(answer.reports) != 1:
            raise DecalError("MLflow logs one number a metric, and there are several groups", "leave out group=")
        metrics: dict[str, float] = {}
        for key, result in answer.reports[0].results.items():
            low, high = result.interval or (None, None)
            named = {key: result.value, f"{key}/lower": low, f"{key}/upper": high}
            metrics |= {_name(name): float(value) for name, value in named.items() if value is not None}
        client, now = MlflowClient(), get_current_time_millis()
        # What is infinite is in the result; servers refuse to store it.
        logged = [Metric(name, value, now, 0) for name, value in metrics.items() if math.isfinite(value)]
        for start in range(0, len(logged), 1000):
            client.log_batch(run_id, metrics=logged[start : start + 1000])
        client.set_tag(run_id, "decal.signature", answer.result.evaluation.signature)
        artifacts = {}
        if with_page:
            fields.pop("metrics", None)
            page = decal.report(data, **fields).to_text("html")
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, PAGE)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(page)
                client.log_artifact(run_id, path)
            artifacts[PAGE] = TextEvaluationArtifact(f"{client.get_run(run_id).info.artifact_uri}/{PAGE}", page)
        return EvaluationResult(metrics=metrics, artifacts=artifacts, run_id=run_id)


@spoken
def thresholds(rules: Iterable[str]) -> dict[str, MetricThreshold]:
    """Rules such as 'upper(brier)<=0.2' as what `mlflow.validate_evaluation_results` takes.

    Errors: DecalError, for a rule that MLflow has no words for: <, >, groups, models, differences and baselines.
    """
    validated = {}
    for rule in map(parse_rule, names_of("rules", rules)):
        plain = rule.over in ("", "upper", "lower") and rule.operator in ("<=", ">=")
        if not plain or rule.scope or rule.change or rule.baseline or rule.counted:
            raise DecalError(f"rule {rule.text!r} is more than a threshold of MLflow can say", "judge it by decal.gate")
        name = _name(f"{rule.key}/{rule.over}" if rule.over else rule.key)
        validated[name] = MetricThreshold(threshold=rule.number, greater_is_better=not rule.at_most)
    return validated


def _scores(model: Any, features: Any) -> Any:
    """Probabilities of a classifier of scikit-learn's kind; else what the model predicts."""
    try:
        raw = model.get_raw_model()
    except (AttributeError, NotImplementedError, mlflow.MlflowException):
        return model.predict(features)
    return raw.predict_proba(features) if hasattr(raw, "predict_proba") else model.predict(features)


def _scores_in(predicted: Any, column: str | None) -> NDArray[Any]:
    """The column of that name, shape (T,), or all that is predicted: of K classes (T, K). Errors: DecalError."""
    if column is not None and hasattr(predicted, "columns"):
        predicted = predicted[one_of("predictions", column, map(str, predicted.columns))]
    values = np.asarray(predicted)
    if values.ndim == 2 and values.shape[1] == 2 and not np.allclose(values.sum(axis=1), 1):
        problem = "the two columns that the model predicts are not probabilities of two classes"
        raise DecalError(problem, "name the one that holds scores: predictions=")
    return values


def _name(key: str) -> str:
    """A metric as MLflow can name it: ece(bins=20) is ece bins 20."""
    return key.replace("(", " ").replace(")", "").replace("=", " ").replace(",", " ")
