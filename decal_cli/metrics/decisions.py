"""Decisions as they are made: units, what each action is worth on them, and the action that each of them gets.

One type for two classes and K classes, two actions and A actions, stakes that all rows share and stakes of each row.
What is learned changes decisions on held-out rows: by recalibrated scores, and by the probe. The gain of a change, its
error and the decisions that it changes follow from one set of units.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.learn import held_out
from decal_cli.learn.forward import Forward
from decal_cli.learn.held_out import WIDENED
from decal_cli.learn.probe import ClassProbed, Judge, Probed, Recalibrated
from decal_cli.tables.classes import NEARLY, ClassTable, best_actions, best_by_block
from decal_cli.tables.estimate import one_missed
from decal_cli.tables.memo import once
from decal_cli.tables.pairs import PairTable
from decal_cli.tables.resample import TIE
from decal_cli.tables.row_utilities import RowStakes
from decal_cli.tables.table import Floats, Ints, Table
from decal_cli.tables.units import EVERY, Estimate, Independent, Units, runs, summed, units_of_rows, with_zeros
from decal_cli.tables.utilities import Utilities, actions_at
from decal_cli.task import BinaryTask, ClassDecision, Task

MAX_UNSEEN = 1 << 12
"""Rows that tell what a row that could have been missed may be like."""
_TIE = 1e-12
"""Utilities of constant actions that differ by less, as a share of the largest payoff, are equal but for rounding."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """Units, what actions are worth on them, and the action of each.

    stakes: the utility of each action at each label. action: the number of the action that each unit gets, int (m,).
    """

    units: Units
    stakes: Utilities
    action: Ints

    @classmethod
    def of_table(cls, t: Table, task: Task) -> Decisions:
        """Decisions on scores of two classes. A unit is all rows that get one action and have one label."""
        units, action = t.by_action(*task.decision_thresholds)
        return cls(units, Utilities.of(task.undominated), action)

    @classmethod
    def of_pairs(cls, pairs: PairTable, task: Task) -> tuple[Decisions, Decisions]:
        """Decisions of two models on the same rows. A unit gets one action by A, one by B, and has one label."""
        stakes = Utilities.of(task.undominated)
        n = len(stakes)
        units, action = pairs.by_action(*task.decision_thresholds)
        return cls(units, stakes, action // n), cls(units, stakes, action % n)

    @classmethod
    def of_classes(cls, c: ClassTable, decision: ClassDecision) -> Decisions:
        """Decisions on the probabilities of several classes. A unit is a row."""
        action = decide(c, decision).action
        return cls(c.units, Utilities.of(decision.utility), action)

    @classmethod
    def of_rows(cls, u: RowStakes, score: Floats | None = None) -> Decisions:
        """Decisions on rows with stakes of their own, by their score or the one that is given. A unit is a row."""
        return cls(u.rows.units, u.utility, u.response(u.rows.score if score is None else score))

    def with_unseen(self) -> Decisions:
        """These decisions, and units without weight that show what a row that could have been missed may be.

        Such a row has the action and the stakes of a row that is there, and any label.
        """
        labels, rows, sampling = self.stakes.classes, len(self.units), self.units.sampling
        assert isinstance(sampling, Independent)  # each unit is a row
        like = np.linspace(0, rows - 1, min(rows, MAX_UNSEEN)).astype(np.int64)
        count = labels * len(like)
        label = np.append(self.units.label, np.repeat(np.arange(labels, dtype=self.units.label.dtype), len(like)))
        action = np.append(self.action, np.tile(self.action[like], labels))
        units = replace(
            self.units,
            label=label,
            weight=with_zeros(self.units.weight, count),
            sampling=sampling.followed(count),
            kind=np.append(np.zeros(rows, np.int16), 1 + action[rows:] * np.int16(labels) + label[rows:]),
        )
        return Decisions(units, self.stakes.followed(np.tile(like, labels)), action)

    def otherwise(self) -> Decisions:
        """These decisions, with another action of rows that could have been missed."""
        return replace(self, action=np.where(self.units.weight > 0, self.action, (self.action + 1) % len(self.stakes)))

    def worth(self, action: int, which: Any = EVERY) -> Floats:
        """What an action is worth on each unit, or on some of them, by its label, shape (m,)."""
        return self.stakes.take(which).at(action, self.units.label[which])

    def best(self, which: Any = EVERY) -> Floats:
        """What the best action is worth on each unit, or on some of them, by its label, shape (m,)."""
        return reduce(np.maximum, (self.worth(action, which) for action in range(len(self.stakes))))

    def won(self, which: Any = EVERY) -> Floats:
        """What the action that each unit gets, or some of them, is worth on it, shape (m,)."""
        return self.won_at(self.units.label[which], which)

    def won_at(self, label: Any, which: Any = EVERY) -> Floats:
        """What the action that each unit gets is worth at a label, shape (m,). label: one for all, or of each, (m,)."""
        return self.stakes.take(which).at(self.action[which], label)

    def mean(self, values: Any, ends: Callable[[Utilities], Utilities] = lambda utilities: utilities) -> Estimate:
        """The mean of a number of each unit. ends: makes what it can be, by action and label, of the utilities."""
        return self._within(self.units.mean(values), ends)

    def _within(self, estimate: Estimate, ends: Callable[[Utilities], Utilities]) -> Estimate:
        return estimate.within(self._mean_of(lambda u: ends(u).least), self._mean_of(lambda u: ends(u).most))

    def _mean_of(self, number: Callable[[Utilities], Any]) -> float:
        """The mean over rows of a number that utilities give: that number, where all units share them."""
        if not self.stakes.own:
            return float(number(self.stakes))

        def of_each(which: Any) -> Floats:
            return np.broadcast_to(number(self.stakes.take(which)), self.action[which].shape)

        return self.units.mean(of_each).value

    def _most_of(self, number: Callable[[Utilities], Any]) -> float:
        """The most over units of a number that utilities give."""
        return max(float(np.max(number(self.stakes.take(part)))) for part in runs(len(self.units)))

    @cached_property
    def utility(self) -> Estimate:
        """Mean utility per row of the decisions as they are made."""
        return self.mean(self.won)

    def constant(self, action: int) -> Estimate:
        """Mean utility per row where every row gets this action, whatever the model says."""
        worth = self.units.by_label.mean(partial(self.worth, action))
        return self._within(worth, lambda utilities: utilities.of_actions([action]))

    def over(self, action: int) -> Estimate:
        """Mean utility per row of the decisions as they are made beyond that of this action on every row."""

        def ahead(which: Any) -> Floats:
            return self.won(which) - self.worth(action, which)

        return self.mean(ahead, lambda utilities: utilities.beyond(action))

    @cached_property
    def best_constant(self) -> int:
        """The action that is worth most where every row gets it, the first of those that are equal but for rounding."""
        each = np.array([self.units.mean(partial(self.worth, action)).value for action in range(len(self.stakes))])
        return int(np.argmax(each >= each.max() - _TIE * self._most_of(lambda utilities: utilities.largest)))

    @property
    def most(self) -> float:
        """The most that one action can be worth more than another, on average over rows."""
        return self._mean_of(lambda utilities: reduce(np.maximum, utilities.apart))

    @property
    def one_row(self) -> float:
        """The variance of a mean that one more row adds, at the threshold of two actions or where stakes are most."""
        if (len(self.stakes), self.stakes.classes) == (2, 2):
            one = self._mean_of(_at_threshold)
        else:
            one = (self._most_of(lambda utilities: reduce(np.maximum, utilities.undominated.apart)) / 2) ** 2
        return float(one_missed(one, self.units.effective_rows))


def _at_threshold(stakes: Utilities) -> Any:
    """The variance of what acting wins on a row whose probability of label 1 is at the threshold."""
    cost, benefit = stakes[0, 0] - stakes[1, 0], stakes[1, 1] - stakes[0, 1]
    return np.maximum(cost, 0.0) * np.maximum(benefit, 0.0)


class DecidedRows(NamedTuple):
    """What each row decides, shape (T,) each.

    action: its number; predicted_utility: what it is expected to be worth by the row's own probabilities; second: the
    second-best action by them; margin: how much less that is worth; won: the action's utility at the label.
    """

    action: Ints
    predicted_utility: Floats
    second: Ints
    margin: Floats
    won: Floats


@once
def decide(c: ClassTable, decision: ClassDecision) -> DecidedRows:
    """The best action for every row's probabilities."""
    utility, (predicted_utility, margin) = np.array(decision.utility), np.empty((2, len(c)))
    action, second = np.empty((2, len(c)), dtype=np.int64)
    for part, worth, first in best_by_block(c.score, utility):
        action[part], predicted_utility[part] = first, worth[first, np.arange(len(first))]
        second[part], margin[part] = second_best(worth, first)
    return DecidedRows(action, predicted_utility, second, margin, utility[action, c.label])


