"""Windows of time: how many rows, how they were decided, and how the scores of each period did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.documents import consistent
from decal_cli.tables.table import Floats, Ints
from decal_cli.task import BinaryTask

N_PARTS = 10
"""Parts of the score, of equal width, in which windows count labels."""
MAX_KEPT = 1000
"""Windows that a state holds; the oldest are dropped."""
MAX_PLACE = 10**12
"""Of a window: hours from 1970, or rows, to the last that there can be."""
ToTime = Callable[[Any], Any]
"""A time as a state holds it to one of the stream. Errors: TypeError or ValueError, where it is none."""


@dataclass
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
    n: list[int] = field(default_factory=lambda: [0] * N_PARTS)
    positives: list[int] = field(default_factory=lambda: [0] * N_PARTS)
    scores: list[float] = field(default_factory=lambda: [0.0] * N_PARTS)
    log_e: float = 0.0

    @property
    def rows(self) -> int:
        """Rows in it."""
        return sum(self.n)

    @property
    def base_rate(self) -> float:
        """Share of label 1."""
        return sum(self.positives) / self.rows

    @property
    def mean_score(self) -> float:
        """Mean of the scores."""
        return sum(self.scores) / self.rows

    def utility(self, method: str, task: BinaryTask) -> float:
        """Utility per row of acting as a method does."""
        return utility_of(self.rows, sum(self.positives), self.acts[method], task)

    def add(self, score: Floats, label: NDArray[np.uint8], acts: Mapping[str, NDArray[np.bool_]], log_e: float) -> None:
        """Count further rows."""
        place = np.minimum((score * N_PARTS).astype(np.int64), N_PARTS - 1)
        self.n = (np.array(self.n) + np.bincount(place, minlength=N_PARTS)).tolist()
        self.positives = (np.array(self.positives) + np.bincount(place[label == 1], minlength=N_PARTS)).tolist()
        scores = np.array(self.scores)
        # One by one, so that the sum does not depend on how the rows are cut into pieces.
        np.add.at(scores, place, score)
        self.scores = scores.tolist()
        for method, acting in acts.items():
            add_acts(self.acts[method], acting, label)
        self.log_e = log_e


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


class Windows:
    """The windows so far, the last of which may go on."""

    def __init__(self, methods: Sequence[str]) -> None:
        self.methods = tuple(methods)
        self.kept: list[Window] = []

    def advance(
        self,
        places: Ints,
        row: int,
        time: NDArray[Any],
        score: Floats,
        label: NDArray[np.uint8],
        acts: Mapping[str, NDArray[np.bool_]],
        log_e: Floats,
    ) -> None:
        """Take the next rows; places: the number of the window of each; row: the number of the first."""
        starts = np.flatnonzero(np.diff(places, prepend=places[0] - 1))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(places)], strict=True):
            place, part = int(places[start]), slice(start, end)
            if not self.kept or self.kept[-1].place != place:
                none: dict[str, list[int]] = {method: [0, 0] for method in self.methods}
                self.kept.append(Window(place, row + start, time[start].item(), none))
                del self.kept[:-MAX_KEPT]
            of_part = {method: acting[part] for method, acting in acts.items()}
            self.kept[-1].add(score[part], label[part], of_part, float(log_e[end - 1]))

    def state(self) -> list[dict[str, Any]]:
        """All of them, as JSON."""
        return [asdict(window) for window in self.kept]

    def restore(self, state: Sequence[Mapping[str, Any]], rows: int, time: ToTime) -> None:
        """Go on from there. Errors: KeyError, TypeError or ValueError, where it is no state."""
        self.kept = [self._window(each, time) for each in state]
        ends = [window.row + window.rows for window in self.kept]
        consistent(
            0 < len(self.kept) <= MAX_KEPT,
            all(first.place < second.place for first, second in pairwise(self.kept)),
            ends == [*(window.row for window in self.kept[1:]), rows],
            self.kept[0].row == 0 or (self.kept[0].row > 0 and len(self.kept) == MAX_KEPT),
        )

    def _window(self, state: Mapping[str, Any], time: ToTime) -> Window:
        acts = {str(method): [int(count) for count in counts] for method, counts in state["acts"].items()}
        if set(acts) != set(self.methods) or not all(len(each) == 2 for each in acts.values()):
            raise ValueError("a window has other methods")
        n, positives = ([int(each) for each in state[name]] for name in ("n", "positives"))
        window = Window(
            place=int(state["place"]),
            row=int(state["row"]),
            time=time(state["time"]),
            acts=acts,
            n=n,
            positives=positives,
            scores=[float(each) for each in state["scores"]],
            log_e=float(state["log_e"]),
        )
        if not len(window.n) == len(window.positives) == len(window.scores) == N_PARTS:
            raise ValueError("a window has other parts")
        labels = sum(window.positives)
        consistent(
            window.rows > 0,
            all(0 <= k <= n and 0 <= s <= n * (1 + 1e-9) for n, k, s in zip(n, positives, window.scores, strict=True)),
            all(0 <= on_1 <= labels and 0 <= on_0 <= window.rows - labels for on_1, on_0 in acts.values()),
            abs(window.place) <= MAX_PLACE,
        )
        return window
