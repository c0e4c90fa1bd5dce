"""Engines -> Dataset: one statement counts the rows there, and its result is read as an aggregate."""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from decal_cli.data.arrays import table_digest
from decal_cli.data.capacity import as_used
from decal_cli.data.columns import choose
from decal_cli.data.dataset import Dataset
from decal_cli.data.formats.sources import OwnOrigin
from decal_cli.data.large.aggregates import aggregates
from decal_cli.data.large.engines.address import address_of
from decal_cli.data.large.engines.aggregate import SIDES, has_cells, types_of
from decal_cli.data.large.engines.checks import VALUE
from decal_cli.data.large.engines.connections import Connection, connected
from decal_cli.data.large.engines.dialects import DIALECTS, Dialect
from decal_cli.data.large.engines.drawing import drawn_rows
from decal_cli.data.large.engines.opened import Engine, Opened
from decal_cli.data.large.engines.request import CountRequest, checked
from decal_cli.data.large.engines.statement import count_of_rows, count_of_values, source_of, statement
from decal_cli.data.large.sampling import can_draw
from decal_cli.errors import DecalError
from decal_cli.limits import MAX_CLUSTER_COUNTS, MAX_LEVELS
from decal_cli.roles import DECLARATIONS, DEFAULTS, Columns
from decal_cli.tables.cell_pairs import PAIR_GRID
from decal_cli.tables.cells import GRID, MAX_SPLITS, n_coarse_cells

COUNTABLE = (
    *("score", "label", "weight", "group", "cluster", "features", "positive", "missing", "logit"),
    *("prevalence", "sampled_negatives", "keep_scores", "capacity"),
)
"""What can be said of the columns of rows that an engine counts."""


def read_engine(
    engine: str,
    columns: Columns,
    query: str | None = None,
    thresholds: Sequence[float] = (),
    pairs: bool = False,
    table: str | None = None,
) -> Dataset:
    """The rows that an engine holds, counted there. thresholds: of decisions, at which cells are cut.

    pairs: whether rows are counted by two scores at once, for what compares them. table: where the address names none.

    Errors: DecalError, one line, without what is secret.
    """
    address = address_of(engine)
    _refuse_of_rows(columns)
    if address.table is not None and table is not None:
        raise DecalError("the address names a table, and so does table=", "name it once")
    rows = _Rows(address.shown, DIALECTS[address.engine], address.table or table, query)
    with connected(address, query) as connection:
        return rows.counted(connection, columns, thresholds, pairs)


def read_connection(engine: Engine, columns: Columns, thresholds: Sequence[float] = (), pairs: bool = False) -> Dataset:
    """The same of an engine that a Python user names, by a connection that stays open or by its address."""
    if isinstance(engine.connection, str):
        return read_engine(engine.connection, columns, engine.query, thresholds, pairs, engine.table)
    _refuse_of_rows(columns)
    rows = _Rows(engine.spoken, DIALECTS[engine.spoken], engine.table, engine.query)
    return rows.counted(Opened(engine.connection, engine.spoken), columns, thresholds, pairs)


def _refuse_of_rows(columns: Columns) -> None:
    for name in DECLARATIONS:
        if name not in COUNTABLE and getattr(columns, name) != DEFAULTS[name]:
            option = "--from" if name == "log" else f"--{name.replace('_', '-')}"
            raise DecalError(f"{option} needs the rows, and an engine only counts them", "give a file of rows")


class _Rows(NamedTuple):
    """Rows that an engine holds, and what the engine is called."""

    engine: str
    dialect: Dialect
    table: str | None
    query: str | None

    @property
    def shown(self) -> str:
        """The engine, and its table or a digest of the query."""
        if self.query is None:
            return f"{self.engine}?table={self.table}"
        return f"{self.engine}?query={hashlib.sha256(self.query.encode()).hexdigest()[:8]}"

    def counted(self, connection: Connection, columns: Columns, thresholds: Sequence[float], pairs: bool) -> Dataset:
        """The data set of them. Errors: DecalError."""
        source = source_of(self.table, self.query, self.dialect)
        chosen = choose(connection.names(source), columns, self.engine)
        if chosen.features and (pairs or not connection.types(source) or not can_draw(columns, chosen)):
            raise DecalError(
                "--features of an engine are of a sample of single rows, which compare, --cluster, --logit, another "
                "population and connections that are open already do not take",
                "drop these, or give a file of rows",
            )
        rows = (chosen.score, chosen.label, self.table, self.query, columns.positive, chosen.weight, chosen.group)
        request = checked(CountRequest(*rows, cluster=chosen.cluster, pairs=pairs, logit=columns.logit))
        size = _size(request, self.dialect, connection)
        if size.levels > MAX_LEVELS:
            request = checked(replace(request, cells=True, thresholds=tuple(thresholds), splits=size.splits))
        table = connection.answer(statement(request, self.dialect))
        if not table.num_rows:
            raise DecalError(f"{self.shown}: has no rows", "name another table or query")
        of_role = {"label": chosen.label, "weight": chosen.weight or "", "cluster": chosen.cluster or ""}
        of_role |= {} if pairs else {"score": chosen.score[0]}
        counts = Columns(
            chosen.score, group=chosen.group, cluster=chosen.cluster, aggregated=True, missing=columns.missing
        )
        data = aggregates([CountedSource(self.shown, table, of_role)], counts)
        if chosen.features:
            drawn = drawn_rows(connection, source, chosen, columns, self.dialect, data)
            return replace(drawn, inputs=data.inputs, guessed=chosen.guessed)
        return as_used(replace(data, columns=chosen.roles(), guessed=chosen.guessed), columns)


def read_spark(frame: Any, columns: Columns, thresholds: Sequence[float] = (), pairs: bool = False) -> Dataset:
    """The rows of a DataFrame of Spark, counted by Spark. Errors: DecalError."""
    view = f"decal_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(view)
    try:
        data = read_engine(f"spark:?table={view}", columns, None, thresholds, pairs)
    except DecalError as error:
        raise DecalError(error.problem.replace(view, "frame"), error.fix) from None
    finally:
        frame.sparkSession.catalog.dropTempView(view)
    inputs = tuple(replace(each, path=each.path.replace(view, "frame")) for each in data.inputs)
    return replace(data, inputs=inputs)


class _Size(NamedTuple):
    """How much there is to count, about and at most. levels: rows that levels would have. splits: of coarse cells."""

    levels: int
    splits: int = MAX_SPLITS


def _size(request: CountRequest, dialect: Dialect, connection: Connection) -> _Size:
    def counts(statement: str) -> list[int]:
        return [int(value) for value in connection.answer(statement).to_pylist()[0].values()]

    (rows,) = counts(count_of_rows(request, dialect))
    models = len(request.score)
    most = rows if request.pairs else rows * models
    if most <= MAX_LEVELS:
        return _Size(most)
    values = counts(count_of_values(request, dialect))
    scores = math.prod(values[:models]) if request.pairs else sum(values[:models])
    texts = math.prod(each + 1 for each in values[models:])
    splits = MAX_SPLITS
    while splits and min(most, 2 * models * texts * n_coarse_cells(splits)) > MAX_CLUSTER_COUNTS:
        splits -= 1
    return _Size(min(most, scores * texts), splits)


class CountedSource(OwnOrigin):
    """The result of a statement. of_role: the user's columns by role, for errors."""

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
        keys = [name for name, kind in kinds.items() if name != VALUE and (kind != "float64" or name in scores)]
        return table_digest(self.table.select(keys).sort_by([(name, "ascending") for name in keys]).combine_chunks())

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
