"""How options are declared: a group is a class, an option one field of it, with its help, spelling and default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar, dataclass_transform

from decal_cli.roles import ColumnOption

Complete = Callable[[str], list[str]]
"""What may follow the beginning of a value."""
Check = Callable[[Any, Any], Any]
"""Takes Typer's context and a value; gives the value back, or raises DecalError before anything is read."""
T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """What the parser and the help know of an option beside its type and default.

    spelling: '--name' and maybe '-n'; by default the field's name. panel: its heading in the help. shown: the default
    that help prints, when the field's own is None because the value is found later. each: with declarations here, the
    field is not one option but one for each of them, and holds name -> value of those that the command line names.
    """

    help: str
    spelling: tuple[str, ...] = ()
    metavar: str | None = None
    panel: str = ""
    shown: object = None
    required: bool = False
    complete: Complete | None = None
    check: Check | None = None
    argument: bool = False
    each: Mapping[str, ColumnOption] = field(default_factory=dict)


def option(help: str, default: Any = None, *spelling: str, required: bool = False, **more: Any) -> Any:
    """A field that is an option; `more` as for `Option`."""
    return _field(Option(help, spelling, required=required, **more), default)


def argument(help: str, metavar: str, default: Any = None, *, required: bool = False, **more: Any) -> Any:
    """A field that is named by its place on the line."""
    return _field(Option(help, metavar=metavar, required=required, argument=True, **more), default)


def _field(declared: Option, default: Any) -> Any:
    start: dict[str, Any] = {} if declared.required else {"default": default}
    if default == []:
        start = {"default_factory": list}
    return field(**start, metadata={"option": declared})


@dataclass_transform(kw_only_default=True, frozen_default=True)
def options(panel: str) -> Callable[[type[T]], type[T]]:
    """A frozen dataclass of options, which stand under `panel` in help unless they name another."""

    def declared(group: type[T]) -> type[T]:
        for each in vars(group).values():
            if isinstance(each, Field) and not each.metadata["option"].panel:
                each.metadata = MappingProxyType({"option": replace(each.metadata["option"], panel=panel)})
        return dataclass(frozen=True, kw_only=True)(group)

    return declared
