"""The value of the decisions made with the scores, for a task; payoffs are in the task's own utility units.

Each metric is declared once, for every kind of rows and stakes: see `Decisions`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.errors import Undefined
from decal_cli.learn import held_out as crossfit
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import decisions, gaps, label_shift, regret_cells
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.decisions import Acting, Decisions
from decal_cli.metrics.declare import Biased, Measured, family, like, metric, null_of
from decal_cli.metrics.families.ranking import auc_interval, delong
from decal_cli.metrics.gaps import AtLevels, need_rows
from decal_cli.metrics.label_shift import ReferenceScores
from decal_cli.metrics.regret_cells import Regrets
from decal_cli.tables.design import Design
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, NO_POSITIVES, Floats, Table
from decal_cli.tables.units import EVERY, Estimate, run_of_each
from decal_cli.task import Task

family("task", __doc__)


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


@metric(
    "Share of possible utility",
    "higher",
    "share",
    f"relative utility: {cite('Baker et al. 2009')}; the bound is that of the isotonic fit",
    (-math.inf, 1),
    shown=True,
    how=(
        "Fieller's, for the ratio, with errors from 200 replicates drawn from the smoothed calibration "
        "curve, with and without the bias that they show"
    ),
    estimand=f"{intervals.POPULATION}; no interval where what these scores can give is within its noise",
)
def utility_share(t: Table, task: Task) -> Measured:
    """Gain over the better constant action, as a share of the gain that the best threshold on these scores reaches.

    (EU - best constant) / (EU of acting on the isotonic fit - best constant). 1: all that these scores can give; 0: no
    better than the constant action; below 0: worse than that. The bound is fitted on these rows, so it is slightly
    high.
    """
    headroom = decisions.headroom(t, task)
    if headroom <= _MIN_HEADROOM:
        raise Undefined("no threshold on these scores beats the better constant action")
    won = -external_regret(Decisions.of_table(t, task)).value
    value = min(won / (task.u_delta * headroom), 1.0)

    def interval(confidence: float, seed: Seed) -> Interval:
        return intervals.holding(share(seed).interval(confidence), value)

    def share(seed: Seed) -> crossfit.ShareOfPossible:
        return crossfit.share_of_possible(t, crossfit.switches(task), seed)

    return Biased(value, interval, lambda confidence, seed: share(seed).chance(confidence))


@metric("Net benefit", "higher", "share", cite("Vickers and Elkin 2006"), (-math.inf, 1), shown=True, interval="normal")
def net_benefit(d: Acting) -> Estimate:
    """True positives per row, less the false positives weighted by the odds of the threshold.

    TP / T - FP / T x t* / (1 - t*), for the decisions as they are made, with the t* of each row where rows have stakes
    of their own; never acting has 0.
    """

    def each(which: Any) -> Floats:
        return np.where(d.acts[which], np.where(d.positive[which], 1.0, -d.odds(which)), 0.0)

    return d.units.mean(each).within(-math.inf if d.stakes.own else -float(d.odds(EVERY)), 1.0)


@metric(
    "Utility of never acting",
    "neither",
    "utility",
    f"{cite('Perez-Lebel et al. 2025', 'eq. 2')}, for the constant decision 0",
    interval="normal",
)
def eu_never(d: Acting) -> Estimate:
    """Mean utility per row of deciding 0 on every row; it needs no model.

    (1 - b) U00 + b U01.
    """
    return d.constant(0)


@like(
    "eu_never", "Utility of always acting", f"{cite('Perez-Lebel et al. 2025', 'eq. 2')}, for the constant decision 1"
)
def eu_always(d: Acting) -> Estimate:
    """Mean utility per row of deciding 1 on every row; it needs no model.

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
    estimand="nothing: it says how large a gain can be, and is no estimate of how good the score is",
)
def utility_at_stake(d: Decisions) -> Estimate:
    """Utility per row that perfect decisions are worth more than the best constant decision: all there is to win.

    Mean of max_a U[a][label], less the mean utility of the best constant action; of two actions
    u_delta min(b (1 - t*), (1 - b) t*), where b is the base rate. A gain is small or large beside it.
    """
    return d.units.mean(d.best) - d.units.mean(partial(d.worth, d.best_constant))


@metric(
    "Swap regret",
    "lower",
    "utility",
    cite("Hu and Wu 2024", "def. 2.8"),
    (0, 1),
    how=regret_cells.CLIPPED_TEXT,
    estimand=intervals.POPULATION_BELOW,
)
def swap_regret(q: Regrets) -> Measured:
    """Utility per row that the best fixed rule 'where you decided a, decide b instead' adds.

    max over maps of actions to actions of the mean gain: each group of equal decisions is changed where that pays.
    Where rows have stakes of their own, each of a group gets the action that its stakes make best at the label shares
    of the group.
    """
    swaps = q.swaps()
    return Measured(swaps.value, lambda confidence, seed: swaps.interval(seed.generator("task"), confidence))


