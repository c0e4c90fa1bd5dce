"""Gaps between label frequency and mean score on given levels, the gaps that chance makes, and intervals of errors.

Noise alone makes a calibration error positive, so a bootstrap or normal interval misses the truth near calibration.
Here chance is drawn in worlds on two paths from calibration: the observed gaps times a factor, and less so many
standard errors. The interval holds the observed error, and those of the worlds in which it is none of the extreme ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
from numpy.random import Generator

from decal_cli.errors import Undefined
from decal_cli.metrics.confidence import Interval, holding, quantile
from decal_cli.tables.classes import MIN_LEVEL_ROWS, ClassLevels, ClassTable
from decal_cli.tables.design import residual_products, squares_within_cells
from decal_cli.tables.estimate import ratio
from decal_cli.tables.memo import once
from decal_cli.tables.resample import TIE, as_whole
from decal_cli.tables.table import BINS, Counts, Floats, Ints, Mask, Strategy, Table
from decal_cli.tables.units import InClusters, Units, ones, run_of_each, summed

F = TypeVar("F")
N_NULL_DRAWS = 400
MAX_NULL_LEVELS = 4096
"""Above this many levels, labels are drawn on as many equal-mass cells; the scores in one cell hardly differ."""

PAIRED_CELLS = 256
"""Cells whose runs are looked at one by one, for the upper end of what the worst run adds up to."""


def observed(levels: Table) -> Floats:
    """Label frequency minus score, shape (m,)."""
    return levels.pos / levels.n - levels.score


def running(values: Counts) -> Floats:
    """Sums up to each entry, after 0 for none of them, shape (m,) to (m + 1,)."""
    return np.append(0.0, np.cumsum(values, dtype=np.float64))


def highest_run(steps: Floats, squares: Floats, confidence: float) -> float:
    """Largest upper end of |E sum| over runs of cells: that of the worst run holds it often enough.

    steps: what each cell adds, (m,); squares: its variance, (m,).
    """
    walk, variance = running(steps), running(squares)
    error = np.sqrt(np.maximum(variance - variance[:, None], 0.0))
    return float((np.abs(walk - walk[:, None]) + quantile(confidence) * error).max())


def shrunken(gap: Floats, by: Floats) -> Floats:
    """Gaps drawn towards 0 by so much; those that are smaller are 0."""
    return np.asarray(np.maximum(np.abs(gap) - by, 0.0) * np.sign(gap))


def mean_square(levels: Table) -> float:
    """sum share gap^2."""
    return float((levels.n / levels.total * observed(levels) ** 2).sum())


def whole_rows(levels: Table) -> Ints:
    """The effective rows of each level, as whole numbers to draw labels for."""
    return as_whole(levels.rows_of_cells)


def drawn_classes(units: Units, score: Floats, cell: Ints, draws: int, rng: Generator) -> Floats:
    """Class counts of cells of a calibrated model, shape (draws, m, K), weighted as the rows of each cell are.

    score: of each row and class, (T, K); cell: the number of each row's, (T,).
    """
    rows = np.bincount(cell, units.weight).astype(np.float64)
    chance = summed(cell, lambda part: units.weight[part] * score[part].T).T
    chance /= chance.sum(axis=1, keepdims=True)
    effective = as_whole(rows**2 / _squares_of_cells(units, score, cell))
    labels = rng.multinomial(effective, chance, (draws, len(chance)))
    return np.asarray(labels * (rows / effective)[:, None], dtype=np.float64)


def _squares_of_cells(units: Units, score: Floats, cell: Ints) -> Floats:
    """Squared weights of each cell, (m,): of independent rows whose classes vary as those of the cell do."""
    weight, own = units.weight, units.sampling.squares(units.weight)
    if not isinstance(units.sampling, InClusters):
        return np.bincount(cell, own).astype(np.float64)
    cluster = units.sampling.cluster
    off = ((units.label == number) - chance for number, chance in enumerate(score.T))
    return squares_within_cells(cell, cluster, weight, own, off, ones(int(cluster.max()) + 1))


class Noise(NamedTuple):
    """How much the label frequencies of levels vary, for levels that hold more than one row or cluster.

    some: which levels these are, bool (m,). variance: of their frequencies, shape (k,). covariance: (k, k), None where
    it is diagonal.
    """

    some: Mask
    variance: Floats
    covariance: Floats | None


def noise(levels: Table) -> Noise:
    """h (1 - h) / (n - 1) of independent rows; of clusters, sums over clusters with the same correction."""
    products = levels.design.gram
    if products is None:
        some = levels.rows_of_cells > 1 + 1e-9
        rate = (levels.pos / levels.n)[some]
        return Noise(some, rate * (1 - rate) / (levels.rows_of_cells[some] - 1), None)
    m, both = len(levels), products.diagonal()
    sizes = both[:m] + both[m:] + 2 * products[:m, m:].diagonal()
    some = sizes < (1 - 1e-9) * np.asarray(levels.n, dtype=np.float64) ** 2
    off = residual_products(products, levels.pos / levels.n)
    one_over = (sizes / levels.n**2)[some]
    scale = 1 / (levels.n[some] * np.sqrt(1 - one_over))
    covariance = off[np.ix_(some, some)] * np.outer(scale, scale)
    return Noise(some, covariance.diagonal(), covariance)


def debiased_square(levels: Table) -> float:
    """sum share (gap^2 - h (1 - h) / (n - 1)), without levels of one row; Kumar et al. 2019."""
    some, variance, _ = noise(levels)
    rate = (levels.pos / levels.n)[some]
    share = levels.n[some] / levels.total
    return float((share * ((rate - levels.score[some]) ** 2 - variance)).sum())


def spread(t: Table, gap: Floats) -> Floats:
    """The gap of the equal-mass bin of each level."""
    return np.asarray(gap[run_of_each(t.bin_starts(), len(t))])


def smoothed(t: Table) -> Floats:
    """A probability for each level: its score plus the gap of its equal-mass bin, shrunk.

    The gaps of the bins are multiplied by the factor that removes the noise from their mean square.
    """
    bins = t.bins()
    gap, plug_in = observed(bins), mean_square(bins)
    gap = gap * math.sqrt(min(max(debiased_square(bins), 0.0) / max(plug_in, 1e-300), 1.0))
    return np.clip(t.score + spread(t, gap), 0.0, 1.0)


def null_draws(t: Table, statistic: Callable[[Table], float], rng: Generator) -> Floats:
    """The statistic on tables with these scores and labels drawn from them, shape (N_NULL_DRAWS,)."""
    return np.array([*map(statistic, t.null(rng, N_NULL_DRAWS))])


def added_by_chance(t: Table, statistic: Callable[[Table], float], rng: Generator) -> float:
    """What chance adds to the statistic on average where the labels are those of a smoothed calibration curve."""
    chance = smoothed(t)
    drawn = [*map(statistic, t.relabelled(rng, N_NULL_DRAWS, chance))]
    return float(np.mean(drawn)) - statistic(Table(t.score, t.n, t.n * chance, t.design))


def most_cells(t: Table, bins: int, most: int = MAX_NULL_LEVELS) -> int:
    """On how many cells the labels of a calibrated model are drawn at most, for this many bins."""
    # The labels of clusters vary together, which takes the covariance of every two cells.
    return 16 * bins if t.design.clustered else max(most, 16 * bins)


def central(draws: Floats, confidence: float) -> Interval:
    """The central range of draws."""
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


DEBIASED_TEXT = "score interval; variance of the bins' squared gaps with its second-order term"


def debiased_interval(levels: Table, confidence: float) -> Interval:
    """Interval of theta = sum_k P(bin k) (E[p | k] - E[y | k])^2, the population's value for these edges.

    The thetas that the value is less than z standard errors away from, the error being the one it has at that theta:
    with the error at the value, small values look sharper than they are and theta lies above the interval too often.
    """
    levels.need_both_classes()
    value, (slope, floor) = debiased_square(levels), variance_terms(levels)
    z2 = quantile(confidence) ** 2
    flat = math.sqrt(z2 * floor)
    middle = value + z2 * slope / 2
    half_width = math.sqrt(max(z2 * (slope * value + z2 * slope**2 / 4 + floor), 0.0))
    low = value - flat if value < flat else middle - half_width
    high = value + flat if value < -flat else middle + half_width
    return max(low, -0.5), min(high, 1.0)


def variance_terms(levels: Table) -> tuple[float, float]:
    """Variance of the debiased square where the true one is theta: slope * max(theta, 0) + floor.

    A bin's (d + e)^2 - v, e of variance v, has variance 4 d^2 v + 2 v^2. The floor sums 2 v^2; the slope is the mean of
    4 share v over bins, each by its part in the squared gaps. v = h (1 - h) / (rows - 1), rows the effective ones; of
    clusters, bins vary together.
    """
    some, variance, covariance = noise(levels)
    if not some.any():
        raise Undefined("no bin holds two rows")
    rate = (levels.pos / levels.n)[some]
    share = (levels.n / levels.total)[some]
    gap = rate - levels.score[some]
    part = share * gap**2
    if covariance is not None:
        weighted = share * gap
        slope = 4 * float(weighted @ covariance @ weighted) / max(float(part.sum()), 1e-300)
        return slope, 2 * float(share @ covariance**2 @ share)
    slope = 4 * float((part * share * variance).sum()) / max(float(part.sum()), 1e-300)
    return slope, 2 * float((share**2 * variance**2).sum())


Levels = Literal["auto", "exact", "bins"]

AtLevels = Annotated[
    Levels, f"exact levels, {BINS} equal-mass bins, or auto: exact where the median level has {MIN_LEVEL_ROWS} rows"
]

AtCells = Annotated[
    Levels, f"exact levels, cells of about equal rows, or auto: exact where the median level has {MIN_LEVEL_ROWS} rows"
]
_CELLS, _MAX_NUMBERS = (8, 32), 160
"""Cells of several classes, at least and at most, and times classes at most: noise fills more of them."""


def levels_used(t: Table) -> Literal["exact", "bins"]:
    """What levels=auto means here: exact where the median level holds 30 or more (effective) rows, else bins."""
    # At least half of the levels hold the median or more, which spares most tables the median.
    # Clusters change intervals and no value, so that the levels are those of the same rows without them.
    if t.effective_rows * t.design.effect < MIN_LEVEL_ROWS / 2 * len(t):
        return "bins"
    return "exact" if float(np.median(t.rows_of_cells)) * t.design.effect >= MIN_LEVEL_ROWS * (1 - 1e-9) else "bins"


def at_levels(t: Table, levels: Levels) -> Table:
    """The table itself, or the table with every score replaced by the mean score of its equal-mass bin."""
    used = levels_used(t) if levels == "auto" else levels
    return t if used == "exact" else t.bins()


def as_score(of_two: Callable[..., Any]) -> Callable[[Callable[..., F]], Callable[..., F]]:
    """Let a function of several classes give, for two classes, what another function gives for their score."""

    def declare(function: Callable[..., F]) -> Callable[..., F]:
        @wraps(function)
        def of_classes(c: ClassTable, *given: Any, **parameters: Any) -> F:
            if len(c.classes) == 2:
                return cast(F, of_two(c.one_vs_rest(1), *given, **parameters))
            return function(c, *given, **parameters)

        return of_classes

    return declare


def on_exact_levels(c: ClassTable, levels: Levels) -> bool:
    """Whether rows of several classes are taken by levels of equal probabilities, by the rule of `levels_used`."""
    return levels == "exact" or (levels == "auto" and c.levels_count)


def levels_or_cells(c: ClassTable, levels: Levels) -> ClassLevels:
    """The rows of several classes by level, or by cell where levels hold few rows; few levels are cells each."""
    if on_exact_levels(c, levels):
        return c.at_levels()
    return c.in_cells(_most_cells(c))


def chosen_levels(t: Table | ClassTable) -> str:
    """What levels=auto takes here, in words."""
    if isinstance(t, Table) or len(t.classes) == 2:
        exact = levels_used(t if isinstance(t, Table) else t.one_vs_rest(1)) == "exact"
        return "exact levels" if exact else f"{BINS} equal-mass bins"
    return "exact levels" if on_exact_levels(t, "auto") else f"up to {_most_cells(t)} cells"


def _most_cells(c: ClassTable) -> int:
    return int(np.clip(_MAX_NUMBERS // len(c.classes), *_CELLS))


def need_rows(t: Table | ClassTable) -> None:
    """Raise Undefined where levels hold too few rows for what they show to estimate anything but noise."""
    if not (t.levels_count if isinstance(t, ClassTable) else levels_used(t) == "exact"):
        raise Undefined(f"the median level holds fewer than {MIN_LEVEL_ROWS} rows")


N_WORLD_DRAWS = 200
MAX_ERROR_CELLS = 512
"""Above this many levels chance is drawn on this many equal-mass cells."""
FACTORS = np.array((0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.05, 1.2, 1.4, 1.7, 2.0))
LESS = np.array((6.0, 4.0, 3.0, 2.5, 2.0, 1.6, 1.2, 0.9, 0.6, 0.3, 0.0))
"""Standard errors taken off the gaps."""
_CROWDED = 30
"""Rows from which on a level's own gap is one; below it is the gap of its bin."""

