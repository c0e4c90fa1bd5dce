"""Files larger than memory, of which two scores are compared: rows are counted by both at once, and never held."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from decal_cli.data.check import Origin, Part
from decal_cli.data.columns import Chosen
from decal_cli.data.dataset import Dataset, Digests, Input, Predictions
from decal_cli.data.formats.sources import FileSource
from decal_cli.data.labels import settled
from decal_cli.data.large.aggregates import OF_PAIRS
from decal_cli.data.large.pair_tally import N_PAIRS, PairRows, PairTally
from decal_cli.data.large.streaming import N_SHARES, STREAMED, WHOLE, BatchReader, CheckedBatch, Progress, rows_in
from decal_cli.data.words import quote
from decal_cli.errors import DecalError
from decal_cli.roles import Columns
from decal_cli.tables.aggregated import Aggregated


def can_stream_pairs(chosen: Chosen) -> bool:
    """Whether the two scores that are named can be counted batch by batch, if each of them can."""
    return len(chosen.score) == 2 and chosen.cluster is None


def stream_pairs(
    sources: Sequence[FileSource], chosen: Chosen, columns: Columns, thresholds: Sequence[float], progress: Progress
) -> Dataset:
    """The rows that have both scores, counted. thresholds: of decisions, at which counts are exact.

    Errors: DecalError.
    """
    digests = Digests(sources)
    reader = BatchReader(chosen, columns)
    counted = _Counted(thresholds)
    total, read = rows_in(sources), 0
    inputs: list[tuple[str, int, int]] = []
    for source in sources:
        rows = ones = 0
        for batch in reader.batches(source):
            counted.add(batch)
            rows += len(batch.label)
            ones += int(np.count_nonzero(batch.label == 1))
            progress(read + rows, total)
        read += rows
        inputs.append((source.raw.path, rows, ones))
    reader.check_all(sources)
    if not counted.rows:
        first, second = map(quote, chosen.score)
        raise DecalError(f"no row has both scores, {first} and {second}", "name two models of the same rows")
    shown = sources[0].shown
    names = [settled(list(known), shown, name) for name, known in zip(chosen.group, reader.known, strict=True)]
    both = counted.aggregated(dict(zip(chosen.group, names, strict=True)), sources[0])
    dropped = read - counted.rows
    notes = [STREAMED, *([OF_PAIRS] if counted.in_cells else [])]
    notes += [f"dropped {dropped:,} of {read:,} rows (missing values)"] if dropped else []
    models = (Predictions(name, (name,), rows, dropped=dropped) for name, rows in zip(chosen.score, both, strict=True))
    provenance = (Input(*item, digest) for item, digest in zip(inputs, digests.wait(), strict=True))
    return Dataset(tuple(provenance), chosen.roles(), chosen.guessed, tuple(models), tuple(notes))


class _Counted:
    """All rows, and those of each value of each group column."""

    def __init__(self, thresholds: Sequence[float]) -> None:
        self.thresholds = thresholds
        self.tallies = {WHOLE: PairTally(thresholds, N_PAIRS)}
        self.rows = 0

    @property
    def in_cells(self) -> bool:
        return self.tallies[WHOLE].in_cells

    def add(self, batch: CheckedBatch) -> None:
        """Count the rows of a batch that have both scores."""
        (a, keep_a), (b, keep_b) = batch.models
        keep = np.ones(len(a), dtype=bool)
        for each in (keep_a, keep_b):
            keep &= True if each is None else each
        self.rows += int(np.count_nonzero(keep))
        places = [(WHOLE, keep)]
        for column, code in enumerate(batch.groups):
            places += [((column, value), keep & (code == value)) for value in np.unique(code).tolist()]
        for place, which in places:
            if which.any():
                weight = None if batch.weight is None else batch.weight[which]
                tally = self.tallies.setdefault(place, PairTally(self.thresholds, N_PAIRS // N_SHARES))
                tally.add(PairRows.of(a[which], b[which], batch.label[which], weight))

    def aggregated(self, names: dict[str, list[str]], source: FileSource) -> tuple[Aggregated, ...]:
        """The rows with the score of A, and with that of B; names: of the values of each group column."""
        import pyarrow as pa

        # No row is held that an error could name.
        origin = Origin([Part(source, pa.table({}), 0)])
        counts = {place: tally.counts() for place, tally in self.tallies.items()}
        scale = counts[WHOLE].scale
        parts: dict[str, dict[str, tuple[Aggregated, ...]]] = {column: {} for column in names}
        for column, (name, values) in enumerate(names.items()):
            of_column = {values[code]: (at, code) for at, code in counts if at == column}
            parts[name] = {value: counts[of_column[value]].counted(scale, {}, origin) for value in sorted(of_column)}
        return counts[WHOLE].counted(scale, parts, origin)
