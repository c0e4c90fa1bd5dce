"""Bootstrap intervals of statistics that have no analytic one, all from the same draws of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, TypeVar

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.metrics.confidence import Interval, bias_corrected

RESAMPLES = 200
"""Bootstrap draws; their mean and standard deviation are used, not their tails, so this many are enough."""
MIN_DEFINED = RESAMPLES // 2
"""A statistic that is defined on no more draws than these gets no interval."""
MANY = 4096
"""Up to this many cells a second thread costs more than it saves."""

K = TypeVar("K")
Draw = TypeVar("Draw")
Draw_co = TypeVar("Draw_co", covariant=True)


class Resampled(Protocol[Draw_co]):
    """Rows as cells that a bootstrap draws from: a table, or a table of pairs."""

    def __len__(self) -> int:
        """Number of cells."""

    def resample(self, rng: np.random.Generator) -> Draw_co:
        """One draw of the rows; raises Undefined where it is empty."""


def intervals(
    values: Mapping[K, float],
    statistic: Callable[[K, Draw], float | None],
    original: Draw,
    cells: Resampled[Draw],
    confidence: float,
    seed: int,
) -> dict[K, Interval]:
    """Bias-corrected normal intervals by key.

    values: the statistics on all rows. statistic: its value on a draw, None where it is undefined.
    cells: what is drawn from, and original: the same as a draw. On cells a statistic differs a little from its value on
    all rows; draws are compared with their own kind.
    """
    if not values:
        return {}
    centres = {key: statistic(key, original) for key in values}
    draws: dict[K, list[float]] = {key: [] for key in values}
    for draw in _resamples(cells, np.random.default_rng([seed, RESAMPLES])):
        for key, defined in draws.items():
            value = statistic(key, draw)
            if value is not None:
                defined.append(value)
    intervals = {}
    for key, value in values.items():
        centre, resampled = centres[key], np.array(draws[key])
        if centre is not None and len(resampled) > MIN_DEFINED:
            intervals[key] = bias_corrected(value, resampled, confidence, centre)
    return intervals


def _resamples(cells: Resampled[Draw], rng: np.random.Generator) -> Iterator[Draw]:
    """The draws that are not empty; of many cells the next is made by a second thread while this one is evaluated."""
    if len(cells) <= MANY:
        draws = (_resample(cells, rng) for _ in range(RESAMPLES))
        yield from (draw for draw in draws if draw is not None)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(_resample, cells, rng)
        for left in range(RESAMPLES - 1, -1, -1):
            draw = coming.result()
            if left:
                coming = pool.submit(_resample, cells, rng)
            if draw is not None:
                yield draw


def _resample(cells: Resampled[Draw], rng: np.random.Generator) -> Draw | None:
    """One draw; None where it came out empty, as it may of very few rows."""
    try:
        return cells.resample(rng)
    except Undefined:
        return None
