"""Rows of a data set as pyarrow has them, where each stands in the files; columns as numbers, or as texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from decal_cli.data.formats.files import Source, Wanted, no_rows, translated
from decal_cli.data.formats.sources import ParquetSource
from decal_cli.data.words import NUMBER, number, quote, text_of, value_of
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_HELD_BYTES
from decal_cli.roles import Columns
from decal_cli.tables.table import BLOCK
from decal_cli.tables.units import runs

FIRST_ROWS = 5
MISSING_CODE = -1


@dataclass(frozen=True)
class Part:
    """The rows of one input within the data set: its table and the number of rows before it.

    skipped: rows of the input that stand before the table, where it is read in batches.
    """

    source: Source
    table: Any
    start: int
    skipped: int = 0

    def row(self, row: int) -> int:
        """Row of the input, from 0, that is this row of the data set."""
        return self.source.row(row - self.start + self.skipped)

    def type_of(self, name: str) -> Any:
        """The pyarrow type of a column."""
        return self.table.schema.field(self._place(name)).type

    def _place(self, name: str) -> int:
        return int(self.table.schema.get_field_index(name))

    def chunks(self, name: str) -> Iterator[tuple[int, Any]]:
        """Row of the data set at which each non-empty chunk of a column starts, and the chunk."""
        at = self.start
        column = self.table.column(self._place(name))
        for chunk in column.chunks if hasattr(column, "chunks") else [column]:
            if len(chunk):
                yield at, chunk
            at += len(chunk)

    def pieces(self, name: str) -> Iterator[tuple[int, Any]]:
        """The pieces of a column and the row at which each starts, as `chunks` gives them, but read with little memory.

        Only for code that looks at each piece once.
        """
        return self.table.pieces(name, self.start) if isinstance(self.table, _Deferred) else self.chunks(name)


class _Deferred:
    """A large Parquet file in place of a table: each column is read when it is asked for, and not kept."""

    def __init__(self, source: ParquetSource) -> None:
        self.source, self.schema, self.num_rows = source, source.schema, source.count

    def column(self, at: int) -> Any:
        """A column, by its place in the schema."""
        column = self.source.load({self.schema.names[at]: "typed"}).column(0)
        self._check(len(column))
        return column

    def pieces(self, name: str, at: int) -> Iterator[tuple[int, Any]]:
        """A column piece by piece, each with its first row; at: the number of rows before."""
        end = at + self.num_rows
        for batch in self.source.batches({name: "typed"}):
            if at + batch.num_rows > end:
                break
            yield at, batch.column(0)
            at += batch.num_rows
        self._check(self.num_rows - (end - at))

    def _check(self, rows: int) -> None:
        """Raise a DecalError where a column has not as many rows as the metadata says, as in a damaged file."""
        if rows != self.num_rows:
            raise DecalError(f"{self.source.shown} does not have the rows that it says", "write or copy it again")


class Origin(list[Part]):
    """The parts of a data set, where each row stands in the user's files, and which rows lack a value.

    incomplete: by what they lack, such as 'missing score', the mask of rows, (T,), where there are some.
    """

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        super().__init__(parts)
        self.incomplete: dict[str, np.ndarray] = {}

    @property
    def n_rows(self) -> int:
        """Number of rows, T."""
        return self[-1].start + self[-1].table.num_rows

    @property
    def shown(self) -> str:
        """The file, or how many there are."""
        return self[0].source.shown if len(self) == 1 else f"{len(self)} files"

    def typed(self, names: Iterable[str]) -> Origin:
        """These columns of the rows, each as what it is."""
        wanted: Wanted = dict.fromkeys(names, "typed")
        return Origin(replace(part, table=part.source.load(wanted)) for part in self)

    def of_column(self, name: str) -> str:
        """'preds.csv, column 'p''."""
        return f"{self.shown}, column {quote(name)}"

    def part_of(self, row: int) -> Part:
        """The part that holds a row."""
        return next(part for part in reversed(self) if part.start <= row)

    def place(self, column: str, row: int) -> str:
        """'preds.csv, column 'p', row 3 (line 4)'; rows count from 1."""
        part = self.part_of(row)
        place, at = f"{part.source.shown}, column {quote(column)}", part.row(row)
        if not part.source.numbered:
            return place
        line = part.source.line(at)
        return f"{place}, row {at + 1}" + (f" (line {line})" if line is not None else "")

    def refuse(self, wrong: np.ndarray, name: str, values: np.ndarray, problem: str, fix: str) -> None:
        """Raise a DecalError with the first row where `wrong` holds, and how many there are, if there is one.

        wrong: bool (T,). problem: what is wrong with the value {}, such as 'score {} is outside [0, 1]'; {times} is
        where it says how many rows have the same fault, by default the end.
        """
        if not wrong.any():
            return
        row, count = int(wrong.argmax()), int(np.count_nonzero(wrong))
        times = f" ({count:,} such rows)" if count > 1 else ""
        if "{times}" not in problem:
            problem += "{times}"
        problem = problem.replace("{}", number(values[row]), 1).replace("{times}", times)
        raise DecalError(f"{self.place(name, row)}: {problem}", fix)

    def lacking(self, missing: np.ndarray, name: str, role: str, columns: Columns, of: str = "") -> None:
        """Record which rows lack a value, under the name `of`. Errors: DecalError, where they may not be dropped."""
        if not missing.any():
            return
        if columns.missing == "error":
            count, at = int(np.count_nonzero(missing)), np.flatnonzero(missing)[:FIRST_ROWS]
            parts = [(self.part_of(int(row)), int(row)) for row in at]
            several = len(self) > 1
            rows = [f"{part.row(row) + 1}" + (f" of {part.source.shown}" if several else "") for part, row in parts]
            rows += ["..."] if count > FIRST_ROWS else []
            which = f" (row{'s' if count > 1 else ''} {', '.join(rows)})" if self[0].source.numbered else ""
            # Rows without a label are to be scored by a model, and none is dropped.
            unscored = f"give {Hint('missing', 'drop')} to leave these rows without a new score"
            raise DecalError(
                f"{self.of_column(name)}: {role} missing in {count:,} of {self.n_rows:,} rows{which}",
                missing_fix(role) if columns.label else unscored,
            )
        why = f"missing {of or role}"
        self.incomplete[why] = missing | self.incomplete.get(why, False)


def missing_fix(role: str) -> str:
    """The fix that an error proposes for rows that lack a value: a missing score cannot be filled in."""
    drop = f"drop these rows with {Hint('missing', 'drop')}"
    return drop if role in ("score", "probability") else f"{drop}, or fill them in"


def loaded_parts(sources: Sequence[Source], wanted: Wanted) -> Origin:
    """These columns of every input, one after the other. Errors: DecalError, where one has no rows."""
    parts, start = Origin(), 0
    for source in sources:
        table: Any = None
        # A file that claims far more rows than it has bytes is read before it is believed.
        if isinstance(source, ParquetSource) and source.raw.size > max(MAX_HELD_BYTES, source.count // 64):
            table = _Deferred(source)
        table = table or source.load(wanted)
        if not table.num_rows:
            raise no_rows(source.shown)
        parts.append(Part(source, table, start))
        start += table.num_rows
    return parts


def plain(chunk: Any) -> np.ndarray:
    """A view of a pyarrow array of fixed-width numbers without nulls.

    Its own to_numpy() does the same, and imports pandas for it where that is installed.
    """
    import pyarrow as pa

    kind = chunk.type
    letter = "f" if pa.types.is_floating(kind) else "i" if pa.types.is_signed_integer(kind) else "u"
    dtype = np.dtype(f"{letter}{kind.bit_width // 8}")
    buffer = chunk.buffers()[1]
    if buffer is None or not len(chunk):
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype, len(chunk), chunk.offset * dtype.itemsize)


def is_list(kind: Any) -> bool:
    """Whether a pyarrow type is of lists."""
    import pyarrow as pa

    if isinstance(kind, pa.ExtensionType):
        kind = kind.storage_type
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def is_text(kind: Any) -> bool:
    """Whether a pyarrow type is of texts."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(of_texts(kind) for of_texts in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


