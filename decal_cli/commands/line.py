"""From a line and the settings to what a command takes: nouns, and the options of the command line alone.

A command takes whole groups; their fields become the flat parameters that Typer wants.
"""

from __future__ import annotations

import functools
import inspect
import keyword
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, replace
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple, get_args, get_origin, get_type_hints

import typer

from decal_cli.api.nouns import Data, Decision, Halvings, Noun, Statistics
from decal_cli.commands.options import INPUT_FORMATS, OutputOptions, column_names
from decal_cli.declarations.option import Option, keys_of
from decal_cli.errors import DecalError
from decal_cli.hints import Hint, speaking_to
from decal_cli.render.terms import StatedTerms
from decal_cli.roles import DECLARATIONS, DEFAULTS, ROW_UTILITIES, Role
from decal_cli.task import SPELLINGS

if TYPE_CHECKING:
    from decal_cli.commands.settings import Settings

ENGINE = Option(
    "Engine that holds the rows, in place of files: 'duckdb:FILE?table=NAME', "
    "'postgresql://USER@HOST/DB?table=NAME' or 'spark:?table=NAME'. It counts them, and hands over a "
    "sample of rows for --features, --try and fit.",
    metavar="ENGINE",
    panel=Data.PANEL,
)
FILES = Option(
    f"{INPUT_FORMATS} Several files are one data set, and so are those of a folder.",
    metavar="FILE",
    kind=list[str],
    panel=Data.PANEL,
    argument=True,
)
EXAMPLES = {"threshold": "0.3", "decision_threshold": "0.3", "confidence": "0.9", "abstain": "0.2"}
"""Numbers that an option may have; of any other, 1 is one."""


class GivenOptions(dict[str, Any]):
    """What the line says, by key, and nothing of what the settings do."""


def flat(command: Callable[..., Any]) -> Callable[..., None]:
    """What Typer calls: the fields of a command's groups as flat keyword parameters.

    A parameter `group: Annotated[Group, {"option": "text"}]` gives options of the group the help of this command; None
    leaves an option out.
    """
    hints = get_type_hints(command, include_extras=True)
    kinds: dict[str, type] = {}
    offered: dict[str, _Offered] = {}
    for name, hint in hints.items():
        if name != "return":
            kind, texts = get_args(hint) if get_origin(hint) is Annotated else (hint, {})
            kinds[name] = kind
            for each in _offered_by(kind):
                text = texts.get(each.key, each.option.help)
                if text is not None:
                    # Of an option that two groups have, the first one says the help.
                    offered.setdefault(each.name, each._replace(option=replace(each.option, help=text)))

    def spread(**given: Any) -> None:
        # Late: help needs none of it, and where memory is limited, what takes most of it comes first.
        from decal_cli.commands.streams import prepared

        with prepared(), speaking_to("line"):
            from decal_cli.commands.writing import watched

            taken = _filled(kinds, offered, given)
            with watched():
                code = command(**taken)
        if code is not None:
            raise typer.Exit(code)

    functools.update_wrapper(spread, command)
    del spread.__wrapped__  # type: ignore[attr-defined]
    by_name = inspect.Parameter.KEYWORD_ONLY
    help_all = inspect.Parameter("help_all", by_name, default=False, annotation=Annotated[bool, HELP_ALL])
    parameters = [*map(_parameter, offered.values()), help_all]
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    spread.__dict__["brief"] = {name: each.option.brief for name, each in offered.items() if each.option.brief}
    return spread


def _help_all(context: Any, asked: bool) -> None:
    if asked:
        context.command.whole = True
        print(context.get_help())
        raise typer.Exit


HELP_ALL = typer.Option("--help-all", callback=_help_all, is_eager=True, help="Show every option and exit.")


class _Offered(NamedTuple):
    """An option of the command line: its name, its declaration, and its default."""

    key: str
    option: Option
    default: Any = None

    @property
    def name(self) -> str:
        """The name of the parameter."""
        return f"{self.key}_" if keyword.iskeyword(self.key) else self.key


