"""What decisions made with the scores are worth, for a task; payoffs are in the task's own utility units."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import metric
from decal_cli.metrics.families.levels import Levels, at_levels
from decal_cli.metrics.numerics import decisions, gaps
from decal_cli.tables.table import Estimate, Floats, Table
from decal_cli.task import BinaryTask, Matrix

AtLevels = Annotated[Levels, "exact levels, 15 equal-mass bins, or auto: exact where the median level has 30 rows"]

_CELLS = "mean of a per-row payoff: normal, from its standard error"
_LEAST_HEADROOM = 1e-12


def _mean_interval(t: Table, task: BinaryTask, payoff: Matrix, confidence: float) -> Interval:
    """The interval of the mean of payoff[decision][label]."""
    corners = [cell for row in payoff for cell in row]
    return intervals.normal(decisions.cells(t, task).mean(payoff), confidence, min(corners), max(corners))


def _expected_utility_interval(t: Table, task: BinaryTask, *, confidence: float) -> Interval:
    return _mean_interval(t, task, task.utility, confidence)


@metric(
    title="Expected utility",
    better="higher",
    unit="utility",
    source="[R] eq. 2",
    shown=True,
    interval=_expected_utility_interval,
    interval_text=_CELLS,
)
def expected_utility(t: Table, task: BinaryTask) -> float:
    """Mean utility per row of the decisions as they are made.

    (U00 TN + U01 FN + U10 FP + U11 TP) / T; with a threshold alone it is minus the cost-weighted error, at best 0.
    """
    return decisions.cells(t, task).mean(task.utility).mean


@metric(
    title="Share of possible utility",
    better="higher",
    unit="share",
    source="relative utility, Baker et al. 2009; the bound is the isotonic fit's",
    range=(-math.inf, 1),
    shown=True,
)
def utility_share(t: Table, task: BinaryTask) -> float:
    """Utility gained over the better constant action, as a share of what the best threshold on these scores gains.

    (EU - best constant) / (EU of acting on the isotonic fit - best constant): 1 is all that these scores can give, 0
    is what needs no model, below 0 is worse than that. The bound is fitted on these rows, so a little too high.
    """
    headroom = decisions.headroom(t, task)
    if headroom <= _LEAST_HEADROOM:
        raise Undefined("no threshold on these scores beats the better constant action")
    return min((decisions.advantage(t, task) - decisions.best_constant(t, task)) / headroom, 1.0)


def _net_benefit_payoff(task: BinaryTask) -> Matrix:
    return (0.0, 0.0), (-task.threshold / (1 - task.threshold), 1.0)


def _net_benefit_interval(t: Table, task: BinaryTask, *, confidence: float) -> Interval:
    return _mean_interval(t, task, _net_benefit_payoff(task), confidence)


@metric(
    title="Net benefit",
    better="higher",
    unit="share",
    source="Vickers & Elkin 2006",
    range=(-math.inf, 1),
    shown=True,
    interval=_net_benefit_interval,
    interval_text=_CELLS,
)
def net_benefit(t: Table, task: BinaryTask) -> float:
    """True positives per row, false positives taken off at the rate of exchange of the threshold.

    TP / T - FP / T x t* / (1 - t*), decisions as they are made; 0 is never deciding 1.
    """
    return decisions.cells(t, task).mean(_net_benefit_payoff(task)).mean


def _constant(t: Table, payoff: tuple[float, float]) -> Estimate:
    """Mean of payoff[label] over all rows: a confusion at threshold 0 has every row decided 1."""
    return t.confusion(0.0).mean(((0.0, 0.0), payoff))


def _eu_never_interval(t: Table, task: BinaryTask, *, confidence: float) -> Interval:
    row = task.utility[0]
    return intervals.normal(_constant(t, row), confidence, min(row), max(row))


@metric(
    title="Utility of never acting",
    better="neither",
    unit="utility",
    source="[R] eq. 2 for the constant decision 0",
    interval=_eu_never_interval,
    interval_text=_CELLS,
)
def eu_never(t: Table, task: BinaryTask) -> float:
    """Mean utility per row of always deciding 0: needs no model.

    (1 - b) U00 + b U01.
    """
    return _constant(t, task.utility[0]).mean


def _eu_always_interval(t: Table, task: BinaryTask, *, confidence: float) -> Interval:
    row = task.utility[1]
    return intervals.normal(_constant(t, row), confidence, min(row), max(row))


@metric(
    title="Utility of always acting",
    better="neither",
    unit="utility",
    source="[R] eq. 2 for the constant decision 1",
    interval=_eu_always_interval,
    interval_text=_CELLS,
)
def eu_always(t: Table, task: BinaryTask) -> float:
    """Mean utility per row of always deciding 1: needs no model.

    (1 - b) U10 + b U11.
    """
    return _constant(t, task.utility[1]).mean


@metric(
    title="Swap regret",
    better="lower",
    unit="utility",
    source="[C] def. 2.8",
    range=(0, 1),
)
def swap_regret(t: Table, task: BinaryTask) -> float:
    """Utility per row that a fixed rule 'where you did a, do b instead' would have added.

    max over maps of the two actions of the mean gain: each group of equal decisions is turned over where that pays.
    """
    on_zero, on_one = decisions.by_decision(t, task)
    return task.u_delta * (max(on_zero, 0.0) + max(-on_one, 0.0))


def _external_regret_interval(t: Table, task: BinaryTask, *, confidence: float) -> Interval:
    threshold, u_delta = task.threshold, task.u_delta
    # Per row, utility of the better constant minus that of the decision.
    if t.base_rate > threshold:
        payoff = ((-threshold * u_delta, (1 - threshold) * u_delta), (0.0, 0.0))
    else:
        payoff = ((0.0, 0.0), (threshold * u_delta, (threshold - 1) * u_delta))
    return _mean_interval(t, task, payoff, confidence)


@metric(
    title="External regret",
    better="lower",
    unit="utility",
    source="[C] def. 2.9",
    range=(-1, 1),
    interval=_external_regret_interval,
    interval_text=_CELLS,
)
def external_regret(t: Table, task: BinaryTask) -> float:
    """Utility per row that the better constant action would have added; below 0 where the model beats both.

    max(eu_never, eu_always) - expected_utility.
    """
    return task.u_delta * (decisions.best_constant(t, task) - decisions.advantage(t, task))


@metric(
    title="Calibration decision loss at this task",
    better="lower",
    unit="utility",
    source="[C] def. 2.14",
    range=(0, 1),
    size_free=False,
)
def cfdl(t: Table, task: BinaryTask, *, levels: AtLevels = "auto") -> float:
    """Utility per row gained by acting on the frequency of each level instead of on its score; see cfdl_null.

    mean over rows of U(best action for h_i) - U(action for q_i), the action for q_i as the model is operated. levels:
    exact ones, or each score first replaced by the mean score of its equal-mass bin; auto takes exact levels where the
    median of them holds 30 rows or more, since noise is all that levels of one row show.
    """
    return decisions.decision_loss(at_levels(t, levels), task)


def _cfdl_draws(t: Table, task: BinaryTask, rng: np.random.Generator, levels: Levels) -> Floats:
    def draw(rng: np.random.Generator) -> Floats:
        return gaps.null_draws(at_levels(t, levels), lambda drawn: decisions.decision_loss(drawn, task), rng)

    return t.drawn(("cfdl", task, levels), rng, draw)


def _cfdl_null_interval(
    t: Table, task: BinaryTask, rng: np.random.Generator, *, confidence: float, levels: Levels
) -> Interval:
    return gaps.central(_cfdl_draws(t, task, rng, levels), confidence)


@metric(
    title="Calibration decision loss of a calibrated model",
    better="neither",
    unit="utility",
    source="parametric bootstrap",
    range=(0, 1),
    size_free=False,
    interval=_cfdl_null_interval,
    interval_text="central range of the cfdl of a calibrated model",
)
def cfdl_null(t: Table, task: BinaryTask, rng: np.random.Generator, *, levels: AtLevels = "auto") -> float:
    """Mean cfdl that a perfectly calibrated model with these scores would show, by chance alone.

    Labels are drawn from the scores of the same levels, 400 times.
    """
    return float(_cfdl_draws(t, task, rng, levels).mean())


def _wilson(part: str, whole: str) -> Callable[..., Interval]:
    def interval(t: Table, task: BinaryTask, *, confidence: float) -> Interval:
        cells = decisions.cells(t, task)
        among = decisions.added(cells, whole)
        squares = decisions.added(cells, whole, squared=True)
        if among <= 0:
            raise Undefined("rests on no rows")
        return intervals.wilson(decisions.added(cells, part), among, among**2 / squares, confidence)

    return interval


@metric(
    title="Accuracy",
    better="higher",
    unit="share",
    source="share of right decisions",
    range=(0, 1),
    interval=_wilson("tn tp", "tn fn fp tp"),
    interval_text=intervals.WILSON,
)
def accuracy(t: Table, task: BinaryTask) -> float:
    """Share of rows whose decision is their label; deaf to what the two errors cost.

    (TP + TN) / T.
    """
    return decisions.rate(t, task, "tn tp", "tn fn fp tp", "")


@metric(
    title="Sensitivity",
    better="higher",
    unit="share",
    source="recall, true positive rate",
    range=(0, 1),
    interval=_wilson("tp", "tp fn"),
    interval_text=intervals.WILSON,
)
def sensitivity(t: Table, task: BinaryTask) -> float:
    """Share of the rows with label 1 that are decided 1.

    TP / (TP + FN).
    """
    return decisions.rate(t, task, "tp", "tp fn", "there is no row with label 1")


@metric(
    title="Specificity",
    better="higher",
    unit="share",
    source="true negative rate",
    range=(0, 1),
    interval=_wilson("tn", "tn fp"),
    interval_text=intervals.WILSON,
)
def specificity(t: Table, task: BinaryTask) -> float:
    """Share of the rows with label 0 that are decided 0.

    TN / (TN + FP).
    """
    return decisions.rate(t, task, "tn", "tn fp", "there is no row with label 0")


@metric(
    title="Positive predictive value",
    better="higher",
    unit="share",
    source="precision",
    range=(0, 1),
    interval=_wilson("tp", "tp fp"),
    interval_text=intervals.WILSON,
)
def ppv(t: Table, task: BinaryTask) -> float:
    """Share of the rows decided 1 whose label is 1.

    TP / (TP + FP).
    """
    return decisions.rate(t, task, "tp", "tp fp", "no row is decided 1")


@metric(
    title="Negative predictive value",
    better="higher",
    unit="share",
    source="share of label 0 among decisions 0",
    range=(0, 1),
    interval=_wilson("tn", "tn fn"),
    interval_text=intervals.WILSON,
)
def npv(t: Table, task: BinaryTask) -> float:
    """Share of the rows decided 0 whose label is 0.

    TN / (TN + FN).
    """
    return decisions.rate(t, task, "tn", "tn fn", "no row is decided 0")
