"""Limited capacity: what the rows that can be acted on are worth, where one can act on so many of them only."""

from __future__ import annotations

import math

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.learn.held_out import need_rows_to_hold_out
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics.at_capacity import (
    AMOUNT_RANKING,
    SCORE_RANKING,
    AtCapacity,
    RowsAtCapacity,
    WorthAtCapacity,
    threshold_interval,
)
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import Measured, family, like, metric
from decal_cli.metrics.families.regret import need_amounts
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import NO_POSITIVES
from decal_cli.tables.units import Estimate

family("capacity", __doc__)


_WILSON = f"{intervals.WILSON}, with the error of a share whose threshold moves with the rows"
LINEAR = "normal, from what every row adds to first order, with the threshold that moves with the rows"
LISTED = f"{intervals.POPULATION}, where the same share of its rows can be acted on"


@metric(
    "Capture at capacity",
    "higher",
    "share",
    "recall at k",
    (0, 1),
    interval="wilson",
    how=_WILSON,
    estimand=LISTED,
    rarer=5,
)
def capture(at: AtCapacity) -> Estimate:
    """Share of the rows with label 1 that are acted on when the highest scores get the places.

    Rows of label 1 acted on / rows of label 1. Rows that tie for the last places share them by expectation; with a
    task, rows below its decision threshold are not acted on, even if places are free.
    """
    return at.captured_of(at.rows.units.mean(at.label), NO_POSITIVES)


@like("capture", "Precision at capacity", "precision at k")
def precision_at_capacity(at: AtCapacity) -> Estimate:
    """Share of label 1 among the rows that are acted on when the highest scores get the places.

    Rows of label 1 acted on / rows acted on; ties and the decision threshold as for capture.
    """
    # A full list gains no place by one more row, unless places come with rows.
    acted = at.of_acted(np.ones(len(at.label)), np.ones(int(at.lists.full.sum())))
    return at.captured_of(acted, "no row is acted on")


def _lift_interval(at: AtCapacity, *, confidence: float) -> Interval:
    value = lift(at)
    if value.value <= 0:
        raise Undefined("no row of label 1 is acted on")
    factor = math.exp(intervals.quantile(confidence) * value.error / value.value)
    return value.value / factor, value.value * factor


@like(
    "capture",
    "Lift at capacity",
    "lift at k",
    range=(0, math.inf),
    interval=_lift_interval,
    how="normal for its logarithm, from what every row adds to first order",
    rarer=10,
)
def lift(at: AtCapacity) -> Estimate:
    """How many times more label 1 is among the rows that are acted on than among all rows.

    precision_at_capacity / base rate. 1: no better than a random choice of as many rows.
    """
    base_rate = at.rows.units.mean(at.label)
    if base_rate.value <= 0:
        raise Undefined(NO_POSITIVES)
    return (precision_at_capacity(at) / base_rate).within(0.0, math.inf)


@metric(
    "Utility at capacity",
    "higher",
    "utility",
    "worked by hand: expected utility of acting on the highest scores as far as there are places",
    interval="normal",
    how=LINEAR,
    estimand=LISTED,
)
def utility_at_capacity(at: WorthAtCapacity) -> Estimate:
    """Mean utility per row when only so many rows can be acted on, those where acting is expected to win most.

    expected_utility with decision 1 for the rows that have a place and reach the decision threshold, else 0. The
    highest scores have the places; where rows have stakes of their own, those with the highest
    p (U11 - U01) - (1 - p) (U00 - U10), with p the score and U the utilities of the row.
    """
    return at.utility


@like(
    "utility_at_capacity",
    "Cost of the limited capacity",
    "worked by hand: expected_utility - utility_at_capacity",
    better="neither",
    range=(-1, 1),
)
def capacity_cost(at: WorthAtCapacity) -> Estimate:
    """Utility per row that is lost because not every row that reaches the decision threshold can be acted on.

    expected_utility - utility_at_capacity. Below 0 where acting on the rows without a place would lose utility.
    """
    return at.cost


@metric(
    "Worth of one more place",
    "neither",
    "utility",
    "shadow price of the capacity; frequency at the threshold: local linear regression, Fan 1993",
    (-1, 1),
    size_free=False,
    how=(
        "normal, from the noise of the labels around the threshold and that of the threshold; none where it "
        "rests on fewer than 10 rows"
    ),
    estimand="the population's utility of acting on the row that is next",
)
def shadow_price(at: WorthAtCapacity) -> Measured:
    """Utility that one more place would add: what acting on the next row is worth, by the labels of rows like it.

    u_delta (q - t*), where q is the frequency of label 1 at the score of the next row, by a straight line through the
    rows with scores around it; where rows have stakes of their own, the same line through what acting turned out to be
    worth on rows with about the same expected gain. Of several lists the mean, of one more place in each. 0 where
    places are free.
    """
    return Measured(at.price, lambda confidence, _: at.price_interval(confidence))


