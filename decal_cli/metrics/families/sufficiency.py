"""Sufficiency: signs that the score does not hold all that the labels or the features say."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.errors import Undefined
from decal_cli.learn.probe import Probed
from decal_cli.metrics.confidence import Interval, quantile
from decal_cli.metrics.declare import like, metric, null_of
from decal_cli.metrics.numerics import corp, gaps, rank_correlation
from decal_cli.tables.clusters import design_effect
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, FEWEST_ROWS, Floats, Table

_FISHER = f"normal on Fisher's scale: {cite('Bonett and Wright 2000')}"
_OF_RANKS = "the population's correlation of the score with the probabilities that these folds learned"


@metric(
    "Concavity gap",
    "lower",
    "squared probability",
    cite("Tasche 2021", "prop. 5.2"),
    (0, 1),
    interval=None,
    noisy=True,
    covers="nothing: noise alone bends the curve, more here than there; compare it with concavity_gap_null",
)
def concavity_gap(t: Table) -> float:
    """Largest amount by which the Brier curve lies below its upper concave envelope; compare with concavity_gap_null.

    The curve is (1 - t) FN / T + t FP / T of deciding 1 where the score is at least t. That of a calibrated score is
    concave, so beyond chance a gap shows a score that is not calibrated. Above 65,536 distinct scores, that many
    equal-mass cells are used.
    """
    return corp.concavity_gap(t.cells)


@null_of("concavity_gap", "Concavity gap of a calibrated model")
def concavity_gap_null(t: Table, seed: Seed) -> Floats:
    """Mean concavity gap that a perfectly calibrated model with these scores shows, by chance alone.

    Labels are drawn from the scores, 400 times; above 4,096 distinct scores, on that many equal-mass cells.
    """

    def draws(t: Table) -> Floats:
        return gaps.null_draws(gaps.coarse(t, BINS), corp.concavity_gap, seed.generator("sufficiency"))

    return t.cached((corp.concavity_gap, seed), draws)


Correlation = Callable[[Floats, Floats, Floats], float]


def _correlation(probed: Probed, of: Correlation) -> float:
    if not len(probed.probe):
        raise Undefined(f"needs at least {FEWEST_ROWS} rows to learn from some and judge on others")
    value = of(probed.score, probed.probe, probed.weight)
    if math.isnan(value):
        raise Undefined("the score, or the probability by the features, is the same on every row")
    return min(max(value, -1.0), 1.0)


def _fisher(probed: Probed, value: float, less: int, variance: float, confidence: float) -> Interval:
    """tanh(atanh(value) -/+ z sqrt(variance / (rows - less)))."""
    rows = float(probed.weight.sum()) ** 2 / float((probed.weight**2).sum())
    if probed.unit is not None:
        ranks = [np.argsort(np.argsort(each, kind="stable"), kind="stable") for each in (probed.score, probed.probe)]
        products = math.prod(rank - rank.mean() for rank in ranks)
        rows /= max(design_effect(np.asarray(products), probed.weight, probed.unit), 1.0)
    if abs(value) >= 1 or rows <= less:
        raise Undefined("the correlation is 1 or -1 on these rows")
    reach = quantile(confidence) * math.sqrt(variance / (rows - less))
    return math.tanh(math.atanh(value) - reach), math.tanh(math.atanh(value) + reach)


def _kendall_interval(probed: Probed, *, confidence: float) -> Interval:
    return _fisher(probed, kendall(probed), 4, 0.437, confidence)


@metric(
    "Kendall's tau of score and features",
    "higher",
    "share",
    f"tau-b: {cite('Tasche 2021', 'prop. 3.7')}",
    (-1, 1),
    size_free=False,
    interval=_kendall_interval,
    interval_text=_FISHER,
    covers=_OF_RANKS,
)
def kendall(probed: Probed) -> float:
    """How far the score orders rows as the probability does that held-out rows get by the features; 1: alike.

    Kendall's tau-b of the score and the probe's cross-fitted probability. A score that orders all rows as the true
    probability does is sufficient: recalibration is then all that post-training can add.
    """
    return _correlation(probed, rank_correlation.kendall)


def _spearman_interval(probed: Probed, *, confidence: float) -> Interval:
    value = spearman(probed)
    return _fisher(probed, value, 3, 1 + value**2 / 2, confidence)


@like(
    "kendall",
    "Spearman's rho of score and features",
    f"rank correlation: {cite('Tasche 2021', 'prop. 3.7')}",
    interval=_spearman_interval,
)
def spearman(probed: Probed) -> float:
    """Rank correlation of the score with the probability that held-out rows get by the features; 1: the same order.

    The correlation of the mid-ranks of the score and of the probe's cross-fitted probability, as for kendall.
    """
    return _correlation(probed, rank_correlation.spearman)
