"""Utilities of each row: against loops over rows, and against the one task that rows have where they are all alike."""

import numpy as np
import pytest

from decal_cli.analysis.evaluate import Plan, evaluate
from decal_cli.data import from_arrays
from decal_cli.errors import Undefined
from decal_cli.learn.held_out import least_amounts
from decal_cli.metrics import Inputs, parse, value_of
from decal_cli.metrics.regret_cells import RowCells, RowRegrets
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.row_utilities import RowStakes, RowUtilities, utilities_of
from decal_cli.tables.rows import Rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import bin_of
from decal_cli.tables.utilities import Utilities
from decal_cli.task import BinaryTask, RowTask

ALIKE = ("expected_utility", "eu_never", "eu_always", "utility_at_stake", "external_regret", "regret_calibration",
         "regret_grouping_worst")  # fmt: skip
"""Metrics that no fold of rows is drawn for."""
COSTS = RowTask(("amount", "cost_fp_column"))


def priced(rows: int = 400, seed: int = 0, weighted: bool = False, clustered: bool = False) -> Rows:
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(rows), 2)
    label = (rng.random(rows) < score**1.6).astype(np.uint8)
    amounts = {"amount": np.round(rng.lognormal(1, 1, rows), 1), "cost_fp_column": rng.choice([0.0, 1.0, 3.5], rows)}
    amounts["amount"][:5] = 0.0
    weight = rng.uniform(0.5, 2, rows) if weighted else None
    return Rows(score, label, weight, rng.integers(0, 60, rows) if clustered else None, amounts=amounts)


def value(text: str, rows: Rows, task: RowTask = COSTS) -> float:
    return value_of(parse(text), Inputs(rows, decision=task))


def payoffs_of(rows: Rows, acts: np.ndarray) -> np.ndarray:
    """What each row costs, as a utility."""
    return -np.where(rows.label == 1, ~acts * rows.amounts["amount"], acts * rows.amounts["cost_fp_column"])


@pytest.mark.parametrize("cost", [-0.3, 0.0, 0.2, 10.0, None])
def test_rows_of_a_bin_with_a_threshold_between_0_and_1_are_sorted_by_it(cost: float | None) -> None:
    rng = np.random.default_rng(0)
    benefit = np.concatenate((rng.lognormal(0, 3, 500), -rng.lognormal(0, 1, 50), np.full(50, 0.8), np.zeros(20)))
    benefit[:100] = np.nextafter(benefit[100:200], np.inf)
    utility = Utilities.of(((0.0, -benefit), (rng.normal(size=len(benefit)) if cost is None else -cost, 0.0)))
    score = rng.random(len(benefit))
    for order in (np.arange(len(score)), np.argsort(score)):
        rows = Rows(score[order], np.arange(len(benefit)) % 2)
        u = RowUtilities(rows, utility.take(order))
        cells = RowRegrets(u).bins(4)
        assert isinstance(cells, RowCells)
        for number, of in enumerate(cells.bins):
            here = u.threshold[of_bin(rows, 4) == number]
            assert of.threshold.tolist() == np.sort(here[(here > 0) & (here < 1)]).tolist()
        assert (sum(len(of.threshold) for of in cells.bins) > 100) == (cost is None or cost > 0)


def of_bin(rows: Rows, bins: int) -> np.ndarray:
    """The number of the equal-mass bin of each row."""
    return bin_of(rows.score, rows.table.bin_edges(bins))


def test_amounts_alone_decide_held_out_rows() -> None:
    rows = priced(weighted=True, clustered=True).in_order()
    # Decisions by the amount alone have folds that do not depend on the score.
    by_amounts = np.lexsort((rows.weights, rows.unit, rows.label, *rows.amounts.values()))
    of_amounts = np.empty(len(rows), dtype=np.int64)
    of_amounts[by_amounts] = rows.take(by_amounts).places(Seed(0).generator("amounts")) % FOLDS
    large = np.empty(len(rows), dtype=bool)
    for k in range(FOLDS):
        others, here = rows.take(of_amounts != k), of_amounts == k
        amounts = np.unique(others.amounts["amount"])
        worth = [others.weights @ payoffs_of(others, others.amounts["amount"] >= least) for least in amounts]
        large[here] = rows.amounts["amount"][here] >= amounts[int(np.argmax(worth))]
    miss, alarm = rows.amounts["amount"], rows.amounts["cost_fp_column"]
    acts = (miss > 0) & (rows.score * (alarm + miss) >= alarm - 1e-12)
    now, by_amount = payoffs_of(rows, acts), payoffs_of(rows, large)
    share = rows.weights / rows.weights.sum()
    assert value("eu_by_amount", rows) == pytest.approx(share @ by_amount, abs=1e-10)
    assert value("gain_over_amount", rows) == pytest.approx(share @ (now - by_amount), abs=1e-10)


