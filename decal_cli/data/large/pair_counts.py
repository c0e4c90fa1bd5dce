"""Counts of rows by the scores of two models at once, as columns of numbers: checked, and made into pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from decal_cli.data.check import Origin
from decal_cli.data.large.counts import CLUSTER, ROUNDING, CellCounts, Counts, DistinctScores
from decal_cli.data.large.engines.aggregate import DIFFERENCES, SIDES, SQUARED_DIFFERENCES
from decal_cli.tables.aggregated import Aggregated
from decal_cli.tables.cells import CellTable
from decal_cli.tables.design import INDEPENDENT, Design, Weighted
from decal_cli.tables.estimate import Moments, moments_of
from decal_cli.tables.pairs import CellPairs, PairTable
from decal_cli.tables.table import Floats

_SHARED = ("n", "pos", "n2", "pos2", "rows", "rows_pos", "label", CLUSTER)
"""Columns that are of a row, and not of one of its scores."""


def pair_columns(kind: type[Counts], weighted: bool) -> tuple[str, ...]:
    """The columns of numbers of pairs, in levels or in cells."""
    of_side = (*kind.needed, *(kind.of_weights if weighted else ()))
    names = [each for name in of_side for each in ([name] if name in _SHARED else [name + side for side in SIDES])]
    if kind is CellCounts:
        names += [*DIFFERENCES, *(SQUARED_DIFFERENCES if weighted else ())]
    return tuple(names)


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Columns of numbers by name, shape (m,), in any order and with repetitions, which add up; kind: of each side."""

    kind: type[Counts]
    columns: Mapping[str, Floats]

    @property
    def sides(self) -> tuple[Counts, ...]:
        """The counts by the score of A, and by that of B."""
        names = (*self.kind.needed, *(self.kind.of_weights if "n2" in self.columns else ()))
        names += (CLUSTER,) if CLUSTER in self.columns else ()
        called = ({name: name if name in _SHARED else name + side for name in names} for side in SIDES)
        return tuple(self.kind({name: self.columns[each] for name, each in of.items()}, of) for of in called)

    def take(self, which: np.ndarray) -> Self:
        """These counts, by mask."""
        return type(self)(self.kind, {name: values[which] for name, values in self.columns.items()})

    @property
    def rows(self) -> tuple[Floats, Floats]:
        """Rows, and rows with label 1."""
        return self.sides[0].rows

    @property
    def scale(self) -> float:
        """The power of two that brings the mean weight near 1, as weights of rows are read."""
        return self.sides[0].scale

    def check(self, origin: Origin) -> None:
        """Raise a DecalError that names the first value that cannot be, with its file, column and row."""
        for side in self.sides:
            side.check(origin)
        of = self.columns
        for first, second, rows in (("d1", "d2", "n"), ("e1", "e2", "n"), ("g1", "g2", "n2"), ("f1", "f2", "n2")):
            if second in of:
                counts = CellCounts(of)
                for name in (first, second):
                    counts.need(np.isfinite(of[name]), name, "is missing or not finite", origin)
                sound = of[rows] * of[second] >= of[first] ** 2 * (1 - ROUNDING)
                counts.need(sound, second, f"does not agree with {first}", origin)

    def by_value(self, scale: float, values: np.ndarray, origin: Origin) -> dict[str, tuple[Aggregated, ...]]:
        """The rows of every value of a group column."""
        return {str(value): self.take(values == value).counted(scale, {}, origin) for value in np.unique(values)}

    def counted(
        self, scale: float, parts: Mapping[str, Mapping[str, tuple[Aggregated, ...]]], origin: Origin
    ) -> tuple[Aggregated, ...]:
        """The rows that these count with the score of A, and with that of B. parts: those of every group, by column."""
        pairs = self._pairs(scale, origin)
        count, ones = (int(values.sum()) for values in self.rows)
        return tuple(
            Aggregated(
                table,
                count,
                ones,
                {column: {value: both[k] for value, both in values.items()} for column, values in parts.items()},
                pairs,
                side=k,
            )
            for k, table in enumerate(pairs.tables)
        )

    def _pairs(self, scale: float, origin: Origin) -> PairTable:
        first, second = self.sides
        if isinstance(first, DistinctScores):
            of = first.added(scale, first.columns["score"], second.columns["score"])
            a, b = of.keys
            return PairTable(a, b, of.n, of.pos, of.design)
        tables = tuple(side.table(scale, origin) for side in self.sides)
        assert isinstance(tables[0], CellTable) and isinstance(tables[1], CellTable)
        return self._joint(tables[0], tables[1], scale)

    def _joint(self, of_a: CellTable, of_b: CellTable, scale: float) -> CellPairs:
        of = self.columns
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
            sums = [self._moments(1.0, names, names, "n") for names in (("d1", "d2"), ("e1", "e2"))]
            n, pos, design = n.astype(np.int64), pos.astype(np.int64), INDEPENDENT
        else:
            n2, pos2 = counts("n2")
            losses = ((("d1", "d2"), ("g1", "g2")), (("e1", "e2"), ("f1", "f2")))
            sums = [self._moments(scale, *names, "n2") for names in losses]
            n, pos, design = n * scale, pos * scale, Weighted(n2 * scale**2, pos2 * scale**2)
        squared, logarithmic = sums
        # The score of a cell is that of its side, which lies in it as well.
        a, b = of_a.score[cell_a], of_b.score[cell_b]
        return CellPairs(a, b, n, pos, design, sides=(of_a, of_b), squared=squared, logarithmic=logarithmic)

    def _moments(self, scale: float, sums: tuple[str, str], of_squares: tuple[str, str], squares: str) -> Moments:
        """Of a difference by row: sums of it, and of it and its square with squared weights, which `squares` names."""

        def summed(name: str, label: int) -> float:
            return float(np.sort(self.columns[name][self.columns["label"] == label]).sum())

        cross, second = of_squares
        parts = [[scale**2 * summed(name, label) for name in (second, cross, squares)] for label in (0, 1)]
        return moments_of(scale * sum(summed(sums[0], label) for label in (0, 1)), [(a, b, c) for a, b, c in parts])
