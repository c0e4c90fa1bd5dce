"""Calibration errors: on bins, on the exact levels of a score, and over intervals of scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import COUNT, Between
from decal_cli.errors import Undefined
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import gaps
from decal_cli.metrics.confidence import Interval, holding, wilson_ends
from decal_cli.metrics.declare import Measured, computed_null_of, family, like, metric, null_of
from decal_cli.metrics.gaps import DEBIASED_TEXT, debiased_interval, need_rows
from decal_cli.tables.classes import MIN_LEVEL_ROWS
from decal_cli.tables.estimate import MeanEstimate, dot
from decal_cli.tables.memo import once
from decal_cli.tables.resample import as_whole
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, CellRun, Floats, Strategy, Table

family("bins", "Binned calibration errors: mean scores against label frequencies, bin by bin.")


Bins = Annotated[int, "number of bins", COUNT]
By = Annotated[Strategy, "mass: edges at quantiles of the scores; width: equally spaced edges"]

_SIMULTANEOUS = (
    "Wilson intervals of the bins: the largest upper end; the largest lower end, at a level that holds for all"
)


@metric(
    "ECE",
    "lower",
    "probability",
    f"{cite('Naeini et al. 2015')}; {cite('Hu and Wu 2024', 'def. 2.3')}, on bins",
    (0, 1),
    size_free=False,
    shown=True,
    how=gaps.INVERSION_TEXT,
    bootstraps=False,
    estimand=intervals.OF_BINS_BELOW,
)
def ece(t: Table, *, bins: Bins = BINS, strategy: By = "mass") -> Measured:
    """Mean distance, over bins, between the mean score and the frequency of label 1; compare it with ece_null.

    sum over bins of (rows in the bin / T) |frequency - mean score|. mass: edges are the i/k quantiles of the scores,
    linearly interpolated; a score equal to an edge belongs to the lower bin, equal edges are merged, ties are never
    split. The smallest score is an edge like any other: a lowest level of more than 1/k of the rows is its own bin.
    width: edges are i/k; a score equal to an interior edge belongs to the upper bin. Noise keeps it above 0 for a
    calibrated model.
    """
    levels = t.bins(bins, strategy)
    value = float((levels.n / levels.total * np.abs(gaps.observed(levels))).sum())

    def interval(confidence: float, seed: Seed) -> Interval:
        cells, starts = gaps.cells_of_bins(t, max(gaps.MAX_ERROR_CELLS, 16 * bins), bins, strategy)
        worlds = gaps.worlds(cells, seed.generator("bins")).summed(starts)
        return gaps.interval(value, worlds, gaps.total, confidence, least_high=gaps.whole(cells, confidence))

    return Measured(value, interval)


@once
def ece_draws(t: Table, seed: Seed, bins: int, strategy: Strategy) -> Floats:
    """The ECE of labels drawn from the scores, shape (N_NULL_DRAWS,)."""
    cells, starts = gaps.cells_of_bins(t, gaps.most_cells(t, bins), bins, strategy)
    merged = cells.merge_levels(starts)
    expected = merged.score * merged.n

    def ece_of(resample: Table) -> float:
        observed = np.add.reduceat(resample.pos.astype(np.float64), starts)
        return float(np.abs(observed - expected).sum() / merged.total)

    return gaps.null_draws(cells, ece_of, seed.generator("bins"))


@null_of(
    "ece",
    "ECE of a calibrated model",
    f"parametric bootstrap, as in {cite('Vaicenavicius et al. 2019')}",
)
def ece_null(t: Table, seed: Seed, *, bins: Bins = BINS, strategy: By = "mass") -> Floats:
    """Mean ECE that a perfectly calibrated model with these scores shows on this many rows, by chance alone.

    Labels are drawn from the scores (400 times; above 4,096 distinct scores, on as many equal-mass cells). An ECE
    inside the interval beside it is no evidence of miscalibration.
    """
    return ece_draws(t, seed, bins, strategy)


@metric(
    "Squared ECE, debiased",
    "lower",
    "squared probability",
    cite("Kumar et al. 2019"),
    (-0.5, 1),
    size_free=False,
    shown=True,
    how=DEBIASED_TEXT,
    estimand="the population's squared error for the bins that these rows have, their edges held fixed",
)
def ece_debiased(t: Table, *, bins: Bins = BINS, strategy: By = "mass") -> Measured:
    """Mean squared distance between score and frequency over bins, less its noise; near 0 for a calibrated model.

    sum over bins of (rows in the bin / T) ((frequency - mean score)^2 - frequency (1 - frequency) / (rows - 1)),
    without bins of one row. It stays squared, and is negative about half of the time for a calibrated model.
    """
    levels = t.bins(bins, strategy)
    if not gaps.noise(levels).some.any():
        raise Undefined("no bin holds two rows")
    return Measured(gaps.debiased_square(levels), lambda confidence, _: debiased_interval(levels, confidence))


def _of_squares(t: Table, bins: int, strategy: Strategy, power: float = 1.0) -> Measured:
    """A power of the mean squared gap of bins."""
    levels = t.bins(bins, strategy)
    value = gaps.mean_square(levels)

    def interval(confidence: float, seed: Seed) -> Interval:
        low, high = debiased_interval(levels, confidence)
        low, high = holding((max(low, 0.0), max(high, 0.0)), value)
        return low**power, high**power

    return Measured(value**power, interval)


@metric(
    "Squared calibration error",
    "lower",
    "squared probability",
    f"{cite('Hu and Wu 2024', 'def. 2.4')}, on bins",
    (0, 1),
    size_free=False,
    how=f"the interval of ece_debiased, cut at 0, and the value itself: {DEBIASED_TEXT}",
    bootstraps=False,
    estimand=intervals.OF_BINS_BELOW,
)
def cl(t: Table, *, bins: Bins = BINS, strategy: By = "mass") -> Measured:
    """Mean squared distance, over bins, between the mean score and the frequency of label 1.

    sum over bins of (rows in the bin / T) (frequency - mean score)^2, with the bins of ece.
    """
    return _of_squares(t, bins, strategy)


@like(
    "cl",
    "Root mean squared calibration error",
    cite("Nguyen and O'Connor 2015"),
    unit="probability",
    how=f"the root of the interval of cl: {DEBIASED_TEXT}",
)
def rmsce(t: Table, *, bins: Bins = BINS, strategy: By = "mass") -> Measured:
    """Root of the mean squared distance, over bins, between the mean score and the frequency of label 1.

    The square root of cl.
    """
    return _of_squares(t, bins, strategy, 0.5)


@like(
    "cl",
    "Maximum calibration error",
    cite("Naeini et al. 2015"),
    unit="probability",
    how=_SIMULTANEOUS,
    rarer=50,
)
def mce(t: Table, *, bins: Bins = BINS, strategy: By = "mass") -> Measured:
    """Largest distance, over bins, between the mean score and the frequency of label 1.

    max over bins of |frequency - mean score|, with the bins of ece; where bins hold few rows it is mostly noise.
    """
    levels = t.bins(bins, strategy)

    def interval(confidence: float, seed: Seed) -> Interval:
        rows, rate = levels.rows_of_cells, levels.pos / levels.n
        # The upper end of the bin of the largest gap will do; its lower end must hold whichever bin that is.
        sides = wilson_ends(rate, rows, confidence), wilson_ends(rate, rows, 1 - (1 - confidence) / len(levels))
        (low, high), (lowest, highest) = (ends - levels.score for ends in sides)
        least = np.maximum(lowest, -highest).max()
        return max(float(least), 0.0), float(np.maximum(high, -low).max())

    return Measured(float(np.abs(gaps.observed(levels)).max()), interval)


family(
    "levels",
    "Calibration errors on the exact levels of a score, for scores with few distinct values; and their nulls.",
)


_INVERTED = f"{gaps.INVERSION_TEXT}; none where the median level holds fewer than {MIN_LEVEL_ROWS} rows"
_NULL_TEXT = "central range for a calibrated model: normal, from the exact variance"


@metric(
    "Calibration error on exact levels",
    "lower",
    "probability",
    cite("Hu and Wu 2024", "def. 2.3"),
    (0, 1),
    how=_INVERTED,
    bootstraps=False,
    estimand=f"{intervals.POPULATION_BELOW}; {intervals.FEW_ROWS}",
)
def ece_exact(t: Table) -> Measured:
    """Mean distance between each distinct score and its frequency of label 1; for scores with few distinct values.

    sum n_i |q_i - h_i| / T. With continuous scores each level holds one row and this measures noise: compare it with
    ece_exact_null.
    """
    value = t.sum(lambda block: np.abs(block.n * block.score - block.pos)) / t.total
    return _on_levels(t, value, gaps.total, lambda whole: whole)


def _on_levels(t: Table, value: float, norm: gaps.Norm, least_high: Callable[[float], float]) -> Measured:
    """An error on exact levels; least_high: the least that its upper end is, by that of |E[label - score]|."""

    def interval(confidence: float, seed: Seed) -> Interval:
        need_rows(t)
        worlds, least = gaps.worlds(t, seed.generator("levels")), least_high(gaps.whole(t, confidence))
        return gaps.interval(value, worlds, norm, confidence, least_high=least)

    return Measured(value, interval)


@like(
    "ece_exact",
    "Squared calibration error on exact levels",
    cite("Hu and Wu 2024", "def. 2.4"),
    unit="squared probability",
)
def k2(t: Table) -> Measured:
    """Mean squared distance between each distinct score and its frequency of label 1.

    sum n_i (q_i - h_i)^2 / T. With continuous scores each level holds one row and this measures noise: compare it with
    k2_null.
    """
    value = t.sum(lambda block: (block.n * block.score - block.pos) ** 2 / block.n) / t.total
    return _on_levels(t, value, lambda gap: (gap**2 / t.n).sum(axis=-1) * t.total, lambda whole: whole**2)


Term = Callable[[CellRun], tuple[Floats, Floats]]
"""Mean and variance, for each level, of an error of a calibrated model."""


@once
def _null(t: Table, term: Term) -> Measured:
    """The mean of the sum of a term over independent levels, divided by T."""
    mean = variance = 0.0
    for block in t.with_free_levels.blocks():
        of_level, spread = term(block)
        mean += float(of_level.sum())
        variance += float(spread.sum())
    found = MeanEstimate(mean / t.total, math.sqrt(max(variance, 0.0)) / t.total)
    return Measured(found.mean, lambda confidence, _: intervals.normal(found, confidence, 0.0, 1.0))


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


_LOG_FACTORIALS = gaps.running(np.log(np.arange(1.0, 64.0)))


def _log_factorial(n: Floats) -> Floats:
    """ln n!: a table, then Stirling's series."""
    large = np.maximum(n, 63.0)
    series = large * np.log(large) - large + 0.5 * np.log(2 * np.pi * large) + 1 / (12 * large) - 1 / (360 * large**3)
    return np.where(n < 64, _LOG_FACTORIALS[np.minimum(n, 63.0).astype(np.int64)], series)


