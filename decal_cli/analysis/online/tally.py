"""What is kept of the rows: sums and counts that do not depend on how the stream is cut into pieces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis.online.clusters import ClusterRows, StreamClusters
from decal_cli.analysis.online.windows import ToTime, add_acts
from decal_cli.documents import consistent
from decal_cli.metrics.confidence import quantile
from decal_cli.numbers import Interval
from decal_cli.sequential.cluster_steps import RunningMeans
from decal_cli.sequential.difference import Acts, RunningDifference, Sums, utility_difference
from decal_cli.sequential.resumable import Kept, Resumable, plain, whole_or_none, wholes
from decal_cli.tables.clusters import confidence_of
from decal_cli.tables.estimate import mean_over
from decal_cli.tables.table import Floats, Ints, Table
from decal_cli.task import BinaryTask

N_CELLS = 2000
"""Cells in which predictions are counted: memory does not grow with the rows."""
MAX_POINTS = 400
"""Points of a course; where there would be more, every other one is dropped."""


class CellTally:
    """Predictions and labels, counted by cells of equal width."""

    def __init__(self) -> None:
        self.n, self.positives = np.zeros(N_CELLS, dtype=np.int64), np.zeros(N_CELLS, dtype=np.int64)
        self.sums = np.zeros(N_CELLS)

    def advance(self, prediction: Floats, label: NDArray[np.uint8]) -> None:
        """Count further rows."""
        place = np.minimum((prediction * N_CELLS).astype(np.int64), N_CELLS - 1)
        self.n += np.bincount(place, minlength=N_CELLS)
        self.positives += np.bincount(place[label == 1], minlength=N_CELLS)
        # One by one, so that the sum does not depend on how the rows are cut into pieces.
        np.add.at(self.sums, place, prediction)

    def table(self) -> Table:
        """The mean prediction of each cell, with its rows and labels 1."""
        held = np.flatnonzero(self.n)
        score, place = np.unique(np.clip(self.sums[held] / self.n[held], 0.0, 1.0), return_inverse=True)
        n, positives = (np.bincount(place, each[held]).astype(np.int64) for each in (self.n, self.positives))
        return Table.of_counts(score, n, positives)

    def state(self) -> list[list[Any]]:
        """The cells that hold rows: place, rows, labels 1, sum of the predictions."""
        held = np.flatnonzero(self.n)
        return [held.tolist(), self.n[held].tolist(), self.positives[held].tolist(), self.sums[held].tolist()]

    def restore(self, state: Sequence[Sequence[Any]]) -> None:
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

    since: the row, from 1, after which the sequence at the level `alpha` first was above 0. clusters: of the rows, None
    where they are independent; then what it wins in each is kept, and the averages of those that are over.
    """

    KEPT: ClassVar[Kept] = {"acts": wholes, "difference": dict, "since": whole_or_none}

    def __init__(self, task: BinaryTask, alpha: float, clusters: StreamClusters | None = None) -> None:
        self.task, self.alpha = task, alpha
        self.cells, self.acts = CellTally(), [0, 0]
        self.difference = RunningDifference(task)
        self.since: int | None = None
        self.clusters = clusters
        self.of_clusters, self.means = np.zeros(0), RunningMeans(task)

    def advance(
        self,
        prediction: Floats,
        acting: Acts,
        first: Acts,
        label: NDArray[np.uint8],
        in_clusters: ClusterRows | None = None,
    ) -> Sums:
        """Take further rows; first: whether the first method acts; in_clusters: where rows are in clusters."""
        self.cells.advance(prediction, label)
        add_acts(self.acts, acting, label)
        sums = self.difference.advance(first, acting, label)
        if in_clusters is None:
            self._look(sums, sums.rows)
        else:
            difference = utility_difference(first, acting, label, self.task)
            new = int(in_clusters.number.max()) + 1 - len(self.of_clusters)
            self.of_clusters = np.concatenate((self.of_clusters, np.zeros(max(new, 0))))
            # One by one, so that the sum does not depend on how the rows are cut into pieces.
            np.add.at(self.of_clusters, in_clusters.number, difference)
            self._look(self.means.advance(difference, in_clusters.runs), in_clusters.runs.first[1:])
        return sums

    def close(self, size: int, row: int) -> None:
        """The latest cluster, of so many rows, is over after this row."""
        self._look(self.means.close(size), np.array([row]))

    def _look(self, sums: Sums, rows: Ints) -> None:
        """Remember the first of these rows after which the sequence is above 0."""
        if self.since is None:
            above = sums.sequence(self.alpha).low > 0
            self.since = int(rows[above.argmax()]) if above.any() else None

    def gain(self, alpha: float) -> tuple[float, Interval | None]:
        """What it won over the first method, and what covers it with probability 1 - alpha; None: too few clusters.

        A confidence sequence of rows, or of clusters, each of which counts the same. Where the rows of a cluster do not
        follow each other: per row, with the interval of one look.
        """
        clusters = self.clusters
        if clusters is not None and clusters.apart is not None:
            size = np.array(clusters.size, dtype=np.float64)
            mean, error = mean_over(self.of_clusters / size, size, None)
            sure = confidence_of(float(size.sum() ** 2 / (size @ size)), 1 - alpha)
            return mean, None if sure is None else (mean - quantile(sure) * error, mean + quantile(sure) * error)
        sums = self.difference.sums if clusters is None else self.means.sums
        if not sums.rows[0]:
            return self.difference.total / self.difference.rows, None
        ends = sums.sequence(alpha)
        farthest = math.inf if clusters is None else self.means.reach
        return float(ends.mean[0]), (max(float(ends.low[0]), -farthest), min(float(ends.high[0]), farthest))

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        of_clusters = {"of_clusters": plain(self.of_clusters), "means": plain(self.means)}
        return super().state() | {"cells": self.cells.state()} | (of_clusters if self.clusters is not None else {})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there. Errors: KeyError, IndexError, TypeError or ValueError, where it is no state."""
        self.cells.restore(state["cells"])
        super().restore(state)
        rows, positives = self.difference.rows, int(self.cells.positives.sum())
        consistent(
            len(self.acts) == 2,
            0 <= self.acts[0] <= positives and 0 <= self.acts[1] <= rows - positives,
            int(self.cells.n.sum()) == rows,
            self.since is None or 0 < self.since <= rows,
        )
        if self.clusters is not None:
            self.of_clusters = np.array(state["of_clusters"], dtype=float)
            self.means.restore(state["means"])
            size = np.array(self.clusters.size)
            consistent(len(size) == len(self.of_clusters), self.means.steps <= rows)
            consistent((np.abs(self.of_clusters) <= self.task.u_delta * (size + 1)).all())


class OnlineHistory:
    """Points of the way so far, for pictures: every row whose number is a multiple of the stride.

    row, time, log_e: of each point; sums: of each method, what it won over the first in all, and its squares.
    """

    def __init__(self, methods: Sequence[str]) -> None:
        self.stride = 1
        self.row: list[int] = []
        self.time: list[Any] = []
        self.log_e: list[float] = []
        self.total: dict[str, list[float]] = {method: [] for method in methods}
        self.squares: dict[str, list[float]] = {method: [] for method in methods}

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

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, Any], time: ToTime) -> None:
        """Go on from there. Errors: KeyError, TypeError or ValueError, where it is no state."""
        if set(state) != set(vars(self)) or any(set(state[name]) != set(self.total) for name in ("total", "squares")):
            raise ValueError("the course has other points")
        self.stride, self.row = int(state["stride"]), [int(each) for each in state["row"]]
        self.time, self.log_e = list(map(time, state["time"])), list(map(float, state["log_e"]))
        for mine, theirs in ((self.total, state["total"]), (self.squares, state["squares"])):
            mine.update({method: [float(each) for each in theirs[method]] for method in mine})
        lengths = {len(each) for each in (self.time, self.log_e, *self.total.values(), *self.squares.values())}
        if not lengths <= {len(self.row)}:
            raise ValueError("the course has points that lack a value")
        consistent(
            self.stride > 0 and self.stride & (self.stride - 1) == 0,
            self.row == list(range(self.stride, self.stride * (len(self.row) + 1), self.stride)),
        )
