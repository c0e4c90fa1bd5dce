"""Features, read when someone asks for them: numeric columns, or one list-valued (embedding) column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from decal_cli.data.check import NotNumbers, Origin, Part, chunk_floats, missing_values, part_floats, plain
from decal_cli.data.files import translated
from decal_cli.data.sources import Source
from decal_cli.data.words import number, quote
from decal_cli.errors import DecalError
from decal_cli.roles import Columns


class Features:
    """The feature matrix of a data set, read at most once."""

    def __init__(self, sources: Sequence[Source], names: tuple[str, ...], columns: Columns, origin: Origin) -> None:
        self.sources = sources
        self.names = names
        self.columns = columns
        self.origin = origin
        self._matrix: np.ndarray | None = None
        self._missing: dict[str, np.ndarray] = {}

    def read(self) -> np.ndarray:
        """float64 (T, d) of every row of the data set.

        Errors: text, infinite values, lists of different lengths; missing values unless these rows may be dropped.
        """
        if self._matrix is None:
            parts = self._parts()
            if listed := _list_columns(parts):
                matrix = self._lists(parts, listed[0])
            else:
                matrix = np.empty((self.origin.count, len(self.names)))
                for part in parts:
                    here = matrix[part.start : part.start + part.table.num_rows]
                    for at, name in enumerate(self.names):
                        part_floats(part, name, here[:, at])
            self._check(matrix)
            self._matrix = matrix
        return self._matrix

    def missing(self) -> dict[str, np.ndarray]:
        """Reason -> mask of the rows whose features are incomplete; empty when there is none."""
        self.read()
        return self._missing

    def _parts(self) -> list[Part]:
        parts: list[Part] = []
        for source, known in zip(self.sources, self.origin.parts, strict=True):
            part = Part(source, source.load(self.names, ()), known.start, known.skipped)
            if part.table.num_rows != known.table.num_rows:
                raise DecalError(f"{source.shown}: changed while it was being read", "run again")
            parts.append(part)
        return parts

    def _lists(self, parts: Sequence[Part], name: str) -> np.ndarray:
        if len(self.names) > 1:
            raise DecalError(
                f"{parts[0].source.shown}: column {quote(name)} holds lists and is one of {len(self.names)} features",
                "name it alone, or name columns of numbers only",
            )
        matrix: np.ndarray | None = None
        for part in parts:
            for at, chunk in part.chunks(name):
                lengths, values = self._list_values(part, name, at, chunk)
                told = lengths[lengths >= 0]
                if matrix is None and told.size:
                    matrix = np.full((self.origin.count, int(told[0])), np.nan)
                if matrix is None:
                    continue
                wrong = (lengths >= 0) & (lengths != matrix.shape[1])
                if wrong.any():
                    row = int(wrong.argmax())
                    raise DecalError(
                        f"{self.origin.place(name, at + row)}: list of {lengths[row]} values where the first has"
                        f" {matrix.shape[1]}",
                        "give every row a list of the same length",
                    )
                # A signalling NaN, which only a damaged file has, would otherwise be announced by numpy.
                with np.errstate(invalid="ignore"):
                    matrix[at : at + len(chunk)][lengths >= 0] = values.reshape(told.size, matrix.shape[1])
        if matrix is None or not matrix.shape[1]:
            raise DecalError(
                f"{parts[0].source.shown}, column {quote(name)}: every list is empty", "name another column"
            )
        return matrix

    def _list_values(self, part: Part, name: str, at: int, chunk: Any) -> tuple[np.ndarray, np.ndarray]:
        """Length of each list, -1 where null, and all values one after the other."""
        import pyarrow as pa

        try:
            if isinstance(chunk, pa.ExtensionArray):
                chunk = chunk.storage
            if not _is_list(chunk.type):
                raise NotNumbers(str(chunk.type))
            with translated(part.source.shown, f"lists (column {quote(name)})"):
                lengths = plain(chunk.value_lengths().fill_null(-1))
                return lengths, chunk_floats(chunk.flatten())
        except NotNumbers as error:
            place = f"{part.source.shown}, column {quote(name)}, row {part.row(at) + 1}"
            raise DecalError(
                f"{place}: not a list of numbers ({error})",
                "name a column of number lists, or columns of numbers",
            ) from None

    def _check(self, matrix: np.ndarray) -> None:
        """One pass of sums finds out whether anything is wrong at all; inf and NaN survive every sum."""
        with np.errstate(invalid="ignore", over="ignore"):
            if np.isfinite(matrix.sum()):
                return
        one_list = len(self.names) == 1
        infinite = np.isinf(matrix)
        if infinite.any():
            row, at = (int(i) for i in np.argwhere(infinite)[0])
            name = self.names[0] if one_list else self.names[at]
            raise DecalError(
                f"{self.origin.place(name, row)}: feature is {number(matrix[row, at])}",
                "replace infinite features by finite numbers",
            )
        gone = np.isnan(matrix)
        rows = gone.any(axis=1)
        if not rows.any():
            return
        if self.columns.missing == "error":
            at = int(gone.any(axis=0).argmax())
            name = self.names[0] if one_list else self.names[at]
            raise missing_values(rows if one_list else gone[:, at], name, "feature", self.origin)
        self._missing = {"missing feature": rows}


def _list_columns(parts: Sequence[Part]) -> list[str]:
    """Names of the list-valued columns."""
    # Asking a schema for one field after the other takes quadratic time.
    schemas = [part.table.schema for part in parts]
    return [name for s in schemas for name, kind in zip(s.names, s.types, strict=True) if _is_list(kind)]


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    if isinstance(kind, pa.ExtensionType):
        kind = kind.storage_type
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
