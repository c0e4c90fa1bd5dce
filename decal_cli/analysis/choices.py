"""Which metrics are computed and shown where none are named."""

from __future__ import annotations

from decal_cli.analysis.evaluate import Plan
from decal_cli.data import Dataset
from decal_cli.metrics import METRICS, Metric, MetricSpec

IRREDUCIBLE = "irreducible_loss"
"""What is left of the Brier score when calibration and features have taken their parts."""
CAPACITY = "capacity"
"""The family of metrics that a table shows where so many rows can be acted on only."""
CAPACITY_FAMILIES = (CAPACITY, "places")
"""The same, with those that need utilities of each row."""
WORST = "regret_grouping_worst"
"""What could be lost to grouping, for those who name no features."""


def all_choices(of_classes: bool = False, slow: bool = False) -> tuple[MetricSpec, ...]:
    """Every metric at its defaults: of scores of two classes, or of rows of several; slow: those too that take long."""
    declared = (choice for choice in METRICS.specs() if choice.declared.takes(of_classes))
    return tuple(choice for choice in declared if slow or not choice.declared.form(of_classes).slow)


def shown_choices(dataset: Dataset, plan: Plan) -> tuple[MetricSpec, ...]:
    """The readable choice of metrics that a table shows unasked: one more with features, and another without."""
    of_classes, by_row, limited = bool(dataset.classes), plan.by_row, dataset.capacity is not None
    more = set()
    if not of_classes and not by_row:
        with_features = any(model.rows.features is not None for model in dataset.models)
        more = {IRREDUCIBLE if with_features else WORST}
    return tuple(
        choice
        for choice in all_choices(of_classes)
        if choice.name in more or is_shown(choice.declared, of_classes, by_row, limited)
    )


BY_ROW = ("expected_utility", "eu_never", "eu_always", "eu_by_amount", "gain_over_amount")
"""What is shown of rows with utilities of their own beside the metrics that are shown of all rows."""


def is_shown(metric: Metric, of_classes: bool, by_row: bool, limited: bool) -> bool:
    """Whether a metric is shown unasked; by_row: of rows with utilities of their own; limited: at a capacity."""
    if metric.family in CAPACITY_FAMILIES:
        if of_classes:
            return limited
        return limited and (metric.name != "capacity_threshold" if by_row else metric.family == CAPACITY)
    if by_row:
        return metric.name in BY_ROW or (metric.shown and not metric.on(of_classes, by_row).shares_task)
    return metric.form(of_classes).shown
