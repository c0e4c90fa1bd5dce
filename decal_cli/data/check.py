"""Columns as pyarrow gives them -> checked numpy arrays. Masks are built only once something is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from decal_cli.data.formats.files import no_rows, translated
from decal_cli.data.formats.sources import Repeated, Source
from decal_cli.data.words import NUMBER, number, quote, value_of
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MIN_SHARE_OF_MEAN
from decal_cli.roles import Columns
from decal_cli.tables.logistic import expit
from decal_cli.tables.table import BLOCK

FIRST_ROWS = 5


@dataclass(frozen=True)
class Part:
    """The rows of one input within the data set: its table and the number of rows before it.

    skipped: rows of the input that stand before the table, where it is read in batches. percentages: how many values of
    a score were such, where it was a column of texts.
    """

    source: Source
    table: Any
    start: int
    skipped: int = 0
    percentages: Mapping[str, int] = field(default_factory=dict)

    def row(self, row: int) -> int:
        """Row of the input, from 0, that is this row of the data set."""
        at = row - self.start + self.skipped
        return int(self.source.lines[at]) if isinstance(self.source, Repeated) else at

    @property
    def numbered(self) -> bool:
        """Whether its rows have numbers: those of an engine have none."""
        return not isinstance(self.source, Repeated) or self.source.numbered

    def chunks(self, name: str) -> Iterator[tuple[int, Any]]:
        """Row of the data set at which each non-empty chunk of a column starts, and the chunk."""
        at = self.start
        column = self.table.column(name)
        for chunk in column.chunks if hasattr(column, "chunks") else [column]:
            if len(chunk):
                yield at, chunk
            at += len(chunk)


def loaded_parts(
    sources: Sequence[Source], numbers: Sequence[str], texts: Sequence[str], either: Sequence[str] = ()
) -> list[Part]:
    """These columns of every input, one after the other. Errors: DecalError, where one has no rows.

    either: those of the numbers that may be columns of texts.
    """
    parts: list[Part] = []
    start = 0
    for source in sources:
        try:
            table = source.load(numbers, texts)
        except DecalError:
            if not either:
                raise
            table = source.load([name for name in numbers if name not in either], [*texts, *either])
        if not table.num_rows:
            raise no_rows(source.shown)
        parts.append(Part(source, table, start))
        start += table.num_rows
    return parts


class Origin:
    """Where each row of the data set stands in the user's files."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.count = parts[-1].start + parts[-1].table.num_rows

    @property
    def shown(self) -> str:
        """The file, or how many there are."""
        return self.parts[0].source.shown if len(self.parts) == 1 else f"{len(self.parts)} files"

    def part_of(self, row: int) -> Part:
        return next(part for part in reversed(self.parts) if part.start <= row)

    def place(self, column: str, row: int) -> str:
        """'preds.csv, column 'p', row 3 (line 4)'; rows count from 1."""
        part = self.part_of(row)
        if not part.numbered:
            return f"{part.source.shown}, column {quote(column)}"
        line = part.source.line(part.row(row))
        at_line = f" (line {line})" if line is not None else ""
        return f"{part.source.shown}, column {quote(column)}, row {part.row(row) + 1}{at_line}"

    def first(self, bad: np.ndarray) -> str:
        """'3, 7, 12, ...': rows of the first True values, with their file where there are several."""
        at = np.flatnonzero(bad)
        several = len(self.parts) > 1
        words = []
        for row in at[:FIRST_ROWS]:
            part = self.part_of(int(row))
            words.append(f"{part.row(int(row)) + 1}" + (f" of {part.source.shown}" if several else ""))
        return ", ".join(words) + (", ..." if at.size > FIRST_ROWS else "")


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


class NotNumbers(DecalError):
    """A chunk that has no meaning as numbers; its type in words. Always caught: only its catcher knows the place."""


