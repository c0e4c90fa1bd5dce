"""Which part of an axis shows something: where scores are, and the threshold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from decal_cli.analysis.sweep import Sweep
from decal_cli.tables.table import Floats, Table
from decal_cli.task import Task

Range = tuple[float, float]
TAIL = 0.02
"""Share of the rows at either end that may lie outside of the axis."""
MAX_ZOOMED = 0.6
"""Of an axis from 0 to 1; where more of it is needed, all of it is shown."""
PAD = 0.04


def axis_of(sweep: Sweep) -> Range:
    """The thresholds that were asked for; all of [0, 1] where they are almost all of it, or there is but one."""
    first, last = float(sweep.grid.thresholds[0]), float(sweep.grid.thresholds[-1])
    return (0.0, 1.0) if first == last or last - first > 1 - 2 * PAD else (first, last)


def score_range(tables: Sequence[Table], task: Task | None) -> Range:
    """The part of [0, 1] that holds almost all scores of these tables, and the thresholds."""
    ends = [_ends(t) for t in tables]
    if task is not None:
        ends += [(at, at) for at in (*task.thresholds, *task.decision_thresholds)]
    return padded(min(low for low, _ in ends), max(high for _, high in ends))


def padded(low: float, high: float) -> Range:
    """A range within [0, 1] with a margin; all of [0, 1] where it is most of it or has no width."""
    if not 0 < high - low <= MAX_ZOOMED:
        return 0.0, 1.0
    margin = PAD * (high - low)
    # Near an end of [0, 1], that end is where people look for it.
    low = 0.0 if low - margin < (high - low) / 2 else low - margin
    high = 1.0 if high + margin > 1 - (high - low) / 2 else high + margin
    return low, high


def _ends(t: Table) -> Range:
    """Scores between which all but a share TAIL of the rows at either end lie."""
    share = np.cumsum(t.n, dtype=np.float64) / t.total
    low, high = np.searchsorted(share, [TAIL, 1 - TAIL])
    return float(t.score[low]), float(t.score[min(high, len(t.score) - 1)])


def value_range(values: Sequence[Floats]) -> Range:
    """The range within [0, 1] of these values."""
    together = np.concatenate(values)
    return padded(float(np.min(together)), float(np.max(together)))
