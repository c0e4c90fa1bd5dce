"""Bootstrap intervals of the metrics that declare no analytic one, all from the same draws of the table."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.metrics import Choice
from decal_cli.metrics.confidence import Interval, bias_corrected
from decal_cli.tables.table import Table
from decal_cli.task import BinaryTask

RESAMPLES = 200
"""Bootstrap draws; their mean and standard deviation are used, not their tails, so this many are enough."""

_SMALL = 4096
"""Up to this many levels a second thread costs more than it saves."""

Inputs = Mapping[type, Any]


def intervals(values: Mapping[Choice, float], inputs: Inputs, confidence: float, seed: int) -> dict[Choice, Interval]:
    """Bias-corrected normal intervals: 2 value - mean of the draws -/+ z standard deviations, cut to the range.

    values: of the metrics in question, on the table in the inputs. Tables of more than CELLS levels are resampled as
    that many equal-mass cells. A metric that is undefined on half of the draws or more gets no interval.
    """
    if not values:
        return {}
    cells: Table = inputs[Table].cells
    # On cells a statistic differs a little from its value on all levels; the draws are compared with its own kind.
    centres = {choice: value_or_none(choice, {**inputs, Table: cells}, seed) for choice in values}
    draws = _draws(list(values), cells, inputs, seed)
    found = {}
    for choice, value in values.items():
        centre, drawn = centres[choice], np.array(draws[choice])
        if centre is not None and len(drawn) > RESAMPLES // 2:
            interval = bias_corrected(value, drawn, confidence, centre)
            found[choice] = _cut(interval, choice, inputs.get(BinaryTask))
    return found


def seeded(inputs: Inputs, choice: Choice, seed: int) -> Inputs:
    """The inputs with a generator of the metric's family: its draws do not depend on what else is computed."""
    return {**inputs, np.random.Generator: np.random.default_rng([seed, zlib.crc32(choice.metric.family.encode())])}


def value_or_none(choice: Choice, inputs: Inputs, seed: int) -> float | None:
    """A metric's value, None where it is undefined."""
    try:
        return choice.value(seeded(inputs, choice, seed) if np.random.Generator in choice.metric.needs else inputs)
    except Undefined:
        return None


def _draws(choices: Sequence[Choice], cells: Table, inputs: Inputs, seed: int) -> dict[Choice, list[float]]:
    draws: dict[Choice, list[float]] = {choice: [] for choice in choices}
    for table in _resamples(cells, np.random.default_rng([seed, RESAMPLES])):
        for choice in choices if table is not None else ():
            value = value_or_none(choice, {**inputs, Table: table}, seed)
            if value is not None:
                draws[choice].append(value)
    return draws


def _resamples(cells: Table, rng: np.random.Generator) -> Iterator[Table | None]:
    """The draws; of a large table the next is made by a second thread while this one is evaluated."""
    if len(cells) <= _SMALL:
        yield from (_resample(cells, rng) for _ in range(RESAMPLES))
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(_resample, cells, rng)
        for _ in range(RESAMPLES - 1):
            drawn, coming = coming.result(), pool.submit(_resample, cells, rng)
            yield drawn
        yield coming.result()


def _resample(cells: Table, rng: np.random.Generator) -> Table | None:
    """One draw; None where it came out empty, as it may of very few rows."""
    try:
        return cells.resample(rng)
    except Undefined:
        return None


def _cut(interval: Interval, choice: Choice, task: BinaryTask | None) -> Interval:
    low, high = choice.metric.range
    unit = task.u_delta if choice.metric.bounds_in_u_delta and task is not None else 1.0
    start, end = (min(max(edge, low * unit), high * unit) for edge in interval)
    return start, end
