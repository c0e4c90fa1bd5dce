"""Limited capacity against lists that are written out, by hand, and in simulated worlds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decal_cli.metrics import METRICS, Inputs, interval_of, parse, value_of
from decal_cli.metrics.paired import intervals
from decal_cli.tables.local_rate import Neighbours
from decal_cli.tables.rows import Rows
from decal_cli.tables.selection import Capacity, selected
from decal_cli.task import BinaryTask
from simulation.places import drawn
from tests.helpers.lists import count, share
from tests.helpers.worlds import any_rows, known_rows
from tests.helpers.worlds import value_or_none as value

TASK = BinaryTask.of_utility([[0.0, -0.7], [-0.3, 0.0]])
"""t* = .3."""
FAMILY = [metric.name for metric in METRICS.values() if metric.family == "capacity"]


def measured(rows: Rows, capacity: Capacity, task: BinaryTask | None = TASK) -> Inputs:
    return Inputs(selected(rows, capacity, None if task is None else task.decision_threshold), task)


BY_HAND = {
    "capture": 3.5 / 5,
    "precision_at_capacity": 3.5 / 4,
    "lift": 3.5 / 4 / 0.5,
    "utility_at_capacity": -0.7 * 5 / 10 + (3.5 * 0.7 - 0.5 * 0.3) / 10,
    "capacity_cost": (0.5 * 0.7 - 0.5 * 0.3) / 10,
    "capacity_threshold": 0.6,
    # The line through ten rows has mean .5 at .49 and slope 1.05 / .949.
    "shadow_price": 0.5 + 1.05 / 0.949 * (0.6 - 0.49) - 0.3,
}
"""Four places: three rows of score .9, all of label 1, and one place for two rows of score .6, one of label 1."""


@pytest.mark.parametrize("key", FAMILY)
def test_the_hand_made_world_has_the_values_worked_by_hand(key: str) -> None:
    assert value(key, measured(known_rows("hand"), count(4))) == pytest.approx(BY_HAND[key], abs=1e-12)


@pytest.mark.parametrize("key", sorted({*FAMILY} - {"shadow_price"}))
def test_a_row_of_weight_three_counts_as_three_under_a_capacity(key: str) -> None:
    """The hand-made world, a row for each score and label."""
    rows = Rows(np.array([0.2, 0.2, 0.6, 0.6, 0.9]), np.array([0, 1, 0, 1, 1]), np.array([4.0, 1.0, 1.0, 1.0, 3.0]))
    assert value(key, measured(rows, share(0.4))) == pytest.approx(BY_HAND[key], abs=1e-12)


@pytest.mark.parametrize("places", [(100, 200, 390), (0, 120)])
def test_the_mean_at_a_place_is_on_the_line_through_the_rows_that_rank_around_it(places: tuple[int, ...]) -> None:
    """With the error of the mean over places by what each row adds to it."""
    rng = np.random.default_rng(0)
    rank = 1e5 + np.sort(rng.integers(0, 800, 400)) / 100
    weight, values, unit = rng.uniform(0.5, 2, 400), rng.normal(rank - 1e5, 1), rng.integers(0, 100, 400)
    at, wide = rank[list(places)], math.ceil(400**0.75 / 2)
    shares, noise, lines = np.zeros(400), np.zeros(400), []
    for place in at:
        first = max(np.searchsorted(rank, place, side="left") - wide, 0)
        last = min(np.searchsorted(rank, place, side="right") + wide, 400) - 1
        near = (rank >= rank[first]) & (rank <= rank[last])
        x, w = rank[near] - place, weight[near]
        lines.append(np.polyfit(x, values[near], 1, w=np.sqrt(w)))
        centre = np.average(x, weights=w)
        share = w * (1 / w.sum() - centre * (x - centre) / (w @ (x - centre) ** 2)) / len(at)
        shares[near] += share
        noise[near] += share * (values[near] - np.polyval(lines[-1], x))
    found = Neighbours(rank, weight, unit, at).means(values)
    assert np.column_stack((found.slope, found.mean)) == pytest.approx(np.array(lines), abs=1e-6)
    assert found.effective == pytest.approx(1 / (shares**2).sum())
    assert found.error == pytest.approx(np.sqrt((np.bincount(unit, noise) ** 2).sum()))
    assert found.range == pytest.approx(np.ptp(values))


@given(rows=any_rows(least=2, most=30, weights="none"), days=st.integers(1, 4), places=st.integers(1, 9))
def test_days_have_the_lists_that_each_has_by_itself(rows: Rows, days: int, places: int) -> None:
    day = np.arange(len(rows)) * days // len(rows)
    together = selected(replace(rows, period=day), count(places), 0.3).selection
    for number in range(days):
        which = day == number
        alone = selected(rows.take(which), count(places), 0.3).selection if which.any() else None
        if alone is not None:
            assert together.acted[which] == pytest.approx(alone.acted, abs=1e-12)


@given(rows=any_rows(), part=st.sampled_from([0.01, 0.3, 1.0]))
def test_intervals_hold_their_values_and_stay_in_bounds(rows: Rows, part: float) -> None:
    inputs = measured(rows, share(part))
    for key in FAMILY:
        known, ends = value(key, inputs), interval_of(parse(key), inputs, 0.9)
        low, high = METRICS[key].bounds(TASK)
        if known is None:
            assert ends is None
        elif ends is not None:
            assert low - 1e-9 <= ends[0] <= known + 1e-9 <= ends[1] + 2e-9 <= high + 3e-9, key


def test_a_count_beyond_the_rows_of_a_day_acts_on_all_of_them() -> None:
    rows = replace(known_rows("hand"), period=np.array([0, 0, 1, 1, 1, 1, 1, 1, 1, 1]))
    listing = selected(rows, count(3), None).selection
    assert listing.acted.sum() == pytest.approx(5.0)
    assert listing.lists.full.tolist() == [False, True]


def test_rows_exchanged_for_others_of_their_label_have_no_paired_interval() -> None:
    label, score = np.repeat([1, 0], [300, 100]), np.linspace(1, 0.4, 400)
    scores = score, np.concatenate((np.roll(score[:100], 50), score[100:]))
    a, b = (measured(Rows(score, label), count(2)) for score in scores)
    spec = parse("capture")
    assert intervals({spec: 0.0}, a, b, 0.9) == {}
    assert intervals({spec: 0.0}, a, a, 0.9) == {spec: (0.0, 0.0)}


WORLDS = {"rows": 500, "days": 30, "clusters": 100, "weights": 700}


@pytest.mark.parametrize("kind", WORLDS)
def test_intervals_cover_the_population(kind: str) -> None:
    """90 % of 60 samples: fewer than 46 or all of them would be a 1 in 1,000 event, had each the coverage it claims."""
    capacity = count(5) if kind == "days" else share(0.1)
    population = measured(drawn(np.random.default_rng(5), kind, 200 * WORLDS[kind]), capacity)
    truth = {key: value_of(parse(key), population) for key in FAMILY}
    rng, held = np.random.default_rng(3), dict.fromkeys(FAMILY, 0)
    for _ in range(60):
        sample = measured(drawn(rng, kind, WORLDS[kind]), capacity)
        for key in FAMILY:
            ends = interval_of(parse(key), sample, 0.9)
            assert ends is not None, key
            held[key] += ends[0] <= truth[key] <= ends[1]
    assert min(held.values()) >= 46, held
