"""V-regret: what a forecaster loses to the best constant, at each threshold of a two-action agent."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.table import Floats, Table, tabulate


class WorstKink(NamedTuple):
    """The largest V-regret over thresholds mu, summed over rows, and the threshold that attains it."""

    regret: float
    kink: float


def worst_v_regret(prediction: Floats, label: NDArray[np.uint8]) -> WorstKink:
    """The largest sum, over thresholds mu, of what always or never acting wins over acting where p > mu.

    Payoffs are 1[act](y - mu), Kleinberg et al. 2023, (9)-(10).
    """
    return worst_v_regret_of(tabulate(prediction, label, None))


def worst_v_regret_of(table: Table) -> WorstKink:
    """The same of predictions that are counted.

    Between predictions the regret is linear in mu but for the base rate, where the better constant changes: the largest
    is at a prediction, from either side, or there.
    """
    p = table.score
    rows, positives = float(table.n.sum()), float(table.pos.sum())
    mu = np.concatenate((p, [positives / rows, 0.0, 1.0]))
    n_before, pos_before = (np.concatenate(([0.0], np.cumsum(each, dtype=float))) for each in (table.n, table.pos))
    of_sides = []
    # Just above a prediction its rows do not act; just below they do.
    for side in ("right", "left"):
        first = np.searchsorted(p, mu, side=side)
        acted = (positives - pos_before[first]) - mu * (rows - n_before[first])
        of_sides.append(np.maximum(positives - mu * rows, 0.0) - acted)
    regret = np.maximum(*of_sides)
    worst = int(regret.argmax())
    return WorstKink(float(regret[worst]), float(mu[worst]))
