"""Rows in the order of time, whose last labels may not be known yet.

Times are exact: dates whole nanoseconds since 1970, and numbers that can be told apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.data.check import MISSING_LABEL, NO_GROUP, group, labels_of, scores_of
from decal_cli.data.columns import Chosen, choose, has_usual, same_columns
from decal_cli.data.dataset import Digests, Input, parts_of
from decal_cli.data.features import PER_DAY, FeatureTexts, microseconds_of_texts, numbers_of, typed_kind, whole_units
from decal_cli.data.formats.files import Source, translated
from decal_cli.data.formats.sources import open_source
from decal_cli.data.parts import NotNumbers, Origin, Part, plain
from decal_cli.data.words import listed, quote
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_STREAM_GROUPS
from decal_cli.roles import Columns
from decal_cli.tables.table import Floats, Ints

Clock = Literal["rows", "numbers", "dates"]
"""What time is counted in: rows where no column holds it, numbers of any unit, or nanoseconds since 1970."""
NS_PER_DAY = PER_DAY["ns"]
MAX_NS = 2**63 - 1
MAX_NUMBER = 2.0**53
"""Beyond it whole numbers run into each other as floats."""
_FINER = re.compile(r"\.\d{6}(\d{1,3})")


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in the order of time, checked. All arrays are of shape (T,).

    score: in [0, 1], None where there is none. label: uint8; those from `labelled` on are not known. time: never
    decreasing, as `clock` says. arrival: when the label of each row came in; None where no column says it. group,
    cluster: texts, or None. row_numbers: which rows of the files they are, from 0; None: all.
    """

    inputs: tuple[Input, ...]
    columns: dict[str, str | tuple[str, ...]]
    guessed: tuple[str, ...]
    notes: tuple[str, ...]
    clock: Clock
    score: Floats | None
    label: NDArray[np.uint8]
    labelled: int
    time: NDArray[Any]
    arrival: NDArray[Any] | None = None
    group: NDArray[Any] | None = None
    row_numbers: Ints | None = None
    cluster: NDArray[Any] | None = None

    def __len__(self) -> int:
        """Number of rows, T."""
        return len(self.label)

    def only(self, kept: NDArray[np.bool_]) -> Stream:
        """These rows of it; kept: shape (T,)."""
        numbers = np.arange(len(self)) if self.row_numbers is None else self.row_numbers
        values: dict[str, Any] = {name: getattr(self, name) for name in ("score", "arrival", "group", "cluster")}
        values = {name: each if each is None else each[kept] for name, each in values.items()}
        values["time"] = np.arange(int(kept.sum())) if self.clock == "rows" else self.time[kept]
        labelled = int(kept[: self.labelled].sum())
        return replace(self, **values, label=self.label[kept], labelled=labelled, row_numbers=numbers[kept])


@dataclass(frozen=True)
class StreamColumns:
    """What columns a stream has beside score, label and group.

    time: the column of time; None: rows are in order as they stand. arrival: when labels came in. with_score: whether
    the score is read, True, or not, False; None: where there is a column of its name.
    """

    time: str | None = None
    arrival: str | None = None
    with_score: bool | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return tuple(name for name in (self.time, self.arrival) if name is not None)


def read_stream(paths: Sequence[str], columns: Columns, beside: StreamColumns, stdin: BinaryIO | None = None) -> Stream:
    """Read files as one stream, row after row. Errors: DecalError, one line, for anything that is none."""
    if list(paths).count("-") > 1:
        raise DecalError("standard input ('-') is named twice", "name it once: it can be read only once")
    return stream_of([open_source(path, stdin) for path in paths or ["-"]], columns, beside)


