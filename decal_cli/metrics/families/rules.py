"""Proper scoring rules: what acting on the score costs against the base rate, and against calibrated scores."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between
from decal_cli.errors import Undefined
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval, skewed
from decal_cli.metrics.declare import metric
from decal_cli.metrics.numerics import corp, rays
from decal_cli.metrics.numerics.at_levels import AtLevels, Levels, at_levels, need_rows
from decal_cli.metrics.numerics.calibration_line import calibration_line
from decal_cli.tables.estimate import MeanEstimate, dot
from decal_cli.tables.logistic import expit, log_odds
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import CellRun, Floats, Loss, Table

Rule = Literal["brier", "log", "spherical", "v"]
WhichRule = Annotated[
    Rule, "the rule: brier; log, in nats; spherical; v, of the decision maker whose threshold is the kink"
]
Kink = Annotated[float, "threshold of rule=v", Between(0, 1)]

_LEAST_BEND = {"brier": 1.0, "log": 2.0, "spherical": 0.5, "v": 0.0}
"""No divergence is smaller than this times the squared gap: half the least second derivative of the rule's utility."""
_MOST = {"brier": 1.0, "log": math.inf, "spherical": 1.0, "v": 2.0}


def _spherical(score: Floats) -> Floats:
    """1 - (probability of the label) / (length of the vector of both probabilities)."""
    length = np.hypot(score, 1 - score)
    return np.stack((1 - (1 - score) / length, 1 - score / length))


@lru_cache(maxsize=64)
def loss_of(rule: Rule, kink: float) -> Loss:
    """The loss of a rule by score and label; only rule=v knows the kink."""
    if rule == "spherical":
        return _spherical
    if rule != "v":
        return corp.LOSSES[rule]

    def v_shaped(score: Floats) -> Floats:
        side = np.where(score >= kink, 1.0, -1.0)
        return np.stack((side * kink, -side * (1 - kink)))

    return v_shaped


def _need_finite(t: Table, rule: Rule) -> None:
    if rule == "log":
        corp.need_finite_log(t)


def _regret_interval(t: Table, *, confidence: float, rule: Rule, kink: float) -> Interval:
    loss = loss_of(rule, kink)
    constant = loss(np.array([t.base_rate]))
    # The base rate is the best constant: that it is estimated itself does not matter to the first order.
    estimate = t.mean_of(lambda score: loss(score) - constant)
    centre = constant + estimate.value
    second, third = _moments(t, loss, centre)
    if second <= 0:
        raise Undefined("every row loses as much by the score as by the base rate, which shows no error")
    widened = MeanEstimate(estimate.value, estimate.error * _more_error(t, loss, centre))
    return skewed(widened, third / second**1.5, t.effective_rows, confidence)


def _more_error(t: Table, loss: Loss, centre: Floats) -> float:
    """How many times the rows' error the calibration line expects, at least 1.

    Of a few rows of one label, those with large scores carry the error and often none is seen; then the error is too
    small where the value is too high, which no skewness of these rows mends.
    """
    cells = t.cells
    try:
        line = calibration_line(cells)
    except Undefined:
        return 1.0
    chance = expit(line.intercept.mean + line.slope.mean * log_odds(cells.score))
    of_negative, of_positive = (loss(cells.score) - centre) ** 2
    seen = dot(cells.n * 1.0, of_negative) + dot(cells.pos * 1.0, of_positive - of_negative)
    expected = dot(cells.n * 1.0, of_negative + chance * (of_positive - of_negative))
    return math.sqrt(max(expected / seen, 1.0)) if seen > 0 else 1.0


def _moments(t: Table, loss: Loss, centre: Floats) -> tuple[float, float]:
    """Means over rows of the square and the cube of loss - centre, where the centre depends on the label."""
    second = third = 0.0
    for block in t.blocks():
        off = loss(block.score) - centre
        weighted = off * off
        weighted *= np.stack((block.n - block.pos, block.pos))
        second += float(weighted.sum())
        third += dot(weighted.ravel(), off.ravel())
    return second / t.total, third / t.total


