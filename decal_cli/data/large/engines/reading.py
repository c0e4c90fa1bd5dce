"""Engines -> Dataset: one statement counts the rows there, and its result is read as an aggregate."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from decal_cli.data.arrays import table_digest
from decal_cli.data.columns import Chosen, choose
from decal_cli.data.dataset import Dataset
from decal_cli.data.formats.sources import OwnOrigin
from decal_cli.data.large.aggregates import COUNTED_BEFORE
from decal_cli.data.large.engines.address import address_of
from decal_cli.data.large.engines.connections import Connection, Engine, Opened, connected
from decal_cli.data.large.engines.counting import counted
from decal_cli.data.large.engines.dialects import DIALECTS, Dialect
from decal_cli.data.large.engines.drawing import Given, drawn_rows, kind_of
from decal_cli.data.large.engines.statement import CountRequest, source_of
from decal_cli.data.large.repeated import COUNT, dataset_of_counted, repeated
from decal_cli.data.large.sampling import as_typed, can_draw
from decal_cli.data.population import as_used
from decal_cli.data.words import listed
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_LEVELS
from decal_cli.roles import DECLARATIONS, DEFAULTS, ROW_UTILITIES, Columns

NOT_COUNTED = ("classes", "log", "aggregated")
"""What cannot be said of the columns of rows that an engine counts."""
OF_WHOLE_ROWS = ("proba", "per", *ROW_UTILITIES)
"""Roles of columns by which rows are counted as they are: no statement checks them, and no cell holds them."""


def read_engine(
    engine: str,
    columns: Columns,
    query: str | None = None,
    thresholds: Sequence[float] = (),
    pairs: bool = False,
    table: str | None = None,
) -> Dataset:
    """The rows that an engine holds, counted there. thresholds: of decisions, at which cells are cut.

    pairs: whether rows are counted by two scores at once, for what compares them; else they are where these counts are
    few. table: where the address names none.

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
        if name in NOT_COUNTED and getattr(columns, name) != DEFAULTS[name]:
            option = Hint("from" if name == "log" else name)
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
        types = connection.types(source)
        chosen = choose(list(types), columns, self.engine)
        whole = columns.margin or any(chosen.names(role) for role in OF_WHOLE_ROWS)
        if whole or (chosen.features and not (all(types.values()) and can_draw(columns, chosen))):
            return as_used(self._rows(connection, source, chosen, columns, types), columns)
        rows = (chosen.score, chosen.label, self.table, self.query, columns.positive, chosen.weight, chosen.group)
        request = CountRequest(
            *rows, cluster=chosen.cluster, pairs=pairs, logit=columns.logit, thresholds=tuple(thresholds)
        )
        together = len(chosen.score) == 2 and columns.missing == "error"
        data = counted(connection, request, self.dialect, self.shown, columns.missing, together=together)
        if chosen.features:
            drawn = drawn_rows(connection, source, chosen, columns, self.dialect, data)
            return replace(drawn, inputs=data.inputs, guessed=chosen.guessed)
        return as_used(replace(data, columns=chosen.roles(), guessed=chosen.guessed), columns)

    def _rows(
        self, connection: Connection, source: str, chosen: Chosen, columns: Columns, types: Mapping[str, str]
    ) -> Dataset:
        """The rows, counted by all columns that are asked for. Errors: DecalError, where they are too many to hold."""
        numbers = tuple(dict.fromkeys(chosen.numbers))
        kinds = {name: kind_of(types[name]) for name in chosen.features}
        kinds |= dict.fromkeys(chosen.texts, "other") | dict.fromkeys(numbers, "number")
        given = Given(source, self.dialect, kinds)
        answer = connection.answer(given.counted(MAX_LEVELS + 1))
        if answer.num_rows > MAX_LEVELS:
            raise DecalError(
                f"{self.shown}: rows have more than {MAX_LEVELS:,} different values of {listed(list(kinds))}",
                f"round them in {Hint('query')}, or draw a sample of rows there",
            )
        if not answer.num_rows:
            raise DecalError(f"{self.shown}: has no rows", "name another table or query")
        table = given.named(answer).append_column(COUNT, answer.column(COUNT))
        for name in (name for name in chosen.features if kinds[name] == "other"):
            table = table.set_column(table.column_names.index(name), name, as_typed(table.column(name)))
        # No engine has an order of its own, and an error names the first row that is wrong.
        table = table.sort_by([(name, "ascending") for name in kinds]).combine_chunks()
        rows = repeated(RowsOfEngine(self.shown, table), list(kinds), numbers, numbered=False)
        unknown = () if chosen.features else (f"{COUNTED_BEFORE}: nothing that needs a single row is known (features)",)
        return dataset_of_counted([rows], columns, unknown)


class RowsOfEngine(OwnOrigin):
    """The answer of an engine: rows, and how many there are of each."""

    def sha256(self) -> str:
        return table_digest(self.table)


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
