"""What holds for every declared metric, on rows that hypothesis draws and at the edges."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from decal_cli.errors import Undefined
from decal_cli.metrics import METRICS, Metric
from decal_cli.metrics.declare import Choice
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Table
from decal_cli.task import BinaryTask
from tests.helpers.worlds import TASKS, any_rows, any_task, known_rows, metric_inputs, rows_by_level

every_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)


def value_or_reason(metric: Metric, table: Table, task: BinaryTask) -> float | str:
    try:
        return Choice(metric).value(metric_inputs(table, task))
    except Undefined as undefined:
        assert undefined.reason
        return undefined.reason


def bounds(metric: Metric, task: BinaryTask) -> tuple[float, float]:
    unit = task.u_delta if metric.bounds_in_u_delta else 1.0
    return metric.range[0] * unit - 1e-9, metric.range[1] * unit + 1e-9


@settings(max_examples=15, deadline=None)
@given(rows=any_rows(), task=any_task)
@every_metric
def test_a_metric_and_its_interval_stay_in_their_bounds(metric: Metric, rows: Rows, task: BinaryTask) -> None:
    low, high = bounds(metric, task)
    found = value_or_reason(metric, rows.table, task)
    if isinstance(found, float):
        assert low <= found <= high
    interval = Choice(metric).interval(metric_inputs(rows.table, task), 0.9)
    if interval is not None:
        assert low <= interval[0] <= interval[1] <= high


@settings(max_examples=10, deadline=None)
@given(rows=any_rows(), task=any_task)
@every_metric
def test_row_order_changes_not_one_bit(metric: Metric, rows: Rows, task: BinaryTask) -> None:
    order = np.random.default_rng(0).permutation(len(rows.score))
    assert value_or_reason(metric, rows.take(order).table, task) == value_or_reason(metric, rows.table, task)


@settings(max_examples=10, deadline=None)
@given(rows=any_rows(), task=any_task)
@pytest.mark.parametrize("metric", [m for m in METRICS.values() if m.size_free], ids=lambda metric: metric.name)
def test_doubling_every_row_leaves_a_size_free_metric_as_it_is(metric: Metric, rows: Rows, task: BinaryTask) -> None:
    once = value_or_reason(metric, rows.table, task)
    twice = value_or_reason(metric, rows.take(np.repeat(np.arange(len(rows.score)), 2)).table, task)
    assert isinstance(once, str) == isinstance(twice, str)
    if isinstance(once, float):
        assert twice == pytest.approx(once, rel=1e-7, abs=1e-9)


@every_metric
@pytest.mark.parametrize("name", ["hand", "ties", "binary weighted"])
def test_a_metric_never_writes_into_its_table(metric: Metric, name: str) -> None:
    table = known_rows(name).table
    columns = [column for column in (table.score, table.n, table.pos, table.n2, table.pos2) if column is not None]
    before = [column.copy() for column in columns]
    for column in columns:
        column.flags.writeable = False
    value_or_reason(metric, table, TASKS[0])
    Choice(metric).interval(metric_inputs(table, TASKS[0]), 0.95)
    assert all(np.array_equal(old, new) for old, new in zip(before, columns, strict=True))


EDGES = {
    "one row": rows_by_level({0.3: "1"}),
    "one row of score 0": rows_by_level({0.0: "0"}),
    "one row of score 1, wrong": rows_by_level({1.0: "0"}),
    "one row, weighted": replace(rows_by_level({0.3: "1"}), weight=np.array([2.5])),
    "only label 0": rows_by_level({0.1: "00", 0.6: "0"}),
    "only label 1": rows_by_level({0.1: "11", 0.6: "1"}),
    "all scores tied": rows_by_level({0.4: "0110"}),
    "all scores tied at 1": rows_by_level({1.0: "0111"}),
    "scores 0 and 1, all right": rows_by_level({0.0: "000", 1.0: "11"}),
    "scores 0 and 1, all wrong": rows_by_level({0.0: "11", 1.0: "000"}),
    "two rows": rows_by_level({0.2: "0", 0.7: "1"}),
    "separated": rows_by_level({0.2: "00", 0.4: "0", 0.7: "11"}),
}


@every_metric
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.filterwarnings("error")
def test_at_the_edges_a_metric_has_a_finite_value_or_a_reason(metric: Metric, edge: str) -> None:
    for task in TASKS:
        table = EDGES[edge].table
        low, high = bounds(metric, task)
        found = value_or_reason(metric, table, task)
        assert isinstance(found, str) or low <= found <= high
        interval = Choice(metric).interval(metric_inputs(table, task), 0.95)
        assert interval is None or low <= interval[0] <= interval[1] <= high


@every_metric
def test_without_a_task_what_needs_one_says_so(metric: Metric) -> None:
    if BinaryTask in metric.needs:
        with pytest.raises(Undefined, match=r"needs a task|needs features"):
            Choice(metric).value(metric_inputs(known_rows("hand").table))


QUANTILE_EDGES = {"ece", "cl", "rmsce", "mce", "ece_debiased", "cfdl", "cdl", "v_cdl", "cdl_threshold"}
"""Weighted quantiles invert the cumulative weight, unweighted ones are interpolated: other edges, other bins."""

SAMPLING = {"spiegelhalter_z", "c_bound", "c_emp_pvalue", "ece_exact_null", "k2_null"}
"""These know that one row of weight 3 says less than three rows."""


@settings(max_examples=10, deadline=None)
@given(rows=any_rows(weights="whole"), task=any_task)
@pytest.mark.parametrize(
    "metric",
    [
        m
        for m in METRICS.values()
        if np.random.Generator not in m.needs and m.name not in QUANTILE_EDGES | SAMPLING and m.family != "regret"
    ],
    ids=lambda metric: metric.name,
)
def test_a_whole_weight_counts_as_that_many_rows(metric: Metric, rows: Rows, task: BinaryTask) -> None:
    assert rows.weight is not None
    repeated = replace(rows, weight=None).take(np.repeat(np.arange(len(rows.score)), rows.weight.astype(int)))
    weighted, copied = (value_or_reason(metric, each.table, task) for each in (rows, repeated))
    assert isinstance(weighted, str) == isinstance(copied, str)
    if isinstance(weighted, float):
        assert weighted == pytest.approx(copied, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(
    "metric", [m for m in METRICS.values() if m.family != "regret"], ids=lambda metric: metric.name
)
def test_a_large_table_gives_what_a_small_one_would(metric: Metric) -> None:
    """10^5 distinct scores are walked in four blocks: as one block they must come to the same.

    The regret family is left out: its folds are not sums over blocks.
    """
    import decal_cli.tables.table as table_module

    rng = np.random.default_rng(7)
    score = rng.permutation(np.arange(1, 100_001)) / 100_002
    label = (rng.random(100_000) < score**1.3).astype(int)
    by_blocks = value_or_reason(metric, Rows(score, label).table, TASKS[0])
    block = table_module.BLOCK
    try:
        table_module.BLOCK = 1 << 20
        at_once = value_or_reason(metric, Rows(score, label).table, TASKS[0])
    finally:
        table_module.BLOCK = block
    assert by_blocks == pytest.approx(at_once, rel=1e-9, abs=1e-12) if isinstance(by_blocks, float) else at_once


def test_no_value_is_nan() -> None:
    for metric in METRICS.values():
        found = value_or_reason(metric, known_rows("ties").table, TASKS[1])
        assert isinstance(found, str) or math.isfinite(found)
