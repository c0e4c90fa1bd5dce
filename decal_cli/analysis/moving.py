"""What it is worth to move scores to the population where decisions are made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.metrics import Interval
from decal_cli.metrics.confidence import quantile
from decal_cli.tables.clusters import mean_over
from decal_cli.tables.population import Population
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask


@dataclass(frozen=True)
class Moving:
    """Expected utility per decision of scores as they were made and of moved ones; interval: of the difference.

    threshold: acting on scores as they were made from here on is acting on moved ones from the threshold in use on.
    """

    kept: float
    moved: float
    interval: Interval | None
    threshold: float

    @property
    def gain(self) -> float:
        """What moving the scores wins."""
        return self.moved - self.kept


def moving(rows: Rows, task: BinaryTask, population: Population, confidence: float | None) -> Moving:
    """Decisions by the scores as they were made, and by scores that are moved to the population [T (5.5)].

    rows: as they count there, with kept or moved scores. confidence: None for no interval.
    """
    at = task.decision_threshold
    # Moving keeps the order, so that a kept score is above a threshold where its moved score is above the moved one.
    kept = rows.score >= (at if population.kept else float(population.moved(at)))
    moved = (population.moved(rows.score) if population.kept else rows.score) >= at
    label = np.asarray(rows.label, dtype=np.intp)
    utility = np.array(task.utility)
    of_kept, of_moved = utility[kept.astype(np.intp), label], utility[moved.astype(np.intp), label]
    change = of_moved - of_kept
    gain, error = mean_over(change, rows.weights, rows.unit)
    ends = None
    if confidence is not None:
        reach = quantile(confidence) * error
        ends = gain - reach, gain + reach
    before = float(rows.weights @ of_kept / rows.weights.sum())
    return Moving(before, before + gain, ends, population.as_made(at))
