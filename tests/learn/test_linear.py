"""Logistic regression as arrays: scikit-learn's probabilities, whatever the units, and refusals."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from decal_cli.errors import Undefined
from decal_cli.learn.curves import Curve
from decal_cli.learn.method import Training
from decal_cli.learn.stacks import ColumnScale, Planes, ScoreColumn, float_columns, planes_of, with_recalibrated
from decal_cli.tables.logistic import expit
from decal_cli.tables.rows import Unlabelled


def logistic_columns(rows: int = 400, columns: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns and labels of a logistic world."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns)) * 10.0 ** np.arange(columns) + 3
    return x, (rng.random(rows) < expit(x[:, 0] - x[:, 1] / 10)).astype(float)


def fitted_plane(x: np.ndarray, y: np.ndarray, **options: float) -> Planes:
    weight = np.ones(len(y))
    return planes_of(x, y, [weight], ColumnScale.of(x, weight), **options)


@pytest.mark.parametrize("columns", [4, 301])
def test_it_is_scikit_learns_regression_on_standardised_columns(columns: int) -> None:
    x, y = logistic_columns(columns=4)
    x = np.column_stack((x, np.random.default_rng(1).normal(size=(len(x), columns - 4))))
    oracle = make_pipeline(StandardScaler(), LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000)).fit(x, y)
    ours = expit(fitted_plane(x, y, penalty=2.0)(x)[:, 0])
    np.testing.assert_allclose(ours, oracle.predict_proba(x)[:, 1], atol=1e-6 if columns == 4 else 1e-3)


def test_units_make_no_difference_and_constant_columns_none() -> None:
    x, y = logistic_columns()
    other = np.column_stack((x * 1e6 - 5, np.full(len(x), 0.1), np.zeros(len(x))))
    plane = fitted_plane(other, y)
    np.testing.assert_allclose(plane(other), fitted_plane(x, y)(x), atol=1e-6)
    np.testing.assert_allclose(plane.coefficient[0, 4:], 0, atol=1e-9)


def test_a_weight_of_two_is_two_rows() -> None:
    x, y = logistic_columns()
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    one, other = ColumnScale.of(x, weight), ColumnScale.of(x[again], np.ones(len(again)))
    np.testing.assert_allclose(one.scale, other.scale)
    ones = np.ones(len(again))
    np.testing.assert_allclose(planes_of(x, y, [weight], one)(x), planes_of(x[again], y[again], [ones], other)(x))


def test_a_row_is_rounded_alike_alone_and_among_others() -> None:
    x, y = logistic_columns(columns=37)
    plane = fitted_plane(x, y)
    np.testing.assert_array_equal(plane(x), np.vstack([plane(row[None]) for row in x]))


@pytest.mark.parametrize("large", [1e30, 1e300, np.inf])
def test_huge_features_give_finite_log_odds(large: float) -> None:
    x, y = logistic_columns()
    x[::7, 2] = large
    x[::5, 3] = -large
    x[:, 1] *= 1e-300
    x = float_columns(Unlabelled(np.zeros(len(x)), features=x))
    plane = fitted_plane(x, y)
    assert np.isfinite(plane(x)).all()
    assert np.isfinite(plane(float_columns(Unlabelled(np.zeros(2), features=np.full((2, 4), large))))).all()


def test_features_that_are_not_there_are_missed() -> None:
    with pytest.raises(Undefined, match="features"):
        float_columns(Unlabelled(np.zeros(2)))


def test_recalibration_while_fitting_does_not_see_the_rows_own_label() -> None:
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    rows = Training(score, (rng.random(2000) < 0.5).astype(float), features=np.zeros((2000, 1)))
    score_column, columns = with_recalibrated(rows)
    seen, held = score_column(rows)[:, 0], columns[:, 0]
    assert np.corrcoef(seen, rows.label)[0, 1] > 0.03
    assert abs(np.corrcoef(held, rows.label)[0, 1]) < 0.05
    assert np.corrcoef(seen, rows.label)[0, 1] > np.corrcoef(held, rows.label)[0, 1]


def test_log_odds_of_the_score_are_no_surer_than_the_rows_allow() -> None:
    column = ScoreColumn(Curve(np.array([0.0, 1.0]), np.array([0.0, 1.0])), 0.01)
    columns = column(Unlabelled(np.array([0.0, 0.5, 1.0]), features=np.array([[7.0], [8.0], [9.0]])))
    np.testing.assert_allclose(columns, [[-np.log(99), 7], [0, 8], [np.log(99), 9]], atol=1e-12)


def test_two_rows_are_recalibrated_by_one_another() -> None:
    rows = Training(np.array([0.2, 0.8]), np.array([0.0, 1.0]), features=np.zeros((2, 1)))
    np.testing.assert_allclose(with_recalibrated(rows)[1][:, 0], [np.log(3), -np.log(3)])


ONE = ColumnScale(np.zeros(2), np.ones(2))


def test_what_is_no_linear_model_is_refused() -> None:
    with pytest.raises(ValueError, match="scale"):
        ColumnScale(np.zeros(2), np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="scale"):
        ColumnScale(np.zeros(2), np.ones(3))
    with pytest.raises(ValueError, match="coefficient"):
        Planes(ONE, np.zeros((1, 3)), np.zeros(1))
    with pytest.raises(ValueError, match="finite"):
        Planes(ONE, np.array([[np.nan, 1]]), np.zeros(1))
    with pytest.raises(ValueError, match="away from 0"):
        ScoreColumn(Curve(np.zeros(1), np.zeros(1)), 0.0)
    with pytest.raises(ValueError, match="2 columns"):
        ONE(np.zeros((4, 3)))
