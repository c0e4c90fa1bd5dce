"""Every declared metric reaches a number that somebody else published, or that was worked by hand."""

import re
from pathlib import Path

import pytest

from decal_cli.errors import Undefined
from decal_cli.metrics import METRICS
from tests.helpers.reference import REFERENCE_CASES, Case
from tests.helpers.worlds import known_rows, value_of


@pytest.mark.parametrize("case", REFERENCE_CASES, ids=lambda case: f"{case.key} on {case.world}")
def test_a_metric_reaches_its_reference_value(case: Case) -> None:
    assert value_of(case.key, known_rows(case.world).table, case.task) == pytest.approx(
        case.value, rel=0, abs=case.within
    )


def test_every_metric_has_a_reference_value_with_its_source() -> None:
    """Those that need features, classes, amounts, a capacity or a reference stand in files of their own."""
    named = {re.split(r"\(", case.key)[0] for case in REFERENCE_CASES if case.source}
    of_kinds = ("regret", "capacity", "amounts", "places", "sufficiency", "classes", "label_shift")
    for file in (*(f"test_{kind}.py" for kind in of_kinds), "../learn/test_probe.py"):
        named |= set(re.findall(r'"(\w+)', (Path(__file__).parent / file).read_text()))
    assert sorted(set(METRICS) - named) == [], "add these to tests/helpers/reference.py"


def test_log_loss_with_wrong_zeros_and_ones_is_undefined_and_counts_them() -> None:
    ties = known_rows("ties").table
    with pytest.raises(Undefined, match="2 with score 0 and label 1, 2 with score 1 and label 0"):
        value_of("log_loss", ties)
    assert value_of("log_loss(eps=1e-6)", ties) > 0.6


def test_c_bound_is_126_thousandths_above_c_emp_at_2000_rows() -> None:
    binary = known_rows("binary").table
    assert value_of("c_bound", binary) - value_of("c_emp", binary) == pytest.approx(0.126, abs=5e-4)
    assert value_of("c_bound(delta=0.5)", binary) < value_of("c_bound", binary)


def test_the_ece_of_a_perfect_model_is_not_zero() -> None:
    """At n = 2000 about .027 for the worlds of the literature; the scores decide."""
    assert value_of("ece_null", known_rows("binary").table) == pytest.approx(0.0247, abs=0.001)