class NotNumbers(DecalError):
    """A chunk that cannot be read as numbers; its text is the type in words. The catcher adds the place."""


def chunk_floats(chunk: Any) -> np.ndarray:
    """One pyarrow array as numbers, NaN where null; zero-copy where it can be, so read-only.

    Errors: NotNumbers for text, dates, lists.
    """
    import pyarrow as pa

    kind = chunk.type
    if isinstance(chunk, pa.ExtensionArray):
        return chunk_floats(chunk.storage)
    if pa.types.is_dictionary(kind):
        return chunk_floats(chunk.dictionary_decode())
    if pa.types.is_boolean(kind):
        chunk = chunk.cast(pa.uint8())
    elif pa.types.is_null(kind):
        chunk = chunk.cast(pa.float64())
    elif pa.types.is_decimal(kind):
        # By way of text: a decimal is rounded to the nearest float64, as CSV is.
        chunk = chunk.cast(pa.string()).cast(pa.float64())
    elif not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        raise NotNumbers(str(kind))
    if chunk.null_count:
        if not pa.types.is_floating(chunk.type):
            chunk = chunk.cast(pa.float64(), safe=False)
        chunk = (chunk.cast(pa.float32()) if kind == pa.float16() else chunk).fill_null(float("nan"))
    return plain(chunk)