@computed_null_of(
    "ece_exact",
    "Calibration error on exact levels, of a calibrated model",
    f"mean absolute deviation of the binomial: {cite('De Moivre 1730')}",
    how=_NULL_TEXT,
)
def ece_exact_null(t: Table) -> Measured:
    """Mean ece_exact that a perfectly calibrated model with these scores shows, by chance alone.

    sum E|X_i - n_i q_i| / T with X_i binomial; computed, not drawn. Rows of unequal weight at one score count as
    n_i^2 / n2_i rows of equal weight, and those of one cluster as fewer, by how labels correlate in clusters.
    """
    return _null(t, _absolute)


@computed_null_of(
    "k2",
    "Squared calibration error on exact levels, of a calibrated model",
    "variance of the binomial",
    how=_NULL_TEXT,
)
def k2_null(t: Table) -> Measured:
    """Mean k2 that a perfectly calibrated model with these scores shows, by chance alone.

    sum q_i (1 - q_i) / T, times n2_i / n_i for weighted rows; computed, not drawn. Clusters are as for ece_exact_null.
    """
    return _null(t, _square)


family(
    "interval",
    "Errors over intervals of scores: the worst interval, and all splits in two; continuous in p, without bins.",
)


Delta = Annotated[float, "probability that the bound fails", Between(0, 1)]
VcDimension = Annotated[
    int, "VC dimension of {a < f <= b} over the models f, for every a and b; 0: one model, fixed beforehand", COUNT
]
Values = Annotated[int, "number of values that the models of the class can take; only for vc > 0", COUNT]


