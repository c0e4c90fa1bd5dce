"""Two stacks with different errors, blended."""

from __future__ import annotations

from dataclasses import dataclass

from decal_cli.declarations.papers import cite
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.methods.families.retrain import Stacked, StackedBoosting, stack, stack_boosting
from decal_cli.methods.numerics.likelihood import logit
from decal_cli.tables.logistic import expit
from decal_cli.tables.rows import Unlabelled


@model
@dataclass(frozen=True, eq=False)
class Blended:
    """A regression and boosted trees, both on the score and the features; their log-odds are averaged."""

    regression: Stacked
    boosting: StackedBoosting

    def __call__(self, rows: Unlabelled) -> Applied:
        one, other = (logit(each(rows).score) for each in (self.regression, self.boosting))
        return Applied(expit((one + other) / 2))


@method(
    title="Stacking, regression and boosted trees blended",
    kind="post-training",
    needs=("features",),
    source=f"{cite('Wolpert 1992')}; the mean of two stacks",
)
def blend(rows: Training) -> Blended:
    """The mean of the log-odds that `stack` and `stack-boosting` give.

    The regression finds linear effects with little noise, the trees find the others; each limits the overfitting of the
    other. `decal recommend` names this method where recalibration is not enough: on real data sets it gained more than
    any other method, on average (docs/study.md).
    """
    regression, boosting = stack(rows), stack_boosting(rows)
    assert isinstance(regression, Stacked) and isinstance(boosting, StackedBoosting)
    return Blended(regression, boosting)
