"""What a user can say: help, flag, metavar and key, declared once for the command line, settings and Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from inspect import formatannotation
from types import MappingProxyType
from typing import Any

Complete = Callable[[str], list[str]]
"""What may follow the beginning of a value."""
Check = Callable[[Any, Any], Any]
"""Takes Typer's context and a value; gives the value back, or raises DecalError before anything is read."""
NUMBERS = {"int": int, "float": float, "list[float]": list[float]}
"""Annotations of fields whose values are read as numbers; any other value is a text, or what its default says."""


@dataclass(frozen=True)
class Option:
    """What help, parser, settings and Python know of a field beside its default.

    help: of which the first page shows the first sentence, where `brief` has it there. key: how it is called on the
    command line, in settings and as a keyword, where the field has another name; of Python alone it is "". line: how
    the command line alone calls it; None where it has no such option. verbs: the commands that have it, where not all
    have. flag: one more option, such as '-s'. kind: type of its values as text gives them; a list where it may be
    repeated; by default as its annotation has it. ranged: whether a number may be a text LOW:HIGH. choices: its values,
    where these are few. panel: its heading in help. shown: the default that help prints, where it is found later.
    settle: gives the value that it has beside what else the line says, by key.
    """

    help: str = ""
    flag: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    key: str | None = None
    line: str | None = ""
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


def option(help: str, default: Any = None, flag: str = "", **more: Any) -> Any:
    """A field that is an option; `more` as for `Option`."""
    return declared(default, Option(help, flag, **more))


def argument(help: str, metavar: str, default: Any = None, **more: Any) -> Any:
    """A field that is named by its place on the line."""
    return declared(default, Option(help, metavar=metavar, argument=True, **more))


def declared(default: Any, option: Option) -> Any:
    """A field of a dataclass, or a parameter of a command, with its declaration.

    Its default may say that it is a switch, or several texts.
    """
    if isinstance(default, (bool, tuple)):
        option = replace(option, kind=option.kind or (bool if isinstance(default, bool) else list[str]))
    return field(**{} if option.required else {"default": default}, metadata={"option": option})


def placed(declaration: Any, annotation: Any, panel: str) -> Option:
    """The option of a field or parameter, with the kind of its annotation and its heading, where it names no other."""
    option: Option = declaration.metadata["option"]
    # A module that does not put annotations off has the types themselves.
    text = annotation if isinstance(annotation, str) else formatannotation(annotation)
    kind = option.kind or NUMBERS.get(text.removesuffix(" | None"), str)
    return replace(option, panel=option.panel or panel, kind=kind)


class Declaring:
    """A dataclass of options, which stand under `panel` in help unless they name another."""

    def __init_subclass__(cls, panel: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        for name, each in vars(cls).items():
            if isinstance(each, Field):
                each.metadata = MappingProxyType({"option": placed(each, cls.__annotations__[name], panel)})


def keys_of(noun: type, on_line: bool = False) -> dict[str, str]:
    """Key -> field of everything that is declared in a dataclass; on_line: of what the command line has, as there."""
    known = {each.name: each.metadata["option"] for each in fields(noun) if "option" in each.metadata}
    keys = {name: name if each.key is None else each.key for name, each in known.items()}
    if on_line:
        keys = {name: key if known[name].line == "" else known[name].line for name, key in keys.items()}
    return {key: name for name, key in keys.items() if key}
