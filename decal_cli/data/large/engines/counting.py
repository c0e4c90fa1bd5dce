"""Rows of one table or query -> Dataset: one statement counts them, and its result is read as an aggregate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from decal_cli.data.arrays import table_digest
from decal_cli.data.dataset import Dataset
from decal_cli.data.formats.sources import OwnOrigin
from decal_cli.data.large.aggregates import COUNTED_BEFORE, aggregates
from decal_cli.data.large.engines.checks import VALUE
from decal_cli.data.large.engines.connections import Connection
from decal_cli.data.large.engines.dialects import Dialect, is_whole
from decal_cli.data.large.engines.statement import (
    SIDES,
    CountRequest,
    has_cells,
    size_of,
    source_of,
    statement,
    types_of,
)
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_CELL_COUNTS, MAX_CLUSTER_COUNTS, MAX_LEVELS
from decal_cli.roles import Columns
from decal_cli.tables.cells import GRID, MAX_SPLITS, n_coarse_cells
from decal_cli.tables.pairs import PAIR_GRID


class CountedSource(OwnOrigin):
    """The result of a statement. of_role: the user's columns by role, for errors.

    note: how rows were counted. called: what the user calls columns that the request calls otherwise.
    """

    note = COUNTED_BEFORE
    called: Mapping[str, str] = MappingProxyType({})

    def __init__(self, shown: str, table: Any, of_role: Mapping[str, str]) -> None:
        import pyarrow as pa

        names = table.column_names
        types = types_of(names)
        super().__init__(shown, table.cast(pa.schema([(name, getattr(pa, types[name])()) for name in names])))
        self.of_role = of_role

    def sha256(self) -> str:
        """Hex digest of keys and numbers of rows, which no order of summation and no threshold changes."""
        if has_cells(self.names):
            return table_digest(self._whole_cells())
        kinds = types_of(self.names)
        scores = ("score", *(f"score{side}" for side in SIDES))
        names = [name for name, kind in kinds.items() if name != VALUE and (kind != "float64" or name in scores)]
        table = self.table.select(names)
        if "n2" in kinds:
            # Levels may have come in parts, by weight.
            sums = [name for name in names if kinds[name] == "int64"]
            keys = [name for name in names if name not in sums]
            added = table.group_by(keys).aggregate([(name, "sum") for name in sums])
            table = added.rename_columns([*keys, *sums]).select(names)
        return table_digest(table.sort_by([(name, "ascending") for name in names]).combine_chunks())

    def _whole_cells(self) -> Any:
        """The rows of each cell of equal width, which thresholds may have cut in parts."""
        import pyarrow.compute as pc

        table = self.table
        width = {"": GRID} if "cell" in self.names else dict.fromkeys(SIDES, PAIR_GRID)
        for side, cells in width.items():
            place = pc.floor(pc.multiply(table[f"low{side}"], float(cells)))
            table = table.set_column(self.names.index(f"cell{side}"), f"cell{side}", place)
        kinds = types_of(self.names)
        keys = [name for name in self.names if kinds[name] != "float64" and name not in ("rows", VALUE)]
        return table.group_by(keys).aggregate([("rows", "sum")]).sort_by([(name, "ascending") for name in keys])


def counted(
    connection: Connection,
    request: CountRequest,
    dialect: Dialect,
    shown: str,
    missing: Literal["error", "drop"],
    source: Callable[[str, Any, Mapping[str, str]], CountedSource] = CountedSource,
    hold: bool = True,
    together: bool = False,
) -> Dataset:
    """The rows of a request, by score or, of too many, by cell. source: made of the result. Errors: DecalError.

    hold: whether the rows may be held, where counts tell them all. together: whether two scores are counted at once
    where these counts are few.
    """
    if request.positive is None:
        kind = connection.types(source_of(request.table, request.query, dialect)).get(request.label, "")
        request = replace(request, whole_labels=is_whole(kind))
    table = None
    for levels in _levels(request, hold, together):
        if _may_be_few(levels, dialect, connection):
            table = connection.answer(f"{statement(levels, dialect)}\nLIMIT {MAX_LEVELS + 1}")
            if table.num_rows <= MAX_LEVELS:
                request = replace(request, pairs=levels.pairs)
                break
    else:
        request = replace(request, cells=True)
        if request.by_cluster:
            request = replace(request, splits=_splits(request, dialect, connection))
        table = connection.answer(f"{statement(request, dialect)}\nLIMIT {MAX_CELL_COUNTS + 1}")
        if table.num_rows > MAX_CELL_COUNTS:
            raise DecalError(
                f"{shown}: rows have more than {MAX_CELL_COUNTS:,} counts by group and cell",
                f"name columns of fewer values with {Hint('group')}",
            )
    if not table.num_rows:
        raise DecalError(f"{shown}: has no rows", "name another table or query")
    of_role = {"label": request.label, "weight": request.weight or "", "cluster": request.cluster or ""}
    of_role |= {} if request.pairs else {"score": request.score[0]}
    counts = Columns(request.score, group=request.group, cluster=request.cluster, aggregated=True, missing=missing)
    return aggregates([source(shown, table, of_role)], counts, hold)


def _levels(request: CountRequest, hold: bool, together: bool) -> Iterator[CountRequest]:
    """Ways to count every score, from those that tell most of the rows on."""
    for pairs in (True, False) if together and not request.pairs else (request.pairs,):
        for by_weight in (True, False) if hold and request.weight is not None else (False,):
            yield replace(request, cells=False, thresholds=(), pairs=pairs, by_weight=by_weight)


def _may_be_few(request: CountRequest, dialect: Dialect, connection: Connection) -> bool:
    """Whether every score may be counted, as far as the first rows tell."""
    most = MAX_LEVELS + MAX_LEVELS // 8
    rows, *values = _numbers(connection, size_of(request, dialect, most))
    models = 1 if request.pairs else len(request.score)
    if rows < most and rows * models <= MAX_LEVELS:
        return True
    of_scores, of_texts = values[: len(request.score)], values[len(request.score) :]
    scores = math.prod(of_scores) if request.pairs else sum(of_scores)
    levels = scores * math.prod(each + 1 for each in of_texts)
    return (levels if rows == most else min(levels, rows * models)) <= MAX_LEVELS


def _splits(request: CountRequest, dialect: Dialect, connection: Connection) -> int:
    """How fine the coarse cells are, so that clusters have no more counts of them than are kept."""
    rows, *values = _numbers(connection, size_of(request, dialect))
    models = len(request.score)
    texts = math.prod(each + 1 for each in values)
    splits = MAX_SPLITS
    while splits and min(rows * models, 2 * models * texts * n_coarse_cells(splits)) > MAX_CLUSTER_COUNTS:
        splits -= 1
    return splits


def _numbers(connection: Connection, statement: str) -> list[int]:
    return [int(value) for value in connection.answer(statement).to_pylist()[0].values()]
