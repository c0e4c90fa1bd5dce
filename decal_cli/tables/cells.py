"""Cells of the score with the exact sums of their rows: what is left of rows that are too many to keep."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.design import INDEPENDENT, Design, weighted
from decal_cli.tables.estimate import CellRun, ratio
from decal_cli.tables.table import CELLS, Floats, Ints, Loss, Table
from decal_cli.tables.units import Estimate

GRID = 1 << 16
"""Cells of equal width in [0, 1]."""
MAX_SPLITS = 15
"""Splits that turn coarse cells into cells."""
N_POWERS = 5
"""Sums of s^0 to s^4 are kept; and those of the log loss and of its square."""


@dataclass(frozen=True)
class SummedLoss:
    """A loss whose sums cells keep. compute: the loss as a function of scores.

    powers: its coefficients as a polynomial of the score, by label; () for the log loss of scores as they are.
    """

    compute: Loss
    powers: tuple[tuple[float, ...], ...] = ()

    def __call__(self, score: Floats) -> Floats:
        return self.compute(score)

    @property
    def in_sums(self) -> tuple[Floats, Floats]:
        """The weights of the loss and of its square in the sums that cells keep of each label, (2, 7) each."""
        weights = np.zeros((2, 2, N_POWERS + 2))
        if not self.powers:
            weights[(0, 1), :, (N_POWERS, N_POWERS + 1)] = 1.0
        for label, powers in enumerate(self.powers):
            weights[0, label, : len(powers)] = powers
            weights[1, label, : 2 * len(powers) - 1] = np.convolve(powers, powers)
        return weights[0], weights[1]


def _weighted(weights: Floats, sums: Floats) -> Floats:
    """Weighted sums of the sums of each label, (2, 7) and (2, 7, ..) to (2, ..); sums of weight 0 may be infinite."""
    return np.array([sum(w * of for w, of in zip(*each, strict=True) if w) for each in zip(weights, sums, strict=True)])


@dataclass(frozen=True, eq=False, kw_only=True)
class CellTable(Table):
    """Cells, each as one level at the mean score of its rows, with the exact sums of what its rows have.

    least, greatest: shape (m,), between which the scores of a cell lie. sums: by label, shape (2, 7, m): of w s^k
    for k = 0..4, w loss and w loss^2; squares: sums with w^2 in place of w. What is made of this table (bins, folds,
    resamples) is a table of the mean scores.
    """

    least: Floats
    greatest: Floats
    sums: Floats
    squares: Floats

    @classmethod
    def of_sums(cls, least: Floats, greatest: Floats, sums: Floats, squares: Floats | None = None) -> CellTable:
        """The table of some cells, in order of their scores and none of them empty."""
        neg, pos = sums[:, 0]
        # A mean lies in its cell; rounding must not carry it out and break the order of levels.
        score = np.clip(sums[:, 1].sum(axis=0) / (neg + pos), least, greatest)
        of_cells: dict[str, Any] = {"least": least, "greatest": greatest, "sums": sums}
        if squares is None:
            return cls(score, (neg + pos).astype(np.int64), pos.astype(np.int64), squares=sums, **of_cells)
        design = weighted(squares[:, 0].sum(axis=0), squares[1, 0])
        return cls(score, neg + pos, pos, design, squares=squares, **of_cells)

    @cached_property
    def wide(self) -> NDArray[np.bool_]:
        """Which cells may hold more than one score."""
        return self.least < self.greatest

    @property
    def exact(self) -> bool:
        """Whether every cell holds one score, so that this is the table of the rows."""
        return len(self) <= CELLS and not self.wide.any()

    @property
    def cells(self) -> Table:
        """This table: its levels are few enough to resample."""
        return self

    def mean_of(self, loss: Loss) -> Estimate:
        """Mean over rows of a loss: exact where cells keep its sums, else the loss of the mean scores."""
        if not isinstance(loss, SummedLoss):
            return super().mean_of(loss)
        return self.cached(loss, lambda _: self._exact(*loss.in_sums))

    def _exact(self, value: Floats, square: Floats) -> Estimate:
        """The mean of a value. value, square: the weights of it and of its square in the sums of each label, (2, 7)."""
        totals, squares = self.sums.sum(axis=2), self.squares.sum(axis=2)
        first = _weighted(value, totals)
        of_squares = np.stack((squares[:, 0], _weighted(value, squares), _weighted(square, squares)), axis=1)

        def by_cell() -> Floats:
            return ratio(_weighted(value, self.sums), self.sums[:, 0])

        clustered = self.design.clustered and np.isfinite(first).all()
        blocks = [(CellRun(self.score, self.n, self.pos), by_cell())] if clustered else []
        between = self.design.moments(blocks).between if clustered else lambda centre: 0.0
        return self.units.mean_of_sums(first, of_squares, lambda: by_cell().ravel(), between)

    @property
    def infinite(self) -> bool:
        """Whether a score of exactly 0 or 1 is wrong."""
        return not bool(np.isfinite(self.sums[:, N_POWERS]).all())

    def straddled(self, *thresholds: float) -> Ints:
        """The cells that may have scores on both sides of a threshold: at most one for each threshold."""
        at = np.searchsorted(self.least, thresholds, side="left") - 1
        return at[(at >= 0) & (thresholds <= self.greatest[at])]

    def moved(self, cell: int, below: bool, above: bool, threshold: float) -> Table:
        """The table where all negatives of a cell reach a threshold in it, or none do, and so with its positives.

        below: whether the negatives reach it; above: whether the positives do.
        """
        edge = float(np.nextafter(threshold, 0.0))
        keep = np.arange(len(self)) != cell
        parts = [Table(self.score[keep], self.n[keep], self.pos[keep], self.design.select(keep))]
        n, pos, n2, pos2 = (float(values[cell]) for values in (self.n, self.pos, self.n2, self.pos2))
        for rows, rows2, label, up in ((n - pos, n2 - pos2, 0, below), (pos, pos2, 1, above)):
            if rows > 0:
                at, count = np.array([threshold if up else edge]), np.array([rows]).astype(self.n.dtype)
                squares = np.array([rows2])
                design = INDEPENDENT if self.design.plain else Design((squares, squares * label))
                parts.append(Table(at, count, count * label, design))
        return Table.merge([part for part in parts if len(part)])


def n_coarse_cells(splits: int) -> int:
    """How many coarse cells there are without thresholds: 2^splits of each halving of the distance to 0, and to 1."""
    return 2 * (1 + sum(2 ** min(octave, splits) for octave in range(MAX_SPLITS))) + 1


def ends(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The least and the greatest score that cells with these edges can hold; a high edge belongs to the next cell."""
    return low, np.nextafter(high, low)