def second_best(worth: Floats, best: Ints) -> tuple[Ints, Floats]:
    """The second-best action of each row, (T,), and how much less it is worth than the best one, (T,).

    worth: of each action, (A, T). Of actions that are equal but for rounding it is the first.
    """
    rows, others = np.arange(len(best)), worth.copy()
    others[best, rows] = -np.inf
    most = others.max(axis=0)
    near = NEARLY * float(np.abs(worth).max(initial=0.0))
    return (others >= most - near).argmax(axis=0), np.maximum(worth[best, rows] - most, 0.0)


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
        """This change with every count multiplied by a factor."""
        return DecisionChange(*(factor * count for count in astuple(self)))

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
    """A change from one way of deciding to another, on the same units: what it wins, and which decisions change."""

    before: Decisions
    after: Decisions
    widened: float = 1.0
    """The factor that widens the error of the gain, where folds learn from each other's rows."""

    @property
    def by_labels(self) -> float:
        """How much of the gain is judged by the labels."""
        return 1.0

    @cached_property
    def gain(self) -> Estimate:
        """Mean utility per row that the change wins.

        The error counts one more row whose decision might have changed, without which it would be 0 where no decision
        changes. That row is not widened, since no fold learns from it, and moves the gain as far as labels judge it.
        """
        mean, most = self.mean_gain, self.before.most
        extra = self.by_labels**2 * self.before.one_row
        gain = replace(mean.widened(self.widened), extra=extra, missed=0.0)
        return gain.within(-most, most)

    @property
    def mean_gain(self) -> Estimate:
        """Mean utility per row that the change wins by the labels, with the error of a mean over independent rows."""
        return self.before.units.mean(lambda which: self.after.won(which) - self.before.won(which))

    def positive(self, which: Any = EVERY) -> Floats:
        """How much of each unit, or of some of them, counts as label 1, shape (m,)."""
        return np.asarray(self.before.units.label[which] == 1, dtype=np.float64)

    @property
    def decisions(self) -> DecisionChange:
        """The decisions that change, where these are to act or not."""
        started = (self.after.action == 1) & (self.before.action == 0)
        stopped = (self.after.action == 0) & (self.before.action == 1)

        def by_label(part: slice) -> tuple[Floats, Floats]:
            weight, positive = self.before.units.weight[part], self.positive(part)
            return weight * positive, weight * (1 - positive)

        of_one, of_zero = summed(started + 2 * stopped.view(np.int8), by_label, 3)[:, 1:].tolist()
        return DecisionChange(of_one[0], of_zero[0], of_one[1], of_zero[1])


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

    def odds(self, which: Any) -> Floats:
        """What acting costs on label 0, over what it wins on label 1: t* / (1 - t*), of some units or of all."""
        stakes = self.stakes.take(which)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((stakes[0, 0] - stakes[1, 0]) / (stakes[1, 1] - stakes[0, 1]))


