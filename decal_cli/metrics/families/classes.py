"""Rows with a probability for each of several classes: what two-class metrics are for them, and what only they have."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between
from decal_cli.errors import Undefined
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics.declare import for_classes, like, metric, null_of
from decal_cli.metrics.families import bins as binned
from decal_cli.metrics.families.levels import ece_exact
from decal_cli.metrics.families.loss import Clip
from decal_cli.metrics.families.ranking import components, delong
from decal_cli.metrics.numerics.at_levels import AtCells, as_score, at_levels, levels_or_cells
from decal_cli.metrics.numerics.gaps import ece_debiased_interval, variance_terms
from decal_cli.metrics.numerics.selective import area_influence
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, Floats, Strategy, Table, tabulate
from decal_cli.tables.units import Estimate

TopK = Annotated[int, "how many of the most probable classes are looked at", Between(0, 10_000)]
_NO_INTERVAL = "nothing: it is an average over classes, whose errors depend on each other"


def row_brier(c: ClassTable) -> Floats:
    """sum_k (p_k - 1[y = k])^2 of each row, shape (T,)."""
    return np.asarray(np.einsum("ij,ij->i", c.score, c.score) - 2 * c.of_label + 1)


@for_classes("brier", range=(0, 2), interval="normal")
def brier(c: ClassTable) -> Estimate:
    """Mean over rows of sum over classes (p_k - 1[y = k])^2: for two classes twice the Brier score of one of them."""
    return c.units.mean(row_brier(c)).within(0.0, 2.0)


def row_log_loss(c: ClassTable, eps: float) -> Floats:
    """Minus the logarithm of the probability of each row's label, shape (T,). Errors: Undefined, where it is 0."""
    chance = np.clip(c.of_label, eps, 1 - eps) if eps else c.of_label
    if not eps and (wrong := int(np.count_nonzero(chance == 0))):
        rows = f"{wrong:,} row{'s have' if wrong > 1 else ' has'}"
        raise Undefined(f"is infinite: {rows} a label of probability exactly 0; log_loss(eps=1e-6) clips the scores")
    return -np.log(chance)


@for_classes("log_loss", interval="normal")
def log_loss(c: ClassTable, *, eps: Clip = 0.0) -> Estimate:
    """Mean negative natural logarithm of the probability that the row gives to its label."""
    return c.units.mean(row_log_loss(c, eps)).within(0.0, math.inf)


def row_right(c: ClassTable, k: int) -> Floats:
    """Whether the label of each row is among its k most probable classes, of equals the first; shape (T,)."""
    if k == 1:
        return (c.predicted == c.label).astype(np.float64)
    above = (c.score > c.of_label[:, None]).sum(axis=1)
    before = np.arange(len(c.classes)) < c.label[:, None]
    ties = ((c.score == c.of_label[:, None]) & before).sum(axis=1)
    return (above + ties < k).astype(np.float64)


@for_classes("accuracy", interval="wilson", shown=True)
def accuracy(c: ClassTable) -> Estimate:
    """Share of rows whose most probable class is the label."""
    return c.units.mean(row_right(c, 1)).within(0.0, 1.0)


@metric("Top-k accuracy", "higher", "share", "share of rows", (0, 1), interval="wilson")
def top_accuracy(c: ClassTable, *, k: TopK = 3) -> Estimate:
    """Share of rows whose label is among the k most probable classes.

    Of equal probabilities the class that is named first counts as the more probable one.
    """
    return c.units.mean(row_right(c, k)).within(0.0, 1.0)


def _aucs(c: ClassTable) -> Floats:
    seen = c.count(c.label, len(c.classes))
    if (seen > 0).sum() < 2:
        raise Undefined("needs rows of two classes at least")

    def of_class(t: Table) -> float:
        return delong(t).value if 0 < t.positives < t.total else math.nan

    return np.array(c.each_class("auc", of_class))


@for_classes("auc", interval=None, covers=_NO_INTERVAL)
def auc(c: ClassTable) -> Estimate:
    """Mean over classes of the AUC of each class against the rest; classes that no row has are not counted."""
    value = float(np.nanmean(_aucs(c)))
    return c.units.linear(value, lambda: _auc_influence(c, weighted=False)).within(0.0, 1.0)


@metric(
    "AUC, classes weighted by their rows",
    "higher",
    "share",
    "one class against the rest",
    (0, 1),
    interval=None,
    covers=_NO_INTERVAL,
)
def auc_weighted(c: ClassTable) -> Estimate:
    """AUC of each class against the rest, averaged with the rows of each class as weights.

    Classes that no row has are not counted.
    """
    each, rows = _aucs(c), c.count(c.label, len(c.classes))
    value = float(rows @ np.nan_to_num(each) / rows.sum())
    return c.units.linear(value, lambda: _auc_influence(c, weighted=True)).within(0.0, 1.0)


