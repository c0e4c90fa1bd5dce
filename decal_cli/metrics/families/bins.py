"""Binned calibration errors: mean scores against label frequencies, bin by bin."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import COUNT
from decal_cli.errors import Undefined
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval, holding, wilson_ends
from decal_cli.metrics.declare import like, metric, null_of
from decal_cli.metrics.numerics import gaps, rays
from decal_cli.metrics.numerics.gaps import DEBIASED_TEXT, ece_debiased_interval
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, Floats, Strategy, Table

Bins = Annotated[int, "number of bins", COUNT]
By = Annotated[Strategy, "mass: edges at quantiles of the scores; width: equally spaced edges"]

_SIMULTANEOUS = (
    "Wilson intervals of the bins: the largest upper end; the largest lower end, at a level that holds for all"
)


def ece_interval(t: Table, seed: Seed, *, confidence: float, bins: int, strategy: Strategy) -> Interval:
    cells = rays.cells(t, max(rays.MAX_ERROR_CELLS, 16 * bins))
    worlds = rays.worlds(cells, seed.generator("bins")).summed(cells.bin_starts(bins, strategy))
    value, least = ece(t, bins=bins, strategy=strategy), rays.whole(cells, confidence)
    return rays.interval(value, worlds, rays.total, confidence, least_high=least)


@metric(
    "ECE",
    "lower",
    "probability",
    f"{cite('Naeini et al. 2015')}; {cite('Hu and Wu 2024', 'def. 2.3')}, on bins",
    (0, 1),
    size_free=False,
    shown=True,
    interval=ece_interval,
    interval_text=rays.INVERSION_TEXT,
    noisy=True,
    covers=covered.OF_BINS_BELOW,
)
def ece(t: Table, *, bins: Bins = BINS, strategy: By = "mass") -> float:
    """Mean distance, over bins, between the mean score and the frequency of label 1; compare it with ece_null.

    sum over bins of (rows in the bin / T) |frequency - mean score|. mass: edges are the i/k quantiles of the scores,
    linearly interpolated; a score equal to an edge belongs to the lower bin, equal edges are merged, ties are never
    split. The smallest score is an edge like any other: a lowest level of more than 1/k of the rows is its own bin.
    width: edges are i/k; a score equal to an interior edge belongs to the upper bin. Noise keeps it above 0 for a
    calibrated model.
    """
    return gaps.value(t.bins(bins, strategy), gaps.mean_gap)


def null_draws(t: Table, seed: Seed, bins: int, strategy: Strategy) -> Floats:
    """The ECE of labels drawn from the scores, shape (N_NULL_DRAWS,)."""
    cells = gaps.coarse(t, bins)
    starts = cells.bin_starts(bins, strategy)
    merged = cells.merge_levels(starts)
    expected = merged.score * merged.n

    def ece_of(resample: Table) -> float:
        observed = np.add.reduceat(resample.pos.astype(np.float64), starts)
        return float(np.abs(observed - expected).sum() / merged.total)

    key = "ece", bins, strategy, seed
    return t.cached(key, lambda _: gaps.null_draws(cells, ece_of, seed.generator("bins")))


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
    return null_draws(t, seed, bins, strategy)


@metric(
    "Squared ECE, debiased",
    "lower",
    "squared probability",
    cite("Kumar et al. 2019"),
    (-0.5, 1),
    size_free=False,
    shown=True,
    interval=ece_debiased_interval,
    interval_text=DEBIASED_TEXT,
    covers="the population's squared error for the bins that these rows have, their edges held fixed",
)
def ece_debiased(t: Table, *, bins: Bins = BINS, strategy: By = "mass") -> float:
    """Mean squared distance between score and frequency over bins, less its noise; near 0 for a calibrated model.

    sum over bins of (rows in the bin / T) ((frequency - mean score)^2 - frequency (1 - frequency) / (rows - 1)),
    without bins of one row. It stays squared, and is negative about half of the time for a calibrated model.
    """
    levels = t.bins(bins, strategy)
    if not gaps.noise(levels).some.any():
        raise Undefined("no bin holds two rows")
    return gaps.debiased_square(levels)


def _cl_interval(t: Table, *, confidence: float, bins: int, strategy: Strategy) -> Interval:
    low, high = ece_debiased_interval(t, confidence=confidence, bins=bins, strategy=strategy)
    return holding((max(low, 0.0), max(high, 0.0)), cl(t, bins=bins, strategy=strategy))


def _rmsce_interval(t: Table, *, confidence: float, bins: int, strategy: Strategy) -> Interval:
    low, high = _cl_interval(t, confidence=confidence, bins=bins, strategy=strategy)
    return low**0.5, high**0.5


@metric(
    "Squared calibration error",
    "lower",
    "squared probability",
    f"{cite('Hu and Wu 2024', 'def. 2.4')}, on bins",
    (0, 1),
    size_free=False,
    interval=_cl_interval,
    interval_text=f"the interval of ece_debiased, cut at 0, and the value itself: {DEBIASED_TEXT}",
    noisy=True,
    covers=covered.OF_BINS_BELOW,
)
def cl(t: Table, *, bins: Bins = BINS, strategy: By = "mass") -> float:
    """Mean squared distance, over bins, between the mean score and the frequency of label 1.

    sum over bins of (rows in the bin / T) (frequency - mean score)^2, with the bins of ece.
    """
    return gaps.value(t.bins(bins, strategy), gaps.mean_square)


@like(
    "cl",
    "Root mean squared calibration error",
    cite("Nguyen and O'Connor 2015"),
    unit="probability",
    interval=_rmsce_interval,
    interval_text=f"the root of the interval of cl: {DEBIASED_TEXT}",
)
def rmsce(t: Table, *, bins: Bins = BINS, strategy: By = "mass") -> float:
    """Root of the mean squared distance, over bins, between the mean score and the frequency of label 1.

    The square root of cl.
    """
    return gaps.value(t.bins(bins, strategy), gaps.mean_square) ** 0.5


def _mce_interval(t: Table, *, confidence: float, bins: int, strategy: Strategy) -> Interval:
    levels = t.bins(bins, strategy)
    rows, rate = 1 / gaps.concentration(levels), levels.pos / levels.n
    # The upper end of the bin of the largest gap will do; its lower end must hold whichever bin that is.
    sides = wilson_ends(rate, rows, confidence), wilson_ends(rate, rows, 1 - (1 - confidence) / len(levels))
    (low, high), (lowest, highest) = (ends - levels.score for ends in sides)
    least = np.maximum(lowest, -highest).max()
    return max(float(least), 0.0), float(np.maximum(high, -low).max())


@like(
    "cl",
    "Maximum calibration error",
    cite("Naeini et al. 2015"),
    unit="probability",
    interval=_mce_interval,
    interval_text=_SIMULTANEOUS,
    rarer=50,
)
def mce(t: Table, *, bins: Bins = BINS, strategy: By = "mass") -> float:
    """Largest distance, over bins, between the mean score and the frequency of label 1.

    max over bins of |frequency - mean score|, with the bins of ece; where bins hold few rows it is mostly noise.
    """
    return gaps.value(t.bins(bins, strategy), gaps.largest)
