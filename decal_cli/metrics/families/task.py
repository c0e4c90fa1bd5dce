"""The value of the decisions made with the scores, for a task; payoffs are in the task's own utility units.

Each metric is declared once, for every kind of rows and stakes: see `Decisions`.
"""

from __future__ import annotations

import math

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.errors import Undefined
from decal_cli.learn import held_out as crossfit
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.decisions import Acting, Decisions
from decal_cli.metrics.declare import like, metric, null_of
from decal_cli.metrics.numerics import clipped, decisions
from decal_cli.metrics.numerics.at_levels import AtLevels, Levels
from decal_cli.metrics.regret_cells import Regrets
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Floats, Table
from decal_cli.tables.units import Estimate
from decal_cli.task import Task

MEAN_PAYOFF = "mean of a per-row payoff: normal, from its standard error"
_MIN_HEADROOM = 1e-12


@metric(
    "Expected utility", "higher", "utility", cite("Perez-Lebel et al. 2025", "eq. 2"), shown=True, interval="normal"
)
def expected_utility(d: Decisions) -> Estimate:
    """Mean utility per row of the decisions as they are made.

    Mean of U[decision][label], for two actions (U00 TN + U01 FN + U10 FP + U11 TP) / T. A row gets the action that is
    best by its score: with two actions 1 from the decision threshold on, or from the row's own t* where rows have
    stakes of their own. With a threshold alone it is minus the cost-weighted error, at best 0.
    """
    return d.utility


def _utility_share_interval(t: Table, task: Task, seed: Seed, *, confidence: float) -> Interval:
    ends = crossfit.share_range(t, crossfit.switches(task), seed.generator("task"), confidence)
    return intervals.holding(ends, utility_share(t, task))


