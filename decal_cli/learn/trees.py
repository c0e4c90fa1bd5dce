"""Decision trees as plain arrays: how a model file keeps a fitted forest, and how rows find their leaves in it.

The trees are converted from scikit-learn, applied without it, and give the same predictions. They see features as
32-bit numbers, as scikit-learn's own forests do: fit on `narrow(features)`, so that fitting and applying agree.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from decal_cli.learn.models import are_places, model, need
from decal_cli.learn.regions import NO_CHILD, Narrow
from decal_cli.limits import MAX_STEPS, MAX_TREE_DEPTH
from decal_cli.tables.table import Floats, Ints, Mask

Whole = NDArray[np.integer[Any]]
_MAX_NARROW = float(np.finfo(np.float32).max)
_ARRAYS = ("left", "right", "feature", "threshold", "missing_left", "value")
MAX_PAIRS = 2**18
"""At most so many pairs of row and tree descend at once: a few megabytes of indices."""


@model(left="n", right="n", feature="n", threshold="n finite", missing_left="n", value="n finite")
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
    missing_left: Mask
    value: Floats

    def _check(self) -> None:
        size = len(self.left)
        need(size > 0, "a tree needs a node")
        need(self.missing_left.dtype == np.bool_, "a tree sends rows that lack a feature left or right")
        within = are_places(self.feature, 0, max(self.columns, 1))
        need(within, f"a tree asks for a feature outside of its {self.columns} columns")
        leaf, here = self.left == NO_CHILD, np.arange(size)
        for child in (self.left, self.right):
            after = are_places(child, NO_CHILD, size) and bool(np.where(leaf, child == NO_CHILD, child > here).all())
            need(after, "a child of a tree must come after its parent and inside of the tree")

    def depths(self, starts: Whole) -> Ints:
        """Steps from each root to its farthest leaf, shape (starts,). Errors: ValueError, for no trees of these roots.

        Level by level; no node has two parents, so that every node is met once.
        """
        inner = self.left != NO_CHILD
        parents = np.bincount(np.concatenate((self.left[inner], self.right[inner])), minlength=len(self.left))
        parents += np.bincount(starts, minlength=len(self.left))
        need(parents.max() <= 1, "a node of a tree has one parent, and a root none")
        depths = np.zeros(len(starts), dtype=np.int64)
        node, tree = starts.astype(np.int64), np.arange(len(starts))
        for depth in range(1, MAX_TREE_DEPTH + 2):
            grown = self.left[node] != NO_CHILD
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
        width = features.shape[1]
        need(width == self.columns, f"a tree of {self.columns} columns meets rows of {width}")
        at = np.empty((len(features), len(starts)), dtype=np.int64)
        step = max(1, MAX_PAIRS // len(starts))
        gaps = bool(np.isnan(features).any())
        for first in range(0, len(features), step):
            at[first : first + step] = self._descend(features[first : first + step], starts, gaps)
        return at

    def _descend(self, features: Narrow, starts: Whole, gaps: bool) -> Ints:
        at = np.tile(starts.astype(np.int64), len(features))
        moving = np.flatnonzero(self.left[at] != NO_CHILD)
        while len(moving):
            node = at[moving]
            # 32-bit features against 64-bit thresholds, as scikit-learn compares them.
            value = features[moving // len(starts), self.feature[node]]
            beyond = value > self.threshold[node]
            if gaps:
                beyond |= np.isnan(value) & ~self.missing_left[node]
            node = np.where(beyond, self.right[node], self.left[node])
            at[moving] = node
            moving = moving[self.left[node] != NO_CHILD]
        return at.reshape(len(features), len(starts))

    @classmethod
    def of_nodes(
        cls, columns: int, inner: Mask, children: Any, feature: Any, threshold: Any, gaps: Any, value: Any
    ) -> Self:
        """Nodes as scikit-learn has them, of which some are inner; gaps: whether missing values go left, 0 or 1.

        A threshold of infinity, which parts missing values from all others, is the largest 32-bit number.
        """
        left, right = (np.where(inner, child.astype(np.int64), NO_CHILD).astype(np.int32) for child in children)
        threshold = np.where(inner, np.clip(threshold, -_MAX_NARROW, _MAX_NARROW), 0.0)
        feature = np.where(inner, feature, 0).astype(np.int32)
        return cls(columns, left, right, feature, threshold, inner & (gaps != 0), value.astype(np.float64))

    @classmethod
    def of_sklearn(cls, fitted: Any) -> Self:
        """The tree of a fitted DecisionTreeRegressor, or of a DecisionTreeClassifier of labels 0 and 1.

        The value is the prediction, of a classifier the probability of 1. Node numbers are scikit-learn's own.
        """
        t = fitted.tree_
        inner, children, value = t.children_left != NO_CHILD, (t.children_left, t.children_right), t.value[:, 0, -1]
        return cls.of_nodes(int(t.n_features), inner, children, t.feature, t.threshold, t.missing_go_to_left, value)


@model()
class Forest:
    """A sum of trees. nodes: of all trees, one tree after the other; starts: the root of each tree, (trees,)."""

    nodes: Tree
    starts: Whole

    def _check(self) -> None:
        among = len(self.starts) > 0 and are_places(self.starts, 0, len(self.nodes.left))
        need(among, "a forest needs roots that are among its nodes")
        steps = int(self.nodes.depths(self.starts).sum())
        too_many = f"a forest takes {steps:,} steps for a row, more than {MAX_STEPS:,}: fewer trees are enough"
        need(steps <= MAX_STEPS, too_many)

    def total(self, features: Narrow, values: Floats | None = None) -> Floats:
        """Sum of the trees' values, shape (T,), or of others of each node, shape (nodes, K) to (T, K).

        features: narrow, shape (T, columns).
        """
        values = self.nodes.value if values is None else values
        step = max(1, MAX_PAIRS // len(self.starts))
        blocks = (features[first : first + step] for first in range(0, max(len(features), 1), step))
        return np.concatenate([values[self.nodes.descend(rows, self.starts)].sum(axis=1) for rows in blocks])

    @classmethod
    def of_trees(cls, trees: list[Tree], scale: float = 1.0) -> Self:
        """The forest of these trees, with their values multiplied by the scale."""
        sizes = [len(tree.left) for tree in trees]
        starts = (np.cumsum(sizes) - sizes).astype(np.int32)
        each = {name: np.concatenate([getattr(tree, name) for tree in trees]) for name in _ARRAYS}
        for side in ("left", "right"):
            each[side] = np.where(each[side] != NO_CHILD, each[side] + np.repeat(starts, sizes), NO_CHILD)
        return cls(Tree(trees[0].columns, **each | {"value": each["value"] * scale}), starts)

    @classmethod
    def of_forest(cls, fitted: Any) -> Self:
        """A fitted RandomForestClassifier of labels 0 and 1: `total` is its probability of 1."""
        trees = [Tree.of_sklearn(each) for each in fitted.estimators_]
        return cls.of_trees(trees, 1 / len(trees))

    @classmethod
    def of_boosting(cls, fitted: Any) -> tuple[Self, ...]:
        """A fitted HistGradientBoostingClassifier, grown on narrow features, no categories: a forest for each class.

        Of two classes there is one, of the second: `total` plus `baseline_of(fitted)` is its log-odds.
        """
        each = zip(*fitted._predictors, strict=True)
        return tuple(cls.of_trees([_boosted(tree.nodes, fitted.n_features_in_) for tree in trees]) for trees in each)


def baseline_of(fitted: Any) -> float:
    """The log-odds that a fitted HistGradientBoostingClassifier starts from."""
    return float(np.ravel(fitted._baseline_prediction)[0])


def _boosted(nodes: NDArray[Any], columns: int) -> Tree:
    """One boosted tree; its children are numbered after their parents, which Tree checks."""
    names = ("feature_idx", "num_threshold", "missing_go_to_left", "value")
    children = nodes["left"], nodes["right"]
    return Tree.of_nodes(columns, nodes["is_leaf"] == 0, children, *(nodes[name] for name in names))
