"""Decisions as they are made: units, what each action is worth on them, and the action that each of them gets.

One type for two classes and K classes, two actions and A actions, stakes that all rows share and stakes of each row.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.metrics.numerics import class_decisions
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.confusion import Confusion
from decal_cli.tables.estimate import one_missed
from decal_cli.tables.pairs import PairTable
from decal_cli.tables.row_utilities import RowStakes
from decal_cli.tables.table import Floats, Ints, Table
from decal_cli.tables.units import Estimate, Independent, Products, Sampling, Units
from decal_cli.task import ClassDecision, Task

MAX_UNSEEN = 1 << 12
"""Rows that tell what a row that could have been missed may be like."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """stakes: the utility of each action at each label, (A, K); or (A, K, m), where every unit has its own.

    action: what each unit gets, int (m,).
    """

    units: Units
    stakes: Floats
    action: Ints

    @classmethod
    def of_table(cls, t: Table, task: Task) -> Decisions:
        """On scores of two classes. A unit is what gets one action and has one label."""
        units, action = _units_of(t.confusion(*task.decision_thresholds))
        return cls(units, np.array(task.undominated, dtype=np.float64), action)

    @classmethod
    def of_pairs(cls, pairs: PairTable, task: Task) -> tuple[Decisions, Decisions]:
        """Of two models on the same rows: on units that get one action by A, one by B, and have one label."""
        stakes = np.array(task.undominated, dtype=np.float64)
        n = len(stakes)
        units, action = _units_of(pairs.confusion(*task.decision_thresholds))
        return cls(units, stakes, action // n), cls(units, stakes, action % n)

    @classmethod
    def of_classes(cls, c: ClassTable, decision: ClassDecision) -> Decisions:
        """On the probabilities of several classes. A unit is a row."""
        action = class_decisions.decide(c, decision).action
        return cls(c.units, np.array(decision.utility, dtype=np.float64), action)

    @classmethod
    def of_rows(cls, u: RowStakes, score: Floats | None = None) -> Decisions:
        """Where every row has stakes of its own; by another score of the rows, if one is given. A unit is a row."""
        return cls(u.rows.units, u.utility, u.response(u.rows.score if score is None else score))

    def with_unseen(self) -> Decisions:
        """The same, followed by units without weight that show what a row that could have been missed may be.

        Such a row has the action and the stakes of a row that is there, and any label.
        """
        labels, rows = self.stakes.shape[1], len(self.units)
        like = np.linspace(0, rows - 1, min(rows, MAX_UNSEEN)).astype(np.int64)
        label = np.append(self.units.label, np.repeat(np.arange(labels), len(like)))
        action = np.append(self.action, np.tile(self.action[like], labels))
        count = len(label) - rows
        stakes = self.stakes
        if stakes.ndim == 3:
            stakes = np.concatenate((stakes, np.tile(stakes[:, :, like], labels)), axis=2)
        units = replace(
            self.units,
            label=label,
            weight=np.append(self.units.weight, np.zeros(count)),
            sampling=self.units.sampling.followed(self.units.weight),
            kind=np.append(np.zeros(rows, dtype=np.int64), 1 + (action * labels + label)[rows:]),
        )
        return Decisions(units, stakes, action)

    @cached_property
    def worth(self) -> Floats:
        """What each action is worth on each unit, by its label, shape (A, m)."""
        if self.stakes.ndim == 2:
            return self.stakes[:, self.units.label]
        return np.ascontiguousarray(self.stakes[:, self.units.label, np.arange(len(self.units))])

    @cached_property
    def won(self) -> Floats:
        """What the action that it gets is worth on each unit, shape (m,)."""
        return self.worth[self.action, np.arange(len(self.units))]

    def mean(self, values: Any, ends: Floats) -> Estimate:
        """The mean of a number of each unit. ends: what it can be, by action and label, shaped as the stakes."""
        return self._within(self.units.mean(values), ends)

    def _within(self, estimate: Estimate, ends: Floats) -> Estimate:
        low, high = ends.min(axis=(0, 1)), ends.max(axis=(0, 1))
        if ends.ndim == 3:
            low, high = (self.units.sums(each) / self.units.total for each in (low, high))
        return estimate.within(float(low), float(high))

    @property
    def utility(self) -> Estimate:
        """Mean utility per row of the decisions as they are made."""
        return self.mean(self.won, self.stakes)

    def constant(self, action: int) -> Estimate:
        """Mean utility per row where every row gets this action, whatever the model says."""
        worth = self.units.by_label.mean(self.worth[action])
        return self._within(worth, self.stakes[action : action + 1])

    @cached_property
    def best_constant(self) -> int:
        """The action that is worth most where every row gets it, the first of equals."""
        return int(np.argmax(self.units.sums(self.worth)))

    @property
    def most(self) -> float:
        """The most that one action can be worth more than another, on average over rows."""
        most = np.ptp(self.stakes, axis=0).max(axis=0)
        return float(self.units.sums(most) / self.units.total if self.stakes.ndim == 3 else most)

    @property
    def one_row(self) -> float:
        """The variance of a mean that one more row adds, at the threshold of two actions or where stakes are most."""
        stakes, units = self.stakes, self.units
        if stakes.shape[:2] == (2, 2):
            cost, benefit = stakes[0, 0] - stakes[1, 0], stakes[1, 1] - stakes[0, 1]
            product = np.maximum(cost, 0.0) * np.maximum(benefit, 0.0)
            one = float(np.sum(product * units.weight) / units.total) if stakes.ndim == 3 else float(product)
        else:
            one = float((np.ptp(stakes, axis=0).max() / 2) ** 2)
        return float(one_missed(one, units.effective_rows))


@dataclass(frozen=True)
class DecisionChange:
    """Rows whose decision changes, or their summed weight.

    started: rows newly decided 1; stopped: rows no longer decided 1; by label 1 and label 0.
    """

    started_positive: float
    started_negative: float
    stopped_positive: float
    stopped_negative: float

    def times(self, factor: float) -> DecisionChange:
        """The same, every count multiplied."""
        return DecisionChange(*(factor * count for count in astuple(self)))

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


@dataclass(frozen=True, eq=False)
class Change:
    """From one way of deciding to another, on the same units: what it wins, and which decisions it changes."""

    before: Decisions
    after: Decisions
    widened: float = 1.0
    """What its error is widened by, where folds learn from each other's rows."""

    @property
    def gain(self) -> Estimate:
        """Mean utility per row that the change wins.

        Its error holds one more row that might have changed: where no row that is seen does, it would be 0.
        """
        gain = self.before.units.mean(self.after.won - self.before.won)
        return replace(
            gain, adds=gain.influence * self.widened, extra=self.widened**2 * self.before.one_row, missed=0.0
        )

    @property
    def positive(self) -> Floats:
        """How much of each unit counts as label 1, shape (m,)."""
        return np.asarray(self.before.units.label == 1, dtype=np.float64)

    @property
    def decisions(self) -> DecisionChange:
        """The decisions that change, where these are to act or not."""
        weight, positive = self.before.units.weight, self.positive
        started = (self.after.action == 1) & (self.before.action == 0)
        stopped = (self.after.action == 0) & (self.before.action == 1)
        rows = (
            float(weight[moved] @ of_label[moved])
            for moved in (started, stopped)
            for of_label in (positive, 1 - positive)
        )
        return DecisionChange(*rows)


