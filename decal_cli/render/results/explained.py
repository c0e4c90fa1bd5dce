"""What `decal metrics` and `decal methods` say: the list, and everything that is declared about one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from decal_cli.data.words import grouped
from decal_cli.declarations.spec import Parameter
from decal_cli.hints import Hint, Verb, said
from decal_cli.learn.method import NEEDS, Kind, Method
from decal_cli.learn.methods import METHODS
from decal_cli.metrics import METRICS, Metric
from decal_cli.metrics.inputs import INPUT_KINDS
from decal_cli.render.blocks import Block, Blocks, Facts, Paragraph
from decal_cli.sequential import ONLINE, OnlineMethod

Fact = tuple[str, str]
_DIRECTIONS = {
    "lower": "lower is better",
    "higher": "higher is better",
    "zero": "0 is ideal",
    "one": "1 is ideal",
    "neither": "neither direction is better",
}
KIND_HEADINGS: dict[Kind, str] = {
    "recalibration": "recalibration (functions of the score)",
    "post-training": "post-training (on features)",
}


class Explained:
    """What is declared, under a title of the page."""

    def __init__(self, title: str, *blocks: Block) -> None:
        self.title = title
        self._blocks = blocks

    def blocks(self) -> Blocks:
        """As they are."""
        yield from self._blocks


def _listed(what: str, groups: Iterable[tuple[str, Iterable[Fact]]]) -> Explained:
    """Declared things by group, a line each, and how to read on; what: 'metrics' or 'methods'."""
    return Explained(f"decal {what}", Facts(groups), Paragraph(f"decal {what} NAME explains one."))


def _explained(declared: Any, facts: Sequence[Fact], more: str = "") -> Explained:
    """One declared thing in full."""
    title = f"{declared.name}: {declared.title}"
    return Explained(title, Paragraph(title), *explanation(declared.text + more, facts))


def explanation(text: str, facts: Sequence[Fact]) -> tuple[Block, ...]:
    """The paragraphs of a docstring, and what is declared besides."""
    return *(Paragraph(" ".join(part.split())) for part in text.split("\n\n")), Facts(
        [("", [fact for fact in facts if fact[1]])]
    )


def metric_list() -> Explained:
    """All metrics by family."""
    return _listed("metrics", grouped((each.family, (each.name, each.title)) for each in METRICS.values()).items())


def metric_explained(metric: Metric) -> Explained:
    """One metric in full."""
    more = metric.of_classes and f"\n\nFor rows of several classes: {metric.of_classes.text}"
    return _explained(metric, metric_facts(metric), more or "")


def explained(metric: Metric) -> tuple[Block, ...]:
    """What is declared of a metric."""
    return explanation(metric.text, metric_facts(metric))


def metric_facts(metric: Metric) -> list[Fact]:
    """What is declared of a metric besides its text."""
    absent = (said(INPUT_KINDS[need].absent) for need in metric.needs)
    in_nats = next((f"; with {each.name}=log, nats" for each in metric.parameters if "log" in each.choices), "")
    facts = [
        ("family", metric.family),
        ("unit", metric.unit + in_nats),
        ("range", _bounds(metric)),
        ("direction", _DIRECTIONS[metric.better]),
        ("needs", needs_text(reason for reasons in absent if reasons for reason in reasons.split("; "))),
        ("interval", metric.interval_text),
        ("it covers", metric.estimand),
        ("source", metric.source),
    ]
    task = f"the task of the agent that loses most, as a {Hint('utility').words} to paste"
    return [*facts, ("beside it", task if metric.worst_case_task else ""), *parameter_facts(metric.parameters)]


def needs_text(reasons: Iterable[str]) -> str:
    """Beside the word 'needs': reasons that begin with it, without it."""
    return ", ".join(reason.removeprefix("needs ") for reason in dict.fromkeys(reasons)) or "scores and labels"


def parameter_facts(parameters: Sequence[Parameter]) -> list[Fact]:
    """Each parameter with its default, and what it is."""
    return [
        (each.shown, f"{each.text} ({', '.join(each.choices)})" if each.choices else each.text) for each in parameters
    ]


def _bounds(metric: Metric) -> str:
    """The range in words."""
    low, high = metric.range
    unit = " u_delta" if metric.bounds_in_u_delta else ""

    def end(value: float) -> str:
        return "unbounded" if math.isinf(value) else f"{value:g}{unit if value else ''}"

    if math.isinf(low) and math.isinf(high):
        return "unbounded"
    return f"{end(low)} to {end(high)}"


def method_list() -> Explained:
    """All methods by kind."""
    groups = []
    for kind, text in KIND_HEADINGS.items():
        groups.append((text, [(each.name, each.title) for each in METHODS.values() if each.kind == kind]))
    over_time = [(each.name, each.title + (" *" if each.randomised else "")) for each in ONLINE.values()]
    groups.append((f"over time, for `{Verb('online').words}` (* with random numbers)", over_time))
    return _listed("methods", groups)


def method_explained(method: Method) -> Explained:
    """One method in full."""
    facts = [
        ("kind", KIND_HEADINGS[method.kind]),
        ("needs", needs_text(said(NEEDS[need]) for need in method.needs)),
        ("uses", ", ".join((*method.uses, "where they are given")) if method.uses else ""),
        ("source", method.source),
        *parameter_facts(method.parameters),
    ]
    return _explained(method, facts)


def online_explained(method: OnlineMethod) -> Explained:
    """A forecaster over time in full."""
    forecaster = method.function
    facts = [
        ("kind", f"over time: {'recalibrates the score' if forecaster.needs_score else 'predicts the base rate'}"),
        ("needs", "scores and labels" if forecaster.needs_score else "labels, in the order of time"),
        ("random", "its predictions rest on random numbers of the seed and the row" if method.randomised else ""),
        ("horizon", "the number of rows that there will be, where it is known" if forecaster.uses_horizon else ""),
        ("source", method.source),
        *parameter_facts(method.parameters),
    ]
    return _explained(method, facts)
