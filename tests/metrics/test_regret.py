"""The regret family against row-wise sums, hand-made regions and the reference file's population."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from decal_cli.errors import DecalError, Undefined
from decal_cli.learn.probe import Judge, Probed
from decal_cli.learn.regions import Leaves, Regions
from decal_cli.metrics import Inputs, interval_of, parse, value_of
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import FEWEST_ROWS, Table, tabulate
from decal_cli.task import BinaryTask, parse_utility, task_of, task_of_rows, utility_text
from tests.helpers.command import FOX
from tests.helpers.worlds import any_rows, any_task, featured_rows, fixture_columns, known_rows


def from_features(score: np.ndarray, label: np.ndarray, features: np.ndarray) -> Inputs:
    """What the features say of some rows."""
    return Inputs(Rows(score, label, features=features))


NOTHING = Inputs()


def value_with(key: str, table: Table | None, task: BinaryTask | None, features: Inputs = NOTHING) -> float:
    return value_of(parse(key), features.override(table, task))


def interval_with(
    key: str, table: Table | None, task: BinaryTask | None, features: Inputs = NOTHING
) -> tuple[float, float]:
    ends = interval_of(parse(key), features.override(table, task), 0.95)
    return ends


def regions_by_hand() -> Inputs:
    """One bin, 100 rows in each half: a leaf of 50 with 40 positives, and one of 50 with 10; ten rows held out."""
    half = Leaves(np.array([0, 0]), np.array([50.0, 50.0]), np.array([40.0, 10.0]), np.array([50.0, 50.0]))
    probed = Probed(
        score=np.array([0.1, 0.1, 0.1, 0.1, 0.4, 0.4, 0.6, 0.6, 0.6, 0.6]),
        label=np.array([0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
        weight=np.ones(10),
        isotonic=np.array([0.2, 0.2, 0.2, 0.2, 0.55, 0.55, 0.7, 0.7, 0.7, 0.7]),
        recalibrated=np.array([0.2, 0.2, 0.2, 0.2, 0.55, 0.55, 0.7, 0.7, 0.7, 0.7]),
        probe=np.array([0.1, 0.1, 0.6, 0.6, 0.6, 0.4, 0.7, 0.7, 0.7, 0.7]),
        learned=np.zeros(10),
        judge=Judge(np.array([[0.1, 0.1, 0.6, 0.7, 0.9, 0.3, 0.7, 0.7, 0.7, 0.7]]), *np.zeros((2, 1, 10, 4))),
        fold=np.arange(10) % 5,
    )
    one = np.array([200.0])
    return Inputs.of(Regions(one, one / 2, one, np.array([0.01]), (half, half), (half, half)), probed)


HALF, FIFTH = BinaryTask.of_threshold(0.5), BinaryTask.of_threshold(0.2)
DOUBLED = BinaryTask.of_utility([[0.0, -1.0], [-1.0, 0.0]])
LOSS = 0.09 - (0.16 / 49 - 0.25 / 99) - 0.01
"""Spread of the leaves .09, less their noise beyond that of the bin, less what the bin's width induces."""

BY_HAND = {
    ("grouping_loss", None): LOSS,
    ("regret_grouping_lower", HALF): LOSS,
    ("regret_grouping_upper", HALF): np.sqrt(LOSS) / 2,
    ("regret_grouping_upper_sharp", HALF): np.sqrt(LOSS) / 2,
    ("regret_grouping", HALF): (LOSS + np.sqrt(LOSS) / 2) / 2,
    ("regret_grouping_lower", FIFTH): 0.0,  # Vmin = .5 x .3 exceeds the loss
    ("regret_grouping_upper", FIFTH): (np.sqrt(LOSS + 0.09) - 0.3) / 2,
    # Q is 0 or (.25 + LOSS) / .5: .2 of the rows where it is 0 are acted on in vain.
    ("regret_grouping_upper_sharp", FIFTH): 0.2 * LOSS / (0.25 + LOSS),
    ("regret_grouping", FIFTH): 0.1 * LOSS / (0.25 + LOSS),
    ("regret_grouping_upper", DOUBLED): np.sqrt(LOSS),
    # Two rows of label 1 are now acted on, one of label 0 no more; the judge gives them .6, .7 and .3.
    ("gain_beyond", HALF): (3 * 0.5 + 0.1 + 0.2 + 0.2) / 2 / 10,
    ("gain_beyond", DOUBLED): 2 * (3 * 0.5 + 0.1 + 0.2 + 0.2) / 2 / 10,
}


