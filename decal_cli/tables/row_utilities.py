"""Utilities that differ from row to row: what a decision on each row is worth, and from which score to act on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.tables.estimate import mean_over
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats, MeanEstimate

MAX_DIGITS = 9
"""Digits of a threshold that a user may have meant exactly."""
_MIN_SHORTENED = 1e-12
"""Below it powers of ten are no longer exact floats."""


def utilities_of(amounts: Mapping[str, Floats], cost_fp: float | None, cost_fn: float | None, factor: float) -> Floats:
    """Utilities of rows, shape (4, T): of true negatives, false negatives, false positives and true positives.

    amounts: columns by role. cost_fp, cost_fn: of every row, where no column says it. factor: what the cost of a false
    positive is multiplied by.
    """
    if "utility_columns" in amounts:
        tn, fn, fp, tp = np.moveaxis(amounts["utility_columns"], -1, 0)
        return np.array((tn, fn, tn - factor * (tn - fp), tp))
    nothing = np.zeros(len(next(iter(amounts.values()))))
    missed = amounts.get("amount", amounts.get("cost_fn_column", nothing + (cost_fn or 0.0)))
    alarm = amounts.get("cost_fp_column", nothing + (cost_fp or 0.0))
    return np.array((nothing, nothing - missed, nothing - factor * alarm, nothing))


@dataclass(frozen=True, eq=False)
class RowUtilities:
    """Labelled rows with utilities of their own. utility: float64 (4, T), as `utilities_of` has them."""

    rows: Rows
    utility: Floats

    @cached_property
    def label(self) -> NDArray[np.bool_]:
        """Whether the label is 1, bool (T,)."""
        return np.asarray(self.rows.label, dtype=bool)

    @property
    def benefit(self) -> Floats:
        """What acting is worth on a row of label 1: the cost of missing it, shape (T,)."""
        benefit: Floats = self.utility[3] - self.utility[1]
        return benefit

    @property
    def cost(self) -> Floats:
        """What acting costs on a row of label 0, shape (T,)."""
        cost: Floats = self.utility[0] - self.utility[2]
        return cost

    @cached_property
    def u_delta(self) -> Floats:
        """What correcting both wrong decisions is worth, shape (T,); not above 0 only where acting never pays."""
        return self.benefit + self.cost

    @cached_property
    def threshold(self) -> Floats:
        """t* of each row, shape (T,): act from it on; infinity where acting never pays, 0 or less where it always does.

        (U00 - U10) / u_delta, cut to the short decimal that it is but for rounding; costs of t and 1 - t name it t.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            threshold = np.where(self.benefit > 0, self.cost / self.u_delta, np.inf)
        named = (self.utility[0] == 0) & (self.utility[3] == 0) & (self.benefit == 1 - self.cost)
        return np.where(named & (self.benefit > 0), self.cost, _short(threshold))

    def acts(self, score: Floats) -> NDArray[np.bool_]:
        """Which rows to act on by these scores, bool (T,)."""
        acts: NDArray[np.bool_] = score >= self.threshold
        return acts

    def expected(self, score: Floats) -> Floats:
        """What acting on each row is worth over not acting, if these scores are right, (T,): 0 or more where `acts`."""
        expected = score * self.benefit - (1 - score) * self.cost
        # The threshold of a row is cut to a short decimal, which rounding must not contradict here.
        below = np.minimum(expected, -np.finfo(np.float64).tiny)
        return np.where(self.acts(score), np.maximum(expected, 0.0), below)

    @cached_property
    def worth(self) -> Floats:
        """What acting on each row turned out to be worth, over not acting on it, shape (T,)."""
        return np.where(self.label, self.benefit, -self.cost)

    def payoff(self, acts: Any) -> Floats:
        """The utility of each row, by its label, of these decisions, bool (T,) or one for all; shape (T,)."""
        return np.where(self.label, self.utility[1], self.utility[0]) + np.where(acts, self.worth, 0.0)

    def mean(self, values: Floats, missed: Iterable[Floats] | None = None) -> MeanEstimate:
        """The mean over rows of a number of each, and its standard error; missed: as `mean_over` has it."""
        return mean_over(values, self.rows.weights, self.rows.unit, missed, rows=self.rows.table.effective_rows)

    def decided(self, acts: Any, instead: Any = None) -> MeanEstimate:
        """The mean utility of these decisions, bool (T,) or one for all; less that of others, where they are given.

        A row that could have been missed has the utilities and the decision of a row that is there, and either label.
        """
        rules = [np.broadcast_to(np.asarray(each), self.label.shape) for each in (acts, instead) if each is not None]

        def worth(label: int) -> Floats:
            first, *rest = (np.where(rule, self.utility[2 + label], self.utility[label]) for rule in rules)
            return np.asarray(first - rest[0] if rest else first)

        either = worth(0), worth(1)
        kind = rules[0] + 2 * rules[-1]
        missed = (values[kind == each] for values in either for each in range(4))
        return self.mean(np.where(self.label, either[1], either[0]), missed)

    @cached_property
    def alike(self) -> bool:
        """Whether all rows have the same utilities, with a threshold between 0 and 1."""
        return bool((np.ptp(self.utility, axis=1) == 0).all() and 0 < self.threshold[0] < 1)


def _short(threshold: Floats) -> Floats:
    """Thresholds rounded to MAX_DIGITS digits where that changes no more than rounding did."""
    plain = (threshold > _MIN_SHORTENED) & (threshold < 1)
    some = threshold[plain]
    scale = 10.0 ** (MAX_DIGITS - 1 - np.floor(np.log10(some)))
    short = np.rint(some * scale) / scale
    near = (short < 1) & (np.abs(short - some) <= 8 * np.spacing(some))
    threshold[plain] = np.where(near, short, some)
    return threshold
