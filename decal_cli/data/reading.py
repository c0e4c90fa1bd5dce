"""Reading files: whole, or counted or sampled where they are too large to be held."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import BinaryIO, NamedTuple

from decal_cli.data.dataset import Dataset, Input, as_used, chosen_columns, dataset
from decal_cli.data.formats.files import Raw, Source, raw
from decal_cli.data.formats.logs import CLUSTER, LABEL, SCORE, TARGET, TOOLS
from decal_cli.data.formats.sources import named_once, opened
from decal_cli.data.large.aggregates import aggregates, memory
from decal_cli.data.large.batches import Progress, rows_in
from decal_cli.data.large.files import can_count, count_files
from decal_cli.data.large.sampling import can_draw, draw
from decal_cli.data.unused import with_unused
from decal_cli.errors import DecalError
from decal_cli.limits import HELD_BYTES_OF_ROW, HELD_SHARE_OF_MEMORY, HELD_TIMES_OF_ROW, MAX_IN_MEMORY_BYTES
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
    paths = named_once(paths)
    if columns.log:
        return as_used(_of_logs([raw(path, stdin) for path in paths], columns), columns)
    by_path = [(path, opened(path, stdin)) for path in paths]
    sources = [source for _, of_path in by_path for source in of_path]
    try:
        data = aggregates(sources, columns) if columns.aggregated else _read(sources, columns, counting, sampled)
        inputs, at = [], 0
        for path, of_path in by_path:
            files = data.inputs[at : at + len(of_path)]
            at += len(files)
            inputs.append(files[0] if files[0].path == path else _together(path, files))
        return as_used(replace(data, inputs=tuple(inputs)), columns)
    except DecalError:
        # Of a file that changed, what was wrong is not worth telling.
        for source in sources:
            source.raw.check_unchanged()
        raise


def _together(path: str, files: Sequence[Input]) -> Input:
    """A folder as one input: its digest is of the names in it and the digests of their files."""
    lines = "".join(f"{os.path.relpath(each.path, path)}\0{each.sha256}\n" for each in files)
    digest = hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()
    known = [each.positives for each in files if each.positives is not None]
    positives = sum(known) if len(known) == len(files) else None
    unlabelled = sum(each.unlabelled for each in files)
    return Input(path, sum(each.rows for each in files), positives, digest, unlabelled)


def _of_logs(raws: Sequence[Raw], columns: Columns) -> Dataset:
    """The rows of logs; questions that were answered more than once are clusters, where the user names none."""
    assert columns.log
    logs = [TOOLS[columns.log](each) for each in raws]
    usual = {"label": TARGET} if columns.proba else {"score": (SCORE,), "label": LABEL}
    if any(log.repeats for log in logs):
        usual["cluster"] = CLUSTER
    columns = columns.updated({role: name for role, name in usual.items() if not columns.names(role)})
    data = dataset(logs, chosen_columns(logs, columns))
    return replace(data, notes=(*(note for log in logs for note in log.notes), *data.notes))


def _read(sources: Sequence[Source], columns: Columns, counting: Counting | None, sampled: bool) -> Dataset:
    chosen = chosen_columns(sources, columns)
    # What holding every row takes, as far as their formats tell: files may be compressed, and rows are not.
    held = max(sum(source.raw.size for source in sources), HELD_BYTES_OF_ROW * (rows_in(sources) or 0))
    if chosen.worths or chosen.models:
        held *= HELD_TIMES_OF_ROW
    most = HELD_SHARE_OF_MEMORY * memory()
    if counting is not None and can_count(chosen, counting.pairs):
        # Cells of two scores show less than rows do, so rows are held for as long as they can be.
        few = most if counting.pairs else min(MAX_IN_MEMORY_BYTES, memory() // 16)
        if held > few:
            return count_files(sources, chosen, *counting)
    if sampled and held > most and can_draw(chosen):
        if chosen.roles().keys() == {"score", "label"}:
            # What is drawn from counts of scores holds each of them at its rate.
            return count_files(sources, chosen)
        return draw(sources, chosen, (counting or Counting()).progress)
    return with_unused(dataset(sources, chosen), sources, chosen)
