"""What it is worth to move scores to the population where decisions are made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decal_cli.declarations.document import Share
from decal_cli.metrics import Interval
from decal_cli.metrics.confidence import quantile
from decal_cli.tables.cells import CellTable
from decal_cli.tables.population import Population
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats
from decal_cli.task import BinaryTask


@dataclass(frozen=True)
class Moving:
    """Expected utility per decision of scores as they were made and of moved ones; interval: of the difference.

    threshold: acting on scores as they were made from here on is acting on moved ones from the threshold in use on.
    """

    kept: float
    moved: float
    gain: float
    interval: Interval | None
    threshold: Share


def moving(rows: Rows, task: BinaryTask, population: Population, confidence: float | None) -> Moving:
    """Decisions by the scores as they were made, and by scores that are moved to the population [T (5.5)].

    rows: as they count there, with kept or moved scores. confidence: None for no interval.
    """
    at, t = task.decision_threshold, rows.table
    by_label = np.array(task.utility).T

    def won(score: Floats) -> tuple[Floats, Floats]:
        """What each row is worth by the score as it was made, and by the moved one, at each label."""
        # Moving keeps the order: a kept score is above a threshold where its moved score is above the moved one.
        kept = score >= (at if population.kept else float(population.moved(at)))
        moved = (population.moved(score) if population.kept else score) >= at
        return by_label[:, kept.astype(np.intp)], by_label[:, moved.astype(np.intp)]

    def change(score: Floats) -> Floats:
        of_kept, of_moved = won(score)
        return of_moved - of_kept

    won_more = t.mean_of(change)
    gain = won_more.value
    ends = None
    if confidence is not None:
        reach = quantile(confidence) * won_more.error
        ends = gain - reach, gain + reach
    before = t.mean_of(lambda score: won(score)[0]).value
    after = before + gain
    return Moving(before, after, after - before, ends, population.as_made(at))


def decided(rows: Rows, task: BinaryTask, population: Population) -> bool:
    """Whether it is known how every row is decided by both scores, which cells may not tell."""
    t, at = rows.table, task.decision_threshold
    ends = (at, population.as_made(at))
    return not isinstance(t, CellTable) or all(t.straddled(each) is None for each in ends)
