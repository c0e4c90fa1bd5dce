"""What rows without a label leave open: how their scores differ, and what acting on all rows may be worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.declarations.document import Positive, Share
from decal_cli.metrics import Inputs, Interval, Result, parse
from decal_cli.metrics.decisions import Decisions
from decal_cli.metrics.measure import measure
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats
from decal_cli.task import BinaryTask


@dataclass(frozen=True)
class WithoutLabels:
    """Rows that have a score and no label.

    above: the probability that the score of one of them lies above that of a row with a label, ties count half; of
    several classes, the highest probability; interval: of it. expected_utility: of acting on all rows, with the labels
    that suit the decisions least and best; gain_recalibration: what the adjusted threshold wins then, in two classes.
    """

    rows: Positive
    above: Share
    interval: Interval | None
    expected_utility: Interval | None
    gain_recalibration: Interval | None


def without_labels(
    apart: Rows, inputs: Inputs, results: Mapping[str, Result], confidence: float | None
) -> WithoutLabels:
    """apart: the rows without a label; inputs: of those that have one; results: the metrics of these."""
    rows = inputs.rows
    assert rows is not None  # a report is of rows
    missing = measure(parse("auc"), Inputs(_by_missing(rows, apart)), confidence)
    assert missing.value is not None  # there are rows of both kinds
    worth = moved = None
    decisions, others = inputs.find(Decisions), Inputs(apart, inputs.decision).find(Decisions)
    share = _total(apart) / (_total(apart) + _total(rows))
    if decisions is not None and others is not None and rows.listed is None:
        worth = _mixed(decisions.utility.value, _worth_by_label(others), others.units.weight, share)
        gain, threshold = (results[key].value if key in results else None for key in
                           ("gain_recalibration", "threshold_adjusted"))  # fmt: skip
        if isinstance(inputs.decision, BinaryTask) and gain is not None and threshold is not None:
            weight = np.ones(len(apart)) if apart.weight is None else apart.weight
            moved = _mixed(gain, _moved_by_label(apart.score, inputs.decision, threshold), weight, share)
    return WithoutLabels(len(apart), missing.value, missing.interval, worth, moved)


def _by_missing(rows: Rows, apart: Rows) -> Rows:
    """All rows, with label 1 where the label is missing."""

    def both(name: str) -> NDArray[Any] | None:
        here, there = getattr(rows, name), getattr(apart, name)
        return None if here is None else np.concatenate((here, there))

    score = np.concatenate([each.score.max(axis=1) if each.classes else each.score for each in (rows, apart)])
    label = np.repeat(np.array([0, 1], dtype=np.uint8), [len(rows), len(apart)])
    return Rows(score, label, both("weight"), both("cluster"))


def _total(rows: Rows) -> float:
    return float(len(rows) if rows.weight is None else np.sum(rows.weight))


def _worth_by_label(decisions: Decisions) -> Floats:
    """What the action that each unit gets is worth at each label, shape (m, K)."""
    stakes, action = decisions.stakes, decisions.action
    if stakes.ndim == 2:
        return stakes[action]
    return stakes[action, :, np.arange(len(action))]


def _moved_by_label(score: Floats, task: BinaryTask, threshold: float) -> Floats:
    """What acting from this threshold on wins over the one in use, at each label, shape (T, 2)."""
    utility = np.array(task.utility)
    before, after = ((score >= at).astype(np.intp) for at in (task.decision_threshold, threshold))
    return np.asarray(utility[after] - utility[before])


def _mixed(known: float, by_label: Floats, weight: NDArray[Any], share: float) -> Interval:
    """The mean of all rows, where this share of them has the labels that make it smallest and largest."""
    low, high = (np.average(each, weights=weight) for each in (by_label.min(axis=1), by_label.max(axis=1)))
    return (1 - share) * known + share * float(low), (1 - share) * known + share * float(high)
