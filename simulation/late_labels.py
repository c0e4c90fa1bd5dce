"""Streams whose labels come late, or hang together: false alarms, and shifts that are found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtr

from decal_cli.analysis.online.plan import known_after_rows
from decal_cli.sequential.anytime import CalibrationAlarm, ClusterAlarm, DelayedAlarm
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.table import Floats
from simulation.cluster_streams import runs_of

DELAYS, SHIFTS = (1, 5, 30), (0.0, 0.15, 0.3)
N_STREAMS = {3000: (500, 100, 100), 10_000: (100, 100, 100)}
"""Streams of each length, by shift."""
N_ALIKE, ALIKE_ROWS, CORRELATIONS, BLOCK = 200, 3000, (0.0, 0.3, 0.6, 0.8), 100


class Drawn(NamedTuple):
    """Rows, shape (T,) each."""

    score: Floats
    label: np.ndarray


def overlapping(delay: int, rows: int, shift: float, rng: np.random.Generator) -> Drawn:
    """Forecasts of what sums over so many rows and one more will be, from all that is known before the first of them.

    Labels of rows that are `delay` apart or nearer rest on shocks that they share. shift: by how much the log-odds of
    the score lie below those of the label.
    """
    window = delay + 1
    to_row = np.concatenate(([0.0], np.cumsum(rng.normal(size=rows + delay))))
    level = 0.8 * rng.normal(size=rows)
    label = (to_row[window:] - to_row[:-window]) / math.sqrt(window) < level
    return Drawn(expit(log_odds(ndtr(level)) - shift), label.astype(np.uint8))


def hang_together(correlation: float, rows: int, rng: np.random.Generator) -> Drawn:
    """Labels whose normal variables are correlated from row to row, and scores that are right of each row alone."""
    score = rng.beta(2, 5, rows)
    shocks = rng.normal(size=rows)
    shocks[1:] *= math.sqrt(1 - correlation**2)
    return Drawn(score, (ndtr(lfilter([1.0], [1.0, -correlation], shocks)) < score).astype(np.uint8))


def alarms(delay: int, rows: int, shift: float, streams: int, seed: int) -> tuple[int, int]:
    """In how many streams the alarm sounds: in blocks, and row by row as if labels were known at once."""
    in_blocks = by_row = 0
    for stream in range(streams):
        drawn = overlapping(delay, rows, shift, np.random.default_rng([seed, 14, delay, stream]))
        in_blocks += DelayedAlarm().advance(*drawn, known_after_rows(rows, delay))[-1] >= math.log(20)
        by_row += CalibrationAlarm().advance(*drawn).max() >= math.log(20)
    return in_blocks, by_row


def late_alarm_table(seed: int, share: float) -> Iterator[str]:
    """False alarms at .05 of calibrated forecasts, at any of the rows, and of how many streams a shift is found."""
    heads = " | ".join(f"shift {shift:g}" if shift else "calibrated" for shift in SHIFTS)
    yield f"| labels after | rows | streams | way | {heads} |"
    yield "|---" * (4 + len(SHIFTS)) + "|"
    for rows, of_length in N_STREAMS.items():
        streams = [max(2, round(each * share)) for each in of_length]
        for delay in DELAYS:
            counts = [alarms(delay, rows, shift, n, seed) for shift, n in zip(SHIFTS, streams, strict=True)]
            for way, of_shifts in zip(("in blocks", "row by row"), zip(*counts, strict=True), strict=True):
                cells = " | ".join(f"{count / n:.3f}" for count, n in zip(of_shifts, streams, strict=True))
                shown = ", ".join(map(str, dict.fromkeys(streams)))
                yield f"| {delay} more row{'s' * (delay > 1)} | {rows:,} | {shown} | {way} | {cells} |"


def alike_table(seed: int, share: float) -> Iterator[str]:
    """Alarms where labels hang together from row to row, row by row and in blocks of rows as clusters."""
    streams = round(N_ALIKE * share)
    yield "| correlation | streams | row by row | blocks of rows as clusters |"
    yield "|---|---|---|---|"
    runs = runs_of(np.full(ALIKE_ROWS // BLOCK, BLOCK))
    for number, correlation in enumerate(CORRELATIONS):
        by_row = in_blocks = 0
        for stream in range(streams):
            drawn = hang_together(correlation, ALIKE_ROWS, np.random.default_rng([seed, 15, number, stream]))
            by_row += CalibrationAlarm().advance(*drawn).max() >= math.log(20)
            in_blocks += ClusterAlarm().advance(*drawn, runs).max() >= math.log(20)
        yield f"| {correlation:g} | {streams} | {by_row / streams:.3f} | {in_blocks / streams:.3f} |"
