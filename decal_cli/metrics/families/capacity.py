"""Limited capacity: what the rows that can be acted on are worth, where one can act on so many of them only."""

from __future__ import annotations

import math

from decal_cli.errors import Undefined
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import metric
from decal_cli.metrics.numerics import at_capacity
from decal_cli.metrics.numerics.at_capacity import AtCapacity, TaskAtCapacity, WorthAtCapacity
from decal_cli.tables.table import Floats
from decal_cli.task import BinaryTask

_WILSON = f"{intervals.WILSON}, with the error of a share whose threshold moves with the rows"
LINEAR = "normal, from what every row adds to first order, with the threshold that moves with the rows"
LISTED = f"{covered.POPULATION}, where the same share of its rows can be acted on"


FREE = "places are free, so that the decision threshold is what counts"


def _captured(at: AtCapacity, whole: float, empty: str) -> float:
    if whole <= 0:
        raise Undefined(empty)
    return min(at.captured / whole, 1.0)


_NO_POSITIVES = "no row has label 1"
_NO_ONE = "no row is acted on"


def capture_influence(at: AtCapacity) -> Floats:
    """What each row adds to capture, to first order, shape (T,)."""
    return (at.adds_captured - capture(at) * at.weight * at.label) / at.positives


def _capture_interval(at: AtCapacity, *, confidence: float) -> Interval:
    return at.share(at.captured, at.positives, capture_influence(at), confidence)


@metric(
    title="Capture at capacity",
    better="higher",
    unit="share",
    source="recall at k",
    range=(0, 1),
    interval=_capture_interval,
    interval_text=_WILSON,
    covers=LISTED,
    rarer=5,
)
def capture(at: AtCapacity) -> float:
    """Share of the rows with label 1 that are acted on when the highest scores get the places.

    Rows of label 1 acted on / rows of label 1. Rows that tie for the last places share them by expectation; with a
    task, rows below its decision threshold are not acted on, even if places are free.
    """
    return _captured(at, at.positives, _NO_POSITIVES)


def precision_influence(at: AtCapacity) -> Floats:
    """What each row adds to precision_at_capacity, to first order, shape (T,)."""
    return (at.adds_captured - precision_at_capacity(at) * at.adds_acted) / at.acted


def _precision_interval(at: AtCapacity, *, confidence: float) -> Interval:
    return at.share(at.captured, at.acted, precision_influence(at), confidence)


@metric(
    title="Precision at capacity",
    better="higher",
    unit="share",
    source="precision at k",
    range=(0, 1),
    interval=_precision_interval,
    interval_text=_WILSON,
    covers=LISTED,
    rarer=5,
)
def precision_at_capacity(at: AtCapacity) -> float:
    """Share of label 1 among the rows that are acted on when the highest scores get the places.

    Rows of label 1 acted on / rows acted on; ties and the decision threshold as for capture.
    """
    return _captured(at, at.acted, _NO_ONE)


def lift_influence(at: AtCapacity) -> Floats:
    """What each row adds to lift, to first order, shape (T,)."""
    base = at.positives / at.total
    of_base = at.weight * (at.label - base) / at.positives
    return precision_influence(at) / base - lift(at) * of_base


def _lift_interval(at: AtCapacity, *, confidence: float) -> Interval:
    value = lift(at)
    if value <= 0:
        raise Undefined("no row of label 1 is acted on")
    reach = math.exp(intervals.quantile(confidence) * at.error(lift_influence(at)) / value)
    return value / reach, value * reach


@metric(
    title="Lift at capacity",
    better="higher",
    unit="share",
    source="lift at k",
    range=(0, math.inf),
    interval=_lift_interval,
    interval_text="normal for its logarithm, from what every row adds to first order",
    covers=LISTED,
    rarer=10,
)
def lift(at: AtCapacity) -> float:
    """How many times more label 1 is among the rows that are acted on than among all rows.

    precision_at_capacity / base rate. 1: no better than a random choice of as many rows.
    """
    if at.positives <= 0:
        raise Undefined(_NO_POSITIVES)
    return precision_at_capacity(at) * at.total / at.positives


