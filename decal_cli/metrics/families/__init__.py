"""The metrics, one file a family and nothing else; importing this package declares them in printed order."""

from decal_cli.metrics.families import loss, ranking, bins, levels, interval, agents, smooth, task, regret  # noqa: F401, I001
