"""The metrics: each declared once, measured in one way; importing this package declares them all."""

import decal_cli.metrics.families  # declares them
from decal_cli.metrics.confidence import Interval
from decal_cli.metrics.declare import METRICS, Metric, Result, WorstCaseTask, known_values
from decal_cli.metrics.inputs import Inputs
from decal_cli.metrics.measure import MetricSpec, interval_of, measure, measure_all, value_of

named = METRICS.named
parse = METRICS.parse

__all__ = [
    "METRICS",
    "Inputs",
    "Interval",
    "Metric",
    "MetricSpec",
    "Result",
    "WorstCaseTask",
    "interval_of",
    "known_values",
    "measure",
    "measure_all",
    "named",
    "parse",
    "value_of",
]
