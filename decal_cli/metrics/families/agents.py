"""The largest loss of an agent with payoffs in [0, 1] that acts on the scores, over all decision tasks at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.errors import Undefined
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import Witness, like, metric, null_of
from decal_cli.metrics.numerics import envelope, gaps, rays
from decal_cli.metrics.numerics.at_levels import AtLevels, Levels, at_levels, need_rows
from decal_cli.metrics.numerics.envelope import Kink, Worst
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Floats, Table

_MAX_DENSE_LEVELS = 64
_INVERTED = f"{rays.INVERSION_TEXT}; none above {_MAX_DENSE_LEVELS} levels, nor for exact levels that hold few rows"
_MAX_MOVE = 1e-9
"""How far a kink moves to its open side to become a threshold."""
Quantity = Literal["cdl", "v_cdl", "u_cal", "v_cal"]


def _level_curve(t: Table) -> envelope.LossCurve:
    return t.cached(envelope.of_levels, envelope.of_levels)


def _constant_curve(t: Table) -> envelope.LossCurve:
    return t.cached(envelope.of_constant, envelope.of_constant)


def _cdl(t: Table) -> Worst:
    return t.cached(_cdl, lambda table: _level_curve(table).any_kinks())


def _v_cdl(t: Table) -> Worst:
    return t.cached(_v_cdl, lambda table: _level_curve(table).one_kink())


def _u_cal(t: Table) -> Worst:
    return t.cached(_u_cal, lambda table: _constant_curve(table).any_kinks())


def _v_cal(t: Table) -> Worst:
    return t.cached(_v_cal, lambda table: _constant_curve(table).one_kink())


_WORST = {"cdl": _cdl, "v_cdl": _v_cdl, "u_cal": _u_cal, "v_cal": _v_cal}
_TWO_ACTIONS: dict[Quantity, Quantity] = {"cdl": "v_cdl", "v_cdl": "v_cdl", "u_cal": "v_cal", "v_cal": "v_cal"}
_ON_LEVELS = {1: _v_cdl, 2: _cdl}
"""By the number of kinks."""


def _need_loss(worst: Worst) -> None:
    if not worst.kinks:
        raise Undefined("no agent loses anything")


class WorstTask(NamedTuple):
    """The task of the worst agent: utility[i][j] of action i at outcome j, in [0, 1], and the loss in this task.

    Two actions for one kink, three for two; action i is best for scores between the kinks i - 1 and i.
    """

    utility: tuple[tuple[float, float], ...]
    loss: float
    thresholds: tuple[float, ...]


def worst_task(t: Table, quantity: Quantity = "cdl", *, levels: Levels = "auto") -> WorstTask:
    """The task whose agent attains cdl, v_cdl, u_cal or v_cal; given as --utility it shows that loss.

    Each kink moves at most 1e-9 to the side on which the loss is larger, and stays strictly inside (0, 1). u_cal and
    v_cal always use exact levels. Undefined where no agent loses anything.
    """
    used = at_levels(t, levels) if quantity in ("cdl", "v_cdl") else t
    worst = _WORST[quantity](used)
    _need_loss(worst)
    kinks = [_moved(used.score, kink) for kink in worst.kinks]
    wrong = [weight * kink for weight, kink in zip(worst.weights, kinks, strict=True)]
    right = [weight * (1 - kink) for weight, kink in zip(worst.weights, kinks, strict=True)]
    rows = [(sum(wrong[action:]), sum(right[:action])) for action in range(len(kinks) + 1)]
    largest = max(rows[0][0], rows[-1][1])
    return WorstTask(tuple((u0 / largest, u1 / largest) for u0, u1 in rows), worst.loss, tuple(kinks))


def witness_of(quantity: Quantity, t: Table, levels: Levels = "auto") -> Witness:
    """The worst task, and the worst task of two actions where that has three."""
    on_levels = "cfdl" if levels == "auto" else f"cfdl(levels={levels})"
    shown_by = on_levels if quantity in ("cdl", "v_cdl") else "external_regret"

    def of(quantity: Quantity, of_two: Witness | None = None) -> Witness:
        worst = worst_task(t, quantity, levels=levels)
        return Witness(worst.utility, worst.thresholds, worst.loss, shown_by, of_two)

    any_actions = of(quantity)
    return any_actions if len(any_actions.utility) == 2 else of(quantity, of(_TWO_ACTIONS[quantity]))


def _witness(quantity: Quantity) -> Callable[..., Witness]:
    """The witness of a declaration."""

    def witness(t: Table, *, levels: Levels = "auto") -> Witness:
        return witness_of(quantity, t, levels)

    return witness


def _moved(score: Floats, kink: Kink) -> float:
    """The kink on its open side, at most half way to the next score."""
    if kink.side == 0:
        return kink.at
    if kink.side > 0:
        after = int(np.searchsorted(score, kink.at, side="right"))
        return kink.at + min(_MAX_MOVE, ((float(score[after]) if after < len(score) else 1.0) - kink.at) / 2)
    before = int(np.searchsorted(score, kink.at, side="left")) - 1
    return kink.at - min(_MAX_MOVE, (kink.at - (float(score[before]) if before >= 0 else 0.0)) / 2)


def _losses(levels: Table, rate: Floats, kinks: int) -> Floats:
    """cdl (two kinks) or v_cdl (one) where the levels have these label frequencies, along the last axis."""
    if len(levels) <= _MAX_DENSE_LEVELS:
        return envelope.losses_of_levels(levels.score, levels.n * 1.0, levels.n * rate, kinks)
    tables = (Table(levels.score, levels.n, levels.n * one) for one in np.atleast_2d(rate))
    return np.array([_ON_LEVELS[kinks](table).loss for table in tables]).reshape(rate.shape[:-1])


def _inverted(kinks: int) -> Callable[..., Interval]:
    """The interval of cdl (two kinks) or v_cdl (one)."""

    def interval(t: Table, seed: Seed, *, confidence: float, levels: Levels) -> Interval:
        used = at_levels(t, levels)
        value = _ON_LEVELS[kinks](used).loss
        if used is t:
            need_rows(t)
        cells = t if used is t else rays.cells(t)
        starts = np.arange(len(t)) if used is t else cells.bin_starts()
        bins = cells.merge_levels(starts)
        if len(bins) > _MAX_DENSE_LEVELS:
            raise Undefined(f"no interval above {_MAX_DENSE_LEVELS} levels")

        def norm(gap: Floats) -> Floats:
            return _losses(bins, np.clip(bins.score + gap * (bins.total / bins.n), 0.0, 1.0), kinks)

        worlds = rays.worlds(cells, seed.generator("agents")).summed(starts)
        return rays.interval(value, worlds, norm, confidence, widened=rays.WIDENED)

    return interval


@metric(
    "Calibration decision loss",
    "lower",
    "share",
    f"{cite('Hu and Wu 2024', 'def. 3.1')}; in closed form",
    (0, 1),
    size_free=False,
    interval=_inverted(2),
    interval_text=_INVERTED,
    witness=_witness("cdl"),
    noisy=True,
    covers=covered.OF_LEVELS_BELOW,
)
def cdl(t: Table, *, levels: AtLevels = "auto") -> float:
    """The most that any decision maker loses by acting on scores instead of on frequencies; compare it with cdl_null.

    sup over tasks with payoffs in [0, 1], of any number of actions, of the loss per row. It is twice the upper concave
    envelope, at 1/2, of the loss of the agent with threshold mu: F(mu) = sum n_i |h_i - mu| / T over the levels whose
    score q_i and frequency h_i lie on different sides of mu. levels: as for cfdl, exact levels or equal-mass bins; with
    continuous scores each exact level holds one row and shows noise.
    """
    return _cdl(at_levels(t, levels)).loss


@like(
    "cdl",
    "Calibration decision loss, two actions",
    f"{cite('Hu and Wu 2024', 'def. 3.9')}; in closed form",
    interval=_inverted(1),
    witness=_witness("v_cdl"),
)
def v_cdl(t: Table, *, levels: AtLevels = "auto") -> float:
    """The most that a decision maker with two actions loses by acting on scores instead of on frequencies.

    sup over mu of F(mu) / max(mu, 1 - mu), with F as for cdl and payoffs in [0, 1]; at least half of cdl. cdl_threshold
    is the mu that attains it. levels: as for cfdl.
    """
    return _v_cdl(at_levels(t, levels)).loss


@metric(
    "Threshold of the agent that loses most by miscalibration",
    "neither",
    "probability",
    f"{cite('Hu and Wu 2024', 'def. 3.9')}, where the supremum is attained",
    (0, 1),
    size_free=False,
    interval=None,
    covers=covered.JUMPS,
)
def cdl_threshold(t: Table, *, levels: AtLevels = "auto") -> float:
    """Decision threshold of the two-action agent that loses most by acting on scores: the agent of v_cdl.

    The mu that attains sup F(mu) / max(mu, 1 - mu), the lowest of several. Where the loss jumps, at a score, mu comes
    near that score from the side on which the loss is larger. Undefined where no agent loses anything.
    """
    worst = _v_cdl(at_levels(t, levels))
    _need_loss(worst)
    return worst.kinks[0].at


def _null_draws(kinks: int, t: Table, levels: Levels, seed: Seed) -> Floats:
    used = at_levels(t, levels)

    def draws(t: Table) -> Floats:
        rng = seed.generator("agents")
        if len(used) > _MAX_DENSE_LEVELS:
            return gaps.null_draws(used, lambda table: _ON_LEVELS[kinks](table).loss, rng)
        rows = gaps.whole_rows(used)
        return _losses(used, rng.binomial(rows, used.score, size=(gaps.N_NULL_DRAWS, len(used))) / rows, kinks)

    return t.cached(("agents", kinks, levels, seed), draws)


@null_of("cdl", "Calibration decision loss of a calibrated model, any task")
def cdl_null(t: Table, seed: Seed, *, levels: AtLevels = "auto") -> Floats:
    """Mean cdl that a perfectly calibrated model with these scores shows, by chance alone.

    Labels are drawn from the scores of the same levels, 400 times.
    """
    return _null_draws(2, t, levels, seed)


@null_of("v_cdl", "Calibration decision loss of a calibrated model, two actions")
def v_cdl_null(t: Table, seed: Seed, *, levels: AtLevels = "auto") -> Floats:
    """Mean v_cdl that a perfectly calibrated model with these scores shows, by chance alone.

    Labels are drawn from the scores of the same levels, 400 times.
    """
    return _null_draws(1, t, levels, seed)


def _over_constant(kinks: int, worst: Callable[[Table], Worst]) -> Callable[..., Interval]:
    """The interval of u_cal (two kinks) or v_cal (one)."""
    statistic = partial(envelope.losses_of_constant, kinks=kinks)

    def interval(t: Table, seed: Seed, *, confidence: float) -> Interval:
        return rays.interval_of_agents(t, statistic, seed.generator("agents"), confidence, worst(t).loss)

    return interval


@metric(
    "U-calibration error",
    "lower",
    "share",
    f"{cite('Kleinberg et al. 2023')}; {cite('Hu and Wu 2024', 'def. 2.10')}; per row, with payoffs in [0, 1]",
    (0, 1),
    interval=_over_constant(2, _u_cal),
    interval_text=rays.INVERSION_TEXT,
    witness=_witness("u_cal"),
    rarer=10,
)
def u_cal(t: Table) -> float:
    """The most that any decision maker loses by acting on scores instead of always on the base rate.

    sup over tasks with payoffs in [0, 1] of the loss per row: twice the upper concave envelope at 1/2 of
    G(mu) = max(0, payoff of always predicting b - payoff of the scores), for the payoff 1[p > mu] (y - mu). Always on
    exact levels. Kleinberg et al. 2023 sum over rows and have payoffs in [-1, 1]: their value is 2 T times this.
    """
    return _u_cal(t).loss


@like(
    "u_cal",
    "U-calibration error, two actions",
    f"{cite('Kleinberg et al. 2023', 'eq. 9, 10')}; per row, with payoffs in [0, 1]",
    interval=_over_constant(1, _v_cal),
    witness=_witness("v_cal"),
)
def v_cal(t: Table) -> float:
    """The most that a decision maker with two actions loses by acting on scores instead of always on the base rate.

    sup over mu of G(mu) / max(mu, 1 - mu), with G as for u_cal; at least half of u_cal. u_cal_threshold is the mu that
    attains it, and v_cal_kleinberg the measure of Kleinberg et al. 2023 without the division.
    """
    return _v_cal(t).loss


def _highest_interval(t: Table, seed: Seed, *, confidence: float) -> Interval:
    value = v_cal_kleinberg(t)
    rng = seed.generator("agents")
    return rays.interval_of_agents(t, envelope.highest_of_constant, rng, confidence, value, most=2.0)


@like(
    "u_cal",
    "V-calibration error",
    f"{cite('Kleinberg et al. 2023', 'eq. 10, thm. 9')}; per row",
    range=(0, 2),
    interval=_highest_interval,
)
def v_cal_kleinberg(t: Table) -> float:
    """The largest regret per row of acting on scores instead of always on the base rate, over V-shaped scoring rules.

    2 sup G(mu) over mu, with G as for u_cal, not divided by max(mu, 1 - mu) as in v_cal: the supremum, cut at 0, of the
    curve v_regret of `decal sweep`. Payoffs lie in [-1, 1]; T times this is the VCal of Kleinberg et al. 2023.
    """
    return 2 * _constant_curve(t).highest()


@like(
    "cdl_threshold",
    "Threshold of the agent that gains most from the base rate",
    f"{cite('Kleinberg et al. 2023', 'eq. 9, 10')}, where the supremum is attained",
    size_free=True,
)
def u_cal_threshold(t: Table) -> float:
    """Decision threshold of the two-action agent that loses most against the base rate: the agent of v_cal.

    The mu that attains sup G(mu) / max(mu, 1 - mu), the lowest of several. Where the loss jumps, at a score, mu comes
    near that score from the side on which the loss is larger. Undefined where no agent loses anything.
    """
    worst = _v_cal(t)
    _need_loss(worst)
    return worst.kinks[0].at
