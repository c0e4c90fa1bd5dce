"""What each row adds to a metric of several classes, to first order: for paired differences of two models."""

from __future__ import annotations

import numpy as np

from decal_cli.metrics.numerics.debiased import variance_terms
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.table import Floats, Strategy, Table


def of_auc(c: ClassTable, weighted: bool) -> Floats:
    """Of the mean over classes of the AUC of each against the rest, shape (T,): the components of DeLong et al. 1988.

    Classes that no row has, or all rows have, are not counted. weighted: the mean has the rows of each class as
    weights, which vary too.
    """
    rows = c.count(c.label, len(c.classes))
    counted = np.flatnonzero((rows > 0) & (rows < c.total))
    share = rows[counted] / rows[counted].sum() if weighted else np.full(len(counted), 1 / len(counted))
    added = np.zeros(len(c))
    for k, part in zip(counted.tolist(), share, strict=True):
        t, own = c.one_vs_rest(k), c.label == k
        beaten, beating = _components(t)
        place = np.searchsorted(t.score, c.score[:, k])
        area = float(np.asarray(t.pos, dtype=np.float64) @ beaten) / t.positives
        each = np.where(own, (beaten[place] - area) / t.positives, (beating[place] - area) / t.negatives) * c.total
        added += part * each + (((own - rows[k] / c.total) * area) if weighted else 0.0)
    return added


def _components(t: Table) -> tuple[Floats, Floats]:
    """For each level: share of the negatives that a positive there beats, and of the positives that beat a negative."""
    pos = np.asarray(t.pos, dtype=np.float64)
    neg = np.asarray(t.n, dtype=np.float64) - pos
    beaten = (np.cumsum(neg) - neg / 2) / t.negatives
    return beaten, 1 - (np.cumsum(pos) - pos / 2) / t.positives


def of_top_debiased(c: ClassTable, bins: int, strategy: Strategy) -> Floats:
    """Of the debiased squared ECE of the top class, its bins held fixed, shape (T,)."""
    cut, top = c.top.bins(bins, strategy), c.score.max(axis=1)
    right = (c.predicted == c.label).astype(np.float64)
    starts = c.top.bin_starts(bins, strategy)
    place = np.searchsorted(c.top.score[starts], top, side="right") - 1
    gap = np.asarray(cut.pos / cut.n) - cut.score
    value = float((cut.n * gap**2).sum() / cut.total)
    return np.asarray(gap[place] ** 2 - value + 2 * gap[place] * (right - top - gap[place]))


def second_order(c: ClassTable, bins: int, strategy: Strategy) -> float:
    """What is left of its variance to second order."""
    return variance_terms(c.top.bins(bins, strategy))[1]
