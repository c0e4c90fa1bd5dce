"""Rows to be scored, batch by batch with every column of the file, so that memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from decal_cli.read.check import Part, Rows, checked_scores, floats
from decal_cli.read.csvfile import no_rows
from decal_cli.read.features import Features
from decal_cli.read.labels import group
from decal_cli.read.sources import Source, open_source
from decal_cli.read.words import listed, nearest, oops, quote
from decal_cli.settings import Columns


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a file. table: pyarrow, every column in the file's order.

    score: float64 (k,) in [0, 1]; features: float64 (k, d) or None; groups: str (k, g) or None: of the rows in `known`,
    bool (rows,), which leaves out those that lack a value.
    """

    table: Any
    known: np.ndarray
    score: np.ndarray
    features: np.ndarray | None
    groups: np.ndarray | None


class NewRows:
    """A file of rows that a model is to score."""

    def __init__(self, path: str, columns: Columns, width: int, stdin: BinaryIO | None) -> None:
        """columns: one score, features and groups by exact name; width: numbers per row that the features hold."""
        self.source = open_source(path, stdin)
        self.columns = columns
        self.width = width
        self.names = list(self.source.names)
        for name in (*columns.score, *columns.features, *columns.group):
            if name not in self.names:
                near = nearest(name, self.names)
                hint = f"did you mean {quote(near)}? " if near else ""
                raise oops(
                    f"{self.source.shown}: no column {quote(name)}, which the model was fitted on",
                    f"{hint}columns: {listed(self.names)}",
                )

    def batches(self) -> Iterator[Batch]:
        """All rows. Errors: DecalError for a score or feature that is not what the model was fitted on."""
        numbers = list(dict.fromkeys((*self.columns.score, *self.columns.features)))
        texts = [name for name in self.names if name not in numbers]
        before = 0
        for table in self.source.batches(numbers, texts):
            if table.num_rows:
                yield self._batch(table.select(self.names), before)
                before += table.num_rows
        if not before:
            raise no_rows(self.source.shown)

    def _batch(self, table: Any, before: int) -> Batch:
        part = Part(self.source, table, 0, before)
        rows = Rows([part])
        name = self.columns.score[0]
        score, missing = checked_scores(floats([part], name), name, rows, self.columns)
        known = np.ones(len(score), dtype=bool) if missing is None else ~missing
        features = None
        if self.columns.features:
            features, gaps = self._features(part, rows)
            for mask in gaps.values():
                known &= ~mask
        groups = [group([part], column) for column in self.columns.group]
        return Batch(
            table,
            known,
            score[known],
            None if features is None else features[known],
            np.column_stack(groups)[known] if groups else None,
        )

    def _features(self, part: Part, rows: Rows) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        found = Features([_Loaded(self.source, part.table)], self.columns.features, self.columns, rows)
        matrix, gaps = found.read(), found.missing()
        if matrix.shape[1] != self.width:
            raise oops(
                f"{self.source.shown}: the features hold {matrix.shape[1]} numbers a row; the model was fitted on"
                f" {self.width}",
                "give the same features",
            )
        return matrix, gaps


class _Loaded:
    """A batch that acts as a source, for those who read whole columns."""

    def __init__(self, source: Source, table: Any) -> None:
        self.raw = source.raw
        self.shown = source.shown
        self.names = source.names
        self.line = source.line
        self.table = table

    def load(self, numbers: Sequence[str], texts: Sequence[str]) -> Any:
        return self.table.select([*numbers, *texts])

    def batches(self, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Any]:
        yield self.load(numbers, texts)
