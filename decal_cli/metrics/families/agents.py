"""What an agent with payoffs in [0, 1] loses at most by acting on the scores, over all decision tasks at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal, NamedTuple

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import Witness, metric
from decal_cli.metrics.families.levels import Levels, at_levels, levels_used
from decal_cli.metrics.numerics import chance, envelope, gaps
from decal_cli.metrics.numerics.envelope import Kink, Worst
from decal_cli.tables.table import Floats, Table

AtLevels = Annotated[Levels, "exact levels, 15 equal-mass bins, or auto: exact where the median level has 30 rows"]

_DENSE = 64
_INVERTED = (
    "test inversion: the worlds, with the observed gaps of the levels times a factor, in which the value is not "
    f"extreme; none above {_DENSE} levels"
)
_RESAMPLED = f"bias-corrected bootstrap; above {chance.CELLS} levels, of as many equal-mass cells"
_SIDE = 1e-9
Quantity = Literal["cdl", "v_cdl", "u_cal", "v_cal"]


def _curve(t: Table) -> envelope.Curve:
    return t.once(envelope.of_levels, envelope.of_levels)


def _constant(t: Table) -> envelope.Curve:
    return t.once(envelope.of_constant, envelope.of_constant)


def _cdl(t: Table) -> Worst:
    return t.once(_cdl, lambda table: _curve(table).any_kinks())


def _v_cdl(t: Table) -> Worst:
    return t.once(_v_cdl, lambda table: _curve(table).one_kink())


def _u_cal(t: Table) -> Worst:
    return t.once(_u_cal, lambda table: _constant(table).any_kinks())


def _v_cal(t: Table) -> Worst:
    return t.once(_v_cal, lambda table: _constant(table).one_kink())


def _threshold(worst: Worst) -> float:
    if not worst.kinks:
        raise Undefined("no agent loses anything")
    return worst.kinks[0].at


class WorstTask(NamedTuple):
    """The task of the worst agent: utility[i][j] of action i at outcome j, in [0, 1], and what is lost in it.

    Two actions for one kink, three for two; action i is best for scores between the kinks i - 1 and i.
    """

    utility: tuple[tuple[float, float], ...]
    loss: float
    thresholds: tuple[float, ...]


_WORST = {"cdl": _cdl, "v_cdl": _v_cdl, "u_cal": _u_cal, "v_cal": _v_cal}
_TWO_ACTIONS: dict[Quantity, Quantity] = {"cdl": "v_cdl", "v_cdl": "v_cdl", "u_cal": "v_cal", "v_cal": "v_cal"}


def worst_task(t: Table, quantity: Quantity = "cdl", *, levels: Levels = "auto") -> WorstTask:
    """The task whose agent attains cdl, v_cdl, u_cal or v_cal; pasted back as --utility it shows that loss.

    Each kink moves at most 1e-9 to the side on which the loss is larger, and stays strictly inside (0, 1). u_cal and
    v_cal are on exact levels whatever `levels` says. Undefined where nobody loses.
    """
    used = at_levels(t, levels) if quantity in ("cdl", "v_cdl") else t
    worst = _WORST[quantity](used)
    if not worst.kinks:
        raise Undefined("no agent loses anything")
    kinks = [_moved(used.score, kink) for kink in worst.kinks]
    wrong = [weight * kink for weight, kink in zip(worst.weights, kinks, strict=True)]
    right = [weight * (1 - kink) for weight, kink in zip(worst.weights, kinks, strict=True)]
    rows = [(sum(wrong[action:]), sum(right[:action])) for action in range(len(kinks) + 1)]
    largest = max(rows[0][0], rows[-1][1])
    return WorstTask(tuple((u0 / largest, u1 / largest) for u0, u1 in rows), worst.loss, tuple(kinks))


def _witness(quantity: Quantity) -> Callable[..., Witness]:
    """What a declaration takes: the worst task, and the worst of two actions where that has three."""

    def witness(t: Table, *, levels: Levels = "auto") -> Witness:
        worst = worst_task(t, quantity, levels=levels)
        two = worst if len(worst.utility) == 2 else worst_task(t, _TWO_ACTIONS[quantity], levels=levels)
        on_levels = "cfdl" if levels == "auto" else f"cfdl(levels={levels})"
        shown_by = on_levels if quantity in ("cdl", "v_cdl") else "external_regret"
        return Witness(worst.utility, worst.thresholds, (two.utility[0], two.utility[1]), two.loss, shown_by)

    return witness


def _moved(score: Floats, kink: Kink) -> float:
    """The kink on its open side, at most half way to the next score."""
    if kink.side == 0:
        return kink.at
    if kink.side > 0:
        after = int(np.searchsorted(score, kink.at, side="right"))
        return kink.at + min(_SIDE, ((float(score[after]) if after < len(score) else 1.0) - kink.at) / 2)
    before = int(np.searchsorted(score, kink.at, side="left")) - 1
    return kink.at - min(_SIDE, (kink.at - (float(score[before]) if before >= 0 else 0.0)) / 2)


def _losses(levels: Table, rate: Floats, kinks: int) -> Floats:
    """cdl (two kinks) or v_cdl (one) where the levels have these label frequencies, along the last axis."""
    if len(levels) <= _DENSE:
        return chance.of_levels(levels.score, levels.n * 1.0, levels.n * rate, kinks)
    worst = _cdl if kinks == 2 else _v_cdl
    each = (Table(levels.score, levels.n, levels.n * one) for one in np.atleast_2d(rate))
    return np.array([worst(table).loss for table in each]).reshape(rate.shape[:-1])


def _inverted(kinks: int, t: Table, levels: Levels, rng: np.random.Generator, confidence: float) -> Interval:
    used = at_levels(t, levels)
    if len(used) > _DENSE:
        raise Undefined(f"no interval above {_DENSE} levels")
    thin = used is t and levels_used(t) == "bins"
    gap = gaps.spread(t, gaps.observed(t.bins())) if thin else gaps.observed(used)

    def norm(share: Floats, gap: Floats) -> Floats:
        return _losses(used, gap + used.score, kinks)

    return gaps.inverted_interval(used, gap, norm, rng, confidence)


def _cdl_interval(t: Table, rng: np.random.Generator, *, confidence: float, levels: Levels) -> Interval:
    return _inverted(2, t, levels, rng, confidence)


@metric(
    title="Calibration decision loss",
    better="lower",
    unit="share",
    source="[C] def. 3.1, in closed form",
    range=(0, 1),
    size_free=False,
    interval=_cdl_interval,
    interval_text=_INVERTED,
    witness=_witness("cdl"),
    noisy=True,
)
def cdl(t: Table, *, levels: AtLevels = "auto") -> float:
    """The most that any decision maker loses by acting on scores instead of on frequencies; see cdl_null.

    sup over tasks with payoffs in [0, 1], of any number of actions, of the loss per row. It is twice the upper concave
    envelope, at 1/2, of the loss of the agent with threshold mu: F(mu) = sum n_i |h_i - mu| / T over the levels whose
    score q_i and frequency h_i lie on either side of mu. levels as for cfdl: exact ones, or equal-mass bins; with
    continuous scores exact levels hold one row each and show noise.
    """
    return _cdl(at_levels(t, levels)).loss


def _v_cdl_interval(t: Table, rng: np.random.Generator, *, confidence: float, levels: Levels) -> Interval:
    return _inverted(1, t, levels, rng, confidence)


@metric(
    title="Calibration decision loss, two actions",
    better="lower",
    unit="share",
    source="[C] def. 3.9, in closed form",
    range=(0, 1),
    size_free=False,
    interval=_v_cdl_interval,
    interval_text=_INVERTED,
    witness=_witness("v_cdl"),
    noisy=True,
)
def v_cdl(t: Table, *, levels: AtLevels = "auto") -> float:
    """The most that a decision maker with two actions loses by acting on scores instead of on frequencies.

    sup over mu of F(mu) / max(mu, 1 - mu), F as for cdl, payoffs in [0, 1]; at least half of cdl. cdl_threshold is
    the mu that attains it. levels as for cfdl.
    """
    return _v_cdl(at_levels(t, levels)).loss


@metric(
    title="Threshold of the agent that loses most by miscalibration",
    better="neither",
    unit="probability",
    source="[C] def. 3.9: where the supremum is attained",
    range=(0, 1),
    size_free=False,
    interval=None,
)
def cdl_threshold(t: Table, *, levels: AtLevels = "auto") -> float:
    """Decision threshold of the two-action agent that loses most by acting on scores: the one v_cdl speaks of.

    The mu that attains sup F(mu) / max(mu, 1 - mu), the lowest of several; where the loss jumps, at a score, it is
    approached from the side on which it is larger. Undefined where nobody loses.
    """
    return _threshold(_v_cdl(at_levels(t, levels)))


def _draws(kinks: int, t: Table, levels: Levels, rng: np.random.Generator) -> Floats:
    used = at_levels(t, levels)

    def draw(rng: np.random.Generator) -> Floats:
        if len(used) > _DENSE:
            return gaps.null_draws(used, lambda drawn: (_cdl if kinks == 2 else _v_cdl)(drawn).loss, rng)
        rows = np.maximum(np.rint(1 / gaps.concentration(used)), 1).astype(np.int64)
        return _losses(used, rng.binomial(rows, used.score, size=(gaps.DRAWS, len(used))) / rows, kinks)

    return t.drawn(("agents", kinks, levels), rng, draw)


def _cdl_null_interval(t: Table, rng: np.random.Generator, *, confidence: float, levels: Levels) -> Interval:
    return gaps.central(_draws(2, t, levels, rng), confidence)


@metric(
    title="Calibration decision loss of a calibrated model, any task",
    better="neither",
    unit="share",
    source="parametric bootstrap",
    range=(0, 1),
    size_free=False,
    interval=_cdl_null_interval,
    interval_text="central range of the cdl of a calibrated model",
)
def cdl_null(t: Table, rng: np.random.Generator, *, levels: AtLevels = "auto") -> float:
    """Mean cdl that a perfectly calibrated model with these scores would show, by chance alone.

    Labels are drawn from the scores of the same levels, 400 times.
    """
    return float(_draws(2, t, levels, rng).mean())


def _v_cdl_null_interval(t: Table, rng: np.random.Generator, *, confidence: float, levels: Levels) -> Interval:
    return gaps.central(_draws(1, t, levels, rng), confidence)


@metric(
    title="Calibration decision loss of a calibrated model, two actions",
    better="neither",
    unit="share",
    source="parametric bootstrap",
    range=(0, 1),
    size_free=False,
    interval=_v_cdl_null_interval,
    interval_text="central range of the v_cdl of a calibrated model",
)
def v_cdl_null(t: Table, rng: np.random.Generator, *, levels: AtLevels = "auto") -> float:
    """Mean v_cdl that a perfectly calibrated model with these scores would show, by chance alone.

    Labels are drawn from the scores of the same levels, 400 times.
    """
    return float(_draws(1, t, levels, rng).mean())


def _u_cal_interval(t: Table, rng: np.random.Generator, *, confidence: float) -> Interval:
    return chance.resampled(t, partial(chance.of_constant, kinks=2), rng, confidence, _u_cal(t).loss)


@metric(
    title="U-calibration error",
    better="lower",
    unit="share",
    source="[C] def. 2.10, [U], per row and with payoffs in [0, 1]",
    range=(0, 1),
    interval=_u_cal_interval,
    interval_text=_RESAMPLED,
    witness=_witness("u_cal"),
)
def u_cal(t: Table) -> float:
    """The most that any decision maker loses by acting on scores instead of always on the base rate.

    sup over tasks with payoffs in [0, 1] of the loss per row: twice the upper concave envelope at 1/2 of
    G(mu) = max(0, payoff of always predicting b - payoff of the scores), for the payoff 1[p > mu] (y - mu). Always on
    exact levels. [U] counts totals and payoffs in [-1, 1]: 2 T times this.
    """
    return _u_cal(t).loss


def _v_cal_interval(t: Table, rng: np.random.Generator, *, confidence: float) -> Interval:
    return chance.resampled(t, partial(chance.of_constant, kinks=1), rng, confidence, _v_cal(t).loss)


@metric(
    title="U-calibration error, two actions",
    better="lower",
    unit="share",
    source="[U] (9)-(10), per row and with payoffs in [0, 1]",
    range=(0, 1),
    interval=_v_cal_interval,
    interval_text=_RESAMPLED,
    witness=_witness("v_cal"),
)
def v_cal(t: Table) -> float:
    """The most that a decision maker with two actions loses by acting on scores instead of always on the base rate.

    sup over mu of G(mu) / max(mu, 1 - mu), G as for u_cal; at least half of u_cal. u_cal_threshold is the mu that
    attains it.
    """
    return _v_cal(t).loss


@metric(
    title="Threshold of the agent that the base rate would help most",
    better="neither",
    unit="probability",
    source="[U] (9)-(10): where the supremum is attained",
    range=(0, 1),
    interval=None,
)
def u_cal_threshold(t: Table) -> float:
    """Decision threshold of the two-action agent that loses most against the base rate: the one v_cal speaks of.

    The mu that attains sup G(mu) / max(mu, 1 - mu), the lowest of several; where the loss jumps, at a score, it is
    approached from the side on which it is larger. Undefined where nobody loses.
    """
    return _threshold(_v_cal(t))