@once
def _reach(t: Table) -> float:
    """max minus min of the prefix sums of label minus score over the sorted levels, 0 included."""
    at = high = low = 0.0
    for block in t.blocks():
        walk = at + np.cumsum(block.pos - block.n * block.score)
        at, high, low = float(walk[-1]), max(high, float(walk.max())), min(low, float(walk.min()))
    return high - low


def span(walk: Floats) -> Floats:
    """max minus min of walks that start at 0, shape (.., m) to (..)."""
    return np.asarray(np.maximum(walk.max(axis=-1), 0.0) - np.minimum(walk.min(axis=-1), 0.0))


def _highest(cells: Table, confidence: float) -> float:
    """Largest upper end of |E (label - score)| over intervals: that of the worst one holds it often enough."""
    some = gaps.cells(cells, gaps.PAIRED_CELLS)
    steps = (some.pos - some.n * some.score) / some.total
    inside = gaps.highest_run(steps, gaps.squares(some) / some.total**2, confidence)
    return max(inside, gaps.whole(cells, confidence))


@like(
    "ece",
    "Interval calibration error",
    cite("Gao et al. 2017", "def. 2"),
    size_free=True,
    estimand=intervals.POPULATION_BELOW,
)
def c_emp(t: Table) -> Measured:
    """Largest absolute sum of label - score over the rows in any interval of scores, divided by T; needs no bins.

    max over intervals I of |sum over p in I of (y - p)| / T: the range of the prefix sums over sorted scores.
    """
    value = _reach(t) / t.total

    def interval(confidence: float, seed: Seed) -> Interval:
        cells = gaps.cells(t)
        walks = gaps.worlds(cells, seed.generator("interval")).mapped(partial(np.cumsum, axis=-1))
        return gaps.interval(value, walks, span, confidence, least_high=_highest(cells, confidence))

    return Measured(value, interval)


