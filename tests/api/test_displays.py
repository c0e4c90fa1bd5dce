"""Pictures in axes of the user's: the answers' plot and the displays of scikit-learn's convention."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import decal_cli as decal

pytestmark = pytest.mark.usefixtures("one_deal")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
Y = RNG.random(300) < 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1]))
MODEL = GaussianNB().fit(X, Y)
P = MODEL.predict_proba(X)[:, 1]
DISPLAYS = [
    decal.ReliabilityDisplay,
    decal.BrierCurveDisplay,
    decal.DecisionCurveDisplay,
    decal.GroupingDisplay,
    decal.GainsDisplay,
]


@pytest.fixture(autouse=True)
def figures() -> Iterator[None]:
    matplotlib.use("agg")
    yield
    pyplot.close("all")


def drawn(axes: Any) -> list[list[float]]:
    """What the lines of a picture go through."""
    return [np.round(np.ma.filled(line.get_xydata(), np.nan), 9).tolist() for line in axes.lines]


@pytest.mark.ci
@pytest.mark.parametrize("display", DISPLAYS)
def test_an_estimator_and_its_predictions_give_the_same_picture(display: type[decal.ReliabilityDisplay]) -> None:
    _, axes = pyplot.subplots(1, 2)
    first = display.from_estimator(MODEL, X, Y, threshold=0.3, ax=axes[0])
    features = X if display.looks_at_features else None
    display.from_predictions(Y, P, features=features, threshold=0.3, name="GaussianNB", ax=axes[1])
    assert first.ax_ is axes[0] and first.figure_ is axes[0].figure and len(axes[0].lines) > 0
    assert repr(drawn(axes[0])) == repr(drawn(axes[1]))
    again = first.plot()
    assert again is first and first.ax_ is not axes[0]


def test_the_positive_class_is_the_one_that_is_named() -> None:
    words = np.where(Y, "yes", "no")
    model = GaussianNB().fit(X, words)
    default, named = (
        decal.ReliabilityDisplay.from_estimator(model, X, words, pos_label=label).sweep.reports[0].positives
        for label in (None, "no")
    )
    assert default == Y.sum() and named == 300 - Y.sum()


@pytest.mark.parametrize("model", [LinearSVC().fit(X, Y), GaussianNB()], ids=["without probabilities", "not fitted"])
def test_what_a_picture_needs_of_a_classifier_is_said(model: Any) -> None:
    with pytest.raises(decal.DecalError, match=r"the classifier has no .*; fit one that has probabilities"):
        decal.ReliabilityDisplay.from_estimator(model, X, Y)


@cache
def advised() -> decal.RecommendAnswer:
    return decal.recommend(P, Y, features=X, threshold=0.3)


@pytest.mark.parametrize("picture", ["brier", "decision", "reliability", "grouping", "waterfall"])
def test_an_answer_draws_into_the_axes_it_is_given(picture: str) -> None:
    _, axes = pyplot.subplots()
    assert advised().plot(picture, ax=axes) is axes and len(axes.lines) > 0


def test_of_rows_with_utilities_of_their_own_the_pictures_of_scores_are_drawn() -> None:
    rows = {"p": P, "y": Y, "amount": np.linspace(1, 9, len(Y))}
    advice = decal.recommend(rows, decal.Decision.per_row(fn="amount", fp=2), score="p", label="y")
    assert advice.plot("reliability").get_xlabel() == "score"
    with pytest.raises(decal.DecalError, match=r"waterfall is of one decision .*; draw 'reliability' or 'brier'"):
        advice.plot()


@pytest.mark.ci
def test_every_answer_has_a_picture_of_its_own() -> None:
    two = {"a": P, "b": P**2}
    assert decal.evaluate(P, Y).plot().get_xlabel() == "score"
    assert decal.compare(two, Y).plot().get_xlabel() == "threshold t*"
    assert decal.sweep(two, Y).plot().get_xlabel() == "threshold t*"
    with pytest.raises(decal.DecalError, match="report=2 is none of the 2 reports"):
        decal.sweep(two, Y).plot("reliability", report=2)
    assert decal.sweep(two, Y).plot("reliability", report=1).get_title(loc="left") == "Reliability: b"
    three = decal.sweep(two | {"c": P}, Y, intervals=False)
    assert three.one_line == "a, b, c: 15 curves at 99 thresholds, 0.01 to 0.99"


def test_a_number_of_the_task_that_varies_is_drawn_in_the_terms_of_the_user() -> None:
    terms = decal.Terms(unit="EUR", decisions="1000/day")
    varied = decal.Decision(0.3, terms=terms).vary("capacity", 0.1, 0.5)
    swept = decal.sweep((P, Y), varied, intervals=False)
    drawn = swept.plot("utility")
    worth = swept.to_dict()["vary"]["curves"]["utility_at_capacity"]["value"]
    assert drawn.get_ylabel() == "EUR a day"
    assert drawn.lines[0].get_ydata() == pytest.approx(1000 * np.array(worth))


def test_of_several_classes_the_report_that_is_named_is_drawn() -> None:
    rows = RNG.dirichlet((1, 1, 1), 200)
    columns = {f"{name}:{k}": each[:, k] for name, each in (("a", rows), ("b", rows[::-1])) for k in range(3)}
    columns["y"] = rows.argmax(axis=1)
    answer = decal.evaluate(columns, proba=["a:*", "b:*"], label="y", metrics="brier")
    titles = [answer.plot("reliability", report=k).get_title(loc="left") for k in (0, 1)]
    assert titles == ["Reliability: a", "Reliability: b"]
    assert len(answer.plot("risk-coverage", report=1).lines) >= 2, "which shows both"
