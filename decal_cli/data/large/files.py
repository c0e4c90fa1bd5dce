"""Files larger than memory -> Dataset: a DuckDB in this process counts their rows, as any engine does.

It reads Parquet of plain types itself. Of anything else it gets batches that were read and checked here, so that a CSV
file means the same whatever its size.
"""

from __future__ import annotations

import os
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from decal_cli.data.columns import Chosen
from decal_cli.data.dataset import Dataset, Digests, InputCounts
from decal_cli.data.formats.files import Source
from decal_cli.data.formats.sources import parquet_schema
from decal_cli.data.large.aggregates import memory
from decal_cli.data.large.batches import BatchReader, Progress
from decal_cli.data.large.engines.counting import EngineRows
from decal_cli.data.large.engines.dialects import is_missing, is_positive, is_whole
from decal_cli.data.large.engines.kinds.duckdb import DuckDB
from decal_cli.data.large.engines.statement import RESERVED
from decal_cli.data.words import quote
from decal_cli.errors import DecalError
from decal_cli.limits import HELD_SHARE_OF_MEMORY

ROLES_OF_COUNTS = {"score", "label", "weight", "group", "cluster"}
TABLE = "decal_files"
_DIALECT = DuckDB.dialect
_SECONDS = 0.2
"""Seconds between two looks at how far DuckDB is."""


def can_count(chosen: Chosen, pairs: bool) -> bool:
    """Whether counts say what is asked of these columns."""
    # Cells of two scores do not hold clusters.
    unpaired = pairs and (len(chosen.score) != 2 or chosen.cluster)
    return chosen.as_they_stand and not unpaired and chosen.roles().keys() <= ROLES_OF_COUNTS


def count_files(
    sources: Sequence[Source],
    chosen: Chosen,
    thresholds: Sequence[float] = (),
    progress: Progress = lambda rows, total: None,
    pairs: bool = False,
) -> Dataset:
    """The rows counted, and never held. thresholds: of decisions, at which counts are exact. Errors: DecalError."""
    digests, called = Digests(sources), _called(chosen, sources[0].shown)
    kind = _ParquetFiles if _are_plain(sources, chosen) else _Batches
    with closing(kind(BatchReader(sources, chosen, progress), called)) as files:
        shown = sources[0].shown if len(sources) == 1 else f"{len(sources)} files"
        with files.errors():
            data = EngineRows(files, _DIALECT, shown, TABLE).counted(files.chosen, thresholds, pairs, called)
            rows = files.inputs()
    return replace(data, inputs=digests.inputs(rows), notes=(*files.reader.notes, *data.notes))


def _called(chosen: Chosen, shown: str) -> dict[str, str]:
    """New names of columns for DuckDB, to which 'P' and 'p' are one name: no group may be named as a sum is."""
    called: dict[str, str] = {}
    others = (chosen.label, *chosen.score, *chosen.names("weight"))
    for name in (*others, *(each for each in chosen.read if each not in others)):
        taken = {each.lower() for each in called.values()}
        if name in others and name.lower() in taken:
            raise DecalError(f"{shown}: two columns are called {quote(name)}, but for capitals", "rename one of them")
        ours = name
        while name not in others and ours.lower() in taken | RESERVED:
            ours = f"column {ours}"
        called[name] = ours
    return called


def _are_plain(sources: Sequence[Source], chosen: Chosen) -> bool:
    """Whether DuckDB can read these columns of all files, and with the same meaning as here."""
    import pyarrow as pa

    texts = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string)
    numbers = (pa.types.is_integer, pa.types.is_float32, pa.types.is_float64)
    names = chosen.read
    schemas = [parquet_schema(source, names) for source in sources]
    if any(schema is None for schema in schemas):
        return False
    kinds = {tuple(schema.field(name).type for name in names) for schema in schemas}
    return len(kinds) == 1 and all(
        any(is_kind(kind) for is_kind in (numbers if name in chosen.numbers else texts))
        for name, kind in zip(names, kinds.pop(), strict=True)
    )


