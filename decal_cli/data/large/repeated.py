"""Counts of rows that memory holds, as the rows that they stand for: whatever works on rows works on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from decal_cli.data.dataset import Dataset, dataset
from decal_cli.data.formats.sources import Repeated, Source
from decal_cli.data.large.batches import memory
from decal_cli.data.words import number, quote
from decal_cli.errors import DecalError
from decal_cli.limits import HELD_BYTES_OF_ROW, MAX_COUNTED_ROWS, MAX_IN_MEMORY_BYTES
from decal_cli.roles import Columns
from decal_cli.tables.rows import Groups, Rows
from decal_cli.tables.table import Floats, Ints

COUNT = "n"
"""The column that says how many rows are as a line is."""
_BYTES_OF_COLUMN = 8
_NOISE = 8 * np.finfo(np.float64).eps
"""Of sums of weights that are alike, relative, for each that was added."""


def can_hold(rows: float, columns: int = 1) -> bool:
    """Whether so many rows, with so many columns beside the label, take no more than rows of files may."""
    return rows * (HELD_BYTES_OF_ROW + _BYTES_OF_COLUMN * (columns - 1)) <= min(MAX_IN_MEMORY_BYTES, memory() // 16)


def rows_of_levels(
    columns: Mapping[str, Floats],
    scores: Sequence[str],
    scale: float,
    groups: Groups,
    cluster: Ints | None,
    amounts: Mapping[str, Floats],
) -> tuple[Rows, ...]:
    """The rows that levels count, with each of these scores. scale: what weights are multiplied by.

    Of rows of different weights in one level no single weight is known: theirs add up as their weights do, and so do
    their squares.
    """
    weighted = "n2" in columns
    all_of, ones = (columns[name] for name in (("rows", "rows_pos") if weighted else ("n", "pos")))
    times = np.concatenate((all_of - ones, ones)).astype(np.int64)
    unit = np.repeat(np.arange(len(times), dtype=np.int32), times)
    line = unit % np.int32(len(all_of))
    weight = None
    if weighted:
        of_both = [(columns[name], columns[part]) for name, part in (("n", "pos"), ("n2", "pos2"))]
        # Two sums of the same weights may differ in their last bit.
        sums, squares = (np.concatenate((n - pos, np.where(ones == all_of, n, pos))) for n, pos in of_both)
        weight = scale * _weights(sums, squares, times)
    rows = Rows(
        np.empty(0),
        label=(unit >= len(all_of)).astype(np.uint8),
        weight=weight,
        cluster=None if cluster is None else cluster[line],
        groups={name: values[line] for name, values in groups.items()},
        amounts={role: values[line] for role, values in amounts.items()},
        counted=True,
    )
    return tuple(replace(rows, score=columns[name][line]) for name in scores)


def _weights(sums: Floats, squares: Floats, times: Ints) -> Floats:
    """A weight for each row of units that have so many: all alike but the first, with these sums."""
    some = times > 0
    sums, squares, times = sums[some], squares[some], times[some]
    mean = sums / times
    variance = squares / times - mean**2
    variance = np.where(variance > _NOISE * times * mean**2, variance, 0.0)
    below = np.minimum(np.sqrt(variance / np.maximum(times - 1, 1)), mean * (1 - _NOISE))
    weight = np.repeat(mean - below, times)
    weight[np.cumsum(times) - times] += times * below
    return weight


def repeated(source: Source, columns: Sequence[str], numbers: Sequence[str], numbered: bool = True) -> Repeated:
    """A source whose lines count rows, as these. Errors: DecalError, where they do not, or are too many to hold."""
    from decal_cli.data.parts import Part, floats

    texts = [name for name in columns if name not in numbers]
    table = source.load([*numbers, COUNT], texts)
    times = floats([Part(source, table, 0)], COUNT)
    wrong = ~((times >= 1) & (times == np.floor(times)) & (times <= MAX_COUNTED_ROWS))
    if wrong.any():
        row = int(wrong.argmax())
        raise DecalError(
            f"{source.shown}, column {quote(COUNT)}, row {row + 1}: {number(times[row])} is not a number of rows",
            "correct the counts",
        )
    if not can_hold(float(times.sum()), len(columns)):
        raise too_many(source.shown, int(times.sum()), len(columns))
    return Repeated(source, table.drop_columns([COUNT]), times.astype(np.int64), numbered)


def too_many(shown: str, rows: int, columns: int) -> DecalError:
    """The error for rows that no memory holds, where more is asked of them than cells of the score tell."""
    return DecalError(
        f"{shown}: {rows:,} rows with {columns} columns are more than is held in memory",
        "ask for fewer columns, or give a sample of the rows",
    )


def dataset_of_counted(sources: Sequence[Repeated], columns: Columns, notes: Sequence[str]) -> Dataset:
    """The data set of rows that were counted by all columns that are asked for. Errors: DecalError."""
    data = dataset(sources, columns)
    models = tuple(replace(model, rows=replace(model.rows, counted=True)) for model in data.models)
    return replace(data, models=models, notes=(*notes, *data.notes))
