"""Rows to be scored, batch by batch with every column of the file, so that memory does not grow with the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from decal_cli.data.check import group, group_names, holds_texts, may_be_text, scores_of
from decal_cli.data.columns import ClassColumns, nearest_of
from decal_cli.data.features import FeatureReader
from decal_cli.data.formats.csvfile import CsvSource, as_numbers
from decal_cli.data.formats.files import Held, Source, Wanted, no_rows
from decal_cli.data.formats.jsonlines import JsonLinesSource
from decal_cli.data.formats.sources import open_source
from decal_cli.data.parts import Origin, Part, chunk_floats, is_text
from decal_cli.data.words import listed
from decal_cli.errors import DecalError
from decal_cli.roles import Columns
from decal_cli.tables.features import Features, Kind
from decal_cli.tables.rows import Unlabelled


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a file. table: pyarrow, every column in the file's order.

    known: bool (rows of the table,), which rows lack no value. rows: the rows that lack none, to be scored.
    """

    table: Any
    known: np.ndarray
    rows: Unlabelled


class NewRows:
    """A file of rows that a model is to score."""

    def __init__(
        self,
        path: str | Source,
        columns: Columns,
        kinds: tuple[Kind, ...],
        stdin: BinaryIO | None = None,
        typed: bool = False,
    ) -> None:
        """path: of a file, or rows in memory. columns: one score, or the probabilities of several classes, features and
        groups by exact name.

        kinds: of every column of the features. typed: whether the rows go where numbers are told from texts; else a CSV
        file's cells are left as they are.
        """
        self.source = open_source(path, stdin) if isinstance(path, str) else path
        self.columns, self.kinds = columns, kinds
        self.names = list(self.source.names)
        if repeated := [name for name, times in Counter(self.names).items() if times > 1]:
            raise DecalError(f"{self.source.shown}: duplicate column {listed(repeated)}", "rename one of the two")
        for name in (*columns.score, *columns.proba, *columns.features, *columns.group):
            nearest_of(name, self.names, self.source.shown, after=", which the model was fitted on")
        # A list-valued column has a kind for each of its numbers.
        numbers = [name for name, kind in zip(columns.features, kinds, strict=False) if kind == "number"]
        # Scores such as '90%' stay as they are written in the rows that go out.
        scores = columns.score if may_be_text(columns) else ()
        texts = [name for name in scores if holds_texts(self.source, name)]
        self._numbers = {*columns.score, *columns.proba, *numbers} - {*texts}
        # Numbers go out as they came in: 00501 is not 501, and a float64 holds 15 digits.
        lists = self.source.lists & self._numbers if isinstance(self.source, JsonLinesSource) else ()
        self.wanted: Wanted = {name: "numbers" if name in lists else "typed" for name in self.names}
        self._as_texts = isinstance(self.source, CsvSource | JsonLinesSource)
        self._types: dict[str, Any] = {}
        if typed and isinstance(self.source, CsvSource):
            self._types = dict.fromkeys(self._numbers) | self.source.types(self.names)

    def batches(self) -> Iterator[Batch]:
        """All rows. Errors: DecalError for a score or feature that is not what the model was fitted on."""
        # Read as the batches are: a column that is a number there too has other texts, such as 1.0 as 1.
        called = {
            name: group_names((part for part, _ in self._parts({name: self.wanted[name]})), name)
            for name in self.columns.group
        }
        before = 0
        for part, table in self._parts(self.wanted):
            yield self._batch(part, self._kept(table), called)
            before += table.num_rows
        self.source.raw.check_unchanged()
        if not before:
            raise no_rows(self.source.shown)

    def _parts(self, wanted: Wanted) -> Iterator[tuple[Part, Any]]:
        """The rows of these columns, batch by batch, each also as the table that was read."""
        before = 0
        for table in self.source.batches(wanted):
            if table.num_rows:
                judged = self._with_numbers(table) if self._as_texts else table
                yield Part(Held(self.source.shown, judged, self.source.raw, self.source), judged, 0, before), table
                before += table.num_rows

    def _with_numbers(self, table: Any) -> Any:
        """Scores and numbers in place of their texts. Errors: DecalError, where one is no number."""
        import pyarrow as pa

        for at, name in enumerate(table.schema.names):
            if name in self._numbers and is_text(table.schema.types[at]):
                values = as_numbers(table.column(name).cast(pa.string()))
                if values is None:
                    # Read as numbers it raises, and names the row.
                    self.source.load({name: "numbers"})
                table = table.set_column(at, name, values)
        return table

    def _batch(self, part: Part, kept: Any, called: Mapping[str, Mapping[str, str]]) -> Batch:
        parts, columns = Origin([part]), self.columns
        score = np.zeros(parts.n_rows)
        if names := columns.proba or columns.score:
            model = ClassColumns(listed(names), names, columns.proba)
            score, _ = scores_of(parts, model, columns)
        known = ~parts.incomplete.get("missing score", np.zeros(len(score), dtype=bool))
        features = self._features(parts) if columns.features else None
        groups = {column: group(parts, column, called[column]) for column in columns.group}
        rows = Unlabelled(score, classes=columns.proba, groups=groups, features=features)
        return Batch(kept, known, rows.take(known))

    def _kept(self, table: Any) -> Any:
        """Every column as it goes out."""
        import pyarrow as pa

        columns = dict(zip(table.schema.names, table.columns, strict=True))
        if isinstance(self.source, CsvSource):
            # A dictionary is how its texts are read, and none of the file's.
            columns = {name: column.cast(pa.string()) for name, column in columns.items()}
        for name, kind in self._types.items():
            columns[name] = as_numbers(columns[name], kind)
        return pa.table(columns).replace_schema_metadata(table.schema.metadata)

    def _features(self, origin: Origin) -> Features:
        import pyarrow as pa

        (part,), names = origin, self.columns.features
        if len(names) == 1:
            chunks = [chunk for _, chunk in part.chunks(names[0])]
            if all(chunk.null_count == len(chunk) for chunk in chunks) or (
                pa.types.is_floating(chunks[0].type) and all(np.isnan(chunk_floats(chunk)).all() for chunk in chunks)
            ):
                # A list-valued column has nothing else to look at.
                return Features.missing(origin.n_rows, self.kinds)
        kinds = self.kinds if len(names) == len(self.kinds) else None
        features = FeatureReader(names, origin, kinds).read()
        if len(features.kinds) != len(self.kinds):
            raise DecalError(
                f"{self.source.shown}: the features hold {len(features.kinds)} numbers a row; the model was fitted on"
                f" {len(self.kinds)}",
                "give the same features",
            )
        return features
