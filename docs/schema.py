"""The JSON schema of everything that decal prints: it follows from the types of what results hold."""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from decal_cli.analysis.gate import GateRow
from decal_cli.curves.crossings import Lowest
from decal_cli.declarations.document import Limit, Said
from decal_cli.render.results.card import CardData
from decal_cli.render.results.comparison import ComparisonData
from decal_cli.render.results.evaluation import MeasuredData, Measures
from decal_cli.render.results.fitting import FitData
from decal_cli.render.results.online import ReplayPart
from decal_cli.render.results.over_costs import RangedData
from decal_cli.render.results.planned import PlannedRest
from decal_cli.render.results.recommendation import AdvisedData
from decal_cli.render.results.source import Provenance
from decal_cli.render.results.study import StudiedData
from decal_cli.render.results.sweep import SweptData, VariedData
from decal_cli.render.schema import View, is_object, keys_of
from decal_cli.version import SCHEMA

_SCALARS: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}
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
    of = "What `decal {}` prints: {}"
    compared = of.format("compare", "differences are of the second model minus the first, with paired intervals.")
    fitted = of.format("fit", "the model file it wrote, and what the model wins on rows that it has not seen.")
    planned = (
        "What `decal plan` prints. pilot: what rows the plan rests on, in words. powers: how often the rows show it; "
        "rows of a plan are in their order."
    )
    replayed = (
        "What `decal online` prints. rows, positives: of all rows so far whose labels are known. first_time, "
        "last_time: of all rows. replay: how they were replayed. methods, windows: one entry for each. alarm: null"
        " where none sounded. prior_shift: null until the warm-up is over. advice: what to do now. gates: of "
        "--rule. log10_e: of the e-process (of 1 over p_value where labels come late). p_value: that the score is "
        "calibrated, whenever one looks; null where there is an e-value."
    )
    yield CardData
    yield _view("Compared", compared, Provenance, comparison=ComparisonData)
    yield _view("Fitted", fitted, Provenance, fit=FitData)
    yield _view("Planned", planned, PlannedRest, Provenance)
    yield _view("Replayed", replayed, Provenance, ReplayPart)
    yield StudiedData


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


def schema_of(title: str, description: str, documents: Sequence[type]) -> dict[str, Any]:
    """The schema of JSON that is one of these documents, each the class of a result or of a view.

    Every class becomes a definition named like it less 'Data', with its docstring as the description; a key that is
    Absent may be missing, any other must be there, and no key may be added.
    """
    definitions: dict[type, dict[str, Any]] = {}
    one_of = [_schema(document, definitions) for document in documents]
    named = {_name(kind): definition for kind, definition in definitions.items()}
    if len(named) < len(definitions):
        raise TypeError("two classes of results have one name")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": description,
        "oneOf": one_of,
        "$defs": named,
    }


def _name(kind: type) -> str:
    return kind.__name__.removesuffix("Data")


def _schema(kind: Any, definitions: dict[type, dict[str, Any]]) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if origin is Annotated:
        base, *more = arguments
        said = next((each.kind for each in more if isinstance(each, Said) and each.kind), base)
        keywords = {key: value for each in more if not isinstance(each, Said) for key, value in each.keywords.items()}
        return {**_schema(said, definitions), **keywords}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (list, tuple):
        size = len(arguments) if origin is tuple and arguments[-1] is not ... else 0
        within = {"minItems": size, "maxItems": size} if size else {}
        each = [_schema(one, definitions) for one in arguments[: size or 1]]
        items = {"prefixItems": each} if any(one != each[0] for one in each) else {"items": each[0]}
        return {"type": "array", **items, **within}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        name, value = (_schema(each, definitions) for each in arguments)
        names = {"propertyNames": {"pattern": name["pattern"]}} if "pattern" in name else {}
        return {"type": "object", **names, "additionalProperties": value}
    if origin in (Union, types.UnionType):
        kinds = [_schema(each, definitions) for each in arguments]
        simple = all(set(each) == {"type"} for each in kinds)
        return {"type": [each["type"] for each in kinds]} if simple else {"oneOf": kinds}
    if is_object(kind):
        return _object(kind, definitions)
    raise TypeError(f"{kind} has no JSON schema")


def _object(kind: Any, definitions: dict[type, dict[str, Any]]) -> dict[str, Any]:
    if kind not in definitions:
        definitions[kind] = {}
        described = {"description": " ".join(inspect.cleandoc(kind.__doc__).split())} if kind.__doc__ else {}
        keys = keys_of(kind)
        definitions[kind] = {
            **described,
            "type": "object",
            "required": [name for name, key in keys.items() if not key.absent],
            "additionalProperties": False,
            "properties": {name: _schema(key.kind, definitions) for name, key in keys.items()},
        }
    return {"$ref": f"#/$defs/{_name(kind)}"}
