"""Limited capacity where every row has utilities of its own: rows are acted on by what that is expected to win."""

from __future__ import annotations

from decal_cli.errors import Undefined
from decal_cli.learn.held_out import need_rows_to_hold_out
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import like, metric
from decal_cli.metrics.families.amounts import need_amounts
from decal_cli.metrics.families.capacity import FREE, LINEAR, LISTED
from decal_cli.metrics.numerics.at_capacity import (
    AMOUNT_RANKING,
    SCORE_RANKING,
    RowsAtCapacity,
    WorthAtCapacity,
    threshold_interval,
)
from decal_cli.tables.units import Estimate


def _least_gain_interval(at: WorthAtCapacity, *, confidence: float) -> Interval:
    if not at.lists.full.any():
        raise Undefined(FREE)
    return threshold_interval(at.lists, confidence)


@metric(
    "Least expected gain that has a place",
    "neither",
    "utility",
    "the k-th largest expected gain",
    size_free=False,
    interval=_least_gain_interval,
    interval_text="that of a quantile (Woodruff 1952); with several lists, of the mean of their thresholds",
    covers=LISTED,
)
def least_gain(at: WorthAtCapacity) -> float:
    """Lowest expected gain of acting that is acted on: the k-th largest one, or 0 where places are free.

    The expected gain of a row is p (U11 - U01) - (1 - p) (U00 - U10) with its own utilities; of more actions or
    classes, what the best action that needs a place is expected to be worth more than the best one that needs none.
    With several lists, such as those of days, the mean of their lowest ones.
    """
    if at.lists.by_score:
        raise Undefined("rows are ranked by their score, which capacity_threshold is about")
    return float(at.lists.threshold.mean())


def _whole_value(at: RowsAtCapacity) -> float:
    whole = float(at.weight @ at.value)
    if whole <= 0 or float(at.value.min()) < 0:
        raise Undefined("missing the rows of label 1 costs nothing")
    return whole


@metric(
    "Capture of value at capacity",
    "higher",
    "share",
    "value detection rate at k",
    (0, 1),
    interval="normal",
    interval_text=LINEAR,
    covers=LISTED,
)
def value_capture(at: RowsAtCapacity) -> Estimate:
    """Share of the rows with label 1 that are acted on, each counted by what missing it costs.

    Sum of the cost of a miss over rows of label 1 acted on / the same over all rows of label 1.
    """
    whole = _whole_value(at)
    share = float((at.weight * at.value) @ at.listed.acted) / whole
    return at.estimate(share, (at.adds_value - share * at.weight * at.value) / whole).within(0.0, 1.0)


def _other(at: RowsAtCapacity, ranking: str) -> RowsAtCapacity:
    if ranking == AMOUNT_RANKING:
        need_amounts(at.utilities)
    other = at.in_order_of(ranking)
    if other is None:
        need_rows_to_hold_out(at.lists.rows)
        raise Undefined("there is no list in that order")
    return other


@metric(
    "Utility at capacity, ranked by score",
    "neither",
    "utility",
    "worked by hand: utility_at_capacity with the rows in order of their scores",
    size_free=False,
    interval="normal",
    interval_text=LINEAR,
    covers=LISTED,
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


@metric(
    "Gain over ranking by score",
    "higher",
    "utility",
    "utility_at_capacity - eu_score_ranking, paired",
    size_free=False,
    interval="normal",
    interval_text=f"{LINEAR}; paired",
    covers=LISTED,
)
def gain_over_score_ranking(at: RowsAtCapacity) -> Estimate:
    """Utility per row that is won by giving the places by expected gain, over giving them by the score alone.

    utility_at_capacity - eu_score_ranking.
    """
    return at.utility - _other(at, SCORE_RANKING).utility


@like("gain_over_score_ranking", "Gain over ranking by amount", "utility_at_capacity - eu_amount_ranking, paired")
def gain_over_amount_ranking(at: RowsAtCapacity) -> Estimate:
    """Utility per row that is won by giving the places by expected gain, over giving them by the amount alone.

    utility_at_capacity - eu_amount_ranking. Where it is not above 0, the score says nothing that the amount does not.
    """
    return at.utility - _other(at, AMOUNT_RANKING).utility
