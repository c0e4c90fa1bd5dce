"""What a user can say: help, flag, metavar and key, declared once for the command line, settings and Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from inspect import formatannotation
from types import MappingProxyType
from typing import Any

Complete = Callable[[str], list[str]]
"""Takes the beginning of a value; gives the values that begin so."""
Check = Callable[[Any, Any], Any]
"""Takes Typer's context and a value; gives the value back, or raises DecalError before anything is read."""
NUMBERS = {"int": int, "float": float, "list[float]": list[float]}
"""Annotations of fields whose values are read as numbers; any other value is a text, or what its default says."""
AS_FIELD = "="
"""A name that is the field's, or of an option on the line that of its key."""


@dataclass(frozen=True)
class Option:
    """What help, parser, settings and Python know of a field.

    key: its name on the line, in settings and in Python, by default the field's; "" where only Python has it. line: its
    name on the line alone; "" for none. brief: whether the first page of help has its first sentence. ranged: whether a
    number may be LOW:HIGH. shown: the default that help prints. settle: turns its value and the line, by key, into the
    value used.
    """

    help: str = ""
    default: Any = None
    flag: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    name: str = ""
    key: str = AS_FIELD
    line: str = AS_FIELD
    verbs: tuple[str, ...] = ()
    kind: Any = None
    panel: str = ""
    shown: object = None
    brief: bool = False
    required: bool = False
    argument: bool = False
    complete: Complete | None = None
    check: Check | None = None
    ranged: bool = False
    settle: Callable[[Any, Mapping[str, Any]], Any] | None = None

    def placed(self, name: str, annotation: Any, panel: str) -> Option:
        """The option as its field or parameter has it: by this name, of this kind, and under this heading."""
        # A module that does not put annotations off has the types themselves.
        text = annotation if isinstance(annotation, str) else formatannotation(annotation)
        usual = {bool: bool, tuple: list[str]}.get(type(self.default)) or NUMBERS.get(text.removesuffix(" | None"), str)
        key = name if self.key == AS_FIELD else self.key
        line = key if self.line == AS_FIELD else self.line
        return replace(self, name=name, key=key, line=line, kind=self.kind or usual, panel=self.panel or panel)


def option(help: str, default: Any = None, flag: str = "", **more: Any) -> Any:
    """A field that is an option; `more` as for `Option`."""
    return declared(Option(help, default, flag, **more))


def argument(help: str, metavar: str, default: Any = None, **more: Any) -> Any:
    """A field that is named by its place on the line."""
    return declared(Option(help, default, metavar=metavar, argument=True, **more))


def declared(option: Option) -> Any:
    """A field of a dataclass, or a parameter of a command, with its declaration."""
    return field(**{} if option.required else {"default": option.default}, metadata={"option": option})


def beginning(names: Callable[[], Iterable[str]]) -> Complete:
    """Completes a value to those of these names that begin as it does."""
    return lambda incomplete: [name for name in names() if name.startswith(incomplete)]


class Declaring:
    """A dataclass of options, which stand under `panel` in help unless they name another; its repr has what is set."""

    def __init_subclass__(cls, panel: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        for name, each in vars(cls).items():
            if isinstance(each, Field):
                option = each.metadata["option"].placed(name, cls.__annotations__[name], panel)
                each.metadata = MappingProxyType({"option": option})

    def __repr__(self) -> str:
        given = []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            text = repr(value)
            if text != repr(each.default):
                short = isinstance(value, Declaring) or (len(text) < 50 and not hasattr(value, "__array__"))
                given.append(f"{each.name}={text if short else f'<{type(value).__name__}>'}")
        return f"{type(self).__name__}({', '.join(given)})"


def options_of(noun: type, on_line: bool = False) -> dict[str, Option]:
    """Every option of a dataclass by its key; on_line: those that the command line has, as they are called there."""
    options: list[Option] = [each.metadata["option"] for each in fields(noun) if "option" in each.metadata]
    return {key: each for each in options if (key := each.line if on_line else each.key)}


def keys_of(noun: type, on_line: bool = False) -> dict[str, str]:
    """Key -> field of everything that `options_of` has."""
    return {key: each.name for key, each in options_of(noun, on_line).items()}
