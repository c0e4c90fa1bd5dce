"""Errors over intervals of scores: the worst interval, and all splits in two; continuous in p, without bins."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import COUNT, Between
from decal_cli.errors import Undefined
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval, holding, quantile
from decal_cli.metrics.declare import like, metric
from decal_cli.metrics.numerics import rays
from decal_cli.tables.estimate import dot
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Floats, Table

_PAIRED = 256
"""Cells between which the intervals of scores are looked at one by one, for the upper end."""

Delta = Annotated[float, "probability that the bound fails", Between(0, 1)]
VcDimension = Annotated[
    int, "VC dimension of {a < f <= b} over the models f, for every a and b; 0: one model, fixed beforehand", COUNT
]
Values = Annotated[int, "number of values that the models of the class can take; only for vc > 0", COUNT]


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
    "Interval calibration error",
    "lower",
    "probability",
    cite("Gao et al. 2017", "def. 2"),
    (0, 1),
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


def _margin(t: Table, delta: float, vc: int, values: int) -> float:
    """How far c_emp may lie from the population's, to either side, with probability 1 - delta."""
    rows = t.effective_rows
    if not vc:
        complexity = 2 * math.sqrt(2 * (rows + 1) / math.pi) / rows
        return 2 * complexity + math.sqrt(2 * math.log(1 / delta) / rows)
    if rows <= vc + 1:
        raise Undefined(f"needs more than vc + 1 = {vc + 1} rows")
    complexity = math.sqrt((2 * vc * (math.log(rows / vc) + 1) + 4 * math.log(values + 1)) / rows)
    return 4 * complexity + math.sqrt(2 * math.log(2 / delta) / rows)


def _c_bound_interval(t: Table, *, confidence: float, delta: float, vc: int, values: int) -> Interval:
    margin, value = _margin(t, 1 - confidence, vc, values), c_emp(t)
    return holding((max(value - margin, 0.0), value + margin), c_bound(t, delta=delta, vc=vc, values=values))


def _c_bound_text(t: Table, *, delta: float, vc: int, values: int) -> str:
    return "vacuous" if c_bound(t, delta=delta, vc=vc, values=values) >= 1 else ""


@metric(
    "Interval calibration error, upper bound",
    "lower",
    "probability",
    f"{cite('Gao et al. 2017', 'thm. 2, claim 4')}; for one model, with the Rademacher range of a walk",
    (0, math.inf),
    size_free=False,
    interval=_c_bound_interval,
    interval_text=(
        "c_emp, minus and plus the margin of c_bound at delta = 1 - confidence, for all models of the class "
        "at once; and the value itself"
    ),
    text=_c_bound_text,
    covers="the population's c_emp, whatever the model and the data: so it is wide, and covers more often than it says",
)
def c_bound(t: Table, *, delta: Delta = 0.05, vc: VcDimension = 0, values: Values = 100) -> float:
    """Upper bound on the interval calibration error of the population; it holds with probability 1 - delta.

    For one model that was fixed before these rows were seen (vc=0): c_emp + 2 R + sqrt(2 ln(1/delta) / T), where
    R = 2 sqrt(2 (T + 1) / pi) / T. For a model chosen on these rows from a class:
    c_emp + 4 R + sqrt(2 ln(2/delta) / T), where R = sqrt((2 vc (ln(T / vc) + 1) + 4 ln(values + 1)) / T). Printed as
    vacuous from 1 on, which no error exceeds. With weights, T is the number of effective rows.
    """
    return c_emp(t) + _margin(t, delta, vc, values)


@metric(
    "Interval calibration error, p-value",
    "higher",
    "p-value",
    f"range of Brownian motion: {cite('Feller 1951')}",
    (0, 1),
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


MIN_RANGE = 0.1
"""The range is above it with probability 1, to more digits than a float has."""


def range_above(x: float) -> float:
    """P(range of Brownian motion on [0, 1] > x), by Feller's series, or by its dual where that series is slow."""
    if x <= MIN_RANGE:
        return 1.0
    if x >= 2:
        terms = ((-1) ** (k - 1) * k * math.erfc(k * x / math.sqrt(2)) / 2 for k in range(1, 60))
        return min(8 * sum(terms), 1.0)
    inside = 0.0
    for j in range(1, 60, 2):
        inside += (1 / j**2 + (math.pi / x) ** 2) * math.exp(-((j * math.pi / x) ** 2) / 2)
    return max(1 - 8 / math.pi**2 * inside, 0.0)


def _splits(walk: Floats, steps: Floats) -> Floats:
    """sum steps_i (W_i^2 + (W_m - W_i)^2) of walks W_1 .. W_m, shape (.., m); steps from the first score on to 1."""
    rest = walk[..., -1:] - walk
    # Below the lowest score all rows are on one side.
    lowest = (1 - steps.sum()) * walk[..., -1] ** 2
    return np.asarray((walk**2 + rest**2) @ steps + lowest)


def _atb_interval(t: Table, seed: Seed, *, confidence: float) -> Interval:
    cells = rays.cells(t)
    steps = np.diff(cells.score, append=1.0)
    walks = rays.worlds(cells, seed.generator("interval")).mapped(lambda gap: np.cumsum(gap, axis=-1))
    least_high = rays.whole(cells, confidence) ** 2 / 2
    return rays.interval(atb(t), walks, lambda walk: _splits(walk, steps), confidence, least_high=least_high)


@like(
    "c_emp",
    "Averaged two-bin calibration error",
    cite("Hartline et al. 2025"),
    unit="squared probability",
    shown=False,
    interval=_atb_interval,
)
def atb(t: Table) -> float:
    """Squared calibration error of two bins, averaged over where they meet; truthful, and without bins to choose.

    The mean over v uniform in [0, 1] of (sum over p <= v of (p - y) / T)^2 + (sum over p > v of (p - y) / T)^2. No
    prediction other than the true probability makes it smaller on average.
    """
    at = reached = squares = sums = 0.0
    for block in t.blocks():
        walk = at + np.cumsum(block.pos - block.n * block.score)
        before, steps = np.append(at, walk[:-1]), np.diff(block.score, prepend=reached)
        squares, sums = squares + dot(steps, before * before), sums + dot(steps, before)
        at, reached = float(walk[-1]), float(block.score[-1])
    squares, sums = squares + (1 - reached) * at * at, sums + (1 - reached) * at
    return max(2 * (squares - at * sums) + at * at, 0.0) / t.total**2
