"""Features, read when someone asks for them: columns of any kind, or one list-valued (embedding) column of numbers.

A column holds numbers, booleans, dates, categories or texts. Types of a file say it, where the file has types; texts
that are all dates or all true and false are such in any format. Of the others those are texts to be read that have
several words each and seldom come twice; those that come again and again are categories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from decal_cli.data.formats.csvfile import CsvSource
from decal_cli.data.formats.files import translated
from decal_cli.data.formats.jsonlines import JsonLinesSource
from decal_cli.data.parts import NotNumbers, Origin, Part, Texts, chunk_floats, is_list, is_text, lists_of, part_floats
from decal_cli.data.words import NO_LABEL, NUMBER, listed, number, quote
from decal_cli.errors import DecalError
from decal_cli.numbers import many
from decal_cli.tables.features import CODED, MISSING_CODE, PLURALS, Features, Kind, kinds_text, names_of
from decal_cli.tables.raw_texts import MAX_CHARACTERS

_CLOCK, _ZONE = r"\d\d:\d\d(:\d\d(\.\d+)?)?", r"(Z|[+-]\d\d(:?\d\d)?)"
# Hours such as 09:00-17:00 are no time of day in a zone.
DATE = re.compile(rf"\d{{4}}-\d\d-\d\d([ T]{_CLOCK}{_ZONE}?)?|{_CLOCK}|\d\d:\d\d:\d\d(\.\d+)?{_ZONE}")
"""A date, an instant or a time of day as ISO 8601 writes it."""
_FINER = re.compile(r"(\.\d{6})\d+")
"""Digits of a second beyond microseconds."""
TRUTH = {"true": 1.0, "false": 0.0}
MIN_NUMBERS, MIN_SHARE = 20, 0.95
"""Different numbers, and their share of the different values, from which another text in a column is a slip."""
MIN_TEXTS, MIN_DIFFERENT, MIN_WORDS = 20, 0.5, 2.0
"""Different values, their share of the rows that have one, and words in each on average, from which they are texts."""
_WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\uffef]{2}|(?<!\S)\S*[^\W\d_]\S*")
"""A word: what stands between spaces and has a letter; two letters in scripts without spaces between words."""
PER_DAY = {"day": 1, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


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
    return None if is_text(kind) or pa.types.is_dictionary(kind) else "number"


class FeatureTexts(Texts):
    """A column of texts as features have it: what it holds is told by its different values."""

    def __init__(self, parts: Sequence[Part], name: str) -> None:
        super().__init__(parts, name, missing=lambda text: text.strip() in NO_LABEL)

    @property
    def kind(self) -> Kind:
        """What the texts are."""
        if not self.values:
            return "missing"
        if all(text.strip().lower() in TRUTH for text in self.values):
            return "boolean"
        if self.microseconds is not None:
            return "date"
        known, different = int(np.count_nonzero(self.codes != MISSING_CODE)), len(self.values)
        if different < MIN_TEXTS or different < MIN_DIFFERENT * known:
            return "category"
        words = sum(len(_WORD.findall(text[:MAX_CHARACTERS])) for text in self.values)
        return "text" if words >= MIN_WORDS * different else "category"

    @cached_property
    def microseconds(self) -> np.ndarray | None:
        """The different values as microseconds since 1970-01-01, None where one of them is no date."""
        return microseconds_of_texts(self.values)

    def numbers(self, kind: Kind) -> np.ndarray:
        """The rows' booleans or dates as numbers, NaN where missing; kind: 'boolean' or 'date'. Errors: NotNumbers."""
        if kind == "boolean":
            known: Any = [TRUTH.get(text.strip().lower()) for text in self.values]
        elif self.microseconds is not None:
            known = self.microseconds / PER_DAY["us"]
        else:
            known = [microseconds_of_texts([text]) for text in self.values]
        wrong = next((text for text, value in zip(self.values, known, strict=True) if value is None), "")
        if wrong:
            raise NotNumbers(wrong)
        return self.each(known, np.nan, np.float64)

    def coded(self, kind: Kind) -> tuple[np.ndarray, tuple[str, ...]]:
        """int32 (T,) codes and the sorted names that they stand for, of categories or texts."""
        names = sorted(self.values)
        place = {name: code for code, name in enumerate(names)}
        return self.each([place[text] for text in self.values], MISSING_CODE, np.int32), names_of(tuple(names), kind)

    def slip(self) -> tuple[int, str, int] | None:
        """A row with a text that is no number where all but a few different values are: row, text, how many are."""
        wrong = [not NUMBER.fullmatch(text) for text in self.values]
        numbers = wrong.count(False)
        if not any(wrong) or numbers < MIN_NUMBERS or numbers < MIN_SHARE * len(wrong):
            return None
        row = int(self.each(wrong, False).argmax())
        return row, self.values[self.codes[row]], numbers