WIDENED = 1.15
"""Factor on chance for errors that look for the place or the width at which they are largest (docs/simulation.md)."""

INVERSION_TEXT = (
    "test inversion: the worlds, with the observed gaps times a factor or less their noise, in which what is seen is "
    "not extreme; and the value itself"
)

Norm = Callable[[Floats], Floats]
"""Gaps along the last axis -> the calibration error."""


class Worlds(NamedTuple):
    """Gaps, shape (m,), gaps less their noise, (worlds, m), and what chance adds to gaps, (N_WORLD_DRAWS, m).

    spread: the variance of chance in the calibrated world, and what the observed gaps add to it, each over the variance
    in the draws.
    """

    gap: Floats
    less: Floats
    noise: Floats
    spread: tuple[float, float]

    def mapped(self, linear: Norm) -> Worlds:
        """The worlds of a linear function of the gaps, such as their sums over runs of levels."""
        return Worlds(linear(self.gap), linear(self.less), linear(self.noise), self.spread)

    @property
    def searched(self) -> Worlds:
        """These worlds with wider chance, for errors that look for the place or the width at which they are largest."""
        return self._replace(noise=WIDENED * self.noise)

    def summed(self, starts: Ints) -> Worlds:
        """Sums over runs of levels, given by the first level of each."""
        return self.mapped(lambda gap: np.add.reduceat(gap, starts, axis=-1))


