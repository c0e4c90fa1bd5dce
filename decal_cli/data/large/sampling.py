"""Rows that are too many to hold -> Dataset of a sample of them: the same rows from any file, engine and order.

A row is drawn where the hash of its scores, features and costs is among the least; of two labels, among the least of
its label. Where one label is rare, more of it is drawn, and rows have weights.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from decal_cli.data.columns import Chosen
from decal_cli.data.dataset import Dataset, Digests, Predictions, dataset
from decal_cli.data.features import typed_kind
from decal_cli.data.formats.csvfile import CsvSource, as_numbers
from decal_cli.data.formats.files import Held, RawData, Source, Wanted
from decal_cli.data.large.aggregates import COUNT
from decal_cli.data.large.batches import BatchReader, Progress
from decal_cli.data.large.engines.connections import Connection
from decal_cli.data.large.engines.dialects import Dialect, label_of, other_label
from decal_cli.data.large.engines.statement import select
from decal_cli.data.parts import NotNumbers, chunk_floats, encoded
from decal_cli.data.parts import plain as plain_array
from decal_cli.data.words import MISSING, NUMBER, first_line, quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import N_SAMPLE_ROWS
from decal_cli.numbers import plain
from decal_cli.roles import ROW_UTILITIES
from decal_cli.tables.aggregated import CountedData
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats, Ints, Table

DRAWABLE = {"score", "proba", "label", "weight", "group", "cluster", "features", *ROW_UTILITIES}
"""Roles that a sample of single rows can have."""
RARE_SHARE = 0.1
"""A label of fewer rows than this share is drawn more often."""
SHARE_OF_RARE = 0.25
"""The part of a sample that a rare label has, where it has so many rows."""
_FEW_DIFFERENT = 0.9
"""The page says so where a smaller share than this of the drawn rows have different hashes."""
PRIME = (1 << 31) - 1
"""The modulus P of the hash. 5 does not divide P - 1, so that the fifth power keeps different sums different."""
N_PIECES = 3
PIECE = float(1 << 31)
TOP, LARGEST = float(1 << 20), float(1 << 50)
"""Numbers are divided by TOP first; what is larger than LARGEST counts as LARGEST."""
SHIFT = 1 << 30
"""Added to the first piece of a number, so that no piece is negative."""
N_HASHED_COLUMNS = 100
"""Columns that are hashed, the first ones by name: sums of their pieces stay below 2^62."""
N_HEX = 7
"""Digits of an MD5 that are 28 bits."""
_KINDS = (
    ("truth", re.compile(r"bool")),
    ("number", re.compile(r"u?(tiny|small|big|huge)?int|float|double|real|decimal|numeric|long|short|byte")),
    ("text", re.compile(r"(n?var)?char|text|string|enum|bpchar|name|uuid")),
)
"""What a column holds (a truth value, a number, a text), by the beginning of its type's name."""
_SLACK = 6.0
"""By how many standard errors more rows are asked for than are drawn, so that there are enough."""


def factor(column: int, piece: int = 0) -> int:
    """What a piece of a column is multiplied by: odd and below 2^22, from the powers of 48271 mod P."""
    return pow(48_271, N_PIECES * column + piece + 1, PRIME) % (1 << 22) | 1


# The hash takes whole numbers and powers of two only, which are exact in any order, so that files and every engine, in
# SQL, compute it alike. A number x is cut in three pieces of 31 bits, from x / 2^20 downwards; a text counts as the
# first 28 bits of its MD5; missing values and anything else count as 0. The hash is (sum of pieces times factors mod
# P)^5 mod P: a sum alone would leave near rows near.
def pieces_of(numbers: Floats) -> Iterator[Ints]:
    """Whole numbers in [0, 2^31] of each number, shape (k,); 0 of NaN."""
    missing = np.isnan(numbers)
    left = np.where(missing, 0.0, np.clip(numbers, -LARGEST, LARGEST)) / TOP
    for piece in range(N_PIECES):
        whole = np.floor(left)
        yield np.where(missing, 0, whole.astype(np.int64) + (SHIFT if piece == 0 else 0))
        left = (left - whole) * PIECE


def piece_of_text(text: str) -> int:
    """The first 28 bits of the MD5 of a text, 0 of one that stands for a missing value."""
    bits = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:N_HEX]
    return 0 if text in MISSING else int(bits, 16)


def mixed(sums: Ints) -> Ints:
    """The hashes, in [0, PRIME), of sums of pieces times factors."""
    first = sums % PRIME
    second = first * first % PRIME
    return second * second % PRIME * first % PRIME


def can_draw(chosen: Chosen) -> bool:
    """Whether a sample of rows can answer what is asked of these columns."""
    return chosen.as_they_stand and not chosen.logit and chosen.roles().keys() <= DRAWABLE


def quotas(counts: Sequence[int]) -> tuple[int, ...]:
    """How many rows of label 0 and of label 1 are drawn, of so many; of several classes, how many of all."""
    if len(counts) == 1:
        return (min(counts[0], N_SAMPLE_ROWS),)
    zeros, ones = counts
    total, rare = zeros + ones, min(counts)
    if total <= N_SAMPLE_ROWS:
        return zeros, ones
    of_ones = round(ones / total * N_SAMPLE_ROWS)
    if rare < RARE_SHARE * total:
        of_rare = min(rare, int(SHARE_OF_RARE * N_SAMPLE_ROWS))
        of_ones = N_SAMPLE_ROWS - of_rare if zeros < ones else of_rare
    return N_SAMPLE_ROWS - of_ones, of_ones


def draw(
    sources: Sequence[Source],
    chosen: Chosen,
    progress: Progress = lambda rows, total: None,
    counts: Sequence[int] | None = None,
) -> Dataset:
    """A sample of the rows of files, all of which are checked. Errors: DecalError.

    counts: rows of each label, where the files do not hold all of them.
    """
    import pyarrow as pa

    digests, reader = Digests(sources), BatchReader(sources, replace(chosen, group=()), progress)
    strata = (_Stratum(),) if chosen.models else (_Stratum(), _Stratum())
    wanted: Wanted = {
        **dict.fromkeys((*chosen.texts, *chosen.features), "typed"),
        **dict.fromkeys(chosen.numbers, "numbers"),
    }
    for number, table, batch in reader.read(wanted):
        label = plain_array(batch.column(chosen.label).fill_null(-1))
        table = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
        for name in reader.as_texts:
            table = table.set_column(table.schema.names.index(name), name, batch.column(name))
        part = number, _hashes(table, chosen, _is_written(sources[number])), table
        for code, stratum in enumerate(strata):
            stratum.add(part, label == code)
    counts = counts or [stratum.count for stratum in strata]
    kept = [stratum.least(quota, chosen.scores) for stratum, quota in zip(strata, quotas(counts), strict=True)]
    data = _of_drawn(sources, kept, counts, chosen)
    return replace(data, inputs=digests.inputs(reader.read_inputs), notes=(*reader.notes, *data.notes))


def _of_drawn(
    sources: Sequence[Source], kept: Sequence[Sequence[Kept]], counts: Sequence[int], chosen: Chosen
) -> Dataset:
    """The data set of the rows that were kept of each label. counts: how many rows of each there are."""
    import pyarrow as pa

    drawn = []
    for number, source in enumerate(sources):
        tables = [table for parts in kept for of, _, table in parts if of == number]
        if tables:
            drawn.append(_DrawnSource(source, pa.concat_tables(tables)))
    if not drawn:
        raise DecalError(f"{sources[0].shown}: no row is left (missing label)", "name another column")
    data = dataset(drawn, chosen)
    sizes = [sum(len(keys) for _, keys, _ in parts) for parts in kept]
    different = len(np.unique(np.concatenate([keys for parts in kept for _, keys, _ in parts])))
    of = " and ".join(["scores", *(["costs"] if chosen.worths else []), *(["features"] if chosen.features else [])])
    notes = [*_notes(sizes, counts, of, "at most" if chosen.cluster else "about"), *data.notes]
    some = sizes != list(counts)
    if some and different < _FEW_DIFFERENT * sum(sizes):
        notes.append(
            f"only {different:,} of the rows drawn differ in their {of}: they vary less than the sample "
            f"looks; name more columns with {Hint('features').words}"
        )
    models = tuple(_weighted(model, sizes, counts) for model in data.models) if some else data.models
    return replace(data, models=models, notes=tuple(notes))


