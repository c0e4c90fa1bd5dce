"""What blend's weights do: nothing where little is known, much where one of its parts is right."""

from dataclasses import replace

import numpy as np
import pytest

from decal_cli.learn.method import Training
from decal_cli.learn.probe import EQUAL
from decal_cli.learn.stacks import Blended, blend, stack, stack_boosting
from tests.helpers.training import random_training, unlabelled


def product_rows(rows: int, seed: int = 0) -> Training:
    """Labels that depend on the product of two features, and scores that know nothing of it."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    label = (rng.random(rows) < 1 / (1 + np.exp(-2 * x[:, 0] * x[:, 1]))).astype(float)
    return Training(rng.random(rows), label, features=x)


def fitted(rows: Training) -> Blended:
    model = blend(rows)
    assert isinstance(model, Blended)
    return model


def test_it_is_the_weighted_sum_of_its_parts() -> None:
    rows = random_training(200, 3)
    new, model = unlabelled(random_training(40, 9)), fitted(rows)
    one, other, calibrated = (
        part(new).score for part in (stack(rows), stack_boosting(rows), model.regression.score.curve)
    )
    logit = np.log(np.array([one, other, np.clip(calibrated, 1e-3, 1 - 1e-3)]))
    logit -= np.log(1 - np.array([one, other, np.clip(calibrated, 1e-3, 1 - 1e-3)]))
    expected = 1 / (1 + np.exp(-(model.weights[0] + model.weights[1:] @ logit)))
    assert model(new).score == pytest.approx(expected, abs=1e-12)


def test_trees_take_the_weight_where_only_they_see_the_signal() -> None:
    rows, new = product_rows(2000), product_rows(4000, 1)
    model = fitted(rows)
    assert model.weights[2] > 0.7
    equal = replace(model, weights=EQUAL)

    def loss(one: Blended) -> float:
        p = one(new).score
        return float(-np.mean(np.log(np.where(new.label > 0.5, p, 1 - p))))

    assert loss(model) < loss(equal) - 0.01


def test_one_row_of_a_label_leaves_the_weights_equal() -> None:
    rows = replace(product_rows(60), label=(np.arange(60) == 7).astype(float))
    assert np.array_equal(fitted(rows).weights, EQUAL)
    assert np.isfinite(fitted(replace(rows, label=(np.arange(60) < 2).astype(float))).weights).all()


def test_some_rows_are_enough_to_weigh(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = product_rows(600)
    whole = fitted(rows)
    monkeypatch.setattr("decal_cli.learn.stacks._MAX_WEIGHED_ROWS", 300)
    some = fitted(rows)
    assert np.array_equal(some.boosting.forest.nodes.value, whole.boosting.forest.nodes.value)
    assert not np.array_equal(some.weights, whole.weights)


@pytest.mark.parametrize("weights", [np.zeros(3), np.array([0.0, 1.0, np.nan, 0.0])])
def test_weights_that_fit_nothing_are_refused(weights: np.ndarray) -> None:
    with pytest.raises(ValueError, match="three weights"):
        replace(fitted(product_rows(60)), weights=weights)
