"""The replay: every method predicts every row from the labels that were known, and all of it is counted.

The sums and counts do not depend on how the stream is cut into pieces.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis.online.plan import AS_IT_IS, OnlinePlan
from decal_cli.data import Stream
from decal_cli.data.times import MAX_NS, MAX_NUMBER
from decal_cli.data.words import quote
from decal_cli.documents import consistent
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_ROWS_OVER_TIME, MAX_STREAM_CLUSTERS
from decal_cli.metrics.confidence import quantile
from decal_cli.numbers import Interval
from decal_cli.sequential import Forecaster, forecaster_of
from decal_cli.sequential.anytime import (
    MAX_LOG_E,
    Acts,
    CalibrationAlarm,
    ClusterAlarm,
    DelayedAlarm,
    RunningDifference,
    RunningMeans,
    Runs,
    Sums,
    first_alarm,
    utility_difference,
)
from decal_cli.sequential.forecasters import Inside
from decal_cli.sequential.resumable import Resumable
from decal_cli.tables.design import confidence_of
from decal_cli.tables.table import Floats, Ints, Labels, Mask, Table, Values
from decal_cli.tables.units import mean_over
from decal_cli.task import BinaryTask


class SplitCluster(NamedTuple):
    """A cluster whose rows do not follow each other: its name, and the row, from 1, at which it came back."""

    cluster: str
    row: int


class ClusterRows(NamedTuple):
    """Rows of a stream: the cluster of each by number, shape (T,), and the runs of rows that follow each other."""

    number: Ints
    runs: Runs


class StreamClusters(Resumable):
    """The clusters so far. size: rows of each, in the order in which they came.

    open: the number of the latest one, None where it is over, or there is none; of its latest run the rows and the
    number of the first. apart: the first cluster that came back after rows of others; None where each came once.
    """

    names: list[str]
    size: list[int]
    open: int | None = None
    open_rows: int = 0
    open_first: int = 0
    apart: SplitCluster | None = None

    def __init__(self) -> None:
        self.names, self.size = [], []
        self.numbers: dict[str, int] = {}

    def runs_of(self, cluster: Values, row: int) -> Runs:
        """The runs of the next rows, the first of which may go on; row: the number of the first of these rows."""
        begins = np.ones(len(cluster), dtype=bool)
        begins[1:] = cluster[1:] != cluster[:-1]
        begins[:1] = self.open is None or [self.numbers.get(str(name)) != self.open for name in cluster[:1]]
        starts = np.flatnonzero(begins)
        size = np.diff(np.concatenate(([0], starts, [len(cluster)])))
        size[0] += self.open_rows
        first = np.concatenate(([self.open_first], row + starts))
        over = int(self.open is None)
        return Runs(np.cumsum(begins) - over, size[over:], first[over:])

    def advance(self, cluster: Values, row: int) -> ClusterRows:
        """Take the next rows. Errors: DecalError, where there are too many clusters."""
        runs = self.runs_of(cluster, row)
        numbers = [] if self.open is None else [self.open]
        begun = runs.first[len(numbers) :].tolist()
        numbers += [self._number(str(cluster[first - row]), first) for first in begun]
        for number, rows in zip(numbers, np.bincount(runs.of_row, minlength=len(numbers)).tolist(), strict=True):
            self.size[number] += rows
        self.open, self.open_rows, self.open_first = numbers[-1], int(runs.size[-1]), int(runs.first[-1])
        return ClusterRows(np.array(numbers)[runs.of_row], runs)

    def close(self) -> int:
        """The latest cluster is over: how many rows its run had."""
        rows, self.open, self.open_rows = self.open_rows, None, 0
        return rows

    def _number(self, name: str, row: int) -> int:
        number = self.numbers.setdefault(name, len(self.size))
        if number < len(self.size):
            self.apart = self.apart or SplitCluster(name, row + 1)
        elif number == MAX_STREAM_CLUSTERS:
            raise DecalError(
                f"there are more than {MAX_STREAM_CLUSTERS:,} clusters, and a replay remembers each of them",
                f"replay fewer rows, or drop {Hint('cluster')}",
            )
        else:
            self.names.append(name)
            self.size.append(0)
        return number

    def _check(self) -> None:
        self.numbers = {name: number for number, name in enumerate(self.names)}
        if not len(self.size) == len(self.numbers) == len(self.names):
            raise ValueError("a cluster has no size")
        rows, is_open = sum(self.size), self.open is not None
        consistent(
            all(size > 0 for size in self.size),
            self.open is None or 0 <= self.open < len(self.size),
            0 < self.open_rows <= self.size[self.open or 0] if is_open else self.open_rows == 0,
            self.open_first >= 0 and (not is_open or self.open_first + self.open_rows == rows),
            self.apart is None or (self.apart.cluster in self.numbers and 0 < self.apart.row <= rows),
        )


@dataclass(frozen=True, eq=False)
class WaitingRows:
    """Rows that were predicted, and whose labels the forecasters have not learned; shape (P,) each."""

    score: Floats
    label: Labels
    time: Values
    arrival: Values
    group: Values

    def then(self, more: WaitingRows) -> WaitingRows:
        """These rows, then more."""
        pairs = zip(vars(self).values(), vars(more).values(), strict=True)
        return WaitingRows(*(np.concatenate(pair) for pair in pairs))

    def rest(self, first: int) -> WaitingRows:
        """The rows from this one on."""
        return WaitingRows(*(values[first:] for values in vars(self).values()))


class Alarm(NamedTuple):
    """When the e-process, or 1 over the p-value, reached 1/alpha: the row, from 1, its time, and the row where what it
    found likely began.
    """

    row: int
    time: Any
    start: int
    start_time: Any


N_PARTS = 10
"""Parts of the score, of equal width, in which windows count labels."""
MAX_KEPT = 1000
"""Windows that a state holds; the oldest are dropped."""
MAX_PLACE = 10**12
"""The largest number that a window can have: hours since 1970, or rows."""


@dataclass(eq=False)
class Window:
    """Rows of one window.

    place: its number. row, time: of its first row. acts: of each method, the rows with label 1 and 0 that it acts on.
    n, positives, scores: rows, labels 1 and the sum of the scores, in each part of the score. log_e: of the e-process,
    after its last row.
    """

    place: int
    row: int
    time: Any
    acts: dict[str, list[int]]
    n: Ints = field(default_factory=lambda: np.zeros(N_PARTS, np.int64))
    positives: Ints = field(default_factory=lambda: np.zeros(N_PARTS, np.int64))
    scores: Floats = field(default_factory=lambda: np.zeros(N_PARTS))
    log_e: float = 0.0

    @property
    def rows(self) -> int:
        """Rows in it."""
        return int(self.n.sum())

    @property
    def base_rate(self) -> float:
        """Share of label 1."""
        return int(self.positives.sum()) / self.rows

    @property
    def mean_score(self) -> float:
        """Mean of the scores."""
        return float(sum(self.scores.tolist())) / self.rows

    def utility(self, method: str, task: BinaryTask) -> float:
        """Utility per row of acting as a method does."""
        return utility_of(self.rows, int(self.positives.sum()), self.acts[method], task)


def count_in_cells(n: Ints, positives: Ints, sums: Floats, score: Floats, label: Labels) -> None:
    """Count rows in cells of the score, of equal width: in place, rows, labels 1 and the sum of the scores of each."""
    place = np.minimum((score * len(n)).astype(int), len(n) - 1)
    n += np.bincount(place, minlength=len(n))
    positives += np.bincount(place[label == 1], minlength=len(n))
    # One by one, so that the sum does not depend on how the rows are cut into pieces.
    np.add.at(sums, place, score)


def add_acts(counts: list[int], acting: Mask, label: Labels) -> None:
    """Count the rows with label 1 and 0 that are acted on."""
    positives = int(np.count_nonzero(acting & (label == 1)))
    counts[0] += positives
    counts[1] += int(np.count_nonzero(acting)) - positives


def utility_of(rows: int, positives: int, acts: Sequence[int], task: BinaryTask) -> float:
    """Utility per row, from the rows with label 1 and 0 that are acted on."""
    (u00, u01), (u10, u11) = task.utility
    on_1, on_0 = acts
    return (u11 * on_1 + u10 * on_0 + u01 * (positives - on_1) + u00 * (rows - positives - on_0)) / rows


N_CELLS = 2000
"""Cells in which predictions are counted: memory does not grow with the rows."""
MAX_POINTS = 400
"""Points of a course; where there would be more, every other one is dropped."""


class CellTally(Resumable):
    """Predictions and labels, counted by cells of equal width."""

    def __init__(self) -> None:
        self.n, self.positives = np.zeros(N_CELLS, dtype=int), np.zeros(N_CELLS, dtype=int)
        self.sums = np.zeros(N_CELLS)

    def advance(self, prediction: Floats, label: Labels) -> None:
        """Count further rows."""
        count_in_cells(self.n, self.positives, self.sums, prediction, label)

    def table(self) -> Table:
        """The mean prediction of each cell, with its rows and labels 1."""
        held = np.flatnonzero(self.n)
        score, place = np.unique(np.clip(self.sums[held] / self.n[held], 0.0, 1.0), return_inverse=True)
        n, positives = (np.bincount(place, each[held]).astype(int) for each in (self.n, self.positives))
        return Table(score, n, positives)

    def state(self) -> Any:
        """The cells that hold rows: place, rows, labels 1, sum of the predictions."""
        held = np.flatnonzero(self.n)
        return [held.tolist(), self.n[held].tolist(), self.positives[held].tolist(), self.sums[held].tolist()]

    def restore(self, state: Any) -> None:
        """Go on from there. Errors: IndexError, TypeError or ValueError, where it is no state."""
        held, n, positives, sums = state
        place = np.array(held, dtype=int)
        consistent(len(place) == len(n) == len(positives) == len(sums), (np.diff(place) > 0).all())
        consistent(((place >= 0) & (place < N_CELLS)).all())
        self.n[place], self.positives[place], self.sums[place] = n, positives, sums
        n, positives, sums = self.n[place], self.positives[place], self.sums[place]
        # Sums of predictions that lie in the cell; what adding them rounds is less than a cell of each.
        wide = n / N_CELLS
        consistent(((n > 0) & (positives >= 0) & (positives <= n)).all())
        consistent(((sums >= wide * (place - 1)) & (sums <= wide * (place + 2))).all())


class Tally(Resumable):
    """What one method predicted: its cells, its decisions, and what they win over the first method's.

    since: the row, from 1, after which the sequence at the level `alpha` first was above 0.
    """

    acts: list[int]
    difference: RunningDifference
    since: int | None
    cells: CellTally

    def __init__(self, task: BinaryTask, alpha: float) -> None:
        self.task, self.alpha = task, alpha
        self.cells, self.acts = CellTally(), [0, 0]
        self.difference, self.since = RunningDifference(task), None

    def advance(self, prediction: Floats, acting: Acts, first: Acts, label: Labels, within: ClusterRows | None) -> Sums:
        """Take further rows; first: whether the first method acts; within: the clusters of the rows, if any."""
        self.cells.advance(prediction, label)
        add_acts(self.acts, acting, label)
        sums = self.difference.advance(first, acting, label)
        if within is None:
            self._look(sums, sums.rows)
        return sums

    def _look(self, sums: Sums, rows: Ints) -> None:
        """Remember the first of these rows after which the sequence is above 0."""
        if self.since is None:
            above = sums.sequence(self.alpha).low > 0
            self.since = int(rows[above.argmax()]) if above.any() else None

    def gain(self, alpha: float) -> tuple[float, Interval | None]:
        """What it won over the first method per row, and a confidence sequence of that with probability 1 - alpha."""
        return self.difference.mean_and_ends(self.difference.rows, alpha)

    def _check(self) -> None:
        rows, positives = self.difference.rows, int(self.cells.positives.sum())
        consistent(
            len(self.acts) == 2,
            0 <= self.acts[0] <= positives and 0 <= self.acts[1] <= rows - positives,
            int(self.cells.n.sum()) == rows,
            self.since is None or 0 < self.since <= rows,
        )


class ClusterTally(Tally):
    """A tally of rows in clusters: the gain in each cluster, and its running means over finished clusters."""

    of_clusters: Floats
    means: RunningMeans

    def __init__(self, task: BinaryTask, alpha: float, clusters: StreamClusters) -> None:
        super().__init__(task, alpha)
        self.clusters = clusters
        self.of_clusters, self.means = np.zeros(0), RunningMeans(task)

    def advance(self, prediction: Floats, acting: Acts, first: Acts, label: Labels, within: ClusterRows | None) -> Sums:
        """Take further rows, each in its cluster."""
        assert within is not None  # rows are in clusters
        difference = utility_difference(first, acting, label, self.task)
        new = len(self.clusters.size) - len(self.of_clusters)
        self.of_clusters = np.concatenate((self.of_clusters, np.zeros(new)))
        # One by one, so that the sum does not depend on how the rows are cut into pieces.
        np.add.at(self.of_clusters, within.number, difference)
        self._look(self.means.advance(difference, within.runs), within.runs.first[1:])
        return super().advance(prediction, acting, first, label, within)

    def close(self, size: int, row: int) -> None:
        """The latest cluster, of so many rows, is over after this row."""
        self._look(self.means.close(size), np.array([row]))

    def gain(self, alpha: float) -> tuple[float, Interval | None]:
        """What it won over the first method, and what covers it with probability 1 - alpha; None: too few clusters.

        A confidence sequence of clusters, each of which counts the same. Where the rows of a cluster do not follow each
        other: per row, with the interval of one look.
        """
        if self.clusters.apart is not None:
            size = np.array(self.clusters.size, dtype=float)
            mean, error = mean_over(self.of_clusters / size, size, None)
            adjusted = confidence_of(float(size.sum() ** 2 / (size @ size)), 1 - alpha)
            return mean, None if adjusted is None else (
                mean - quantile(adjusted) * error,
                mean + quantile(adjusted) * error,
            )
        if not self.means.steps:
            return self.difference.total / self.difference.rows, None
        return self.means.mean_and_ends(self.means.steps, alpha)

    def _check(self) -> None:
        super()._check()
        size = np.array(self.clusters.size)
        consistent(len(size) == len(self.of_clusters), self.means.steps <= self.difference.rows)
        consistent((np.abs(self.of_clusters) <= self.task.u_delta * (size + 1)).all())


class OnlineHistory(Resumable):
    """Points of the way so far, for pictures: every row whose number is a multiple of the stride.

    row, time, log_e: of each point; total, squares: of each method, what it won over the first in all, and its squares.
    """

    stride: int
    row: list[int]
    time: list[Any]
    log_e: list[float]
    total: dict[str, list[float]]
    squares: dict[str, list[float]]

    def __init__(self, methods: Sequence[str]) -> None:
        self.stride, self.methods = 1, set(methods)
        self.row, self.time, self.log_e = [], [], []
        self.total = {method: [] for method in methods}
        self.squares = {method: [] for method in methods}

    def advance(self, first: int, time: Values, log_e: Floats, sums: Mapping[str, Sums]) -> None:
        """Take the next rows; first: the number of the first, from 1."""
        number = np.arange(first, first + len(time))
        at = np.flatnonzero(number % self.stride == 0)
        self.row += number[at].tolist()
        self.time += time[at].tolist()
        self.log_e += log_e[at].tolist()
        for method in self.total:
            self.total[method] += sums[method].total[at].tolist()
            self.squares[method] += sums[method].squares[at].tolist()
        while len(self.row) > MAX_POINTS:
            self.stride *= 2
            keep = [place for place, row in enumerate(self.row) if row % self.stride == 0]
            for points in (self.row, self.time, self.log_e, *self.total.values(), *self.squares.values()):
                points[:] = [points[place] for place in keep]

    def _check(self) -> None:
        if not self.total.keys() == self.squares.keys() == self.methods:
            raise ValueError("the course has other points")
        lengths = {len(each) for each in (self.time, self.log_e, *self.total.values(), *self.squares.values())}
        if not lengths <= {len(self.row)}:
            raise ValueError("the course has points that lack a value")
        consistent(
            self.stride > 0 and self.stride & (self.stride - 1) == 0,
            self.row == list(range(self.stride, self.stride * (len(self.row) + 1), self.stride)),
        )


MAX_LATEST = 1000
"""Rows that are remembered: what comes again begins with them, ends among them, or holds them all."""
MAX_CHANCE = 1e-6
"""Rows that are equal count as the same rows where they would be so by chance less often."""
Digests = NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)


class Latest(Resumable):
    """The latest rows. time: of each, 0 where rows are in order as they stand; digest: of what else each holds."""

    time: Values
    digest: Digests

    def __init__(self, dtype: Any) -> None:
        self.time, self.digest = np.empty(0, dtype), np.empty(0, np.uint64)

    def then(self, time: Values, digest: Digests) -> None:
        """Take further rows."""
        self.time = np.concatenate((self.time, time[-MAX_LATEST:]))[-MAX_LATEST:]
        self.digest = np.concatenate((self.digest, digest[-MAX_LATEST:]))[-MAX_LATEST:]

    def among(self, time: Values, digest: Digests, rows: int) -> int:
        """How many of the first of these rows were taken before; rows: how many were taken in all.

        The rows are compared with the latest ones at every shift; a shift counts where all rows that overlap are equal.
        """
        n, count = len(self.digest), len(digest)
        if not n or not count:
            return 0
        rows_here = ((self.time, self.digest), (time, digest))
        mine, theirs = (_mixed((at + 0).view(np.uint64), each) for at, each in rows_here)
        # The first of these rows is one of the latest; or the oldest of the latest is one of these.
        places = [-at for at in np.flatnonzero(mine == theirs[0]).tolist()]
        places += [at for at in np.flatnonzero(theirs == mine[0]).tolist() if 0 < at <= rows - n]
        if not places:
            return 0
        # Rows that go back in time were taken. Others are likely the same where two rows are seldom equal: of all rows,
        # and of those of one time, but for the pairs that are compared here.
        goes_back = time[0] < self.time[-1]
        of_one_time, equal = _pairs(np.concatenate((self.time, time))), _pairs(np.concatenate((mine, theirs)))
        of_all = _pairs(np.concatenate((self.digest, digest))) / ((n + count) * (n + count - 1))
        most = 0
        for shift in places:
            known = min(n + shift, count)
            seen = slice(max(shift, 0), known)
            if not (mine[max(-shift, 0) : known - shift] == theirs[seen]).all():
                continue
            compared = 2 * (known - seen.start)
            others = (equal - compared) / (of_one_time - compared) if of_one_time > compared else 0.0
            chance = max(of_all, others) ** (1 + np.count_nonzero(np.diff(digest[seen])))
            if goes_back or chance <= MAX_CHANCE:
                most = max(most, known)
        return most

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return super().state() | {"digest": [f"{each:016x}" for each in self.digest.tolist()]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there. Errors: KeyError, TypeError or ValueError, where it is no state."""
        super().restore({**state, "digest": [int(each, 16) for each in state["digest"]]})
        if not len(self.time) == len(self.digest) <= MAX_LATEST:
            raise ValueError("a row lacks a time or a digest")


