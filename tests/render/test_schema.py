"""JSON Schema from declarations: what it says of a type, and that it refuses what decal would not print."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import jsonschema
import pytest

from decal_cli.declarations.document import Absent, Count, Hidden, Limit, as_key
from decal_cli.render.documents import DOCUMENTS
from decal_cli.render.schema import View, data_of, of, schema_of
from tests.helpers.command import SCHEMA
from tests.helpers.every_result import every_result
from tests.helpers.results import as_text

Name = Annotated[str, Limit(pattern="^[a-z]+$")]


@dataclass
class Leaf:
    """A leaf."""

    size: Count
    ends: tuple[float, float] | None
    kind: Literal["round", "flat"] | None
    veins: Hidden[int] = 0

    @property
    @as_key
    def half(self) -> float:
        return self.size / 2


class TreeData(View):
    leaves: dict[Name, Leaf] = of("crown.leaves")
    height: float | None
    names: Absent[list[str | int] | None] = of(lambda tree, names: names)


LEAF = Leaf(3, (1.0, 2.0), None)
TREE = SimpleNamespace(crown=SimpleNamespace(leaves={"a": LEAF}), height=float("nan"))


def test_data_follow_from_the_same_types() -> None:
    leaf = {"size": 3, "ends": [1.0, 2.0], "kind": None, "half": 1.5}
    assert data_of(TreeData(TREE, None)) == {"leaves": {"a": leaf}, "height": None}
    assert data_of(TreeData(TREE, ("oak", 1)))["names"] == ["oak", 1]


def test_a_declaration_becomes_a_schema() -> None:
    schema = schema_of("trees", "What grows.", (TreeData,))
    assert schema["oneOf"] == [{"$ref": "#/$defs/Tree"}]
    assert schema["$defs"]["Tree"] == {
        "type": "object",
        "required": ["leaves", "height"],
        "additionalProperties": False,
        "properties": {
            "leaves": {
                "type": "object",
                "propertyNames": {"pattern": "^[a-z]+$"},
                "additionalProperties": {"$ref": "#/$defs/Leaf"},
            },
            "height": {"type": ["number", "null"]},
            "names": {"type": "array", "items": {"type": ["string", "integer"]}},
        },
    }
    assert schema["$defs"]["Leaf"]["description"] == "A leaf."
    assert schema["$defs"]["Leaf"]["properties"] == {
        "size": {"type": "integer", "minimum": 0},
        "ends": {
            "oneOf": [{"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}, {"type": "null"}]
        },
        "kind": {"oneOf": [{"enum": ["round", "flat"]}, {"type": "null"}]},
        "half": {"type": "number"},
    }


def test_what_has_no_schema_is_refused() -> None:
    class OddData(View):
        odd: complex

    with pytest.raises(TypeError, match="complex"):
        schema_of("odd", "", (OddData,))


def shortened(value: Any, name: str = "") -> Any:
    """A document with the first two entries of its lists of objects and of its metrics alone, of which it has 100."""
    if isinstance(value, dict):
        return {key: shortened(each, key) for key, each in list(value.items())[: 2 if name == "metrics" else None]}
    if isinstance(value, list):
        many = name != "items" and any(isinstance(each, dict) for each in value)  # a card has all its items
        return [shortened(each) for each in value[: 2 if many else None]]
    return value


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all objects in a document."""
    if isinstance(value, dict | list):
        if isinstance(value, dict):
            yield path
        for key, each in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield from places(each, (*path, key))


FREE = {"columns", "metrics", "parameters", "curves", "seconds", "reasons", "chosen"}
"""Objects whose keys are names: any may be missing."""
OPTIONAL = {"tried", "worst_agent", "recommendation", "gates"}
"""Keys that may be missing; without the last two, the document is that of an evaluation."""


@pytest.mark.parametrize("command", every_result())
def test_a_key_more_or_less_is_refused(command: str) -> None:
    document = shortened(json.loads(as_text(every_result()[command], "json")))
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert validator.is_valid(document)

    # Objects in the same place of the types with the same keys are looked at once.
    seen = set()
    for path in list(places(document)):
        # The only report of a document stands flat beside the list too, where all of it is looked at.
        again = path[:1] == ("reports",) and len(path) > 2 and len(document["reports"]) == 1
        again |= path[:1] == ("items",) and len(path) > 1 and path[1] > 0
        if again or (path[-1:] and path[-1] in FREE):
            continue
        place = reduce(lambda value, key: value[key], path, document)
        names = ("*" if isinstance(key, int) or before in FREE else key for before, key in pairwise(("", *path)))
        shape = (*names, frozenset(place))
        if shape in seen:
            continue
        seen.add(shape)
        place["SURPRISE"] = 1
        assert not validator.is_valid(document), path
        del place["SURPRISE"]
        for key in place.keys() - OPTIONAL:
            kept = place.pop(key)
            assert not validator.is_valid(document), (path, key)
            place[key] = kept
    assert validator.is_valid(document)


def test_every_result_has_its_documents() -> None:
    assert [kind.__name__.removesuffix("Data") for kind in DOCUMENTS] == [
        name.removeprefix("#/$defs/") for name in one_of()
    ]


def one_of() -> list[str]:
    return [each["$ref"] for each in SCHEMA["oneOf"]]
