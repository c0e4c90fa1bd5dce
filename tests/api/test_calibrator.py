"""The calibrator as scikit-learn's own suite of checks sees it, and as a user does."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import decal_cli as decal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
Y = np.where(RNG.random(600) < 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1] * X[:, 0])), "yes", "no")
WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
SPARSE_WEIGHTS = "check_sample_weight_equivalence_on_sparse_data"
FIRST_ROW = "compares fits to other labels: it makes two classes of three by the first row, after a shuffle of one side"
EXPECTED_FAILURES = {
    "isotonic": dict.fromkeys((WEIGHTS, SPARSE_WEIGHTS), FIRST_ROW) if sklearn.__version__.startswith("1.6.") else {},
    "stack": {
        WEIGHTS: (
            "rows of weight 0, or repeated rows, fall into other folds than weighted ones do, so the scores that the "
            "method learns from differ, as in scikit-learn's CalibratedClassifierCV"
        )
    },
}
"""By method: checks of scikit-learn that fail, and why they may. One method sees only the score, the other X too."""


@pytest.mark.ci
@pytest.mark.parametrize("method", EXPECTED_FAILURES)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks_pass_but_for_those_listed(method: str) -> None:
    expected = EXPECTED_FAILURES[method]
    calibrator = decal.Calibrator(LogisticRegression(), method=method)
    results = check_estimator(calibrator, expected_failed_checks=expected, on_skip=None)
    assert {each["check_name"] for each in results if each["status"] == "xfail"} == expected.keys()
    assert sum(each["status"] == "passed" for each in results) >= 55


def test_scores_are_those_of_cross_fitting_as_scikit_learn_does_it() -> None:
    ours = decal.Calibrator(GaussianNB(), method="isotonic", cv=5).fit(X, Y).predict_proba(X)
    theirs = CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=5, ensemble=False).fit(X, Y).predict_proba(X)
    # Theirs draws lines between the steps of the fit, ours does not.
    assert np.abs(ours - theirs).max() < 0.1 and np.abs(ours - theirs).mean() < 0.01


@pytest.mark.parametrize("task", [0.2, decal.Decision.costs(fp=1, fn=4), decal.Decision(odds="1:4")])
def test_predict_acts_at_the_threshold_of_the_decision(task: decal.Decision | float) -> None:
    calibrator = decal.Calibrator(GaussianNB(), decision=task).fit(X, Y)
    assert calibrator.threshold_ == pytest.approx(0.2)
    assert np.array_equal(calibrator.predict(X) == "yes", calibrator.predict_proba(X)[:, 1] >= calibrator.threshold_)
    calibrator.threshold_ = calibrator.predict_proba(X)[:, 1].max()
    assert (calibrator.predict(X) == "yes").any()
    assert decal.Calibrator(GaussianNB()).fit(X, Y).threshold_ == 0.5


def test_a_method_that_moves_the_threshold_leaves_the_score() -> None:
    moved = decal.Calibrator(FrozenEstimator(GaussianNB().fit(X, Y)), method="threshold", decision=0.3).fit(X, Y)
    assert np.allclose(moved.predict_proba(X), GaussianNB().fit(X, Y).predict_proba(X), rtol=0, atol=1e-12)
    assert 0 < (moved.predict(X) == "yes").mean() < 1


def test_it_stands_in_pipelines_searches_and_clones() -> None:
    calibrator = decal.Calibrator(GaussianNB(), method="blend", decision=decal.Decision(odds="1:3"))
    assert repr(clone(calibrator).get_params()) == repr(calibrator.get_params())
    calibrator.set_params(method="stack", estimator__var_smoothing=1e-6)
    predicted = cross_val_predict(make_pipeline(StandardScaler(), calibrator), X, Y, cv=3, method="predict_proba")
    assert predicted.shape == (600, 2) and np.allclose(predicted.sum(axis=1), 1)
    search = GridSearchCV(decal.Calibrator(LinearSVC()), {"method": ["isotonic", "platt"]}, cv=3, scoring="roc_auc")
    assert search.fit(X, Y).best_params_["method"] in ("isotonic", "platt")


CLUSTER = np.arange(600) % 60
"""Ten rows each; the rows of a cluster share their features and their label."""
X_ALIKE, Y_ALIKE = X[CLUSTER], Y[CLUSTER]


@pytest.mark.parametrize("names", [CLUSTER, CLUSTER.astype(str)])
def test_folds_keep_clusters_whole(names: np.ndarray) -> None:
    """A tree that has seen a row's cluster knows its label: scores look perfect unless folds keep clusters whole."""
    slopes = [
        decal.Calibrator(DecisionTreeClassifier(random_state=0), method="platt(on=p)")
        .fit(X_ALIKE, Y_ALIKE, cluster=cluster)
        .calibration_.model.slope
        for cluster in (None, names)
    ]
    assert slopes[0] > 8 and slopes[1] < 3


