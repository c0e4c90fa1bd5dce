"""What the columns that nobody gave a role may be: times, and what rows were sampled by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from decal_cli.data.check import group
from decal_cli.data.columns import Chosen
from decal_cli.data.dataset import Dataset
from decal_cli.data.formats.files import Source
from decal_cli.data.parts import loaded_parts
from decal_cli.data.words import quote, shell_word
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.tables.design import MIN_CLUSTERS, design_effect

USUAL = (
    *("cluster", "patient", "subject", "person", "participant", "user", "customer", "client", "account", "household"),
    *("question", "document", "doc", "conversation", "session", "game", "match", "race", "site", "clinic", "hospital"),
    *("store", "device", "author", "*_id", "*_cluster"),
)
"""Names, in lower case, of columns that rows are often sampled by."""
TIMES = ("date", "day", "time", "timestamp", "datetime", "*_date", "*_time", "*_at", "date_*")
"""Patterns of the names that columns of times often have."""
MAX_ROWS, MAX_COLUMNS = 100_000, 3
"""Above so many rows no further column is read, and of a file no more columns than these."""
MIN_EFFECT = 1.5
"""Design effect from which on a note is worth its line."""
CLEAR = 3.0
"""Standard deviations of a design effect of independent rows by which it must be larger than 1."""


def with_unused(data: Dataset, sources: Sequence[Source], chosen: Chosen) -> Dataset:
    """The data set with what its columns without a role may be.

    These are times, and the first column that looks like what rows were sampled by, on which there is a note.
    """
    data = replace(data, unused_times=() if chosen.time else chosen.free(sources[0].names, TIMES))
    rows, numbers = data.models[0].rows, data.models[0].row_numbers
    if chosen.cluster or data.classes or sum(item.rows for item in data.inputs) > MAX_ROWS:
        return data
    for name in chosen.free(sources[0].names, USUAL)[:MAX_COLUMNS]:
        # Columns that every file has and that hold plain values.
        with suppress(DecalError, KeyError):
            values = group(loaded_parts(sources, {name: "texts"}), name)
            clusters, unit = np.unique(values if numbers is None else values[numbers], return_inverse=True)
            if not MIN_CLUSTERS <= len(clusters) <= len(rows) / 2:
                continue
            effect = design_effect(rows.label - rows.score, rows.weight, unit)
            if effect >= max(MIN_EFFECT, 1 + CLEAR * math.sqrt(2 / len(clusters))):
                note = (
                    f"errors go together within the {len(clusters):,} values of column {quote(name)} (design effect "
                    f"{effect:.1f}): if rows were sampled by it, intervals are too narrow without "
                    f"{Hint('cluster', f'{shell_word(name)}').words}"
                )
                return replace(data, notes=(*data.notes, note))
    return data
