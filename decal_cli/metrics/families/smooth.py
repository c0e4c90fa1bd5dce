"""Calibration errors that are continuous in the scores: no bins, and a small change of scores changes them little.

The smooth ECE smooths residuals by a Gaussian reflected at 0 and 1, of the width that equals the error it gives. This
is the heat kernel of [0, 1]: it multiplies the cosine mode k by exp(-(k pi width)^2 / 2). Smooth calibration is a
monotone regression, and the lower distance to calibration a linear program over test functions.
"""

from __future__ import annotations

import itertools
from typing import Annotated, Literal, NamedTuple

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import gaps
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import Measured, family, like, metric
from decal_cli.metrics.families import calibration
from decal_cli.tables.estimate import MeanEstimate, ratio
from decal_cli.tables.memo import once
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BLOCK, Floats, Ints, Table

N_HEAT_CELLS = 1 << 16
_REACH = 8.5
"""Modes damped below exp(-_REACH^2 / 2) vanish in double precision."""
_N_MODES = 1 << 15
MIN_WIDTH = _REACH / (np.pi * _N_MODES)
_MAX_PRODUCTS = 1 << 21


def smooth_error(score: Floats, residual: Floats) -> float:
    """The width s with int |smoothed residual at width s| = s; residuals sum to the mean residual, shape (m,)."""
    # sum residual cos(k pi score), each residual shared between the two nearest points of the grid.
    nodes = shared_by_nodes(score * N_HEAT_CELLS, residual, N_HEAT_CELLS + 1)
    modes = np.ascontiguousarray(np.fft.rfft(nodes, 2 * N_HEAT_CELLS).real[:_N_MODES])
    low = high = 1.0
    at_low = at_high = _error(modes, high) - high
    while at_low < 0:
        if low == MIN_WIDTH:
            return at_low + low
        high, at_high, low = low, at_low, max(low / 4, MIN_WIDTH)
        at_low = _error(modes, low) - low
    width = low
    side = 0
    for _ in range(100 if low < high else 0):
        # The error falls with the width: false position, halving the end that stays (Illinois).
        width = (low * at_high - high * at_low) / (at_high - at_low)
        at = _error(modes, width) - width
        if abs(at) < 1e-13:
            break
        if at > 0:
            low, at_low, at_high, side = width, at, at_high / (2 if side == 1 else 1), 1
        else:
            high, at_high, at_low, side = width, at, at_low / (2 if side == -1 else 1), -1
    return width


def shared_by_nodes(at: Floats, values: Floats, nodes: int) -> Floats:
    """Values at positions from 0 to nodes - 1, each shared between the two nearest nodes, shape (nodes,)."""
    node = np.minimum(at.astype(np.int64), nodes - 2)
    upper = values * (at - node)
    return np.asarray(
        np.bincount(node, values - upper, minlength=nodes) + np.bincount(node + 1, upper, minlength=nodes)
    )


def _error(modes: Floats, width: float) -> float:
    """int over [0, 1] of |c_0 + 2 sum c_k cos(k pi t)|, from its zeros and its antiderivative."""
    waves = np.arange(min(int(_REACH / (np.pi * width)) + 2, len(modes)))
    c = modes[: len(waves)] * np.exp(-((waves * np.pi * width) ** 2) / 2)
    points = 1 << max(int(4 * len(c)).bit_length(), 8)
    values = np.fft.irfft(c, 2 * points)[: points + 1] * 2 * points
    turn = np.flatnonzero(values[1:] * values[:-1] < 0)
    if len(turn) * len(c) > _MAX_PRODUCTS:
        return _by_trapezoids(values)
    zero = (turn + values[turn] / (values[turn] - values[turn + 1])) / points
    k = np.arange(1, len(c)) * np.pi
    phase = zero[:, None] * k
    value, slope = c[0] + 2 * (np.cos(phase) @ c[1:]), -2 * (np.sin(phase) @ (c[1:] * k))
    step = np.divide(value, slope, out=np.zeros_like(value), where=slope != 0)
    zero = np.clip(zero - step, turn / points, (turn + 1) / points)
    ends = np.concatenate(([0.0], zero, [1.0]))
    integral = c[0] * ends
    integral[1:-1] += 2 * (np.sin(zero[:, None] * k) @ (c[1:] / k))
    return float(np.abs(np.diff(integral)).sum())


