"""Columns of which only equality counts: labels, coded 0/1 over all inputs at once, and group names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from decal_cli.data.check import NotNumbers, Origin, Part, missing_values, plain
from decal_cli.data.formats.files import translated
from decal_cli.data.words import MISSING, NUMBER, listed, quote, shell_word, text_of
from decal_cli.errors import DecalError
from decal_cli.hints import Hint

NATURAL = {"0": 0, "1": 1, "false": 0, "true": 1}
MISSING_LABEL = 255
MOST_LABELS = 64
NO_GROUP = "(missing)"
"""What a group of missing values is called: nothing that a column is likely to hold as a text."""
_DECIMAL = re.compile(r"[+-]?\d+(\.\d*)?")
_WHOLE = re.compile(r"(\+|(?P<minus>-))?0*(?P<digits>\d+)(\.0*)?", re.ASCII)
_TIME, _DATE_LENGTH = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:.*)?"), len("2026-01-31")
# 'none' may well be a class.
NO_LABEL = frozenset(MISSING) - {"None", "none"}


class Labels:
    """Label values of all inputs -> codes; what the codes mean is settled once, over all of them."""

    def __init__(self, name: str, positive: str | None) -> None:
        self.name = name
        self.positive = None if positive is None else label_text(positive) or positive
        self.values: dict[str, int] = {"0": 0, "1": 1}
        self.seen: set[str] = set()

    def codes(self, part: Part, chunk: Any) -> np.ndarray:
        """uint8 (n,): index into `values`, MISSING_LABEL where missing; maybe a read-only view."""
        import pyarrow as pa

        if pa.types.is_integer(chunk.type) and not chunk.null_count:
            values = plain(chunk)
            low, high = values.min(), values.max()
            if low >= 0 and high <= 1:
                self.seen.update({"0", "1"} if low < high else {str(int(low))})
                return values.view(np.uint8) if values.itemsize == 1 else values.astype(np.uint8)
        texts, indices = plain_encoded(part, self.name, chunk)
        used = np.zeros(len(texts) + 1, dtype=bool)
        used[indices] = True
        table = np.full(len(texts) + 1, MISSING_LABEL, dtype=np.uint8)
        for at in np.flatnonzero(used[:-1]):
            text = label_text(texts[at])
            if text is None:
                continue
            self.seen.add(text)
            if len(self.values) > MOST_LABELS:
                break
            table[at] = self.values.setdefault(text, len(self.values))
        return table[indices]

    def meaning(self, codes: np.ndarray, origin: Origin) -> np.ndarray | None:
        """uint8 (256,): code -> label, None when the codes are the labels already.

        Errors: neither 0/1 nor two values with one of them named as positive.
        """
        texts = sorted(self.seen, key=_by_number)
        what = f"{origin.shown}, column {quote(self.name)}: label"
        if len(self.seen) > MOST_LABELS:
            raise DecalError(f"{what} has more than {MOST_LABELS} different values", "name a column of two values")
        if not self.natural and len(texts) > 2:
            odd = next(t for t in [*(t for t in texts if t not in NATURAL), *texts] if np.any(codes == self.values[t]))
            row = int((codes == self.values[odd]).argmax())
            raise DecalError(
                f"{origin.place(self.name, row)}: label is {quote(odd)}, and the column has {len(texts)} values:"
                f" {listed(texts)}",
                "a label has two; correct it or name another column",
            )
        if self.positive is None and not self.natural:
            raise self._ambiguous(texts, what)
        if not self.has_positive:
            raise DecalError(
                f"{what} is never {quote(self.positive)}, it is {listed(texts)}", f"correct {Hint('positive')}"
            )
        return None if self.positive is None and self.seen <= {"0", "1"} else self.table()

    @property
    def natural(self) -> bool:
        """Whether the values say by themselves which of them counts as 1."""
        return self.seen <= NATURAL.keys()

    @property
    def has_positive(self) -> bool:
        """Whether the value named as positive is one of the values; with 0/1 labels it may be the one not seen."""
        return self.positive is None or self.positive in self.seen or (self.natural and self.positive in NATURAL)

    def table(self) -> np.ndarray:
        """uint8 (256,): code -> label, from the values seen so far."""
        one = self.positive or "1"
        ones = {one}
        if self.natural and one in NATURAL:
            ones = {text for text in NATURAL if NATURAL[text] == NATURAL[one]}
        table = np.full(256, MISSING_LABEL, dtype=np.uint8)
        for text in self.seen:
            table[self.values[text]] = text in ones
        return table

    def _ambiguous(self, texts: list[str], what: str) -> DecalError:
        if len(texts) == 1:
            return DecalError(
                f"{what} is always {quote(texts[0])}", f"add {Hint('positive')} with the value that counts as 1"
            )
        if _by_number(texts[0])[0] == 0:
            return DecalError(f"{what} is {texts[0]} or {texts[1]}, not 0 or 1", f"use {Hint('positive', texts[1])}")
        either = " or ".join(f"{Hint('positive', f'{shell_word(t)}')}" for t in texts)
        return DecalError(f"{what} is {listed(texts)}, not 0 or 1", f"say which counts as 1: {either}")


def label_text(text: str | None) -> str | None:
    """Canonical spelling of a label value: '1.0' and ' 1' are '1', 'True' is 'true'; None where it is missing."""
    if text is None or (text := text.strip()) in NO_LABEL:
        return None
    if text.lower() in ("true", "false"):
        return text.lower()
    if whole := _WHOLE.fullmatch(text):
        # Not by way of a float, which has no room for 2^64 - 1.
        return f"{'-' if whole['minus'] and whole['digits'] != '0' else ''}{whole['digits']}"
    return text_of(float(text)) if NUMBER.fullmatch(text) else text


def _by_number(text: str) -> tuple[int, float, str]:
    return (0, float(text), "") if NUMBER.fullmatch(text) else (1, 0.0, text)


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


def group(parts: Sequence[Part], name: str, settled_before: Mapping[str | None, str] | None = None) -> np.ndarray:
    """A column of group names, str (T,); the same strings from every format, NO_GROUP where null or empty.

    settled_before: what each text is called, where these rows are a batch of more.
    """
    names, number = _numbered(parts, name, settled_before)
    wide = max(map(len, names)) * 4 * len(number) > 1 << 30
    return np.array(names, dtype=object if wide else str)[number]


def clusters(parts: Sequence[Part], name: str, origin: Origin, drop: bool) -> tuple[np.ndarray, np.ndarray, Any]:
    """A column of clusters: their names in order, (T,) numbers of them, and the mask of missing ones, None for none.

    drop: whether rows without one may be dropped. Errors: DecalError, for a missing value or only one cluster.
    """
    names, number = _numbered(parts, name, None)
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    number = rank[number]
    missing = number == int(rank[names.index(NO_GROUP)]) if NO_GROUP in names else None
    if missing is not None and not drop:
        raise missing_values(missing, name, "cluster", origin)
    known = [each for each in names if missing is None or each != NO_GROUP]
    need_several(known, f"{origin.shown}, column {quote(name)}")
    return np.array([names[k] for k in order]), number, missing


def need_several(known: Sequence[str], place: str) -> None:
    """Raise a DecalError where there are no two clusters."""
    if len(known) < 2:
        one = f"is {quote(known[0])}" if known else "is missing"
        raise DecalError(
            f"{place}: the cluster of every row {one}",
            "name the column of what was sampled independently, such as the patient",
        )


def periods(parts: Sequence[Part], name: str, origin: Origin, drop: bool) -> tuple[np.ndarray, Any]:
    """A column of periods: (T,) numbers of them, times as their days; and the mask of missing ones, None for none.

    drop: whether rows without one may be dropped. Errors: DecalError, for a missing value.
    """
    names, number = _numbered(parts, name, None)
    missing = number == names.index(NO_GROUP) if NO_GROUP in names else None
    if missing is not None and not drop:
        raise missing_values(missing, name, "day", origin)
    if all(_TIME.fullmatch(each) for each in names if each != NO_GROUP):
        names = [each[:_DATE_LENGTH] for each in names]
    _, rank = np.unique(names, return_inverse=True)
    return rank[number], missing


def _numbered(
    parts: Sequence[Part], name: str, settled_before: Mapping[str | None, str] | None
) -> tuple[list[str], np.ndarray]:
    """The names of a column, and (T,) numbers of them."""
    known: dict[str | None, int] = {}
    out = np.empty(parts[-1].start + parts[-1].table.num_rows, dtype=np.int32)
    for part in parts:
        for at, texts, indices in group_texts(part, name):
            table = np.array([known.setdefault(t, len(known)) for t in texts], dtype=np.int32)
            out[at : at + len(indices)] = table[indices]
    names = (
        settled(list(known), parts[0].source.shown, name)
        if settled_before is None
        else [settled_before[text] for text in known]
    )
    return names, out


def group_names(parts: Iterable[Part], name: str) -> dict[str | None, str]:
    """What each text of a column of groups is called: no batch of rows can know it by itself."""
    known: dict[str | None, None] = {}
    shown = ""
    for part in parts:
        shown = part.source.shown
        known |= dict.fromkeys(text for _, texts, _ in group_texts(part, name) for text in texts)
    return dict(zip(known, settled(list(known), shown, name), strict=True))


def group_texts(part: Part, name: str) -> Iterator[tuple[int, list[str | None], np.ndarray]]:
    """Of each chunk: its first row, its texts, None where null or empty, and (n,) indices into them."""
    for at, chunk in part.chunks(name):
        texts, indices = plain_encoded(part, name, chunk)
        # The place after the texts stands for null.
        yield at, [t or None for t in texts] + ([None] if chunk.null_count else []), indices


def plain_encoded(part: Part, name: str, chunk: Any) -> tuple[list[str | None], np.ndarray]:
    """`encoded`, with its error worded for the user."""
    try:
        with translated(part.source.shown, f"text (column {quote(name)})"):
            return encoded(chunk)
    except NotNumbers as error:
        place = f"{part.source.shown}, column {quote(name)}"
        raise DecalError(f"{place}: holds lists or structures ({error})", "name a column of plain values") from None


def settled(texts: list[str | None], shown: str, name: str) -> list[str]:
    """Group names that do not depend on the format: among numbers '2.0' is '2', and 'True' is 'true'.

    Where that would merge two names, all of them stay as they are.
    """
    plain = [NO_GROUP if t is None else t for t in texts]
    known = [t for t in texts if t is not None]
    if len(known) < len(texts) and NO_GROUP in known:
        raise DecalError(
            f"{shown}, column {quote(name)}: a group is called {NO_GROUP}, and so are missing values", "rename it"
        )
    if known and all(t.lower() in ("true", "false") for t in known):
        return [t.lower() for t in plain]
    if known and any("." in t for t in known) and all(_DECIMAL.fullmatch(t) for t in known):
        whole = [re.sub(r"\.0*$", "", t) for t in plain]
        if len(set(whole)) == len(set(plain)):
            return whole
    return plain
