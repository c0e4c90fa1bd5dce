"""The largest loss of an agent with payoffs in [0, 1] that acts on the scores, over all decision tasks at once.

Of two classes it has a closed form: it follows from the loss of every two-action agent as a curve over its threshold.
More classes take a linear program, which takes seconds, and is solved only where these metrics are named, or every
metric is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from decal_cli.declarations.papers import cite
from decal_cli.errors import Undefined
from decal_cli.limits import MAX_ACTIONS
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import gaps
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import Biased, Measured, WorstCaseTask, family, form_of, like, metric, null_of
from decal_cli.metrics.gaps import AtLevels, Levels, as_score, at_levels, levels_or_cells, need_rows, on_exact_levels
from decal_cli.tables.classes import ClassLevels, ClassTable, best_actions
from decal_cli.tables.estimate import ratio
from decal_cli.tables.memo import once
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BLOCK, Floats, Ints, Table

Convex = Callable[[Floats], Floats]

_TIE = 1e-12
_ROUNDING = 1e-15


class Kink(NamedTuple):
    """A threshold, the curve's larger one-sided limit there, and its side: 1 just above, -1 just below, 0 at it."""

    at: float
    loss: float
    side: int


class Worst(NamedTuple):
    """The worst agent: what it loses, its kinks and their weights in nu."""

    loss: float
    kinks: tuple[Kink, ...]
    weights: tuple[float, ...]


_ENDS = (Kink(0.0, 0.0, 1), Kink(1.0, 0.0, -1))


# A proper decision rule with payoffs in [0, 1] is a measure nu >= 0 of kinks with int mu dnu <= 1 and
# int (1 - mu) dnu <= 1, and its loss is int curve dnu. One kink may weigh 1 / max(mu, 1 - mu); over all measures the
# supremum is twice the upper concave envelope of the curve at 1/2. A curve here is linear between scores but for convex
# kinks, and jumps at scores. So only the one-sided limits at the scores matter, and the point 1/2 for one kink.
class LossCurve:
    """loss(mu) = (sum over scores <= mu of (pos - mu n) + convex(mu)) / T, at the scores and at 1/2.

    at: these, increasing, (m,). loss: the larger one-sided limit there, and side: its side, as of a Kink. half: at 1/2.
    """

    def __init__(self, t: Table, convex: Convex) -> None:
        self.at, self.loss, self.side = t.score, np.empty(len(t)), np.empty(len(t), np.int8)
        start, rows, positives = 0, 0.0, 0.0
        for block in t.blocks():
            run = slice(start, start + len(block.n))
            n, pos = rows + np.cumsum(block.n), positives + np.cumsum(block.pos)
            above, below = _sides(block.score, block.n, block.pos, n, pos, convex(block.score))
            self.loss[run] = np.maximum(above, below) / t.total
            self.side[run] = 2 * (above >= below - _TIE * t.total).astype(np.int8) - 1
            start, rows, positives = run.stop, float(n[-1]), float(pos[-1])
        low, high = (int(np.searchsorted(self.at, 0.5, side)) for side in ("left", "right"))
        self._below, self._above = range(low), range(high, len(t))
        below_half = t.pos[:low].sum(dtype=np.float64) - 0.5 * t.n[:low].sum(dtype=np.float64)
        loss = float(below_half + convex(np.array([0.5]))[0]) / t.total
        self.half = self._kink(low) if low < high else Kink(0.5, loss, 0)

    def _kink(self, place: int) -> Kink:
        return Kink(float(self.at[place]), float(self.loss[place]), int(self.side[place]))

    def _top(self, height: Callable[[Floats, Floats], Floats], part: range, tie: float) -> tuple[float, Kink]:
        """The largest height(at, loss) of the scores in a part, and the first of those that reach it."""
        runs = [slice(start, min(start + BLOCK, part.stop)) for start in range(part.start, part.stop, BLOCK)]
        tops = [float(height(self.at[run], self.loss[run]).max()) for run in runs]
        best = max(tops, default=-np.inf)
        for run, top in zip(runs, tops, strict=True):
            if top >= best - tie:
                return best, self._kink(run.start + int(np.argmax(height(self.at[run], self.loss[run]) >= best - tie)))
        return best, self.half

    def one_kink(self) -> Worst:
        """The worst agent with two actions; of several, the one with the lowest threshold."""
        below, above = (self._top(_alone, part, _TIE) for part in (self._below, self._above))
        found = (below, (2 * self.half.loss, self.half), above)
        best = max(loss for loss, _ in found)
        if best <= _TIE:
            return Worst(0.0, (), ())
        kink = next(kink for loss, kink in found if loss >= best - _TIE)
        return Worst(min(best, 1.0), (kink,), (1 / max(kink.at, 1 - kink.at),))

    def highest(self) -> float:
        """The supremum of the curve itself, as a kink of weight 1 anywhere loses it; not below 0."""
        return max(float(self.loss.max()), self.half.loss, 0.0)

    def any_kinks(self) -> Worst:
        """The worst agent with any number of actions: one or two kinks, twice the envelope at 1/2."""
        kinks, reached = [*_ENDS, *self.one_kink().kinks], -1.0
        while True:
            left, right, height = _bridge(kinks)
            if height <= reached:
                break
            reached = height
            # The farthest above the line through (1/2, height) on either side.
            over = partial(_over, slope=(right.loss - left.loss) / (right.at - left.at), height=height)
            farthest = [self._top(over, part, 0.0) for part in (self._below, self._above)]
            better = [kink for above, kink in farthest if above > _ROUNDING]
            if not better:
                break
            kinks = [left, right, *better]
        share = (right.at - 0.5) / (right.at - left.at)
        pair = [(left, 2 * share), (right, 2 * (1 - share))]
        if self.half.loss >= height - _TIE:
            pair, height = [(self.half, 2.0)], max(height, self.half.loss)
        losing = [(kink, weight) for kink, weight in pair if kink.loss > _TIE]
        return Worst(min(max(2 * height, 0.0), 1.0), tuple(k for k, _ in losing), tuple(w for _, w in losing))


