"""The JSON schema of everything that decal prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

from decal_cli.analysis.gate import GateRow
from decal_cli.curves.crossings import Lowest
from decal_cli.declarations.document import Limit
from decal_cli.render.results.card import CardData
from decal_cli.render.results.comparison import ComparedData
from decal_cli.render.results.evaluation import MeasuredData, Measures
from decal_cli.render.results.fitting import FittedData
from decal_cli.render.results.online import ReplayedData
from decal_cli.render.results.planned import PlannedData
from decal_cli.render.results.recommendation import AdvisedData, RangedData
from decal_cli.render.results.source import Provenance
from decal_cli.render.results.study import StudiedData
from decal_cli.render.results.sweep import SweptData, VariedData
from decal_cli.render.schema import View, schema_of
from decal_cli.version import SCHEMA

_GATES, _LOWEST = {"gates": list[GateRow]}, {"lowest": Lowest | None}
_REPORTS: tuple[tuple[str, type[View], type[View], type[View], dict[str, Any], dict[str, Any]], ...] = (
    ("evaluate", Measures, Measures, MeasuredData, {}, {}),
    ("recommend", Provenance, Provenance, AdvisedData, {}, {}),
    ("recommend of a range", Provenance, Provenance, RangedData, {}, {}),
    ("gate", Provenance, Measures, MeasuredData, _GATES, _GATES),
    ("sweep", Provenance, Provenance, SweptData, {}, _LOWEST),
    ("sweep --vary", Provenance, Provenance, VariedData, {}, {}),
)
"""Command, what its reports share, in the document and in each; the report; what else is in a document of one, and of
several.
"""


def _documents() -> Iterator[type[View]]:
    """What `one_or_several` makes of each kind of report, and the documents without reports."""
    for command, shared, of_each, report, of_one, of_several in _REPORTS:
        name = "".join(map(str.title, command.replace("-", "").split()))
        whole: Any = _view(f"{name}Report", report.__doc__ or "", of_each, report)
        one, several = (Annotated[list[whole], limit] for limit in (Limit(minItems=1, maxItems=1), Limit(minItems=2)))
        flat = f"What `decal {command}` prints of one model: its fields, and the same under reports."
        yield _view(f"{name}One", flat, shared, report, reports=one, **of_one)
        yield _view(f"{name}Several", "The same of several models or groups.", shared, reports=several, **of_several)
    yield from (CardData, ComparedData, FittedData, PlannedData, ReplayedData, StudiedData)


def _view(name: str, text: str, *bases: type[View], **keys: Any) -> type[View]:
    return type(name, bases, {"__doc__": text, "__annotations__": keys})


DOCUMENTS = tuple(_documents())


def schema_text() -> str:
    """The file `report.schema.json`."""
    title = f"decal report, schema {SCHEMA}"
    description = (
        "What `decal evaluate|recommend|gate|plan|compare|sweep|fit|study|online --format json` print, and the card of "
        "`decal report --card -o card.json`. Models and "
        "groups stand under reports, each whole in itself; the fields of an only one are flat as well. Numbers are at "
        "full precision; an undefined one is null with its reason."
    )
    return json.dumps(schema_of(title, description, DOCUMENTS), indent=2) + "\n"
