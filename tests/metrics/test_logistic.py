"""The logistic function and its inverse, and Newton's method where full steps run away or terms are collinear."""

import numpy as np
import pytest
from hypothesis import assume, given

from decal_cli.errors import Undefined
from decal_cli.metrics.families.scores import CalibrationLine, calibration_line
from decal_cli.tables.logistic import climb, expit, lines, log_odds, row_slopes, separated
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Table
from tests.helpers.worlds import any_rows, rows_by_level, value_of


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
        assert bool(separated(t.pos, t.n)) is are


def test_many_lines_are_each_by_itself() -> None:
    """Three hundred curves of few rows, some of which have no maximum: the fits of Newton's method one by one."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(0, 3, 12))
    n = rng.integers(0, 3, (300, 12)).astype(float)
    pos = rng.binomial(n.astype(int), expit(-1 + 2 * x)).astype(float)
    n[0], pos[0] = 2.0, 1.0
    found = lines(x, n, pos, 1e-9)
    terms = np.vstack((np.ones(12), x))
    for k in range(300):
        if not 0 < pos[k].sum() < n[k].sum() or separated(pos[k], n[k]):
            continue
        alone, _ = climb(lambda at, k=k: row_slopes(terms, n[k], pos[k], at), np.array((0.0, 1.0)), 1e-9)
        np.testing.assert_allclose(found[k], alone, rtol=1e-6, atol=1e-8)
    assert np.isfinite(found).all(axis=1).sum() > 100
    assert found[0] == pytest.approx([0, 0], abs=1e-9)
    # Rows of one score show no slope.
    assert np.isnan(lines(x, np.eye(12)[:1] * 4, np.eye(12)[:1], 1e-9)).all()


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


def assert_likeliest(fit: CalibrationLine, t: Table) -> None:
    """Where it is the maximum, the weighted residuals sum to nothing, alone and against the logits."""
    x = np.log(t.score / (1 - t.score))
    residual = t.pos - t.n / (1 + np.exp(-(fit.intercept.mean + fit.slope.mean * x)))
    assert abs(residual.sum()) < 1e-7 * t.total
    assert abs((residual * x).sum()) < 1e-6 * t.total


@given(rows=any_rows(least=8, inner=True))
def test_they_maximise_the_likelihood(rows: Rows) -> None:
    t = rows.table
    try:
        fit = calibration_line(t)
    except Undefined:
        assume(False)
    assert_likeliest(fit, t)


def rows_of_line(rng: np.random.Generator, size: int, slope: float, intercept: float) -> Rows:
    x = rng.normal(size=size)
    chance = 1 / (1 + np.exp(-(intercept + slope * x)))
    return Rows(1 / (1 + np.exp(-x)), (rng.random(size) < chance).astype(int))


def test_they_recover_what_the_world_was_made_with_above_the_number_of_cells() -> None:
    """150,000 levels: the start comes from 65,536 cells, the last steps from every level."""
    world = rows_of_line(np.random.default_rng(0), 150_000, 0.6, 0.2)
    fit = calibration_line(world.table)
    assert fit.slope.mean == pytest.approx(0.6, abs=4 * fit.slope.error)
    assert fit.intercept.mean == pytest.approx(0.2, abs=4 * fit.intercept.error)
    assert_likeliest(fit, world.table)


UNDEFINED = {
    "3 rows have a score of exactly 0 or 1": rows_by_level({0.0: "01", 0.5: "01", 1.0: "1"}),
    "every score is the same": rows_by_level({0.4: "0101"}),
    "every label is 0": rows_by_level({0.4: "00", 0.5: "0"}),
    "a threshold separates the labels": rows_by_level({0.2: "00", 0.5: "01", 0.7: "1"}),
    "threshold separates": rows_by_level({0.2: "1", 0.7: "00"}),
}


@pytest.mark.parametrize("reason", UNDEFINED)
def test_where_there_is_no_maximum_they_are_undefined(reason: str) -> None:
    for key in ("calibration_slope", "calibration_intercept"):
        with pytest.raises(Undefined, match=reason):
            value_of(key, UNDEFINED[reason].table)


def test_extreme_scores_converge() -> None:
    slope = value_of("calibration_slope", rows_by_level({1e-12: "0001", 0.5: "0011", 1 - 1e-12: "0111"}).table)
    assert slope == pytest.approx(np.log(3) / np.log((1 - 1e-12) / 1e-12), rel=1e-4)
