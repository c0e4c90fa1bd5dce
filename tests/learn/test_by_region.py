"""GLAR: the propositions of its paper hold on the rows it was fitted to, and r decides what is corrected."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from decal_cli.errors import DecalError, Undefined
from decal_cli.learn.by_region import (
    NO_TREE,
    Glar,
    Patch,
    PatchedRows,
    best_patch,
    cell_of,
    halves,
    kept_patches,
    multicalibration,
    thresholds,
)
from decal_cli.learn.method import Training, fit, fit_each
from decal_cli.learn.methods import parse
from decal_cli.learn.models import note_of
from decal_cli.learn.regions import DOUBT, _merged, _shrunken, build_regions, hold_out, narrow
from decal_cli.metrics import Inputs, value_of
from decal_cli.metrics import parse as metric
from decal_cli.tables.rows import Rows, Unlabelled
from decal_cli.tables.table import bin_of, tabulate
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
from tests.helpers.worlds import featured_rows

KEYS = st.sampled_from(["glar(r=-1)", "glar(r=0)", "glar(r=0.01)", "glar", "glar(r=-1,bins=3)"])
EVERY_LEVEL = "glar(r=-1,bins=100)"
"""With no more than eight levels of at least a hundredth of the rows each, every level is a bin; see `made`."""


def regions_of(model: Glar, rows: Training) -> np.ndarray:
    """Which region of the features, within its bin, each row belongs to; 0 where the bin has no tree."""
    number = model.tree[bin_of(rows.score, model.edges)]
    leaf = np.zeros(len(rows))
    for k, tree in enumerate(model.trees):
        leaf[number == k] = 1 + tree.leaf(narrow(rows.features[number == k]))
    return leaf


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
    model = fit_method(key, rows)
    counted = counted_rows(model, rows)
    assert calibration_error(model(unlabelled(counted)).score, counted) < 1e-9


@given(rows=any_training_with_levels, key=KEYS)
def test_it_never_raises_the_grouping_loss_on_its_partition(rows: Training, key: str) -> None:
    """The second half; the score has few levels, so that its level sets are more than single rows."""
    model = fit_method(key, rows)
    counted = counted_rows(model, rows)
    region = regions_of(model, counted)
    after = spread_between(np.round(model(unlabelled(counted)).score, 12), region, counted)
    assert after <= spread_between(counted.score, region, counted) + 1e-12


def test_the_rows_that_grow_a_tree_do_not_count_in_its_leaves() -> None:
    """Perez-Lebel et al. 2025, app. C.3: local averages are estimated on the second part."""
    rows = random_training(300, 0).in_order()
    model = fit_method("glar(r=-1,bins=1)", rows)
    grown, counted = halves(rows, np.arange(300))
    assert len(grown) == len(counted) == 150 and not set(grown) & set(counted)
    leaf = model.trees[0].leaf(narrow(rows.features))
    for k in np.unique(leaf):
        assert model.trees[0].value[k] == pytest.approx(rows.label[counted][leaf[counted] == k].mean())


def test_a_leaf_may_hold_one_row() -> None:
    rows = random_training(2000, 0).in_order()
    alone = rows.features.copy()
    grown, _ = halves(rows, np.arange(2000))
    alone[grown[0]] = 50
    odd = replace(rows, features=alone, label=np.where(np.arange(2000) == grown[0], 1.0, 0.0))
    tree = fit_method("glar(r=-1,bins=1,leaf=1)", odd).trees[0]
    assert 1 in np.bincount(tree.leaf(narrow(alone[grown])))


def every_level_is_a_bin(rows: Training) -> bool:
    return len(fit_method(EVERY_LEVEL, rows).edges) == len(rows.table) - 2


@given(rows=any_training_with_levels, t=st.floats(0.05, 0.95))
def test_utility_never_falls_from_the_score_to_bins_to_regions(rows: Training, t: float) -> None:
    """Perez-Lebel et al. 2025, prop. B.12: acting on p, on the frequency in its level set, in regions of the set."""
    rows = with_task(rows, t)
    lowest, next_lowest = rows.table.score[:2]
    assume(every_level_is_a_bin(rows) and not lowest < t <= next_lowest)
    model = fit_method(EVERY_LEVEL, rows)
    counted = counted_rows(model, rows)
    level = bin_of(counted.score, model.edges)
    positive, weight = (np.bincount(level, values) for values in (counted.weights * counted.label, counted.weights))
    as_it_is = utility_of_acts(counted, counted.score >= t)
    by_bin = utility_of_acts(counted, (positive / np.maximum(weight, 1e-300))[level] >= t)
    by_region = utility_of_acts(counted, model(unlabelled(counted)).score >= t)
    assert as_it_is <= by_bin + 1e-12 and by_bin <= by_region + 1e-12


@given(rows=any_training, key=KEYS, t=st.floats(0.05, 0.95))
def test_moved_thresholds_decide_as_moved_scores(rows: Training, key: str, t: float) -> None:
    """Perez-Lebel et al. 2025, def. B.13, on rows that it was not fitted to."""
    rows, new = with_task(rows, t), unlabelled(random_training(500, 1))
    moved = fit_method(f"{key.removesuffix(')')}{',' if '(' in key else '('}adjust=threshold)", rows)(new)
    corrected = fit_method(key, rows)(new)
    np.testing.assert_array_equal(moved.score, new.score)
    np.testing.assert_array_equal(moved.acts(rows.task), corrected.acts(rows.task))
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
    assert not fit_method(f"glar(r={regret * 1.0001})", rows).trees
    below = fit_method(f"glar(r={regret * 0.9999})", rows)
    assert 0 < len(below.trees) < 15
    assert len(fit_method("glar(r=-1)", rows).trees) == 15


def test_without_grouping_regret_it_is_isotonic_regression() -> None:
    rows, new = random_training(500, 0), unlabelled(random_training(500, 1))
    model = fit_method("glar(r=10)", rows)
    assert (model.tree == NO_TREE).all()
    np.testing.assert_array_equal(model(new).score, fit_method("isotonic", rows)(new).score)


def test_the_default_r_is_that_of_the_paper_at_any_stakes() -> None:
    """Perez-Lebel et al. 2025 set r = .02 where u_delta = 1/t*: .006 in the units of a threshold alone at t* = .3."""
    rows = with_task(random_training(2000, 0), 0.3)
    unit = fit_method("glar", rows)
    assert 0 < len(unit.trees) < 15
    np.testing.assert_array_equal(unit.tree, fit_method("glar(r=0.006)", rows).tree)
    for utility in ([[1, 0], [0, 1 / 0.3 - 1]], [[0, -70], [-30, 0]]):
        np.testing.assert_array_equal(
            unit.tree, fit_method("glar", replace(rows, task=BinaryTask.of_utility(utility))).tree
        )


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
    assert (note_of(fit_method("threshold", rows)) or "").startswith("Act when score >= ")


CELLS = 4


def overlapping_subsets(size: int, subsets: int, seed: int) -> PatchedRows:
    """Overlapping subsets, the first of everyone; they shift the truth away from the score."""
    rng = np.random.default_rng(seed)
    member = rng.random((subsets, size)) < 0.4
    member[0] = True
    score = rng.random(size)
    truth = np.clip(score + 0.2 * member[1:].sum(axis=0) - 0.1 * subsets, 0, 1)
    return PatchedRows(score, (rng.random(size) < truth).astype(float), rng.uniform(0.5, 2, size), member)


any_subsets = st.builds(overlapping_subsets, st.integers(5, 200), st.integers(2, 5), st.integers(0, 10**6))


@given(rows=any_subsets)
def test_every_patch_lowers_the_squared_error_until_all_subsets_are_calibrated_in_all_cells(rows: PatchedRows) -> None:
    for _ in range(2000):
        patch = best_patch(rows, CELLS)
        if patch is None:
            break
        patched = rows.patched(patch, CELLS)
        assert patched.loss < rows.loss
        rows = patched
    assert largest_violation(rows) < 1e-4


def largest_violation(rows: PatchedRows) -> float:
    """Largest | sum w (y - p) | over subsets and cells, per unit of all weight."""
    cell, off = cell_of(rows.score, CELLS), rows.weight * (rows.label - rows.score)
    sums = [off[member & (cell == k)].sum() for member in rows.member for k in range(CELLS)]
    return float(np.abs(sums).max() / rows.weight.sum())


@given(rows=any_subsets, seed=st.integers(0, 100))
def test_patches_are_kept_up_to_the_smallest_loss_of_the_rows_held_out(rows: PatchedRows, seed: int) -> None:
    held = overlapping_subsets(100, len(rows.member), seed)
    kept = kept_patches(rows, held, CELLS, most=30)
    losses = [held.loss]
    for patch in kept:
        held = held.patched(patch, CELLS)
        losses.append(held.loss)
    assert min(losses) == losses[-1]


def test_the_best_patch_by_hand() -> None:
    """Cell 1 of the second subset misses by .5 on two rows: gain .5; everyone's cell 1 misses by .25 on four: .25."""
    member = np.array([[True] * 4, [True, True, False, False]])
    rows = PatchedRows(np.full(4, 0.3), np.array([1.0, 0.6, 0.3, 0.3]), np.ones(4), member)
    assert best_patch(rows, CELLS) == Patch(1, 1, pytest.approx(0.5))


