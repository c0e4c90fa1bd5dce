"""Steps: bins are the table's own, values are what the sources say, and Meta-Cal keeps its miscoverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decal_cli.errors import Undefined
from decal_cli.learn.curves import Abstaining, Binned, _lower_quantile, fit_temperature
from decal_cli.tables.rows import Rows, Unlabelled
from decal_cli.tables.table import bin_of
from tests.helpers.training import apply_in_sample, calibration_error, fit_method, random_training, training_of
from tests.helpers.worlds import any_rows
from tests.helpers.worlds import rows_by_level as by_level


@settings(max_examples=60)
@given(rows=any_rows(), bins=st.integers(1, 20))
def test_edges_cut_the_levels_where_the_table_cuts_them(rows: Rows, bins: int) -> None:
    table = rows.table
    number = bin_of(table.score, table.bin_edges(bins))
    np.testing.assert_array_equal(np.flatnonzero(np.diff(number, prepend=-1)), table.bin_starts(bins))
    np.testing.assert_array_equal(np.unique(number), np.arange(number[-1] + 1))


@given(rows=any_rows(least=2))
def test_histogram_is_calibrated_on_its_training_rows(rows: Rows) -> None:
    learned = training_of(rows)
    try:
        score = apply_in_sample("histogram(bins=4)", learned).score
    except Undefined:
        return  # One class.
    assert calibration_error(score, learned) < 1e-9


def test_histogram_by_hand() -> None:
    """Median .4, which belongs to the lower bin."""
    model = fit_method("histogram(bins=2)", training_of(by_level({0.2: "01", 0.4: "0", 0.7: "1", 0.9: "1"})))
    np.testing.assert_allclose(model(Unlabelled(np.array([0.0, 0.4, 0.41, 1.0]))).score, [1 / 3, 1 / 3, 1, 1])


def test_scaling_binning_is_the_mean_of_its_curve_in_each_bin() -> None:
    rows = random_training(400, 3)
    model = fit_method("scaling-binning(bins=5)", rows)
    assert isinstance(model, Binned)
    curve, score = model.curve(rows).score, model(rows).score
    assert len(np.unique(score)) == 5
    for value in np.unique(score):
        assert curve[score == value].mean() == pytest.approx(value, abs=1e-12)
    np.testing.assert_array_equal(model.curve(rows).score, fit_method("platt", rows)(rows).score)


@pytest.mark.parametrize("miscoverage", [0.05, 0.2])
def test_meta_cal_abstains_on_about_as_many_rightly_decided_rows_as_allowed(miscoverage: float) -> None:
    model = fit_method(f"meta-cal(miscoverage={miscoverage})", random_training(20_000, 1))
    new = random_training(20_000, 2)
    right = (new.score >= 0.5) == (new.label == 1)
    share = float((model(new).score == 0.5)[right].mean())
    assert share == pytest.approx(miscoverage, abs=4 * np.sqrt(miscoverage * (1 - miscoverage) / 500))


def test_meta_cal_gives_half_within_its_cut_and_temperature_beyond() -> None:
    model = fit_method("meta-cal", random_training(1000, 1))
    assert isinstance(model, Abstaining) and 0 < model.cut < 0.5
    score = np.array([0.5 - model.cut * 0.99, 0.5 + model.cut * 0.99, 0.01, 0.99])
    calibrated = model(Unlabelled(score)).score
    np.testing.assert_array_equal(calibrated[:2], 0.5)
    np.testing.assert_array_equal(calibrated[2:], model.curve(Unlabelled(score[2:])).score)


def test_the_rows_that_set_meta_cals_cut_do_not_fit_its_curve() -> None:
    rows = random_training(1000, 1)
    model = fit_method("meta-cal", rows)
    assert isinstance(model, Abstaining)
    beyond = rows.in_order().take(np.abs(rows.in_order().score - 0.5) > model.cut)
    assert model.curve.slope != pytest.approx(fit_temperature(beyond.table).slope, rel=1e-6)
    ranked = int(((rows.score >= 0.5) == (rows.label == 1)).sum()) // 10
    assert model.curve.slope == pytest.approx(fit_temperature(beyond.table).slope, rel=3 * ranked / len(rows))


@given(
    values=st.lists(st.floats(0, 1), min_size=1, max_size=60),
    share=st.floats(0, 0.999),
    weight=st.sampled_from([1.0, 0.1, 3.0]),
)
def test_the_quantile_of_equal_weights_is_numpys_lower_one(values: list[float], share: float, weight: float) -> None:
    quantile = _lower_quantile(np.array(values), np.full(len(values), weight), share)
    assert quantile == np.quantile(values, share, method="lower")


def test_meta_cal_needs_rows_that_the_score_decides_rightly() -> None:
    with pytest.raises(Undefined, match="needs at least 10 rows"):
        fit_method("meta-cal", training_of(by_level({0.2: "1111110", 0.9: "0000001"})))
