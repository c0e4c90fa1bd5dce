"""Ranking: how well the order of the scores separates the labels."""

from __future__ import annotations

import math

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.errors import Undefined
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import covered
from decal_cli.metrics.declare import metric
from decal_cli.tables.estimate import dot
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.table import MeanEstimate, Table


def delong(t: Table) -> MeanEstimate:
    """AUC and its standard error by DeLong et al. 1988, also for weighted rows; one pass."""
    return t.cached(delong, _delong)


def _delong(t: Table) -> MeanEstimate:
    t.need_both_classes()
    below_pos = below_neg = 0.0
    # Sums of 1, v and v^2 over squared weights, where v is the share of the other class that a row beats.
    of_pos, of_neg = np.zeros(3), np.zeros(3)
    wins = 0.0
    for _, n, pos, n2, pos2 in t.blocks():
        neg = n - pos
        negs, poss = np.cumsum(neg), np.cumsum(pos)
        beaten = (below_neg + negs - neg / 2) / t.negatives
        beating = 1 - (below_pos + poss - pos / 2) / t.positives
        wins += dot(pos, beaten)
        neg2 = n2 - pos2
        of_pos += pos2.sum(), dot(pos2, beaten), dot(pos2 * beaten, beaten)
        of_neg += neg2.sum(), dot(neg2, beating), dot(neg2 * beating, beating)
        below_neg, below_pos = below_neg + float(negs[-1]), below_pos + float(poss[-1])
    auc = min(wins / t.positives, 1.0)
    clustered = _clustered(t, auc) if t.design.clustered else None
    if clustered is not None:
        return MeanEstimate(auc, math.sqrt(clustered))
    variance = _spread(of_pos, auc, t.positives) + _spread(of_neg, auc, t.negatives)
    return MeanEstimate(auc, math.sqrt(variance))


def _clustered(t: Table, auc: float) -> float | None:
    """The variance where rows come in clusters, each with the sum of what its rows contribute: Obuchowski 1997."""
    neg = np.asarray(t.n - t.pos, dtype=np.float64)
    beaten = (np.cumsum(neg) - neg / 2) / t.negatives
    beating = 1 - (np.cumsum(t.pos) - t.pos / 2) / t.positives
    return t.design.spread((beating - auc) / t.negatives, (beaten - auc) / t.positives)


def _spread(sums: np.ndarray, mean: float, weight: float) -> float:
    """Variance of a weighted mean, with the n - 1 correction in effective rows."""
    squares, first, second = (float(value) for value in sums)
    rows = weight**2 / squares
    raw = max(second - 2 * mean * first + mean**2 * squares, 0.0) / weight**2
    return raw * rows / (rows - 1) if rows > 1 + 1e-9 else raw


FEW = 10
"""Rows of a label below which the components of an AUC do not show how much it varies."""
_ROUNDING = 1e-12
"""An AUC this close to 0 or 1 differs from it only by the rounding of weights."""


def auc_interval(t: Table, *, confidence: float) -> intervals.Interval:
    """The interval of the AUC, whose variance is at most theta (1 - theta) / rows of the rarer label."""
    auc, error = delong(t)
    fewer = t.rarer_rows
    if fewer < FEW or min(auc, 1 - auc) < _ROUNDING or error == 0:
        return intervals.wilson(auc, 1.0, fewer, confidence)
    reach = intervals.quantile(confidence) * error / (auc * (1 - auc))
    low, high = expit(log_odds(np.array(auc)) + np.array([-reach, reach]))
    return float(low), float(high)


@metric(
    title="AUC",
    better="higher",
    unit="probability",
    source=cite("Hanley and McNeil 1982"),
    range=(0, 1),
    shown=True,
    interval=auc_interval,
    interval_text=f"variance of {cite('DeLong et al. 1988')}, on the logit scale; with fewer than 10 rows of "
    "a label, and where every pair is in order, Wilson's interval with the rows of the rarer label",
    covers=covered.POPULATION,
)
def auc(t: Table) -> float:
    """Probability that a random row with label 1 scores above a random row with label 0; ties count half.

    The area under the ROC curve. It ignores calibration: no strictly increasing map of the scores changes it.
    """
    return delong(t).mean


@metric(
    title="Average precision",
    better="higher",
    unit="probability",
    source=cite("Manning et al. 2008"),
    range=(0, 1),
    covers=covered.POPULATION,
    rarer=20,
)
def average_precision(t: Table) -> float:
    """Mean, over the rows with label 1, of the precision at the score of the row.

    sum over levels of (step in recall) x (precision at that level), without interpolation, as in scikit-learn. A score
    without information has the base rate.
    """
    if t.positives <= 0:
        raise Undefined("no row has label 1")
    rows, positives, area = t.total, t.positives, 0.0
    for _, n, pos, _, _ in t.blocks():
        rows_to, positives_to = np.cumsum(n), np.cumsum(pos)
        at_or_above = positives - positives_to + pos
        area += dot(pos, at_or_above / (rows - rows_to + n))
        rows, positives = rows - float(rows_to[-1]), positives - float(positives_to[-1])
    return min(area / t.positives, 1.0)
