"""What a replay keeps of the rows: sums and counts that do not depend on how the stream is cut into pieces."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.documents import consistent
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_STREAM_CLUSTERS
from decal_cli.metrics.confidence import quantile
from decal_cli.numbers import Interval
from decal_cli.sequential.differences import Acts, RunningDifference, RunningMeans, Runs, Sums, utility_difference
from decal_cli.sequential.resumable import Resumable
from decal_cli.tables.clusters import confidence_of
from decal_cli.tables.table import Floats, Ints, Table
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
    open: int | None
    open_rows: int
    open_first: int
    apart: SplitCluster | None

    def __init__(self) -> None:
        self.names, self.size = [], []
        self.numbers: dict[str, int] = {}
        self.open, self.open_rows, self.open_first, self.apart = None, 0, 0, None

    def runs_of(self, cluster: NDArray[Any], row: int) -> Runs:
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

    def advance(self, cluster: NDArray[Any], row: int) -> ClusterRows:
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
    label: NDArray[np.uint8]
    time: NDArray[Any]
    arrival: NDArray[Any]
    group: NDArray[Any]

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
"""Of a window: hours from 1970, or rows, to the last that there can be."""


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


def count_in_cells(n: Ints, positives: Ints, sums: Floats, score: Floats, label: NDArray[np.uint8]) -> None:
    """Count rows in cells of the score, of equal width: in place, rows, labels 1 and the sum of the scores of each."""
    place = np.minimum((score * len(n)).astype(np.int64), len(n) - 1)
    n += np.bincount(place, minlength=len(n))
    positives += np.bincount(place[label == 1], minlength=len(n))
    # One by one, so that the sum does not depend on how the rows are cut into pieces.
    np.add.at(sums, place, score)


def add_acts(counts: list[int], acting: NDArray[np.bool_], label: NDArray[np.uint8]) -> None:
    """Count the rows with label 1 and 0 that are acted on."""
    positives = int(np.count_nonzero(acting & (label == 1)))
    counts[0] += positives
    counts[1] += int(np.count_nonzero(acting)) - positives


def utility_of(rows: int, positives: int, acts: Sequence[int], task: BinaryTask) -> float:
    """Utility per row, from the rows with label 1 and 0 that are acted on."""
    (u00, u01), (u10, u11) = task.utility
    on_1, on_0 = acts
    return (u11 * on_1 + u10 * on_0 + u01 * (positives - on_1) + u00 * (rows - positives - on_0)) / rows


def add_to_windows(
    windows: list[Window],
    places: Ints,
    row: int,
    time: NDArray[Any],
    score: Floats,
    label: NDArray[np.uint8],
    acts: Mapping[str, NDArray[np.bool_]],
    log_e: Floats,
) -> None:
    """Count the next rows in windows, the last of which may go on. places: the number of the window of each row; row:

    the number of the first row."""
    starts = np.flatnonzero(np.diff(places, prepend=places[0] - 1))
    for start, end in pairwise([*starts.tolist(), len(places)]):
        place, part = int(places[start]), slice(start, end)
        if not windows or windows[-1].place != place:
            windows.append(Window(place, row + start, time[start].item(), {method: [0, 0] for method in acts}))
            del windows[:-MAX_KEPT]
        window = windows[-1]
        count_in_cells(window.n, window.positives, window.scores, score[part], label[part])
        for method, acting in acts.items():
            add_acts(window.acts[method], acting[part], label[part])
        window.log_e = float(log_e[end - 1])


def check_windows(windows: Sequence[Window], methods: Collection[str], rows: int) -> None:
    """Raise a ValueError where these are no windows of so many rows."""
    ends = [window.row + window.rows for window in windows]
    consistent(
        0 < len(windows) <= MAX_KEPT,
        all(first.place < second.place for first, second in pairwise(windows)),
        ends == [*(window.row for window in windows[1:]), rows],
        windows[0].row == 0 or (windows[0].row > 0 and len(windows) == MAX_KEPT),
    )
    for window in windows:
        n, positives, scores, labels = window.n, window.positives, window.scores, int(window.positives.sum())
        if window.acts.keys() != set(methods) or not all(len(each) == 2 for each in window.acts.values()):
            raise ValueError("a window has other methods")
        if not n.shape == positives.shape == scores.shape == (N_PARTS,):
            raise ValueError("a window has other parts")
        consistent(
            window.rows > 0,
            ((positives >= 0) & (positives <= n) & (scores >= 0) & (scores <= n * (1 + 1e-9))).all(),
            all(0 <= on_1 <= labels and 0 <= on_0 <= window.rows - labels for on_1, on_0 in window.acts.values()),
            abs(window.place) <= MAX_PLACE,
        )


N_CELLS = 2000
"""Cells in which predictions are counted: memory does not grow with the rows."""
MAX_POINTS = 400
"""Points of a course; where there would be more, every other one is dropped."""


class CellTally(Resumable):
    """Predictions and labels, counted by cells of equal width."""

    def __init__(self) -> None:
        self.n, self.positives = np.zeros(N_CELLS, dtype=np.int64), np.zeros(N_CELLS, dtype=np.int64)
        self.sums = np.zeros(N_CELLS)

    def advance(self, prediction: Floats, label: NDArray[np.uint8]) -> None:
        """Count further rows."""
        count_in_cells(self.n, self.positives, self.sums, prediction, label)

    def table(self) -> Table:
        """The mean prediction of each cell, with its rows and labels 1."""
        held = np.flatnonzero(self.n)
        score, place = np.unique(np.clip(self.sums[held] / self.n[held], 0.0, 1.0), return_inverse=True)
        n, positives = (np.bincount(place, each[held]).astype(np.int64) for each in (self.n, self.positives))
        return Table.of_counts(score, n, positives)

    def state(self) -> Any:
        """The cells that hold rows: place, rows, labels 1, sum of the predictions."""
        held = np.flatnonzero(self.n)
        return [held.tolist(), self.n[held].tolist(), self.positives[held].tolist(), self.sums[held].tolist()]

    def restore(self, state: Any) -> None:
        """Go on from there. Errors: IndexError, TypeError or ValueError, where it is no state."""
        held, n, positives, sums = state
        place = np.array(held, dtype=np.int64)
        consistent(len(place) == len(n) == len(positives) == len(sums), (np.diff(place) > 0).all())
        consistent(((place >= 0) & (place < N_CELLS)).all())
        self.n[place], self.positives[place], self.sums[place] = n, positives, sums
        # Sums of predictions that lie in the cell; what adding them rounds is less than a cell of each.
        wide = self.n[place] / N_CELLS
        consistent(
            ((self.n[place] > 0) & (self.positives[place] >= 0) & (self.positives <= self.n)[place]).all(),
            (self.sums[place] >= wide * (place - 1)).all() and (self.sums[place] <= wide * (place + 2)).all(),
        )


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

    def advance(
        self, prediction: Floats, acting: Acts, first: Acts, label: NDArray[np.uint8], within: ClusterRows | None
    ) -> Sums:
        """Take further rows; first: whether the first method acts; within: the clusters of the rows, if any."""
        self.cells.advance(prediction, label)
        add_acts(self.acts, acting, label)
        sums = self.difference.advance(first, acting, label)
        self._look_at(sums, utility_difference(first, acting, label, self.task), within)
        return sums

    def _look_at(self, sums: Sums, difference: Floats, within: ClusterRows | None) -> None:
        self._look(sums, sums.rows)

    def _look(self, sums: Sums, rows: Ints) -> None:
        """Remember the first of these rows after which the sequence is above 0."""
        if self.since is None:
            above = sums.sequence(self.alpha).low > 0
            self.since = int(rows[above.argmax()]) if above.any() else None

    def gain(self, alpha: float) -> tuple[float, Interval | None]:
        """What it won over the first method per row, and a confidence sequence of that with probability 1 - alpha."""
        return _mean_and_ends(self.difference.sums_after(self.difference.rows), alpha)

    def _check(self) -> None:
        rows, positives = self.difference.rows, int(self.cells.positives.sum())
        consistent(
            len(self.acts) == 2,
            0 <= self.acts[0] <= positives and 0 <= self.acts[1] <= rows - positives,
            int(self.cells.n.sum()) == rows,
            self.since is None or 0 < self.since <= rows,
        )


def _mean_and_ends(sums: Sums, alpha: float, farthest: float = math.inf) -> tuple[float, Interval]:
    mean, low, high = (float(each[0]) for each in sums.sequence(alpha))
    return mean, (max(low, -farthest), min(high, farthest))


class ClusterTally(Tally):
    """The same of rows in clusters: what it wins in each of them, and the averages over those that are over."""

    of_clusters: Floats
    means: RunningMeans

    def __init__(self, task: BinaryTask, alpha: float, clusters: StreamClusters) -> None:
        super().__init__(task, alpha)
        self.clusters = clusters
        self.of_clusters, self.means = np.zeros(0), RunningMeans(task)

    def _look_at(self, sums: Sums, difference: Floats, within: ClusterRows | None) -> None:
        assert within is not None  # rows are in clusters
        new = int(within.number.max()) + 1 - len(self.of_clusters)
        self.of_clusters = np.concatenate((self.of_clusters, np.zeros(max(new, 0))))
        # One by one, so that the sum does not depend on how the rows are cut into pieces.
        np.add.at(self.of_clusters, within.number, difference)
        self._look(self.means.advance(difference, within.runs), within.runs.first[1:])

    def close(self, size: int, row: int) -> None:
        """The latest cluster, of so many rows, is over after this row."""
        self._look(self.means.close(size), np.array([row]))

    def gain(self, alpha: float) -> tuple[float, Interval | None]:
        """What it won over the first method, and what covers it with probability 1 - alpha; None: too few clusters.

        A confidence sequence of clusters, each of which counts the same. Where the rows of a cluster do not follow each
        other: per row, with the interval of one look.
        """
        if self.clusters.apart is not None:
            size = np.array(self.clusters.size, dtype=np.float64)
            mean, error = mean_over(self.of_clusters / size, size, None)
            sure = confidence_of(float(size.sum() ** 2 / (size @ size)), 1 - alpha)
            return mean, None if sure is None else (mean - quantile(sure) * error, mean + quantile(sure) * error)
        if not self.means.steps:
            return self.difference.total / self.difference.rows, None
        return _mean_and_ends(self.means.sums_after(self.means.steps), alpha, self.means.reach)

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

    def advance(self, first: int, time: NDArray[Any], log_e: Floats, sums: Mapping[str, Sums]) -> None:
        """Take the next rows; first: the number of the first, from 1."""
        number = np.arange(first, first + len(time))
        at: Ints = np.flatnonzero(number % self.stride == 0)
        self.row += number[at].tolist()
        self.time += time[at].tolist()
        self.log_e += log_e[at].tolist()
        for method, each in sums.items():
            self.total[method] += each.total[at].tolist()
            self.squares[method] += each.squares[at].tolist()
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
_ODD = np.uint64(0x9E3779B97F4A7C15)


class Latest(Resumable):
    """The latest rows. time: of each, 0 where rows are in order as they stand; digest: of what else each holds."""

    time: NDArray[Any]
    digest: NDArray[np.uint64]

    def __init__(self, dtype: Any) -> None:
        self.time, self.digest = np.empty(0, dtype), np.empty(0, np.uint64)

    def then(self, time: NDArray[Any], digest: NDArray[np.uint64]) -> None:
        """Take further rows."""
        self.time = np.concatenate((self.time, time[-MAX_LATEST:]))[-MAX_LATEST:]
        self.digest = np.concatenate((self.digest, digest[-MAX_LATEST:]))[-MAX_LATEST:]

    def among(self, time: NDArray[Any], digest: NDArray[np.uint64], rows: int) -> int:
        """How many of the first of these rows were taken before; rows: how many were taken in all.

        The rows are compared with the latest ones at every shift; a shift counts where all rows that overlap are equal.
        """
        n, count = len(self.digest), len(digest)
        if not n or not count:
            return 0
        # The first of these rows is one of the latest; or the oldest of the latest is one of these.
        places = [-at for at in np.flatnonzero(self._equal(time[0], digest[0], self.time, self.digest)).tolist()]
        later = self._equal(self.time[0], self.digest[0], time, digest)
        places += [at for at in np.flatnonzero(later).tolist() if 0 < at <= rows - n]
        most, alike = 0, self._chance(time, digest) if places else 0.0
        for shift in places:
            known = min(n + shift, count)
            mine, theirs = slice(max(-shift, 0), known - shift), slice(max(shift, 0), known)
            same = self._equal(self.time[mine], self.digest[mine], time[theirs], digest[theirs])
            if same.all() and alike ** (1 + np.count_nonzero(np.diff(digest[theirs]))) <= MAX_CHANCE:
                most = max(most, known)
        return most

    @staticmethod
    def _equal(time: Any, digest: Any, other_time: Any, other_digest: Any) -> NDArray[np.bool_]:
        return np.asarray((time == other_time) & (digest == other_digest))

    def _chance(self, time: NDArray[Any], digest: NDArray[np.uint64]) -> float:
        """The chance that two rows of one time are equal, by counting pairs."""
        times = np.unique(np.concatenate((self.time, time)), return_inverse=True)[1]
        digests = np.unique(np.concatenate((self.digest, digest)), return_inverse=True)[1]
        pairs = [_pairs(times), _pairs(times * (int(digests.max()) + 1) + digests)]
        return pairs[1] / pairs[0] if pairs[0] else 0.0

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return super().state() | {"digest": [f"{each:016x}" for each in self.digest.tolist()]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there. Errors: KeyError, TypeError or ValueError, where it is no state."""
        super().restore({**state, "digest": [int(each, 16) for each in state["digest"]]})
        if not len(self.time) == len(self.digest) <= MAX_LATEST:
            raise ValueError("a row lacks a time or a digest")


def _pairs(of_row: Ints) -> int:
    """Pairs of rows that have the same number; a row may be in a thousand rows or in millions."""
    counts = np.unique(of_row, return_counts=True)[1].astype(object)
    return int((counts * (counts - 1)).sum())


def digests_of(score: Floats, label: NDArray[np.uint8], *texts: NDArray[Any] | None) -> NDArray[np.uint64]:
    """A hash of what each row holds, shape (T,): two rows that differ have the same one with a chance of 1 in 2^64."""
    from hashlib import blake2b

    digest = _mixed((score + 0.0).view(np.uint64), label.astype(np.uint64))
    for column in texts:
        if column is not None:
            values, place = np.unique(column.astype(str), return_inverse=True)
            each = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") for text in values.tolist()]
            digest = _mixed(digest, np.array(each, dtype=np.uint64)[place])
    return digest


def _mixed(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of pairs of numbers, shape (T,): a change in any bit of either changes about half of its bits."""
    bits = first * _ODD + second
    for shift in (30, 27, 31):
        bits = (bits ^ (bits >> np.uint64(shift))) * _ODD
    return np.asarray(bits ^ (bits >> np.uint64(32)))
