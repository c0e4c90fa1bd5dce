"""Decisions counted: of the score as it is, recalibrated, and with the features; what changes from one to the next.

Each step is made of the held-out decisions that its gain is computed from, so a gain is the sum of the changes of the
counts times the utilities.
"""

from __future__ import annotations

from dataclasses import dataclass

from decal_cli.crossfit.changes import DecisionChange, change_beyond, change_of_recalibration
from decal_cli.crossfit.probe import Probed
from decal_cli.errors import Undefined
from decal_cli.metrics import Inputs
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Table
from decal_cli.task import BinaryTask


@dataclass(frozen=True)
class Decided:
    """The four cells of decision and label: rows, or their summed weight."""

    true_positives: float
    false_positives: float
    false_negatives: float
    true_negatives: float

    @property
    def acted(self) -> float:
        """Rows decided 1."""
        return self.true_positives + self.false_positives

    @property
    def ppv(self) -> float | None:
        """Share of label 1 among the rows decided 1; None where there are none."""
        return self.true_positives / self.acted if self.acted > 0 else None

    @property
    def sensitivity(self) -> float | None:
        """Share of the rows with label 1 that are decided 1; None where there are none."""
        positives = self.true_positives + self.false_negatives
        return self.true_positives / positives if positives > 0 else None

    def changed(self, change: DecisionChange) -> Decided:
        """The cells after a change, held within the rows of each label: the change may come from other folds."""
        positives, negatives = self.true_positives + self.false_negatives, self.false_positives + self.true_negatives
        hits = min(max(self.true_positives + change.true_positives, 0.0), positives)
        alarms = min(max(self.false_positives + change.false_positives, 0.0), negatives)
        return Decided(hits, alarms, positives - hits, negatives - alarms)


@dataclass(frozen=True)
class CountedStep:
    """Decisions after a step of post-training, and what changed with it from the decisions before."""

    decided: Decided
    change: DecisionChange


@dataclass(frozen=True)
class DecisionCounts:
    """Decisions of one model on its rows; total: the rows, or their summed weight.

    recalibrated: from as_is, on held-out rows; with_features: from recalibrated. None where that gain is undefined.
    """

    total: float
    as_is: Decided
    recalibrated: CountedStep | None
    with_features: CountedStep | None


def count_decisions(inputs: Inputs) -> DecisionCounts | None:
    """The decisions of a model; None without a task of two actions."""
    task = None if inputs.task is None else inputs.task.two_actions
    if task is None:
        return None
    t: Table = inputs.get(Table)
    (tn, fn), (fp, tp) = t.confusion(task.decision_threshold).weight.tolist()
    as_is = Decided(tp, fp, fn, tn)
    recalibrated = with_features = None
    if 0 < t.positives < t.total:
        recalibrated = _recalibrated(as_is, t, task, inputs.get(Seed))
        probed: Probed | None = inputs.get(Probed)
        if recalibrated is not None and probed is not None:
            with_features = _with_features(recalibrated.decided, probed, task, t.total)
    return DecisionCounts(t.total, as_is, recalibrated, with_features)


def _recalibrated(as_is: Decided, t: Table, task: BinaryTask, seed: Seed) -> CountedStep | None:
    try:
        change = change_of_recalibration(t, task.threshold, task.decision_threshold, seed.generator("regret"))
    except Undefined:
        return None
    return CountedStep(as_is.changed(change), change)


def _with_features(recalibrated: Decided, probed: Probed, task: BinaryTask, total: float) -> CountedStep | None:
    try:
        change = change_beyond(probed, task.threshold, total)
    except Undefined:
        return None
    return CountedStep(recalibrated.changed(change), change)
