"""A hash of what stands in a row, which files and every engine compute alike, so that they draw the same sample.

It takes whole numbers and powers of two only, which are exact in any order. A number x is cut in three pieces of 31
bits, from x / 2^20 downwards; a text counts as the first 28 bits of its MD5; missing values and anything else count as
0. The hash is (sum of pieces times factors mod P)^5 mod P: a sum alone would leave near rows near.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from decal_cli.data.words import MISSING
from decal_cli.tables.table import Floats, Ints

PRIME = (1 << 31) - 1
"""Of which no power that is needed divides PRIME - 1, so that the fifth power keeps different hashes different."""
N_PIECES = 3
PIECE = float(1 << 31)
TOP, LARGEST = float(1 << 20), float(1 << 50)
"""Numbers are divided by TOP first; what is larger than LARGEST counts as LARGEST."""
SHIFT = 1 << 30
"""Of the first piece, so that none is negative."""
N_HASHED_COLUMNS = 100
"""Columns that are hashed, the first ones by name: sums of their pieces stay below 2^62."""
N_HEX = 7


def factor(column: int, piece: int = 0) -> int:
    """What a piece of a column is multiplied by: odd and below 2^22, from the powers of 48271 mod P."""
    return pow(48_271, N_PIECES * column + piece + 1, PRIME) % (1 << 22) | 1


def pieces_of(numbers: Floats) -> Iterator[Ints]:
    """Whole numbers in [0, 2^31] of each number, shape (k,); 0 of NaN."""
    missing = np.isnan(numbers)
    left = np.where(missing, 0.0, np.clip(numbers, -LARGEST, LARGEST)) / TOP
    for piece in range(N_PIECES):
        whole = np.floor(left)
        yield np.where(missing, 0, whole.astype(np.int64) + (SHIFT if piece == 0 else 0))
        left = (left - whole) * PIECE


def pieces_of_texts(texts: Sequence[str | None]) -> Ints:
    """A whole number below 2^28 for each text, 0 for one that stands for a missing value."""
    return np.array([0 if each is None or each in MISSING else piece_of_text(each) for each in texts], dtype=np.int64)


def piece_of_text(text: str) -> int:
    """The first 28 bits of the MD5 of a text."""
    return int(hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:N_HEX], 16)


def mixed(sums: Ints) -> Ints:
    """The hashes, in [0, PRIME), of sums of pieces times factors."""
    first = sums % PRIME
    second = first * first % PRIME
    return second * second % PRIME * first % PRIME
