"""Rows counted batch by batch by two scores at once: exact pairs of scores while they fit, else cells of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from decal_cli.data.large.counts import Cells, Levels
from decal_cli.data.large.engines.aggregate import DIFFERENCES, SIDES, SQUARED_DIFFERENCES, SQUARES, SUMS
from decal_cli.data.large.pair_counts import PairCounts
from decal_cli.tables.cell_pairs import PAIR_GRID
from decal_cli.tables.cells import N_POWERS, cell_of, edges, log_losses
from decal_cli.tables.table import BLOCK, Floats, Ints

N_PAIRS = 1 << 20
"""Distinct pairs of scores and labels that are kept of all rows; of more, cells."""


class PairRows(NamedTuple):
    """Rows of one pair of scores and label each. a, b: scores, (k,). label: 0 or 1.

    sums: of 1, and where rows are weighted of weights and of their squares, shape (1, k) or (3, k).
    """

    a: Floats
    b: Floats
    label: Ints
    sums: Floats

    @classmethod
    def of(cls, a: Floats, b: Floats, label: np.ndarray, weight: Floats | None) -> PairRows:
        """Some rows, those that are alike added up."""
        ones = np.ones((1, len(a)))
        sums = ones if weight is None else np.stack((ones[0], weight, weight**2))
        # + 0.0 makes -0.0 the zero that it equals.
        return cls(a + 0.0, b + 0.0, label.astype(np.int64), sums).added()

    @classmethod
    def joined(cls, parts: Sequence[PairRows]) -> PairRows:
        """All rows of several."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate(column, axis=-1) for column in zip(*parts, strict=True))).added()

    def added(self) -> PairRows:
        """Those of one pair of scores and label as one, in order."""
        order = np.lexsort((self.label, self.b, self.a))
        a, b, label = self.a[order], self.b[order], self.label[order]
        new = (a[1:] != a[:-1]) | (b[1:] != b[:-1]) | (label[1:] != label[:-1])
        starts = np.flatnonzero(np.append(True, new))
        return PairRows(a[starts], b[starts], label[starts], np.add.reduceat(self.sums[:, order], starts, axis=1))

    def take(self, run: slice) -> PairRows:
        """Some of them."""
        return PairRows(self.a[run], self.b[run], self.label[run], self.sums[:, run])

    def counts(self) -> PairCounts:
        """Every pair of scores with its rows."""
        rows, weights = self.sums[0], self.sums[-2:]
        n = rows if len(self.sums) == 1 else weights[0]
        columns = {f"score{side}": score for side, score in zip(SIDES, (self.a, self.b), strict=True)}
        columns |= {"n": n, "pos": n * self.label}
        if len(self.sums) > 1:
            squares = {"n2": weights[1], "pos2": weights[1] * self.label}
            columns |= squares | {"rows": rows, "rows_pos": rows * self.label}
        return PairCounts(Levels, columns)


class PairCellSums(NamedTuple):
    """Sums of the rows of joint cells. keys: of the cells of A and B, and of the label, (k,). sums: shape (n, k)."""

    keys: Ints
    sums: Floats

    @classmethod
    def of(cls, rows: PairRows, thresholds: Sequence[float]) -> PairCellSums:
        """The sums of some rows, in the order of `_names`."""
        wide = len(edges(thresholds, PAIR_GRID)[0])
        a, b, label = rows[:3]
        cell_a, cell_b = (cell_of(score, thresholds, PAIR_GRID) for score in (a, b))
        loss_a, loss_b = (log_losses(score, label) for score in (a, b))
        finite = np.isfinite(loss_a) & np.isfinite(loss_b)
        logarithmic = np.subtract(loss_b, loss_a, out=np.zeros(len(a)), where=finite)
        squared = (b - a) * (b + a - 2 * label)
        terms = [score**power for power in range(1, N_POWERS) for score in (a, b)]
        terms += [loss**power for power in (1, 2) for loss in (loss_a, loss_b)]
        terms += [squared, squared**2, logarithmic, logarithmic**2]
        sums = [rows.sums[0]]
        for weight in rows.sums[-2:]:
            sums += [weight, *(weight * term for term in terms)]
        return cls((cell_a * wide + cell_b) * 2 + label, np.stack(sums)).added()

    @classmethod
    def joined(cls, parts: Sequence[PairCellSums]) -> PairCellSums:
        """All rows of several."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate(column, axis=-1) for column in zip(*parts, strict=True))).added()

    def added(self) -> PairCellSums:
        """Those of one key as one, in order."""
        order = np.argsort(self.keys, kind="stable")
        keys = self.keys[order]
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        return PairCellSums(keys[starts], np.add.reduceat(self.sums[:, order], starts, axis=1))

    def counts(self, thresholds: Sequence[float]) -> PairCounts:
        """The cells as an engine gives them."""
        low, high = edges(thresholds, PAIR_GRID)
        cells, label = np.divmod(self.keys, 2)
        columns = {"label": label.astype(np.float64), **dict(zip(_names(len(self.sums)), self.sums, strict=True))}
        for side, cell in zip(SIDES, np.divmod(cells, len(low)), strict=True):
            columns |= {f"cell{side}": cell.astype(np.float64), f"low{side}": low[cell], f"high{side}": high[cell]}
        return PairCounts(Cells, columns)


def _names(sums: int) -> list[str]:
    """What the sums of joint cells are called; of weighted rows there are more."""
    names = ["rows", "n", *(f"{name}{side}" for name in SUMS for side in SIDES), *DIFFERENCES]
    if sums > len(names):
        names += ["n2", *(f"{name}{side}" for name in SQUARES for side in SIDES), *SQUARED_DIFFERENCES]
    return names


class PairTally:
    """The rows of two models, or of a group of them. thresholds: edges of cells; most: pairs that are kept."""

    def __init__(self, thresholds: Sequence[float], most: int) -> None:
        self.thresholds = thresholds
        self.most = most
        self._pairs: list[PairRows] = []
        self._cells: list[PairCellSums] = []

    def add(self, rows: PairRows) -> None:
        """Add some rows."""
        if self._cells:
            self._add_cells(rows)
            return
        self._pairs.append(rows)
        known = len(self._pairs[0].a)
        if sum(len(each.a) for each in self._pairs[1:]) > max(known, BLOCK):
            self._pairs = [PairRows.joined(self._pairs)]
            if len(self._pairs[0].a) > self.most:
                self.into_cells()

    def _add_cells(self, rows: PairRows) -> None:
        # Each row has some twenty sums.
        for start in range(0, len(rows.a), BLOCK):
            self._cells.append(PairCellSums.of(rows.take(slice(start, start + BLOCK)), self.thresholds))
            if sum(len(each.keys) for each in self._cells[1:]) > max(len(self._cells[0].keys), BLOCK):
                self._cells = [PairCellSums.joined(self._cells)]

    def into_cells(self) -> None:
        """Count in cells from now on."""
        pairs, self._pairs = self._pairs, []
        for each in pairs:
            self._add_cells(each)

    @property
    def in_cells(self) -> bool:
        """Whether there were too many pairs to keep."""
        return bool(self._cells)

    def counts(self) -> PairCounts:
        """What was added."""
        if not self._cells:
            self._pairs = [PairRows.joined(self._pairs)]
            if len(self._pairs[0].a) <= self.most:
                return self._pairs[0].counts()
            self.into_cells()
        self._cells = [PairCellSums.joined(self._cells)]
        return self._cells[0].counts(self.thresholds)
