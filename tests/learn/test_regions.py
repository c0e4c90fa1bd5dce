"""Regions: the same however rows come, honest, and whole."""

from dataclasses import fields

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from decal_cli.learn.regions import DOUBT, IsotonicFit, Regions, _merged, _shrunken, build_regions, hold_out
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import tabulate
from tests.helpers.worlds import featured_rows


def flat(regions: Regions) -> list[np.ndarray]:
    """Every array in regions."""
    arrays: list[np.ndarray] = []
    for field in fields(regions):
        value = getattr(regions, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            arrays += list(part) if isinstance(part, tuple) else [part]
    return arrays


def alike(one: Regions, other: Regions) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(flat(one), flat(other), strict=True))


@pytest.mark.parametrize("weighted", [False, True])
def test_row_order_changes_not_one_bit(weighted: bool) -> None:
    score, label, weight, features = featured_rows(600)
    given = build_regions(Rows(score, label, weight if weighted else None, features=features), seed=4)
    order = np.random.default_rng(1).permutation(len(score))
    turned = weight[order] if weighted else None
    shuffled = build_regions(Rows(score[order], label[order], turned, features=features[order]), seed=4)
    assert alike(given, shuffled)
    assert not alike(given, build_regions(Rows(score, label, weight if weighted else None, features=features), seed=5))


def test_types_and_signs_of_zero_change_not_one_bit() -> None:
    score, label, _, features = featured_rows(600)
    score[:5], features[:5, 2] = 0.0, 0.0
    features = features.astype(np.float32).astype(np.float64)
    signed, minus = features.copy(), score.copy()
    signed[:5, 2], minus[:5] = -0.0, -0.0
    given = build_regions(Rows(score, label, features=features), seed=0)
    assert alike(given, build_regions(Rows(minus, label.astype(bool), features=signed.astype(np.float32)), seed=0))


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


def test_the_isotonic_fit_is_scikit_learns() -> None:
    score, label, weight, _ = featured_rows(800)
    new = np.linspace(-0.1, 1.1, 500)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(score, label, sample_weight=weight).predict(new)
    assert IsotonicFit(tabulate(score, label, weight))(new) == pytest.approx(theirs, abs=1e-12)


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
        assert held is not None
        change = (held.region >= 0.5).astype(float) - (np.sort(score) >= 0.5)
        gains.append(float(np.mean(change * (held.label - 0.5))))
    assert np.mean(gains) < 0.001


def test_held_out_regions_find_what_the_score_does_not_know() -> None:
    score, label, _, features = featured_rows(3000)
    held = hold_out(Rows(score, label, features=features), seed=0)
    assert held is not None
    calibrated = IsotonicFit(tabulate(score, label))(score)
    assert np.mean((held.region - held.label) ** 2) < np.mean((calibrated - label) ** 2) - 0.02
    assert held.region.min() >= 0 and held.region.max() <= 1


EDGES = {
    "one row": (np.array([0.3]), np.array([1]), np.array([[1.0, 2.0]])),
    "two rows": (np.array([0.3, 0.4]), np.array([1, 0]), np.array([[1.0], [2.0]])),
    "nine rows": (np.linspace(0, 1, 9), np.arange(9) % 2, np.arange(9.0)[:, None]),
    "fewer rows than bins, held out": (np.linspace(0, 1, 12), np.arange(12) % 2, np.arange(12.0)[:, None]),
    "one class": (np.linspace(0, 1, 50), np.ones(50, dtype=int), np.arange(50.0)[:, None]),
    "constant features": (np.linspace(0, 1, 50), np.arange(50) % 2, np.ones((50, 3))),
    "all scores tied": (np.full(50, 0.4), np.arange(50) % 2, np.arange(50.0)[:, None]),
    "missing and infinite": (
        np.linspace(0, 1, 60),
        np.arange(60) % 2,
        np.column_stack(
            (np.where(np.arange(60) % 3, np.arange(60.0), np.nan), np.where(np.arange(60) % 2, np.inf, 1e300))
        ),
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_make_regions(name: str) -> None:
    score, label, features = EDGES[name]
    for weight in (None, np.linspace(1, 3, len(score))):
        regions = build_regions(Rows(score, label, weight, features=features), seed=0)
        assert (hold_out(Rows(score, label, weight, features=features), seed=0) is None) == (len(score) < 10)
        assert regions.n.sum() == pytest.approx(len(score) if weight is None else weight.sum())