def _margin(t: Table, delta: float, vc: int, values: int) -> float:
    """How far c_emp may lie from the population's, to either side, with probability 1 - delta."""
    rows = t.effective_rows
    if not vc:
        complexity = 2 * math.sqrt(2 * (rows + 1) / math.pi) / rows
        return 2 * complexity + math.sqrt(2 * math.log(1 / delta) / rows)
    if rows <= vc + 1:
        raise Undefined(f"needs more than vc + 1 = {vc + 1} rows")
    complexity = math.sqrt((2 * vc * (math.log(rows / vc) + 1) + 4 * math.log(values + 1)) / rows)
    return 4 * complexity + math.sqrt(2 * math.log(2 / delta) / rows)


def _c_bound_text(t: Table, **parameters: Any) -> str:
    return "vacuous" if c_bound(t, **parameters).value >= 1 else ""


@metric(
    "Interval calibration error, upper bound",
    "lower",
    "probability",
    f"{cite('Gao et al. 2017', 'thm. 2, claim 4')}; for one model, with the Rademacher range of a walk",
    (0, math.inf),
    size_free=False,
    how=(
        "c_emp, minus and plus the margin of c_bound at delta = 1 - confidence, for all models of the class "
        "at once; and the value itself"
    ),
    value_text=_c_bound_text,
    bootstraps=False,
    estimand=(
        "the population's c_emp, whatever the model and the data: so it is wide, and covers more often than it says"
    ),
)
def c_bound(t: Table, *, delta: Delta = 0.05, vc: VcDimension = 0, values: Values = 100) -> Measured:
    """Upper bound on the interval calibration error of the population; it holds with probability 1 - delta.

    For one model that was fixed before these rows were seen (vc=0): c_emp + 2 R + sqrt(2 ln(1/delta) / T), where
    R = 2 sqrt(2 (T + 1) / pi) / T. For a model chosen on these rows from a class:
    c_emp + 4 R + sqrt(2 ln(2/delta) / T), where R = sqrt((2 vc (ln(T / vc) + 1) + 4 ln(values + 1)) / T). Printed as
    vacuous from 1 on, which no error exceeds. With weights, T is the number of effective rows.
    """
    error = c_emp(t).value
    bound = error + _margin(t, delta, vc, values)

    def interval(confidence: float, seed: Seed) -> Interval:
        margin = _margin(t, 1 - confidence, vc, values)
        return holding((max(error - margin, 0.0), error + margin), bound)

    return Measured(bound, interval)