class Acting(Decisions):
    """Decisions to act or not, on labels 0 and 1. Action 1 is to act."""

    @classmethod
    def of(cls, decisions: Decisions) -> Acting:
        """These decisions, where there are two actions. Errors: Undefined."""
        if len(decisions.stakes) != 2:
            raise Undefined(f"needs a task of two actions, and this one has {len(decisions.stakes)}")
        return cls(decisions.units, decisions.stakes, decisions.action)

    @cached_property
    def acts(self) -> NDArray[np.bool_]:
        """Whether each unit is acted on."""
        return self.action == 1

    @cached_property
    def positive(self) -> NDArray[np.bool_]:
        """Whether the label of each unit is 1."""
        return self.units.label == 1

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether the decision on each unit is its label."""
        return self.acts == self.positive

    @property
    def odds(self) -> Floats:
        """What acting costs on label 0, over what it wins on label 1: t* / (1 - t*), of each unit or of all."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((self.stakes[0, 0] - self.stakes[1, 0]) / (self.stakes[1, 1] - self.stakes[0, 1]))

    def share(self, part: Any, whole: Any, empty: str = "") -> Estimate:
        """The share of some units among others. Errors: Undefined, with this reason, where there are no others."""
        among = self.units.mean(whole)
        if among.value <= 0:
            raise Undefined(empty)
        share = (self.units.mean(np.logical_and(part, whole)) / among).within(0.0, 1.0)
        return replace(share, rows=self.units.rows_of(np.broadcast_to(whole, len(self.units))))


def _units_of(at: Confusion) -> tuple[Units, Ints]:
    """The cells of action and label as units, and the action of each: of all actions that some row gets."""
    used = np.flatnonzero(at.weight.any(axis=1))
    label, action = np.repeat((0, 1), len(used)), np.tile(used, 2)
    if at.products is None:
        sampling: Sampling = Independent(at.squares[used].T.ravel())
    else:
        place = action + label * len(at.weight)
        sampling = Products(at.products[np.ix_(place, place)])
    rows = float(at.weight.sum()) ** 2 / float(at.squares.sum())
    kind = np.arange(len(label))
    return Units(label, at.weight[used].T.ravel(), sampling, at.share_known, rows, kind), action
