"""Measures under the names that medicine, credit scoring and audits of fairness use."""

from __future__ import annotations

import math

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.errors import Undefined
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.decisions import Acting
from decal_cli.metrics.declare import metric
from decal_cli.metrics.families.ranking import auc_interval, delong
from decal_cli.metrics.families.task import net_benefit
from decal_cli.metrics.numerics import gaps, label_shift, rays
from decal_cli.metrics.numerics.label_shift import ReferenceScores
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, Floats, Table
from decal_cli.tables.units import Estimate

_ROWS_OF_BIN = 10
"""Rows of the rarer label that a bin has at least, on average."""
_WIDER = 1.1
"""The maximum of a smooth walk moves less than that of the true one: chosen in worlds of known truth."""
INTERVENTIONS = 100.0
"""Rows that interventions avoided are counted of."""


@metric(
    "Selection rate",
    "neither",
    "share",
    "positive prediction rate; of a credit score that rejects, the reject rate",
    (0, 1),
    interval="wilson",
)
def selection_rate(d: Acting) -> Estimate:
    """Share of the rows that are decided 1.

    (TP + FP) / T.
    """
    return d.share(d.acts, True)


@metric("False positive rate", "lower", "share", "fall-out, 1 - specificity", (0, 1), interval="wilson")
def false_positive_rate(d: Acting) -> Estimate:
    """Share of the rows with label 0 that are decided 1.

    FP / (FP + TN).
    """
    return d.share(d.acts, ~d.positive, "no row has label 0")


@metric(
    "Standardised net benefit",
    "higher",
    "share",
    cite("Kerr et al. 2016"),
    (-math.inf, 1),
    interval="normal",
    interval_text="ratio of two means: normal, from its linearised standard error",
)
def net_benefit_standardised(d: Acting) -> Estimate:
    """Net benefit as a share of the most that it can be, which is the base rate.

    net_benefit / b. 1: every label 1 is found and nothing else; never acting has 0.
    """
    base_rate = d.units.mean(d.positive)
    if base_rate.value <= 0:
        raise Undefined("no row has label 1")
    return (net_benefit(d) / base_rate).within(-math.inf, 1.0)


@metric(
    "Interventions avoided per 100 rows",
    "higher",
    "count",
    cite("Vickers and Elkin 2006"),
    (-math.inf, 100),
    interval="normal",
)
def interventions_avoided(d: Acting) -> Estimate:
    """Interventions per 100 rows that the score avoids without missing more, compared with acting on every row.

    100 (TN - FN (1 - t*) / t*) / T, which is 100 (net benefit - that of always acting) / (odds of t*).
    """
    with np.errstate(divide="ignore"):
        avoided = np.where(d.acts, 0.0, np.where(d.positive, -1 / d.odds, 1.0))
    return (INTERVENTIONS * d.units.mean(avoided)).within(-math.inf, INTERVENTIONS)


def _gini_interval(t: Table, *, confidence: float) -> Interval:
    low, high = auc_interval(t, confidence=confidence)
    return 2 * low - 1, 2 * high - 1


@metric(
    "Gini coefficient",
    "higher",
    "share",
    "Somers' D of label and score: 2 AUC - 1",
    (-1, 1),
    interval=_gini_interval,
    interval_text="from that of auc",
)
def gini(t: Table) -> float:
    """How well the order of the scores separates the labels; 0 for no information, 1 for a perfect order.

    2 AUC - 1.
    """
    return 2 * delong(t).value - 1


def _walk(pos: Floats, neg: Floats) -> Floats:
    """Distribution of the score among labels 1 less that among labels 0, at each level along the last axis."""
    ones, zeros = (each / np.maximum(each.sum(axis=-1, keepdims=True), 1e-300) for each in (pos, neg))
    return np.asarray(np.cumsum(ones - zeros, axis=-1))


def _largest(walk: Floats) -> Floats:
    return np.asarray(np.abs(walk).max(axis=-1))


def _smooth_positives(cells: Table) -> Floats:
    """The positives of each cell if its bin had one frequency: the walk of the cells themselves is rough by noise."""
    starts = cells.bin_starts(int(np.clip(cells.rarer_rows / _ROWS_OF_BIN, 2, BINS)))
    bins = cells.merge_levels(starts)
    return np.asarray(np.repeat(bins.pos / bins.n, np.diff(starts, append=len(cells))) * cells.n)


def _ks_interval(t: Table, seed: Seed, *, confidence: float) -> Interval:
    value, cells, rng = ks(t), rays.cells(t), seed.generator("practice")
    unit = gaps.concentration(cells) * cells.n
    pos = _smooth_positives(cells)
    neg, shape = cells.n - pos, (rays.N_WORLD_DRAWS, len(cells))
    walk = _walk(pos, neg)
    noise = _walk(unit * rng.poisson(pos / unit, shape), unit * rng.poisson(neg / unit, shape)) - walk
    noise *= _WIDER
    less = gaps.shrunken(walk, rays.LESS[:, None] * noise.std(axis=0))
    return rays.interval(value, rays.Worlds(walk, less, noise, (1.0, 0.0)), _largest, confidence, observed=value)


@metric(
    "Kolmogorov-Smirnov statistic",
    "higher",
    "share",
    "Kolmogorov-Smirnov distance of two samples",
    (0, 1),
    interval=_ks_interval,
    interval_text=(
        "test inversion: the worlds, with the observed distances times a factor or less their noise, in "
        "which what is seen is not extreme; and the value itself"
    ),
    noisy=True,
    rarer=50,
    covers=covered.POPULATION_BELOW,
)
def ks(t: Table) -> float:
    """Largest distance between the distributions of the score among labels 1 and among labels 0.

    max over s of |P(p <= s | y = 1) - P(p <= s | y = 0)|: the largest difference of sensitivity and false positive
    rate that any threshold has.
    """
    t.need_both_classes()
    positives = negatives = largest = 0.0
    for block in t.blocks():
        ones = positives + np.cumsum(block.pos)
        zeros = negatives + np.cumsum(block.n - block.pos)
        largest = max(largest, float(np.abs(ones / t.positives - zeros / t.negatives).max()))
        positives, negatives = float(ones[-1]), float(zeros[-1])
    return min(largest, 1.0)


@metric(
    "Population stability index",
    "lower",
    "nats",
    "Kullback's divergence J of two distributions over bins",
    (0, math.inf),
    size_free=False,
    interval=None,
    covers="nothing: it is a distance, above 0 by chance too, by about 9 (1/T + 1/R) with R rows in the reference",
)
def psi(t: Table, reference: ReferenceScores) -> float:
    """Distance between the distribution of the scores and that of a reference, such as the rows of the training set.

    Sum over ten equal-mass bins of the reference, which stay as they are, of (a - e) ln(a / e), where e is the share of
    the reference in the bin and a that of these rows; a bin that no row falls in counts half a row.
    """
    edges = reference.table.bin_edges(label_shift.N_BINS)
    return label_shift.psi(label_shift.binned(reference.table, edges), label_shift.binned(t, edges))
