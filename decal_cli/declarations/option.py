"""What a user can say: help, flag, metavar and key, declared once for the command line, settings and Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, TypeVar, dataclass_transform

Complete = Callable[[str], list[str]]
"""What may follow the beginning of a value."""
Check = Callable[[Any, Any], Any]
"""Takes Typer's context and a value; gives the value back, or raises DecalError before anything is read."""
T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """What help, parser, settings and Python know of a field beside its default.

    key: how it is called on the command line, in settings and as a keyword, where the field has another name; of
    Python alone it is "". line: how the command line alone calls it. flag: one more option, such as '-s'. kind: type
    of its values as text gives them; a list where it may be repeated. ranged: whether a number may be a text LOW:HIGH.
    choices: its values, where these are few. panel:
    its heading in help. shown: the default that help prints, where it is found later. brief: whether the first page of
    help has it, and in which words. settle: gives the value that it has beside what else the line says, by key.
    """

    help: str = ""
    flag: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    key: str | None = None
    line: str = ""
    kind: Any = str
    panel: str = ""
    shown: object = None
    brief: bool | str = False
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
    """A field of a dataclass, with its declaration; its default may say that it is a switch, or several texts."""
    start: dict[str, Any] = {} if option.required else {"default": default}
    if isinstance(default, (bool, list, tuple)):
        option = replace(option, kind=bool if isinstance(default, bool) else list[str])
        start = {"default_factory": list} if isinstance(default, list) else start
    return field(**start, metadata={"option": option})


@dataclass_transform(kw_only_default=True, frozen_default=True)
def options(panel: str) -> Callable[[type[T]], type[T]]:
    """A frozen dataclass of options, which stand under `panel` in help unless they name another."""

    def of(group: type[T]) -> type[T]:
        for each in vars(group).values():
            if isinstance(each, Field) and not each.metadata["option"].panel:
                each.metadata = MappingProxyType({"option": replace(each.metadata["option"], panel=panel)})
        return dataclass(frozen=True, kw_only=True)(group)

    return of


def keys_of(noun: type, on_line: bool = False) -> dict[str, str]:
    """Key -> field of everything that is declared in a dataclass; on_line: as the command line calls it."""
    known = {each.name: each.metadata["option"] for each in fields(noun) if "option" in each.metadata}
    keys = {name: (on_line and each.line) or (name if each.key is None else each.key) for name, each in known.items()}
    return {key: name for name, key in keys.items() if key}