@pytest.mark.parametrize("weight", [1.0, 1e6])
def test_a_subset_that_misses_by_less_than_a_millionth_is_calibrated_in_any_unit_of_weights(weight: float) -> None:
    rows = PatchedRows(np.full(4, 0.3), np.full(4, 0.3), np.full(4, weight), np.ones((1, 4), dtype=bool))
    assert best_patch(rows._replace(label=rows.score + 0.9e-6), CELLS) is None
    assert best_patch(rows._replace(label=rows.score + 1.1e-6), CELLS) == Patch(0, 1, pytest.approx(1.1e-6))


def test_applying_the_model_is_patching_in_turn() -> None:
    rows = random_training(3000, 0)
    model = fit_method("multicalibration", rows)
    assert len(model.shift)
    score, member = model.curve(rows).score, model.members(rows)
    for subset, cell, shift in zip(model.subset, model.cell, model.shift, strict=True):
        for t in range(len(score)):
            if member[subset, t] and min(int(score[t] * model.cells), model.cells - 1) == cell:
                score[t] = min(max(score[t] + shift, 0.0), 1.0)
    np.testing.assert_array_equal(model(unlabelled(rows)).score, score)


def test_the_rows_that_stop_it_teach_it_nothing() -> None:
    """Other labels on the rows held out: the same curve and the same regions."""
    rows = random_training(600, 0).in_order()
    held = rows.generator(3).permutation(len(rows)) % 3 == 0
    other = replace(rows, label=np.where(held, 1 - rows.label, rows.label))
    one, two = multicalibration(rows), multicalibration(other)
    np.testing.assert_array_equal(one.curve.value, two.curve.value)
    np.testing.assert_array_equal(one.tree.value, two.tree.value)
    assert len(one.shift) and not len(two.shift)