class _Files(DuckDB):
    """Files as a table of a DuckDB in memory, which nothing of a user enters but names and paths, quoted."""

    def __init__(self, reader: BatchReader, called: Mapping[str, str]) -> None:
        import duckdb

        self.reader, self.called = reader, called
        self.chosen = reader.chosen
        self.connection = duckdb.connect(
            config={
                "memory_limit": f"{int(HELD_SHARE_OF_MEMORY * memory())}B",
                # DuckDB makes and removes it, where it needs more.
                "temp_directory": os.path.join(tempfile.gettempdir(), f"decal-{uuid.uuid4().hex}"),
                "preserve_insertion_order": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "python_enable_replacements": False,
            }
        )
        self.connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")

    def _select(self, text: str) -> Any:
        # Every statement is one of ours.
        return text


class _Batches(_Files):
    """Files of any format, read here: labels are 0 and 1 then, and scores probabilities."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.chosen = replace(self.chosen, positive="", logit=False)
        self.error: BaseException | None = None
        self.connection.register(TABLE, self)

    def __arrow_c_stream__(self, requested: Any = None) -> Any:
        """The rows from the start, as often as DuckDB asks."""
        import pyarrow as pa

        fields = [field.with_name(self.called[field.name]) for field in self.reader.schema]
        return pa.RecordBatchReader.from_batches(pa.schema(fields), self._rows()).__arrow_c_stream__(requested)

    def _rows(self) -> Iterator[Any]:
        try:
            for _, _, batch in self.reader.read():
                yield batch.rename_columns([self.called[name] for name in batch.schema.names])
        except GeneratorExit:
            raise
        except BaseException as error:
            self.error = error
            raise

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Within it, an error of reading is raised as it was, and not as DuckDB words it."""
        try:
            yield
        except Exception:
            if not self.error:
                raise
            raise self.error from None

    def inputs(self) -> list[InputCounts]:
        """What every file holds."""
        return self.reader.read_inputs


class _ParquetFiles(_Files):
    """Parquet files that DuckDB reads."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.paths = [source.raw.path for source in self.reader.sources]
        listed = ", ".join(map(_DIALECT.text, self.paths))
        self.files = f"read_parquet([{listed}], hive_partitioning = false, filename = 'decal_file')"
        columns = (f"{_DIALECT.name(name)} AS {_DIALECT.name(ours)}" for name, ours in self.called.items())
        with self.errors():
            self.connection.execute(f"CREATE VIEW {TABLE} AS SELECT {', '.join(columns)} FROM {self.files}")

    def answer(self, statement: str) -> Any:
        done = threading.Event()

        def watch() -> None:
            while not done.wait(_SECONDS):
                share, total = self.connection.query_progress(), self.reader.total
                if total and share > 0:
                    self.reader.progress(int(total * share / 100), total)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            return super().answer(statement)
        finally:
            done.set()
            watcher.join()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Within it, an error makes the files be read again here: DuckDB tells neither the file nor the row."""
        import duckdb

        try:
            yield
        except (DecalError, duckdb.Error) as error:
            self.reader.progress = lambda rows, total: None
            for _ in self.reader.read():
                pass
            if isinstance(error, DecalError):
                raise
            for source in self.reader.sources:
                source.raw.check_unchanged()
            raise DecalError(
                f"{self.reader.sources[0].shown}: {str(error).splitlines()[0]}", "write it again"
            ) from None

    def inputs(self) -> list[InputCounts]:
        """What every file holds."""
        label = _DIALECT.name(self.chosen.label)
        whole = not self.chosen.positive and is_whole(self.types(TABLE)[self.chosen.label])
        text = f"TRIM({_DIALECT.as_text(label)})"
        is_one = f"{label} = 1" if whole else is_positive(text, self.chosen.positive or "1", _DIALECT)
        absent = f"{label} IS NULL" if whole else is_missing(text, _DIALECT)
        # DuckDB takes twice as long to count with FILTER.
        sums = ", ".join(f"SUM(CASE WHEN {which} THEN 1 ELSE 0 END)" for which in (is_one, absent))
        counted = f"SELECT decal_file, COUNT(*), {sums} FROM {self.files} GROUP BY ALL"
        of_path = {path: tuple(found) for path, *found in self.connection.execute(counted).fetchall()}
        return [of_path[path] for path in self.paths]
