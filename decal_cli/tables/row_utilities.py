"""Utilities that differ from row to row: what each action is worth on each row, and which is best by a score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats, Ints
from decal_cli.tables.units import EVERY, index_type, runs, whole_numbers
from decal_cli.tables.utilities import Utilities

MAX_DIGITS = 9
"""Digits of a threshold that a user may have meant exactly."""
_MIN_SHORTENED = 1e-12
"""Below it powers of ten are no longer exact floats."""


TIE = 1e-12
"""Expected utilities this close, as a share of the largest utility of the row, are equal."""


def utilities_of(
    amounts: Mapping[str, Floats], cost_fp: float | None, cost_fn: float | None, factor: float, classes: int = 2
) -> Utilities:
    """Utilities of rows, of each action at each of K classes.

    amounts: columns by role. cost_fp, cost_fn: of every row, where no column says it. factor: what the cost of a false
    positive is multiplied by; of other than two actions and classes, all that an action costs more than the first one.
    """
    if "utility_columns" not in amounts:
        miss = amounts.get("amount", amounts.get("cost_fn_column", cost_fn or 0.0))
        alarm = amounts.get("cost_fp_column", cost_fp or 0.0)
        return Utilities.of(((0.0, 0.0 - miss), (0.0 - factor * alarm, 0.0)))
    columns = amounts["utility_columns"].T
    utility = Utilities.of([list(columns[first : first + classes]) for first in range(0, len(columns), classes)])
    return utility if factor == 1 else _with_costs_times(utility, factor)


def _with_costs_times(utility: Utilities, factor: float) -> Utilities:
    """Utilities where what actions cost more than the first one is multiplied by a factor."""
    two = (len(utility), utility.classes) == (2, 2)

    def of_cell(a: int, k: int) -> Any:
        worse, own = utility[0, k] - utility[a, k], utility[a, k]
        if two:
            return own + (1 - factor) * worse if (a, k) == (1, 0) else own
        return own + (1 - factor) * np.maximum(worse, 0.0)

    return Utilities.of([[of_cell(a, k) for k in range(utility.classes)] for a in range(len(utility))])


class InPlace(NamedTuple):
    """wins: what a place is expected to win on each row; without, with_it: its action there, shape (T,) each."""

    wins: Floats
    without: Ints
    with_it: Ints


@dataclass(frozen=True, eq=False)
class RowStakes:
    """Labelled rows and the utilities of each action at each class, which all rows share or each row has its own."""

    rows: Rows
    utility: Utilities
    limited: tuple[int, ...] = ()
    """The actions that need one of a limited number of places; () for all but the first action."""

    @cached_property
    def label(self) -> Ints:
        """The class of each row, shape (T,)."""
        return whole_numbers(self.rows.label)

    def expected_each(self, score: Floats) -> Floats:
        """What each action is expected to be worth on each row, if these scores are right, shape (A, T)."""
        return self.utility.expected((1 - score, score) if score.ndim == 1 else score.T)

    def response(self, score: Floats) -> Ints:
        """The best action of each row by these scores, shape (T,).

        Of equal actions it is the first where there are several classes; with two classes it is the one that is best
        just above the score (just below it at 1).
        """
        if score.ndim > 1 and score.shape[1] == 2:
            return self.response(score[:, 1])
        worth = self.expected_each(score)
        best = worth >= worth.max(axis=0) - TIE * self.utility.largest
        if score.ndim > 1:
            return best.argmax(axis=0)
        above = np.where(score == 1, -1.0, 1.0)
        # What label 1 adds to the utility of each action, shape (A, T).
        rises = [(self.utility[a, 1] - self.utility[a, 0]) * above for a in range(len(self.utility))]
        return np.where(best, rises, -np.inf).argmax(axis=0)

    def payoff(self, action: Any) -> Floats:
        """The utility of each row, by its label, of these actions, (T,) or one for all; shape (T,)."""
        return self.utility.at(np.asarray(action, dtype=np.int64), self.label)

    def in_place(self, score: Floats) -> InPlace:
        """What a place is expected to win on each row by these scores, and the actions with it and without it."""
        needs = np.zeros(len(self.utility), dtype=bool)
        needs[list(self.limited) or slice(1, None)] = True
        worth = self.expected_each(score)
        free, limited = (
            replace(self, utility=self.utility.of_actions(which.tolist())).response(score)
            for which in (np.flatnonzero(~needs), np.flatnonzero(needs))
        )
        without, with_it = np.flatnonzero(~needs)[free], np.flatnonzero(needs)[limited]
        rows = np.arange(len(score))
        wins = self._wins(worth[with_it, rows] - worth[without, rows], needs[self.response(score)])
        return InPlace(wins, without, with_it)

    def _wins(self, expected: Floats, wanted: NDArray[np.bool_]) -> Floats:
        """Expected gains that are 0 or more where a row is wanted, and below 0 elsewhere.

        Rows that are expected to win the same tie, though rounding tells them apart.
        """
        scale = TIE * max(float(np.max(self.utility.largest)), 1e-300)
        wins = np.rint(expected / scale) * scale
        return np.where(wanted, np.maximum(wins, 0.0), np.minimum(wins, -np.finfo(np.float64).tiny))

    def u_delta(self, which: Any = EVERY) -> Floats:
        """2 / K times the sum over classes of what the best action is worth beyond the worst, of each row, (m,)."""
        return np.asarray(2 / self.utility.classes * sum(self.utility.take(which).apart))

    @property
    def settled(self) -> tuple[int, int]:
        """Rows where the first action is best, and where another one is, whatever the class."""
        most = self.utility.best
        best = [
            np.logical_and.reduce([self.utility[a, k] == most[k] for k in range(len(most))])
            for a in range(len(self.utility))
        ]
        return int(best[0].sum()), int((np.logical_or.reduce(best[1:]) & ~best[0]).sum())

    @property
    def alike(self) -> bool:
        """Whether all rows have the same utilities, so that one task says it all."""
        return False


@dataclass(frozen=True, eq=False)
class RowUtilities(RowStakes):
    """Utilities of two actions, to act or not, at labels 0 and 1 of each row, so that each row has a threshold."""

    def benefit(self, which: Any = EVERY) -> Floats:
        """What acting is worth on each row, or on some of them, if its label is 1: the cost of missing it, (m,)."""
        return self._less((1, 1), (0, 1), which)

    def cost(self, which: Any = EVERY) -> Floats:
        """What acting costs on each row, or on some of them, if its label is 0, (m,)."""
        return self._less((0, 0), (1, 0), which)

    def _less(self, place: tuple[int, int], other: tuple[int, int], which: Any) -> Floats:
        """The utility of an action at a class less that of another, (m,)."""
        less = self.utility.of_some(place, which) - self.utility.of_some(other, which)
        return less if np.ndim(less) else np.broadcast_to(less, self.label[which].shape)

    @cached_property
    def by_benefit(self) -> Ints:
        """Indices that sort the rows by their benefit, the largest first."""
        return np.argsort(-self.benefit()).astype(index_type(len(self.rows)))

    def u_delta(self, which: Any = EVERY) -> Floats:
        """What correcting both wrong decisions is worth, shape (m,); not above 0 only where acting never pays."""
        return self.benefit(which) + self.cost(which)

    def decidable(self, which: Any = EVERY) -> NDArray[np.bool_]:
        """Whether rows can be decided wrongly, shape (m,): not where acting never pays, or always does."""
        threshold = self.threshold[which]
        return np.asarray((threshold > 0) & (threshold < 1))

    @cached_property
    def threshold(self) -> Floats:
        """t* of each row, shape (T,): act from it on; infinity where acting never pays, 0 or less where it always does.

        (U00 - U10) / u_delta, cut to the short decimal that it is but for rounding; costs of t and 1 - t name it t.
        """
        threshold = np.empty(len(self.rows))
        for part in runs(len(threshold)):
            benefit, cost = self.benefit(part), self.cost(part)
            with np.errstate(divide="ignore", invalid="ignore"):
                each = _short(np.where(benefit > 0, cost / (benefit + cost), np.inf))
            utility = self.utility.take(part)
            named = (utility[0, 0] == 0) & (utility[1, 1] == 0) & (benefit == 1 - cost)
            threshold[part] = np.where(named & (benefit > 0), cost, each)
        return threshold

    def acts(self, score: Floats) -> NDArray[np.bool_]:
        """Which rows to act on by these scores, bool (T,)."""
        return score >= self.threshold

    def in_place(self, score: Floats) -> InPlace:
        nothing = np.zeros(len(score), dtype=np.int64)
        # The threshold of a row is cut to a short decimal, which rounding must not contradict here.
        wins = self._wins(score * self.benefit() - (1 - score) * self.cost(), self.acts(score))
        return InPlace(wins, nothing, nothing + 1)

    def response(self, score: Floats) -> Ints:
        return self.acts(score).view(np.int8)

    @property
    def settled(self) -> tuple[int, int]:
        return int(np.count_nonzero(self.threshold >= 1)), int(np.count_nonzero(self.threshold <= 0))

    @cached_property
    def alike(self) -> bool:
        """Whether all rows have the same utilities, with a threshold between 0 and 1."""
        return not any(np.ptp(column) for column in self.utility.own.values()) and bool(0 < self.threshold[0] < 1)


def _short(threshold: Floats) -> Floats:
    """Thresholds rounded to MAX_DIGITS digits where that changes no more than rounding did."""
    plain = (threshold > _MIN_SHORTENED) & np.isfinite(threshold)
    some = threshold[plain]
    scale = 10.0 ** (MAX_DIGITS - 1 - np.floor(np.log10(some)))
    short = np.rint(some * scale) / scale
    near = (short < 1) & (np.abs(short - some) <= 8 * np.spacing(some))
    threshold[plain] = np.where(near, short, some)
    return threshold