def _by_scores(units: Units, stakes: Task | ClassDecision | RowStakes, *scores: Floats) -> list[Decisions]:
    """The best actions of a task, or of rows with stakes of their own, by scores of the rows in all deals."""
    if isinstance(stakes, RowStakes):
        deals, of_rows = len(units) // len(stakes.rows), stakes
        utility = of_rows.utility if deals == 1 else of_rows.utility.take(np.tile(np.arange(len(of_rows.rows)), deals))
        actions = [np.concatenate([of_rows.response(part) for part in np.split(score, deals)]) for score in scores]
    elif isinstance(stakes, ClassDecision):
        utility = Utilities.of(stakes.utility)
        actions = [best_actions(score, utility.shared) for score in scores]
    else:
        utility, at = Utilities.of(stakes.undominated), np.array(stakes.thresholds) * (1 - TIE)
        actions = [actions_at(at, score) for score in scores]
    return [Decisions(units, utility, action) for action in actions]


def _of_later(forward: Forward, stakes: Task | ClassDecision | RowStakes, age: int, *scores: Floats) -> list[Decisions]:
    """The best actions by scores of the rows that fits of this age say something of."""
    which = forward.judged(age)
    rows = forward.rows.take(which)
    if isinstance(stakes, RowStakes):
        stakes = replace(stakes, rows=rows, utility=stakes.utility.take(which))
    return _by_scores(units_of_rows(rows.label, rows.weight, rows.unit, rows.units.rows), stakes, *scores)