def test_the_method_itself_keeps_clusters_whole() -> None:
    """The stack picks its penalty in folds of its own; rows in clusters lead to another one."""
    fitted = [
        decal.Calibrator(FrozenEstimator(GaussianNB().fit(X, Y)), method="stack", cv=GroupKFold(5))
        .fit(X_ALIKE, Y_ALIKE, cluster=cluster)
        .predict_proba(X)
        for cluster in (CLUSTER, np.arange(len(X)))
    ]
    assert np.abs(fitted[0] - fitted[1]).max() > 1e-6


def test_every_fold_may_be_one_cluster() -> None:
    decal.Calibrator(GaussianNB(), cv=40).fit(X, Y, cluster=np.arange(600) % 40)


@pytest.mark.parametrize(
    ("arguments", "cluster", "says"),
    [
        ({"method": "isotoni"}, None, "did you mean isotonic?"),
        ({"decision": 3}, None, "threshold 3 is not inside"),
        ({"method": "threshold"}, None, "threshold needs a decision; give for example decision=0.3"),
        ({"method": None}, None, "method=None is not a text"),
        ({"method": "hedge"}, None, "hedge is a forecaster over time"),
        ({"seed": "a"}, None, "seed='a' is not a whole number"),
        # What a decision says beside two actions that all rows share would be dropped in silence.
        ({"decision": decal.Decision(0.3).at_capacity("50/1000")}, None, "a capacity is for many rows"),
        ({"decision": decal.Decision(0.3).vary("abstain", 0, 0.5)}, None, "give a decision without vary"),
        ({"decision": decal.Decision.per_row(fn="a", fp=10)}, None, "cost_fn_column= gives each row its own"),
        ({"decision": [[0, -1], [-0.2, -0.4], [-1, 0]]}, None, "two actions"),
        # Folds that would cut clusters, and clusters that are none.
        ({"cv": KFold(4)}, np.arange(600) % 40, "puts rows of cluster '0' on both sides"),
        ({"cv": 50}, np.arange(600) % 40, "cv=50 folds keep clusters whole, and there are only 40"),
        ({"cv": 5}, [None, "a", "b"] * 200, "the cluster of 200 rows is missing"),
        ({"cv": 5}, np.zeros(600), "the cluster of every row is '0'"),
    ],
)
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
def test_what_cannot_be_fitted_is_a_value_error(arguments: dict, cluster: object, says: str) -> None:
    with pytest.raises(decal.DecalError) as raised:
        decal.Calibrator(GaussianNB(), **arguments).fit(X, Y, cluster=cluster)
    assert says in str(raised.value) and "\n" not in str(raised.value) and isinstance(raised.value, ValueError)


def test_a_misspelt_parameter_is_named() -> None:
    with pytest.raises(TypeError, match=r"Calibrator\(\) has no argument 'methode'; did you mean method\?"):
        decal.Calibrator(methode="isotonic")


def test_an_ensemble_that_is_not_fitted_is_calibrated() -> None:
    """It has no length yet, and so no truth."""
    from sklearn.ensemble import RandomForestClassifier

    x = np.random.default_rng(0).normal(size=(120, 2))
    fitted = decal.Calibrator(RandomForestClassifier(5, random_state=0)).fit(x, (x[:, 0] > 0).astype(int))
    assert len(fitted.estimator_) == 5
