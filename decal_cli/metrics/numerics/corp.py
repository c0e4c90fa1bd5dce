"""The isotonic decomposition of a loss, and the bounds on refinement that follow from the isotonic fit."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.metrics.numerics import gaps
from decal_cli.tables.design import dot
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, Floats, Loss, Table

LossName = Literal["brier", "log"]

_N_DRAWS = 100
_MIN_FLOAT = 5e-324
"""The smallest positive float: it keeps 0 out of a logarithm and changes no score."""


def squared(score: Floats) -> Floats:
    """(p - y)^2 of scores, shape (k,), at label 0 and at label 1: shape (2, k)."""
    losses = np.empty((2, len(score)))
    np.square(score, out=losses[0])
    np.square(np.subtract(1, score, out=losses[1]), out=losses[1])
    return losses


@lru_cache(maxsize=64)
def logarithmic(eps: float = 0.0) -> Loss:
    """-log of the probability of the label, of scores clipped to [eps, 1 - eps]."""

    def loss(score: Floats) -> Floats:
        if eps:
            score = np.clip(score, eps, 1 - eps)
        of_label = np.empty((2, len(score)))
        np.subtract(1, score, out=of_label[0])
        of_label[1] = score
        np.log(np.maximum(of_label, _MIN_FLOAT, out=of_label), out=of_label)
        return np.negative(of_label, out=of_label)

    return loss


LOSSES: dict[LossName, Loss] = {"brier": squared, "log": logarithmic()}


def need_finite_log(t: Table, advice: str = "") -> None:
    """Raise Undefined, with the count, where a score of exactly 0 or 1 is wrong."""
    at_zero = float(t.pos[0]) if t.score[0] == 0 else 0.0
    at_one = float(t.n[-1] - t.pos[-1]) if t.score[-1] == 1 else 0.0
    if at_zero + at_one > 0:
        rows = "weight of the rows" if t.weighted else "rows"
        counts = f"{at_zero:g} with score 0 and label 1, {at_one:g} with score 1 and label 0"
        raise Undefined(f"infinite: {rows} that are certain and wrong: {counts}{advice}")


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
    at0, at1 = loss(pools.pos / pools.n)
    refined = (dot(pools.n - pools.pos, at0) + dot(pools.pos, at1)) / t.total
    unc = _constant(t, loss)
    # Never negative but for rounding: the fit is the best of all monotone ones, and the constant is one of these.
    return Parts(max(t.mean_of(loss).mean - refined, 0.0), max(unc - refined, 0.0), unc, refined)


def _constant(t: Table, loss: Loss) -> float:
    """The loss of the base rate."""
    at0, at1 = loss(np.array([t.base_rate]))[:, 0]
    return float((1 - t.base_rate) * at0 + t.base_rate * at1)


def errors(t: Table, name: LossName = "brier") -> Parts:
    """Standard errors of the parts, as mean per-row differences of losses with the isotonic fit held fixed."""
    return t.cached(("corp errors", name), lambda table: _errors(table, name))


def _errors(t: Table, name: LossName) -> Parts:
    """One pass for all parts: a part of a row is a signed sum of the losses of its score, its fit and the base rate."""
    loss = LOSSES[name]
    base = loss(np.array([t.base_rate]))
    moments = t.moments(((block, (loss(block.score), loss(fit), base)) for block, fit in t.calibrated_blocks()), 3)

    def error(*signs: float) -> float:
        return moments.estimate(t.total, signs).error

    return Parts(mcb=error(1, -1, 0), dsc=error(0, -1, 1), unc=error(0, 0, 1), refined=error(0, 1, 0))


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
    at0, at1 = loss(chance)
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
