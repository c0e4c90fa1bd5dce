"""Columns of which only equality counts: labels, coded over all inputs at once, groups, clusters and periods."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from decal_cli.data.parts import Origin, Part, plain
from decal_cli.data.texts import Texts, part_texts
from decal_cli.data.words import MISSING, NUMBER, listed, quote, shell_word, text_of
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.roles import Columns

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

    def codes(self, parts: Sequence[Part]) -> np.ndarray:
        """uint8 (T,): index into `values`, MISSING_LABEL where missing; maybe a read-only view."""
        pieces = [self._codes(part, chunk) for part in parts for _, chunk in part.pieces(self.name)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _codes(self, part: Part, chunk: Any) -> np.ndarray:
        import pyarrow as pa

        if pa.types.is_integer(chunk.type) and not chunk.null_count:
            values = plain(chunk)
            low, high = values.min(), values.max()
            if low >= 0 and high <= 1:
                self.seen.update({"0", "1"} if low < high else {str(int(low))})
                return values.view(np.uint8) if values.itemsize == 1 else values.astype(np.uint8)
        texts, indices = part_texts(part, self.name, chunk)
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
        what = f"{origin.of_column(self.name)}: label"
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


def labels_of(parts: Origin, name: str, columns: Columns) -> tuple[np.ndarray, np.ndarray | None]:
    """uint8 (T,) labels, MISSING_LABEL where missing, and the mask of these (None when there is none)."""
    labels = Labels(name, columns.positive)
    codes = labels.codes(parts)
    meaning = labels.meaning(codes, parts)
    missing = codes == MISSING_LABEL if int(codes.max()) == MISSING_LABEL else None
    need_some(missing, parts, name)
    missing = parts.lacking(missing, name, "label", columns)
    return codes if meaning is None else meaning[codes], missing


def need_some(missing: np.ndarray | None, parts: Origin, name: str) -> None:
    """Raise a DecalError where every label is missing."""
    if missing is not None and missing.all():
        raise DecalError(
            f"{parts[0].source.shown}, column {quote(name)}: every label is missing", "name another column"
        )


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


def group(parts: Sequence[Part], name: str, called: Mapping[str, str] | None = None) -> np.ndarray:
    """A column of group names, str (T,); the same strings from every format, NO_GROUP where null or empty.

    called: what each text is called, where these rows are a batch of more.
    """
    texts = Texts(parts, name)
    names = _names(texts) if called is None else [called[text] for text in texts.values]
    no_group = NO_GROUP if (texts.codes < 0).any() else ""
    wide = max(map(len, (*names, no_group))) * 4 * len(texts.codes) > 1 << 30
    return texts.each(names, no_group, object if wide else str)


def group_names(parts: Iterable[Part], name: str) -> dict[str, str]:
    """What each text of a column of groups is called: no batch of rows can know it by itself."""
    known: dict[str, None] = {}
    shown, some_missing = "", False
    for part in parts:
        texts, shown = Texts([Part(part.source, part.table, 0)], name), part.source.shown
        known |= dict.fromkeys(texts.values)
        some_missing = some_missing or bool((texts.codes < 0).any())
    return dict(zip(known, settled(list(known), some_missing, f"{shown}, column {quote(name)}"), strict=True))


def _names(texts: Texts) -> list[str]:
    place = f"{texts.parts[0].source.shown}, column {quote(texts.name)}"
    return settled(texts.values, bool((texts.codes < 0).any()), place)


def settled(known: list[str], some_missing: bool, place: str) -> list[str]:
    """Group names that do not depend on the format: among numbers '2.0' is '2', and 'True' is 'true'.

    Where that would merge two names, all of them stay as they are.
    """
    if some_missing and NO_GROUP in known:
        raise DecalError(f"{place}: a group is called {NO_GROUP}, and so are missing values", "rename it")
    if known and all(t.lower() in ("true", "false") for t in known):
        return [t.lower() for t in known]
    if any("." in t for t in known) and all(_DECIMAL.fullmatch(t) for t in known):
        whole = [re.sub(r"\.0*$", "", t) for t in known]
        if len(set(whole)) == len(set(known)):
            return whole
    return known


def clusters(parts: Origin, name: str, columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """A column of clusters: their names in order, (T,) numbers of them, and the mask of missing ones, None for none.

    Errors: DecalError, for a missing value that may not be dropped, or only one cluster.
    """
    texts = Texts(parts, name)
    missing = parts.lacking(texts.codes < 0, name, "cluster", columns)
    names = _names(texts)
    need_several(names, parts.of_column(name))
    order = sorted({*names, NO_GROUP} if missing is not None else set(names))
    number = {each: k for k, each in enumerate(order)}
    return np.array(order), texts.each([number[each] for each in names], number.get(NO_GROUP, -1), np.int64), missing


def need_several(known: Sequence[str], place: str) -> None:
    """Raise a DecalError where there are no two clusters."""
    if len(set(known)) < 2:
        one = f"is {quote(known[0])}" if known else "is missing"
        raise DecalError(
            f"{place}: the cluster of every row {one}",
            "name the column of what was sampled independently, such as the patient",
        )


def periods(parts: Origin, name: str, columns: Columns) -> tuple[np.ndarray, np.ndarray | None]:
    """A column of periods: (T,) numbers of them, times as their days; and the mask of missing ones, None for none.

    Errors: DecalError, for a missing value that may not be dropped.
    """
    texts = Texts(parts, name)
    missing = parts.lacking(texts.codes < 0, name, "day", columns)
    names = _names(texts)
    if all(map(_TIME.fullmatch, names)):
        names = [each[:_DATE_LENGTH] for each in names]
    _, rank = np.unique([*names, NO_GROUP], return_inverse=True)
    return rank[texts.codes], missing
