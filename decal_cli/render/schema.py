"""JSON Schema from typed declarations: a TypedDict is an object, an annotation says what its values keep to."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ForwardRef, Literal, NotRequired, Union, get_args, get_origin, is_typeddict


class Limit:
    """What a value keeps to, in the words of JSON Schema: Annotated[int, Limit(minimum=0)]."""

    def __init__(self, **keywords: Any) -> None:
        self.keywords = keywords


Count = Annotated[int, Limit(minimum=0)]
Positive = Annotated[int, Limit(minimum=1)]
Share = Annotated[float, Limit(minimum=0, maximum=1)]
Inside = Annotated[float, Limit(exclusiveMinimum=0, exclusiveMaximum=1)]
Size = Annotated[float, Limit(minimum=0)]
Words = Annotated[str, Limit(minLength=1)]
Ends = Annotated[list[float], Limit(minItems=2, maxItems=2)]
"""Low and high end of an interval."""
_SCALARS: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", None: "null"}


def schema_of(title: str, description: str, documents: Sequence[type]) -> dict[str, Any]:
    """The schema of JSON that is one of these documents, each a TypedDict.

    Every TypedDict becomes a definition named like the class less 'Data', with its docstring as the description; a key
    that is NotRequired may be missing, any other must be there, and no key may be added.
    """
    definitions: dict[str, Any] = {}
    one_of = [_schema(document, definitions) for document in documents]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": description,
        "oneOf": one_of,
        "$defs": definitions,
    }


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is types.NoneType:
        return {"type": "null"}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if is_typeddict(kind):
        return _object(kind, definitions)
    if origin is Annotated:
        base, *limits = arguments
        keywords = {key: value for limit in limits for key, value in limit.keywords.items()}
        return {**_schema(base, definitions), **keywords}
    if origin is NotRequired:
        return _schema(arguments[0], definitions)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is dict:
        key, value = (_schema(each, definitions) for each in arguments)
        names = {"propertyNames": {"pattern": key["pattern"]}} if "pattern" in key else {}
        return {"type": "object", **names, "additionalProperties": value}
    if origin in (Union, types.UnionType):
        return _union([_schema(each, definitions) for each in arguments])
    raise TypeError(f"{kind} has no JSON schema")


def _union(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    if all(set(each) == {"type"} for each in schemas):
        return {"type": [each["type"] for each in schemas]}
    return {"oneOf": schemas}


def _object(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__.removesuffix("Data")
    if name not in definitions:
        definitions[name] = {}
        hints = _hints(kind)
        described = {"description": " ".join(inspect.cleandoc(kind.__doc__).split())} if kind.__doc__ else {}
        definitions[name] = {
            **described,
            "type": "object",
            "required": [key for key, hint in hints.items() if get_origin(hint) is not NotRequired],
            "additionalProperties": False,
            "properties": {key: _schema(hint, definitions) for key, hint in hints.items()},
        }
    return {"$ref": f"#/$defs/{name}"}


def _hints(kind: Any) -> Mapping[str, Any]:
    """The types of the keys, each read in the module that wrote it down: typing.get_type_hints reads inherited ones in
    the module of the heir, where a name may mean something else.
    """
    return {key: _resolved(hint) for key, hint in kind.__annotations__.items()}


def _resolved(hint: Any) -> Any:
    if not isinstance(hint, ForwardRef):
        return hint
    return eval(hint.__forward_arg__, vars(sys.modules[str(hint.__forward_module__)]))
