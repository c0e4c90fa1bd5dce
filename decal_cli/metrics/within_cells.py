"""How far a metric computed from cells of the score can be from that of the rows: what moving each score within its
cell can change.

A metric for which nothing is declared here is not shown from cells. 0 is for what the sums of the cells give exactly.
A cell whose rows tie moves nothing; where all do, every metric is that of the rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from decal_cli.declarations.spec import Spec
from decal_cli.errors import Undefined
from decal_cli.metrics.decisions import Decisions, headroom
from decal_cli.metrics.declare import METRICS, Metric, Within
from decal_cli.metrics.inputs import Inputs
from decal_cli.tables.cells import CellTable
from decal_cli.tables.table import NO_POSITIVES, Floats, Ints, Table
from decal_cli.task import BinaryTask, Task


class InCells(NamedTuple):
    """A table of cells, what else is asked of it, and the metric's parameters."""

    t: CellTable
    inputs: Inputs
    parameters: Mapping[str, Any]

    @property
    def task(self) -> Task:
        """The decision. Errors: Undefined, where there is none."""
        return self.inputs.get(Task)

    @property
    def movable(self) -> tuple[Floats, Floats]:
        """Negatives and positives of each cell that holds more than one score; 0 of others, whose rows cannot move."""
        t = self.t
        return np.where(t.wide, t.n - t.pos, 0.0), np.where(t.wide, t.pos, 0.0)

    @property
    def cut(self) -> Ints:
        """Cells that an edge of a bin falls into, whose rows may lie on either side of it."""
        t, bins, strategy = self.t, self.parameters.get("bins", 15), self.parameters.get("strategy", "mass")
        if strategy == "width":
            return t.straddled(*(k / bins for k in range(1, bins)))
        edges = t.quantiles(bins)[1:-1]
        at = np.searchsorted(t.score, edges, side="left")
        cut = np.unique(at[t.score[np.minimum(at, len(t) - 1)] == edges])
        return cut[t.wide[cut]]

    @property
    def apart(self) -> tuple[Floats, Floats]:
        """Sums of scores of label 0, and of 1 - score of label 1: how far each cell's scores are from its labels."""
        return self.t.sums[0, 1], self.t.sums[1, 0] - self.t.sums[1, 1]

    def worth(self, threshold: float) -> tuple[Floats, Floats]:
        """What acting on the negatives of each cell that can move costs, and on its positives wins, per u_delta."""
        neg, pos = self.movable
        return neg * threshold / self.t.total, pos * (1 - threshold) / self.t.total

    @property
    def decided(self) -> float:
        """What the rows of cells that decision thresholds cut are worth."""

        def of_step(step: BinaryTask) -> float:
            cut = self.t.straddled(step.decision_threshold)
            return float(sum(worth[cut].sum() for worth in self.worth(step.threshold)))

        return self.task.u_delta * self.task.in_steps(of_step)

    @property
    def refined(self) -> float:
        """What a threshold inside a cell may win beyond one at its edges: the lesser of its negatives and positives."""
        return self.task.u_delta * self.task.in_steps(lambda step: float(np.minimum(*self.worth(step.threshold)).max()))


Reach = Callable[[InCells], float]
"""The bound; raises Undefined where there is none."""

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
    return Within(reach(InCells(t, inputs, spec.parameters)), drawn)


def _of(*names: str, drawn: bool = False) -> Callable[[Reach], Reach]:
    """Declare the bound of these metrics. drawn: their folds or draws are those of cells, besides."""

    def declare(reach: Reach) -> Reach:
        for name in names:
            METRICS[name] = replace(METRICS[name], within_cells=(reach, drawn))
        return reach

    return declare


_of("brier", "observed_expected", "corp_unc", "eu_never", "eu_always", "utility_at_stake")(lambda c: 0.0)


@_of("log_loss")
def _unclipped(c: InCells) -> float:
    if c.parameters["eps"]:
        raise Undefined(NO_BOUND)
    return 0.0


@_of("corp_mcb", "corp_dsc", "refinement_loss")
def _isotonic(c: InCells) -> float:
    """What the isotonic fit of the rows may save beyond that of cells.

    Averaging a monotone fit over cells costs at most n_c times its rise in each, and the rises add up to 1; and within
    a cell no more can be saved than the variance of its labels.
    """
    if c.parameters.get("loss", "brier") != "brier":
        raise Undefined(NO_BOUND)
    neg, pos = c.movable
    n = neg + pos
    return min(float(n.max()), float((neg * pos / np.maximum(n, 1e-300)).sum())) / c.t.total


@_of("auc")
def _ties(c: InCells) -> float:
    """Pairs within a cell count half; they may be in order, or not."""
    c.t.need_both_classes()
    neg, pos = c.movable
    return float((neg * pos).sum()) / (c.t.positives * c.t.negatives) / 2


_of("gini")(lambda c: 2 * _ties(c))


@_of("ks")
def _steps(c: InCells) -> float:
    c.t.need_both_classes()
    neg, pos = c.movable
    return max(float(neg.max()) / c.t.negatives, float(pos.max()) / c.t.positives)


