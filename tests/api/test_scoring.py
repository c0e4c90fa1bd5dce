"""Scorers: what scikit-learn's own tools choose by them is what decal measures."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV, cross_val_score

import decal_cli as decal

RNG = np.random.default_rng(5)
X = RNG.normal(size=(600, 3))
Y = (RNG.random(600) < 1 / (1 + np.exp(-X[:, 0] - X[:, 1]))).astype(int)
MODEL = LogisticRegression().fit(X[:300], Y[:300])


@pytest.mark.parametrize(("metric", "sign"), [("expected_utility", 1), ("external_regret", -1), ("brier", -1)])
def test_a_score_is_the_metric_and_higher_is_better(metric: str, sign: int) -> None:
    score = decal.scorer(metric, 0.3)(MODEL, X[300:], Y[300:])
    measured = decal.evaluate((MODEL.predict_proba(X[300:])[:, 1], Y[300:]), 0.3, metrics=[metric])
    assert score == pytest.approx(sign * measured[metric].value)


def test_weights_and_keywords_reach_the_metric() -> None:
    costs = decal.scorer(cost_fp=1, cost_fn=4)
    weight = RNG.random(300)
    data = decal.Data((MODEL.predict_proba(X[300:])[:, 1], Y[300:]), weight=weight)
    measured = decal.evaluate(data, cost_fp=1, cost_fn=4, metrics=["expected_utility"])
    assert costs(MODEL, X[300:], Y[300:], sample_weight=weight) == pytest.approx(measured["expected_utility"].value)


def test_searches_use_it_and_it_can_be_sent_to_other_processes() -> None:
    scoring = pickle.loads(pickle.dumps(decal.scorer("brier")))
    found = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, scoring=scoring, cv=3)
    each = cross_val_score(LogisticRegression(C=1.0), X, Y, scoring=decal.scorer("brier"), cv=3)
    assert found.fit(X, Y).cv_results_["mean_test_score"][1] == pytest.approx(each.mean())


def test_a_tuned_threshold_is_the_best_of_its_grid() -> None:
    scoring = decal.scorer("expected_utility", 0.3, response_method="predict")
    grid = np.linspace(0.05, 0.95, 19)
    tuned = TunedThresholdClassifierCV(MODEL, scoring=scoring, thresholds=grid, cv="prefit", refit=False)
    tuned.fit(X[300:], Y[300:])
    scores = MODEL.predict_proba(X[300:])[:, 1]
    worth = [np.mean(np.where(scores >= t, 0.7 * Y[300:] - 0.3 * (1 - Y[300:]), 0.0)) for t in grid]
    assert worth[int(np.argmin(np.abs(grid - tuned.best_threshold_)))] == pytest.approx(max(worth))


def test_what_cannot_be_chosen_by_is_refused() -> None:
    with pytest.raises(decal.DecalError, match="has no direction"):
        decal.scorer("calibration_slope")
    with pytest.raises(ValueError, match="needs features"):
        decal.scorer("regret", 0.3)(MODEL, X[300:], Y[300:])
    with pytest.raises(decal.DecalError, match=r"needs a decision; give for example scorer\('expected_utility', 0.3\)"):
        decal.scorer("expected_utility")  # scikit-learn would take each error for a missing score
    with pytest.raises(decal.DecalError, match="is not one metric; name one"):
        decal.scorer(["brier", "auc"])  # type: ignore[arg-type]


def test_of_labels_that_are_texts_the_probability_of_the_positive_one_is_judged() -> None:
    names, scores = np.array(["no", "yes"]), MODEL.predict_proba(X[300:])
    named = LogisticRegression().fit(X[:300], names[Y[:300]])
    for at, positive in enumerate(names):
        score = decal.scorer("brier", positive=positive)(named, X[300:], names[Y[300:]])
        assert score == pytest.approx(-np.mean((scores[:, at] - (Y[300:] == at)) ** 2))


def test_several_classes_are_columns_in_the_order_of_their_labels() -> None:
    labels = np.array(["b", "c", "a"])[Y + (X[:, 2] > 0.5)]
    model = LogisticRegression().fit(X[:300], labels[:300])
    scores, at = model.predict_proba(X[300:]), np.searchsorted(model.classes_, labels[300:])
    log_loss = decal.scorer("log_loss")(model, X[300:], labels[300:])
    assert log_loss == pytest.approx(np.mean(np.log(scores[np.arange(300), at])))
    assert decal.scorer(decision=decal.Decision.abstain(0.4))(model, X[300:], labels[300:]) >= 0.6
    with pytest.raises(decal.DecalError, match="the labels have 2 different values"):
        decal.evaluate((scores, Y[300:]))


@pytest.mark.parametrize("labels", [(0, 1), (1, 2), (-1, 1), ("no", "yes"), (False, True)], ids=str)
@pytest.mark.parametrize("positive", [0, 1])
def test_predicted_labels_are_acted_on_where_they_are_the_positive_one(labels: tuple[Any, Any], positive: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    y = (x[:, 0] + rng.normal(size=200) > 0).astype(int)
    model = LogisticRegression().fit(x, np.array(labels)[y])
    named = {} if positive and set(labels) <= {0, 1} else {"positive": labels[positive]}
    score = decal.scorer("expected_utility", 0.3, response_method="predict", **named)
    label, acts = ((each == labels[positive]) for each in (np.array(labels)[y], model.predict(x)))
    expected = -np.mean(0.3 * (acts & ~label) + 0.7 * (~acts & label))
    assert score(model, x, np.array(labels)[y]) == pytest.approx(expected)


def test_predicted_labels_of_one_class_are_what_they_are() -> None:
    """A fold of label 0 alone, all of it predicted: nothing is acted on, and nothing lost."""
    model = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    score = decal.scorer("expected_utility", 0.3, response_method="predict")
    assert score(model, [[-2.0]] * 30, np.zeros(30, dtype=int)) == 0.0


def test_a_scorer_of_several_classes_takes_decided_labels() -> None:
    x = np.random.default_rng(0).normal(size=(300, 2))
    y = np.array(list("abc"))[(x[:, 0] > 0).astype(int) + (x[:, 1] > 1)]
    model = LogisticRegression().fit(x, y)
    for way in ("predict", "predict_proba"):
        found = decal.scorer("accuracy", abstain=0.2, response_method=way)(model, x, y)
        assert found == pytest.approx(model.score(x, y))


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"metric": "brier", "foo": 1}, TypeError, "no argument 'foo'"),
        ({"decision": 30}, decal.DecalError, "threshold 30 is not inside"),
    ],
)
def test_a_scorer_is_checked_when_it_is_made(wrong: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        decal.scorer(**wrong)