def test_groups_are_used_where_given_and_then_needed() -> None:
    rows = random_training(3000, 0)
    model = fit_method("multicalibration", rows)
    with pytest.raises(DecalError, match="--group"):
        model(Unlabelled(rows.score, features=rows.features))
    without = replace(rows, groups={})
    assert fit_method("multicalibration", without)(Unlabelled(rows.score, features=rows.features)).score.shape == (
        3000,
    )


def test_a_group_that_training_did_not_have_belongs_to_no_group() -> None:
    rows = random_training(3000, 0)
    new = Unlabelled(rows.score, groups={"group": np.full(3000, "unheard of")}, features=rows.features)
    assert np.isfinite(fit_method("multicalibration", rows)(new).score).all()


def test_few_rows_are_refused_with_the_number_needed() -> None:
    with pytest.raises(Undefined, match="needs at least 30 rows"):
        fit_method("multicalibration", random_training(29, 0))


def test_leaves_count_each_half_once_and_trees_do_not_see_what_is_counted() -> None:
    score, label, weight, features = featured_rows(600)
    regions = build_regions(Rows(score, label, weight, features=features), seed=0)
    first, second = regions.halves
    bins = len(regions.n)
    for whole, ones, others in ((regions.n, first.n, second.n), (regions.pos, first.pos, second.pos)):
        halves = np.bincount(first.bin, ones, bins) + np.bincount(second.bin, others, bins)
        assert halves == pytest.approx(whole)
    assert regions.n == pytest.approx(tabulate(score, label, weight).bins(15).n)
    for leaves, sketch in zip(regions.halves, regions.sketches, strict=True):
        assert np.bincount(leaves.bin, leaves.pos) == pytest.approx(np.bincount(sketch.bin, sketch.pos))


def test_a_leaf_of_one_row_joins_its_sibling() -> None:
    # 0 -> (1, 2), 2 -> (3, 4); leaves 1, 3, 4
    left, right = np.array([1, -1, 3, -1, -1]), np.array([2, -1, 4, -1, -1])

    def merged(*counts: int) -> list[float]:
        count = np.array([0, counts[0], 0, *counts[1:]])
        sums = np.column_stack((count, count / 2, count)).astype(float)
        return [leaf[0] for leaf in _merged(left, right, sums, count)]

    assert merged(5, 4, 3) == [5, 4, 3]
    assert merged(5, 4, 1) == [5, 5]
    assert merged(5, 0, 3) == [5, 3]
    assert merged(5, 1, 0) == [6]
    assert merged(1, 4, 3) == [8]


def test_weights_that_act_as_one_row_join_too() -> None:
    left, right = np.array([1, -1, -1]), np.array([2, -1, -1])
    sums = np.array([[0, 0, 0], [10.1, 5, 100.01], [4, 2, 4]])
    assert len(_merged(left, right, sums, np.array([0, 2, 4]))) == 1


def test_a_deviation_within_its_noise_is_not_believed() -> None:
    node, off = np.repeat([0, 1, 2], 100), np.repeat([0.3, 0.08, 0.0], 100)
    shift = _shrunken(node, off, np.full(300, 0.25), np.ones(300))
    assert shift == pytest.approx([0.3 * (1 - DOUBT * 0.0025 / 0.09), 0, 0])


def test_held_out_probabilities_know_nothing_of_their_own_labels() -> None:
    """Features that are noise win nothing; labels on their own would."""
    gains = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        score = rng.random(800)
        label = (rng.random(800) < score).astype(int)
        held = hold_out(Rows(score, label, features=rng.normal(size=(800, 5))), seed=seed)
        change = (held.region >= 0.5).astype(float) - (np.sort(score) >= 0.5)
        gains.append(float(np.mean(change * (held.label - 0.5))))
    assert np.mean(gains) < 0.001