def _offered_by(kind: type) -> Iterator[_Offered]:
    """Every option of a group of options, or of a noun."""
    if kind is GivenOptions:
        return
    if kind is Data:
        yield _Offered("files", FILES, [])
        for key, declared in DECLARATIONS.items():
            complete = column_names if isinstance(declared, Role) else None
            shown = DEFAULTS[key] if declared.choices else None
            panel = declared.panel or Data.PANEL
            empty: Any = {bool: False, str: None}.get(declared.kind, [])
            yield _Offered(key, replace(declared, complete=complete, shown=shown, panel=panel), empty)
        yield _Offered("engine", ENGINE)
        yield _Offered("query", replace(Data.__dataclass_fields__["query"].metadata["option"], panel=Data.PANEL))
        return
    noun = issubclass(kind, Noun | StatedTerms)
    hints = {} if noun else get_type_hints(kind)
    for key, name in keys_of(kind, on_line=True).items():
        each = kind.__dataclass_fields__[name]  # type: ignore[attr-defined]
        declared, default = each.metadata["option"], None if each.default is MISSING else each.default
        if not noun:
            default = [] if each.default_factory is not MISSING else default
            yield _Offered(key, replace(declared, kind=_plain_kind(hints[name])), default)
        elif declared.help and key not in DECLARATIONS:
            shown = (default or None) if declared.shown is None else declared.shown
            panel = declared.panel or getattr(kind, "PANEL", "Amounts")
            default = [] if declared.kind == list[str] else None
            yield _Offered(key, replace(declared, panel=panel, shown=shown), default)
    if kind is Decision:
        yield from _offered_by(StatedTerms)


def _plain_kind(hint: Any) -> Any:
    """The type of a value: of `float | None`, float."""
    if get_origin(hint) is list:
        return hint
    return next((each for each in get_args(hint) if each is not type(None)), hint)


