"""Sums over the rows that are acted on under a limited capacity, and what every row adds to them to first order.

Where a list is full, one more row that is acted on takes the place of the next one: it adds its own value less that of
the next. So the threshold enters the errors. Where places are free, and in a part of the rows whose threshold the
others give, it adds its own value.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.metrics.confidence import Interval, quantile, within
from decal_cli.tables.estimate import error_of_sum
from decal_cli.tables.row_utilities import RowStakes, RowUtilities
from decal_cli.tables.rows import Rows
from decal_cli.tables.selection import Selection, TopK
from decal_cli.tables.table import Floats
from decal_cli.tables.units import Estimate

MIN_ROWS = 10
"""Effective rows near the threshold below which means at the next row have no interval."""
ONE_ERROR = math.erf(1 / math.sqrt(2))
"""Confidence of the interval that reaches one standard error to either side."""


class AtCapacity:
    """Rows of which so many can be acted on. Errors of sums are those over independent rows, or clusters."""

    def __init__(self, rows: Rows, selection: Selection) -> None:
        self.rows = rows
        self.weight = rows.weights
        self.label = np.asarray(rows.label, dtype=np.float64)
        self.selection = selection

    @property
    def lists(self) -> TopK:
        """The lists of all rows, also where these rows are a part of them."""
        return self.selection.lists

    @cached_property
    def total(self) -> float:
        """Summed weight."""
        return float(self.weight.sum())

    def of_acted(self, values: Floats, at_next: Floats) -> Estimate:
        """The sum of values, (T,), over the rows acted on, per row of all.

        at_next: the mean of the values at the next row of each full list.
        """
        acted, gives, following = self.selection.acted, self.selection.gives, self.selection.at_next(at_next)
        value = float((self.weight * values) @ acted) / self.total
        return self.rows.units.linear(value, lambda: acted * (values - following) + gives * following)

    def captured_of(self, whole: Estimate, empty: str) -> Estimate:
        """Rows of label 1 that are acted on, as a share of a mean. Errors: Undefined, where that is 0."""
        if whole.value <= 0:
            raise Undefined(empty)
        share = (self.of_acted(self.label, self.lists.rates.mean) / whole).within(0.0, 1.0)
        return replace(share, rows=self.rows.table.effective_rows * whole.value)


class WorthAtCapacity(AtCapacity):
    """Rows of which so many can be acted on, where it is known what acting is worth.

    stakes: of the rows; whole: of all rows of the lists. idle: the utility of each row if it is not acted on, (T,).
    worth: what acting on it is worth more, (T,). next_worth: the means of `worth` at the next row of each full list.
    worth_ends, utility_ends: the least and the most that `worth`, and the mean utility, can be.
    """

    def __init__(self, stakes: RowStakes, selection: Selection, whole: RowStakes) -> None:
        super().__init__(stakes.rows, selection)
        (self.idle, self.worth), (_, worth) = _by_place(stakes), _by_place(whole)
        self.next_worth = self.lists.at_next(worth)
        # Labels that no row has count too, where all rows share two actions.
        shared = stakes.utility.shared
        can_be = np.diff(shared, axis=0) if shared.shape == (2, 2) and not stakes.utility.own else worth
        self.worth_ends: Interval = (float(can_be.min()), float(can_be.max()))
        # The squared worth of a row that could have been missed; with stakes of each row, the mean over a label's rows.
        self.missed = max(end**2 for end in self.worth_ends)
        if stakes.utility.own:
            of_labels = [self.label == label for label in np.unique(self.label)]
            self.missed = max(float(np.average(self.worth[of] ** 2, weights=self.weight[of])) for of in of_labels)
        least, most = (self.rows.units.mean(end).value for end in (stakes.utility.least, stakes.utility.most))
        self.utility_ends: Interval = (least, most)

    @property
    def _of_acted(self) -> Estimate:
        """Worth of the rows acted on; a row that could have been missed adds what acting can be worth."""
        return replace(self.of_acted(self.worth, self.next_worth.mean), missed=self.missed)

    @cached_property
    def utility(self) -> Estimate:
        """Mean utility per row."""
        return (self._of_acted + self.rows.units.mean(self.idle)).within(*self.utility_ends)

    @cached_property
    def cost(self) -> Estimate:
        """Utility per row that the rows without a place would add."""
        # A row with a place loses nothing, also where acting wins on every row.
        low, high = self.worth_ends
        most = max(high, 0.0) - min(low, 0.0)
        return (self.rows.units.mean(self.selection.wanted * self.worth) - self._of_acted).within(-most, most)

    @property
    def price(self) -> float:
        """Utility of one more place in each list: 0 where places are free."""
        if not len(self.next_worth.mean):
            return 0.0
        return float(self.next_worth.mean.mean()) * float(self.lists.full.mean())

    def price_interval(self, confidence: float) -> Interval:
        """The interval of `price`, from the noise of the rows and from that of the threshold: another row may be next.

        Errors: Undefined, where too few rows are near the threshold.
        """
        at_next, full = self.next_worth, float(self.lists.full.mean())
        if at_next.effective < MIN_ROWS:
            raise Undefined("no list is full, or too few rows are near its threshold")
        noise = at_next.error if at_next.error > 0 else 0.5 * at_next.range / at_next.effective
        if len(at_next.mean) > 1:
            place = float(at_next.mean.std(ddof=1)) / math.sqrt(len(at_next.mean))
        else:
            low, high = threshold_interval(self.lists, ONE_ERROR)
            place = abs(float(at_next.slope[0])) * (high - low) / 2
        half_width = quantile(confidence) * math.hypot(noise, place) * full
        low, high = self.worth_ends
        return within((self.price - half_width, self.price + half_width), (full * low, full * high))


SCORE_RANKING, AMOUNT_RANKING = "score", "amount"
"""Other orders of rows with utilities of their own: by the score alone, and by what a miss costs."""


def _by_place(stakes: RowStakes) -> tuple[Floats, Floats]:
    """The utility of each row without a place, and what a place is worth more, shape (T,) each."""
    if len(stakes.utility) == 2 and not stakes.limited:
        idle = stakes.payoff(0)
        return idle, stakes.payoff(1) - idle
    place = stakes.in_place(stakes.rows.score)
    idle = stakes.payoff(place.without)
    return idle, stakes.payoff(place.with_it) - idle


class RowsAtCapacity(WorthAtCapacity):
    """Decisions to act or not on rows of labels 0 and 1, of which so many can be acted on."""

    def __init__(self, utilities: RowUtilities, selection: Selection, whole: RowUtilities) -> None:
        super().__init__(utilities, selection, whole)
        self.utilities, self.whole = utilities, whole

    @cached_property
    def value(self) -> Floats:
        """What missing each row would cost: 0 where its label is 0, (T,)."""
        return self.utilities.benefit() * self.label

    @property
    def of_value(self) -> Estimate:
        """The sum of `value` over the rows acted on, per row of all."""
        return self.of_acted(self.value, self.lists.at_next(self.whole.benefit() * self.whole.label).mean)


def threshold_interval(lists: TopK, confidence: float) -> Interval:
    """The interval of the threshold: for one list as of a quantile (Woodruff 1952), for several of their mean."""
    if len(lists) > 1:
        spread = float(lists.threshold.std(ddof=1)) / math.sqrt(len(lists))
        mean, half_width = float(lists.threshold.mean()), quantile(confidence) * spread
        return within((mean - half_width, mean + half_width), (0.0, 1.0) if lists.by_score else (-math.inf, math.inf))
    # Noise moves the share of the weight that has a place between two ends: the ranks from which on there is so much.
    weight = lists.rows.weights
    total = float(weight.sum())
    share = float(lists.acted[0]) / total
    off = weight * ((lists.rank >= lists.threshold[0]) - share)
    half_width = quantile(confidence) * error_of_sum(off, lists.rows.unit) / total
    order = lists.order[::-1]
    above = np.cumsum(weight[order])
    ends = np.array((min(share + half_width, 1.0), max(share - half_width, 0.0))) * above[-1] * (1 - 1e-12)
    low, high = lists.rank[order[np.minimum(np.searchsorted(above, ends), len(order) - 1)]].tolist()
    return low, high
