"""How far a metric computed from cells of the score can be from that of the rows: what moving each score within its
cell can change.

A metric for which nothing is declared here is not shown from cells. 0 is for what the sums of the cells give exactly.
A cell whose rows tie moves nothing; where all do, every metric is that of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from decal_cli.declarations.spec import Spec
from decal_cli.errors import Undefined
from decal_cli.metrics import decisions
from decal_cli.metrics.declare import METRICS, Metric, Within
from decal_cli.metrics.inputs import Inputs
from decal_cli.tables.cells import CellTable
from decal_cli.tables.table import Floats, Table
from decal_cli.task import Task

Parameters = Mapping[str, Any]
Reach = Callable[[CellTable, Inputs, Parameters], float]
"""The bound for a table of cells, by the metric's parameters; raises Undefined where there is none."""

NO_BOUND = "not shown from cells of the score, since no bound is known of how far it is from that of the rows"


def within_cells(spec: Spec[Metric], inputs: Inputs) -> Within | None:
    """How far the value may be from that of the rows; None of a table that is no table of cells. Errors: Undefined."""
    t = inputs.table
    if not isinstance(t, CellTable):
        return None
    if t.exact:
        return Within(0.0)
    declared = spec.declared.within_cells
    if declared is None:
        inputs.all_of(spec.declared.needs)  # which may have a better reason
        raise Undefined(NO_BOUND)
    reach, drawn = declared
    return Within(reach(t, inputs, spec.parameters), drawn)


def _of(*names: str, drawn: bool = False) -> Callable[[Reach], Reach]:
    """Declare the bound of these metrics. drawn: their folds or draws are those of cells, besides."""

    def declare(reach: Reach) -> Reach:
        for name in names:
            METRICS[name] = replace(METRICS[name], within_cells=(reach, drawn))
        return reach

    return declare


