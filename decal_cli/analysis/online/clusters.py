"""The clusters of a stream: which rows follow each other in one, and what each method won in each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.documents import consistent
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.limits import MAX_STREAM_CLUSTERS
from decal_cli.sequential.cluster_steps import Runs
from decal_cli.tables.table import Ints


class SplitCluster(NamedTuple):
    """A cluster whose rows do not follow each other: its name, and the row, from 1, at which it came back."""

    cluster: str
    row: int


class ClusterRows(NamedTuple):
    """Rows of a stream: the cluster of each by number, shape (T,), and the runs of rows that follow each other."""

    number: Ints
    runs: Runs


class StreamClusters:
    """The clusters so far. size: rows of each, in the order in which they came.

    open: the number of the latest one, None where it is over, or there is none; of its latest run the rows and the
    number of the first. apart: the first cluster that came back after rows of others; None where each came once.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.size: list[int] = []
        self.open: int | None = None
        self.open_rows = self.open_first = 0
        self.apart: SplitCluster | None = None

    def first_rows(self, cluster: NDArray[Any], row: int) -> Ints:
        """The number of the first row of the run of each of the next rows, shape (T,); row: the number of the first."""
        starts = np.flatnonzero(self._starts(cluster))
        firsts = np.concatenate(([self.open_first], row + starts))
        return np.asarray(firsts[np.searchsorted(starts, np.arange(len(cluster)), side="right")])

    def advance(self, cluster: NDArray[Any], row: int) -> ClusterRows:
        """Take the next rows. Errors: DecalError, where there are too many clusters."""
        begins = self._starts(cluster)
        starts = np.flatnonzero(begins)
        of_row = np.cumsum(begins)
        names = [str(name) for name in cluster[starts]]
        ends = np.concatenate((starts, [len(cluster)]))
        run_sizes = np.diff(ends)
        numbers = [self.open if self.open is not None else -1]
        for name, start, size in zip(names, starts.tolist(), run_sizes.tolist(), strict=True):
            numbers.append(self._number(name, row + start))
            self.size[numbers[-1]] += size
        carried = self.open_rows + int(ends[0])
        if self.open is not None:
            self.size[self.open] += int(ends[0])
        sizes = np.concatenate(([carried], run_sizes))
        firsts = np.concatenate(([self.open_first], row + starts))
        number = np.array(numbers)
        drop = 0 if self.open is not None else 1  # There is no run that began before.
        self.open, self.open_rows, self.open_first = numbers[-1], int(sizes[-1]), int(firsts[-1])
        return ClusterRows(number[of_row], Runs(of_row - drop, sizes[drop:], firsts[drop:]))

    def close(self) -> int:
        """The latest cluster is over: how many rows its run had."""
        rows, self.open, self.open_rows = self.open_rows, None, 0
        return rows

    def _starts(self, cluster: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether a run begins at each of the next rows, shape (T,)."""
        begins = np.empty(len(cluster), dtype=bool)
        begins[1:] = cluster[1:] != cluster[:-1]
        begins[:1] = self.open is None or [self.numbers.get(str(name)) != self.open for name in cluster[:1]]
        return begins

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
            self.size.append(0)
        return number

    def state(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return {
            "names": list(self.numbers),
            "size": list(self.size),
            "open": self.open,
            "open_rows": self.open_rows,
            "open_first": self.open_first,
            "apart": None if self.apart is None else list(self.apart),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there. Errors: KeyError, TypeError or ValueError, where it is no state."""
        self.numbers = {str(name): number for number, name in enumerate(state["names"])}
        self.size = [int(each) for each in state["size"]]
        self.open = None if state["open"] is None else int(state["open"])
        self.open_rows, self.open_first = int(state["open_rows"]), int(state["open_first"])
        self.apart = None if state["apart"] is None else SplitCluster(str(state["apart"][0]), int(state["apart"][1]))
        if not len(self.size) == len(self.numbers) == len(state["names"]):
            raise ValueError("a cluster has no size")
        rows, is_open = sum(self.size), self.open is not None
        consistent(
            all(size > 0 for size in self.size),
            self.open is None or 0 <= self.open < len(self.size),
            0 < self.open_rows <= self.size[self.open or 0] if is_open else self.open_rows == 0,
            self.open_first >= 0 and (not is_open or self.open_first + self.open_rows == rows),
            self.apart is None or (self.apart.cluster in self.numbers and 0 < self.apart.row <= rows),
        )
