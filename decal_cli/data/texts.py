"""A column of which only equality counts: its different texts, and which of them each row has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from decal_cli.data.formats.files import translated
from decal_cli.data.parts import NotNumbers, Origin, Part, plain
from decal_cli.data.words import quote, text_of
from decal_cli.errors import DecalError

MISSING_CODE = -1


def encoded(chunk: Any) -> tuple[list[str | None], np.ndarray]:
    """Distinct values of a chunk as texts, and (n,) indices into them, len(texts) where null.

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
    return texts, plain(indices.cast(pa.int64()).fill_null(len(texts)) if indices.null_count else indices)


def part_texts(part: Part, name: str, chunk: Any) -> tuple[list[str | None], np.ndarray]:
    """`encoded`, with its error worded for the user."""
    try:
        with translated(part.source.shown, f"text (column {quote(name)})"):
            return encoded(chunk)
    except NotNumbers as error:
        place = f"{part.source.shown}, column {quote(name)}"
        raise DecalError(f"{place}: holds lists or structures ({error})", "name a column of plain values") from None


class Texts:
    """The different texts of a column in the order of the rows, and int32 (T,) codes of them, -1 where missing.

    missing: which texts stand for a missing value, as the empty one does.
    """

    def __init__(
        self, parts: Sequence[Part], name: str, missing: Callable[[str], bool] = lambda text: not text
    ) -> None:
        self.parts, self.name = parts, name
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
                self.codes[at : at + len(indices)] = codes[indices]
        # Texts that stand in a dictionary and in no row say nothing of the column.
        used = np.bincount(self.codes + 1, minlength=len(known) + 1)[1:] > 0
        self.values = [text for text, at in known.items() if used[at]]
        if not used.all():
            self.codes = np.append(np.cumsum(used, dtype=np.int32) - 1, np.int32(MISSING_CODE))[self.codes]

    def each(self, of_values: Sequence[Any] | np.ndarray, of_missing: Any, dtype: Any = None) -> np.ndarray:
        """What each row has, of what each different text has; shape (T,)."""
        return np.array([*of_values, of_missing], dtype)[self.codes]
