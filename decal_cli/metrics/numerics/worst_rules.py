"""The proper scoring rule that loses most on levels of several classes: a linear program, solved by cuts.

A rule with payoffs in [0, 1] gives every point q of the simplex a vector s_q, and is proper where q.s_q >= q.s_r for
all points q and r (Kleinberg et al. 2023, theorem 17; Hu and Wu 2024, theorem 3.11). Of these m^2 constraints few bind:
the program begins with those between neighbours, and adds those that its solution violates until there are none.

A solution is tied at many points, and ties are broken for the worst. A last program asks for a margin between payoffs
that differ, so that an agent who chooses its best action chooses the one that loses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.errors import Undefined
from decal_cli.limits import MAX_ACTIONS
from decal_cli.tables.classes import ClassLevels, best_actions
from decal_cli.tables.table import Floats, Ints

NEIGHBOURS = 12
"""Points next to each, whose constraints the program begins with."""
N_ADDED = 12
"""Violated constraints of each point that a round adds."""
MAX_ROUNDS = 200
VIOLATED, MARGIN = 1e-9, 1e-9
"""What counts as violated, and by how much an agent prefers the action that loses."""
SOLVER_TOLERANCE = 1e-10
DIFFERENT = 1e-6
"""Payoffs that differ by this are two actions."""
N_DECIMALS = 11
"""Of the payoffs of an agent: more than the margin needs."""
N_ROUNDED = 13
"""Decimals of the probabilities of levels, whose sums depend on the order of the rows in the last ones."""
NOTHING = 1e-9
"""A loss up to here is none."""
SIMPLEX_SIZE = 60
"""Points up to which the simplex method is faster than an interior point."""
Mask = NDArray[np.bool_]


class WorstRule(NamedTuple):
    """The value of the program; the payoffs of every action of an agent that attains it but for 1e-7, (A, K)."""

    loss: float
    utility: Floats


class _Program(NamedTuple):
    """max sum gain * s over proper rules s; points: (m, K), gain: (m, K)."""

    points: Floats
    gain: Floats

    def pairs(self) -> Mask:
        """The constraints to begin with: of neighbours, and of the point that weighs most with all."""
        size = len(self.points)
        square = (self.points**2).sum(axis=1)
        away = square[:, None] + square - 2 * self.points @ self.points.T
        np.fill_diagonal(away, np.inf)
        near = np.argsort(away, axis=1, kind="stable")[:, : min(NEIGHBOURS, size - 1)]
        pairs = np.zeros((size, size), dtype=bool)
        pairs[np.arange(size)[:, None], near] = True
        pairs |= pairs.T
        heaviest = int(np.argmax(np.abs(self.gain).sum(axis=1)))
        pairs[heaviest] = pairs[:, heaviest] = True
        np.fill_diagonal(pairs, False)
        return pairs

    def solve(self, pairs: Mask, margin: Floats) -> tuple[float, Floats]:
        """Value and payoffs, (m, K), under the constraints of these pairs. Errors: Undefined, without a solution."""
        # Loaded late: whoever evaluates scores of two classes needs no scipy.
        from scipy.optimize import linprog
        from scipy.sparse import csr_matrix

        size, classes = self.points.shape
        q, r = np.nonzero(pairs)
        columns = np.hstack([each[:, None] * classes + np.arange(classes) for each in (r, q)])
        entries = np.hstack((self.points[q], -self.points[q]))
        rows = np.repeat(np.arange(len(q)), 2 * classes)
        proper = csr_matrix((entries.ravel(), (rows, columns.ravel())), shape=(len(q), size * classes))
        methods = ("highs-ds", "highs-ipm")
        for method in methods if size <= SIMPLEX_SIZE else reversed(methods):
            solution = linprog(
                -self.gain.ravel(), A_ub=proper, b_ub=-margin[q, r], bounds=(0, 1), method=method,
                options={"primal_feasibility_tolerance": SOLVER_TOLERANCE,
                         "dual_feasibility_tolerance": SOLVER_TOLERANCE},
            )  # fmt: skip
            if solution.status == 0:
                return -float(solution.fun), solution.x.reshape(size, classes)
        raise Undefined("its linear program came to no solution")

    def cut(self, pairs: Mask, margin: Floats) -> tuple[float, Floats]:
        """The same under all constraints; those that were needed are added to the pairs."""
        every = np.arange(len(self.points))
        for _ in range(MAX_ROUNDS):
            value, payoffs = self.solve(pairs, margin)
            worth = self.points @ payoffs.T
            violated = worth - np.diag(worth)[:, None] + margin
            violated[pairs] = -1.0
            np.fill_diagonal(violated, -1.0)
            if violated.max() <= VIOLATED:
                return value, payoffs
            for _ in range(N_ADDED):
                most = violated.argmax(axis=1)
                here = violated[every, most] > VIOLATED
                pairs[every[here], most[here]] = True
                violated[every, most] = -1.0
        raise Undefined("its linear program came to no solution")


def over_constant(levels: ClassLevels, rows: ClassLevels | None = None) -> WorstRule:
    """What always acting on the class frequencies wins over acting on the levels' probabilities, at the most.

    rows: those that the agent is to lose most on, where these are not the levels themselves.
    """
    return _worst(levels, _against_constant, lambda shown: shown.share.sum(axis=0)[None], rows or levels)


def over_frequencies(levels: ClassLevels) -> WorstRule:
    """What acting on each level's class frequencies wins over acting on its probabilities, at the most."""
    return _worst(levels, _against_frequencies, lambda shown: shown.share, levels)


