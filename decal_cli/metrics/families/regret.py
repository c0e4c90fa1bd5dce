"""Regret: utility lost by acting on the score as it is; the part that recalibration removes, and the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_FLOOR, Decimal
from functools import partial
from typing import Annotated, Literal

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Bins
from decal_cli.errors import Undefined
from decal_cli.learn import held_out as crossfit
from decal_cli.learn.held_out import FlagByCost, Method
from decal_cli.learn.probe import Probed, no_signal
from decal_cli.learn.regions import Regions, bin_losses
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import decisions, grouping
from decal_cli.metrics.confidence import Interval, holding
from decal_cli.metrics.decisions import Decisions, Featured, Recalibrating
from decal_cli.metrics.declare import Measured, family, form_of, like, metric
from decal_cli.metrics.families.task import MEAN_PAYOFF
from decal_cli.metrics.regret_cells import Regrets, ScoreRegrets, worst_of_rows
from decal_cli.tables.resample import TIE
from decal_cli.tables.row_utilities import RowUtilities
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, Table
from decal_cli.tables.units import Estimate
from decal_cli.task import BinaryTask, Task, constant_words

family("regret", __doc__)


def _scaled(task: Task, interval: Interval) -> Interval:
    return task.u_delta * interval[0], task.u_delta * interval[1]


@like(
    "cfdl",
    "Calibration regret",
    cite("Perez-Lebel et al. 2025", "def. 3.6"),
    shown=True,
    estimand=intervals.OF_BINS_BELOW,
)
def regret_calibration(q: Regrets, *, bins: Bins = BINS) -> Measured:
    """Utility per decision lost by acting on p as it is instead of on the calibrated p; noise biases it upward.

    u_delta * sum |c(bin) - t*| / T over the rows where c(bin) >= t* and p >= decision threshold disagree, where c is
    the frequency of label 1 in the bin and t* the row's own where rows have stakes of their own; of more than two
    actions the sum of that over their thresholds. Of several classes, cells are the action taken and the second-best
    one, those of fewer than 30 effective rows by the action alone, times equal-mass bins of the margin between their
    expected utilities, of 30 effective rows or more; each cell loses what its best action adds.
    Noise alone moves bins across t*: base decisions on gain_recalibration.
    """
    cells = q.bins(bins)
    return Measured(cells.value, lambda confidence, seed: cells.interval(seed.generator("regret"), confidence))


ByMethod = Annotated[Method, "the calibrator that is chosen inside the folds, or isotonic"]


@metric(
    "Gain of recalibration",
    "neither",
    "utility",
    f"{cite('Perez-Lebel et al. 2025', 'def. 3.6')}, cross-fitted in 5 folds",
    (-1, 1),
    size_free=False,
    shown=True,
    interval="normal",
    how=grouping.WIDENED_OF_TWO,
    estimand=intervals.LEARNED,
)
def gain_recalibration(change: Recalibrating, *, method: ByMethod = "chosen") -> Estimate:
    """Expected gain in utility per decision from recalibration, on held-out rows.

    In each of five folds, a calibrator fitted to the other four decides the rows of the fold; the gain is the mean
    difference in utility to acting on p. Few rows are dealt into folds up to eight times, and the gain is the mean over
    the deals, so that it depends less on the seed. It is negative where there is nothing to gain and noise costs
    something. The calibrator is the one of lowest log loss on held-out rows of the other four folds: the score as it
    is, a shift, Platt scaling or isotonic regression; of several classes temperature, structured vector or structured
    matrix scaling. Its interval is for the mean gain, in the population, of the fitted decision rules. method:
    isotonic takes isotonic regression in every fold.
    """
    change = change.by(method)
    return change.gain


@like(
    "gain_recalibration",
    "Gain over a constant, recalibrated",
    f"{cite('Perez-Lebel et al. 2025', 'def. 3.6')}, cross-fitted, against the best constant decision",
    shown=False,
    estimand=f"{intervals.LEARNED}, over the constant decision that is better on these rows",
)
def gain_over_constant(change: Recalibrating) -> Estimate:
    """Expected gain in utility per decision of the recalibrated score over the best constant decision.

    As gain_recalibration, but compared with always taking the same action, the one that is worth most on these rows.
    Where it is not above 0, the score cannot beat a constant decision at any threshold.
    """
    return change.over_constant.gain


def _threshold_text(t: Table, task: BinaryTask) -> str:
    """The shortest decimal that decides every row as the adjusted threshold does."""
    value = threshold_adjusted(t, task).value
    level = int(np.searchsorted(t.score, value))
    return shortest_between(float(t.score[level - 1]) if level else -math.inf, value)


@metric(
    "Adjusted threshold",
    "neither",
    "score",
    cite("Perez-Lebel et al. 2025", "prop. 3.3"),
    (0, 1),
    how=grouping.CROSSINGS,
    value_text=_threshold_text,
    bootstraps=False,
    estimand=(
        "where the population's isotonic fit crosses t*; 0 or 1 where acting on every row, or on none, may be best"
    ),
)
def threshold_adjusted(t: Table, task: BinaryTask) -> Measured:
    """Act when score >= this threshold: that equals acting when the recalibrated score >= t*.

    The smallest score whose isotonic fit is at least t*; the smallest score of all where every fit is. Undefined where
    no fit reaches t*: then never acting is best.
    """
    fitted = t.isotonic.pos / t.isotonic.n
    reached = np.flatnonzero(fitted >= task.threshold * (1 - TIE))
    if not len(reached):
        highest = f"the highest is {fitted[-1]:.3g}"
        raise Undefined(f"no recalibrated score reaches t* = {task.threshold:g} ({highest}): {constant_words(0)}")
    value = float(t.score[t.pools[reached[0]]])

    def interval(confidence: float, seed: Seed) -> Interval:
        return holding(crossfit.threshold_range(t, task.threshold, seed, confidence), value)

    return Measured(value, interval)


@metric(
    "Grouping loss",
    "lower",
    "squared probability",
    f"{cite('Perez-Lebel et al. 2023', 'eq. 12')}; {cite('Perez-Lebel et al. 2025', 'sec. 3.2')}",
    (-1, 1),
    size_free=False,
    shown=True,
    how="one-sided, normal, with second-order term; the upper end is 0.25, the largest that there is",
    estimand="the population's grouping loss, which is at least the lower end: nothing says how much such trees miss",
    side="at least",
)
def grouping_loss(regions: Regions) -> Measured:
    """Variance of the true probability among rows of equal score that the features show; 0 or below: they show none.

    In each of 15 equal-mass bins, a tree of at most 5 leaves is grown on one half of the rows and evaluated on the
    other; the noise of the leaves and the spread of the isotonic fit within the bin are subtracted. It is on the scale
    of (p - y)^2.
    """
    return Measured(grouping.loss(regions).mean, lambda confidence, _: grouping.loss_interval(regions, confidence))


_grouping_regret = partial(metric, better="lower", unit="utility", range=(0, grouping.MOST_REGRET), size_free=False)


Bound = Literal["lower", "upper", "sharp", "middle"]


def _bound(regions: Regions, task: Task, bound: Bound) -> float:
    return task.u_delta * float(getattr(grouping.estimated_bounds(regions, task), bound))


def _bracketed(bound: Bound) -> Callable[..., Interval]:
    def interval(regions: Regions, probed: Probed, task: Task, seed: Seed, *, confidence: float) -> Interval:
        if bound != "middle":
            grouping.need_seen(regions, probed, confidence)
        brackets = grouping.bracket(
            regions, task, seed.generator("regret"), confidence, grouping.missed(regions, probed, confidence)
        )
        ends = _scaled(task, getattr(brackets.shown, "sharp" if bound == "middle" else bound))
        return holding(ends, _bound(regions, task, bound))

    return interval


@_grouping_regret(
    title="Grouping regret, lower bound",
    source=cite("Perez-Lebel et al. 2025", "thm. 3.4"),
    interval=_bracketed("lower"),
    how=f"{grouping.JITTERED}; and the value itself",
    estimand=f"the lower bound on the population's regret; {grouping.UNLESS_UNSEEN}",
)
def regret_grouping_lower(regions: Regions, task: Task) -> float:
    """Utility per decision that acting on the true probability adds at least to recalibration.

    Mean over 15 bins of u_delta [GL - Vmin]+, Vmin = (1 - c) (c - t*) where c >= t*, else c (t* - c); GL is the bin's
    grouping loss, clipped to [0, c (1 - c)], and c its frequency of label 1.
    """
    return _bound(regions, task, "lower")


@like(
    "regret_grouping_lower",
    "Grouping regret, upper bound",
    cite("Perez-Lebel et al. 2025", "thm. 3.5"),
    interval=_bracketed("upper"),
    how=grouping.BRACKET.format("upper"),
    estimand=f"the upper bound on the population's regret; {grouping.UNLESS_UNSEEN}",
)
def regret_grouping_upper(regions: Regions, task: Task) -> float:
    """Utility per decision that acting on the true probability adds at most to recalibration, as published.

    Mean over 15 bins of u_delta / 2 (sqrt(GL + (c - t*)^2) - |c - t*|), for the grouping loss GL that the features
    show. It is too large where that would take probabilities below 0 or above 1: see regret_grouping_upper_sharp.
    """
    return _bound(regions, task, "upper")


@like(
    "regret_grouping_lower",
    "Grouping regret, sharp upper bound",
    f"{cite('Perez-Lebel et al. 2025', 'thm. 3.5')}, for probabilities in [0, 1]",
    interval=_bracketed("sharp"),
    how=grouping.BRACKET.format("sharp upper"),
    estimand=f"the sharp upper bound on the population's regret; {grouping.UNLESS_UNSEEN}",
)
def regret_grouping_upper_sharp(regions: Regions, task: Task) -> float:
    """Utility per decision that acting on the true probability adds at most to recalibration: the best possible bound.

    Mean over 15 bins of u_delta max(E[Q - t*]+) - u_delta [c - t*]+, over all probabilities Q in [0, 1] of mean c and
    variance GL. With m = c^2 + GL and n = (1 - c)^2 + GL, max(E[Q - t*]+) is c - t* c^2 / m where 2 c t* <= m,
    GL (1 - t*) / n where 2 (1 - c) (1 - t*) <= n, and (sqrt(GL + (c - t*)^2) + c - t*) / 2 elsewhere.
    """
    return _bound(regions, task, "sharp")


@like(
    "regret_grouping_lower",
    "Grouping regret",
    f"{cite('Perez-Lebel et al. 2025', 'def. 3.6')}, with the sharp upper bound",
    shown=True,
    interval=_bracketed("middle"),
    how=grouping.BRACKET.format("sharp upper"),
    estimand=f"the population's grouping regret, {grouping.AS_TREES_SEE}",
)
def regret_grouping(regions: Regions, task: Task) -> float:
    """Utility per decision lost even after recalibration, because rows of equal score differ; never negative.

    The middle of regret_grouping_lower and regret_grouping_upper_sharp. Noise alone makes it positive: base decisions
    on gain_beyond.
    """
    return _bound(regions, task, "middle")


def _regret_interval(
    t: Table, regions: Regions, probed: Probed, task: Task, seed: Seed, *, confidence: float
) -> Interval:
    judged = bin_losses(regions).judged
    calibration = grouping.calibration_of(t, task, t.bins(BINS), judged)
    unseen = grouping.missed(regions, probed, confidence)
    upper = grouping.bracket(regions, task, seed.generator("regret"), confidence, unseen, calibration).sharp[1]
    # What the probe wins is a part of the regret, also where the trees behind the bounds see less than the probe does.
    changes = Recalibrating.of_table(t, task, seed.value), Featured.of_scores(probed, task)
    low, high = decisions.post_training(*changes).normal(confidence)
    value = regret(ScoreRegrets(t, task), regions, task)
    return min(max(low, 0.0), value), max(high, task.u_delta * upper, value)


@metric(
    "Regret",
    "lower",
    "utility",
    cite("Perez-Lebel et al. 2025", "def. 3.6"),
    (0, 2),
    size_free=False,
    shown=True,
    interval=_regret_interval,
    how=grouping.REGRET,
    estimand="the population's regret, as far as the features show it to such trees or to the probe",
)
def regret(q: ScoreRegrets, regions: Regions, task: Task) -> float:
    """Utility per decision lost compared with acting on the true probability; noise biases it upward.

    regret_calibration + regret_grouping.
    """
    return regret_calibration(q).value + regret_grouping(regions, task)


@like(
    "regret_grouping_lower",
    "Worst-case grouping regret",
    f"{cite('Perez-Lebel et al. 2025', 'prop. 3.1')}, with labels for true probabilities",
    how=(
        "400 draws of the bins' frequencies, as observed, less their noise, and at t* where they may be, the "
        "bias shown taken off; and the value itself"
    ),
    estimand=intervals.OF_BINS,
    rarer=10,
)
def regret_grouping_worst(t: Table, task: Task, *, bins: Bins = BINS) -> Measured:
    """Utility per decision that knowing every label would add to recalibration: an upper limit, not an estimate.

    Mean over 15 bins of u_delta t* (1 - c) where the frequency of label 1, c, is at least t*, and of u_delta c (1 - t*)
    where not: regret_grouping_upper_sharp at the largest possible grouping loss, c (1 - c).
    """
    levels = t.bins(bins)
    rate = levels.pos / levels.n
    value = task.u_delta * float(grouping.worst_bound(rate, levels.n / t.total, task))

    def interval(confidence: float, seed: Seed) -> Interval:
        return _scaled(task, grouping.worst(t, task, seed.generator("regret"), confidence, bins))

    return Measured(value, interval)


@like(
    "gain_recalibration",
    "Gain beyond recalibration",
    f"held-out counterpart of {cite('Perez-Lebel et al. 2025', 'def. 3.6')}; chosen as docs/probe.md describes",
    how=grouping.WIDENED_HELD_OUT,
)
def gain_beyond(change: Featured) -> Estimate:
    """Expected gain in utility per decision from post-training on the features, beyond recalibration.

    It predicts the gain of the method `blend`. A logistic regression and boosted trees on the score and the features
    are weighted as in `blend` and decide held-out rows (5 folds); they are compared with the recalibrated score of the
    same folds; few rows are dealt into folds up to four times. Over the rows on which the two decide differently, the
    gain is the average of two estimates: the mean of what the change wins at the labels, and the same mean with a
    probability in place of the label. Of several classes a multinomial regression on the probabilities and the
    features decides, and the labels alone judge.
    """
    return change.gain


@like(
    "gain_recalibration",
    "Gain of post-training",
    f"held-out counterpart of {cite('Perez-Lebel et al. 2025', 'def. 3.6')}; chosen as docs/probe.md describes",
    how=grouping.OF_SUM,
    estimand=f"{intervals.LEARNED}, over acting on the score as it is",
)
def gain_post_training(recalibrating: Recalibrating, featured: Featured) -> Estimate:
    """Expected gain in utility per decision from recalibration and post-training on the features together.

    gain_recalibration + gain_beyond, so that the three always add up; the ends of their intervals need not.
    """
    most = recalibrating.before.most
    return decisions.post_training(recalibrating, featured).within(-most, most)


MIN_DECIMALS, MAX_DECIMALS = 2, 17


def shortest_between(below: float, value: float) -> str:
    """The shortest decimal above `below` and at most `value`, with at least two decimals before trailing zeros go.

    It parses to a float in (below, value], so that whoever acts from it decides between these two as from the value.
    """
    exact = Decimal(repr(float(value)))
    for decimals in range(MIN_DECIMALS, MAX_DECIMALS + 1):
        rounded = exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_FLOOR)
        if below < float(rounded) <= value:
            return f"{rounded.normalize():f}"
    return repr(float(value))


family(
    "amounts",
    "What decisions are worth where every row has utilities of its own, and what the amounts alone would decide.",
)


@form_of("regret_grouping_worst", "of_rows", range=(-math.inf, math.inf), interval=None)
def row_regret_grouping_worst(u: RowUtilities, *, bins: Bins = BINS) -> float:
    """Utility per decision that knowing every label would add to recalibration: an upper limit, not an estimate.

    mean of u_delta t* (1 - c) over rows where c >= t*, and of u_delta c (1 - t*) over the others, where c is the
    frequency of label 1 in the bin of the row and t* its threshold.
    """
    return worst_of_rows(u, bins)


def need_amounts(u: RowUtilities) -> None:
    """Raise Undefined where a miss costs the same in every row."""
    if not np.ptp(u.benefit()):
        raise Undefined("a miss costs the same in every row, so that the amount alone decides nothing")


def _flagging(u: RowUtilities, flagged: FlagByCost) -> Decisions:
    """The decisions to act wherever the cost of a miss is large, whatever the score. Errors: Undefined."""
    need_amounts(u)
    return Decisions(u.rows.units, u.utility, flagged.large.view(np.int8)).with_unseen()


@metric(
    "Utility of flagging by amount alone",
    "neither",
    "utility",
    "a threshold on the cost of a miss, cross-fitted in 5 folds",
    size_free=False,
    interval="normal",
    how="mean of a per-row payoff on held-out rows: normal, from its standard error",
    estimand="the mean utility, in the population, of the thresholds that the folds learned",
)
def eu_by_amount(u: RowUtilities, flagged: FlagByCost) -> Estimate:
    """Mean utility per row of acting wherever the cost of a miss is large, whatever the score; it needs no model.

    In each of five folds, the rows that cost at least so much to miss are acted on, from the cost that wins most on the
    other four folds.
    """
    return _flagging(u, flagged).utility


@metric(
    "Gain over flagging by amount alone",
    "higher",
    "utility",
    "expected_utility - eu_by_amount, paired",
    size_free=False,
    interval="normal",
    how=f"{MEAN_PAYOFF}; paired, on held-out rows",
    estimand="the score's mean utility in the population, less that of the thresholds that the folds learned",
    less_same="expected_utility",
)
def gain_over_amount(u: RowUtilities, flagged: FlagByCost) -> Estimate:
    """Utility per row of acting on the score as it is, over acting wherever the cost of a miss is large.

    expected_utility - eu_by_amount. Where it is not above 0, the score says nothing that the amount does not.
    """
    return Decisions.of_rows(u).with_unseen().utility - _flagging(u, flagged).utility


family("features", "What features say beyond the score, whatever the task.")


@metric(
    "Signal of the features, p-value",
    "neither",
    "p-value",
    f"generalised covariance measure: {cite('Shah and Peters 2020')}",
    (0, 1),
    size_free=False,
    interval=None,
    estimand="nothing: it is a p-value",
)
def features_pvalue(probed: Probed) -> float:
    """Probability of so clear a signal of the features when they say nothing about the label beyond the score.

    Among 20 rows of a fold with nearly the same score, do labels go with the mean log-odds of a regression and trees
    (see gain_beyond) that have not seen the fold? One-sided; the sum of the products of both residuals, over its
    standard error, is widened by 1.2 because folds learn from each other's rows. Small: there is something to learn,
    whether or not it wins anything at t* with so few rows.
    """
    return no_signal(probed)
