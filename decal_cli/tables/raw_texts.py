"""Raw texts as what can be learned from: which of 65,536 n-grams of words and characters stand in each.

A model file holds weights of these numbers, so that hashing must not change: it is written here, and in numpy, which
takes a twentieth of the time of scikit-learn's HashingVectorizer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

BUCKETS = 1 << 16
"""What n-grams are hashed to: two that share one count as the same. One more stands for a missing text."""
CHARACTERS = 4
"""Characters of the longest n-grams; the shortest have 2. Each lies within a word and the spaces at its ends."""
MAX_CHARACTERS = 2000
"""Characters of a text that are looked at, from its beginning."""
HELD_CHARACTERS = 1 << 25
"""Characters of all texts of a column up to which their n-grams are held, some 12 bytes for each character."""
_AT_ONCE = 1 << 18
_FACTOR, _MIX, _OF_WORDS = np.uint64(0x100000001B3), np.uint64(0x9E3779B97F4A7C15), np.uint64(0x5851F42D4C957F2D)
_BITS, _SPACE = np.uint64(17), ord(" ")

Hashed = tuple[NDArray[np.uint64], NDArray[np.uint64]]


class RawTexts(tuple[str, ...]):
    """The different texts of a column."""

    def grams(self, codes: NDArray[Any]) -> Any:
        """Which n-grams stand in some texts, a CSR matrix of ones, shape (codes, BUCKETS + 1); code -1: missing."""
        if self._held is not None:
            return self._held[codes]
        return _matrix([self[code] if code >= 0 else None for code in codes.tolist()])

    @cached_property
    def _held(self) -> Any:
        """The n-grams of every text, and in the last row of a missing one; None where they take too much memory."""
        many = sum(min(len(text), MAX_CHARACTERS) for text in self) > HELD_CHARACTERS
        return None if many else _matrix([*self, None])


def raw_texts(names: tuple[str, ...]) -> RawTexts:
    """The names of a column as its texts."""
    return names if isinstance(names, RawTexts) else RawTexts(names)


def _matrix(texts: Sequence[str | None]) -> Any:
    from scipy.sparse import csr_matrix

    parts = list(_grams(texts))
    bucket = np.concatenate([np.empty(0, np.int32), *(bucket for bucket, _ in parts)])
    start = np.cumsum(np.concatenate([np.zeros(1, dtype=np.int64), *(size for _, size in parts)]))
    return csr_matrix((np.ones(len(bucket), dtype=np.uint8), bucket, start), shape=(len(texts), BUCKETS + 1))


def _grams(texts: Sequence[str | None]) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
    """For one block of texts after the other: the buckets of each text's different n-grams, and how many it has."""
    block: list[str] = []
    missing: list[int] = []
    total = 0
    for number, text in enumerate(texts, start=1):
        if text is None:
            missing.append(len(block))
        block.append(f" {' '.join((text or '')[:MAX_CHARACTERS].lower().split())} ")
        total += len(block[-1])
        if total >= _AT_ONCE or number == len(texts):
            yield _of_block(block, missing)
            block, missing, total = [], [], 0


def _of_block(block: list[str], missing: list[int]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    letters = np.frombuffer("".join(block).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    text = np.repeat(np.arange(len(block), dtype=np.uint64), [len(each) for each in block])
    keys = [(of << _BITS) | (bits * _MIX >> np.uint64(48)) for of, bits in _hashes(letters, text)]
    keys.append((np.array(missing, dtype=np.uint64) << _BITS) | np.uint64(BUCKETS))
    each = np.sort(np.concatenate(keys))
    each = each[np.append(True, each[1:] != each[:-1])[: len(each)]]
    size = np.bincount((each >> _BITS).astype(np.int64), minlength=len(block))
    return (each & ((np.uint64(1) << _BITS) - np.uint64(1))).astype(np.int32), size


def _hashes(letters: NDArray[np.uint64], text: NDArray[np.uint64]) -> Iterator[Hashed]:
    """The text of each n-gram and its 64 bits: of characters, then of words, then of pairs of words."""
    space, within, bits = letters == _SPACE, np.ones(len(letters), dtype=bool), letters
    for size in range(2, CHARACTERS + 1):
        # Two spaces stand next to each other where a text ends and the next one begins.
        within = within[:-1] & ~(space[:-1] & space[1:] if size == 2 else space[size - 2 : -1])
        bits = bits[:-1] * _FACTOR + letters[size - 1 :]
        yield text[: len(bits)][within], bits[within]
    of, word = _words(letters, text)
    yield of, word * _OF_WORDS
    same = of[1:] == of[:-1]
    yield of[1:][same], (word[:-1] * _FACTOR + word[1:])[same] * _OF_WORDS * _OF_WORDS


def _words(letters: NDArray[np.uint64], text: NDArray[np.uint64]) -> Hashed:
    """The text of each word, a run of letters and digits, and its 64 bits."""
    at = np.flatnonzero(_in_words(letters))
    begins = np.flatnonzero(np.diff(at, prepend=-1) > 1)
    place = np.arange(len(at)) - np.repeat(begins, np.diff(np.append(begins, len(at))))
    power = np.cumprod(np.append(np.uint64(1), np.full(int(place.max(initial=0)), _FACTOR)))
    bits = np.add.reduceat(letters[at] * power[place], begins) if len(at) else np.empty(0, np.uint64)
    return text[at[begins]], bits


def _in_words(letters: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which characters are letters or digits."""
    present = np.bincount(letters.astype(np.int64)).astype(bool)
    present[present] = [chr(letter).isalnum() for letter in np.flatnonzero(present).tolist()]
    return present[letters]
