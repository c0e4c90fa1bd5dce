"""Engines -> Dataset: one statement counts the rows of a table or query, and its result is read as an aggregate."""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

from decal_cli.data.arrays import table_digest
from decal_cli.data.columns import Chosen, choose
from decal_cli.data.dataset import Dataset, as_used
from decal_cli.data.formats.files import Held, RawData
from decal_cli.data.large.aggregates import COUNT, TooManyRows, aggregates, dataset_of_counted, repeated
from decal_cli.data.large.engines import DIALECTS
from decal_cli.data.large.engines.connections import Connection, Engine, Opened, address_of, connected
from decal_cli.data.large.engines.dialects import Dialect, is_nested, is_whole
from decal_cli.data.large.engines.statement import (
    SIDES,
    VALUE,
    CountRequest,
    has_cells,
    size_of,
    source_of,
    statement,
    types_of,
)
from decal_cli.data.large.sampling import Given, as_typed, can_draw, drawn_rows, kind_of
from decal_cli.data.parts import nested
from decal_cli.data.words import listed, quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_CELL_COUNTS, MAX_CLUSTER_COUNTS, MAX_LEVELS
from decal_cli.roles import DECLARATIONS, DEFAULTS, ROW_UTILITIES, Columns
from decal_cli.tables.cells import GRID, MAX_SPLITS, n_coarse_cells
from decal_cli.tables.pairs import PAIR_GRID

NOT_COUNTED = ("classes", "log", "aggregated", "time")
"""Options that cannot be used with rows that an engine counts."""
OF_WHOLE_ROWS = ("proba", "per", *ROW_UTILITIES)
"""Roles of columns by which rows are counted as they are: no statement checks them, and no cell holds them."""


class CountedSource(Held):
    """The result of a statement. of_role: the user's columns by role, for errors.

    called: the request's names of columns of files, where the rows are those of files with their own digests.
    """

    note = ""

    def __init__(
        self, shown: str, table: Any, of_role: Mapping[str, str], called: Mapping[str, str] | None = None
    ) -> None:
        import pyarrow as pa

        types = types_of(table.column_names)
        of_types = pa.schema([(name, getattr(pa, types[name])()) for name in table.column_names])
        table = table.cast(of_types)
        super().__init__(shown, table, RawData(shown, lambda: _digest(table)) if called is None else None)
        self.of_role = of_role
        self.called = {ours: name for name, ours in (called or {}).items()}
        if called is not None:
            self.note = "the rows are more than are held in memory, and were counted"


def _digest(table: Any) -> str:
    """Hex digest of keys and numbers of rows, which neither the order of summation nor the thresholds change."""
    import pyarrow.compute as pc

    given, kinds, cells = table.column_names, types_of(table.column_names), has_cells(table.column_names)
    scores = ("score", *(f"score{side}" for side in SIDES))
    names = [name for name in given if name != VALUE and (kinds[name] != "float64" or name in scores)]
    sums = ["rows"] if cells else [name for name in names if kinds[name] == "int64"]
    keys = [name for name in names if name not in sums]
    if cells:
        # Add up the parts into which thresholds may have cut a cell of equal width.
        width = {"": GRID} if "cell" in names else dict.fromkeys(SIDES, PAIR_GRID)
        for side, size in width.items():
            place = pc.floor(pc.multiply(table[f"low{side}"], float(size)))
            table = table.set_column(given.index(f"cell{side}"), f"cell{side}", place)
        names = [*keys, "rows_sum"]
    if cells or "n2" in kinds:
        # Levels may have come in parts, by weight.
        table = table.group_by(keys).aggregate([(name, "sum") for name in sums])
        table = table if cells else table.rename_columns([*keys, *sums])
    by = [(name, "ascending") for name in (keys if cells else names)]
    return table_digest(table.select(names).sort_by(by).combine_chunks())


