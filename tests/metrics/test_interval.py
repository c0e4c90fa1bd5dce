"""The law behind the p-value of c_emp: the range of Brownian motion on [0, 1]."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from decal_cli.metrics.families.interval import range_above
from decal_cli.tables.rows import Rows
from tests.helpers.worlds import rows_by_level, value_of


def density_mean(power: int) -> float:
    """E range^power = int power x^(power - 1) P(range > x) dx."""
    x = np.linspace(0.005, 12, 24_000)
    tail = np.array([range_above(float(at)) for at in x])
    return float(np.trapezoid(power * x ** (power - 1) * tail, x)) + 0.005**power


def test_its_moments_are_fellers() -> None:
    """E R = 2 sqrt(2/pi), E R^2 = 4 ln 2 [Feller 1951]."""
    assert density_mean(1) == pytest.approx(2 * math.sqrt(2 / math.pi), abs=1e-5)
    assert density_mean(2) == pytest.approx(4 * math.log(2), abs=1e-5)


def test_the_two_series_meet() -> None:
    assert range_above(2 - 1e-9) == pytest.approx(range_above(2 + 1e-9), abs=1e-8)


def test_it_falls_from_one_to_zero() -> None:
    tail = [range_above(x) for x in np.linspace(0, 40, 400)]
    assert tail[0] == 1 and tail[-1] == 0
    assert all(before >= after for before, after in itertools.pairwise(tail))


def test_calibrated_worlds_give_uniform_p_values() -> None:
    """A walk of steps has a slightly smaller range than Brownian motion, so the test is a little cautious."""
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    p_values = [value_of("c_emp_pvalue", Rows(score, (rng.random(2000) < score).astype(int)).table) for _ in range(400)]
    assert 0.02 <= np.mean(np.array(p_values) < 0.1) <= 0.13
    assert 0.35 <= np.mean(np.array(p_values) < 0.5) <= 0.55


def test_scores_that_cannot_err_either_do_or_do_not() -> None:
    assert value_of("c_emp_pvalue", rows_by_level({0.0: "00", 1.0: "1"}).table) == 1
    assert value_of("c_emp_pvalue", rows_by_level({0.0: "01", 1.0: "1"}).table) == 0
