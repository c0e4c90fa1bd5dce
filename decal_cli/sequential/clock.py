"""Which labels are known when: rows in time order, whose labels come in after a delay."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.table import Ints


def known_after_rows(rows: int, delay: int) -> Ints:
    """How many first labels are known before each row, shape (T,), where a label comes in after `delay` more rows."""
    return np.maximum(np.arange(rows, dtype=np.int64) - delay, 0)


def known_after_time(time: NDArray[Any], delay: float) -> Ints:
    """The same, where it comes in `delay` units of time after its row; time: int64 (T,), never decreasing.

    Rows of one time are all predicted before a label of them is known. Without a delay, a label is known at any later
    time.
    """
    if time.dtype.kind == "i":
        # Nothing is earlier than the first time that can be told.
        time_then = np.maximum(time, np.iinfo(time.dtype).min + int(delay)) - int(delay)
    else:
        time_then = time - delay
    known = np.searchsorted(time, time_then, side="right" if delay else "left")
    return np.asarray(known, dtype=np.int64)


def known_after_arrival(time: NDArray[Any], arrival: NDArray[Any]) -> Ints:
    """The same, where a column says when each label came in: one that comes in before its predecessors waits for them.

    A label is known at the time at which it came in, though never at the time of its own row.
    """
    came = np.searchsorted(np.maximum.accumulate(arrival), time, side="right")
    return np.minimum(came, np.searchsorted(time, time, side="left")).astype(np.int64)