def _by_trapezoids(values: Floats) -> float:
    """Mean of |a curve| given at equally spaced points, linear between them."""
    a, b = np.abs(values[:-1]), np.abs(values[1:])
    crossing = values[:-1] * values[1:] < 0
    return float(np.where(crossing, ratio(a * a + b * b, a + b), a + b).mean()) / 2


def modes_at(score: Floats, residual: Floats, width: float) -> Floats:
    """The modes that count at this width, residuals of shape (.., m)."""
    k = np.arange(int(_REACH / (np.pi * width)) + 2)
    return np.asarray(residual @ np.cos(np.pi * score[:, None] * k))


def error_of_modes(modes: Floats, width: float | Floats) -> Floats:
    """int |smoothed residual| of draws, modes of shape (draws, k), as a mean over points."""
    damp = np.exp(-((np.arange(modes.shape[-1]) * np.pi * width) ** 2) / 2)
    points = 1 << max(int(2 * modes.shape[-1]).bit_length(), 7)
    values = np.fft.irfft(modes * damp, 2 * points)[:, : points + 1] * 2 * points
    return np.asarray(np.abs(values).mean(axis=-1))


def widths(modes: Floats, smoothed: float) -> Floats:
    """Widths that equal the errors they give, of residuals less waves that are short for this width, (worlds,)."""
    modes = modes * np.exp(-((np.arange(modes.shape[-1]) * np.pi * smoothed / 3) ** 2) / 2)
    low, high = np.zeros(len(modes)), np.ones(len(modes))
    for _ in range(24):
        middle = (low + high) / 2
        over = error_of_modes(modes, middle[:, None]) > middle
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return np.where(low > 0, high, 0.0)


_MIN_POINTS = 200
_MIN_NODES = 2000
_N_BISECTIONS = 10
_MIN_WIDTH = 0.001
_DENSITY = 1e-4
"""Added to the density of the scores at every point."""


def relplot_error(score: Floats, n: Floats, pos: Floats) -> float:
    """relplot.smECE of rows with these levels, shape (m,) each."""
    wide, narrow = 1.0, 0.0
    for _ in range(_N_BISECTIONS):
        middle = (wide + narrow) / 2
        if middle < _MIN_WIDTH or middle < _relplot_error(score, n, pos, middle):
            narrow = middle
        else:
            wide = middle
    return _relplot_error(score, n, pos, wide)


def _relplot_error(score: Floats, n: Floats, pos: Floats, width: float) -> float:
    points = np.linspace(0, 1, max(round(10 / width), _MIN_POINTS))
    residual, density = (_relplot_smoothed(score, values, points, width) for values in (n * score - pos, n * 1.0))
    return float(np.abs(residual).sum() / (density + _DENSITY).sum())