def part_floats(part: Part, name: str, into: np.ndarray) -> None:
    """Write one column of one part to `into`, float64 (rows of the part,)."""
    for at, chunk in part.pieces(name):
        try:
            with translated(part.source.shown, f"numbers (column {quote(name)})"):
                values = chunk_floats(chunk)
        except NotNumbers as error:
            first = next((i for i in range(min(len(chunk), BLOCK)) if chunk[i].is_valid), 0)
            value = value_of(chunk[first])
            place = f"{Origin([part]).place(name, at + first)}: {quote(value)} is"
            if isinstance(value, str) and NUMBER.fullmatch(value):
                raise DecalError(f"{place} a number stored as text", "store the column as numbers") from None
            raise DecalError(f"{place} not a number (the column is {error})", "name a column of numbers") from None
        at -= part.start
        # A signalling NaN, which only a damaged file has, would otherwise be announced by numpy.
        with np.errstate(invalid="ignore"):
            into[at : at + len(values)] = values


def floats(parts: Sequence[Part], name: str) -> np.ndarray:
    """A numeric column of the whole data set, float64 (T,), NaN where missing; maybe a read-only view."""
    if len(parts) == 1 and not isinstance(parts[0].table, _Deferred):
        chunks = list(parts[0].chunks(name))
        if len(chunks) == 1 and str(chunks[0][1].type) == "double":
            return chunk_floats(chunks[0][1])
    out = np.empty(Origin(parts).n_rows)
    for part in parts:
        part_floats(part, name, out[part.start : part.start + part.table.num_rows])
    return out


SAME_LENGTH = "list of {} values where the first has {}", "give every row a list of the same length"


def lists_of(parts: Origin, name: str, width: int = 0, ragged: tuple[str, str] = SAME_LENGTH) -> np.ndarray:
    """A column of lists of numbers, float64 (T, d), NaN where a list is missing.

    width: d, by default that of the first list. ragged: what is said of a list of another length, and what to do.
    Errors: lists of different lengths, or of anything but numbers, or all of them empty.
    """
    import pyarrow as pa

    matrix = np.full((parts.n_rows, width), np.nan) if width else None
    for part in parts:
        for at, chunk in part.chunks(name):
            try:
                chunk = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
                if not is_list(chunk.type):
                    raise NotNumbers(str(chunk.type))
                with translated(part.source.shown, f"lists (column {quote(name)})"):
                    lengths, values = plain(chunk.value_lengths().fill_null(-1)), chunk_floats(chunk.flatten())
            except NotNumbers as error:
                raise DecalError(
                    f"{parts.place(name, at)}: not a list of numbers ({error})",
                    "name a column of number lists, or columns of numbers",
                ) from None
            known = lengths >= 0
            if matrix is None and known.any():
                matrix = np.full((parts.n_rows, int(lengths[known][0])), np.nan)
            if matrix is None:
                continue
            wrong = known & (lengths != matrix.shape[1])
            if wrong.any():
                row = int(wrong.argmax())
                problem, fix = ragged
                raise DecalError(f"{parts.place(name, at + row)}: {problem.format(lengths[row], matrix.shape[1])}", fix)
            # A signalling NaN, which only a damaged file has, would otherwise be announced by numpy.
            with np.errstate(invalid="ignore"):
                matrix[at : at + len(chunk)][known] = values.reshape(int(known.sum()), matrix.shape[1])
    if matrix is None or not matrix.shape[1]:
        raise DecalError(f"{parts[0].source.shown}, column {quote(name)}: every list is empty", "name another column")
    return matrix


