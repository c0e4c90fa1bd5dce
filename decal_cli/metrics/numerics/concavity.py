"""How far the Brier curve lies below its upper concave envelope: that of a calibrated score is concave itself."""

from __future__ import annotations

import numpy as np

from decal_cli.tables.isotonic import first_of_pools
from decal_cli.tables.table import Floats, Table


def gap(t: Table) -> float:
    """The largest distance; the curve is linear between scores, so it is attained at one of them."""
    at, curve = _limits(t)
    highest = curve.max(axis=0)
    # The slopes of the envelope fall: it is the isotonic fit of the slopes of the curve, upside down.
    first = first_of_pools(np.diff(at), -np.diff(highest))
    corners = np.append(first, len(at) - 1)
    envelope = np.interp(at, at[corners], highest[corners])
    return max(float((envelope - curve.min(axis=0)).max()), 0.0)


def _limits(t: Table) -> tuple[Floats, Floats]:
    """Thresholds 0, each score, 1, and the curve just below and just above them, shape (2, k); at the ends the inner.

    The cost-weighted loss (1 - t) FN + t FP of acting on scores >= t: Tasche 2021, eq. 3.3a.
    """
    missed = np.concatenate(([0.0], np.cumsum(t.pos, dtype=np.float64))) / t.total
    alarms = np.concatenate(([0.0], np.cumsum(t.n - t.pos, dtype=np.float64))) / t.total
    alarms = alarms[-1] - alarms
    below, above = ((1 - t.score) * missed[part] + t.score * alarms[part] for part in (slice(-1), slice(1, None)))
    at, curve = t.score, np.stack((below, above))
    if at[0] > 0:
        at, curve = np.append(0.0, at), np.column_stack((np.zeros(2), curve))
    else:
        curve[0, 0] = curve[1, 0]
    if at[-1] < 1:
        return np.append(at, 1.0), np.column_stack((curve, np.zeros(2)))
    curve[1, -1] = curve[0, -1]
    return at, curve
