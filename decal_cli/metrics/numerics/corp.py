"""The isotonic decomposition of a loss, and the bounds on refinement that follow from the isotonic fit."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.metrics.numerics import gaps
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, Floats, Loss, Table, dot

LossName = Literal["brier", "log"]

_N_DRAWS = 100
_MIN_FLOAT = 5e-324
"""The smallest positive float: it keeps 0 out of a logarithm and changes no score."""


def squared(score: Floats) -> tuple[Floats, Floats]:
    """(p - y)^2 at label 0 and at label 1."""
    return score**2, (1 - score) ** 2


@lru_cache(maxsize=64)
def logarithmic(eps: float = 0.0) -> Loss:
    """-log of the probability of the label, of scores clipped to [eps, 1 - eps]."""

    def loss(score: Floats) -> tuple[Floats, Floats]:
        if eps:
            score = np.clip(score, eps, 1 - eps)
        return -np.log(np.maximum(1 - score, _MIN_FLOAT)), -np.log(np.maximum(score, _MIN_FLOAT))

    return loss


LOSSES: dict[LossName, Loss] = {"brier": squared, "log": logarithmic()}


def need_finite_log(t: Table, advice: str = "") -> None:
    """Raise Undefined, with the count, where a score of exactly 0 or 1 is wrong."""
    at_zero = float(t.pos[0]) if t.score[0] == 0 else 0.0
    at_one = float(t.n[-1] - t.pos[-1]) if t.score[-1] == 1 else 0.0
    if at_zero + at_one > 0:
        rows = "rows" if t.n2 is None else "weight of the rows"
        counts = f"with score 0 and label 1: {at_zero:g}, with score 1 and label 0: {at_one:g}"
        raise Undefined(f"infinite: {rows} {counts}{advice}")


class Parts(NamedTuple):
    """loss = mcb - dsc + unc, and refined = unc - dsc, the loss of the isotonic fit."""

    mcb: float
    dsc: float
    unc: float
    refined: float


def parts(t: Table, name: LossName = "brier") -> Parts:
    """The isotonic decomposition of a loss."""
    return t.cached(("corp", name), lambda table: _parts(table, LOSSES[name]))


def _parts(t: Table, loss: Loss) -> Parts:
    pools = t.isotonic
    at0, at1 = (np.asarray(at) for at in loss(pools.pos / pools.n))
    refined = (dot(pools.n - pools.pos, at0) + dot(pools.pos, at1)) / t.total
    unc = _constant(t, loss)
    # Never negative but for rounding: the fit is the best of all monotone ones, and the constant is one of these.
    return Parts(max(t.mean_of(loss).mean - refined, 0.0), max(unc - refined, 0.0), unc, refined)


def _constant(t: Table, loss: Loss) -> float:
    """The loss of the base rate."""
    at0, at1 = (float(np.asarray(at)[0]) for at in loss(np.array([t.base_rate])))
    return (1 - t.base_rate) * at0 + t.base_rate * at1


def errors(t: Table, name: LossName = "brier") -> Parts:
    """Standard errors of the parts, as mean per-row differences of losses with the isotonic fit held fixed."""
    return t.cached(("corp errors", name), lambda table: _errors(table, name))


def _errors(t: Table, name: LossName) -> Parts:
    """One pass for all parts: a part of a row is a signed sum of the losses of its score, its fit and the base rate."""
    loss = LOSSES[name]
    first, second, squares = np.zeros(3), np.zeros((3, 3)), 0.0
    base = [np.asarray(at) for at in loss(np.array([t.base_rate]))]
    for block, fit in t.calibrated_blocks():
        weights = block.n2 - block.pos2, block.pos2
        for weight, *losses in zip(weights, loss(block.score), loss(fit), base, strict=True):
            values = np.broadcast_arrays(*losses)
            weighted = [weight * value for value in values]
            first += [value.sum() for value in weighted]
            second += [[dot(one, other) for other in values] for one in weighted]
        squares += float(block.n2.sum())
    value = parts(t, name)

    def error(mean: float, *signs: int) -> float:
        sign = np.array(signs)
        variance = float(sign @ second @ sign - 2 * mean * (sign @ first) + mean**2 * squares)
        return math.sqrt(max(variance, 0.0)) / t.total

    return Parts(
        mcb=error(value.mcb, 1, -1, 0),
        dsc=error(value.dsc, 0, -1, 1),
        unc=error(value.unc, 0, 0, 1),
        refined=error(value.refined, 0, 1, 0),
    )


class Optimism(NamedTuple):
    """How far the loss of an isotonic fit on its own rows lies below the loss of the truth; and the noise of mcb."""

    refined: float
    mcb_error: float


def optimism(t: Table, name: LossName, seed: Seed) -> Optimism:
    """The optimism in a smoothed world, where the true loss is known: labels are drawn and fitted again."""
    return t.cached(("optimism", name, seed), lambda table: _optimism(table, name, seed.generator("loss")))


def _optimism(t: Table, name: LossName, rng: np.random.Generator) -> Optimism:
    cells, loss = gaps.coarse(t, BINS), LOSSES[name]
    chance = gaps.smoothed(cells)
    at0, at1 = (np.asarray(at) for at in loss(chance))
    truth = dot(cells.n * (1 - chance), at0) / cells.total + dot(cells.n * chance, at1) / cells.total
    draws = [parts(cells.null(rng, chance), name) for _ in range(_N_DRAWS)]
    refined = float(np.mean([part.refined for part in draws]))
    return Optimism(truth - refined, float(np.std([part.mcb for part in draws], ddof=1)))


class Event(NamedTuple):
    """The event {score >= cut}, and the value that it attains."""

    cut: float
    value: float


def lower_refinement(t: Table) -> Event:
    """max over t of the isotonic fit's Brier curve, (1 - t) FN + t FP for {fit >= t}; the cut is that t.

    The curve of a calibrated fit is concave with its kinks at the fitted values, so one of these attains it.
    """
    pools = t.isotonic
    fit = pools.pos / pools.n
    missed = np.concatenate(([0.0], np.cumsum(pools.pos, dtype=np.float64)[:-1]))
    negatives = pools.n - pools.pos
    alarms = negatives.sum(dtype=np.float64) - np.concatenate(([0.0], np.cumsum(negatives, dtype=np.float64)[:-1]))
    curve = ((1 - fit) * missed + fit * alarms) / t.total
    best = int(curve.argmax())
    return Event(float(fit[best]), float(curve[best]))


def upper_refinement(t: Table) -> Event:
    """b (1 - b) (1 - corr^2) for the event {score >= cut} of pools that correlates best with the label."""
    base = t.base_rate
    pools = t.isotonic
    if len(pools) < 2:
        return Event(math.inf, base * (1 - base))
    rows = (t.total - np.cumsum(pools.n, dtype=np.float64)[:-1]) / t.total
    hits = (t.positives - np.cumsum(pools.pos, dtype=np.float64)[:-1]) / t.total
    explained = np.maximum(hits - rows * base, 0.0) ** 2 / (rows * (1 - rows))
    best = int(explained.argmax())
    start = t.pools[best + 1]
    return Event(float(t.score[start]), max(base * (1 - base) - float(explained[best]), 0.0))
