"""A moved threshold is isotonic recalibration at one t*."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from decal_cli.errors import Undefined
from decal_cli.learn.method import Training
from decal_cli.tables.rows import Rows, Unlabelled
from decal_cli.tables.table import Table
from decal_cli.task import BinaryTask
from tests.helpers.training import apply_in_sample, fit_method, training_of, with_task
from tests.helpers.worlds import any_rows, value_of
from tests.helpers.worlds import rows_by_level as by_level


@settings(max_examples=60)
@given(rows=any_rows(least=2), t=st.floats(0.02, 0.98))
def test_in_sample_it_decides_as_the_isotonic_fit_does(rows: Rows, t: float) -> None:
    learned = with_task(training_of(rows), t)
    assert learned.task is not None
    try:
        moved, fit = apply_in_sample("threshold", learned), apply_in_sample("isotonic", learned)
    except Undefined:
        return  # One class.
    np.testing.assert_array_equal(moved.score, rows.score)
    np.testing.assert_array_equal(moved.acts(learned.task), fit.acts(learned.task))


def regret_left(rows: Rows, t: float) -> float:
    """Calibration regret on the levels themselves, of deciding from the moved threshold."""
    learned = with_task(training_of(rows), t)
    assert learned.task is not None
    table = learned.table
    acts = fit_method("threshold", learned)(Unlabelled(table.score)).acts(learned.task)
    rate = table.pos / table.n
    return float(table.n @ (((rate >= t) != acts) * np.abs(rate - t)) / table.total)


@settings(max_examples=60)
@given(rows=any_rows(least=2), t=st.floats(0.02, 0.98))
def test_it_leaves_no_calibration_regret_where_the_curve_is_monotone(rows: Rows, t: float) -> None:
    """Perez-Lebel et al. 2025, prop. 3.3: the curve is made monotone by pooling what is not."""
    table = rows.table.isotonic
    monotone = Rows(*_as_rows(table))
    if 0 < table.positives < table.total:
        assert regret_left(monotone, t) < 1e-12


def _as_rows(table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two weighted rows a level, of each label one."""
    kept = np.concatenate((table.n - table.pos, table.pos)) > 1e-9
    weight = np.concatenate((table.n - table.pos, table.pos))[kept]
    label = np.repeat([0, 1], len(table))[kept]
    return np.tile(table.score, 2)[kept], label, weight


def test_it_is_the_threshold_that_the_metric_names() -> None:
    rows = by_level({0.2: "00100", 0.6: "10", 0.9: "111"})
    model = fit_method("threshold", with_task(training_of(rows), 0.4))
    named = value_of("threshold_adjusted", rows.table, BinaryTask.of_threshold(0.4))
    assert model.threshold == named == 0.6


def test_beyond_every_fit_it_decides_0_for_all_and_below_every_fit_1() -> None:
    rows: Training = training_of(by_level({0.2: "00100", 0.6: "10", 0.9: "1101"}))
    ends = Unlabelled(np.array([0.0, 0.5, 1.0]))
    for t, expected in ((0.8, [False] * 3), (0.1, [True] * 3)):
        learned = with_task(rows, t)
        assert learned.task is not None
        np.testing.assert_array_equal(fit_method("threshold", learned)(ends).acts(learned.task), expected)
