"""Bootstrap intervals of statistics that take all resamples of a few cells at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from decal_cli.metrics.confidence import Interval, bias_corrected
from decal_cli.tables import resample as draw
from decal_cli.tables.table import Floats, Table

N_RESAMPLES = 200
MAX_CELLS = 128
INTERVAL_TEXT = f"bias-corrected bootstrap; above {MAX_CELLS} levels, of as many equal-mass cells"

Statistic = Callable[[Floats, Floats, Floats], Floats]
"""(score, n, pos) -> the values; n and pos of shape (resamples, levels), one level for each score."""


def interval(t: Table, statistic: Statistic, rng: np.random.Generator, confidence: float, value: float) -> Interval:
    """The bias-corrected bootstrap interval of a value in [0, 1], on at most MAX_CELLS equal-mass cells."""
    cells = t if len(t) <= MAX_CELLS else t.cells.bins(MAX_CELLS)
    n, pos = _resamples(cells, rng)
    some = n.sum(axis=-1) > 0
    values = statistic(cells.score, n[some], pos[some])
    # On cells a statistic differs a little from its value on all levels; the draws are compared with its own kind.
    centre = float(statistic(cells.score, cells.n[None, :] * 1.0, cells.pos[None, :] * 1.0)[0])
    low, high = (min(max(end, 0.0), 1.0) for end in bias_corrected(value, values, confidence, centre))
    return low, high


def _resamples(cells: Table, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Rows and positives of the resamples, shape (N_RESAMPLES, m) each; as Table.resample draws one."""

    def repeated(values: Floats) -> Floats:
        return np.broadcast_to(values, (N_RESAMPLES, len(values)))

    if cells.n2 is None or cells.pos2 is None:
        neg, pos = (draw.poisson(rng, repeated(part)) for part in (cells.n - cells.pos, cells.pos))
    else:
        neg, _ = draw.weighted_poisson(rng, repeated(cells.n - cells.pos), repeated(cells.n2 - cells.pos2))
        pos, _ = draw.weighted_poisson(rng, repeated(cells.pos), repeated(cells.pos2))
    return neg + pos, pos
