"""Paired differences B - A of metrics of two models on the same rows: their standard errors and intervals.

Means of a per-row score take the mean and spread of its per-row differences; AUC takes DeLong's components of both
models on the same rows. Every other metric's paired interval comes from the bootstrap of the pair table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from decal_cli.metrics import bootstrap
from decal_cli.metrics.confidence import Interval, normal, within
from decal_cli.metrics.declare import Metric
from decal_cli.metrics.families import actions, capacity, classes, places, ranking, task
from decal_cli.metrics.families.loss import brier, log_loss
from decal_cli.metrics.inputs import Inputs
from decal_cli.metrics.measure import MetricSpec, value_or_none
from decal_cli.metrics.numerics import class_influence
from decal_cli.metrics.numerics.at_capacity import AMOUNT_RANKING, SCORE_RANKING, AtCapacity, RowsAtCapacity
from decal_cli.metrics.numerics.corp import logarithmic, squared
from decal_cli.metrics.numerics.decisions import net_benefit_payoff
from decal_cli.tables.cell_pairs import CellPairs
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.estimate import with_missed
from decal_cli.tables.pairs import PairTable
from decal_cli.tables.row_utilities import RowUtilities
from decal_cli.tables.table import FEWEST_ROWS, Estimate, Floats, Loss, Table
from decal_cli.task import BinaryTask, ClassDecision, Task, UtilityRows

_ROUNDING = 1e-9
"""An error that is so much smaller than what it is the difference of is rounding."""
Difference = Callable[[PairTable, Task | None, Mapping[str, Any]], Estimate]
Method = Literal["analytic", "bootstrap"]
OF_ROWS = ("expected_utility", "external_regret", "gain_over_amount")
"""Of rows with utilities of their own: each differs between models as the mean utility does, but for its sign."""


def intervals(
    values: Mapping[MetricSpec, float], pairs: PairTable, task: Task | None, confidence: float, seed: int
) -> dict[MetricSpec, Interval]:
    """Paired intervals of differences, cut to what a difference can be: analytic where there is one, else bootstrap.

    values: of the differences of metrics that are defined for both models. A metric without a `method` gets none, and
    on fewer than FEWEST_ROWS effective rows none does.
    """
    if pairs.effective_rows < FEWEST_ROWS:
        return {}
    intervals: dict[MetricSpec, Interval] = {}
    for spec, value in values.items():
        estimate = difference(spec, pairs, task)
        if estimate is not None:
            intervals[spec] = normal(Estimate(value, estimate.error), confidence)
    # Draws of cells are not those of rows.
    drawn = {} if isinstance(pairs, CellPairs) else values
    rest = {spec: value for spec, value in drawn.items() if method(spec.declared) == "bootstrap"}

    def apart(spec: MetricSpec, tables: tuple[Table, Table]) -> float | None:
        a, b = (value_or_none(spec, Inputs.of(table, task, seed=seed)) for table in tables)
        return None if a is None or b is None else b - a

    intervals |= bootstrap.intervals(rest, apart, pairs.cells.tables, pairs.cells, confidence, seed)
    return {spec: within(interval, _bounds(spec, task)) for spec, interval in intervals.items()}


def capacity_intervals(
    values: Mapping[MetricSpec, float], a: AtCapacity, b: AtCapacity, task: BinaryTask | None, confidence: float
) -> dict[MetricSpec, Interval]:
    """Paired intervals of differences of what so many rows, by the scores of A and of B, are worth.

    task: None where the rows have utilities of their own.
    """
    intervals: dict[MetricSpec, Interval] = {}
    if a.rows.table.effective_rows < FEWEST_ROWS:
        return intervals
    for spec, value in values.items():
        influence = _AT_CAPACITY.get(spec.declared.function)
        if isinstance(a, RowsAtCapacity):
            influence = _BY_ROW_AT_CAPACITY.get(spec.name, influence)
        if influence is not None:
            of_a, of_b = influence(a, task), influence(b, task)
            error = a.error(of_b - of_a)
            same = np.array_equal(a.listed.acted, b.listed.acted)
            if not same and error <= _ROUNDING * max(a.error(of_a), float(np.abs(of_a).sum())):
                continue  # Rows are exchanged for others of the same label, which does not say that all are.
            intervals[spec] = within(normal(Estimate(value, error), confidence), _bounds(spec, task))
    return intervals


def class_intervals(
    values: Mapping[MetricSpec, float],
    a: ClassTable,
    b: ClassTable,
    decision: ClassDecision | None,
    confidence: float,
) -> dict[MetricSpec, Interval]:
    """Paired intervals of differences of metrics of several classes that are, to first order, means over rows."""
    intervals: dict[MetricSpec, Interval] = {}
    if a.effective_rows < FEWEST_ROWS:
        return intervals
    for spec, value in values.items():
        per_row = _PER_ROW.get(spec.declared.form(True).function)
        if per_row is not None:
            (of_a, further_a), (of_b, further_b) = (per_row(c, decision, spec.parameters) for c in (a, b))
            error = float(np.sqrt(a.mean(of_b - of_a).error ** 2 + further_a + further_b))
            interval = normal(Estimate(value, error), confidence)
            intervals[spec] = within(interval, _bounds(spec, decision))
    return intervals


def row_intervals(
    values: Mapping[MetricSpec, float], a: RowUtilities, b: RowUtilities, confidence: float
) -> dict[MetricSpec, Interval]:
    """Paired intervals of differences of metrics that are means over rows with utilities of their own.

    a, b: the same rows in one order, with the score of each model.
    """
    if a.rows.table.effective_rows < FEWEST_ROWS:
        return {}
    of_rows = {spec: value for spec, value in values.items() if spec.name in OF_ROWS}
    error = a.decided(b.acts(b.rows.score), instead=a.acts(a.rows.score)).error
    return {spec: normal(Estimate(value, error), confidence) for spec, value in of_rows.items()}


def _bounds(spec: MetricSpec, task: Task | ClassDecision | None) -> Interval:
    """What a difference can be."""
    low, high = spec.declared.form(isinstance(task, ClassDecision)).bounds(task)
    return low - high, high - low


def difference(spec: MetricSpec, pairs: PairTable, task: Task | None) -> Estimate | None:
    """The analytic difference B - A of a metric that is defined for both; None where there is none."""
    analytic = _PAIRED.get(spec.declared.function)
    return None if analytic is None else analytic(pairs, task, spec.parameters)


def method(metric: Metric, of_classes: bool = False) -> Method | None:
    """'analytic' or 'bootstrap'; None where the value draws at random, needs more than the table, or is noisy.

    Of a noisy metric a bootstrap of the difference keeps the bias: it held the truth in .60 (ece) and .77 (c_emp) of
    nominal .90. `ece_debiased` is the one to compare by.
    """
    if of_classes:
        return "analytic" if metric.form(True).function in _PER_ROW else None
    if metric.function in _PAIRED or metric.function in _AT_CAPACITY or metric.name in _BY_ROW_AT_CAPACITY:
        return "analytic"
    if metric.noisy:
        return None
    return "bootstrap" if set(metric.needs) <= {Table, Task, BinaryTask} else None


def payoff_loss(payoff: UtilityRows, decision_thresholds: Sequence[float]) -> Loss:
    """The per-row payoff[action][label] where the action is how many of the thresholds the score reaches."""
    by_label, at = np.array(payoff).T, np.array(decision_thresholds)

    def loss(score: Floats) -> Floats:
        return by_label[:, np.searchsorted(at, score, side="right")]

    return loss


def _of_payoff(payoff: Callable[[Any], UtilityRows]) -> Difference:
    def between(pairs: PairTable, given: Task | None, parameters: Mapping[str, Any]) -> Estimate:
        assert given is not None  # the metric is undefined without a task
        rows = payoff(given)
        changes = [(of_b[0] - of_a[0], of_b[1] - of_a[1]) for of_a in rows for of_b in rows]
        return pairs.confusion(*given.decision_thresholds).mean(changes)

    return between


def _delong(pairs: PairTable) -> Estimate:
    """AUC of B minus that of A, by the components of DeLong et al. 1988 on the same rows."""
    (beaten_a, beating_a), (beaten_b, beating_b) = (_components(pairs, side) for side in (0, 1))
    _, n, pos, n2, pos2 = pairs.block
    apart = float((pos * (beaten_b - beaten_a)).sum()) / float(pos.sum())
    variance = farthest = 0.0
    for values, weight, squares in (
        (beaten_b - beaten_a, pos, pos2),
        (beating_b - beating_a, n - pos, n2 - pos2),
    ):
        whole, off = float(weight.sum()), (values - apart) ** 2
        raw = float((squares * off).sum()) / whole**2
        rows = whole**2 / float(squares.sum())
        variance += raw * rows / (rows - 1) if rows > 1 + 1e-9 else raw
        farthest = max(farthest, float(off[weight > 0].max()) / rows**2)
    clustered = pairs.design.spread(
        (beating_b - beating_a - apart) / float((n - pos).sum()), (beaten_b - beaten_a - apart) / float(pos.sum())
    )
    return Estimate(apart, float(with_missed(variance if clustered is None else clustered, farthest, 1.0)))


def _components(pairs: PairTable, side: int) -> tuple[Floats, Floats]:
    """For each pair: share of the negatives that a positive there beats, and of the positives that beat it."""
    t, (_, place) = pairs.tables[side], pairs.levels[side]
    pos = np.asarray(t.pos, dtype=np.float64)
    neg = np.asarray(t.n, dtype=np.float64) - pos
    beaten = (np.cumsum(neg) - neg / 2) / t.negatives
    beating = 1 - (np.cumsum(pos) - pos / 2) / t.positives
    return beaten[place], beating[place]


_PAIRED: dict[Callable[..., float], Difference] = {
    brier: lambda pairs, given, parameters: pairs.difference(squared),
    log_loss: lambda pairs, given, parameters: pairs.difference(logarithmic(parameters["eps"])),
    ranking.auc: lambda pairs, given, parameters: _delong(pairs),
    task.expected_utility: _of_payoff(lambda given: given.undominated),
    task.net_benefit: _of_payoff(lambda given: net_benefit_payoff(given.two_actions.threshold)),
    task.accuracy: _of_payoff(lambda given: ((1.0, 0.0), (0.0, 1.0))),
}

_AT_CAPACITY: dict[Callable[..., float], Callable[[AtCapacity, Any], Floats]] = {
    capacity.capture: lambda at, given: capacity.capture_influence(at),
    capacity.precision_at_capacity: lambda at, given: capacity.precision_influence(at),
    capacity.lift: lambda at, given: capacity.lift_influence(at),
    capacity.utility_at_capacity: capacity.utility_influence,
    capacity.capacity_cost: capacity.cost_influence,
}
"""What each row adds to the metric, to first order, (T,)."""
_BY_ROW_AT_CAPACITY: dict[str, Callable[[Any, Any], Floats]] = {
    "utility_at_capacity": lambda at, given: at.adds_utility,
    "capacity_cost": lambda at, given: at.adds_cost,
    "value_capture": lambda at, given: places.value_influence(at),
    "gain_over_score_ranking": lambda at, given: places.over_influence(at, SCORE_RANKING),
    "gain_over_amount_ranking": lambda at, given: places.over_influence(at, AMOUNT_RANKING),
}
"""The same where every row has utilities of its own."""

PerRow = Callable[[ClassTable, Any, Mapping[str, Any]], tuple[Floats, float]]
"""What each row adds to first order, (T,), by the task and the parameters; and what is left of the variance."""


def _rows(of_row: Callable[..., Floats]) -> PerRow:
    """Of a mean over rows of a number that the metric's parameters give."""
    return lambda c, decision, parameters: (of_row(c, **parameters), 0.0)


def _decided(sign: float) -> PerRow:
    return lambda c, decision, parameters: (sign * actions.row_utility(c, decision), 0.0)


_PER_ROW: dict[Callable[..., float], PerRow] = {
    classes.brier: _rows(classes.row_brier),
    classes.log_loss: _rows(classes.row_log_loss),
    classes.accuracy: lambda c, decision, parameters: (classes.row_right(c, 1), 0.0),
    classes.top_accuracy: _rows(classes.row_right),
    classes.rps: _rows(classes.row_rps),
    classes.auc: lambda c, decision, parameters: (class_influence.of_auc(c, weighted=False), 0.0),
    classes.auc_weighted: lambda c, decision, parameters: (class_influence.of_auc(c, weighted=True), 0.0),
    classes.aurc: lambda c, decision, parameters: (classes.aurc_influence(c), 0.0),
    classes.ece_top_debiased: lambda c, decision, parameters: class_influence.of_top_debiased(c, **parameters),
    actions.expected_utility: _decided(1.0),
    actions.external_regret: _decided(-1.0),
}
