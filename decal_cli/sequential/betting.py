"""Betting confidence sequences of bounded means, which may be looked at after every batch of rows.

At each look all rows enter again, once each, from the first row on and in the order of the file; nothing is kept
between looks. What bets on a row was fixed by the rows before it (Waudby-Smith and Ramdas 2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from decal_cli.numbers import Interval
from decal_cli.tables.table import Floats, Ints

MOST = 0.5
"""The share of its wealth that a bet may lose at most."""
_STEPS = 24
"""Halvings in the search of an end."""


@dataclass(frozen=True, eq=False)
class Bounded:
    """A number of each row, in their order, shape (T,), and the least and the most that it can be.

    sizes: the rows that each number is of, (T,), where clusters of rows have one.
    """

    values: Floats
    low: float
    high: float
    sizes: Ints | Literal[1] = 1

    @property
    def rows(self) -> Ints:
        """The rows up to each number, with its own, shape (T,)."""
        return np.cumsum(np.broadcast_to(self.sizes, len(self.values)))

    @cached_property
    def known_before(self) -> tuple[Floats, Floats]:
        """Mean and variance of the rows before each row, from the middle of the range on, shape (T,) each."""
        count, middle = np.arange(1, len(self.values) + 1), (self.low + self.high) / 2
        sums = np.cumsum(self.values)
        mean = (middle + np.append(0.0, sums[:-1])) / count
        misses = (self.values - (middle + sums) / (count + 1)) ** 2
        start = (self.high - self.low) ** 2 / 4
        return mean, (start + np.append(0.0, np.cumsum(misses)[:-1])) / count

    def less(self, other: Bounded, reach: float) -> Bounded:
        """This less the other, on the same rows; reach: the most that the two can differ by on a row."""
        return Bounded(self.values - other.values, -reach, reach, self.sizes)


@dataclass(frozen=True, eq=False)
class Looked:
    """What all looks up to these rows say of a mean. interval: holds at all looks with the chance of the confidence;
    None where the bets rule out the mean of these rows itself, so that the rows have no one mean.

    chance: the anytime p-value of the bound, min(1, 1 / the largest wealth of who bets that the rule fails). since: the
    row from which on that was enough, from 1, None where it is not. shown: whether the opposite bet was enough.
    """

    value: float
    interval: Interval | None
    chance: float
    since: int | None
    shown: bool


def look(rows: Bounded, bound: float, at_most: bool, confidence: float) -> Looked:
    """Judge that the mean is at most, or at least, a bound. Each side may be wrong with probability 1 - confidence."""
    risk = 1 - confidence
    against, for_it = (_log_wealth(rows, bound, above) for above in (at_most, not at_most))
    enough = math.log(1 / risk)
    passed = np.flatnonzero(against >= enough)
    largest = max(float(against.max(initial=0.0)), 0.0)
    return Looked(
        float(rows.values.mean()),
        sequence_interval(rows, confidence),
        math.exp(-largest),
        int(rows.rows[passed[0]]) if len(passed) else None,
        bool(for_it.max(initial=0.0) >= enough),
    )


def sequence_interval(rows: Bounded, confidence: float) -> Interval | None:
    """What holds the mean at all looks: the means that neither side's bets of half the risk have ruled out.

    None where they have ruled out the mean of these rows: what holds each mean of changing rows is empty, or far off.
    """
    enough = math.log(2 / (1 - confidence))

    def ruled_out(mu: float, above: bool) -> bool:
        return bool(_log_wealth(rows, mu, above).max(initial=0.0) >= enough)

    ends = []
    for above, far in ((True, rows.low), (False, rows.high)):
        near = float(rows.values.mean())
        if ruled_out(near, above):
            return None
        for _ in range(_STEPS):
            middle = (far + near) / 2
            far, near = (middle, near) if ruled_out(middle, above) else (far, middle)
        ends.append(far)
    return ends[0], ends[1]


def _log_wealth(rows: Bounded, mu: float, above: bool) -> Floats:
    """Logarithm of the wealth, after each row, of who bets that the mean is above mu, or below it, shape (T,).

    It is a supermartingale where no row's mean, given the rows before it, is on that side of mu.
    """
    d, room = rows.values, mu - rows.low if above else rows.high - mu
    mean, variance = rows.known_before
    apart = mean - mu if above else mu - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        bet = np.clip(np.nan_to_num(apart / (variance + apart**2)), 0.0, MOST / room if room > 0 else np.inf)
    won = bet * (d - mu if above else mu - d)
    return np.cumsum(np.log1p(np.maximum(won, -MOST)))
