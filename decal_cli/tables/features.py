"""Features of rows: typed columns, as numbers and as codes of categories."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.tables.raw_texts import raw_texts

Matrix = NDArray[Any]
"""Shape (T, d)."""
Codes = NDArray[np.int32]
Kind = Literal["number", "boolean", "date", "category", "text", "missing"]
PLURALS: Mapping[Kind, str] = {
    "number": "numbers",
    "boolean": "booleans",
    "date": "dates",
    "category": "categories",
    "text": "texts",
    "missing": "only missing values",
}
"""What a column holds, by kind, as users read it."""
CODED: frozenset[Kind] = frozenset({"category", "text"})
"""Kinds of columns that are held as codes of names, and not as numbers."""
MISSING_CODE = -1


@dataclass(frozen=True, eq=False)
class Features:
    """Columns of rows, each of one kind; `features[which]` are the features of some rows, by mask or index.

    numbers: float64 (T, d): numbers, booleans as 0 and 1, dates as days since 1970-01-01; NaN where missing. codes:
    int32 (T, k): the index of each row's category or text, MISSING_CODE where missing. categories: the sorted names of
    each column of codes; those of texts are `RawTexts`. kinds: of every column, in the order of their names as given.
    """

    numbers: Matrix
    codes: Codes
    categories: tuple[tuple[str, ...], ...]
    kinds: tuple[Kind, ...]

    @classmethod
    def of_numbers(cls, numbers: Matrix) -> Features:
        """Columns of numbers, shape (T, d); not copied."""
        return cls(numbers, np.empty((len(numbers), 0), dtype=np.int32), (), number_kinds(numbers.shape[1]))

    @classmethod
    def missing(cls, rows: int, kinds: tuple[Kind, ...]) -> Features:
        """Rows of which no value is known."""
        coded = [kind for kind in kinds if kind in CODED]
        codes = np.full((rows, len(coded)), MISSING_CODE, dtype=np.int32)
        names = tuple(names_of((), kind) for kind in coded)
        return cls(np.full((rows, len(kinds) - len(coded)), np.nan), codes, names, kinds)

    def __len__(self) -> int:
        """Number of rows, T."""
        return len(self.numbers)

    def __getitem__(self, which: NDArray[Any]) -> Features:
        return replace(self, numbers=self.numbers[which], codes=self.codes[which])

    @cached_property
    def gaps(self) -> NDArray[np.bool_]:
        """Which columns of numbers lack a value in some row, shape (d,)."""
        return np.asarray(np.isnan(self.numbers).any(axis=0))

    @cached_property
    def unlearnable(self) -> list[int]:
        """Numbers of the columns of which nothing can be learned, among all.

        All rows have the same value, or none, or nearly every row a category of its own, such as an id.
        """
        numbers, coded = iter(_constant(self.numbers)), iter(self.codes.T)
        nothing = (_says_nothing(kind, next(coded)) if kind in CODED else bool(next(numbers)) for kind in self.kinds)
        return [at for at, each in enumerate(nothing) if each]

    @property
    def plain(self) -> bool:
        """Whether these are numbers only, none of them missing: what models take as it is."""
        return not self.categories and not self.gaps.any()

    @property
    def matrix(self) -> Matrix:
        """The numbers, shape (T, d), where these are all there is. Errors: Undefined, where there are categories."""
        if self.categories:
            raise Undefined("needs numbers, and these features have categories that are not encoded")
        return self.numbers

    def hashed(self) -> Iterator[NDArray[np.uint64]]:
        """64 bits of each row's value, for every column: equal values get equal bits, whatever the codes are."""
        for column, gaps in zip(self.numbers.T, self.gaps, strict=True):
            # Adding 0 turns -0 into 0; missing values differ in their bits.
            bits = (np.ascontiguousarray(column, dtype=np.float64) + 0.0).view(np.uint64)
            yield np.where(np.isnan(column), np.uint64(1), bits) if gaps else bits
        for codes, names in zip(self.codes.T, self.categories, strict=True):
            digests = [hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=8).digest() for name in names]
            yield np.append(np.frombuffer(b"".join(digests), dtype="<u8"), np.uint64(1))[codes]

    def as_kinds(self, kinds: Sequence[Kind]) -> Features:
        """These columns in the blocks of other kinds: a column of only missing values fits any kind.

        Values of a column that is only missing in `kinds` count as missing. Errors: Undefined, where a column is of
        another kind.
        """
        if tuple(kinds) == self.kinds:
            return self
        wrong = mismatch(self.kinds, kinds)
        if wrong is not None:
            raise Undefined(f"needs {PLURALS[kinds[wrong]]} in feature {wrong + 1}, not {PLURALS[self.kinds[wrong]]}")
        numbers, codes = iter(self.numbers.T), zip(self.codes.T, self.categories, strict=True)
        as_numbers, as_codes = [], []
        nothing = np.full(len(self), np.nan)
        for have, want in zip(self.kinds, kinds, strict=True):
            column: Any = next(codes) if have in CODED else next(numbers)
            if want in CODED:
                code, names = column if have in CODED else (np.full(len(self), MISSING_CODE, dtype=np.int32), ())
                as_codes.append((code, names_of(names, want)))
            else:
                as_numbers.append(nothing if want == "missing" else column)
        return Features(
            _side_by_side(as_numbers, len(self), np.float64),
            _side_by_side([each for each, _ in as_codes], len(self), np.int32),
            tuple(names for _, names in as_codes),
            tuple(kinds),
        )


