"""Changes of decisions that are learned and judged on held-out rows: by recalibrated scores, and by the probe.

Each is made once for every kind of rows and stakes; its gain, its error and the decisions that it changes follow from
one set of units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.learn import held_out
from decal_cli.learn.class_folds import ClassProbed, Recalibrated
from decal_cli.learn.probe import WIDENED, Probed
from decal_cli.metrics.decisions import Change, Decisions
from decal_cli.tables.classes import best_actions
from decal_cli.tables.resample import TIE
from decal_cli.tables.row_utilities import RowStakes
from decal_cli.tables.table import FEWEST_ROWS, Floats, Ints, Table
from decal_cli.tables.units import Estimate, units_of_rows
from decal_cli.task import ClassDecision, Task

Response = Callable[[Floats], Ints]
"""The best action of each unit by some scores."""


def response_to(stakes: Task | ClassDecision | RowStakes) -> Response:
    """The best actions of a task, or of rows with stakes of their own."""
    if isinstance(stakes, RowStakes):
        return stakes.response
    if isinstance(stakes, ClassDecision):
        return lambda score: best_actions(score, np.array(stakes.utility))
    at = np.array(stakes.thresholds) * (1 - TIE)
    return lambda score: np.searchsorted(at, score, side="right")


@dataclass(frozen=True, eq=False)
class Recalibrating(Change):
    """From acting on the score as it is to acting on the recalibrated one."""

    again: Callable[[held_out.Method], Recalibrating] | None = None
    """The same by another calibrator; None where there is none."""

    def by(self, method: held_out.Method) -> Recalibrating:
        """The same by this calibrator. Errors: Undefined, where it is none for these scores."""
        if method == "chosen":
            return self
        if self.again is None:
            raise Undefined(f"{method} is for scores of two classes")
        return self.again(method)

    @classmethod
    def of_table(cls, t: Table, task: Task, seed: int, method: held_out.Method = "chosen") -> Recalibrating:
        """Errors: Undefined, where there are too few rows to hold some out."""
        held = held_out.of_table(t, seed, method)
        now = np.searchsorted(task.decision_thresholds, held.score, side="right")
        stakes = np.array(task.undominated, dtype=np.float64)
        before, after = (Decisions(held.units, stakes, act) for act in (now, response_to(task)(held.recalibrated)))
        return cls(before, after, WIDENED, lambda other: cls.of_table(t, task, seed, other))

    @classmethod
    def of_rows(cls, u: RowStakes, seed: int, method: held_out.Method = "chosen") -> Recalibrating:
        """Where every row has stakes of its own, by scores of two classes; the rows in the order of their content."""
        held = held_out.of_rows(u.rows, seed, method)
        before, after = (Decisions.of_rows(u, score) for score in (u.rows.score, held.recalibrated))
        return cls(before, after, WIDENED, lambda other: cls.of_rows(u, seed, other))

    @classmethod
    def of_classes(cls, now: Decisions, response: Response, recalibrated: Recalibrated) -> Recalibrating:
        """On the probabilities of several classes, by scalings that have not seen the rows."""
        return cls(now, replace(now, action=response(recalibrated.score)))

    @property
    def over_constant(self) -> Change:
        """From the best constant action to acting on the recalibrated score."""
        always = np.full(len(self.before.units), self.before.best_constant)
        return Change(replace(self.before, action=always), self.after, self.widened)


@dataclass(frozen=True, eq=False)
class Featured(Change):
    """From acting on the recalibrated score to acting on the probe, which knows the features.

    judge: the probability of label 1 of each unit that is no part of the probe's own decision, shape (m,); () where the
    labels alone judge.
    """

    judge: Floats | tuple[()] = ()

    @classmethod
    def of_scores(cls, probed: Probed, stakes: Task | RowStakes) -> Featured:
        """On scores of two classes. Errors: Undefined, where there are too few rows to hold some out."""
        if not len(probed.probe):
            raise Undefined(f"needs at least {FEWEST_ROWS} rows to learn from some and judge on others")
        units = units_of_rows(probed.label, probed.weight, probed.unit)
        matrix = np.array(stakes.undominated) if isinstance(stakes, Task) else stakes.utility
        now, then = (response_to(stakes)(score) for score in (probed.recalibrated, probed.probe))
        return cls(Decisions(units, matrix, now), Decisions(units, matrix, then), WIDENED, probed.judge)

    @classmethod
    def of_classes(
        cls, now: Decisions, response: Response, recalibrated: Recalibrated, probed: ClassProbed
    ) -> Featured:
        """On the probabilities of several classes."""
        before, after = (replace(now, action=response(each.score)) for each in (recalibrated, probed))
        return cls(before, after, WIDENED)

    @property
    def positive(self) -> Floats:
        """By half the label, and by half the judge's probability, shape (m,)."""
        by_label = super().positive
        return by_label if isinstance(self.judge, tuple) else (by_label + self.judge) / 2

    @property
    def gain(self) -> Estimate:
        """The mean of what the change wins by the labels and of what it wins by the judge, where there is one.

        The error is that of the labels alone: the judge's is hard to state, and smaller.
        """
        by_label = super().gain
        if isinstance(self.judge, tuple):
            return by_label
        units, stakes, at = self.before.units, self.before.stakes, np.arange(len(self.before.units))
        change = np.zeros(len(at))
        for label, chance in ((0, 1 - self.judge), (1, self.judge)):
            worth = stakes[:, label, at] if stakes.ndim == 3 else stakes[:, label, None] + np.zeros(len(at))
            change += chance * (worth[self.after.action, at] - worth[self.before.action, at])
        by_judge = float(units.sums(change) / units.total)
        return replace(by_label, value=(by_label.value + by_judge) / 2)


def post_training(recalibrating: Recalibrating, featured: Featured) -> Estimate:
    """The sum of the gain of recalibration and the gain beyond it, with the error of a sum of independent gains.

    The two rest on the same labels, but never on one label in the same direction: where recalibration changes a
    decision, the features can only change it back. So their covariance is not above 0, and the error is not too small.
    """
    one, other = recalibrating.gain, featured.gain
    nothing = np.zeros(len(one.units))
    return Estimate(one.value + other.value, nothing, one.units, extra=one.error**2 + other.error**2, missed=0.0)
