"""Calibration errors on the exact levels of a score, for scores with few distinct values; and their nulls."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import computed_null_of, like, metric
from decal_cli.metrics.numerics import rays
from decal_cli.metrics.numerics.at_levels import need_rows
from decal_cli.tables.classes import MIN_LEVEL_ROWS
from decal_cli.tables.estimate import MeanEstimate
from decal_cli.tables.resample import as_whole
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import CellRun, Floats, Table

_INVERTED = f"{rays.INVERSION_TEXT}; none where the median level holds fewer than {MIN_LEVEL_ROWS} rows"
_NULL_TEXT = "central range for a calibrated model: normal, from the exact variance"


def _ece_exact_interval(t: Table, seed: Seed, *, confidence: float) -> Interval:
    need_rows(t)
    worlds = rays.worlds(t, seed.generator("levels"))
    return rays.interval(ece_exact(t), worlds, rays.total, confidence, least_high=rays.whole(t, confidence))


@metric(
    "Calibration error on exact levels",
    "lower",
    "probability",
    cite("Hu and Wu 2024", "def. 2.3"),
    (0, 1),
    interval=_ece_exact_interval,
    interval_text=_INVERTED,
    noisy=True,
    covers=f"{covered.POPULATION_BELOW}; {covered.FEW_ROWS}",
)
def ece_exact(t: Table) -> float:
    """Mean distance between each distinct score and its frequency of label 1; for scores with few distinct values.

    sum n_i |q_i - h_i| / T. With continuous scores each level holds one row and this measures noise: compare it with
    ece_exact_null.
    """
    return t.sum(lambda block: np.abs(block.n * block.score - block.pos)) / t.total


def _k2_interval(t: Table, seed: Seed, *, confidence: float) -> Interval:
    need_rows(t)
    share = t.n / t.total

    def square(gap: Floats) -> Floats:
        return np.asarray((gap**2 / share).sum(axis=-1))

    worlds = rays.worlds(t, seed.generator("levels"))
    return rays.interval(k2(t), worlds, square, confidence, least_high=rays.whole(t, confidence) ** 2)


@like(
    "ece_exact",
    "Squared calibration error on exact levels",
    cite("Hu and Wu 2024", "def. 2.4"),
    unit="squared probability",
    interval=_k2_interval,
)
def k2(t: Table) -> float:
    """Mean squared distance between each distinct score and its frequency of label 1.

    sum n_i (q_i - h_i)^2 / T. With continuous scores each level holds one row and this measures noise: compare it with
    k2_null.
    """
    return t.sum(lambda block: (block.n * block.score - block.pos) ** 2 / block.n) / t.total


Term = Callable[[CellRun], tuple[Floats, Floats]]
"""Mean and variance, for each level, of an error of a calibrated model."""


def _null(t: Table, term: Term) -> MeanEstimate:
    """Mean and standard deviation of the sum of a term over independent levels, divided by T; computed once."""
    return t.cached(term, lambda table: _moments(table, term))


def _null_interval(term: Term) -> Callable[..., Interval]:
    def interval(t: Table, *, confidence: float) -> Interval:
        return intervals.normal(_null(t, term), confidence, 0.0, 1.0)

    return interval


def _moments(t: Table, term: Term) -> MeanEstimate:
    mean = variance = 0.0
    for block in t.blocks():
        of_level, spread = term(block)
        mean += float(of_level.sum())
        variance += float(spread.sum())
    return MeanEstimate(mean / t.total, math.sqrt(max(variance, 0.0)) / t.total)


def _absolute(block: CellRun) -> tuple[Floats, Floats]:
    """Mean and variance of |X - n q| per level, where X is the weight of n^2/n2 rows."""
    rows = as_whole(block.n**2 / block.n2).astype(np.float64)
    unit, spread = block.n / rows, block.score * (1 - block.score)
    mean = unit * (2 * spread if float(rows.max()) == 1 else _binomial_deviation(rows, block.score))
    return mean, np.maximum(unit**2 * rows * spread - mean**2, 0.0)


def _square(block: CellRun) -> tuple[Floats, Floats]:
    """Mean and variance of (X - n q)^2 / n per level, where X is the weight of n^2/n2 rows."""
    # A cell that is part of one cluster acts as one row.
    rows, unit = np.maximum(block.n**2 / block.n2, 1), np.minimum(block.n2 / block.n, block.n)
    spread = block.score * (1 - block.score)
    return unit * spread, unit**2 * spread * (1 + (2 * rows - 6) * spread) / rows


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


@computed_null_of(
    "ece_exact",
    "Calibration error on exact levels, of a calibrated model",
    f"mean absolute deviation of the binomial: {cite('De Moivre 1730')}",
    _null_interval(_absolute),
    interval_text=_NULL_TEXT,
)
def ece_exact_null(t: Table) -> float:
    """Mean ece_exact that a perfectly calibrated model with these scores shows, by chance alone.

    sum E|X_i - n_i q_i| / T with X_i binomial; computed, not drawn. Rows of unequal weight at one score count as
    n_i^2 / n2_i rows of equal weight.
    """
    return _null(t, _absolute).mean


@computed_null_of(
    "k2",
    "Squared calibration error on exact levels, of a calibrated model",
    "variance of the binomial",
    _null_interval(_square),
    interval_text=_NULL_TEXT,
)
def k2_null(t: Table) -> float:
    """Mean k2 that a perfectly calibrated model with these scores shows, by chance alone.

    sum q_i (1 - q_i) / T, times n2_i / n_i for weighted rows; computed, not drawn.
    """
    return _null(t, _square).mean
