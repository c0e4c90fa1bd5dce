"""How soon drifts of stated size are found: the alarm, which looks after every row, beside a test of each window."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from decal_cli.sequential.anytime import CalibrationAlarm, first_alarm
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.table import Floats

N_STREAMS, N_WITHOUT = 400, 2000
"""With a drift, and without one."""
BEFORE, AFTER, WINDOW = 3_000, 3_000, 250
"""Calibrated rows, rows after the drift, and rows of a window."""
DRIFTS = ((0.0, 0.0), (0.125, 0.0), (0.25, 0.0), (0.5, 0.0), (1.0, 0.0), (0.0, -0.3), (0.0, 0.4))
"""What is added to the log-odds, and to their slope."""
ALPHA = 0.05


class Alarms(NamedTuple):
    """The first row after which each way raises an alarm, None where it does not."""

    alarm: int | None
    each_window: int | None
    shared: int | None
    """The windows share alpha."""


def drift_table(seed: int, share: float) -> Iterator[str]:
    """Share of streams with an alarm before the drift, found in time, and the median rows that it took."""
    yield "| drift of the log-odds | streams | way | false alarm before it | found | rows to find it, median, 90 % |"
    yield "|---|---|---|---|---|---|"
    for number, (shift, slope) in enumerate(DRIFTS):
        streams = max(2, round((N_STREAMS if shift or slope else N_WITHOUT) * share))
        runs = [run_of(np.random.default_rng([seed, 8, number, stream]), shift, slope) for stream in range(streams)]
        drift = f"+{shift:g}" if shift else f"slope {1 + slope:g}" if slope else "none"
        for way, name in (("alarm", "e-process"), ("each_window", "each window at .05"), ("shared", "at .05 in all")):
            first = [getattr(run, way) for run in runs]
            # Without a drift every alarm is a false one.
            start = BEFORE if shift or slope else BEFORE + AFTER
            early = sum(row is not None and row < start for row in first)
            late = [row for row in first if row is None or row >= start]
            rows = sorted(math.inf if row is None else row - BEFORE + 1 for row in late)
            found = (f"{sum(map(math.isfinite, rows)) / len(rows):.3f}", f"{_at(rows, 0.5)}, {_at(rows, 0.9)}")
            cells = (drift, f"{streams:,}", name, f"{early / streams:.3f}", *(found if shift or slope else ("", "")))
            yield f"| {' | '.join(cells)} |"


def _at(rows: list[float], quantile: float) -> str:
    place = math.ceil(quantile * len(rows)) - 1
    return f"{rows[place]:,.0f}" if rows and math.isfinite(rows[place]) else "-"


def run_of(rng: np.random.Generator, shift: float, slope: float) -> Alarms:
    """The alarms of one stream."""
    score = rng.beta(2, 5, BEFORE + AFTER)
    drifted = expit((1 + slope) * log_odds(score) + shift)
    chance = np.where(np.arange(len(score)) < BEFORE, score, drifted)
    label = (rng.random(len(score)) < chance).astype(np.uint8)
    log_e = CalibrationAlarm().advance(score, label)
    windows = len(score) // WINDOW
    return Alarms(
        first_alarm(log_e, ALPHA), *(_first_window(score, label, level) for level in (ALPHA, ALPHA / windows))
    )


def _first_window(score: Floats, label: np.ndarray, level: float) -> int | None:
    """The last row of the first window whose mean label or whose slope on the score is off, each at half the level."""
    from scipy.stats import norm

    off = (label - score).reshape(-1, WINDOW)
    variance, centred = (score * (1 - score)).reshape(-1, WINDOW), log_odds(score).reshape(-1, WINDOW)
    centred = centred - (variance * centred).sum(axis=1, keepdims=True) / variance.sum(axis=1, keepdims=True)
    # The score tests of intercept and slope, which are uncorrelated once the log-odds are centred.
    tests = (
        off.sum(axis=1) / np.sqrt(variance.sum(axis=1)),
        (off * centred).sum(axis=1) / np.sqrt((variance * centred**2).sum(axis=1)),
    )
    above = np.maximum(*(np.abs(test) for test in tests)) > norm.isf(level / 4)
    return int((above.argmax() + 1) * WINDOW - 1) if above.any() else None
