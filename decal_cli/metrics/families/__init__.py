"""The metrics, by what they are about and nothing else; importing this package declares them in printed order."""

from decal_cli.metrics.declare import METRICS
from decal_cli.metrics.families import (
    agents,
    calibration,
    capacity,
    classes,
    ranking,
    regret,
    scores,
    smooth,
    task,
)

FAMILIES = (
    *("loss", "rules", "ranking", "sufficiency", "bins", "levels", "interval", "agents", "smooth", "task", "capacity"),
    *("practice", "regret", "amounts", "places", "features", "classes", "actions"),
)
for _name in sorted(METRICS, key=lambda name: FAMILIES.index(METRICS[name].family)):
    METRICS[_name] = METRICS.pop(_name)
