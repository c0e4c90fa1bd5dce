"""Another share of labels 1, told from the scores alone, and whether that is all that differs.

If rows of one label score as they do in a reference, the scores are a mixture of two known distributions, and its share
is the share of labels 1. Both are looked at in bins that are frozen on the reference.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.tables.estimate import MeanEstimate
from decal_cli.tables.table import Floats, Table, bin_of

N_BINS = 10
_ROUNDS = 20
"""The errors of shares depend on the share that is looked for; they settle in a few rounds."""
_MIN_SIGNAL = 3.0
"""Standard errors that the two labels' distributions lie apart at least."""


class BinShares(NamedTuple):
    """Shares of the rows in each bin, shape (k,), and how many rows they rest on."""

    share: Floats
    rows: float

    @property
    def covariance(self) -> Floats:
        """The covariance of the shares, without the last one, shape (k - 1, k - 1)."""
        share = (self.share * self.rows + 0.5) / (self.rows + 0.5 * len(self.share))
        return np.asarray((np.diag(share) - np.outer(share, share))[:-1, :-1] / self.rows)


class ReferenceScores(NamedTuple):
    """The rows of a reference, whose bins are frozen."""

    table: Table


class LabelShift(NamedTuple):
    """prevalence: the share of label 1, with its error. pvalue: the share of true mixtures that would fit as badly."""

    prevalence: MeanEstimate
    pvalue: float


def binned(t: Table, edges: Floats, label: int | None = None) -> BinShares:
    """The rows of a table, or those of one label, in bins with these edges between them."""
    weight = np.asarray(t.n, dtype=np.float64) if label is None else t.of_labels[label]
    counts = np.bincount(bin_of(t.score, edges), weight, len(edges) + 1)
    total = float(counts.sum())
    if total <= 0:
        raise Undefined(f"no row has label {label}")
    return BinShares(counts / total, total / t.total * t.effective_rows)


def psi(expected: BinShares, actual: BinShares) -> float:
    """Population stability index: sum of (a - e) ln(a / e) over bins; a bin that no row falls in counts half a row."""
    e, a = (np.maximum(each.share, 0.5 / each.rows) for each in (expected, actual))
    return float(((a - e) * np.log(a / e)).sum())


def label_shift(zero: BinShares, one: BinShares, scores: BinShares) -> LabelShift:
    """The share of labels 1 by least chi-square, from the scores of the reference's labels, and its test of fit.

    Errors: Undefined, where the scores of both labels are too much alike, or fall into too few bins.
    """
    from scipy.special import chdtrc

    if len(scores.share) < 3:
        raise Undefined("the reference has too few distinct scores")
    apart = (one.share - zero.share)[:-1]
    lies = (scores.share - zero.share)[:-1]
    noise = zero.covariance + one.covariance
    if math.sqrt(float(apart @ np.linalg.solve(noise, apart))) < _MIN_SIGNAL + math.sqrt(len(apart)):
        raise Undefined("in the reference, the scores of both labels are too much alike, or its rows too few")
    share = 0.5
    for _ in range(_ROUNDS):
        spread = scores.covariance + share**2 * one.covariance + (1 - share) ** 2 * zero.covariance
        weighed = np.linalg.solve(spread, apart)
        precision = float(apart @ weighed)
        share = min(max(float(lies @ weighed) / precision, 0.0), 1.0)
    rest = lies - share * apart
    pvalue = float(chdtrc(len(apart) - 1, float(rest @ np.linalg.solve(spread, rest))))
    return LabelShift(MeanEstimate(share, precision**-0.5), pvalue)
