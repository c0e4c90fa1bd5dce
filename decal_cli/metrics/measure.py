"""A metric measured: its value and interval, or the reason why there is none."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from decal_cli.declarations.spec import Spec
from decal_cli.errors import Undefined
from decal_cli.metrics import confidence as confidence_module
from decal_cli.metrics.confidence import Interval, bootstrapped, holding
from decal_cli.metrics.confidence import within as inside
from decal_cli.metrics.declare import Metric, Result, Witness
from decal_cli.metrics.inputs import Inputs
from decal_cli.metrics.within_cells import within_cells
from decal_cli.tables.table import Table
from decal_cli.tables.threads import beside
from decal_cli.tables.units import Estimate

MetricSpec = Spec[Metric]


NOT_BY_ROW = "is for utilities that all rows share, and here each row has its own"


def _form(spec: MetricSpec, inputs: Inputs) -> Metric:
    """What the metric is on these rows; as declared, where it has no meaning on them."""
    return spec.declared.on(inputs.of_classes, inputs.by_row)


def value_of(spec: MetricSpec, inputs: Inputs) -> float:
    """The metric's value, never NaN or infinite; raises Undefined with its reason."""
    return float(estimate_of(spec, inputs))


def estimate_of(spec: MetricSpec, inputs: Inputs) -> float | Estimate:
    """The same, with what each unit adds to it where the metric is smooth in them."""
    metric = _form(spec, inputs)
    if inputs.by_row and metric.shares_task:
        raise Undefined(NOT_BY_ROW)
    estimate = metric.function(*inputs.all_of(metric.needs), **spec.parameters)
    if not math.isfinite(float(estimate)):
        raise Undefined("is not finite for this table")
    return estimate


def value_or_none(spec: MetricSpec, inputs: Inputs) -> float | None:
    """The metric's value, None where it is undefined."""
    try:
        return value_of(spec, inputs)
    except Undefined:
        return None


def interval_of(spec: MetricSpec, inputs: Inputs, confidence: float) -> Interval | None:
    """The analytic interval; None where the metric declares none, or it is undefined."""
    try:
        return _interval_or_reason(spec, inputs, estimate_of(spec, inputs), confidence)[0]
    except Undefined:
        return None


def _interval_or_reason(
    spec: MetricSpec, inputs: Inputs, estimate: float | Estimate, confidence: float
) -> tuple[Interval | None, str | None]:
    """The analytic interval, or why it is undefined; neither where the metric declares none."""
    metric = _form(spec, inputs)
    interval = metric.interval
    if interval is None or interval == "bootstrap":
        return None, None
    try:
        _need_rarer(metric, inputs)
        if not callable(interval):
            assert isinstance(estimate, Estimate)  # as its declaration says
            return _of_estimate(estimate, interval, confidence), None
        given = inputs.all_of(metric.interval_needs)
        low, high = interval(*given, confidence=confidence, **spec.parameters)
    except Undefined as undefined:
        return None, undefined.reason
    if not (math.isfinite(low) and math.isfinite(high)):
        return None, "its ends are not finite for this table"
    return (float(low), float(high)), None


def _need_rarer(metric: Metric, inputs: Inputs) -> None:
    """Raise Undefined where an interval would rest on too few rows of a label."""
    table = inputs.table if metric.rarer else None
    if table is not None and table.rarer_rows < metric.rarer:
        raise Undefined(f"rests on fewer than {metric.rarer} rows of the rarer label")


def _of_estimate(estimate: Estimate, interval: str, confidence: float) -> Interval:
    return estimate.wilson(confidence) if interval == "wilson" else estimate.normal(confidence)


def _witness(spec: MetricSpec, inputs: Inputs) -> Witness | None:
    """The task that attains the value, where the metric declares one and there is one."""
    metric = _form(spec, inputs)
    if metric.witness is None:
        return None
    try:
        return metric.witness(*inputs.all_of(metric.needs), **spec.parameters)
    except Undefined:
        return None