def cells(t: Table, most: int = MAX_ERROR_CELLS) -> Table:
    """The table on which chance is drawn."""
    return t if len(t) <= most else t.bins(most)


@once
def cells_of_bins(t: Table, most: int, bins: int, strategy: Strategy) -> tuple[Table, Ints]:
    """The table on which chance is drawn for bins, each of which is a run of its cells, and the first cell of each."""
    starts = t.bin_starts(bins, strategy)
    if len(t) <= most:
        return t, starts
    cuts = np.union1d(t.bin_starts(most), starts)
    return t.merge_levels(cuts), np.searchsorted(cuts, starts)


def worlds(levels: Table, rng: Generator) -> Worlds:
    """Sums of label - score over T of each level, with draws of rows and labels about the frequencies of bins."""
    chance, unit = _frequency(levels), levels.n / levels.rows_of_cells
    rows, shape = levels.n / unit, (N_WORLD_DRAWS, len(levels))
    pos, neg = unit * rng.poisson(rows * chance, shape), unit * rng.poisson(rows * (1 - chance), shape)
    total = (pos + neg).sum(axis=-1, keepdims=True)
    noise = ratio(pos - (pos + neg) * levels.score, total)
    noise -= levels.n * (chance - levels.score) / levels.total
    gap = (levels.pos - levels.n * levels.score) / levels.total
    starts = np.arange(len(levels)) if float(np.median(rows)) >= _CROWDED else levels.bin_starts()
    sums, error = np.add.reduceat(gap, starts), np.add.reduceat(noise, starts, axis=-1).std(axis=0)
    kept = shrunken(sums, LESS[:, None] * error)
    run = run_of_each(starts, len(levels))
    less = kept[:, run] * (levels.n / np.add.reduceat(levels.n, starts)[run])
    calibrated, drawn = (float(_squares(levels, p).sum()) for p in (levels.score, chance))
    bend = float((unit * (1 - 2 * levels.score) * gap).sum()) * levels.total
    return Worlds(gap, less, noise, (calibrated / max(drawn, 1e-300), bend / max(drawn, 1e-300)))


