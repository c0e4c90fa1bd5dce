"""Reading files: whole, or counted or sampled where they are too large to be held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import BinaryIO, NamedTuple

from decal_cli.data.dataset import Dataset, chosen_columns, dataset
from decal_cli.data.formats.files import Raw, raw
from decal_cli.data.formats.folders import as_named, opened
from decal_cli.data.formats.logs import CLUSTER, LABEL, SCORE, TARGET, TOOLS
from decal_cli.data.formats.sources import FileSource
from decal_cli.data.large.aggregates import aggregates
from decal_cli.data.large.batches import Progress, memory, rows_in
from decal_cli.data.large.files import can_count, count_files
from decal_cli.data.large.sampling import can_draw, draw
from decal_cli.data.population import as_used
from decal_cli.data.unnamed import with_note
from decal_cli.errors import DecalError
from decal_cli.limits import HELD_BYTES_OF_ROW, HELD_SHARE_OF_MEMORY, MAX_IN_MEMORY_BYTES
from decal_cli.roles import Columns


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
    return with_note(dataset(sources, columns), sources, chosen)


def _large(sources: Sequence[FileSource]) -> bool:
    """Whether all rows take more than may be held: a sixteenth of the memory, and no more than the limit."""
    return _held_bytes(sources) > min(MAX_IN_MEMORY_BYTES, memory() // 16)


def _too_large_to_hold(sources: Sequence[FileSource]) -> bool:
    """Whether not even what needs single rows can hold them."""
    return _held_bytes(sources) > HELD_SHARE_OF_MEMORY * memory()


def _held_bytes(sources: Sequence[FileSource]) -> int:
    """What holding every row takes, as far as their formats tell: files may be compressed, and rows are not."""
    size = sum(source.raw.size for source in sources)
    return max(size, HELD_BYTES_OF_ROW * (rows_in(sources) or 0))
