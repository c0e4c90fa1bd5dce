"""Trees as arrays predict what scikit-learn predicts, and refuse what is no tree."""

import dataclasses
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from decal_cli.learn.regions import narrow, with_score
from decal_cli.learn.trees import MAX_PAIRS, Forest, Tree, baseline_of


def tree_rows(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, some of them with ties, labels that depend on two of them, weights."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, columns))
    features[:, ::3] = np.round(features[:, ::3], 1)
    label = (rng.random(rows) < 1 / (1 + np.exp(-features[:, 0] - features[:, -1]))).astype(float)
    label[:2] = 0, 1
    return features, label, rng.uniform(0.5, 2, rows)


any_tree_rows = {"rows": st.integers(10, 400), "columns": st.integers(1, 6), "seed": st.integers(0, 10**6)}


@settings(max_examples=15)
@given(**any_tree_rows)
def test_a_single_tree_gives_scikit_learns_leaves_and_values(rows: int, columns: int, seed: int) -> None:
    features, label, weight = tree_rows(rows, columns, seed)
    for kind in (DecisionTreeRegressor, DecisionTreeClassifier):
        for leaves in (None, 5):
            fitted = kind(max_leaf_nodes=leaves, random_state=0).fit(features, label, weight)
            tree = Tree.of_sklearn(fitted)
            new = narrow(np.vstack((features, tree_rows(50, columns, seed + 1)[0])))
            np.testing.assert_array_equal(tree.leaf(new), fitted.apply(new))
            expected = fitted.predict_proba(new)[:, 1] if kind is DecisionTreeClassifier else fitted.predict(new)
            np.testing.assert_allclose(tree.value[tree.leaf(new)], expected, atol=1e-12)


@settings(max_examples=10)
@given(**any_tree_rows)
def test_a_forest_gives_scikit_learns_probabilities(rows: int, columns: int, seed: int) -> None:
    features, label, weight = tree_rows(rows, columns, seed)
    fitted = RandomForestClassifier(7, random_state=seed).fit(features, label, weight)
    new = np.vstack((features, tree_rows(50, columns, seed + 1)[0]))
    np.testing.assert_allclose(Forest.of_forest(fitted).total(narrow(new)), fitted.predict_proba(new)[:, 1], atol=1e-12)


@settings(max_examples=10)
@given(**any_tree_rows)
def test_boosting_gives_scikit_learns_log_odds(rows: int, columns: int, seed: int) -> None:
    features, label, weight = tree_rows(rows, columns, seed)
    seen = narrow(features)
    fitted = HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=3, early_stopping=False).fit(
        seen, label, weight
    )
    new = narrow(np.vstack((features, tree_rows(50, columns, seed + 1)[0])))
    forest = Forest.of_boosting(fitted)
    np.testing.assert_allclose(forest.total(new) + baseline_of(fitted), fitted.decision_function(new), atol=1e-12)


def test_more_values_than_bins_and_thresholds_that_values_lie_on_are_split_alike() -> None:
    rng = np.random.default_rng(0)
    features = narrow(rng.normal(size=(3000, 2)) * np.array([1e-6, 1e6]))
    label = (features[:, 0] > 0) ^ (features[:, 1] > 0)
    boosted = HistGradientBoostingClassifier(max_iter=20, early_stopping=False).fit(features, label)
    forest = Forest.of_boosting(boosted)
    edges = np.nextafter(forest.nodes.threshold.astype(np.float32), np.float32(np.inf))
    column = forest.nodes.feature
    for at in (forest.nodes.threshold, edges, -edges):
        rows = features[: len(at)].copy()
        rows[np.arange(len(rows)), column[: len(rows)]] = at[: len(rows)]
        np.testing.assert_allclose(forest.total(rows) + baseline_of(boosted), boosted.decision_function(rows))


def test_features_of_any_size_descend() -> None:
    features = np.array([[-np.inf], [-1e300], [-1.0], [1.0], [1e300], [np.inf]])
    fitted = DecisionTreeClassifier().fit(narrow(features), [0, 1, 0, 1, 0, 1])
    leaf = Tree.of_sklearn(fitted).leaf(narrow(features))
    assert leaf[0] == leaf[1] and leaf[4] == leaf[5], "what is beyond the largest counts as the largest"
    assert len(set(leaf)) == 4


def test_the_score_stands_before_the_features() -> None:
    assert with_score(np.array([0.25]), narrow(np.array([[3.0, 1e200]]))).tolist() == [[0.25, 3.0, np.float32(1e30)]]


def test_no_rows_make_no_values() -> None:
    features, label, _ = tree_rows(30, 2, 0)
    forest = Forest.of_forest(RandomForestClassifier(3).fit(features, label))
    assert len(forest) == 3
    assert forest.total(narrow(features[:0])).shape == (0,)
    assert forest.nodes.leaf(narrow(features[:0])).shape == (0,)


def test_blocks_of_rows_make_no_difference_and_bound_the_memory() -> None:
    features, label, _ = tree_rows(4 * MAX_PAIRS // 50 + 7, 2, 0)
    forest = Forest.of_forest(RandomForestClassifier(50, max_depth=3, random_state=0).fit(features[:500], label[:500]))
    seen = narrow(features)
    tracemalloc.start()
    total = forest.total(seen)
    assert tracemalloc.get_traced_memory()[1] < 2**18 * 8 * 16
    tracemalloc.stop()
    some = [0, 5, MAX_PAIRS // 50 - 1, MAX_PAIRS // 50, len(seen) - 1]
    np.testing.assert_array_equal(total[some], np.concatenate([forest.total(seen[[row]]) for row in some]))


GOOD = Tree(
    2,
    np.array([1, -1, -1]),
    np.array([2, -1, -1]),
    np.array([1, 0, 0]),
    np.array([0.5, 0, 0]),
    np.array([True, False, False]),
    np.array([0.5, 0.1, 0.9]),
)


@pytest.mark.parametrize(
    "change",
    [
        {"left": np.array([0, -1, -1])},
        {"left": np.array([1, 0, -1])},
        {"right": np.array([3, -1, -1])},
        {"right": np.array([-1, -1, -1])},
        {"left": np.array([-7, -1, -1])},
        {"left": np.array([1.0, -1, -1])},
        {"left": np.array([1, -1])},
        {"feature": np.array([2, 0, 0])},
        {"feature": np.array([-1, 0, 0])},
        {"threshold": np.array([np.nan, 0, 0])},
        {"value": np.array([0.5, np.inf, 0])},
        {"value": np.array([[0.5, 0.1, 0.9]])},
        {"missing_left": np.array([True, False])},
        {"missing_left": np.array([1, 0, 0])},
        {name: np.array([], dtype=type_) for name, type_ in zip(
            ("left", "right", "feature", "threshold", "missing_left", "value"), (int, int, int, float, bool, float),
            strict=True,
        )},
    ],
)  # fmt: skip
def test_what_is_no_tree_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="tree"):
        dataclasses.replace(GOOD, **change)


@pytest.mark.parametrize("starts", [np.array([3]), np.array([-1]), np.array([], dtype=int), np.array([0.0])])
def test_a_forest_without_its_roots_is_refused(starts: np.ndarray) -> None:
    with pytest.raises(ValueError, match="roots"):
        Forest(GOOD, starts)


def test_rows_of_other_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="2 columns"):
        GOOD.leaf(np.zeros((4, 3), dtype=np.float32))