def _pairs(of_rows: Values) -> int:
    """Pairs of rows that have the same value; of millions of rows there are more than an integer of numpy holds."""
    counts = np.unique(of_rows, return_counts=True)[1].astype(object)
    return int((counts * (counts - 1)).sum())


def digests_of(plan: OnlinePlan, score: Floats, label: Labels, group: Values, cluster: Values) -> Digests:
    """A hash of what each row holds, shape (T,): two rows that differ have the same one with a chance of 1 in 2^64."""
    from hashlib import blake2b

    digest = _mixed((score + 0.0).view(np.uint64), label.astype(np.uint64))
    for name, column in ((plan.group, group), (plan.cluster, cluster)):
        if name:
            values, place = np.unique(column.astype(str), return_inverse=True)
            each = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") for text in values.tolist()]
            digest = _mixed(digest, np.array(each, dtype=np.uint64)[place])
    return digest


def _mixed(first: Digests, second: Digests) -> Digests:
    """A hash of pairs of numbers, shape (T,): a change in any bit of either changes about half of its bits."""
    bits = first * _ODD + second
    for shift in (30, 27, 31):
        bits = (bits ^ (bits >> np.uint64(shift))) * _ODD
    return bits ^ (bits >> np.uint64(32))


BLOCK_ROWS = 1 << 16
"""Rows that are replayed at once: memory does not grow with the stream."""
Predictions = dict[str, Floats]
EProcess = CalibrationAlarm | ClusterAlarm | DelayedAlarm


