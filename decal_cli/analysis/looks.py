"""Rules that may be judged again after every batch of rows: betting confidence sequences of bounded means.

At each look all rows enter again, once each, from the first row on and in the order of the file; nothing is kept
between looks. What bets on a row was fixed by the rows before it (Waudby-Smith and Ramdas 2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from decal_cli.analysis.drop import first_changed
from decal_cli.data import Predictions
from decal_cli.errors import DecalError, Undefined
from decal_cli.hints import Hint, Verb
from decal_cli.metrics import Inputs, MetricSpec
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.decisions import Decisions
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats
from decal_cli.task import ClassDecision, Task

MOST = 0.5
"""The share of its wealth that a bet may lose at most."""
MEANS = ("brier", "expected_utility", "accuracy", "selection_rate", "net_benefit", "eu_never", "eu_always")
"""Metrics that are means over rows of what is bounded beforehand."""
_LEARNED = ("gain_", "regret", "corp_", "grouping", "irreducible")
_STEPS = 24
"""Halvings in the search of an end."""


@dataclass(frozen=True, eq=False)
class Bounded:
    """A number of each row, in their order, shape (T,), and the least and the most that it can be."""

    values: Floats
    low: float
    high: float

    @cached_property
    def known_before(self) -> tuple[Floats, Floats]:
        """Mean and variance of the rows before each row, from the middle of the range on, shape (T,) each."""
        count, middle = np.arange(1, len(self.values) + 1), (self.low + self.high) / 2
        sums = np.cumsum(self.values)
        mean = (middle + np.append(0.0, sums[:-1])) / count
        misses = (self.values - (middle + sums) / (count + 1)) ** 2
        start = (self.high - self.low) ** 2 / 4
        return mean, (start + np.append(0.0, np.cumsum(misses)[:-1])) / count

    def less(self, other: Bounded, reach: float) -> Bounded:
        """This less the other, on the same rows; reach: the most that the two can differ by on a row."""
        return Bounded(self.values - other.values, -reach, reach)


@dataclass(frozen=True, eq=False)
class Looked:
    """What all looks up to these rows say of a mean. interval: holds at all looks with the chance of the confidence.

    chance: the anytime p-value of the bound, min(1, 1 / the largest wealth of who bets that the rule fails). since: the
    row from which on that was enough, from 1, None where it is not. shown: whether the opposite bet was enough.
    """

    value: float
    interval: Interval
    chance: float
    since: int | None
    shown: bool


def look(rows: Bounded, bound: float, at_most: bool, confidence: float) -> Looked:
    """Judge that the mean is at most, or at least, a bound. Each side may be wrong with probability 1 - confidence."""
    risk = 1 - confidence
    against, for_it = (_log_wealth(rows, bound, above) for above in (at_most, not at_most))
    enough = math.log(1 / risk)
    passed = np.flatnonzero(against >= enough)
    largest = max(float(against.max(initial=0.0)), 0.0)
    return Looked(
        float(rows.values.mean()),
        sequence_interval(rows, confidence),
        math.exp(-largest),
        int(passed[0]) + 1 if len(passed) else None,
        bool(for_it.max(initial=0.0) >= enough),
    )


def sequence_interval(rows: Bounded, confidence: float) -> Interval:
    """What holds the mean at all looks: the means that neither side's bets of half the risk have ruled out."""
    enough = math.log(2 / (1 - confidence))
    mean = float(rows.values.mean())

    def ruled_out(mu: float, above: bool) -> bool:
        return bool(_log_wealth(rows, mu, above).max(initial=0.0) >= enough)

    ends = []
    for above, end in ((True, rows.low), (False, rows.high)):
        far, near = end, mean
        for _ in range(_STEPS):
            middle = (far + near) / 2
            far, near = (middle, near) if ruled_out(middle, above) else (far, middle)
        ends.append(far)
    return ends[0], ends[1]


def _log_wealth(rows: Bounded, mu: float, above: bool) -> Floats:
    """Logarithm of the wealth, after each row, of who bets that the mean is above mu, or below it, shape (T,).

    It is a supermartingale where no row's mean, given the rows before it, is on that side of mu.
    """
    d, room = rows.values, mu - rows.low if above else rows.high - mu
    mean, variance = rows.known_before
    apart = mean - mu if above else mu - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        bet = np.clip(np.nan_to_num(apart / (variance + apart**2)), 0.0, MOST / room if room > 0 else np.inf)
    won = bet * (d - mu if above else mu - d)
    return np.asarray(np.cumsum(np.log1p(np.maximum(won, -MOST))))


