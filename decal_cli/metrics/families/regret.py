"""Regret: utility lost by acting on the score as it is, split into what recalibration wins back and what it cannot."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from decal_cli.crossfit import probe
from decal_cli.crossfit import recalibration as crossfit
from decal_cli.crossfit.probe import Probed
from decal_cli.crossfit.regions import Regions
from decal_cli.errors import Undefined
from decal_cli.metrics.confidence import Interval, normal
from decal_cli.metrics.declare import metric
from decal_cli.metrics.numerics import grouping
from decal_cli.metrics.numerics.grouping import Bounds
from decal_cli.spec import COUNT
from decal_cli.tables.table import BINS, Estimate, Floats, Table
from decal_cli.task import BinaryTask

Bins = Annotated[int, "equal-mass bins", COUNT]

_REPLAYED = "normal; error of the procedure in 200 replicates, labels drawn from the smoothed calibration curve"
_JITTERED = "bias-corrected normal, bins drawn 400 times with their errors; the upper end also covers what trees miss"
_BRACKET = "for the population's regret: from the low end of the lower bound to the high end of the upper bound"
_REGRET = (
    "for the population's regret: from the low end of gain_post_training, which cannot exceed it, to the high end of "
    "calibration regret and upper bound together"
)
_HELD_OUT = "normal; error of what held-out labels say, widened for folds that learn from each other"


def calibration_regret(rate: Floats, below: Floats, above: Floats, threshold: Floats | float) -> Floats:
    """Regret of acting on p in bins of these frequencies, per unit of u_delta; shape (.., bins) to (..).

    below, above: shares of all rows that are in the bin and below, or at and above, the decision threshold.
    """
    return (np.where(rate >= threshold, below, above) * np.abs(rate - threshold)).sum(axis=-1)


def _sides(t: Table, levels: Table, task: BinaryTask) -> tuple[Floats, Floats]:
    """Shares of all rows in each bin below, and at or above, the decision threshold; it cuts at most one bin."""
    now = t.confusion(task.decision_threshold)
    below = np.clip(now.tn + now.fn - (np.cumsum(levels.n) - levels.n), 0, levels.n)
    return below / t.total, (levels.n - below) / t.total


@metric(
    title="Calibration regret",
    better="lower",
    unit="utility",
    source="[R] def. 3.6",
    range=(0, 1),
    size_free=False,
    shown=True,
    interval="bootstrap",
)
def regret_calibration(t: Table, task: BinaryTask, *, bins: Bins = BINS) -> float:
    """Utility per decision lost by acting on p as it is instead of on the calibrated p; biased upward by noise.

    u_delta * mean |c(bin) - t*| over the rows where c(bin) >= t* and p >= decision threshold disagree, c the frequency
    of label 1 in 15 equal-mass bins. Noise alone makes bins cross t*: decide on gain_recalibration.
    """
    levels = t.bins(bins)
    below, above = _sides(t, levels, task)
    return task.u_delta * float(calibration_regret(levels.pos / levels.n, below, above, task.threshold))


def _scaled(task: BinaryTask, interval: Interval) -> Interval:
    return task.u_delta * interval[0], task.u_delta * interval[1]


def _replayed(t: Table, task: BinaryTask, rng: np.random.Generator, *, confidence: float) -> Interval:
    gain = crossfit.crossfitted_gain(t, task.threshold, task.decision_threshold, rng)
    errors = crossfit.gain_errors(t, task.threshold, task.decision_threshold, rng)
    return _scaled(task, normal(Estimate(gain, float(errors.std())), confidence, -1.0, 1.0))


@metric(
    title="Gain of recalibration",
    better="neither",
    unit="utility",
    source="cross-fitted [R] def. 3.6; 5 folds",
    range=(-1, 1),
    size_free=False,
    shown=True,
    interval=_replayed,
    interval_text=_REPLAYED,
)
def gain_recalibration(t: Table, task: BinaryTask, rng: np.random.Generator) -> float:
    """Utility per decision to expect from recalibrating, judged on rows that the recalibration has not seen.

    Isotonic recalibration learned on four fifths of the rows decides the last fifth; mean utility over acting on p,
    over five folds. Negative where there is nothing to win and noise costs something. Its interval is for the mean
    gain, in the population, of the five decision rules learned.
    """
    return task.u_delta * crossfit.crossfitted_gain(t, task.threshold, task.decision_threshold, rng)


def _crossing(t: Table, task: BinaryTask, rng: np.random.Generator, *, confidence: float) -> Interval:
    value = threshold_adjusted(t, task)
    errors = crossfit.threshold_errors(t, task.threshold, rng)
    return normal(Estimate(value, float(errors.std())), confidence, 0.0, 1.0)


@metric(
    title="Adjusted threshold",
    better="neither",
    unit="score",
    source="[R] prop. 3.3",
    range=(0, 1),
    interval=_crossing,
    interval_text=_REPLAYED,
)
def threshold_adjusted(t: Table, task: BinaryTask) -> float:
    """Score from which to decide 1: acting on p from here on is acting on the recalibrated p from t* on.

    The smallest score whose isotonic fit is at least t*. The smallest score of all where every fit is; undefined where
    none is: then deciding 0 always is best.
    """
    fitted = t.isotonic.pos / t.isotonic.n
    reached = np.flatnonzero(fitted >= task.threshold)
    if not len(reached):
        raise Undefined(
            f"no score reaches t* = {task.threshold:g} once recalibrated (highest {fitted[-1]:.3g}): decide 0"
        )
    return float(t.score[t.pools[reached[0]]])


def _loss_interval(regions: Regions, *, confidence: float) -> Interval:
    low, high = normal(grouping.loss(regions), confidence, -1.0, 1.0)
    return low, min(high + grouping.missed(regions, confidence), 1.0)


@metric(
    title="Grouping loss",
    better="lower",
    unit="squared probability",
    source="[P]; [R] sec. 3.2; estimated as in [P] eq. 12",
    range=(-1, 1),
    size_free=False,
    shown=True,
    interval=_loss_interval,
    interval_text="normal, with second-order term; the upper end also covers what trees on so few rows miss",
)
def grouping_loss(regions: Regions) -> float:
    """Variance of the true probability among rows of one score, as far as the features show it; 0 or below: none seen.

    Trees of at most 5 leaves within 15 equal-mass bins, grown on one half of the rows and counted on the other; the
    noise of the leaves and the spread of the isotonic fit within a bin are taken off. On the scale of (p - y)^2.
    """
    return grouping.loss(regions).mean


def _bounds(regions: Regions, task: BinaryTask) -> Bounds:
    return grouping.estimated_bounds(regions, task.threshold)


def _lower_interval(regions: Regions, task: BinaryTask, rng: np.random.Generator, *, confidence: float) -> Interval:
    return _scaled(task, grouping.bracket(regions, task.threshold, rng, confidence)[0])


def _upper_interval(regions: Regions, task: BinaryTask, rng: np.random.Generator, *, confidence: float) -> Interval:
    low, high = grouping.bracket(regions, task.threshold, rng, confidence)[1]
    return _scaled(task, (low, min(high, 0.5)))


def _middle_interval(regions: Regions, task: BinaryTask, rng: np.random.Generator, *, confidence: float) -> Interval:
    lower, upper = grouping.bracket(regions, task.threshold, rng, confidence)
    return _scaled(task, (lower[0], upper[1]))


@metric(
    title="Grouping regret, lower bound",
    better="lower",
    unit="utility",
    source="[R] thm. 3.4",
    range=(0, 1),
    size_free=False,
    interval=_lower_interval,
    interval_text=_JITTERED,
)
def regret_grouping_lower(regions: Regions, task: BinaryTask) -> float:
    """Utility per decision that acting on the best possible probability would surely add to recalibration.

    Mean over 15 bins of u_delta [GL - Vmin]+, Vmin = (1 - c) (c - t*) where c >= t*, else c (t* - c); GL the bin's
    grouping loss cut to [0, c (1 - c)], c its frequency of label 1.
    """
    return task.u_delta * float(_bounds(regions, task).lower)


@metric(
    title="Grouping regret, upper bound",
    better="lower",
    unit="utility",
    source="[R] thm. 3.5",
    range=(0, 0.5),
    size_free=False,
    interval=_upper_interval,
    interval_text=_JITTERED,
)
def regret_grouping_upper(regions: Regions, task: BinaryTask) -> float:
    """Utility per decision that acting on the best possible probability could at most add to recalibration.

    Mean over 15 bins of u_delta / 2 (sqrt(GL + (c - t*)^2) - |c - t*|), GL the grouping loss that the features show.
    """
    return task.u_delta * float(_bounds(regions, task).upper)


@metric(
    title="Grouping regret",
    better="lower",
    unit="utility",
    source="[R] def. 3.6",
    range=(0, 1),
    size_free=False,
    shown=True,
    interval=_middle_interval,
    interval_text=_BRACKET,
)
def regret_grouping(regions: Regions, task: BinaryTask) -> float:
    """Utility per decision lost, even once recalibrated, because rows of one score differ; above 0 by construction.

    The middle of regret_grouping_lower and regret_grouping_upper. Noise alone makes it positive: decide on
    gain_beyond.
    """
    return task.u_delta * float(_bounds(regions, task).middle)


def _regret_interval(
    t: Table, regions: Regions, probed: Probed, task: BinaryTask, rng: np.random.Generator, *, confidence: float
) -> Interval:
    judged = grouping.bin_losses(regions).judged
    below, above = (side[judged] for side in _sides(t, t.bins(BINS), task))

    def calibration(rate: Floats) -> Floats:
        return calibration_regret(rate, below, above, task.threshold)

    lower, upper = grouping.bracket(regions, task.threshold, rng, confidence, calibration)
    try:
        won = _altogether(probed, task)
    except Undefined:
        return _scaled(task, (lower[0], upper[1]))
    low = min(max(normal(won, confidence)[0], 0.0), regret(t, regions, task) / task.u_delta)
    return _scaled(task, (low, max(low, upper[1])))


@metric(
    title="Regret",
    better="lower",
    unit="utility",
    source="[R] def. 3.6",
    range=(0, 2),
    size_free=False,
    shown=True,
    interval=_regret_interval,
    interval_text=_REGRET,
)
def regret(t: Table, regions: Regions, task: BinaryTask) -> float:
    """Utility per decision lost against acting on the best possible probability; biased upward by noise.

    regret_calibration + regret_grouping.
    """
    return regret_calibration(t, task) + regret_grouping(regions, task)


@metric(
    title="Grouping regret at worst",
    better="lower",
    unit="utility",
    source="[R] thm. 3.5 with GL = c (1 - c)",
    range=(0, 0.5),
    size_free=False,
    interval="bootstrap",
)
def regret_grouping_worst(t: Table, task: BinaryTask, *, bins: Bins = BINS) -> float:
    """Utility per decision that perfect knowledge of every label would add to recalibration: a ceiling, no estimate.

    regret_grouping_upper with the largest grouping loss there can be, c (1 - c) in a bin of frequency c. It is all that
    can be said without features.
    """
    levels = t.bins(bins)
    rate = levels.pos / levels.n
    return task.u_delta * float(grouping.bounds(rate * (1 - rate), rate, levels.n / t.total, task.threshold).upper)


def _beyond(probed: Probed, task: BinaryTask) -> Estimate:
    return probe.gain_beyond(probed, task.threshold)


def _beyond_interval(probed: Probed, task: BinaryTask, *, confidence: float) -> Interval:
    return _scaled(task, normal(_beyond(probed, task), confidence, -1.0, 1.0))


@metric(
    title="Gain beyond recalibration",
    better="neither",
    unit="utility",
    source="honest counterpart of [R] def. 3.6; how it was chosen: docs/probe.md",
    range=(-1, 1),
    size_free=False,
    shown=True,
    interval=_beyond_interval,
    interval_text=_HELD_OUT,
)
def gain_beyond(probed: Probed, task: BinaryTask) -> float:
    """Utility per decision that post-training on the features can be expected to add to recalibration.

    Ridge regression of y on the features, their squares and the isotonic fit, recalibrated, decides rows that it has
    not seen (5 folds), against the isotonic fit of the same folds. Over the rows on which the two differ, the mean of
    +-u_delta (y - t*) and the mean of the same with a probability in place of y are averaged: label-based and
    model-based. What neither line nor square of a feature shows, products of features above all, it does not see.
    """
    return task.u_delta * _beyond(probed, task).mean


def _altogether(probed: Probed, task: BinaryTask) -> Estimate:
    return probe.gain_altogether(probed, task.threshold, task.decision_threshold)


def _altogether_interval(probed: Probed, task: BinaryTask, *, confidence: float) -> Interval:
    return _scaled(task, normal(_altogether(probed, task), confidence, -1.0, 1.0))


@metric(
    title="Gain of post-training",
    better="neither",
    unit="utility",
    source="honest counterpart of [R] def. 3.6; how it was chosen: docs/probe.md",
    range=(-1, 1),
    size_free=False,
    shown=True,
    interval=_altogether_interval,
    interval_text=_HELD_OUT,
)
def gain_post_training(probed: Probed, task: BinaryTask) -> float:
    """Utility per decision to expect from recalibration and post-training on the features together.

    The same estimate as gain_beyond, against acting on p as it is: the mean of what held-out labels and what the
    model's own probability, recalibrated once more, say that the changed decisions are worth.
    """
    return task.u_delta * _altogether(probed, task).mean