def around(at: WorthAtCapacity, value: float, influence: Floats, confidence: float) -> Interval:
    """An interval around a utility that rows add to so, to first order."""
    reach = intervals.quantile(confidence) * at.error(influence, at.most)
    return value - reach, value + reach


def utility_influence(at: AtCapacity, task: BinaryTask) -> Floats:
    """What each row adds to utility_at_capacity, to first order, shape (T,)."""
    return TaskAtCapacity(at, task).adds_utility


def utility_around(worth: WorthAtCapacity, confidence: float) -> Interval:
    """The interval of its utility."""
    return intervals.within(around(worth, worth.utility, worth.adds_utility, confidence), worth.utility_ends)


def _utility_interval(at: AtCapacity, task: BinaryTask, *, confidence: float) -> Interval:
    return utility_around(TaskAtCapacity(at, task), confidence)


@metric(
    title="Utility at capacity",
    better="higher",
    unit="utility",
    source="worked by hand: expected utility of acting on the highest scores as far as there are places",
    interval=_utility_interval,
    interval_text=LINEAR,
    covers=LISTED,
)
def utility_at_capacity(at: AtCapacity, task: BinaryTask) -> float:
    """Mean utility per row when only so many rows can be acted on, those with the highest scores.

    expected_utility with decision 1 for the rows that have a place and reach the decision threshold, else 0.
    """
    return TaskAtCapacity(at, task).utility


def cost_influence(at: AtCapacity, task: BinaryTask) -> Floats:
    """What each row adds to capacity_cost, to first order, shape (T,)."""
    return TaskAtCapacity(at, task).adds_cost


def _cost_interval(at: AtCapacity, task: BinaryTask, *, confidence: float) -> Interval:
    worth = TaskAtCapacity(at, task)
    return intervals.within(around(worth, worth.cost, worth.adds_cost, confidence), (-task.u_delta, task.u_delta))


@metric(
    title="Cost of the limited capacity",
    better="neither",
    unit="utility",
    source="worked by hand: expected_utility - utility_at_capacity",
    range=(-1, 1),
    interval=_cost_interval,
    interval_text=LINEAR,
    covers=LISTED,
)
def capacity_cost(at: AtCapacity, task: BinaryTask) -> float:
    """Utility per row that is lost because not every row that reaches the decision threshold can be acted on.

    expected_utility - utility_at_capacity. Below 0 where acting on the rows without a place would lose utility.
    """
    return TaskAtCapacity(at, task).cost


def _price_interval(at: AtCapacity, task: BinaryTask, *, confidence: float) -> Interval:
    return TaskAtCapacity(at, task).price_interval(confidence)


@metric(
    title="Worth of one more place",
    better="neither",
    unit="utility",
    source="shadow price of the capacity; frequency at the threshold: local linear regression, Fan 1993",
    range=(-1, 1),
    interval=_price_interval,
    interval_text="normal, from the noise of the labels around the threshold and that of the threshold; none where it "
    "rests on fewer than 10 rows",
    covers="the population's utility of acting on the row that is next",
)
def shadow_price(at: AtCapacity, task: BinaryTask) -> float:
    """Utility that one more place would add: what acting on the next row is worth, by the labels of rows like it.

    u_delta (q - t*), where q is the frequency of label 1 at the score of the next row, by a straight line through the
    rows with scores around it; of several lists the mean, of one more place in each. 0 where places are free.
    """
    return TaskAtCapacity(at, task).price


def _threshold_interval(at: AtCapacity, *, confidence: float) -> Interval:
    if not at.lists.full.any():
        raise Undefined(FREE)
    return at_capacity.threshold_interval(at.lists, confidence)


@metric(
    title="Threshold at capacity",
    better="neither",
    unit="score",
    source="the k-th largest score",
    range=(0, 1),
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
