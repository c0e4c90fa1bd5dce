"""Calibration regret where every row has a threshold of its own.

In a bin of frequency c, a row of threshold t that is decided on the wrong side of it loses u_delta |c - t|. Sorted by
their thresholds, the rows of a bin lose a piecewise linear function of c, which sums from the lowest threshold up give
at any c without another look at the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.learn.regions import bounds_of_bins
from decal_cli.metrics.confidence import Interval, holding
from decal_cli.metrics.numerics import clipped, gaps
from decal_cli.tables.row_utilities import RowUtilities
from decal_cli.tables.table import Floats, Ints, Table


class _Bin(NamedTuple):
    """Rows of one bin by threshold, shape (m,); sums up to each of them, shape (m + 1,), of weight times u_delta.

    The first row of `size` and `at` is of rows that are not acted on, the second of those that are; at: the same sums,
    times the threshold.
    """

    threshold: Floats
    size: Floats
    at: Floats

    def lost(self, rate: Floats, low: int = 0, high: int | None = None) -> Floats:
        """By rows `low` to `high`, of bins with these frequencies, shape (..)."""
        end = len(self.threshold) if high is None else high
        cut = np.clip(np.searchsorted(self.threshold, rate), low, end)
        idle = rate * (self.size[0, cut] - self.size[0, low]) - (self.at[0, cut] - self.at[0, low])
        acted = (self.at[1, end] - self.at[1, cut]) - rate * (self.size[1, end] - self.size[1, cut])
        return np.asarray(np.maximum(idle, 0.0) + np.maximum(acted, 0.0))

    def pulled(self, rate: float, error: float, noise: Floats) -> Floats:
        """What is lost where rows within an error of the frequency have nothing to win, and noise is added."""
        low, high = np.searchsorted(self.threshold, (rate - error, rate + error)).tolist()
        near = self.size[:, high] - self.size[:, low]
        nothing_to_win = np.maximum(noise, 0.0) * near[0] + np.maximum(-noise, 0.0) * near[1]
        return self.lost(rate - error + noise, 0, low) + self.lost(rate + error + noise, high) + nothing_to_win


class RowCells:
    """Rows in cells. cells: the table of these; of_row: the number of each row's, (T,); acts: its decision, (T,)."""

    def __init__(self, utilities: RowUtilities, cells: Table, of_row: Ints, acts: NDArray[np.bool_]) -> None:
        self.levels, self.of_row = cells, of_row
        self.rate: Floats = cells.pos / cells.n
        order = np.argsort(of_row, kind="stable")
        starts = np.searchsorted(of_row[order], np.arange(1, len(cells)))
        self.bins = [_bin(utilities, acts, which) for which in np.split(order, starts)]

    @property
    def value(self) -> float:
        """Per decision."""
        return float(sum(float(each.lost(rate)) for each, rate in zip(self.bins, self.rate, strict=True)))

    def worst(self, utilities: RowUtilities) -> float:
        """What knowing every label adds to recalibrated decisions: the sharp bound, with the loss c (1 - c)."""
        inside = (utilities.threshold > 0) & (utilities.threshold < 1)
        rate = self.rate[self.of_row[inside]]
        most = rate * (1 - rate)
        bound = np.zeros(len(inside))
        bounds = bounds_of_bins(most, rate, utilities.threshold[inside])
        bound[inside] = utilities.u_delta[inside] * bounds.sharp
        return utilities.rows.units.mean(bound).value

    def interval(self, rng: np.random.Generator, confidence: float) -> Interval:
        """For the regret that the population's frequencies would give, as `clipped.interval` has it."""
        error = self._error()
        noise = error * rng.standard_normal((clipped.N_REGRET_DRAWS, len(self.bins)))
        biased, seen = np.zeros(len(noise)), np.zeros(len(noise))
        for k, each in enumerate(self.bins):
            rate, reach = float(self.rate[k]), clipped.PULL * float(error[k])
            seen += each.lost(rate + noise[:, k])
            biased += each.pulled(rate, reach, noise[:, k]) - each.pulled(rate, reach, np.zeros(1))
        tail = (1 - confidence) / 2
        low = self.value - float(np.quantile(biased, 1 - tail))
        return holding((max(low, 0.0), float(np.quantile(seen, 1 - tail))), self.value)

    def null(self, rng: np.random.Generator) -> Floats:
        """The value in draws of labels from the mean scores of cells, shape (N_NULL_DRAWS,)."""
        cells = self.levels
        pos = np.array([cells.design.relabelled(cells, rng, cells.score)[0] for _ in range(gaps.N_NULL_DRAWS)])
        lost = (each.lost(rate) for each, rate in zip(self.bins, (pos / cells.n).T, strict=True))
        return np.asarray(sum(lost), dtype=np.float64)

    def _error(self) -> Floats:
        """Standard errors of the frequencies, shape (bins,)."""
        one_over = gaps.concentration(self.levels)
        rows = 1 / np.maximum(one_over, 1e-300)
        middle = np.array([each.at[:, -1].sum() / max(each.size[:, -1].sum(), 1e-300) for each in self.bins])
        # One more row of the bin's mean threshold: a bin that shows a single class errs as well.
        rate = (self.rate * rows + middle) / (rows + 1)
        spread = rate * (1 - middle) ** 2 + (1 - rate) * middle**2
        return np.asarray(np.sqrt(spread * one_over))


def _bin(utilities: RowUtilities, acts: NDArray[np.bool_], which: Ints) -> _Bin:
    # Rows that are never acted on, and those that always are, cannot be decided wrongly.
    threshold = utilities.threshold[which]
    which = which[(threshold > 0) & (threshold < 1)]
    which = which[np.argsort(utilities.threshold[which], kind="stable")]
    threshold = utilities.threshold[which]
    weights = utilities.rows.weights
    size = weights[which] * utilities.u_delta[which] / weights.sum()
    sums = np.zeros((2, 2, len(which) + 1))
    for row, mine in enumerate((~acts[which], acts[which])):
        sums[0, row, 1:] = np.cumsum(size * mine)
        sums[1, row, 1:] = np.cumsum(size * threshold * mine)
    return _Bin(threshold, sums[0], sums[1])