def encoded(chunk: Any) -> tuple[list[str | None], np.ndarray]:
    """Distinct values of a chunk as texts, None where no row has it, and (n,) indices into them, len(texts) where null.

    Errors: NotNumbers for lists and other nested values.
    """
    import pyarrow as pa

    if isinstance(chunk, pa.ExtensionArray):
        chunk = chunk.storage
    if pa.types.is_nested(chunk.type):
        raise NotNumbers(str(chunk.type))
    if not pa.types.is_dictionary(chunk.type):
        # A date or a decimal reads the same as the text that CSV has for it.
        chunk = chunk.dictionary_encode()
    values = chunk.dictionary
    if pa.types.is_floating(values.type):
        # A float32 is written with its own few digits, not with those of the nearest float64.
        texts = [text_of(float(v)) if float(v).is_integer() else str(v) for v in plain(values)]
        texts = [None if t == "nan" else t for t in texts]
    elif pa.types.is_integer(values.type) and not values.null_count:
        texts = plain(values).astype(str).tolist()
    else:
        texts = [text_of(v) for v in values.to_pylist()]
    indices = chunk.indices
    given = plain(indices.drop_null() if indices.null_count else indices)
    if len(given) and not 0 <= int(given.min()) <= int(given.max()) < len(texts):
        # pyarrow does not check this, and only a damaged file has it.
        raise ValueError("a value is not in the column's dictionary")
    places = plain(indices.cast(pa.int64()).fill_null(len(texts)) if indices.null_count else indices)
    # What stands in a dictionary and in no row says nothing of the column.
    used = np.zeros(len(texts) + 1, dtype=bool)
    used[places] = True
    return [text if is_used else None for text, is_used in zip(texts, used, strict=False)], places


def part_texts(part: Part, name: str, chunk: Any) -> tuple[list[str | None], np.ndarray]:
    """`encoded`, with its error worded for the user."""
    try:
        with translated(part.source.shown, f"text (column {quote(name)})"):
            return encoded(chunk)
    except NotNumbers as error:
        raise nested(f"{part.source.shown}, column {quote(name)}", str(error)) from None


def nested(place: str, kind: str) -> DecalError:
    """What is wrong with a column of lists or structures. kind: its type."""
    return DecalError(f"{place} holds lists or structures ({kind})", "name a column of plain values")


class Texts:
    """The different texts of a column in the order of the rows, and int32 (T,) codes of them, -1 where missing.

    missing: which texts stand for a missing value, as the empty one does.
    """

    def __init__(
        self, parts: Sequence[Part], name: str, missing: Callable[[str], bool] = lambda text: not text
    ) -> None:
        self.name = name
        known: dict[str, int] = {}

        def code(text: str | None) -> int:
            if text is None:
                return MISSING_CODE
            at = known.get(text)
            return at if at is not None else MISSING_CODE if missing(text) else known.setdefault(text, len(known))

        self.codes = np.empty(Origin(parts).n_rows, dtype=np.int32)
        for part in parts:
            for at, chunk in part.chunks(name):
                texts, indices = part_texts(part, name, chunk)
                codes = np.array([*map(code, texts), MISSING_CODE], dtype=np.int32)
                of_chunk = self.codes[at : at + len(indices)]
                for run in runs(len(indices)):
                    of_chunk[run] = codes[indices[run]]
        self.values = list(known)

    def each(self, of_values: Sequence[Any] | np.ndarray, of_missing: Any, dtype: Any = None) -> np.ndarray:
        """The value of each row, shape (T,), from the value that each different text has."""
        return np.array([*of_values, of_missing], dtype)[self.codes]
