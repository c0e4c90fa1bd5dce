"""Probing: a probability from the decisions of many classifiers, one for each threshold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between
from decal_cli.errors import Undefined
from decal_cli.limits import MAX_PROBES
from decal_cli.methods.declare import METHODS, NO_FEATURES, Applied, Model, Training, fit, method, model
from decal_cli.methods.numerics.features import features_of
from decal_cli.methods.numerics.linear import ColumnScale, Planes, ScoreColumn, planes_of, with_recalibrated
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats, Ints

MAX_DECISIONS = 1 << 22
"""Decisions of probes that are held at once: rows times probes."""
EVEN = 0.5
"""The score from which a classifier that was fitted with the costs as weights decides 1."""
_LAST_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE]-?\d+)?$")


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
        need_grid(self.edges, len(self.planes.intercept))

    def decisions(self, rows: Unlabelled) -> NDArray[np.bool_]:
        """The decisions of the probes, shape (T, probes)."""
        return self.planes(self.score(rows)) >= 0

    def __call__(self, rows: Unlabelled) -> Applied:
        step = max(1, MAX_DECISIONS // len(self.planes.intercept))
        blocks = (np.arange(at, min(at + step, len(rows))) for at in range(0, max(len(rows), 1), step))
        return Applied(np.concatenate([mean_decision(self.decisions(rows.take(one)), self.edges) for one in blocks]))


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


@model
@dataclass(frozen=True, eq=False)
class LearnedProbes:
    """Models for thresholds, each fitted with the costs of its own; probe k decides 1 where it scores at least 1/2."""

    learners: tuple[Model, ...]
    edges: Floats

    def __post_init__(self) -> None:
        """Refuse edges that are no grid. Errors: ValueError."""
        need_grid(self.edges, len(self.learners))

    def decisions(self, rows: Unlabelled) -> NDArray[np.bool_]:
        """The decisions of the probes, shape (T, probes)."""
        return np.column_stack([learner(rows).score >= EVEN for learner in self.learners])

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(mean_decision(self.decisions(rows), self.edges))


@model
@dataclass(frozen=True, eq=False)
class GivenDecisions:
    """Decisions for thresholds that stand in the rows themselves. places: of their columns among the features."""

    places: Ints
    edges: Floats

    def __post_init__(self) -> None:
        """Refuse edges that are no grid, and places that are none. Errors: ValueError."""
        need_grid(self.edges, len(self.places))
        if not np.issubdtype(self.places.dtype, np.integer) or self.places.ndim != 1 or (self.places < 0).any():
            raise ValueError("decisions stand in columns of features")

    def decisions(self, rows: Unlabelled) -> NDArray[np.bool_]:
        """The decisions, shape (T, probes); a missing one counts as 0."""
        features = features_of(rows)
        if self.places.max() >= features.shape[1]:
            raise Undefined(NO_FEATURES)
        return np.asarray(features[:, self.places] >= EVEN)

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(mean_decision(self.decisions(rows), self.edges))


def need_grid(edges: Floats, probes: int) -> None:
    """Refuse edges that are no grid of so many cells of thresholds. Errors: ValueError."""
    if probes > MAX_PROBES:
        raise ValueError(f"a model has at most {MAX_PROBES:,} probes")
    if not probes or edges.shape != (probes + 1,) or not (np.diff(edges) > 0).all():
        raise ValueError("probes need one more edge than there are, in increasing order")
    if edges[0] != 0 or edges[-1] != 1:
        raise ValueError("probes must cover the thresholds from 0 to 1")


def mean_decision(decisions: NDArray[np.bool_], edges: Floats) -> Floats:
    """The integral of the decisions over the thresholds, shape (T,)."""
    return np.clip(np.where(decisions, np.diff(edges), 0.0).sum(axis=1), 0.0, 1.0)


def given_decisions(names: Sequence[str], pattern: str) -> GivenDecisions:
    """The columns that the pattern names, whose names end in their thresholds: 'd_0.25'. Errors: Undefined."""
    at: list[tuple[float, int]] = []
    for place, name in enumerate(names):
        if fnmatchcase(name, pattern):
            number = _LAST_NUMBER.search(name)
            if number is None or not 0 < float(number[0]) < 1:
                raise Undefined(f"needs names that end in a threshold between 0 and 1, such as d_0.25, not {name!r}")
            at.append((float(number[0]), place))
    if not at:
        raise Undefined(f"needs features that {pattern!r} names")
    thresholds, places = np.array(sorted(at)).T
    if (np.diff(thresholds) <= 0).any():
        raise Undefined("needs one column of decisions for a threshold, not two")
    edges = np.concatenate(([0.0], (thresholds[:-1] + thresholds[1:]) / 2, [1.0]))
    return GivenDecisions(places.astype(np.int64), edges)


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
    learner: Annotated[
        Literal["logistic", "refit", "stack-forest", "stack-boosting"], "what the classifiers are"
    ] = "logistic",
    columns: Annotated[str, "features that hold decisions of your own classifiers, such as 'd_*'"] = "",
) -> Probes | LearnedProbes | GivenDecisions:
    """The mean decision of classifiers trained for thresholds between 0 and 1.

    p' = integral of h(t, x) dt, where h(t, .) is a classifier trained with costs 1 - t for a missed label 1 and t for a
    false alarm; there is one for each of the `probes` cells of thresholds, which are narrower near 0 and 1. Each
    classifier is a weighted logistic regression on the recalibrated score and the features (the columns of `stack`),
    which may weigh them differently at every t. The Brier score of p' is at most twice the classifiers' mean cost over
    t, and the loss of p' compared with the true probability at most twice their loss compared with the best decisions
    (Tasche 2021, thm. 4.2). `learner` takes another method as classifier, fitted with these costs as weights.

    `columns=d_*` fits nothing: it integrates decisions 0 and 1 of classifiers of your own, which are among the features
    in columns whose names end in the threshold, such as d_0.25. Each decision counts for the thresholds nearest to its
    own; on new rows, a missing one counts as 0.
    """
    if columns:
        given = given_decisions(rows.feature_names, columns)
        # Where categories or missing values were encoded, the columns are no longer those of the names.
        features = features_of(rows)
        plain = features.shape[1] == len(rows.feature_names)
        if not plain or not np.isin(features[:, given.places], (0, 1)).all():
            raise Undefined("needs decisions of 0 and 1, none missing, beside features that are numbers")
        return given
    edges = grid(probes)
    middles = (edges[:-1] + edges[1:]) / 2
    weights = [_of_same_sum(rows.weights * costs(rows.label, t), rows.weights) for t in middles]
    if learner != "logistic":
        spec = METHODS.parse(learner)
        return LearnedProbes(tuple(fit(spec, replace(rows, weight=weight, cache={})) for weight in weights), edges)
    score, known = with_recalibrated(rows)
    return Probes(score, planes_of(known, rows.label, weights, ColumnScale.of(known, rows.weights)), edges)
