"""Bootstrap intervals of statistics that take all resamples of a few cells at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from decal_cli.metrics.confidence import Interval, bias_corrected, within
from decal_cli.tables.table import Floats, Table

N_RESAMPLES = 200
MAX_CELLS = 128
INTERVAL_TEXT = f"bias-corrected bootstrap; above {MAX_CELLS} levels, of as many equal-mass cells"

Statistic = Callable[[Floats, Floats, Floats], Floats]
"""(score, n, pos) -> the values; n and pos of shape (resamples, levels), one level for each score."""


def interval(
    t: Table, statistic: Statistic, rng: np.random.Generator, confidence: float, value: float, most: float = 1.0
) -> Interval:
    """The bias-corrected bootstrap interval of a value in [0, most], on at most MAX_CELLS equal-mass cells."""
    cells = t if len(t) <= MAX_CELLS else t.cells.bins(MAX_CELLS)
    neg, pos, _ = cells.design.resample(cells, rng, N_RESAMPLES)
    n = neg + pos
    some = n.sum(axis=-1) > 0
    values = statistic(cells.score, n[some], pos[some])
    # On cells a statistic differs a little from its value on all levels; the draws are compared with its own kind.
    centre = float(statistic(cells.score, cells.n[None, :] * 1.0, cells.pos[None, :] * 1.0)[0])
    return within(bias_corrected(value, values, confidence, centre), (0.0, most))
