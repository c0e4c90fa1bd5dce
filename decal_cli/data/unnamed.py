"""A column that looks like what rows were sampled by, where the user named none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from decal_cli.data.columns import Chosen
from decal_cli.data.dataset import Dataset
from decal_cli.data.formats.sources import Source
from decal_cli.data.labels import group
from decal_cli.data.parts import loaded_parts
from decal_cli.data.words import quote, shell_word
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.tables.design import MIN_CLUSTERS, design_effect
from decal_cli.tables.rows import Rows

USUAL = (
    *("cluster", "patient", "subject", "person", "participant", "user", "customer", "client", "account", "household"),
    *("question", "document", "doc", "conversation", "session", "game", "match", "race", "site", "clinic", "hospital"),
    *("store", "device", "author", "*_id", "*_cluster"),
)
"""Names, in lower case, of columns that rows are often sampled by."""
MAX_ROWS, MAX_COLUMNS = 100_000, 3
"""Above so many rows no further column is read, and of a file no more columns than these."""
MIN_EFFECT = 1.5
"""Design effect from which on a note is worth its line."""
CLEAR = 3.0
"""Standard deviations of a design effect of independent rows by which it must be larger than 1."""


def with_note(data: Dataset, sources: Sequence[Source], chosen: Chosen) -> Dataset:
    """The data set, with a note on the first such column, if there is one."""
    rows = data.models[0].rows
    if chosen.cluster is not None or data.classes or sum(item.rows for item in data.inputs) > MAX_ROWS:
        return data
    taken = {*chosen.numbers, *chosen.texts, *chosen.features}
    names = [name for name in sources[0].names if name not in taken and _usual(name)][:MAX_COLUMNS]
    numbers = data.models[0].row_numbers
    for name in names:
        # Columns that every file has and that hold plain values.
        with suppress(DecalError, KeyError):
            values = group(loaded_parts(sources, (), (name,)), name)
            note = _note(name, rows, values if numbers is None else values[numbers])
            if note is not None:
                return replace(data, notes=(*data.notes, note))
    return data


def _usual(name: str) -> bool:
    return any(fnmatchcase(name.lower(), pattern) for pattern in USUAL)


def _note(name: str, rows: Rows, values: np.ndarray) -> str | None:
    """What the column says about the rows; None where they look independent."""
    clusters, unit = np.unique(values, return_inverse=True)
    if not MIN_CLUSTERS <= len(clusters) <= len(rows) / 2:
        return None
    effect = design_effect(rows.label - rows.score, rows.weight, unit)
    if effect < max(MIN_EFFECT, 1 + CLEAR * math.sqrt(2 / len(clusters))):
        return None
    return (
        f"errors go together within the {len(clusters):,} values of column {quote(name)} (design effect {effect:.1f}): "
        f"if rows were sampled by it, intervals are too narrow without {Hint('cluster', f'{shell_word(name)}').words}"
    )
