"""Rows in the order of time, whose last labels may not be known yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from decal_cli.data.check import MISSING_LABEL, NO_GROUP, Labels, group, scores_of
from decal_cli.data.columns import Chosen, choose, has_usual, nearest_of, same_columns
from decal_cli.data.dataset import Digests, Input, counts_of, parts_of
from decal_cli.data.formats.files import Source
from decal_cli.data.formats.sources import named_once, open_source
from decal_cli.data.parts import Origin, Part
from decal_cli.data.times import Clock, shown_time, times_of
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_STREAM_GROUPS
from decal_cli.numbers import many
from decal_cli.roles import Columns
from decal_cli.tables.rows import of_rows
from decal_cli.tables.table import Floats, Ints


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in the order of time, checked. All arrays are of shape (T,).

    score: in [0, 1], 0 where there is none. label: uint8; those from `labelled` on are not known. time: never
    decreasing, as `clock` says. arrival: when the label of each row came in; its time where no column says it. group,
    cluster: texts, "" where there are none. row_numbers: which rows of the files they are, from 0.
    """

    inputs: tuple[Input, ...]
    columns: dict[str, str | tuple[str, ...]]
    guessed: tuple[str, ...]
    notes: tuple[str, ...]
    clock: Clock
    score: Floats
    label: NDArray[np.uint8]
    labelled: int
    time: NDArray[Any]
    arrival: NDArray[Any]
    group: NDArray[Any]
    cluster: NDArray[Any]
    row_numbers: Ints

    def __len__(self) -> int:
        """Number of rows, T."""
        return len(self.label)

    @property
    def certain_and_wrong(self) -> Ints:
        """The labelled rows whose score is 0 at label 1, or 1 at label 0, from 0."""
        known = slice(self.labelled)
        return np.flatnonzero(self.score[known] == 1.0 - self.label[known])

    def only(self, kept: NDArray[np.bool_]) -> Stream:
        """These rows of it; kept: shape (T,)."""
        cut = {each.name: of_rows(getattr(self, each.name), kept) for each in fields(self)}
        cut["labelled"] = int(kept[: self.labelled].sum())
        return Stream(**cut | ({"time": np.arange(int(kept.sum()))} if self.clock == "rows" else {}))


def read_stream(
    paths: Sequence[str],
    columns: Columns,
    arrival: str = "",
    with_score: bool | None = None,
    stdin: BinaryIO | None = None,
) -> Stream:
    """Read files as one stream, row after row. Errors: DecalError, one line, for anything that is none."""
    return stream_of([open_source(path, stdin) for path in named_once(paths)], columns, arrival, with_score)