def _text(spec: MetricSpec, inputs: Inputs) -> str:
    """How the value is written, where the metric says so."""
    metric = _form(spec, inputs)
    return "" if metric.value_text is None else metric.value_text(*inputs.all_of(metric.needs), **spec.parameters)


def measure(spec: MetricSpec, inputs: Inputs, confidence: float | None = None) -> Result:
    """Value and analytic interval, or the reason why the metric is undefined; no interval where confidence is None."""
    try:
        within = within_cells(spec, inputs)
        estimate = estimate_of(spec, inputs)
    except Undefined as undefined:
        return Result(None, None, undefined.reason)
    value = float(estimate)
    if within is not None:
        low, high = spec.declared.bounds(inputs.task)
        within = within._replace(bound=min(within.bound, max(value - low, high - value)))
    interval, why = (None, None) if confidence is None else _interval_or_reason(spec, inputs, estimate, confidence)
    witness, text = _witness(spec, inputs), _text(spec, inputs)
    side = None if interval is None else _form(spec, inputs).side
    return Result(value, interval, witness=witness, text=text, within=within, no_interval=why, side=side)


def measure_all(
    specs: Iterable[MetricSpec], inputs: Inputs, confidence: float | None = None
) -> dict[MetricSpec, Result]:
    """The same of many metrics, with a bootstrap interval where one is declared, all from the same draws."""
    specs = list(specs)
    if confidence is None:
        return {spec: measure(spec, inputs) for spec in specs}
    resampled = [spec for spec in specs if _form(spec, inputs).interval == "bootstrap"]
    rest = deque(spec for spec in specs if spec not in resampled)

    def with_resamples() -> dict[MetricSpec, Result]:
        results = _measured_by_resampling(resampled, inputs, confidence)
        return results | {spec: measure(spec, inputs, confidence) for spec in _emptying(rest.pop)}

    second = with_resamples
    if _for_two_threads(inputs):
        _build(specs, inputs)
        second = beside(with_resamples)
    # Two threads take from two ends, so that metrics that share a pass over the table come to one of them.
    results = {spec: measure(spec, inputs, confidence) for spec in _emptying(rest.popleft)}
    results |= second()
    return {spec: results[spec] for spec in specs}


def _emptying(take: Callable[[], MetricSpec]) -> Iterator[MetricSpec]:
    """What is there to take, until nothing is."""
    while True:
        try:
            spec = take()
        except IndexError:
            return
        yield spec


def _for_two_threads(inputs: Inputs) -> bool:
    """Whether there is enough to do, and none of it sets how many threads linear algebra has, as clusters do."""
    table = inputs.table
    return table is not None and len(table) > confidence_module.MANY and not table.design.clustered


def _build(specs: Iterable[MetricSpec], inputs: Inputs) -> None:
    """Build what the metrics ask for, so that no two threads do."""
    for spec in specs:
        metric = _form(spec, inputs)
        with suppress(Undefined):
            inputs.all_of((*metric.needs, *metric.interval_needs))


def _measured_by_resampling(specs: Iterable[MetricSpec], inputs: Inputs, confidence: float) -> dict[MetricSpec, Result]:
    """Metrics with bootstrap intervals, all from the same draws."""
    results = {spec: measure(spec, inputs) for spec in specs}
    values = {spec: result.value for spec, result in results.items() if result.value is not None}
    for spec in list(values):
        try:
            _need_rarer(_form(spec, inputs), inputs)
        except Undefined as undefined:
            results[spec] = replace(results[spec], no_interval=undefined.reason)
            del values[spec]
    if not values:
        return results
    cells, task = inputs.get(Table).cells, inputs.task
    of_draws = bootstrapped(
        values, lambda spec, table: value_or_none(spec, inputs.having(table)), cells, cells, confidence, inputs.seed
    )
    cut = {
        spec: holding(inside(interval, spec.declared.bounds(task)), values[spec]) for spec, interval in of_draws.items()
    }
    return results | {spec: replace(results[spec], interval=interval) for spec, interval in cut.items()}
