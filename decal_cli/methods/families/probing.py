"""Probing: a probability from the decisions of many classifiers, one for each threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between
from decal_cli.limits import MAX_PROBES
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.methods.numerics.linear import Planes, ScoreColumn, Units, planes_of, with_recalibrated
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats

MAX_DECISIONS = 1 << 22
"""Decisions of probes that are held at once: rows times probes."""


@model
@dataclass(frozen=True, eq=False)
class Probes:
    """Classifiers for thresholds: probe k decides 1 where its plane is not below 0.

    edges: shape (probes + 1,), increasing from 0 to 1; probe k stands for the thresholds from edge k to edge k + 1.
    The planes' columns are the log-odds of the recalibrated score and the features.
    """

    score: ScoreColumn
    planes: Planes
    edges: Floats

    def __post_init__(self) -> None:
        """Refuse edges that are no grid. Errors: ValueError."""
        n_probes = len(self.planes.intercept)
        if n_probes > MAX_PROBES:
            raise ValueError(f"a model has at most {MAX_PROBES:,} probes")
        if self.edges.shape != (n_probes + 1,) or not (np.diff(self.edges) > 0).all():
            raise ValueError("probes need one more edge than there are, in increasing order")
        if self.edges[0] != 0 or self.edges[-1] != 1:
            raise ValueError("probes must cover the thresholds from 0 to 1")

    def decisions(self, rows: Unlabelled) -> NDArray[np.bool_]:
        """The decisions of the probes, shape (T, probes)."""
        return self.planes(self.score(rows)) >= 0

    def __call__(self, rows: Unlabelled) -> Applied:
        step = max(1, MAX_DECISIONS // len(self.planes.intercept))
        blocks = (np.arange(at, min(at + step, len(rows))) for at in range(0, max(len(rows), 1), step))
        return Applied(np.concatenate([self._mean(rows.take(block)) for block in blocks]))

    def _mean(self, rows: Unlabelled) -> Floats:
        mean = np.where(self.decisions(rows), np.diff(self.edges), 0.0).sum(axis=1)
        return np.clip(mean, 0.0, 1.0)


def grid(probes: int) -> Floats:
    """Edges of as many cells of thresholds as probes, shape (probes + 1,): sin^2 of equal steps.

    A probability is known to about sqrt(p (1 - p) / n). Cells that shrink like this error waste no probe in the middle,
    and leave a few probes below thresholds such as .01.
    """
    return np.append(np.sin(np.pi / 2 * np.arange(probes) / probes) ** 2, 1.0)


def costs(label: Floats, threshold: float) -> Floats:
    """Cost of a wrong decision on each row, shape (T,): 1 - t for label 1, t for label 0 (Tasche 2021, eq. 3.3a)."""
    return np.where(label > 0.5, 1 - threshold, threshold)


def _of_same_sum(weight: Floats, other: Floats) -> Floats:
    """Weights scaled to the sum of others, so that the penalty acts equally on all probes."""
    return weight * (other.sum() / weight.sum())


@method(
    title="Probing reduction",
    kind="post-training",
    needs=("features",),
    source=f"{cite('Langford and Zadrozny 2005')}; {cite('Tasche 2021', 'sec. 4')}",
)
def probing(
    rows: Training,
    *,
    probes: Annotated[int, "number of thresholds, each with a classifier", Between(0, MAX_PROBES + 1)] = 40,
) -> Probes:
    """The mean decision of classifiers trained for thresholds between 0 and 1.

    p' = integral of h(t, x) dt, where h(t, .) is a classifier trained with costs 1 - t for a missed label 1 and t for a
    false alarm; there is one for each of the `probes` cells of thresholds, which are narrower near 0 and 1. Each
    classifier is a weighted logistic regression on the recalibrated score and the features (the columns of `stack`),
    which may weigh them differently at every t. The Brier score of p' is at most twice the classifiers' mean cost over
    t, and the loss of p' compared with the true probability at most twice their loss compared with the best decisions
    (Tasche 2021, thm. 4.2).
    """
    score, columns = with_recalibrated(rows)
    edges = grid(probes)
    middles = (edges[:-1] + edges[1:]) / 2
    weights = [_of_same_sum(rows.weights * costs(rows.label, t), rows.weights) for t in middles]
    return Probes(score, planes_of(columns, rows.label, weights, Units.of(columns, rows.weights)), edges)