def names_of(names: tuple[str, ...], kind: Kind) -> tuple[str, ...]:
    """The names of a column of codes as its kind has them."""
    return raw_texts(names) if kind == "text" else names


def number_kinds(columns: int) -> tuple[Kind, ...]:
    """The kinds of so many columns of numbers."""
    number: Kind = "number"
    return (number,) * columns


MIN_IDS, ID_SHARE = 20, 0.9
"""Rows with a value, and the share of different ones among them, from which categories are ids."""


def _constant(numbers: Matrix) -> NDArray[np.bool_]:
    """Which columns hold one value in all rows, or none, shape (d,)."""
    constant = ((numbers[:1] == numbers[-1:]) | np.isnan(numbers[:1])).all(axis=0)
    for at in np.flatnonzero(constant):
        column = numbers[:, at]
        constant[at] = bool((column == column[0]).all() or np.isnan(column).all())
    return np.asarray(constant)


def _says_nothing(kind: Kind, codes: Codes) -> bool:
    given = codes[codes >= 0]
    known, different = len(given), int(np.count_nonzero(np.bincount(given)))
    return different + (known < len(codes)) < 2 or (
        kind == "category" and known >= MIN_IDS and different >= ID_SHARE * known
    )


def _side_by_side(columns: list[Any], rows: int, dtype: Any) -> Any:
    return np.column_stack(columns).astype(dtype, copy=False) if columns else np.empty((rows, 0), dtype=dtype)


def mismatch(have: Sequence[Kind], want: Sequence[Kind]) -> int | None:
    """The first column whose kind is not the wanted one, None where all fit.

    A column of only missing values fits any kind, booleans are numbers, and texts categories. Errors: Undefined, where
    there are more or fewer columns.
    """
    if len(have) != len(want):
        raise Undefined(f"needs {len(want)} features, and there are {len(have)}")
    alike = {"boolean": "number", "text": "category"}
    for at, (one, other) in enumerate(zip(have, want, strict=True)):
        if "missing" not in (one, other) and alike.get(one, one) != alike.get(other, other):
            return at
    return None


def kinds_text(kinds: Iterable[Kind]) -> str:
    """'5 numbers, 7 categories'; '1 category'."""
    counts = Counter(kinds)
    return ", ".join(
        f"{counts[kind]:,} {kind if counts[kind] == 1 and kind != 'missing' else PLURALS[kind]}"
        for kind in PLURALS
        if kind in counts
    )


def mixed_bits(columns: Iterable[NDArray[np.uint64]], rows: int) -> NDArray[np.uint64]:
    """64 bits of each row, shape (rows,), from 64 bits of each of its columns: equal rows get equal bits."""
    mixed = np.zeros(rows, dtype=np.uint64)
    for bits in columns:
        mixed = (mixed ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed
