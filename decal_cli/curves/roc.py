"""ROC curves, and what they become: precision and recall, lift, Brier curves, and back.

None of it needs calibration: a ROC curve only orders the rows. Its upper hull and the Brier curve of the calibrated
score hold the same (Tasche 2021, remarks 5.3 and 5.4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.tables.table import Floats, Table


@dataclass(frozen=True, eq=False)
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
        pos, neg = (np.append(np.cumsum(each[::-1])[::-1], 0.0)[cut] for each in (t.pos * 1.0, (t.n - t.pos) * 1.0))
        return cls(_over(pos, t.positives), _over(neg, t.negatives), t.base_rate)

    @classmethod
    def of_precision(cls, precision: Floats, recall: Floats, base_rate: float) -> Roc:
        """From a precision-recall curve; precision above 0 wherever recall is."""
        odds = base_rate / (1 - base_rate)
        return cls(recall, recall * odds * _over(1 - precision, precision, 0.0), base_rate)

    @classmethod
    def of_lift(cls, lift: Floats, share: Floats, base_rate: float) -> Roc:
        """From a lift curve: the lift among the share of all rows that is decided 1."""
        return cls(lift * share, share * (1 - lift * base_rate) / (1 - base_rate), base_rate)

    @classmethod
    def of_brier(cls, brier: Floats, at: Floats, base_rate: float, false_alarms: Floats) -> Roc:
        """The hull of the ROC curve at these false alarms, from a calibrated score's Brier curve: eq. 5.8b.

        Exact where the curve is known at the kinks; with fewer thresholds the hull lies above.
        """
        at, brier = np.append(at, 0.0), np.append(brier, 0.0)
        missed = (brier - at * (1 - base_rate) * false_alarms[:, None]) / ((1 - at) * base_rate)
        return cls(np.clip(1 - missed.max(axis=1), 0.0, 1.0), false_alarms, base_rate)

    @property
    def share(self) -> Floats:
        """Of all rows, decided 1."""
        return self.base_rate * self.recall + (1 - self.base_rate) * self.false_alarms

    @property
    def precision(self) -> Floats:
        """Share of label 1 among the rows that are decided 1; NaN where none is."""
        return _over(self.base_rate * self.recall, self.share)

    @property
    def lift(self) -> Floats:
        """Precision over the base rate."""
        return _over(self.recall, self.share)

    def brier(self, at: Floats) -> Floats:
        """The least loss that any of the points, or a constant decision, has at each threshold, shape (K,): eq. 5.8a.

        The Brier curve of the calibrated score, where the points are all those of its ROC curve.
        """
        recall, false_alarms = (np.append(each, (0.0, 1.0)) for each in (self.recall, self.false_alarms))
        missed, alarmed = (1 - at) * self.base_rate, at * (1 - self.base_rate)
        return np.asarray((missed[:, None] * (1 - recall) + alarmed[:, None] * false_alarms).min(axis=1))


def _over(part: Floats, whole: Floats | float, empty: float = np.nan) -> Floats:
    """part / whole; a fixed value where the whole is nothing."""
    whole = np.broadcast_to(np.asarray(whole, dtype=np.float64), part.shape)
    return np.divide(part, whole, out=np.full(part.shape, empty), where=whole > 0)
