"""Trees on the probabilities of several classes and the features.

Classes stand in an order of their own, by rows and mean probability, so that their order in the file changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.crossfit.learners import N_SEEDS, without_empty
from decal_cli.crossfit.regions import Narrow, narrow
from decal_cli.crossfit.scaling import softmax
from decal_cli.methods.declare import Applied, Training, for_classes, model
from decal_cli.methods.families.retrain import boosting_sizes, forest_sizes
from decal_cli.methods.families.scalings import of_size
from decal_cli.methods.numerics.checks import are_places, are_probabilities, is_finite, need
from decal_cli.methods.numerics.features import features_of
from decal_cli.methods.numerics.trees import Forest
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import BLOCK, Floats, Ints
from decal_cli.tables.threads import one_thread

MAX_CLASS_TREES = 2400
"""Of boosting: more classes get fewer rounds."""
UNSEEN = -30.0
"""The logit of a class that no training row has."""


def _columns(rows: Unlabelled, order: Ints) -> Narrow:
    """Probabilities and features side by side as trees see them, shape (T, K + d)."""
    score = of_size(rows, len(order))[:, order].astype(np.float32)
    return np.column_stack((score, narrow(features_of(rows))))


def _class_order(rows: Training) -> Ints:
    """The classes by their rows and mean probability."""
    weight = rows.weights
    return np.lexsort((weight @ rows.score, np.bincount(rows.label, weight, len(rows.classes))))


def _weights(rows: Training) -> Floats | None:
    return None if rows.weight is None else rows.weight / rows.weight.mean()


def _need_order(order: Ints) -> None:
    need(np.array_equal(np.sort(order), np.arange(len(order))), "trees need an order of the classes")


@model
@dataclass(frozen=True, eq=False)
class ClassForest:
    """The mean of trees' probabilities. values: (nodes, K), those of each leaf; order: (K,), of the classes."""

    forest: Forest
    values: Floats
    order: Ints

    def __post_init__(self) -> None:
        """Refuse values that do not belong to the trees. Errors: ValueError."""
        _need_order(self.order)
        need(self.values.shape == (len(self.forest.nodes.left), len(self.order)), "every node needs K probabilities")
        need(are_probabilities(self.values), "probabilities lie in [0, 1]")

    def __call__(self, rows: Unlabelled) -> Applied:
        columns, score = _columns(rows, self.order), np.empty(rows.score.shape)
        for start in range(0, len(columns), BLOCK):
            part = slice(start, start + BLOCK)
            total = np.zeros((len(columns[part]), len(self.order)))
            for leaf in self.forest.nodes.descend(columns[part], self.forest.starts).T:
                total += self.values[leaf]
            score[part, self.order] = total / total.sum(axis=1, keepdims=True)
        return Applied(score)


@model
@dataclass(frozen=True, eq=False)
class ClassBoosting:
    """Logits that are sums of trees. forests: of the classes in `grown`, (g,); baseline: (K,); order: (K,)."""

    forests: tuple[Forest, ...]
    grown: Ints
    baseline: Floats
    order: Ints

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together. Errors: ValueError."""
        _need_order(self.order)
        need(len(self.grown) == len(self.forests) and are_places(self.grown, 0, len(self.order)), "trees need a class")
        need(self.baseline.shape == self.order.shape and is_finite(self.baseline), "every class needs a finite logit")

    def __call__(self, rows: Unlabelled) -> Applied:
        columns, score = _columns(rows, self.order), np.empty(rows.score.shape)
        logits = np.tile(self.baseline, (len(columns), 1))
        for number, forest in zip(self.grown, self.forests, strict=True):
            logits[:, number] += forest.total(columns)
        score[:, self.order] = softmax(logits)
        return Applied(score)


@for_classes("stack-forest")
def stack_forest(rows: Training, *, trees: int = 60, sizes: str = "decal") -> ClassForest:
    """The mean probabilities of trees grown on resampled rows, from the probabilities and the features."""
    from sklearn.ensemble import RandomForestClassifier

    order = _class_order(rows)
    columns, label = _columns(rows, order), np.argsort(order)[rows.label]
    forest = RandomForestClassifier(
        trees,
        **(forest_sizes(*columns.shape) if sizes == "decal" else {}),
        n_jobs=1,
        random_state=rows.seed % N_SEEDS,
    ).fit(columns, label, _weights(rows))
    values = np.zeros((sum(each.tree_.node_count for each in forest.estimators_), len(order)))
    values[:, forest.classes_] = np.vstack([each.tree_.value[:, 0, :] for each in forest.estimators_])
    return ClassForest(Forest.of_forest(forest), values, order)


@for_classes("stack-boosting")
def stack_boosting(rows: Training, *, rounds: int = 120, sizes: str = "decal") -> ClassBoosting:
    """Trees on the probabilities and the features, a tree for each class in each round; at most 2,400 trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    order = _class_order(rows)
    columns, label = _columns(rows, order), np.argsort(order)[rows.label]
    boosted = HistGradientBoostingClassifier(
        max_iter=max(1, min(rounds, MAX_CLASS_TREES // len(order))),
        **(boosting_sizes(len(rows)) if sizes == "decal" else {}),
        random_state=rows.seed % N_SEEDS,
    )
    with one_thread():
        boosted.fit(without_empty(columns), label, _weights(rows))
    # Of two classes seen there are trees for the second alone.
    grown = boosted.classes_ if len(boosted.classes_) > 2 else boosted.classes_[1:]
    baseline = np.full(len(order), UNSEEN)
    baseline[boosted.classes_] = 0.0
    baseline[grown] = np.ravel(boosted._baseline_prediction)
    return ClassBoosting(Forest.of_boosted_classes(boosted), grown.astype(np.int64), baseline, order)
