"""Times: dates as whole nanoseconds since 1970, and numbers that can be told apart."""

from __future__ import annotations

import math
import re
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.data.features import PER_DAY, FeatureTexts, microseconds_of_texts, numbers_of, typed_kind, whole_units
from decal_cli.data.parts import NotNumbers, Origin, plain
from decal_cli.data.words import quote
from decal_cli.errors import DecalError

Clock = Literal["rows", "numbers", "dates"]
"""What time is counted in: rows where no column holds it, numbers of any unit, or nanoseconds since 1970."""
NS_PER_DAY = PER_DAY["ns"]
MAX_NS = 2**63 - 1
MAX_NUMBER = 2.0**53
"""Largest number: beyond it, floats cannot hold every whole number."""
_FINER = re.compile(r"\.\d{6}(\d{1,3})")


def times_of(parts: Origin, name: str) -> tuple[NDArray[Any], Clock]:
    """A column of times: dates as int64 nanoseconds, numbers as float64.

    Errors: DecalError, where a time is missing, or is so far off that it mostly stands for "never".
    """
    typed = parts.typed([name])
    kinds = {typed_kind(part.type_of(name)) for part in typed}
    texts = FeatureTexts(typed, name) if None in kinds or len(kinds) > 1 else None
    kind = kinds.pop() if texts is None else texts.kind
    if kind not in ("date", "number", "missing"):
        raise DecalError(f"{parts.of_column(name)} is neither a time nor a number", "name another column")
    time: NDArray[Any] = np.empty(parts.n_rows, dtype=np.int64 if kind == "date" else np.float64)
    missing = np.zeros(parts.n_rows, dtype=bool)
    try:
        if kind != "date":
            numbers_of(typed, name, kind, time)
            missing = ~np.isfinite(time)
        elif texts is not None:
            if texts.microseconds is None:
                raise NotNumbers(next(text for text in texts.values if microseconds_of_texts([text]) is None))
            found = [_FINER.search(text) for text in texts.values]
            finer = [0 if each is None else int(each[1].ljust(3, "0")) for each in found]
            whole = _nanoseconds(texts.each(texts.microseconds, 0, np.int64), 1000, name, 0, parts)
            time, missing = whole + texts.each(finer, 0, np.int64), texts.codes < 0
        else:
            for at, units, per_day in whole_units(typed, name):
                rows, counts = slice(at, at + len(units)), plain(units.fill_null(0)).astype(np.int64)
                time[rows] = _nanoseconds(counts, NS_PER_DAY // per_day, name, at, parts)
                missing[rows] = units.is_null().to_numpy(zero_copy_only=False)
    except NotNumbers as error:
        raise DecalError(f"{parts.of_column(name)}: {quote(str(error))} is no time", "correct it") from None
    if missing.any():
        raise DecalError(
            f"{parts.place(name, int(missing.argmax()))}: the time is missing", "fill it in, or drop the row"
        )
    if kind == "date":
        return time, "dates"
    parts.refuse(
        np.abs(time) > MAX_NUMBER,
        name,
        time,
        "the time {} is beyond 2^53, from where on numbers run into each other",
        "give dates, or count from a later start; if it stands for never, drop the row",
    )
    return time, "numbers"


def _nanoseconds(counts: NDArray[np.int64], each: int, name: str, at: int, parts: Origin) -> NDArray[np.int64]:
    """Whole units of so many nanoseconds each; at: the number of the first row. Errors: DecalError, beyond int64."""
    far = (counts > MAX_NS // each) | (counts < -(MAX_NS // each))
    if far.any():
        row = int(far.argmax())
        year = math.floor(counts[row] * (each / NS_PER_DAY) / 365.2425 + 1970)
        raise DecalError(
            f"{parts.place(name, at + row)}: the time lies in the year {year}, and times are counted from 1677-09-21 "
            "to 2262-04-11",
            "give the row its true time, or drop it (such times stand for never, mostly)",
        )
    return counts * each


def shown_time(value: Any, clock: Clock) -> str:
    """A time as a person writes it: without parts of a second that are 0, and without the time of midnight."""
    if clock != "dates":
        return f"row {int(value) + 1:,}" if clock == "rows" else f"{float(value):.12g}"
    day, _, time = str(np.datetime64(int(value), "ns")).partition("T")
    second, _, part = time.partition(".")
    part = part.rstrip("0")
    return day if second == "00:00:00" and not part else f"{day} {second}{'.' if part else ''}{part}"
