"""The same metrics once more, row by row: slow, plain, and by other means (scikit-learn, numpy, scipy) where there are.

Each takes rows and a task; weights are a vector of ones where rows have none.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score
from sklearn.metrics import log_loss as sklearn_log_loss

from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask

Vector = np.ndarray
Oracle = Callable[[Rows, BinaryTask], float]
ORACLES: dict[str, Oracle] = {}


def oracle(key: str) -> Callable[[Oracle], Oracle]:
    def keep(function: Oracle) -> Oracle:
        ORACLES[key] = function
        return function

    return keep


def weights(rows: Rows) -> Vector:
    return np.ones(len(rows.score)) if rows.weight is None else rows.weight


def mean(rows: Rows, values: Any) -> float:
    return float(np.average(values, weights=weights(rows)))


def isotonic_fit(rows: Rows) -> Vector:
    fit = IsotonicRegression(y_min=0, y_max=1)
    return fit.fit(rows.score, rows.label, sample_weight=weights(rows)).predict(rows.score)


def log_of(probability: Vector, label: Vector) -> Vector:
    with np.errstate(divide="ignore"):
        return -np.log(np.where(label == 1, probability, 1 - probability))


@oracle("brier")
def oracle_brier(rows: Rows, task: BinaryTask) -> float:
    return float(brier_score_loss(rows.label, rows.score, sample_weight=weights(rows), pos_label=1))


@oracle("log_loss(eps=0.01)")
def oracle_log_loss(rows: Rows, task: BinaryTask) -> float:
    clipped = np.clip(rows.score, 0.01, 0.99)
    return float(sklearn_log_loss(rows.label, clipped, sample_weight=weights(rows), labels=[0, 1]))


@oracle("corp_mcb")
def corp_mcb(rows: Rows, task: BinaryTask) -> float:
    return mean(rows, (rows.score - rows.label) ** 2 - (isotonic_fit(rows) - rows.label) ** 2)


@oracle("corp_dsc")
def corp_dsc(rows: Rows, task: BinaryTask) -> float:
    return mean(rows, (mean(rows, rows.label) - rows.label) ** 2 - (isotonic_fit(rows) - rows.label) ** 2)


@oracle("corp_dsc(loss=log)")
def corp_dsc_log(rows: Rows, task: BinaryTask) -> float:
    base = np.full(len(rows.label), mean(rows, rows.label))
    return mean(rows, log_of(base, rows.label) - log_of(isotonic_fit(rows), rows.label))


@oracle("corp_unc")
def corp_unc(rows: Rows, task: BinaryTask) -> float:
    return mean(rows, (rows.label - mean(rows, rows.label)) ** 2)


@oracle("refinement_loss")
def refinement_loss(rows: Rows, task: BinaryTask) -> float:
    return mean(rows, isotonic_fit(rows) * (1 - isotonic_fit(rows)))


@oracle("refinement_lower")
def refinement_lower(rows: Rows, task: BinaryTask) -> float:
    fit = isotonic_fit(rows)

    def brier_curve(t: float) -> float:
        return mean(rows, (1 - t) * rows.label * (fit < t) + t * (1 - rows.label) * (fit >= t))

    return max(brier_curve(t) for t in fit)


@oracle("refinement_upper")
def refinement_upper(rows: Rows, task: BinaryTask) -> float:
    base, fit = mean(rows, rows.label), isotonic_fit(rows)
    best = 0.0
    for v in np.unique(fit)[:-1]:
        event = (fit > v).astype(float)
        share = mean(rows, event)
        covariance = mean(rows, event * rows.label) - share * base
        best = max(best, max(covariance, 0.0) ** 2 / (share * (1 - share)))
    return base * (1 - base) - best


@oracle("spiegelhalter_z")
def spiegelhalter_z(rows: Rows, task: BinaryTask) -> float:
    p, w = rows.score, weights(rows)
    variance = (w**2 * (1 - 2 * p) ** 2 * p * (1 - p)).sum()
    return float((w * (rows.label - p) * (1 - 2 * p)).sum() / math.sqrt(variance))


@oracle("observed_expected")
def observed_expected(rows: Rows, task: BinaryTask) -> float:
    return mean(rows, rows.label) / mean(rows, rows.score)


@oracle("auc")
def auc(rows: Rows, task: BinaryTask) -> float:
    return float(roc_auc_score(rows.label, rows.score, sample_weight=weights(rows)))


@oracle("average_precision")
def average_precision(rows: Rows, task: BinaryTask) -> float:
    return float(average_precision_score(rows.label, rows.score, sample_weight=weights(rows)))


@oracle("gini")
def gini(rows: Rows, task: BinaryTask) -> float:
    return 2 * float(roc_auc_score(rows.label, rows.score, sample_weight=weights(rows))) - 1


@oracle("ks")
def ks(rows: Rows, task: BinaryTask) -> float:
    """Both distribution functions at every score; scipy's where rows have no weights."""
    if rows.weight is None:
        return float(stats.ks_2samp(rows.score[rows.label == 1], rows.score[rows.label == 0]).statistic)
    w, one = weights(rows), rows.label == 1
    below = rows.score[:, None] <= rows.score
    shares = [(below[of] * w[of, None]).sum(axis=0) / w[of].sum() for of in (one, ~one)]
    return float(np.abs(shares[0] - shares[1]).max())


