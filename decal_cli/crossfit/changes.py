"""Which decisions change from one rule to another, by direction and label, and what that is worth.

The changes come from the same held-out decisions as the gains: a gain is u_delta times the worth of its change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.crossfit.probe import Probed
from decal_cli.crossfit.recalibration import from_top, learned_cuts, need_rows
from decal_cli.errors import Undefined
from decal_cli.tables.estimate import dot
from decal_cli.tables.table import CELLS, FEWEST_ROWS, Table


@dataclass(frozen=True)
class DecisionChange:
    """Rows whose decision changes, or their summed weight.

    started: rows newly decided 1; stopped: rows no longer decided 1; by label 1 and label 0.
    """

    started_positive: float
    started_negative: float
    stopped_positive: float
    stopped_negative: float

    @property
    def started(self) -> float:
        """Rows newly decided 1."""
        return self.started_positive + self.started_negative

    @property
    def stopped(self) -> float:
        """Rows no longer decided 1."""
        return self.stopped_positive + self.stopped_negative

    @property
    def true_positives(self) -> float:
        """True positives more; as many false negatives fewer."""
        return self.started_positive - self.stopped_positive

    @property
    def false_positives(self) -> float:
        """False positives more; as many true negatives fewer."""
        return self.started_negative - self.stopped_negative

    def worth(self, threshold: float) -> float:
        """The gain of the change per unit of u_delta, summed over rows."""
        return self.true_positives * (1 - threshold) - self.false_positives * threshold


def change_of_recalibration(
    t: Table, threshold: float, decision_threshold: float, rng: np.random.Generator
) -> DecisionChange:
    """From acting on the score to acting as the other folds' isotonic fit says; `crossfitted_gain` is its worth.

    Errors: Undefined where there are too few rows to hold some out.
    """
    need_rows(t)
    cells = t.cells
    neg, pos = cells.split(rng)
    cuts = learned_cuts(neg, pos, threshold)
    folds = np.arange(len(cuts))
    false_alarms, hits = t.confusion(decision_threshold).weight[1]
    level = int(np.searchsorted(t.score, decision_threshold, side="left"))
    cell = level if cells is t else int(np.searchsorted(t.bin_starts(CELLS), level, side="right")) - 1
    rows = []
    for counts, acted in ((pos, hits), (neg, false_alarms)):
        sums = from_top(counts)
        before = sums[:, min(cell + 1, len(cells))].astype(np.float64)
        if cell < len(cells) and (inside := float(counts[:, cell].sum())) > 0:
            # The threshold may lie inside of a cell: each fold has the same share of it above the threshold.
            before = before + counts[:, cell] * ((acted - float(before.sum())) / inside)
        change = sums[folds, cuts] - before
        rows += [float(np.maximum(change, 0).sum()), float(np.maximum(-change, 0).sum())]
    started_positive, stopped_positive, started_negative, stopped_negative = rows
    return DecisionChange(started_positive, started_negative, stopped_positive, stopped_negative)


def change_beyond(probed: Probed, threshold: float, total: float) -> DecisionChange:
    """From the recalibrated decisions of the probe's own folds to the probe's; `gain_beyond` is its worth.

    As there, a row counts as label 1 by half with its label and by half with the judge's probability. total: the rows
    of the table, or their summed weight. Errors: Undefined where there are too few rows.
    """
    if not len(probed.probe):
        raise Undefined(f"needs at least {FEWEST_ROWS} rows to learn from some and judge on others")
    acts, now = probed.probe >= threshold, probed.isotonic >= threshold
    scale = total / float(probed.weight.sum())
    rows = []
    for moved in (np.flatnonzero(acts & ~now), np.flatnonzero(now & ~acts)):
        weight = probed.weight[moved]
        positive = dot(weight, (probed.label[moved] + probed.judge[moved]) / 2)
        rows += [scale * positive, scale * (float(weight.sum()) - positive)]
    return DecisionChange(*rows)
