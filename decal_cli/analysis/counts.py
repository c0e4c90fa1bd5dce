"""Decisions counted: of the score as it is, recalibrated, and with the features; what changes from one to the next.

Each step is made of the held-out decisions that its gain is computed from, so a gain is the sum of the changes of the
counts times the utilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from decal_cli.metrics import Inputs
from decal_cli.metrics.decisions import Acting, Change, DecisionChange, Decisions, Featured, Recalibrating


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
    def positives(self) -> float:
        """Rows with label 1."""
        return self.true_positives + self.false_negatives

    @property
    def negatives(self) -> float:
        """Rows with label 0."""
        return self.false_positives + self.true_negatives

    @property
    def ppv(self) -> float | None:
        """Share of label 1 among the rows decided 1; None where there are none."""
        return self.true_positives / self.acted if self.acted > 0 else None

    @property
    def sensitivity(self) -> float | None:
        """Share of the rows with label 1 that are decided 1; None where there are none."""
        return self.true_positives / self.positives if self.positives > 0 else None

    def changed(self, change: DecisionChange) -> Decided:
        """The cells after a change, held within the rows of each label: the change may come from other folds."""
        hits = min(max(self.true_positives + change.true_positives, 0.0), self.positives)
        alarms = min(max(self.false_positives + change.false_positives, 0.0), self.negatives)
        return Decided(hits, alarms, self.positives - hits, self.negatives - alarms)


@dataclass(frozen=True)
class CountedStep:
    """Decisions after a step of post-training, what changed with it from the decisions before, and its gain per row."""

    decided: Decided
    change: DecisionChange
    gain: float


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
    """The decisions of a model; None where they are not to act or not."""
    acting = inputs.find(Acting)
    if acting is None:
        return None
    weight = acting.units.weight
    acts, positive = acting.acts, acting.positive
    cells = (acts & positive, acts & ~positive, ~acts & positive, ~acts & ~positive)
    as_is = Decided(*(float(weight[cell].sum()) for cell in cells))
    total = acting.units.total
    recalibrated = with_features = None
    if as_is.positives > 0 and as_is.negatives > 0:
        recalibrated = _step(as_is, inputs, Recalibrating, total)
        if recalibrated is not None:
            with_features = _step(recalibrated.decided, inputs, Featured, total)
    return DecisionCounts(total, as_is, recalibrated, with_features)


def _step(before: Decided, inputs: Inputs, kind: type[Change], total: float) -> CountedStep | None:
    """The decisions after a change; None where it is undefined. The probe's weights have another total."""
    change = inputs.find(kind)
    if change is None:
        return None
    counted = change.decisions.times(total / change.before.units.total)
    return CountedStep(before.changed(counted), counted, change.gain.value)


def count_actions(inputs: Inputs) -> Mapping[str, tuple[float, ...]]:
    """The share of the rows that gets each action, as the score is ('expected_utility') and after each gain."""
    shares: dict[str, tuple[float, ...]] = {}
    for gain, kind in (("gain_recalibration", Recalibrating), ("gain_post_training", Featured)):
        change = inputs.find(kind)
        if change is None:
            continue
        if not shares:
            shares["expected_utility"] = _shares(change.before)
        shares[gain] = _shares(change.after)
    return shares


def _shares(decisions: Decisions) -> tuple[float, ...]:
    weight = np.bincount(decisions.action, decisions.units.weight, len(decisions.stakes))
    return tuple((weight / weight.sum()).tolist())
