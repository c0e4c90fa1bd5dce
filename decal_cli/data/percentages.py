"""Scores that are written as texts, such as '90%', '90 percent' and '0.9': each is read by its own sign."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from decal_cli.data.check import Origin, Part, loaded_parts
from decal_cli.data.columns import Chosen
from decal_cli.data.formats.sources import FileSource, Source
from decal_cli.data.labels import plain_encoded
from decal_cli.data.words import MISSING, not_a_number, number_with_sign
from decal_cli.errors import DecalError
from decal_cli.roles import Columns


def parts_with_scores(sources: Sequence[Source], chosen: Chosen, columns: Columns) -> list[Part]:
    """The columns of every input, scores that are texts as numbers. Errors: DecalError, for a text that is none."""
    scores = may_be_texts(chosen.score, columns)
    return [with_numbers(part, scores) for part in loaded_parts(sources, chosen.numbers, chosen.texts, scores)]


def may_be_texts(scores: Sequence[str], columns: Columns) -> tuple[str, ...]:
    """The scores that may be texts: neither log-odds nor margins are percentages."""
    return () if columns.logit or columns.margin else tuple(scores)


def with_numbers(part: Part, scores: Sequence[str]) -> Part:
    """The same rows, scores that are texts as numbers. Errors: DecalError, for the first text that is none."""
    import pyarrow as pa

    table, percentages = part.table, {}
    for name in scores:
        at = table.schema.get_field_index(name)
        if _is_text(table.schema.field(at).type):
            values, percentages[name] = _numbers(part, name)
            table = table.set_column(at, name, pa.array(values))
    return replace(part, table=table, percentages=percentages) if percentages else part


def percentage_notes(parts: Sequence[Part], name: str) -> tuple[str, ...]:
    """What is said of a score some of whose values were percentages."""
    count = sum(part.percentages.get(name, 0) for part in parts)
    rows = parts[-1].start + parts[-1].table.num_rows
    of_rows = f"all {rows:,}" if count == rows else f"{count:,} of {rows:,}"
    return (f"{name}: read {of_rows} values as percentages, such as 90% as 0.9",) if count else ()


def holds_texts(source: FileSource, name: str) -> bool:
    """Whether the first rows of a column are texts, or are no numbers in a format that has no types."""
    try:
        first = next(iter(source.rows((name,), ())), None)
    except DecalError:
        return True
    return first is not None and _is_text(first.schema.field(name).type)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(is_text(kind) for is_text in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _numbers(part: Part, name: str) -> tuple[np.ndarray, int]:
    """A column of texts as numbers, NaN where missing, shape (rows,); and how many of them are percentages."""
    values, percentages = np.empty(part.table.num_rows), 0
    for at, chunk in part.chunks(name):
        texts, indices = plain_encoded(part, name, chunk)
        # The place after the texts stands for null.
        known = [(math.nan, False) if text is None or text in MISSING else number_with_sign(text) for text in texts]
        known.append((math.nan, False))
        wrong = np.isin(indices, [place for place, each in enumerate(known) if each is None])
        if wrong.any():
            first = int(wrong.argmax())
            raise not_a_number(Origin([part]).place(name, at + first), texts[indices[first]] or "")
        number, sign = (np.array(column) for column in zip(*(each or (math.nan, False) for each in known), strict=True))
        values[at - part.start : at - part.start + len(indices)] = np.where(sign, number / 100, number)[indices]
        percentages += int(np.count_nonzero(sign[indices]))
    return values, percentages
