"""Decision trees as plain arrays: how a model file keeps a fitted forest, and how rows find their leaves in it.

The trees are converted from scikit-learn, applied without it, and give the same predictions. They see features as
32-bit numbers, as scikit-learn's own forests do: fit on `narrow(features)`, so that fitting and applying agree.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from decal_cli.learn.method import model
from decal_cli.learn.regions import Narrow
from decal_cli.limits import MAX_STEPS, MAX_TREE_DEPTH
from decal_cli.tables.table import Floats, Ints

Whole = NDArray[np.integer[Any]]
_MAX_NARROW = float(np.finfo(np.float32).max)
MAX_PAIRS = 2**18
"""At most so many pairs of row and tree descend at once: a few megabytes of indices."""


@model
class Tree:
    """Nodes of one tree, root first; arrays of shape (nodes,).

    left, right: the child for features up to the threshold, and beyond it; both -1 at a leaf. A child always comes
    after its parent, so that every descent ends. feature, threshold: the test of an inner node; 0 at a leaf.
    missing_left: whether rows that lack the feature go left. value: the prediction of a node. columns: number of
    features that the tree was grown on.
    """

    columns: int
    left: Whole
    right: Whole
    feature: Whole
    threshold: Floats
    missing_left: NDArray[np.bool_]
    value: Floats

    def _check(self) -> None:
        arrays = (self.left, self.right, self.feature, self.threshold, self.value, self.missing_left)
        if any(array.ndim != 1 or len(array) != len(self.left) for array in arrays) or not len(self.left):
            raise ValueError("a tree needs one entry for each node in every array")
        if any(not np.issubdtype(array.dtype, np.integer) for array in arrays[:3]):
            raise ValueError("children and features of a tree must be whole numbers")
        if any(not np.issubdtype(array.dtype, np.floating) or not np.isfinite(array).all() for array in arrays[3:5]):
            raise ValueError("thresholds and values of a tree must be finite numbers")
        if self.missing_left.dtype != np.bool_:
            raise ValueError("a tree sends rows that lack a feature left or right")
        if np.any(self.feature < 0) or np.any(self.feature >= max(self.columns, 1)):
            raise ValueError(f"a tree asks for a feature outside of its {self.columns} columns")
        self._check_children()

    def _check_children(self) -> None:
        here = np.arange(len(self.left))
        leaf = self.left == -1
        inner = ~leaf
        for child in (self.left, self.right):
            if np.any((child == -1) != leaf) or np.any(child[inner] <= here[inner]) or np.any(child >= len(here)):
                raise ValueError("a child of a tree must come after its parent and inside of the tree")

    def depths(self, starts: Whole) -> Ints:
        """Steps from each root to its farthest leaf, shape (starts,). Errors: ValueError, for no trees of these roots.

        Level by level; no node has two parents, so that every node is met once.
        """
        inner = self.left >= 0
        parents = np.bincount(np.concatenate((self.left[inner], self.right[inner])), minlength=len(self.left))
        parents += np.bincount(starts, minlength=len(self.left))
        if parents.max() > 1:
            raise ValueError("a node of a tree has one parent, and a root none")
        depths = np.zeros(len(starts), dtype=np.int64)
        node, tree = starts.astype(np.int64), np.arange(len(starts))
        for depth in range(1, MAX_TREE_DEPTH + 2):
            grown = self.left[node] >= 0
            if not grown.any():
                return depths
            node, tree = node[grown], tree[grown]
            depths[tree] = depth
            node, tree = np.concatenate((self.left[node], self.right[node])), np.concatenate((tree, tree))
        raise ValueError(f"a tree is deeper than {MAX_TREE_DEPTH:,}")

    def leaf(self, features: Narrow) -> Ints:
        """Index of each row's leaf, shape (T,). features: narrow, shape (T, columns)."""
        return self.descend(features, np.zeros(1, dtype=np.int64))[:, 0]

    def descend(self, features: Narrow, starts: Whole) -> Ints:
        """Index of the leaf that each row reaches from each start, shape (T, starts)."""
        if features.shape[1] != self.columns:
            raise ValueError(f"a tree of {self.columns} columns meets rows of {features.shape[1]}")
        at = np.empty((len(features), len(starts)), dtype=np.int64)
        step = max(1, MAX_PAIRS // len(starts))
        gaps = bool(np.isnan(features).any())
        for first in range(0, len(features), step):
            at[first : first + step] = self._descend(features[first : first + step], starts, gaps)
        return at

    def _descend(self, features: Narrow, starts: Whole, gaps: bool) -> Ints:
        at = np.tile(starts.astype(np.int64), len(features))
        moving = np.flatnonzero(self.left[at] >= 0)
        while len(moving):
            node = at[moving]
            # 32-bit features against 64-bit thresholds, as scikit-learn compares them.
            value = features[moving // len(starts), self.feature[node]]
            beyond = value > self.threshold[node]
            if gaps:
                beyond |= np.isnan(value) & ~self.missing_left[node]
            node = np.where(beyond, self.right[node], self.left[node])
            at[moving] = node
            moving = moving[self.left[node] >= 0]
        return at.reshape(len(features), len(starts))

    @classmethod
    def of_sklearn(cls, fitted: Any) -> Self:
        """The tree of a fitted DecisionTreeRegressor, or of a DecisionTreeClassifier of labels 0 and 1.

        The value is the prediction, of a classifier the probability of 1. Node numbers are scikit-learn's own.
        """
        nodes = fitted.tree_
        inner = nodes.children_left >= 0
        return cls(
            int(nodes.n_features),
            nodes.children_left.astype(np.int32),
            nodes.children_right.astype(np.int32),
            np.where(inner, nodes.feature, 0).astype(np.int32),
            _thresholds(nodes.threshold, inner),
            inner & (nodes.missing_go_to_left != 0),
            nodes.value[:, 0, -1].astype(np.float64),
        )


@model
class Forest:
    """A sum of trees. nodes: of all trees, one tree after the other; starts: the root of each tree, (trees,)."""

    nodes: Tree
    starts: Whole

    def _check(self) -> None:
        whole = self.starts.ndim == 1 and len(self.starts) and np.issubdtype(self.starts.dtype, np.integer)
        if not whole or self.starts.min() < 0 or self.starts.max() >= len(self.nodes.left):
            raise ValueError("a forest needs roots that are among its nodes")
        steps = int(self.nodes.depths(self.starts).sum())
        if steps > MAX_STEPS:
            raise ValueError(
                f"a forest takes {steps:,} steps for a row, more than {MAX_STEPS:,}: fewer trees are enough"
            )

    def total(self, features: Narrow) -> Floats:
        """Sum of the trees' values, shape (T,). features: narrow, shape (T, columns)."""
        step = max(1, MAX_PAIRS // len(self.starts))
        blocks = (features[first : first + step] for first in range(0, max(len(features), 1), step))
        return np.concatenate([self.nodes.value[self.nodes.descend(rows, self.starts)].sum(axis=1) for rows in blocks])

    def __len__(self) -> int:
        """Number of trees."""
        return len(self.starts)

    @classmethod
    def of_trees(cls, trees: list[Tree], scale: float = 1.0) -> Self:
        """The forest of these trees, with their values multiplied by the scale."""
        starts = np.cumsum([0, *(len(tree.left) for tree in trees)]).astype(np.int32)[:-1]
        left, right = (
            np.concatenate([np.where(child >= 0, child + at, -1) for child, at in zip(children, starts, strict=True)])
            for children in ([tree.left for tree in trees], [tree.right for tree in trees])
        )
        feature = np.concatenate([tree.feature for tree in trees])
        threshold = np.concatenate([tree.threshold for tree in trees])
        missing_left = np.concatenate([tree.missing_left for tree in trees])
        value = np.concatenate([tree.value for tree in trees]) * scale
        return cls(Tree(trees[0].columns, left, right, feature, threshold, missing_left, value), starts)

    @classmethod
    def of_forest(cls, fitted: Any) -> Self:
        """A fitted RandomForestClassifier of labels 0 and 1: `total` is its probability of 1."""
        trees = [Tree.of_sklearn(each) for each in fitted.estimators_]
        return cls.of_trees(trees, 1 / len(trees))

    @classmethod
    def of_boosting(cls, fitted: Any) -> Self:
        """A fitted HistGradientBoostingClassifier of labels 0 and 1, grown on narrow features without categories.

        `total` plus `baseline_of(fitted)` is its log-odds.
        """
        (forest,) = cls.of_boosted_classes(fitted)
        return forest

    @classmethod
    def of_boosted_classes(cls, fitted: Any) -> tuple[Self, ...]:
        """The same of several classes, a forest for each; of two classes one, of the second."""
        each = zip(*fitted._predictors, strict=True)
        return tuple(cls.of_trees([_boosted(tree.nodes, fitted.n_features_in_) for tree in trees]) for trees in each)


def baseline_of(fitted: Any) -> float:
    """The log-odds that a fitted HistGradientBoostingClassifier starts from."""
    return float(np.ravel(fitted._baseline_prediction)[0])


def _boosted(nodes: NDArray[Any], columns: int) -> Tree:
    """One boosted tree; its children are numbered after their parents, which Tree checks."""
    inner = nodes["is_leaf"] == 0
    left, right = (np.where(inner, nodes[side].astype(np.int64), -1).astype(np.int32) for side in ("left", "right"))
    feature = np.where(inner, nodes["feature_idx"], 0).astype(np.int32)
    threshold = _thresholds(nodes["num_threshold"], inner)
    missing_left = inner & (nodes["missing_go_to_left"] != 0)
    return Tree(columns, left, right, feature, threshold, missing_left, nodes["value"].astype(np.float64))


def _thresholds(threshold: Floats, inner: NDArray[np.bool_]) -> Floats:
    """Thresholds of inner nodes; infinity, which parts missing values from all others, as the largest 32-bit number."""
    return np.where(inner, np.clip(threshold, -_MAX_NARROW, _MAX_NARROW), 0.0)
