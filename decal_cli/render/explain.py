"""`decal metrics`: the list of metrics, and everything that is said about one."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from decal_cli.metrics import METRICS, Metric
from decal_cli.metrics.declare import NEEDS
from decal_cli.render.page import Page
from decal_cli.spec import Parameter

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
        ("needs", what_it_needs(needs(metric))),
        ("interval", metric.interval_text),
        ("source", metric.source),
    ]
    if metric.witness is not None:
        found.append(("beside it", "the task of the agent that loses most, as a --utility to paste"))
    return found + parameter_facts(metric.parameters)


def render_metric(metric: Metric, page: Page) -> str:
    """One metric in full."""
    return explained(f"{metric.name}: {metric.title}", metric.text, facts(metric), page)


def explained(title: str, text: str, declared: Sequence[tuple[str, str]], page: Page) -> str:
    """A title, the paragraphs of a docstring, and what is declared besides, name by name."""
    wide = max(len(name) for name, _ in declared) + 2
    width = min(page.width, 100)
    body = []
    for paragraph in text.split("\n\n"):
        body += [textwrap.fill(" ".join(paragraph.split()), width), ""]
    rows = [
        textwrap.fill(words, width, initial_indent=f"{name:<{wide}}", subsequent_indent=" " * wide)
        for name, words in declared
    ]
    return "\n".join([title, "", *body, *rows, ""])


def what_it_needs(reasons: Sequence[str]) -> str:
    """Beside the word 'needs': reasons that begin with it, without it."""
    return ", ".join(reason.removeprefix("needs ") for reason in reasons) or "scores and labels"


def parameter_facts(parameters: Sequence[Parameter]) -> list[tuple[str, str]]:
    """Each parameter with its default, and what it is."""
    return [(f"{each.name}={each.default}", f"{each.text}{_choices(each.choices)}") for each in parameters]


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