def worlds_of(t: Table, used: Table, rng: Generator) -> tuple[Table, Worlds]:
    """The table that chance is drawn on, and the worlds of the gaps of the levels that are used.

    used: the table itself where exact levels are used; else bins are.
    """
    drawn_on, starts = (t, np.arange(len(t))) if used is t else cells_of_bins(t, MAX_ERROR_CELLS, BINS, "mass")
    return drawn_on, worlds(drawn_on, rng).summed(starts)


def _frequency(levels: Table) -> Floats:
    """The score plus the gap of its bin. Two more rows without a gap count in each: bins of one class vary too."""
    bins = levels.bins()
    rows = bins.rows_of_cells
    return np.clip(levels.score + spread(levels, observed(bins) * rows / (rows + 2)), 0.0, 1.0)


def squares(levels: Table) -> Floats:
    """Expected sum of w^2 (label - score)^2 in each level, shape (m,)."""
    return _squares(levels, _frequency(levels))


def _squares(levels: Table, chance: Floats) -> Floats:
    """Expected sum of w^2 (label - score)^2 in each level, (m,), at these chances of label 1; it is linear in them."""
    unit = levels.n / levels.rows_of_cells
    return np.asarray(unit * levels.n * (chance * (1 - 2 * levels.score) + levels.score**2))


