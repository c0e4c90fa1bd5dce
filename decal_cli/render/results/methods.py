"""What `decal methods` says."""

from __future__ import annotations

from decal_cli.methods import METHODS, Method
from decal_cli.methods.declare import NEEDS, Kind
from decal_cli.render.results.explained import Explained, Listed, needs_text, parameter_facts
from decal_cli.sequential import ONLINE, OnlineMethod

KIND_HEADINGS: dict[Kind, str] = {
    "recalibration": "recalibration (functions of the score)",
    "post-training": "post-training (on features)",
}


def method_list() -> Listed:
    """All methods by kind."""
    groups = []
    for kind, text in KIND_HEADINGS.items():
        groups.append((text, tuple((each.name, each.title) for each in METHODS.values() if each.kind == kind)))
    over_time = ((each.name, each.title + (" *" if each.randomised else "")) for each in ONLINE.values())
    groups.append(("over time, for `decal online` (* with random numbers)", tuple(over_time)))
    return Listed("methods", groups)


def method_explained(method: Method) -> Explained:
    """One method in full."""
    facts = [
        ("kind", KIND_HEADINGS[method.kind]),
        ("needs", needs_text(NEEDS[need] for need in method.needs)),
        *([("uses", ", ".join(method.uses) + ", where they are given")] if method.uses else []),
        ("source", method.source),
        *parameter_facts(method.parameters),
    ]
    return Explained(f"{method.name}: {method.title}", method.text, facts)


def online_explained(method: OnlineMethod) -> Explained:
    """A forecaster over time in full."""
    forecaster = method.function
    facts = [
        ("kind", f"over time: {'recalibrates the score' if forecaster.needs_score else 'predicts the base rate'}"),
        ("needs", "scores and labels" if forecaster.needs_score else "labels, in the order of time"),
        *([("random", "its predictions rest on random numbers of the seed and the row")] if method.randomised else []),
        *([("horizon", "the number of rows that there will be, where it is known")] if forecaster.uses_horizon else []),
        ("source", method.source),
        *parameter_facts(method.parameters),
    ]
    return Explained(f"{method.name}: {method.title}", method.text, facts)
