"""Metrics of decal as scorers of scikit-learn, for cross-validation, searches and tuned thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.metrics import make_scorer

from decal_cli.api.nouns import DecisionLike
from decal_cli.api.verbs import evaluate
from decal_cli.api.words import spoken
from decal_cli.errors import DecalError
from decal_cli.metrics import parse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@spoken
def scorer(
    metric: str = "expected_utility",
    decision: DecisionLike | None = None,
    *,
    response_method: str = "predict_proba",
    **fields: Any,
) -> Any:
    """A scorer of scikit-learn, higher is better: a loss or regret counts with the sign changed.

    Parameters
    ----------
    metric
        Such as 'expected_utility', 'external_regret' or 'brier'; one with a direction, and without features.
    decision, **fields
        As for `evaluate`.
    response_method
        'predict' scores what a classifier decides, for `TunedThresholdClassifierCV`: 1 is acted on, 0 is not.

    Returns
    -------
    callable (estimator, X, y, sample_weight=None) -> float

    Errors: DecalError, which is a ValueError, for a metric that is undefined on the rows.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> dummy = DummyClassifier().fit([[0], [0]], [0, 1])
    >>> scorer("expected_utility", 0.3)(dummy, [[0], [0]], [0, 1])
    -0.15
    """
    declared = parse(metric).declared
    if declared.better not in ("higher", "lower"):
        raise DecalError(f"{metric} has no direction, so nothing can be chosen by it", "name another metric")
    return make_scorer(
        score_of,
        response_method=response_method,
        greater_is_better=declared.better == "higher",
        metric=metric,
        decision=decision,
        fields=fields,
    )


def score_of(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    metric: str,
    decision: DecisionLike | None = None,
    fields: dict[str, Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """A metric of scores, shape (T,), of the second class; labels first, as `sklearn.metrics.make_scorer` has them."""
    weight: dict[str, Any] = {} if sample_weight is None else {"weight": sample_weight}
    answer = evaluate((y_score, y_true), decision, metrics=[metric], intervals=False, **weight, **(fields or {}))
    result = answer.reports[0].results[parse(metric).key]
    if result.value is None:
        raise DecalError(f"{metric} is undefined: {result.reason}", "name another metric")
    return float(result.value)
