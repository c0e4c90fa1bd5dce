"""Columns of times, exactly: dates as whole nanoseconds since 1970, and numbers that can be told apart."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.data.check import NotNumbers, Origin, Part
from decal_cli.data.formats.files import translated
from decal_cli.data.kinds import PER_DAY, Texts, chunks, microseconds_of_texts, numbers_of, typed_kind
from decal_cli.data.words import quote
from decal_cli.errors import DecalError

Clock = Literal["rows", "numbers", "dates"]
"""What time is counted in: rows where no column holds it, numbers of any unit, or nanoseconds since 1970."""
NS_PER_DAY = PER_DAY["ns"]
MAX_NS = 2**63 - 1
MAX_NUMBER = 2.0**53
"""Beyond it whole numbers run into each other as floats."""
_FINER = re.compile(r"\.\d{6}(\d{1,3})")
_TRUE_TIME = "give the row its true time, or drop it"


def times_of(parts: Sequence[Part], name: str, origin: Origin) -> tuple[NDArray[Any], Clock]:
    """A column of times: dates as int64 nanoseconds, numbers as float64.

    Errors: DecalError, where one is missing, or so far off that it is none: what "never" is written as, mostly.
    """
    typed = [Part(part.source, part.source.load_typed((name,)), part.start) for part in parts]
    kinds = {typed_kind(part.table.schema.field(name).type) for part in typed}
    kind = kinds.pop() if len(kinds) == 1 else None
    texts = Texts(typed, name) if kind is None else None
    kind = texts.kind if texts is not None else kind
    if kind not in ("date", "number", "missing"):
        raise DecalError(f"{origin.shown}, column {quote(name)}: is neither a time nor a number", "name another column")
    time: NDArray[Any] = np.empty(origin.count, dtype=np.int64 if kind == "date" else np.float64)
    missing = np.zeros(origin.count, dtype=bool)
    try:
        if kind != "date":
            numbers_of(typed, name, kind, time)
            missing = ~np.isfinite(time)
        elif texts is not None or any(typed_kind(chunk.type) is None for chunk in chunks(typed, name)):
            time, missing = _of_texts(texts or Texts(typed, name), name, origin)
        else:
            for at, counts, empty, per_day in _counted(typed, name):
                rows = slice(at, at + len(counts))
                time[rows], missing[rows] = _nanoseconds(counts, NS_PER_DAY // per_day, name, at, origin), empty
    except NotNumbers as error:
        raise DecalError(
            f"{origin.shown}, column {quote(name)}: {quote(str(error))} is no time", "correct it"
        ) from None
    if missing.any():
        raise DecalError(
            f"{origin.place(name, int(missing.argmax()))}: the time is missing", "fill it in, or drop the row"
        )
    if kind == "date":
        return time, "dates"
    far = np.abs(time) > MAX_NUMBER
    if far.any():
        row = int(far.argmax())
        raise DecalError(
            f"{origin.place(name, row)}: the time {time[row]:.6g} is beyond 2^53, from where on numbers run into each "
            "other",
            "give dates, or count from a later start; if it stands for never, drop the row",
        )
    return time, "numbers"


def _counted(parts: Sequence[Part], name: str) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.bool_], int]]:
    """Of each chunk of dates the number of its first row, its whole units, where it is null, and units in a day."""
    import pyarrow as pa

    for part in parts:
        for at, chunk in part.chunks(name):
            kind = chunk.type
            with translated(part.source.shown, f"dates (column {quote(name)})"):
                whole = chunk.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.int64())
                counts, empty = whole.fill_null(0).to_numpy(zero_copy_only=False), chunk.is_null()
            unit = "ms" if pa.types.is_date64(kind) else getattr(kind, "unit", None)
            yield at, counts, empty.to_numpy(zero_copy_only=False), 1 if unit is None else PER_DAY[unit]


def _nanoseconds(counts: NDArray[np.int64], each: int, name: str, at: int, origin: Origin) -> NDArray[np.int64]:
    """Whole units of so many nanoseconds each; at: the number of the first row. Errors: DecalError, beyond int64."""
    far = (counts > MAX_NS // each) | (counts < -(MAX_NS // each))
    if far.any():
        place = int(far.argmax())
        raise _too_far(
            origin.place(name, at + place), math.floor(counts[place] * (each / NS_PER_DAY) / 365.2425 + 1970)
        )
    return counts * each


def _of_texts(texts: Texts, name: str, origin: Origin) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The rows' dates, and where they are missing. Errors: NotNumbers, DecalError."""
    whole = microseconds_of_texts(texts.values)
    if whole is None:
        raise NotNumbers(next(text for text in texts.values if microseconds_of_texts([text]) is None))
    of_code = np.zeros(len(texts.known) + 1, dtype=np.int64)
    finer = np.zeros(len(texts.known) + 1, dtype=np.int64)
    at = [texts.known[text] for text in texts.values]
    of_code[at] = whole
    found = [_FINER.search(text) for text in texts.values]
    finer[at] = [0 if each is None else int(each[1].ljust(3, "0")) for each in found]
    return _nanoseconds(of_code[texts.codes], 1000, name, 0, origin) + finer[texts.codes], texts.codes < 0


def _too_far(place: str, year: int) -> DecalError:
    return DecalError(
        f"{place}: the time lies in the year {year}, and times are counted from 1677-09-21 to 2262-04-11",
        f"{_TRUE_TIME} (such times stand for never, mostly)",
    )


def shown_time(value: Any, clock: Clock) -> str:
    """A time as a person writes it."""
    if clock == "dates":
        return _date(str(np.datetime64(int(value), "ns")))
    return f"row {int(value) + 1:,}" if clock == "rows" else f"{float(value):.12g}"


def _date(text: str) -> str:
    """A date without what is 0 at its end: parts of a second, and the time of midnight."""
    day, _, time = text.partition("T")
    second, _, part = time.partition(".")
    part = part.rstrip("0")
    return day if second == "00:00:00" and not part else f"{day} {second}{'.' if part else ''}{part}"
