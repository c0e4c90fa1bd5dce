"""The metrics, one file a family; importing this package declares them all."""

from decal_cli.metrics import loss, ranking, bins, levels, interval, agents, smooth, task, regret  # noqa: I001  (families in printed order)
from decal_cli.metrics.declare import METRICS, Choice, Metric, named, parse

__all__ = [
    "METRICS",
    "Choice",
    "Metric",
    "agents",
    "bins",
    "interval",
    "levels",
    "loss",
    "named",
    "parse",
    "ranking",
    "regret",
    "smooth",
    "task",
]
