"""The value of the actions that are taken by the probabilities of several classes, in the task's own utility units."""

from __future__ import annotations

import numpy as np

from decal_cli.declarations.spec import Bins
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics import covered
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import for_classes, metric, null_of
from decal_cli.metrics.families import regret as of_two
from decal_cli.metrics.numerics import class_decisions, gaps, regret_intervals
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import BINS, Estimate, Floats, Ints, Table
from decal_cli.task import BinaryTask, ClassDecision, task_of_rows


def row_utility(c: ClassTable, decision: ClassDecision) -> Floats:
    """What each row's action is worth at its label, shape (T,)."""
    return class_decisions.decide(c, decision).won


def won_over(c: ClassTable, decision: ClassDecision, acts: Ints, instead: Ints | None = None) -> Estimate:
    """The mean utility of these actions, (T,); less that of others, where they are given.

    A row that could have been missed has the actions of a row that is there, and any class.
    """
    utility = np.array(decision.utility)
    kinds = np.unique(acts * len(utility) + (acts if instead is None else instead))
    each, missed = utility[acts, c.label], utility[kinds // len(utility)]
    if instead is not None:
        each, missed = each - utility[instead, c.label], missed - utility[kinds % len(utility)]
    return c.mean(each, (np.array([value]) for value in missed.ravel()))


def _won(c: ClassTable, decision: ClassDecision) -> Estimate:
    return won_over(c, decision, class_decisions.decide(c, decision).action)


def _ends(decision: ClassDecision) -> Interval:
    cells = [cell for row in decision.utility for cell in row]
    return min(cells), max(cells)


def _utility_interval(c: ClassTable, decision: ClassDecision, *, confidence: float) -> Interval:
    return intervals.normal(_won(c, decision), confidence, *_ends(decision))


@for_classes("expected_utility", interval=_utility_interval)
def expected_utility(c: ClassTable, decision: ClassDecision) -> float:
    """Mean utility per row of the best action for the row's probabilities."""
    return _won(c, decision).mean


def _over_constant(c: ClassTable, decision: ClassDecision) -> Estimate:
    always = np.full(len(c), class_decisions.best_constant(c, decision))
    return won_over(c, decision, always, instead=class_decisions.decide(c, decision).action)


def _over_constant_interval(c: ClassTable, decision: ClassDecision, *, confidence: float) -> Interval:
    low, high = _ends(decision)
    return intervals.normal(_over_constant(c, decision), confidence, low - high, high - low)


@for_classes("external_regret", interval=_over_constant_interval)
def external_regret(c: ClassTable, decision: ClassDecision) -> float:
    """Utility per row that the best constant action adds; below 0 where the model beats every constant action."""
    return _over_constant(c, decision).mean


@for_classes("utility_at_stake", range=(0, 1), interval=None)
def utility_at_stake(c: ClassTable, decision: ClassDecision) -> float:
    """Utility per row that perfect decisions are worth more than the best constant one: all there is to win."""
    utility, rate = np.array(decision.utility), c.count(c.label, len(c.classes)) / c.total
    return float(utility.max(axis=0) @ rate - (utility @ rate).max())


def _cell_interval(
    c: ClassTable, decision: ClassDecision, cell: Ints, action: Ints, seed: Seed, confidence: float
) -> Interval:
    """Bias-corrected: the classes of each cell drawn again from those seen there."""
    utility, classes = np.array(decision.utility), len(c.classes)
    size = len(action) * classes
    seen, squares = (c.count(cell * classes + c.label, size, squared) for squared in (False, True))
    unit = np.divide(squares, seen, out=np.ones(size), where=seen > 0)
    draws = seed.generator("classes").poisson(seen / unit, (class_decisions.N_DRAWS, size)) * unit
    total = np.maximum(draws.sum(axis=1), 1e-300)
    shape = (len(action), classes)
    value = float(class_decisions.lost(seen.reshape(shape), action, utility)) / c.total
    lost = class_decisions.lost(np.asarray(draws, dtype=np.float64).reshape((-1, *shape)), action, utility) / total
    low, high = intervals.bias_corrected(value, lost, confidence)
    # Near 0, where what is lost is cut, the draws are skewed: their spread falls short of their upper tail.
    return intervals.holding((max(low, 0.0), max(high, gaps.central(lost, confidence)[1])), value)


_REDRAWN = (
    "bias-corrected, the classes of each cell drawn 400 times from those seen there; the upper end at least that of "
    "these draws; and the value itself"
)


def _swap_interval(c: ClassTable, decision: ClassDecision, seed: Seed, *, confidence: float) -> Interval:
    decided = class_decisions.decide(c, decision)
    return _cell_interval(c, decision, decided.action, np.arange(len(decision.utility)), seed, confidence)


@for_classes("swap_regret", interval=_swap_interval, interval_text=_REDRAWN)
def swap_regret(c: ClassTable, decision: ClassDecision) -> float:
    """Utility per row that the best fixed rule 'where you took action a, take b instead' adds."""
    counts = class_decisions.counts(c, decision)
    return float(class_decisions.lost(counts, np.arange(len(counts)), np.array(decision.utility))) / c.total


def _as_score(c: ClassTable, decision: ClassDecision) -> tuple[Table, BinaryTask] | None:
    """Two classes and two actions as a score and its task; None of more."""
    if len(c.classes) > 2:
        return None
    rows = tuple((row[0], row[1]) for row in decision.utility)
    task = task_of_rows(rows, names=decision.actions).two_actions
    return None if task is None else (c.one_vs_rest(1), task)


def _regret_interval(c: ClassTable, decision: ClassDecision, seed: Seed, *, confidence: float, bins: int) -> Interval:
    of_score = _as_score(c, decision)
    if of_score is not None:
        return of_two.calibration_interval(*of_score, seed, confidence=confidence, bins=bins)
    return _cell_interval(c, decision, *class_decisions.margin_cells(c, decision, bins), seed, confidence)


@for_classes("regret_calibration", interval=_regret_interval, interval_text=_REDRAWN)
def regret_calibration(c: ClassTable, decision: ClassDecision, *, bins: Bins = BINS) -> float:
    """Utility per decision that the best action of each cell adds to the one taken; noise biases it upward.

    Cells are the action taken, times equal-mass bins of the margin between the best and the second-best action's
    expected utility, cut among the rows of one action. A task of two classes and two actions has bins of the score.
    """
    of_score = _as_score(c, decision)
    if of_score is not None:
        return of_two.regret_calibration(*of_score, bins=bins)
    cell, action = class_decisions.margin_cells(c, decision, bins)
    shape = len(action), len(c.classes)
    seen = c.count(cell * shape[1] + c.label, shape[0] * shape[1]).reshape(shape)
    return float(class_decisions.lost(seen, action, np.array(decision.utility))) / c.total


def _null_regrets(c: ClassTable, decision: ClassDecision, seed: Seed, bins: int) -> Floats:
    def draws() -> Floats:
        of_score = _as_score(c, decision)
        if of_score is not None:
            return regret_intervals.calibrated_regrets(
                *of_score, seed.generator("classes"), bins, class_decisions.N_DRAWS
            )
        cell, action = class_decisions.margin_cells(c, decision, bins)
        weight = np.ones(len(c)) if c.weight is None else c.weight
        chance = np.array([np.bincount(cell, weight * column, len(action)) for column in c.score.T]).T
        share = chance / chance.sum(axis=1, keepdims=True)
        cells = class_decisions.calibrated_counts(c, cell, share, class_decisions.N_DRAWS, seed)
        return class_decisions.lost(cells, action, np.array(decision.utility)) / c.total

    return c.cached(("null regrets", decision, seed, bins), draws)


def _null_regret_interval(
    c: ClassTable, decision: ClassDecision, seed: Seed, *, confidence: float, bins: int
) -> Interval:
    return gaps.central(_null_regrets(c, decision, seed, bins), confidence)


@null_of(
    "regret_calibration",
    title="Calibration regret of a calibrated model",
    interval=_null_regret_interval,
)
def regret_calibration_null(c: ClassTable, decision: ClassDecision, seed: Seed, *, bins: Bins = BINS) -> float:
    """Mean regret_calibration that a perfectly calibrated model with these probabilities shows, by chance alone.

    The classes of the rows of each cell are drawn from their mean probabilities, 400 times.
    """
    return float(_null_regrets(c, decision, seed, bins).mean())


def _reaches(c: ClassTable, decision: ClassDecision, seed: Seed, null: bool) -> tuple[Floats, float]:
    """Draws of utility_calibration, about the gaps seen or about none, and what the cells themselves give."""

    def draws() -> tuple[Floats, float]:
        cells = class_decisions.promises(c, decision, class_decisions.MAX_PROMISE_CELLS)
        spread = np.sqrt(cells.null if null else cells.noise)
        noise = spread * seed.generator("classes").standard_normal((class_decisions.N_DRAWS, len(spread)))
        return class_decisions.reach(noise if null else cells.gap + noise), float(class_decisions.reach(cells.gap))

    return c.cached(("reaches", decision, seed, null), draws)


def _promise_interval(c: ClassTable, decision: ClassDecision, seed: Seed, *, confidence: float) -> Interval:
    value, (draws, centre) = utility_calibration(c, decision), _reaches(c, decision, seed, null=False)
    low, high = intervals.bias_corrected(value, draws, confidence, centre)
    # Draws about gaps that are noise do not show all that noise adds: of a calibrated model the low end is 0.
    chance = gaps.central(_reaches(c, decision, seed, null=True)[0], confidence)[1]
    return intervals.holding((max(min(low, value - chance), 0.0), max(high, 0.0)), value)


@metric(
    title="Utility calibration error",
    better="lower",
    unit="utility",
    source="Hegazy, Jordan and Dieuleveut 2025 (arXiv 2510.25458)",
    range=(0, 1),
    size_free=False,
    shown=True,
    interval=_promise_interval,
    interval_text=(
        "bias-corrected: 400 draws of what rows of about one promise are worth; the low end less what chance gives a "
        "calibrated model; and the value itself"
    ),
    noisy=True,
    covers=covered.POPULATION_BELOW,
)
def utility_calibration(c: ClassTable, decision: ClassDecision) -> float:
    """Largest gap per row, over all intervals of the utility that the model promises, between promise and utility.

    The promise is v = max_a sum_k U[a][k] p_k; max over intervals of v of |sum over rows inside (v - U[a][y])| / T, the
    prefix sums' maximum less their minimum. Compare it with utility_calibration_null.
    """
    return float(class_decisions.reach(class_decisions.promises(c, decision).gap))


def _null_promise_interval(c: ClassTable, decision: ClassDecision, seed: Seed, *, confidence: float) -> Interval:
    return gaps.central(_reaches(c, decision, seed, null=True)[0], confidence)


@null_of(
    "utility_calibration",
    title="Utility calibration error, calibrated",
    source="Gaussian approximation of labels drawn from the probabilities",
    interval=_null_promise_interval,
)
def utility_calibration_null(c: ClassTable, decision: ClassDecision, seed: Seed) -> float:
    """Mean utility_calibration that a perfectly calibrated model with these probabilities shows, by chance alone.

    The sums of up to 4,096 runs of rows are drawn 400 times, with the variance that labels drawn from the probabilities
    give them.
    """
    return float(_reaches(c, decision, seed, null=True)[0].mean())
