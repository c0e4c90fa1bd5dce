"""Utilities of each row for any actions and classes, and places for so many of them: by hand and against one task."""

import numpy as np
import pytest

import decal_cli
from decal_cli.metrics.inputs import stakes_on
from decal_cli.tables.rows import Rows
from decal_cli.task import abstaining, task_of

pytestmark = pytest.mark.usefixtures("seen_rows_only")

CLASSES = ("a", "b", "c")
WAIT_TEST_TREAT = ((0.0, -20.0), (-2.0, -3.0), (-5.0, -1.0))
AT_CAPACITY = ["utility_at_capacity", "capacity_cost", "shadow_price", "least_gain"]


def test_whoever_abstains_needs_a_place_by_hand() -> None:
    """At a price of .3 a place is expected to win .7 - max p: of four rows .2, .1, and less than nothing twice."""
    score = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.8, 0.1, 0.1], [0.0, 0.0, 1.0]])
    rows = Rows(score, np.array([1, 1, 0, 2]), classes=CLASSES)
    decision = abstaining(0.3).for_classes(CLASSES)
    place = stakes_on(rows, decision).in_place(score)
    assert place.wins == pytest.approx([0.2, 0.1, -0.1, -0.3])
    assert place.without.tolist() == [0, 1, 0, 2] and set(place.with_it.tolist()) == {3}
    frame = {f"p:{name}": score[:, k] for k, name in enumerate(CLASSES)} | {"y": ["b", "b", "a", "c"]}
    found = decal_cli.evaluate(
        frame, proba="p:*", label="y", abstain=0.3, capacity=1, metrics=AT_CAPACITY[:2], intervals=False
    )
    # The first row is wrong without a place: .7 + 1 + 1 + 1, and without a limit .7 + .7 + 1 + 1.
    assert found["utility_at_capacity"].value == pytest.approx(3.7 / 4)
    assert found["capacity_cost"].value == pytest.approx(-0.3 / 4)


def test_rows_that_are_expected_to_win_the_same_share_a_place_whatever_rounding_says() -> None:
    """.2 x 1.5 - .8 x .25 and .4 x .625 - .6 x .25 are .1, and as floats they differ."""
    rows = {"p": [0.2, 0.4, 0.1], "y": [1, 1, 0], "miss": [1.5, 0.625, 0.5]}
    asked = {"amount": "miss", "cost_fp": 0.25, "capacity": 1, "intervals": False}
    found = decal_cli.evaluate(rows, score="p", label="y", metrics=["utility_at_capacity"], **asked)
    assert found["utility_at_capacity"].value == pytest.approx(-(1.5 + 0.625) / 2 / 3)


def test_actions_but_that_of_low_scores_need_a_place_by_hand() -> None:
    """Test from 2/19 on, treat from 3/5 on: at a score of .2 testing wins 20 x .2 - 2.2, at .9 treating 18 - 1.4."""
    rows = Rows(np.array([0.2, 0.9, 0.05]), np.array([0, 1, 0]))
    place = stakes_on(rows, task_of(utility=WAIT_TEST_TREAT)).in_place(rows.score)
    assert place.wins == pytest.approx([4 - 2.2, 18 - 1.4, 0.05 * 17 - 0.95 * 2])
    assert place.with_it.tolist() == [1, 2, 1]