def microseconds_of_texts(texts: Sequence[str]) -> np.ndarray | None:
    """Dates as whole microseconds since 1970-01-01, and times of day since midnight; None where a text is neither."""
    import pyarrow as pa

    if not all(map(DATE.fullmatch, texts)):
        return None
    zoned = [text.endswith("Z") or bool(re.search(r":.*[+-]", text)) for text in texts]
    values = np.empty(len(texts), dtype=np.int64)
    for zone in (None, "UTC"):
        here = np.flatnonzero(np.array(zoned) == (zone is not None))
        cut = [_FINER.sub(r"\1", texts[int(k)]) for k in here]
        cut = [f"1970-01-01T{text}" if text[2] == ":" else text for text in cut]
        try:
            instants = pa.array(cut, pa.string()).cast(pa.timestamp("us", tz=zone))
        except pa.ArrowInvalid:
            return None
        values[here] = instants.cast(pa.int64()).to_numpy()
    return values


def whole_units(parts: Sequence[Part], name: str) -> Iterator[tuple[int, Any, int]]:
    """Pyarrow arrays of dates, instants, times of day or durations as whole units, and how many make a day.

    Each with its first row. Errors: NotNumbers, for anything else.
    """
    import pyarrow as pa

    for part in parts:
        for at, chunk in part.chunks(name):
            kind = chunk.type
            if not pa.types.is_null(kind) and (not pa.types.is_temporal(kind) or pa.types.is_interval(kind)):
                raise NotNumbers(str(kind))
            of_32_bits = pa.types.is_date32(kind) or pa.types.is_time32(kind)
            unit = "ms" if pa.types.is_date64(kind) else getattr(kind, "unit", "day")
            with translated(part.source.shown, f"dates (column {quote(name)})"):
                yield at, chunk.cast(pa.int32() if of_32_bits else pa.int64()), PER_DAY[unit]


def numbers_of(parts: Sequence[Part], name: str, kind: Kind, into: np.ndarray) -> None:
    """Write a column of neither categories nor texts to `into`, float64 (T,), dates as days, NaN where missing.

    Errors: DecalError, NotNumbers.
    """
    if kind == "missing":
        into[:] = np.nan
    elif kind != "number" and any(typed_kind(chunk.type) is None for part in parts for _, chunk in part.chunks(name)):
        into[:] = FeatureTexts(parts, name).numbers(kind)
    elif kind == "date":
        for at, whole, per_day in whole_units(parts, name):
            into[at : at + len(whole)] = chunk_floats(whole) / per_day
    else:
        for part in parts:
            part_floats(part, name, into[part.start : part.start + part.table.num_rows])


