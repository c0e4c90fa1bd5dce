"""Recalibration by a logistic curve: Platt scaling, temperature scaling, beta calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.methods.numerics.likelihood import (
    Counts,
    clipped,
    counts_of,
    log_likelihood,
    logit,
    maximum,
    need_different_scores,
    need_overlap,
)
from decal_cli.tables.logistic import expit
from decal_cli.tables.rows import Unlabelled
from decal_cli.tables.table import Floats, Table

On = Literal["logit", "p"]
Targets = Literal["smoothed", "labels"]


@model
@dataclass(frozen=True, eq=False)
class Sigmoid:
    """s(slope * x + intercept), s the logistic function; x is the score, or its logit cut to +-27.6 (on: p, logit)."""

    on: str
    slope: float
    intercept: float

    def __call__(self, rows: Unlabelled) -> Applied:
        return Applied(expit(self.slope * term(rows.score, self.on) + self.intercept))


@model
@dataclass(frozen=True, eq=False)
class Beta:
    """s(a log p - b log(1 - p) + c), s the logistic function; a, b >= 0; p is cut to [1e-12, 1 - 1e-12]."""

    a: float
    b: float
    c: float

    def __call__(self, rows: Unlabelled) -> Applied:
        first, second = beta_terms(rows.score)
        return Applied(expit(self.a * first + self.b * second + self.c))


def term(score: Floats, on: str) -> Floats:
    """What a sigmoid is linear in."""
    if on not in ("logit", "p"):
        raise ValueError(f"a sigmoid on {on[:20]}")
    return logit(score) if on == "logit" else score


def beta_terms(score: Floats) -> tuple[Floats, Floats]:
    """log p and -log(1 - p) of clipped scores."""
    p = clipped(score)
    return np.log(p), -np.log1p(-p)


@method(title="Platt scaling", kind="recalibration", source="Platt 1999; on p as scikit-learn does it")
def platt(
    rows: Training,
    *,
    on: Annotated[On, "the logistic curve is linear in logit(p), or in p"] = "logit",
    targets: Annotated[Targets, "fitted to Platt's smoothed targets, or to the labels themselves"] = "smoothed",
) -> Sigmoid:
    """A logistic curve of two parameters in logit(p), by maximum likelihood.

    p' = s(a logit(p) + b), s the logistic function. The targets are Platt's: (P + 1) / (P + 2) for label 1 and
    1 / (N + 2) for label 0, P and N the (weighted) numbers of each, so that a maximum always exists;
    `targets=labels` is plain, unpenalised logistic regression. `on=p` is the older convention, linear in p itself.
    Scores are cut to [1e-12, 1 - 1e-12] before the logit is taken. Needs two distinct scores.
    """
    need_different_scores(rows.table)
    return fit_platt(rows.table, on, targets)


def fit_platt(t: Table, on: str = "logit", targets: str = "smoothed") -> Sigmoid:
    """Platt scaling of a table of at least two levels. Errors: Undefined, for targets=labels without a maximum."""
    if targets == "labels":
        need_overlap(t)
        counts = counts_of(t)
    else:
        counts = _smoothed(t)
    slope, intercept = maximum([term(t.score, on)], counts)
    return Sigmoid(on, float(slope), float(intercept))


def _smoothed(t: Table) -> Counts:
    """Expected positives under Platt's targets."""
    n, pos = counts_of(t)
    high, low = (t.positives + 1) / (t.positives + 2), 1 / (t.negatives + 2)
    return Counts(n, high * pos + low * (n - pos))


@method(title="Temperature scaling", kind="recalibration", source="Guo et al. 2017")
def temperature(rows: Training) -> Sigmoid:
    """All log-odds divided by one temperature, by maximum likelihood.

    p' = s(logit(p) / T), s the logistic function: .5 stays .5, and confidence shrinks for T > 1. Where no temperature
    above 0 helps (the score ranks rows the wrong way), T is infinite and every row gets .5. Scores are cut to
    [1e-12, 1 - 1e-12] before the logit is taken. Needs two distinct scores, and labels that .5 does not separate.
    """
    need_different_scores(rows.table)
    return fit_temperature(rows.table)


def fit_temperature(t: Table) -> Sigmoid:
    """Temperature scaling of a table. Errors: Undefined, where the best temperature is 0."""
    x, counts = logit(t.score), counts_of(t)
    on_the_right_side = ((x >= 0) | (counts.pos <= 0)) & ((x <= 0) | (counts.pos >= counts.n))
    if on_the_right_side.all():
        raise Undefined("needs labels that .5 does not separate: the likeliest temperature is 0")
    if (((x <= 0) | (counts.pos <= 0)) & ((x >= 0) | (counts.pos >= counts.n))).all():
        return Sigmoid("logit", 0.0, 0.0)  # Every label lies on the wrong side.
    return Sigmoid("logit", max(float(maximum([x], counts, intercept=False)[0]), 0.0), 0.0)


@method(title="Beta calibration", kind="recalibration", source="Kull et al. 2017")
def beta(rows: Training) -> Beta:
    """A curve of three parameters that fits scores following beta distributions, by maximum likelihood.

    p' = s(a log p - b log(1 - p) + c), s the logistic function, with a, b >= 0 so that the order of scores stays; a = b
    is Platt scaling on logit(p), a = b = 1 and c = 0 change nothing. Scores are cut to [1e-12, 1 - 1e-12] before the
    logarithm. Needs three distinct scores, and labels that no threshold separates.
    """
    t = rows.table
    need_different_scores(t, 3)
    need_overlap(t)
    return fit_beta(t)


def fit_beta(t: Table) -> Beta:
    """The likeliest of the fits on each face of a, b >= 0: the likelihood is concave, so that is the maximum."""
    terms, counts = list(beta_terms(t.score)), counts_of(t)
    rate = t.base_rate
    best = np.array([0.0, 0.0, np.log(rate) - np.log1p(-rate)])
    for used in ([0, 1], [0], [1]):
        found = _on_face(terms, counts, used)
        if found is None or bool((found[:2] < 0).any()):
            continue
        if used == [0, 1]:
            return Beta(*map(float, found))  # The maximum without constraints obeys them.
        if log_likelihood(terms, counts, found) > log_likelihood(terms, counts, best):
            best = found
    return Beta(*map(float, best))


def _on_face(terms: list[Floats], counts: Counts, used: list[int]) -> Floats | None:
    """a, b, c with only the used ones of a and b; None where the likelihood has no maximum there."""
    try:
        fit = maximum([terms[k] for k in used], counts)
    except Undefined:
        return None
    found = np.zeros(3)
    found[used], found[2] = fit[:-1], fit[-1]
    return found
