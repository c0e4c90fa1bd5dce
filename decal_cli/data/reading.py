"""Reading files: in batches into two arrays where one score and the labels are all there is, else column by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO, NamedTuple

import numpy as np

from decal_cli.data.capacity import as_used
from decal_cli.data.check import Origin, Part, checked_scores, floats
from decal_cli.data.columns import Chosen
from decal_cli.data.dataset import Dataset, Digests, Input, Predictions, chosen_columns, dataset
from decal_cli.data.formats.files import Raw, no_rows, raw
from decal_cli.data.formats.folders import as_named, opened
from decal_cli.data.formats.logs import CLUSTER, LABEL, SCORE, TARGET, TOOLS
from decal_cli.data.formats.sources import FileSource, Source
from decal_cli.data.labels import MISSING_LABEL, Labels
from decal_cli.data.large.aggregates import aggregates
from decal_cli.data.large.batches import Progress, memory, rows_in
from decal_cli.data.large.files import can_count, count_files
from decal_cli.data.large.sampling import can_draw, draw
from decal_cli.data.unnamed import with_note
from decal_cli.errors import DecalError
from decal_cli.limits import HELD_BYTES_OF_ROW, HELD_SHARE_OF_MEMORY, MAX_IN_MEMORY_BYTES
from decal_cli.roles import Columns
from decal_cli.tables.rows import Rows


class Counting(NamedTuple):
    """For commands that can work from counts of rows, of files that are too large to be held.

    thresholds: of decisions, at which counts are exact. progress: is told how many rows are read. pairs: whether two
    scores are counted at once.
    """

    thresholds: tuple[float, ...] = ()
    progress: Progress = lambda rows, total: None
    pairs: bool = False


def read(
    paths: Sequence[str],
    columns: Columns,
    stdin: BinaryIO | None = None,
    counting: Counting | None = None,
    sampled: bool = False,
) -> Dataset:
    """Read files (CSV, Parquet, Arrow, JSON Lines, each also gzipped) as one data set, row after row.

    A folder stands for all files in it. '-', or no path at all, is standard input, which is read once. counting: where
    counts of rows will do; they are held only if they are few. sampled: where a sample of rows will do. Errors:
    DecalError, one line, for anything that cannot be evaluated as it stands.
    """
    if list(paths).count("-") > 1:
        raise DecalError("standard input ('-') is named twice", "name it once: it can be read only once")
    if columns.log is not None:
        return as_used(_of_logs([raw(path, stdin) for path in paths or ["-"]], columns), columns)
    by_path = [(path, opened(path, stdin)) for path in paths or ["-"]]
    sources = [source for _, of_path in by_path for source in of_path]
    counts = [(path, len(of_path)) for path, of_path in by_path]
    try:
        if columns.aggregated:
            return as_used(as_named(aggregates(sources, columns), counts), columns)
        return as_used(as_named(_read(sources, columns, counting, sampled), counts), columns)
    except DecalError:
        # Of a file that changed, what was wrong is not worth telling.
        for source in sources:
            source.raw.check_unchanged()
        raise


def _of_logs(raws: Sequence[Raw], columns: Columns) -> Dataset:
    """The rows of logs; questions that were answered more than once are clusters, where the user names none."""
    assert columns.log is not None
    logs = [TOOLS[columns.log](each) for each in raws]
    usual = {"label": TARGET} if columns.proba else {"score": (SCORE,), "label": LABEL}
    if any(log.repeats for log in logs):
        usual["cluster"] = CLUSTER
    data = dataset(logs, columns.updated({role: name for role, name in usual.items() if not columns.names(role)}))
    return replace(data, notes=(*(note for log in logs for note in log.notes), *data.notes))


def _read(sources: Sequence[FileSource], columns: Columns, counting: Counting | None, sampled: bool) -> Dataset:
    chosen = chosen_columns(sources, columns)
    # Cells of two scores show less than rows do, so rows are held for as long as they can be.
    is_large = _too_large_to_hold if counting is not None and counting.pairs else _large
    if counting is not None and can_count(columns, chosen, counting.pairs) and is_large(sources):
        return count_files(sources, chosen, columns, *counting)
    if sampled and _too_large_to_hold(sources) and can_draw(columns, chosen):
        if chosen.roles().keys() == {"score", "label"}:
            # What is drawn from counts of scores holds each of them at its rate.
            return count_files(sources, chosen, columns)
        return draw(sources, chosen, columns, (counting or Counting()).progress)
    bare = chosen.roles().keys() == {"score", "label"} and len(chosen.score) == 1
    # The range of margins is that of all rows.
    in_batches = bare and columns.missing == "error" and not columns.margin
    data = _in_batches(sources, chosen, columns) if in_batches else dataset(sources, columns)
    return with_note(data, sources, chosen)


def _large(sources: Sequence[FileSource]) -> bool:
    """Whether all rows take more than may be held: a sixteenth of the memory, and no more than the limit."""
    return _held_bytes(sources) > min(MAX_IN_MEMORY_BYTES, memory() // 16)


def _too_large_to_hold(sources: Sequence[FileSource]) -> bool:
    """Whether not even what needs single rows can hold them."""
    return _held_bytes(sources) > HELD_SHARE_OF_MEMORY * memory()


def _held_bytes(sources: Sequence[FileSource]) -> int:
    """What holding every row takes, as far as their formats tell: files may be compressed, and rows are not."""
    return max(_size(sources), HELD_BYTES_OF_ROW * (rows_in(sources) or 0))


def _size(sources: Sequence[FileSource]) -> int:
    return sum(source.raw.size for source in sources)


def _in_batches(sources: Sequence[FileSource], chosen: Chosen, columns: Columns) -> Dataset:
    """One score and its labels, with memory for little else: the file is never held whole."""
    digests = Digests(sources)
    # A damaged file may claim any number of rows.
    expected = min(rows_in(sources) or 0, _size(sources))
    score, label = _Growing(np.float64, expected), _Growing(np.uint8, expected)
    inputs: list[tuple[str, int, int]] = []
    try:
        labels = Labels(chosen.label, columns.positive)
        for source in sources:
            rows = positives = 0
            for scores, ones in _batches(source, chosen.score[0], labels, columns):
                score.extend(scores)
                label.extend(ones)
                rows += len(ones)
                positives += int(np.count_nonzero(ones))
            inputs.append((source.raw.path, rows, positives))
        if not labels.has_positive:
            raise DecalError(f"{sources[0].shown}: label is never {labels.positive}")
    except DecalError:
        # A batch does not know its place; reading everything words the fault as it does elsewhere.
        return dataset(sources, columns)
    model = Predictions(chosen.score[0], chosen.score, Rows(score.filled, label.filled))
    provenance = (Input(*item, digest) for item, digest in zip(inputs, digests.wait(), strict=True))
    return Dataset(tuple(provenance), chosen.roles(), chosen.guessed, (model,), ())


class _Growing:
    """An array that batches are appended to; memory that was not written to yet costs nothing."""

    def __init__(self, dtype: type[np.generic], expected: int) -> None:
        self.values = np.empty(max(expected, 1 << 16), dtype=dtype)
        self.length = 0

    def extend(self, batch: np.ndarray) -> None:
        """Append a batch."""
        end = self.length + len(batch)
        if end > len(self.values):
            larger = np.empty(max(2 * len(self.values), end), dtype=self.values.dtype)
            larger[: self.length] = self.filled
            self.values = larger
        self.values[self.length : end] = batch
        self.length = end

    @property
    def filled(self) -> np.ndarray:
        """What was appended."""
        return self.values[: self.length]


def _batches(source: Source, name: str, labels: Labels, columns: Columns) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Checked batches of scores and labels; a fault is a DecalError that need not say where it is."""
    count = 0
    for batch in source.batches((name,), (labels.name,)):
        if not batch.num_rows:
            continue
        count += batch.num_rows
        part = Part(source, batch, 0)
        codes = [labels.codes(part, chunk) for _, chunk in part.chunks(labels.name)]
        label = _table(labels)[codes[0] if len(codes) == 1 else np.concatenate(codes)]
        score, _ = checked_scores(floats([part], name), name, Origin([part]), columns)
        if int(label.max()) == MISSING_LABEL:
            raise DecalError(f"{source.shown}: label missing")
        yield score, label
    if not count:
        raise no_rows(source.shown)


def _table(labels: Labels) -> np.ndarray:
    """uint8 (256,): code -> label as far as the values seen so far settle it; the rest of the check is at the end."""
    if not labels.natural and (labels.positive is None or len(labels.seen) > 2):
        raise DecalError(f"column {labels.name}: labels are not 0 or 1")
    return labels.table()