class EngineRows(NamedTuple):
    """Rows that an engine holds in a table or returns for a query. shown: their name in errors."""

    connection: Connection
    dialect: Dialect
    shown: str
    table: str = ""
    query: str = ""

    @property
    def source(self) -> str:
        """What stands after FROM."""
        return source_of(self.table, self.query, self.dialect)

    def counted(
        self, chosen: Chosen, thresholds: Sequence[float], pairs: bool, called: Mapping[str, str] | None = None
    ) -> Dataset:
        """The rows by score or, of too many, by cell. Errors: DecalError.

        Two scores are counted at once where these counts are few, or `pairs` asks for it. called: what columns of files
        are called here, whose rows are not held, though counts may tell them all.
        """
        names = {name: name for name in chosen.texts} if called is None else called
        request = CountRequest(
            *(chosen.score, chosen.label, self.table, self.query, chosen.positive, chosen.weight),
            group=tuple(names[name] for name in chosen.group),
            thresholds=tuple(thresholds),
            cluster=chosen.cluster and names[chosen.cluster],
            pairs=pairs,
            logit=chosen.logit,
        )
        if not request.positive:
            kind = self.connection.types(self.source).get(request.label, "")
            request = replace(request, whole_labels=is_whole(kind))
        together = called is None and len(chosen.score) == 2 and chosen.missing == "error"
        for levels in _levels(request, called is None, together):
            if self._may_be_few(levels):
                table = self._answer(levels, MAX_LEVELS)
                if table.num_rows <= MAX_LEVELS:
                    request = replace(request, pairs=levels.pairs)
                    break
        else:
            request = replace(request, cells=True)
            if request.by_cluster:
                request = replace(request, splits=self._splits(request))
            table = self._answer(request, MAX_CELL_COUNTS)
            if table.num_rows > MAX_CELL_COUNTS:
                raise DecalError(
                    f"{self.shown}: rows have more than {MAX_CELL_COUNTS:,} counts by group and cell",
                    f"name columns of fewer values with {Hint('group')}",
                )
        self._need_rows(table)
        of_role = {"label": request.label, "weight": request.weight, "cluster": request.cluster}
        of_role |= {} if request.pairs else {"score": request.score[0]}
        counts = Columns(
            request.score, group=request.group, cluster=request.cluster, aggregated=True, missing=chosen.missing
        )
        data = aggregates([CountedSource(self.shown, table, of_role, called)], counts, hold=called is None)
        return replace(data, columns=chosen.shown(), guessed=chosen.guessed)

    def whole(self, chosen: Chosen, types: Mapping[str, str]) -> Dataset:
        """The rows, counted by all columns that are asked for. Errors: DecalError, where they are too many to hold."""
        kinds = {name: kind_of(types[name]) for name in chosen.features}
        kinds |= dict.fromkeys(chosen.texts, "other") | dict.fromkeys(chosen.numbers, "number")
        given = Given(self.source, self.dialect, kinds)
        answer = self.connection.answer(given.counted(MAX_LEVELS + 1))
        if answer.num_rows > MAX_LEVELS:
            raise TooManyRows(
                f"{self.shown}: rows have more than {MAX_LEVELS:,} different values of {listed(list(kinds))}",
                f"round them in {Hint('query')}, or draw a sample of rows there",
            )
        self._need_rows(answer)
        table = given.named(answer).append_column(COUNT, answer.column(COUNT))
        for name in (name for name in chosen.features if kinds[name] == "other"):
            table = table.set_column(table.column_names.index(name), name, as_typed(table.column(name)))
        # No engine has an order of its own, and an error names the first row that is wrong.
        table = table.sort_by([(name, "ascending") for name in kinds]).combine_chunks()
        source_of_rows = Held(self.shown, table, RawData(self.shown, lambda: table_digest(table)))
        rows = repeated(source_of_rows, dict.fromkeys(kinds, "typed"), numbered=False)
        return dataset_of_counted([rows], chosen, ())

    def _answer(self, request: CountRequest, most: int) -> Any:
        """The counts; where there are more than `most`, one more than that."""
        return self.connection.answer(f"{statement(request, self.dialect)}\nLIMIT {most + 1}")

    def _need_rows(self, table: Any) -> None:
        if not table.num_rows:
            raise DecalError(f"{self.shown} has no rows", "name another table or query")

    def _may_be_few(self, request: CountRequest) -> bool:
        """Whether there may be few enough distinct scores to count each, judging by the first rows."""
        most = MAX_LEVELS + MAX_LEVELS // 8
        rows, *values = self._numbers(size_of(request, self.dialect, most))
        models = 1 if request.pairs else len(request.score)
        if rows < most and rows * models <= MAX_LEVELS:
            return True
        of_scores, of_texts = values[: len(request.score)], values[len(request.score) :]
        scores = math.prod(of_scores) if request.pairs else sum(of_scores)
        levels = scores * math.prod(each + 1 for each in of_texts)
        return (levels if rows == most else min(levels, rows * models)) <= MAX_LEVELS

    def _splits(self, request: CountRequest) -> int:
        """How fine the coarse cells are: as fine as the limit on counts by cluster allows."""
        rows, *values = self._numbers(size_of(request, self.dialect))
        models = len(request.score)
        texts = math.prod(each + 1 for each in values)
        splits = MAX_SPLITS
        while splits and min(rows * models, 2 * models * texts * n_coarse_cells(splits)) > MAX_CLUSTER_COUNTS:
            splits -= 1
        return splits

    def _numbers(self, statement: str) -> list[int]:
        return [int(value) for value in self.connection.answer(statement).to_pylist()[0].values()]


