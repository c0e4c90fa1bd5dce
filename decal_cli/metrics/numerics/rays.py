"""Intervals of calibration errors, by tests inverted along worlds whose gaps are known.

A calibration error is never negative, and noise alone makes it positive. A bootstrap lays noise on noise, and near
calibration its interval misses the truth; so does a normal interval. Here chance is drawn in worlds on two paths away
from calibration: gaps that are the observed ones times a factor, and gaps that are the observed ones less so many of
their standard errors, since small ones may be nothing but noise. The interval holds the errors of the worlds in which
the observed one is none of the extreme ones, and the observed one itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from decal_cli.metrics.confidence import Interval, holding, quantile
from decal_cli.metrics.numerics import gaps
from decal_cli.tables.resample import TIE
from decal_cli.tables.table import Floats, Ints, Table

N_WORLD_DRAWS = 200
MAX_ERROR_CELLS = 512
"""Above this many levels chance is drawn on this many equal-mass cells."""
FACTORS = np.array((0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.05, 1.2, 1.4, 1.7, 2.0))
LESS = np.array((6.0, 4.0, 3.0, 2.5, 2.0, 1.6, 1.2, 0.9, 0.6, 0.3, 0.0))
"""Standard errors taken off the gaps."""
_CROWDED = 30
"""Rows from which on a level's own gap is one; below it is the gap of its bin."""

WIDENED = 1.15
"""Of chance, for errors that look for the place or the width at which they are largest (docs/simulation.md)."""

INVERSION_TEXT = (
    "test inversion: the worlds, with the observed gaps times a factor or less their noise, in which what is seen is "
    "not extreme; and the value itself"
)

Norm = Callable[[Floats], Floats]
"""Gaps along the last axis -> the calibration error."""


class Worlds(NamedTuple):
    """Gaps, shape (m,), the same less their noise, (worlds, m), and what chance adds to them, (N_WORLD_DRAWS, m).

    spread: variance of chance in the calibrated world, and what each unit of the gaps adds, over that of the draws.
    """

    gap: Floats
    less: Floats
    noise: Floats
    spread: tuple[float, float]

    def mapped(self, linear: Norm) -> Worlds:
        """The same of a linear function of the gaps, such as their sums over runs of levels."""
        return Worlds(linear(self.gap), linear(self.less), linear(self.noise), self.spread)

    def summed(self, starts: Ints) -> Worlds:
        """Sums over runs of levels, given by the first level of each."""
        return self.mapped(lambda gap: np.add.reduceat(gap, starts, axis=-1))


def cells(t: Table, most: int = MAX_ERROR_CELLS) -> Table:
    """The table on which chance is drawn."""
    return t if len(t) <= most else t.bins(most)


def worlds(levels: Table, rng: np.random.Generator) -> Worlds:
    """Sums of label - score over T of each level, with draws of rows and labels about the frequencies of bins."""
    chance, unit = _frequency(levels), gaps.concentration(levels) * levels.n
    rows, shape = levels.n / unit, (N_WORLD_DRAWS, len(levels))
    pos, neg = unit * rng.poisson(rows * chance, shape), unit * rng.poisson(rows * (1 - chance), shape)
    total = (pos + neg).sum(axis=-1, keepdims=True)
    noise = (pos - (pos + neg) * levels.score) / np.where(total > 0, total, 1.0)
    noise -= levels.n * (chance - levels.score) / levels.total
    gap = (levels.pos - levels.n * levels.score) / levels.total
    starts = np.arange(len(levels)) if float(np.median(rows)) >= _CROWDED else levels.bin_starts()
    sums, error = np.add.reduceat(gap, starts), np.add.reduceat(noise, starts, axis=-1).std(axis=0)
    kept = gaps.shrunken(sums, LESS[:, None] * error)
    share = levels.n / np.repeat(np.add.reduceat(levels.n, starts), np.diff(starts, append=len(levels)))
    less = np.repeat(kept, np.diff(starts, append=len(levels)), axis=-1) * share
    calibrated, drawn = (float(_squares(levels, p).sum()) for p in (levels.score, chance))
    bend = float((unit * (1 - 2 * levels.score) * gap).sum()) * levels.total
    return Worlds(gap, less, noise, (calibrated / max(drawn, 1e-300), bend / max(drawn, 1e-300)))


def _frequency(levels: Table) -> Floats:
    """The score plus the gap of its bin, with two more rows in each: a bin that holds one class may err as well."""
    bins = levels.bins()
    rows = 1 / gaps.concentration(bins)
    return np.clip(levels.score + gaps.spread(levels, gaps.observed(bins) * rows / (rows + 2)), 0.0, 1.0)


def squares(levels: Table) -> Floats:
    """sum w^2 (label - score)^2 expected in each level."""
    return _squares(levels, _frequency(levels))


def _squares(levels: Table, chance: Floats) -> Floats:
    """The same at these chances of label 1, in which it is linear."""
    unit = gaps.concentration(levels) * levels.n
    return np.asarray(unit * levels.n * (chance * (1 - 2 * levels.score) + levels.score**2))