@metric(
    "Share of possible utility",
    "higher",
    "share",
    f"relative utility: {cite('Baker et al. 2009')}; the bound is that of the isotonic fit",
    (-math.inf, 1),
    shown=True,
    interval=_utility_share_interval,
    interval_text=(
        "Fieller's, for the ratio, with errors from 200 replicates drawn from the smoothed calibration "
        "curve, with and without the bias that they show"
    ),
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


@metric("Net benefit", "higher", "share", cite("Vickers and Elkin 2006"), (-math.inf, 1), shown=True, interval="normal")
def net_benefit(d: Acting) -> Estimate:
    """True positives per row, less the false positives weighted by the odds of the threshold.

    TP / T - FP / T x t* / (1 - t*), for the decisions as they are made, with the t* of each row where rows have stakes
    of their own; never acting has 0.
    """
    return d.units.mean(np.where(d.acts, np.where(d.positive, 1.0, -d.odds), 0.0)).within(-math.inf, 1.0)


@metric(
    "Utility of never acting",
    "neither",
    "utility",
    f"{cite('Perez-Lebel et al. 2025', 'eq. 2')}, for the constant decision 0",
    interval="normal",
)
def eu_never(d: Acting) -> Estimate:
    """Mean utility per row of always deciding 0; it needs no model.

    (1 - b) U00 + b U01.
    """
    return d.constant(0)


@like(
    "eu_never", "Utility of always acting", f"{cite('Perez-Lebel et al. 2025', 'eq. 2')}, for the constant decision 1"
)
def eu_always(d: Acting) -> Estimate:
    """Mean utility per row of always deciding 1; it needs no model.

    (1 - b) U10 + b U11.
    """
    return d.constant(1)


@metric(
    "Utility at stake",
    "neither",
    "utility",
    f"{cite('Perez-Lebel et al. 2025', 'eq. 2')}, for perfect decisions less the best constant one",
    (0, 1),
    interval=None,
    covers="nothing: it says how large a gain can be, and is no estimate of how good the score is",
)
def utility_at_stake(d: Decisions) -> Estimate:
    """Utility per row that perfect decisions are worth more than the best constant decision: all there is to win.

    Mean of max_a U[a][label], less the mean utility of the best constant action; of two actions
    u_delta min(b (1 - t*), (1 - b) t*), where b is the base rate. A gain is small or large beside it.
    """
    return d.units.mean(d.worth.max(axis=0)) - d.units.mean(d.worth[d.best_constant])


def _swap_regret_interval(q: Regrets, seed: Seed, *, confidence: float) -> Interval:
    return q.swaps().interval(seed.generator("task"), confidence)


@metric(
    "Swap regret",
    "lower",
    "utility",
    cite("Hu and Wu 2024", "def. 2.8"),
    (0, 1),
    interval=_swap_regret_interval,
    interval_text=clipped.CLIPPED_TEXT,
    covers=covered.POPULATION_BELOW,
)
def swap_regret(q: Regrets) -> float:
    """Utility per row that the best fixed rule 'where you decided a, decide b instead' adds.

    max over maps of actions to actions of the mean gain: each group of equal decisions is changed where that pays.
    Where rows have stakes of their own, each of a group gets the action that its stakes make best at the label shares
    of the group.
    """
    return q.swaps().value


@metric(
    "External regret",
    "lower",
    "utility",
    cite("Hu and Wu 2024", "def. 2.9"),
    (-1, 1),
    interval="normal",
    covers="the population's utility of the constant action that is better on these rows, less that of the decisions",
)
def external_regret(d: Decisions) -> Estimate:
    """Utility per row that the best constant action adds; below 0 where the model beats every constant action.

    The largest mean utility of one action for all rows, less expected_utility.
    """
    best = d.best_constant
    return d.mean(d.worth[best] - d.won, d.stakes[best] - d.stakes)


def _cfdl_interval(q: Regrets, seed: Seed, *, confidence: float, levels: Levels) -> Interval:
    if levels == "exact":
        q.need_rows()
    return q.levels(levels).interval(seed.generator("task"), confidence)


@metric(
    "Calibration decision loss for this task",
    "lower",
    "utility",
    cite("Hu and Wu 2024", "def. 2.14"),
    (0, 1),
    size_free=False,
    interval=_cfdl_interval,
    interval_text=clipped.CLIPPED_TEXT,
    covers=covered.OF_LEVELS_BELOW,
)
def cfdl(q: Regrets, *, levels: AtLevels = "auto") -> float:
    """Utility per row gained by acting on the frequency of each level instead of on its score; compare with cfdl_null.

    mean over rows of U(best action for h_i) - U(action for q_i), where the action for q_i is the one that is taken at
    the score of the level. levels: exact levels, or bins, which first replaces each score by the mean score of its
    equal-mass bin; auto takes exact levels where the median level holds 30 rows or more, because levels of one row show
    only noise. Of several classes, cells of the probabilities take the place of bins.
    """
    return q.levels(levels).value


@null_of("cfdl", "Calibration decision loss of a calibrated model")
def cfdl_null(q: Regrets, seed: Seed, *, levels: AtLevels = "auto") -> Floats:
    """Mean cfdl that a perfectly calibrated model with these scores shows, by chance alone.

    Labels are drawn from the scores of the same levels, 400 times.
    """
    return q.levels(levels).null(seed.generator("task"))


@metric("Accuracy", "higher", "share", "share of right decisions", (0, 1), interval="wilson")
def accuracy(d: Acting) -> Estimate:
    """Share of rows whose decision equals their label; it ignores what the two errors cost.

    (TP + TN) / T.
    """
    return d.share(d.right, True)


@metric("Sensitivity", "higher", "share", "recall, true positive rate", (0, 1), interval="wilson")
def sensitivity(d: Acting) -> Estimate:
    """Share of the rows with label 1 that are decided 1.

    TP / (TP + FN).
    """
    return d.share(d.acts, d.positive, "no row has label 1")


@metric("Specificity", "higher", "share", "true negative rate", (0, 1), interval="wilson")
def specificity(d: Acting) -> Estimate:
    """Share of the rows with label 0 that are decided 0.

    TN / (TN + FP).
    """
    return d.share(~d.acts, ~d.positive, "no row has label 0")


@metric("Positive predictive value", "higher", "share", "precision", (0, 1), interval="wilson")
def ppv(d: Acting) -> Estimate:
    """Share of the rows decided 1 whose label is 1.

    TP / (TP + FP).
    """
    return d.share(d.positive, d.acts, "no row is decided 1")


@metric("Negative predictive value", "higher", "share", "share of label 0 among decisions 0", (0, 1), interval="wilson")
def npv(d: Acting) -> Estimate:
    """Share of the rows decided 0 whose label is 0.

    TN / (TN + FN).
    """
    return d.share(~d.positive, ~d.acts, "no row is decided 0")
