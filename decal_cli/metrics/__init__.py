"""The metrics: each declared once, measured in one way; importing this package declares them all."""

import decal_cli.metrics.families  # noqa: F401  (declares them)
from decal_cli.metrics.declare import METRICS, Choice, Metric, named, parse

__all__ = ["METRICS", "Choice", "Metric", "named", "parse"]
