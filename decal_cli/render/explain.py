"""`decal metrics`: the list of metrics, and everything that is said about one."""

from __future__ import annotations

import math
import textwrap

from decal_cli.metrics import METRICS, Metric
from decal_cli.metrics.declare import NEEDS
from decal_cli.render.page import Page

_DIRECTIONS = {
    "lower": "lower is better",
    "higher": "higher is better",
    "zero": "0 is ideal",
    "one": "1 is ideal",
    "neither": "neither direction is better",
}


def render_metrics() -> str:
    """All metrics by family, a line each."""
    wide = max(len(name) for name in METRICS) + 2
    lines = []
    family = ""
    for metric in METRICS.values():
        if metric.family != family:
            lines += [""] * bool(family) + [metric.family]
            family = metric.family
        lines.append(f"  {metric.name:<{wide}}{metric.title}")
    return "\n".join([*lines, "", "decal metrics NAME explains one.", ""])


def facts(metric: Metric) -> list[tuple[str, str]]:
    """What is declared of a metric besides its text, as (name, words)."""
    found = [
        ("family", metric.family),
        ("unit", metric.unit),
        ("range", bounds(metric)),
        ("direction", _DIRECTIONS[metric.better]),
        ("needs", ", ".join(needs(metric)) or "scores and labels"),
        ("interval", metric.interval_text),
        ("source", metric.source),
    ]
    if metric.witness is not None:
        found.append(("beside it", "the task of the agent that loses most, as a --utility to paste"))
    return found + [
        (f"{parameter.name}={parameter.default}", f"{parameter.text}{_choices(parameter.choices)}")
        for parameter in metric.parameters
    ]


def render_metric(metric: Metric, page: Page) -> str:
    """One metric in full."""
    declared = facts(metric)
    wide = max(len(name) for name, _ in declared) + 2
    width = min(page.width, 100)
    body = []
    for paragraph in metric.text.split("\n\n"):
        body += [textwrap.fill(" ".join(paragraph.split()), width), ""]
    rows = [
        textwrap.fill(text, width, initial_indent=f"{name:<{wide}}", subsequent_indent=" " * wide)
        for name, text in declared
    ]
    return "\n".join([f"{metric.name}: {metric.title}", "", *body, *rows, ""])


def bounds(metric: Metric) -> str:
    """The range in words."""
    low, high = metric.range
    unit = " u_delta" if metric.bounds_in_u_delta else ""

    def end(value: float) -> str:
        return "unbounded" if math.isinf(value) else f"{value:g}{unit if value else ''}"

    if math.isinf(low) and math.isinf(high):
        return "unbounded"
    return f"{end(low)} to {end(high)}"


def needs(metric: Metric) -> list[str]:
    """What the user has to give for it, besides scores and labels."""
    return [NEEDS[need][1] for need in metric.needs if NEEDS[need][1]]


def _choices(choices: tuple[str, ...]) -> str:
    return f" ({', '.join(choices)})" if choices else ""
