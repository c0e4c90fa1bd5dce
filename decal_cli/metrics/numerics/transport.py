"""The lower distance to calibration from below: by test functions that no calibrated coupling can use.

The distance is the least E|p - g| over all couplings of (p, y) with a g in [0, 1] such that E[y - g | g] = 0. Take two
functions u_0, u_1 on [0, 1] with slopes within [-1, 1] and (1 - g) u_0(g) + g u_1(g) <= 0 everywhere. Then
E u_y(p) <= E u_y(g) + E|p - g| <= E|p - g|: every such pair bounds the distance from below, and the best one attains it
(Blasiok, Gopalan, Hu, Nakkiran 2023, by duality). A linear program finds functions that are linear between nodes; the
violation in between is computed and subtracted, so that the bound holds for any output of the program.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decal_cli.tables.table import Floats, Table

N_STEPS = 512
"""Steps between the nodes; functions that suit the nodes exceed 0 by at most 1 / (2 N_STEPS^2) between them."""
_MAX_OWN_NODES = 256
"""Up to this many levels, each level is a node."""


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
    return valid(_program(at, _shared(at, t.score, t.n - t.pos), _shared(at, t.score, t.pos * 1.0)))


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


def _shared(at: Floats, score: Floats, weight: Floats) -> Floats:
    """Weights of scores shared between the nodes on either side: sum weight u(score) = sum shared u(at)."""
    node = np.clip(np.searchsorted(at, score, side="right") - 1, 0, len(at) - 2)
    upper = weight * (score - at[node]) / (at[node + 1] - at[node])
    k = len(at)
    return np.asarray(
        np.bincount(node, weight - upper, minlength=k) + np.bincount(node + 1, upper, minlength=k), dtype=np.float64
    )


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
    n, pos, mass = (np.concatenate(([0.0], np.cumsum(column))) for column in (t.n * 1.0, t.pos * 1.0, t.n * t.score))
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
