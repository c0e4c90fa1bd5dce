"""Where the isotonic fit of a perfectly calibrated model would lie: consistency bands from parametric nulls."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decal_cli.tables.isotonic import pool
from decal_cli.tables.table import Floats, Table

DRAWS = 200
CELLS = 512


class Band(NamedTuple):
    """At each score, shape (k,): between which values the isotonic fit of a calibrated model lies."""

    score: Floats
    low: Floats
    high: Floats


def consistency_band(t: Table, confidence: float, rng: np.random.Generator) -> Band:
    """Pointwise central range over 200 draws of labels from the scores; above 512 levels, on as many cells.

    After Dimitriadis, Gneiting & Jordan 2021, sec. 3: a fit inside the band is what a calibrated model would show.
    """
    cells = t if len(t) <= CELLS else t.bins(CELLS)
    n = np.asarray(cells.n, dtype=np.float64)
    rows = n if cells.n2 is None else np.maximum(np.rint(n**2 / cells.n2), 1)
    share = rng.binomial(rows.astype(np.int64), cells.score, size=(DRAWS, len(n))) / rows
    weight = np.tile(n, DRAWS)
    # Each draw is lifted by 2 above the one before, so that one call pools them all.
    lift = 2.0 * np.repeat(np.arange(DRAWS), len(n))
    starts, pooled, positives = pool(np.arange(DRAWS * len(n)), weight, (share.ravel() + lift) * weight)
    fits = np.repeat(positives / pooled, np.diff(np.append(starts, DRAWS * len(n)))) - lift
    low, high = np.quantile(fits.reshape(DRAWS, -1), [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return Band(cells.score, low, high)
