"""Counts of rows as columns of numbers, in levels or in cells, of one score or two: checked, and made into tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from decal_cli.data.large.engines.statement import (
    BY_CLUSTER,
    DIFFERENCES,
    ENDS,
    OF_ROWS,
    SIDES,
    SQUARED,
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
from decal_cli.tables.aggregated import CountedData
from decal_cli.tables.cells import GRID, N_POWERS, CellTable, ends
from decal_cli.tables.design import INDEPENDENT, CountedRows, Design, RowsOfCells, weighted
from decal_cli.tables.pairs import CellPairs, PairTable, Sums
from decal_cli.tables.rows import Groups, Rows
from decal_cli.tables.table import Floats, Ints, Table
from decal_cli.tables.units import run_of_each, starts_of

CLUSTER = "cluster"
"""The column of cluster numbers, where rows were counted by cluster too."""
OF_COARSE_CLUSTERS = (
    "clusters are counted by coarse cells of the score: intervals of decisions at your thresholds are exact; others, "
    "and folds, take the rows that one cluster has in one cell to be about where they are on average"
)
ROUNDING = 1e-9
"""Relative error that sums of floats may have, since each engine adds them in its own order."""
_NOISE = 8 * np.finfo(np.float64).eps
"""Relative rounding error of a sum of equal weights, for each weight that was added."""
_ENDLESS = (*SUMS[N_POWERS:], *SQUARES[N_POWERS:])
"""Sums of losses, each of which may be infinite."""
_MAX_LOSS = 745.0
"""Above every finite log loss: minus the logarithm of the smallest float is less."""
_POWERS = {name + side: at for pair in SQUARED.items() for at, name in enumerate(pair, 1) for side in ("", *SIDES)}
"""The power of the weight that each column sums: 1, or 2 for sums with squared weights."""


@dataclass(frozen=True, eq=False)
class Counts(ABC):
    """Columns of numbers by name, shape (m,), in any order and with repetitions, which add up.

    Where rows are counted by two scores at once, the columns of one score end in '_a' or '_b' (SIDES). origin: the
    files, for errors. called: a column's name in the file, where it differs.
    """

    columns: Mapping[str, Floats]
    origin: Origin
    called: Mapping[str, str] = field(default_factory=dict)

    needed: ClassVar[tuple[str, ...]]
    of_weights: ClassVar[tuple[str, ...]]
    """Further columns of weighted rows: a file has all of them or none."""
    optional: ClassVar[tuple[str, ...]] = ()
    """Columns that may be absent: every file has all of them, or none has any."""
    of_pairs: ClassVar[tuple[tuple[str, ...], tuple[str, ...]]] = ((), ())
    """Columns of rows counted by two scores at once: of all rows, and further ones of weighted rows."""
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

    @property
    def weighted(self) -> bool:
        """Whether n is a sum of weights."""
        return "n2" in self.columns

    @property
    def sides(self) -> tuple[Self, ...]:
        """The counts by the score of A and by the score of B; the counts themselves, where there is one score."""
        if not self.paired:
            return (self,)
        names = (*self.names(self.weighted, False), *((CLUSTER,) if CLUSTER in self.columns else ()))
        called = ({name: name if name in self.columns else name + side for name in names} for side in SIDES)
        return tuple(
            replace(self, columns={name: self.columns[each] for name, each in of.items()}, called=of) for of in called
        )

    def take(self, which: np.ndarray) -> Self:
        """These counts, by mask."""
        return replace(self, columns={name: values[which] for name, values in self.columns.items()})

    def scaled(self) -> Self:
        """These counts with weights of a mean near 1, as for single rows: over a power of two, or over equal weights.

        Where all weights are equal, the rows have none.
        """
        if not self.weighted:
            return self
        of, (rows, ones) = self.columns, self.rows
        count, n, n2 = (float(each[rows > 0].sum()) for each in (rows, of["n"], of["n2"]))
        equal = count * n2 <= n**2 * (1 + _NOISE * count)
        unit = n / count if equal else 2.0 ** np.round(np.log2(n / count))
        columns = {name: values / unit ** _POWERS.get(name, 0) for name, values in of.items()}
        if equal:
            squared = {name for name, power in _POWERS.items() if power == 2}
            columns = {name: values for name, values in columns.items() if name not in squared}
            whole = {"n": of["rows"], "pos": ones}
            columns |= {name: values for name, values in whole.items() if name in of}
        return replace(self, columns=columns)

    def squares(self, name: str) -> Floats:
        """The sums of a column with squared weights: the column itself, where rows have no weights."""
        return self.columns[SQUARED[name] if self.weighted else name]

    @property
    @abstractmethod
    def rows(self) -> tuple[Floats, Floats]:
        """Rows, and rows with label 1, of each line, shape (m,) each."""

    @abstractmethod
    def table(self) -> Table:
        """The counts of one score, added up as a table."""

    @abstractmethod
    def pairs(self) -> PairTable:
        """The counts of two scores, added up as a table of pairs."""

    @abstractmethod
    def check_side(self) -> None:
        """Raise a DecalError that names the first value of one score's counts that cannot be."""

    def check(self) -> None:
        """Raise a DecalError that names the first value that cannot be, with its file, column and row."""
        for side in self.sides:
            for name, values in side.columns.items():
                sound = ~np.isnan(values) if name in _ENDLESS else np.isfinite(values)
                side.need(sound, name, "is missing or not finite")
            side.check_side()
        of = self.columns
        for first, second, rows in (("d1", "d2", "n"), ("e1", "e2", "n"), ("g1", "g2", "n2"), ("f1", "f2", "n2")):
            if second in of:
                for name in (first, second):
                    self.need(np.isfinite(of[name]), name, "is missing or not finite")
                sound = of[rows] * of[second] >= of[first] ** 2 * (1 - ROUNDING)
                self.need(sound, second, f"does not agree with {first}")

    def counted(self, groups: Groups) -> tuple[CountedData, ...]:
        """The counted rows by each score, with the counted rows of every group."""
        pairs = self.pairs() if self.paired else None
        parts = {
            column: {str(value): self.take(values == value).counted({}) for value in np.unique(values)}
            for column, values in groups.items()
        }
        count, ones = (int(values.sum()) for values in self.rows)

        tables = (self.table(),) if pairs is None else pairs.tables
        of_sides = [
            {column: {value: both[side] for value, both in of.items()} for column, of in parts.items()}
            for side in range(len(tables))
        ]
        return tuple(
            CountedData(table, count, ones, of_side, pairs, side)
            for side, (table, of_side) in enumerate(zip(tables, of_sides, strict=True))
        )

    def need(self, sound: np.ndarray, name: str, problem: str) -> None:
        """Raise a DecalError that names the first value of a column that is not sound."""
        if not sound.all():
            row = int(np.argmin(sound))
            place = self.origin.place(self.called.get(name, name), row)
            raise DecalError(f"{place}: {number(self.columns[name][row])} {problem}", "correct the aggregates")

    def need_counts(self, name: str, least: int = 0) -> None:
        """Raise a DecalError where a column does not hold whole numbers of rows, from `least` on, or holds too many."""
        values = self.columns[name]
        self.need(values == np.floor(values), name, "is not a whole number of rows")
        self.need(values >= least, name, "is not positive" if least else "is negative")
        self.need(np.cumsum(values) <= MAX_COUNTED_ROWS, name, f"makes over {MAX_COUNTED_ROWS:,} rows in all")

    def need_squares(self) -> None:
        """Raise a DecalError where n and n2 cannot be sums of positive weights and their squares (Cauchy-Schwarz)."""
        n, n2, rows = (self.columns[name] for name in ("n", "n2", "rows"))
        sound = (n >= 1 / MAX_SUM_OF_WEIGHTS) & (n <= MAX_SUM_OF_WEIGHTS)
        self.need(sound, "n", f"is not between {1 / MAX_SUM_OF_WEIGHTS:g} and {MAX_SUM_OF_WEIGHTS:g}")
        heavy = n / rows >= MIN_SHARE_OF_MEAN * float(n.sum()) / float(rows.sum())
        self.need(heavy, "n", f"over rows is less than {MIN_SHARE_OF_MEAN:g} of the mean weight")
        sound = (n2 * rows >= n**2 * (1 - ROUNDING)) & (n2 <= n**2 * (1 + ROUNDING))
        self.need(sound, "n2", "cannot be the sum of squared weights that add up to n")


