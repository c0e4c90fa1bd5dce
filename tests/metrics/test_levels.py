"""Exact levels or bins, and what a calibrated model would show on either."""

from dataclasses import replace

import numpy as np
import pytest

from decal_cli.metrics.gaps import levels_used
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Table
from decal_cli.task import BinaryTask
from tests.helpers.worlds import interval_of, known_rows, rows_by_level, value_of


def test_levels_are_exact_where_the_median_one_holds_thirty_rows() -> None:
    assert levels_used(rows_by_level({0.2: "0" * 30, 0.4: "01" * 15, 0.6: "1"}).table) == "exact"
    assert levels_used(rows_by_level({0.2: "0" * 30, 0.4: "01" * 14, 0.6: "1" * 29}).table) == "bins"
    assert levels_used(known_rows("binary").table) == "bins"
    assert levels_used(known_rows("ties").table) == "bins", "the median level of the twelve holds 24.5 rows"


def test_a_level_counts_its_effective_rows() -> None:
    light = rows_by_level({0.2: "0" * 40, 0.4: "01" * 20})
    assert levels_used(replace(light, weight=np.full(80, 0.01)).table) == "exact"
    assert levels_used(replace(rows_by_level({0.2: "01", 0.4: "01"}), weight=np.full(4, 1e6)).table) == "bins"


def test_auto_is_what_it_says() -> None:
    task = BinaryTask.of_threshold(0.4)
    ties, crowded = known_rows("ties").table, rows_by_level({0.2: "0" * 30, 0.4: "01" * 15, 0.6: "1" * 30}).table
    assert value_of("cfdl", ties, task) == value_of("cfdl(levels=bins)", ties, task)
    assert value_of("cfdl", crowded, task) == value_of("cfdl(levels=exact)", crowded, task)


@pytest.mark.parametrize("name", ["hand", "ties", "binary", "binary weighted"])
@pytest.mark.parametrize("key", ["ece_exact", "k2"])
def test_the_computed_nulls_are_means_over_drawn_tables(key: str, name: str) -> None:
    table, rng = known_rows(name).table, np.random.default_rng(0)
    values = np.array([value_of(key, table.null(rng)) for _ in range(600)])
    assert value_of(f"{key}_null", table) == pytest.approx(values.mean(), abs=5 * values.std() / np.sqrt(600) + 1e-12)
    low, high = interval_of(f"{key}_null", table) or (0.0, 0.0)
    assert high - low == pytest.approx(2 * 1.96 * values.std(), rel=0.25)


def test_the_null_of_crowded_levels_agrees_with_the_normal_law() -> None:
    """E|X - n q| tends to sqrt(2 n q (1 - q) / pi)."""
    table = Table(np.array([0.3]), np.array([10**6]), np.array([3 * 10**5]))
    assert value_of("ece_exact_null", table) == pytest.approx(np.sqrt(2 * 0.21 / np.pi / 10**6), rel=1e-5)


def test_the_ece_null_does_not_depend_on_how_many_levels_it_is_drawn_on() -> None:
    """Above 4096 levels on as many cells; here against the plain parametric bootstrap of every level."""
    rng = np.random.default_rng(0)
    score = rng.beta(1, 3, 9000)
    table = Rows(score, (rng.random(9000) < score).astype(int)).table
    plain = [value_of("ece", table.null(rng)) for _ in range(300)]
    assert value_of("ece_null", table) == pytest.approx(
        float(np.mean(plain)), abs=5 * float(np.std(plain)) / np.sqrt(300)
    )