def stream_of(sources: Sequence[Source], columns: Columns, beside: StreamColumns) -> Stream:
    """Check and assemble opened inputs."""
    chosen = _chosen(sources, columns, beside)
    digests = Digests(sources)
    parts = parts_of(sources, chosen, columns)
    label, missing = labels_of(parts, chosen.label, replace(columns, missing="drop"))
    kept, notes, labelled = np.ones(parts.n_rows, dtype=bool), list[str](), parts.n_rows
    score = cluster = arrival = groups = None

    def drop(rows: np.ndarray | None, why: str) -> None:
        """Leave out these rows, and say so."""
        if rows is not None and rows.any():
            kept[rows] = False
            notes.append(f"dropped {int(rows.sum()):,} of {parts.n_rows:,} rows ({why})")

    if chosen.score:
        score, unscored, of_scores = scores_of(parts, chosen.scored[0], columns)
        notes += of_scores
        drop(unscored, "missing score")
    if missing is not None:
        labelled = int(np.flatnonzero(~missing)[-1]) + 1
        gap = missing & (np.arange(parts.n_rows) < labelled)
        if gap.any() and columns.missing == "error":
            raise DecalError(
                f"{parts.place(chosen.label, int(gap.argmax()))}: the label is missing, and later rows have one"
                f" ({int(gap.sum()):,} such row{'s' if gap.sum() > 1 else ''})",
                "labels may be missing only at the end, where they are not known yet; fill them in, or "
                f"{Hint('missing', 'drop')}",
            )
        drop(gap, "missing label before later labels")
        if labelled < parts.n_rows:
            notes.append(f"the labels of the last {parts.n_rows - labelled:,} rows are not known yet")
        label = np.where(label == MISSING_LABEL, 0, label).astype(np.uint8)
    if chosen.cluster is not None:
        cluster = group(parts, chosen.cluster)
        drop(parts.lacking(cluster == NO_GROUP, chosen.cluster, "cluster", columns), "missing cluster")
    rows = None if kept.all() else np.flatnonzero(kept)
    if rows is not None and not len(rows):
        raise DecalError(f"{parts.shown}: no row is left", "name other columns")
    time, clock = _time(parts, beside.time, rows)
    if beside.arrival is not None:
        arrival, of_arrival = times_of(parts, beside.arrival)
        if of_arrival != clock:
            raise DecalError(
                f"{parts.of_column(beside.arrival)} holds {of_arrival}, and time is counted in {clock}",
                f"give both as dates or both as numbers, with {Hint('time')}",
            )
    inputs = digests.inputs(parts, label)
    if chosen.group:
        groups = group(parts, chosen.group[0])
        if len(np.unique(groups)) > MAX_STREAM_GROUPS:
            raise DecalError(
                f"{parts.of_column(chosen.group[0])}: has more than {MAX_STREAM_GROUPS:,} groups",
                "name a column of fewer: every group has forecasters of its own",
            )
    roles = {**chosen.roles(), **({"time": beside.time} if beside.time else {})}
    arrays = {"score": score, "label": label, "arrival": arrival, "group": groups, "cluster": cluster}
    kept_of: dict[str, Any] = {k: each if rows is None or each is None else each[rows] for k, each in arrays.items()}
    kept_of |= {"time": time, "labelled": int(kept[:labelled].sum()), "row_numbers": rows}
    return Stream(inputs, roles, chosen.guessed, tuple(notes), clock, **kept_of)


def _chosen(sources: Sequence[Source], columns: Columns, beside: StreamColumns) -> Chosen:
    """The columns of the first source by role, which the others must have too."""
    first = sources[0]
    for source in sources:
        for name in beside.names:
            if name not in source.names:
                raise DecalError(f"{source.shown}: no column {quote(name)}", f"columns: {listed(source.names)}")
    # A day may be what rows were sampled by.
    free = [name for name in first.names if name not in beside.names or name == columns.cluster]
    with_score = beside.with_score
    if with_score is None:
        with_score = bool(columns.score) or has_usual("score", free)
    without = () if with_score else ("score",)
    columns = columns if with_score else replace(columns, score=())
    chosen = choose(free, columns, first.shown, without)
    if len(chosen.score) > 1:
        raise DecalError(
            f"{len(chosen.score)} scores are named, and a stream has one", f"name one with {Hint('score')}"
        )
    if len(chosen.group) > 1:
        raise DecalError("two columns of groups are named", f"name one with {Hint('group')}")
    for other in sources[1:]:
        same_columns(chosen, first.shown, other.names, columns, other.shown)
    return chosen


def _time(parts: Origin, name: str | None, rows: Ints | None) -> tuple[NDArray[Any], Clock]:
    """The time of the rows that are kept. Errors: DecalError, where it goes back."""
    numbers = np.arange(parts.n_rows) if rows is None else rows
    if name is None:
        return np.arange(len(numbers)), "rows"
    time, clock = times_of(parts, name)
    time = time if rows is None else time[rows]
    back = np.flatnonzero(np.diff(time) < 0)
    if len(back):
        row = int(numbers[back[0] + 1])
        raise DecalError(
            f"{parts.place(name, row)}: {shown_time(time[back[0] + 1], clock)} comes after"
            f" {shown_time(time[back[0]], clock)}",
            f"sort the rows by {name}",
        )
    return time, clock