def _relplot_smoothed(score: Floats, values: Floats, points: Floats, width: float) -> Floats:
    """Values shared between two nodes each, mirrored at both ends, smoothed, and read off between nodes at points."""
    nodes = max(_MIN_NODES, round(20 / width)) // 2 + 1
    shared = shared_by_nodes(score * (nodes - 1), values, nodes)
    away = np.linspace(0, 1, nodes) - 0.5
    kernel = np.exp(-(away**2) / (2 * width**2)) / (np.sqrt(2 * np.pi) * width)
    mirrored = np.concatenate((shared[::-1][:-1], shared, shared[::-1][1:]))
    smooth = np.convolve(mirrored, kernel, "valid")[nodes // 2 : nodes // 2 + nodes]
    return np.interp(points * (nodes - 1), np.arange(nodes), smooth)


_FAR = 1e6
"""Above any prefix sum."""


# Smooth calibration, max sum w_i z_i over |z| <= 1 and |z_i - z_(i+1)| <= d_i, matches positive with negative mass at a
# cost of d per unit; unmatched mass costs 1. Distances are below 2, so no pair stays unmatched. With the prefix sums W
# of w, the unmatched mass is |W_m|, of one sign, and the rest costs the minimum of sum d_i |g_i - W_i| over monotone g
# from 0 to W_m. That is isotonic median regression of a walk. It is solved by splitting at a value: where the best
# two-valued fit steps up, every best fit is below the value on the left and above it on the right. All parts are split
# at once, without a Python loop over rows.
def unmatched_and_matched(score: Floats, gap: Floats) -> tuple[Floats, Floats]:
    """|W_m| and the cost of matching the rest, (draws,) each; scores of shape (m,), their gaps w of (draws, m)."""
    walk = np.cumsum(gap, axis=-1)
    end = walk[:, -1]
    walk = walk[:, :-1] * np.where(end < 0, -1.0, 1.0)[:, None]
    distance = np.diff(score)
    draws, steps = walk.shape
    if steps == 0:
        return np.abs(end), np.zeros(draws)
    inside = np.clip(walk, 0.0, np.abs(end)[:, None])
    walk -= inside
    outside = (np.abs(walk, out=walk) * distance).sum(axis=-1)
    if draws == 1:
        return np.abs(end), outside + _by_groups(inside[0], distance)
    weight = np.broadcast_to(distance, inside.shape).ravel()
    return np.abs(end), outside + monotone_cost(inside.ravel(), weight, np.arange(draws) * steps)


def _by_groups(value: Floats, weight: Floats) -> float:
    """The cost of one part, taken in groups of separable parts that fit the cache."""
    starts = _separable(value)
    firsts = np.unique(np.searchsorted(starts, np.arange(0, len(value), BLOCK)))
    groups = np.append(starts[firsts[firsts < len(starts)]], len(value))
    cost = 0.0
    for low, high in itertools.pairwise(groups.tolist()):
        inner = starts[np.searchsorted(starts, low) : np.searchsorted(starts, high)] - low
        cost += float(monotone_cost(value[low:high], weight[low:high], inner).sum())
    return cost


def _separable(value: Floats) -> Ints:
    """Starts of parts that can be fitted alone: nothing before is above anything after. Many where W drifts."""
    before = np.maximum.accumulate(value)[:-1]
    after = np.minimum.accumulate(value[::-1])[-2::-1]
    return np.concatenate(([0], np.flatnonzero(before <= after) + 1))


def monotone_cost(value: Floats, weight: Floats, starts: Ints) -> Floats:
    """min over nondecreasing g of sum weight |g - value| in each part; parts begin at starts, values in [0, _FAR)."""
    cost = np.zeros(len(starts))
    part, lengths = np.arange(len(starts)), np.diff(starts, append=len(value))
    low, high = np.minimum.reduceat(value, starts), np.maximum.reduceat(value, starts)
    value, weight, (part, lengths, low, high) = _unsettled(value, weight, part, lengths, low, high)
    while len(value):
        starts = np.cumsum(lengths) - lengths
        middle = low + (high - low) / 2
        over = value > np.repeat(np.where(middle < high, middle, low), lengths)
        # Arithmetic, because choosing by a random mask is ten times slower.
        below = np.maximum.reduceat(value * ~over, starts)
        above = np.minimum.reduceat(value + ~over * _FAR, starts)
        left = _steps(weight * (over - 0.5), starts, lengths)
        lengths = np.stack((left, lengths - left), axis=1).ravel()
        low, high = np.stack((low, above), axis=1).ravel(), np.stack((below, high), axis=1).ravel()
        part = np.repeat(part, 2)
        some = lengths > 0
        part, lengths, low, high = part[some], lengths[some], low[some], high[some]
        moved = np.maximum(value, np.repeat(low, lengths))
        np.minimum(moved, np.repeat(high, lengths), out=moved)
        lost = value - moved
        np.abs(lost, out=lost)
        lost *= weight
        cost += np.bincount(part, np.add.reduceat(lost, np.cumsum(lengths) - lengths), minlength=len(cost))
        value, weight, (part, lengths, low, high) = _unsettled(moved, weight, part, lengths, low, high)
    return cost


def _steps(signed: Floats, starts: Ints, lengths: Ints) -> Ints:
    """How many values of each part lie before its step up: where the prefix sum is least, 0 included."""
    sums = np.cumsum(signed)
    least = np.minimum.reduceat(sums, starts)
    before = np.append(0.0, sums[starts[1:] - 1])
    hits = np.flatnonzero(sums == np.repeat(least, lengths))
    first = hits[np.searchsorted(hits, starts)]
    return np.where(least >= before, 0, first + 1 - starts)


def _unsettled(
    value: Floats, weight: Floats, part: Ints, lengths: Ints, low: Floats, high: Floats
) -> tuple[Floats, Floats, tuple[Ints, Ints, Floats, Floats]]:
    """The parts whose values fall somewhere (the others are their own fit), with neighbours of one value merged."""
    starts = np.cumsum(lengths) - lengths
    falls, fresh = np.zeros(len(value), dtype=bool), np.ones(len(value), dtype=bool)
    np.less(value[1:], value[:-1], out=falls[1:])
    np.not_equal(value[1:], value[:-1], out=fresh[1:])
    falls[starts], fresh[starts] = False, True
    keep = np.logical_or.reduceat(falls, starts)
    if 8 * min(int(lengths[keep].sum()), int(fresh.sum())) > 7 * len(value):
        return value, weight, (part, lengths, low, high)
    runs = np.flatnonzero(fresh)
    lengths = np.diff(np.searchsorted(runs, np.append(starts, len(value))))
    kept = np.flatnonzero(np.repeat(keep, lengths))
    weight = np.add.reduceat(weight, runs)[kept]
    return value[runs[kept]], weight, (part[keep], lengths[keep], low[keep], high[keep])


N_STEPS = 512
"""Steps between the nodes; functions that suit the nodes exceed 0 by at most 1 / (2 N_STEPS^2) between them."""
_MAX_OWN_NODES = 256
"""Up to this many levels, each level is a node."""


# The distance to calibration is the least E|p - g| over all couplings of (p, y) with a g in [0, 1] such that
# E[y - g | g] = 0. Take two functions u_0, u_1 on [0, 1] with slopes within [-1, 1] and (1 - g) u_0(g) + g u_1(g) <= 0
# everywhere. Then E u_y(p) <= E u_y(g) + E|p - g| <= E|p - g|: every such pair bounds the distance from below, and the
# best one attains it (Blasiok, Gopalan, Hu, Nakkiran 2023, by duality). A linear program finds functions that are
# linear between nodes. Their violation in between is computed and subtracted, so that the bound holds for any output of
# the program.
class TestFunctions(NamedTuple):
    """Two functions by their values at nodes from 0 to 1, shape (k,) each."""

    at: Floats
    u0: Floats
    u1: Floats

    def of(self, score: Floats) -> Floats:
        """u_0 and u_1 of scores, shape (k,): shape (2, k)."""
        return np.stack((np.interp(score, self.at, self.u0), np.interp(score, self.at, self.u1)))


def best_functions(t: Table) -> TestFunctions:
    """The functions that bound the distance of this table best: its mean of u_label(score) is the bound."""
    at = np.linspace(0, 1, N_STEPS + 1)
    if len(t) <= _MAX_OWN_NODES:
        at = np.union1d(at, t.score)
        # Nodes a rounding error apart make slopes of nothing.
        at = np.append(at[np.append(True, np.diff(at) > 1e-9)][:-1], 1.0)
    place = np.interp(t.score, at, np.arange(len(at)))
    return valid(_program(at, *(shared_by_nodes(place, each, len(at)) for each in (t.n - t.pos, t.pos * 1.0))))


def valid(pair: TestFunctions) -> TestFunctions:
    """The functions scaled to slopes within [-1, 1] and lowered by the most that (1 - g) u_0 + g u_1 exceeds 0."""
    at, steps = pair.at, np.diff(pair.at)
    steepest = max(float((np.abs(np.diff(values)) / steps).max()) for values in (pair.u0, pair.u1))
    u0, u1 = (values / max(steepest, 1.0) for values in (pair.u0, pair.u1))
    excess = (1 - at) * u0 + at * u1
    # Between nodes it is a parabola: excess + linear v + bend v^2 at a node plus v.
    slope0, slope1 = np.diff(u0) / steps, np.diff(u1) / steps
    bend = slope1 - slope0
    linear = u1[:-1] - u0[:-1] + (1 - at[:-1]) * slope0 + at[:-1] * slope1
    top = np.clip(np.divide(linear, -2 * bend, out=np.zeros_like(bend), where=bend < 0), 0, steps)
    most = max(float(excess.max()), float((excess[:-1] + (linear + bend * top) * top).max()))
    return TestFunctions(at, u0 - most, u1 - most)


def _program(at: Floats, weight0: Floats, weight1: Floats) -> TestFunctions:
    """max sum weight_0 u_0 + weight_1 u_1 over functions that suit the nodes; zeros where the solver fails."""
    from scipy import optimize, sparse

    k = len(at)
    step = sparse.diags_array([-np.ones(k - 1), np.ones(k - 1)], offsets=[0, 1], shape=(k - 1, k))
    slopes = sparse.block_diag([step, step])
    middle = sparse.hstack([sparse.diags_array(1 - at), sparse.diags_array(at)])
    room = np.tile(np.diff(at), 4)
    solution = optimize.linprog(
        -np.concatenate((weight0, weight1)) / (weight0.sum() + weight1.sum()),
        A_ub=sparse.vstack([slopes, -slopes, middle]).tocsr(),
        b_ub=np.concatenate((room, np.zeros(k))),
        bounds=(-1, 1),
        method="highs-ds",
    )
    values = np.zeros(2 * k) if solution.x is None else solution.x
    return TestFunctions(at, values[:k], values[k:])


MAX_CUTS = 512
"""Above this many levels, runs begin only at the starts of as many equal-mass bins."""


def cheapest_merge(t: Table) -> float:
    """min over partitions into runs of sum over runs of sum n |q - h| / T, h the label frequency of the run.

    Dynamic programming over the places where a run may begin; every cost is exact at the levels of the table.
    """
    cuts = np.append(np.arange(len(t)) if len(t) <= MAX_CUTS else t.bin_starts(MAX_CUTS), len(t))
    n, pos, mass = map(gaps.running, (t.n, t.pos, t.n * t.score))
    best = np.zeros(len(cuts))
    for end in range(1, len(cuts)):
        # Runs from every earlier cut to this one: n |q - h| summed is n (q - h) summed, plus twice what lies below h.
        first, last = cuts[:end], cuts[end]
        rows = n[last] - n[first]
        rate = (pos[last] - pos[first]) / rows
        middle = np.clip(np.searchsorted(t.score, rate), first, last)
        lower = rate * (n[middle] - n[first]) - (mass[middle] - mass[first])
        cost = np.maximum(mass[last] - mass[first] - rate * rows + 2 * lower, 0.0)
        best[end] = (best[:end] + cost).min()
    return float(best[-1]) / t.total


family("smooth", __doc__)


Method = Annotated[
    Literal["exact", "relplot"],
    "exact: the definition; relplot: as relplot 1.0.3 computes it, width and integral on grids",
]

_MAX_EXACT = 1 << 17
_N_CELLS = 1 << 16
_DRAWN_ON = 128
"""Above this many levels chance is drawn on this many equal-mass cells, for sm_cal, where each draw costs."""
_WAVES_ON = 512
_NARROWEST = 0.004
"""Width below which chance is not drawn: there are too many waves then."""


def _levels(t: Table) -> Table:
    """The table, or above _MAX_EXACT levels its cells of width 1 / _N_CELLS; no score moves farther than that."""
    return t if len(t) <= _MAX_EXACT else t.bins(_N_CELLS, "width")


def _gap(t: Table) -> Floats:
    """Mean score less label of each level, as far as it adds to that of the rows."""
    return np.asarray((t.n * t.score - t.pos) / t.n.sum())


@once
def _parts(t: Table) -> tuple[float, float]:
    """|mean gap|, and the cost of matching the rest: sm_cal is their sum."""
    levels = _levels(t)
    unmatched, matched = unmatched_and_matched(levels.score, _gap(levels)[None])
    return float(unmatched[0]), float(matched[0])


@metric(
    "Smooth calibration error",
    "lower",
    "probability",
    f"{cite('Hu and Wu 2024', 'def. 2.5')}; {cite('Kakade and Foster 2008')}",
    (0, 1),
    how=gaps.INVERSION_TEXT,
    bootstraps=False,
    estimand=intervals.POPULATION_BELOW,
)
def sm_cal(t: Table) -> Measured:
    """Largest mean of (score - label) times a smooth function of the score; no bins, and continuous in the scores.

    max over 1-Lipschitz z with |z| <= 1 of sum (p - y) z(p) / T. It is exact up to 131,072 distinct scores; above that,
    it uses the mean scores of cells of width 1/65,536, which changes it by less than 1/65,536.
    """
    value = min(sum(_parts(t)), 1.0)

    def interval(confidence: float, seed: Seed) -> Interval:
        cells = gaps.cells(gaps.cells(t), _DRAWN_ON)

        def smooth(gap: Floats) -> Floats:
            return np.asarray(np.sum(unmatched_and_matched(cells.score, gap), axis=0))

        # The error is more than that of all rows together: this end is held to more than the confidence.
        least_high = gaps.whole(cells, (1 + confidence) / 2)
        worlds = gaps.worlds(cells, seed.generator("smooth"))
        return gaps.interval(value, worlds, smooth, confidence, least_high=least_high)

    return Measured(value, interval)


@once
def _sm_ece(t: Table, method: str) -> float:
    levels = _levels(t)
    if method == "relplot":
        return relplot_error(levels.score, levels.n, levels.pos)
    return smooth_error(levels.score, _gap(levels))


@like("sm_cal", "Smooth ECE", cite("Blasiok and Nakkiran 2023"))
def sm_ece(t: Table, *, method: Method = "exact") -> Measured:
    """ECE with a kernel instead of bins: mean absolute score - label after smoothing over neighbouring scores.

    int |sum (p - y) K(t, p) / T| dt, where K is the Gaussian reflected at 0 and 1, and its width equals the value
    (at least 8.3e-5). Each score is shared between two points of a grid of step 1/65,536, which changes the value by
    about 1e-8; above 131,072 distinct scores, the mean scores of the grid's cells are used. method=relplot gives the
    number of that package, which ends its search at a width up to 1/1024 larger and takes a mean over 200 points: the
    two differ by about 2e-5.
    """
    value = _sm_ece(t, method)

    def interval(confidence: float, seed: Seed) -> Interval:
        exact = _sm_ece(t, "exact")
        cells, width = gaps.cells(t, _WAVES_ON), max(exact, _NARROWEST)
        waves = gaps.worlds(cells, seed.generator("smooth")).mapped(lambda gap: modes_at(cells.score, gap, width))
        # Without waves that are short for it, a world's own width is a little too small.
        lost = min(exact / max(float(widths(waves.gap[None], width)[0]), 1e-300), 2.0)
        # Smoothed at one width w, a world's error is at least w just where the width that equals its error is at least
        # w.
        return gaps.interval(
            value,
            waves.searched,
            lambda modes: error_of_modes(modes, width),
            confidence,
            truth=lambda waves: np.minimum(lost * widths(waves, width), 1.0),
            least_high=gaps.whole(cells, confidence),
        )

    return Measured(min(max(value, 0.0), 1.0), interval)


@once
def _lower(t: Table) -> MeanEstimate:
    """The bound by the best test functions, and its standard error as if they had been chosen beforehand."""
    levels = _levels(t)
    mean = levels.mean_of(best_functions(levels).of)
    return MeanEstimate(mean.value - (1 / _N_CELLS if levels is not t else 0.0), mean.error)


@metric(
    "Distance to calibration, lower bound",
    "lower",
    "probability",
    (
        f"lower distance to calibration: {cite('Blasiok et al. 2023')}; a lower bound on the distance of "
        f"{cite('Hu and Wu 2024', 'def. 2.6')}"
    ),
    (0, 1),
    how="normal, from the standard error of the test functions' mean; 0 is in it unless c_emp_pvalue rejects",
    loads="scipy.optimize",
    bootstraps=False,
    estimand="the population's value of the bound: the distance itself may be larger",
)
def dist_cal_lower(t: Table) -> Measured:
    """Scores must move at least this far, on average, to become calibrated; never below half of sm_cal.

    The mean of u_y(p) for the best functions u_0, u_1 of slopes up to 1 with (1 - g) u_0(g) + g u_1(g) <= 0 on [0, 1]:
    a linear program finds them on 512 steps, and their violation between the steps (at most 2e-6) is subtracted. Never
    below max(|W|, (D |W| + 2 C) / (D + 2 B)), where W is the mean of p - y, C = sm_cal - |W|, D the range of the
    scores, and B the largest distance of a label from a score. Above 131,072 distinct scores, 1/65,536 is subtracted.
    """
    unmatched, matched = _parts(t)
    if len(t) > _MAX_EXACT:
        matched = max(matched - 1 / _N_CELLS, 0.0)
    low, high = float(t.score[0]), float(t.score[-1])
    spread, reach = high - low, max(high, 1 - low)
    bound = _lower(t)
    value = min(max(unmatched, (spread * unmatched + 2 * matched) / (spread + 2 * reach), bound.mean), 1.0)

    def interval(confidence: float, seed: Seed) -> Interval:
        low, high = intervals.normal(MeanEstimate(value, bound.error), confidence, 0.0, 1.0)
        # The best of many functions is above 0 by noise alone: 0 is outside only where calibration is rejected.
        return (0.0 if calibration.c_emp_pvalue(t) > 1 - confidence else low), high

    return Measured(value, interval)


@metric(
    "Distance to calibration, upper bound",
    "lower",
    "probability",
    f"an upper bound on the distance of {cite('Hu and Wu 2024', 'def. 2.6')}, by merging neighbouring levels",
    (0, 1),
    size_free=False,
    interval=None,
    estimand="nothing: noise adds to it at every level, so it falls with the rows and estimates no fixed quantity",
)
def dist_cal_upper(t: Table) -> float:
    """Scores become calibrated by moving at most this far, on average; never above ece_exact.

    min over partitions of the sorted levels into runs of sum |p - h(run of p)| / T, where h is the label frequency of
    the run, by dynamic programming. Above 512 levels, runs begin only at the edges of 512 equal-mass bins, or
    everywhere; above 131,072 levels, cells of width 1/65,536 are used, and 1/65,536 is added.
    """
    everywhere = t.sum(lambda block: np.abs(block.n * block.score - block.pos)) / t.total
    return min(cheapest_merge(_levels(t)) + (1 / _N_CELLS if len(t) > _MAX_EXACT else 0.0), everywhere)
