"""Rows that wait for their labels, and the alarm: what a replay remembers of single rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.table import Floats


class WaitingRows(NamedTuple):
    """Rows that were predicted, and whose labels the forecasters have not learned; shape (P,) each."""

    score: Floats
    label: NDArray[np.uint8]
    time: NDArray[Any]
    arrival: NDArray[Any]
    group: NDArray[Any]

    def then(self, more: WaitingRows) -> WaitingRows:
        """These rows, then more."""
        pairs = zip(self._asdict().values(), more._asdict().values(), strict=True)
        return WaitingRows(*(np.concatenate(pair) for pair in pairs))

    def rest(self, first: int) -> WaitingRows:
        """The rows from this one on."""
        return WaitingRows(*(values[first:] for values in self._asdict().values()))


class Alarm(NamedTuple):
    """When the e-process, or 1 over the p-value, reached 1/alpha: the row, from 1, its time, and the row where what it
    found likely began.
    """

    row: int
    time: Any
    start: int
    start_time: Any