def _alone(at: Floats, loss: Floats) -> Floats:
    """What an agent loses whose only kink lies at a score."""
    return loss / np.maximum(at, 1 - at)


def _over(at: Floats, loss: Floats, slope: float, height: float) -> Floats:
    """How far the curve lies above the line through (1/2, height)."""
    return loss - slope * (at - 0.5) - height


def _sides(
    score: Floats, n: Floats, pos: Floats, rows: Floats, positives: Floats, convex: Floats
) -> tuple[Floats, Floats]:
    """T times the curve just above and just below each score, by sums up to it; shape (.., m). Kinks lie in (0, 1)."""
    above = score * rows
    np.subtract(positives, above, out=above)
    above += convex
    below = n * score
    below -= pos
    below += above
    below[..., score == 0] = 0.0
    above[..., score == 1] = 0.0
    return above, below


def _bridge(kinks: list[Kink]) -> tuple[Kink, Kink, float]:
    """The two kinks, one on either side of 1/2, whose chord is highest there; and its height."""
    pairs = [
        (left, right, (left.loss * (right.at - 0.5) + right.loss * (0.5 - left.at)) / (right.at - left.at))
        for left in kinks
        for right in kinks
        if left.at < 0.5 < right.at
    ]
    return max(pairs, key=lambda pair: pair[2])


@once
def of_levels(t: Table) -> LossCurve:
    """CFDL of the kink: (1/T) sum n |h - mu| over levels whose score and frequency h lie on either side of mu."""
    parts = []
    for block in t.blocks():
        rate, which = np.unique(block.pos / block.n, return_inverse=True)
        parts.append((rate, np.bincount(which, weights=block.n)))
    rate, which = np.unique(np.concatenate([rate for rate, _ in parts]), return_inverse=True)
    rows = np.bincount(which, weights=np.concatenate([rows for _, rows in parts]))
    n, pos = map(gaps.running, (rows, rows * rate))

    def convex(mu: Floats) -> Floats:
        upto = np.searchsorted(rate, mu, side="right")
        return np.asarray(mu * n[upto] - pos[upto])

    return LossCurve(t, convex)


@once
def of_constant(t: Table) -> LossCurve:
    """What always predicting the base rate would have gained over the scores, before it is cut at 0."""
    return LossCurve(t, lambda mu: np.maximum(mu * t.total - t.positives, 0.0))


def losses_of_levels(score: Floats, n: Floats, pos: Floats, kinks: int) -> Floats:
    """cdl (two kinks) or v_cdl (one) of tables with these levels; n and pos of shape (..., m)."""
    rate = ratio(pos, n)[..., None, :]

    def convex(mu: Floats) -> Floats:
        return np.asarray(np.einsum("...ki,...i->...k", np.maximum(mu[:, None] - rate, 0.0), n))

    return _largest(score, n, pos, convex, kinks)