@metric(
    "External regret",
    "lower",
    "utility",
    cite("Hu and Wu 2024", "def. 2.9"),
    (-1, 1),
    interval="normal",
    estimand="the population's utility of the constant action that is better on these rows, less that of the decisions",
)
def external_regret(d: Decisions) -> Estimate:
    """Utility per row that the best constant action adds; below 0 where the model beats every constant action.

    The largest mean utility of one action for all rows, less expected_utility.
    """
    return -d.over(d.best_constant) + 0.0  # nothing is 0, not -0


@like(
    "swap_regret",
    "Calibration decision loss for this task",
    cite("Hu and Wu 2024", "def. 2.14"),
    size_free=False,
    estimand=intervals.OF_LEVELS_BELOW,
)
def cfdl(q: Regrets, *, levels: AtLevels = "auto") -> Measured:
    """Utility per row gained by acting on the frequency of each level instead of on its score; compare with cfdl_null.

    mean over rows of U(best action for h_i) - U(action for q_i), where the action for q_i is the one that is taken at
    the score of the level. levels: exact levels, or bins, which first replaces each score by the mean score of its
    equal-mass bin; auto takes exact levels where the median level holds 30 rows or more, because levels of one row show
    only noise. Of several classes, cells of the probabilities take the place of bins.
    """
    cells = q.levels(levels)

    def interval(confidence: float, seed: Seed) -> Interval:
        if levels == "exact":
            need_rows(q.table)
        return cells.interval(seed.generator("task"), confidence)

    return Measured(cells.value, interval)


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
    return d.units.share(d.right)


@like("accuracy", "Sensitivity", "recall, true positive rate")
def sensitivity(d: Acting) -> Estimate:
    """Share of the rows with label 1 that are decided 1.

    TP / (TP + FN).
    """
    return d.units.share(d.acts, d.positive, NO_POSITIVES)


@like("accuracy", "Specificity", "true negative rate")
def specificity(d: Acting) -> Estimate:
    """Share of the rows with label 0 that are decided 0.

    TN / (TN + FP).
    """
    return d.units.share(~d.acts, ~d.positive, "no row has label 0")


@like("accuracy", "Positive predictive value", "precision")
def ppv(d: Acting) -> Estimate:
    """Share of the rows decided 1 whose label is 1.

    TP / (TP + FP).
    """
    return d.units.share(d.positive, d.acts, "no row is decided 1")


@like("accuracy", "Negative predictive value", "share of label 0 among decisions 0")
def npv(d: Acting) -> Estimate:
    """Share of the rows decided 0 whose label is 0.

    TN / (TN + FN).
    """
    return d.units.share(~d.positive, ~d.acts, "no row is decided 0")


family("practice", "Measures under the names that medicine, credit scoring and audits of fairness use.")


_ROWS_OF_BIN = 10
"""Rows of the rarer label that a bin has at least, on average."""
_WIDER = 1.1
"""The maximum of a smooth walk moves less than that of the true one: chosen in worlds of known truth."""
INTERVENTIONS = 100.0
"""Rows that interventions avoided are counted of."""


@like(
    "accuracy",
    "Selection rate",
    "positive prediction rate; of a credit score that rejects, the reject rate",
    better="neither",
)
def selection_rate(d: Acting) -> Estimate:
    """Share of the rows that are decided 1.

    (TP + FP) / T.
    """
    return d.units.share(d.acts)


@like("accuracy", "False positive rate", "fall-out, 1 - specificity", better="lower")
def false_positive_rate(d: Acting) -> Estimate:
    """Share of the rows with label 0 that are decided 1.

    FP / (FP + TN).
    """
    return d.units.share(d.acts, ~d.positive, "no row has label 0")


@like(
    "net_benefit",
    "Standardised net benefit",
    cite("Kerr et al. 2016"),
    shown=False,
    how="ratio of two means: normal, from its linearised standard error",
)
def net_benefit_standardised(d: Acting) -> Estimate:
    """Net benefit as a share of the most that it can be, which is the base rate.

    net_benefit / b. 1: every label 1 is found and nothing else; never acting has 0.
    """
    base_rate = d.units.mean(d.positive)
    if base_rate.value <= 0:
        raise Undefined(NO_POSITIVES)
    return (net_benefit(d) / base_rate).within(-math.inf, 1.0)


@metric(
    "Interventions avoided per 100 rows",
    "higher",
    "count",
    cite("Vickers and Elkin 2006"),
    (-math.inf, 100),
    interval="normal",
)
def interventions_avoided(d: Acting) -> Estimate:
    """Interventions per 100 rows that the score avoids without missing more, compared with acting on every row.

    100 (TN - FN (1 - t*) / t*) / T, which is 100 (net benefit - that of always acting) / (odds of t*).
    """

    def avoided(which: Any) -> Floats:
        with np.errstate(divide="ignore"):
            return np.where(d.acts[which], 0.0, np.where(d.positive[which], -1 / d.odds(which), 1.0))

    return (INTERVENTIONS * d.units.mean(avoided)).within(-math.inf, INTERVENTIONS)


