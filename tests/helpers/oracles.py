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
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask

Vector = np.ndarray
Oracle = Callable[[Rows, BinaryTask], float]


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


def base_rate(rows: Rows) -> Vector:
    return np.full(len(rows.label), mean(rows, rows.label))


def squared_error(rows: Rows, probability: Vector) -> Vector:
    return (probability - rows.label) ** 2


def refinement_lower(rows: Rows, task: BinaryTask) -> float:
    """The largest height of the Brier curve."""
    fit = isotonic_fit(rows)
    return max(mean(rows, (1 - t) * rows.label * (fit < t) + t * (1 - rows.label) * (fit >= t)) for t in fit)


def refinement_upper(rows: Rows, task: BinaryTask) -> float:
    base, fit = mean(rows, rows.label), isotonic_fit(rows)
    best = 0.0
    for v in np.unique(fit)[:-1]:
        event = (fit > v).astype(float)
        share = mean(rows, event)
        covariance = mean(rows, event * rows.label) - share * base
        best = max(best, max(covariance, 0.0) ** 2 / (share * (1 - share)))
    return base * (1 - base) - best


def spiegelhalter_z(rows: Rows, task: BinaryTask) -> float:
    p, w = rows.score, weights(rows)
    variance = (w**2 * (1 - 2 * p) ** 2 * p * (1 - p)).sum()
    return float((w * (rows.label - p) * (1 - 2 * p)).sum() / math.sqrt(variance))


def by_sklearn(measure: Callable[..., float], **more: Any) -> Oracle:
    return lambda rows, task: float(measure(rows.label, rows.score, sample_weight=weights(rows), **more))


def clipped_log_loss(rows: Rows, task: BinaryTask) -> float:
    return by_sklearn(log_loss, labels=[0, 1])(replace(rows, score=np.clip(rows.score, 0.01, 0.99)), task)


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


def at_means(rows: Rows) -> list[Rows]:
    """The rows of each bin, with its mean score."""
    means = [(g, np.clip(mean(g, g.score), g.score.min(), g.score.max())) for g in in_bins(rows, 15, "mass")]
    return [replace(g, score=np.full(len(g.score), middle)) for g, middle in means]


def debiased(rows: Rows, bins: list[Rows]) -> float:
    total = 0.0
    for group, (share, gap) in zip(bins, gaps_of(rows, bins), strict=True):
        if len(group.score) == 1 or group.weight is None:
            continue
        rate, one_over = mean(group, group.label), (group.weight**2).sum() / group.weight.sum() ** 2
        total += share * (gap**2 - rate * (1 - rate) / (1 / one_over - 1))
    return total


def _binned(bins: int, strategy: str, arguments: str) -> dict[str, Oracle]:
    def gaps(rows: Rows) -> list[tuple[float, float]]:
        return gaps_of(rows, in_bins(rows, bins, strategy))

    return {
        f"ece{arguments}": lambda rows, _: sum(share * abs(gap) for share, gap in gaps(rows)),
        f"cl{arguments}": lambda rows, _: sum(share * gap**2 for share, gap in gaps(rows)),
        f"rmsce{arguments}": lambda rows, _: math.sqrt(sum(share * gap**2 for share, gap in gaps(rows))),
        f"mce{arguments}": lambda rows, _: max(abs(gap) for _, gap in gaps(rows)),
        f"ece_debiased{arguments}": lambda rows, _: debiased(rows, in_bins(rows, bins, strategy)),
    }


def _spherical(p: Vector, label: Vector) -> Vector:
    return 1 - np.where(label == 1, p, 1 - p) / np.sqrt(p**2 + (1 - p) ** 2)


RULES: dict[str, Callable[[Vector, Vector], Vector]] = {
    "": lambda p, label: (p - label) ** 2,
    "rule=log": log_of,
    "rule=spherical": _spherical,
    "rule=v": lambda p, label: np.where(p >= 0.5, 0.5 - label, label - 0.5),
    "rule=v,kink=0.35": lambda p, label: np.where(p >= 0.35, 0.35 - label, label - 0.35),
}


def _by_rule(given: str, loss: Callable[[Vector, Vector], Vector]) -> dict[str, Oracle]:
    def against(rows: Rows) -> float:
        return mean(rows, loss(rows.score, rows.label) - loss(base_rate(rows), rows.label))

    def to_frequencies(rows: Rows, groups: list[Rows]) -> float:
        return float(sum(weights(group).sum() * against(group) for group in groups) / weights(rows).sum())

    def key(metric: str, *arguments: str) -> str:
        return f"{metric}({','.join(filter(None, (given, *arguments)))})".removesuffix("()")

    return {
        key("rule_regret"): lambda rows, _: against(rows),
        key("rule_cfdl", "levels=exact"): lambda rows, _: to_frequencies(rows, by_level(rows)),
        key("rule_cfdl", "levels=bins"): lambda rows, _: to_frequencies(rows, at_means(rows)),
    }