def with_rows(data: Dataset, verb: str) -> Dataset:
    """The data set with single rows: its own, or a sample of those that were counted. Errors: DecalError."""
    if not isinstance(data.models[0].rows, CountedData):
        return data
    sampled = [model.rows for model in data.models]
    if any(not isinstance(rows, CountedData) or not rows.table.design.plain or rows.parts for rows in sampled):
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

    Each score and label gives its share of the rows; the hash of the score decides whether that is rounded up or down.
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


def _notes(sizes: Sequence[int], counts: Sequence[int], of: str, about: str = "about") -> Iterator[str]:
    drawn, total = sum(sizes), sum(counts)
    if drawn == total:
        return
    text = f"a sample of {drawn:,} of {total:,} rows, by a hash of {of}: intervals allow for it"
    if _alike(sizes, counts):
        yield f"{text}, and are {about} {plain(math.sqrt(total / drawn))} times as wide as those of all rows"
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


Kept = tuple[int, Ints, Any]
"""Rows of one table: the number of their file, their hashes, and the table."""


class _Stratum:
    """The rows of one label that may be drawn: those of the least hashes so far."""

    def __init__(self) -> None:
        self.count = 0
        self.cutoff = PRIME
        self.parts: list[Kept] = []

    def add(self, part: Kept, mine: np.ndarray) -> None:
        """Add the rows of a table that are of this label."""
        self.count += int(np.count_nonzero(mine))
        self.parts += _cut([part], [mine & (part[1] <= self.cutoff)])
        if sum(len(keys) for _, keys, _ in self.parts) > 2 * N_SAMPLE_ROWS:
            # Rows go that cannot be among so many; those that tie with the last one stay.
            keys = self._keys()
            self.cutoff = int(np.sort(keys)[N_SAMPLE_ROWS - 1])
            self._keep(keys <= self.cutoff)

    def least(self, most: int, scores: Sequence[str]) -> list[Kept]:
        """The `most` rows of the least hashes; among rows that tie, those of the least scores."""
        chunks = [[chunk for _, _, table in self.parts for chunk in table.column(name).chunks] for name in scores]
        by = [np.concatenate([np.empty(0), *map(chunk_floats, of_score)]) for of_score in chunks]
        keys = self._keys()
        which = np.zeros(len(keys), dtype=bool)
        which[np.lexsort((*by[::-1], keys))[:most]] = True
        self._keep(which)
        return self.parts

    def _keys(self) -> Ints:
        return np.concatenate([np.empty(0, dtype=np.int64), *(keys for _, keys, _ in self.parts)])

    def _keep(self, which: np.ndarray) -> None:
        ends = np.cumsum([len(keys) for _, keys, _ in self.parts], dtype=np.int64)
        self.parts = _cut(self.parts, np.split(which, ends)[:-1])


def _cut(parts: Sequence[Kept], masks: Sequence[np.ndarray]) -> list[Kept]:
    """Keep the rows of each table where its mask is true, and drop tables that have none."""
    import pyarrow as pa

    cut = zip(parts, masks, strict=True)
    return [(of, keys[mask], table.filter(pa.array(mask))) for (of, keys, table), mask in cut if mask.any()]


def _hashed_names(chosen: Chosen) -> list[str]:
    return sorted({*chosen.scores, *chosen.worths, *chosen.features})[:N_HASHED_COLUMNS]


def _hashes(table: Any, chosen: Chosen, written: bool) -> Ints:
    """The hash of each row. written: whether numbers stand in the table as texts."""
    sums = np.zeros(table.num_rows, dtype=np.int64)
    for at, name in enumerate(_hashed_names(chosen)):
        column = table.column(name)
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        for piece, values in enumerate(_pieces(column, written)):
            sums += values * factor(at, piece)
    return mixed(sums)


