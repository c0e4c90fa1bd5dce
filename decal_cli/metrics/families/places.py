"""Limited capacity where every row has utilities of its own: rows are acted on by what that is expected to win."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from decal_cli.crossfit.row_utilities import need_rows
from decal_cli.errors import Undefined
from decal_cli.metrics.confidence import Interval, normal
from decal_cli.metrics.declare import for_rows, metric
from decal_cli.metrics.families.amounts import need_amounts
from decal_cli.metrics.families.capacity import FREE, LINEAR, LISTED, around, utility_around
from decal_cli.metrics.numerics.at_capacity import (
    AMOUNT_RANKING,
    SCORE_RANKING,
    RowsAtCapacity,
    threshold_interval,
)
from decal_cli.tables.table import Estimate, Floats


def _utility_interval(at: RowsAtCapacity, *, confidence: float) -> Interval:
    return utility_around(at, confidence)


@for_rows("utility_at_capacity", interval=_utility_interval)
def utility_at_capacity(at: RowsAtCapacity) -> float:
    """Mean utility per row when only so many rows can be acted on, those where that is expected to win most.

    Rows are ranked by p (U11 - U01) - (1 - p) (U00 - U10), with p the score and U the utilities of the row; those with
    a place are acted on if their score reaches their own threshold.
    """
    return at.utility


def _cost_interval(at: RowsAtCapacity, *, confidence: float) -> Interval:
    return around(at, at.cost, at.adds_cost, confidence)


@for_rows("capacity_cost", interval=_cost_interval)
def capacity_cost(at: RowsAtCapacity) -> float:
    """Utility per row that is lost because not every row that reaches its own threshold can be acted on.

    expected_utility - utility_at_capacity. Below 0 where acting on the rows without a place would lose utility.
    """
    return at.cost


def _price_interval(at: RowsAtCapacity, *, confidence: float) -> Interval:
    return at.price_interval(confidence)


@for_rows("shadow_price", interval=_price_interval)
def shadow_price(at: RowsAtCapacity) -> float:
    """Utility that one more place would add: what acting on the next row is worth, by the labels of rows like it.

    By a straight line through what acting turned out to be worth on rows with about the same expected gain; of several
    lists the mean, of one more place in each. 0 where places are free.
    """
    return at.price


def _least_gain_interval(at: RowsAtCapacity, *, confidence: float) -> Interval:
    if not at.lists.full.any():
        raise Undefined(FREE)
    return threshold_interval(at.lists, confidence)


@metric(
    title="Least expected gain that has a place",
    better="neither",
    unit="utility",
    source="the k-th largest expected gain",
    size_free=False,
    interval=_least_gain_interval,
    interval_text="that of a quantile (Woodruff 1952); with several lists, of the mean of their thresholds",
    covers=LISTED,
)
def least_gain(at: RowsAtCapacity) -> float:
    """Lowest expected gain of acting that is acted on: the k-th largest one, or 0 where places are free.

    The expected gain of a row is p (U11 - U01) - (1 - p) (U00 - U10) with its own utilities. With several lists, such
    as those of days, the mean of their lowest ones.
    """
    return float(at.lists.threshold.mean())


def _whole_value(at: RowsAtCapacity) -> float:
    whole = float(at.weight @ at.value)
    if whole <= 0 or float(at.value.min()) < 0:
        raise Undefined("missing the rows of label 1 costs nothing")
    return whole


def value_influence(at: RowsAtCapacity) -> Floats:
    """What each row adds to value_capture, to first order, shape (T,)."""
    return np.asarray((at.adds_value - value_capture(at) * at.weight * at.value) / _whole_value(at))


def _value_interval(at: RowsAtCapacity, *, confidence: float) -> Interval:
    estimate = Estimate(value_capture(at), at.error(value_influence(at)))
    return normal(estimate, confidence, 0.0, 1.0)


@metric(
    title="Capture of value at capacity",
    better="higher",
    unit="share",
    source="value detection rate at k",
    range=(0, 1),
    interval=_value_interval,
    interval_text=LINEAR,
    covers=LISTED,
)
def value_capture(at: RowsAtCapacity) -> float:
    """Share of the rows with label 1 that are acted on, each counted by what missing it costs.

    Sum of the cost of a miss over rows of label 1 acted on / the same over all rows of label 1.
    """
    whole = _whole_value(at)
    return min(float((at.weight * at.value) @ at.listed.acted) / whole, 1.0)


def _other(at: RowsAtCapacity, ranking: str) -> RowsAtCapacity:
    if ranking == AMOUNT_RANKING:
        need_amounts(at.utilities)
    other = at.in_order_of(ranking)
    if other is None:
        need_rows(at.lists.rows)
        raise Undefined("there is no list in that order")
    return other


def _ranked_by(ranking: str) -> Callable[..., Interval]:
    def interval(at: RowsAtCapacity, *, confidence: float) -> Interval:
        return utility_around(_other(at, ranking), confidence)

    return interval


@metric(
    title="Utility at capacity, ranked by score",
    better="neither",
    unit="utility",
    source="worked by hand: utility_at_capacity with the rows in order of their scores",
    size_free=False,
    interval=_ranked_by(SCORE_RANKING),
    interval_text=LINEAR,
    covers=LISTED,
)
def eu_score_ranking(at: RowsAtCapacity) -> float:
    """Mean utility per row if the places go to the highest scores among the rows that reach their own threshold.

    As utility_at_capacity, but what a row is worth says only whether it is acted on, not which of the rows are first.
    """
    return _other(at, SCORE_RANKING).utility


@metric(
    title="Utility at capacity, ranked by amount",
    better="neither",
    unit="utility",
    source="worked by hand: eu_by_amount as far as there are places",
    size_free=False,
    interval=_ranked_by(AMOUNT_RANKING),
    interval_text=LINEAR,
    covers=LISTED,
)
def eu_amount_ranking(at: RowsAtCapacity) -> float:
    """Mean utility per row if the places go to the rows that cost most to miss, whatever their score; needs no model.

    As eu_by_amount, of which the largest amounts have the places.
    """
    return _other(at, AMOUNT_RANKING).utility


def over_influence(at: RowsAtCapacity, ranking: str) -> Floats:
    """What each row adds to the gain over a ranking, to first order, shape (T,)."""
    return np.asarray(at.adds_utility - _other(at, ranking).adds_utility)


def _over(ranking: str) -> Callable[..., Interval]:
    def interval(at: RowsAtCapacity, *, confidence: float) -> Interval:
        gain = at.utility - _other(at, ranking).utility
        return around(at, gain, over_influence(at, ranking), confidence)

    return interval


@metric(
    title="Gain over ranking by score",
    better="higher",
    unit="utility",
    source="utility_at_capacity - eu_score_ranking, paired",
    size_free=False,
    interval=_over(SCORE_RANKING),
    interval_text=f"{LINEAR}; paired",
    covers=LISTED,
)
def gain_over_score_ranking(at: RowsAtCapacity) -> float:
    """Utility per row that is won by giving the places by expected gain, over giving them by the score alone.

    utility_at_capacity - eu_score_ranking.
    """
    return at.utility - _other(at, SCORE_RANKING).utility


@metric(
    title="Gain over ranking by amount",
    better="higher",
    unit="utility",
    source="utility_at_capacity - eu_amount_ranking, paired",
    size_free=False,
    interval=_over(AMOUNT_RANKING),
    interval_text=f"{LINEAR}; paired",
    covers=LISTED,
)
def gain_over_amount_ranking(at: RowsAtCapacity) -> float:
    """Utility per row that is won by giving the places by expected gain, over giving them by the amount alone.

    utility_at_capacity - eu_amount_ranking. Where it is not above 0, the score says nothing that the amount does not.
    """
    return at.utility - _other(at, AMOUNT_RANKING).utility