def losses_of_constant(score: Floats, n: Floats, pos: Floats, kinks: int) -> Floats:
    """u_cal (two kinks) or v_cal (one); twice the supremum of the curve itself (none)."""
    total, positives = n.sum(axis=-1, keepdims=True), pos.sum(axis=-1, keepdims=True)
    return _largest(score, n, pos, lambda mu: np.maximum(mu * total - positives, 0.0), kinks)


def _largest(score: Floats, n: Floats, pos: Floats, convex: Convex, kinks: int) -> Floats:
    n = np.broadcast_to(n, pos.shape)
    rows, positives = np.cumsum(n, axis=-1), np.cumsum(pos, axis=-1)
    at, upto = np.concatenate((score, (0.5, 0.0, 1.0))), slice(int(np.searchsorted(score, 0.5, side="right")))
    half = (pos[..., upto] - 0.5 * n[..., upto]).sum(axis=-1, keepdims=True) + convex(np.array([0.5]))
    larger = np.maximum(*_sides(score, n, pos, rows, positives, convex(score)))
    ends = np.zeros((*pos.shape[:-1], 2))
    loss = np.maximum(np.concatenate((larger, half, ends), axis=-1), 0.0) / rows[..., -1:]
    if kinks == 0:
        return np.asarray(2 * loss.max(axis=-1))
    if kinks == 1:
        return np.asarray((loss / np.maximum(at, 1 - at)).max(axis=-1))
    left = at < 0.5
    weight = (at[~left] - 0.5) / (at[~left] - at[left][:, None])
    chords = loss[..., left, None] * weight
    chords += loss[..., None, ~left] * (1 - weight)
    return np.asarray(2 * chords.max(axis=(-1, -2)))


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
"""Decimals of the payoffs of an agent: more than the margin needs."""
N_ROUNDED = 13
"""Decimals of the probabilities of levels, whose sums depend on the order of the rows in the last ones."""
NOTHING = 1e-9
"""A loss up to here is none."""
SIMPLEX_SIZE = 60
"""Points up to which the simplex method is faster than an interior point."""


class WorstRule(NamedTuple):
    """The value of the program; the payoffs of every action of an agent that attains it but for 1e-7, (A, K)."""

    loss: float
    utility: Floats


# A rule with payoffs in [0, 1] gives every point q of the simplex a vector s_q, and is proper where q.s_q >= q.s_r for
# all points q and r (Kleinberg et al. 2023, theorem 17; Hu and Wu 2024, theorem 3.11). Few of these m^2 constraints
# bind: the program begins with those between neighbours, and adds those that its solution violates until there are
# none. A solution is tied at many points, and ties are broken for the worst: a last program asks for a margin between
# payoffs that differ, so that an agent who chooses its best action chooses the one that loses.
class _Program:
    """max sum gain * s over proper rules s. points, gain: (m, K); pairs: the constraints that are looked at, (m, m).

    compared: what the best action is taken for in comparison with the levels' own, class shares of shape (c, K).
    """

    def __init__(self, levels: ClassLevels, compared: Floats) -> None:
        rate = compared / compared.sum(axis=1, keepdims=True)
        self.points = np.vstack((levels.score, rate))
        self.gain = np.vstack((-levels.share, compared))
        self.no_margin = np.zeros((len(self.points),) * 2)
        # To begin with, those of neighbours, and of the point that weighs most with all.
        square = (self.points**2).sum(axis=1)
        away = square[:, None] + square - 2 * self.points @ self.points.T
        np.fill_diagonal(away, np.inf)
        near = np.argsort(away, axis=1, kind="stable")[:, : min(NEIGHBOURS, len(away) - 1)]
        pairs = self.no_margin.astype(bool)
        pairs[np.arange(len(away))[:, None], near] = True
        pairs |= pairs.T
        heaviest = int(np.argmax(np.abs(self.gain).sum(axis=1)))
        pairs[heaviest] = pairs[:, heaviest] = True
        np.fill_diagonal(pairs, False)
        self.pairs = pairs

    def solve(self, margin: Floats) -> tuple[float, Floats]:
        """Value and payoffs, (m, K), under the constraints of the pairs. Errors: Undefined, without a solution."""
        # Loaded late: whoever evaluates scores of two classes needs no scipy.
        from scipy.optimize import linprog
        from scipy.sparse import csr_matrix

        size, classes = self.points.shape
        q, r = np.nonzero(self.pairs)
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

    def cut(self, margin: Floats) -> tuple[float, Floats]:
        """Value and payoffs, (m, K), under all constraints: violated ones join the pairs until there are none."""
        every = np.arange(len(self.points))
        for _ in range(MAX_ROUNDS):
            value, payoffs = self.solve(margin)
            worth = self.points @ payoffs.T
            violated = worth - np.diag(worth)[:, None] + margin
            violated[self.pairs] = -1.0
            np.fill_diagonal(violated, -1.0)
            if violated.max() <= VIOLATED:
                return value, payoffs
            for _ in range(N_ADDED):
                most = violated.argmax(axis=1)
                here = violated[every, most] > VIOLATED
                self.pairs[every[here], most[here]] = True
                violated[every, most] = -1.0
        raise Undefined("its linear program came to no solution")


