"""The metrics, one file a family and nothing else; importing this package declares them in printed order."""

from decal_cli.metrics.families import loss, rules, ranking, sufficiency, bins, levels, interval  # noqa: F401, I001
from decal_cli.metrics.families import agents, smooth, task, capacity, practice, regret, gains, amounts  # noqa: F401
from decal_cli.metrics.families import places, features  # noqa: F401
from decal_cli.metrics.families import classes, actions, class_agents  # noqa: F401