def chunk_floats(chunk: Any) -> np.ndarray:
    """One pyarrow array as numbers, NaN where null; zero-copy where it can be, so read-only.

    Errors: NotNumbers for text, dates, lists.
    """
    import pyarrow as pa

    kind = chunk.type
    if pa.types.is_floating(kind):
        if chunk.null_count:
            chunk = (chunk.cast(pa.float32()) if kind == pa.float16() else chunk).fill_null(float("nan"))
        return plain(chunk)
    if pa.types.is_integer(kind):
        if chunk.null_count:
            chunk = chunk.cast(pa.float64(), safe=False).fill_null(float("nan"))
        return plain(chunk)
    if pa.types.is_null(kind):
        return np.full(len(chunk), np.nan)
    if pa.types.is_boolean(kind):
        return chunk_floats(chunk.cast(pa.uint8()))
    if pa.types.is_decimal(kind):
        # By way of text: a decimal is rounded to the nearest float64, as CSV is.
        return chunk_floats(chunk.cast(pa.string()).cast(pa.float64()))
    if pa.types.is_dictionary(kind):
        return chunk_floats(chunk.dictionary_decode())
    if isinstance(chunk, pa.ExtensionArray):
        return chunk_floats(chunk.storage)
    raise NotNumbers(str(kind))


def part_floats(part: Part, name: str, into: np.ndarray) -> None:
    """Write one column of one part to `into`, float64 (rows of the part,)."""
    for at, chunk in part.chunks(name):
        try:
            with translated(part.source.shown, f"numbers (column {quote(name)})"):
                values = chunk_floats(chunk)
        except NotNumbers as error:
            raise _not_numbers(part, name, at, chunk, str(error)) from None
        at -= part.start
        # A signalling NaN, which only a damaged file has, would otherwise be announced by numpy.
        with np.errstate(invalid="ignore"):
            into[at : at + len(values)] = values


def _not_numbers(part: Part, name: str, at: int, chunk: Any, kind: str) -> DecalError:
    first = next((i for i in range(min(len(chunk), BLOCK)) if chunk[i].is_valid), 0)
    value = value_of(chunk[first])
    place = f"{part.source.shown}, column {quote(name)}, row {part.row(at + first) + 1}"
    if isinstance(value, str) and NUMBER.fullmatch(value):
        return DecalError(f"{place}: {quote(value)} is a number stored as text", "store the column as numbers")
    return DecalError(f"{place}: {quote(value)} is not a number (the column is {kind})", "name a column of numbers")


def floats(parts: Sequence[Part], name: str) -> np.ndarray:
    """A numeric column of the whole data set, float64 (T,), NaN where missing; maybe a read-only view."""
    if len(parts) == 1:
        chunks = list(parts[0].chunks(name))
        if len(chunks) == 1 and str(chunks[0][1].type) == "double":
            return chunk_floats(chunks[0][1])
    out = np.empty(parts[-1].start + parts[-1].table.num_rows)
    for part in parts:
        part_floats(part, name, out[part.start : part.start + part.table.num_rows])
    return out


def span(values: np.ndarray) -> tuple[float, float]:
    """Least and greatest value, both NaN as soon as one value is; block by block, so without temporaries."""
    low, high = np.inf, -np.inf
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        least, most = float(block.min()), float(block.max())
        if least != least:
            return np.nan, np.nan
        low, high = min(low, least), max(high, most)
    return low, high


def sigmoid(values: np.ndarray) -> np.ndarray:
    """Scores of log-odds, block by block; NaN where these are."""
    out = np.empty(len(values))
    for start in range(0, len(values), BLOCK):
        out[start : start + BLOCK] = expit(values[start : start + BLOCK])
    return out


def checked_scores(
    values: np.ndarray, name: str, origin: Origin, columns: Columns
) -> tuple[np.ndarray, np.ndarray | None]:
    """Scores in [0, 1], and a mask of the missing ones (None when there is none).

    Errors: infinite, outside [0, 1] (unless --logit or --margin takes them there), or missing unless they may be
    dropped.
    """
    low, high = span(values)
    missing = None
    if low != low:
        missing = np.isnan(values)
        low, high = span(values[~missing])
        if low > high:
            if columns.missing == "error":
                raise missing_values(missing, name, "score", origin)
            return values, missing
    if np.isinf(low) or np.isinf(high):
        infinite = np.isinf(values)
        row, any_size = int(infinite.argmax()), columns.logit or columns.margin
        raise DecalError(
            f"{origin.place(name, row)}: score is {number(values[row])}{times(infinite)}",
            "clip them to a finite range where they are written" if any_size else "correct or remove the row",
        )
    if columns.margin:
        values = _of_margins(values, name, origin, low, high)
    elif columns.logit:
        values = sigmoid(values)
    elif low < 0 or high > 1:
        raise _outside(values, name, origin, low, high)
    if missing is not None and columns.missing == "error":
        raise missing_values(missing, name, "score", origin)
    return values, missing