def stream_of(sources: Sequence[Source], columns: Columns, arrival: str, with_score: bool | None) -> Stream:
    """Check and assemble opened inputs.

    columns: without a time, rows are in order as they stand. arrival: the column that says when labels came in.
    with_score: whether the score is read, True, or not, False; None: where there is a column of its name.
    """
    chosen = _chosen(sources, columns, arrival, with_score)
    digests = Digests(sources)
    parts = parts_of(sources, chosen)
    labels = Labels(chosen.label, chosen.positive)
    label = labels.read(parts)
    missing = label == MISSING_LABEL
    if missing.all():
        raise DecalError(
            f"{parts.of_column(chosen.label)}: no label is known yet",
            "give these rows when some are; `decal apply` with a state file predicts them now",
        )
    labels.need_positive(parts.shown)
    kept, notes, labelled = np.ones(parts.n_rows, dtype=bool), list[str](), parts.n_rows
    score, no_text = np.zeros(parts.n_rows), np.zeros(parts.n_rows, dtype=str)
    groups = cluster = no_text

    def drop(rows: np.ndarray, why: str) -> None:
        """Leave out these rows, and say so."""
        if rows.any():
            kept[rows] = False
            notes.append(f"dropped {int(rows.sum()):,} of {parts.n_rows:,} rows ({why})")

    if chosen.score:
        score, of_scores = scores_of(parts, chosen.scored[0], columns)
        notes += of_scores
        drop(np.isnan(score), "missing score")
    if missing.any():
        labelled = int(np.flatnonzero(~missing)[-1]) + 1
        gap = missing & (np.arange(parts.n_rows) < labelled)
        if gap.any() and columns.missing == "error":
            raise DecalError(
                f"{parts.place(chosen.label, int(gap.argmax()))}: the label is missing, and later rows have one"
                f" ({many(int(gap.sum()), 'such row')})",
                "labels may be missing only at the end, where they are not known yet; fill them in, or "
                f"{Hint('missing', 'drop')}",
            )
        drop(gap, "missing label before later labels")
        if labelled < parts.n_rows:
            unknown = parts.n_rows - labelled
            which = "label of the last row is" if unknown == 1 else f"labels of the last {unknown:,} rows are"
            notes.append(f"the {which} not known yet")
        label = np.where(label == MISSING_LABEL, 0, label).astype(np.uint8)
    if chosen.cluster:
        cluster = group(parts, chosen.cluster)
        parts.lacking(cluster == NO_GROUP, chosen.cluster, "cluster", columns)
        drop(cluster == NO_GROUP, "missing cluster")
    if not kept[:labelled].any():
        raise DecalError(f"{parts.shown}: no row {'with a label ' if kept.any() else ''}is left", "name other columns")
    time, clock, moved = _time(parts, chosen.time, kept)
    if moved:
        notes.append(f"times of {chosen.time} are shown, and cut into windows, in UTC")
    arrived = time
    if arrival:
        arrived, of_arrival, _ = times_of(parts, arrival, labelled)
        if of_arrival != clock:
            raise DecalError(
                f"{parts.of_column(arrival)} holds {of_arrival}, and time is counted in {clock}",
                f"give both as dates or both as numbers, with {Hint('time')}",
            )
    inputs = digests.inputs(counts_of(parts, label, missing))
    if chosen.group:
        groups = group(parts, chosen.group[0])
        if len(np.unique(groups)) > MAX_STREAM_GROUPS:
            raise DecalError(
                f"{parts.of_column(chosen.group[0])} has more than {MAX_STREAM_GROUPS:,} groups",
                "name a column of fewer: every group has forecasters of its own",
            )
    of_files = inputs, chosen.shown(), chosen.guessed, tuple(notes), clock
    numbers = np.arange(parts.n_rows)
    stream = Stream(*of_files, score, label, labelled, time, arrived, groups, cluster, numbers)
    return stream if kept.all() else stream.only(kept)


def _chosen(sources: Sequence[Source], columns: Columns, arrival: str, with_score: bool | None) -> Chosen:
    """The columns of the first source by role, which the others must have too."""
    first = sources[0]
    beside = [name for name in (columns.time, arrival) if name]
    for source in sources:
        for name in beside:
            nearest_of(name, source.names, source.shown)
    # When labels came in is no score; but it may be what rows were sampled by.
    free = [name for name in first.names if name != arrival or name in (columns.cluster, columns.time)]
    if with_score is None:
        with_score = bool(columns.score) or has_usual("score", [name for name in free if name not in beside])
    columns = columns if with_score else replace(columns, score=())
    chosen = choose(free, columns, first.shown, () if with_score else ("score",))
    if len(chosen.score) > 1:
        raise DecalError(
            f"{len(chosen.score)} scores are named, and a stream has one", f"name one with {Hint('score')}"
        )
    if len(chosen.group) > 1:
        raise DecalError("two columns of groups are named", f"name one with {Hint('group')}")
    for other in sources[1:]:
        same_columns(chosen, first.shown, other.names, columns, other.shown)
    return chosen


def _time(parts: Origin, name: str, kept: NDArray[np.bool_]) -> tuple[NDArray[Any], Clock, bool]:
    """What `times_of` says of all rows. Errors: DecalError, where time goes back among those that are kept, (T,)."""
    if not name:
        return np.arange(parts.n_rows), "rows", False
    time, clock, moved = times_of(parts, name)
    rows = np.flatnonzero(kept)
    back = np.flatnonzero(np.diff(time[rows]) < 0)
    if len(back):
        before, row = rows[back[0] : back[0] + 2]
        raise DecalError(
            f"{parts.place(name, int(row))}: {shown_time(time[row], clock)} comes after"
            f" {shown_time(time[before], clock)}",
            f"sort the rows by {name}",
        )
    return time, clock, moved


def read_times(source: Source, name: str) -> tuple[NDArray[Any], Clock]:
    """The times of all rows of one input. Errors: DecalError, where they go back."""
    parts = Origin([Part(source, source.load({name: "typed"}), 0)])
    return _time(parts, name, np.ones(parts.n_rows, dtype=bool))[:2]
