"""Limited capacity: what the rows that can be acted on are worth, where one can act on so many of them only."""

from __future__ import annotations

import math

from decal_cli.errors import Undefined
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import like, metric
from decal_cli.metrics.numerics import at_capacity
from decal_cli.metrics.numerics.at_capacity import AtCapacity, WorthAtCapacity
from decal_cli.tables.units import Estimate

_WILSON = f"{intervals.WILSON}, with the error of a share whose threshold moves with the rows"
LINEAR = "normal, from what every row adds to first order, with the threshold that moves with the rows"
LISTED = f"{covered.POPULATION}, where the same share of its rows can be acted on"


FREE = "places are free, so that the decision threshold is what counts"


_NO_POSITIVES = "no row has label 1"
_NO_ONE = "no row is acted on"


@metric(
    "Capture at capacity",
    "higher",
    "share",
    "recall at k",
    (0, 1),
    interval="wilson",
    interval_text=_WILSON,
    covers=LISTED,
    rarer=5,
)
def capture(at: AtCapacity) -> Estimate:
    """Share of the rows with label 1 that are acted on when the highest scores get the places.

    Rows of label 1 acted on / rows of label 1. Rows that tie for the last places share them by expectation; with a
    task, rows below its decision threshold are not acted on, even if places are free.
    """
    return at.share(at.positives, at.adds_captured, at.weight * at.label, _NO_POSITIVES)


@like("capture", "Precision at capacity", "precision at k")
def precision_at_capacity(at: AtCapacity) -> Estimate:
    """Share of label 1 among the rows that are acted on when the highest scores get the places.

    Rows of label 1 acted on / rows acted on; ties and the decision threshold as for capture.
    """
    return at.share(at.acted, at.adds_captured, at.adds_acted, _NO_ONE)


def _lift_interval(at: AtCapacity, *, confidence: float) -> Interval:
    value = lift(at)
    if value.value <= 0:
        raise Undefined("no row of label 1 is acted on")
    reach = math.exp(intervals.quantile(confidence) * value.error / value.value)
    return value.value / reach, value.value * reach


@like(
    "capture",
    "Lift at capacity",
    "lift at k",
    range=(0, math.inf),
    interval=_lift_interval,
    interval_text="normal for its logarithm, from what every row adds to first order",
    rarer=10,
)
def lift(at: AtCapacity) -> Estimate:
    """How many times more label 1 is among the rows that are acted on than among all rows.

    precision_at_capacity / base rate. 1: no better than a random choice of as many rows.
    """
    if at.positives <= 0:
        raise Undefined(_NO_POSITIVES)
    return (precision_at_capacity(at) / at.units.mean(at.label)).within(0.0, math.inf)


@metric(
    "Utility at capacity",
    "higher",
    "utility",
    "worked by hand: expected utility of acting on the highest scores as far as there are places",
    interval="normal",
    interval_text=LINEAR,
    covers=LISTED,
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


def _price_interval(at: WorthAtCapacity, *, confidence: float) -> Interval:
    return at.price_interval(confidence)


@metric(
    "Worth of one more place",
    "neither",
    "utility",
    "shadow price of the capacity; frequency at the threshold: local linear regression, Fan 1993",
    (-1, 1),
    size_free=False,
    interval=_price_interval,
    interval_text=(
        "normal, from the noise of the labels around the threshold and that of the threshold; none where it "
        "rests on fewer than 10 rows"
    ),
    covers="the population's utility of acting on the row that is next",
)
def shadow_price(at: WorthAtCapacity) -> float:
    """Utility that one more place would add: what acting on the next row is worth, by the labels of rows like it.

    u_delta (q - t*), where q is the frequency of label 1 at the score of the next row, by a straight line through the
    rows with scores around it; where rows have stakes of their own, the same line through what acting turned out to be
    worth on rows with about the same expected gain. Of several lists the mean, of one more place in each. 0 where
    places are free.
    """
    return at.price


def _threshold_interval(at: AtCapacity, *, confidence: float) -> Interval:
    if not at.lists.full.any():
        raise Undefined(FREE)
    return at_capacity.threshold_interval(at.lists, confidence)


@metric(
    "Threshold at capacity",
    "neither",
    "score",
    "the k-th largest score",
    (0, 1),
    interval=_threshold_interval,
    interval_text="that of a quantile (Woodruff 1952); with several lists, of the mean of their thresholds",
    covers=f"{covered.POPULATION}: the score from which on there is this share of its rows",
)
def capacity_threshold(at: AtCapacity) -> float:
    """Lowest score that is acted on: the k-th largest one, or the decision threshold where places are free.

    With several lists, such as those of days, the mean of their thresholds.
    """
    if not at.lists.by_score:
        raise Undefined("rows are ranked by what acting on them is expected to win, which least_gain is about")
    return float(at.lists.threshold.mean())
