"""The results of a study: how well each estimate predicts each gain, and what following the advice loses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis.study.columns import StudyPoints, points_of
from decal_cli.analysis.study.policies import MULTIPLES, Policies, policies
from decal_cli.analysis.study.run import Study
from decal_cli.declarations.defaults import SEED
from decal_cli.declarations.document import Known
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.metrics import named
from decal_cli.metrics.confidence import quantile
from decal_cli.tables.table import Floats

N_CLUSTER_RESAMPLES = 400
MIN_RELATIVE_VARIANCE = 1e-12
"""Variance, as a share of the mean square, up to which values differ only by rounding."""
_SHORT = {"mce": "MCE", "rmsce": "RMSCE", "cl": "CL"}


def short_title(estimate: str) -> str:
    """The name of an estimate in tables and pictures."""
    return _SHORT.get(estimate, named(estimate).title)


@dataclass(frozen=True)
class Relation:
    """How an estimate predicts a gain over all points, seed by seed and then averaged.

    r2: squared Pearson correlation; interval: its bootstrap interval, None where there are too few files and scores
    (`Points.bootstrap_unit`). slope: of the gain on the estimate; mean_error: gain minus estimate, per unit of u_delta;
    both are meaningful for estimates that are utilities. r2 and slope are NaN where there are too few points
    (`Points.enough`).
    """

    estimate: str
    target: str
    r2: Known
    interval: tuple[float, float] | None
    slope: Known
    mean_error: Known


def relations(points: StudyPoints, confidence: float, seed: int) -> dict[tuple[str, str], Relation]:
    """The relation of every (estimate, target) pair, over the points at which both are defined."""
    by_pair: dict[tuple[str, str], Relation] = {}
    for estimates in _alike(points.estimates):
        for targets in _alike(points.targets):
            rng = np.random.default_rng([seed, N_CLUSTER_RESAMPLES])
            by_pair.update(_relations(points, estimates, targets, confidence, rng))
    return by_pair


def _alike(columns: Mapping[str, Floats]) -> list[dict[str, Floats]]:
    """Columns grouped by the points at which they are defined; columns that are defined nowhere are dropped."""
    groups: dict[bytes, dict[str, Floats]] = {}
    for name, values in columns.items():
        defined = np.isfinite(values)
        if defined.any():
            groups.setdefault(defined.tobytes(), {})[name] = values
    return list(groups.values())


def _relations(
    points: StudyPoints,
    estimates: Mapping[str, Floats],
    targets: Mapping[str, Floats],
    confidence: float,
    rng: np.random.Generator,
) -> Iterator[tuple[tuple[str, str], Relation]]:
    stacked = np.array([*estimates.values(), *targets.values()])
    usable = np.isfinite(stacked).all(axis=0)
    if not usable.any():
        return
    enough = points.enough(usable)
    cluster = points.file if points.bootstrap_unit == "files" else points.pair
    sums = _sums(stacked[:, usable], cluster[usable], points.seed[usable])
    whole = _statistics(sums.sum(axis=1))
    reach = None if points.bootstrap_unit is None or not enough else _reach(sums, confidence, rng)
    for i, estimate in enumerate(estimates):
        for j, target in enumerate(targets, len(estimates)):
            r2, slope = (float(each[i, j]) if enough else float("nan") for each in (whole.r2, whole.slope))
            ends = None
            if reach is not None and np.isfinite(reach[i, j]):
                ends = max(r2 - float(reach[i, j]), 0.0), min(r2 + float(reach[i, j]), 1.0)
            error = float(whole.mean[j] - whole.mean[i])
            yield (estimate, target), Relation(estimate, target, r2, ends, slope, error)


def _reach(sums: Floats, confidence: float, rng: np.random.Generator) -> Floats:
    """Half the length of the intervals of r2, by drawing clusters with replacement."""
    clusters = sums.shape[1]
    times = rng.multinomial(clusters, np.full(clusters, 1 / clusters), N_CLUSTER_RESAMPLES)
    draws = np.array([_statistics(np.einsum("c,scij->sij", counts, sums)).r2 for counts in times])
    return quantile(confidence) * _mean(np.abs(draws - _mean(draws)) ** 2) ** 0.5


def _mean(values: Floats) -> Floats:
    """Mean over the first axis of the defined values; NaN where there are none."""
    defined = np.isfinite(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(defined, values, 0.0).sum(axis=0) / defined.sum(axis=0))


@dataclass(frozen=True, eq=False)
class _Statistics:
    r2: Floats
    slope: Floats
    mean: Floats


def _sums(columns: Floats, cluster: NDArray[np.int64], seed: NDArray[np.int64]) -> Floats:
    """Sums of products of the columns and a constant one, by seed and cluster: shape (S, C, V + 1, V + 1)."""
    with_one = np.vstack((columns, np.ones(columns.shape[1])))
    seeds, clusters = np.unique(seed), np.unique(cluster)
    out = np.empty((len(seeds), len(clusters), len(with_one), len(with_one)))
    for a, s in enumerate(seeds):
        for b, c in enumerate(clusters):
            part = with_one[:, (seed == s) & (cluster == c)]
            out[a, b] = part @ part.T
    return out


def _statistics(sums: Floats) -> _Statistics:
    """Correlations and slopes of each seed from its sums, shape (S, V + 1, V + 1), averaged over seeds."""
    with np.errstate(divide="ignore", invalid="ignore"):
        moments = sums / sums[:, -1, -1][:, None, None]
        mean = moments[:, :-1, -1]
        cov = moments[:, :-1, :-1] - mean[:, :, None] * mean[:, None, :]
        variance, square = (np.einsum("sii->si", each) for each in (cov, moments[:, :-1, :-1]))
        # A column that varies only by rounding correlates with nothing.
        variance = np.where(variance > MIN_RELATIVE_VARIANCE * square, variance, np.nan)
        r2 = np.clip(cov**2 / (variance[:, :, None] * variance[:, None, :]), 0, 1)
        return _Statistics(_mean(r2), _mean(cov / variance[:, :, None]), _mean(mean))


def correlation(points: StudyPoints, estimate: str, target: str, rows: NDArray[np.bool_]) -> float:
    """Squared correlation on some points, averaged over seeds; NaN where it is not defined or there are too few."""
    x, y = points.estimates[estimate], points.targets[target]
    rows = rows & np.isfinite(x) & np.isfinite(y)
    if not points.enough(rows):
        return float("nan")
    by_seed = []
    for s in np.unique(points.seed):
        here = rows & (points.seed == s)
        if here.sum() > 2 and all(v.var() > MIN_RELATIVE_VARIANCE * (v**2).mean() for v in (x[here], y[here])):
            by_seed.append(float(np.corrcoef(x[here], y[here])[0, 1] ** 2))
    return float(np.mean(by_seed)) if by_seed else float("nan")


def by_threshold(points: StudyPoints, estimate: str, target: str) -> dict[float, float]:
    """The squared correlation at each threshold."""
    return {float(t): correlation(points, estimate, target, points.threshold == t) for t in np.unique(points.threshold)}


def by_task(points: StudyPoints, estimate: str, target: str) -> dict[str, float]:
    """The squared correlation for each task by name."""
    names = () if points.task is None else dict.fromkeys(points.task.tolist())
    return {name: correlation(points, estimate, target, points.task == name) for name in names}


def without_a_file(points: StudyPoints, estimate: str, target: str) -> dict[str, float]:
    """The squared correlation without each file."""
    return {name: correlation(points, estimate, target, points.file != k) for k, name in enumerate(points.files)}


@dataclass(frozen=True, eq=False)
class Summary:
    """A study in numbers. in_utility: the relations in the units of Perez-Lebel et al. 2025, where u_delta is 1/t*.
    seconds: median processor time of a fit by method; reasons: why a method has no gain, and in how many halvings.
    """

    points: StudyPoints
    relations: Mapping[tuple[str, str], Relation]
    in_utility: Mapping[tuple[str, str], Relation]
    seconds: Mapping[str, float]
    reasons: Mapping[str, str]
    policies: tuple[Policies, ...] = ()
    notes: tuple[str, ...] = ()


def summarise(study: Study, seed: int = SEED) -> Summary:
    """All tables of a study. Errors: DecalError where no method has a gain anywhere."""
    points = points_of(study)
    if not points.gains:
        reasons = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in grouped(_reasons(study)).items())
        raise DecalError(
            f"no method could be fitted ({reasons})", f"give what they need, or name others: {Hint('method', 'METHOD')}"
        )
    seconds: dict[str, list[float]] = {}
    for record in study.records:
        for name, value in record["seconds"].items():
            seconds.setdefault(name, []).append(value)
    # The advice is estimated from one half of the rows.
    rows = [record["rows"] // 2 for record in study.records for _ in record["points"]]
    return Summary(
        points,
        relations(points, study.setting.confidence, seed),
        {} if points.task is not None else relations(points.in_utility, study.setting.confidence, seed),
        {name: float(np.median(values)) for name, values in seconds.items()},
        _reasons(study),
        tuple(
            each
            for each in (policies(points, rows, multiple, study.setting.confidence) for multiple in MULTIPLES)
            if each is not None
        )
        if points.task is None
        else (),
        study.notes,
    )


def grouped(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Methods grouped by the reason why they have no gain."""
    groups: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        groups.setdefault(reason, []).append(name)
    return groups


def _reasons(study: Study) -> dict[str, str]:
    """The commonest reason of each method that lacks a gain somewhere."""
    counts: dict[str, Counter[str]] = {}
    for record in study.records:
        for name, reason in record["reasons"].items():
            counts.setdefault(name, Counter())[reason] += 1
    commonest = {}
    for name, reasons in counts.items():
        (reason, _), times, of = reasons.most_common(1)[0], reasons.total(), len(study.records)
        commonest[name] = reason if times == of else f"in {times} of {of} halvings: {reason}"
    return commonest
