"""A moved threshold in place of moved scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.methods.numerics.checks import need
from decal_cli.tables.rows import Unlabelled

NEVER = 2.0
"""A threshold that no score reaches."""


@model
@dataclass(frozen=True, eq=False)
class Threshold:
    """The score as it is; act when score >= threshold: 0 acts always, 2 never."""

    threshold: float

    def __post_init__(self) -> None:
        """Refuse what is no threshold of scores. Errors: ValueError."""
        need(0 <= self.threshold <= NEVER, "a threshold of scores lies in [0, 1], or is 2 where nothing reaches it")

    @property
    def note(self) -> str:
        """What to act on."""
        if self.threshold == NEVER:
            return "No recalibrated score reaches t*: always decide 0."
        return f"Act when score >= {self.threshold!r}."

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(rows.score, threshold=np.full(len(rows), self.threshold))


@method(
    title="Adjusted threshold",
    kind="recalibration",
    source=cite("Perez-Lebel et al. 2025", "prop. 3.3"),
    needs=("task",),
)
def threshold(rows: Training) -> Threshold:
    """Another threshold in place of t*; the scores stay as they are.

    Act when score >= the smallest training score whose isotonic fit reaches t* (the metric threshold_adjusted); on the
    training rows this decides as the isotonic fit does at t*. Where every fit reaches t*, all rows are decided 1; where
    none does, 0. It gains what isotonic recalibration gains at this t*, and nothing at other thresholds.
    """
    assert rows.task is not None
    t = rows.table
    reached = np.flatnonzero(t.isotonic.pos / t.isotonic.n >= rows.task.threshold)
    if not len(reached):
        return Threshold(NEVER)
    return Threshold(0.0 if reached[0] == 0 else float(t.score[t.pools[reached[0]]]))
