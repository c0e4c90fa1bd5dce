"""Intervals of the worst agents, from draws of rows and of labels in worlds whose gaps are known; see rays.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from decal_cli.metrics.confidence import Interval, holding, quantile
from decal_cli.metrics.numerics import gaps, rays
from decal_cli.tables.table import Floats, Table

MAX_WORLD_CELLS = 128
_OWN = 30
"""Up to this many levels the gaps of worlds are their own, above it those of bins."""

Statistic = Callable[[Floats, Floats, Floats], Floats]
"""(score, n, pos) -> the values; n and pos of shape (draws, levels), one level for each score."""


def interval(
    t: Table, statistic: Statistic, rng: np.random.Generator, confidence: float, value: float, most: float = 1.0
) -> Interval:
    """Values of the worlds in which the value is not extreme, as rays.interval has them; rows and labels are drawn.

    Worlds are the scores, of at most MAX_WORLD_CELLS equal-mass cells, plus the gaps of bins, times a factor or less
    their noise.
    """
    levels = t if len(t) <= MAX_WORLD_CELLS else t.cells.bins(MAX_WORLD_CELLS)
    bins = levels.bins() if len(levels) > _OWN else levels
    lengths = np.diff(levels.bin_starts(), append=len(levels)) if bins is not levels else np.ones(len(levels), np.int64)
    gap, one_over = gaps.observed(bins), gaps.concentration(bins)
    error = np.sqrt((gap**2 + bins.score * (1 - bins.score)) * one_over)
    factors = rays.FACTORS * (1 + quantile(confidence) * float(np.sqrt(error @ error / max(gap @ gap, 1e-300))))
    less = gaps.shrunken(gap, rays.LESS[:, None] * error)
    worlds = np.concatenate((np.minimum(factors, 1e6)[:, None] * gap, less))
    chances = np.clip(levels.score + np.repeat(worlds, lengths, axis=-1), 0.0, 1.0)
    rows = levels.n * 1.0
    truths = statistic(levels.score, np.broadcast_to(rows, chances.shape), rows * chances)
    seen = float(statistic(levels.score, rows[None], levels.pos[None] * 1.0)[0])
    unit = gaps.concentration(levels) * levels.n
    drawn = np.array([_drawn(levels.score, rows, unit, p, statistic, rng) for p in chances])
    # These gaps are a little those that noise made, and chance raises the worst agent of others more.
    cautious = (1 + confidence) / 2
    low = min(
        rays.inverted(seen, drawn[path], truths[path], cautious)[0]
        for path in (slice(len(factors)), slice(len(factors), None))
    )
    high = rays.inverted(seen, drawn[: len(factors)], truths[: len(factors)], confidence)[1]
    return holding((low, min(high, most)), value)


def _drawn(
    score: Floats, rows: Floats, unit: Floats, chance: Floats, statistic: Statistic, rng: np.random.Generator
) -> Floats:
    """The statistic in draws of a world."""
    shape = (rays.N_WORLD_DRAWS, len(rows))
    pos, neg = unit * rng.poisson(rows / unit * chance, shape), unit * rng.poisson(rows / unit * (1 - chance), shape)
    n = pos + neg
    some = n.sum(axis=-1) > 0
    return (
        statistic(score, n[some], pos[some])
        if some.all()
        else np.resize(statistic(score, n[some], pos[some]), rays.N_WORLD_DRAWS)
    )
