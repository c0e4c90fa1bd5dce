"""Features, read when someone asks for them: columns of any kind, or one list-valued (embedding) column of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from decal_cli.data.check import NotNumbers, Origin, Part, chunk_floats, plain
from decal_cli.data.formats.csvfile import CsvSource
from decal_cli.data.formats.files import translated
from decal_cli.data.formats.jsonlines import JsonLinesSource
from decal_cli.data.formats.sources import Source
from decal_cli.data.kinds import Texts, numbers_of, slip_error, typed_kind
from decal_cli.data.words import number, quote
from decal_cli.errors import DecalError
from decal_cli.tables.features import MISSING_CODE, PLURALS, Features, Kind, kinds_text


class FeatureReader:
    """The features of a data set, read at most once.

    kinds: what the columns must hold, where a model was fitted to them; else each column says it itself. all_columns:
    whether the user named every column that has no other role.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        names: tuple[str, ...],
        origin: Origin,
        kinds: tuple[Kind, ...] | None = None,
        all_columns: bool = False,
    ) -> None:
        self.sources = sources
        self.names = names
        self.origin = origin
        self.kinds = kinds
        self.all_columns = all_columns
        self.known: Features | None = None

    def read(self) -> Features:
        """The features of every row of the data set; a missing value is a state of its own.

        Errors: infinite values, lists of different lengths, a text in a column of numbers, a column of another kind
        than it must be.
        """
        if self.known is None:
            parts = self._parts()
            if listed := _list_columns(parts):
                numbers = self._lists(parts, listed[0])
                self._check(numbers, self.names * numbers.shape[1])
                self.known = Features.of_numbers(numbers)
            else:
                self.known = self._columns(parts)
        return self.known

    @property
    def note(self) -> str | None:
        """How many columns hold what, once they were read; None where they are numbers without gaps, as one expects."""
        if self.known is None or (self.known.plain and set(self.known.kinds) <= {"number"} and not self.all_columns):
            return None
        gaps = int(self.known.gaps.sum()) + int((self.known.codes == MISSING_CODE).any(axis=0).sum())
        columns = f"{gaps:,} column{'s' if gaps > 1 else ''}"
        return f"features: {kinds_text(self.known.kinds)}" + (f"; {columns} with missing values" if gaps else "")

    def _parts(self) -> list[Part]:
        parts: list[Part] = []
        for source, known in zip(self.sources, self.origin.parts, strict=True):
            part = Part(source, source.load_typed(self.names), known.start, known.skipped)
            source.raw.check_unchanged()
            parts.append(part)
        return parts

    def _columns(self, parts: Sequence[Part]) -> Features:
        """Every column as what it holds."""
        kinds = [self._kind(parts, at) for at in range(len(self.names))]
        others = [name for name, kind in zip(self.names, kinds, strict=True) if kind != "category"]
        numbers = np.empty((self.origin.count, len(others)))
        codes: list[np.ndarray] = []
        categories: list[tuple[str, ...]] = []
        at = 0
        for k, (name, kind) in enumerate(zip(self.names, kinds, strict=True)):
            if kind == "category":
                code, names = Texts(parts, name).categories()
                codes.append(code)
                categories.append(names)
                continue
            try:
                numbers_of(parts, name, kind, numbers[:, at])
            except NotNumbers as error:
                raise self._other_kind(name, quote(str(error)), kind) from None
            if kind != "missing" and self.kinds is None and np.isnan(numbers[:1, at]).any():
                kinds[k] = "missing" if np.isnan(numbers[:, at]).all() else kind
            at += 1
        self._check(numbers, others)
        stacked = np.column_stack(codes) if codes else np.empty((self.origin.count, 0), dtype=np.int32)
        return Features(numbers, stacked, tuple(categories), tuple(kinds))

    def _kind(self, parts: Sequence[Part], at: int) -> Kind:
        """What a column holds: what it must, or what its types say, or what its texts say."""
        name = self.names[at]
        types = {part.table.schema.field(name).type for part in parts}
        kinds = {typed_kind(each) for each in types} - {"missing"}
        if self.kinds is not None:
            want = self.kinds[at]
            if not kinds <= _FITTING[want]:
                have = sorted("text" if kind is None else PLURALS[kind] for kind in kinds)
                raise self._other_kind(name, " and ".join(have), want)
            return want
        if not kinds:
            return "missing"
        if kinds <= {"number", "boolean"}:
            return "number" if "number" in kinds else "boolean"
        if kinds == {"date"}:
            return "date"
        texts = Texts(parts, name)
        written = all(isinstance(part.source, (CsvSource, JsonLinesSource)) for part in parts)
        if written and (slip := texts.slip()):
            row, text, numbers = slip
            raise slip_error(self.origin.place(name, row), text, numbers)
        return texts.kind

    def _other_kind(self, name: str, have: str, want: Kind) -> DecalError:
        return DecalError(
            f"{self.origin.shown}, column {quote(name)}: holds {have}; the model was fitted on {PLURALS[want]}",
            "give the same features, or fit the model again",
        )

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

    def _check(self, numbers: np.ndarray, names: Sequence[str]) -> None:
        """One pass of sums finds out whether anything is infinite; infinity survives every sum, as infinity or NaN."""
        with np.errstate(invalid="ignore", over="ignore"):
            if np.isfinite(numbers.sum()):
                return
        infinite = np.isinf(numbers)
        if infinite.any():
            row, at = (int(i) for i in np.argwhere(infinite)[0])
            raise DecalError(
                f"{self.origin.place(names[at], row)}: feature is {number(numbers[row, at])}",
                "replace infinite features by finite numbers",
            )


_FITTING: dict[Kind, set[Kind | None]] = {
    "number": {"number", "boolean"},
    "boolean": {"number", "boolean", None},
    "date": {"date", None},
    "category": {None},
    "missing": {"number", "boolean", "date", "category", None},
}
"""Types of columns (None: texts) that can hold what a model was fitted on."""


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
