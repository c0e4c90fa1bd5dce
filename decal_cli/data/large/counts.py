"""Counts of rows as columns of numbers, in levels or in cells, of one score or two: checked, and made into tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np

from decal_cli.data.large.engines.statement import (
    BY_CLUSTER,
    DIFFERENCES,
    ENDS,
    OF_ROWS,
    SIDES,
    SQUARED_DIFFERENCES,
    SQUARES,
    SUMS,
    has_pairs,
)
from decal_cli.data.parts import Origin
from decal_cli.data.words import number
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_COUNTED_ROWS, MAX_SUM_OF_WEIGHTS, MIN_SHARE_OF_MEAN
from decal_cli.tables.aggregated import Aggregated
from decal_cli.tables.cells import GRID, N_POWERS, CellTable, ends
from decal_cli.tables.design import INDEPENDENT, CountedRows, Design, RowsOfCells, weighted
from decal_cli.tables.pairs import CellPairs, PairTable, Sums
from decal_cli.tables.table import Floats, Table

CLUSTER = "cluster"
"""Numbers of clusters, where rows were counted by them too."""
OF_COARSE_CLUSTERS = (
    "clusters are counted by coarse cells of the score: intervals of decisions at your thresholds are exact; others, "
    "and folds, take the rows that one cluster has in one cell to be about where they are on average"
)
ROUNDING = 1e-9
"""Of sums of floats, which engines add in orders of their own."""
_MAX_LOSS = 745.0
"""Minus the logarithm of the least float is less."""
_OF_POS = ("cannot be the sum of squared weights that add up to pos, of rows_pos rows",)


@dataclass(frozen=True, eq=False)
class Counts(ABC):
    """Columns of numbers by name, shape (m,), in any order and with repetitions, which add up.

    Of rows that are counted by two scores at once, names of columns that are of one score end as SIDES say. called:
    what the file calls columns, where not so.
    """

    columns: Mapping[str, Floats]
    called: Mapping[str, str] = field(default_factory=dict)

    needed: ClassVar[tuple[str, ...]]
    of_weights: ClassVar[tuple[str, ...]]
    """What there is besides where rows are weighted: all of it, or nothing."""
    optional: ClassVar[tuple[str, ...]] = ()
    """What there may be: all of it in every file, or nothing."""
    of_pairs: ClassVar[tuple[tuple[str, ...], tuple[str, ...]]] = ((), ())
    """What there is of two scores at once, and where rows are weighted."""
    what: ClassVar[str]

    @classmethod
    def names(cls, weighted: bool, paired: bool) -> tuple[str, ...]:
        """The columns of numbers that must be there."""
        names = (*cls.needed, *(cls.of_weights if weighted else ()))
        if not paired:
            return names
        sides = [[name] if name in OF_ROWS else [name + side for side in SIDES] for name in names]
        return (*(each for of in sides for each in of), *cls.of_pairs[0], *(cls.of_pairs[1] if weighted else ()))

    @property
    def paired(self) -> bool:
        """Whether rows are counted by two scores at once."""
        return has_pairs([*self.columns])

    @cached_property
    def sides(self) -> tuple[Self, ...]:
        """The counts by the score of A, and by that of B; these, where there is one."""
        if not self.paired:
            return (self,)
        names = (*self.names(self.weighted, False), *((CLUSTER,) if CLUSTER in self.columns else ()))
        called = ({name: name if name in self.columns else name + side for name in names} for side in SIDES)
        return tuple(type(self)({name: self.columns[each] for name, each in of.items()}, of) for of in called)

    def take(self, which: np.ndarray) -> Self:
        """These counts, by mask."""
        return type(self)({name: values[which] for name, values in self.columns.items()}, self.called)

    @property
    def weighted(self) -> bool:
        """Whether n is a sum of weights."""
        return "n2" in self.columns

    @property
    @abstractmethod
    def rows(self) -> tuple[Floats, Floats]:
        """Rows, and rows with label 1."""

    @abstractmethod
    def table(self, scale: float, origin: Origin) -> Table:
        """All of it added up, of one score; weights are multiplied by the scale, a power of two."""

    @abstractmethod
    def pairs(self, scale: float, origin: Origin) -> PairTable:
        """The same of two scores."""

    @abstractmethod
    def check(self, origin: Origin) -> None:
        """Raise a DecalError that names the first value that cannot be, with its file, column and row."""

    @property
    def scale(self) -> float:
        """The power of two that brings the mean weight near 1, as weights of rows are read."""
        if not self.weighted:
            return 1.0
        rows = self.rows[0]
        return float(2.0 ** -round(np.log2(float(self.columns["n"][rows > 0].sum()) / float(rows.sum()))))

    def counted(self, scale: float, groups: Mapping[str, np.ndarray], origin: Origin) -> tuple[Aggregated, ...]:
        """The rows that these count, and those of every group, by each score."""
        pairs = self.pairs(scale, origin) if self.paired else None
        parts = {
            column: {str(value): self.take(values == value).counted(scale, {}, origin) for value in np.unique(values)}
            for column, values in groups.items()
        }
        count, ones = (int(values.sum()) for values in self.rows)
        return tuple(
            Aggregated(
                table,
                count,
                ones,
                {column: {value: both[side] for value, both in of.items()} for column, of in parts.items()},
                pairs,
                side,
            )
            for side, table in enumerate((self.table(scale, origin),) if pairs is None else pairs.tables)
        )

    def need(self, sound: np.ndarray, name: str, problem: str, origin: Origin) -> None:
        """Raise a DecalError that names the first value of a column that is not sound."""
        if not sound.all():
            row = int(np.argmin(sound))
            place = origin.place(self.called.get(name, name), row)
            raise DecalError(f"{place}: {number(self.columns[name][row])} {problem}", "correct the aggregates")

    def need_counts(self, name: str, origin: Origin, least: int = 0) -> None:
        """The same for a column that must hold whole numbers of rows."""
        values = self.columns[name]
        self.need(values == np.floor(values), name, "is not a whole number of rows", origin)
        self.need(values >= least, name, "is not positive" if least else "is negative", origin)
        self.need(values <= MAX_COUNTED_ROWS, name, f"is over {MAX_COUNTED_ROWS:,} rows", origin)
        self.need(
            np.cumsum(values) <= MAX_COUNTED_ROWS,
            name,
            f"and those before it are over {MAX_COUNTED_ROWS:,} rows",
            origin,
        )

    def need_squares(self, origin: Origin) -> None:
        """The same for sums of squares of positive weights (Cauchy-Schwarz)."""
        n, n2, rows = (self.columns[name] for name in ("n", "n2", "rows"))
        sound = (n >= 1 / MAX_SUM_OF_WEIGHTS) & (n <= MAX_SUM_OF_WEIGHTS)
        self.need(sound, "n", f"is not between {1 / MAX_SUM_OF_WEIGHTS:g} and {MAX_SUM_OF_WEIGHTS:g}", origin)
        heavy = n / rows >= MIN_SHARE_OF_MEAN * float(n.sum()) / float(rows.sum())
        self.need(heavy, "n", f"over rows is less than {MIN_SHARE_OF_MEAN:g} of the mean weight", origin)
        self.need((n2 > 0) & (n2 <= MAX_SUM_OF_WEIGHTS**2), "n2", "is not positive, or too large", origin)
        sound = (n2 * rows >= n**2 * (1 - ROUNDING)) & (n2 <= n**2 * (1 + ROUNDING))
        self.need(sound, "n2", "cannot be the sum of squared weights that add up to n", origin)


class Added(NamedTuple):
    """Counts that were added up by their keys, shape (k,) each."""

    keys: tuple[Floats, ...]
    n: np.ndarray
    pos: np.ndarray
    design: Design


class DistinctScores(Counts):
    """Distinct scores with their rows and positives."""

    needed = ("score", "n", "pos")
    of_weights = ("n2", "pos2", "rows", "rows_pos")
    what = "levels"

    @property
    def rows(self) -> tuple[Floats, Floats]:
        names = ("rows", "rows_pos") if self.weighted else ("n", "pos")
        return self.columns[names[0]], self.columns[names[1]]

    def table(self, scale: float, origin: Origin) -> Table:
        of = self.added(scale, self.columns["score"])
        return Table(of.keys[0], of.n, of.pos, of.design)

    def pairs(self, scale: float, origin: Origin) -> PairTable:
        of = self.added(scale, *(side.columns["score"] for side in self.sides))
        a, b = of.keys
        return PairTable(a, b, of.n, of.pos, of.design)

    def added(self, scale: float, *keys: Floats) -> Added:
        """What has the same keys, added up."""
        columns = {name: self.columns[name] for name in ("n", "pos", *(("n2", "pos2") if self.weighted else ()))}
        if self.weighted:
            # Two sums of the same weights may differ in their last bit.
            rows, ones = self.rows
            for part, all_of in (("pos", "n"), ("pos2", "n2")):
                columns[part] = np.where(ones == rows, columns[all_of], columns[part])
        # In an order that does not depend on that of the files: sums of floats do.
        of_clusters = [self.columns[CLUSTER]] if CLUSTER in self.columns else []
        order = np.lexsort((*reversed(columns.values()), *of_clusters, *reversed(keys)))
        keys = tuple(key[order] for key in keys)
        starts = np.flatnonzero(np.append(True, np.logical_or.reduce([key[1:] != key[:-1] for key in keys])))
        keys = tuple(key[starts] for key in keys)
        n, pos, *squares = (np.add.reduceat(values[order], starts) for values in columns.values())
        design = self._clustered({name: values[order] for name, values in columns.items()}, order, keys, starts, scale)
        if not squares:
            return Added(keys, n.astype(np.int64), pos.astype(np.int64), design or INDEPENDENT)
        n2, pos2 = squares
        design = design or weighted(n2 * scale**2, pos2 * scale**2)
        return Added(keys, n * scale, np.minimum(pos, n) * scale, design)

    def _clustered(
        self, columns: Mapping[str, Floats], order: np.ndarray, keys: Sequence[Floats], starts: np.ndarray, scale: float
    ) -> Design | None:
        """The design of rows in clusters, if they are. columns: in this order, in which each key starts somewhere."""
        if CLUSTER not in self.columns:
            return None
        unit = np.tile(self.columns[CLUSTER][order].astype(np.int64), 2)
        cell = np.tile(np.searchsorted(starts, np.arange(len(order)), side="right") - 1, 2)
        label = np.repeat([0, 1], len(order))

        def of_labels(all_of: Floats, ones: Floats) -> Floats:
            return np.concatenate((all_of - ones, ones))

        rows = of_labels(*(values[order] for values in self.rows))
        weight = square = rows
        if self.weighted:
            weight = of_labels(columns["n"], columns["pos"]) * scale
            square = np.maximum(of_labels(columns["n2"], columns["pos2"]), 0.0) * scale**2
        counted = CountedRows(RowsOfCells(cell, unit, label, weight, square, self.weighted), rows)
        return counted.design(len(starts), np.mean(keys, axis=0))

    def check(self, origin: Origin) -> None:
        for side in self.sides:
            side._check(origin)

    def _check(self, origin: Origin) -> None:
        for name, values in self.columns.items():
            self.need(np.isfinite(values), name, "is missing or not finite", origin)
        score, n, pos = (self.columns[name] for name in self.needed)
        self.need((score >= 0) & (score <= 1), "score", "is outside [0, 1]", origin)
        if not self.weighted:
            self.need_counts("n", origin, 1)
            self.need_counts("pos", origin)
            self.need(pos <= n, "pos", "is more than n", origin)
            return
        n2, pos2, rows, ones = (self.columns[name] for name in self.of_weights)
        self.need_counts("rows", origin, 1)
        self.need_counts("rows_pos", origin)
        self.need(ones <= rows, "rows_pos", "is more than rows", origin)
        self.need(n > 0, "n", "is not positive", origin)
        self.need((pos >= 0) & (pos <= n * (1 + ROUNDING)), "pos", "is not between 0 and n", origin)
        self.need_squares(origin)
        self.need((pos2 >= 0) & (pos2 <= n2 * (1 + ROUNDING)), "pos2", "is not between 0 and n2", origin)
        self.need((ones > 0) == (pos > 0), "rows_pos", "does not agree with pos", origin)
        self.need(
            (pos2 * ones >= pos**2 * (1 - ROUNDING)) & (pos2 <= pos**2 * (1 + ROUNDING)), "pos2", *_OF_POS, origin
        )
        zeros, zeros2, left = n - pos, n2 - pos2, rows - ones
        sound = (zeros2 * left >= zeros**2 - ROUNDING * n**2) & (zeros2 <= zeros**2 + ROUNDING * n2)
        self.need(
            sound & ((left > 0) | (zeros <= ROUNDING * n)) & ((left == 0) | (zeros2 > 0)), "pos2", *_OF_POS, origin
        )


class CellCounts(Counts):
    """Cells of the score with the sums of their rows, by label; and with clusters those of coarse cells, by cluster."""

    needed = ("cell", "low", "high", "label", "rows", *SUMS)
    of_weights = SQUARES
    optional = ENDS
    of_pairs = (DIFFERENCES, SQUARED_DIFFERENCES)
    what = "cells"

    @property
    def coarse(self) -> bool:
        """Whether clusters are counted by cells wider than the others."""
        return CLUSTER in self.columns and bool((self.columns["high"] - self.columns["low"]).max() > 1.5 / GRID)

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """The least and the greatest score of each cell's rows; or that it can hold, where they are not known."""
        of = self.columns
        least, greatest = ENDS
        return (of[least], of[greatest]) if least in of else ends(of["low"], of["high"])

    @property
    def rows(self) -> tuple[Floats, Floats]:
        rows = self.columns["rows"]
        if BY_CLUSTER in self.columns:
            rows = rows * (self.columns[BY_CLUSTER] == 0)
        return rows, rows * self.columns["label"]

    def table(self, scale: float, origin: Origin) -> Table:
        apart = self.columns.get(BY_CLUSTER)
        table = self._table(scale, origin) if apart is None else self.take(apart == 0)._table(scale, origin)
        if CLUSTER not in self.columns:
            return table
        return (self if apart is None else self.take(apart > 0))._with_clusters(table, scale, origin)

    def _with_clusters(self, t: CellTable, scale: float, origin: Origin) -> Table:
        """The table of cells with the clusters of its rows, which these count by cluster and coarse cell."""
        of = self.columns
        lows, first = np.unique(of["low"], return_index=True)
        highs, number = of["high"][first], np.searchsorted(lows, of["low"])
        if not ((of["high"] == highs[number]).all() and (highs[:-1] <= lows[1:]).all()):
            raise DecalError(f"{origin.shown}: cells of clusters overlap", "aggregate all files in one way")
        weight, square = (of["n"] * scale, of["n2"] * scale**2) if self.weighted else (of["rows"], of["rows"])
        unit, label = of[CLUSTER].astype(np.int64), of["label"].astype(np.int64)
        counted = CountedRows(RowsOfCells(number, unit, label, weight, square, self.weighted), of["rows"])
        cells = t.sums[:, 0]
        if not np.allclose(np.bincount(label, of["n"] * scale, 2), cells.sum(axis=1), rtol=ROUNDING, atol=0):
            raise DecalError(
                f"{origin.shown}: clusters do not count as many rows as cells", "export all that decal sql asks for"
            )
        mean = of["s1"] / of["n"]
        spread = np.sqrt(np.maximum(of["s2"] / of["n"] - mean**2, 0.0))
        parted = counted.parted(cells, mean, spread, self.ends)
        return replace(t, design=parted.design(len(t), t.score) or t.design)

    def _table(self, scale: float, origin: Origin) -> CellTable:
        of = self.columns
        keys = [of[name] for name in ("label", "high", "low")]
        order = np.lexsort(keys)
        if (np.diff([key[order] for key in keys]) == 0).all(axis=0).any():
            # What has the same keys, in an order that does not depend on that of the files: sums of floats do.
            order = np.lexsort((*(of[name] for name in reversed(SUMS)), *keys))
        label, high, low = (key[order] for key in keys)
        starts = np.flatnonzero(np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1])))
        first, last = low[starts], high[starts]
        apart = last[:-1] <= first[1:]
        if not apart.all():
            at = int(np.argmin(apart))
            cells = " and ".join(f"[{number(first[k])}, {number(last[k])})" for k in (at, at + 1))
            raise DecalError(
                f"{origin.shown}: cells {cells} overlap",
                f"aggregate all files with the same {Hint('threshold')} options",
            )
        place = (np.cumsum(np.isin(np.arange(len(low)), starts)) - 1) + len(starts) * label.astype(np.int64)

        def added(names: tuple[str, ...]) -> Floats:
            flat = [np.bincount(place, of[name][order], 2 * len(starts)) for name in names]
            return np.array(flat, dtype=np.float64).reshape(len(names), 2, len(starts)).swapaxes(0, 1)

        squares = added(SQUARES) * scale**2 if self.weighted else None
        least, greatest = (values[order] for values in self.ends)
        least, greatest = np.minimum.reduceat(least, starts), np.maximum.reduceat(greatest, starts)
        return CellTable.of_sums(least, greatest, added(SUMS) * scale, squares)

    def pairs(self, scale: float, origin: Origin) -> PairTable:
        of = self.columns
        of_a, of_b = (side._table(scale, origin) for side in self.sides)
        place_a, place_b = (np.unique(of[f"low{side}"], return_inverse=True)[1] for side in SIDES)
        place = place_a * len(of_b) + place_b
        # In an order that does not depend on that of the files: sums of floats do.
        order = np.lexsort((of["n"], of["label"], place))
        place, label = place[order], of["label"][order]
        starts = np.flatnonzero(np.append(True, place[1:] != place[:-1]))
        cell_a, cell_b = np.divmod(place[starts], len(of_b))

        n: np.ndarray
        pos: np.ndarray
        design: Design

        def counts(name: str) -> tuple[Floats, Floats]:
            values = of[name][order]
            return np.add.reduceat(values, starts), np.add.reduceat(values * label, starts)

        n, pos = counts("n")
        if "n2" not in of:
            sums = [self._sums(1.0, names, names, "n") for names in (("d1", "d2"), ("e1", "e2"))]
            n, pos, design = n.astype(np.int64), pos.astype(np.int64), INDEPENDENT
        else:
            n2, pos2 = counts("n2")
            losses = ((("d1", "d2"), ("g1", "g2")), (("e1", "e2"), ("f1", "f2")))
            sums = [self._sums(scale, *names, "n2") for names in losses]
            n, pos, design = n * scale, pos * scale, weighted(n2 * scale**2, pos2 * scale**2)
        of_losses = dict(zip(("brier", "log_loss"), sums, strict=True))
        # The score of a cell is that of its side, which lies in it as well.
        a, b = of_a.score[cell_a], of_b.score[cell_b]
        return CellPairs(a, b, n, pos, design, sides=(of_a, of_b), sums=of_losses)

    def _sums(self, scale: float, sums: tuple[str, str], of_squares: tuple[str, str], squares: str) -> Sums:
        """Of a difference by row: sums of it, and of it and its square with squared weights, which `squares` names."""

        def summed(name: str, label: int) -> float:
            return float(np.sort(self.columns[name][self.columns["label"] == label]).sum())

        cross, second = of_squares
        parts = [[scale**2 * summed(name, label) for name in (squares, cross, second)] for label in (0, 1)]
        return np.array([scale * summed(sums[0], label) for label in (0, 1)]), np.array(parts)

    def check(self, origin: Origin) -> None:
        for side in self.sides:
            side._check(origin)
        of = self.columns
        for first, second, rows in (("d1", "d2", "n"), ("e1", "e2", "n"), ("g1", "g2", "n2"), ("f1", "f2", "n2")):
            if second in of:
                for name in (first, second):
                    self.need(np.isfinite(of[name]), name, "is missing or not finite", origin)
                sound = of[rows] * of[second] >= of[first] ** 2 * (1 - ROUNDING)
                self.need(sound, second, f"does not agree with {first}", origin)

    def _check(self, origin: Origin) -> None:
        of = self.columns
        endless = ("l1", "l2", "k1", "k2")
        for name, values in of.items():
            sound = ~np.isnan(values) if name in endless else np.isfinite(values)
            self.need(sound, name, "is missing or not finite", origin)
        low, high = of["low"], of["high"]
        self.need((low >= 0) & (low <= 1), "low", "is outside [0, 1]", origin)
        self.need((high > low) & (high <= 1) | (high == 1) & (low == 1), "high", "is not between low and 1", origin)
        (least, greatest), (lowest, highest) = self.ends, ends(low, high)
        self.need((least >= lowest) & (least <= highest), ENDS[0], "is not between low and high", origin)
        self.need((greatest >= least) & (greatest <= highest), ENDS[1], f"is not between {ENDS[0]} and high", origin)
        self.need((of["label"] == 0) | (of["label"] == 1), "label", "is not 0 or 1", origin)
        self.need_counts("rows", origin, 1)
        self.need(of["n"] > 0, "n", "is not positive", origin)
        if not self.weighted:
            self.need(of["n"] == of["rows"], "n", "is not rows, and there is no n2 of weighted rows", origin)
        self._need_moments(SUMS, origin)
        if self.weighted:
            self.need_squares(origin)
            self._need_moments(SQUARES, origin)

    def _need_moments(self, names: tuple[str, ...], origin: Origin) -> None:
        """Sums of powers between those of the ends, and of losses that agree."""
        count, (low, high) = self.columns[names[0]], self.ends
        for power in range(1, N_POWERS):
            name = names[power]
            values = self.columns[name]
            least, most = count * low**power * (1 - ROUNDING), count * high**power * (1 + ROUNDING)
            problem = f"cannot be the sum over {names[0]} of scores in the cell to the power of {power}"
            self.need((values >= least) & (values <= most), name, problem, origin)
        first, second = (self.columns[name] for name in names[N_POWERS:])
        self.need(first >= 0, names[N_POWERS], "is negative", origin)
        for power, name in enumerate(names[N_POWERS:], 1):
            sound = np.isinf(self.columns[name]) | (self.columns[name] <= count * _MAX_LOSS**power)
            self.need(sound, name, f"is more than {names[0]} rows of any score can lose", origin)
        with np.errstate(invalid="ignore", over="ignore"):
            sound = np.where(np.isinf(first), np.isinf(second), count * second >= first**2 * (1 - ROUNDING))
        self.need(sound.astype(bool), names[-1], f"does not agree with {names[N_POWERS]}", origin)
