"""Options of the commands that explain: metrics, methods."""

from __future__ import annotations

from decal_cli.commands.options.choices import every_method_name, metric_names
from decal_cli.declarations.option import argument, options

ARGUMENTS = "Arguments"


@options(ARGUMENTS)
class MetricName:
    """Which metric is explained."""

    name: str | None = argument("Metric to explain; without it, all are listed.", "NAME", complete=metric_names)


@options(ARGUMENTS)
class MethodName:
    """Which method is explained."""

    name: str | None = argument("Method to explain; without it, all are listed.", "NAME", complete=every_method_name)
