"""The interval measure: the worst interval of scores; it is continuous in p and needs no bins."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval, quantile
from decal_cli.metrics.declare import metric
from decal_cli.metrics.numerics import rays
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Floats, Table

_PAIRED = 256
"""Cells between which the intervals of scores are looked at one by one, for the upper end."""

Delta = Annotated[float, "probability that the bound fails", Between(0, 1)]


def _reach(t: Table) -> float:
    """max minus min of the prefix sums of label minus score over the sorted levels, 0 included."""
    return t.cached(_reach, _walk)


def _walk(t: Table) -> float:
    at = high = low = 0.0
    for block in t.blocks():
        walk = at + np.cumsum(block.pos - block.n * block.score)
        at, high, low = float(walk[-1]), max(high, float(walk.max())), min(low, float(walk.min()))
    return high - low


def _range(walk: Floats) -> Floats:
    return np.asarray(np.maximum(walk.max(axis=-1), 0.0) - np.minimum(walk.min(axis=-1), 0.0))


def _c_emp_interval(t: Table, seed: Seed, *, confidence: float) -> Interval:
    cells = rays.cells(t)
    walks = rays.worlds(cells, seed.generator("interval")).mapped(lambda gap: np.cumsum(gap, axis=-1))
    return rays.interval(c_emp(t), walks, _range, confidence, least_high=_highest(cells, confidence))


def _highest(cells: Table, confidence: float) -> float:
    """Largest upper end of |E (label - score)| over intervals: that of the worst one holds it often enough."""
    some = rays.cells(cells, _PAIRED)
    steps = np.concatenate(([0.0], some.pos - some.n * some.score)) / some.total
    squares = np.concatenate(([0.0], rays.squares(some))) / some.total**2
    walk, variance = np.cumsum(steps), np.cumsum(squares)
    error = np.sqrt(np.maximum(variance - variance[:, None], 0.0))
    inside = float((np.abs(walk - walk[:, None]) + quantile(confidence) * error).max())
    return max(inside, rays.whole(cells, confidence))


@metric(
    title="Interval calibration error",
    better="lower",
    unit="probability",
    source=cite("Gao et al. 2017", "def. 2"),
    range=(0, 1),
    shown=True,
    interval=_c_emp_interval,
    interval_text=rays.INVERSION_TEXT,
    noisy=True,
    covers=covered.POPULATION_BELOW,
)
def c_emp(t: Table) -> float:
    """Largest absolute sum of label - score over the rows in any interval of scores, divided by T; needs no bins.

    max over intervals I of |sum over p in I of (y - p)| / T: the range of the prefix sums over sorted scores.
    """
    return _reach(t) / t.total


@metric(
    title="Interval calibration error, upper bound",
    better="lower",
    unit="probability",
    source=f"{cite('Gao et al. 2017', 'thm. 2')}, with the Rademacher range of a walk",
    range=(0, math.inf),
    size_free=False,
    interval=None,
    covers=("nothing: it is itself the upper end of a one-sided interval, for the population's c_emp, at 1 - delta"),
)
def c_bound(t: Table, *, delta: Delta = 0.05) -> float:
    """Upper bound on the interval calibration error of the population; it holds with probability 1 - delta.

    c_emp + 2 R + sqrt(2 ln(1/delta) / T), R = 2 sqrt(2 (T + 1) / pi) / T, for one model that was fixed before these
    rows were seen. With weights, T is the number of effective rows.
    """
    rows = t.effective_rows
    complexity = 2 * math.sqrt(2 * (rows + 1) / math.pi) / rows
    return _reach(t) / t.total + 2 * complexity + math.sqrt(2 * math.log(1 / delta) / rows)


@metric(
    title="Interval calibration error, p-value",
    better="higher",
    unit="p-value",
    source=f"range of Brownian motion: {cite('Feller 1951')}",
    range=(0, 1),
    size_free=False,
    interval=None,
    covers="nothing: it is a p-value",
)
def c_emp_pvalue(t: Table) -> float:
    """Probability of an interval calibration error this large when every score is a true probability.

    P(range of Brownian motion on [0, 1] > c_emp T / sqrt(sum p (1 - p))); weights enter that sum squared.
    """
    variance = t.sum(lambda block: block.n2 * block.score * (1 - block.score))
    reach = _reach(t)
    if variance <= 0:
        return float(reach == 0)
    return range_above(reach / math.sqrt(variance))


def range_above(x: float) -> float:
    """P(range of Brownian motion on [0, 1] > x), by Feller's series, or by its dual where that series is slow."""
    if x <= 0:
        return 1.0
    if x >= 2:
        terms = ((-1) ** (k - 1) * k * math.erfc(k * x / math.sqrt(2)) / 2 for k in range(1, 60))
        return min(8 * sum(terms), 1.0)
    inside = 0.0
    for j in range(1, 60, 2):
        inside += (1 / j**2 + (math.pi / x) ** 2) * math.exp(-((j * math.pi / x) ** 2) / 2)
    return max(1 - 8 / math.pi**2 * inside, 0.0)
