"""What a feature column holds: numbers, booleans, dates or categories, and its values as numbers or codes.

Types of a file say it, where the file has types; texts that are all dates or all true and false are such in any format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from decal_cli.data.check import NotNumbers, Part, chunk_floats, part_floats
from decal_cli.data.formats.files import translated
from decal_cli.data.labels import NO_LABEL, plain_encoded
from decal_cli.data.words import NUMBER, quote
from decal_cli.errors import DecalError
from decal_cli.tables.features import MISSING_CODE, Kind

DATE = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")
"""A date or a time as ISO 8601 writes it."""
_FINER = re.compile(r"(\.\d{6})\d+")
"""Digits of a second beyond microseconds."""
TRUTH = {"true": 1.0, "false": 0.0}
MIN_NUMBERS, MIN_SHARE = 20, 0.95
"""Different numbers, and their share of the different values, from which another text in a column is a slip."""
PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def typed_kind(kind: Any) -> Kind | None:
    """What the type of a column says, None where its values must be looked at; lists are none of them."""
    import pyarrow as pa

    if isinstance(kind, pa.ExtensionType):
        return typed_kind(kind.storage_type)
    if pa.types.is_null(kind):
        return "missing"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return "date"
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_dictionary)
    return None if any(is_text(kind) for is_text in texts) else "number"


class Texts:
    """A column of texts, or of anything that has to count as texts: its different values, and each row's."""

    def __init__(self, parts: Sequence[Part], name: str) -> None:
        self.parts = parts
        self.name = name
        self.known: dict[str, int] = {}
        count = parts[-1].start + parts[-1].table.num_rows
        self.codes = np.empty(count, dtype=np.int32)
        for part in parts:
            for at, chunk in part.chunks(name):
                texts, indices = plain_encoded(part, name, chunk)
                codes = np.array([*map(self._code, texts), MISSING_CODE], dtype=np.int32)
                self.codes[at : at + len(indices)] = codes[indices]
        # Texts that stand in a dictionary and in no row say nothing of the column.
        used = np.bincount(self.codes + 1, minlength=len(self.known) + 1)[1:] > 0
        self.values = [text for text, at in self.known.items() if used[at]]

    def _code(self, text: str | None) -> int:
        if text is None or text.strip() in NO_LABEL:
            return MISSING_CODE
        return self.known.setdefault(text, len(self.known))

    @property
    def kind(self) -> Kind:
        """What the texts are."""
        if not self.values:
            return "missing"
        if all(text.strip().lower() in TRUTH for text in self.values):
            return "boolean"
        return "date" if self.days is not None else "category"

    @property
    def days(self) -> np.ndarray | None:
        """The different values as days since 1970-01-01, None where one of them is no date."""
        return days_of_texts(self.values) if DATE.fullmatch(self.values[0]) else None

    def numbers(self, kind: Kind) -> np.ndarray:
        """The rows' booleans or dates as numbers, NaN where missing; kind: 'boolean' or 'date'. Errors: NotNumbers."""
        of_values = np.full(len(self.known) + 1, np.nan)
        if self.values:
            at = [self.known[text] for text in self.values]
            of_values[at] = self._numbers(kind)
        return of_values[self.codes]

    def _numbers(self, kind: Kind) -> np.ndarray:
        if kind == "boolean":
            wrong = next((text for text in self.values if text.strip().lower() not in TRUTH), None)
            if wrong is None:
                return np.array([TRUTH[text.strip().lower()] for text in self.values])
        else:
            days = self.days
            if days is not None:
                return days
            wrong = next(text for text in self.values if days_of_texts([text]) is None)
        raise NotNumbers(wrong)

    def categories(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """int32 (T,) codes and the sorted names that they stand for."""
        names = sorted(self.values)
        place = np.full(len(self.known) + 1, MISSING_CODE, dtype=np.int32)
        place[[self.known[name] for name in names]] = np.arange(len(names))
        return place[self.codes], tuple(names)

    def slip(self) -> tuple[int, str, int] | None:
        """A row with a text that is no number where all but a few different values are: row, text, how many are."""
        wrong = [text for text in self.values if not NUMBER.fullmatch(text)]
        numbers = len(self.values) - len(wrong)
        if not wrong or numbers < MIN_NUMBERS or numbers < MIN_SHARE * len(self.values):
            return None
        row = int(np.flatnonzero(np.isin(self.codes, [self.known[text] for text in wrong]))[0])
        return row, next(text for text, at in self.known.items() if at == self.codes[row]), numbers


def days_of_texts(texts: Sequence[str]) -> np.ndarray | None:
    """Dates as days since 1970-01-01, float64; None where one of the texts is no date."""
    instants = microseconds_of_texts(texts)
    return None if instants is None else instants / PER_DAY["us"]


def microseconds_of_texts(texts: Sequence[str]) -> np.ndarray | None:
    """Dates as whole microseconds since 1970-01-01, int64; None where one of the texts is no date."""
    import pyarrow as pa

    if not all(map(DATE.fullmatch, texts)):
        return None
    zoned = [text.endswith("Z") or bool(re.search(r":.*[+-]", text)) for text in texts]
    values = np.empty(len(texts), dtype=np.int64)
    for zone in (None, "UTC"):
        here = np.flatnonzero(np.array(zoned) == (zone is not None))
        cut = [_FINER.sub(r"\1", texts[int(k)]) for k in here]
        try:
            instants = pa.array(cut, pa.string()).cast(pa.timestamp("us", tz=zone))
        except pa.ArrowInvalid:
            return None
        values[here] = instants.cast(pa.int64()).to_numpy()
    return values


def chunk_days(chunk: Any) -> np.ndarray:
    """One pyarrow array of dates, instants, times of day or durations as days, NaN where null.

    Errors: NotNumbers, for anything else.
    """
    import pyarrow as pa

    kind = chunk.type
    if pa.types.is_null(kind):
        return np.full(len(chunk), np.nan)
    if not pa.types.is_temporal(kind) or pa.types.is_interval(kind):
        raise NotNumbers(str(kind))
    if pa.types.is_date32(kind):
        return chunk_floats(chunk.cast(pa.int32())).astype(np.float64)
    per_day = PER_DAY["ms"] if pa.types.is_date64(kind) else PER_DAY[kind.unit]
    whole = pa.int32() if kind.bit_width == 32 else pa.int64()
    return chunk_floats(chunk.cast(whole)) / per_day


def part_days(part: Part, name: str, into: np.ndarray) -> None:
    """Write one column of dates of one part to `into`, float64 (rows of the part,). Errors: NotNumbers."""
    for at, chunk in part.chunks(name):
        with translated(part.source.shown, f"dates (column {quote(name)})"):
            into[at - part.start : at - part.start + len(chunk)] = chunk_days(chunk)


def numbers_of(parts: Sequence[Part], name: str, kind: Kind, into: np.ndarray) -> None:
    """Write a column that is no category to `into`, float64 (T,). Errors: DecalError, NotNumbers."""
    if kind == "missing":
        into[:] = np.nan
    elif kind != "number" and any(typed_kind(chunk.type) is None for chunk in chunks(parts, name)):
        into[:] = Texts(parts, name).numbers(kind)
    else:
        for part in parts:
            here = into[part.start : part.start + part.table.num_rows]
            (part_days if kind == "date" else part_floats)(part, name, here)


def chunks(parts: Sequence[Part], name: str) -> Iterator[Any]:
    """The non-empty chunks of a column."""
    return (chunk for part in parts for _, chunk in part.chunks(name))


def slip_error(place: str, text: str, numbers: int) -> DecalError:
    """The error for a text in a column of numbers."""
    return DecalError(
        f"{place}: {quote(text)} is not a number, as the column's {numbers:,} other values are",
        "correct it, leave the cell empty if the value is missing, or name other features",
    )
