"""New models on the features: the last layer fitted again, and models stacked on the score and the features.

The sizes of trees were chosen by log loss, which is nobody's utility, on eleven text data sets (32 features, 1,000 to
12,000 rows, two scores each; one half to fit, the other to evaluate), among about ten settings that take less than a
second at 3,000 rows. Mean log loss on these sets: boosting .418, .473 with scikit-learn's defaults; forests .438, .448
with the defaults; refit .421, .428 in the features' own units; stack .421; probing .420.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from decal_cli.crossfit.learners import N_SEEDS, without_empty
from decal_cli.crossfit.regions import Narrow, narrow, with_score
from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between
from decal_cli.limits import MAX_TREES
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.methods.numerics.checks import is_finite, need
from decal_cli.methods.numerics.features import features_of
from decal_cli.methods.numerics.linear import (
    ColumnScale,
    Planes,
    ScoreColumn,
    float_columns,
    planes_of,
    with_recalibrated,
)
from decal_cli.methods.numerics.trees import Forest, baseline_of
from decal_cli.tables.logistic import expit
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats
from decal_cli.tables.threads import one_thread

_PENALTIES = Between(1e-9, 1e9)
_TREE_SHARE, _MAX_TREE_ROWS, _MIN_FOREST_LEAF = 0.6, 16_384, 5
"""A tree of a forest: share of the rows it is grown on, at most so many rows, and smallest number of rows in a leaf."""
_SPLIT_ROOTS = 2.0
"""Columns that a split of a forest considers, in square roots of their number: 11 of 33, and fast for 1,000."""
_N_ROUNDS, _LEARNING_RATE, _MAX_LEAVES, _MAX_BINS, _SPLIT_SHARE = 120, 0.05, 16, 63, 0.3
"""Boosting: trees, learning rate, leaves of a tree, bins of a feature, share of the columns that a split considers."""
_LEAF_PART, _LEAF_RANGE = 30, (5, 40)
"""A boosted leaf holds one in _LEAF_PART of the rows, within this range."""
Sizes = Literal["decal", "scikit-learn"]
"""Whose sizes of trees, apart from their number."""


@model
@dataclass(frozen=True, eq=False)
class Refitted:
    """Logistic regression on the features: one plane, a coefficient for each feature."""

    planes: Planes

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(expit(self.planes(float_columns(rows))[:, 0]))


@model
@dataclass(frozen=True, eq=False)
class Stacked:
    """Logistic regression on the recalibrated score (the first coefficient) and the features (the others)."""

    score: ScoreColumn
    planes: Planes

    def log_odds(self, rows: Unlabelled) -> Floats:
        """Log-odds of rows, shape (T,)."""
        return self.planes(self.score(rows))[:, 0]

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(expit(self.log_odds(rows)))


@model
@dataclass(frozen=True, eq=False)
class StackedForest:
    """Trees on the score (column 0) and the features; the sum of their values is the score."""

    forest: Forest

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(np.clip(self.forest.total(_columns(rows)), 0.0, 1.0))


@model
@dataclass(frozen=True, eq=False)
class StackedBoosting:
    """Trees on the score (column 0) and the features; the baseline plus the sum of their values is the log-odds."""

    forest: Forest
    baseline: float

    def __post_init__(self) -> None:
        """Refuse log-odds that are not finite. Errors: ValueError."""
        need(is_finite(self.baseline), "log-odds must be finite")

    def log_odds(self, rows: Unlabelled) -> Floats:
        """Log-odds of rows, shape (T,)."""
        return self.baseline + self.forest.total(_columns(rows))

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(expit(self.log_odds(rows)))


def _columns(rows: Unlabelled) -> Narrow:
    """Score and features side by side."""
    return with_score(rows.score, narrow(features_of(rows)))


def _weights(rows: Training) -> Floats | None:
    """Weights of mean 1: boosting does not split where weights add up to next to nothing."""
    return None if rows.weight is None else rows.weight / rows.weight.mean()


def _one_regression(columns: Floats, rows: Training, standard: bool, penalty: float) -> Planes:
    units = ColumnScale.of(columns, rows.weights, standard)
    return planes_of(columns, rows.label, [rows.weights], units, penalty)


@method(
    title="Refitting the last layer",
    kind="post-training",
    needs=("features",),
    source=f"{cite('Perez-Lebel et al. 2025', 'app. C.3 (fine-tuning)')}; scikit-learn's LogisticRegression",
)
def refit(
    rows: Training,
    *,
    penalty: Annotated[float, "weight of the squared coefficients", _PENALTIES] = 1.0,
    units: Annotated[Literal["standard", "own"], "features standardised, or as they are"] = "standard",
) -> Refitted:
    """Logistic regression of the labels on the features alone.

    p' = s(w . z + b), where s is the logistic function and z the features, standardised to mean 0 and standard
    deviation 1; w and b minimise the weighted log loss, summed over rows, plus `penalty` |w|^2 / 2. The score is not
    used: this is the last layer of the model, fitted again on these rows. `units=own` takes the features as they are,
    as in Perez-Lebel et al. 2025; the result then depends on their units.
    """
    return Refitted(_one_regression(float_columns(rows), rows, units == "standard", penalty))


@method(
    title="Stacking by logistic regression",
    kind="post-training",
    needs=("features",),
    source=cite("Wolpert 1992"),
)
def stack(
    rows: Training,
    *,
    penalty: Annotated[float, "weight of the squared coefficients", _PENALTIES] = 1.0,
) -> Stacked:
    """Logistic regression of the labels on the recalibrated score and the features.

    p' = s(a logit(c(p)) + w . z + b), where s is the logistic function, c isotonic regression and z the features; all
    columns are standardised to mean 0 and standard deviation 1, and a and w are penalised as in `refit`. During the
    fit, c of each row comes from the other four of five folds. It learns how much weight the score deserves beside the
    features, for the cost of one regression.
    """
    score, columns = with_recalibrated(rows)
    return Stacked(score, _one_regression(columns, rows, True, penalty))


@method(
    title="Stacking by a random forest",
    kind="post-training",
    needs=("features",),
    source=f"{cite('Perez-Lebel et al. 2025', 'app. C.3')}; scikit-learn's RandomForestClassifier, with fewer rows "
    "per tree and larger leaves",
)
def stack_forest(
    rows: Training,
    *,
    trees: Annotated[int, "number of trees", Between(0, MAX_TREES + 1)] = 60,
    sizes: Annotated[Sizes, "the sizes described here, or scikit-learn's defaults"] = "decal",
) -> StackedForest:
    """The mean probability of trees grown on resampled rows, from the score and the features.

    Each of 60 trees is grown on rows drawn with replacement, 6 for every 10 rows, at most 16,384. A split considers
    twice the square root of the number of columns, and a leaf holds at least 5 rows. It finds effects that are neither
    linear nor monotone in the features. The model file holds the trees. `trees=100,sizes=scikit-learn` is the forest
    of Perez-Lebel et al. 2025, whose trees grow until every leaf has one label.
    """
    from sklearn.ensemble import RandomForestClassifier

    columns = _columns(rows)
    forest = RandomForestClassifier(
        trees,
        **(forest_sizes(*columns.shape) if sizes == "decal" else {}),
        n_jobs=1,
        random_state=rows.seed % N_SEEDS,
    )
    return StackedForest(Forest.of_forest(forest.fit(columns, rows.label > 0.5, _weights(rows))))


def forest_sizes(rows: int, columns: int) -> dict[str, Any]:
    """The sizes of a forest's trees, as scikit-learn names them."""
    return {
        "max_samples": int(np.clip(_TREE_SHARE * rows, 1, _MAX_TREE_ROWS)),
        "max_features": int(min(columns, _SPLIT_ROOTS * columns**0.5)),
        "min_samples_leaf": _MIN_FOREST_LEAF,
    }


