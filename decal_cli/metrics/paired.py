"""Paired differences B - A of metrics of two models on the same rows: their standard errors and intervals.

A metric that returns an Estimate differs between models by what each unit adds to it for B, less what it adds for A.
The Brier score and the log loss take the mean and spread of their per-row differences, AUC DeLong's components of both
models on the same rows. Every other metric's paired interval comes from the bootstrap of the pair table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from decal_cli.errors import Undefined
from decal_cli.metrics import bootstrap
from decal_cli.metrics.confidence import Interval, normal, within
from decal_cli.metrics.decisions import Acting, Decisions
from decal_cli.metrics.declare import Metric
from decal_cli.metrics.families import ranking
from decal_cli.metrics.families.loss import brier, log_loss
from decal_cli.metrics.inputs import Inputs
from decal_cli.metrics.measure import MetricSpec, estimate_of, value_or_none
from decal_cli.metrics.numerics.at_capacity import AtCapacity
from decal_cli.metrics.numerics.corp import logarithmic, squared
from decal_cli.metrics.regret_cells import Regrets
from decal_cli.tables.estimate import with_missed
from decal_cli.tables.pairs import CellPairs, PairTable
from decal_cli.tables.table import FEWEST_ROWS, Floats, MeanEstimate, Table
from decal_cli.tables.units import MAX_ROUNDING, Estimate
from decal_cli.task import BinaryTask, Task

_ROUNDING = 1e-9
"""An error that is so much smaller than what it is the difference of is rounding."""
Method = Literal["analytic", "bootstrap"]


def of_pairs(pairs: PairTable, task: Task | None, seed: int = 0) -> tuple[Inputs, Inputs]:
    """What metrics of A and of B are computed from, on units that both share."""
    a, b = (Inputs.of(table, task, seed=seed) for table in pairs.tables)
    if task is None:
        return a, b
    on_a, on_b = Decisions.of_pairs(pairs, task)
    return a.having(on_a), b.having(on_b)


def intervals(
    values: Mapping[MetricSpec, float], a: Inputs, b: Inputs, confidence: float, pairs: PairTable | None = None
) -> dict[MetricSpec, Interval]:
    """Paired intervals of differences, cut to what a difference can be: analytic where there is one, else bootstrap.

    values: of the differences of metrics that are defined for both models. a, b: of the two models, on the same units
    in one order. pairs: the scores of both, where they are of two classes. A metric without a `method` gets none.
    """
    intervals: dict[MetricSpec, Interval] = {}
    for spec, value in values.items():
        apart: Estimate | MeanEstimate | None = _apart(spec, a, b)
        if apart is None and pairs is not None:
            apart = _of_scores(spec, pairs)
        if apart is not None and not _too_few(apart, pairs):
            ends = (apart.low, apart.high) if isinstance(apart, Estimate) else _bounds(spec, a)
            # What does not depend on the model differs by rounding at most.
            centre = 0.0 if abs(value) <= MAX_ROUNDING else value
            intervals[spec] = within(normal(MeanEstimate(centre, apart.error), confidence), ends)
    if pairs is None or isinstance(pairs, CellPairs):
        return intervals  # Draws of cells are not those of rows.
    rest = {
        spec: value
        for spec, value in values.items()
        if spec not in intervals
        and method(spec.declared) == "bootstrap"
        and not (spec.declared.takes_task and a.row_task is not None)
    }

    def drawn(spec: MetricSpec, tables: tuple[Table, Table]) -> float | None:
        of_a, of_b = (value_or_none(spec, Inputs.of(table, a.task, seed=a.seed)) for table in tables)
        return None if of_a is None or of_b is None else of_b - of_a

    if pairs.effective_rows < FEWEST_ROWS:
        return intervals
    by_draws = bootstrap.intervals(rest, drawn, pairs.cells.tables, pairs.cells, confidence, a.seed)
    return intervals | {spec: within(each, _bounds(spec, a)) for spec, each in by_draws.items()}


def _too_few(apart: Estimate | MeanEstimate, pairs: PairTable | None) -> bool:
    units = pairs if pairs is not None else apart.units if isinstance(apart, Estimate) else None
    return units is not None and units.effective_rows < FEWEST_ROWS


def difference(spec: MetricSpec, pairs: PairTable, task: Task | None) -> MeanEstimate | None:
    """The analytic difference B - A of a metric that is defined for both; None where there is none."""
    apart = _apart(spec, *of_pairs(pairs, task))
    return _of_scores(spec, pairs) if apart is None else MeanEstimate(apart.value, apart.error)


def _apart(spec: MetricSpec, a: Inputs, b: Inputs) -> Estimate | None:
    """The difference of two estimates; None where the metric returns none, or the rows do not say how it varies."""
    metric = spec.declared.on(a.of_classes, a.row_task is not None)
    if not metric.pairs:
        return None
    try:
        of_a, of_b = estimate_of(spec, a), estimate_of(spec, b)
    except Undefined:
        return None
    if not isinstance(of_a, Estimate) or not isinstance(of_b, Estimate):
        return None
    apart = of_b - of_a
    limited = [kind for kind in metric.needs if issubclass(kind, AtCapacity)]
    if limited:
        on_a, on_b = (each.get(limited[0]) for each in (a, b))
        small = apart.seen <= _ROUNDING * max(of_a.error, abs(of_a.value))
        if small and not np.array_equal(on_a.listed.acted, on_b.listed.acted):
            return None  # Rows are exchanged for others of the same label, which does not say that all are.
        if small:
            return replace(apart, missed=0.0)
    return apart


def _of_scores(spec: MetricSpec, pairs: PairTable) -> MeanEstimate | None:
    analytic = _PAIRED.get(spec.declared.function)
    return None if analytic is None else analytic(pairs, spec.parameters)


def _bounds(spec: MetricSpec, inputs: Inputs) -> Interval:
    """What a difference can be."""
    low, high = spec.declared.form(inputs.of_classes).bounds(inputs.task)
    return low - high, high - low


def method(metric: Metric, of_classes: bool = False, by_row: bool = False) -> Method | None:
    """'analytic' or 'bootstrap'; None where the value draws at random, needs more than the table, or is noisy.

    Of a noisy metric a bootstrap of the difference keeps the bias: it held the truth in .60 (ece) and .77 (c_emp) of
    nominal .90. `ece_debiased` is the one to compare by.
    """
    if metric.on(of_classes, by_row).pairs or (metric.function in _PAIRED and not of_classes):
        return "analytic"
    if metric.noisy or of_classes:
        return None
    of_table = {Table, Task, BinaryTask, Decisions, Acting, Regrets}
    return "bootstrap" if set(metric.needs) <= of_table else None


def _delong(pairs: PairTable) -> MeanEstimate:
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
    return MeanEstimate(apart, float(with_missed(variance if clustered is None else clustered, farthest, 1.0)))


def _components(pairs: PairTable, side: int) -> tuple[Floats, Floats]:
    """For each pair: share of the negatives that a positive there beats, and of the positives that beat it."""
    t, (_, place) = pairs.tables[side], pairs.levels[side]
    pos = np.asarray(t.pos, dtype=np.float64)
    neg = np.asarray(t.n, dtype=np.float64) - pos
    beaten = (np.cumsum(neg) - neg / 2) / t.negatives
    beating = 1 - (np.cumsum(pos) - pos / 2) / t.positives
    return beaten[place], beating[place]


_PAIRED: dict[Callable[..., Any], Callable[[PairTable, Mapping[str, Any]], MeanEstimate]] = {
    brier: lambda pairs, parameters: pairs.difference(squared),
    log_loss: lambda pairs, parameters: pairs.difference(logarithmic(parameters["eps"])),
    ranking.auc: lambda pairs, parameters: _delong(pairs),
}
