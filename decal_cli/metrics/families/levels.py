"""Calibration errors on the exact levels of a score, for predictors with few distinct scores, and their nulls."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import metric
from decal_cli.metrics.numerics import gaps
from decal_cli.tables.table import Block, Estimate, Floats, Table

Levels = Literal["auto", "exact", "bins"]

_CROWDED = 30
_MOST = 1 << 14
_INVERTED = (
    "test inversion: the worlds, with the observed gaps times a factor (those of equal-mass bins where levels hold few "
    f"rows), in which the value is not extreme; none above {_MOST} levels"
)
_NULL_TEXT = "central range for a calibrated model: normal, from the exact variance"


def levels_used(t: Table) -> Literal["exact", "bins"]:
    """What levels=auto means here: exact where the median level holds 30 or more (effective) rows, else bins."""
    # At least half of the levels hold the median or more, which spares most tables the median.
    if t.effective_rows < _CROWDED / 2 * len(t):
        return "bins"
    return "exact" if float(np.median(1 / gaps.concentration(t))) >= _CROWDED * (1 - 1e-9) else "bins"


def at_levels(t: Table, levels: Levels) -> Table:
    """The table itself, or every score replaced by the mean score of its equal-mass bin."""
    used = levels_used(t) if levels == "auto" else levels
    return t if used == "exact" else t.bins()


def _inverted_interval(t: Table, norm: gaps.Norm, rng: np.random.Generator, confidence: float) -> Interval:
    if len(t) > _MOST:
        raise Undefined(f"no interval above {_MOST} levels")
    gap = gaps.observed(t) if levels_used(t) == "exact" else gaps.spread(t, gaps.observed(t.bins()))
    return gaps.inverted_interval(t, gap, norm, rng, confidence)


def _ece_exact_interval(t: Table, rng: np.random.Generator, *, confidence: float) -> Interval:
    return _inverted_interval(t, gaps.mean_gap, rng, confidence)


@metric(
    title="Calibration error on exact levels",
    better="lower",
    unit="probability",
    source="[C] def. 2.3",
    range=(0, 1),
    interval=_ece_exact_interval,
    interval_text=_INVERTED,
    noisy=True,
)
def ece_exact(t: Table) -> float:
    """Mean distance between each distinct score and the frequency of label 1 at it; for scores with few values.

    sum n_i |q_i - h_i| / T. With continuous scores a level holds one row and this measures noise: compare it with
    ece_exact_null.
    """
    return t.sum(lambda block: np.abs(block.n * block.score - block.pos)) / t.total


def _k2_interval(t: Table, rng: np.random.Generator, *, confidence: float) -> Interval:
    return _inverted_interval(t, gaps.mean_square, rng, confidence)


@metric(
    title="Squared calibration error on exact levels",
    better="lower",
    unit="squared probability",
    source="[C] def. 2.4",
    range=(0, 1),
    interval=_k2_interval,
    interval_text=_INVERTED,
    noisy=True,
)
def k2(t: Table) -> float:
    """Mean squared distance between each distinct score and the frequency of label 1 at it.

    sum n_i (q_i - h_i)^2 / T. With continuous scores a level holds one row and this measures noise: compare it with
    k2_null.
    """
    return t.sum(lambda block: (block.n * block.score - block.pos) ** 2 / block.n) / t.total


def _exact_null(t: Table) -> Estimate:
    return t.once(_exact_null, lambda table: _moments(table, _absolute))


def _ece_exact_null_interval(t: Table, *, confidence: float) -> Interval:
    return intervals.normal(_exact_null(t), confidence, 0.0, 1.0)


@metric(
    title="Calibration error on exact levels, of a calibrated model",
    better="neither",
    unit="probability",
    source="mean absolute deviation of the binomial, De Moivre 1730",
    range=(0, 1),
    size_free=False,
    interval=_ece_exact_null_interval,
    interval_text=_NULL_TEXT,
)
def ece_exact_null(t: Table) -> float:
    """Mean ece_exact that a perfectly calibrated model with these scores would show, by chance alone.

    sum E|X_i - n_i q_i| / T with X_i binomial: computed, not drawn. Rows of unequal weight at one score count as
    n_i^2 / n2_i rows of equal weight.
    """
    return _exact_null(t).mean


def _k2_null(t: Table) -> Estimate:
    return t.once(_k2_null, lambda table: _moments(table, _square))


def _k2_null_interval(t: Table, *, confidence: float) -> Interval:
    return intervals.normal(_k2_null(t), confidence, 0.0, 1.0)


@metric(
    title="Squared calibration error on exact levels, of a calibrated model",
    better="neither",
    unit="squared probability",
    source="variance of the binomial",
    range=(0, 1),
    size_free=False,
    interval=_k2_null_interval,
    interval_text=_NULL_TEXT,
)
def k2_null(t: Table) -> float:
    """Mean k2 that a perfectly calibrated model with these scores would show, by chance alone.

    sum q_i (1 - q_i) / T, times n2_i / n_i for weighted rows: computed, not drawn.
    """
    return _k2_null(t).mean


def _moments(t: Table, term: intervals.Term) -> Estimate:
    """Mean and standard deviation of a sum over independent levels, over T."""
    mean = variance = 0.0
    for block in t.blocks():
        of_level, spread = term(block)
        mean += float(of_level.sum())
        variance += float(spread.sum())
    return Estimate(mean / t.total, math.sqrt(max(variance, 0.0)) / t.total)


def _square(block: Block) -> tuple[Floats, Floats]:
    """Mean and variance of (X - n q)^2 / n per level, X the weight of n^2/n2 rows."""
    rows, unit, spread = block.n**2 / block.n2, block.n2 / block.n, block.score * (1 - block.score)
    return unit * spread, unit**2 * spread * (1 + (2 * rows - 6) * spread) / rows


def _absolute(block: Block) -> tuple[Floats, Floats]:
    """Mean and variance of |X - n q| per level, X the weight of n^2/n2 rows."""
    rows = np.maximum(np.rint(block.n**2 / block.n2), 1)
    unit, spread = block.n / rows, block.score * (1 - block.score)
    mean = unit * (2 * spread if float(rows.max()) == 1 else _binomial_deviation(rows, block.score))
    return mean, np.maximum(unit**2 * rows * spread - mean**2, 0.0)


def _binomial_deviation(rows: Floats, chance: Floats) -> Floats:
    """E|X - n q| = 2 k C(n, k) q^k (1 - q)^(n - k + 1), k = floor(n q) + 1 (De Moivre)."""
    inner = (chance > 0) & (chance < 1)
    n, q = rows[inner], chance[inner]
    k = np.minimum(np.floor(n * q) + 1, n)
    log_choose = _log_factorial(n) - _log_factorial(k) - _log_factorial(n - k)
    deviation = np.zeros_like(rows)
    deviation[inner] = 2 * k * np.exp(log_choose + k * np.log(q) + (n - k + 1) * np.log1p(-q))
    return deviation


_LOG_FACTORIALS = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1.0, 64.0)))))


def _log_factorial(n: Floats) -> Floats:
    """ln n!: a table, then Stirling's series."""
    large = np.maximum(n, 63.0)
    series = large * np.log(large) - large + 0.5 * np.log(2 * np.pi * large) + 1 / (12 * large) - 1 / (360 * large**3)
    return np.where(n < 64, _LOG_FACTORIALS[np.minimum(n, 63.0).astype(np.int64)], series)
