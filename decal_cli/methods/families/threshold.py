"""A moved threshold in place of moved scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.tables.rows import Unlabelled

NEVER = 2.0
"""A threshold that no score reaches."""


@model
@dataclass(frozen=True, eq=False)
class Threshold:
    """The score as it is, decided from this threshold on; 0 decides 1 always, 2 never."""

    threshold: float

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(rows.score, threshold=np.full(len(rows), self.threshold))


@method(title="Adjusted threshold", kind="recalibration", source="[R] prop. 3.3", needs=("task",))
def threshold(rows: Training) -> Threshold:
    """Another threshold in place of t*; the scores stay as they are.

    Decides 1 from the smallest training score on whose isotonic fit reaches t*, as the metric threshold_adjusted has
    it: on the training rows that is deciding by the isotonic fit at t*. Where every fit reaches t*, 1 is decided for
    all rows; where none does, 0 is. It is worth what isotonic recalibration is worth at this t*, and nothing at others.
    """
    assert rows.task is not None
    t = rows.table
    reached = np.flatnonzero(t.isotonic.pos / t.isotonic.n >= rows.task.threshold)
    if not len(reached):
        return Threshold(NEVER)
    return Threshold(0.0 if reached[0] == 0 else float(t.score[t.pools[reached[0]]]))
