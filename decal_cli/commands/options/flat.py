"""A command takes whole groups of options; `flat` spreads their fields into the flat parameters Typer wants."""

from __future__ import annotations

import functools
import inspect
import keyword
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from importlib import import_module
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import typer

from decal_cli.api.nouns import Noun
from decal_cli.commands.options.choices import column_names
from decal_cli.commands.options.values import value_of
from decal_cli.declarations.option import Option
from decal_cli.render.terms import StatedTerms
from decal_cli.roles import DECLARATIONS, DEFAULTS, Role, several


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """What Typer calls: the fields of a command's option groups as flat keyword parameters.

    Called, it runs the module of the command's name with the groups. A parameter
    `group: Annotated[Group, {"option": "text"}]` gives options of the group the help of this command;
    None leaves an option out.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: _Group.of(hint) for name, hint in hints.items() if name != "return"}

    @functools.wraps(command)
    def spread(**given: Any) -> None:
        # Late: help needs no surroundings.
        from decal_cli.commands.surroundings import prepared

        with prepared():
            run = import_module(f"decal_cli.commands.{command.__name__}").run
            code = run(**{name: group.filled(given) for name, group in groups.items()})
        if code is not None:
            raise typer.Exit(code)

    # Of an option that two groups read, the first one says the help.
    named: dict[str, inspect.Parameter] = {}
    for group in groups.values():
        for each in group.offered():
            named.setdefault(each.name, _parameter(each))
    parameters = [*named.values(), _HELP_ALL]
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    spread.__dict__["brief"] = {
        each.name: each.option.brief for group in groups.values() for each in group.offered() if each.option.brief
    }
    del spread.__wrapped__
    return spread


def _help_all(context: Any, asked: bool) -> None:
    if asked:
        context.command.whole = True
        print(context.get_help())
        raise typer.Exit


_HELP_ALL = inspect.Parameter(
    "help_all",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, typer.Option("--help-all", callback=_help_all, is_eager=True, help="Show every option and exit.")
    ],
)


class _Offered(NamedTuple):
    """An option of the command line: the field that it fills, its name, its declaration, type and default."""

    field: str
    key: str
    option: Option
    kind: Any
    default: Any

    @property
    def name(self) -> str:
        """The name of the parameter."""
        return f"{self.key}_" if keyword.iskeyword(self.key) else self.key


@dataclass(frozen=True)
class _Group:
    """A group of options, or a noun, and the help that differs for one command."""

    kind: type
    texts: Mapping[str, str | None]

    @classmethod
    def of(cls, hint: Any) -> _Group:
        return cls(*get_args(hint)) if get_origin(hint) is Annotated else cls(hint, {})

    def offered(self) -> Iterator[_Offered]:
        """Every option of the group that this command has."""
        for each in self._all():
            text = self.texts.get(each.key, each.option.help)
            if text is not None:
                yield each._replace(option=replace(each.option, help=text))

    def _all(self) -> Iterator[_Offered]:
        noun = issubclass(self.kind, Noun | StatedTerms)
        hints = {} if noun else get_type_hints(self.kind)
        for each in fields(self.kind):
            option: Option | None = each.metadata.get("option")
            if option is None:
                continue
            key = option.line or (each.name if option.key is None else option.key)
            if noun and (not option.help or key in DECLARATIONS):
                continue
            if noun:
                panel: str = getattr(self.kind, "PANEL", "Amounts")
                default: Any = [] if option.kind == list[str] else None
                shown = (each.default or None) if option.shown is None else option.shown
                option = replace(option, panel=option.panel or panel, shown=shown)
                yield _Offered(each.name, key, option, option.kind, default)
            elif option.each:
                yield from (_of_columns(each.name, name, of) for name, of in option.each.items())
            else:
                yield _Offered(each.name, key, option, _plain_kind(hints[each.name]), _default(each))

    def filled(self, given: Mapping[str, Any]) -> Any:
        """The group with what the line says. Errors: DecalError for a value that is none of the option's."""
        values: dict[str, Any] = {each.name: {} for each in fields(self.kind) if _spreads(each)}
        for each in self.offered():
            value = value_of(each.key, each.kind, each.option, given[each.name])
            if each.field not in values or not isinstance(values[each.field], dict):
                values[each.field] = value
            elif value not in (None, False, [], ()):
                values[each.field][each.key] = tuple(value) if several(each.key) else value
        return self.kind(**{name: value for name, value in values.items() if value is not None})


def _spreads(field: Any) -> bool:
    """Whether a field holds name -> value of several options."""
    return "option" in field.metadata and bool(field.metadata["option"].each)


def _of_columns(field: str, key: str, option: Option) -> _Offered:
    """An option that says something of the columns."""
    kind: Any = bool if isinstance(DEFAULTS[key], bool) else list[str] if several(key) else str
    shown = DEFAULTS[key] if option.choices else None
    complete = column_names if isinstance(option, Role) else None
    declared = replace(option, shown=shown, complete=complete, panel=option.panel or "Input")
    return _Offered(field, key, declared, kind, {bool: False, str: None}.get(kind, []))


def _parameter(each: _Offered) -> inspect.Parameter:
    """What Typer takes for an option or an argument: values are texts, which are read later."""
    several_values = get_origin(each.kind) is list
    kind: Any = bool if each.kind is bool else list[str] if several_values else str | None
    default = inspect.Parameter.empty if each.option.required else each.default
    kind = str if each.option.required else kind
    annotation: Any = Annotated[kind, _typed(each)]
    return inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _typed(each: _Offered) -> Any:
    """What Typer calls an option or an argument."""
    declared = each.option
    shown = each.default if declared.shown is None else declared.shown
    silent = any(shown is nothing for nothing in (None, False)) or shown == []
    stated = "" if silent else f" [default: {shown}]"
    choices = declared.choices

    def begin_so(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    common: dict[str, Any] = {
        "help": declared.help + stated,
        "metavar": declared.metavar or "|".join(choices) or None,
        "rich_help_panel": declared.panel,
        "autocompletion": declared.complete or (begin_so if choices else None),
        "callback": declared.check,
        "show_default": False,
    }
    if declared.argument:
        return typer.Argument(**common)
    spelt = f"--{each.key.replace('_', '-')}"
    return typer.Option(*((spelt, declared.flag) if declared.flag else (spelt,)), **common)


def _plain_kind(hint: Any) -> Any:
    """The type of a value: of `float | None`, float."""
    if get_origin(hint) is list:
        return hint
    return next((each for each in get_args(hint) if each is not type(None)), hint)


def _default(each: Any) -> Any:
    """Lists are made by a factory; what has neither default nor factory is required."""
    return [] if each.default_factory is not MISSING else None if each.default is MISSING else each.default
