"""Rows with a probability for each of several classes: what two-class metrics are for them, and what only they have."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, NamedTuple

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between
from decal_cli.declarations.spec import Bins as EqualMassBins
from decal_cli.errors import Undefined
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import gaps
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.decisions import decide
from decal_cli.metrics.declare import Measured, family, form_of, like, metric, null_of
from decal_cli.metrics.families import calibration
from decal_cli.metrics.families.calibration import Bins, By, ece_exact, span
from decal_cli.metrics.families.ranking import components, delong
from decal_cli.metrics.families.scores import Clip
from decal_cli.metrics.gaps import (
    AtCells,
    as_score,
    at_levels,
    debiased_interval,
    levels_or_cells,
    variance_terms,
)
from decal_cli.metrics.regret_cells import N_DRAWS, ClassRegrets
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.design import design_effect
from decal_cli.tables.estimate import dot
from decal_cli.tables.memo import once
from decal_cli.tables.rows import of_rows
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, Floats, Ints, Strategy, Table, tabulate
from decal_cli.tables.units import Estimate, starts_of
from decal_cli.task import ClassDecision

MAX_PREDICTED_CELLS = 2048
"""Cells of the predicted utility on which its error is drawn."""


class ByPredictedUtility(NamedTuple):
    """Rows in order of the utility that their own probabilities predict, (T,) each; and the first row of each level.

    order: the number of each. gap: its weight times predicted less actual utility.
    """

    order: Ints
    predicted_utility: Floats
    gap: Floats
    starts: Ints


@once
def _by_predicted_utility(c: ClassTable, decision: ClassDecision) -> ByPredictedUtility:
    decided = decide(c, decision)
    order = np.argsort(decided.predicted_utility, kind="stable")
    predicted = decided.predicted_utility[order]
    return ByPredictedUtility(
        order, predicted, c.weights[order] * (predicted - decided.won[order]), starts_of([predicted])
    )


def _runs(starts: Ints, most: int) -> Ints:
    """The first row of each of at most so many runs of levels."""
    if len(starts) <= most:
        return starts
    return np.asarray(starts[np.unique(np.linspace(0, len(starts), most, endpoint=False).astype(np.int64))])


def _gaps_of_cells(c: ClassTable, decision: ClassDecision, most: int) -> tuple[Floats, Floats]:
    """What each of at most so many runs of levels adds to the gap per row, and the variance of that, (m,) each."""
    _, _, gap, starts = _by_predicted_utility(c, decision)
    sums, squares = (np.add.reduceat(each, _runs(starts, most)) for each in (gap, c.effect * gap**2))
    return sums / c.total, squares / c.total**2


@once
def _drawn_gaps(c: ClassTable, decision: ClassDecision, seed: Seed) -> tuple[Floats, float]:
    """Draws of utility_calibration about the gaps seen, and what the cells themselves give."""
    sums, variance = _gaps_of_cells(c, decision, MAX_PREDICTED_CELLS)
    noise = np.sqrt(variance) * seed.generator("classes").standard_normal((N_DRAWS, len(sums)))
    return span(np.cumsum(sums + noise, axis=-1)), float(span(np.cumsum(sums)))


@once
def _null_draws(c: ClassTable, decision: ClassDecision, seed: Seed) -> Floats:
    """Draws of utility_calibration of a calibrated model, whose gaps agree in a cluster as much as those seen."""
    order, predicted, gap, starts = _by_predicted_utility(c, decision)
    action, expected = decide(c, decision).action, np.zeros(len(c))
    for column, squares in zip(c.score.T, np.array(decision.utility).T ** 2, strict=True):
        expected += column * squares[action]
    weight, rng = c.weights[order], seed.generator("classes")
    deviation = weight / c.total * np.sqrt(np.maximum(expected[order] - predicted**2, 0.0))
    starts = _runs(starts, MAX_PREDICTED_CELLS)
    alone = np.sqrt(np.add.reduceat(deviation**2, starts))
    noise = alone * rng.standard_normal((N_DRAWS, len(starts)))
    if c.unit is not None:
        unit = c.unit[order]
        whole = float((np.bincount(unit, weight) ** 2).sum() / (weight**2).sum())
        effect = design_effect(gap / weight, weight, unit)
        shared = min(max(effect - 1, 0.0) / (whole - 1), 1.0) if whole > 1 else 0.0
        noise *= math.sqrt(1 - shared)
        for each in noise:
            of_cluster = math.sqrt(shared) * rng.standard_normal(int(unit.max()) + 1)
            each += np.add.reduceat(deviation * of_cluster[unit], starts)
    return span(np.cumsum(noise, axis=-1))


def risk_at(t: Table, coverage: Floats) -> tuple[Floats, Floats]:
    """Share of errors among the surest rows, at each coverage in (0, 1], and effective rows that it rests on.

    t: the highest probability, counted with whether its class is the label. Rows of equal probability are taken in any
    order: the expectation over these orders counts.
    """
    wrong, right = (values[::-1] for values in t.of_labels)
    squares = np.asarray(t.n2, dtype=np.float64)[::-1]
    ends = gaps.running(wrong + right)
    rows = np.minimum(np.asarray(coverage) * ends[-1], ends[-1])
    errors, spread = (np.interp(rows, ends, gaps.running(values)) for values in (wrong, squares))
    return np.clip(errors / rows, 0.0, 1.0), rows**2 / spread


def area_influence(t: Table) -> tuple[Floats, Floats]:
    """What a row adds to the area under the curve, to first order, by its level, where its class is right and wrong.

    Of AURC = E[error * -ln S], S the coverage at the row's probability: error * -ln S, less the errors of the rows that
    are no surer, each over its coverage; shape (L,) each, of mean 0 over the rows.
    """
    wrong, right = t.of_labels
    n, total = wrong + right, t.total
    # Within a level, the mean over its rows of -ln of their coverage.
    above = np.cumsum(n[::-1])[::-1] - n
    low, high = above / total, (above + n) / total
    logs = -(high * np.log(high) - low * np.log(np.where(low > 0, low, 1.0))) / (high - low) + 1
    share = wrong / total / ((low + high) / 2)
    beaten = np.cumsum(share) - share / 2
    mean = float(wrong @ logs) / total
    base = -mean - beaten + float(wrong.sum()) / total
    return base, base + logs


family("classes", __doc__)


TopK = Annotated[int, "how many of the most probable classes are looked at", Between(0, 10_000)]
_NO_INTERVAL = "nothing: it is an average over classes, whose errors depend on each other"


def row_brier(c: ClassTable) -> Floats:
    """sum_k (p_k - 1[y = k])^2 of each row, shape (T,)."""
    return np.asarray(np.einsum("ij,ij->i", c.score, c.score) - 2 * c.of_label + 1)


@form_of("brier", "of_classes", range=(0, 2), interval="normal")
def brier(c: ClassTable) -> Estimate:
    """Mean over rows of sum over classes (p_k - 1[y = k])^2: for two classes twice the Brier score of one of them."""
    return c.units.mean(row_brier(c)).within(0.0, 2.0)


@form_of("log_loss", "of_classes", interval="normal")
def log_loss(c: ClassTable, *, eps: Clip = 0.0) -> Estimate:
    """Mean negative natural logarithm of the probability that the row gives to its label."""
    chance = np.clip(c.of_label, eps, 1 - eps) if eps else c.of_label
    if not eps and (wrong := int(np.count_nonzero(chance == 0))):
        rows = f"{wrong:,} row{'s have' if wrong > 1 else ' has'}"
        raise Undefined(f"infinite: {rows} a label of probability exactly 0; log_loss(eps=1e-6) clips the scores")
    return c.units.mean(-np.log(chance)).within(0.0, math.inf)


def row_right(c: ClassTable, k: int) -> Floats:
    """Whether the label of each row is among its k most probable classes, of equals the first; shape (T,)."""
    if k == 1:
        return (c.predicted == c.label).astype(np.float64)
    above = (c.score > c.of_label[:, None]).sum(axis=1)
    before = np.arange(len(c.classes)) < c.label[:, None]
    ties = ((c.score == c.of_label[:, None]) & before).sum(axis=1)
    return (above + ties < k).astype(np.float64)


def _share(c: ClassTable, k: int) -> Estimate:
    return replace(c.units.mean(row_right(c, k)), low=0.0, high=1.0, of_rows=True)


@form_of("accuracy", "of_classes", interval="wilson", shown=True)
def accuracy(c: ClassTable) -> Estimate:
    """Share of rows whose most probable class is the label."""
    return _share(c, 1)


@like("accuracy", "Top-k accuracy", "share of rows")
def top_accuracy(c: ClassTable, *, k: TopK = 2) -> Estimate:
    """Share of rows whose label is among the k most probable classes.

    Of equal probabilities the class that is named first counts as the more probable one.
    """
    if k >= len(c.classes):
        raise Undefined(f"is 1 whatever the scores: there are {len(c.classes)} classes and k is {k}")
    return _share(c, k)


def _mean_auc(c: ClassTable, weighted: bool) -> Estimate:
    """Mean over classes of the AUC of each against the rest, by the components of DeLong et al. 1988.

    weighted: the mean has the rows of each class as weights, which vary too.
    """
    rows = c.count(c.label, len(c.classes))
    seen = np.flatnonzero(rows).tolist()
    if len(seen) < 2:
        raise Undefined("needs rows of two classes at least")
    share = rows[seen] / c.total if weighted else np.full(len(seen), 1 / len(seen))
    areas = np.array([delong(c.one_vs_rest(k)).value for k in seen])

    def adds() -> Floats:
        added = np.zeros(len(c))
        for k, area, part in zip(seen, areas, share, strict=True):
            t, own = c.one_vs_rest(k), c.label == k
            beaten, beating = (each[np.searchsorted(t.score, c.score[:, k])] - area for each in components(t))
            added += part * c.total * np.where(own, beaten / t.positives, beating / t.negatives)
            added += (own - rows[k] / c.total) * area if weighted else 0.0
        return added

    return c.units.linear(dot(share, areas), adds).within(0.0, 1.0)


@form_of("auc", "of_classes", interval=None, estimand=_NO_INTERVAL)
def auc(c: ClassTable) -> Estimate:
    """Mean over classes of the AUC of each class against the rest; classes that no row has are not counted."""
    return _mean_auc(c, weighted=False)


@metric(
    "AUC, classes weighted by their rows",
    "higher",
    "share",
    "one class against the rest",
    (0, 1),
    interval=None,
    estimand=_NO_INTERVAL,
)
def auc_weighted(c: ClassTable) -> Estimate:
    """AUC of each class against the rest, averaged with the rows of each class as weights.

    Classes that no row has are not counted.
    """
    return _mean_auc(c, weighted=True)


_ON_TOP = cite("Naeini et al. 2015")


@like("ece", "ECE of the top class", _ON_TOP, how="as for ece")
def ece_top(c: ClassTable, *, bins: Bins = BINS, strategy: By = "mass") -> Measured:
    """Mean distance, over bins of the highest probability, between it and how often that class is the label.

    ece of the confidence max_k p_k for the event that its class is the label. Noise keeps it above 0 for a calibrated
    model; compare it with ece_top_null.
    """
    return calibration.ece(c.top, bins=bins, strategy=strategy)


@null_of(
    "ece_top",
    "ECE of the top class, calibrated",
    f"parametric bootstrap, as in {cite('Vaicenavicius et al. 2019')}",
)
def ece_top_null(c: ClassTable, seed: Seed, *, bins: Bins = BINS, strategy: By = "mass") -> Floats:
    """Mean ece_top that a perfectly calibrated model with these probabilities shows, by chance alone.

    Whether the top class is right is drawn from its probability, as for ece_null.
    """
    return calibration.ece_draws(c.top, seed, bins, strategy)


def _top_interval(c: ClassTable, *, confidence: float, bins: int, strategy: Strategy) -> Interval:
    return debiased_interval(c.top.bins(bins, strategy), confidence)


@like("ece_debiased", "Squared ECE of the top class, debiased", interval=_top_interval)
def ece_top_debiased(c: ClassTable, *, bins: Bins = BINS, strategy: By = "mass") -> Estimate:
    """Mean squared distance of ece_top, less its noise; near 0 for a calibrated model.

    ece_debiased of the confidence max_k p_k; it stays squared, and is negative about half of the time for a calibrated
    model.
    """
    value = calibration.ece_debiased(c.top, bins=bins, strategy=strategy).value
    further = variance_terms(c.top.bins(bins, strategy))[1]

    def influence() -> Floats:
        """The bins held fixed."""
        cut, top = c.top.bins(bins, strategy), c.score.max(axis=1)
        starts = c.top.bin_starts(bins, strategy)
        place = np.searchsorted(c.top.score[starts], top, side="right") - 1
        gap = np.asarray(cut.pos / cut.n) - cut.score
        mean = float((cut.n * gap**2).sum() / cut.total)
        right = (c.predicted == c.label).astype(np.float64)
        return np.asarray(gap[place] ** 2 - mean + 2 * gap[place] * (right - top - gap[place]))

    return c.units.linear(value, influence, further)


@metric(
    "ECE of each class, averaged",
    "lower",
    "probability",
    f"{cite('Naeini et al. 2015')}, of each class",
    (0, 1),
    size_free=False,
    shown=True,
    interval=None,
    estimand=_NO_INTERVAL,
)
def ece_classwise(c: ClassTable, *, bins: Bins = BINS, strategy: By = "mass") -> float:
    """Mean over classes of the ECE of each class's probability; compare it with ece_classwise_null.

    Bins as for ece, of each class for itself.
    """
    return float(np.mean(c.each_class(lambda t: calibration.ece(t, bins=bins, strategy=strategy).value)))


@like(
    "ece_classwise",
    "ECE of each class, averaged, calibrated",
    f"parametric bootstrap, as in {cite('Vaicenavicius et al. 2019')}",
    better="neither",
    shown=False,
)
def ece_classwise_null(c: ClassTable, seed: Seed, *, bins: Bins = BINS, strategy: By = "mass") -> float:
    """Mean ece_classwise that a perfectly calibrated model with these probabilities shows, by chance alone.

    ece_null of each class against the rest, averaged.
    """
    return float(np.mean(c.each_class(lambda t: calibration.ece_null(t, seed, bins=bins, strategy=strategy).value)))


@like(
    "ece_classwise",
    "Squared ECE of each class, averaged, debiased",
    cite("Kumar et al. 2019"),
    unit="squared probability",
    range=(-0.5, 1),
    shown=False,
)
def ece_classwise_debiased(c: ClassTable, *, bins: Bins = BINS, strategy: By = "mass") -> float:
    """ece_debiased of each class against the rest, averaged.

    It stays squared, and is negative about half of the time for a calibrated model.
    """
    return float(np.mean(c.each_class(lambda t: calibration.ece_debiased(t, bins=bins, strategy=strategy).value)))


@like("auc_weighted", "AUC of pairs of classes", "Hand and Till 2001", interval=None)
def auc_pairs(c: ClassTable) -> float:
    """Mean over pairs of classes of how well their probabilities tell their rows apart: Hand and Till's M.

    For classes j and k the mean of two AUCs on the rows of these classes, by the probability of j and by that of k.
    Classes that no row has are not counted.
    """
    seen = np.flatnonzero(c.count(c.label, len(c.classes)))
    if len(seen) < 2:
        raise Undefined("needs rows of two classes at least")

    def of_pair(j: int, k: int) -> float:
        """How well the probability of class j tells the rows of j from those of k."""
        which = (c.label == j) | (c.label == k)
        weight = of_rows(c.weight, which)
        return delong(tabulate(np.ascontiguousarray(c.score[which, j]), c.label[which] == j, weight)).value

    return float(np.mean([of_pair(j, k) for j in seen.tolist() for k in seen.tolist() if j != k]))


@like("brier", "Ranked probability score", "Epstein 1969", range=(0, math.inf), shown=False)
def rps(c: ClassTable) -> Estimate:
    """Mean over rows of sum over j < K of (P(y <= j) - 1[y <= j])^2: for classes that stand in order.

    The order of the classes is that of their columns.
    """
    reached = np.cumsum(c.score[:, :-1], axis=1)
    off = reached - (c.label[:, None] <= np.arange(len(c.classes) - 1))
    return c.units.mean((off**2).sum(axis=1)).within(0.0, len(c.classes) - 1.0)


@metric(
    "Area under the risk-coverage curve",
    "lower",
    "share",
    "Geifman and El-Yaniv 2017",
    (0, 1),
    size_free=False,
    interval="normal",
    how="normal, by what each row adds to first order",
)
def aurc(c: ClassTable) -> Estimate:
    """Mean over coverages i / T of the share of errors among the i rows with the highest top probability.

    Rows of equal top probability are taken in any order: the expectation over their orders counts. Undefined for
    weighted rows.
    """
    if c.weight is not None:
        raise Undefined("is for rows without weights")
    t = c.top
    wrong, right = (values[::-1] for values in t.of_labels)
    n = wrong + right
    before, errors = np.cumsum(n) - n, np.cumsum(wrong) - wrong
    # Expected errors among the surest rows up to each row, over these rows.
    place = np.repeat(np.arange(len(n)), n.astype(np.int64))
    upto = np.arange(1, len(place) + 1)
    risks = (errors[place] + (upto - before[place]) * (wrong / n)[place]) / upto

    def influence() -> Floats:
        of_right, of_wrong = area_influence(t)
        level = np.searchsorted(t.score, c.score.max(axis=1))
        return np.where(row_right(c, 1) > 0, of_right[level], of_wrong[level])

    return c.units.linear(float(risks.mean()), influence).within(0.0, 1.0)


@metric(
    "L1 calibration error of all classes",
    "lower",
    "probability",
    cite("Kleinberg et al. 2023", "eq. 26"),
    (0, 2),
    size_free=False,
    interval=None,
    estimand="nothing: where levels or cells hold few rows, it is noise",
)
@as_score(lambda t, *, levels="auto": 2 * ece_exact(at_levels(t, levels)).value)
def cal_l1(c: ClassTable, *, levels: AtCells = "auto") -> float:
    """Mean over rows of sum over classes |p_k - h_k|, h the frequencies of the classes among rows of equal p.

    levels: as for cdl: exact levels, or cells of about equally many rows, 8 to 32 and fewer of more classes, which
    scores the mean probabilities of its rows; for two classes equal-mass bins. As many levels or fewer are cells each.
    """
    used = levels_or_cells(c, levels)
    rows = used.counts.sum(axis=1, keepdims=True)
    return float(np.abs(used.counts - rows * used.score).sum() / rows.sum())


family(
    "actions",
    "The value of the actions that are taken by the probabilities of several classes, in the task's own utility units.",
)


@null_of("regret_calibration", "Calibration regret of a calibrated model")
def regret_calibration_null(q: ClassRegrets, seed: Seed, *, bins: EqualMassBins = BINS) -> Floats:
    """Mean regret_calibration that a perfectly calibrated model with these probabilities shows, by chance alone.

    The classes of the rows of each cell are drawn from their mean probabilities, 400 times.
    """
    return q.bins(bins).null(seed.generator("classes"))


@metric(
    "Utility calibration error",
    "lower",
    "utility",
    "Hegazy, Jordan and Dieuleveut 2025 (arXiv 2510.25458)",
    (0, 1),
    size_free=False,
    shown=True,
    how=(
        "bias-corrected: 400 draws of what rows of about one predicted utility are worth; the low end less what chance "
        "gives a calibrated model, the high end at least that of each interval; and the value itself"
    ),
    bootstraps=False,
    estimand=intervals.POPULATION_BELOW,
)
def utility_calibration(c: ClassTable, decision: ClassDecision) -> Measured:
    """Largest gap per row, over all intervals of the predicted utility, between predicted and actual utility.

    The predicted utility is v = max_a sum_k U[a][k] p_k; max over intervals of v of |sum over rows inside
    (v - U[a][y])| / T, the prefix sums' maximum less their minimum. Compare it with utility_calibration_null.
    """
    _, _, gap, starts = _by_predicted_utility(c, decision)
    value = float(span(np.cumsum(np.add.reduceat(gap, starts) / c.total)))

    def interval(confidence: float, seed: Seed) -> Interval:
        draws, centre = _drawn_gaps(c, decision, seed)
        low, high = intervals.bias_corrected(value, draws, confidence, centre)
        # Draws about gaps that are noise do not show all that noise adds: of a calibrated model the low end is 0.
        chance = gaps.central(_null_draws(c, decision, seed), confidence)[1]
        of_cells = _gaps_of_cells(c, decision, gaps.PAIRED_CELLS)
        high = max(high, gaps.highest_run(*of_cells, confidence))
        return intervals.holding((max(min(low, value - chance), 0.0), high), value)

    return Measured(value, interval)


@null_of(
    "utility_calibration",
    "Utility calibration error, calibrated",
    "Gaussian approximation of labels drawn from the probabilities",
)
def utility_calibration_null(c: ClassTable, decision: ClassDecision, seed: Seed) -> Floats:
    """Mean utility_calibration that a perfectly calibrated model with these probabilities shows, by chance alone.

    The sums of up to 4,096 runs of rows are drawn 400 times, with the variance that labels drawn from the probabilities
    give them.
    """
    return _null_draws(c, decision, seed)