@metric(
    "Regret to the base rate",
    "lower",
    "squared probability",
    cite("Kleinberg et al. 2023", "eq. 4, 5"),
    (-1, math.inf),
    interval=_regret_interval,
    interval_text=(
        "mean of a per-row difference, from its skewness and its standard error, at least the one that the "
        f"calibration line expects: {cite('Hall 1992')}"
    ),
    covers=f"{covered.POPULATION}; no interval where every row loses as much by the score as by the base rate",
    rarer=10,
)
def rule_regret(t: Table, *, rule: WhichRule = "brier", kink: Kink = 0.5) -> float:
    """Loss of the scores by a proper scoring rule, less that of always saying the base rate; below 0, they beat it.

    brier: (p - y)^2. log: -ln of the probability of the label. spherical: 1 - p_y / sqrt(p^2 + (1 - p)^2), where p_y is
    the probability of the label. v: y - kink, with the sign - where p >= kink, else +; its payoffs lie in [-1, 1], and
    its regret is the curve v_regret of `decal sweep` at the kink.
    """
    _need_finite(t, rule)
    loss = loss_of(rule, kink)
    return t.mean_of(loss).value - corp.constant(t.base_rate, loss)


def divergence(score: Floats, rate: Floats, rule: Rule, kink: float) -> Floats:
    """What a row of this chance of label 1 loses by this score, by broadcasting; never below 0."""
    loss = loss_of(rule, kink)
    of_score, of_rate = loss(score), loss(np.ravel(rate)).reshape(2, *rate.shape)
    lost = (1 - rate) * (of_score[0] - of_rate[0]) + rate * (of_score[1] - of_rate[1])
    return np.asarray(np.maximum(lost, 0.0))


def _cfdl_interval(t: Table, seed: Seed, *, confidence: float, rule: Rule, kink: float, levels: Levels) -> Interval:
    used = at_levels(t, levels)
    if used is t:
        need_rows(t)
    if rule == "log" and (used.score[0] == 0 or used.score[-1] == 1):
        raise Undefined("the loss of a certain score has no bound")
    cells = t if used is t else rays.cells(t)
    starts = np.arange(len(t)) if used is t else cells.bin_starts()
    bins = cells.merge_levels(starts)
    share = bins.n / bins.total

    def norm(gap: Floats) -> Floats:
        rate = np.clip(bins.score + gap / share, 0.0, 1.0)
        return np.asarray((divergence(bins.score, rate, rule, kink) * share).sum(axis=-1))

    worlds = rays.worlds(cells, seed.generator("rules")).summed(starts)
    least_high = _LEAST_BEND[rule] * rays.whole(cells, confidence) ** 2
    value = rule_cfdl(t, rule=rule, kink=kink, levels=levels)
    return rays.interval(value, worlds, norm, confidence, least_high=least_high, most=_MOST[rule])


@metric(
    "Calibration decision loss of a scoring rule",
    "lower",
    "squared probability",
    cite("Hu and Wu 2024", "def. 2.14, prop. 2.16"),
    (0, math.inf),
    size_free=False,
    interval=_cfdl_interval,
    interval_text=f"{rays.INVERSION_TEXT}; none for exact levels that hold few rows",
    noisy=True,
    covers=covered.OF_LEVELS_BELOW,
)
def rule_cfdl(t: Table, *, rule: WhichRule = "brier", kink: Kink = 0.5, levels: AtLevels = "auto") -> float:
    """Loss by a proper scoring rule that saying the frequency of each level, instead of its score, would remove.

    sum n_i d(h_i, q_i) / T, where d is the divergence of the rule: (h - q)^2 for brier, so that this is k2; the
    Kullback-Leibler divergence for log; 2 |h - kink| for v where the kink lies between h and q. Rules are as for
    rule_regret, levels as for cfdl.
    """
    used = at_levels(t, levels)
    _need_finite(used, rule)

    def lost(block: CellRun) -> Floats:
        return block.n * divergence(block.score, block.pos / block.n, rule, kink)

    return used.sum(lost) / used.total
