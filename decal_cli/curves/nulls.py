"""Where the isotonic fit of a perfectly calibrated model lies: consistency bands from drawn labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decal_cli.metrics.gaps import whole_rows
from decal_cli.tables.isotonic import pool
from decal_cli.tables.table import BINS, Floats, Table

N_BAND_DRAWS = 200
MAX_BAND_CELLS = 512


class Band(NamedTuple):
    """The values between which the isotonic fit of a calibrated model lies at each score, shape (k,)."""

    score: Floats
    low: Floats
    high: Floats


def consistency_band(t: Table, confidence: float, rng: np.random.Generator) -> Band:
    """Pointwise central range over 200 draws of labels from the scores; above 512 levels, on as many cells.

    After Dimitriadis et al. 2021, sec. 3: a calibrated model has a fit inside the band.
    """
    # Cells of clustered rows hold several clusters each.
    most = max(BINS, min(MAX_BAND_CELLS, int(t.effective_rows / 5))) if t.design.clustered else MAX_BAND_CELLS
    cells = t if len(t) <= most else t.bins(most)
    n = np.asarray(cells.n, dtype=np.float64)
    rows = whole_rows(cells)
    share = rng.binomial(rows, cells.score, size=(N_BAND_DRAWS, len(n))) / rows
    weight = np.tile(n, N_BAND_DRAWS)
    # Each draw is lifted by 2 above the one before, so that one call pools them all.
    lift = 2.0 * np.repeat(np.arange(N_BAND_DRAWS), len(n))
    starts, pooled, positives = pool(np.arange(N_BAND_DRAWS * len(n)), weight, (share.ravel() + lift) * weight)
    fits = np.repeat(positives / pooled, np.diff(np.append(starts, N_BAND_DRAWS * len(n)))) - lift
    low, high = np.quantile(fits.reshape(N_BAND_DRAWS, -1), [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return Band(cells.score, low, high)
