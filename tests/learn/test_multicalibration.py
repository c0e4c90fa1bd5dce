"""Multicalibration: every patch lowers the loss, patching ends calibrated on every subset, rows held out stop it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decal_cli.errors import DecalError, Undefined
from decal_cli.learn.by_region import Patch, PatchedRows, Patches, best_patch, cell_of, kept_patches, multicalibration
from decal_cli.tables.rows import Unlabelled
from tests.helpers.training import fit_method, random_training, training_of, unlabelled
from tests.helpers.worlds import rows_by_level as by_level

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


def test_applying_the_model_is_patching_in_turn() -> None:
    rows = random_training(3000, 0)
    model = fit_method("multicalibration", rows)
    assert isinstance(model, Patches) and len(model.shift)
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
    for each in (one, two):
        assert isinstance(each, Patches)
    np.testing.assert_array_equal(one.curve.value, two.curve.value)
    np.testing.assert_array_equal(one.tree.value, two.tree.value)
    assert len(one.shift) and not len(two.shift)


def test_it_finds_groups_and_regions_that_isotonic_regression_cannot_see() -> None:
    rows, new = random_training(6000, 0), random_training(6000, 1)
    scores = {key: fit_method(key, rows)(unlabelled(new)).score for key in ("isotonic", "multicalibration")}
    brier = {key: np.mean((score - new.label) ** 2) for key, score in scores.items()}
    assert brier["multicalibration"] < brier["isotonic"] - 0.01
    here = new.groups["group"] == "b"
    off = {key: abs(np.mean((score - new.label)[here])) for key, score in scores.items()}
    assert off["multicalibration"] < 0.5 * off["isotonic"]


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
        fit_method("multicalibration", training_of(by_level({0.2: "00100", 0.9: "111"})))