@_of("brier", "observed_expected", "corp_unc", "eu_never", "eu_always", "utility_at_stake")
def _exact(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    return 0.0


@_of("log_loss")
def _unclipped(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    if parameters["eps"]:
        raise Undefined(NO_BOUND)
    return 0.0


@_of("corp_mcb", "corp_dsc", "refinement_loss")
def _isotonic(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    """What the isotonic fit of the rows may save beyond that of cells.

    Averaging a monotone fit over cells costs at most n_c times its rise in each, and the rises add up to 1; and within
    a cell no more can be saved than the variance of its labels.
    """
    if parameters.get("loss", "brier") != "brier":
        raise Undefined(NO_BOUND)
    neg, pos = _movable(t)
    n = neg + pos
    return min(float(n.max()), float((neg * pos / np.maximum(n, 1e-300)).sum())) / t.total


def _movable(t: CellTable) -> tuple[Floats, Floats]:
    """Negatives and positives of each cell that holds more than one score; 0 of the others, whose rows cannot move."""
    return np.where(t.wide, t.n - t.pos, 0.0), np.where(t.wide, t.pos, 0.0)


@_of("auc")
def _ties(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    """Pairs within a cell count half; they may be in order, or not."""
    t.need_both_classes()
    neg, pos = _movable(t)
    return float((neg * pos).sum()) / (t.positives * t.negatives) / 2


@_of("gini")
def _twice(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    return 2 * _ties(t, inputs, parameters)


@_of("ks")
def _steps(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    t.need_both_classes()
    neg, pos = _movable(t)
    return max(float(neg.max()) / t.negatives, float(pos.max()) / t.positives)


@_of("average_precision")
def _precision(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    """Positives of a cell before its negatives, or after them; and no less than the first of them has."""
    if t.positives <= 0:
        raise Undefined("no row has label 1")
    neg, pos = (np.asarray(values, dtype=np.float64)[::-1] for values in (t.n - t.pos, t.pos))
    ones, zeros = np.cumsum(pos), np.cumsum(neg)
    value = ones / np.maximum(ones + zeros, 1e-300)
    most = ones / np.maximum(ones + zeros - neg, 1e-300)
    least = (ones - pos) / np.maximum(ones - pos + zeros, 1e-300)
    return float((pos * np.maximum(most - value, value - least))[t.wide[::-1]].sum()) / t.positives


def _cut(t: CellTable, parameters: Parameters) -> np.ndarray:
    """Cells that an edge of a bin falls into, whose rows may lie on either side of it."""
    bins, strategy = parameters.get("bins", 15), parameters.get("strategy", "mass")
    if strategy == "width":
        cells = [t.straddled(k / bins) for k in range(1, bins)]
        return np.array([cell for cell in cells if cell is not None], dtype=np.int64)
    edges = t.quantiles(bins)[1:-1]
    at = np.searchsorted(t.score, edges, side="left")
    cut = np.unique(at[t.score[np.minimum(at, len(t) - 1)] == edges])
    return cut[t.wide[cut]]


def _apart(t: CellTable) -> tuple[Floats, Floats]:
    """Sums of scores of label 0, and of 1 - score of label 1: how far each cell's scores are from its labels."""
    return t.sums[0, 1], t.sums[1, 0] - t.sums[1, 1]


@_of("ece")
def _binned(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    """Rows of a cell that an edge cuts leave one bin and come to another; each adds at most |s - y|."""
    zeros, ones = _apart(t)
    return 2 * float((zeros + ones)[_cut(t, parameters)].sum()) / t.total


@_of("ece_null", drawn=True)
def _binned_null(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    """The same of labels drawn from the scores: E|s - y| = 2 s (1 - s), at most 1/2."""
    return float(t.n[_cut(t, parameters)].sum()) / t.total


@_of("ece_debiased")
def _binned_squares(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    """g^2 / n changes by at most 3 for each row that leaves or comes, g its sum of s - y; the noise of a bin by 1/2."""
    cut = _cut(t, parameters)
    return (6 * float(t.n[cut].sum()) + 2 * t.unit * len(cut)) / t.total


@_of("c_emp")
def _walks(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    """Within a cell the prefix sums of y - s rise and fall by no more than all of one label."""
    zeros, ones = (np.where(t.wide, values, 0.0) for values in _apart(t))
    return (float(zeros.max()) + float(ones.max())) / t.total


@_of("sm_cal")
def _smooth(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    """(p - y) z(p) moves by at most twice as much as p, where z is 1-Lipschitz and |z| <= 1."""
    return 2 * float((t.n * (t.greatest - t.least)).sum()) / t.total


AT_THRESHOLD = (
    "expected_utility", "net_benefit", "external_regret", "accuracy", "sensitivity", "specificity", "ppv", "npv",
    "selection_rate", "false_positive_rate", "net_benefit_standardised", "interventions_avoided",
)  # fmt: skip
"""Shares of decisions and labels, which are largest and least where the rows of a cut cell lie all on one side."""


def _at_threshold(name: str) -> Reach:
    def reach(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
        task = inputs.get(Task)
        metric, total = METRICS[name], 0.0
        for threshold in task.decision_thresholds:
            cell = t.straddled(threshold)
            if cell is None:
                continue
            value = float(metric.function(*inputs.all_of(metric.needs), **parameters))
            ends = []
            for zeros, ones in ((False, False), (False, True), (True, False), (True, True)):
                moved = inputs.having(t.moved(cell, zeros, ones, threshold))
                ends.append(float(metric.function(*moved.all_of(metric.needs), **parameters)))
            total += max(abs(end - value) for end in ends)
        return total

    return reach


for _name in AT_THRESHOLD:
    _of(_name)(_at_threshold(_name))


def _worth(t: CellTable, threshold: float) -> tuple[Floats, Floats]:
    """What acting on the negatives of each cell that can move costs, and on its positives wins, per u_delta and row."""
    neg, pos = _movable(t)
    return neg * threshold / t.total, pos * (1 - threshold) / t.total


def _decided(t: CellTable, task: Task) -> float:
    """What the rows of cells that decision thresholds cut are worth."""

    def of_step(step: Any) -> float:
        cell = t.straddled(step.decision_threshold)
        return 0.0 if cell is None else float(sum(worth[cell] for worth in _worth(t, step.threshold)))

    return task.u_delta * task.in_steps(of_step)


def _refined(t: CellTable, task: Task) -> float:
    """What a threshold inside a cell may win beyond one at its edges: the lesser of its negatives and its positives."""
    return task.u_delta * task.in_steps(lambda step: float(np.minimum(*_worth(t, step.threshold)).max()))


def of_curves(t: Table, thresholds: Iterable[float]) -> tuple[float, float] | None:
    """Of curves over thresholds from cells: how far what decisions are worth may be off, and what calibrated ones are.

    Per unit of u_delta; None of a table that is no table of cells, or where each of these is one score.
    """
    if not isinstance(t, CellTable) or t.exact:
        return None
    decided = refined = 0.0
    for threshold in thresholds:
        cell, (neg, pos) = t.straddled(threshold), _worth(t, threshold)
        decided = max(decided, 0.0 if cell is None else float(neg[cell] + pos[cell]))
        refined = max(refined, float(np.minimum(neg, pos).max()))
    return decided, refined


@_of("swap_regret")
def _swapped(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    return _decided(t, inputs.get(Task))


@_of("utility_share")
def _share(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    task = inputs.get(Task)
    headroom = decisions.headroom(t, task)
    if headroom <= 0:
        return 0.0
    won = decisions.advantage(t, task) - decisions.best_constant(t, task)
    more, decided = _refined(t, task) / task.u_delta, _decided(t, task) / task.u_delta
    return abs(won) * more / (headroom * (headroom + more)) + decided / headroom


@_of("gain_recalibration", drawn=True)
def _learned(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    task = inputs.get(Task)
    return _refined(t, task) + _decided(t, task)


@_of("gain_over_constant", drawn=True)
def _learned_over_constant(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    return _refined(t, inputs.get(Task))


@_of("threshold_adjusted", drawn=True)
def _widest(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    return float((t.greatest - t.least).max())


@_of("regret_calibration")
def _binned_regret(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    """|c - t*| of a bin, times the rows that it decides wrongly, changes by at most 2 for each row that moves."""
    task = inputs.get(Task)
    rows = 4 * float(t.n[_cut(t, parameters)].sum())
    cut = {cell for at in task.decision_thresholds if (cell := t.straddled(at)) is not None}
    return task.u_delta * (rows + sum(float(t.n[cell]) for cell in cut)) / t.total


@_of("regret_grouping_worst")
def _binned_worst(t: CellTable, inputs: Inputs, parameters: Parameters) -> float:
    """A bin loses the lesser of what its negatives and its positives are worth."""
    task = inputs.get(Task)
    cut = _cut(t, parameters)
    return 2 * task.u_delta * task.in_steps(lambda step: float(sum(w[cut].sum() for w in _worth(t, step.threshold))))
