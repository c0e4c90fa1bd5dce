"""The isotonic decomposition of a loss, and the bounds on refinement that follow from the isotonic fit."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.metrics.confidence import Interval, holding, quantile
from decal_cli.metrics.numerics import gaps
from decal_cli.tables.cells import CellTable, LogLoss, PowerLoss
from decal_cli.tables.estimate import dot
from decal_cli.tables.isotonic import first_of_pools
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, Floats, Loss, Table

LossName = Literal["brier", "log"]

_N_DRAWS = 100
_CELLS = 2048
"""Above this many levels the parts are replayed on this many equal-mass cells."""
_WIDENED = 1.15
"""Of the interval of a part: samples vary so much more than draws of the smoothed world (docs/simulation.md)."""
_SMALL = 2.0**-10
_MIN_FLOAT = 5e-324
"""The smallest positive float: it keeps 0 out of a logarithm and changes no score."""


def _squared(score: Floats) -> Floats:
    losses = np.empty((2, len(score)))
    np.square(score, out=losses[0])
    np.square(np.subtract(1, score, out=losses[1]), out=losses[1])
    return losses


squared = PowerLoss(_squared, ((0.0, 0.0, 1.0), (1.0, -2.0, 1.0)))
"""(p - y)^2 of scores, shape (k,), at label 0 and at label 1: shape (2, k)."""


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
        # 1 - p has lost the digits of a small p.
        small = score < _SMALL
        if small.any():
            of_label[0, small] = np.log1p(-score[small])
        return np.negative(of_label, out=of_label)

    return loss if eps else LogLoss(loss)


LOSSES: dict[LossName, Loss] = {"brier": squared, "log": logarithmic()}


def need_finite_log(t: Table, advice: str = "") -> None:
    """Raise Undefined, with the count, where a score of exactly 0 or 1 is wrong."""
    if isinstance(t, CellTable):
        if t.infinite:
            raise Undefined("infinite: a row with score 0 has label 1, or one with score 1 has label 0")
        return
    at_zero = float(t.pos[0]) if t.score[0] == 0 else 0.0
    at_one = float(t.n[-1] - t.pos[-1]) if t.score[-1] == 1 else 0.0
    if at_zero + at_one > 0:
        rows = "weight of the rows" if t.weighted else "rows"
        counts = f"{at_zero:g} with score 0 and label 1, {at_one:g} with score 1 and label 0"
        raise Undefined(f"infinite: {rows} that are certain and wrong: {counts}{advice}")


class CorpParts(NamedTuple):
    """loss = mcb - dsc + unc, and refined = unc - dsc, the loss of the isotonic fit."""

    mcb: float
    dsc: float
    unc: float
    refined: float


def parts(t: Table, name: LossName = "brier") -> CorpParts:
    """The isotonic decomposition of a loss."""
    return t.cached(("corp", name), lambda table: _parts(table, LOSSES[name]))


def _parts(t: Table, loss: Loss) -> CorpParts:
    pools = t.isotonic
    at0, at1 = loss(pools.pos / pools.n)
    refined = (dot(pools.n - pools.pos, at0) + dot(pools.pos, at1)) / t.total
    unc = constant(t.base_rate, loss)
    # Never negative but for rounding: the fit is the best of all monotone ones, and the constant is one of these.
    return CorpParts(max(t.mean_of(loss).value - refined, 0.0), max(unc - refined, 0.0), unc, refined)


def constant(rate: float, loss: Loss) -> float:
    """The loss of always saying the base rate."""
    at0, at1 = loss(np.array([rate]))[:, 0]
    return float((1 - rate) * at0 + rate * at1)


class Replays(NamedTuple):
    """Parts and bounds in draws less those of the world they are drawn from, shape (draws,) each."""

    mcb: Floats
    dsc: Floats
    refined: Floats
    lower: Floats
    upper: Floats


def replays(t: Table, name: LossName, seed: Seed) -> Replays:
    """What chance does to the parts: rows and labels drawn in a smoothed world, whose own parts are known."""
    return t.cached(("replays", name, seed), lambda table: _replays(table, name, seed.generator("loss")))


def _replays(t: Table, name: LossName, rng: np.random.Generator) -> Replays:
    cells = gaps.coarse(t, BINS, _CELLS)
    chance = gaps.smoothed(cells)
    if name == "log":
        # Scores of 0 and 1 are right as far as is seen: wrong ones would cost without end.
        chance = np.where((cells.score == 0) | (cells.score == 1), cells.score, chance)
    unit = gaps.concentration(cells) * cells.n
    rows = cells.n / unit
    world = _all(Table(cells.score, cells.n * 1.0, cells.n * chance), name)
    drawn = []
    for _ in range(_N_DRAWS):
        pos, neg = unit * rng.poisson(rows * chance), unit * rng.poisson(rows * (1 - chance))
        there = pos + neg > 0
        if there.any():
            drawn.append(_all(Table(cells.score[there], (pos + neg)[there], pos[there]), name))
    errors = np.array(drawn) - world
    # The smoothed world is drawn towards the scores; its base rate, and with it how much labels vary, may be off.
    rate, own = t.base_rate, float((cells.n * chance).sum()) / cells.total
    wider = math.sqrt(max(rate * (1 - rate), 1e-300) / max(own * (1 - own), 1e-300))
    middle = errors.mean(axis=0)
    return Replays(*(middle + (errors - middle) * min(max(wider, 0.5), 2.0)).T)


def _all(t: Table, name: LossName) -> tuple[float, ...]:
    part = parts(t, name)
    return part.mcb, part.dsc, part.refined, lower_refinement(t).value, upper_refinement(t).value


def less_chance(value: float, errors: Floats, confidence: float, low: float = 0.0, high: float = math.inf) -> Interval:
    """The value less the mean error of its replays, -/+ z of their widened standard deviations; and the value itself.

    Gaps of the smoothed world are drawn towards 0, and what smaller gaps show varies less.
    """
    middle, reach = value - float(errors.mean()), _WIDENED * quantile(confidence) * float(errors.std(ddof=1))
    start, end = (min(max(edge, low), high) for edge in (middle - reach, middle + reach))
    return holding((start, end), value)


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


def concavity_gap(t: Table) -> float:
    """The largest distance; the curve is linear between scores, so it is attained at one of them."""
    at, curve = _limits(t)
    highest = curve.max(axis=0)
    # The slopes of the envelope fall: it is the isotonic fit of the slopes of the curve, upside down.
    first = first_of_pools(np.diff(at), -np.diff(highest))
    corners = np.append(first, len(at) - 1)
    envelope = np.interp(at, at[corners], highest[corners])
    return max(float((envelope - curve.min(axis=0)).max()), 0.0)


def _limits(t: Table) -> tuple[Floats, Floats]:
    """Thresholds 0, each score, 1, and the curve just below and just above them, shape (2, k); at the ends the inner.

    The cost-weighted loss (1 - t) FN + t FP of acting on scores >= t: Tasche 2021, eq. 3.3a.
    """
    missed = np.concatenate(([0.0], np.cumsum(t.pos, dtype=np.float64))) / t.total
    alarms = np.concatenate(([0.0], np.cumsum(t.n - t.pos, dtype=np.float64))) / t.total
    alarms = alarms[-1] - alarms
    below, above = ((1 - t.score) * missed[part] + t.score * alarms[part] for part in (slice(-1), slice(1, None)))
    at, curve = t.score, np.stack((below, above))
    if at[0] > 0:
        at, curve = np.append(0.0, at), np.column_stack((np.zeros(2), curve))
    else:
        curve[0, 0] = curve[1, 0]
    if at[-1] < 1:
        return np.append(at, 1.0), np.column_stack((curve, np.zeros(2)))
    curve[1, -1] = curve[0, -1]
    return at, curve
