"""Intervals of scores, and the law behind the p-value of c_emp: the range of Brownian motion on [0, 1]."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from decal_cli.metrics import Inputs, measure, parse
from decal_cli.metrics.confidence import one_sided, quantile, wilson
from decal_cli.metrics.families.calibration import range_above
from decal_cli.metrics.gaps import MAX_ERROR_CELLS, cells_of_bins, worlds_of
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import BINS, Strategy, Table
from decal_cli.tables.units import units_of_rows
from decal_cli.task import BinaryTask
from tests.helpers.worlds import any_rows, interval_of, known_rows, rows_by_level, value_of


@pytest.mark.parametrize("strategy", ["mass", "width"])
def test_chance_is_drawn_on_cells_that_make_the_bins_of_the_value(strategy: Strategy) -> None:
    """A row on the other side of an edge moves the error that the interval is made about."""
    rng = np.random.default_rng(3)
    score = rng.uniform(0.01, 0.8, 723)
    t = Rows(score, (rng.random(723) < score).astype(int)).table
    cells, starts = cells_of_bins(t, MAX_ERROR_CELLS, BINS, strategy)
    bins, expected = cells.merge_levels(starts), t.bins(BINS, strategy)
    assert MAX_ERROR_CELLS <= len(cells) < len(t)
    np.testing.assert_array_equal((bins.n, bins.pos), (expected.n, expected.pos))
    assert bins.score == pytest.approx(expected.score, rel=1e-12)
    seen = worlds_of(t, t.bins(), rng)[1].gap
    assert float(np.abs(seen).sum()) == pytest.approx(value_of("ece", t), rel=1e-12)


def test_its_moments_are_fellers() -> None:
    """E R = 2 sqrt(2/pi), E R^2 = 4 ln 2 [Feller 1951]; E range^power = int power x^(power - 1) P(range > x) dx."""
    x = np.linspace(0.005, 12, 24_000)
    tail = np.array([range_above(float(at)) for at in x])
    for power, moment in ((1, 2 * math.sqrt(2 / math.pi)), (2, 4 * math.log(2))):
        assert np.trapezoid(power * x ** (power - 1) * tail, x) + 0.005**power == pytest.approx(moment, abs=1e-5)


def test_the_two_series_meet() -> None:
    assert range_above(2 - 1e-9) == pytest.approx(range_above(2 + 1e-9), abs=1e-8)


def test_scores_that_cannot_err_either_do_or_do_not() -> None:
    assert value_of("c_emp_pvalue", rows_by_level({0.0: "00", 1.0: "1"}).table) == 1
    assert value_of("c_emp_pvalue", rows_by_level({0.0: "01", 1.0: "1"}).table) == 0


def test_atb_of_two_sure_halves() -> None:
    """.51 where y = 1 and .49 where y = 0: .02 x 2 x .245^2, and nothing outside: truthful (arXiv 2508.13100)."""
    assert value_of("atb", rows_by_level({0.49: "00", 0.51: "11"}).table) == pytest.approx(0.002401, abs=1e-12)


def test_a_bound_that_says_nothing_is_vacuous() -> None:
    """At 2,000 rows, a VC dimension of 10 and 100 values the complexity of Gao et al. 2017, claim 4, is .27."""
    binary = known_rows("binary").table
    spec = parse("c_bound(vc=10)")
    bound = value_of("c_bound(vc=10)", binary) - value_of("c_emp", binary)
    assert (bound - math.sqrt(2 * math.log(40) / 2000)) / 4 == pytest.approx(0.2688, abs=1e-4)
    assert measure(spec, Inputs.of(binary)).text == "vacuous"
    assert measure(parse("c_bound"), Inputs.of(binary)).text == ""
    few, enough = (measure(spec, Inputs.of(rows_by_level({0.3: "01" + "0" * more}).table)) for more in (9, 10))
    assert few.reason == "needs more than vc + 1 = 11 rows" and enough.value is not None


def test_the_certificate_of_one_model_is_two_sided() -> None:
    t = known_rows("binary").table
    value, margin = value_of("c_emp", t), value_of("c_bound(delta=0.1)", t) - value_of("c_emp", t)
    low, high = interval_of("c_bound(delta=0.1)", t, confidence=0.9)
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


def test_the_normal_quantile() -> None:
    assert quantile(0.95) == pytest.approx(1.959963984540054)
    assert quantile(one_sided(0.95)) == pytest.approx(1.6448536269514722)


def test_wilson_is_the_textbooks() -> None:
    """Newcombe 1998: 81 of 263 at 95 %: .2553 to .3662; 0 of 20: 0 to .1611."""
    assert wilson(81 / 263, 263, 0.95) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 20, 0.95) == pytest.approx((0.0, 0.1611), abs=5e-5)
    label = np.arange(263) < 81
    share = units_of_rows(label.astype(np.int64), None, None).mean(label.astype(float))
    assert share.wilson(0.95) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    # All rows agree, but for rounding.
    all_but = units_of_rows(label.astype(np.int64), None, None).mean(1 - 2e-16 * label)
    assert all_but.seen > 0
    assert all_but.wilson(0.95) == pytest.approx(wilson(1, 263, 0.95), abs=1e-9)


def test_a_share_rests_on_no_more_rows_than_its_weights_say() -> None:
    """Of 20,000 samples of 50 rows with log-normal weights and a share of 0.9, 95 % intervals held it in .85, now .97.

    Five rows of weight 10^6 that agree are five rows, whatever the light ones are.
    """
    rows = Rows(np.tile((0.5, 0.1), 50), np.ones(100), np.where(np.arange(100) % 20 == 0, 1e6, 1.0))
    ends = interval_of("sensitivity", rows.table, BinaryTask.of_threshold(0.3))
    assert ends == pytest.approx(wilson(1, 5, 0.95), abs=1e-4)
    assert wilson(1, 5, 0.95) == pytest.approx((0.5655, 1.0), abs=5e-5)


def test_a_share_that_clusters_agree_on_rests_on_more_rows_than_there_are() -> None:
    """40 clusters with label 1 in one of two rows, and two with it in both: labels vary less than those of a coin."""
    label = np.append(np.tile([0, 1], 40), np.ones(4, dtype=int))
    units = units_of_rows(label, None, np.repeat(np.arange(42), 2))
    share = replace(units.mean(label.astype(float)), of_rows=True)
    rows = share.value * (1 - share.value) / share.seen**2
    assert share.value == pytest.approx(44 / 84) and rows > 5 * 84
    assert share.wilson(0.95) == pytest.approx(wilson(44 / 84, rows, 0.95))


def test_the_uncertainty_is_between_those_of_the_base_rates_wilson_ends() -> None:
    """The rows are as many as the variance of the weighted base rate says."""
    rows = replace(known_rows("binary"), weight=np.random.default_rng(0).exponential(size=len(known_rows("binary"))))
    rate = np.average(rows.label, weights=rows.weights)
    variance = (rows.weights**2 * (rows.label - rate) ** 2).sum() / rows.weights.sum() ** 2
    ends = wilson(rate, rate * (1 - rate) / variance, 0.95)
    assert interval_of("corp_unc", rows.table) == pytest.approx(sorted(end * (1 - end) for end in ends))


def test_delongs_error_is_that_of_the_placements() -> None:
    """var = var(share of negatives below a positive) / P + var(share of positives above a negative) / N."""
    hand = rows_by_level({0.2: "0010000100", 0.6: "1010", 0.9: "111111"})
    positives, negatives = hand.score[hand.label == 1], hand.score[hand.label == 0]
    beats = (positives[:, None] > negatives) + 0.5 * (positives[:, None] == negatives)
    variance = beats.mean(axis=1).var(ddof=1) / 10 + beats.mean(axis=0).var(ddof=1) / 10
    low, high = interval_of("auc", hand.table)
    on_logit = np.log(high / (1 - high)) - np.log(low / (1 - low))
    assert on_logit == pytest.approx(2 * 1.96 * np.sqrt(variance) / (0.86 * 0.14), rel=1e-4)


def test_perfect_ranking_has_an_interval_below_one() -> None:
    low, high = interval_of("auc", rows_by_level({0.2: "0000", 0.8: "1111"}).table)
    assert 0.4 < low < 0.6 and high == 1


def test_the_squared_errors_share_the_interval_of_the_debiased_one() -> None:
    """cl and rmsce estimate what ece_debiased does; the plug-in may lie above its own interval."""
    table = known_rows("binary").table
    low, high = interval_of("ece_debiased", table)
    assert interval_of("cl", table) == (max(low, 0.0), high)
    assert interval_of("rmsce", table) == pytest.approx((max(low, 0.0) ** 0.5, high**0.5))
