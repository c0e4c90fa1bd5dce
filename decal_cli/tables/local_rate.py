"""The frequency of label 1 at a score: a local straight line through the rows with scores around it.

A line fits a miscalibrated score as well as a calibrated one, as long as the frequency does not bend much between the
neighbours; Fan 1993 for local linear regression, with one weight for all neighbours.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.clusters import error_of_sum
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats

MIN_NEIGHBOURS = 25
"""Rows to either side of a score, as far as there are so many."""
_GROWTH, _SHARE = 0.75, 0.5
"""Neighbours grow more slowly than the rows, so that the bend between them vanishes before the noise does."""
_FLAT = 1e-9
"""Neighbours whose scores vary less than this have one level, and no slope."""


class LocalRates(NamedTuple):
    """Frequencies of label 1 at some scores, in [0, 1], and how they rise with the score, shape (D,) each.

    error: of their mean, from the noise of the labels; effective: independent rows that their mean rests on.
    """

    rate: Floats
    slope: Floats
    error: float
    effective: float


def local_rates(rows: Rows, at: Floats) -> LocalRates:
    """The frequencies at these scores, shape (D,), D > 0."""
    order = rows.by_score
    score, weight = rows.score[order], rows.weights[order]
    label = np.asarray(rows.label, dtype=np.float64)[order]
    start, end = _neighbours(score, at)
    mass, first, second, ones, slanted = (
        _between(values, start, end)
        for values in (weight, weight * score, weight * score**2, weight * label, weight * label * score)
    )
    centre = first / mass
    spread, together = second - centre * first, slanted - centre * ones
    bent = spread > _FLAT * mass
    slope = np.divide(together, spread, out=np.zeros_like(spread), where=bent)
    tilt = np.divide(at - centre, spread, out=np.zeros_like(spread), where=bent)
    level = ones / mass
    # What a row of weight 1 adds to the rate: base + tilt * score; and the line: height + slope * score.
    base, height = 1 / mass - tilt * centre, level - slope * centre
    noise, squares = _noise(score, label, weight, (start, end), (base, tilt), (height, slope))
    unit = None if rows.unit is None else rows.unit[order]
    rate = np.clip(height + slope * at, 0.0, 1.0)
    return LocalRates(rate, slope, error_of_sum(noise, unit), 1 / float(squares.sum()))


def _neighbours(score: Floats, at: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first of the sorted rows around each score, and the first one after them; levels stay whole."""
    rows = len(score)
    wide = max(MIN_NEIGHBOURS, math.ceil(_SHARE * rows**_GROWTH))
    low = np.maximum(np.searchsorted(score, at, side="left") - wide, 0)
    high = np.minimum(np.searchsorted(score, at, side="right") + wide, rows)
    return (
        np.searchsorted(score, score[low], side="left"),
        np.searchsorted(score, score[high - 1], side="right"),
    )


def _between(values: Floats, start: NDArray[np.intp], end: NDArray[np.intp]) -> Floats:
    sums = np.concatenate(([0.0], np.cumsum(values)))
    return np.asarray(sums[end] - sums[start])


Line = tuple[Floats, Floats]


def _noise(
    score: Floats,
    label: Floats,
    weight: Floats,
    windows: tuple[NDArray[np.intp], NDArray[np.intp]],
    share: Line,
    fit: Line,
) -> tuple[Floats, Floats]:
    """What each row's label less its line adds to the mean of the rates; and the squares of its share in it."""
    (base, tilt), (height, slope) = share, fit
    count = len(base)

    def spread(values: Floats) -> Floats:
        """The sum of these over the windows that a row lies in."""
        steps = np.bincount(windows[0], values, len(score) + 1) - np.bincount(windows[1], values, len(score) + 1)
        return np.asarray(np.cumsum(steps)[:-1] / count)

    of_row = weight * (spread(base) + spread(tilt) * score)
    line = spread(base * height) + spread(base * slope + tilt * height) * score + spread(tilt * slope) * score**2
    return of_row * label - weight * line, of_row**2
