"""One run of `decal metrics`."""

from __future__ import annotations

from decal_cli.commands.common import emit
from decal_cli.commands.options.explaining import MetricName
from decal_cli.metrics import parse
from decal_cli.render.results.explained import metric_explained, metric_list


def run(named: MetricName) -> None:
    """List the metrics, or explain the one of this name."""
    emit(metric_list() if named.name is None else metric_explained(parse(named.name).declared))