def read_times(source: Source, name: str) -> tuple[NDArray[Any], Clock]:
    """The times of all rows of one input. Errors: DecalError, where they go back."""
    return _time(Origin([Part(source, source.load_typed((name,)), 0)]), name, None)


def times_of(parts: Origin, name: str) -> tuple[NDArray[Any], Clock]:
    """A column of times: dates as int64 nanoseconds, numbers as float64.

    Errors: DecalError, where one is missing, or so far off that it is none: what "never" is written as, mostly.
    """
    typed = Origin(Part(part.source, part.source.load_typed((name,)), part.start) for part in parts)
    kinds = {typed_kind(part.type_of(name)) for part in typed}
    texts = FeatureTexts(typed, name) if None in kinds or len(kinds) > 1 else None
    kind = kinds.pop() if texts is None else texts.kind
    if kind not in ("date", "number", "missing"):
        raise DecalError(f"{parts.of_column(name)}: is neither a time nor a number", "name another column")
    time: NDArray[Any] = np.empty(parts.n_rows, dtype=np.int64 if kind == "date" else np.float64)
    missing = np.zeros(parts.n_rows, dtype=bool)
    try:
        if kind != "date":
            numbers_of(typed, name, kind, time)
            missing = ~np.isfinite(time)
        elif texts is not None:
            if texts.microseconds is None:
                raise NotNumbers(next(text for text in texts.values if microseconds_of_texts([text]) is None))
            found = [_FINER.search(text) for text in texts.values]
            finer = [0 if each is None else int(each[1].ljust(3, "0")) for each in found]
            whole = _nanoseconds(texts.each(texts.microseconds, 0, np.int64), 1000, name, 0, parts)
            time, missing = whole + texts.each(finer, 0, np.int64), texts.codes < 0
        else:
            for part in typed:
                for at, chunk in part.chunks(name):
                    with translated(part.source.shown, f"dates (column {quote(name)})"):
                        whole, per_day = whole_units(chunk)
                        counts = plain(whole.fill_null(0)).astype(np.int64)
                    rows = slice(at, at + len(chunk))
                    time[rows] = _nanoseconds(counts, NS_PER_DAY // per_day, name, at, parts)
                    missing[rows] = chunk.is_null().to_numpy(zero_copy_only=False)
    except NotNumbers as error:
        raise DecalError(f"{parts.of_column(name)}: {quote(str(error))} is no time", "correct it") from None
    if missing.any():
        raise DecalError(
            f"{parts.place(name, int(missing.argmax()))}: the time is missing", "fill it in, or drop the row"
        )
    if kind == "date":
        return time, "dates"
    parts.refuse(
        np.abs(time) > MAX_NUMBER,
        name,
        time,
        "the time {} is beyond 2^53, from where on numbers run into each other",
        "give dates, or count from a later start; if it stands for never, drop the row",
    )
    return time, "numbers"


def _nanoseconds(counts: NDArray[np.int64], each: int, name: str, at: int, parts: Origin) -> NDArray[np.int64]:
    """Whole units of so many nanoseconds each; at: the number of the first row. Errors: DecalError, beyond int64."""
    far = (counts > MAX_NS // each) | (counts < -(MAX_NS // each))
    if far.any():
        row = int(far.argmax())
        year = math.floor(counts[row] * (each / NS_PER_DAY) / 365.2425 + 1970)
        raise DecalError(
            f"{parts.place(name, at + row)}: the time lies in the year {year}, and times are counted from 1677-09-21 "
            "to 2262-04-11",
            "give the row its true time, or drop it (such times stand for never, mostly)",
        )
    return counts * each


def shown_time(value: Any, clock: Clock) -> str:
    """A time as a person writes it: without parts of a second that are 0, and without the time of midnight."""
    if clock != "dates":
        return f"row {int(value) + 1:,}" if clock == "rows" else f"{float(value):.12g}"
    day, _, time = str(np.datetime64(int(value), "ns")).partition("T")
    second, _, part = time.partition(".")
    part = part.rstrip("0")
    return day if second == "00:00:00" and not part else f"{day} {second}{'.' if part else ''}{part}"