def _parameter(each: _Offered) -> inspect.Parameter:
    """What Typer takes for an option or an argument: values are texts, which are read later."""
    declared, choices = each.option, each.option.choices
    shown = each.default if declared.shown is None else declared.shown
    silent = any(shown is nothing for nothing in (None, False)) or shown == []

    def begin_so(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    common: dict[str, Any] = {
        "help": declared.help + ("" if silent else f" [default: {shown}]"),
        "metavar": declared.metavar or "|".join(choices) or None,
        "rich_help_panel": declared.panel,
        "autocompletion": declared.complete or (begin_so if choices else None),
        "callback": declared.check,
        "show_default": False,
    }
    flags = filter(None, (f"--{each.key.replace('_', '-')}", declared.flag))
    typed = typer.Argument(**common) if declared.argument else typer.Option(*flags, **common)
    several_values = get_origin(declared.kind) is list
    kind: Any = bool if declared.kind is bool else list[str] if several_values else str if declared.required else None
    default = inspect.Parameter.empty if declared.required else each.default
    annotation: Any = Annotated[kind or (str | None), typed]
    return inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _filled(kinds: Mapping[str, type], offered: Mapping[str, _Offered], given: Mapping[str, Any]) -> dict[str, Any]:
    """What a command takes, by parameter. Errors: DecalError for a value that is none of the option's."""
    line = {each.key: value_of(each.key, each.option, given[name]) for name, each in offered.items()}
    said = GivenOptions(
        (key, value) for key, value in line.items() if not (value is None or value is False or value == [])
    )
    nouns: dict[type, Any] = {GivenOptions: said}
    if Data in kinds.values():
        # Late: what only explains, and what scores new rows, reads no settings.
        from decal_cli.commands.settings import find_settings, working_folder
        from decal_cli.data.output import check_writable

        if OutputOptions in kinds.values() and line["output"] is not None:
            check_writable(line["output"], "output")
        settings = find_settings(working_folder())
        if "baseline" in line:
            line |= {"rule": line["rule"] or settings.gates, "baseline": line["baseline"] or settings.baseline}
            line |= {key: line[key] or value for key, value in settings.judging.items()}
        source = _source(said, settings, Halvings not in kinds.values()) if "files" in line else ()
        nouns |= _nouns(said, settings, source)
    line |= {each.key: each.option.settle(line[each.key], line) for each in offered.values() if each.option.settle}
    return {name: nouns[kind] if kind in nouns else kind(**_fields(kind, line)) for name, kind in kinds.items()}


def _fields(kind: type, line: Mapping[str, Any]) -> dict[str, Any]:
    """What is given of the fields of a noun, or of a group of options, by the field's name."""
    return {name: line[key] for key, name in keys_of(kind, on_line=True).items() if line.get(key) is not None}


def _nouns(line: GivenOptions, settings: Settings, source: Any) -> dict[type, Any]:
    """The data, the decision and the statistics: what the line says, else the settings.

    A whole task on the line is in place of what the settings say of it.
    """
    task = {key: line[key] for key in SPELLINGS if key in line}
    spelled = task if set(task) - {"decision_threshold"} else {**settings.task, **task}
    columns = {**settings.columns, **{key: line[key] for key in DECLARATIONS if key in line}}
    if set(spelled) - {"cost_fp", "cost_fn", "decision_threshold"} or {"cost_fp", "cost_fn"} <= set(spelled):
        columns = {key: each for key, each in columns.items() if key not in ROW_UTILITIES or key in line}
    if "capacity" not in columns and "per" not in line and "decisions" not in settings.terms:
        columns.pop("per", None)
    # Late: it brings what reads the rows.
    from decal_cli.api.asking import asked

    sure = {"confidence": settings.confidence, "seed": settings.seed}
    beside = (*keys_of(StatedTerms), *sure, "query", "id", "reference", "test")
    keys = {**columns, **spelled, **settings.terms, **sure, **{key: line[key] for key in beside if key in line}}
    given = asked(Data(source), None, Statistics(intervals="no_intervals" not in line), keys)
    return {Data: given.data, Decision: given.decision, Statistics: given.statistics}


def _source(line: GivenOptions, settings: Settings, pipes: bool) -> Any:
    """The engine or the files of the line, else what is piped in, else the files of the settings."""
    # Late: most of what a line says needs no engine.
    from decal_cli.data.large.engines.address import refuse_as_file
    from decal_cli.data.output import check_not_read

    files = line.get("files", [])
    if "engine" in line or "query" in line:
        if files or "engine" not in line:
            raise DecalError("rows come from files or from one engine", "give files, or --engine without files")
        from decal_cli.data.large.engines.connections import Engine

        return Engine(line["engine"], query=line.get("query"))
    if not files and pipes and piped_in() is not None:
        return ["-"]
    paths = files or list(settings.input)
    if not paths and pipes:
        raise DecalError(
            "there is nothing to read: no file is named, nothing is piped in, and no settings file names an input",
            'try: decal evaluate preds.csv, or: cat preds.csv | decal evaluate, or: input = "preds.csv" in decal.toml',
        )
    for path in paths:
        refuse_as_file(path)
    for key in ("output", "state", "write_splice"):
        check_not_read(line.get(key), paths)
    return paths


def piped_in() -> BinaryIO | None:
    """Standard input where something is piped or redirected into it; None at a terminal or where it is empty."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return None
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return None
    stream: Any = sys.stdin.buffer
    return stream if stream.peek(1) else None


def value_of(key: str, declared: Option, given: Any, kind: Any = None) -> Any:
    """The value of an option. Errors: DecalError, one line that leads to what is meant."""
    kind = kind or declared.kind
    if get_origin(kind) is list:
        return [value_of(key, declared, each, get_args(kind)[0]) for each in given or ()]
    if not isinstance(given, str):
        return given
    if declared.choices and given not in declared.choices:
        # Late: help has no use for it.
        from decal_cli.declarations.spec import near

        listed = ", ".join(declared.choices)
        flag = declared.flag if declared.flag.startswith("--") else Hint(key).words
        raise DecalError(f"{flag} {given!r} is not one of {listed}", near(given, declared.choices))
    if kind not in (int, float) or (declared.ranged and given.count(":") == 1):
        return given
    try:
        return kind(given)
    except ValueError:
        fix = f"give for example {Hint(key).words} {EXAMPLES.get(key, '1')}"
        for text, scale in ((given.replace(",", "."), 1), (given.removesuffix("%"), 100)):
            with suppress(ValueError):
                if text != given:
                    fix = f"write {Hint(key).words} {kind(float(text) / scale):g}"
        noun = "whole number" if kind is int else "number"
        raise DecalError(f"{Hint(key).words} {given!r} is not a {noun}", fix) from None
