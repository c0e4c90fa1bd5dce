"""Cells of the score with the exact sums of their rows: what is left of rows that are too many to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.coarse_clusters import CoarseClusters
from decal_cli.tables.design import INDEPENDENT, Weighted
from decal_cli.tables.estimate import MeanEstimate, moments_by_label, moments_of
from decal_cli.tables.table import CELLS, Floats, Loss, Table

GRID = 1 << 16
"""Cells of equal width in [0, 1]."""
MAX_SPLITS = 15
"""So many splits of coarse cells make them cells."""
N_POWERS = 5
"""Sums of s^0 to s^4 are kept; and those of the log loss and of its square."""


@dataclass(frozen=True)
class PowerLoss:
    """A loss that is a polynomial of the score. compute: the same, directly; powers: coefficients, by label."""

    compute: Loss
    powers: tuple[tuple[float, ...], tuple[float, ...]]

    def __call__(self, score: Floats) -> Floats:
        return self.compute(score)


@dataclass(frozen=True)
class LogLoss:
    """The log loss of scores as they are."""

    compute: Loss

    def __call__(self, score: Floats) -> Floats:
        return self.compute(score)


@dataclass(frozen=True, eq=False, kw_only=True)
class CellTable(Table):
    """Cells, each as one level at the mean score of its rows, with the exact sums of what its rows have.

    least, greatest: shape (m,), between which the scores of a cell lie. sums: by label, shape (2, 7, m): of w s^k
    for k = 0..4, w loss and w loss^2; squares: the same of w^2, where rows are weighted. What is made of this table
    (bins, folds, resamples) is a table of the mean scores.
    """

    least: Floats
    greatest: Floats
    sums: Floats
    squares: Floats | None = None

    @classmethod
    def of_sums(cls, least: Floats, greatest: Floats, sums: Floats, squares: Floats | None = None) -> CellTable:
        """The table of some cells, in order of their scores and none of them empty."""
        neg, pos = sums[:, 0]
        # A mean lies in its cell; rounding must not carry it out and break the order of levels.
        score = np.clip(sums[:, 1].sum(axis=0) / (neg + pos), least, greatest)
        of_cells: dict[str, Any] = {"least": least, "greatest": greatest, "sums": sums, "squares": squares}
        if squares is None:
            return cls(score, (neg + pos).astype(np.int64), pos.astype(np.int64), **of_cells)
        return cls(score, neg + pos, pos, Weighted(squares[:, 0].sum(axis=0), squares[1, 0]), **of_cells)

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

    def mean_of(self, loss: Loss) -> MeanEstimate:
        """Exact for the losses whose sums are known; any other is that of the mean scores."""
        if isinstance(loss, PowerLoss):
            return self.cached(loss, lambda _: self._of_powers(loss.powers))
        if isinstance(loss, LogLoss):
            return self.cached(loss, lambda _: self._of_log())
        return super().mean_of(loss)

    def _of_powers(self, powers: Sequence[Sequence[float]]) -> MeanEstimate:
        """Mean of a polynomial of the score, by label, of degree 2 at most."""
        firsts, by_cell, parts = [], np.empty((2, len(self))), []
        for label, coefficients in enumerate(powers):
            sums, squares = self._totals(label)
            squared = np.convolve(coefficients, coefficients)
            firsts.append(float(np.dot(coefficients, sums[: len(coefficients)])))
            cross, second = np.dot(coefficients, squares[: len(coefficients)]), np.dot(squared, squares[: len(squared)])
            parts.append((second, cross, squares[0]))
            by_cell[label] = np.tensordot(coefficients, self.sums[label, : len(coefficients)], axes=1)
        return self._estimate(firsts, parts, by_cell)

    def _of_log(self) -> MeanEstimate:
        totals = [self._totals(label) for label in (0, 1)]
        firsts = [float(sums[N_POWERS]) for sums, _ in totals]
        parts = [(squares[N_POWERS + 1], squares[N_POWERS], squares[0]) for _, squares in totals]
        return self._estimate(firsts, parts, self.sums[:, N_POWERS])

    def _totals(self, label: int) -> tuple[Floats, Floats]:
        """Sums over all rows of one label, and the same of squared weights."""
        sums = self.sums[label].sum(axis=1)
        return sums, sums if self.squares is None else self.squares[label].sum(axis=1)

    def _estimate(
        self, firsts: Sequence[float], parts: Sequence[tuple[float, float, float]], by_cell: Floats
    ) -> MeanEstimate:
        """firsts, parts: as `moments_by_label` has them. by_cell: what the rows of each label and cell add, (2, m)."""
        known = self.design.share_known
        moments = moments_by_label(firsts, self.positives, parts) if known else moments_of(sum(firsts), parts)
        if isinstance(self.design, CoarseClusters) and np.isfinite(sum(firsts)):
            n = self.sums[:, 0]
            values = np.divide(by_cell, n, out=np.zeros_like(n), where=n > 0)
            columns = values[None]
            if known:
                zero, one = np.eye(2)[:, :, None]
                columns = np.array([zero * values, one * values, one * np.ones(len(self))])
            moments = moments._replace(units=moments.units + self.design.added(columns))
        return moments.estimate(self.total, self.effective_rows)

    @property
    def infinite(self) -> bool:
        """Whether a score of exactly 0 or 1 is wrong."""
        return not bool(np.isfinite(self.sums[:, N_POWERS]).all())

    def straddled(self, threshold: float) -> int | None:
        """The cell that has scores on both sides of a threshold, as far as is known; None where there is none."""
        at = int(np.searchsorted(self.least, threshold, side="left")) - 1
        return at if at >= 0 and threshold <= self.greatest[at] else None

    def moved(self, cell: int, below: bool, above: bool, threshold: float) -> Table:
        """The table where the negatives of a cell lie above a threshold in it, or not, and so do the positives."""
        edge = float(np.nextafter(threshold, 0.0))
        keep = np.arange(len(self)) != cell
        base = self._plain(keep)
        n, pos, n2, pos2 = (float(values[cell]) for values in (self.n, self.pos, self.n2, self.pos2))
        parts = [base]
        for rows, rows2, label, up in ((n - pos, n2 - pos2, 0, below), (pos, pos2, 1, above)):
            if rows > 0:
                at, count = np.array([threshold if up else edge]), np.array([rows]).astype(self.n.dtype)
                squares = np.array([rows2])
                design = INDEPENDENT if self.design.plain else Weighted(squares, squares * label)
                parts.append(Table(at, count, count * label, design))
        return Table.merge([part for part in parts if len(part)])

    def _plain(self, which: NDArray[np.bool_]) -> Table:
        return Table(self.score[which], self.n[which], self.pos[which], self.design.taken(which))


def n_coarse_cells(splits: int) -> int:
    """How many coarse cells there are without thresholds: 2^splits of each halving of the distance to 0, and to 1."""
    return 2 * (1 + sum(2 ** min(octave, splits) for octave in range(MAX_SPLITS))) + 1


def ends(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The least and the greatest score that cells of these edges can hold: high is in no cell but in that of 1."""
    return low, np.where(high > low, np.nextafter(high, low), high)