def whole(levels: Table, confidence: float) -> float:
    """Upper end of |E[label - score]|, which no error that adds up over rows, or is a supremum, is below.

    The variance is the one at that end: rare labels vary the more the more of them there are.
    """
    unit = gaps.concentration(levels) * levels.n
    mean = float((levels.pos - levels.n * levels.score).sum()) / levels.total
    variance = float(squares(levels).sum()) / levels.total**2
    bend = float((unit * levels.n * (1 - 2 * levels.score)).sum()) / levels.total**2
    ends = []
    for sign in (-1, 1):
        reach = 0.0
        for _ in range(3):
            reach = quantile(confidence) * float(np.sqrt(max(variance + sign * bend * reach, variance / 4)))
        ends.append(sign * mean + reach)
    return max(ends)


def total(gap: Floats) -> Floats:
    """sum |gap|."""
    return np.asarray(np.abs(gap).sum(axis=-1))


def inverted(seen: float, drawn: Floats, truths: Floats, confidence: float) -> Interval:
    """The least and the greatest truth, along a path of worlds away from calibration, at which `seen` is not extreme.

    drawn: what each world shows, shape (worlds, draws); truths: shape (worlds,).
    """
    lows, highs = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2], axis=1)
    # The least world whose upper end reaches what is seen, and the greatest whose lower end does not exceed it.
    # What is seen is often 0, and so are ends: but for rounding they are equal.
    least = float(np.interp(seen - TIE, np.maximum.accumulate(highs), truths))
    greatest = float(np.interp(seen + TIE, np.maximum.accumulate(lows), truths))
    return least, max(least, greatest)


def interval(
    value: float,
    seen: Worlds,
    norm: Norm,
    confidence: float,
    *,
    truth: Norm | None = None,
    least_high: float = 0.0,
    most: float = 1.0,
    observed: float | None = None,
    widened: float = 1.0,
) -> Interval:
    """Errors of the worlds in which the norm of the gaps is not extreme, and the value.

    norm: of gaps; truth: the error of worlds, where that is not their norm; least_high: what the upper end reaches;
    most: the largest error that there can be; observed: what is seen, where the gaps are smoother than the observed;
    widened: times this, chance moves the error as much as in samples.
    """
    gap, less, noise, (calibrated, bend) = seen
    noise = widened * noise
    error = float(norm(gap[None])[0]) if observed is None else observed

    def ends(of_worlds: Floats, scale: Floats) -> Interval:
        drawn = np.array([norm(world + factor * noise) for world, factor in zip(of_worlds, scale, strict=True)])
        return inverted(error, drawn, (truth or norm)(of_worlds), confidence)

    # Where little is seen but noise, twice that little is not the most that there may be.
    reach = 1 + float(np.quantile(norm(noise), (1 + confidence) / 2)) / max(error, 1e-300)
    factors = FACTORS * min(reach, 1e6)
    low, high = ends(factors[:, None] * gap, np.sqrt(np.clip(calibrated + bend * factors, 0.25, 4.0)))
    low = min(low, ends(less, np.ones(len(less)))[0])
    return holding((low, min(max(high, least_high), most)), value)


MAX_WORLD_CELLS = 128
_OWN = 30
"""Up to this many levels the gaps of worlds are their own, above it those of bins."""

Statistic = Callable[[Floats, Floats, Floats], Floats]
"""(score, n, pos) -> the values; n and pos of shape (draws, levels), one level for each score."""


def interval_of_agents(
    t: Table, statistic: Statistic, rng: np.random.Generator, confidence: float, value: float, most: float = 1.0
) -> Interval:
    """Values of the worlds in which the value is not extreme, as interval has them; rows and labels are drawn.

    Worlds are the scores, of at most MAX_WORLD_CELLS equal-mass cells, plus the gaps of bins, times a factor or less
    their noise.
    """
    levels = t if len(t) <= MAX_WORLD_CELLS else t.cells.bins(MAX_WORLD_CELLS)
    bins = levels.bins() if len(levels) > _OWN else levels
    lengths = np.diff(levels.bin_starts(), append=len(levels)) if bins is not levels else np.ones(len(levels), np.int64)
    gap, one_over = gaps.observed(bins), gaps.concentration(bins)
    error = np.sqrt((gap**2 + bins.score * (1 - bins.score)) * one_over)
    factors = FACTORS * (1 + quantile(confidence) * float(np.sqrt(error @ error / max(gap @ gap, 1e-300))))
    less = gaps.shrunken(gap, LESS[:, None] * error)
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
        inverted(seen, drawn[path], truths[path], cautious)[0]
        for path in (slice(len(factors)), slice(len(factors), None))
    )
    high = inverted(seen, drawn[: len(factors)], truths[: len(factors)], confidence)[1]
    return holding((low, min(high, most)), value)


def _drawn(
    score: Floats, rows: Floats, unit: Floats, chance: Floats, statistic: Statistic, rng: np.random.Generator
) -> Floats:
    """The statistic in draws of a world."""
    shape = (N_WORLD_DRAWS, len(rows))
    pos, neg = unit * rng.poisson(rows / unit * chance, shape), unit * rng.poisson(rows / unit * (1 - chance), shape)
    n = pos + neg
    some = n.sum(axis=-1) > 0
    return (
        statistic(score, n[some], pos[some])
        if some.all()
        else np.resize(statistic(score, n[some], pos[some]), N_WORLD_DRAWS)
    )