def _pieces(column: Any, written: bool) -> Iterator[Ints]:
    """The pieces of a column; none where it is neither numbers nor texts, such as dates or lists."""
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
        known = zip(texts, is_number, strict=True)
        of_texts = np.array([0 if text is None or number else piece_of_text(text) for text, number in known], np.int64)
        for piece, of_numbers in enumerate(pieces_of(numbers)):
            # The last piece is that of missing values.
            yield np.append(np.where(is_number, of_numbers, of_texts if piece == 0 else 0), 0)[indices]


def _numbers(texts: Sequence[str | None]) -> np.ndarray:
    """The number that each text is, NaN where it is none."""
    return np.array([float(text) if text is not None and NUMBER.fullmatch(text) else math.nan for text in texts])


class _DrawnSource(Held):
    """Drawn rows of a file, whose digest is known elsewhere, and whose numbers in it are not."""

    numbered = False

    def __init__(self, source: Source, table: Any) -> None:
        super().__init__(source.shown, table, RawData(source.raw.path))
        self.source = source

    def load(self, wanted: Wanted) -> Any:
        """The columns; the typed ones of a CSV file as numbers where all values are numbers, else as texts."""
        table = super().load(wanted)
        for at, (name, way) in enumerate(wanted.items()):
            if way == "typed" and _is_written(self.source):
                table = table.set_column(at, name, as_typed(table.column(at)))
        return table


def _is_written(source: Source) -> bool:
    """Whether numbers stand in a file as texts."""
    return isinstance(getattr(source, "source", source), CsvSource)


def as_typed(column: Any) -> Any:
    """A column of texts as numbers, where all of them are."""
    import pyarrow as pa

    numbers = as_numbers(column.cast(pa.string())) if typed_kind(column.type) is None else None
    return column if numbers is None else numbers


def drawn_rows(connection: Connection, source: str, chosen: Chosen, dialect: Dialect, counted: Dataset) -> Dataset:
    """A sample of the rows of a source. counted: the same rows, counted and checked. Errors: DecalError."""
    # Rows that lack a score are drawn too, and dropped as those of a file are.
    (found,) = counted.inputs
    ones = found.positives or 0
    counts = (found.rows - found.unlabelled - ones, ones)
    table = _Drawing(source, chosen, dialect, connection.types(source))
    # The hash below which the rows to draw, and some more, are expected.
    asked = [quota + _SLACK * math.sqrt(quota) + 30 for quota in quotas(counts)]
    cutoffs = [min(PRIME, math.ceil(PRIME * each / max(count, 1))) for each, count in zip(asked, counts, strict=True)]
    answer = connection.answer(table.statement(cutoffs))
    rows = Held(counted.inputs[0].path, table.named(answer))
    return draw([rows], chosen, counts=counts)


class Given:
    """Columns of a source under new names. kinds: whether each holds numbers, truth values, texts or something else."""

    def __init__(self, source: str, dialect: Dialect, kinds: Mapping[str, str]) -> None:
        self.source, self.dialect, self.kinds = source, dialect, kinds
        self.ours = {name: f"decal_{number}" for number, name in enumerate(kinds, 1)}

    def given(self) -> str:
        """The columns of the user as numbers and texts."""
        columns = []
        for name, ours in self.ours.items():
            column, kind = self.dialect.name(name), self.kinds[name]
            value = self.dialect.as_double(column) if kind == "number" else self.dialect.as_exact_text(column)
            if kind == "truth":
                one, zero = self.dialect.number(1), self.dialect.number(0)
                value = f"CASE WHEN {column} THEN {one} WHEN NOT {column} THEN {zero} END"
            columns.append(f"{value} AS {ours}")
        return select(columns, self.source)

    def counted(self, most: int) -> str:
        """The statement that counts the rows by all of the columns. most: the number of counts that it stops at."""
        keys = ", ".join(self.ours.values())
        rows = f"(\n{self.given()}\n) AS decal_given"
        return f"SELECT {keys}, COUNT(*) AS {COUNT}\nFROM {rows}\nGROUP BY {keys}\nLIMIT {most}"

    def named(self, table: Any) -> Any:
        """The answer under the user's names, with numbers and truth values as such. Errors: DecalError."""
        import pyarrow as pa

        columns, types = {}, {"number": pa.float64(), "truth": pa.bool_()}
        for name, ours in self.ours.items():
            column, kind = table.column(ours), types.get(self.kinds[name])
            try:
                columns[name] = column if kind is None else column.cast(pa.float64()).cast(kind)
            except pa.ArrowInvalid as error:
                # An engine whose columns have no types hands over a text as it is.
                raise DecalError(f"column {quote(name)}: {first_line(error)}", "correct the rows") from None
        return pa.table(columns)


