"""The law behind the p-value of c_emp: the range of Brownian motion on [0, 1]."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given

from decal_cli.metrics import Inputs, measure, parse
from decal_cli.metrics.families.calibration import range_above
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Table
from decal_cli.task import BinaryTask
from tests.helpers.worlds import any_rows, interval_of, known_rows, rows_by_level, value_of


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


def test_atb_of_two_sure_halves() -> None:
    """.51 where y = 1 and .49 where y = 0: .02 x 2 x .245^2, and nothing outside: truthful (arXiv 2508.13100)."""
    assert value_of("atb", rows_by_level({0.49: "00", 0.51: "11"}).table) == pytest.approx(0.002401, abs=1e-12)


def test_atb_is_least_where_the_truth_is_said() -> None:
    """Its mean over all labels, each right with its own chance, is larger for any other prediction."""
    chance = np.array([0.2, 0.5, 0.9])

    def mean_atb(prediction: np.ndarray) -> float:
        total = 0.0
        for labels in itertools.product((0, 1), repeat=3):
            share = float(np.prod(np.where(labels, chance, 1 - chance)))
            total += share * value_of("atb", Rows(prediction, np.array(labels)).table)
        return total

    truth = mean_atb(chance)
    rng = np.random.default_rng(0)
    others = [mean_atb(np.clip(chance + rng.uniform(-0.3, 0.3, 3), 0, 1)) for _ in range(200)]
    assert truth < min(others)


def test_a_bound_that_says_nothing_is_vacuous() -> None:
    """At 2,000 rows, a VC dimension of 10 and 100 values the complexity of Gao et al. 2017, claim 4, is .27."""
    binary = known_rows("binary").table
    spec = parse("c_bound(vc=10)")
    bound = value_of("c_bound(vc=10)", binary) - value_of("c_emp", binary)
    assert (bound - math.sqrt(2 * math.log(40) / 2000)) / 4 == pytest.approx(0.2688, abs=1e-4)
    assert measure(spec, Inputs.of(binary)).text == "vacuous"
    assert measure(parse("c_bound"), Inputs.of(binary)).text == ""


def test_the_certificate_of_one_model_is_two_sided() -> None:
    t = known_rows("binary").table
    value, margin = value_of("c_emp", t), value_of("c_bound(delta=0.1)", t) - value_of("c_emp", t)
    low, high = interval_of("c_bound(delta=0.1)", t, confidence=0.9) or (0.0, 0.0)
    assert (low, high) == pytest.approx((max(value - margin, 0), value + margin))


@given(rows=any_rows())
def test_the_isotonic_fit_has_no_interval_error_and_loses_no_more_on_its_own_rows(rows: Rows) -> None:
    """Gao et al. 2017, claims 3 and 5: the least error there is, and at most the loss of the score, for every t*."""
    t = rows.table
    pools = t.isotonic
    fitted = Table(pools.pos / pools.n, pools.n, pools.pos, pools.design)
    assert value_of("c_emp", fitted) == pytest.approx(0, abs=1e-12)
    for threshold in (0.2, 0.5, 0.7):
        task = BinaryTask.of_threshold(threshold)
        assert value_of("expected_utility", fitted, task) >= value_of("expected_utility", t, task) - 1e-9