def most_over_frequencies(levels: ClassLevels) -> float:
    """The value of the same program, without its agent."""
    program = _against_frequencies(levels)
    return max(program.cut(program.pairs(), np.zeros((len(program.points),) * 2))[0], 0.0)


def _against_constant(levels: ClassLevels) -> _Program:
    rate = levels.share.sum(axis=0)
    return _Program(np.vstack((levels.score, rate)), np.vstack((-levels.share, rate)))


def _against_frequencies(levels: ClassLevels) -> _Program:
    share = levels.share
    rate = share / share.sum(axis=1, keepdims=True)
    return _Program(np.vstack((levels.score, rate)), np.vstack((-share, share)))


def lost_over_frequencies(levels: ClassLevels, utility: Floats) -> float:
    """Utility per row that acting on each level's class frequencies, not on its probabilities, adds for an agent."""
    won = levels.share * utility[best_actions(levels.score, utility)]
    return float((levels.share @ utility.T).max(axis=1).sum() - won.sum())


def _worst(
    levels: ClassLevels,
    program_of: Callable[[ClassLevels], _Program],
    compared: Callable[[ClassLevels], Floats],
    shown: ClassLevels,
) -> WorstRule:
    """The agent of a program, which does not depend on the order of levels and classes.

    compared: what the best action is taken for in comparison, class shares of shape (c, K).
    """
    classes = np.lexsort((levels.score.sum(axis=0), levels.counts.sum(axis=0)))
    score = np.round(levels.score[:, classes], N_ROUNDED)
    order = np.lexsort(score.T)
    program = program_of(ClassLevels(order, score[order], levels.counts[order][:, classes]))
    pairs, margin = program.pairs(), np.zeros((len(program.points),) * 2)
    value, payoffs = program.cut(pairs, margin)
    if value <= NOTHING:
        return WorstRule(0.0, np.zeros((0, len(classes))))
    margin = MARGIN * (np.abs(payoffs[:, None] - payoffs).max(axis=2) > DIFFERENT)
    _, payoffs = program.cut(pairs, margin)
    utility = np.unique(np.clip(np.round(payoffs, N_DECIMALS), 0.0, 1.0) + 0.0, axis=0)[:, np.argsort(classes)]
    return WorstRule(value, utility[_needed(shown, compared(shown), utility)])


def _needed(levels: ClassLevels, compared: Floats, utility: Floats) -> Ints:
    """The actions, at most MAX_ACTIONS, with which an agent loses most: the others are taken from it one by one."""
    left, path = np.arange(len(utility)), []
    taken = _Choice.of(levels.score @ utility.T, levels.share @ utility.T)
    best = _Choice.of(compared @ utility.T, compared @ utility.T)
    while len(left) >= 2:
        path.append((best.total - taken.total, left))
        loss = best.without() - taken.without()
        least = int(left[np.argmax(loss[left])])
        left = left[left != least]
        taken.drop(least)
        best.drop(least)
    allowed = [(loss, actions) for loss, actions in path if len(actions) <= MAX_ACTIONS]
    most = max(loss for loss, _ in allowed)
    return min((actions for loss, actions in allowed if loss >= most - VIOLATED), key=len)


@dataclass
class _Choice:
    """Which action every point takes, and which one without it. worth, won: shape (m, A); first, second: (m,)."""

    worth: Floats
    won: Floats
    first: Ints
    second: Ints

    @classmethod
    def of(cls, worth: Floats, won: Floats) -> _Choice:
        """By what actions are worth to points; what they then win."""
        choice = cls(worth.copy(), won, *np.zeros((2, len(worth)), dtype=np.int64))
        choice._rank(np.arange(len(worth)))
        return choice

    def _rank(self, points: Ints) -> None:
        worth = self.worth[points]
        self.first[points] = worth.argmax(axis=1)
        worth[np.arange(len(points)), self.first[points]] = -np.inf
        self.second[points] = worth.argmax(axis=1)

    def _of(self, action: Ints) -> Floats:
        return np.asarray(self.won[np.arange(len(action)), action])

    @property
    def total(self) -> float:
        """What is won."""
        return float(self._of(self.first).sum())

    def without(self) -> Floats:
        """The same without each action, shape (A,)."""
        change = self._of(self.second) - self._of(self.first)
        return np.asarray(self.total + np.bincount(self.first, change, self.worth.shape[1]), dtype=np.float64)

    def drop(self, action: int) -> None:
        """Take an action away."""
        self.worth[:, action] = -np.inf
        self._rank(np.flatnonzero((self.first == action) | (self.second == action)))
