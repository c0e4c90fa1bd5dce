"""Evaluations: every key is there, reasons instead of guesses, and what the signature says."""

import numpy as np
import pytest

from decal_cli.analysis.evaluate import Plan, all_choices, evaluate, resampled_cells, shown_choices
from decal_cli.data import from_arrays
from decal_cli.metrics import parse
from decal_cli.tables.table import CELLS
from decal_cli.task import BinaryTask

RNG = np.random.default_rng(5)
SCORE = RNG.random(400)
LABEL = (RNG.random(400) < SCORE).astype(int)
FEATURES = RNG.normal(size=(400, 2))


@pytest.mark.ci
@pytest.mark.usefixtures("one_deal")
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


def test_a_score_that_single_precision_puts_below_the_threshold_is_told() -> None:
    """0.9 is below 0.9 in single precision, 0.6 above 0.6; in double precision both are what they are."""
    plan = Plan((parse("accuracy"),), BinaryTask.of_threshold(0.9))

    def notes(*scores: float, at: Plan = plan) -> tuple[str, ...]:
        narrow = np.float32(scores)
        return evaluate(from_arrays(narrow.astype(float), np.array([1, 0, 1, 0])), at).notes

    (note,) = notes(0.9, 0.9, 0.9, 0.2)
    assert note.startswith(
        "75 % of the rows have scores that single precision puts below a threshold: 0.8999999762 for"
    )
    assert notes(0.9001, 0.8999, 0.6, 0.2) == ()
    assert notes(0.6, 0.6, 0.6, 0.2, at=Plan((parse("accuracy"),), BinaryTask.of_threshold(0.6))) == ()
    assert evaluate(from_arrays(np.array([0.9, 0.9, 0.9, 0.2]), np.array([1, 0, 1, 0])), plan).notes == ()
