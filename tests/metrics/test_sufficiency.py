"""The Brier score in three parts, the concavity of its curve, and rank correlations with what the features know."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from decal_cli.errors import Undefined
from decal_cli.learn.probe import Probed
from decal_cli.metrics import Inputs, parse
from decal_cli.metrics import interval_of as ends_of
from decal_cli.metrics import value_of as value_of_spec
from decal_cli.metrics.families import ranking
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import tabulate
from tests.helpers.worlds import featured_rows, interval_of, value_of


def test_three_parts_add_up_to_the_brier_score() -> None:
    """Tasche 2021, prop. 2.6: brier = irreducible + grouping + miscalibration, to rounding."""
    score, label, weight, features = featured_rows(600)
    for rows in (Rows(score, label, features=features), Rows(score, label, weight, features=features)):
        inputs = Inputs(rows)
        whole, *parts = (
            value_of_spec(parse(key), inputs) for key in ("brier", "irreducible_loss", "grouping_loss", "corp_mcb")
        )
        assert sum(parts) == pytest.approx(whole, rel=0, abs=1e-12)


def test_the_irreducible_loss_is_that_of_the_true_probability() -> None:
    """A score that averages over the sign of one feature: the trees find it, and what is left is E p (1 - p)."""
    rng = np.random.default_rng(4)
    inside = 0
    for _ in range(20):
        side, middle = rng.choice([-1.0, 1.0], 2000), rng.uniform(0.3, 0.7, 2000)
        chance = middle + 0.25 * side
        rows = Rows(middle, (rng.random(2000) < chance).astype(int), features=side[:, None])
        low, high = ends_of(parse("irreducible_loss"), Inputs(rows), 0.9) or (0.0, 0.0)
        # E (m + s/4)(1 - m - s/4) = E m (1 - m) - 1/16, for m uniform on [.3, .7].
        inside += low <= 0.25 - 0.4**2 / 12 - 0.0625 <= high
    assert inside >= 16


def test_a_calibrated_uniform_score_has_a_gap_of_66_ten_thousandths_at_1000_rows() -> None:
    score = (np.arange(1000) + 0.5) / 1000
    table = tabulate(score, (score % 0.5 > 0.25).astype(int))
    assert value_of("concavity_gap_null", table) == pytest.approx(0.0066, abs=2e-4)
    low, high = interval_of("concavity_gap_null", table) or (0.0, 0.0)
    assert value_of("concavity_gap", table) > high > low > 0.003


COLUMNS = st.integers(2, 30).flatmap(
    lambda size: st.tuples(*(st.lists(st.integers(0, 6), min_size=size, max_size=size) for _ in range(3)))
)


@given(columns=COLUMNS)
def test_rank_correlations_are_those_of_scipy(columns: tuple[list[int], ...]) -> None:
    """A whole weight stands for as many copies of its row."""
    x, y, copies = (np.array(column, dtype=float) for column in columns)
    copies += 1
    often = copies.astype(int)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan(ranking.rank_spearman(x, y, copies)) and np.isnan(ranking.rank_kendall(x, y, copies))
        return
    one = np.ones(len(x))
    assert ranking.rank_kendall(x, y, one) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-9)
    assert ranking.rank_spearman(x, y, one) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    repeated = np.repeat(x, often), np.repeat(y, often)
    assert ranking.rank_kendall(x, y, copies) == pytest.approx(stats.kendalltau(*repeated).statistic, abs=1e-9)
    assert ranking.rank_spearman(x, y, copies) == pytest.approx(stats.spearmanr(*repeated).statistic, abs=1e-9)


def probed(score: list[float], probe: list[float]) -> Inputs:
    x, y = np.array(score), np.array(probe)
    return Inputs.of(Probed(x, np.zeros(len(x)), np.ones(len(x)), x, x, y, y, np.zeros(len(x), dtype=np.int64)))


def test_rank_correlations_by_hand() -> None:
    inputs = probed([0.1, 0.2, 0.3, 0.4, 0.5], [0.2, 0.1, 0.3, 0.5, 0.4])
    assert value_of_spec(parse("kendall"), inputs) == pytest.approx(0.6)  # 8 pairs in order, 2 not
    assert value_of_spec(parse("spearman"), inputs) == pytest.approx(0.8)  # 1 - 6 x 4 / (5 x 24)
    low, high = ends_of(parse("spearman"), inputs, 0.95) or (0.0, 0.0)
    # tanh(atanh .8 -/+ 1.96 sqrt(1.32 / 2)) [Bonett and Wright 2000]
    assert (low, high) == pytest.approx((-0.457124, 0.990843), abs=1e-5)
    with pytest.raises(Undefined, match="the same on every row"):
        value_of_spec(parse("kendall"), probed([0.5, 0.5], [0.1, 0.2]))


@pytest.mark.parametrize("key", ["kendall", "spearman"])
def test_intervals_of_rank_correlations_hold_the_truth(key: str) -> None:
    """Normal pairs of correlation r: tau = 2/pi asin r, rho = 6/pi asin(r/2)."""
    rng, r = np.random.default_rng(2), 0.6
    truth = {"kendall": 2 / np.pi * np.arcsin(r), "spearman": 6 / np.pi * np.arcsin(r / 2)}[key]
    inside = 0
    for _ in range(60):
        x, y = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], 200).T
        low, high = ends_of(parse(key), probed(list(x), list(y)), 0.9) or (0.0, 0.0)
        inside += low <= truth <= high
    assert inside >= 48
