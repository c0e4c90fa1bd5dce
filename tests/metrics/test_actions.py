"""More than two actions, against loops over rows and actions; a task of two actions is the same however it is made."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decal_cli.errors import DecalError, Undefined
from decal_cli.metrics import Inputs, interval_of, parse, value_of
from decal_cli.tables.rows import Rows
from decal_cli.task import Task, parse_utility, task_of, task_of_rows, utility_text

CLINIC = ((0.0, -20.0), (-2.0, -3.0), (-5.0, -1.0), (-9.0, -9.0))
"""Home, test, treat, and an action that is never best. Home to test where 2 (1 - p) = 17 p, test to treat at .6."""


def worth(utility: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Expected utility of every action at every probability, shape (len(p), A)."""
    return np.column_stack((1 - p, p)) @ utility.T


def labelled(rows: int = 400, seed: int = 0, decimals: int = 2) -> Rows:
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(rows), decimals)
    return Rows(score, (rng.random(rows) < score**1.6).astype(np.uint8))


def value(text: str, rows: Rows, task: Task) -> float:
    return value_of(parse(text), Inputs(rows, task))


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,0,-20;a,-2,-3;b,-5,-1", "names the action 'a' twice"),
        ("a,0,-20;-2,-3;b,-5,-1", "action 1 has the name ''"),
        ("0,0;-1,-1;-2,-2", "action '0' is never worse than another"),
        ("0,1;1,0;-2,-2,1", "2 x 2 or with more rows"),
        ("a,b,c;d,e,f", "2 x 2 or with more rows"),
        ("0,-1e-20;-1e-20,0;-9e-21,-2e-21", "below 1e-15"),
    ],
)
def test_what_cannot_be_a_task_of_several_actions(text: str, message: str) -> None:
    with pytest.raises(DecalError, match=message):
        parse_utility(text)
    with pytest.raises(DecalError, match="--decision-threshold is one threshold"):
        task_of(utility=CLINIC, decision_threshold=0.3)


def featured(rows: int = 400) -> Rows:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((rows, 2))
    truth = 1 / (1 + np.exp(-1.5 * x[:, 0] - x[:, 1]))
    score = np.round(1 / (1 + np.exp(-1.5 * x[:, 0])), 3)
    return Rows(score, (rng.random(rows) < truth).astype(np.uint8), features=x)


def test_gains_and_regrets_add_up_over_the_steps() -> None:
    """Each step is a task of two actions, and what all lose is the sum."""
    rows = featured()
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
            low, high = interval_of(spec, whole, 0.9) or (np.nan, np.nan)
            assert low <= value <= high, spec.key


@pytest.mark.parametrize("name", ["net_benefit", "eu_never", "accuracy", "sensitivity", "threshold_adjusted"])
def test_what_speaks_of_two_actions_says_so(name: str) -> None:
    with pytest.raises(Undefined, match="needs a task of two actions, and this one has 3"):
        value(name, labelled(), task_of_rows(CLINIC))
