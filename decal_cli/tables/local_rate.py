"""The mean of a number at a place of a ranking: a local straight line through the rows that rank around it.

The number is the label, so that the mean is a frequency, or what acting on a row is worth. A line fits a miscalibrated
score as well as a calibrated one, as long as the mean does not bend much between the neighbours; Fan 1993 for local
linear regression, with one weight for all neighbours.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.estimate import error_of_sum
from decal_cli.tables.table import Floats, Ints

MIN_NEIGHBOURS = 25
"""Rows to either side of a place, as far as there are so many."""
_GROWTH, _SHARE = 0.75, 0.5
"""Neighbours grow more slowly than the rows, so that the bend between them vanishes before the noise does."""
_FLAT = 1e-9
"""Neighbours whose ranks vary less than this, relatively, have one level, and no slope."""


class LocalMeans(NamedTuple):
    """Means at some places, cut to the range of the values of all rows, and their slopes, shape (D,) each.

    error: of the mean over places, from the noise of the rows; effective: independent rows that it rests on; range: the
    largest value less the smallest.
    """

    mean: Floats
    slope: Floats
    error: float
    effective: float
    range: float


NOWHERE = LocalMeans(np.empty(0), np.empty(0), 0.0, 0.0, 0.0)
"""Means at no place, which rest on no rows."""


class Neighbours:
    """The rows that rank around some places, by whose numbers means at these places are estimated.

    rank, weight: of all rows, increasing in rank, (T,); unit: their clusters, None where each stands by itself; at: the
    places, shape (D,), D > 0.
    """

    def __init__(self, rank: Floats, weight: Floats, unit: Ints | None, at: Floats) -> None:
        start, end = _windows(rank, at)
        first, last = int(start.min()), int(end.max())
        self._near = slice(first, last)
        self._start, self._end = start - first, end - first
        self._weight = weight[self._near]
        self._unit = None if unit is None else unit[self._near]
        low, high = float(rank[first]), float(rank[last - 1])
        half_range = (high - low) / 2
        # Ranks may be amounts of any size: their squares are taken of numbers up to 1.
        self._scale = half_range if half_range > _FLAT * max(abs(low), abs(high)) else math.inf
        self._rank, self._at = ((values - (low + half_range)) / self._scale for values in (rank[self._near], at))
        squares = self._weight * self._rank**2
        self._mass, once, second = (self._sums(values) for values in (self._weight, self._weight * self._rank, squares))
        self._centre = once / self._mass
        self._spread = second - self._centre * once
        self._bent = self._spread > _FLAT * self._mass

    def means(self, values: Floats) -> LocalMeans:
        """Means at the places of a number of each row, shape (T,)."""
        low, high = float(values.min()), float(values.max())
        values = values[self._near]
        sums, slanted = (self._sums(each) for each in (self._weight * values, self._weight * values * self._rank))
        slope = self._of_spread(slanted - self._centre * sums)
        tilt = self._of_spread(self._at - self._centre)
        # What a row of weight 1 adds to the mean: base + tilt * rank; and the line: height + slope * rank.
        base, height = 1 / self._mass - tilt * self._centre, sums / self._mass - slope * self._centre
        noise, squares = self._noise(values, (base, tilt), (height, slope))
        mean = np.clip(height + slope * self._at, low, high)
        error = error_of_sum(noise, self._unit)
        return LocalMeans(mean, slope / self._scale, error, 1 / float(squares.sum()), high - low)

    def _of_spread(self, values: Floats) -> Floats:
        return np.divide(values, self._spread, out=np.zeros_like(self._spread), where=self._bent)

    def _sums(self, values: Floats) -> Floats:
        sums = np.concatenate(([0.0], np.cumsum(values)))
        return np.asarray(sums[self._end] - sums[self._start])

    def _noise(self, values: Floats, share: Line, fit: Line) -> tuple[Floats, Floats]:
        """What each row's distance from its line adds to the mean over places; and its squared share in that mean."""
        (base, tilt), (height, slope) = share, fit
        rank, count = self._rank, len(base)

        def spread(of_places: Floats) -> Floats:
            """The sum of these over the windows that a row lies in."""
            begun, ended = (np.bincount(ends, of_places, len(rank) + 1) for ends in (self._start, self._end))
            return np.asarray(np.cumsum(begun - ended)[:-1] / count)

        of_row = self._weight * (spread(base) + spread(tilt) * rank)
        line = spread(base * height) + spread(base * slope + tilt * height) * rank + spread(tilt * slope) * rank**2
        return of_row * values - self._weight * line, of_row**2


Line = tuple[Floats, Floats]


def _windows(rank: Floats, at: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first of the sorted rows around each place, and the first one after them; levels stay whole."""
    wide = max(MIN_NEIGHBOURS, math.ceil(_SHARE * len(rank) ** _GROWTH))
    low = np.maximum(np.searchsorted(rank, at, side="left") - wide, 0)
    high = np.minimum(np.searchsorted(rank, at, side="right") + wide, len(rank))
    return np.searchsorted(rank, rank[low], side="left"), np.searchsorted(rank, rank[high - 1], side="right")
