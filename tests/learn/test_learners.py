"""The probe's parts against slow or foreign ones."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from decal_cli.learn.probe import EQUAL, HOLD, Regression, Standard, Trees, blend_weights, blended, logistic_fit
from decal_cli.tables.logistic import expit, log_odds


def test_the_logistic_fit_is_scikit_learns() -> None:
    """Whose penalty is |w|^2 / (2 C), 0 for the intercept."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(300, 3)), rng.uniform(0.5, 2, 300)
    y = (rng.random(300) < expit(x[:, 0] - 0.5)).astype(float)
    theirs = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky").fit(x, y, sample_weight=w)
    ours = logistic_fit(x, y, w, np.array([0.0, 0.5, 0.5, 0.5]), np.zeros(4))
    assert ours == pytest.approx([theirs.intercept_[0], *theirs.coef_[0]], abs=1e-6)


def test_the_logistic_fit_is_held_to_its_centre() -> None:
    """A penalised step from c is one from 0 with c as an offset: here by a fine search along one slope."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 1))
    y = (rng.random(200) < expit(2 * x[:, 0])).astype(float)
    penalty, centre = np.array([1e9, 30.0]), np.array([0.25, 0.5])
    fitted = logistic_fit(x, y, np.ones(200), penalty, centre)
    assert fitted[0] == pytest.approx(0.25, abs=1e-6)
    slopes = np.linspace(0, 3, 30_001)
    total = 0.25 + slopes[:, None] * x[:, 0]
    loss = np.logaddexp(0, np.where(y > 0.5, -1, 1) * total).sum(axis=1) + 30 * (slopes - 0.5) ** 2
    assert fitted[1] == pytest.approx(slopes[loss.argmin()], abs=2e-4)


def test_weights_are_equal_where_nothing_is_known_and_leave_what_predicts_badly() -> None:
    rng = np.random.default_rng(2)
    assert blend_weights(np.zeros((0, 3)), np.zeros(0), np.ones(0)) == pytest.approx(EQUAL)
    truth = rng.normal(size=4000)
    label = (rng.random(4000) < expit(truth)).astype(float)
    noise = rng.normal(size=(4000, 2))
    each = np.column_stack((noise[:, 0], truth, noise[:, 1]))
    _, regression, trees, recalibrated = blend_weights(each, label, np.ones(4000))
    assert trees > 0.9 and abs(regression) < 0.1 and abs(recalibrated) < 0.1
    assert (HOLD > 0).all()


def test_blending_is_a_weighted_sum_of_log_odds_row_by_row() -> None:
    each, weights = np.random.default_rng(3).normal(size=(50, 3)), np.array([0.1, 0.7, 0.4, -0.2])
    probability = blended(each, weights)
    assert log_odds(probability) == pytest.approx(0.1 + each @ weights[1:], abs=1e-12)
    assert np.array_equal(blended(each[7:9], weights), probability[7:9])


def test_features_are_standardised_and_cut() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack((rng.normal(5, 2, 400), np.full(400, 3.0), rng.integers(0, 2, 400) * 2.0, rng.normal(size=400)))
    x[0, 3] = 1e300
    columns = Standard(x, np.ones(400))(x)
    assert columns.shape == (400, 3)  # the constant one goes
    assert columns[:, 0] == pytest.approx((x[:, 0] - x[:, 0].mean()) / x[:, 0].std())
    assert np.abs(columns).max() <= 8


def test_missing_values_stand_at_the_mean_of_the_others() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(3, 2, (200, 2)), rng.uniform(0.5, 2, 200)
    x[::4, 0] = np.nan
    known, empty = ~np.isnan(x[:, 0]), np.column_stack((x[:, :1], np.full(200, np.nan)))
    columns = Standard(x, w)(x)
    assert (columns[~known, 0] == 0).all()
    alone = Standard(x[known], w[known])(x[known])
    assert columns[known, 0] == pytest.approx(alone[:, 0], abs=1e-12)
    assert Standard(empty, w)(empty).shape == (200, 1)


def test_the_regression_is_a_logistic_fit_on_standardised_log_odds() -> None:
    rng = np.random.default_rng(0)
    score, x, w = rng.normal(1, 3, 300), rng.normal(size=(300, 2)), np.ones(300)
    y = (rng.random(300) < expit(0.3 * score + x[:, 1])).astype(float)
    columns = np.column_stack(((score - score.mean()) / score.std(), x))
    theirs = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky").fit(columns, y)
    ours = Regression(score, x, y, w)
    assert ours(score[:9], x[:9]) == pytest.approx(theirs.decision_function(columns[:9]), abs=1e-6)
    constant = Regression(np.full(300, 0.7), x, y, w)
    assert np.isfinite(constant(score, x)).all()


def test_trees_see_a_product_and_are_the_same_again() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 4))
    y = (rng.random(3000) < expit(2 * x[:, 0] * x[:, 1])).astype(float)
    score = np.full(3000, 0.5)
    trees = Trees(score, x, y, None, seed=1)
    assert np.corrcoef(trees(score, x), x[:, 0] * x[:, 1])[0, 1] > 0.7
    again = Trees(score, x, y, None, seed=1 + 2**32)
    assert np.array_equal(trees(score[:100], x[:100]), again(score, x)[:100])