def _threshold(at: AtCapacity) -> Measured:
    """The mean over lists of the lowest rank that is acted on."""

    def interval(confidence: float, seed: Seed) -> Interval:
        if not at.lists.full.any():
            raise Undefined("places are free, so that the decision threshold is what counts")
        return threshold_interval(at.lists, confidence)

    return Measured(float(at.lists.threshold.mean()), interval)


@like(
    "threshold_adjusted",
    "Threshold at capacity",
    "the k-th largest score",
    how="that of a quantile (Woodruff 1952); with several lists, of the mean of their thresholds",
    estimand=f"{intervals.POPULATION}: the score from which on there is this share of its rows",
)
def capacity_threshold(at: AtCapacity) -> Measured:
    """Lowest score that is acted on: the k-th largest one, or the decision threshold where places are free.

    With several lists, such as those of days, the mean of their thresholds.
    """
    if not at.lists.by_score:
        raise Undefined("rows are ranked by what acting on them is expected to win, which least_gain is about")
    return _threshold(at)


family(
    "places",
    "Limited capacity where every row has utilities of its own: rows are acted on by what that is expected to win.",
)


@metric(
    "Least expected gain that has a place",
    "neither",
    "utility",
    "the k-th largest expected gain",
    size_free=False,
    how="that of a quantile (Woodruff 1952); with several lists, of the mean of their thresholds",
    estimand=LISTED,
)
def least_gain(at: WorthAtCapacity) -> Measured:
    """Lowest expected gain of acting that is acted on: the k-th largest one, or 0 where places are free.

    The expected gain of a row is p (U11 - U01) - (1 - p) (U00 - U10) with its own utilities; of more actions or
    classes, what the best action that needs a place is expected to be worth more than the best one that needs none.
    With several lists, such as those of days, the mean of their lowest ones.
    """
    if at.lists.by_score:
        raise Undefined("rows are ranked by their score, which capacity_threshold is about")
    return _threshold(at)


@like("utility_at_capacity", "Capture of value at capacity", "value detection rate at k", unit="share", range=(0, 1))
def value_capture(at: RowsAtCapacity) -> Estimate:
    """Share of the rows with label 1 that are acted on, each counted by what missing it costs.

    Sum of the cost of a miss over rows of label 1 acted on / the same over all rows of label 1.
    """
    whole = at.rows.units.mean(at.value)
    if whole.value <= 0 or float(at.value.min()) < 0:
        raise Undefined("missing the rows of label 1 costs nothing")
    return (at.of_value / whole).within(0.0, 1.0)


def _other(at: RowsAtCapacity, ranking: str) -> RowsAtCapacity:
    if ranking == AMOUNT_RANKING:
        need_amounts(at.utilities)
    if ranking not in at.selection.beside:
        need_rows_to_hold_out(at.lists.rows)
        raise Undefined("there is no list in that order")
    return RowsAtCapacity(at.utilities, at.selection.beside[ranking], at.whole)


@like(
    "utility_at_capacity",
    "Utility at capacity, ranked by score",
    "worked by hand: utility_at_capacity with the rows in order of their scores",
    better="neither",
    size_free=False,
)
def eu_score_ranking(at: RowsAtCapacity) -> Estimate:
    """Mean utility per row if the places go to the highest scores among the rows that reach their own threshold.

    As utility_at_capacity, but what a row is worth says only whether it is acted on, not which of the rows are first.
    """
    return _other(at, SCORE_RANKING).utility


@like(
    "eu_score_ranking",
    "Utility at capacity, ranked by amount",
    "worked by hand: eu_by_amount as far as there are places",
)
def eu_amount_ranking(at: RowsAtCapacity) -> Estimate:
    """Mean utility per row if the places go to the rows that cost most to miss, whatever their score; needs no model.

    As eu_by_amount, of which the largest amounts have the places.
    """
    return _other(at, AMOUNT_RANKING).utility


@like(
    "utility_at_capacity",
    "Gain over ranking by score",
    "utility_at_capacity - eu_score_ranking, paired",
    size_free=False,
    how=f"{LINEAR}; paired",
)
def gain_over_score_ranking(at: RowsAtCapacity) -> Estimate:
    """Utility per row that is won by giving the places by expected gain, over giving them by the score alone.

    utility_at_capacity - eu_score_ranking.
    """
    return at.utility - _other(at, SCORE_RANKING).utility


@like(
    "gain_over_score_ranking",
    "Gain over ranking by amount",
    "utility_at_capacity - eu_amount_ranking, paired",
    less_same="utility_at_capacity",
)
def gain_over_amount_ranking(at: RowsAtCapacity) -> Estimate:
    """Utility per row that is won by giving the places by expected gain, over giving them by the amount alone.

    utility_at_capacity - eu_amount_ranking. Where it is not above 0, the score says nothing that the amount does not.
    """
    return at.utility - _other(at, AMOUNT_RANKING).utility
