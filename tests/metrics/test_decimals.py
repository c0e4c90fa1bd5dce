"""Thresholds that are written decide as the number does."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from decal_cli.metrics import parse
from decal_cli.metrics.families.regret import shortest_between
from decal_cli.metrics.inputs import Inputs
from decal_cli.metrics.measure import measure
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask
from tests.helpers.worlds import any_rows


def test_by_hand() -> None:
    assert shortest_between(0.2, 0.3) == "0.3"
    assert shortest_between(0.99, 0.999957) == "0.999"
    assert shortest_between(0.99994, 0.999957) == "0.99995"
    assert shortest_between(-np.inf, 0.0) == "0"
    assert shortest_between(0.1, np.nextafter(0.1, 1)) == "0.10000000000000002"
    # 17 decimals at most, and else all of the float.
    assert shortest_between(0.012300000000000002, 0.012300000000000012) == "0.01230000000000001"
    assert shortest_between(0.0012300000000000004, 0.0012300000000000013) == "0.0012300000000000013"


@given(st.floats(0, 1), st.floats(0, 1))
def test_it_lies_above_the_one_and_not_above_the_other(a: float, b: float) -> None:
    below, value = min(a, b), max(a, b)
    if below < value:
        assert below < float(shortest_between(below, value)) <= value


@given(any_rows(least=10))
def test_acting_from_the_written_threshold_is_acting_from_the_adjusted_one(rows: Rows) -> None:
    result = measure(parse("threshold_adjusted"), Inputs.of(rows.table, BinaryTask.of_threshold(0.3)))
    if result.value is not None:
        np.testing.assert_array_equal(rows.score >= float(result.text), rows.score >= result.value)
