"""New models on the features: the last layer fitted again, and models stacked on the score and the features.

Sizes of trees were chosen on eleven sets of texts (32 features, 1,000 to 12,000 rows, half of each to fit and half to
judge, two scores each), among about ten settings that take less than a second at 3,000 rows, by log loss, which
belongs to no one's utility. Mean log loss there: boosting .418, .473 with scikit-learn's defaults; forests .438, .448
with the defaults; refit .421, .428 in the features' own units; stack .421; probing .420.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.methods.declare import NEEDS, Applied, Training, method, model
from decal_cli.methods.numerics.linear import (
    Planes,
    ScoreColumn,
    Units,
    float_columns,
    one_thread,
    planes_of,
    with_recalibrated,
)
from decal_cli.methods.numerics.trees import Forest, Narrow, baseline_of, with_score
from decal_cli.spec import Between
from decal_cli.tables.logistic import expit
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats

_PENALTIES = Between(1e-9, 1e9)
_SEEDS = 2**32
"""scikit-learn takes seeds below this."""
_GROWN_ON, _GROWN_ON_MOST, _FOREST_LEAF = 0.6, 16_384, 5
"""A forest's tree: share of the rows it is grown on, at most so many, and fewest rows of a leaf."""
_LOOKED_AT = 2.0
"""Columns that a forest's split looks at, in square roots of their number: 11 of 33, and no long wait for 1,000."""
_ROUNDS, _STEP, _LEAVES, _BINS, _COLUMNS = 120, 0.05, 16, 63, 0.3
"""Boosting: rounds, learning rate, leaves of a tree, bins of a feature, share of the columns that a split looks at."""
_SHARE, _BOOSTED_LEAF = 30, (5, 40)
"""A boosted leaf holds one in _SHARE of the rows, but no fewer and no more than these."""


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
    """Logistic regression on the recalibrated score, the first coefficient, and the features, the others."""

    score: ScoreColumn
    planes: Planes

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(expit(self.planes(self.score(rows))[:, 0]))


@model
@dataclass(frozen=True, eq=False)
class StackedForest:
    """Trees on the score, column 0, and the features; their values, probabilities over trees, add up to the score."""

    forest: Forest

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(np.clip(self.forest.total(_columns(rows)), 0.0, 1.0))


@model
@dataclass(frozen=True, eq=False)
class StackedBoosting:
    """Trees on the score, column 0, and the features; their values and the baseline add up to the log-odds."""

    forest: Forest
    baseline: float

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(expit(self.baseline + self.forest.total(_columns(rows))))


def _columns(rows: Unlabelled) -> Narrow:
    if rows.features is None:
        raise Undefined(NEEDS["features"])
    return with_score(rows.score, rows.matrix)


def _weights(rows: Training) -> Floats | None:
    """Weights of mean 1: boosting does not split where weights add up to next to nothing."""
    return None if rows.weight is None else rows.weight / rows.weight.mean()


def _one_regression(columns: Floats, rows: Training, standard: bool, penalty: float) -> Planes:
    units = Units.of(columns, rows.weights, standard)
    return planes_of(columns, rows.label, [rows.weights], units, penalty)


@method(
    title="Refitting the last layer",
    kind="post-training",
    needs=("features",),
    source="[R app. C.3], which calls it fine-tuning; scikit-learn's LogisticRegression",
)
def refit(
    rows: Training,
    *,
    penalty: Annotated[float, "weight of the squared coefficients", _PENALTIES] = 1.0,
    units: Annotated[Literal["standard", "own"], "features of mean 0 and deviation 1, or as they are"] = "standard",
) -> Refitted:
    """Logistic regression of the labels on the features alone.

    p' = s(w . z + b), s the logistic function, z the features less their mean over their standard deviation; w and b
    make the log loss, weighted and summed over rows, plus `penalty` |w|^2 / 2 least. The score is not used: this is
    what the last layer of the model becomes when it is fitted again on these rows. `units=own` takes the features as
    they are, which is [R]'s setting and depends on the units they come in.
    """
    return Refitted(_one_regression(float_columns(rows), rows, units == "standard", penalty))


@method(
    title="Stacking by logistic regression",
    kind="post-training",
    needs=("features",),
    source="Wolpert 1992, Stacked generalization",
)
def stack(
    rows: Training,
    *,
    penalty: Annotated[float, "weight of the squared coefficients", _PENALTIES] = 1.0,
) -> Stacked:
    """Logistic regression of the labels on the recalibrated score and the features.

    p' = s(a logit(c(p)) + w . z + b), s the logistic function, c isotonic regression, z the features; all columns less
    their mean over their standard deviation, a and w penalised as in `refit`. While it is fitted, each row's c comes
    from the other four fifths of the rows. It learns how far the score can be trusted beside the features, for the
    price of one regression.
    """
    score, columns = with_recalibrated(rows)
    return Stacked(score, _one_regression(columns, rows, True, penalty))


@method(
    title="Stacking by a random forest",
    kind="post-training",
    needs=("features",),
    source="[R app. C.3]; scikit-learn's RandomForestClassifier, on fewer rows and with larger leaves",
)
def stack_forest(
    rows: Training,
    *,
    trees: Annotated[int, "number of trees", Between(0, 10_001)] = 60,
) -> StackedForest:
    """The mean probability of trees grown on resampled rows, from the score and the features.

    Each of 60 trees is grown on rows drawn with replacement, 6 for every 10 there are, 16,384 at most. A split looks at
    as many columns as twice the square root of their number, and a leaf holds at least 5 rows. It finds what is neither
    linear nor monotone in the features. The file holds the trees.
    """
    from sklearn.ensemble import RandomForestClassifier

    columns = _columns(rows)
    forest = RandomForestClassifier(
        trees,
        max_samples=int(np.clip(_GROWN_ON * len(rows), 1, _GROWN_ON_MOST)),
        max_features=int(min(columns.shape[1], _LOOKED_AT * columns.shape[1] ** 0.5)),
        min_samples_leaf=_FOREST_LEAF,
        n_jobs=1,
        random_state=rows.seed % _SEEDS,
    )
    return StackedForest(Forest.of_forest(forest.fit(columns, rows.label > 0.5, _weights(rows))))


@method(
    title="Stacking by boosted trees",
    kind="post-training",
    needs=("features",),
    source="[R app. C.3]; scikit-learn's HistGradientBoostingClassifier, with small steps and small trees",
)
def stack_boosting(
    rows: Training,
    *,
    rounds: Annotated[int, "number of trees", Between(0, 10_001)] = _ROUNDS,
) -> StackedBoosting:
    """Trees on the score and the features, each grown on what the trees before it leave unexplained.

    logit p' = b + the sum of the trees' values. Each of 120 trees has at most 16 leaves, of a thirtieth of the rows
    (at least 5, at most 40), and takes a step of .05 down the log loss; a split looks at 3 in 10 columns. Nothing is
    held out to stop early: the number of rounds is fixed.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    boosted = HistGradientBoostingClassifier(
        max_iter=rounds,
        learning_rate=_STEP,
        max_leaf_nodes=_LEAVES,
        max_bins=_BINS,
        max_features=_COLUMNS,
        min_samples_leaf=int(np.clip(len(rows) // _SHARE, *_BOOSTED_LEAF)),
        early_stopping=False,
        random_state=rows.seed % _SEEDS,
    )
    with one_thread():
        boosted.fit(_columns(rows), rows.label > 0.5, _weights(rows))
    return StackedBoosting(Forest.of_boosting(boosted), baseline_of(boosted))