@method(
    title="Stacking by boosted trees",
    kind="post-training",
    needs=("features",),
    source=f"{cite('Perez-Lebel et al. 2025', 'app. C.3')}; scikit-learn's HistGradientBoostingClassifier, with small "
    "steps and small trees",
)
def stack_boosting(
    rows: Training,
    *,
    rounds: Annotated[int, "number of trees", Between(0, 10_001)] = _N_ROUNDS,
    sizes: Annotated[Sizes, "the sizes and steps described here, or scikit-learn's defaults"] = "decal",
) -> StackedBoosting:
    """Trees on the score and the features, each grown on what the trees before it leave unexplained.

    logit p' = b + the sum of the trees' values. Each of 120 trees has at most 16 leaves of at least a thirtieth of the
    rows (this minimum lies between 5 and 40 rows), and has learning rate .05; a split considers 3 in 10 columns. No
    rows are held out to stop early: the number of trees is fixed. `rounds=100,sizes=scikit-learn` is the boosting of
    Perez-Lebel et al. 2025, which stops early where there are more than 10,000 rows.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    boosted = HistGradientBoostingClassifier(
        max_iter=rounds,
        **(boosting_sizes(len(rows)) if sizes == "decal" else {}),
        random_state=rows.seed % N_SEEDS,
    )
    with one_thread():
        boosted.fit(without_empty(_columns(rows)), rows.label > 0.5, _weights(rows))
    return StackedBoosting(Forest.of_boosting(boosted), baseline_of(boosted))


def boosting_sizes(rows: int) -> dict[str, Any]:
    """The sizes and steps of boosted trees, as scikit-learn names them."""
    return {
        "learning_rate": _LEARNING_RATE,
        "max_leaf_nodes": _MAX_LEAVES,
        "max_bins": _MAX_BINS,
        "max_features": _SPLIT_SHARE,
        "min_samples_leaf": int(np.clip(rows // _LEAF_PART, *_LEAF_RANGE)),
        "early_stopping": False,
    }