def _of_margins(values: np.ndarray, name: str, origin: Origin, low: float, high: float) -> np.ndarray:
    """(x - min) / (max - min) [Gao et al. 2017, footnote 5]."""
    if low == high:
        raise DecalError(f"{origin.shown}, column {quote(name)}: every margin is {number(low)}", "name another column")
    # Halved, so that the range of two huge margins is a number.
    return (values / 2 - low / 2) / (high / 2 - low / 2)


def margin_notes(values: np.ndarray, name: str) -> tuple[str, ...]:
    """From where to where margins go, for the reader of the scores that they were rescaled to."""
    low, high = np.nanmin(values), np.nanmax(values)
    return (f"{name}: margins from {number(low)} to {number(high)} were rescaled to [0, 1]",)


def _outside(values: np.ndarray, name: str, origin: Origin, low: float, high: float) -> DecalError:
    with np.errstate(invalid="ignore"):
        outside = (values < 0) | (values > 1)
    row = int(outside.argmax())
    if low >= 0 and 2 < high <= 100:
        fix = f"percentages must be divided by 100; for log-odds add {Hint('logit').words}"
    elif low >= -1e-6 and high <= 1 + 1e-6:
        fix = "it looks like rounding: clip scores to [0, 1] where they are written"
    else:
        fix = (
            f"for log-odds add {Hint('logit').words}, for margins of any size {Hint('margin').words}, else "
            "name a column of probabilities"
        )
    return DecalError(f"{origin.place(name, row)}: score {number(values[row])} is outside [0, 1]{times(outside)}", fix)


def times(bad: np.ndarray) -> str:
    """How many rows have the same fault, where several do."""
    count = int(np.count_nonzero(bad))
    return f" ({count} such rows)" if count > 1 else ""


def missing_values(missing: np.ndarray, name: str, role: str, origin: Origin) -> DecalError:
    """The error for missing values where dropping rows was not allowed."""
    count = int(np.count_nonzero(missing))
    which = f" (row{'s' if count > 1 else ''} {origin.first(missing)})" if origin.parts[0].numbered else ""
    return DecalError(
        f"{origin.shown}, column {quote(name)}: {role} missing in {count:,} of {origin.count:,} rows{which}",
        f"fill them in, or drop these rows with {Hint('missing', 'drop')}",
    )


def checked_weights(
    values: np.ndarray, name: str, origin: Origin, columns: Columns
) -> tuple[np.ndarray, np.ndarray | None]:
    """Weights of a mean near 1, and the mask of missing ones, None when there is none.

    Errors: not in (0, inf), or far below the mean; missing unless they may be dropped.
    """
    low, high = span(values)
    missing = None
    if low != low:
        missing = np.isnan(values)
        low, high = span(values[~missing])
    if low <= 0 or np.isinf(high):
        with np.errstate(invalid="ignore"):
            bad = (values <= 0) | np.isinf(values)
        if bad.any():
            row = int(bad.argmax())
            raise DecalError(
                f"{origin.place(name, row)}: weight {number(values[row])} is not positive and finite{times(bad)}",
                "correct the weight or remove the row",
            )
    if missing is not None and columns.missing == "error":
        raise missing_values(missing, name, "weight", origin)
    return _rescaled(values, name, origin), missing


def _rescaled(weight: np.ndarray, name: str, origin: Origin) -> np.ndarray:
    """Weights over the power of two nearest to their mean, which rounds none. Errors: they are too far apart."""
    given = weight[~np.isnan(weight)]
    if not len(given):
        return weight
    # First over one that is near the largest: the sum of weights as they are may be no float.
    largest = math.frexp(float(given.max()))[1]
    weight = np.ldexp(weight, -largest)
    mean = float(np.ldexp(given, -largest).mean())
    light = weight < MIN_SHARE_OF_MEAN * mean
    if light.any():
        row = int(light.argmax())
        raise DecalError(
            f"{origin.place(name, row)}: weight is less than {MIN_SHARE_OF_MEAN:g} of the mean weight{times(light)},"
            " and sums would lose it",
            "drop such rows, or correct the weights",
        )
    return np.ldexp(weight, -round(math.log2(mean)))