@pytest.mark.parametrize(("key", "task"), BY_HAND)
def test_regions_made_by_hand(key: str, task: BinaryTask | None) -> None:
    assert value_with(key, None, task, regions_by_hand()) == pytest.approx(BY_HAND[key, task], abs=1e-12)


@given(rows=any_rows(least=20), task=any_task)
def test_the_gain_over_a_constant_decision_is_that_over_the_score_plus_its_lead(rows: Rows, task: BinaryTask) -> None:
    table = rows.table
    assume(table.fewer_rows and table.effective_rows >= FEWEST_ROWS)  # one heavy row says less than twenty
    over_constant, over_score, lead = (
        value_with(key, table, task) for key in ("gain_over_constant", "gain_recalibration", "external_regret")
    )
    assert over_constant == pytest.approx(over_score - lead, abs=1e-9)


def test_the_adjusted_threshold_is_where_the_isotonic_fit_reaches_t() -> None:
    table = known_rows("hand").table  # fits .2, .5 and 1 at scores .2, .6 and .9
    assert value_with("threshold_adjusted", table, BinaryTask.of_threshold(0.4)) == 0.6
    assert value_with("threshold_adjusted", table, BinaryTask.of_threshold(0.5)) == 0.6
    assert value_with("threshold_adjusted", table, BinaryTask.of_threshold(0.51)) == 0.9
    assert value_with("threshold_adjusted", table, BinaryTask.of_threshold(0.1)) == 0.2
    with pytest.raises(Undefined, match=r"no recalibrated score reaches t\* = 0.7 \(the highest is 0.5\): never act"):
        value_with("threshold_adjusted", tabulate(np.full(4, 0.9), np.arange(4) % 2), BinaryTask.of_threshold(0.7))


def test_the_worst_case_is_that_every_label_of_a_bin_is_known() -> None:
    table = tabulate(np.full(10, 0.3), np.arange(10) % 2)
    assert value_with("regret_grouping_worst", table, HALF) == pytest.approx(0.25)
    assert value_with("regret_grouping_worst", table, FIFTH) == pytest.approx(0.5 * 0.2)  # five in vain, at .2


@given(rows=any_rows(), task=any_task)
def test_the_worst_case_is_at_most_what_is_at_stake(rows: Rows, task: BinaryTask) -> None:
    """In one bin it is that: both compare knowing every label with the better constant decision."""
    at_stake = value_with("utility_at_stake", rows.table, task)
    assert value_with("regret_grouping_worst(bins=1)", rows.table, task) == pytest.approx(at_stake, abs=1e-9)
    assert value_with("regret_grouping_worst", rows.table, task) <= at_stake + 1e-9


def reference_file() -> tuple[Table, Inputs]:
    """The reference file, its features x1, x2 and x3."""
    rows = known_rows("binary")
    data = fixture_columns("binary_n2000.csv")
    features = np.column_stack([data[name].astype(float) for name in ("x1", "x2", "x3")])
    return rows.table, from_features(rows.score, rows.label, features)


POPULATION = {0.1: (0.0082, 0.0063), 0.2: (0.0039, 0.0167), 0.3: (0.0004, 0.0228)}
"""Calibration regret and grouping regret of the reference file's world."""


@pytest.mark.parametrize("threshold", POPULATION)
def test_the_population_lies_in_the_intervals_of_the_reference_file(threshold: float) -> None:
    table, features = reference_file()
    task = BinaryTask.of_threshold(threshold)
    calibration, beyond = POPULATION[threshold]

    def holds(key: str, truth: float) -> bool:
        low, high = interval_with(key, table, task, features)
        return low <= truth <= high

    assert holds("gain_recalibration", calibration)
    assert holds("regret_grouping", beyond)
    assert holds("regret", calibration + beyond)
    assert holds("grouping_loss", 0.02335)