def _gini_interval(t: Table, *, confidence: float) -> Interval:
    low, high = auc_interval(t, confidence=confidence)
    return 2 * low - 1, 2 * high - 1


@metric(
    "Gini coefficient",
    "higher",
    "share",
    "Somers' D of label and score: 2 AUC - 1",
    (-1, 1),
    interval=_gini_interval,
    how="from that of auc",
)
def gini(t: Table) -> Estimate:
    """How well the order of the scores separates the labels; 0 for no information, 1 for a perfect order.

    2 AUC - 1.
    """
    return delong(t) * 2 - 1


def _walk(pos: Floats, neg: Floats) -> Floats:
    """Distribution of the score among labels 1 less that among labels 0, at each level along the last axis."""
    ones, zeros = (each / np.maximum(each.sum(axis=-1, keepdims=True), 1e-300) for each in (pos, neg))
    return np.asarray(np.cumsum(ones - zeros, axis=-1))


def _by_rows(t: Table) -> Table:
    """The table with each label as frequent as in the rows: the distance of two distributions needs no known share."""
    if not t.design.share_known:
        return t
    neg, pos = (each / unit for each, unit in zip(t.of_labels, t.unit_of_labels, strict=True))
    neg2, pos2 = (each / unit**2 for each, unit in zip(t.squares_of_labels, t.unit_of_labels, strict=True))
    return Table(t.score, neg + pos, pos, Design((neg2 + pos2, pos2)))


@metric(
    "KS statistic",
    "higher",
    "share",
    "Kolmogorov-Smirnov distance of two samples",
    (0, 1),
    how=(
        "test inversion: the worlds, with the observed distances times a factor or less their noise, in "
        "which what is seen is not extreme; and the value itself"
    ),
    bootstraps=False,
    rarer=50,
    estimand=intervals.POPULATION_BELOW,
)
def ks(t: Table) -> Measured:
    """Largest distance between the distributions of the score among labels 1 and among labels 0.

    max over s of |P(p <= s | y = 1) - P(p <= s | y = 0)|: the largest difference of sensitivity and false positive
    rate that any threshold has.
    """
    t.need_both_classes()
    positives = negatives = largest = 0.0
    for block in t.blocks():
        ones = positives + np.cumsum(block.pos)
        zeros = negatives + np.cumsum(block.n - block.pos)
        largest = max(largest, float(np.abs(ones / t.positives - zeros / t.negatives).max()))
        positives, negatives = float(ones[-1]), float(zeros[-1])
    value = min(largest, 1.0)

    def interval(confidence: float, seed: Seed) -> Interval:
        cells, rng = gaps.cells(_by_rows(t)), seed.generator("practice")
        # The positives of each cell if its bin had one frequency: the walk of the cells themselves is rough by noise.
        starts = cells.bin_starts(int(np.clip(cells.fewer_rows / _ROWS_OF_BIN, 2, BINS)))
        bins = cells.merge_levels(starts)
        pos = (bins.pos / bins.n)[run_of_each(starts, len(cells))] * cells.n
        unit = cells.n / cells.rows_of_cells
        neg, shape = cells.n - pos, (gaps.N_WORLD_DRAWS, len(cells))
        walk = _walk(pos, neg)
        noise = _walk(unit * rng.poisson(pos / unit, shape), unit * rng.poisson(neg / unit, shape)) - walk
        noise *= _WIDER
        less = gaps.shrunken(walk, gaps.LESS[:, None] * noise.std(axis=0))
        worlds = gaps.Worlds(walk, less, noise, (1.0, 0.0))
        return gaps.interval(value, worlds, lambda walk: np.abs(walk).max(axis=-1), confidence, observed=value)

    return Measured(value, interval)


@metric(
    "Population stability index",
    "lower",
    "nats",
    "Kullback's divergence J of two distributions over bins",
    (0, math.inf),
    size_free=False,
    interval=None,
    estimand="nothing: it is a distance, above 0 by chance too, by about 9 (1/T + 1/R) with R rows in the reference",
)
def psi(t: Table, reference: ReferenceScores) -> float:
    """Distance between the distribution of the scores and that of a reference, such as the rows of the training set.

    Sum over ten equal-mass bins of the reference, which stay as they are, of (a - e) ln(a / e), where e is the share of
    the reference in the bin and a that of these rows; a bin that no row falls in counts half a row.
    """
    edges = reference.table.bin_edges(label_shift.N_BINS)
    return label_shift.psi(label_shift.binned(reference.table, edges), label_shift.binned(t, edges))
