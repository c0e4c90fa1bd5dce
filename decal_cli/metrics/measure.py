"""A metric measured: its value and interval, or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial

from decal_cli.declarations.spec import Spec
from decal_cli.errors import Undefined
from decal_cli.metrics import confidence as intervals
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import Measured, Metric, Result, known_values
from decal_cli.metrics.gaps import chosen_levels
from decal_cli.metrics.inputs import Inputs
from decal_cli.metrics.within_cells import within_cells
from decal_cli.numbers import p_value
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.seed import Seed
from decal_cli.tables.table import Table
from decal_cli.tables.threads import from_both_ends, one_thread
from decal_cli.tables.units import Estimate

MetricSpec = Spec[Metric]
NOT_BY_ROW = "is for utilities that all rows share, and here each row has its own"


def _form(spec: MetricSpec, inputs: Inputs) -> Metric:
    """What the metric is on these rows; as declared, where it has no meaning on them."""
    return spec.declared.on(inputs.of_classes, inputs.by_row)


def value_of(spec: MetricSpec, inputs: Inputs) -> float:
    """The metric's value, never NaN or infinite; raises Undefined with its reason."""
    return float(estimate_of(spec, inputs))


def estimate_of(spec: MetricSpec, inputs: Inputs) -> float | Estimate | Measured:
    """The metric's value; with what each unit adds to it where the metric is smooth. Raises Undefined."""
    metric = _form(spec, inputs)
    if inputs.by_row and metric.shares_task:
        raise Undefined(NOT_BY_ROW)
    estimate = metric.function(*inputs.all_of(metric.needs), **spec.parameters)
    if not math.isfinite(float(estimate)):
        raise Undefined("is not finite for this table")
    return estimate


def interval_of(spec: MetricSpec, inputs: Inputs, confidence: float) -> Interval | None:
    """The analytic interval; None where the metric declares none, or it is undefined."""
    try:
        return _interval_or_reason(spec, inputs, estimate_of(spec, inputs), confidence)[0]
    except Undefined:
        return None


def _interval_or_reason(
    spec: MetricSpec, inputs: Inputs, estimate: float | Estimate | Measured, confidence: float
) -> tuple[Interval | None, str | None]:
    """The analytic interval, or why there is none; neither where the metric declares none."""
    metric = _form(spec, inputs)
    interval, table = metric.interval, inputs.table if metric.rarer else None
    if interval and table is not None and table.fewer_rows < metric.rarer:
        return None, f"rests on fewer than {metric.rarer} rows of the rarer label"
    if interval is None or interval == "bootstrap":
        return None, None
    try:
        if isinstance(estimate, Measured):
            low, high = estimate.interval(confidence, Seed(inputs.seed))
        elif callable(interval):
            low, high = interval(*inputs.all_of(metric.interval_needs), confidence=confidence, **spec.parameters)
        else:
            assert isinstance(estimate, Estimate)  # as its declaration says
            return estimate.wilson(confidence) if interval == "wilson" else estimate.normal(confidence), None
    except Undefined as undefined:
        return None, undefined.reason
    if not (math.isfinite(low) and math.isfinite(high)):
        return None, "its ends are not finite for this table"
    return (float(low), float(high)), None


def measure(spec: MetricSpec, inputs: Inputs, confidence: float | None = None) -> Result:
    """Value and analytic interval, or the reason why the metric is undefined; no interval where confidence is None."""
    metric = _form(spec, inputs)
    try:
        within = within_cells(spec, inputs)
        estimate = estimate_of(spec, inputs)
    except Undefined as undefined:
        return Result(None, None, undefined.reason)
    value, worst, text = float(estimate), None, ""
    if within is not None:
        low, high = spec.declared.bounds(inputs.task)
        within = within._replace(bound=min(within.bound, max(value - low, high - value)))
    interval, why = (None, None) if confidence is None else _interval_or_reason(spec, inputs, estimate, confidence)
    given = inputs.all_of(metric.needs)
    if metric.worst_case_task is not None:
        with suppress(Undefined):
            worst = metric.worst_case_task(*given, **spec.parameters)
    if metric.value_text is not None:
        text = metric.value_text(*given, **spec.parameters)
    elif metric.unit == "p-value":
        text = p_value(value)
    side = None if interval is None else metric.side
    levels = ""
    if spec.parameters.get("levels") == "auto":
        levels = chosen_levels(inputs.get(ClassTable) if inputs.of_classes else inputs.get(Table))
    return Result(value, interval, None, worst, text, within, no_interval=why, side=side, levels=levels)


def measure_all(
    specs: Iterable[MetricSpec], inputs: Inputs, confidence: float | None = None
) -> dict[MetricSpec, Result]:
    """What `measure` gives for many metrics, and the bootstrap intervals that are declared, all from the same draws."""
    specs = list(specs)
    if confidence is None:
        return {spec: measure(spec, inputs) for spec in specs}
    forms = {spec: _form(spec, inputs) for spec in specs}
    resampled = [spec for spec in specs if forms[spec].interval == "bootstrap"]
    results: dict[MetricSpec, Result] = {}

    def measured(spec: MetricSpec) -> None:
        results[spec] = measure(spec, inputs, confidence)

    def with_resamples() -> None:
        results.update(_measured_by_resampling(resampled, inputs, confidence))

    measuring: list[Callable[[], None]] = [
        *(partial(measured, spec) for spec in specs if spec not in resampled),
        with_resamples,
    ]
    # How many threads linear algebra has is one setting of the process: neither thread may set it for the other.
    with one_thread() if (many := (t := inputs.table) is not None and len(t) > intervals.MANY) else nullcontext():
        if many:  # What metrics ask for is made before they are measured, so that no two threads make it.
            needs = dict.fromkeys(need for each in forms.values() for need in (*each.needs, *each.interval_needs))
            from_both_ends([partial(inputs.find, need) for need in needs], worth=len(needs) > 1)
        # Two threads take from two ends, so that metrics that share a pass over the table come to one of them.
        from_both_ends(measuring, worth=many and len(specs) > 1)
    return {spec: results[spec] for spec in specs}


def _measured_by_resampling(specs: Iterable[MetricSpec], inputs: Inputs, confidence: float) -> dict[MetricSpec, Result]:
    """Metrics with bootstrap intervals, all from the same draws."""
    results = {spec: measure(spec, inputs, confidence) for spec in specs}
    values = known_values({spec: result for spec, result in results.items() if result.missing is None})
    if not values:
        return results
    cells, task = inputs.get(Table).cells, inputs.task
    of_draws = intervals.bootstrapped(
        values, lambda spec, table: value_of(spec, inputs.override(table)), cells, cells, confidence, inputs.seed
    )
    for spec, interval in of_draws.items():
        cut = intervals.holding(intervals.within(interval, spec.declared.bounds(task)), values[spec])
        results[spec] = replace(results[spec], interval=cut)
    return results