class Replay(Resumable):
    """Rows so far. It goes on with further rows, or from its state, and ends the same however the stream is cut.

    prompt: whether every label was known before the next row. clusters: None where rows are independent. files: digests
    of the files that it took, which are no part of its state.
    """

    clusters: StreamClusters | None
    rows: int = 0
    positives: int = 0
    prompt: bool = True
    first_time: Any = None
    last_time: Any = None
    warm: list[int]
    log_e: float = 0.0
    alarm: Alarm | None = None
    start_times: dict[int, Any]
    held: WaitingRows
    forecasters: dict[str, Forecaster]
    tallies: dict[str, Tally]
    latest: Latest
    e_process: EProcess
    windows: list[Window]
    course: OnlineHistory

    def __init__(self, plan: OnlinePlan) -> None:
        self.plan = plan
        grouped = plan.group is not None
        self.forecasters = {
            spec.key: forecaster_of(spec, plan.seed, plan.horizon, groups=grouped and spec.key != AS_IT_IS)
            for spec in plan.methods
        }
        dtype = np.float64 if plan.clock == "numbers" else np.int64
        times = np.empty(0, dtype), np.empty(0, dtype)
        self.held = WaitingRows(np.empty(0), np.empty(0, np.uint8), *times, np.empty(0, object))
        self.warm = [0, 0]
        keys = [spec.key for spec in plan.methods]
        alpha = plan.alpha / max(len(plan.candidates), 1)
        self.clusters = clusters = None if plan.cluster is None else StreamClusters()
        self.tallies = {
            key: Tally(plan.task, alpha) if clusters is None else ClusterTally(plan.task, alpha, clusters)
            for key in keys
        }
        self.windows, self.course = [], OnlineHistory(keys[1:])
        kind = DelayedAlarm if plan.delay.late else ClusterAlarm if plan.cluster else CalibrationAlarm
        self.e_process = kind()
        self.start_times = {}
        self.latest = Latest(dtype)
        self.files: tuple[str, ...] = ()

    def advance(self, stream: Stream) -> Predictions:
        """Predict and learn the rows whose labels are known. The predictions of every method, shape (labelled,)."""
        pieces = []
        for start in range(0, stream.labelled, BLOCK_ROWS):
            rows, cluster = self._part(stream, slice(start, min(start + BLOCK_ROWS, stream.labelled)))
            before = len(self.held.label)
            predictions, known = self._predicted(rows, self.forecasters, before + len(rows.label), cluster)
            self.prompt = self.prompt and bool((known == before + np.arange(len(known))).all())
            self._count(rows, predictions, known + self.rows - before, cluster)
            self.held = self.held.then(rows).rest(int(known[-1]))
            pieces.append(predictions)
        return {key: np.concatenate([np.empty(0), *(piece[key] for piece in pieces)]) for key in self.forecasters}

    def close(self) -> None:
        """No rows follow: the latest cluster is over. Errors: DecalError, where it is the only one."""
        if self.clusters is None or self.clusters.open is None:
            return
        if len(self.clusters.size) < 2:
            raise DecalError(
                f"column {quote(self.plan.cluster)}: the cluster of every row is {quote(*self.clusters.numbers)}",
                "name the column of what was sampled independently, such as the patient",
            )
        before, size = self.e_process, self.clusters.close()
        for tally in self.tallies.values():
            assert isinstance(tally, ClusterTally)  # as the rows are in clusters
            tally.close(size, self.rows)
        if isinstance(before, ClusterAlarm) and self.plan.score is not None:
            self.log_e = before.close(size)
            if self.alarm is None and self.log_e >= -np.log(self.plan.alpha):
                self._raise(before, self.rows, self.last_time)
        self.windows[-1].log_e = self.log_e

    @property
    def at_all_times(self) -> bool:
        """Whether intervals and the e-value hold after every row at once, or every cluster."""
        return self.clusters is None or self.clusters.apart is None

    @property
    def informed(self) -> bool:
        """Whether any label was known when a later row was predicted."""
        return len(self.held.label) < self.rows

    @property
    def e_value(self) -> float | None:
        """The e-value after the last row, or 1 over the p-value where labels come late.

        None without a score, where rows of a cluster come apart, and where no labels have entered.
        """
        if isinstance(self.e_process, DelayedAlarm) and not self.e_process.entered:
            return None
        return math.exp(self.log_e) if self.plan.score is not None and self.at_all_times else None

    def since(self, method: str) -> int | None:
        """The row after which a method's sequence was first above 0; None where there is no such sequence."""
        return self.tallies[method].since if self.at_all_times else None

    def accounts(self) -> dict[str, float]:
        """How far from calibration all rows are at most, per row, by the account of each forecaster that keeps one."""
        accounts = {}
        for key, forecaster in self.forecasters.items():
            if forecaster.account() is not None:
                informed: Any = copy.deepcopy(forecaster)
                group = [self.held.group.tolist()] if isinstance(informed, Inside) else []
                for row in zip(self.held.score.tolist(), self.held.label.tolist(), *group, strict=True):
                    informed.learn_one(*row)
                accounts[key] = informed.account() / self.rows
        return accounts

    def ahead(self, stream: Stream) -> Predictions:
        """The predictions of the rows of a stream whose labels are not known yet; nothing is learned or counted."""
        rows, cluster = self._part(stream, slice(stream.labelled, len(stream)))
        return self._predicted(rows, copy.deepcopy(self.forecasters), len(self.held.label), cluster)[0]

    def _part(self, stream: Stream, part: slice) -> tuple[WaitingRows, Values]:
        """Some rows of a stream, and their clusters."""
        time, arrival = stream.time[part], stream.arrival[part]
        if stream.clock == "rows":
            time = arrival = self.rows + np.arange(part.stop - part.start)
        group = stream.group[part].astype(object)
        rows = WaitingRows(stream.score[part].astype(float), stream.label[part], time, arrival, group)
        return rows, stream.cluster[part]

    def _predicted(
        self, rows: WaitingRows, forecasters: Mapping[str, Forecaster], most: int, cluster: Values
    ) -> tuple[Predictions, Ints]:
        """What each predicts, from at most so many of the labels that are held; and from how many, row by row.

        Labels of a cluster are known when it is over: a row says nothing of others that are not independent of it.
        """
        both = self.held.then(rows)
        before = len(self.held.label)
        known = np.minimum(self.plan.delay.known(both.time, both.arrival, self.plan.clock)[before:], most)
        if self.clusters is not None:
            runs = self.clusters.runs_of(cluster, self.rows)
            known = np.minimum(known, runs.first[runs.of_row] - (self.rows - before))
        predictions = {}
        for key, each in forecasters.items():
            group = [both.group.tolist()] if isinstance(each, Inside) else []
            predictions[key] = each.replay(both.score, both.label, known, *group)
        return predictions, known

    def _count(self, rows: WaitingRows, predictions: Predictions, known: Ints, cluster: Values) -> None:
        task, plan, label = self.plan.task, self.plan, rows.label
        within = None if self.clusters is None else self.clusters.advance(cluster, self.rows)
        acts = {
            key: each >= (task.decision_threshold if key == AS_IT_IS else task.threshold)
            for key, each in predictions.items()
        }
        first = plan.baseline
        sums = {
            key: self.tallies[key].advance(each, acts[key], acts[first], label, within)
            for key, each in predictions.items()
        }
        log_e = self._bet(predictions[first], rows, known, None if within is None else within.runs)
        # Windows, the last of which may go on.
        places = plan.every.places(rows.time, self.rows)
        starts = np.flatnonzero(np.diff(places, prepend=places[0] - 1))
        for start, end in pairwise([*starts.tolist(), len(places)]):
            place, part = int(places[start]), slice(start, end)
            if not self.windows or self.windows[-1].place != place:
                none = {method: [0, 0] for method in acts}
                self.windows.append(Window(place, self.rows + start, rows.time[start].item(), none))
                del self.windows[:-MAX_KEPT]
            window = self.windows[-1]
            count_in_cells(window.n, window.positives, window.scores, predictions[first][part], label[part])
            for method, acting in acts.items():
                add_acts(window.acts[method], acting[part], label[part])
            window.log_e = float(log_e[end - 1])
        self.course.advance(self.rows + 1, rows.time, log_e, sums)
        # What the latest rows are, so that they are known when they come again.
        last = slice(-MAX_LATEST, None)
        time = np.zeros_like(rows.time[last]) if plan.clock == "rows" else rows.time[last]
        self.latest.then(time, digests_of(plan, rows.score[last], label[last], rows.group[last], cluster[last]))
        warm = label[: max(plan.warm_up - self.rows, 0)]
        self.warm = [self.warm[0] + len(warm), self.warm[1] + int(warm.sum())]
        self.rows, self.positives = self.rows + len(label), self.positives + int(label.sum())
        self.log_e = float(log_e[-1])
        self.first_time = rows.time[0].item() if self.first_time is None else self.first_time
        self.last_time = rows.time[-1].item()

    def _bet(self, score: Floats, rows: WaitingRows, known: Ints, runs: Runs | None) -> Floats:
        """log of the e-process after each of the rows, up to the alarm first, where it is raised there.

        Without a score there is nothing to bet against: the share of label 1 so far is nobody's claim.
        """
        if self.plan.score is None:
            return np.zeros(len(score))
        before, late = copy.deepcopy(self.e_process), self.plan.delay.late
        within: Any = known if late else runs
        log_e = self.e_process.advance(score, rows.label, within)
        at = first_alarm(log_e, self.plan.alpha) if self.alarm is None else None
        if at is not None:
            seen = slice(at + 1)
            within = known[seen] if late else runs and runs.up_to(at + 1)
            before.advance(score[seen], rows.label[seen], within)
            self._remember_starts(before, rows)
            self._raise(before, self.rows + at + 1, rows.time[at].item())
        self._remember_starts(self.e_process, rows)
        return log_e

    def _raise(self, e_process: EProcess, row: int, time: Any) -> None:
        """The alarm, after this row, from 1."""
        start = e_process.likely_start()
        self.alarm = Alarm(row, time, start + 1, self.start_times[start])

    def _remember_starts(self, e_process: EProcess, rows: WaitingRows) -> None:
        """The times of the rows that an alarm may name as its start."""
        known, here = self.start_times, range(self.rows, self.rows + len(rows.time))
        self.start_times = {
            row: rows.time[row - self.rows].item() if row in here else known[row] for row in e_process.rows_of_starts()
        }

    def state(self) -> dict[str, Any]:
        """All of it, as JSON; the plan is not part of it."""
        state = super().state() | {"start_times": [[row, self.start_times[row]] for row in sorted(self.start_times)]}
        return {name: each for name, each in state.items() if each is not None or name != "clusters"}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there. Errors: KeyError, IndexError, TypeError or ValueError, where it is no state."""
        super().restore({"clusters": None, **state})

    def _check(self) -> None:
        """Raise a ValueError where the parts of a state contradict each other."""
        held, scored = self.held, self.plan.score is not None
        times = [self.first_time, self.last_time, *self.start_times.values(), *self.course.time]
        times += [] if self.alarm is None else [self.alarm.time, self.alarm.start_time]
        times += [window.time for window in self.windows]
        kind, most = (float, MAX_NUMBER) if self.plan.clock == "numbers" else (int, MAX_NS)
        consistent(all(type(each) is kind and abs(each) <= most for each in times))
        if len({len(each) for each in vars(held).values()}) != 1:
            raise ValueError("a row that is held lacks a value")
        self._check_windows()
        starts = self.e_process.rows_of_starts() if scored else set()
        consistent(
            0 < self.rows <= MAX_ROWS_OVER_TIME,
            0 <= self.positives <= self.rows,
            self.first_time <= self.last_time,
            len(self.warm) == 2 and self.warm[0] == min(self.rows, self.plan.warm_up),
            0 <= self.warm[-1] <= min(self.warm[0], self.positives),
            scored or self.log_e == 0,
            all(tally.difference.rows == self.rows for tally in self.tallies.values()),
            all(int(tally.cells.positives.sum()) == self.positives for tally in self.tallies.values()),
            self.clusters is None or sum(self.clusters.size) == self.rows,
            isinstance(self.e_process, ClusterAlarm) or self.e_process.rows == self.rows * scored,
            starts == self.start_times.keys() and all(0 <= row < self.rows for row in starts),
            self.alarm is None or (scored and 0 < self.alarm.start <= self.alarm.row <= self.rows),
            len(held.label) <= self.rows and (held.label <= 1).all(),
            ((held.score >= 0) & (held.score <= 1)).all() and (np.diff(held.time) >= 0).all(),
            not len(held.time) or held.time[-1] <= self.last_time,
            all(isinstance(each, str) for each in held.group),
            len(self.latest.time) == min(self.rows, MAX_LATEST),
            len(self.course.row) == self.rows // self.course.stride <= MAX_POINTS,
            (np.diff(self.latest.time) >= 0).all(),
            all(each.parts for each in self.forecasters.values() if isinstance(each, Inside)),
            all(each.awaits(held.score, held.group) for each in self.forecasters.values()),
        )
        row = np.array(self.course.row) + 1
        consistent((np.abs(self.course.log_e) <= MAX_LOG_E).all())
        for totals, squares in zip(self.course.total.values(), self.course.squares.values(), strict=True):
            consistent((np.abs(totals) <= self.plan.task.u_delta * row).all())
            consistent(((np.array(squares) >= 0) & (np.array(squares) <= 4 * row)).all())

    def _check_windows(self) -> None:
        """Raise a ValueError where the counts of windows do not agree with those of rows and decisions."""
        plan, task, windows = self.plan, self.plan.task, self.windows
        ends = [window.row + window.rows for window in windows]
        consistent(
            0 < len(windows) <= MAX_KEPT,
            all(first.place < second.place for first, second in pairwise(windows)),
            ends == [*(window.row for window in windows[1:]), self.rows],
            windows[0].row == 0 or (windows[0].row > 0 and len(windows) == MAX_KEPT),
            windows[-1].log_e == self.log_e,
        )
        for window in windows:
            n, positives, scores, labels = window.n, window.positives, window.scores, int(window.positives.sum())
            if window.acts.keys() != self.tallies.keys() or not all(len(each) == 2 for each in window.acts.values()):
                raise ValueError("a window has other methods")
            if not n.shape == positives.shape == scores.shape == (N_PARTS,):
                raise ValueError("a window has other parts")
            least = -math.log(window.row + window.rows + 2) - 1e-6 if plan.score is not None else 0.0
            consistent(
                window.rows > 0,
                ((positives >= 0) & (positives <= n) & (scores >= 0) & (scores <= n * (1 + 1e-9))).all(),
                all(0 <= on_1 <= labels and 0 <= on_0 <= window.rows - labels for on_1, on_0 in window.acts.values()),
                abs(window.place) <= MAX_PLACE,
                window.place == plan.every.places(np.array([window.time]), window.row)[0],
                least <= window.log_e <= MAX_LOG_E,
            )
        first = self.tallies[plan.baseline].acts
        for key, tally in self.tallies.items():
            on_1, on_0 = (mine - theirs for mine, theirs in zip(tally.acts, first, strict=True))
            total = task.u_delta * (on_1 * (1 - task.threshold) - on_0 * task.threshold)
            consistent(abs(tally.difference.total - total) <= 1e-6 * task.u_delta * self.rows)
            if windows[0].row == 0:
                of_windows = np.sum([window.acts[key] for window in windows], axis=0)
                consistent(of_windows.tolist() == tally.acts)


def predicted_columns(stream: Stream, replay: Replay, predictions: Predictions) -> dict[str, Values]:
    """Columns of the rows of a stream: number, time, score, label, masked where it is not known, and predictions."""
    plan, ahead = replay.plan, replay.ahead(stream)
    columns: dict[str, Values] = {"row": stream.row_numbers + 1}
    if stream.clock != "rows":
        columns[str(stream.columns["time"])] = stream.time.astype("M8[ns]") if stream.clock == "dates" else stream.time
    if plan.score:
        columns[plan.score] = stream.score
    if plan.group:
        columns[plan.group] = stream.group
    unknown = np.arange(len(stream)) >= stream.labelled
    columns[str(stream.columns["label"])] = np.ma.masked_array(stream.label, unknown)
    for spec in plan.methods:
        if spec.key != AS_IT_IS:
            columns[predicted_name(plan, spec.key)] = np.concatenate([predictions[spec.key], ahead[spec.key]])
    return columns


def predicted_name(plan: OnlinePlan, method: str) -> str:
    """What the column of a method's predictions is called."""
    return f"{plan.score or 'p'}_{method.replace('-', '_')}"
