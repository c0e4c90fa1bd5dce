"""An alarm of miscalibration that may be looked at after every row: an e-process of bets against the score.

Null hypothesis: given every score and label of the rows before, the label of a row with score p is 1 with probability
p. A bet is another calibration curve q(p); its capital is the likelihood ratio of q to p. Under the null hypothesis
capital has no tendency to grow, and the chance that a mixture of capitals that starts at 1 ever reaches 1/alpha is at
most alpha (Ville 1939). Henzi et al. 2024 bet on an isotonic q that they learn; here a mixture of fixed ones bets, and
some capital is kept for bets that start later. Labels enter in the order of the rows, whenever they arrive: when they
arrive may depend on what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.documents import consistent
from decal_cli.limits import MAX_ROWS_OVER_TIME as MAX_ROWS
from decal_cli.sequential.resumable import Kept, Resumable, float_array, int_array, log_array
from decal_cli.tables.logistic import expit
from decal_cli.tables.table import Floats, Ints

RESTART = 100
"""Rows after which the bets start over: bets that start near a change are not held back by the rows before it."""
MAX_LOG_E = 690.0
"""At which capital stops: floats end just above."""
N_BINS = 5
"""Bins of the score, of equal width, for bets that the score is off in one of them only."""
_SHIFTS = (0.125, 0.25, 0.5, 1.0, 2.0)
_SLOPES = (0.5, 0.7, 1.4, 2.0)
_BIN_SHIFTS = (0.5, 1.0)


@dataclass(frozen=True)
class Bet:
    """That the log-odds are slope * logit p + shift, where the score lies in this bin (None: everywhere).

    share: of the capital that starts on it.
    """

    share: float
    shift: float = 0.0
    slope: float = 1.0
    bin: int | None = None

    def log_factors(self, score: Floats, logit: Floats, label: NDArray[np.uint8]) -> Floats:
        """log q(y) / p(y) of every row, shape (T,); at most MAX_LOG_E, where the score gave y no chance at all."""
        bet = expit(self.slope * logit + self.shift)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(label == 1, np.log(bet) - np.log(score), np.log1p(-bet) - np.log1p(-score))
        # A score of 0 or 1 bets as its logit does, on the same: nothing is won, unless it is wrong.
        factors = np.where(np.isnan(factors), MAX_LOG_E, np.clip(factors, -MAX_LOG_E, MAX_LOG_E))
        if self.bin is not None:
            factors[np.minimum((score * N_BINS).astype(np.int64), N_BINS - 1) != self.bin] = 0.0
        return np.asarray(factors)


def _bets() -> tuple[Bet, ...]:
    shifts = [sign * shift for shift in _SHIFTS for sign in (1, -1)]
    slopes = [(slope, shift) for slope in _SLOPES for shift in (-0.5, 0.0, 0.5)]
    bins = [(place, sign * shift) for place in range(N_BINS) for shift in _BIN_SHIFTS for sign in (1, -1)]
    return (
        *(Bet(0.5 / len(shifts), shift) for shift in shifts),
        *(Bet(0.25 / len(slopes), shift, slope) for slope, shift in slopes),
        *(Bet(0.25 / len(bins), shift, bin=place) for place, shift in bins),
    )


BETS = _bets()
"""Half of the capital on shifts, a quarter on slopes, a quarter on single bins."""


class Start(NamedTuple):
    """A bet that started at a row, counted from 0, and the log of its capital by now."""

    log_capital: float
    row: int


class CalibrationAlarm(Resumable):
    """The e-process of the mixture of all bets, each started over at every 100th row.

    The j-th start has the share 1/(j(j+1)) of the capital, and what has not started yet is kept. Rows may come in
    pieces: what is carried over, for each bet, is its capital since the first row, the capital of its starts over that,
    and which start has gained most.
    """

    KEPT: ClassVar[Kept] = {
        "rows": int,
        "capital": float_array,
        **dict.fromkeys(("of_starts", "lead"), log_array),
        "leader": int_array,
    }

    def __init__(self) -> None:
        self.rows = 0
        self.capital = np.zeros(len(BETS))
        self.of_starts = np.full(len(BETS), -np.inf)
        self.lead = np.full(len(BETS), -np.inf)
        self.leader = np.zeros(len(BETS), dtype=np.int64)

    def advance(self, score: Floats, label: NDArray[np.uint8]) -> Floats:
        """log of the e-process after each of the next rows, shape (T,), of scores in [0, 1]."""
        return self.enter(np.arange(self.rows, self.rows + len(score)), self.log_factors(score, label))

    @staticmethod
    def log_factors(score: Floats, label: NDArray[np.uint8]) -> Iterator[Floats]:
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
        """The row, counted from 0, at which the start stands whose bet has won most by now: to a hundred rows."""
        return self.strongest().row

    def strongest(self) -> Start:
        """The start whose bet has won most by now."""
        log_capital = np.log([bet.share for bet in BETS]) + self.capital + self.lead
        best = int(np.argmax(log_capital))
        return Start(float(log_capital[best]), int(self.leader[best]))

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


def log_e_process(score: Floats, label: NDArray[np.uint8]) -> Floats:
    """log of the e-process after every row, shape (T,)."""
    return CalibrationAlarm().advance(score, label)


def first_alarm(log_e: Floats, alpha: float) -> int | None:
    """The row, counted from 0, after which the e-process first is 1/alpha or more."""
    above = log_e >= -np.log(alpha)
    return int(above.argmax()) if bool(above.any()) else None