def over_constant(levels: ClassLevels, rows: ClassLevels | None = None) -> WorstRule:
    """What always acting on the class frequencies wins over acting on the levels' probabilities, at the most.

    rows: those that the agent is to lose most on, where these are not the levels themselves.
    """
    return _worst(levels, lambda shown: shown.share.sum(axis=0)[None], rows or levels)


def over_frequencies(levels: ClassLevels) -> WorstRule:
    """What acting on each level's class frequencies wins over acting on its probabilities, at the most."""
    return _worst(levels, lambda shown: shown.share, levels)


def most_over_frequencies(levels: ClassLevels) -> float:
    """The value of the program of `over_frequencies`, without its agent."""
    program = _Program(levels, levels.share)
    return max(program.cut(program.no_margin)[0], 0.0)


def lost_over_frequencies(levels: ClassLevels, utility: Floats) -> float:
    """Utility per row that acting on each level's class frequencies, not on its probabilities, adds for an agent."""
    won = levels.share * utility[best_actions(levels.score, utility)]
    return float((levels.share @ utility.T).max(axis=1).sum() - won.sum())


def _worst(levels: ClassLevels, compared: Callable[[ClassLevels], Floats], shown: ClassLevels) -> WorstRule:
    """The agent of a program, which does not depend on the order of levels and classes."""
    classes = np.lexsort((levels.score.sum(axis=0), levels.counts.sum(axis=0)))
    score = np.round(levels.score[:, classes], N_ROUNDED)
    order = np.lexsort(score.T)
    ordered = ClassLevels(order, score[order], levels.counts[order][:, classes])
    program = _Program(ordered, compared(ordered))
    value, payoffs = program.cut(program.no_margin)
    if value <= NOTHING:
        return WorstRule(0.0, np.zeros((0, len(classes))))
    _, payoffs = program.cut(MARGIN * (np.abs(payoffs[:, None] - payoffs).max(axis=2) > DIFFERENT))
    utility = np.unique(np.clip(np.round(payoffs, N_DECIMALS), 0.0, 1.0) + 0.0, axis=0)[:, np.argsort(classes)]
    return WorstRule(value, utility[_needed(shown, compared(shown), utility)])


def _needed(levels: ClassLevels, compared: Floats, utility: Floats) -> Ints:
    """The actions, at most MAX_ACTIONS, with which an agent loses most: the others are taken from it one by one."""
    taken, best = ((by @ utility.T, won @ utility.T) for by, won in ((levels.score, levels.share), (compared,) * 2))
    left, path = np.arange(len(utility)), []
    while len(left) >= 2:
        (won, won_without), (most, most_without) = _won(*taken), _won(*best)
        path.append((most - won, left))
        least = left[np.argmax((most_without - won_without)[left])]
        left = left[left != least]
        taken[0][:, least] = best[0][:, least] = -np.inf
    allowed = [(loss, actions) for loss, actions in path if len(actions) <= MAX_ACTIONS]
    largest = max(loss for loss, _ in allowed)
    return min((actions for loss, actions in allowed if loss >= largest - VIOLATED), key=len)