def _levels(request: CountRequest, hold: bool, together: bool) -> Iterator[CountRequest]:
    """Ways to count every score, the one that tells most of the rows first."""
    for pairs in (True, False) if together and not request.pairs else (request.pairs,):
        for by_weight in (True, False) if hold and request.weight else (False,):
            yield replace(request, cells=False, thresholds=(), pairs=pairs, by_weight=by_weight)


def read_engine(
    source: str | Engine, columns: Columns, thresholds: Sequence[float] = (), pairs: bool = False
) -> Dataset:
    """The rows that an engine holds, counted there. source: an address, or the Engine of a Python user.

    thresholds: those of decisions, at which cells are cut. pairs: whether rows are always counted by two scores at
    once, to compare them; else only where these counts are few. Errors: DecalError, one line, without secrets.
    """
    engine = Engine(source) if isinstance(source, str) else source
    for name in DECLARATIONS:
        if name in NOT_COUNTED and getattr(columns, name) != DEFAULTS[name]:
            option = Hint("from" if name == "log" else name)
            raise DecalError(f"{option} needs the rows, and an engine only counts them", "give a file of rows")
    name = shown = "" if isinstance(engine.connection, str) else engine.spoken
    opened: AbstractContextManager[Connection] = nullcontext(Opened(engine.connection, shown))
    table, query = engine.table or "", engine.query or ""
    if isinstance(engine.connection, str):
        address = address_of(engine.connection)
        if address.table and table:
            raise DecalError("the address names a table, and so does table=", "name it once")
        name, shown, table, opened = address.engine, address.shown, address.table or table, connected(address, query)
    digest = hashlib.sha256(query.encode(errors="surrogatepass")).hexdigest()[:8]
    of = f"query={digest}" if query else f"table={table}"
    with opened as connection:
        rows = EngineRows(connection, DIALECTS[name], f"{shown}?{of}", table, query)
        types = connection.types(rows.source)
        chosen = choose(list(types), columns, shown)
        for column in (*chosen.texts, *chosen.numbers, *chosen.features):
            if is_nested(types[column]):
                raise nested(f"{rows.shown}, column {quote(column)}", types[column])
        whole = columns.margin or any(chosen.names(role) for role in OF_WHOLE_ROWS)
        drawn = all(types.values()) and can_draw(chosen) and not chosen.proba
        if whole or (chosen.features and not (drawn and not chosen.cluster)):
            try:
                return as_used(rows.whole(chosen, types), columns)
            except TooManyRows:
                if not drawn:
                    raise
        data = rows.counted(chosen, thresholds, pairs)
        if whole or chosen.features:
            return replace(drawn_rows(connection, rows.source, chosen, rows.dialect, data), inputs=data.inputs)
        return as_used(data, columns)


def read_spark(frame: Any, columns: Columns, thresholds: Sequence[float] = (), pairs: bool = False) -> Dataset:
    """The rows of a DataFrame of Spark, counted by Spark. Errors: DecalError."""
    view = f"decal_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(view)
    try:
        data = read_engine(f"spark:?table={view}", columns, thresholds, pairs)
    except DecalError as error:
        raise DecalError(error.problem.replace(view, "frame"), error.fix) from None
    finally:
        frame.sparkSession.catalog.dropTempView(view)
    inputs = tuple(replace(each, path=each.path.replace(view, "frame")) for each in data.inputs)
    return replace(data, inputs=inputs)
