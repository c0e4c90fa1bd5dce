"""Whether features say anything about the label beyond the score, whatever it may be worth at a threshold.

What a probe wins at t* grows slowly with the rows, and long before it is clear the probe may show that there is
something to learn. Among rows of nearly the same score, does the label go with what a probe says that has not seen it?
Where the features say nothing more, the sum of the products of both residuals has mean 0, whatever the probe learned.
This is the generalised covariance measure of Shah and Peters, with what the probe says in place of a feature.
"""

from __future__ import annotations

import math

import numpy as np

from decal_cli.crossfit.probe import WIDENED, Probed
from decal_cli.errors import Undefined
from decal_cli.tables.logistic import log_odds
from decal_cli.tables.table import FEWEST_ROWS, Floats, Ints

ROWS_ALIKE = 20
"""Rows of one fold, next to each other by their score, that count as of nearly the same score."""
LEAST = 1e-6
"""Distance from 0 and 1 at which probabilities are clipped before their log-odds are compared."""
TINY = 1e-300
"""In place of a variance of 0."""


def no_signal(probed: Probed) -> float:
    """Probability of so clear a signal, or a clearer one, where the features say nothing beyond the score."""
    if not len(probed.probe):
        raise Undefined(f"needs at least {FEWEST_ROWS} rows to learn from some and judge on others")
    alike = _alike(probed.score, probed.fold)
    share = probed.weight / np.bincount(alike, probed.weight)[alike]
    label = _centred(probed.label, alike, share)
    score, learned = (_centred(log_odds(values, LEAST), alike, share) for values in (probed.score, probed.probe))
    # Within a few rows, what the probe owes to the score is a line.
    line = np.bincount(alike, share * score * learned) / np.maximum(np.bincount(alike, share * score**2), TINY)
    products = probed.weight * label * (learned - line[alike] * score)
    if probed.unit is not None:
        products = np.bincount(probed.unit, products).astype(np.float64)
    spread = float(products @ products)
    if spread <= 0:
        return 1.0
    return math.erfc(float(products.sum()) / (WIDENED * math.sqrt(2 * spread))) / 2


def _alike(score: Floats, fold: Ints) -> Ints:
    """Number of the few rows, of one fold and nearly the same score, that a row belongs to; equal scores stay together.

    The score is in ascending order.
    """
    order = np.argsort(fold, kind="stable")
    score, fold = score[order], fold[order]
    starts = np.searchsorted(fold, fold)
    place = np.arange(len(fold)) - starts
    first = np.empty(len(fold), dtype=bool)
    first[0] = True
    first[1:] = (score[1:] != score[:-1]) | (fold[1:] != fold[:-1])
    place = place[np.flatnonzero(first)[np.cumsum(first) - 1]] // ROWS_ALIKE
    new = np.empty(len(fold), dtype=bool)
    new[0] = True
    new[1:] = (place[1:] != place[:-1]) | (fold[1:] != fold[:-1])
    number = np.empty(len(fold), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return number


def _centred(values: Floats, alike: Ints, share: Floats) -> Floats:
    return values - np.bincount(alike, share * values)[alike]
