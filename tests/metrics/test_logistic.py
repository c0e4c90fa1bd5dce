"""Calibration slope and intercept: an unpenalised logistic regression, and where there is none."""

import numpy as np
import pytest
from hypothesis import assume, given

from decal_cli.errors import Undefined
from decal_cli.metrics.families.scores import CalibrationLine, calibration_line
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Table
from tests.helpers.worlds import any_rows, rows_by_level, value_of


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