def _won(worth: Floats, won: Floats) -> tuple[float, Floats]:
    """What points win by the actions that are worth most to them; and what they win without each action, shape (A,)."""
    rows, first = np.arange(len(worth)), worth.argmax(axis=1)
    highest, by_first = worth[rows, first], won[rows, first]
    worth[rows, first] = -np.inf
    change = won[rows, worth.argmax(axis=1)] - by_first
    worth[rows, first] = highest
    total = float(by_first.sum())
    return total, total + np.bincount(first, change, worth.shape[1]).astype(np.float64)


family("agents", __doc__)


_MAX_DENSE_LEVELS = 64
_INVERTED = f"{gaps.INVERSION_TEXT}; none above {_MAX_DENSE_LEVELS} levels, nor for exact levels that hold few rows"
_MAX_MOVE = 1e-9
"""How far a kink moves to its open side to become a threshold."""
Quantity = Literal["cdl", "v_cdl", "u_cal", "v_cal"]
CurveOf = Callable[[Table], LossCurve]
_AGENTS: dict[Quantity, tuple[CurveOf, int, Quantity]] = {
    "cdl": (of_levels, 2, "v_cdl"),
    "v_cdl": (of_levels, 1, "v_cdl"),
    "u_cal": (of_constant, 2, "v_cal"),
    "v_cal": (of_constant, 1, "v_cal"),
}
"""For each quantity: the curve, over how many kinks it is the supremum, and the quantity over one kink."""
NO_LOSS = "no agent loses anything"


@once
def _worst_agent(t: Table, curve_of: CurveOf, kinks: int) -> Worst:
    curve = curve_of(t)
    return curve.any_kinks() if kinks == 2 else curve.one_kink()


def worst_task(t: Table, quantity: Quantity = "cdl", *, levels: Levels = "auto") -> WorstCaseTask:
    """The task whose agent attains cdl, v_cdl, u_cal or v_cal; given as --utility it shows that loss.

    Each kink moves at most 1e-9 to the side on which the loss is larger, and stays strictly inside (0, 1). u_cal and
    v_cal always use exact levels. Two actions for one kink, three for two; action i is best for scores between the
    kinks i - 1 and i. Undefined where no agent loses anything.
    """
    curve_of, kinks, of_two = _AGENTS[quantity]
    on_levels = "cfdl" if levels == "auto" else f"cfdl(levels={levels})"
    used, shown_by = (at_levels(t, levels), on_levels) if curve_of is of_levels else (t, "external_regret")
    worst = _worst_agent(used, curve_of, kinks)
    if not worst.kinks:
        raise Undefined(NO_LOSS)
    at = [_moved(used.score, kink) for kink in worst.kinks]
    wrong = [weight * kink for weight, kink in zip(worst.weights, at, strict=True)]
    right = [weight * (1 - kink) for weight, kink in zip(worst.weights, at, strict=True)]
    rows = [(sum(wrong[action:]), sum(right[:action])) for action in range(len(at) + 1)]
    largest = max(rows[0][0], rows[-1][1])
    utility = tuple((u0 / largest, u1 / largest) for u0, u1 in rows)
    two = worst_task(t, of_two, levels=levels) if len(rows) > 2 else None
    return WorstCaseTask(utility, tuple(at), worst.loss, shown_by, two)


def _moved(score: Floats, kink: Kink) -> float:
    """The kink on its open side, at most half way to the next score."""
    below, above = (int(np.searchsorted(score, kink.at, side=side)) for side in ("left", "right"))
    beside = score[above:][:1].min(initial=1.0) if kink.side > 0 else score[:below][-1:].max(initial=0.0)
    return kink.at + kink.side * min(_MAX_MOVE, abs(float(beside) - kink.at) / 2)


def _over_levels(t: Table, kinks: int, levels: Levels) -> Measured:
    """cdl (two kinks) or v_cdl (one)."""
    used = at_levels(t, levels)
    value = _worst_agent(used, of_levels, kinks).loss

    def interval(confidence: float, seed: Seed) -> Interval:
        if used is t:
            need_rows(t)
        t.need_both_classes()
        if len(used) > _MAX_DENSE_LEVELS:
            raise Undefined(f"no interval above {_MAX_DENSE_LEVELS} levels")
        _, worlds = gaps.worlds_of(t, used, seed.generator("agents"))

        def norm(gap: Floats) -> Floats:
            rate = np.clip(used.score + gap * (used.total / used.n), 0.0, 1.0)
            return losses_of_levels(used.score, used.n * 1.0, used.n * rate, kinks)

        return gaps.interval(value, worlds.searched, norm, confidence)

    return Measured(value, interval)


