"""Results as JSON, which follows from the types of what a result holds; so does its schema (docs/schema.py)."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache, reduce
from operator import attrgetter
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from decal_cli.declarations.document import Said

Document = dict[str, Any]
"""An object of JSON."""
Records = Iterator[list[Any]]
"""Rows of a CSV file, the first of which names its columns."""


class View:
    """A result as JSON has it where that is not as it is held: a subclass has an annotation for each key.

    A key is the attribute of the result that bears its name, or what `of` makes of the result and what is beside it.
    """

    def __init__(self, result: Any, *beside: Any) -> None:
        self.seen = (result, *beside)


class _Of(NamedTuple):
    how: str | Callable[..., Any]


def of(how: str | Callable[..., Any]) -> Any:
    """Where a key of a view comes from: 'a.b' of the result, null where one of these is, or '.a.b' of what is beside
    it; or a function of both.
    """
    return _Of(how)


class Key(NamedTuple):
    """A key of a JSON object: its type, and its value in a result. absent: it may be missing."""

    kind: Any
    value: Callable[[Any], Any]
    absent: bool


@cache
def keys_of(kind: type) -> dict[str, Key]:
    """The keys of a result: fields and properties that say so; of a view, its annotations."""
    keys = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        said = next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Said)), Said())
        if said.hidden:
            continue
        shown = said.kind or (_without_none(get_args(hint)[0]) if said.absent else hint)
        keys[name] = Key(shown, _seen(kind, name, shown) if issubclass(kind, View) else attrgetter(name), said.absent)
    for name, each in vars(kind).items():
        if isinstance(each, property) and hasattr(each.fget, "is_key"):
            keys[name] = Key(get_type_hints(each.fget, include_extras=True)["return"], attrgetter(name), False)
    return keys


def _seen(kind: type, name: str, hint: Any) -> Callable[[Any], Any]:
    """The value of a key of a view; what is itself to be seen through a view is put into it."""
    given = getattr(kind, name, None)
    how = given.how if isinstance(given, _Of) else name
    objects = _objects_in(hint)

    def value(view: View) -> Any:
        if callable(how):
            got = how(*view.seen)
        else:
            got = reduce(_part, how.removeprefix(".").split("."), view.seen[how.startswith(".")])
        alone = len(objects) == 1 and issubclass(objects[0], View)
        return _viewed(got, objects[0], view.seen[1:]) if alone else got

    return value


def _part(whole: Any, name: str) -> Any:
    if whole is None:
        return None
    return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name)


def _viewed(got: Any, kind: type[View], beside: Sequence[Any]) -> Any:
    if got is None or isinstance(got, View):
        return got
    if isinstance(got, Mapping):
        return {name: _viewed(each, kind, beside) for name, each in got.items()}
    if isinstance(got, list | tuple) and not hasattr(got, "_fields"):
        return tuple(_viewed(each, kind, beside) for each in got)
    return kind(got, *beside)


def _objects_in(hint: Any) -> list[type[Any]]:
    return [hint] if is_object(hint) else [kind for each in get_args(hint) for kind in _objects_in(each)]


def is_object(kind: Any) -> bool:
    """Whether a type is said as an object: of a view, a data class or a named tuple."""
    return isinstance(kind, type) and (issubclass(kind, View) or is_dataclass(kind) or hasattr(kind, "_fields"))


def _without_none(hint: Any) -> Any:
    kinds = [each for each in get_args(hint) if each is not types.NoneType]
    return Union[tuple(kinds)] if get_origin(hint) in (Union, types.UnionType) else hint  # noqa: UP007


def data_of(value: Any) -> Any:
    """A result as JSON has it. NaN in an array, or where a key may be null, is null."""
    if is_object(type(value)):
        document = {}
        kind: type = type(value)
        for name, each in keys_of(kind).items():
            got = each.value(value)
            if isinstance(got, float) and not math.isfinite(got) and types.NoneType in get_args(each.kind):
                got = None
            if not each.absent or not (got is None or got == "" or got == ()):
                document[name] = data_of(got)
        return document
    if isinstance(value, Mapping):
        return {name: data_of(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [data_of(each) for each in value]
    if hasattr(value, "tolist"):
        return [None if isinstance(each, float) and math.isnan(each) else each for each in value.tolist()]
    return value