class DistinctScores(Counts):
    """Distinct scores with their rows and positives."""

    needed = ("score", "n", "pos")
    of_weights = ("n2", "pos2", "rows", "rows_pos")
    what = "levels"

    @property
    def of_rows(self) -> tuple[str, str]:
        """The columns of rows, and of rows with label 1."""
        return ("rows", "rows_pos") if self.weighted else ("n", "pos")

    @property
    def rows(self) -> tuple[Floats, Floats]:
        count, ones = self.of_rows
        return self.columns[count], self.columns[ones]

    @property
    def sums(self) -> list[tuple[Floats, Floats]]:
        """Sums of weights over all rows and over rows with label 1, (m,); where weighted, of squared weights too."""
        of, (rows, ones) = self.columns, self.rows
        if not self.weighted:
            return [(rows, ones)]
        # Two sums of the same weights may differ in their last bit.
        names = (("n", "pos"), ("n2", "pos2"))
        return [(of[all_of], np.where(ones == rows, of[all_of], of[part])) for all_of, part in names]

    def table(self) -> Table:
        return Table(*self._added(self.columns["score"]))

    def pairs(self) -> PairTable:
        return PairTable(*self._added(*(side.columns["score"] for side in self.sides)))

    def _added(self, *keys: Floats) -> tuple[Any, ...]:
        """Lines of equal keys added up: the distinct keys, rows, positives and the design of a table."""
        columns = [each for of in self.sums for each in of]
        # In an order that the files do not set: sums of floats depend on the order.
        of_clusters = [self.columns[CLUSTER]] if CLUSTER in self.columns else []
        order = np.lexsort((*reversed(columns), *of_clusters, *reversed(keys)))
        starts = starts_of([key[order] for key in keys])
        keys = tuple(key[order[starts]] for key in keys)
        n, pos, *squares = (np.add.reduceat(values[order], starts) for values in columns)
        design = self._clustered(order, starts, keys)
        if not squares:
            return *keys, n.astype(np.int64), pos.astype(np.int64), design or INDEPENDENT
        n2, pos2 = squares
        return *keys, n, np.minimum(pos, n), design or weighted(n2, pos2)

    def _clustered(self, order: np.ndarray, starts: np.ndarray, keys: Sequence[Floats]) -> Design | None:
        """The design of rows in clusters; None where there are none. starts: where in this order each cell starts."""
        if CLUSTER not in self.columns:
            return None
        unit = np.tile(self.columns[CLUSTER][order].astype(np.int64), 2)
        cell = np.tile(run_of_each(starts, len(order)), 2)
        label = np.repeat([0, 1], len(order))
        both = (self.rows, *(self.sums if self.weighted else ()))
        rows, *of_weights = (np.concatenate((np.maximum(of - ones, 0.0)[order], ones[order])) for of, ones in both)
        weight, square = of_weights or (rows, rows)
        behind = RowsOfCells(cell, unit, label, weight, square, self.weighted)
        return CountedRows(behind, rows).design(len(starts), np.mean(keys, axis=0))

    def held(self, groups: Groups, amounts: Mapping[str, Floats]) -> tuple[Rows, ...]:
        """The rows that levels count, with each of their scores. groups, amounts: of each level.

        Where rows of one level have different weights, no single weight is known: the rows get weights whose sum and
        sum of squares are right.
        """
        all_of, ones = self.rows
        times = np.concatenate((all_of - ones, ones)).astype(np.int64)
        unit = np.repeat(np.arange(len(times), dtype=np.int32), times)
        line = unit % np.int32(len(all_of))
        weights = [np.concatenate((n - pos, pos)) for n, pos in self.sums] if self.weighted else []
        rows = Rows(
            np.empty(0),
            label=(unit >= len(all_of)).astype(np.uint8),
            weight=_weights(weights[0], weights[1], times) if weights else None,
            cluster=self.columns[CLUSTER].astype(np.int64)[line] if CLUSTER in self.columns else None,
            groups={name: values[line] for name, values in groups.items()},
            amounts={role: values[line] for role, values in amounts.items()},
            counted=True,
        )
        return tuple(replace(rows, score=side.columns["score"][line]) for side in self.sides)

    def check_side(self) -> None:
        score, (count, count_ones), (rows, ones) = self.columns["score"], self.of_rows, self.rows
        self.need((score >= 0) & (score <= 1), "score", "is outside [0, 1]")
        self.need_counts(count, 1)
        self.need_counts(count_ones)
        self.need(ones <= rows, count_ones, f"is more than {count}")
        if not self.weighted:
            return
        n, pos, n2, pos2 = (self.columns[name] for name in ("n", "pos", "n2", "pos2"))
        self.need_squares()
        self.need((pos >= 0) & (pos <= n * (1 + ROUNDING)), "pos", "is not between 0 and n")
        self.need((pos2 >= 0) & (pos2 <= n2 * (1 + ROUNDING)), "pos2", "is not between 0 and n2")
        self.need((ones > 0) == (pos > 0), "rows_pos", "does not agree with pos")
        zeros, zeros2, left = n - pos, n2 - pos2, rows - ones
        sound = (pos2 * ones >= pos**2 * (1 - ROUNDING)) & (pos2 <= pos**2 * (1 + ROUNDING))
        sound &= (zeros2 * left >= zeros**2 - ROUNDING * n**2) & (zeros2 <= zeros**2 + ROUNDING * n2)
        sound &= ((left > 0) | (zeros <= ROUNDING * n)) & ((left == 0) | (zeros2 > 0))
        self.need(sound, "pos2", "cannot be the sum of squared weights that add up to pos, of rows_pos rows")