def in_bins(rows: Rows, bins: int, strategy: str) -> list[Rows]:
    """The rows of each bin; edges by numpy."""
    share = np.arange(1, bins) / bins
    if strategy == "width":
        which = np.searchsorted(share, rows.score, side="right")
    else:
        if rows.weight is None:
            edges = np.quantile(rows.score, share)
        else:
            edges = np.quantile(rows.score, share, weights=rows.weight, method="inverted_cdf")
        which = np.searchsorted(np.unique(edges), rows.score, side="left")
    every = replace(rows, weight=weights(rows))
    return [every.take(which == bin) for bin in np.unique(which)]


def gaps_of(rows: Rows, groups: list[Rows]) -> list[tuple[float, float]]:
    """Share of the rows and label frequency minus mean score, of each group."""
    total = weights(rows).sum()
    return [(g.weight.sum() / total, mean(g, g.label) - mean(g, g.score)) for g in groups if g.weight is not None]


def by_level(rows: Rows) -> list[Rows]:
    every = replace(rows, weight=weights(rows))
    return [every.take(rows.score == score) for score in np.unique(rows.score)]


def _binned(bins: int, strategy: str, arguments: str) -> None:
    def gaps(rows: Rows) -> list[tuple[float, float]]:
        return gaps_of(rows, in_bins(rows, bins, strategy))

    oracle(f"ece{arguments}")(lambda rows, task: sum(share * abs(gap) for share, gap in gaps(rows)))
    oracle(f"cl{arguments}")(lambda rows, task: sum(share * gap**2 for share, gap in gaps(rows)))
    oracle(f"rmsce{arguments}")(lambda rows, task: math.sqrt(sum(share * gap**2 for share, gap in gaps(rows))))
    oracle(f"mce{arguments}")(lambda rows, task: max(abs(gap) for _, gap in gaps(rows)))

    def debiased(rows: Rows, task: BinaryTask) -> float:
        total = 0.0
        for group, (share, gap) in zip(in_bins(rows, bins, strategy), gaps(rows), strict=True):
            if len(group.score) == 1 or group.weight is None:
                continue
            rate, one_over = mean(group, group.label), (group.weight**2).sum() / group.weight.sum() ** 2
            total += share * (gap**2 - rate * (1 - rate) / (1 / one_over - 1))
        return total

    oracle(f"ece_debiased{arguments}")(debiased)


_binned(15, "mass", "")
_binned(4, "mass", "(bins=4)")
_binned(15, "width", "(strategy=width)")
_binned(4, "width", "(bins=4,strategy=width)")


@oracle("ece_exact")
def ece_exact(rows: Rows, task: BinaryTask) -> float:
    return sum(share * abs(gap) for share, gap in gaps_of(rows, by_level(rows)))


@oracle("k2")
def k2(rows: Rows, task: BinaryTask) -> float:
    return sum(share * gap**2 for share, gap in gaps_of(rows, by_level(rows)))


def _spherical(p: Vector, label: Vector) -> Vector:
    return 1 - np.where(label == 1, p, 1 - p) / np.sqrt(p**2 + (1 - p) ** 2)


RULES: dict[str, Callable[[Vector, Vector], Vector]] = {
    "": lambda p, label: (p - label) ** 2,
    "rule=log": log_of,
    "rule=spherical": _spherical,
    "rule=v": lambda p, label: np.where(p >= 0.5, 0.5 - label, label - 0.5),
    "rule=v,kink=0.35": lambda p, label: np.where(p >= 0.35, 0.35 - label, label - 0.35),
}


def _by_rule(given: str, loss: Callable[[Vector, Vector], Vector]) -> None:
    def against(rows: Rows, other: Vector) -> float:
        return mean(rows, loss(rows.score, rows.label) - loss(other, rows.label))

    def constant(rows: Rows) -> Vector:
        return np.full(len(rows.label), mean(rows, rows.label))

    def to_frequencies(rows: Rows, groups: list[Rows]) -> float:
        each = [weights(group).sum() * against(group, constant(group)) for group in groups]
        return float(sum(each) / weights(rows).sum())

    def at_means(rows: Rows) -> list[Rows]:
        means = [(g, np.clip(mean(g, g.score), g.score.min(), g.score.max())) for g in in_bins(rows, 15, "mass")]
        return [replace(g, score=np.full(len(g.score), middle)) for g, middle in means]

    oracle(f"rule_regret({given})" if given else "rule_regret")(lambda rows, task: against(rows, constant(rows)))
    oracle(f"rule_cfdl({','.join(filter(None, (given, 'levels=exact')))})")(
        lambda rows, task: to_frequencies(rows, by_level(rows))
    )
    oracle(f"rule_cfdl({','.join(filter(None, (given, 'levels=bins')))})")(
        lambda rows, task: to_frequencies(rows, at_means(rows))
    )


for _given, _loss in RULES.items():
    _by_rule(_given, _loss)