class _Drawing(Given):
    """The statement that draws. types: of the columns of the source, as its engine names them."""

    def __init__(self, source: str, chosen: Chosen, dialect: Dialect, types: Mapping[str, str]) -> None:
        self.positive = chosen.positive
        self.label = chosen.label
        self.hashed = _hashed_names(chosen)
        kinds = dict.fromkeys(chosen.texts, "other") | {name: kind_of(types[name]) for name in chosen.features}
        super().__init__(source, dialect, kinds | dict.fromkeys(chosen.numbers, "number"))

    def statement(self, cutoffs: Sequence[int]) -> str:
        """The rows of each label whose hash does not exceed its cutoff."""
        label, sources = f"TRIM({self.ours[self.label]})", ["decal_given"]
        parts = {"decal_given": self.given()}
        if self.positive:
            parts["decal_labels"] = other_label(label, self.positive, "decal_given", self.dialect)
            sources.append("decal_labels")
        values, sums = zip(*self._hashed(), strict=True)
        of_label = f"{label_of(label, self.positive, self.dialect)} AS decal_label"
        parts["decal_left"] = select(["decal_given.*", of_label, *values], " CROSS JOIN ".join(sources))
        # Step by step, since an overflow would be wrong: h, its square, and the square of that.
        before, value = "decal_left", " + ".join(sums)
        for power in (1, 2, 4):
            parts[f"decal_hash{power}"] = select([f"{before}.*", f"MOD({value}, {PRIME}) AS decal_h{power}"], before)
            before, value = f"decal_hash{power}", f"decal_h{power} * decal_h{power}"
        named = ",\n".join(f"{name} AS (\n{body}\n)" for name, body in parts.items())
        kept = " OR ".join(
            f"decal_label = {code} AND MOD(decal_h4 * decal_h1, {PRIME}) <= {cutoff}"
            for code, cutoff in enumerate(cutoffs)
        )
        return f"WITH {named}\nSELECT {', '.join(self.ours.values())}\nFROM {before}\nWHERE {kept}"

    def _hashed(self) -> Iterator[tuple[str, str]]:
        """SQL for each hashed column: the number to cut in pieces, or a text's piece; and its pieces times factors."""
        number = self.dialect.number
        for at, name in enumerate(self.hashed):
            ours, kind = self.ours[name], self.kinds[name]
            left = f"{ours}_p"
            if kind == "text":
                words = ", ".join(map(self.dialect.text, MISSING))
                hashed = self.dialect.first_bits.format(value=ours)
                value = f"CASE WHEN {ours} IS NULL OR {ours} IN ({words}) THEN 0 ELSE {hashed} END"
                yield f"{value} AS {left}", f"{left} * {factor(at)}"
            elif kind != "other":
                least, greatest = self.dialect.least, self.dialect.greatest
                bounded = f"{greatest}({least}({ours}, {number(LARGEST)}), {number(-LARGEST)})"
                missing = f"{ours} IS NULL OR {self.dialect.is_nan(ours)}"
                value, sums = f"CASE WHEN {missing} THEN NULL ELSE {bounded} / {number(TOP)} END AS {left}", []
                for piece in range(N_PIECES):
                    whole = self.dialect.as_integer(f"FLOOR({left})")
                    shifted = f"({whole} + {SHIFT})" if piece == 0 else whole
                    sums.append(f"COALESCE({shifted} * {factor(at, piece)}, 0)")
                    left = f"(({left} - FLOOR({left})) * {number(PIECE)})"
                yield value, " + ".join(sums)


def kind_of(kind: str) -> str:
    """What a column holds, by what its engine calls its type."""
    return next((name for name, begins in _KINDS if begins.match(kind.lower())), "other")