def whole(levels: Table, confidence: float) -> float:
    """Upper end of |E[label - score]|. No error that adds up over rows, or is a supremum, is below that expectation.

    The variance is the one at that end, because rare labels vary more the more of them there are.
    """
    unit = levels.n / levels.rows_of_cells
    mean = float((levels.pos - levels.n * levels.score).sum()) / levels.total
    variance = float(squares(levels).sum()) / levels.total**2
    bend = float((unit * levels.n * (1 - 2 * levels.score)).sum()) / levels.total**2
    ends = []
    for sign in (-1, 1):
        half_width = 0.0
        for _ in range(3):
            half_width = quantile(confidence) * float(np.sqrt(max(variance + sign * bend * half_width, variance / 4)))
        ends.append(sign * mean + half_width)
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
) -> Interval:
    """Errors of the worlds in which the norm of the gaps is not extreme, and the value.

    norm: of gaps; truth: the error of worlds, where that is not their norm; least_high: what the upper end reaches;
    most: the largest error that there can be; observed: what is seen, where the gaps are smoother than the observed.
    """
    gap, less, noise, (calibrated, bend) = seen
    error = float(norm(gap[None])[0]) if observed is None else observed

    def ends(of_worlds: Floats, scale: Floats) -> Interval:
        drawn = np.array([norm(world + factor * noise) for world, factor in zip(of_worlds, scale, strict=True)])
        return inverted(error, drawn, (truth or norm)(of_worlds), confidence)

    # Where little is seen but noise, twice that little is not the most that there may be.
    farthest = 1 + float(np.quantile(norm(noise), (1 + confidence) / 2)) / max(error, 1e-300)
    factors = FACTORS * min(farthest, 1e6)
    low, high = ends(factors[:, None] * gap, np.sqrt(np.clip(calibrated + bend * factors, 0.25, 4.0)))
    low = min(low, ends(less, np.ones(len(less)))[0])
    return holding((low, min(max(high, least_high), most)), value)


MAX_WORLD_CELLS = 128
_OWN = 30
"""Up to this many levels the gaps of worlds are their own, above it those of bins."""

Statistic = Callable[[Floats, Floats, Floats], Floats]
"""(score, n, pos) -> the values; n and pos of shape (draws, levels), one level for each score."""


def interval_of_agents(
    t: Table, statistic: Statistic, rng: Generator, confidence: float, value: float, most: float = 1.0
) -> Interval:
    """Values of the worlds in which the value is not extreme, as interval has them; rows and labels are drawn.

    Worlds are the scores, of at most MAX_WORLD_CELLS equal-mass cells, plus the gaps of bins, times a factor or less
    their noise.
    """
    levels = t if len(t) <= MAX_WORLD_CELLS else t.cells.bins(MAX_WORLD_CELLS)
    bins = levels.bins() if len(levels) > _OWN else levels
    starts = np.arange(len(levels)) if bins is levels else levels.bin_starts()
    gap = observed(bins)
    error = np.sqrt((gap**2 + bins.score * (1 - bins.score)) / bins.rows_of_cells)
    factors = FACTORS * (1 + quantile(confidence) * float(np.sqrt(error @ error / max(gap @ gap, 1e-300))))
    less = shrunken(gap, LESS[:, None] * error)
    worlds = np.concatenate((np.minimum(factors, 1e6)[:, None] * gap, less))
    chances = np.clip(levels.score + worlds[:, run_of_each(starts, len(levels))], 0.0, 1.0)
    rows = levels.n * 1.0
    truths = statistic(levels.score, np.broadcast_to(rows, chances.shape), rows * chances)
    seen = float(statistic(levels.score, rows[None], levels.pos[None] * 1.0)[0])
    unit = levels.n / levels.rows_of_cells

    def drawn_of(chance: Floats) -> Floats:
        """The statistic in draws of a world."""
        shape = (N_WORLD_DRAWS, len(rows))
        pos, neg = (unit * rng.poisson(rows / unit * of_label, shape) for of_label in (chance, 1 - chance))
        n = pos + neg
        some = n.sum(axis=-1) > 0
        return np.resize(statistic(levels.score, n[some], pos[some]), N_WORLD_DRAWS)

    drawn = np.array([drawn_of(chance) for chance in chances])
    # These gaps are a little those that noise made, and chance raises the worst agent of others more.
    cautious = (1 + confidence) / 2
    low = min(
        inverted(seen, drawn[path], truths[path], cautious)[0]
        for path in (slice(len(factors)), slice(len(factors), None))
    )
    high = inverted(seen, drawn[: len(factors)], truths[: len(factors)], confidence)[1]
    return holding((low, min(high, most)), value)
