"""Two stacks that err in different ways, blended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.posttrain.declare import Applied, Inputs, Model, Training, method, model
from decal_cli.posttrain.newton import logistic
from decal_cli.posttrain.retrain import Stacked, StackedBoosting, stack, stack_boosting

PARTS = ("stack", "stack-boosting")
"""The methods that are blended."""
_NEAREST = 1e-9
"""Scores are taken this far from 0 and 1 before their log-odds are."""


@model
@dataclass(frozen=True, eq=False)
class Blended:
    """A regression and boosted trees, both on the score and the features; their log-odds are averaged."""

    regression: Stacked
    boosting: StackedBoosting

    def __call__(self, rows: Inputs) -> Applied:
        odds = []
        for each in (self.regression, self.boosting):
            score = np.clip(each(rows).score, _NEAREST, 1 - _NEAREST)
            odds.append(np.log(score / (1 - score)))
        return Applied(logistic((odds[0] + odds[1]) / 2))


@method(
    title="Stacking, regression and boosted trees blended",
    kind="post-training",
    needs=("features",),
    source="Wolpert 1992, Stacked generalization; the mean of two stacks",
)
def blend(rows: Training) -> Blended:
    """The mean of the log-odds that `stack` and `stack-boosting` give.

    The regression sees what is linear with little noise, the trees what is not; each checks the other where it
    overfits. What `decal recommend` names where recalibration is not enough: on real sets it lost least utility to
    the best method known afterwards, whatever methods cost (docs/study.md).
    """
    return blended(stack(rows), stack_boosting(rows))


def blended(regression: Model, boosting: Model) -> Blended:
    """The blend of both, fitted to the same rows."""
    assert isinstance(regression, Stacked) and isinstance(boosting, StackedBoosting)
    return Blended(regression, boosting)
