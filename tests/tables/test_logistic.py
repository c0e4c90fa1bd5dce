"""The logistic function and its inverse, and Newton's method where full steps run away or terms are collinear."""

import numpy as np
import pytest

from decal_cli.errors import Undefined
from decal_cli.tables.logistic import climb, expit, log_odds, row_slopes, separated
from tests.helpers.worlds import rows_by_level


def test_the_inverse_gives_the_log_odds_back() -> None:
    x = np.linspace(-30, 30, 61)
    np.testing.assert_allclose(log_odds(expit(x[:40])), x[:40], rtol=1e-9)
    np.testing.assert_allclose(expit(-x) + expit(x), 1, rtol=1e-15)
    assert expit(np.array([-1000.0, 0.0, 1000.0])).tolist() == [0, 0.5, 1]
    np.testing.assert_allclose(log_odds(np.array([0.0, 1.0]), least=0.25), np.log([1 / 3, 3]))


def test_labels_are_separated_where_a_threshold_parts_them() -> None:
    for labels, are in (({0.2: "00", 0.6: "11"}, True), ({0.2: "11", 0.6: "01", 0.7: "00"}, True),
                        ({0.2: "01", 0.6: "01"}, False)):  # fmt: skip
        t = rows_by_level(labels).table
        assert separated(t.pos, t.n) is are


def slope_of(x: np.ndarray, n: np.ndarray, pos: np.ndarray, *, collinear: bool, penalty: float = 0.0) -> np.ndarray:
    terms = np.atleast_2d(x)
    return climb(lambda at: row_slopes(terms, n, pos, at, penalty), np.zeros(len(terms)), 1e-10, collinear)[0]


def test_the_maximum_of_one_term_is_where_its_gradient_is_zero() -> None:
    x, n, pos = np.array([-1.0, 1.0, 3.0]), np.array([10.0, 10.0, 1.0]), np.array([2.0, 7.0, 1.0])
    at = slope_of(x, n, pos, collinear=False)
    assert float(x @ (pos - n * expit(at * x))) == pytest.approx(0, abs=1e-9)
    # One row far out makes full steps overshoot; the penalty's gradient is 2 penalty at.
    x, pos = np.array([-1.0, 1.0, 400.0]), np.array([2.0, 7.0, 0.5])
    at = slope_of(x, n, pos, collinear=False, penalty=0.5)
    assert float(x @ (pos - n * expit(at * x)) - at[0]) == pytest.approx(0, abs=1e-7)


def test_collinear_terms_share_the_slope_of_one() -> None:
    x, n, pos = np.array([-1.0, 1.0, 2.0]), np.array([10.0, 10.0, 4.0]), np.array([2.0, 7.0, 3.0])
    one = slope_of(x, n, pos, collinear=True)
    both = slope_of(np.array([x, x]), n, pos, collinear=True)
    assert both.sum() == pytest.approx(float(one[0]), abs=1e-9)


def test_where_there_is_no_maximum_it_is_undefined() -> None:
    x, n = np.array([-1.0, 1.0]), np.ones(2)
    with pytest.raises(Undefined, match="overlap more"):
        slope_of(x, n, np.array([0.0, 1.0]), collinear=False)
