"""The value of the decisions made with the scores, for a task; payoffs are in the task's own utility units."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from decal_cli.crossfit import recalibration as crossfit
from decal_cli.declarations.papers import cite
from decal_cli.errors import Undefined
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import metric, null_of
from decal_cli.metrics.families.levels import AtLevels, Levels, at_levels, need_rows
from decal_cli.metrics.numerics import clipped, decisions, gaps
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Floats, Table
from decal_cli.task import BinaryTask, Task, UtilityRows

MEAN_PAYOFF = "mean of a per-row payoff: normal, from its standard error"
_MIN_HEADROOM = 1e-12

Payoff = Callable[[Table, Any], UtilityRows]


def _scaled(task: Task, interval: Interval) -> Interval:
    return task.u_delta * interval[0], task.u_delta * min(interval[1], 1.0)


def mean_interval(payoff: Payoff) -> Callable[..., Interval]:
    """The interval of the mean of payoff(table, task)[action][label]."""

    def interval(t: Table, task: Task, *, confidence: float) -> Interval:
        matrix = payoff(t, task)
        ends = [value for row in matrix for value in row]
        return intervals.normal(decisions.cells(t, task).mean(matrix), confidence, min(ends), max(ends))

    return interval


@metric(
    title="Expected utility",
    better="higher",
    unit="utility",
    source=cite("Perez-Lebel et al. 2025", "eq. 2"),
    shown=True,
    interval=mean_interval(lambda t, task: task.undominated),
    interval_text=MEAN_PAYOFF,
    covers=covered.POPULATION,
)
def expected_utility(t: Table, task: Task) -> float:
    """Mean utility per row of the decisions as they are made.

    (U00 TN + U01 FN + U10 FP + U11 TP) / T; of more actions the same sum over their rows. With a threshold alone it is
    minus the cost-weighted error, at best 0.
    """
    return decisions.cells(t, task).mean(task.undominated).mean


def _utility_share_interval(t: Table, task: Task, seed: Seed, *, confidence: float) -> Interval:
    ends = crossfit.share_range(t, crossfit.switches(task), seed.generator("task"), confidence)
    return intervals.holding(ends, utility_share(t, task))


@metric(
    title="Share of possible utility",
    better="higher",
    unit="share",
    source=f"relative utility: {cite('Baker et al. 2009')}; the bound is that of the isotonic fit",
    range=(-math.inf, 1),
    shown=True,
    interval=_utility_share_interval,
    interval_text="Fieller's, for the ratio, with errors from 200 replicates drawn from the smoothed calibration "
    "curve, with and without the bias that they show",
    covers=f"{covered.POPULATION}; no interval where what these scores can give is within its noise",
)
def utility_share(t: Table, task: Task) -> float:
    """Gain over the better constant action, as a share of the gain that the best threshold on these scores reaches.

    (EU - best constant) / (EU of acting on the isotonic fit - best constant). 1: all that these scores can give; 0: no
    better than the constant action; below 0: worse than that. The bound is fitted on these rows, so it is slightly
    high.
    """
    headroom = decisions.headroom(t, task)
    if headroom <= _MIN_HEADROOM:
        raise Undefined("no threshold on these scores beats the better constant action")
    return min((decisions.advantage(t, task) - decisions.best_constant(t, task)) / headroom, 1.0)


def _net_benefit_interval(t: Table, task: BinaryTask, *, confidence: float) -> Interval:
    return mean_interval(lambda t, task: decisions.net_benefit_payoff(task.threshold))(t, task, confidence=confidence)


@metric(
    title="Net benefit",
    better="higher",
    unit="share",
    source=cite("Vickers and Elkin 2006"),
    range=(-math.inf, 1),
    shown=True,
    interval=_net_benefit_interval,
    interval_text=MEAN_PAYOFF,
    covers=covered.POPULATION,
)
def net_benefit(t: Table, task: BinaryTask) -> float:
    """True positives per row, less the false positives weighted by the odds of the threshold.

    TP / T - FP / T x t* / (1 - t*), for the decisions as they are made; never acting has 0.
    """
    return decisions.cells(t, task).mean(decisions.net_benefit_payoff(task.threshold)).mean


def _constant_interval(action: int) -> Callable[..., Interval]:
    """The interval of the mean utility of one action on all rows."""

    def interval(t: Table, task: BinaryTask, *, confidence: float) -> Interval:
        payoff = task.utility[action]
        return intervals.normal(t.confusion().mean((payoff,)), confidence, min(payoff), max(payoff))

    return interval


@metric(
    title="Utility of never acting",
    better="neither",
    unit="utility",
    source=f"{cite('Perez-Lebel et al. 2025', 'eq. 2')}, for the constant decision 0",
    interval=_constant_interval(0),
    interval_text=MEAN_PAYOFF,
    covers=covered.POPULATION,
)
def eu_never(t: Table, task: BinaryTask) -> float:
    """Mean utility per row of always deciding 0; it needs no model.

    (1 - b) U00 + b U01.
    """
    return t.confusion().mean(task.utility[:1]).mean


@metric(
    title="Utility of always acting",
    better="neither",
    unit="utility",
    source=f"{cite('Perez-Lebel et al. 2025', 'eq. 2')}, for the constant decision 1",
    interval=_constant_interval(1),
    interval_text=MEAN_PAYOFF,
    covers=covered.POPULATION,
)
def eu_always(t: Table, task: BinaryTask) -> float:
    """Mean utility per row of always deciding 1; it needs no model.

    (1 - b) U10 + b U11.
    """
    return t.confusion().mean(task.utility[1:]).mean


@metric(
    title="Utility at stake",
    better="neither",
    unit="utility",
    source=f"{cite('Perez-Lebel et al. 2025', 'eq. 2')}, for perfect decisions less the best constant one",
    range=(0, 0.25),
    interval=None,
    covers="nothing: it says how large a gain can be, and is no estimate of how good the score is",
)
def utility_at_stake(t: Table, task: Task) -> float:
    """Utility per row that perfect decisions are worth more than the better constant decision: all there is to win.

    u_delta min(b (1 - t*), (1 - b) t*), where b is the base rate; of more actions the sum of that over the thresholds
    between them. A gain is small or large beside it.
    """
    rate = t.base_rate
    return task.u_delta * task.in_steps(lambda step: min(rate * (1 - step.threshold), (1 - rate) * step.threshold))


def _swap_regret_interval(t: Table, task: Task, seed: Seed, *, confidence: float) -> Interval:
    parts = clipped.of_decisions(decisions.cells(t, task), t.total, task)
    return _scaled(task, clipped.interval(parts, seed.generator("task"), confidence))


@metric(
    title="Swap regret",
    better="lower",
    unit="utility",
    source=cite("Hu and Wu 2024", "def. 2.8"),
    range=(0, 1),
    interval=_swap_regret_interval,
    interval_text=clipped.CLIPPED_TEXT,
    covers=covered.POPULATION_BELOW,
)
def swap_regret(t: Table, task: Task) -> float:
    """Utility per row that the best fixed rule 'where you decided a, decide b instead' adds.

    max over maps of actions to actions of the mean gain: each group of equal decisions is changed where that pays.
    """
    return task.u_delta * decisions.swapped(t, task)


def _external_regret_payoff(t: Table, task: Task) -> UtilityRows:
    """What the best constant action adds to one row, by action and label."""
    best = task.undominated[sum(t.base_rate > threshold for threshold in task.thresholds)]
    return tuple((best[0] - u0, best[1] - u1) for u0, u1 in task.undominated)


@metric(
    title="External regret",
    better="lower",
    unit="utility",
    source=cite("Hu and Wu 2024", "def. 2.9"),
    range=(-1, 1),
    interval=mean_interval(_external_regret_payoff),
    interval_text=MEAN_PAYOFF,
    covers=("the population's utility of the constant action that is better on these rows, less that of the decisions"),
)
def external_regret(t: Table, task: Task) -> float:
    """Utility per row that the best constant action adds; below 0 where the model beats every constant action.

    max(eu_never, eu_always) - expected_utility; of more actions the largest mean utility of one of them, less that.
    """
    return task.u_delta * (decisions.best_constant(t, task) - decisions.advantage(t, task))


def _cfdl_interval(t: Table, task: Task, seed: Seed, *, confidence: float, levels: Levels) -> Interval:
    used = at_levels(t, levels)
    if used is t:
        need_rows(t)
    below = np.where(used.score < np.array(task.decision_thresholds)[:, None], used.n, 0.0)
    parts = clipped.parts(used.n * 1.0, used.pos * 1.0, gaps.concentration(used), used.total, task, below)
    return _scaled(task, clipped.interval(parts, seed.generator("task"), confidence))


@metric(
    title="Calibration decision loss for this task",
    better="lower",
    unit="utility",
    source=cite("Hu and Wu 2024", "def. 2.14"),
    range=(0, 1),
    size_free=False,
    interval=_cfdl_interval,
    interval_text=clipped.CLIPPED_TEXT,
    covers=covered.OF_LEVELS_BELOW,
)
def cfdl(t: Table, task: Task, *, levels: AtLevels = "auto") -> float:
    """Utility per row gained by acting on the frequency of each level instead of on its score; compare with cfdl_null.

    mean over rows of U(best action for h_i) - U(action for q_i), where the action for q_i is the one at the decision
    threshold. levels: exact levels, or bins, which first replaces each score by the mean score of its equal-mass bin;
    auto takes exact levels where the median level holds 30 rows or more, because levels of one row show only noise.
    """
    return decisions.decision_loss(at_levels(t, levels), task)


def _null_draws(t: Table, task: Task, seed: Seed, levels: Levels) -> Floats:
    def draws(t: Table) -> Floats:
        rng = seed.generator("task")
        return gaps.null_draws(at_levels(t, levels), lambda table: decisions.decision_loss(table, task), rng)

    return t.cached(("cfdl", task, levels, seed), draws)


def _null_interval(t: Table, task: Task, seed: Seed, *, confidence: float, levels: Levels) -> Interval:
    return gaps.central(_null_draws(t, task, seed, levels), confidence)


@null_of(
    "cfdl",
    title="Calibration decision loss of a calibrated model",
    interval=_null_interval,
)
def cfdl_null(t: Table, task: Task, seed: Seed, *, levels: AtLevels = "auto") -> float:
    """Mean cfdl that a perfectly calibrated model with these scores shows, by chance alone.

    Labels are drawn from the scores of the same levels, 400 times.
    """
    return float(_null_draws(t, task, seed, levels).mean())


class Share(NamedTuple):
    """Some cells of decision and label as a share of others, 'tp fn'; why it is undefined where these are empty."""

    part: str
    whole: str
    empty: str = ""

    def value(self, t: Table, task: BinaryTask) -> float:
        return decisions.rate(t, task, self.part, self.whole, self.empty)

    def interval(self, t: Table, task: BinaryTask, *, confidence: float) -> Interval:
        cells = decisions.cells(t, task)
        among = decisions.added(cells, self.whole)
        if among <= 0:
            raise Undefined(self.empty)
        part = decisions.added(cells, self.part)
        return intervals.wilson(part, among, decisions.rows_of_share(cells, self.part, self.whole), confidence)


_RIGHT = Share("tn tp", "tn fn fp tp")
_TRUE_POSITIVE = Share("tp", "tp fn", "no row has label 1")
_TRUE_NEGATIVE = Share("tn", "tn fp", "no row has label 0")
_RIGHT_ONES = Share("tp", "tp fp", "no row is decided 1")
_RIGHT_ZEROS = Share("tn", "tn fn", "no row is decided 0")


@metric(
    title="Accuracy",
    better="higher",
    unit="share",
    source="share of right decisions",
    range=(0, 1),
    interval=_RIGHT.interval,
    interval_text=intervals.WILSON,
    covers=covered.POPULATION,
)
def accuracy(t: Table, task: BinaryTask) -> float:
    """Share of rows whose decision equals their label; it ignores what the two errors cost.

    (TP + TN) / T.
    """
    return _RIGHT.value(t, task)


@metric(
    title="Sensitivity",
    better="higher",
    unit="share",
    source="recall, true positive rate",
    range=(0, 1),
    interval=_TRUE_POSITIVE.interval,
    interval_text=intervals.WILSON,
    covers=covered.POPULATION,
)
def sensitivity(t: Table, task: BinaryTask) -> float:
    """Share of the rows with label 1 that are decided 1.

    TP / (TP + FN).
    """
    return _TRUE_POSITIVE.value(t, task)


@metric(
    title="Specificity",
    better="higher",
    unit="share",
    source="true negative rate",
    range=(0, 1),
    interval=_TRUE_NEGATIVE.interval,
    interval_text=intervals.WILSON,
    covers=covered.POPULATION,
)
def specificity(t: Table, task: BinaryTask) -> float:
    """Share of the rows with label 0 that are decided 0.

    TN / (TN + FP).
    """
    return _TRUE_NEGATIVE.value(t, task)


@metric(
    title="Positive predictive value",
    better="higher",
    unit="share",
    source="precision",
    range=(0, 1),
    interval=_RIGHT_ONES.interval,
    interval_text=intervals.WILSON,
    covers=covered.POPULATION,
)
def ppv(t: Table, task: BinaryTask) -> float:
    """Share of the rows decided 1 whose label is 1.

    TP / (TP + FP).
    """
    return _RIGHT_ONES.value(t, task)


@metric(
    title="Negative predictive value",
    better="higher",
    unit="share",
    source="share of label 0 among decisions 0",
    range=(0, 1),
    interval=_RIGHT_ZEROS.interval,
    interval_text=intervals.WILSON,
    covers=covered.POPULATION,
)
def npv(t: Table, task: BinaryTask) -> float:
    """Share of the rows decided 0 whose label is 0.

    TN / (TN + FN).
    """
    return _RIGHT_ZEROS.value(t, task)
