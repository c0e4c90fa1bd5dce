"""A command takes whole groups of options; `flat` spreads their fields into the flat parameters Typer wants."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, replace
from enum import StrEnum
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from decal_cli.commands.options.choices import column_names
from decal_cli.commands.options.declare import Option
from decal_cli.roles import DEFAULTS, ColumnOption, Role, several


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that takes option groups be called with their fields as flat keyword parameters.

    A parameter `group: Annotated[Group, {"option": "text"}]` gives options of the group the help of this command.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: _Group.of(hint) for name, hint in hints.items() if name != "return"}

    @functools.wraps(command)
    def spread(**given: Any) -> None:
        # Late: help needs no surroundings.
        from decal_cli.commands.surroundings import prepared

        with prepared():
            command(**{name: group.filled(given) for name, group in groups.items()})

    # Of an option that two groups read, the first one says the help.
    named: dict[str, inspect.Parameter] = {}
    for group in groups.values():
        for parameter in group.parameters():
            named.setdefault(parameter.name, parameter)
    parameters = list(named.values())
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del spread.__wrapped__
    return spread


@dataclass(frozen=True)
class _Group:
    """A group of options, and the help that differs for one command."""

    kind: type
    texts: dict[str, str]

    @classmethod
    def of(cls, hint: Any) -> _Group:
        return cls(*get_args(hint)) if get_origin(hint) is Annotated else cls(hint, {})

    def parameters(self) -> Iterator[inspect.Parameter]:
        hints = get_type_hints(self.kind)
        for each in fields(self.kind):
            declared: Option = each.metadata["option"]
            if not declared.each:
                yield self._parameter(each.name, hints[each.name], _default(each), declared)
            for name, of_columns in declared.each.items():
                yield self._parameter(name, *_of_columns(name, of_columns, declared.panel))

    def _parameter(self, name: str, kind: Any, default: Any, declared: Option) -> inspect.Parameter:
        declared = replace(declared, help=self.texts.get(name, declared.help))
        annotation = Annotated[kind, _typed(name, kind, default, declared)]
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    def filled(self, given: dict[str, Any]) -> Any:
        """The group with what the line says."""
        values = {}
        for each in fields(self.kind):
            of_columns = each.metadata["option"].each
            named = {name: _plain(name, given[name]) for name in of_columns if given[name] not in (None, False, [])}
            values[each.name] = named if of_columns else given[each.name]
        return self.kind(**values)


def _typed(name: str, kind: Any, default: Any, declared: Option) -> Any:
    """What Typer calls an option or an argument."""
    shown = default if declared.shown is None else declared.shown
    silent = any(shown is nothing for nothing in (None, False, inspect.Parameter.empty)) or shown == []
    stated = "" if silent else f" [default: {shown}]"
    choices = next(
        (each for each in (kind, *get_args(kind)) if inspect.isclass(each) and issubclass(each, StrEnum)), ()
    )
    common: dict[str, Any] = {
        "help": declared.help + stated,
        "metavar": declared.metavar or "|".join(choices) or None,
        "rich_help_panel": declared.panel,
        "autocompletion": declared.complete,
        "callback": declared.check,
        "show_default": False,
    }
    if declared.argument:
        return typer.Argument(**common)
    return typer.Option(*(declared.spelling or (f"--{name.replace('_', '-')}",)), **common)


def _of_columns(name: str, declared: ColumnOption, panel: str) -> tuple[Any, Any, Option]:
    """Type, default and option of something to say of the columns."""
    default = DEFAULTS[name]
    kind: Any = str | None
    if declared.choices:
        choices: Any = StrEnum(name, {choice: choice for choice in declared.choices})  # type: ignore[misc]
        kind = choices | None
    elif isinstance(default, bool):
        kind = bool
    elif several(name):
        kind = list[str]
    spelt = f"--{name.replace('_', '-')}"
    spelling = (spelt, declared.flag) if declared.flag else (spelt,)
    shown = default if declared.choices else None
    complete = column_names if isinstance(declared, Role) else None
    option = Option(declared.help, spelling, declared.metavar or None, panel, shown, complete=complete)
    return kind, False if kind is bool else [] if several(name) else None, option


def _plain(name: str, value: Any) -> Any:
    """A value of the line as `Columns` has it."""
    return tuple(value) if several(name) else str(value) if isinstance(value, StrEnum) else value


def _default(each: Any) -> Any:
    """Lists are made by a factory; what has neither default nor factory is required."""
    if each.default is not MISSING:
        return each.default
    return inspect.Parameter.empty if each.default_factory is MISSING else []