@_of("average_precision")
def _precision(c: InCells) -> float:
    """Positives of a cell before its negatives, or after them; and no less than the first of them has."""
    if c.t.positives <= 0:
        raise Undefined(NO_POSITIVES)
    neg, pos = (values[::-1] for values in c.t.of_labels)
    ones, zeros = np.cumsum(pos), np.cumsum(neg)
    value = ones / np.maximum(ones + zeros, 1e-300)
    most = ones / np.maximum(ones + zeros - neg, 1e-300)
    least = (ones - pos) / np.maximum(ones - pos + zeros, 1e-300)
    return float((pos * np.maximum(most - value, value - least))[c.t.wide[::-1]].sum()) / c.t.positives


@_of("ece")
def _binned(c: InCells) -> float:
    """Rows of a cell that an edge cuts leave one bin and come to another; each adds at most |s - y|."""
    zeros, ones = c.apart
    return 2 * float((zeros + ones)[c.cut].sum()) / c.t.total


@_of("ece_null", drawn=True)
def _binned_null(c: InCells) -> float:
    """As for `ece`, with labels drawn from the scores: a row adds E|s - y| = 2 s (1 - s), which is at most 1/2."""
    return float(c.t.n[c.cut].sum()) / c.t.total


@_of("ece_debiased")
def _binned_squares(c: InCells) -> float:
    """g^2 / n changes by at most 3 for each row that leaves or comes, g its sum of s - y; the noise of a bin by 1/2."""
    cut = c.cut
    return (6 * float(c.t.n[cut].sum()) + 2 * c.t.unit * len(cut)) / c.t.total


@_of("c_emp")
def _walks(c: InCells) -> float:
    """Within a cell the prefix sums of y - s rise and fall by no more than all of one label."""
    zeros, ones = (np.where(c.t.wide, values, 0.0) for values in c.apart)
    return (float(zeros.max()) + float(ones.max())) / c.t.total


@_of("sm_cal")
def _smooth(c: InCells) -> float:
    """(p - y) z(p) moves by at most twice as much as p, where z is 1-Lipschitz and |z| <= 1."""
    return 2 * float((c.t.n * (c.t.greatest - c.t.least)).sum()) / c.t.total


AT_THRESHOLD = (
    "expected_utility", "net_benefit", "external_regret", "accuracy", "sensitivity", "specificity", "ppv", "npv",
    "selection_rate", "false_positive_rate", "net_benefit_standardised", "interventions_avoided",
)  # fmt: skip
"""Shares of decisions and labels, which are largest and least where the rows of a cut cell lie all on one side."""


def _at_threshold(name: str) -> Reach:
    def reach(c: InCells) -> float:
        metric, total = METRICS[name], 0.0
        for threshold in c.task.decision_thresholds:
            for cell in c.t.straddled(threshold):
                value = float(metric.function(*c.inputs.all_of(metric.needs), **c.parameters))
                ends = []
                for zeros, ones in itertools.product((False, True), repeat=2):
                    moved = c.inputs.override(c.t.moved(cell, zeros, ones, threshold))
                    ends.append(float(metric.function(*moved.all_of(metric.needs), **c.parameters)))
                total += max(abs(end - value) for end in ends)
        return total

    return reach


for _name in AT_THRESHOLD:
    _of(_name)(_at_threshold(_name))


_of("swap_regret")(lambda c: c.decided)
_of("gain_recalibration", drawn=True)(lambda c: c.refined + c.decided)
_of("gain_over_constant", drawn=True)(lambda c: c.refined)
_of("threshold_adjusted", drawn=True)(lambda c: float((c.t.greatest - c.t.least).max()))


@_of("utility_share")
def _share(c: InCells) -> float:
    room = headroom(c.t, c.task)
    if room <= 0:
        return 0.0
    d = Decisions.of_table(c.t, c.task)
    won = (d.utility.value - d.constant(d.best_constant).value) / c.task.u_delta
    more, decided = c.refined / c.task.u_delta, c.decided / c.task.u_delta
    return abs(won) * more / (room * (room + more)) + decided / room


@_of("regret_calibration")
def _binned_regret(c: InCells) -> float:
    """|c - t*| of a bin, times the rows that it decides wrongly, changes by at most 2 for each row that moves."""
    cut, decided = c.cut, np.unique(c.t.straddled(*c.task.decision_thresholds))
    return c.task.u_delta * float(4 * c.t.n[cut].sum() + c.t.n[decided].sum()) / c.t.total


@_of("regret_grouping_worst")
def _binned_worst(c: InCells) -> float:
    """A bin loses the lesser of what its negatives and its positives are worth."""
    cut = c.cut
    return 2 * c.task.u_delta * c.task.in_steps(lambda step: float(sum(w[cut].sum() for w in c.worth(step.threshold))))


def of_curves(t: Table, thresholds: Iterable[float]) -> tuple[float, float] | None:
    """How far curves from cells may be off, per unit of u_delta: what decisions are worth, and calibrated decisions.

    None where the table is no table of cells, or where each cell is one score.
    """
    if not isinstance(t, CellTable) or t.exact:
        return None
    c = InCells(t, Inputs(), {})
    decided = refined = 0.0
    for threshold in thresholds:
        cut, (neg, pos) = t.straddled(threshold), c.worth(threshold)
        decided = max(decided, float((neg + pos)[cut].sum()))
        refined = max(refined, float(np.minimum(neg, pos).max()))
    return decided, refined
