"""Times: dates as whole nanoseconds since 1970, and numbers that can be told apart."""

from __future__ import annotations

import math
import re
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.data.features import PER_DAY, FeatureTexts, microseconds_of_texts, numbers_of, typed_kind, whole_units
from decal_cli.data.parts import Origin, plain
from decal_cli.data.words import NUMBER, quote
from decal_cli.errors import DecalError

Clock = Literal["rows", "numbers", "dates"]
"""What time is counted in: rows where no column holds it, numbers of any unit, or nanoseconds since 1970."""
NS_PER_DAY = PER_DAY["ns"]
MAX_NS = 2**63 - 1
MAX_NUMBER = 2.0**53
"""Largest number: beyond it, floats cannot hold every whole number."""
_FINER = re.compile(r"\.\d{6}(\d{1,3})")
N_DATE = 10
"""Characters of a date without a time of day."""
_ZONE = re.compile(r"(Z|[+-].*)$")
_UTC = re.compile(r"Z|(Etc/)?(UTC|GMT)|[+-]00:?(00)?")
_WITH_DATE = "write the date too, as in 2024-02-29T12:00"


def times_of(parts: Origin, name: str, known: int | None = None) -> tuple[NDArray[Any], Clock, bool]:
    """A column of times: dates as int64 nanoseconds, numbers as float64; and whether dates were moved to UTC.

    known: the row from which on a time may be missing: it is then the latest that there can be.

    Errors: DecalError, where a time is missing, is no point in time, or is so far off that it mostly stands for
    "never"; and where some dates have a zone and others none.
    """
    typed = parts.typed([name])
    types = [part.type_of(name) for part in typed]
    kinds = {typed_kind(each) for each in types}
    texts = FeatureTexts(typed, name) if None in kinds or len(kinds) > 1 else None
    kind = kinds.pop() if texts is None else texts.kind
    if texts is not None:
        _need_times(texts, parts)
        if texts.values and all(map(NUMBER.fullmatch, texts.values)):
            kind = "number"
    if kind not in ("date", "number", "missing"):
        raise DecalError(f"{parts.of_column(name)} is neither a time nor a number", "name another column")
    if texts is None and any(str(each).startswith("time") and not hasattr(each, "tz") for each in types):
        raise DecalError(f"{parts.of_column(name)} holds times of day without their dates", _WITH_DATE)
    time: NDArray[Any] = np.empty(parts.n_rows, dtype=np.int64 if kind == "date" else np.float64)
    missing = np.zeros(parts.n_rows, dtype=bool)
    zones = {each.tz for each in types if hasattr(each, "tz")}
    if texts is not None and kind == "date":
        found = [_FINER.search(text) for text in texts.values]
        finer = [0 if each is None else int(each[1].ljust(3, "0")) for each in found]
        zones = {_zone_of(text) for text in texts.values} - {""}
        assert texts.microseconds is not None  # as they are dates
        whole = _nanoseconds(texts.each(texts.microseconds, 0, np.int64), 1000, name, 0, parts)
        time, missing = whole + texts.each(finer, 0, np.int64), texts.codes < 0
    elif kind == "date":
        for at, units, per_day in whole_units(typed, name):
            rows, counts = slice(at, at + len(units)), plain(units.fill_null(0)).astype(np.int64)
            time[rows] = _nanoseconds(counts, NS_PER_DAY // per_day, name, at, parts)
            missing[rows] = units.is_null().to_numpy(zero_copy_only=False)
    else:
        if texts is not None and kind == "number":
            time = texts.each([*map(float, texts.values)], np.nan, np.float64)
        else:
            numbers_of(typed, name, kind, time)
        missing = ~np.isfinite(time)
    if known is not None:
        never = missing & (np.arange(parts.n_rows) >= known)
        time[never], missing[never] = MAX_NS if kind == "date" else MAX_NUMBER, False
    if missing.any():
        raise DecalError(
            f"{parts.place(name, int(missing.argmax()))}: the time is missing", "fill it in, or drop the row"
        )
    if kind == "date":
        if None in zones and len(zones) > 1:
            what = f"{parts.of_column(name)}: some times have a zone, and others have none"
            if texts is not None:
                row = int(texts.each([_zone_of(text) is None for text in texts.values], False).argmax())
                text = quote(texts.values[texts.codes[row]])
                what = f"{parts.place(name, row)}: {text} has no zone, and others have one"
            raise DecalError(what, "write all of them alike")
        return time, "dates", any(zone and not _UTC.fullmatch(zone) for zone in zones)
    parts.refuse(
        np.abs(time) > MAX_NUMBER,
        name,
        time,
        "the time {} is beyond 2^53, from where on numbers run into each other",
        "give dates, or count from a later start; if it stands for never, drop the row",
    )
    return time, "numbers", False


def _zone_of(text: str) -> str | None:
    """The zone of a time, None where it has none; of a date without a time of day ""."""
    found = _ZONE.search(text[N_DATE:])
    return "" if len(text) <= N_DATE else found and found[0]


def _need_times(texts: FeatureTexts, parts: Origin) -> None:
    """Raise a DecalError that names the first text that is no time, or is a time of day."""
    wrong, why = [text[2:3] == ":" for text in texts.values], "is a time of day without its date"
    fix = _WITH_DATE
    if texts.kind != "date":
        wrong, why = [microseconds_of_texts([text]) is None for text in texts.values], "is no time"
        if all(wrong):
            wrong = [not NUMBER.fullmatch(text) for text in texts.values]
        fix = "write times as 2024-02-29 or 2024-02-29T12:00Z, or name another column"
    if any(wrong):
        row = int(texts.each(wrong, False).argmax())
        raise DecalError(f"{parts.place(texts.name, row)}: {quote(texts.values[texts.codes[row]])} {why}", fix)


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