def atb(rows: Rows, task: BinaryTask) -> float:
    """Two bins that meet at v, for a v inside each gap between scores."""
    ends = np.unique(np.concatenate(([0.0], rows.score, [1.0])))
    total = 0.0
    for low, high in itertools.pairwise(ends):
        below = rows.score <= (low + high) / 2
        parts = [mean(rows, side * (rows.score - rows.label)) for side in (below, ~below)]
        total += float(high - low) * sum(part**2 for part in parts)
    return total


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


def ece_exact_null(rows: Rows, task: BinaryTask) -> float:
    total = 0.0
    for group in by_level(rows):
        weight = weights(group)
        like = max(round(weight.sum() ** 2 / (weight**2).sum()), 1)
        score, counts = float(group.score[0]), np.arange(like + 1)
        deviation = stats.binom.pmf(counts, like, score) @ np.abs(counts - like * score)
        total += weight.sum() / like * float(deviation)
    return total / weights(rows).sum()


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


def utility_share(rows: Rows, task: BinaryTask) -> float:
    """Against the best threshold on these scores, found by trying each."""
    constant = best_constant(rows, task)
    tried = [utility_of(rows, task, (rows.score >= t).astype(int)) for t in [*np.unique(rows.score), 2.0]]
    return (decided_utility(rows, task) - constant) / (max(tried) - constant)


def net_benefit(rows: Rows, task: BinaryTask) -> float:
    act, t = rows.score >= task.decision_threshold, task.threshold
    return mean(rows, act * rows.label) - mean(rows, act * (1 - rows.label)) * t / (1 - t)


def interventions_avoided(rows: Rows, task: BinaryTask) -> float:
    """From net benefit, as dcurves has it."""
    odds = task.threshold / (1 - task.threshold)
    act_on_all = mean(rows, rows.label) - mean(rows, 1 - rows.label) * odds
    return 100 * (net_benefit(rows, task) - act_on_all) / odds


def cfdl_bins(rows: Rows, task: BinaryTask) -> float:
    lost = ((best_constant(at, task) - decided_utility(at, task)) * weights(at).sum() for at in at_means(rows))
    return float(sum(lost) / weights(rows).sum())


ORACLES: dict[str, Oracle] = {
    "brier": by_sklearn(brier_score_loss, pos_label=1),
    "log_loss(eps=0.01)": clipped_log_loss,
    "corp_mcb": lambda rows, _: mean(rows, squared_error(rows, rows.score) - squared_error(rows, isotonic_fit(rows))),
    "corp_dsc": lambda rows, _: mean(
        rows, squared_error(rows, base_rate(rows)) - squared_error(rows, isotonic_fit(rows))
    ),
    "corp_dsc(loss=log)": lambda rows, _: mean(
        rows, log_of(base_rate(rows), rows.label) - log_of(isotonic_fit(rows), rows.label)
    ),
    "corp_unc": lambda rows, _: mean(rows, squared_error(rows, base_rate(rows))),
    "refinement_loss": lambda rows, _: mean(rows, isotonic_fit(rows) * (1 - isotonic_fit(rows))),
    "refinement_lower": refinement_lower,
    "refinement_upper": refinement_upper,
    "spiegelhalter_z": spiegelhalter_z,
    "observed_expected": lambda rows, _: mean(rows, rows.label) / mean(rows, rows.score),
    "auc": by_sklearn(roc_auc_score),
    "average_precision": by_sklearn(average_precision_score),
    "gini": lambda rows, task: 2 * by_sklearn(roc_auc_score)(rows, task) - 1,
    "ks": ks,
    **_binned(15, "mass", ""),
    **_binned(4, "mass", "(bins=4)"),
    **_binned(15, "width", "(strategy=width)"),
    **_binned(4, "width", "(bins=4,strategy=width)"),
    "ece_exact": lambda rows, _: sum(share * abs(gap) for share, gap in gaps_of(rows, by_level(rows))),
    "k2": lambda rows, _: sum(share * gap**2 for share, gap in gaps_of(rows, by_level(rows))),
    **{key: each for given, loss in RULES.items() for key, each in _by_rule(given, loss).items()},
    "atb": atb,
    "concavity_gap": concavity_gap,
    "ece_exact_null": ece_exact_null,
    "k2_null": lambda rows, _: float(
        sum((g.weight**2).sum() / g.weight.sum() * g.score[0] * (1 - g.score[0]) for g in by_level(rows))
        / weights(rows).sum()
    ),
    "c_emp": c_emp,
    "utility_share": utility_share,
    "net_benefit_standardised": lambda rows, task: net_benefit(rows, task) / mean(rows, rows.label),
    "interventions_avoided": interventions_avoided,
    "false_positive_rate": lambda rows, task: (
        mean(rows, (rows.score >= task.decision_threshold) * (1 - rows.label)) / mean(rows, 1 - rows.label)
    ),
    "cfdl(levels=bins)": cfdl_bins,
}
"""By metric."""
