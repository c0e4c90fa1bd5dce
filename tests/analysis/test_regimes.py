"""The bins of a score: their regrets add up to the metrics, and the larger one is named."""

import numpy as np
import pytest

from decal_cli.analysis.described import Regime, regimes_of
from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask
from tests.helpers.worlds import featured_rows

DECISIONS = [BinaryTask.of_threshold(0.4), BinaryTask.of_utility([[1.0, -3.0], [0.25, 2.0]])]
METRICS = (
    "regret_calibration", "regret_grouping_lower", "regret_grouping_upper", "regret_grouping_upper_sharp",
    "regret_grouping",
)  # fmt: skip


def with_weights() -> Rows:
    score, label, weight, features = featured_rows(400)
    return Rows(score, label, weight, features=features)


def bins_of(inputs: Inputs) -> tuple[Regime, ...]:
    regimes = regimes_of(inputs)
    assert regimes is not None
    return regimes.bins


@pytest.mark.parametrize("task", DECISIONS, ids=["t* = .4", "matrix"])
def test_the_bins_add_up_to_the_metrics(task: BinaryTask) -> None:
    inputs = Inputs(with_weights(), task)
    bins = bins_of(inputs)
    assert sum(each.share for each in bins) == pytest.approx(1, abs=1e-12)
    for name in METRICS:
        assert sum(getattr(each, name) for each in bins) == pytest.approx(value_of(parse(name), inputs), abs=1e-12)
    loss = sum(each.share * (each.grouping_loss or 0.0) for each in bins)
    assert loss == pytest.approx(value_of(parse("grouping_loss"), inputs), abs=1e-12)


def test_a_bin_by_hand() -> None:
    """c = .7 on 10 rows of score .4, t* = .5: acting is right, the score does not; Vmin = .3 x .2 [thm. 3.4]."""
    rows = Rows(np.full(10, 0.4), np.array([1] * 7 + [0] * 3))
    (only,) = bins_of(Inputs(rows, BinaryTask.of_threshold(0.5)))
    assert (only.low, only.high, only.rows, only.share, only.score, only.rate) == pytest.approx(
        (0.4, 0.4, 10, 1, 0.4, 0.7)
    )
    assert only.regret_calibration == pytest.approx(0.2)
    assert only.least_variance == pytest.approx(0.06)
    assert (only.grouping_loss, only.regret_grouping, only.larger) == (None, None, "unknown")


def ruled(calibration: float, lower: float, upper: float) -> str:
    return Regime(0.1, 0.2, 10, 0.1, 0.15, 0.2, 0.0, 0.01, calibration, lower, 2 * upper, upper).larger


def test_the_larger_regret_rules() -> None:
    """Grouping regret counts as the middle of its lower and its sharp upper bound."""
    assert ruled(0.02, 0.0, 0.03) == "miscalibration"
    assert ruled(0.01, 0.0, 0.03) == "grouping"
    assert ruled(0.0, 0.0, 0.0) == "neither"


def test_without_a_task_there_is_no_regret() -> None:
    assert regimes_of(Inputs(with_weights())) is None
