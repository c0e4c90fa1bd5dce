"""Statistics that may be looked at after every row: confidence sequences, and an alarm of miscalibration.

A sequence covers the running mean of the conditional expectations of a difference, given all rows before, however the
rows depend on each other. It is an empirical Bernstein sequence (Howard et al. 2021, Choe and Ramdas 2024) with the
boundary of the gamma-exponential mixture. The alarm is an e-process of bets against the score.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from decal_cli.documents import consistent
from decal_cli.limits import MAX_ROWS_OVER_TIME as MAX_ROWS
from decal_cli.numbers import Interval
from decal_cli.sequential.resumable import Resumable
from decal_cli.tables.logistic import expit
from decal_cli.tables.table import Floats, Ints, Labels, Mask
from decal_cli.task import BinaryTask

MAX_GUESS = 0.25
"""How far from 0 a guess may lie, as a share of the range."""
TIGHTEST = 25.0
"""The sum of squares, in squared ranges, at which the boundary is tightest: some hundred rows that differ."""
_GRID = np.append(0.0, 1e-2 * 1.005 ** np.arange(8000.0))
"""The sums of squares at which the boundary is computed; the last one is beyond 1e15."""


class Sequence(NamedTuple):
    """The running mean after every row, and the ends of what covers its expectation, shape (T,) each."""

    mean: Floats
    low: Floats
    high: Floats


class Sums(NamedTuple):
    """Sums after every row, shape (T,) each: the rows, the differences, and the squared errors of their guesses.

    A difference lies in a range whose ends are known before and are at most `width` apart, and so does its guess, which
    is made from the rows before it. Errors of guesses are counted in units of `width`.
    """

    rows: Ints
    total: Floats
    squares: Floats
    width: float

    def sequence(self, alpha: float) -> Sequence:
        """The running mean, and ends that hold for all rows at once with probability 1 - alpha."""
        mean = self.total / self.rows
        margin = self.width * boundary(self.squares, alpha / 2) / self.rows
        return Sequence(mean, mean - margin, mean + margin)


def boundary(squares: Floats, alpha: float) -> Floats:
    """What the sum of sub-exponential differences of scale 1 exceeds at any time with probability at most alpha.

    squares: the sum of squares so far, shape (T,). The boundary is taken at the next point of a fixed grid, so that it
    is never too small, and the same however the rows are cut into pieces.
    """
    points, at = np.unique(np.searchsorted(_GRID, squares), return_inverse=True)
    return _mixture_boundary(_GRID[points], alpha)[at]


def _mixture_boundary(squares: Floats, alpha: float) -> Floats:
    """The sum at which the gamma-exponential mixture is 1/alpha, by bisection, shape (k,): the end above it."""
    rho = TIGHTEST / (2 * math.log(1 / alpha) + math.log(1 + 2 * math.log(1 / alpha)))
    low, high = np.zeros_like(squares), np.ones_like(squares)
    while bool((below := log_mixture(high, squares, rho) < -math.log(alpha)).any()):
        high = np.where(below, 2 * high, high)
    for _ in range(60):
        middle = (low + high) / 2
        below = log_mixture(middle, squares, rho) < -math.log(alpha)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


def log_mixture(total: Floats, squares: Floats, rho: float) -> Floats:
    """log of the gamma-exponential mixture supermartingale at a sum and its sum of squares, for scale 1.

    Howard et al. 2021, prop. 9: the mean of exp(lambda total - (-log(1 - lambda) - lambda) squares) over 1 - lambda
    in (0, 1) with a truncated gamma density of shape and rate rho.
    """
    from scipy.special import gammainc, gammaln

    start = rho * math.log(rho) - gammaln(rho) - math.log(gammainc(rho, rho))
    shape, rate = squares + rho, total + squares + rho
    return start + gammaln(shape) + np.log(gammainc(shape, rate)) - shape * np.log(rate) + total + squares


Acts = Mask
"""Whether each row is acted on, shape (T,)."""


def utility_difference(first: Acts, second: Acts, label: Labels, task: BinaryTask) -> Floats:
    """What deciding as the second wins over the first in every row, shape (T,)."""
    return (second.astype(float) - first) * task.u_delta * (label - task.threshold)


class RunningSums(Resumable):
    """Sums of differences that come in pieces. reach: how far from 0 a difference lies at most.

    width: how far a guess can be from its difference.
    """

    def __init__(self, reach: float, width: float) -> None:
        self.reach, self.width = reach, width
        self.total = self.squares = 0.0

    def _enter(self, before: int, difference: Floats, guess: Floats) -> Sums:
        """The sums after each of the next differences; before: how many there were."""
        total = cumulated(self.total, difference)
        squares = cumulated(self.squares, ((difference - guess) / self.width) ** 2)
        self.total, self.squares = float(total[-1]), float(squares[-1])
        return Sums(np.arange(before + 1, before + len(total)), total[1:], squares[1:], self.width)

    def mean_and_ends(self, count: int, alpha: float) -> tuple[float, Interval]:
        """The mean of so many differences, and what covers its expectation with probability 1 - alpha at any time."""
        sums = Sums(np.array([count]), np.array([self.total]), np.array([self.squares]), self.width)
        mean, low, high = (float(each[0]) for each in sums.sequence(alpha))
        return mean, (max(low, -self.reach), min(high, self.reach))

    def _check_sums(self, count: int) -> None:
        consistent(
            0 <= count <= MAX_ROWS, abs(self.total) <= self.reach * (count + 1), 0 <= self.squares <= 4 * (count + 1)
        )


def cumulated(start: float, values: Floats) -> Floats:
    """The sum so far, and after each of these values, shape (T + 1,), however the rows are cut into pieces."""
    return np.cumsum(np.concatenate(([start], values)))


class RunningDifference(RunningSums):
    """Sums of the difference between two ways to decide, of rows that may come in pieces.

    Rows that both decide alike differ by 0 for certain, and widen nothing. A row that they decide differently is
    guessed from the rows before it that differ in the same direction; before the first of them the guess is 0.
    """

    rows: int
    total: float
    squares: float
    differing: list[int]
    positives: list[int]

    def __init__(self, task: BinaryTask) -> None:
        super().__init__(task.u_delta, task.u_delta)
        self.task, self.rows = task, 0
        # Rows that only the second acts on, and rows that only the first does; of each, how many have label 1.
        self.differing, self.positives = [0, 0], [0, 0]

    def advance(self, first: Acts, second: Acts, label: Labels) -> Sums:
        """The sums after each of the next rows."""
        task = self.task
        guess = np.zeros(len(label))
        for way, (differs, sign) in enumerate(((second & ~first, 1.0), (first & ~second, -1.0))):
            positives = self.positives[way] + np.concatenate(([0], np.cumsum(label[differs], dtype=int)))
            count = len(positives) - 1
            share = (positives[:-1] + task.threshold) / (self.differing[way] + np.arange(1, count + 1))
            guess[differs] = sign * task.u_delta * (share - task.threshold)
            self.differing[way], self.positives[way] = self.differing[way] + count, int(positives[-1])
        sums = self._enter(self.rows, utility_difference(first, second, label, task), guess)
        self.rows += len(label)
        return sums

    def _check(self) -> None:
        if not len(self.differing) == len(self.positives) == 2:
            raise ValueError("there are two ways to differ")
        self._check_sums(self.rows)
        consistent(
            all(0 <= of_way <= rows for of_way, rows in zip(self.positives, self.differing, strict=True)),
            0 <= sum(self.differing) <= self.rows,
        )


class Runs(NamedTuple):
    """Rows that follow each other and are of one cluster. The first run may have begun before these rows.

    of_row: the run of each row, shape (T,), from 0. size: rows of each run so far, shape (R,). first: the number of the
    first row of each. Every run but the last is over.
    """

    of_row: Ints
    size: Ints
    first: Ints

    def up_to(self, rows: int) -> Runs:
        """The runs of the first so many rows. The size of the last one is not recounted: that run is not over."""
        runs = int(self.of_row[rows - 1]) + 1
        return Runs(self.of_row[:rows], self.size[:runs], self.first[:runs])


class RunningMeans(RunningSums):
    """Sums of the averages over clusters of what one way to decide wins over another; clusters come in pieces.

    An average lies within u_delta max(t*, 1 - t*) of 0. It is guessed by the mean of those before, as long as this is a
    small part of that range: the less a guess can miss, the tighter the sequence.
    """

    steps: int = 0
    total: float
    squares: float
    open: float = 0.0

    def __init__(self, task: BinaryTask) -> None:
        reach = max(task.threshold, 1 - task.threshold) * task.u_delta
        self.farthest = MAX_GUESS * reach
        super().__init__(reach, reach + self.farthest)

    def advance(self, difference: Floats, runs: Runs) -> Sums:
        """The sums after each cluster that is over by now; difference: of each row, shape (T,)."""
        totals = np.zeros(len(runs.size))
        totals[0] = self.open
        # One by one, so that the sum does not depend on how the rows are cut into pieces.
        np.add.at(totals, runs.of_row, difference)
        self.open = float(totals[-1])
        return self._enter_means(totals[:-1] / runs.size[:-1])

    def close(self, size: int) -> Sums:
        """The sums when the latest cluster, of so many rows, is over."""
        mean, self.open = self.open / size, 0.0
        return self._enter_means(np.array([mean]))

    def _enter_means(self, means: Floats) -> Sums:
        before = np.arange(self.steps, self.steps + len(means))
        mean = cumulated(self.total, means)[:-1] / np.maximum(before, 1)
        self.steps += len(means)
        return self._enter(self.steps - len(means), means, np.clip(mean, -self.farthest, self.farthest))

    def _check(self) -> None:
        self._check_sums(self.steps)
        consistent(abs(self.open) <= self.reach * MAX_ROWS)


RESTART = 100
"""Rows after which the bets start over: bets that start near a change are not held back by the rows before it."""
MAX_LOG_E = 690.0
"""The log at which capital stops growing: floats end just above."""
N_BINS = 5
"""Bins of the score, of equal width, for bets that the score is off in one of them only."""


# Null hypothesis of the alarm: given every score and label of the rows before, the label of a row with score p is 1
# with probability p. A bet is another calibration curve q(p); its capital is the likelihood ratio of q to p. Under the
# null hypothesis capital has no tendency to grow, and the chance that a mixture of capitals that starts at 1 ever
# reaches 1/alpha is at most alpha (Ville 1939). Henzi et al. 2024 bet on an isotonic q that they learn; here a mixture
# of fixed ones bets, and some capital is kept for bets that start later. Labels enter in the order of the rows,
# whenever they arrive: when they arrive may depend on what they are.
@dataclass(frozen=True)
class Bet:
    """A bet that the log-odds are slope * logit p + shift, where the score lies in this bin (None: everywhere).

    share: of the capital, that starts on this bet.
    """

    share: float
    shift: float = 0.0
    slope: float = 1.0
    bin: int | None = None

    def log_factors(self, score: Floats, logit: Floats, label: Labels) -> Floats:
        """log q(y) / p(y) of every row, shape (T,); at most MAX_LOG_E, where the score gave y no chance at all."""
        bet = expit(self.slope * logit + self.shift)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(label == 1, np.log(bet) - np.log(score), np.log1p(-bet) - np.log1p(-score))
        # The bet against a score of 0 or 1 is that score again: nothing is won, unless the score is wrong.
        factors = np.where(np.isnan(factors), MAX_LOG_E, np.clip(factors, -MAX_LOG_E, MAX_LOG_E))
        if self.bin is not None:
            factors[np.minimum((score * N_BINS).astype(int), N_BINS - 1) != self.bin] = 0.0
        return factors


BETS = (
    *(Bet(0.5 / 10, sign * shift) for shift in (0.125, 0.25, 0.5, 1.0, 2.0) for sign in (1, -1)),
    *(Bet(0.25 / 12, shift, slope) for slope in (0.5, 0.7, 1.4, 2.0) for shift in (-0.5, 0.0, 0.5)),
    *(Bet(0.25 / 20, sign * shift, bin=k) for k in range(N_BINS) for shift in (0.5, 1.0) for sign in (1, -1)),
)
"""Half of the capital on ten shifts, a quarter on twelve slopes, a quarter on twenty shifts of single bins."""


class CalibrationAlarm(Resumable):
    """The e-process of the mixture of all bets, each started over at every 100th row.

    The j-th start has the share 1/(j(j+1)) of the capital, and what has not started yet is kept. Rows may come in
    pieces: what is carried over, for each bet, is its capital since the first row, the capital of its starts over that,
    and which start has gained most.
    """

    rows: int = 0
    capital: Floats
    of_starts: Floats
    lead: Floats
    leader: Ints

    def __init__(self) -> None:
        self.capital = np.zeros(len(BETS))
        self.of_starts = np.full(len(BETS), -np.inf)
        self.lead = np.full(len(BETS), -np.inf)
        self.leader = np.zeros(len(BETS), dtype=int)

    def advance(self, score: Floats, label: Labels, within: Any = None) -> Floats:
        """log of the e-process after each of the next rows, shape (T,), of scores in [0, 1]."""
        return self.enter(np.arange(self.rows, self.rows + len(score)), self.log_factors(score, label))

    @staticmethod
    def log_factors(score: Floats, label: Labels) -> Iterator[Floats]:
        """log q(y) / p(y) of every row, shape (T,), for each bet."""
        with np.errstate(divide="ignore"):
            logit = np.log(score) - np.log1p(-score)
        return (bet.log_factors(score, logit, label) for bet in BETS)

    def enter(self, number: Ints, log_factors: Iterable[Floats]) -> Floats:
        """log of the e-process after each of the next steps, shape (T,); log_factors: of each bet on them.

        number: of each step, never below `rows`. A step begins all starts up to its number that had not begun.
        """
        place = number // RESTART + 1
        before = np.concatenate(([-(-self.rows // RESTART)], place[:-1]))
        starts = np.flatnonzero(place > before)
        # The shares of the starts, 1/(j(j+1)) each, added up: 1/(first of them) - 1/(last of them + 1).
        first, last = before[starts] + 1.0, place[starts] + 1.0
        log_share = np.log(last - first) - np.log(first * last)
        begun = np.searchsorted(starts, np.arange(len(number)), side="right")
        total = -np.log(place + 1.0)
        for at, (bet, factors) in enumerate(zip(BETS, log_factors, strict=True)):
            capital = np.cumsum(np.concatenate(([self.capital[at]], factors)))
            leads = log_share - capital[starts]
            of_starts = np.logaddexp.accumulate(np.concatenate(([self.of_starts[at]], leads)))
            total = np.logaddexp(total, np.log(bet.share) + capital[1:] + of_starts[begun])
            self.capital[at], self.of_starts[at] = capital[-1], of_starts[-1]
            if len(leads) and leads.max() > self.lead[at]:
                self.lead[at], self.leader[at] = leads.max(), number[starts[leads.argmax()]]
        self.rows = int(number[-1]) + 1 if len(number) else self.rows
        return np.minimum(total, MAX_LOG_E)

    def rows_of_starts(self) -> set[int]:
        """The rows at which a start stands that an alarm may name."""
        return set(self.leader.tolist())

    def likely_start(self) -> int:
        """The row, counted from 0, at which the bet that has won most by now was started: to a hundred rows."""
        return self.strongest()[1]

    def strongest(self) -> tuple[float, int]:
        """The log of the capital of the start whose bet has won most by now, and the row of that start."""
        log_capital = np.log([bet.share for bet in BETS]) + self.capital + self.lead
        best = int(np.argmax(log_capital))
        return float(log_capital[best]), int(self.leader[best])

    def _check(self) -> None:
        if not len(self.capital) == len(self.of_starts) == len(self.lead) == len(self.leader) == len(BETS):
            raise ValueError("there are not as many bets as there should be")
        # A step moves the log of a capital by MAX_LOG_E at most; -inf is that of what has not started.
        most = MAX_LOG_E * (self.rows + 1)
        logs = np.concatenate((self.capital, self.of_starts, self.lead))
        consistent(
            0 <= self.rows <= MAX_ROWS,
            (np.abs(logs[np.isfinite(logs)]) <= most).all(),
            np.isinf(self.of_starts).all() if self.rows == 0 else np.isfinite(logs).all(),
            ((self.leader >= 0) & (self.leader < max(self.rows, 1))).all(),
        )


def first_alarm(log_e: Floats, alpha: float) -> int | None:
    """The row, counted from 0, after which the e-process first is 1/alpha or more."""
    above = log_e >= -np.log(alpha)
    return int(above.argmax()) if bool(above.any()) else None


def log_sums_of(begun: Floats, blocks: int, of_row: Ints, score: Floats, label: Labels) -> Floats:
    """log of the sum of q(y) / p(y) over the rows of each block, shape (bets, blocks).

    begun: the log sums so far of the first blocks, (bets, begun blocks). of_row: the block of each row, shape (T,).
    """
    log_sums = np.full((len(BETS), blocks), -np.inf)
    log_sums[:, : begun.shape[1]] = begun
    for sums, log_factors in zip(log_sums, CalibrationAlarm.log_factors(score, label), strict=True):
        # One by one, so that the sum does not depend on how the rows are cut into pieces.
        np.logaddexp.at(sums, of_row, log_factors)
    return log_sums


class ClusterAlarm(Resumable):
    """The e-process of `CalibrationAlarm`, where a bet on a cluster is the average of the bets on its rows."""

    steps: CalibrationAlarm
    log_e: float = 0.0
    open: Floats
    first_rows: dict[int, int]

    def __init__(self) -> None:
        self.steps = CalibrationAlarm()
        self.open = np.full(len(BETS), -np.inf)
        self.first_rows = {0: 0}

    def advance(self, score: Floats, label: Labels, runs: Runs) -> Floats:
        """log of the e-process of the clusters that are over when each of these rows comes, shape (T,)."""
        over = len(runs.size) - 1
        begun = self.steps.rows + np.arange(len(runs.size))
        self.first_rows |= {
            step: row for step, row in zip(begun.tolist(), runs.first.tolist(), strict=True) if step % RESTART == 0
        }
        factors = log_sums_of(self.open[:, None], len(runs.size), runs.of_row, score, label)
        self.open = factors[:, -1].copy()
        after = np.concatenate(([self.log_e], self._enter(factors[:, :over] - np.log(runs.size[:over]))))
        return after[runs.of_row]

    def close(self, size: int) -> float:
        """log of the e-process when the latest cluster, of so many rows, is over."""
        factors, self.open = self.open[:, None] - np.log(size), np.full(len(BETS), -np.inf)
        self._enter(factors)
        return self.log_e

    def _enter(self, factors: Floats) -> Floats:
        log_e = self.steps.enter(self.steps.rows + np.arange(factors.shape[1]), factors)
        self.log_e = float(log_e[-1]) if len(log_e) else self.log_e
        led = self.steps.rows_of_starts()
        self.first_rows = {step: row for step, row in self.first_rows.items() if step in led or step >= self.steps.rows}
        return log_e

    def rows_of_starts(self) -> set[int]:
        """The rows at which a start stands that an alarm may name, now or when the latest cluster is over."""
        return set(self.first_rows.values())

    def likely_start(self) -> int:
        """The row, counted from 0, at which the bet that has won most by now was started: to a hundred clusters."""
        return self.first_rows[self.steps.likely_start()]

    def _check(self) -> None:
        if len(self.open) != len(BETS) or not self.steps.rows_of_starts() <= self.first_rows.keys():
            raise ValueError("there are not as many bets as there should be, or a start has no row")
        consistent(
            abs(self.log_e) <= MAX_LOG_E,
            np.isinf(self.open).all() or (np.abs(self.open) <= 2 * MAX_LOG_E).all(),
            all(0 <= row <= MAX_ROWS for row in self.first_rows.values()),
        )


@dataclass(frozen=True, eq=False)
class DelayedBlock:
    """A run of rows, as far as it has come. first: the number of its first row; size: its rows; shared: over how many
    rows a bet on it is the average; log_sums: for each bet the log of its sum over the first `shared` rows, (bets,).
    """

    first: int
    size: int
    shared: int
    log_sums: Floats


class DelayedAlarm(Resumable):
    """Two e-processes of `CalibrationAlarm`, of every other block each. A block enters when its labels are known.

    turns: of even and of odd blocks. log_inverse: log of 1 over the p-value: half of the most that either has been.
    rows, begun: rows and blocks so far; held: the latest two blocks, which wait.
    """

    rows: int = 0
    begun: int = 0
    log_inverse: float = 0.0
    turns: tuple[CalibrationAlarm, ...]
    held: list[DelayedBlock]

    def __init__(self) -> None:
        self.turns = (CalibrationAlarm(), CalibrationAlarm())
        self.held = []

    def advance(self, score: Floats, label: Labels, known: Ints) -> Floats:
        """log of 1 over the p-value after each of the next rows, shape (T,): it never falls.

        known: of how many first rows of the stream the label is known when each of these is predicted, shape (T,).
        """
        row = np.arange(self.rows, self.rows + len(score))
        first = np.array([*(block.first for block in self.held), *self._begins(known)])
        size = np.diff(first, append=self.rows + len(score))
        old = len(self.held)
        shared = np.concatenate(([1], size[:-1]))
        shared[:old] = [block.shared for block in self.held]
        of_row = np.searchsorted(first, row, side="right") - 1
        bets = row - first[of_row] < shared[of_row]
        held = np.reshape([block.log_sums for block in self.held], (old, len(BETS)))
        log_sums = log_sums_of(held.T, len(first), of_row[bets], score[bets], label[bets])
        log_inverse = self._enter(first[:-2], size[:-2], shared[:-2], log_sums[:, :-2])
        self.held = [
            DelayedBlock(int(first[place]), int(size[place]), int(shared[place]), log_sums[:, place].copy())
            for place in range(max(len(first) - 2, 0), len(first))
        ]
        self.rows, self.begun = self.rows + len(score), self.begun + len(first) - old
        # The blocks up to two before that of a row have entered.
        return log_inverse[np.maximum(of_row - 1, 0)]

    @property
    def entered(self) -> bool:
        """Whether the labels of any block were known in time to enter."""
        return self.begun > len(self.held)

    def _begins(self, known: Ints) -> list[int]:
        """The first rows of the blocks that begin here: the labels of all blocks but the latest are known there."""
        begins = [] if self.held else [0]
        latest, until = self.held[-1].first if self.held else 0, known.tolist()
        while True:
            place = bisect_left(until, latest, max(latest + 1 - self.rows, 0))
            if place == len(until):
                return begins
            latest = self.rows + place
            begins.append(latest)

    def _enter(self, first: Ints, size: Ints, shared: Ints, log_sums: Floats) -> Floats:
        """log of 1 over the p-value before any of these blocks has entered, and after each, shape (blocks + 1,)."""
        turn = (self.begun - len(self.held) + np.arange(len(first))) % 2
        with np.errstate(divide="ignore"):
            # Where a block has fewer rows than its bet is shared among, the shares that are left over are not bet.
            log_factors = np.logaddexp(log_sums, np.log(np.maximum(shared - size, 0))) - np.log(shared)
        log_e = np.full(len(first), -np.inf)
        for number, e_process in enumerate(self.turns):
            log_e[turn == number] = e_process.enter(first[turn == number], log_factors[:, turn == number])
        log_inverse = np.maximum.accumulate(np.concatenate(([self.log_inverse], log_e - math.log(2))))
        self.log_inverse = float(log_inverse[-1])
        return log_inverse

    def rows_of_starts(self) -> set[int]:
        """The rows at which a start stands that an alarm may name, now or when the blocks that wait have entered."""
        return set().union(*(turn.rows_of_starts() for turn in self.turns), {block.first for block in self.held})

    def likely_start(self) -> int:
        """The row, counted from 0, at which the bet that has won most by now was started."""
        return max(turn.strongest() for turn in self.turns)[1]

    def _check(self) -> None:
        if len(self.turns) != 2 or any(len(block.log_sums) != len(BETS) for block in self.held):
            raise ValueError("there are not as many bets as there should be")
        ends = [block.first + block.size for block in self.held]
        logs = np.array([block.log_sums for block in self.held])
        consistent(
            0 <= self.log_inverse <= MAX_LOG_E,
            len(self.held) == min(self.begun, 2),
            0 <= self.begun <= self.rows <= MAX_ROWS,
            ends[-1:] == [self.rows] if self.rows else not self.held,
            ends[:-1] == [block.first for block in self.held[1:]],
            all(block.first >= 0 and block.size > 0 and 0 < block.shared <= self.rows for block in self.held),
            (np.abs(logs) <= 2 * MAX_LOG_E).all(),
            all(turn.rows <= self.rows for turn in self.turns),
        )
