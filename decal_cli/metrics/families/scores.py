"""Scores of predictions: losses, their decomposition by the isotonic fit, calibration on average, and scoring rules."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Annotated, Any, Literal, NamedTuple, get_args

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between
from decal_cli.errors import Undefined
from decal_cli.learn.regions import Regions
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import gaps, grouping
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import Biased, Measured, family, like, metric
from decal_cli.metrics.gaps import AtLevels, at_levels, need_rows
from decal_cli.tables import estimate
from decal_cli.tables.cells import CellTable, SummedLoss
from decal_cli.tables.estimate import CellRun, MeanEstimate, dot
from decal_cli.tables.isotonic import first_of_pools
from decal_cli.tables.logistic import climb, expit, log_odds, separated
from decal_cli.tables.memo import once
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, Floats, Loss, Table
from decal_cli.tables.units import Estimate, run_of_each

LossName = Literal["brier", "log"]

_N_DRAWS = 100
_CELLS = 2048
"""Above this many levels the parts are replayed on this many equal-mass cells."""
_WIDENED = 1.15
"""Factor on the errors of parts: samples vary so much more than draws of the smoothed world (docs/simulation.md)."""
_FLAT = 1e-12
"""Losses that vary no more than this are all alike but for rounding."""
_SMALL = 2.0**-10
_MIN_FLOAT = 5e-324
"""The smallest positive float: it keeps 0 out of a logarithm and changes no score."""


def _squared(score: Floats) -> Floats:
    losses = np.empty((2, len(score)))
    np.square(score, out=losses[0])
    np.square(np.subtract(1, score, out=losses[1]), out=losses[1])
    return losses


squared = SummedLoss(_squared, ((0.0, 0.0, 1.0), (1.0, -2.0, 1.0)))
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

    return loss if eps else SummedLoss(loss)


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
        rows = "share of the rows by weight" if t.weighted else "rows"
        wrong = ((at_zero, "with score 0 and label 1"), (at_one, "with score 1 and label 0"))
        counts = (f"{n / t.total:.2g} {what}" if t.weighted else f"{n:,g} {what}" for n, what in wrong if n > 0)
        raise Undefined(f"infinite: {rows} that are certain and wrong: {', '.join(counts)}{advice}")


class CorpParts(NamedTuple):
    """loss = mcb - dsc + unc, and refined = unc - dsc, the loss of the isotonic fit."""

    mcb: float
    dsc: float
    unc: float
    refined: float


@once
def corp_parts(t: Table, name: LossName) -> CorpParts:
    """The isotonic decomposition of a loss."""
    loss, pools = LOSSES[name], t.isotonic
    at0, at1 = loss(pools.pos / pools.n)
    refined = (dot(pools.n - pools.pos, at0) + dot(pools.pos, at1)) / t.total
    unc = constant_loss(t.base_rate, loss)
    # Never negative but for rounding: the fit is the best of all monotone ones, and the constant is one of these.
    return CorpParts(max(t.mean_of(loss).value - refined, 0.0), max(unc - refined, 0.0), unc, refined)


def _label(score: Floats) -> Floats:
    """The label itself: 0 and 1 at each score, shape (2, k)."""
    return np.repeat([[0.0], [1.0]], len(score), axis=1)


def constant_loss(rate: float, loss: Loss) -> float:
    """The loss of always saying the base rate."""
    at0, at1 = loss(np.array([rate]))[:, 0]
    return float((1 - rate) * at0 + rate * at1)


Part = Literal["mcb", "dsc", "refined", "lower", "upper"]


@once
def _replays(t: Table, name: LossName, seed: Seed) -> dict[Part, Floats]:
    """Parts and bounds in draws of a smoothed world, less those of that world, (draws,) each: what chance adds."""
    cells, rng = gaps.cells(t, gaps.most_cells(t, BINS, _CELLS)), seed.generator("loss")
    chance = gaps.smoothed(cells)
    if name == "log":
        # Scores of 0 and 1 are right as far as is seen: wrong ones would cost without end.
        chance = np.where((cells.score == 0) | (cells.score == 1), cells.score, chance)
    unit = cells.n / cells.rows_of_cells
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
    errors = middle + (errors - middle) * min(max(wider, 0.5), 2.0) * _between(cells, name)
    return dict(zip(get_args(Part), errors.T, strict=True))


def _between(t: Table, name: LossName) -> Floats:
    """How many times as much parts vary in clusters as in as many rows as the errors of labels count, (parts,).

    Where the scores tell clusters apart, label less score varies within clusters alone, and losses between them too. To
    first order a part is the mean of a loss by the fit. `mcb` is of second order where the score is calibrated: 1.
    """
    if not t.design.clustered:
        return np.ones(1)
    pools, loss = t.isotonic, LOSSES[name]
    fit, pool = pools.pos / pools.n, run_of_each(t.pools, len(t))
    cut = fit[_first_highest(_lower_curve(pools))]
    # The first pool on either side of the event that explains most.
    sides = np.array([0, _first_highest(_explained(pools)) + 1][: len(pools)])
    event = pools.merge_levels(sides)
    of_event = (event.pos / event.n)[run_of_each(sides, len(pools))]
    refined = loss(fit)
    parts = (
        loss(np.array([t.base_rate])) - refined,
        refined,
        np.stack((cut * (fit >= cut), (1 - cut) * (fit < cut))),
        squared(of_event),
    )
    return np.array([1.0, *(_times_as_much(t, values[:, pool].ravel()) for values in parts)])


def _first_highest(values: Floats) -> int:
    """The place of the highest value, the first of those that are equal but for rounding; 0 where there is none."""
    return int(np.argmax(values >= values.max() * (1 - _FLAT))) if len(values) else 0


def _times_as_much(t: Table, values: Floats) -> float:
    """The error of a mean of values of each label and level, by clusters, over that of as many rows by themselves."""
    mean, square = t.units.mean(values), np.concatenate(t.squares_of_labels)
    alone = math.sqrt(dot(square, (values - mean.value) ** 2)) / t.total
    return mean.seen / alone if alone > _FLAT else 1.0


def _all(t: Table, name: LossName) -> tuple[float, ...]:
    part = corp_parts(t, name)
    return part.mcb, part.dsc, part.refined, lower_refinement(t), upper_refinement(t)


def less_chance(t: Table, part: Part, value: float, name: LossName, high: float = math.inf) -> Measured:
    """A part with its interval: the value less the mean error of its replays, -/+ z of their widened deviations.

    The interval always holds the value. It is widened because gaps of the smoothed world are drawn towards 0, and parts
    of smaller gaps vary less.
    """

    def chance(_: float, seed: Seed) -> float:
        errors = _replays(t, name, seed)
        # The loss, mcb + refined, and that of the base rate, dsc + refined, have no error on average: less their luck.
        fair = np.stack((errors["mcb"], errors["dsc"])) + errors["refined"]
        luck, middle = fair.mean(axis=1), errors[part].mean()
        slopes = np.linalg.lstsq((fair.T - luck), errors[part] - middle, rcond=None)[0]
        return float(middle - slopes @ luck)

    def interval(confidence: float, seed: Seed) -> Interval:
        errors = _replays(t, name, seed)[part]
        middle = value - float(errors.mean())
        half_width = _WIDENED * intervals.quantile(confidence) * float(errors.std(ddof=1))
        return intervals.holding(intervals.within((middle - half_width, middle + half_width), (0.0, high)), value)

    return Biased(value, interval, chance)


def lower_refinement(t: Table) -> float:
    """max over t of the isotonic fit's Brier curve, (1 - t) FN + t FP for {fit >= t}.

    The curve of a calibrated fit is concave with its kinks at the fitted values, so one of these attains it.
    """
    return float(_lower_curve(t.isotonic).max())


def _lower_curve(pools: Table) -> Floats:
    """The Brier curve at the fitted value of each pool, (k,)."""
    fit = pools.pos / pools.n
    missed = gaps.running(pools.pos)[:-1]
    negatives = pools.n - pools.pos
    alarms = negatives.sum(dtype=np.float64) - gaps.running(negatives)[:-1]
    return np.asarray(((1 - fit) * missed + fit * alarms) / pools.total)


def upper_refinement(t: Table) -> float:
    """b (1 - b) (1 - corr^2) for the event {score >= cut} of pools that correlates best with the label."""
    base = t.base_rate
    return max(base * (1 - base) - float(_explained(t.isotonic).max(initial=0.0)), 0.0)


def _explained(pools: Table) -> Floats:
    """The variance of labels that the event of scoring above each pool but the last explains, (k - 1,)."""
    rows = (pools.total - np.cumsum(pools.n, dtype=np.float64)[:-1]) / pools.total
    hits = (pools.positives - np.cumsum(pools.pos, dtype=np.float64)[:-1]) / pools.total
    return np.asarray(np.maximum(hits - rows * pools.base_rate, 0.0) ** 2 / (rows * (1 - rows)))


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
    missed = gaps.running(t.pos) / t.total
    alarms = gaps.running(t.n - t.pos) / t.total
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


_TOLERANCE, _AFTER_CELLS = 1e-8, 1e-5
"""The tolerances of a Newton step, as in `climb`: of few levels, and of many that start where their cells ended."""


class CalibrationLine(NamedTuple):
    """logit P(y = 1) = intercept + slope * logit p, each with its sandwich standard error."""

    intercept: MeanEstimate
    slope: MeanEstimate


@once
def calibration_line(t: Table) -> CalibrationLine:
    """The maximum-likelihood fit. Errors: Undefined, where there is none."""
    _check(t)
    start, slopes = climb(partial(_slopes, t.cells), np.array([0.0, 1.0]), _TOLERANCE)
    if len(t.cells) < len(t):
        start, slopes = climb(partial(_slopes, t), start, _AFTER_CELLS)
    _, curvature, squares, *missed = slopes
    inverse = np.linalg.inv(curvature)
    # Rows that could have been missed are of label 0, or of label 1.
    alike = estimate.MISSED_ROWS * t.unit**2 / t.total
    each = [inverse @ (squares + alike * of_label) @ inverse for of_label in missed]
    errors = np.sqrt(np.maximum(np.max([np.diag(one) for one in each], axis=0), 0.0))
    return CalibrationLine(*map(MeanEstimate, start.tolist(), errors.tolist()))


def _check(t: Table) -> None:
    t.need_both_classes()
    at_ends = (float(t.n[0]) if t.score[0] == 0 else 0.0) + (float(t.n[-1]) if t.score[-1] == 1 else 0.0)
    if at_ends:
        rows = f"{at_ends / t.total:.2g} of the rows, by weight," if t.weighted else f"{at_ends:g} rows"
        raise Undefined(f"{rows} have a score of exactly 0 or 1, which has no logit")
    if len(t) < 2:
        raise Undefined("every score is the same")
    if separated(t.pos, t.n):
        raise Undefined("a threshold separates the labels, so the likelihood has no maximum")


def _slopes(t: Table, at: Floats) -> tuple[Floats, ...]:
    """Gradient and curvature of the log-likelihood at a line, and summed squares of the gradients of rows.

    These are of the rows, and then as if each row were of label 0, or of label 1. One pass over the levels.
    """
    total: Any = 0.0
    for b in t.blocks():
        x = log_odds(b.score)
        fit = expit(at[0] + at[1] * x)
        miss, hit = fit**2, (1 - fit) ** 2
        rows = b.n * fit
        weights = b.pos - rows, rows * (1 - fit), b.pos2 * hit + (b.n2 - b.pos2) * miss, b.n * miss, b.n * hit
        total = total + np.array([(each.sum(), dot(each, x), dot(each * x, x)) for each in weights])
    return total[0, :2], *(each[[[0, 1], [1, 2]]] for each in total[1:])


family("loss", "Losses: proper scores, their decomposition by the isotonic fit, and calibration on average.")


WhichLoss = Annotated[LossName, "the loss that is decomposed; log is in nats"]
Clip = Annotated[float, "clip scores to [eps, 1 - eps], 0 < eps < 0.5; 0: never", Between(0, 0.5)]

_MAX_LOSS = {"brier": 0.25, "log": math.log(2)}
"""The loss of always saying one half: no base rate loses more."""

_REPLAYED = (
    "normal, about the value less what chance adds to it, and the value itself; chance from 100 draws of rows and "
    "labels in a smoothed world"
)
_SANDWICH = "normal, from the sandwich standard error of the logistic fit"


@metric(
    "Brier score",
    "lower",
    "squared probability",
    cite("Tasche 2021", "eq. 4.2a"),
    (0, 1),
    shown=True,
    interval="normal",
    how=intervals.MEAN,
)
def brier(t: Table) -> Estimate:
    """Mean squared difference between score and label.

    sum n_i ((1 - h_i) q_i^2 + h_i (1 - q_i)^2) / T; 0 is perfect; always saying the base rate has b (1 - b).
    """
    return t.mean_of(squared).within(0.0, 1.0)


@like("brier", "Log loss", f"logarithmic score: {cite('Good 1952')}", unit="nats", range=(0, math.inf), rarer=5)
def log_loss(t: Table, *, eps: Clip = 0.0) -> Estimate:
    """Mean negative natural logarithm of the probability that the score gives to the label.

    -sum n_i (h_i ln q_i + (1 - h_i) ln (1 - q_i)) / T. It is infinite, so undefined, where a score of exactly 0
    or 1 is wrong; the reason counts these rows. Scores are clipped only where eps asks for it.
    """
    if not eps:
        need_finite_log(t, "; log_loss(eps=1e-6) clips the scores")
    return t.mean_of(logarithmic(eps)).within(0.0, math.inf)


@metric(
    "Miscalibration (isotonic)",
    "lower",
    "squared probability",
    f"{cite('Dimitriadis et al. 2021')} (CORP)",
    (0, math.inf),
    shown=True,
    how=_REPLAYED,
    estimand=(
        "what the best monotone recalibration would take away in the population; the value, fitted and judged "
        "on the same rows, is too large"
    ),
)
def corp_mcb(t: Table, *, loss: WhichLoss = "brier") -> Measured:
    """Loss that the best monotone recalibration, fitted on these same rows, removes.

    The loss of the scores minus that of their isotonic fit: brier = corp_mcb - corp_dsc + corp_unc. It is fitted and
    evaluated on the same rows, so that a calibrated model is above 0 as well.
    """
    if loss == "log":
        need_finite_log(t)
    return less_chance(t, "mcb", corp_parts(t, loss).mcb, loss)


@like(
    "corp_mcb",
    "Discrimination (isotonic)",
    better="higher",
    range=(0, math.log(2)),
    estimand=(
        "what the best monotone recalibration would save in the population, 0 where it is constant; the "
        "value, fitted and judged on the same rows, is too large"
    ),
    rarer=20,
)
def corp_dsc(t: Table, *, loss: WhichLoss = "brier") -> Measured:
    """Loss that the isotonic fit of the scores saves compared with always saying the base rate.

    The loss of the base rate minus that of the isotonic fit: brier = corp_mcb - corp_dsc + corp_unc.
    """
    return less_chance(t, "dsc", corp_parts(t, loss).dsc, loss, _MAX_LOSS[loss])


@metric(
    "Uncertainty",
    "neither",
    "squared probability",
    f"{cite('Dimitriadis et al. 2021')} (CORP)",
    (0, math.log(2)),
    how="Wilson score interval of the base rate, both ends put into the loss",
)
def corp_unc(t: Table, *, loss: WhichLoss = "brier") -> Measured:
    """Loss of always saying the base rate: a property of the data, not of the model.

    b (1 - b) for the Brier score; the entropy of b with loss=log.
    """

    def interval(confidence: float, seed: Seed) -> Interval:
        # As one level, whose share of label 1 varies between rows or clusters whatever their scores are.
        low, high = t.merge_levels(np.array([0])).mean_of(_label).wilson(confidence)
        ends = [constant_loss(rate, LOSSES[loss]) for rate in (low, high)]
        # It is largest at one half, and falls to either side.
        return max(min(ends), 0.0), _MAX_LOSS[loss] if low < 0.5 < high else max(ends)

    return Measured(corp_parts(t, loss).unc, interval)


@like(
    "corp_mcb",
    "Refinement loss",
    cite("Tasche 2021", "prop. 2.6"),
    range=(0, 0.25),
    shown=False,
    estimand=(
        "what the best monotone recalibration would leave in the population; the value, fitted and judged on "
        "the same rows, is too small"
    ),
)
def refinement_loss(t: Table) -> Measured:
    """Brier score that remains after the best monotone recalibration of the scores.

    corp_unc - corp_dsc, the mean of f (1 - f) over the isotonic fit f: the part that no recalibration can remove.
    """
    return less_chance(t, "refined", corp_parts(t, "brier").refined, "brier", 0.25)


@metric(
    "Irreducible loss",
    "lower",
    "squared probability",
    cite("Tasche 2021", "prop. 2.6"),
    (-1, 1.25),
    size_free=False,
    how=f"one-sided, from those of refinement_loss and grouping_loss: {cite('Zou and Donner 2008')}",
    estimand="the population's irreducible loss, which is at most the upper end: nothing says how much trees miss",
    side="at most",
)
def irreducible_loss(t: Table, regions: Regions) -> Measured:
    """Brier score that remains when decisions rest on the true probability, as far as the features show it.

    refinement_loss - grouping_loss, so that brier = irreducible_loss + grouping_loss + corp_mcb: what nobody can
    remove, what only the features can, and what recalibration can.
    """
    refined, grouped = refinement_loss(t), grouping.loss(regions).mean
    value = refined.value - grouped

    def interval(confidence: float, seed: Seed) -> Interval:
        low, high = refined.interval(intervals.one_sided(confidence), seed)
        least = grouping.loss_interval(regions, confidence)[0]
        high = (low + high) / 2 - grouped + math.hypot((high - low) / 2, grouped - least)
        return intervals.holding((0.0, min(max(high, 0.0), 0.25)), value)

    return Measured(value, interval)


@like(
    "refinement_loss",
    "Refinement loss, lower bound",
    cite("Tasche 2021", "prop. 5.5"),
    estimand="the population's value of the bound, not the refinement loss",
)
def refinement_lower(t: Table) -> Measured:
    """Lower bound on the refinement loss: the highest point of the Brier curve of the isotonic fit.

    max over t of the mean of (1 - t) y 1[f < t] + t (1 - y) 1[f >= t], where f is the isotonic fit.
    """
    return less_chance(t, "lower", lower_refinement(t), "brier", 0.25)


@like("refinement_lower", "Refinement loss, upper bound")
def refinement_upper(t: Table) -> Measured:
    """Upper bound on the refinement loss: the variance left unexplained by the best single event of the isotonic fit.

    b (1 - b) (1 - corr^2) for the event {isotonic fit > v} that correlates best with the label; corr is at least 0.
    """
    return less_chance(t, "upper", upper_refinement(t), "brier", 0.25)


@metric(
    "Spiegelhalter's z",
    "zero",
    "z",
    cite("Spiegelhalter 1986"),
    size_free=False,
    interval=None,
    estimand="nothing: it is a test statistic, standard normal for a calibrated model, and grows with the rows",
)
def spiegelhalter_z(t: Table) -> float:
    """Standard errors by which the Brier score exceeds the one that calibrated scores like these have on average.

    sum (y - p) (1 - 2 p) / sqrt(sum (1 - 2 p)^2 p (1 - p)); weights enter both sums (the second one squared), and of
    clusters the second one is times their design effect. It is standard normal where the scores are calibrated.
    """

    def excess(block: CellRun) -> Floats:
        return (block.pos - block.n * block.score) * (1 - 2 * block.score)

    def variance(block: CellRun) -> Floats:
        return block.n2 * (1 - 2 * block.score) ** 2 * block.score * (1 - block.score)

    below = t.sum(variance)
    if below <= 0:
        raise Undefined("every score is 0, 1/2 or 1, where the statistic does not vary")
    return t.sum(excess) / math.sqrt(below)


@metric(
    "Calibration slope",
    "one",
    "slope",
    cite("Cox 1958"),
    how=_SANDWICH,
    estimand="the slope of the population's best logistic curve",
)
def calibration_slope(t: Table) -> Measured:
    """Slope of the log-odds of the labels on the log-odds of the scores; below 1, the scores are too extreme.

    The maximum-likelihood slope s of logit P(y = 1) = a + s logit p. Undefined with scores of exactly 0 or 1, with one
    class only, and where a threshold separates the labels.
    """
    return _of_line(calibration_line(t).slope)


def _of_line(estimate: MeanEstimate) -> Measured:
    return Measured(estimate.mean, lambda confidence, _: intervals.normal(estimate, confidence))


@like(
    "calibration_slope",
    "Calibration intercept",
    better="zero",
    estimand="the intercept of the population's best logistic curve",
)
def calibration_intercept(t: Table) -> Measured:
    """Log-odds of label 1 at a score of one half.

    The maximum-likelihood intercept a of logit P(y = 1) = a + s logit p, fitted together with the slope.
    """
    return _of_line(calibration_line(t).intercept)


MAX_RELATIVE_ERROR = 2.0
"""Beyond so many times the value its standard error says nothing of a ratio: an interval would span orders of size."""


@metric(
    "Observed to expected",
    "one",
    "share",
    "calibration in the large",
    (0, math.inf),
    how="normal on the log scale, by the delta method for a ratio",
)
def observed_expected(t: Table) -> Measured:
    """Number of positives divided by the number that the scores predict; below 1, the scores predict too many.

    sum of labels / sum of scores.
    """
    expected = t.sum(lambda block: block.n * block.score) / t.total
    if expected <= 0:
        raise Undefined("every score is 0, so that no positives are expected")
    ratio = t.base_rate / expected

    def interval(confidence: float, seed: Seed) -> Interval:
        if ratio == 0:
            return 0.0, intervals.wilson(0.0, t.effective_rows, confidence)[1] / expected

        def residual(score: Floats) -> Floats:
            return np.stack((-ratio * score / expected, (1 - ratio * score) / expected))

        slope = -ratio / expected
        error = t.mean_of(SummedLoss(residual, ((0.0, slope), (1 / expected, slope)))).error
        if error > MAX_RELATIVE_ERROR * ratio:
            raise Undefined("has a standard error of more than twice its value: too few rows of label 1 count")
        factor = math.exp(intervals.quantile(confidence) * error / ratio)
        return ratio / factor, ratio * factor

    return Measured(ratio, interval)


family(
    "rules",
    "Proper scoring rules: what acting on the score costs against the base rate, and against calibrated scores.",
)


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
        return LOSSES[rule]

    def v_shaped(score: Floats) -> Floats:
        side = np.where(score >= kink, 1.0, -1.0)
        return np.stack((side * kink, -side * (1 - kink)))

    return v_shaped


def _more_error(t: Table, loss: Loss, centre: Floats, unit: Floats) -> float:
    """How many times the rows' error the calibration line expects, at least 1. unit: weight of a row by label, (2,).

    Of a few rows of one label, those with large scores carry the error and often none is seen; then the error is too
    small where the value is too high, which no skewness of these rows mends.
    """
    cells = t.cells
    try:
        line = calibration_line(cells)
    except Undefined:
        return 1.0
    chance = expit(line.intercept.mean + line.slope.mean * log_odds(cells.score))

    def variance(pos: Floats) -> float:
        weight, off = np.stack((cells.n - pos, pos)), loss(cells.score) - centre
        if cells.design.share_known:
            off = off - ((weight * off).sum(axis=1) / np.maximum(weight.sum(axis=1), 1e-300))[:, None]
        return float(unit @ (weight * off**2).sum(axis=1))

    seen, expected = variance(cells.of_labels[1]), variance(cells.n * chance)
    return math.sqrt(max(expected / seen, 1.0)) if seen > 0 else 1.0


@metric(
    "Regret to the base rate",
    "lower",
    "squared probability",
    cite("Kleinberg et al. 2023", "eq. 4, 5"),
    (-1, math.inf),
    how=(
        "mean of a per-row difference, from its skewness and its standard error, at least the one that the "
        f"calibration line expects: {cite('Hall 1992')}"
    ),
    estimand=f"{intervals.POPULATION}; no interval where every row loses as much by the score as by the base rate",
    rarer=10,
)
def rule_regret(t: Table, *, rule: WhichRule = "brier", kink: Kink = 0.5) -> Measured:
    """Loss of the scores by a proper scoring rule, less that of always saying the base rate; below 0, they beat it.

    brier: (p - y)^2. log: -ln of the probability of the label. spherical: 1 - p_y / sqrt(p^2 + (1 - p)^2), where p_y is
    the probability of the label. v: y - kink, with the sign - where p >= kink, else +; its payoffs lie in [-1, 1], and
    its regret is the curve v_regret of `decal sweep` at the kink.
    """
    if rule == "log":
        need_finite_log(t)
    loss = loss_of(rule, kink)

    def interval(confidence: float, seed: Seed) -> Interval:
        constant = loss(np.array([t.base_rate]))
        # The base rate is the best constant: that it is estimated itself does not matter to the first order.
        estimate = t.mean_of(lambda score: loss(score) - constant)
        centre = constant + estimate.value
        total, first, second, third = np.zeros((4, 2))
        for block in t.blocks():
            off, weight = loss(block.score) - centre, np.stack((block.n - block.pos, block.pos))
            for moment in (total, first, second, third):
                moment += weight.sum(axis=1)
                weight = weight * off
        if t.design.share_known:
            # Only the rows within a label are drawn.
            mean = first / np.maximum(total, 1e-300)
            second, third = second - mean * first, third - 3 * mean * second + 2 * mean**2 * first
        unit = t.unit_of_labels if t.design.share_known else np.full(2, t.unit)
        variance = float(unit @ second)
        if variance <= 0:
            raise Undefined("every row loses as much by the score as by the base rate, which shows no error")
        widened = MeanEstimate(estimate.value, estimate.error * _more_error(t, loss, centre, unit))
        return intervals.skewed(widened, float(unit**2 @ third) / variance**1.5, confidence)

    return Measured(t.mean_of(loss).value - constant_loss(t.base_rate, loss), interval)


def divergence(score: Floats, rate: Floats, rule: Rule, kink: float) -> Floats:
    """What a row of this chance of label 1 loses by this score, by broadcasting; never below 0."""
    loss = loss_of(rule, kink)
    of_score, of_rate = loss(score), loss(np.ravel(rate)).reshape(2, *rate.shape)
    lost = (1 - rate) * (of_score[0] - of_rate[0]) + rate * (of_score[1] - of_rate[1])
    return np.asarray(np.maximum(lost, 0.0))


@metric(
    "Calibration decision loss of a scoring rule",
    "lower",
    "squared probability",
    cite("Hu and Wu 2024", "def. 2.14, prop. 2.16"),
    (0, math.inf),
    size_free=False,
    how=f"{gaps.INVERSION_TEXT}; none for exact levels that hold few rows",
    bootstraps=False,
    estimand=intervals.OF_LEVELS_BELOW,
)
def rule_cfdl(t: Table, *, rule: WhichRule = "brier", kink: Kink = 0.5, levels: AtLevels = "auto") -> Measured:
    """Loss by a proper scoring rule that saying the frequency of each level, instead of its score, would remove.

    sum n_i d(h_i, q_i) / T, where d is the divergence of the rule: (h - q)^2 for brier, so that this is k2; the
    Kullback-Leibler divergence for log; 2 |h - kink| for v where the kink lies between h and q. Rules are as for
    rule_regret, levels as for cfdl.
    """
    used = at_levels(t, levels)
    if rule == "log":
        need_finite_log(used)

    def lost(block: CellRun) -> Floats:
        return block.n * divergence(block.score, block.pos / block.n, rule, kink)

    value = used.sum(lost) / used.total

    def interval(confidence: float, seed: Seed) -> Interval:
        if used is t:
            need_rows(t)
        t.need_both_classes()
        if rule == "log" and (used.score[0] == 0 or used.score[-1] == 1):
            raise Undefined("the loss of a certain score has no bound")
        cells, worlds = gaps.worlds_of(t, used, seed.generator("rules"))
        share = used.n / used.total

        def norm(gap: Floats) -> Floats:
            rate = np.clip(used.score + gap / share, 0.0, 1.0)
            return np.asarray((divergence(used.score, rate, rule, kink) * share).sum(axis=-1))

        least_high = _LEAST_BEND[rule] * gaps.whole(cells, confidence) ** 2
        return gaps.interval(value, worlds, norm, confidence, least_high=least_high, most=_MOST[rule])

    return Measured(value, interval)