class FeatureReader:
    """The features of a data set, read at most once.

    kinds: what the columns must hold, where a model was fitted to them; else each column says it itself. all_columns:
    whether the user named every column that has no other role.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        origin: Origin,
        kinds: tuple[Kind, ...] | None = None,
        all_columns: bool = False,
    ) -> None:
        self.names, self.origin = names, origin
        self.kinds, self.all_columns = kinds, all_columns
        self.known: Features | None = None

    def read(self) -> Features:
        """The features of every row of the data set; a missing value is a state of its own.

        Errors: infinite values, lists of different lengths, a text in a column of numbers, a column of another kind
        than it must be.
        """
        if self.known is None:
            parts = self.origin.typed(self.names)
            for part in parts:
                part.source.raw.check_unchanged()
            # Asking a schema for one field after the other takes quadratic time.
            schemas = [part.table.schema for part in parts]
            if listed := [name for s in schemas for name, kind in zip(s.names, s.types, strict=True) if is_list(kind)]:
                if len(self.names) > 1:
                    raise DecalError(
                        f"{parts[0].source.shown}: column {quote(listed[0])} holds lists and is one of "
                        f"{len(self.names)} features",
                        "name it alone, or name columns of numbers only",
                    )
                numbers = lists_of(parts, listed[0])
                self._check(numbers, self.names * numbers.shape[1])
                self.known = Features.of_numbers(numbers)
            else:
                self.known = self._columns(parts)
        return self.known

    @property
    def notes(self) -> tuple[str, ...]:
        """How many columns hold what, once they were read; () where they are numbers without gaps, as one expects."""
        if self.known is None:
            return ()
        nothing = self.unlearnable
        if self.known.plain and set(self.known.kinds) <= {"number"} and not self.all_columns and not nothing:
            return ()
        gaps = int(self.known.gaps.sum()) + int((self.known.codes == MISSING_CODE).any(axis=0).sum())
        columns = many(gaps, "column")
        note = f"features: {kinds_text(self.known.kinds)}" + (f"; {columns} with missing values" if gaps else "")
        if nothing:
            note += f"; nothing can be learned from {listed(nothing)}: each row has its own value, or all have one"
        return (note,)

    @property
    def unlearnable(self) -> tuple[str, ...]:
        """The columns of which nothing can be learned, once they were read; empty before, and of a list."""
        if self.known is None or len(self.names) != len(self.known.kinds):
            return ()
        return tuple(self.names[at] for at in self.known.unlearnable)

    def _columns(self, parts: Sequence[Part]) -> Features:
        """Every column as what it holds."""
        kinds = [self._kind(parts, at) for at in range(len(self.names))]
        others = [name for name, kind in zip(self.names, kinds, strict=True) if kind not in CODED]
        numbers = np.empty((self.origin.n_rows, len(others)))
        codes: list[np.ndarray] = []
        categories: list[tuple[str, ...]] = []
        at = 0
        for k, (name, kind) in enumerate(zip(self.names, kinds, strict=True)):
            if kind in CODED:
                code, names = FeatureTexts(parts, name).coded(kind)
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
        stacked = np.column_stack(codes) if codes else np.empty((self.origin.n_rows, 0), dtype=np.int32)
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
        texts = FeatureTexts(parts, name)
        written = all(isinstance(part.source, (CsvSource, JsonLinesSource)) for part in parts)
        if written and (slip := texts.slip()):
            row, text, numbers = slip
            raise DecalError(
                f"{self.origin.place(name, row)}: {quote(text)} is not a number, as the column's {numbers:,} other"
                " values are",
                "correct it, leave the cell empty if the value is missing, or name other features",
            )
        return texts.kind

    def _other_kind(self, name: str, have: str, want: Kind) -> DecalError:
        return DecalError(
            f"{self.origin.shown}, column {quote(name)} holds {have}; the model was fitted on {PLURALS[want]}",
            "give the same features, or fit the model again",
        )

    def _check(self, numbers: np.ndarray, names: Sequence[str]) -> None:
        """Raise a DecalError that names the first infinite value."""
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
    "text": {None},
    "missing": {"number", "boolean", "date", "category", None},
}
"""Types of columns (None: texts) that can hold what a model was fitted on."""
