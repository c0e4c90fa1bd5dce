"""Sums over the rows that are acted on under a limited capacity, and what every row adds to them to first order.

Where a list is full, one more row that is acted on takes the place of the row that was next: what it adds is its own
value less the value of that row. That is how the choice of the threshold enters the errors. Where places are free, and
in a part of the rows, whose threshold is given by the others, it adds its own value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.metrics.confidence import Interval, quantile, wilson
from decal_cli.tables.clusters import error_of_sum
from decal_cli.tables.listed import Listed, Lists
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats
from decal_cli.task import BinaryTask

MIN_ROWS = 10
"""Effective rows below which the frequency at the threshold has no interval."""
ONE_ERROR = math.erf(1 / math.sqrt(2))
"""Confidence of the interval that reaches one standard error to either side."""


class AtCapacity:
    """Rows of which so many can be acted on. Errors of sums are those over independent rows, or clusters."""

    def __init__(self, rows: Rows, listed: Listed) -> None:
        self.rows = rows
        self.weight = rows.weights
        self.label = np.asarray(rows.label, dtype=np.float64)
        self.listed = listed

    @property
    def lists(self) -> Lists:
        """Those of all rows, also where these are a part of them."""
        return self.listed.lists

    @cached_property
    def total(self) -> float:
        """Summed weight."""
        return float(self.weight.sum())

    @cached_property
    def acted(self) -> float:
        """Summed weight of the rows that are acted on."""
        return float(self.weight @ self.listed.acted)

    @cached_property
    def captured(self) -> float:
        """Summed weight of those of label 1 among them."""
        return float((self.weight * self.label) @ self.listed.acted)

    @cached_property
    def positives(self) -> float:
        """Summed weight of all rows of label 1."""
        return float(self.weight @ self.label)

    def worth(self, task: BinaryTask) -> Floats:
        """What acting on a row is worth more than not acting, by its label, shape (T,)."""
        (u00, u01), (u10, u11) = task.utility
        return np.asarray(np.where(self.label > 0, u11 - u01, u10 - u00))

    def adds(self, worth: Floats, next_worth: Floats) -> Floats:
        """What each row adds to the summed worth of the rows acted on; next_worth: of the next row of its list."""
        following = np.where(np.isnan(next_worth), 0.0, next_worth)
        return np.asarray(self.weight * (self.listed.acted * (worth - following) + self.listed.gives * following))

    @cached_property
    def adds_captured(self) -> Floats:
        """The same for rows of label 1."""
        return self.adds(self.label, self.listed.chance)

    @cached_property
    def adds_acted(self) -> Floats:
        """The same for all rows: a full list gains no place by one more row, unless places come with rows."""
        return self.adds(np.ones(len(self.label)), np.where(np.isnan(self.listed.chance), np.nan, 1.0))

    def adds_worth(self, task: BinaryTask) -> Floats:
        """The same for their utility."""
        return self.adds(self.worth(task), task.u_delta * (self.listed.chance - task.threshold))

    def error(self, parts: Floats) -> float:
        """Standard error of a sum that rows add these parts to, shape (T,)."""
        off = parts - self.weight * (float(parts.sum()) / self.total)
        return error_of_sum(off, self.rows.unit)

    def share(self, part: float, whole: float, influence: Floats, confidence: float) -> Interval:
        """Interval of part / whole, a proportion: Wilson's, with as many rows as its error says."""
        if whole <= 0:
            raise Undefined("rests on no rows")
        value = part / whole
        effective = self.rows.table.effective_rows * whole / self.total
        error = self.error(influence)
        if 0 < value < 1 and error > 0:
            effective = value * (1 - value) / error**2
        return wilson(part, whole, effective, confidence)


def share_interval(lists: Lists, confidence: float) -> tuple[float, float, float]:
    """Of a single list: the share of the weight that has a place, and the ends between which noise moves it."""
    rows = lists.rows
    assert rows.listed is None  # the lists are made of the rows as they were
    weight = rows.weights
    total = float(weight.sum())
    share = float(lists.acted[0]) / total
    off = weight * ((rows.score >= lists.threshold[0]) - share)
    reach = quantile(confidence) * error_of_sum(off, rows.unit) / total
    return share, max(share - reach, 0.0), min(share + reach, 1.0)


def upper_quantiles(rows: Rows, shares: Sequence[float]) -> Floats:
    """The scores from which on there are these shares of the weight, shape (k,)."""
    order = rows.by_score[::-1]
    above = np.cumsum(rows.weights[order])
    at = np.searchsorted(above, np.array(shares) * above[-1] * (1 - 1e-12))
    return np.asarray(rows.score[order][np.minimum(at, len(order) - 1)])


def threshold_interval(lists: Lists, confidence: float) -> Interval:
    """Of the threshold of one full list that of a quantile (Woodruff 1952), of many that of their mean."""
    if len(lists) > 1:
        spread = float(lists.threshold.std(ddof=1)) / math.sqrt(len(lists))
        mean, reach = float(lists.threshold.mean()), quantile(confidence) * spread
        return max(mean - reach, 0.0), min(mean + reach, 1.0)
    _, fewer, more = share_interval(lists, confidence)
    low, high = upper_quantiles(lists.rows, (more, fewer))
    return float(low), float(high)


def next_rate_error(lists: Lists) -> float | None:
    """Standard error of the mean frequency of label 1 at the next rows; None where too few rows say it.

    From the noise of the labels, and from that of the threshold: a row further down is another row.
    """
    rates = lists.rates
    if rates is None or rates.effective < MIN_ROWS:
        return None
    label = rates.error if rates.error > 0 else 0.5 / rates.effective
    if len(rates.rate) > 1:
        place = float(rates.rate.std(ddof=1)) / math.sqrt(len(rates.rate))
    else:
        low, high = threshold_interval(lists, ONE_ERROR)
        place = abs(float(rates.slope[0])) * (high - low) / 2
    return math.hypot(label, place)
