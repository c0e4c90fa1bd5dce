"""GLAR: the propositions of its paper hold on the rows it was fitted to, and r decides what is corrected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from decal_cli.learn.by_region import NO_TREE, Glar, halves, thresholds
from decal_cli.learn.curves import bin_of
from decal_cli.learn.method import Training, fit, fit_each, note_of
from decal_cli.learn.methods import parse
from decal_cli.learn.regions import LEAVES, build_regions, narrow
from decal_cli.metrics import Inputs, value_of
from decal_cli.metrics import parse as metric
from decal_cli.tables.rows import Unlabelled
from decal_cli.task import BinaryTask
from tests.helpers.training import (
    any_training,
    any_training_with_levels,
    calibration_error,
    fit_method,
    random_training,
    spread_between,
    unlabelled,
    utility_of_acts,
    with_task,
)

KEYS = st.sampled_from(["glar(r=-1)", "glar(r=0)", "glar(r=0.01)", "glar", "glar(r=-1,bins=3)"])
EVERY_LEVEL = "glar(r=-1,bins=100)"
"""With no more than eight levels of at least a hundredth of the rows each, every level is a bin; see `made`."""


def regions_of(model: Glar, rows: Training) -> np.ndarray:
    """Which region of the features, within its bin, each row belongs to; 0 where the bin has no tree."""
    number = model.tree[bin_of(rows.score, model.edges)]
    leaf = np.zeros(len(rows))
    assert rows.features is not None
    for k, tree in enumerate(model.trees):
        leaf[number == k] = 1 + tree.leaf(narrow(rows.features[number == k]))
    return leaf


def glar(key: str, rows: Training) -> Glar:
    model = fit_method(key, rows)
    assert isinstance(model, Glar)
    return model


def counted_rows(model: Glar, rows: Training) -> Training:
    """The rows that give its probabilities: in a corrected bin, those that did not grow the tree."""
    rows = rows.in_order()
    number = bin_of(rows.score, model.edges)
    bins = [np.flatnonzero(number == k) for k in np.unique(number)]
    kept = [here if model.tree[number[here[0]]] == NO_TREE else halves(rows, here)[1] for here in bins]
    return rows.take(np.sort(np.concatenate(kept)))


@given(rows=any_training, key=KEYS)
def test_it_is_calibrated_on_the_rows_that_it_counts(rows: Training, key: str) -> None:
    """Perez-Lebel et al. 2025, prop. B.10, first half."""
    model = glar(key, rows)
    counted = counted_rows(model, rows)
    assert calibration_error(model(unlabelled(counted)).score, counted) < 1e-9


@given(rows=any_training_with_levels, key=KEYS)
def test_it_never_raises_the_grouping_loss_on_its_partition(rows: Training, key: str) -> None:
    """The second half; the score has few levels, so that its level sets are more than single rows."""
    model = glar(key, rows)
    counted = counted_rows(model, rows)
    region = regions_of(model, counted)
    after = spread_between(np.round(model(unlabelled(counted)).score, 12), region, counted)
    assert after <= spread_between(counted.score, region, counted) + 1e-12


def test_the_rows_that_grow_a_tree_do_not_count_in_its_leaves() -> None:
    """Perez-Lebel et al. 2025, app. C.3: local averages are estimated on the second part."""
    rows = random_training(300, 0).in_order()
    model = glar("glar(r=-1,bins=1)", rows)
    grown, counted = halves(rows, np.arange(300))
    assert len(grown) == len(counted) == 150 and not set(grown) & set(counted)
    assert rows.features is not None
    leaf = model.trees[0].leaf(narrow(rows.features))
    for k in np.unique(leaf):
        assert model.trees[0].value[k] == pytest.approx(rows.label[counted][leaf[counted] == k].mean())


def test_a_leaf_may_hold_one_row() -> None:
    rows = random_training(2000, 0).in_order()
    assert rows.features is not None
    alone = rows.features.copy()
    grown, _ = halves(rows, np.arange(2000))
    alone[grown[0]] = 50
    odd = replace(rows, features=alone, label=np.where(np.arange(2000) == grown[0], 1.0, 0.0))
    tree = glar("glar(r=-1,bins=1,leaf=1)", odd).trees[0]
    assert 1 in np.bincount(tree.leaf(narrow(alone[grown])))


def every_level_is_a_bin(rows: Training) -> bool:
    return len(glar(EVERY_LEVEL, rows).edges) == len(rows.table) - 2


@given(rows=any_training_with_levels, t=st.floats(0.05, 0.95))
def test_utility_never_falls_from_the_score_to_bins_to_regions(rows: Training, t: float) -> None:
    """Perez-Lebel et al. 2025, prop. B.12: acting on p, on the frequency in its level set, in regions of the set."""
    rows = with_task(rows, t)
    lowest, next_lowest = rows.table.score[:2]
    assume(every_level_is_a_bin(rows) and not lowest < t <= next_lowest)
    model = glar(EVERY_LEVEL, rows)
    counted = counted_rows(model, rows)
    level = bin_of(counted.score, model.edges)
    positive, weight = (np.bincount(level, values) for values in (counted.weights * counted.label, counted.weights))
    as_it_is = utility_of_acts(counted, counted.score >= t)
    by_bin = utility_of_acts(counted, (positive / np.maximum(weight, 1e-300))[level] >= t)
    by_region = utility_of_acts(counted, model(unlabelled(counted)).score >= t)
    assert as_it_is <= by_bin + 1e-12 and by_bin <= by_region + 1e-12


def test_the_worlds_have_levels_that_are_bins() -> None:
    assert all(every_level_is_a_bin(random_training(300, seed, levels=4)) for seed in range(5))


@given(rows=any_training, key=KEYS, t=st.floats(0.05, 0.95))
def test_moved_thresholds_decide_as_moved_scores(rows: Training, key: str, t: float) -> None:
    """Perez-Lebel et al. 2025, def. B.13, on rows that it was not fitted to."""
    rows, new = with_task(rows, t), unlabelled(random_training(500, 1))
    assert rows.task is not None
    moved = fit_method(f"{key.removesuffix(')')}{',' if '(' in key else '('}adjust=threshold)", rows)(new)
    corrected = fit_method(key, rows)(new)
    np.testing.assert_array_equal(moved.score, new.score)
    np.testing.assert_array_equal(moved.acts(rows.task), corrected.acts(rows.task))
    assert moved.threshold is not None
    np.testing.assert_allclose(moved.threshold, t - (corrected.score - new.score), atol=1e-12)


UNIT = st.floats(0, 1)


@settings(max_examples=300)
@given(score=UNIT, corrected=UNIT, t=st.floats(0.01, 0.99))
def test_rounding_does_not_part_moved_thresholds_from_moved_scores(score: float, corrected: float, t: float) -> None:
    for value in (corrected, t, np.nextafter(t, 0), np.nextafter(t, 1)):
        threshold = thresholds(np.array([score]), np.array([value]), t)[0]
        assert (score >= threshold) == (value >= t)
        assert threshold == pytest.approx(t - (value - score), abs=1e-15)


def grouping_regret(rows: Training) -> float:
    regions = build_regions(rows, seed=rows.seed)
    return value_of(metric("regret_grouping"), Inputs.of(regions, rows.task))


def test_r_is_compared_with_the_grouping_regret_that_is_reported() -> None:
    rows = random_training(2000, 0)
    regret = grouping_regret(rows)
    assert regret > 0.01
    assert not glar(f"glar(r={regret * 1.0001})", rows).trees
    below = glar(f"glar(r={regret * 0.9999})", rows)
    assert 0 < len(below.trees) < 15
    assert len(glar("glar(r=-1)", rows).trees) == 15


def test_without_grouping_regret_it_is_isotonic_regression() -> None:
    rows, new = random_training(500, 0), unlabelled(random_training(500, 1))
    model = glar("glar(r=10)", rows)
    assert (model.tree == NO_TREE).all()
    np.testing.assert_array_equal(model(new).score, fit_method("isotonic", rows)(new).score)


def test_r_is_in_the_users_utility_units() -> None:
    """The same decision at ten times the stakes has ten times the regret."""
    rows = random_training(2000, 0)
    assert rows.task is not None
    (u00, u01), (u10, u11) = rows.task.utility
    stakes = BinaryTask.of_utility([[10 * u00, 10 * u01], [10 * u10, 10 * u11]])
    tenfold = Training(rows.score, rows.label, rows.weight, groups=rows.groups, features=rows.features, task=stakes)
    np.testing.assert_array_equal(glar("glar(r=0.012)", rows).tree, glar("glar(r=0.12)", tenfold).tree)


def test_the_default_r_is_that_of_the_paper_at_any_stakes() -> None:
    """Perez-Lebel et al. 2025 set r = .02 where u_delta = 1/t*: .006 in the units of a threshold alone at t* = .3."""
    rows = with_task(random_training(2000, 0), 0.3)
    unit = glar("glar", rows)
    assert 0 < len(unit.trees) < 15
    np.testing.assert_array_equal(unit.tree, glar("glar(r=0.006)", rows).tree)
    for utility in ([[1, 0], [0, 1 / 0.3 - 1]], [[0, -70], [-30, 0]]):
        np.testing.assert_array_equal(unit.tree, glar("glar", replace(rows, task=BinaryTask.of_utility(utility))).tree)


def test_trees_stay_small_and_find_what_the_score_does_not_know() -> None:
    rows, new = random_training(6000, 0), random_training(6000, 1)
    model = glar("glar(r=0)", rows)
    assert model.trees and all((tree.left < 0).sum() <= LEAVES for tree in model.trees)
    assert rows.task is not None
    gain = [
        utility_of_acts(new, fit_method(key, rows)(unlabelled(new)).acts(rows.task))
        for key in ("isotonic", "glar(r=0)")
    ]
    assert gain[1] > gain[0] + 0.01


def test_a_model_without_its_features_says_what_it_needs() -> None:
    with pytest.raises(Exception, match="needs the features"):
        fit_method("glar(r=-1)", random_training(200, 0))(Unlabelled(np.array([0.5])))


def test_tasks_share_what_does_not_depend_on_them() -> None:
    rows = random_training(400, 3)
    tasks = [BinaryTask.of_utility(((1.0, 0.0), (0.0, 1.0 / t - 1.0))) for t in (0.05, 0.3, 0.5)]
    chosen = parse("glar(r=0.001)")
    for task, model in zip(tasks, fit_each(chosen, rows, tasks), strict=True):
        alone = fit(chosen, replace(rows, task=task))
        np.testing.assert_array_equal(model(unlabelled(rows)).score, alone(unlabelled(rows)).score)


def test_it_says_how_much_it_corrects() -> None:
    rows = random_training(400, 3)
    assert note_of(fit_method("glar(r=9)", rows)) == (
        "No bin of the score is corrected: the grouping regret does not exceed r; isotonic everywhere."
    )
    assert (
        note_of(fit_method("glar(r=-1)", rows))
        == "15 of 15 bins of the score are corrected by region, isotonic elsewhere."
    )
    assert note_of(fit_method("isotonic", rows)) is None