@oracle("atb")
def atb(rows: Rows, task: BinaryTask) -> float:
    """Two bins that meet at v, for a v inside each gap between scores."""
    ends = np.unique(np.concatenate(([0.0], rows.score, [1.0])))
    total = 0.0
    for low, high in itertools.pairwise(ends):
        below = rows.score <= (low + high) / 2
        parts = [mean(rows, side * (rows.score - rows.label)) for side in (below, ~below)]
        total += float(high - low) * sum(part**2 for part in parts)
    return total


@oracle("concavity_gap")
def concavity_gap(rows: Rows, task: BinaryTask) -> float:
    """The envelope by the textbook stack: a point below the chord of its neighbours is dropped."""
    at = np.unique(np.concatenate(([0.0], rows.score, [1.0])))

    def curve(t: float, acts: Vector) -> float:
        return mean(rows, (1 - t) * rows.label * ~acts + t * (1 - rows.label) * acts)

    below = [curve(float(t), rows.score >= t) for t in at]
    above = [curve(float(t), rows.score > t) for t in at]
    below[0], above[-1] = above[0], below[-1]
    corners: list[tuple[float, float]] = []
    for x, y in zip(at.tolist(), np.maximum(below, above).tolist(), strict=True):
        while len(corners) > 1 and corners[-1][1] <= np.interp(corners[-1][0], *zip(corners[-2], (x, y), strict=True)):
            corners.pop()
        corners.append((x, y))
    return float((np.interp(at, *zip(*corners, strict=True)) - np.minimum(below, above)).max())


@oracle("ece_exact_null")
def ece_exact_null(rows: Rows, task: BinaryTask) -> float:
    total = 0.0
    for group in by_level(rows):
        weight = weights(group)
        like = max(round(weight.sum() ** 2 / (weight**2).sum()), 1)
        score, counts = float(group.score[0]), np.arange(like + 1)
        deviation = stats.binom.pmf(counts, like, score) @ np.abs(counts - like * score)
        total += weight.sum() / like * float(deviation)
    return total / weights(rows).sum()


@oracle("k2_null")
def k2_null(rows: Rows, task: BinaryTask) -> float:
    spread = sum((g.weight**2).sum() / g.weight.sum() * g.score[0] * (1 - g.score[0]) for g in by_level(rows))
    return float(spread / weights(rows).sum())


@oracle("c_emp")
def c_emp(rows: Rows, task: BinaryTask) -> float:
    """Every interval of scores, one by one."""
    levels, residual = np.unique(rows.score), weights(rows) * (rows.label - rows.score)
    inside = [
        abs(residual[(rows.score >= low) & (rows.score <= high)].sum())
        for low in levels
        for high in levels[levels >= low]
    ]
    return float(max(inside) / weights(rows).sum())


def utility_of(rows: Rows, task: BinaryTask, decision: Vector) -> float:
    return mean(rows, np.array(task.utility)[decision, rows.label])


def decided_utility(rows: Rows, task: BinaryTask) -> float:
    return utility_of(rows, task, (rows.score >= task.decision_threshold).astype(int))


def best_constant(rows: Rows, task: BinaryTask) -> float:
    return max(utility_of(rows, task, np.full(len(rows.label), action)) for action in (0, 1))


@oracle("utility_share")
def utility_share(rows: Rows, task: BinaryTask) -> float:
    """Against the best threshold on these scores, found by trying each."""
    constant = best_constant(rows, task)
    tried = [utility_of(rows, task, (rows.score >= t).astype(int)) for t in [*np.unique(rows.score), 2.0]]
    return (decided_utility(rows, task) - constant) / (max(tried) - constant)


def net_benefit(rows: Rows, task: BinaryTask) -> float:
    act, t = rows.score >= task.decision_threshold, task.threshold
    return mean(rows, act * rows.label) - mean(rows, act * (1 - rows.label)) * t / (1 - t)


@oracle("net_benefit_standardised")
def net_benefit_standardised(rows: Rows, task: BinaryTask) -> float:
    return net_benefit(rows, task) / mean(rows, rows.label)


@oracle("interventions_avoided")
def interventions_avoided(rows: Rows, task: BinaryTask) -> float:
    """From net benefit, as dcurves has it."""
    odds = task.threshold / (1 - task.threshold)
    act_on_all = mean(rows, rows.label) - mean(rows, 1 - rows.label) * odds
    return 100 * (net_benefit(rows, task) - act_on_all) / odds


@oracle("false_positive_rate")
def false_positive_rate(rows: Rows, task: BinaryTask) -> float:
    return mean(rows, (rows.score >= task.decision_threshold) * (1 - rows.label)) / mean(rows, 1 - rows.label)


@oracle("cfdl(levels=bins)")
def cfdl_bins(rows: Rows, task: BinaryTask) -> float:
    lost = 0.0
    for group in in_bins(rows, 15, "mass"):
        middle = np.clip(mean(group, group.score), group.score.min(), group.score.max())
        at = replace(group, score=np.full(len(group.score), middle))
        lost += (best_constant(at, task) - decided_utility(at, task)) * float(weights(group).sum())
    return lost / float(weights(rows).sum())