def _weights(sums: Floats, squares: Floats, times: Ints) -> Floats:
    """A weight for each of the `times` rows of a unit, all equal but the first, with these sums and sums of squares."""
    some = times > 0
    sums, squares, times = sums[some], squares[some], times[some]
    mean = sums / times
    variance = squares / times - mean**2
    variance = np.where(variance > _NOISE * times * mean**2, variance, 0.0)
    below = np.minimum(np.sqrt(variance / np.maximum(times - 1, 1)), mean * (1 - _NOISE))
    weight = np.repeat(mean - below, times)
    weight[np.cumsum(times) - times] += times * below
    return weight


class CellCounts(Counts):
    """Cells of the score with the sums of their rows by label; with clusters, coarse cells of each cluster too."""

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
        """The least and the greatest score of each cell's rows; where not known, those that the cell can hold."""
        of = self.columns
        least, greatest = ENDS
        return (of[least], of[greatest]) if least in of else ends(of["low"], of["high"])

    @property
    def rows(self) -> tuple[Floats, Floats]:
        rows = self.columns["rows"]
        if BY_CLUSTER in self.columns:
            rows = rows * (self.columns[BY_CLUSTER] == 0)
        return rows, rows * self.columns["label"]

    def table(self) -> Table:
        apart = self.columns.get(BY_CLUSTER)
        table = (self if apart is None else self.take(apart == 0))._table()
        if CLUSTER not in self.columns:
            return table
        return (self if apart is None else self.take(apart > 0))._with_clusters(table)

    def _with_clusters(self, t: CellTable) -> Table:
        """The table of cells with the clusters of its rows, from these counts by cluster and coarse cell."""
        of = self.columns
        lows, first = np.unique(of["low"], return_index=True)
        highs, cell = of["high"][first], np.searchsorted(lows, of["low"])
        if not ((of["high"] == highs[cell]).all() and (highs[:-1] <= lows[1:]).all()):
            raise DecalError(f"{self.origin.shown}: cells of clusters overlap", "aggregate all files in one way")
        weight, square = (of["n"], of["n2"]) if self.weighted else (of["rows"], of["rows"])
        unit, label = of[CLUSTER].astype(np.int64), of["label"].astype(np.int64)
        counted = CountedRows(RowsOfCells(cell, unit, label, weight, square, self.weighted), of["rows"])
        cells = t.sums[:, 0]
        if not np.allclose(np.bincount(label, of["n"], 2), cells.sum(axis=1), rtol=ROUNDING, atol=0):
            raise DecalError(
                f"{self.origin.shown}: clusters do not count as many rows as cells",
                "export all that decal sql asks for",
            )
        mean = of["s1"] / of["n"]
        spread = np.sqrt(np.maximum(of["s2"] / of["n"] - mean**2, 0.0))
        parted = counted.parted(cells, mean, spread, self.ends)
        return replace(t, design=parted.design(len(t), t.score) or t.design)

    def _table(self) -> CellTable:
        of = self.columns
        keys = [of[name] for name in ("label", "high", "low")]
        order = np.lexsort(keys)
        if (np.diff([key[order] for key in keys]) == 0).all(axis=0).any():
            # Lines of equal keys, in an order that the files do not set: sums of floats depend on the order.
            order = np.lexsort((*(of[name] for name in reversed(SUMS)), *keys))
        label, high, low = (key[order] for key in keys)
        starts = starts_of((low, high))
        first, last = low[starts], high[starts]
        apart = last[:-1] <= first[1:]
        if not apart.all():
            at = int(np.argmin(apart))
            cells = " and ".join(f"[{number(first[k])}, {number(last[k])})" for k in (at, at + 1))
            raise DecalError(
                f"{self.origin.shown}: cells {cells} overlap",
                f"aggregate all files with the same {Hint('threshold')} options",
            )
        place = run_of_each(starts, len(low)) + len(starts) * label.astype(np.int64)

        def added(names: Sequence[str]) -> Floats:
            flat = [np.bincount(place, of[name][order], 2 * len(starts)) for name in names]
            return np.array(flat, dtype=np.float64).reshape(len(names), 2, len(starts)).swapaxes(0, 1)

        least, greatest = (values[order] for values in self.ends)
        least, greatest = np.minimum.reduceat(least, starts), np.maximum.reduceat(greatest, starts)
        return CellTable.of_sums(least, greatest, added(SUMS), added(SQUARES) if self.weighted else None)

    def pairs(self) -> PairTable:
        of = self.columns
        of_a, of_b = (side._table() for side in self.sides)
        place_a, place_b = (np.unique(of[f"low{side}"], return_inverse=True)[1] for side in SIDES)
        place = place_a * len(of_b) + place_b
        # In an order that does not depend on that of the files: sums of floats do.
        order = np.lexsort((of["n"], of["label"], place))
        place, label = place[order], of["label"][order]
        starts = starts_of([place])
        cell_a, cell_b = np.divmod(place[starts], len(of_b))
        n, pos, n2, pos2 = (
            np.add.reduceat(values[order] * ones, starts)
            for values in (of["n"], self.squares("n"))
            for ones in (np.ones_like(label), label)
        )
        design: Design = weighted(n2, pos2) if self.weighted else INDEPENDENT
        if not self.weighted:
            n, pos = n.astype(np.int64), pos.astype(np.int64)
        sums = {"brier": self._sums("d1", "d2"), "log_loss": self._sums("e1", "e2")}
        # The score of a cell is that of its side, which lies in it as well.
        return CellPairs(of_a.score[cell_a], of_b.score[cell_b], n, pos, design, sides=(of_a, of_b), sums=sums)

    def _sums(self, first: str, second: str) -> Sums:
        """Sums by label of a difference d per row: of w d, shape (2,), and of w^2, w^2 d and w^2 d^2, shape (2, 3)."""

        def by_label(values: Floats) -> list[float]:
            return [float(np.sort(values[self.columns["label"] == label]).sum()) for label in (0, 1)]

        squares = [by_label(self.squares(name)) for name in ("n", first, second)]
        return np.array(by_label(self.columns[first])), np.array(squares).T

    def check_side(self) -> None:
        of = self.columns
        low, high = of["low"], of["high"]
        self.need((low >= 0) & (low <= 1), "low", "is outside [0, 1]")
        self.need((high > low) & (high <= 1) | (high == 1) & (low == 1), "high", "is not between low and 1")
        (least, greatest), (lowest, highest) = self.ends, ends(low, high)
        self.need((least >= lowest) & (least <= highest), ENDS[0], "is not between low and high")
        self.need((greatest >= least) & (greatest <= highest), ENDS[1], f"is not between {ENDS[0]} and high")
        self.need((of["label"] == 0) | (of["label"] == 1), "label", "is not 0 or 1")
        self.need_counts("rows", 1)
        if self.weighted:
            self.need_squares()
            self._need_moments(SQUARES)
        else:
            self.need(of["n"] == of["rows"], "n", "is not rows, and there is no n2 of weighted rows")
        self._need_moments(SUMS)

    def _need_moments(self, names: Sequence[str]) -> None:
        """Raise a DecalError where sums of powers are not between those of the ends, or sums of losses do not agree."""
        count, (low, high) = self.columns[names[0]], self.ends
        for power, name in enumerate(names[1:N_POWERS], 1):
            values = self.columns[name]
            sound = (values >= count * low**power * (1 - ROUNDING)) & (values <= count * high**power * (1 + ROUNDING))
            self.need(sound, name, f"cannot be the sum over {names[0]} of scores in the cell to the power of {power}")
        of_loss = names[N_POWERS:]
        first, second = (self.columns[name] for name in of_loss)
        self.need(first >= 0, of_loss[0], "is negative")
        for power, (name, values) in enumerate(zip(of_loss, (first, second), strict=True), 1):
            sound = np.isinf(values) | (values <= count * _MAX_LOSS**power)
            self.need(sound, name, f"is more than {names[0]} rows of any score can lose")
        with np.errstate(invalid="ignore", over="ignore"):
            sound = np.where(np.isinf(first), np.isinf(second), count * second >= first**2 * (1 - ROUNDING))
        self.need(sound.astype(bool), of_loss[1], f"does not agree with {of_loss[0]}")
