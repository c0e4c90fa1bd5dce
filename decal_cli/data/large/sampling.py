"""Rows that are too many to hold -> Dataset of a sample of them: the same rows from any file, engine and order.

A row is drawn where the hash of its scores and features (`row_hash`) is among the least of its label. Where one label
is rare, more of it is drawn, and rows have weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from decal_cli.data.columns import Chosen
from decal_cli.data.dataset import Dataset, Digests, Input, Predictions, dataset
from decal_cli.data.features import typed_kind
from decal_cli.data.formats.csvfile import CsvSource
from decal_cli.data.formats.files import no_rows
from decal_cli.data.formats.sources import FileSource, OwnOrigin
from decal_cli.data.large.batches import BatchReader, Progress, rows_in
from decal_cli.data.large.row_hash import N_HASHED_COLUMNS, PRIME, factor, mixed, pieces_of, pieces_of_texts
from decal_cli.data.parts import NotNumbers, Part, chunk_floats
from decal_cli.data.parts import plain as plain_array
from decal_cli.data.texts import encoded
from decal_cli.data.words import MISSING, NUMBER
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import N_SAMPLE_ROWS
from decal_cli.numbers import plain
from decal_cli.roles import Columns
from decal_cli.tables.aggregated import Aggregated
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Ints, Table

DRAWABLE = {"score", "label", "weight", "group", "features"}
"""Roles of which a sample of single rows can be drawn."""
RARE_SHARE = 0.1
"""A label of fewer rows than this share is drawn more often."""
SHARE_OF_RARE = 0.25
"""The part of a sample that a rare label has, where it has so many rows."""
_FEW_DIFFERENT = 0.9
"""Of the rows drawn, the share of different ones below which the page says so."""


def can_draw(columns: Columns, chosen: Chosen) -> bool:
    """Whether a sample of rows says what is asked of these columns."""
    plain_scores = not (columns.margin or columns.logit or columns.proba or chosen.models or columns.capacity)
    return (
        plain_scores
        and columns.prevalence is None
        and columns.sampled_negatives is None
        and (chosen.roles().keys() <= DRAWABLE)
    )


def quotas(counts: Sequence[int]) -> tuple[int, int]:
    """How many rows of label 0 and of label 1 are drawn, of so many."""
    zeros, ones = counts
    total, rare = zeros + ones, min(counts)
    if total <= N_SAMPLE_ROWS:
        return zeros, ones
    share = ones / total
    if rare < RARE_SHARE * total:
        of_rare = min(rare, int(SHARE_OF_RARE * N_SAMPLE_ROWS))
        return (of_rare, N_SAMPLE_ROWS - of_rare) if zeros < ones else (N_SAMPLE_ROWS - of_rare, of_rare)
    of_ones = round(share * N_SAMPLE_ROWS)
    return N_SAMPLE_ROWS - of_ones, of_ones


def draw(
    sources: Sequence[FileSource],
    chosen: Chosen,
    columns: Columns,
    progress: Progress = lambda rows, total: None,
    counts: Sequence[int] | None = None,
) -> Dataset:
    """A sample of the rows of files, all of which are checked. Errors: DecalError.

    counts: rows of each label, where the files do not hold all of them.
    """
    digests, reader, total = Digests(sources), BatchReader(replace(chosen, group=()), columns), rows_in(sources)
    strata, inputs, before = (_Stratum(), _Stratum()), [], 0
    for number, source in enumerate(sources):
        rows = ones = 0
        for table in source.rows(chosen.numbers, (*chosen.texts, *chosen.features)):
            label = plain_array(reader.checked(Part(source, table, 0, rows)).column(chosen.label).fill_null(-1))
            keys = hashes(table, chosen, _is_written(source))
            for code, stratum in enumerate(strata):
                stratum.add(keys, label == code, number, table)
            rows += table.num_rows
            ones += int(np.count_nonzero(label == 1))
            progress(before + rows, total)
        if not rows:
            raise no_rows(source.shown)
        before += rows
        inputs.append((source.raw.path, rows, ones))
    reader.check_all(sources)
    counts = counts or [stratum.count for stratum in strata]
    kept = [stratum.least(quota, chosen.score) for stratum, quota in zip(strata, quotas(counts), strict=True)]
    provenance = tuple(Input(*item, digest) for item, digest in zip(inputs, digests.wait(), strict=True))
    return replace(_of_drawn(sources, kept, counts, columns), inputs=provenance)


def _of_drawn(
    sources: Sequence[FileSource], kept: Sequence[Sequence[_Kept]], counts: Sequence[int], columns: Columns
) -> Dataset:
    """The data set of the rows that were kept of each label, of so many."""
    import pyarrow as pa

    drawn = []
    for number, source in enumerate(sources):
        tables = [part.table for parts in kept for part in parts if part.source == number]
        if tables:
            plain_tables = [each if isinstance(each, pa.Table) else pa.Table.from_batches([each]) for each in tables]
            drawn.append(_DrawnSource(source, pa.concat_tables(plain_tables)))
    if not drawn:
        raise DecalError(f"{sources[0].shown}: no row is left (missing label)", "name another column")
    data = dataset(drawn, columns)
    sizes = [sum(len(part.key) for part in parts) for parts in kept]
    keys = [part.key for parts in kept for part in parts]
    different = len(np.unique(np.concatenate(keys)))
    notes = [*_notes(sizes, counts), *data.notes]
    some = sizes != list(counts)
    if some and different < _FEW_DIFFERENT * sum(sizes):
        notes.append(
            f"only {different:,} of the rows drawn differ in their scores and features: they vary less than the sample "
            f"looks; name more columns with {Hint('features').words}"
        )
    models = tuple(_weighted(model, sizes, counts) for model in data.models) if some else data.models
    return replace(data, models=models, notes=tuple(notes))


def with_rows(data: Dataset, verb: str) -> Dataset:
    """The data set with single rows: its own, or a sample of those that were counted. Errors: DecalError."""
    if not isinstance(data.models[0].rows, Aggregated):
        return data
    sampled = [model.rows for model in data.models]
    if any(not isinstance(rows, Aggregated) or not rows.table.design.plain or rows.parts for rows in sampled):
        data.need_rows(f"{verb} with weights, clusters or groups")
    notes, models = list(data.notes), []
    for model in data.models:
        rows, counts = _of_levels(model.rows.table)
        sizes = [int(np.count_nonzero(rows.label == code)) for code in (0, 1)]
        models.append(_weighted(replace(model, rows=rows), sizes, counts))
        notes += [note for note in _notes(sizes, counts, "scores and labels") if note not in notes]
    return replace(data, models=tuple(models), notes=tuple(notes))


def _of_levels(t: Table) -> tuple[Rows, tuple[int, int]]:
    """A sample of the rows that a table counts, and how many of each label there are.

    Of the rows of a score and a label as many are drawn as their share, and one more by the hash of the score.
    """
    of_label = [np.asarray(values, dtype=np.int64) for values in (t.n - t.pos, t.pos)]
    counts = int(of_label[0].sum()), int(of_label[1].sum())
    scores, labels = [], []
    for code, (values, quota) in enumerate(zip(of_label, quotas(counts), strict=True)):
        sums = sum(piece * factor(0, at) for at, piece in enumerate(pieces_of(t.score))) + factor(1) * code
        chance = mixed(np.asarray(sums)) / PRIME
        times = np.floor(values * (quota / max(sum(values), 1)) + chance).astype(np.int64)
        scores.append(np.repeat(t.score, times))
        labels.append(np.full(int(times.sum()), code, dtype=np.uint8))
    return Rows(np.concatenate(scores), np.concatenate(labels)), counts


def _notes(sizes: Sequence[int], counts: Sequence[int], of: str = "scores and features") -> Iterator[str]:
    drawn, total = sum(sizes), sum(counts)
    if drawn == total:
        return
    text = f"a sample of {drawn:,} of {total:,} rows, by a hash of {of}: intervals allow for it"
    if _alike(sizes, counts):
        yield f"{text}, and are about {plain(math.sqrt(total / drawn))} times as wide as those of all rows"
        return
    of_label = [f"{sizes[k]:,} of {counts[k]:,} rows with label {k}" for k in (0, 1)]
    yield f"{text}; it has {' and '.join(of_label)}, with weights that undo it"


def _alike(sizes: Sequence[int], counts: Sequence[int]) -> bool:
    """Whether the labels were drawn at one rate, but for rounding."""
    return all(abs(size - count * sum(sizes) / sum(counts)) <= 1 for size, count in zip(sizes, counts, strict=True))


def _weighted(model: Predictions, sizes: Sequence[int], counts: Sequence[int]) -> Predictions:
    """The model with weights that make up for the rates at which labels were drawn."""
    if _alike(sizes, counts):
        return model
    rates = [count / max(size, 1) * sum(sizes) / sum(counts) for size, count in zip(sizes, counts, strict=True)]
    rows = model.rows
    return replace(model, rows=replace(rows, weight=rows.weights * np.array(rates)[rows.label.astype(np.int64)]))


class _Kept(NamedTuple):
    """Rows of one label of one table. source: the number of their file; key: their hashes."""

    source: int
    key: Ints
    table: Any

    def taken(self, which: np.ndarray) -> _Kept:
        """These rows, by mask."""
        return self if which.all() else _Kept(self.source, self.key[which], self.table.filter(_mask(which)))


class _Stratum:
    """The rows of one label that may be drawn: those of the least hashes so far."""

    def __init__(self) -> None:
        self.count = 0
        self.cutoff = PRIME
        self.parts: list[_Kept] = []

    def add(self, keys: Ints, mine: np.ndarray, source: int, table: Any) -> None:
        """Add the rows of a table that are of this label."""
        self.count += int(np.count_nonzero(mine))
        which = mine & (keys <= self.cutoff)
        if which.any():
            self.parts.append(_Kept(source, keys[which], table.filter(_mask(which))))
        if sum(len(part.key) for part in self.parts) > 2 * N_SAMPLE_ROWS:
            self._cut(N_SAMPLE_ROWS)

    def _cut(self, most: int) -> None:
        """Drop rows that cannot be among so many; those that tie with the last one stay."""
        keys = self._keys()
        if len(keys) > most:
            self.cutoff = int(np.partition(keys, most - 1)[most - 1])
            self._keep(keys <= self.cutoff)

    def least(self, most: int, scores: Sequence[str]) -> list[_Kept]:
        """So many rows, those of the least hashes; of rows that tie, those of the least scores."""
        tables = [part.table for part in self.parts]
        by = [np.concatenate([np.empty(0), *(_floats(table.column(name)) for table in tables)]) for name in scores]
        keys = self._keys()
        which = np.zeros(len(keys), dtype=bool)
        which[np.lexsort((*by[::-1], keys))[:most]] = True
        self._keep(which)
        return self.parts

    def _keys(self) -> Ints:
        return np.concatenate([np.empty(0, dtype=np.int64), *(part.key for part in self.parts)])

    def _keep(self, which: np.ndarray) -> None:
        ends = np.cumsum([len(part.key) for part in self.parts])[:-1]
        parts = (part.taken(mine) for part, mine in zip(self.parts, np.split(which, ends), strict=True))
        self.parts = [part for part in parts if len(part.key)]


def _mask(which: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.array(which)


def _floats(column: Any) -> np.ndarray:
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    return np.concatenate([chunk_floats(chunk) for chunk in chunks] or [np.empty(0)])


def hashes(table: Any, chosen: Chosen, written: bool = False) -> Ints:
    """The hash of each row. written: whether numbers stand in the table as texts."""
    sums = np.zeros(table.num_rows, dtype=np.int64)
    names = sorted({*chosen.score, *chosen.features})[:N_HASHED_COLUMNS]
    for at, name in enumerate(names):
        column = table.column(name)
        pieces = _pieces(column.combine_chunks() if hasattr(column, "combine_chunks") else column, written)
        for piece, values in enumerate(pieces):
            sums += values * factor(at, piece)
    return mixed(sums)


def _pieces(column: Any, written: bool) -> Iterator[Ints]:
    """The pieces of a column; of dates, lists and what else is neither number nor text there are none."""
    kind = typed_kind(column.type)
    if kind in ("number", "boolean"):
        try:
            yield from pieces_of(chunk_floats(column).astype(np.float64))
        except NotNumbers:
            return
    elif kind is None:
        texts, indices = encoded(column)
        numbers = _numbers([text if written else None for text in texts])
        is_number = ~np.isnan(numbers)
        of_texts = pieces_of_texts([None if known else text for text, known in zip(texts, is_number, strict=True)])
        for piece, of_numbers in enumerate(pieces_of(numbers)):
            # The last one is that of missing values.
            yield np.append(np.where(is_number, of_numbers, of_texts if piece == 0 else 0), 0)[indices]


def _numbers(texts: Sequence[str | None]) -> np.ndarray:
    """The number that each text is, NaN where it is none."""
    return np.array([float(text) if text is not None and NUMBER.fullmatch(text) else math.nan for text in texts])


class _DrawnSource(OwnOrigin):
    """Drawn rows of a file, whose digest is known elsewhere."""

    def __init__(self, source: FileSource, table: Any) -> None:
        super().__init__(source.shown, table, source.raw.path)
        self.source = source

    def check_unchanged(self) -> None:
        self.source.raw.check_unchanged()

    def load_typed(self, names: Sequence[str]) -> Any:
        """As CSV files are: numbers where all values are."""
        table = self.load(names, ())
        if _is_written(self.source):
            for at, name in enumerate(names):
                table = table.set_column(at, name, as_typed(table.column(name)))
        return table


def _is_written(source: FileSource) -> bool:
    """Whether numbers stand in a file as texts."""
    return isinstance(getattr(source, "source", source), CsvSource)


def as_typed(column: Any) -> Any:
    """A column of texts as numbers, where all of them are."""
    import pyarrow as pa

    if typed_kind(column.type) is not None:
        return column
    chunks = []
    for chunk in column.chunks:
        texts, indices = encoded(chunk)
        numbers = _numbers(texts)
        missing = [text is None or text.strip() in MISSING for text in texts]
        if np.isnan(numbers[~np.array(missing, dtype=bool)]).any():
            return column
        chunks.append(pa.array(np.append(numbers, math.nan)[indices]))
    return pa.chunked_array(chunks, pa.float64())