@dataclass(frozen=True, eq=False)
class Recalibrating(Change):
    """The change from acting on the score as it is to acting on the recalibrated one."""

    again: Callable[[held_out.Method], Recalibrating] | None = None
    """Makes the change by another calibrator; None where there is no other."""
    in_time: bool = False
    """Whether the calibrators learned from earlier rows only."""

    def by(self, method: held_out.Method) -> Recalibrating:
        """The change by this calibrator. Errors: Undefined, where it does not suit these scores."""
        if method == "chosen":
            return self
        if self.again is None:
            raise Undefined(f"{method} is for scores of two classes")
        return self.again(method)

    @classmethod
    def of_table(cls, t: Table, task: Task, seed: int, method: held_out.Method = "chosen") -> Recalibrating:
        """The change on scores of two classes. Errors: Undefined, where there are too few rows to hold some out."""
        held = held_out.of_table(t, seed, method)
        # Units are many, and levels few.
        (after,) = _by_scores(held.units, task, held.of_levels)
        now = actions_at(task.decision_thresholds, held.levels)[held.level]
        before, after = (replace(after, action=each) for each in (now, after.action[held.fold, held.level]))
        return cls(before, after, WIDENED, lambda other: cls.of_table(t, task, seed, other))

    @classmethod
    def of_rows(cls, u: RowStakes, seed: int, method: held_out.Method = "chosen") -> Recalibrating:
        """The change on scores of two classes and rows with stakes of their own, in order of their content."""
        held = held_out.of_rows(u.rows, seed, method)
        (after,) = _by_scores(held.units, u, held.recalibrated)
        now = np.tile(u.response(u.rows.score), len(held.units) // len(u.rows))
        return cls(replace(after, action=now), after, WIDENED, lambda other: cls.of_rows(u, seed, other))

    @classmethod
    def of_classes(cls, now: Decisions, stakes: ClassDecision | RowStakes, recalibrated: Recalibrated) -> Recalibrating:
        """The change on the probabilities of several classes, by scalings that have not seen the rows."""
        deals = len(recalibrated.all_deals) // len(now.units)
        (after,) = _by_scores(now.units.dealt(deals), stakes, recalibrated.all_deals)
        return cls(replace(after, action=np.tile(now.action, deals)), after)

    @classmethod
    def forward(cls, forward: Forward, stakes: Task | ClassDecision | RowStakes, age: int = 1) -> Recalibrating:
        """The change by calibrators fitted to earlier rows, on the rows that came `age` blocks later."""
        now = forward.rows.score[forward.judged(age)]
        before, after = _of_later(forward, stakes, age, now, forward.recalibrated(age))
        if isinstance(stakes, Task):
            before = replace(before, action=actions_at(stakes.decision_thresholds, now))
        if forward.rows.classes:
            return cls(before, after, WIDENED, in_time=True)

        def again(other: held_out.Method) -> Recalibrating:
            return cls.forward(replace(forward, method=other), stakes, age)

        return cls(before, after, WIDENED, again, in_time=True)

    @property
    def over_constant(self) -> Change:
        """The change from the best constant action to acting on the recalibrated score."""
        always = np.broadcast_to(self.before.best_constant, len(self.before.units))
        return Change(replace(self.before, action=always), self.after, self.widened)


@dataclass(frozen=True, eq=False)
class Featured(Change):
    """The change from acting on the recalibrated score to acting on the probe, which knows the features.

    judge: what its decisions are judged by beside the labels; None where the labels alone judge.
    """

    judge: Judge | None = None

    @classmethod
    def of_scores(cls, probed: Probed, stakes: Task | RowStakes) -> Featured:
        """The change on scores of two classes. Errors: Undefined, where there are too few rows to hold some out."""
        dealt = probed.all_deals
        before, after = _by_scores(dealt.units, stakes, dealt.recalibrated, dealt.probe)
        return cls(before, after, WIDENED, dealt.judge)

    @classmethod
    def of_classes(
        cls, now: Decisions, stakes: ClassDecision | RowStakes, recalibrated: Recalibrated, probed: ClassProbed
    ) -> Featured:
        """The change on the probabilities of several classes."""
        units = now.units.dealt(len(probed.score) // len(now.units))
        before, after = _by_scores(units, stakes, recalibrated.all_deals, probed.score)
        return cls(before, after, WIDENED)

    @classmethod
    def forward(cls, forward: Forward, stakes: Task | ClassDecision | RowStakes, age: int = 1) -> Featured:
        """The change by `blend` fitted to earlier rows, on the rows `age` blocks later; the labels alone judge."""
        before, after = _of_later(forward, stakes, age, forward.recalibrated(age), forward.with_features(age))
        return cls(before, after, WIDENED)

    @property
    def by_labels(self) -> float:
        """How much of the gain is judged by the labels: all, or half where there is a judge."""
        return 1.0 if self.judge is None else 0.5

    def positive(self, which: Any = EVERY) -> Floats:
        """How much of each unit counts as label 1, shape (m,): the mean of its label and the judge's probability."""
        by_label = super().positive(which)
        return by_label if self.judge is None else (by_label + self.judge.chance.ravel()[which]) / 2

    @property
    def mean_gain(self) -> Estimate:
        """The mean of what the change wins by the labels and of what it wins by the judge, where there is one."""
        if self.judge is None:
            return super().mean_gain
        units = self.before.units
        of_zero, of_one = (self.after.won_at(k) - self.before.won_at(k) for k in (0, 1))
        mean = units.mean(of_zero + self.positive() * (of_one - of_zero))
        moved = self.judge.moved(of_one - of_zero) / (2 * units.total)
        return replace(mean, adds=mean.influence + moved)


@dataclass(frozen=True, eq=False)
class SumOfGains(Estimate):
    """A gain, and the gain beyond it.

    The two rest on the same labels, but never on one label in the same direction: where recalibration changes a
    decision, the features can only change it back. So their covariance is not above 0, and the sum varies no more than
    one of independent gains.
    """

    parts: tuple[Estimate, ...] = ()

    def half_width(self, confidence: float) -> float:
        """Half the width of the interval of a sum of independent gains."""
        return math.hypot(*(part.half_width(confidence) for part in self.parts))


def post_training(recalibrating: Recalibrating, featured: Featured) -> Estimate:
    """The gain of recalibration and the gain beyond it."""
    parts = recalibrating.gain, featured.gain
    value, variance = sum(part.value for part in parts), sum(part.error**2 for part in parts)
    units = parts[0].units
    return SumOfGains(value, np.zeros(len(units)), units, extra=variance, missed=0.0, parts=parts)


def headroom(t: Table, task: Task) -> float:
    """What acting on the isotonic fit adds to the best constant action.

    The fit acts above the cut that leaves the least worth below it.
    """
    pools = t.isotonic

    def of_step(step: BinaryTask) -> float:
        n = pos = worth = least = 0.0
        for block in pools.blocks():
            rows, positives = n + np.cumsum(block.n), pos + np.cumsum(block.pos)
            below = positives - step.threshold * rows
            n, pos, worth = float(rows[-1]), float(positives[-1]), float(below[-1])
            least = min(least, float(below.min()))
        return (min(worth, 0.0) - least) / t.total

    return task.in_steps(of_step)


def calibration_regret(rate: Floats, below: Floats, above: Floats, threshold: Floats | float) -> Floats:
    """Regret of acting on p in bins with these frequencies, per unit of u_delta; shape (.., bins) to (..).

    below, above: the bin's rows below, and at or above, the decision threshold, as shares of all rows.
    """
    return (np.where(rate >= threshold, below, above) * np.abs(rate - threshold)).sum(axis=-1)