@metric(
    "Calibration decision loss",
    "lower",
    "share",
    f"{cite('Hu and Wu 2024', 'def. 3.1')}; in closed form",
    (0, 1),
    size_free=False,
    how=_INVERTED,
    worst_case_task=worst_task,
    bootstraps=False,
    estimand=intervals.OF_LEVELS_BELOW,
)
def cdl(t: Table, *, levels: AtLevels = "auto") -> Measured:
    """The most that any decision maker loses by acting on scores instead of on frequencies; compare it with cdl_null.

    sup over tasks with payoffs in [0, 1], of any number of actions, of the loss per row. It is twice the upper concave
    envelope, at 1/2, of the loss of the agent with threshold mu: F(mu) = sum n_i |h_i - mu| / T over the levels whose
    score q_i and frequency h_i lie on different sides of mu. levels: as for cfdl, exact levels or equal-mass bins; with
    continuous scores each exact level holds one row and shows noise.
    """
    return _over_levels(t, 2, levels)


@like(
    "cdl",
    "Calibration decision loss, two actions",
    f"{cite('Hu and Wu 2024', 'def. 3.9')}; in closed form",
    worst_case_task=partial(worst_task, quantity="v_cdl"),
)
def v_cdl(t: Table, *, levels: AtLevels = "auto") -> Measured:
    """The most that a decision maker with two actions loses by acting on scores instead of on frequencies.

    sup over mu of F(mu) / max(mu, 1 - mu), with F as for cdl and payoffs in [0, 1]; at least half of cdl. cdl_threshold
    is the mu that attains it. levels: as for cfdl.
    """
    return _over_levels(t, 1, levels)


@metric(
    "Threshold of the agent that loses most by miscalibration",
    "neither",
    "probability",
    f"{cite('Hu and Wu 2024', 'def. 3.9')}, where the supremum is attained",
    (0, 1),
    size_free=False,
    interval=None,
    estimand=intervals.JUMPS,
)
def cdl_threshold(t: Table, *, levels: AtLevels = "auto") -> float:
    """Decision threshold of the two-action agent that loses most by acting on scores: the agent of v_cdl.

    The mu that attains sup F(mu) / max(mu, 1 - mu), the lowest of several. Where the loss jumps, at a score, mu comes
    near that score from the side on which the loss is larger. Undefined where no agent loses anything.
    """
    return _threshold(at_levels(t, levels), of_levels)


def _threshold(t: Table, curve_of: CurveOf) -> float:
    worst = _worst_agent(t, curve_of, 1)
    if not worst.kinks:
        raise Undefined(NO_LOSS)
    return worst.kinks[0].at


@once
def _null_draws(t: Table, kinks: int, levels: Levels, seed: Seed) -> Floats:
    used, rng = at_levels(t, levels).with_free_levels, seed.generator("agents")
    if len(used) > _MAX_DENSE_LEVELS:
        return gaps.null_draws(used, lambda table: _worst_agent(table, of_levels, kinks).loss, rng)
    rows, n = gaps.whole_rows(used), used.n * 1.0
    rate = rng.binomial(rows, used.score, size=(gaps.N_NULL_DRAWS, len(used))) / rows
    return losses_of_levels(used.score, n, n * rate, kinks)


@null_of("cdl", "Calibration decision loss of a calibrated model, any task")
def cdl_null(t: Table, seed: Seed, *, levels: AtLevels = "auto") -> Floats:
    """Mean cdl that a perfectly calibrated model with these scores shows, by chance alone.

    Labels are drawn from the scores of the same levels, 400 times.
    """
    return _null_draws(t, 2, levels, seed)


@null_of("v_cdl", "Calibration decision loss of a calibrated model, two actions")
def v_cdl_null(t: Table, seed: Seed, *, levels: AtLevels = "auto") -> Floats:
    """Mean v_cdl that a perfectly calibrated model with these scores shows, by chance alone.

    Labels are drawn from the scores of the same levels, 400 times.
    """
    return _null_draws(t, 1, levels, seed)


