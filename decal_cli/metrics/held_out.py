"""Changes of decisions that are learned and judged on held-out rows: by recalibrated scores, and by the probe.

Each is made once for every kind of rows and stakes; its gain, its error and the decisions that it changes follow from
one set of units.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.learn import held_out
from decal_cli.learn.probe import WIDENED, ClassProbed, Probed, Recalibrated, all_deals
from decal_cli.metrics.decisions import Change, Decisions
from decal_cli.tables.classes import best_actions
from decal_cli.tables.resample import TIE
from decal_cli.tables.row_utilities import RowStakes
from decal_cli.tables.table import Floats, Ints, Table
from decal_cli.tables.units import Estimate, Units
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
        before, after = _of_deals(u, held.units, held.score, held.recalibrated)
        return cls(before, after, WIDENED, lambda other: cls.of_rows(u, seed, other))

    @classmethod
    def of_classes(cls, now: Decisions, stakes: ClassDecision | RowStakes, recalibrated: Recalibrated) -> Recalibrating:
        """On the probabilities of several classes, by scalings that have not seen the rows."""
        before, after = _of_class_deals(now, stakes, recalibrated.all_deals)
        return cls(before, after)

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
        dealt = all_deals(probed)
        if isinstance(stakes, RowStakes):
            before, after = _of_deals(stakes, dealt.units, dealt.recalibrated, dealt.probe)
        else:
            matrix, respond = np.array(stakes.undominated), response_to(stakes)
            before, after = (Decisions(dealt.units, matrix, respond(s)) for s in (dealt.recalibrated, dealt.probe))
        return cls(before, after, WIDENED, dealt.judge)

    @classmethod
    def of_classes(
        cls, now: Decisions, stakes: ClassDecision | RowStakes, recalibrated: Recalibrated, probed: ClassProbed
    ) -> Featured:
        """On the probabilities of several classes."""
        _, before = _of_class_deals(now, stakes, recalibrated.all_deals)
        _, after = _of_class_deals(now, stakes, probed.score)
        return cls(before, after, WIDENED)

    @property
    def positive(self) -> Floats:
        """By half the label, and by half the judge's probability, shape (m,)."""
        by_label = super().positive
        return by_label if isinstance(self.judge, tuple) else (by_label + self.judge) / 2

    @property
    def gain(self) -> Estimate:
        """The mean of what the change wins by the labels and of what it wins by the judge, where there is one.

        The judge's bias is as large as half of what the two differ by, at most.
        """
        by_label = super().gain
        if isinstance(self.judge, tuple):
            return by_label
        units, stakes, at = self.before.units, self.before.stakes, np.arange(len(self.before.units))
        by_judge = np.zeros(len(at))
        for label, chance in ((0, 1 - self.judge), (1, self.judge)):
            worth = stakes[:, label, at] if stakes.ndim == 3 else stakes[:, label, None] + np.zeros(len(at))
            by_judge += chance * (worth[self.after.action, at] - worth[self.before.action, at])
        mean = units.mean((self.after.won - self.before.won + by_judge) / 2)
        bias = abs(by_label.value - mean.value)
        return replace(by_label, value=mean.value, adds=mean.influence * self.widened, bias=bias)


@dataclass(frozen=True, eq=False)
class SumOfGains(Estimate):
    """A gain, and the gain beyond it.

    The two rest on the same labels, but never on one label in the same direction: where recalibration changes a
    decision, the features can only change it back. So their covariance is not above 0, and the sum varies no more than
    one of independent gains.
    """

    parts: tuple[Estimate, ...] = ()

    def half_width(self, confidence: float) -> float:
        """That of a sum of independent gains."""
        return math.hypot(*(part.half_width(confidence) for part in self.parts))


def post_training(recalibrating: Recalibrating, featured: Featured) -> Estimate:
    """The gain of recalibration and the gain beyond it."""
    parts = recalibrating.gain, featured.gain
    value, variance = sum(part.value for part in parts), sum(part.error**2 for part in parts)
    units = parts[0].units
    return SumOfGains(value, np.zeros(len(units)), units, extra=variance, missed=0.0, parts=parts)


def _of_deals(u: RowStakes, units: Units, *scores: Floats) -> list[Decisions]:
    """The decisions by scores of these rows, in all deals, where every row has stakes of its own."""
    deals = len(units) // len(u.rows)
    stakes = u.utility if u.utility.ndim == 2 else np.tile(u.utility, deals)
    responses = ([u.response(part) for part in np.split(score, deals)] for score in scores)
    return [Decisions(units, stakes, np.concatenate(response)) for response in responses]


def _of_class_deals(now: Decisions, stakes: ClassDecision | RowStakes, score: Floats) -> tuple[Decisions, Decisions]:
    """The decisions as they are, and by probabilities of several classes, on the same rows in all deals."""
    rows = len(now.units)
    deals, respond = len(score) // rows, response_to(stakes)
    utility = now.stakes if now.stakes.ndim == 2 else np.tile(now.stakes, deals)
    action = np.concatenate([respond(part) for part in np.split(score, deals)])
    before = Decisions(now.units.dealt(deals), utility, np.tile(now.action, deals))
    return before, replace(before, action=action)
