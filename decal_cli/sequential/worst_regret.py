"""V-regret: what a forecaster loses to the best constant, at each threshold of a two-action agent."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.table import Floats


class WorstKink(NamedTuple):
    """The largest V-regret over thresholds mu, summed over rows, and the threshold that attains it."""

    regret: float
    kink: float


def worst_v_regret(prediction: Floats, label: NDArray[np.uint8]) -> WorstKink:
    """The largest sum, over thresholds mu, of what always or never acting wins over acting where p > mu.

    Payoffs are 1[act](y - mu), Kleinberg et al. 2023, (9)-(10). Between predictions the regret is linear in mu but for
    the base rate, where the better constant changes: the largest is at a prediction, from either side, or there.
    """
    order = np.argsort(prediction)
    p, y = prediction[order], label[order].astype(np.float64)
    rows, positives = len(p), float(y.sum())
    base_rate = positives / rows
    mu = np.concatenate((p, [base_rate, 0.0, 1.0]))
    regret, side = np.empty(0), ("right", "left")
    # Just above a prediction its rows do not act; just below they do.
    to_row = np.concatenate(([0.0], np.cumsum(y)))
    both = []
    for each in side:
        first = np.searchsorted(p, mu, side=each)  # type: ignore[call-overload]
        acted = (positives - to_row[first]) - mu * (rows - first)
        both.append(np.maximum(positives - mu * rows, 0.0) - acted)
    regret = np.maximum(*both)
    worst = int(regret.argmax())
    return WorstKink(float(regret[worst]), float(mu[worst]))
