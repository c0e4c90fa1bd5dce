"""Each metric equals its row-wise oracle, on rows that hypothesis draws."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from decal_cli.errors import Undefined
from decal_cli.metrics import METRICS
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask
from tests.helpers.oracles import ORACLES
from tests.helpers.reference import REFERENCE_CASES, Case
from tests.helpers.worlds import any_rows, any_task, known_rows, needs_seed, value_of

IN_OTHER_FILES = {
    "../test_row_oracle.py": """
        expected_utility external_regret utility_at_stake swap_regret eu_never eu_always selection_rate accuracy
        sensitivity specificity ppv npv net_benefit""",
    "test_agents.py": "cdl v_cdl cdl_threshold u_cal v_cal v_cal_kleinberg u_cal_threshold",
    "test_smooth.py": "sm_cal sm_ece dist_cal_lower dist_cal_upper",
    "test_grouping.py": "irreducible_loss kendall spearman",
    "test_logistic.py": "calibration_slope calibration_intercept",
    "test_interval.py": "c_bound c_emp_pvalue",
    "test_label_shift.py": "psi",
    "../learn/test_probe.py": "features_pvalue",
}


@settings(max_examples=60)
@given(rows=any_rows(), task=any_task)
def test_a_metric_equals_its_oracle(rows: Rows, task: BinaryTask) -> None:
    table = rows.table
    for key, oracle in ORACLES.items():
        try:
            ours = value_of(key, table, task)
        except Undefined:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = oracle(rows, task)
        assert ours == pytest.approx(expected, rel=1e-9, abs=1e-9), key


@pytest.mark.ci
@pytest.mark.parametrize("name", ["ties", "binary", "binary weighted"])
def test_a_metric_equals_its_oracle_on_the_shipped_rows(name: str) -> None:
    task = BinaryTask.of_threshold(0.3)
    for key, oracle in ORACLES.items():
        rows = known_rows(name)
        if key == "c_emp":
            rows = rows.take(np.arange(0, len(rows.score), 7))
        if "rule=log" in key and name == "ties":
            with pytest.raises(Undefined, match="certain and wrong"):
                value_of(key, rows.table, task)
            continue
        assert value_of(key, rows.table, task) == pytest.approx(oracle(rows, task), rel=1e-9, abs=1e-9), key


ELSEWHERE = ("regret", "classes", "actions", "capacity", "amounts", "places")
"""Families whose oracles stand in test files of their own, in this folder."""


def test_every_metric_has_an_oracle() -> None:
    covered = {key.partition("(")[0] for key in ORACLES} | {*" ".join(IN_OTHER_FILES.values()).split()}
    ours = {name for name, metric in METRICS.items() if metric.family not in ELSEWHERE and not needs_seed(metric)}
    assert sorted(ours - covered) == []


@given(rows=any_rows(inner=True))
def test_log_loss_is_mcb_minus_dsc_plus_unc(rows: Rows) -> None:
    mcb, dsc, unc = (value_of(f"corp_{part}(loss=log)", rows.table) for part in ("mcb", "dsc", "unc"))
    assert value_of("log_loss", rows.table) == pytest.approx(mcb - dsc + unc)


@pytest.mark.parametrize("case", REFERENCE_CASES, ids=lambda case: f"{case.key} on {case.world}")
def test_a_metric_reaches_its_reference_value(case: Case) -> None:
    assert value_of(case.key, known_rows(case.world).table, case.task) == pytest.approx(
        case.value, rel=0, abs=case.within
    )


def test_every_metric_has_a_reference_value_with_its_source() -> None:
    """Those that need features, classes, amounts, a capacity or a reference stand in files of their own."""
    named = {case.key.partition("(")[0] for case in REFERENCE_CASES if case.source}
    of_kinds = ("regret", "capacity", "amounts", "places", "grouping", "classes", "label_shift")
    for file in (*(f"test_{kind}.py" for kind in of_kinds), "../learn/test_probe.py"):
        named |= set(re.findall(r'"(\w+)', (Path(__file__).parent / file).read_text()))
    assert sorted(set(METRICS) - named) == [], "add these to tests/helpers/reference.py"


def test_log_loss_with_wrong_zeros_and_ones_is_undefined_and_counts_them() -> None:
    ties = known_rows("ties").table
    with pytest.raises(Undefined, match="2 with score 0 and label 1, 2 with score 1 and label 0"):
        value_of("log_loss", ties)
    assert value_of("log_loss(eps=1e-6)", ties) > 0.6