def _over_constant(t: Table, kinks: int) -> Measured:
    """u_cal (two kinks) or v_cal (one); twice the supremum of the curve itself (none)."""

    def of(table: Table) -> float:
        return _worst_agent(table, of_constant, kinks).loss if kinks else 2 * of_constant(table).highest()

    value = of(t)
    statistic, most = partial(losses_of_constant, kinks=kinks), 1.0 if kinks else 2.0

    def interval(confidence: float, seed: Seed) -> Interval:
        return gaps.interval_of_agents(t, statistic, seed.generator("agents"), confidence, value, most)

    def chance(_: float, seed: Seed) -> float:
        return gaps.added_by_chance(gaps.cells(t), of, seed.generator("agents"))

    return Biased(value, interval, chance)


@metric(
    "U-calibration error",
    "lower",
    "share",
    f"{cite('Kleinberg et al. 2023')}; {cite('Hu and Wu 2024', 'def. 2.10')}; per row, with payoffs in [0, 1]",
    (0, 1),
    how=gaps.INVERSION_TEXT,
    worst_case_task=partial(worst_task, quantity="u_cal"),
    rarer=10,
)
def u_cal(t: Table) -> Measured:
    """The most that any decision maker loses by acting on scores instead of always on the base rate.

    sup over tasks with payoffs in [0, 1] of the loss per row: twice the upper concave envelope at 1/2 of
    G(mu) = max(0, payoff of always predicting b - payoff of the scores), for the payoff 1[p > mu] (y - mu). Always on
    exact levels. Kleinberg et al. 2023 sum over rows and have payoffs in [-1, 1]: their value is 2 T times this.
    """
    return _over_constant(t, 2)


@like(
    "u_cal",
    "U-calibration error, two actions",
    f"{cite('Kleinberg et al. 2023', 'eq. 9, 10')}; per row, with payoffs in [0, 1]",
    worst_case_task=partial(worst_task, quantity="v_cal"),
)
def v_cal(t: Table) -> Measured:
    """The most that a decision maker with two actions loses by acting on scores instead of always on the base rate.

    sup over mu of G(mu) / max(mu, 1 - mu), with G as for u_cal; at least half of u_cal. u_cal_threshold is the mu that
    attains it, and v_cal_kleinberg the measure of Kleinberg et al. 2023 without the division.
    """
    return _over_constant(t, 1)


@like(
    "u_cal",
    "V-calibration error",
    f"{cite('Kleinberg et al. 2023', 'eq. 10, thm. 9')}; per row",
    range=(0, 2),
)
def v_cal_kleinberg(t: Table) -> Measured:
    """The largest regret per row of acting on scores instead of always on the base rate, over V-shaped scoring rules.

    2 sup G(mu) over mu, with G as for u_cal, not divided by max(mu, 1 - mu) as in v_cal: the supremum, cut at 0, of the
    curve v_regret of `decal sweep`. Payoffs lie in [-1, 1]; T times this is the VCal of Kleinberg et al. 2023.
    """
    return _over_constant(t, 0)


@like(
    "cdl_threshold",
    "Threshold of the agent that gains most from the base rate",
    f"{cite('Kleinberg et al. 2023', 'eq. 9, 10')}, where the supremum is attained",
    size_free=True,
)
def u_cal_threshold(t: Table) -> float:
    """Decision threshold of the two-action agent that loses most against the base rate: the agent of v_cal.

    The mu that attains sup G(mu) / max(mu, 1 - mu), the lowest of several. Where the loss jumps, at a score, mu comes
    near that score from the side on which the loss is larger. Undefined where no agent loses anything.
    """
    return _threshold(t, of_constant)


MAX_NUMBERS = 1000
"""Levels times classes up to which the program is solved on the levels themselves: 333 levels of three classes."""
CELLS = (32, 64)
"""Cells on which the agent of u_cal is looked for, at least and at most; fewer of more classes."""
MAX_SHOWN_ROWS = 20_000
"""Rows on which it is decided which of its actions an agent needs."""
N_RULE_DRAWS = 20
"""Labels are drawn so many times: each time a program is solved."""
_NO_INTERVAL = "nothing: the worst agent is chosen on these rows"
_NOT_DRAWN = "nothing: it is the mean of 20 draws"


def _class_levels(c: ClassTable, levels: Levels) -> ClassLevels:
    """The levels that cdl and cfdl work on. Errors: Undefined, where there are too many to solve a program on them."""
    if on_exact_levels(c, levels) and c.n_levels * len(c.classes) > MAX_NUMBERS:
        most = MAX_NUMBERS // len(c.classes)
        raise Undefined(f"has {c.n_levels:,} levels, and {most} are taken at most; levels=bins puts them together")
    return levels_or_cells(c, levels)


