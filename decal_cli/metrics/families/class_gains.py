"""Held-out gains for rows of several classes: of recalibration, and of the features on top of it."""

from __future__ import annotations

import numpy as np

from decal_cli.crossfit.class_folds import ClassProbed, Recalibrated
from decal_cli.crossfit.probe import WIDENED
from decal_cli.crossfit.probe import gain_post_training as summed
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval, normal
from decal_cli.metrics.declare import for_classes
from decal_cli.metrics.families.actions import row_utility
from decal_cli.metrics.numerics import class_decisions, regret_intervals
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.table import Estimate, Floats
from decal_cli.task import ClassDecision


def _won(c: ClassTable, decision: ClassDecision, fitted: Recalibrated | ClassProbed) -> Floats:
    """What deciding by fitted probabilities is worth at each row's label; computed once."""

    def won() -> Floats:
        return np.asarray(np.array(decision.utility)[class_decisions.actions_of(fitted.score, decision), c.label])

    return c.cached(("won", decision, fitted), won)


def _mean(c: ClassTable, decision: ClassDecision, gain: Floats) -> Estimate:
    """The mean gain; a row that could have been missed gains or loses half of what one decision can be worth."""
    return c.mean(gain, (np.array([half]) for half in (-decision.unit / 2, decision.unit / 2)))


def _recalibration(c: ClassTable, decision: ClassDecision, recalibrated: Recalibrated) -> Estimate:
    return _mean(c, decision, _won(c, decision, recalibrated) - row_utility(c, decision))


def _interval(decision: ClassDecision, gain: Estimate, confidence: float) -> Interval:
    return normal(gain, confidence, -decision.unit, decision.unit)


def _recalibration_interval(
    c: ClassTable, decision: ClassDecision, recalibrated: Recalibrated, *, confidence: float
) -> Interval:
    return _interval(decision, _recalibration(c, decision, recalibrated), confidence)


@for_classes(
    "gain_recalibration",
    interval=_recalibration_interval,
    interval_text=regret_intervals.HELD_OUT,
    covers=covered.LEARNED,
)
def gain_recalibration(c: ClassTable, decision: ClassDecision, recalibrated: Recalibrated) -> float:
    """Expected gain in utility per decision from recalibrating the probabilities, on held-out rows.

    In each of five folds, a scaling fitted to the other four decides the rows of the fold: temperature, structured
    vector or structured matrix scaling, whichever has the lowest log loss on held-out rows of the other folds.
    """
    return _recalibration(c, decision, recalibrated).mean


def _over_constant(c: ClassTable, decision: ClassDecision, recalibrated: Recalibrated) -> Estimate:
    always = np.array(decision.utility)[class_decisions.best_constant(c, decision), c.label]
    return _mean(c, decision, _won(c, decision, recalibrated) - always)


def _over_constant_interval(
    c: ClassTable, decision: ClassDecision, recalibrated: Recalibrated, *, confidence: float
) -> Interval:
    return _interval(decision, _over_constant(c, decision, recalibrated), confidence)


@for_classes("gain_over_constant", interval=_over_constant_interval, interval_text=regret_intervals.HELD_OUT)
def gain_over_constant(c: ClassTable, decision: ClassDecision, recalibrated: Recalibrated) -> float:
    """Expected gain in utility per decision of the recalibrated probabilities over the best constant action."""
    return _over_constant(c, decision, recalibrated).mean


def _beyond(c: ClassTable, decision: ClassDecision, recalibrated: Recalibrated, probed: ClassProbed) -> Estimate:
    mean, error = _mean(c, decision, _won(c, decision, probed) - _won(c, decision, recalibrated))
    # Its weights are learned on what other folds hold out, which were fitted to rows of this one.
    return Estimate(mean, WIDENED * error)


def _beyond_interval(
    c: ClassTable, decision: ClassDecision, recalibrated: Recalibrated, probed: ClassProbed, *, confidence: float
) -> Interval:
    return _interval(decision, _beyond(c, decision, recalibrated, probed), confidence)


@for_classes(
    "gain_beyond", interval=_beyond_interval, interval_text=regret_intervals.WIDENED_HELD_OUT, covers=covered.LEARNED
)
def gain_beyond(c: ClassTable, decision: ClassDecision, recalibrated: Recalibrated, probed: ClassProbed) -> float:
    """Expected gain in utility per decision from post-training on the features, beyond recalibration.

    A multinomial regression on the probabilities and the features, mixed with the recalibrated probabilities as in
    `blend`, decides held-out rows (5 folds); it is compared with the recalibrated decisions of the same folds.
    """
    return _beyond(c, decision, recalibrated, probed).mean


def _post_training_interval(
    c: ClassTable, decision: ClassDecision, recalibrated: Recalibrated, probed: ClassProbed, *, confidence: float
) -> Interval:
    parts = _recalibration(c, decision, recalibrated), _beyond(c, decision, recalibrated, probed)
    return _interval(decision, summed(*parts), confidence)


@for_classes(
    "gain_post_training",
    interval=_post_training_interval,
    interval_text=regret_intervals.OF_SUM,
    covers=f"{covered.LEARNED}, over acting on the probabilities as they are",
)
def gain_post_training(
    c: ClassTable, decision: ClassDecision, recalibrated: Recalibrated, probed: ClassProbed
) -> float:
    """Expected gain in utility per decision from recalibration and post-training on the features together.

    gain_recalibration + gain_beyond, so that the three always add up; the ends of their intervals need not.
    """
    return gain_recalibration(c, decision, recalibrated) + gain_beyond(c, decision, recalibrated, probed)
