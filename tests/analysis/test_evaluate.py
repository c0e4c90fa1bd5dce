"""Evaluations: every key is there, reasons instead of guesses, and what the signature says."""

import numpy as np
import pytest

from decal_cli.analysis.evaluate import Plan, Report, all_choices, evaluate, resampled_cells, shown_choices
from decal_cli.data import from_arrays
from decal_cli.errors import DecalError
from decal_cli.metrics import parse
from decal_cli.tables.table import CELLS
from decal_cli.task import BinaryTask

RNG = np.random.default_rng(5)
SCORE = RNG.random(400)
LABEL = (RNG.random(400) < SCORE).astype(int)
GROUP = np.where(np.arange(400) % 4 == 0, "b", "a")
FEATURES = RNG.normal(size=(400, 2))


def only(plan: Plan, **given: object) -> Report:
    (report,) = evaluate(from_arrays(SCORE, LABEL, **given), plan).reports
    return report


def test_every_metric_has_a_value_or_a_reason() -> None:
    report = only(Plan(all_choices(), BinaryTask.of_threshold(0.3)), features=FEATURES)
    for key, result in report.results.items():
        assert (result.value is None) == bool(result.reason), key
        assert result.value is not None or result.interval is None, key
        if result.interval is not None:
            assert result.interval[0] <= result.interval[1], key


def test_without_task_or_features_the_reason_names_the_option() -> None:
    results = only(Plan(all_choices())).results
    assert "--threshold" in (results["expected_utility"].reason or "")
    results = only(Plan(all_choices(), BinaryTask.of_threshold(0.3))).results
    assert "--features" in (results["grouping_loss"].reason or "")


def test_groups_are_tables_of_their_own() -> None:
    plan = Plan((parse("brier"), parse("auc")), intervals=False)
    reports = evaluate(from_arrays(SCORE, LABEL, group=GROUP), plan).reports
    assert [(report.group, report.rows) for report in reports] == [(None, 400), ("a", 300), ("b", 100)]
    alone = evaluate(from_arrays(SCORE[GROUP == "b"], LABEL[GROUP == "b"]), plan).reports[0]
    assert reports[2].results == alone.results


def test_groups_of_several_columns_carry_the_columns_name() -> None:
    groups = {"site": GROUP, "sex": np.where(np.arange(400) % 2, "f", "m")}
    reports = evaluate(from_arrays(SCORE, LABEL, group=groups), Plan((parse("brier"),), intervals=False)).reports
    assert [report.group for report in reports] == [None, "site=a", "site=b", "sex=f", "sex=m"]


def test_row_order_does_not_matter_to_a_single_bit() -> None:
    order = np.random.default_rng(9).permutation(400)
    plan = Plan(all_choices(), BinaryTask.of_threshold(0.3))
    weight = RNG.uniform(0.5, 2, 400)
    before = evaluate(from_arrays(SCORE, LABEL, weight=weight, features=FEATURES), plan).reports[0]
    shuffled = from_arrays(SCORE[order], LABEL[order], weight=weight[order], features=FEATURES[order])
    assert evaluate(shuffled, plan).reports[0].results == before.results


def test_the_seed_matters_and_stands_in_the_signature() -> None:
    chosen = (parse("gain_recalibration"),)
    task = BinaryTask.of_threshold(0.5)
    one, other = (evaluate(from_arrays(SCORE, LABEL), Plan(chosen, task, seed=seed)) for seed in (0, 1))
    assert one.reports[0].results != other.reports[0].results
    assert "seed:0" in one.signature and "seed:1" in other.signature
    assert one.signature.startswith("decal:") and "|n:400|task:t=0.5|" in one.signature
    costs = Plan(chosen, BinaryTask.of_costs(1, 3, 0.4))
    assert "task:t=0.25,u_delta=4,at=0.4" in evaluate(from_arrays(SCORE, LABEL), costs).signature


def test_a_table_of_very_many_levels_says_on_how_many_cells_it_was_resampled() -> None:
    many = np.linspace(0.01, 0.99, CELLS + 10)
    labels = (np.arange(len(many)) % 3 == 0).astype(int)
    plan = Plan((parse("brier"),))
    whole = evaluate(from_arrays(many, labels), plan).reports[0]
    assert resampled_cells([2, whole.levels]) == CELLS
    assert resampled_cells([evaluate(from_arrays(SCORE, LABEL), plan).reports[0].levels]) is None


def test_the_readable_choice_shows_the_worst_case_only_without_features() -> None:
    keys = [choice.key for choice in shown_choices(from_arrays(SCORE, LABEL), Plan(()))]
    assert "regret_grouping_worst" in keys
    keys = [choice.key for choice in shown_choices(from_arrays(SCORE, LABEL, features=FEATURES), Plan(()))]
    assert "regret_grouping_worst" not in keys


@pytest.mark.parametrize(
    ("given", "says"), [({"confidence": 95}, "0.95"), ({"confidence": 0}, "0"), ({"seed": -1}, "-1")]
)
def test_a_plan_that_makes_no_sense(given: dict, says: str) -> None:
    with pytest.raises(DecalError, match=says):
        Plan((), **given)