def _on_top(of: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a table, of the highest probability of each row and whether its class is the label."""

    @wraps(of)
    def on_top(c: ClassTable, *others: Any, **parameters: Any) -> Any:
        return of(c.top, *others, **parameters)

    on_top.__annotations__ = {
        name: ClassTable if hint == "Table" else hint for name, hint in of.__annotations__.items()
    }
    return on_top


_ON_TOP = cite("Naeini et al. 2015")


@like("ece", "ECE of the top class", _ON_TOP, interval=_on_top(binned.ece_interval), interval_text="as for ece")
def ece_top(c: ClassTable, *, bins: binned.Bins = BINS, strategy: binned.By = "mass") -> float:
    """Mean distance, over bins of the highest probability, between it and how often that class is the label.

    ece of the confidence max_k p_k for the event that its class is the label. Noise keeps it above 0 for a calibrated
    model; compare it with ece_top_null.
    """
    return binned.ece(c.top, bins=bins, strategy=strategy)


@null_of(
    "ece_top",
    "ECE of the top class, calibrated",
    f"parametric bootstrap, as in {cite('Vaicenavicius et al. 2019')}",
)
def ece_top_null(c: ClassTable, seed: Seed, *, bins: binned.Bins = BINS, strategy: binned.By = "mass") -> Floats:
    """Mean ece_top that a perfectly calibrated model with these probabilities shows, by chance alone.

    Whether the top class is right is drawn from its probability, as for ece_null.
    """
    return binned.null_draws(c.top, seed, bins, strategy)


@like("ece_debiased", "Squared ECE of the top class, debiased", interval=_on_top(ece_debiased_interval))
def ece_top_debiased(c: ClassTable, *, bins: binned.Bins = BINS, strategy: binned.By = "mass") -> Estimate:
    """Mean squared distance of ece_top, less its noise; near 0 for a calibrated model.

    ece_debiased of the confidence max_k p_k; it stays squared, and is negative about half of the time for a calibrated
    model.
    """
    value = binned.ece_debiased(c.top, bins=bins, strategy=strategy)
    further = variance_terms(c.top.bins(bins, strategy))[1]
    return c.units.linear(value, lambda: _top_debiased_influence(c, bins, strategy), further)


@metric(
    "ECE of each class, averaged",
    "lower",
    "probability",
    f"{cite('Naeini et al. 2015')}, of each class",
    (0, 1),
    size_free=False,
    shown=True,
    interval=None,
    covers=_NO_INTERVAL,
)
def ece_classwise(c: ClassTable, *, bins: binned.Bins = BINS, strategy: binned.By = "mass") -> float:
    """Mean over classes of the ECE of each class's probability; compare it with ece_classwise_null.

    Bins as for ece, of each class for itself.
    """
    key = "ece", bins, strategy
    return float(np.mean(c.each_class(key, lambda t: binned.ece(t, bins=bins, strategy=strategy))))


@metric(
    "ECE of each class, averaged, calibrated",
    "neither",
    "probability",
    f"parametric bootstrap, as in {cite('Vaicenavicius et al. 2019')}",
    (0, 1),
    size_free=False,
    interval=None,
    covers=_NO_INTERVAL,
)
def ece_classwise_null(c: ClassTable, seed: Seed, *, bins: binned.Bins = BINS, strategy: binned.By = "mass") -> float:
    """Mean ece_classwise that a perfectly calibrated model with these probabilities shows, by chance alone.

    ece_null of each class against the rest, averaged.
    """
    key = "ece_null", bins, strategy, seed
    return float(np.mean(c.each_class(key, lambda t: binned.ece_null(t, seed, bins=bins, strategy=strategy))))


def _pair_auc(c: ClassTable, j: int, k: int) -> float:
    """How well the probability of class j tells the rows of j from those of k."""
    which = (c.label == j) | (c.label == k)
    weight = None if c.weight is None else c.weight[which]
    return delong(tabulate(np.ascontiguousarray(c.score[which, j]), c.label[which] == j, weight)).value


@like("auc_weighted", "AUC of pairs of classes", "Hand and Till 2001", interval=None)
def auc_pairs(c: ClassTable) -> float:
    """Mean over pairs of classes of how well their probabilities tell their rows apart: Hand and Till's M.

    For classes j and k the mean of two AUCs on the rows of these classes, by the probability of j and by that of k.
    Classes that no row has are not counted.
    """
    seen = np.flatnonzero(c.count(c.label, len(c.classes)))
    if len(seen) < 2:
        raise Undefined("needs rows of two classes at least")
    pairs = [(j, k) for j in seen.tolist() for k in seen.tolist() if j != k]
    return float(np.mean([_pair_auc(c, j, k) for j, k in pairs]))


def row_rps(c: ClassTable) -> Floats:
    """sum_{j < K} (P(y <= j) - 1[y <= j])^2 of each row, shape (T,)."""
    reached = np.cumsum(c.score[:, :-1], axis=1)
    return np.asarray(((reached - (c.label[:, None] <= np.arange(len(c.classes) - 1))) ** 2).sum(axis=1))


@metric(
    "Ranked probability score",
    "lower",
    "squared probability",
    "Epstein 1969",
    (0, math.inf),
    interval="normal",
    interval_text=intervals.MEAN,
)
def rps(c: ClassTable) -> Estimate:
    """Mean over rows of sum over j < K of (P(y <= j) - 1[y <= j])^2: for classes that stand in order.

    The order of the classes is that of their columns.
    """
    return c.units.mean(row_rps(c)).within(0.0, len(c.classes) - 1.0)


def _risks(c: ClassTable) -> Floats:
    """Expected errors among the surest rows up to each row, by coverage, shape (T,)."""
    t = c.top
    n, wrong = np.asarray(t.n[::-1], dtype=np.float64), np.asarray((t.n - t.pos)[::-1], dtype=np.float64)
    before, errors = np.cumsum(n) - n, np.cumsum(wrong) - wrong
    place = np.repeat(np.arange(len(n)), n.astype(np.int64))
    inside = np.arange(1, len(place) + 1) - before[place]
    return np.asarray((errors[place] + inside * (wrong / n)[place]) / np.arange(1, len(place) + 1))


def aurc_influence(c: ClassTable) -> Floats:
    """What each row adds to aurc, to first order, shape (T,)."""
    right, wrong = area_influence(c.top)
    place = np.searchsorted(c.top.score, c.score.max(axis=1))
    return np.where(row_right(c, 1) > 0, right[place], wrong[place])


@metric(
    "Area under the risk-coverage curve",
    "lower",
    "share",
    "Geifman and El-Yaniv 2017",
    (0, 1),
    size_free=False,
    interval="normal",
    interval_text="normal, by what each row adds to first order",
)
def aurc(c: ClassTable) -> Estimate:
    """Mean over coverages i / T of the share of errors among the i rows with the highest top probability.

    Rows of equal top probability are taken in any order: the expectation over their orders counts. Undefined for
    weighted rows.
    """
    if c.weight is not None:
        raise Undefined("is for rows without weights")
    return c.units.linear(float(_risks(c).mean()), lambda: aurc_influence(c)).within(0.0, 1.0)


@metric(
    "L1 calibration error of all classes",
    "lower",
    "probability",
    cite("Kleinberg et al. 2023", "eq. 26"),
    (0, 2),
    size_free=False,
    interval=None,
    covers="nothing: where levels or cells hold few rows, it is noise",
)
def cal_l1(c: ClassTable, *, levels: AtCells = "auto") -> float:
    """Mean over rows of sum over classes |p_k - h_k|, h the frequencies of the classes among rows of equal p.

    levels: as for cdl: exact levels, or cells of about equally many rows, 8 to 32 and fewer of more classes, which
    scores the mean probabilities of its rows; for two classes equal-mass bins. As many levels or fewer are cells each.
    """
    t = as_score(c)
    if t is not None:
        return 2 * ece_exact(at_levels(t, levels))
    used = levels_or_cells(c, levels)
    rows = used.counts.sum(axis=1, keepdims=True)
    return float(np.abs(used.counts - rows * used.score).sum() / rows.sum())


def _auc_influence(c: ClassTable, weighted: bool) -> Floats:
    """Of the mean over classes of the AUC of each against the rest, shape (T,): the components of DeLong et al. 1988.

    Classes that no row has, or all rows have, are not counted. weighted: the mean has the rows of each class as
    weights, which vary too.
    """
    rows = c.count(c.label, len(c.classes))
    counted = np.flatnonzero((rows > 0) & (rows < c.total))
    share = rows[counted] / rows[counted].sum() if weighted else np.full(len(counted), 1 / len(counted))
    added = np.zeros(len(c))
    for k, part in zip(counted.tolist(), share, strict=True):
        t, own = c.one_vs_rest(k), c.label == k
        beaten, beating = components(t)
        place = np.searchsorted(t.score, c.score[:, k])
        area = float(np.asarray(t.pos, dtype=np.float64) @ beaten) / t.positives
        each = np.where(own, (beaten[place] - area) / t.positives, (beating[place] - area) / t.negatives) * c.total
        added += part * each + (((own - rows[k] / c.total) * area) if weighted else 0.0)
    return added


def _top_debiased_influence(c: ClassTable, bins: int, strategy: Strategy) -> Floats:
    """Of the debiased squared ECE of the top class, its bins held fixed, shape (T,)."""
    cut, top = c.top.bins(bins, strategy), c.score.max(axis=1)
    right = (c.predicted == c.label).astype(np.float64)
    starts = c.top.bin_starts(bins, strategy)
    place = np.searchsorted(c.top.score[starts], top, side="right") - 1
    gap = np.asarray(cut.pos / cut.n) - cut.score
    value = float((cut.n * gap**2).sum() / cut.total)
    return np.asarray(gap[place] ** 2 - value + 2 * gap[place] * (right - top - gap[place]))
