"""Losses: proper scores, their decomposition by the isotonic fit, and calibration on average."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.declarations.spec import Between
from decal_cli.errors import Undefined
from decal_cli.learn.regions import Regions
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics.declare import like, metric
from decal_cli.metrics.numerics import corp, grouping
from decal_cli.metrics.numerics.calibration_line import calibration_line
from decal_cli.metrics.numerics.corp import LossName, logarithmic, squared
from decal_cli.tables.cells import PowerLoss
from decal_cli.tables.estimate import CellRun
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Floats, Table
from decal_cli.tables.units import Estimate

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
    interval_text=intervals.MEAN,
)
def brier(t: Table) -> Estimate:
    """Mean squared difference between score and label.

    sum n_i ((1 - h_i) q_i^2 + h_i (1 - q_i)^2) / T; 0 is perfect; always saying the base rate has b (1 - b).
    """
    return t.mean_of(squared).within(0.0, 1.0)


@metric(
    "Log loss",
    "lower",
    "nats",
    f"logarithmic score: {cite('Good 1952')}",
    (0, math.inf),
    shown=True,
    interval="normal",
    interval_text=intervals.MEAN,
    rarer=5,
)
def log_loss(t: Table, *, eps: Clip = 0.0) -> Estimate:
    """Mean negative natural logarithm of the probability that the score gives to the label.

    -sum n_i (h_i ln q_i + (1 - h_i) ln (1 - q_i)) / T. It is infinite, so undefined, where a score of exactly 0
    or 1 is wrong; the reason counts these rows. Scores are clipped only where eps asks for it.
    """
    if not eps:
        corp.need_finite_log(t, "; log_loss(eps=1e-6) clips the scores")
    return t.mean_of(logarithmic(eps)).within(0.0, math.inf)


def _corp_mcb(t: Table, loss: LossName) -> float:
    if loss == "log":
        corp.need_finite_log(t)
    return corp.parts(t, loss).mcb


def _corp_mcb_interval(t: Table, seed: Seed, *, confidence: float, loss: LossName) -> intervals.Interval:
    return corp.less_chance(_corp_mcb(t, loss), corp.replays(t, loss, seed).mcb, confidence)


@metric(
    "Miscalibration (isotonic)",
    "lower",
    "squared probability",
    f"{cite('Dimitriadis et al. 2021')} (CORP)",
    (0, math.inf),
    shown=True,
    interval=_corp_mcb_interval,
    interval_text=_REPLAYED,
    covers=(
        "what the best monotone recalibration would take away in the population; the value, fitted and judged "
        "on the same rows, is too large"
    ),
)
def corp_mcb(t: Table, *, loss: WhichLoss = "brier") -> float:
    """Loss that the best monotone recalibration, fitted on these same rows, removes.

    The loss of the scores minus that of their isotonic fit: brier = corp_mcb - corp_dsc + corp_unc. It is fitted and
    evaluated on the same rows, so that a calibrated model is above 0 as well.
    """
    return _corp_mcb(t, loss)


def _corp_dsc_interval(t: Table, seed: Seed, *, confidence: float, loss: LossName) -> intervals.Interval:
    return corp.less_chance(corp.parts(t, loss).dsc, corp.replays(t, loss, seed).dsc, confidence, 0.0, _MAX_LOSS[loss])


@metric(
    "Discrimination (isotonic)",
    "higher",
    "squared probability",
    f"{cite('Dimitriadis et al. 2021')} (CORP)",
    (0, math.log(2)),
    shown=True,
    interval=_corp_dsc_interval,
    interval_text=_REPLAYED,
    covers=(
        "what the best monotone recalibration would save in the population, 0 where it is constant; the "
        "value, fitted and judged on the same rows, is too large"
    ),
    rarer=20,
)
def corp_dsc(t: Table, *, loss: WhichLoss = "brier") -> float:
    """Loss that the isotonic fit of the scores saves compared with always saying the base rate.

    The loss of the base rate minus that of the isotonic fit: brier = corp_mcb - corp_dsc + corp_unc.
    """
    return corp.parts(t, loss).dsc


def _corp_unc_interval(t: Table, *, confidence: float, loss: LossName) -> intervals.Interval:
    rate = t.base_rate
    neg2, pos2 = t.confusion().squares[0]
    squares = pos2 * (1 - rate) ** 2 + neg2 * rate**2
    rows = rate * (1 - rate) * t.total**2 / squares if squares > 0 else t.effective_rows
    low, high = intervals.wilson(rate, 1.0, rows, confidence)
    ends = [corp.constant(rate, corp.LOSSES[loss]) for rate in (low, high)]
    # It is largest at one half, and falls to either side.
    return max(min(ends), 0.0), _MAX_LOSS[loss] if low < 0.5 < high else max(ends)


@metric(
    "Uncertainty",
    "neither",
    "squared probability",
    f"{cite('Dimitriadis et al. 2021')} (CORP)",
    (0, math.log(2)),
    interval=_corp_unc_interval,
    interval_text="Wilson score interval of the base rate, both ends put into the loss",
)
def corp_unc(t: Table, *, loss: WhichLoss = "brier") -> float:
    """Loss of always saying the base rate: a property of the data, not of the model.

    b (1 - b) for the Brier score; the entropy of b with loss=log.
    """
    return corp.parts(t, loss).unc


def _refinement_loss_interval(t: Table, seed: Seed, *, confidence: float) -> intervals.Interval:
    return corp.less_chance(corp.parts(t).refined, corp.replays(t, "brier", seed).refined, confidence, 0.0, 0.25)


@metric(
    "Refinement loss",
    "lower",
    "squared probability",
    cite("Tasche 2021", "prop. 2.6"),
    (0, 0.25),
    interval=_refinement_loss_interval,
    interval_text=_REPLAYED,
    covers=(
        "what the best monotone recalibration would leave in the population; the value, fitted and judged on "
        "the same rows, is too small"
    ),
)
def refinement_loss(t: Table) -> float:
    """Brier score that remains after the best monotone recalibration of the scores.

    corp_unc - corp_dsc, the mean of f (1 - f) over the isotonic fit f: the part that no recalibration can remove.
    """
    return corp.parts(t).refined


def _irreducible_loss_interval(t: Table, regions: Regions, seed: Seed, *, confidence: float) -> intervals.Interval:
    refined = _refinement_loss_interval(t, seed, confidence=intervals.one_sided(confidence))
    grouped, (low, _) = grouping.loss(regions).mean, grouping.loss_interval(regions, confidence)
    middle, reach = sum(refined) / 2, (refined[1] - refined[0]) / 2
    high = middle - grouped + math.hypot(reach, grouped - low)
    return intervals.holding((0.0, min(max(high, 0.0), 0.25)), irreducible_loss(t, regions))


@metric(
    "Irreducible loss",
    "lower",
    "squared probability",
    cite("Tasche 2021", "prop. 2.6"),
    (-1, 1.25),
    size_free=False,
    interval=_irreducible_loss_interval,
    interval_text=f"one-sided, from those of refinement_loss and grouping_loss: {cite('Zou and Donner 2008')}",
    covers="the population's irreducible loss, which is at most the upper end: nothing says how much trees miss",
    side="at most",
)
def irreducible_loss(t: Table, regions: Regions) -> float:
    """Brier score that remains when decisions rest on the true probability, as far as the features show it.

    refinement_loss - grouping_loss, so that brier = irreducible_loss + grouping_loss + corp_mcb: what nobody can
    remove, what only the features can, and what recalibration can.
    """
    return corp.parts(t).refined - grouping.loss(regions).mean


def _refinement_lower_interval(t: Table, seed: Seed, *, confidence: float) -> intervals.Interval:
    value = corp.lower_refinement(t).value
    return corp.less_chance(value, corp.replays(t, "brier", seed).lower, confidence, 0.0, 0.25)


@metric(
    "Refinement loss, lower bound",
    "lower",
    "squared probability",
    cite("Tasche 2021", "prop. 5.5"),
    (0, 0.25),
    interval=_refinement_lower_interval,
    interval_text=_REPLAYED,
    covers="the population's value of the bound, not the refinement loss",
)
def refinement_lower(t: Table) -> float:
    """Lower bound on the refinement loss: the highest point of the Brier curve of the isotonic fit.

    max over t of the mean of (1 - t) y 1[f < t] + t (1 - y) 1[f >= t], where f is the isotonic fit.
    """
    return corp.lower_refinement(t).value


def _refinement_upper_interval(t: Table, seed: Seed, *, confidence: float) -> intervals.Interval:
    value = corp.upper_refinement(t).value
    return corp.less_chance(value, corp.replays(t, "brier", seed).upper, confidence, 0.0, 0.25)


@like("refinement_lower", "Refinement loss, upper bound", interval=_refinement_upper_interval)
def refinement_upper(t: Table) -> float:
    """Upper bound on the refinement loss: the variance left unexplained by the best single event of the isotonic fit.

    b (1 - b) (1 - corr^2) for the event {isotonic fit > v} that correlates best with the label; corr is at least 0.
    """
    return corp.upper_refinement(t).value


@metric(
    "Spiegelhalter's z",
    "zero",
    "z",
    cite("Spiegelhalter 1986"),
    size_free=False,
    interval=None,
    covers="nothing: it is a test statistic, standard normal for a calibrated model, and grows with the rows",
)
def spiegelhalter_z(t: Table) -> float:
    """Standard errors by which the Brier score exceeds the one that calibrated scores like these have on average.

    sum (y - p) (1 - 2 p) / sqrt(sum (1 - 2 p)^2 p (1 - p)); weights enter both sums (the second one squared). It is
    standard normal where the scores are calibrated.
    """

    def excess(block: CellRun) -> Floats:
        return (block.pos - block.n * block.score) * (1 - 2 * block.score)

    def variance(block: CellRun) -> Floats:
        return block.n2 * (1 - 2 * block.score) ** 2 * block.score * (1 - block.score)

    below = t.sum(variance)
    if below <= 0:
        raise Undefined("every score is 0, 1/2 or 1, where the statistic does not vary")
    return t.sum(excess) / math.sqrt(below)


def _slope_interval(t: Table, *, confidence: float) -> intervals.Interval:
    return intervals.normal(calibration_line(t).slope, confidence)


@metric(
    "Calibration slope",
    "one",
    "slope",
    cite("Cox 1958"),
    interval=_slope_interval,
    interval_text=_SANDWICH,
    covers="the slope of the population's best logistic curve",
)
def calibration_slope(t: Table) -> float:
    """Slope of the log-odds of the labels on the log-odds of the scores; below 1, the scores are too extreme.

    The maximum-likelihood slope s of logit P(y = 1) = a + s logit p. Undefined with scores of exactly 0 or 1, with one
    class only, and where a threshold separates the labels.
    """
    return calibration_line(t).slope.mean


def _intercept_interval(t: Table, *, confidence: float) -> intervals.Interval:
    return intervals.normal(calibration_line(t).intercept, confidence)


@metric(
    "Calibration intercept",
    "zero",
    "slope",
    cite("Cox 1958"),
    interval=_intercept_interval,
    interval_text=_SANDWICH,
    covers="the intercept of the population's best logistic curve",
)
def calibration_intercept(t: Table) -> float:
    """Log-odds of label 1 at a score of one half.

    The maximum-likelihood intercept a of logit P(y = 1) = a + s logit p, fitted together with the slope.
    """
    return calibration_line(t).intercept.mean


def _expected(t: Table) -> float:
    expected = t.sum(lambda block: block.n * block.score)
    if expected <= 0:
        raise Undefined("every score is 0, so that no positives are expected")
    return expected


def _observed_expected_interval(t: Table, *, confidence: float) -> intervals.Interval:
    expected = _expected(t) / t.total
    ratio = t.base_rate / expected

    def residual(score: Floats) -> Floats:
        return np.stack((-ratio * score / expected, (1 - ratio * score) / expected))

    slope = -ratio / expected
    if ratio == 0:
        return 0.0, intervals.wilson(0.0, 1.0, t.effective_rows, confidence)[1] / expected
    error = t.mean_of(PowerLoss(residual, ((0.0, slope), (1 / expected, slope)))).error
    factor = math.exp(intervals.quantile(confidence) * error / ratio)
    return ratio / factor, ratio * factor


@metric(
    "Observed to expected",
    "one",
    "share",
    "calibration in the large",
    (0, math.inf),
    interval=_observed_expected_interval,
    interval_text="normal on the log scale, by the delta method for a ratio",
)
def observed_expected(t: Table) -> float:
    """Number of positives divided by the number that the scores predict; below 1, the scores predict too many.

    sum of labels / sum of scores.
    """
    return t.positives / _expected(t)
