"""What a study's points say: how well each estimate predicts each gain, and what following the advice costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from decal_cli.metrics.intervals import quantile
from decal_cli.study.columns import Points, points_of
from decal_cli.study.points import ESTIMATES
from decal_cli.study.policies import MULTIPLES, Policies, policies
from decal_cli.study.run import Study
from decal_cli.table import Floats

RESAMPLES = 400


@dataclass(frozen=True)
class Relation:
    """How an estimate predicts a gain over all points, seed by seed and then averaged.

    r2: squared Pearson correlation, with a bootstrap interval over files (over scores where there are fewer than
    FEWEST_FILES); slope: of the gain on the estimate; mean_error: gain less estimate, per unit of u_delta; None of
    the three has a meaning for metrics that are not utilities except r2.
    """

    estimate: str
    target: str
    r2: float
    interval: tuple[float, float]
    slope: float
    mean_error: float


FEWEST_FILES = 5


def relations(points: Points, names: Sequence[str], confidence: float, seed: int) -> dict[tuple[str, str], Relation]:
    """Every (estimate, target) pair, by it."""
    columns = {**{name: points.estimates[name] for name in names}, **points.targets}
    stacked = np.array(list(columns.values()))
    usable = np.isfinite(stacked).all(axis=0)
    if usable.sum() < 3:
        return {}
    cluster = points.file if len(points.files) >= FEWEST_FILES else points.pair
    sums = _sums(stacked[:, usable], cluster[usable], points.seed[usable])
    whole = _statistics(sums.sum(axis=1))
    rng = np.random.default_rng([seed, RESAMPLES])
    clusters = sums.shape[1]
    draws = np.array(
        [
            _statistics(np.einsum("c,scij->sij", rng.multinomial(clusters, np.full(clusters, 1 / clusters)), sums)).r2
            for _ in range(RESAMPLES)
        ]
    )
    reach = quantile(confidence) * np.nanstd(draws, axis=0)
    at = {name: k for k, name in enumerate(columns)}
    found = {}
    for estimate in names:
        for target in points.targets:
            i, j = at[estimate], at[target]
            r2 = float(whole.r2[i, j])
            found[estimate, target] = Relation(
                estimate,
                target,
                r2,
                (max(r2 - float(reach[i, j]), 0.0), min(r2 + float(reach[i, j]), 1.0)),
                float(whole.slope[i, j]),
                float(whole.mean[j] - whole.mean[i]),
            )
    return found


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
    n = sums[:, -1, -1][:, None, None]
    mean = sums[:, :-1, -1] / n[:, :, 0]
    cov = sums[:, :-1, :-1] / n - mean[:, :, None] * mean[:, None, :]
    variance = np.einsum("sii->si", cov)
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = cov**2 / (variance[:, :, None] * variance[:, None, :])
        slope = cov / variance[:, :, None]
    return _Statistics(np.clip(r2.mean(axis=0), 0, 1), slope.mean(axis=0), mean.mean(axis=0))


def correlation(points: Points, estimate: str, target: str, rows: NDArray[np.bool_]) -> float:
    """Squared correlation on some points, averaged over seeds; NaN where it is not defined."""
    x, y = points.estimates[estimate], points.targets[target]
    found = []
    for s in np.unique(points.seed):
        here = rows & (points.seed == s) & np.isfinite(x) & np.isfinite(y)
        if here.sum() > 2 and x[here].std() > 0 and y[here].std() > 0:
            found.append(float(np.corrcoef(x[here], y[here])[0, 1] ** 2))
    return float(np.mean(found)) if found else float("nan")


def by_threshold(points: Points, estimate: str, target: str) -> dict[float, float]:
    """The same at each threshold by itself."""
    return {float(t): correlation(points, estimate, target, points.threshold == t) for t in np.unique(points.threshold)}


def without_a_file(points: Points, estimate: str, target: str) -> dict[str, float]:
    """The same with each file left out."""
    return {name: correlation(points, estimate, target, points.file != k) for k, name in enumerate(points.files)}


@dataclass(frozen=True, eq=False)
class Summary:
    """A study in numbers. seconds: median processor time of a fit by method; reasons: why a method has no gain."""

    points: Points
    relations: Mapping[tuple[str, str], Relation]
    seconds: Mapping[str, float]
    reasons: Mapping[str, str]
    policies: tuple[Policies, ...] = ()


def summarise(study: Study, seed: int = 0) -> Summary:
    """All tables of a study."""
    points = points_of(study)
    seconds: dict[str, list[float]] = {}
    reasons: dict[str, str] = {}
    for record in study.records:
        for name, value in record["seconds"].items():
            seconds.setdefault(name, []).append(value)
        reasons |= record["reasons"]
    # The advice rests on the half that it is estimated from.
    rows = [record["rows"] // 2 for record in study.records for _ in record["points"]]
    names = [name for name in ESTIMATES if np.isfinite(points.estimates[name]).all()]
    return Summary(
        points,
        relations(points, names, study.setting.confidence, seed),
        {name: float(np.median(values)) for name, values in seconds.items()},
        reasons,
        tuple(found for found in (policies(points, rows, multiple) for multiple in MULTIPLES) if found is not None),
    )
