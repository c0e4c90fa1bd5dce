"""Two stacks with different errors and the recalibrated score, weighted by how well each predicts unseen rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.crossfit.learners import EQUAL, SURE, blend_weights, blended
from decal_cli.declarations.papers import cite
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.methods.families.retrain import Stacked, StackedBoosting, stack, stack_boosting
from decal_cli.tables.logistic import log_odds
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats, Ints

_MAX_WEIGHED_ROWS = 16_384
"""So many rows, drawn at random, are enough to learn three weights."""


@model
@dataclass(frozen=True, eq=False)
class Blended:
    """Log-odds of a regression, boosted trees and the recalibrated score; weights: shape (4,), the intercept first."""

    regression: Stacked
    boosting: StackedBoosting
    weights: Floats

    def __post_init__(self) -> None:
        """Refuse weights that do not belong to the parts. Errors: ValueError."""
        if self.weights.shape != EQUAL.shape or not np.isfinite(self.weights).all():
            raise ValueError("a blend needs an intercept and three weights, all finite")

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(blended(_each(self.regression, self.boosting, rows), self.weights))


def _each(regression: Stacked, boosting: StackedBoosting, rows: Unlabelled) -> Floats:
    """Log-odds of rows by each of the three, shape (T, 3)."""
    recalibrated = regression.score.curve(rows).score
    return np.column_stack((regression.log_odds(rows), boosting.log_odds(rows), log_odds(recalibrated, SURE)))


@method(
    title="Stacking, regression and boosted trees blended",
    kind="post-training",
    needs=("features",),
    source=f"{cite('Wolpert 1992')}; two stacks and the recalibrated score, weighted on held-out rows",
)
def blend(rows: Training) -> Blended:
    """A weighted mean of the log-odds that `stack`, `stack-boosting` and isotonic recalibration give.

    The regression finds linear effects with little noise, the trees find the others; each limits the overfitting of the
    other. The weights are learned on rows that the models have not seen, in five folds of at most 16,384 rows, and are
    held close to 1/2, 1/2 and 0 where rows are few. `decal recommend` names this method where recalibration is not
    enough: on real data sets it gained more than any other method, on average (docs/study.md).
    """
    return Blended(*_stacks(rows), _weights(rows))


def _stacks(rows: Training) -> tuple[Stacked, StackedBoosting]:
    regression, boosting = stack(rows), stack_boosting(rows)
    assert isinstance(regression, Stacked) and isinstance(boosting, StackedBoosting)
    return regression, boosting


def _weights(rows: Training) -> Floats:
    """Weights of the three: each of five folds is scored by what the others fit."""
    rows = rows.take(np.sort(rows.generator(FOLDS, 1).permutation(len(rows))[:_MAX_WEIGHED_ROWS]))
    if min(rows.positives, len(rows) - rows.positives) < 2:
        return EQUAL
    fold, each = _folds(rows), np.empty((len(rows), 3))
    for k in range(FOLDS):
        here = fold == k
        each[here] = _each(*_stacks(rows.take(~here)), rows.take(here))
    weight = rows.weights
    return blend_weights(each, rows.label, weight / weight.mean())


def _folds(rows: Training) -> Ints:
    """The fold of each row; both labels are dealt out evenly, so that no fold takes all rows of one.

    Clusters stay whole, whatever their labels.
    """
    if rows.unit is not None:
        return rows.places(rows.generator(FOLDS, 2)) % FOLDS
    order = rows.generator(FOLDS, 2).permutation(len(rows))
    fold = np.empty(len(rows), dtype=np.int64)
    fold[order[np.argsort(rows.label[order], kind="stable")]] = np.arange(len(rows)) % FOLDS
    return fold
