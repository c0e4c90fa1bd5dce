"""Metrics as data: what a user writes parses, prints back, and every declaration is complete."""

import math
from dataclasses import replace

import numpy as np
import pytest

from decal_cli.api.asking import metrics_of
from decal_cli.declarations.spec import Spec, split_names
from decal_cli.errors import DecalError, Undefined
from decal_cli.metrics import METRICS, Inputs, parse
from decal_cli.metrics import value_of as value_of_spec
from decal_cli.metrics.decisions import Acting, Decisions
from decal_cli.metrics.measure import measure
from decal_cli.metrics.regret_cells import ClassRegrets, Regrets
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Table
from tests.helpers.worlds import known_rows, value_of


def test_a_table_prints_a_readable_choice() -> None:
    names = [name for name, metric in METRICS.items() if metric.takes(False) and metric.shown]
    names = [name for name in names if METRICS[name].family != "regret"]
    assert names == [
        *("brier", "log_loss", "corp_mcb", "corp_dsc", "auc", "ece", "ece_null", "ece_debiased", "c_emp"),
        *("expected_utility", "utility_share", "net_benefit"),
    ]


OF_ROWS = ("regret", "amounts", "sufficiency", "features", "capacity", "places")
"""Families whose metrics need more of the rows than their table."""


def test_a_declaration_says_everything() -> None:
    for name, metric in METRICS.items():
        assert metric.title and metric.source and metric.interval_text, name
        assert metric.range[0] < metric.range[1], name
        assert metric.summary.endswith("."), name
        assert len(metric.summary) <= 120, name
        assert len(metric.text.splitlines()) >= 3, f"{name}: a formula in words below the summary"
        assert {Table, ClassTable, Decisions, Acting, Regrets, ClassRegrets} & set(
            metric.needs
        ) or metric.family in OF_ROWS, name
        for parameter in metric.parameters:
            assert parameter.text, f"{name}: {parameter.name} has no help"
            assert parameter.parse(str(parameter.default)) == parameter.default, name


def test_a_name_parses_to_its_metric_and_prints_back() -> None:
    for name, metric in METRICS.items():
        assert parse(name) == Spec(metric)
        assert parse(name).key == name


KEYS = {
    "ece": "ece",
    " ece ( bins = 15 ) ": "ece",
    "ece(bins=10)": "ece(bins=10)",
    "ece(strategy=width, bins=10)": "ece(bins=10,strategy=width)",
    "log_loss(eps=1e-06)": "log_loss(eps=1e-06)",
    "cfdl(levels=auto)": "cfdl",
    "ece()": "ece",
}


@pytest.mark.parametrize("written", KEYS)
def test_a_key_is_the_name_and_what_differs_from_the_defaults(written: str) -> None:
    choice = parse(written)
    assert choice.key == KEYS[written]
    assert parse(choice.key) == choice


def test_a_text_may_hold_several_names() -> None:
    assert split_names("ece(bins=10, strategy=width) ,auc") == ["ece(bins=10, strategy=width)", "auc"]
    assert split_names("ece(bins=10,auc") == ["ece(bins=10", "auc"]
    with pytest.raises(DecalError, match="does not parse"):
        parse("")
    assert [each.key for each in metrics_of(["brier,ece(bins=10)", "auc"])] == ["brier", "ece(bins=10)", "auc"]


def test_infinite_is_undefined() -> None:
    choice = Spec(replace(METRICS["brier"], function=lambda t: math.inf))
    with pytest.raises(Undefined, match="not finite"):
        value_of_spec(choice, Inputs.of(known_rows("hand").table))


def test_a_metric_draws_from_the_seed_it_is_given() -> None:
    ties = known_rows("ties").table
    assert METRICS["ece_null"].needs == (Table, Seed)
    assert value_of("ece_null", ties, seed=1) == value_of("ece_null", ties, seed=1)
    assert value_of("ece_null", ties, seed=1) != value_of("ece_null", ties, seed=2)


def test_the_range_of_what_chance_shows_holds_its_mean() -> None:
    """Of 300 sure rows and a nearly sure one, fewer than 1 draw in 40 is off by more than the others."""
    rows = Rows(np.array([0.0] * 150 + [0.001] + [1.0] * 150), np.repeat([0, 1], [151, 150]))
    shown = measure(Spec(METRICS["ece_null"]), Inputs.of(rows.table), 0.95)
    assert 0 < shown.interval[0] <= shown.value <= shown.interval[1]