def test_rows_that_are_alike_are_one_task_for_every_metric() -> None:
    rows = priced(300)
    plain = from_arrays(rows.score, rows.label)
    alike = from_arrays(rows.score, rows.label, amount=np.full(300, 4.0))
    choices = tuple(map(parse, (*ALIKE, "gain_recalibration", "gain_over_constant", "net_benefit", "utility_share")))
    own = evaluate(alike, Plan(choices, RowTask(("amount",), cost_fp=1.0)))
    shared = evaluate(plain, Plan(choices, BinaryTask.of_costs(1, 4)))
    assert own.reports[0].results == shared.reports[0].results and own.by_row is None


def test_the_cost_is_that_of_the_example_of_empulse() -> None:
    """empulse 0.13.1, documentation of cost_loss: predictions 0, 1, 0, 0 of labels 0, 1, 1, 0 cost 3."""
    amounts = {"cost_fp_column": np.array([4.0, 1, 2, 2]), "cost_fn_column": np.array([1.0, 3, 3, 1])}
    rows = Rows(np.array([0.0, 1.0, 0.0, 0.0]), np.array([0, 1, 1, 0]), amounts=amounts)
    assert 4 * value("expected_utility", rows, RowTask(tuple(amounts))) == pytest.approx(-3.0, abs=1e-12)


def test_thresholds_beyond_0_and_1_always_and_never_act() -> None:
    """By hand: utilities tn, fn, fp, tp of five rows, none of which a score of 0 or 1 changes but the last."""
    table = np.array([[0, 1, -1, 0], [-1, -1, 0, 0], [0, 0, 0, 0], [0, 0, -5, 0], [0, -3, -1, 0]], dtype=float)
    rows = Rows(np.array([1.0, 0.0, 1.0, 1.0, 0.25]), np.array([1, 0, 1, 0, 1]), amounts={"utility_columns": table})
    u = RowUtilities(rows, utilities_of(rows.amounts, None, None, 1.0))
    assert np.isinf(u.threshold[[0, 2, 3]]).all() and u.threshold[4] == 0.25
    assert u.threshold[1] <= 0 and u.acts(rows.score).tolist() == [False, True, False, False, True]
    assert u.payoff(u.acts(rows.score)).mean() == pytest.approx((1 + 0 + 0 + 0 + 0) / 5)


def test_the_least_amount_parts_no_rows_of_one_amount() -> None:
    """By hand: at 7 and more 7 - 1 + 7 - 1; from 3 on 3 + 3 - 1 - 1 more less; ties of 7 stay together."""
    label, amount = np.array([1, 0, 1, 0, 0, 1]), np.array([7.0, 7.0, 7.0, 3.0, 3.0, 0.5])
    rows = Rows(np.full(6, 0.5), label, amounts={"amount": amount})
    u = RowUtilities(rows, utilities_of(rows.amounts, 1.0, None, 1.0))
    assert least_amounts(u, np.arange(6) > 1, [-1, 0]) == [7.0, 7.0]
    lost = Rows(np.full(2, 0.5), label[3:5], amounts={"amount": amount[3:5]})
    assert least_amounts(RowUtilities(lost, utilities_of(lost.amounts, 1.0, None, 1.0)), np.zeros(2), [-1]) == [np.inf]


def test_what_needs_one_task_says_so() -> None:
    with pytest.raises(Undefined, match="utilities that all rows share"):
        value("utility_share", priced())
    with pytest.raises(Undefined, match="a miss costs the same in every row"):
        value("eu_by_amount", Rows(priced().score, priced().label, amounts={"amount": np.ones(400)}),
              RowTask(("amount",), cost_fp=1.0))  # fmt: skip
    with pytest.raises(Undefined, match="--amount"):
        value_of(parse("eu_by_amount"), Inputs(priced()))


def test_of_two_actions_a_place_is_for_the_second() -> None:
    rows = priced()
    utility = utilities_of(rows.amounts, None, None, 1.0)
    for place in (each(rows, utility).in_place(rows.score) for each in (RowUtilities, RowStakes)):
        assert (place.without == 0).all() and (place.with_it == 1).all()


def test_what_actions_cost_more_than_the_first_is_multiplied_and_what_they_win_is_not() -> None:
    """Three actions at two classes: at class 0 the others cost 2 and 5 more, at class 1 they win 10 and 19."""
    columns = {"utility_columns": np.array([[0.0, -20.0, -2.0, -10.0, -5.0, -1.0]])}
    utility = utilities_of(columns, None, None, 3.0)
    found = [[float(np.squeeze(utility[action, label])) for label in (0, 1)] for action in range(3)]
    assert found == [[0.0, -20.0], [-6.0, -10.0], [-15.0, -1.0]]
    # Of two actions and classes only what a false positive costs more: 2, and not what a miss does.
    two = utilities_of({"utility_columns": np.array([[0.0, -1.0, -2.0, -20.0]])}, None, None, 3.0)
    assert [[float(np.squeeze(two[action, label])) for label in (0, 1)] for action in (0, 1)] == [[0, -1], [-6, -20]]
