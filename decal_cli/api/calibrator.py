"""Beside scikit-learn: a classifier that is calibrated and decides by a decision, and metrics of decal as scorers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import StratifiedGroupKFold, check_cv, cross_val_predict
from sklearn.utils import get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted, column_or_1d

from decal_cli.analysis.fit import columns_for, saved_model
from decal_cli.api.asking import Asked, asked, method_of, metrics_of
from decal_cli.api.nouns import Data, Decision, DecisionLike, Statistics
from decal_cli.api.verbs import evaluate
from decal_cli.api.words import spoken
from decal_cli.data import NewRows, from_arrays
from decal_cli.data.arrays import is_table, rows_in_memory
from decal_cli.data.words import quote
from decal_cli.declarations.defaults import SEED
from decal_cli.declarations.option import keys_of
from decal_cli.errors import DecalError, Undefined
from decal_cli.learn.method import fit as fit_method
from decal_cli.learn.method import training_rows
from decal_cli.learn.model_file import score_rows
from decal_cli.learn.models import Applied
from decal_cli.numbers import many
from decal_cli.roles import Columns

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

N_FOLDS = 5
WITHOUT_TASK = 0.5
"""Where a classifier without a decision acts, as scikit-learn's do."""


class Calibrator(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Calibrate a binary classifier by a method of decal, and decide at the threshold of a decision.

    estimator: with predict_proba or decision_function, by default a logistic regression; a FrozenEstimator is not
    fitted again. method: such as 'isotonic' or 'blend'; those that need features get X. cv: how the scores are
    predicted that the method learns from, as in cross_val_predict. decision: as for `evaluate`, a
    threshold or `Decision.costs(fp=1, fn=4)`; without one, `predict` acts from 0.5.
    """

    @spoken
    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = "isotonic",
        cv: Any = N_FOLDS,
        decision: DecisionLike | None = None,
        seed: int = SEED,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.decision = decision
        self.seed = seed

    @spoken
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, cluster: ArrayLike | None = None
    ) -> Self:
        """Fit the classifier to all rows, and the method to scores that other rows' classifiers predict.

        X: (T, d) as the classifier takes it. y: (T,) of two classes, of which the greater is positive. sample_weight:
        (T,), 0 or more. cluster: (T,) names of what rows were sampled by, such as the patient: all folds keep clusters
        whole. Raises ValueError for what cannot be fitted.
        """
        spec, decision = method_of(self.method), Decision.of(self.decision)
        plan = Asked(Data(()), decision, Statistics(seed=self.seed)).plan
        task = plan.two_actions("a calibrator")
        if decision.capacity is not None:
            raise DecalError("a calibrator decides row by row, and a capacity is for many rows", "leave it out here")
        if not task and "task" in spec.declared.needs:
            raise DecalError(f"{spec.key} needs a decision", "give for example decision=0.3")
        if y is None:
            raise ValueError("This Calibrator requires y to be passed, but the target y is None.")
        X, y, cluster = indexable(X, column_or_1d(y, warn=True), cluster)
        check_classification_targets(y)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        self.classes_, present = np.unique(y), np.unique(y if weight is None else np.asarray(y)[weight > 0])
        if len(present) == 1:
            raise ValueError(f"Classifier can't train when only one class is present: {present[0]!r}")
        if len(self.classes_) != 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: it has "
                f"{len(self.classes_)} classes"
            )
        given = {} if weight is None else {"sample_weight": weight}
        # An ensemble that is not fitted has no length, and so no truth.
        base = LogisticRegression() if self.estimator is None else self.estimator
        way = "predict_proba" if hasattr(base, "predict_proba") else "decision_function"
        label = (np.asarray(y) == self.classes_[1]).astype(np.uint8)
        cv = self.cv if cluster is None else self._whole_folds(X, label, cluster)
        predicted = cross_val_predict(base, X, y, cv=cv, method=way, params=given)
        self.estimator_ = clone(base).fit(X, y, **given)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        kept = np.ones(_num_samples(X), dtype=bool) if weight is None else weight > 0

        def of_rows(column: Any) -> Any:
            return column if kept.all() else np.asarray(column)[kept]

        roles: dict[str, Any] = {"weight": None if weight is None else weight[kept]}
        if cluster is not None:
            roles["cluster"] = of_rows(cluster)
        if spec.declared.takes("features"):
            roles["features"] = {name: of_rows(column) for name, column in _columns(X).items()}
        data = from_arrays(_positive(predicted)[kept], label[kept], **roles)
        training = data.models[0]
        try:
            model = fit_method(spec, training_rows(training, task, plan.seed))
        except Undefined as undefined:
            raise DecalError(f"{spec.key} cannot be fitted: {undefined.reason}", "name another method") from None
        self.calibration_ = saved_model(spec, model, training, data, plan.simplest)
        self.threshold_ = WITHOUT_TASK if task is None else task.threshold
        return self

    @spoken
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Calibrated probabilities, shape (T, 2), in the order of `classes_`."""
        score = self._applied(X).score
        return np.column_stack((1 - score, score))

    @spoken
    def predict(self, X: Any) -> NDArray[Any]:
        """The class that the decision acts on: the positive one from the threshold upwards."""
        applied = self._applied(X)
        threshold = self.threshold_ if applied.threshold is None else applied.threshold
        return self.classes_[(applied.score >= threshold).astype(int)]

    def _applied(self, X: Any) -> Applied:
        check_is_fitted(self)
        way = getattr(self.estimator_, "predict_proba", None) or self.estimator_.decision_function
        rows: dict[str, Any] = {self.calibration_.score: _positive(way(X))}
        if self.calibration_.features:
            rows |= _columns(X)
        saved = self.calibration_
        names = (saved.score, *saved.features)
        (batch,) = NewRows(rows_in_memory(rows, names), columns_for(saved), saved.column_kinds).batches()
        return score_rows(saved, batch.rows, "the calibrator")

    def _whole_folds(self, X: Any, label: NDArray[Any], cluster: ArrayLike) -> list[Any]:
        """The rows that each fold learns from, and those it predicts. Errors: DecalError, where one cuts a cluster."""
        rows = Columns(missing="drop")
        read = from_arrays(np.full(len(label), WITHOUT_TASK), label, cluster=cluster, columns=rows)
        if missing := read.models[0].dropped:
            raise DecalError(f"the cluster of {many(missing, 'row')} is missing", "name the cluster of every row")
        number = read.models[0].rows.cluster
        names = read.clusters
        assert number is not None and names is not None  # they were given
        folds = check_cv(self.cv, label, classifier=True)
        if self.cv is None or isinstance(self.cv, int):
            n_folds = folds.get_n_splits()
            if len(names) < n_folds:
                raise DecalError(
                    f"cv={n_folds} folds keep clusters whole, and there are only {len(names)}",
                    "give fewer folds, or rows of more clusters",
                )
            folds = StratifiedGroupKFold(n_folds)
        splits = list(folds.split(X, label, number))
        for learned, predicted in splits:
            shared = np.intersect1d(number[learned], number[predicted])
            if len(shared):
                raise DecalError(
                    f"cv={folds} puts rows of cluster {quote(str(names[shared[0]]))} on both sides",
                    "give a number of folds, or a splitter that looks at groups, such as GroupKFold",
                )
        return splits

    def __sklearn_tags__(self) -> Any:
        tags, base = super().__sklearn_tags__(), get_tags(self.estimator or LogisticRegression())
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = base.input_tags.sparse and not method_of(self.method).declared.takes("features")
        tags.input_tags.allow_nan = base.input_tags.allow_nan
        tags.input_tags.pairwise = base.input_tags.pairwise
        return tags


def _positive(predicted: NDArray[Any]) -> NDArray[np.float64]:
    """Scores of the positive class, from probabilities of both, or from log-odds."""
    return np.clip(predicted[:, 1], 0.0, 1.0) if predicted.ndim == 2 else expit(predicted)


def _columns(X: Any) -> dict[str, Any]:
    """Features by name: the columns of a frame, or of an array of objects, or an array of numbers as one."""
    if issparse(X):
        raise TypeError("sparse input is not supported by a method that looks at the features: give X.toarray()")
    if is_table(X):
        return {str(name): X[name] for name in X.columns}
    array = np.asarray(X)
    if array.dtype.kind not in "OU":
        return {"features": array}
    return {f"x{number}": column for number, column in enumerate(array.T)}


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
    named = metrics_of(metric)
    if len(named) != 1:
        raise DecalError(f"metric={metric!r} is not one metric", "name one, such as 'brier'")
    declared = named[0].declared
    if declared.better not in ("higher", "lower"):
        raise DecalError(f"{metric} has no direction, so nothing can be chosen by it", "name another metric")
    if declared.takes_task and decision is None and not keys_of(Decision).keys() & fields.keys():
        # scikit-learn takes an error for a missing score, and would choose by none.
        fix = f"give for example scorer({metric!r}, 0.3), or of several classes scorer({metric!r}, abstain=0.2)"
        raise DecalError(f"{metric} needs a decision", fix)
    # Wrong now and not in a search, which takes an error for a score.
    _ = asked(Data([0.5]), decision, None, fields).plan
    # Whose probability is judged.
    positive = {"pos_label": fields.pop("positive")} if "positive" in fields else {}
    return make_scorer(
        score_of,
        response_method=response_method,
        greater_is_better=declared.better == "higher",
        metric=metric,
        decision=decision,
        fields=fields,
        decided=response_method == "predict",
        **positive,
    )


@spoken
def score_of(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    metric: str,
    decision: DecisionLike | None = None,
    fields: dict[str, Any] | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    decided: bool = False,
) -> float:
    """A metric of scores, shape (T,) of the second class or (T, K); labels first, as `sklearn.metrics.make_scorer` has
    them.

    decided: whether they are predicted labels, shape (T,): the row gets a score of 1 for it, and of 0 for others.
    """
    if decided:
        said = np.asarray(y_score)
        classes = np.unique(np.concatenate((np.asarray(y_true), said)))
        if len(classes) > 2:
            y_score = (said[:, None] == classes).astype(np.float64)
        else:
            y_score = (said == (1 if pos_label is None else pos_label)).astype(np.float64)
    given: dict[str, Any] = {"weight": sample_weight, "positive": pos_label}
    given = {name: each for name, each in given.items() if each is not None} | (fields or {})
    answer = evaluate((y_score, y_true), decision, metrics=[metric], intervals=False, **given)
    result = answer.reports[0].results[metrics_of(metric)[0].key]
    if result.value is None:
        raise DecalError(f"{metric} is undefined on these rows", str(result.reason))
    return float(result.value)