@metric(
    "Interval calibration error, p-value",
    "higher",
    "p-value",
    f"range of Brownian motion: {cite('Feller 1951')}",
    (0, 1),
    size_free=False,
    interval=None,
    estimand="nothing: it is a p-value",
)
def c_emp_pvalue(t: Table) -> float:
    """Probability of an interval calibration error this large when every score is a true probability.

    P(range of Brownian motion on [0, 1] > c_emp T / sqrt(sum p (1 - p))); weights enter that sum squared.
    """
    variance = t.sum(lambda block: block.n2 * block.score * (1 - block.score))
    reach = _reach(t)
    if variance <= 0:
        return float(reach == 0)
    return range_above(reach / math.sqrt(variance))


MIN_RANGE = 0.1
"""The range is above it with probability 1, to more digits than a float has."""


def range_above(x: float) -> float:
    """P(range of Brownian motion on [0, 1] > x), by Feller's series, or by its dual where that series is slow."""
    if x <= MIN_RANGE:
        return 1.0
    if x >= 2:
        terms = ((-1) ** (k - 1) * k * math.erfc(k * x / math.sqrt(2)) / 2 for k in range(1, 60))
        return min(8 * sum(terms), 1.0)
    inside = 0.0
    for j in range(1, 60, 2):
        inside += (1 / j**2 + (math.pi / x) ** 2) * math.exp(-((j * math.pi / x) ** 2) / 2)
    return max(1 - 8 / math.pi**2 * inside, 0.0)


@like(
    "c_emp",
    "Averaged two-bin calibration error",
    cite("Hartline et al. 2025"),
    unit="squared probability",
    shown=False,
)
def atb(t: Table) -> Measured:
    """Squared calibration error of two bins, averaged over where they meet; truthful, and without bins to choose.

    The mean over v uniform in [0, 1] of (sum over p <= v of (p - y) / T)^2 + (sum over p > v of (p - y) / T)^2. No
    prediction other than the true probability makes it smaller on average.
    """
    at = reached = squares = sums = 0.0
    for block in t.blocks():
        walk = at + np.cumsum(block.pos - block.n * block.score)
        before, steps = np.append(at, walk[:-1]), np.diff(block.score, prepend=reached)
        squares, sums = squares + dot(steps, before * before), sums + dot(steps, before)
        at, reached = float(walk[-1]), float(block.score[-1])
    squares, sums = squares + (1 - reached) * at * at, sums + (1 - reached) * at
    value = max(2 * (squares - at * sums) + at * at, 0.0) / t.total**2

    def interval(confidence: float, seed: Seed) -> Interval:
        cells = gaps.cells(t)
        steps = np.diff(cells.score, append=1.0)

        def splits(walk: Floats) -> Floats:
            rest = walk[..., -1:] - walk
            # Below the lowest score all rows are on one side.
            return np.asarray((walk**2 + rest**2) @ steps + (1 - steps.sum()) * walk[..., -1] ** 2)

        walks = gaps.worlds(cells, seed.generator("interval")).mapped(partial(np.cumsum, axis=-1))
        least_high = gaps.whole(cells, confidence) ** 2 / 2
        return gaps.interval(value, walks, splits, confidence, least_high=least_high)

    return Measured(value, interval)
