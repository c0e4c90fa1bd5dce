"""Ranking: how well the order of the scores separates the labels; and signs that features say what it does not hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.errors import Undefined
from decal_cli.learn.probe import Probed
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import gaps
from decal_cli.metrics.confidence import Interval, quantile
from decal_cli.metrics.declare import Measured, family, like, metric, null_of
from decal_cli.metrics.families import scores
from decal_cli.tables.design import design_effect
from decal_cli.tables.estimate import CellRun, dot
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.memo import once
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, NO_POSITIVES, Floats, Table
from decal_cli.tables.units import Estimate


def rank_spearman(x: Floats, y: Floats, weight: Floats) -> float:
    """Correlation of the mid-ranks of weighted rows; NaN where a column does not vary."""
    off = []
    for column in (x, y):
        place = np.unique(column, return_inverse=True)[1]
        mass = np.bincount(place, weight)
        rank = (np.cumsum(mass) - mass / 2)[place]
        off.append(rank - dot(weight, rank) / float(weight.sum()))
    norm = math.sqrt(dot(weight * off[0], off[0]) * dot(weight * off[1], off[1]))
    return dot(weight * off[0], off[1]) / norm if norm > 0 else math.nan


def rank_kendall(x: Floats, y: Floats, weight: Floats) -> float:
    """tau-b of weighted rows: pairs in one order less those in the other, over those not tied; NaN where all are."""
    from scipy.stats import weightedtau

    of_row = weight.tolist()
    return float(weightedtau(x, y, rank=np.arange(len(x)), weigher=of_row.__getitem__, additive=False).statistic)


family("ranking", "Ranking: how well the order of the scores separates the labels.")


@dataclass(frozen=True, eq=False)
class Area(Estimate):
    """An AUC. corrections: of the variance that rows of label 0, and of label 1, add: n / (n - 1)."""

    corrections: tuple[float, float] = (1.0, 1.0)

    def __sub__(self, other: Estimate | float) -> Estimate:
        """The difference of two on the same rows; a row that could have been missed is like any one of its label."""
        apart, units, missed = super().__sub__(other), self.units, 0.0
        if not isinstance(other, Estimate):
            return apart
        own = units.sampling.squares(units.weight)
        for label, correction in enumerate(self.corrections):
            there = (units.label == label) & (units.weight > 0)
            off = (apart.influence[there] ** 2).max() / correction
            missed = max(missed, float(off * (own[there].sum() / units.weight_of(label)) ** 2))
        return replace(apart, missed=missed * units.effective_rows**2)


@once
def delong(t: Table) -> Area:
    """AUC, with its error by DeLong et al. 1988, also for weighted rows; of rows in clusters by Obuchowski 1997."""
    t.need_both_classes()

    def shares() -> Iterator[tuple[CellRun, Floats]]:
        """For each block the share of the other class that a row of label 0, and of label 1, beats at each level."""
        below_pos = below_neg = 0.0
        for block in t.blocks():
            neg, pos = block.n - block.pos, block.pos
            negs, poss = np.cumsum(neg), np.cumsum(pos)
            beating = 1 - (below_pos + poss - pos / 2) / t.positives
            yield block, np.stack((beating, (below_neg + negs - neg / 2) / t.negatives))
            below_neg, below_pos = below_neg + float(negs[-1]), below_pos + float(poss[-1])

    moments, weights = t.design.moments(shares()), np.array((t.negatives, t.positives))
    auc = min(float(moments.first[1]) / t.positives, 1.0)

    def adds(scale: Floats) -> Floats:
        beaten, beating = components(t)
        return t.of_units(np.stack((beating - auc, beaten - auc)) * (scale / weights)[:, None])

    if t.design.clustered:
        known = moments.spread(np.full(2, auc), 1 / weights)
        return Area(auc, lambda: adds(np.ones(2)), t.units, 0.0, 1.0, missed=0.0, known=known)
    squares, first, second = moments.squares.T
    rows = weights**2 / squares
    corrections = np.where(rows > 1 + 1e-9, rows / np.maximum(rows - 1, 1e-9), 1.0)
    off = np.maximum(second - 2 * auc * first + auc**2 * squares, 0.0) / weights**2
    known, (of_neg, of_pos) = float(corrections @ off), corrections.tolist()
    adding = t.units, 0.0, 1.0
    return Area(auc, lambda: adds(np.sqrt(corrections)), *adding, missed=0.0, known=known, corrections=(of_neg, of_pos))


def components(t: Table) -> tuple[Floats, Floats]:
    """For each level: share of the negatives that a positive there beats, and of the positives that beat a negative."""
    neg, pos = t.of_labels
    beaten = (np.cumsum(neg) - neg / 2) / t.negatives
    return beaten, 1 - (np.cumsum(pos) - pos / 2) / t.positives


FEW = 10
"""Rows of a label below which the components of an AUC do not show how much it varies."""
_ROUNDING = 1e-12
"""An AUC this close to 0 or 1 differs from it only by the rounding of weights."""


def auc_interval(t: Table, *, confidence: float) -> intervals.Interval:
    """The interval of the AUC, whose variance is at most theta (1 - theta) / rows of the rarer label."""
    auc, error = delong(t).value, delong(t).error
    fewer = t.fewer_rows
    if fewer < FEW or min(auc, 1 - auc) < _ROUNDING or error == 0:
        return intervals.wilson(auc, fewer, confidence)
    half_width = intervals.quantile(confidence) * error / (auc * (1 - auc))
    low, high = expit(log_odds(np.array(auc)) + np.array([-half_width, half_width]))
    return float(low), float(high)


@metric(
    "AUC",
    "higher",
    "probability",
    cite("Hanley and McNeil 1982"),
    (0, 1),
    shown=True,
    interval=auc_interval,
    how=(
        f"variance of {cite('DeLong et al. 1988')}, on the logit scale; with fewer than 10 rows of "
        "a label, and where every pair is in order, Wilson's interval with the rows of the rarer label"
    ),
)
def auc(t: Table) -> Estimate:
    """Probability that a random row with label 1 scores above a random row with label 0; ties count half.

    The area under the ROC curve. It ignores calibration: no strictly increasing map of the scores changes it.
    """
    return delong(t)


@metric("Average precision", "higher", "probability", cite("Manning et al. 2008"), (0, 1), rarer=20)
def average_precision(t: Table) -> float:
    """Mean, over the rows with label 1, of the precision at the score of the row.

    sum over levels of (step in recall) x (precision at that level), without interpolation, as in scikit-learn. A score
    without information has the base rate.
    """
    if t.positives <= 0:
        raise Undefined(NO_POSITIVES)
    rows, positives, area = t.total, t.positives, 0.0
    for block in t.blocks():
        n, pos = block.n, block.pos
        rows_to, positives_to = np.cumsum(n), np.cumsum(pos)
        at_or_above = positives - positives_to + pos
        area += dot(pos, at_or_above / (rows - rows_to + n))
        rows, positives = rows - float(rows_to[-1]), positives - float(positives_to[-1])
    return min(area / t.positives, 1.0)


family("sufficiency", "Sufficiency: signs that the score does not hold all that the labels or the features say.")


_FISHER = f"normal on Fisher's scale: {cite('Bonett and Wright 2000')}"
_OF_RANKS = "the population's correlation of the score with the probabilities that these folds learned"


@metric(
    "Concavity gap",
    "lower",
    "squared probability",
    cite("Tasche 2021", "prop. 5.2"),
    (0, 1),
    interval=None,
    bootstraps=False,
    estimand="nothing: noise alone bends the curve, more here than there; compare it with concavity_gap_null",
)
def concavity_gap(t: Table) -> float:
    """Largest amount by which the Brier curve lies below its upper concave envelope; compare with concavity_gap_null.

    The curve is (1 - t) FN / T + t FP / T of deciding 1 where the score is at least t. That of a calibrated score is
    concave, so beyond chance a gap shows a score that is not calibrated. Above 65,536 distinct scores, that many
    equal-mass cells are used.
    """
    return scores.concavity_gap(t.cells)


@null_of("concavity_gap", "Concavity gap of a calibrated model")
def concavity_gap_null(t: Table, seed: Seed) -> Floats:
    """Mean concavity gap that a perfectly calibrated model with these scores shows, by chance alone.

    Labels are drawn from the scores, 400 times; above 4,096 distinct scores, on that many equal-mass cells.
    """
    return gaps.null_draws(gaps.cells(t, gaps.most_cells(t, BINS)), scores.concavity_gap, seed.generator("sufficiency"))


Correlation = Callable[[Floats, Floats, Floats], float]


def _correlation(probed: Probed, of: Correlation, less: int, variance: Callable[[float], float]) -> Measured:
    """less: rows that say nothing, in the error on Fisher's scale; variance: by the correlation, times the rows."""
    probed.need_probe()
    value = of(probed.score, probed.probe, probed.weight)
    if math.isnan(value):
        raise Undefined("the score, or the probability by the features, is the same on every row")
    value = min(max(value, -1.0), 1.0)

    def interval(confidence: float, seed: Seed) -> Interval:
        """tanh(atanh(value) -/+ z sqrt(variance / (rows - less)))."""
        rows = float(probed.weight.sum()) ** 2 / float((probed.weight**2).sum())
        if probed.unit is not None:
            ranks = [
                np.argsort(np.argsort(each, kind="stable"), kind="stable") for each in (probed.score, probed.probe)
            ]
            products = math.prod(rank - rank.mean() for rank in ranks)
            rows /= max(design_effect(np.asarray(products), probed.weight, probed.unit), 1.0)
        if abs(value) >= 1 or rows <= less:
            raise Undefined("the correlation is 1 or -1 on these rows")
        half_width = quantile(confidence) * math.sqrt(variance(value) / (rows - less))
        return math.tanh(math.atanh(value) - half_width), math.tanh(math.atanh(value) + half_width)

    return Measured(value, interval)


@metric(
    "Kendall's tau of score and features",
    "higher",
    "share",
    f"tau-b: {cite('Tasche 2021', 'prop. 3.7')}",
    (-1, 1),
    size_free=False,
    how=_FISHER,
    estimand=_OF_RANKS,
)
def kendall(probed: Probed) -> Measured:
    """How far the score orders rows as the probability does that held-out rows get by the features; 1: alike.

    Kendall's tau-b of the score and the probe's cross-fitted probability. A score that orders all rows as the true
    probability does is sufficient: recalibration is then all that post-training can add.
    """
    return _correlation(probed, rank_kendall, 4, lambda value: 0.437)


@like(
    "kendall",
    "Spearman's rho of score and features",
    f"rank correlation: {cite('Tasche 2021', 'prop. 3.7')}",
)
def spearman(probed: Probed) -> Measured:
    """Rank correlation of the score with the probability that held-out rows get by the features; 1: the same order.

    The correlation of the mid-ranks of the score and of the probe's cross-fitted probability, as for kendall.
    """
    return _correlation(probed, rank_spearman, 3, lambda value: 1 + value**2 / 2)
