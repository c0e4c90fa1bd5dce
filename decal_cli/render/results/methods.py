"""What `decal methods` says."""

from __future__ import annotations

from decal_cli.methods import METHODS, Method
from decal_cli.methods.declare import NEEDS, Kind
from decal_cli.render.results.explained import Explained, Listed, needs_text, parameter_facts

KIND_HEADINGS: dict[Kind, str] = {
    "recalibration": "recalibration (functions of the score)",
    "post-training": "post-training (on features)",
}


def method_list() -> Listed:
    """All methods by kind."""
    groups = []
    for kind, text in KIND_HEADINGS.items():
        groups.append((text, tuple((each.name, each.title) for each in METHODS.values() if each.kind == kind)))
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
