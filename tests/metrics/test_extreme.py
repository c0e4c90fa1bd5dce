"""Numbers at the edge of floats, each found by a fuzzer: what they are comes from longer floats, or by hand."""

import numpy as np
import pytest

from decal_cli.data import from_arrays
from decal_cli.errors import Undefined
from decal_cli.metrics import Inputs, measure_all, parse, value_of
from decal_cli.metrics.families.calibration import range_above
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask


def value(name: str, score: list[float], label: list[int], weight: list[float] | None = None, t: float = 0.3) -> float:
    rows = from_arrays(score, label, weight=weight).models[0].rows
    return value_of(parse(name), Inputs(rows, BinaryTask.of_threshold(t)))


def test_the_log_loss_of_small_scores() -> None:
    # -ln(1 - p) = p + p^2 / 2 + ..., of which 1 - p keeps nothing below 1e-16.
    for p in (1e-17, 3.2e-161, 5e-324, 1e-9, 9e-4):
        series = p + p**2 / 2 + p**3 / 3 + p**4 / 4 + p**5 / 5
        assert value("log_loss", [p], [0]) == pytest.approx(series, rel=1e-12, abs=5e-324)


def test_sums_of_weights_leave_no_rest_where_there_are_no_rows() -> None:
    # All that act are positive, so that net benefit is their share, however dear a false positive is.
    weight = [1.0, 0.1, 0.7, 0.3]
    benefit = value("net_benefit", [0.1, 0.2, 1.0, 1.0], [0, 1, 1, 1], weight, t=1 - 2**-53)
    assert benefit == pytest.approx(1.0 / 2.1, rel=1e-12)
    # One negative of little weight, below all positives.
    assert value("auc", [1e-9, 0.9, 1.0], [0, 1, 1], [1.4e-8, 4.4e-6, 0.41]) == pytest.approx(1.0, abs=1e-14)


def test_a_range_of_nothing_is_exceeded_surely() -> None:
    assert [range_above(x) for x in (0.0, 1e-300, 1e-150, 0.05)] == [1.0] * 4


def test_a_fit_that_has_no_curvature_left_is_undefined_and_not_a_bug() -> None:
    score = [float(p) for p in np.array([0.0, 2e-161, 5e-324, 3e-321, 1e-300])]
    for name in ("calibration_slope", "calibration_intercept"):
        try:
            value(name, score, [0, 1, 0, 1, 0])
        except Undefined as undefined:
            assert undefined.reason


def test_a_ratio_that_one_row_weighs_on_has_no_interval() -> None:
    weight = [1e6, *[1.0] * 299]
    rows = Rows(np.linspace(0.1, 0.9, 300), np.arange(300) % 2, np.array(weight))
    (found,) = measure_all([parse("observed_expected")], Inputs(rows), 0.95).values()
    assert found.value is not None and found.interval is None
    assert found.no_interval == "has a standard error of more than twice its value: too few rows of label 1 count"
