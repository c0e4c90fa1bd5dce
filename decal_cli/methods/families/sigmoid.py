"""Recalibration by a logistic curve: Platt scaling, temperature scaling, beta calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.errors import Undefined
from decal_cli.methods.declare import Applied, Training, method, model
from decal_cli.methods.numerics.likelihood import (
    LabelCounts,
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
    """The term that the exponent of a sigmoid is linear in."""
    if on not in ("logit", "p"):
        raise ValueError(f"a sigmoid on {on[:20]}")
    return logit(score) if on == "logit" else score


def beta_terms(score: Floats) -> tuple[Floats, Floats]:
    """log p and -log(1 - p) of clipped scores."""
    p = clipped(score)
    return np.log(p), -np.log1p(-p)


@method(title="Platt scaling", kind="recalibration", source=f"{cite('Platt 1999')}; on=p as in scikit-learn")
def platt(
    rows: Training,
    *,
    on: Annotated[On, "the exponent is linear in logit(p), or in p"] = "logit",
    targets: Annotated[Targets, "fitted to Platt's smoothed targets, or to the labels themselves"] = "smoothed",
) -> Sigmoid:
    """A logistic curve with two parameters in logit(p), by maximum likelihood.

    p' = s(a logit(p) + b), where s is the logistic function. The targets are Platt's: (P + 1) / (P + 2) for label 1 and
    1 / (N + 2) for label 0, for P and N (weighted) rows of each, so that a maximum always exists; `targets=labels` is
    plain, unpenalised logistic regression. `on=p` is the older convention, linear in p itself. Scores are clipped to
    [1e-12, 1 - 1e-12] before the logit. It needs two distinct scores.
    """
    need_different_scores(rows.table)
    return fit_platt(rows.table, on, targets)


def fit_platt(t: Table, on: str = "logit", targets: str = "smoothed") -> Sigmoid:
    """Platt scaling of a table of at least two levels. Errors: Undefined, for targets=labels without a maximum."""
    if targets == "labels":
        need_overlap(t)
        counts = counts_of(t)
    else:
        counts = smoothed(t)
    slope, intercept = maximum([term(t.score, on)], counts)
    return Sigmoid(on, float(slope), float(intercept))


def smoothed(t: Table) -> LabelCounts:
    """Expected positives under Platt's targets."""
    n, pos = counts_of(t)
    high, low = (t.positives + 1) / (t.positives + 2), 1 / (t.negatives + 2)
    return LabelCounts(n, high * pos + low * (n - pos))


@method(title="Temperature scaling", kind="recalibration", source=cite("Guo et al. 2017"))
def temperature(rows: Training) -> Sigmoid:
    """All log-odds divided by one temperature, by maximum likelihood.

    p' = s(logit(p) / T), where s is the logistic function: .5 stays .5, and for T > 1 scores move towards .5. Where no
    positive temperature helps (the score ranks rows the wrong way), T is infinite and every row gets .5. Scores are
    clipped to [1e-12, 1 - 1e-12] before the logit. It needs two distinct scores, and labels that .5 does not separate.
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


@method(title="Beta calibration", kind="recalibration", source=cite("Kull et al. 2017"))
def beta(rows: Training) -> Beta:
    """A curve with three parameters, for scores that follow beta distributions, by maximum likelihood.

    p' = s(a log p - b log(1 - p) + c), where s is the logistic function and a, b >= 0 keep the order of the scores;
    a = b is Platt scaling on logit(p), and a = b = 1, c = 0 changes nothing. Scores are clipped to [1e-12, 1 - 1e-12]
    before the logarithm. It needs three distinct scores, and labels that no threshold separates.
    """
    t = rows.table
    need_different_scores(t, 3)
    need_overlap(t)
    return fit_beta(t)


def fit_beta(t: Table) -> Beta:
    """The likeliest of the fits on the faces of a, b >= 0: it is the maximum, because the likelihood is concave."""
    terms, counts = list(beta_terms(t.score)), counts_of(t)
    rate = t.base_rate
    best = np.array([0.0, 0.0, np.log(rate) - np.log1p(-rate)])
    for used in ([0, 1], [0], [1]):
        fit = _on_face(terms, counts, used)
        if fit is None or bool((fit[:2] < 0).any()):
            continue
        if used == [0, 1]:
            return Beta(*map(float, fit))  # The maximum without constraints meets them.
        if log_likelihood(terms, counts, fit) > log_likelihood(terms, counts, best):
            best = fit
    return Beta(*map(float, best))


def _on_face(terms: list[Floats], counts: LabelCounts, used: list[int]) -> Floats | None:
    """a, b, c where the unused ones of a and b are 0; None where the likelihood has no maximum there."""
    try:
        *slopes, intercept = maximum([terms[k] for k in used], counts)
    except Undefined:
        return None
    coefficients = np.zeros(3)
    coefficients[used], coefficients[2] = slopes, intercept
    return coefficients
