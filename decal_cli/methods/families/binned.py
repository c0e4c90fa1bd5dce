"""Recalibration in steps: histogram binning, scaling-binning, and Meta-Cal's abstention near .5."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between, Bins
from decal_cli.errors import Undefined
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.methods.families.sigmoid import Sigmoid, fit_platt, fit_temperature
from decal_cli.methods.numerics.checks import are_probabilities, is_increasing, need
from decal_cli.methods.numerics.likelihood import need_different_scores
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import BINS, Floats, bin_of, tabulate

Miscoverage = Annotated[float, "share of correctly decided rows that may get .5", Between(0, 1)]
RANKED_PART = 10
"""One in so many correctly decided rows sets the cut of Meta-Cal, as in its authors' code."""
MAX_RANKED = 500
"""At most so many rows set the cut."""


@model
@dataclass(frozen=True, eq=False)
class Steps:
    """A step function of the score. edges: increasing, (k - 1,), each belongs to the step below it; value: (k,)."""

    edges: Floats
    value: Floats

    def __post_init__(self) -> None:
        """Refuse what are no steps of probabilities. Errors: ValueError."""
        need(self.value.shape == (len(self.edges) + 1,), "steps need one value more than they have edges")
        need(
            is_increasing(self.edges) and are_probabilities(self.value), "steps need increasing edges, values in [0, 1]"
        )

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(self.value[bin_of(rows.score, self.edges)])


@model
@dataclass(frozen=True, eq=False)
class Binned:
    """A curve, and steps on its values."""

    curve: Sigmoid
    steps: Steps

    def __call__(self, rows: Unlabelled) -> Applied:
        return self.steps(replace(rows, score=self.curve(rows).score))


@model
@dataclass(frozen=True, eq=False)
class Abstaining:
    """A curve, and .5 for scores within `cut` of .5."""

    curve: Sigmoid
    cut: float

    def __post_init__(self) -> None:
        """Refuse a cut that is no distance of scores from .5. Errors: ValueError."""
        need(0 <= self.cut <= 0.5, "a cut lies in [0, .5]")

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(np.where(np.abs(rows.score - 0.5) <= self.cut, 0.5, self.curve(rows).score))


@method(title="Histogram binning", kind="recalibration", source=cite("Zadrozny and Elkan 2001"))
def histogram(rows: Training, *, bins: Bins = BINS) -> Steps:
    """The frequency of label 1 in equal-mass bins of the score.

    Edges are the i/k quantiles of the training scores for k bins, linearly interpolated; a score equal to an edge
    belongs to the lower bin. The frequencies need not increase, and all rows of a bin get the same score.
    """
    t = rows.table
    levels = t.bins(bins)
    return Steps(t.bin_edges(bins), levels.pos / levels.n)


@method(title="Scaling-binning", kind="recalibration", source=cite("Kumar et al. 2019"))
def scaling_binning(rows: Training, *, bins: Bins = BINS) -> Binned:
    """Platt scaling, then the mean of its values in equal-mass bins of these values.

    A curve has less noise than frequencies, and the calibration error of a step function can be measured. The curve is
    `platt`; bins are cut at the i/k quantiles of its values on the training rows, for k bins, and each bin gets the
    mean of its values, not of the labels. It needs two distinct scores.
    """
    need_different_scores(rows.table)
    curve = fit_platt(rows.table)
    fitted = tabulate(curve(rows).score, rows.label, rows.weight)
    return Binned(curve, Steps(fitted.bin_edges(bins), fitted.bins(bins).score))


@method(title="Meta-Cal", kind="recalibration", source=f"{cite('Ma and Blaschko 2021')}; miscoverage constraint")
def meta_cal(rows: Training, *, miscoverage: Miscoverage = 0.05) -> Abstaining:
    """Temperature scaling, and .5 for the rows that the score cannot decide.

    A row is doubtful where its score lies as near to .5 as those of the nearest 5 % (miscoverage) of the rows that
    p >= .5 decides correctly; a tenth of these rows, at most 500, drawn at random (--seed), sets the cut. Doubtful rows
    get .5; all other rows get temperature scaling, fitted to the remaining rows that are not doubtful. It needs 10 rows
    that p >= .5 decides correctly.
    """
    right = np.flatnonzero((rows.score >= 0.5) == (rows.label == 1))
    if len(right) < RANKED_PART:
        raise Undefined(f"needs at least {RANKED_PART} rows that p >= .5 decides correctly; there are {len(right)}")
    ranking = rows.generator(RANKED_PART).permutation(right)[: min(len(right) // RANKED_PART, MAX_RANKED)]
    distance = np.abs(rows.score - 0.5)
    cut = _lower_quantile(distance[ranking], rows.weights[ranking], miscoverage)
    fitted = distance > cut
    fitted[ranking] = False
    if not fitted.any():
        raise Undefined("needs scores that differ more: all lie within the cut around .5")
    kept = rows.take(fitted)
    return Abstaining(fit_temperature(kept.table), cut)


def _lower_quantile(values: Floats, weight: Floats, share: float) -> float:
    """The quantile of weighted values, rounded down to one of them; for equal weights numpy's method 'lower'."""
    order = np.argsort(values, kind="stable")
    before = np.cumsum(weight[order]) - weight[order]
    reached = np.searchsorted(before, share * (weight.sum() - weight.mean()) * (1 + 1e-12), side="right")
    return float(values[order][reached - 1])