def bounded_rows(spec: MetricSpec, inputs: Inputs) -> Bounded:
    """What the metric is the mean of. Errors: Undefined, with the reason why its sequence cannot be watched."""
    rows = inputs.rows
    assert rows is not None  # they are those of a model
    if spec.name not in MEANS or spec.parameters:
        if spec.name.startswith(_LEARNED):
            raise Undefined(
                "learns from all rows, which is no sequence: a gain needs rows that came after those it was learned "
                f"from, as {Verb('online').words} replays them"
            )
        raise Undefined(f"is no mean of bounded numbers of the rows: these are {', '.join(MEANS)}")
    if rows.weighted or rows.counted or rows.listed is not None or rows.share_known:
        raise Undefined("looks at rows one by one: without weights, counts, a capacity or another prevalence")
    if inputs.by_row:
        raise Undefined("has no bound known beforehand where every row has utilities of its own")
    values = _brier(rows) if spec.name == "brier" else _decided(spec.name, rows, inputs)
    return values if rows.cluster is None else _by_cluster(values, rows)


def _brier(rows: Rows) -> Bounded:
    if rows.classes:
        hit = np.eye(len(rows.classes))[rows.label]
        return Bounded(((np.asarray(rows.score) - hit) ** 2).sum(axis=1), 0.0, 2.0)
    return Bounded((np.asarray(rows.score, dtype=np.float64) - rows.label) ** 2, 0.0, 1.0)


def _decided(name: str, rows: Rows, inputs: Inputs) -> Bounded:
    if rows.classes:
        decisions = inputs.all_of((Decisions,))[0]
        if name != "expected_utility":
            raise Undefined("is for scores of two classes")
        worth = np.asarray(decisions.won)[: len(rows)]
        return Bounded(worth, float(decisions.stakes.min()), float(decisions.stakes.max()))
    task: Task = inputs.all_of((Task,))[0]
    label = np.asarray(rows.label, dtype=np.int64)
    # Ties go to the later action, as for every decision.
    action = np.searchsorted(np.array(task.decision_thresholds), np.asarray(rows.score, dtype=np.float64), side="right")
    utility = np.array(task.undominated, dtype=np.float64)
    if name == "expected_utility":
        return Bounded(utility[action, label], float(utility.min()), float(utility.max()))
    if len(utility) != 2:
        raise Undefined(f"needs a task of two actions, and this one has {len(utility)}")
    if name in ("eu_never", "eu_always"):
        paid = utility[int(name == "eu_always")]
        return Bounded(paid[label], float(paid.min()), float(paid.max()))
    if name == "net_benefit":
        odds = (utility[0, 0] - utility[1, 0]) / (utility[1, 1] - utility[0, 1])
        return Bounded(np.where(action == 1, np.where(label == 1, 1.0, -odds), 0.0), -odds, 1.0)
    return Bounded((action == label if name == "accuracy" else action == 1).astype(np.float64), 0.0, 1.0)


def reach_of(spec: MetricSpec, rows: Bounded, task: Task | ClassDecision | None) -> float:
    """The most that two models can differ by on one row."""
    if spec.name == "expected_utility" and task is not None:
        utility = np.array(task.undominated, dtype=np.float64)
        return float(np.ptp(utility, axis=0).max())
    return rows.high - rows.low


def _by_cluster(values: Bounded, rows: Rows) -> Bounded:
    """The mean of each cluster as one number, in their order; the last one may go on, and waits."""
    cluster = np.asarray(rows.cluster)
    starts = np.append(0, np.flatnonzero(cluster[1:] != cluster[:-1]) + 1)
    if len(np.unique(cluster[starts])) < len(starts):
        raise Undefined("needs the rows of a cluster one after the other")
    sizes = np.diff(np.append(starts, len(cluster)))
    means = np.add.reduceat(values.values, starts) / sizes
    if len(means) < 2:
        raise Undefined("needs two clusters")
    return Bounded(means[:-1], values.low, values.high)


def need_same_rows(before: Predictions, now: Predictions, path: str) -> None:
    """Raise a DecalError unless the rows of an earlier look are the first of these rows, as they were."""
    earlier, rows = before.with_classes(now.rows.classes).rows, now.rows
    changed = 0 if len(earlier) > len(rows) else first_changed(earlier, rows)
    if len(earlier) > len(rows) or changed is not None:
        where = "it has more rows" if len(earlier) > len(rows) else f"row {(changed or 0) + 1} differs"
        raise DecalError(
            f"the rows of {path} are not the first rows of these: {where}",
            f"a sequence goes on where rows are only added: without {Hint('anytime')}, or from new rows on",
        )


def holm(chances: list[float], risk: float) -> list[bool]:
    """Which of these p-values are small enough for all of them together (Holm 1979)."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    small = [False] * len(chances)
    for place, k in enumerate(order):
        if not chances[k] <= risk / (len(chances) - place):
            break
        small[k] = True
    return small
