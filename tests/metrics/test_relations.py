"""Equations and inequalities between metrics that hold on every table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from decal_cli.errors import Undefined
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Table
from decal_cli.task import BinaryTask
from tests.helpers.worlds import any_rows, any_task, known_rows, value_of

SLACK = 1e-9


@given(rows=any_rows())
def test_brier_is_mcb_minus_dsc_plus_unc(rows: Rows) -> None:
    t = rows.table
    assert value_of("brier", t) == pytest.approx(
        value_of("corp_mcb", t) - value_of("corp_dsc", t) + value_of("corp_unc", t)
    )


@given(rows=any_rows(inner=True))
def test_log_loss_is_mcb_minus_dsc_plus_unc(rows: Rows) -> None:
    t = rows.table
    mcb, dsc, unc = (value_of(f"corp_{part}(loss=log)", t) for part in ("mcb", "dsc", "unc"))
    assert value_of("log_loss", t) == pytest.approx(mcb - dsc + unc)


@given(rows=any_rows())
def test_refinement_loss_lies_within_its_bounds(rows: Rows) -> None:
    """Tasche 2021, prop. 5.5; and it is unc - dsc."""
    t = rows.table
    refinement = value_of("refinement_loss", t)
    assert refinement == pytest.approx(value_of("corp_unc", t) - value_of("corp_dsc", t))
    assert value_of("refinement_lower", t) - SLACK <= refinement <= value_of("refinement_upper", t) + SLACK


@given(rows=any_rows())
def test_binned_errors_are_ordered_by_their_norm(rows: Rows) -> None:
    t = rows.table
    ece, rmsce, mce = value_of("ece", t), value_of("rmsce", t), value_of("mce", t)
    assert ece <= rmsce + SLACK
    assert rmsce <= mce + SLACK
    assert value_of("cl", t) == pytest.approx(rmsce**2)


@given(rows=any_rows())
def test_merging_levels_into_bins_never_adds_error(rows: Rows) -> None:
    t = rows.table
    for bins in ("ece", "ece(bins=3)", "ece(bins=5,strategy=width)"):
        assert value_of(bins, t) <= value_of("ece_exact", t) + SLACK
    assert value_of("cl", t) <= value_of("k2", t) + SLACK


@given(rows=any_rows())
def test_errors_on_exact_levels_are_ordered(rows: Rows) -> None:
    t = rows.table
    k2, exact = value_of("k2", t), value_of("ece_exact", t)
    assert exact**2 <= k2 + SLACK
    assert k2 <= exact + SLACK


@given(rows=any_rows())
def test_the_interval_error_is_below_the_exact_one_and_above_the_mean_gap(rows: Rows) -> None:
    t = rows.table
    everywhere = abs(t.positives - float(np.asarray(t.n, float) @ t.score)) / t.total
    assert everywhere - SLACK <= value_of("c_emp", t) <= value_of("ece_exact", t) + SLACK


@given(rows=any_rows(), task=any_task)
def test_regrets_are_ordered(rows: Rows, task: BinaryTask) -> None:
    """External regret allows fewer changes than swap regret, and that fewer than changing level by level."""
    t = rows.table
    swap = value_of("swap_regret", t, task)
    assert value_of("external_regret", t, task) <= swap + SLACK
    assert swap <= value_of("cfdl(levels=exact)", t, task) + SLACK


@given(rows=any_rows())
def test_deciding_at_the_threshold_loses_at_most_the_exact_error(rows: Rows) -> None:
    t = rows.table
    assert value_of("cfdl(levels=exact)", t, BinaryTask.of_threshold(0.3)) <= value_of("ece_exact", t) + SLACK


@given(rows=any_rows(), task=any_task)
def test_no_decision_gets_more_than_the_isotonic_fit(rows: Rows, task: BinaryTask) -> None:
    try:
        assert value_of("utility_share", rows.table, task) <= 1
    except Undefined as undefined:
        assert "no threshold on these scores" in undefined.reason


def test_twice_the_area_under_the_cost_curve_is_the_brier_score() -> None:
    """2 int L({p >= t}, t) dt = brier [T 4.2a], by the midpoint rule on 5,000 thresholds."""
    t = known_rows("ties").table
    area = -np.mean([value_of("expected_utility", t, BinaryTask.of_threshold((i + 0.5) / 5_000)) for i in range(5_000)])
    assert 2 * area == pytest.approx(value_of("brier", t), abs=1e-4)


def test_a_calibrated_table_has_no_calibration_error() -> None:
    t = Table(np.array([0.2, 0.5, 0.75]), np.array([5, 4, 4]), np.array([1, 2, 3]))
    for key in ("corp_mcb", "ece", "cl", "rmsce", "mce", "ece_exact", "k2", "c_emp", "spiegelhalter_z"):
        assert value_of(key, t) == pytest.approx(0, abs=1e-15)
    assert value_of("observed_expected", t) == 1
    assert value_of("cfdl", t, BinaryTask.of_threshold(0.4)) == 0


@given(rows=any_rows(inner=True))
def test_ranking_sees_only_the_order_of_the_scores(rows: Rows) -> None:
    moved = replace(rows, score=rows.score**3 / 2)
    for key in ("auc", "average_precision"):
        try:
            assert value_of(key, rows.table) == pytest.approx(value_of(key, moved.table))
        except Undefined:
            return


@given(rows=any_rows())
def test_auc_of_the_reversed_scores_is_one_minus_auc(rows: Rows) -> None:
    try:
        assert value_of("auc", replace(rows, score=1 - rows.score).table) == pytest.approx(
            1 - value_of("auc", rows.table)
        )
    except Undefined:
        return
