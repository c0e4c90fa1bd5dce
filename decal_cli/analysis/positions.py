"""Decisions at up to 1,001 thresholds t* and 1,000 capacities: sums that a page moves between without the rows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from decal_cli.analysis.flowchart import Advice
from decal_cli.curves.battery import gains
from decal_cli.errors import Undefined
from decal_cli.learn import held_out
from decal_cli.learn.probe import Judge, Probed
from decal_cli.tables.resample import TIE
from decal_cli.tables.table import Floats, Table
from decal_cli.tables.units import Units
from decal_cli.task import BinaryTask

MAX_POSITIONS = 1_001
WORK = 2e8
"""Units times thresholds that are looked at, for one model and group."""
PLACES = 1_000
RARE = 0.02
"""Below it thresholds lie densely where a threshold or the share of label 1 is smaller."""
WAYS = ("never", "always", "now", "recalibrate", "post-train")
"""Ways of acting, as advice numbers them: both constant decisions, the score as it is, and two that are fitted."""


@dataclass(frozen=True, eq=False)
class MovedDecisions:
    """What a fitted score changes at each threshold, shape (K,) each: rows newly acted on, by label, and half the width
    of the interval of its gain, for u_delta 1; top: rows of label 1 among the k / PLACES highest, (PLACES + 1,).
    """

    hits: Floats
    alarms: Floats
    half: Floats
    top: Floats


@dataclass(frozen=True, eq=False)
class Positions:
    """Decisions of one model on one group of rows, at thresholds `at`, shape (K,), in summed weight.

    hits, alarms: rows of label 1 and 0 with a score from t* on, or from the threshold of the task on, where it has
    one besides t*. top: as in MovedDecisions, by the score. recalibrated: from the score as it is; featured: from the
    recalibrated score; None where a gain is undefined. advice: numbers of WAYS, shape (K,).
    """

    at: Floats
    positives: float
    negatives: float
    hits: Floats
    alarms: Floats
    top: Floats
    recalibrated: MovedDecisions | None
    featured: MovedDecisions | None
    advice: tuple[int, ...] = ()

    def won(self) -> dict[str, tuple[Floats, Floats]]:
        """What ways of acting win over the score as it is at each threshold, and half the width of the interval, nan
        where there is none, for u_delta 1; shape (K,) each.
        """
        t, total = self.at, self.positives + self.negatives
        none, now = np.full(len(t), np.nan), self._worth(self.hits, self.alarms)
        always = (self.positives * (1 - t) - self.negatives * t) / total
        won = {"never": (-now, none), "always": (always - now, none), "now": (0 * now, none)}
        reached, half = np.zeros(len(t)), np.zeros(len(t))
        for name, moved in (("recalibrate", self.recalibrated), ("post-train", self.featured)):
            if moved is not None:
                reached = reached + self._worth(moved.hits, moved.alarms)
                half = np.hypot(half, moved.half)
                won[name] = reached, half
        return won

    def _worth(self, hits: Floats, alarms: Floats) -> Floats:
        return np.asarray((hits * (1 - self.at) - alarms * self.at) / (self.positives + self.negatives))

    def over_constant(self) -> dict[str, Floats]:
        """What ways of acting win over the better constant decision, for u_delta 1, shape (K,) each."""
        won = self.won()
        constant = np.maximum(won["never"][0], won["always"][0])
        return {name: value - constant for name, (value, _) in won.items()}

    def plain(self) -> dict[str, Any]:
        """The same as numbers and lists, as a page holds them."""
        return {name: _plain(each) for name, each in vars(self).items() if name != "at"}


def _plain(each: Any) -> Any:
    """Numbers of an array to ten digits, whole ones without a point; 0 for nan; all else as it is."""
    if isinstance(each, MovedDecisions):
        return {name: _plain(values) for name, values in vars(each).items()}
    if not isinstance(each, np.ndarray):
        return each
    short = [float(f"{value:.10g}") for value in np.nan_to_num(each).tolist()]
    return [int(value) if value == int(value) else value for value in short]


def thresholds_for(own: tuple[float, ...], base_rate: float, units: float) -> Floats:
    """Thresholds to move between, shape (K,), increasing: those of a user, and more the fewer units there are."""
    least = min(*own, base_rate) if own else base_rate
    steps = next((steps for steps in (1_000, 500, 200) if units * steps <= WORK), 100)
    at = np.arange(1, steps) / steps
    if 0 < least < RARE:
        dense = np.geomspace(max(least / 100, 1e-6), RARE, steps // 2)
        at = np.append(np.arange(2, steps, 2) / steps, [float(f"{each:.3g}") for each in dense])
    return np.union1d(at, own)


def positions_of(
    t: Table, probed: Probed | None, task: BinaryTask, at: Floats, confidence: float | None, seed: int
) -> Positions:
    """The sums of a table, and of the same rows with features. at: thresholds, shape (K,)."""
    n, pos = np.asarray(t.n, dtype=np.float64), np.asarray(t.pos, dtype=np.float64)
    fixed = None if task.decision_threshold == task.threshold else task.decision_threshold
    acts = np.searchsorted(t.score, at if fixed is None else np.full(len(at), fixed), side="left")
    true, false = (np.append(np.cumsum(each[::-1])[::-1], 0.0)[acts] for each in (pos, n - pos))
    total = float(n.sum())
    recalibrated = featured = None
    with suppress(Undefined):
        held = held_out.of_table(t, seed)
        now = held.score if fixed is None else (held.score >= fixed).astype(np.float64)
        recalibrated = _moved(held.units, now, held.recalibrated, at, total, confidence)
        if probed is not None:
            deals = probed.all_deals
            featured = _moved(deals.units, deals.recalibrated, deals.probe, at, total, confidence, deals.judge)
    return Positions(at, float(pos.sum()), total - float(pos.sum()), true, false, _top(t.score, n, pos),
                     recalibrated, featured)  # fmt: skip


def _moved(
    units: Units, now: Floats, then: Floats, at: Floats, total: float, confidence: float | None,
    judge: Judge | None = None,
) -> MovedDecisions:  # fmt: skip
    label = units.label.astype(np.float64)
    positive = label if judge is None else (label + judge.chance.ravel()) / 2
    weight = units.weight * (total / units.total)
    before, after = (np.searchsorted(cuts, key, side="right") for cuts, key in ((at, now), (at * (1 - TIE), then)))

    def started(each: Floats) -> Floats:
        """The weight that is acted on at each threshold and was not, less that which no longer is."""
        change = np.bincount(after, each, len(at) + 1) - np.bincount(before, each, len(at) + 1)
        return np.asarray(np.cumsum(change[::-1])[::-1][1:])

    half = np.full(len(at), np.nan)
    if confidence is not None:
        half = np.array([gain.half_width(confidence) for gain in gains(units, now, then, at, judge)])
    order = np.argsort(then, kind="stable")
    top = _top(then[order], weight[order], (weight * positive)[order])
    return MovedDecisions(started(weight * positive), started(weight * (1 - positive)), half, top)


def _top(score: Floats, n: Floats, pos: Floats) -> Floats:
    """Label 1 among the highest k / PLACES of the weight; rows with equal scores share places. score: increasing."""
    starts = np.flatnonzero(np.append(True, score[1:] != score[:-1]))
    n, pos = (np.append(0.0, np.cumsum(np.add.reduceat(each, starts)[::-1])) for each in (n, pos))
    return np.interp(np.arange(PLACES + 1) / PLACES * n[-1], n, pos)


def advised_way(advice: Advice) -> int:
    """The way of WAYS that is advised."""
    action, _, constant = advice.same
    if action != "done":
        return WAYS.index(action)
    return WAYS.index("now") if constant is None or advice.constant is None else int(bool(advice.constant.decision))
