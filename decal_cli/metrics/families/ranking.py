"""Ranking: how well the order of the scores separates the labels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.errors import Undefined
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics.declare import metric
from decal_cli.tables.estimate import dot
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.table import Floats, Table
from decal_cli.tables.units import Estimate


@dataclass(frozen=True, eq=False)
class Area(Estimate):
    """An AUC. corrections: of the variance that rows of label 0, and of label 1, add: n / (n - 1)."""

    corrections: tuple[float, float] = (1.0, 1.0)

    def __sub__(self, other: Estimate | float) -> Estimate:
        """The difference of two on the same rows; a row that could have been missed is like any one of its label."""
        apart, units, missed = super().__sub__(other), self.units, 0.0
        own = units.sampling.squares(units.weight)
        for label, correction in enumerate(self.corrections):
            there = (units.label == label) & (units.weight > 0)
            off = (apart.influence[there] ** 2).max() / correction
            missed = max(missed, float(off * (own[there].sum() / units.weight_of(label)) ** 2))
        return replace(apart, missed=missed * units.effective_rows**2)


def delong(t: Table) -> Area:
    """AUC, with its error by DeLong et al. 1988, also for weighted rows; of rows in clusters by Obuchowski 1997."""
    return t.cached(delong, _delong)


def _delong(t: Table) -> Area:
    t.need_both_classes()
    below_pos = below_neg = wins = 0.0
    # Sums of 1, v and v^2 over squared weights, where v is the share of the other class that a row beats.
    sums = np.zeros((2, 3))
    for block in t.blocks():
        (neg, neg2), (pos, pos2) = block.by_label
        negs, poss = np.cumsum(neg), np.cumsum(pos)
        beaten = (below_neg + negs - neg / 2) / t.negatives
        beating = 1 - (below_pos + poss - pos / 2) / t.positives
        wins += dot(pos, beaten)
        sums += [
            (square.sum(), dot(square, share), dot(square * share, share))
            for square, share in ((neg2, beating), (pos2, beaten))
        ]
        below_neg, below_pos = below_neg + float(negs[-1]), below_pos + float(poss[-1])
    auc, weights = min(wins / t.positives, 1.0), np.array((t.negatives, t.positives))

    def adds(scale: Floats) -> Floats:
        beaten, beating = components(t)
        return t.of_units(np.stack((beating - auc, beaten - auc)) * (scale / weights)[:, None])

    if t.design.clustered:
        return Area(auc, lambda: adds(np.ones(2)), t.units, 0.0, 1.0, missed=0.0)
    squares, first, second = sums.T
    rows = weights**2 / squares
    corrections = np.where(rows > 1 + 1e-9, rows / np.maximum(rows - 1, 1e-9), 1.0)
    off = np.maximum(second - 2 * auc * first + auc**2 * squares, 0.0) / weights**2
    known, (of_neg, of_pos) = float(corrections @ off), corrections.tolist()
    adding = t.units, 0.0, 1.0
    return Area(auc, lambda: adds(np.sqrt(corrections)), *adding, missed=0.0, known=known, corrections=(of_neg, of_pos))


def components(t: Table) -> tuple[Floats, Floats]:
    """For each level: share of the negatives that a positive there beats, and of the positives that beat a negative."""
    pos = np.asarray(t.pos, dtype=np.float64)
    neg = np.asarray(t.n, dtype=np.float64) - pos
    beaten = (np.cumsum(neg) - neg / 2) / t.negatives
    return beaten, 1 - (np.cumsum(pos) - pos / 2) / t.positives


FEW = 10
"""Rows of a label below which the components of an AUC do not show how much it varies."""
_ROUNDING = 1e-12
"""An AUC this close to 0 or 1 differs from it only by the rounding of weights."""


def auc_interval(t: Table, *, confidence: float) -> intervals.Interval:
    """The interval of the AUC, whose variance is at most theta (1 - theta) / rows of the rarer label."""
    auc, error = delong(t).value, delong(t).error
    fewer = t.rarer_rows
    if fewer < FEW or min(auc, 1 - auc) < _ROUNDING or error == 0:
        return intervals.wilson(auc, 1.0, fewer, confidence)
    reach = intervals.quantile(confidence) * error / (auc * (1 - auc))
    low, high = expit(log_odds(np.array(auc)) + np.array([-reach, reach]))
    return float(low), float(high)


@metric(
    "AUC",
    "higher",
    "probability",
    cite("Hanley and McNeil 1982"),
    (0, 1),
    shown=True,
    interval=auc_interval,
    interval_text=(
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
        raise Undefined("no row has label 1")
    rows, positives, area = t.total, t.positives, 0.0
    for block in t.blocks():
        n, pos = block.n, block.pos
        rows_to, positives_to = np.cumsum(n), np.cumsum(pos)
        at_or_above = positives - positives_to + pos
        area += dot(pos, at_or_above / (rows - rows_to + n))
        rows, positives = rows - float(rows_to[-1]), positives - float(positives_to[-1])
    return min(area / t.positives, 1.0)