@pytest.mark.ci
def test_the_interval_of_the_regret_intervals_where_its_text_says() -> None:
    columns = pq.read_table(FOX)
    features = np.column_stack([columns[name].to_numpy() for name in columns.column_names if name.startswith("x")])
    rows = Rows(columns["p_hatesonar"].to_numpy().astype(float), columns["y"].to_numpy(), features=features)
    everything = Inputs(rows, BinaryTask.of_threshold(0.3))
    low, high = interval_of(parse("regret"), everything, 0.95)
    value = value_of(parse("regret"), everything)
    wins = interval_of(parse("gain_post_training"), everything, 0.95)
    assert wins[0] > value
    assert low == value
    assert high >= wins[1]


CLINIC = ((0.0, -20.0), (-2.0, -3.0), (-5.0, -1.0), (-9.0, -9.0))
"""Home, test, treat, and an action that is never best. Home to test where 2 (1 - p) = 17 p, test to treat at .6."""


def worth(utility: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Expected utility of every action at every probability, shape (len(p), A)."""
    return np.column_stack((1 - p, p)) @ utility.T


utilities = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=6)


@given(utility=utilities)
def test_the_envelope_is_that_of_a_search_over_scores(utility: list[tuple[int, int]]) -> None:
    try:
        task = task_of_rows(utility)
    except DecalError:
        return
    edges = np.array([0.0, *task.thresholds, 1.0])
    assert (np.diff(edges) > 0).all()
    inside = (edges[1:] + edges[:-1]) / 2
    assert worth(np.array(task.utility), inside).max(axis=1) == pytest.approx(
        [worth(np.array(task.undominated), inside)[k, k] for k in range(len(inside))]
    )
    at_kinks = worth(np.array(task.undominated), np.array(task.thresholds))
    for k in range(len(task.thresholds)):
        assert at_kinks[k, k] == pytest.approx(at_kinks[k, k + 1], abs=1e-12)
    lost = np.ptp(np.array(task.undominated), axis=0).sum()
    assert task.u_delta == pytest.approx(lost)


def test_the_thresholds_have_names_and_the_dominated_action_too() -> None:
    task = parse_utility("home,0,-20;test,-2,-3;treat,-5,-1;both,-9,-9")
    assert task.utility == CLINIC
    assert task.thresholds == pytest.approx((2 / 19, 0.6))
    assert [step.names for step in task.steps] == [("home", "test"), ("test", "treat")]
    assert task.dominated == ("both",)
    assert parse_utility(utility_text(task.utility, task.names)) == task
    assert task_of(utility={"home": [0, -20], "test": [-2, -3], "treat": [-5, -1], "both": [-9, -9]}) == task


@pytest.mark.usefixtures("one_deal")
def test_gains_and_regrets_add_up_over_the_steps() -> None:
    """Each step is a task of two actions, and what all lose is the sum."""
    score, label, _, features = featured_rows(400)
    rows = Rows(score, label, features=features)
    task = task_of_rows(((0.0, -4.0), (-0.4, -1.5), (-1.0, 0.0)))
    assert len(task.steps) == 2
    sums = ("regret_calibration", "gain_recalibration", "gain_over_constant", "gain_beyond", "gain_post_training",
            "regret_grouping_lower", "regret_grouping_upper", "regret_grouping_upper_sharp", "regret_grouping",
            "regret", "regret_grouping_worst", "utility_at_stake", "cfdl", "external_regret")  # fmt: skip
    whole, parts = Inputs(rows, task), [Inputs(rows, step) for step in task.steps]
    for spec in map(parse, sums):
        value = value_of(spec, whole)
        assert value == pytest.approx(sum(value_of(spec, part) for part in parts), abs=1e-12), spec.key
        if spec.declared.interval is not None:
            low, high = interval_of(spec, whole, 0.9)
            assert low <= value <= high, spec.key
