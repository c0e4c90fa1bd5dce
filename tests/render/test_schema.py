"""JSON Schema from declarations: what it says of a type, and that it refuses what decal would not print."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import jsonschema
import pyarrow.parquet as pq
import pytest

import decal_cli.render.formats
from decal_cli.declarations.document import Absent, Count, Hidden, Limit, as_key
from decal_cli.errors import DecalError
from decal_cli.render.blocks import Block
from decal_cli.render.format import BlockFormat, Page, method_of
from decal_cli.render.formats import DEFAULT, FORMATS, write
from decal_cli.render.schema import View, data_of, of
from docs.manual import command_tree
from docs.schema import DOCUMENTS, schema_of
from tests.helpers.browser import Tags
from tests.helpers.command import SCHEMA, Decal, refusal, valid_json
from tests.helpers.every_result import RESULT_NAMES, result_of
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


def schemas_at(path: tuple[Any, ...], errors: Iterable[jsonschema.ValidationError]) -> Iterator[dict[str, Any]]:
    """The schemas of objects that refuse a key there."""
    for error in errors:
        if error.validator == "additionalProperties" and tuple(error.absolute_path) == path:
            yield error.schema
        yield from schemas_at(path, error.context or ())


FREE = {"columns", "metrics", "parameters", "curves", "mean_gains", "seconds", "reasons", "chosen"}
"""Objects whose keys are names: any may be missing."""
OPTIONAL = {"tried", "worst_agent", "recommendation", "gates"}
"""Keys that may be missing; without the last two, the document is that of an evaluation."""


@pytest.mark.parametrize("command", RESULT_NAMES)
def test_a_key_more_or_less_is_refused(command: str) -> None:
    document = shortened(json.loads(as_text(result_of(command), "json")))
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
        refusing = [*schemas_at(path, validator.iter_errors(document))]
        del place["SURPRISE"]
        assert refusing, path
        for key in place.keys() - OPTIONAL:
            less = place.keys() - {key}
            if any(set(each.get("required", ())) <= less <= each["properties"].keys() for each in refusing):
                # Another kind of object has these keys: only the whole says whether its values are of that kind.
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


COMMANDS = ("evaluate", "recommend", "gate", "compare", "sweep", "fit", "study")


def formats_of(command: str) -> list[str]:
    """The formats that a command's help lists."""
    (option,) = (each for each in command_tree().commands[command].params if each.name == "format")
    return str(option.metavar).split("|")


def test_every_file_of_the_room_is_a_format() -> None:
    files = Path(str(decal_cli.render.formats.__file__)).parent.glob("[a-z]*.py")
    assert {f"decal_cli.render.formats.{file.stem}" for file in files} == {each.__module__ for each in FORMATS.values()}
    assert next(iter(FORMATS)) == DEFAULT


def test_every_block_has_a_method_in_a_format_of_blocks() -> None:
    forms = [form for form in FORMATS.values() if issubclass(form, BlockFormat)]
    shared = vars(BlockFormat)
    lacking = [
        (form, kind)
        for form in forms
        for kind in Block.__subclasses__()
        if method_of(kind) not in {**shared, **vars(form)}
    ]
    assert forms and not lacking


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_offers_what_its_result_can_be_written_in(command: str) -> None:
    result = result_of(command)
    assert formats_of(command) == [name for name, each in FORMATS.items() if hasattr(result, each.reads)]
    for name in formats_of(command):
        assert write(result, name, Page())


@pytest.mark.parametrize("command", COMMANDS)
def test_another_format_is_refused_with_those_there_are(command: str, decal: Decal) -> None:
    method = ("isotonic",) if command == "fit" else ()
    for name in ({"yaml"} | set(FORMATS)) - set(formats_of(command)):
        line = refusal(decal(command, *method, "nowhere.csv", "-o", "out", "--format", name))
        assert f"`decal {command}` does not write the format '{name}'" in line
        assert line.rstrip().endswith(f"choose one of {', '.join(formats_of(command))}")


def test_a_result_refuses_a_format_that_it_lacks() -> None:
    with pytest.raises(DecalError, match=r"'github'.*choose one of table"):
        write(result_of("evaluate"), "github", Page())


ASKED = ("preds.csv", "--score", "p", "--label", "y")


def test_the_suffix_of_the_output_is_its_format(decal: Decal, tmp_path: Path) -> None:
    rows = "0.2,0.3,0\n0.4,0.1,1\n0.7,0.9,1\n0.1,0.2,0\n0.4,0.2,0\n0.2,0.6,1\n" * 20
    (tmp_path / "preds.csv").write_text(f"p,group,y\n{rows}")
    asked = ("evaluate", *ASKED, "-m", "brier")
    for name in ("out.txt", "out.JSON", "out.csv", "out.md", "out.html"):
        assert decal(*asked, "-o", name).out == ""
    plain, table, page = (tmp_path / name for name in ("out.csv", "out.md", "out.html"))
    assert valid_json((tmp_path / "out.JSON").read_text())["schema"] == 1
    assert len({len(row) for row in csv.reader(plain.read_text().splitlines())}) == 1
    assert table.read_text().startswith("- preds.csv: 120 rows")
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "out.txt").read_text() == decal(*asked, "--format", "table").out
    assert decal(*asked, "-o", "same.json", "--format", "json").code == 0
    # recommend begins with what to do, and says at the end where that comes from.
    others = {
        "recommend": (("-t", "0.3"), "**p: recalibrate with isotonic**\n\n**→ "),
        "gate": (("--rule", "brier<=1"), "- preds.csv: 120 rows"),
        "compare": (("--score", "group", "--no-intervals", "-m", "brier"), "- preds.csv: 120 rows"),
        "sweep": (("--thresholds", "0.2,0.4", "--no-intervals"), "- preds.csv: 120 rows"),
    }
    for command, (more, begins) in others.items():
        assert decal(command, *ASKED, *more, "-o", f"{command}.md").out == ""
        text = (tmp_path / f"{command}.md").read_text()
        assert text.startswith(begins) and "\n- preds.csv: 120 rows" in f"\n{text}"


@pytest.mark.parametrize("command", COMMANDS)
def test_html_nests_and_holds_the_words_of_the_text(command: str) -> None:
    result = result_of(command)
    page = as_text(result, "html")
    tags = Tags()
    tags.feed(page)
    assert not tags.open
    page_words = " ".join(re.sub("<[^>]*>", " ", page).split())
    for words in ("preds.parquet", "2 halvings", "400 rows"):
        assert (words in page_words) == (words in as_text(result))


def test_parquet_holds_the_rows_of_csv() -> None:
    sweep = result_of("sweep")
    content = write(sweep, "parquet", Page())
    assert isinstance(content, bytes)
    table = pq.read_table(io.BytesIO(content))
    head, *rows = sweep.rows()
    assert table.column_names == head
    assert [list(row.values()) for row in table.to_pylist()] == rows
    assert {str(field.type) for field in table.schema} == {"string", "double"}
