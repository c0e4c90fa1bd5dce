"""Intervals: those of peers and textbooks, how wide weights make them, and how often they hold the truth."""

import numpy as np
import pytest

from decal_cli.metrics import confidence
from decal_cli.metrics.confidence import quantile, wilson
from decal_cli.tables.estimate import MeanEstimate
from decal_cli.task import BinaryTask
from tests.helpers.worlds import interval_of, known_rows, rows_by_level

TASK = BinaryTask.of_threshold(0.3)


def test_the_normal_quantile() -> None:
    assert quantile(0.95) == pytest.approx(1.959963984540054)


def test_wilson_is_the_textbooks() -> None:
    """Newcombe 1998: 81 of 263 at 95 %: .2553 to .3662; 0 of 20: 0 to .1611."""
    assert wilson(81, 263, 263, 0.95) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 20, 20, 0.95) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_delongs_error_is_that_of_the_placements() -> None:
    """var = var(share of negatives below a positive) / P + var(share of positives above a negative) / N."""
    hand = rows_by_level({0.2: "0010000100", 0.6: "1010", 0.9: "111111"})
    positives, negatives = hand.score[hand.label == 1], hand.score[hand.label == 0]
    beats = (positives[:, None] > negatives) + 0.5 * (positives[:, None] == negatives)
    variance = beats.mean(axis=1).var(ddof=1) / 10 + beats.mean(axis=0).var(ddof=1) / 10
    low, high = interval_of("auc", hand.table) or (0.0, 0.0)
    on_logit = np.log(high / (1 - high)) - np.log(low / (1 - low))
    assert on_logit == pytest.approx(2 * 1.96 * np.sqrt(variance) / (0.86 * 0.14), rel=1e-4)


MEANS = ["brier", "log_loss", "auc", "expected_utility", "observed_expected", "calibration_slope", "accuracy", "ppv"]


@pytest.mark.parametrize("key", ["ece", "ece_debiased", "c_bound", "corp_mcb", "cfdl_null", *MEANS])
def test_more_confidence_is_a_wider_interval(key: str) -> None:
    table = known_rows("binary").table
    narrow, wide = (interval_of(key, table, TASK, confidence) for confidence in (0.5, 0.99))
    if narrow is not None and wide is not None:
        assert wide[0] <= narrow[0] <= narrow[1] <= wide[1]


def test_perfect_ranking_has_an_interval_below_one() -> None:
    low, high = interval_of("auc", rows_by_level({0.2: "0000", 0.8: "1111"}).table) or (0.0, 0.0)
    assert 0.4 < low < 0.6 and high == 1


def test_the_squared_errors_share_the_interval_of_the_debiased_one() -> None:
    """cl and rmsce estimate what ece_debiased does; the plug-in may lie above its own interval."""
    table = known_rows("binary").table
    low, high = interval_of("ece_debiased", table) or (0.0, 0.0)
    assert interval_of("cl", table) == (max(low, 0.0), high)
    assert interval_of("rmsce", table) == pytest.approx((max(low, 0.0) ** 0.5, high**0.5))


def test_the_interval_of_a_skewed_mean_is_longer_on_the_side_of_the_tail_and_misses_less() -> None:
    rng, held = np.random.default_rng(4), {"normal": 0, "skewed": 0}
    for _ in range(2000):
        values = rng.exponential(size=30) ** 2
        mean, spread = values.mean(), values.std()
        estimate = MeanEstimate(float(mean), float(spread / np.sqrt(30)))
        skewness = float(((values - mean) ** 3).mean() / spread**3)
        low, high = confidence.skewed(estimate, skewness, 30, 0.9)
        assert high - mean > mean - low
        held["skewed"] += low <= 2 <= high
        low, high = confidence.normal(estimate, 0.9)
        held["normal"] += low <= 2 <= high
    assert held["normal"] < 1600 < 1680 < held["skewed"]
