"""Sums at every threshold, from which the page of `decal report` says what each way of acting is worth."""

from typing import Any

import numpy as np
import pytest

from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.sweep import MovedDecisions, Positions, capacities_around, positions_of, swept, thresholds_for
from decal_cli.curves.grid import Grid
from decal_cli.data import from_arrays
from decal_cli.data.dataset import parse_capacity
from decal_cli.learn import held_out
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask


def test_what_ways_of_acting_win_by_hand() -> None:
    """Four rows of label 1 and six of label 0 at t* = .25 and .5: as it is, .175 and .05 per row."""
    top = np.zeros(2)
    recalibrated = MovedDecisions(np.array([1, -1]), np.array([1, -1]), np.array([0.01, 0.02]), top)
    featured = MovedDecisions(np.array([0, 1]), np.array([0, 0]), np.array([0.03, 0.02]), top)
    at, hits, alarms = np.array([0.25, 0.5]), np.array([3, 2]), np.array([2, 1])
    positions = Positions(at, 4, 6, hits, alarms, top, recalibrated, featured)
    worth = {"never": [0, 0], "always": [0.15, -0.1], "now": [0.175, 0.05], "recalibrate": [0.225, 0.05]}
    worth["post-train"] = [0.225, 0.1]
    assert {way: values.tolist() for way, values in positions.worth().items()} == {
        way: pytest.approx(values, abs=1e-12) for way, values in worth.items()
    }
    for way, values in positions.over_constant().items():
        assert values == pytest.approx(np.subtract(worth[way], [0.15, 0]), abs=1e-12)


def test_thresholds_are_at_most_1001_and_dense_where_labels_are_rare() -> None:
    assert len(thresholds_for((0.3,), 0.2, 10_000)) == 999
    rare = thresholds_for((0.00123,), 0.2, 10_000)
    assert len(rare) <= 1_001
    assert (rare < 0.02).sum() > 300 and 0.00123 in rare
    assert len(thresholds_for((1 / 3,), 0.2, 1e7)) == 100


@pytest.mark.parametrize("operated_at", [None, 0.4], ids=["operated at each threshold", "operated at 0.4"])
def test_sums_are_those_of_a_loop_over_thresholds(operated_at: float | None) -> None:
    """What is acted on, and what recalibration newly acts on: `>= t*` asked of each level and each held-out unit."""
    rng = np.random.default_rng(0)
    score = rng.integers(1, 20, 1_000) / 20
    weight = rng.integers(1, 4, 1_000).astype(float)
    t = Rows(score, (rng.random(1_000) < score**2).astype(int), weight).table
    at = np.array([0.05, 0.3, 0.5, 0.725, 0.95, 0.99])
    found = positions_of(t, None, BinaryTask.of_threshold(0.5, operated_at), at, None, 0)
    held = held_out.of_table(t, 0)
    share, label = held.units.weight * t.total / held.units.total, held.units.label == 1
    assert found.recalibrated is not None and (found.positives, found.negatives) == (t.pos.sum(), (t.n - t.pos).sum())
    first = np.sort(held.recalibrated)[::-1][:1]
    ties = held.recalibrated == first
    places = int(share[ties].sum() / t.total * 1_000)
    found_by_place = (share * label)[ties].sum() / share[ties].sum() * t.total / 1_000
    assert found.recalibrated.top[places] == pytest.approx(places * found_by_place)
    assert found.recalibrated.top[1_000:] == pytest.approx([t.pos.sum()])
    for k, threshold in enumerate(at):
        operated = operated_at or threshold
        acts = t.score >= operated
        assert (found.hits[k], found.alarms[k]) == (t.pos[acts].sum(), (t.n - t.pos)[acts].sum())
        newly = (held.recalibrated >= threshold - 1e-9).astype(float) - (held.score >= operated)
        for moved, of_label in ((found.recalibrated.hits, label), (found.recalibrated.alarms, ~label)):
            assert moved[k] == pytest.approx((share * newly)[of_label].sum(), abs=1e-9)


@pytest.mark.parametrize(
    ("capacity", "steps"),
    [
        ("20", range(5, 61, 5)),
        ("2", range(1, 7)),
        ("90", [*(22.5 * k for k in (1, 2, 3, 4)), 100]),
        ("0.2", [0.05 * k for k in range(1, 13)]),
        ("0.8", [0.2, 0.4, 0.6, 0.8, 1]),
    ],
)
def test_a_picture_has_capacities_up_to_three_times_the_user_s_and_to_all_rows(capacity: str, steps: Any) -> None:
    asked = parse_capacity(capacity)
    values = capacities_around(from_arrays(np.arange(100) / 100, np.arange(100) % 2), asked)
    assert values == pytest.approx([step if asked.among else round(step) for step in steps])


def test_the_highest_places_find_the_labels_of_their_levels() -> None:
    """Of ten rows, the first 2 places are one of label 1 in 2, the next 3 share two ones, the last 5 have none."""
    t = Rows(np.repeat([0.9, 0.5, 0.1], [2, 3, 5]), np.array([1, 0, 1, 1, 0, 0, 0, 0, 0, 0])).table
    top = positions_of(t, None, BinaryTask.of_threshold(0.5), np.array([0.5]), None, 0).top
    assert top[[0, 100, 200, 350, 500, 1000]] == pytest.approx([0, 0.5, 1, 2, 3, 3])


def test_thresholds_that_single_precision_puts_above_a_score_are_told() -> None:
    scores, labels = np.float32([0.2, 0.55, 0.6, 0.9, 0.9]).astype(float), np.array([0, 0, 1, 1, 0])
    grid = Grid(np.array([0.55, 0.6, 0.7, 0.9]))
    (note,) = swept(from_arrays(scores, labels), Plan(()), grid).head.notes
    assert note.startswith("40 % of the rows") and "0.8999999762 for 0.9; round" in note
