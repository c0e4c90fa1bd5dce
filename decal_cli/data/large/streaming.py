"""Files larger than memory: read in batches, checked as all files are, and counted into tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from decal_cli.data.check import Origin, Part, checked_scores, checked_weights, floats, missing_values
from decal_cli.data.columns import Chosen
from decal_cli.data.dataset import Dataset, Digests, Input, Predictions
from decal_cli.data.formats.files import no_rows
from decal_cli.data.formats.sources import FileSource
from decal_cli.data.labels import MISSING_LABEL, Labels, need_several, numbered, settled
from decal_cli.data.large.counts import OF_COARSE_CLUSTERS
from decal_cli.data.words import quote
from decal_cli.errors import DecalError
from decal_cli.limits import MAX_CLUSTER_COUNTS, MAX_TALLIES
from decal_cli.roles import Columns
from decal_cli.tables.aggregated import Aggregated
from decal_cli.tables.cells import MAX_SPLITS, CellTable
from decal_cli.tables.cluster_tally import ClusterCounts, ClusterTally
from decal_cli.tables.table import Table, tabulate
from decal_cli.tables.tally import N_LEVELS, BatchRows, CellSums, Tally

if TYPE_CHECKING:
    from concurrent.futures import Future

Progress = Callable[[int, int | None], None]
"""Takes how many rows are read, and how many there are, where that is known."""
STREAMED = "read in batches and counted: the rows are more than are held in memory"
N_SHARES = 16
"""A group keeps this part of the levels that all rows may have."""
N_RUN_ROWS = 1 << 18
"""Rows of a file that are counted at once while levels are kept."""
N_LONG_RUN_ROWS = 1 << 20
"""The same in cells, whose sums are made and added up for every run."""
_AHEAD = 4
"""How many such are being counted while the next are read; fixed, so that no sum depends on the processor."""
ROLES_OF_COUNTS = {"score", "label", "weight", "group", "cluster"}


class CheckedBatch(NamedTuple):
    """Checked rows: each model's scores with the mask of rows to keep, None for all; and each group column's codes.

    unit: numbers of clusters, None where each row stands by itself.
    """

    models: list[tuple[np.ndarray, np.ndarray | None]]
    label: np.ndarray
    weight: np.ndarray | None
    groups: list[np.ndarray]
    unit: np.ndarray | None = None


class _Model:
    """What is counted of one model: by WHOLE all of its rows, and those of each value of each group column."""

    def __init__(self, thresholds: Sequence[float]) -> None:
        self.thresholds = thresholds
        self.tallies = {WHOLE: Tally(thresholds, N_LEVELS)}
        self.clusters = {WHOLE: ClusterTally(thresholds, MAX_CLUSTER_COUNTS)}
        self.dropped = 0

    def tally(self, place: tuple[int, int]) -> Tally:
        """That of all rows, or of a group."""
        if place not in self.tallies:
            self.tallies[place] = Tally(self.thresholds, N_LEVELS // N_SHARES)
            self.clusters[place] = ClusterTally(self.thresholds, MAX_CLUSTER_COUNTS // N_SHARES)
        return self.tallies[place]

    def add(self, counts: _Counts) -> None:
        """Add what some batches have of one place."""
        self.dropped += counts.dropped
        if counts.part is not None:
            self.tally(counts.place).add(counts.part, counts.rows, counts.ones, counts.weight)
        if counts.clusters is not None:
            self.clusters[counts.place].add(counts.clusters)

    def counted(self, place: tuple[int, int]) -> Aggregated:
        """All rows, or those of a group."""
        tally, clusters = self.tallies[place], self.clusters[place]
        table = tally.counted()
        if clusters.known:
            table = clusters.clustered(table, tally.scale)
        return Aggregated(table, tally.rows, tally.ones)

    @property
    def so_far(self) -> _SoFar:
        """How it is counted by now."""
        in_cells = {place for place, tally in self.tallies.items() if tally.cells is not None}
        return _SoFar(in_cells, {place: tally.splits for place, tally in self.clusters.items()})


def can_stream(columns: Columns, chosen: Chosen) -> bool:
    """Whether what is asked of the columns can be counted batch by batch."""
    plain = not (columns.margin or columns.proba or chosen.models or columns.capacity)
    plain = plain and columns.prevalence is None and columns.sampled_negatives is None
    return plain and chosen.roles().keys() <= ROLES_OF_COUNTS


def stream(
    sources: Sequence[FileSource],
    chosen: Chosen,
    columns: Columns,
    thresholds: Sequence[float],
    progress: Progress = lambda rows, total: None,
) -> Dataset:
    """The rows counted, and never held. thresholds: of decisions, at which counts are exact. Errors: DecalError."""
    # Late: a small file needs no other thread.
    from concurrent.futures import ThreadPoolExecutor

    digests = Digests(sources)
    reader = BatchReader(chosen, columns)
    models = [_Model(thresholds) for _ in chosen.score]
    total = rows_in(sources)
    inputs: list[tuple[str, int, int]] = []
    with ThreadPoolExecutor(_AHEAD) as pool:
        waiting: deque[Future[list[_Counts]]] = deque()
        read = 0
        for source in sources:
            rows = ones = 0
            for batches in _runs(reader.batches(source), models):
                task = _Task(batches, [each.so_far for each in models], thresholds, reader.widths)
                waiting.append(pool.submit(task.counts))
                rows += sum(len(each.label) for each in batches)
                ones += sum(int(np.count_nonzero(each.label == 1)) for each in batches)
                progress(read + rows, total)
                if len(waiting) > _AHEAD:
                    _add(models, waiting.popleft().result())
            read += rows
            inputs.append((source.raw.path, rows, ones))
        while waiting:
            _add(models, waiting.popleft().result())
    reader.check_all(sources)
    return _dataset(models, reader, chosen, inputs, digests)


def rows_in(sources: Sequence[FileSource]) -> int | None:
    """All rows, where every format says so."""
    counts = [getattr(source, "count", None) for source in sources]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _runs(batches: Iterator[CheckedBatch], models: Sequence[_Model]) -> Iterator[list[CheckedBatch]]:
    run: list[CheckedBatch] = []
    rows = 0
    for batch in batches:
        run.append(batch)
        rows += len(batch.label)
        if rows >= (N_LONG_RUN_ROWS if all(model.tallies[WHOLE].cells for model in models) else N_RUN_ROWS):
            yield run
            run, rows = [], 0
    if run:
        yield run


class BatchReader:
    """Batches of files, checked; it knows which labels and groups it has seen."""

    def __init__(self, chosen: Chosen, columns: Columns) -> None:
        self.chosen = chosen
        self.columns = columns
        self.labels = Labels(chosen.label, columns.positive)
        self.known: list[dict[str | None, int]] = [{} for _ in chosen.group]
        self.clusters: dict[str | None, int] = {}

    @property
    def widths(self) -> list[int]:
        """How many values each group column has so far."""
        return [len(known) for known in self.known]

    def batches(self, source: FileSource) -> Iterator[CheckedBatch]:
        """The rows of one file. Errors: DecalError, with the first value that is wrong."""
        start = 0
        for table in source.batches(self.chosen.numbers, self.chosen.texts):
            if table.num_rows:
                yield self.checked(Part(source, table, 0, start))
                start += table.num_rows
        if not start:
            raise no_rows(source.shown)

    def checked(self, part: Part) -> CheckedBatch:
        """The rows of a part of a file. Errors: DecalError."""
        origin, chosen = Origin([part]), self.chosen
        label, unlabelled = self._labels(part, origin)
        weight, reasons = None, {"missing label": unlabelled}
        if chosen.weight is not None:
            weight = floats([part], chosen.weight)
            _, reasons["missing weight"] = checked_weights(weight, chosen.weight, origin, self.columns)
        unit = None
        if chosen.cluster is not None:
            unit, reasons["missing cluster"] = self._units(part, chosen.cluster, origin)
        models = []
        for name in chosen.score:
            score, unscored = checked_scores(floats([part], name), name, origin, self.columns)
            masks = [mask for mask in (unscored, *reasons.values()) if mask is not None]
            models.append((score, ~np.logical_or.reduce(masks) if masks else None))
        return CheckedBatch(models, label, weight, [self._group(part, k) for k in range(len(chosen.group))], unit)

    def _labels(self, part: Part, origin: Origin) -> tuple[np.ndarray, np.ndarray | None]:
        labels = self.labels
        codes = [labels.codes(part, chunk) for _, chunk in part.chunks(labels.name)]
        code = codes[0] if len(codes) == 1 else np.concatenate(codes)
        if not labels.natural and (labels.positive is None or len(labels.seen) > 2):
            labels.meaning(code, origin)  # which raises
        missing = code == MISSING_LABEL if int(code.max()) == MISSING_LABEL else None
        if missing is not None and self.columns.missing == "error":
            raise missing_values(missing, labels.name, "label", origin)
        return labels.table()[code], missing

    def _units(self, part: Part, name: str, origin: Origin) -> tuple[np.ndarray, np.ndarray | None]:
        number = numbered(part, name, self.clusters)
        missing = number == self.clusters[None] if None in self.clusters else None
        if missing is not None and not missing.any():
            missing = None
        if missing is not None and self.columns.missing == "error":
            raise missing_values(missing, name, "cluster", origin)
        return number, missing

    def _group(self, part: Part, k: int) -> np.ndarray:
        number = numbered(part, self.chosen.group[k], self.known[k])
        if sum(self.widths) * len(self.chosen.score) > MAX_TALLIES:
            raise DecalError(
                f"{part.source.shown}, column {quote(self.chosen.group[k])}: more than {MAX_TALLIES} groups",
                "name a column of fewer values with --group, or aggregate the rows with decal sql",
            )
        return number

    def check_all(self, sources: Sequence[FileSource]) -> None:
        """What only all labels and clusters tell. Errors: DecalError."""
        if self.chosen.cluster is not None:
            known = [text for text in self.clusters if text is not None]
            need_several(known, f"{sources[0].shown}, column {quote(self.chosen.cluster)}")
        if not self.labels.has_positive:
            raise DecalError(
                f"{sources[0].shown}, column {quote(self.labels.name)}: label is never {quote(self.labels.positive)}",
                "correct --positive",
            )


WHOLE = (-1, 0)
"""The place of all rows; that of a group is its column and the number of its value."""


class _Counts(NamedTuple):
    """What some batches add to one tally of a model, and how many of their rows it drops."""

    model: int
    place: tuple[int, int]
    part: Table | CellSums | None
    rows: int
    ones: int
    weight: float
    dropped: int
    clusters: ClusterCounts | None = None


class _SoFar(NamedTuple):
    """How a model is counted by now: what in cells, and how fine the coarse cells are by which clusters are known."""

    in_cells: set[tuple[int, int]]
    splits: dict[tuple[int, int], int]


class _Task(NamedTuple):
    """Batches to be counted by any thread. so_far: of each model."""

    batches: Sequence[CheckedBatch]
    so_far: Sequence[_SoFar]
    thresholds: Sequence[float]
    widths: Sequence[int]

    def counts(self) -> list[_Counts]:
        """What the batches add to each tally."""
        counts = []
        for model, so_far in enumerate(self.so_far):
            parts: list[BatchRows] = []
            groups: list[list[np.ndarray]] = [[] for _ in self.widths]
            dropped = 0
            for batch in self.batches:
                score, keep = batch.models[model]
                rows, codes = BatchRows(score, batch.label, batch.weight, batch.unit), batch.groups
                if keep is not None:
                    rows, codes = rows.take(keep), [each[keep] for each in codes]
                    dropped += len(keep) - len(rows.label)
                parts.append(rows)
                for pieces, code in zip(groups, codes, strict=True):
                    pieces.append(code)
            rows = BatchRows.joined(parts)
            counts.append(self._of(model, WHOLE, rows, so_far, dropped))
            for column, pieces in enumerate(groups):
                code = np.concatenate(pieces)
                order = np.argsort(code, kind="stable")
                ends = np.searchsorted(code[order], np.arange(self.widths[column] + 1))
                for value in np.flatnonzero(np.diff(ends)).tolist():
                    of_group = rows.take(order[ends[value] : ends[value + 1]])
                    counts.append(self._of(model, (column, value), of_group, so_far))
        return counts

    def _of(self, model: int, place: tuple[int, int], rows: BatchRows, so_far: _SoFar, dropped: int = 0) -> _Counts:
        weight = 0.0 if rows.weight is None else float(rows.weight.sum())
        part: Table | CellSums | None = None
        clusters: ClusterCounts | None = None
        if len(rows.label):
            if rows.unit is not None:
                clusters = ClusterCounts.of(rows, self.thresholds, so_far.splits.get(place, MAX_SPLITS))
            if place in so_far.in_cells:
                part = CellSums.of(rows, self.thresholds)
            else:
                part = tabulate(rows.score, rows.label, rows.weight)
        ones = int(np.count_nonzero(rows.label))
        return _Counts(model, place, part, len(rows.label), ones, weight, dropped, clusters)


def _add(models: Sequence[_Model], counts: Sequence[_Counts]) -> None:
    for each in counts:
        models[each.model].add(each)


def _dataset(
    models: Sequence[_Model],
    reader: BatchReader,
    chosen: Chosen,
    inputs: Sequence[tuple[str, int, int]],
    digests: Digests,
) -> Dataset:
    shown = inputs[0][0]
    names = [settled(list(known), shown, name) for name, known in zip(chosen.group, reader.known, strict=True)]
    predictions, notes, cells = [], [STREAMED], False
    count = sum(rows for _, rows, _ in inputs)
    for name, model in zip(chosen.score, models, strict=True):
        whole = model.tallies[WHOLE]
        if not whole.rows:
            raise DecalError(f"{shown}, column {quote(name)}: no row is left", "name other columns")
        counted = model.counted(WHOLE)
        cells = cells or isinstance(counted.table, CellTable)
        parts = {}
        for at, (column, of_column) in enumerate(zip(chosen.group, names, strict=True)):
            of_values = {of_column[code]: (where, code) for where, code in model.tallies if where == at}
            parts[column] = {value: model.counted(of_values[value]) for value in sorted(of_values)}
        rows = Aggregated(counted.table, counted.count, counted.ones, parts)
        predictions.append(Predictions(name, (name,), rows, dropped=model.dropped))
        if model.dropped:
            notes.append(f"{name}: dropped {model.dropped:,} of {count:,} rows (missing values)")
    provenance = (Input(*item, digest) for item, digest in zip(inputs, digests.wait(), strict=True))
    notes += [f"a score has more than {N_LEVELS:,} values, so that cells of it are counted"] if cells else []
    clusters = None
    if chosen.cluster is not None:
        clusters = np.array(settled(list(reader.clusters), shown, chosen.cluster))
        notes += [OF_COARSE_CLUSTERS] if any(model.clusters[WHOLE].coarse for model in models) else []
    return Dataset(
        tuple(provenance), chosen.roles(), chosen.guessed, tuple(predictions), tuple(notes), clusters=clusters
    )
