"""The metrics, one file a family; importing this package declares them all."""

from decal_cli.metrics import loss
from decal_cli.metrics.declare import METRICS, Choice, Metric, named, parse

__all__ = ["METRICS", "Choice", "Metric", "loss", "named", "parse"]