@once
def _class_cdl(c: ClassTable, levels: Levels) -> WorstRule:
    return over_frequencies(_class_levels(c, levels))


@as_score(worst_task)
def _cdl_worst_case_task(c: ClassTable, *, levels: Levels = "auto") -> WorstCaseTask:
    rule, used = _class_cdl(c, levels), _class_levels(c, levels)
    loss = lost_over_frequencies(used, rule.utility) if len(rule.utility) else 0.0
    return _class_worst_case_task(rule.utility, loss, "cfdl" if levels == "auto" else f"cfdl(levels={levels})")


@form_of(
    "cdl",
    "of_classes",
    interval=None,
    estimand=_NO_INTERVAL,
    worst_case_task=_cdl_worst_case_task,
    source=f"{cite('Hu and Wu 2024', 'thm. 3.11')}, the linear program by cuts",
    slow=True,
)
@as_score(cdl)
def class_cdl(c: ClassTable, *, levels: Levels = "auto") -> float:
    """The most that any decision maker with payoffs in [0, 1] loses by acting on probabilities instead of frequencies.

    A linear program over all proper scoring rules, on levels of equal probabilities; where these hold few rows, on
    8 to 32 cells of about equally many rows, fewer of more classes.
    """
    return _class_cdl(c, levels).loss


@form_of("cdl_null", "of_classes", interval=None, estimand=_NOT_DRAWN, slow=True)
@as_score(cdl_null)
@once
def class_cdl_null(c: ClassTable, seed: Seed, *, levels: Levels = "auto") -> float:
    """Mean cdl that a perfectly calibrated model with these probabilities shows, by chance alone.

    The classes of the rows of each level or cell are drawn from its probabilities, 20 times.
    """
    used = _class_levels(c, levels)
    drawn = gaps.drawn_classes(c.units, c.score, used.of_row, N_RULE_DRAWS, seed.generator("classes"))
    return float(np.mean([most_over_frequencies(used._replace(counts=each)) for each in drawn]))


@once
def _class_u_cal(c: ClassTable) -> tuple[WorstRule, bool]:
    """The worst agent against the base rate, and whether it is that of the rows and not of cells of them."""
    if c.n_levels * len(c.classes) <= MAX_NUMBERS:
        return over_constant(c.at_levels()), True
    cells = int(np.clip(MAX_NUMBERS // len(c.classes), *CELLS))
    return over_constant(c.in_cells(cells), c.by_row(MAX_SHOWN_ROWS)), False


def _attained(c: ClassTable, utility: Floats) -> float:
    """What the best constant action adds to this agent's actions, on the rows themselves."""
    if not len(utility):
        return 0.0
    won = c.units.mean(utility[best_actions(c.score, utility), c.label]).value
    return float((utility @ c.count(c.label, len(c.classes))).max() / c.total) - won


@as_score(partial(worst_task, quantity="u_cal"))
def _u_cal_worst_case_task(c: ClassTable) -> WorstCaseTask:
    rule, _ = _class_u_cal(c)
    return _class_worst_case_task(rule.utility, _attained(c, rule.utility), "external_regret")


@form_of(
    "u_cal",
    "of_classes",
    interval=None,
    estimand=_NO_INTERVAL,
    worst_case_task=_u_cal_worst_case_task,
    source=f"{cite('Kleinberg et al. 2023', 'thm. 17')}, the linear program by cuts; per row, with payoffs in [0, 1]",
    slow=True,
)
@as_score(u_cal)
def class_u_cal(c: ClassTable) -> float:
    """The most that any decision maker with payoffs in [0, 1] loses by acting on probabilities instead of base rates.

    A linear program over all proper scoring rules, on up to 1,000 / K levels of equal probabilities. Of more, the agent
    is looked for on 32 to 64 cells and evaluated on all rows: what is printed is lost, and a little more may be.
    """
    rule, exact = _class_u_cal(c)
    return rule.loss if exact else max(_attained(c, rule.utility), 0.0)


def _class_worst_case_task(utility: Floats, loss: float, shown_by: str) -> WorstCaseTask:
    if not len(utility) or loss <= NOTHING:
        raise Undefined(NO_LOSS)
    return WorstCaseTask(tuple(map(tuple, utility.tolist())), (), loss, shown_by)
