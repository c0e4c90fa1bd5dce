"""ROC curves, what they become (Brier curves, and back), and where the isotonic fit of a calibrated model lies.

None of it needs calibration: a ROC curve only orders the rows. Its upper hull and the Brier curve of the calibrated
score hold the same (Tasche 2021, remarks 5.3 and 5.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from decal_cli.metrics.gaps import whole_rows
from decal_cli.tables.isotonic import pool
from decal_cli.tables.table import BINS, Floats, Table


@dataclass(frozen=True)
class Roc:
    """Points of a ROC curve, shape (k,) each, of a population in which this share has label 1.

    recall: share of the rows of label 1 that are decided 1; false_alarms: of the rows of label 0.
    """

    recall: Floats
    false_alarms: Floats
    base_rate: float

    @classmethod
    def of_table(cls, t: Table, at: Floats | None = None) -> Roc:
        """Deciding 1 from each threshold on, by default from each score; NaN where a label has no rows."""
        cut = np.searchsorted(t.score, t.score if at is None else at, side="left")
        pos, neg = (np.append(np.cumsum(each[::-1])[::-1], 0.0) for each in (t.pos * 1.0, (t.n - t.pos) * 1.0))
        recall, false_alarms = (each / (each[0] if each[0] > 0 else np.nan) for each in (pos, neg))
        return cls(recall[cut], false_alarms[cut], t.base_rate)

    @classmethod
    def of_brier(cls, brier: Floats, at: Floats, base_rate: float, false_alarms: Floats) -> Roc:
        """The hull of the ROC curve at these false alarms, from a calibrated score's Brier curve: eq. 5.8b.

        Exact where the curve is known at the kinks; with fewer thresholds the hull lies above.
        """
        at, brier = np.append(at, 0.0), np.append(brier, 0.0)
        missed = (brier - at * (1 - base_rate) * false_alarms[:, None]) / ((1 - at) * base_rate)
        return cls(np.clip(1 - missed.max(axis=1), 0.0, 1.0), false_alarms, base_rate)

    def brier(self, at: Floats) -> Floats:
        """The least loss that any of the points, or a constant decision, has at each threshold, shape (K,): eq. 5.8a.

        The Brier curve of the calibrated score, where the points are all those of its ROC curve.
        """
        recall, false_alarms = (np.append(each, (0.0, 1.0)) for each in (self.recall, self.false_alarms))
        missed, alarmed = (1 - at) * self.base_rate, at * (1 - self.base_rate)
        return (missed[:, None] * (1 - recall) + alarmed[:, None] * false_alarms).min(axis=1)


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
    n = np.asarray(cells.n, dtype=float)
    rows = whole_rows(cells)
    share = rng.binomial(rows, cells.score, size=(N_BAND_DRAWS, len(n))) / rows
    weight = np.tile(n, N_BAND_DRAWS)
    # Each draw is lifted by 2 above the one before, so that one call pools them all.
    lift = 2.0 * np.repeat(np.arange(N_BAND_DRAWS), len(n))
    starts, pooled, positives = pool(np.arange(N_BAND_DRAWS * len(n)), weight, (share.ravel() + lift) * weight)
    fits = np.repeat(positives / pooled, np.diff(np.append(starts, N_BAND_DRAWS * len(n)))) - lift
    low, high = np.quantile(fits.reshape(N_BAND_DRAWS, -1), [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return Band(cells.score, low, high)
