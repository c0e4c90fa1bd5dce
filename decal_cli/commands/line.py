"""From a line and the settings to what a command takes: nouns, and the options of the command line alone.

A command takes whole groups; their fields become the flat parameters that Typer wants.
"""

from __future__ import annotations

import gc
import inspect
import keyword
import os
import re
import stat
import sys
from collections.abc import Callable, Container, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import Field, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, get_args, get_origin, get_type_hints

import typer

from decal_cli.api.nouns import Data, Decision, Halvings
from decal_cli.commands.options import INPUT, INPUT_FORMATS, column_names
from decal_cli.declarations.option import Declaring, Option, argument, beginning, option, options_of
from decal_cli.errors import DecalError
from decal_cli.hints import Hint, Verb, hints_in, said, speaking_to
from decal_cli.render.terms import StatedTerms
from decal_cli.roles import ROW_UTILITIES, Role
from decal_cli.task import SPELLINGS

if TYPE_CHECKING:
    from decal_cli.commands.settings import Settings


@dataclass(frozen=True)
class RowSource(Declaring, panel=INPUT):
    """Where the rows are."""

    files: list[str] = argument(
        f"{INPUT_FORMATS} Several files are one data set, and so are those of a folder.", "FILE", ()
    )
    engine: str = option(
        "Engine that holds the rows, in place of files: 'duckdb:FILE?table=NAME', 'sqlite:FILE?table=NAME', "
        "'postgresql://USER@HOST/DB?table=NAME' or 'spark:?table=NAME'. It counts them, and where counts are "
        "not enough it hands over a sample of rows.",
        "",
        metavar="ENGINE",
    )


BESIDE: dict[type, type] = {Data: RowSource, Decision: StatedTerms}
"""Options that only the command line has, by the noun they belong to."""
EXAMPLES = {"threshold": "0.3", "decision_threshold": "0.3", "confidence": "0.9", "abstain": "0.2"}
"""Numbers that errors give as examples of an option's value; 1 for any other option."""
REPEATED = " Repeatable."


class GivenOptions(dict[str, Any]):
    """The options given on the line, by key, without those of the settings."""


def flat(command: Callable[..., Any], panel: str) -> tuple[Callable[..., None], dict[str, str]]:
    """A function for Typer with the options of a command, and of the nouns it takes, as flat keyword parameters.

    The second value is the text of each option on the first page of help, by parameter.

    An option of its own is a parameter whose default declares it; it stands under `panel`. A parameter
    `noun: Annotated[Noun, {"option": "text"}]` gives options of the noun the help of this command; None leaves an
    option out.
    """
    hints = get_type_hints(command, include_extras=True)
    kinds: dict[str, type] = {}
    own: dict[str, Option] = {}
    offered: dict[str, Option] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if isinstance(parameter.default, Field):
            declaration: Option = parameter.default.metadata["option"]
            own[name] = _repeatable(declaration.placed(name, parameter.annotation, panel))
            offered[own[name].line] = own[name]
            continue
        kind, texts = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name], {})
        kinds[name] = kind
        if kind is GivenOptions:
            continue
        for key, each in {**options_of(BESIDE.get(kind, kind), on_line=True), **options_of(kind, on_line=True)}.items():
            each = replace(each, help=texts[key]) if key in texts else _repeatable(each)
            if each.help is not None and command.__name__ in (each.verbs or (command.__name__,)):
                offered[key] = each
    offered = {
        key: replace(each, help=_of_these(each.help, offered, command.__name__)) for key, each in offered.items()
    }

    def spread(**given: Any) -> None:
        # Imported late: help needs none of it; and where memory is limited, the largest part of it must come first.
        from decal_cli.commands.streams import prepared

        with prepared(), speaking_to("line"):
            from decal_cli.commands.writing import watched

            taken, blamed = _filled(kinds, own, offered, given)
            if not gc.isenabled():
                # Turned off where the process starts. What was imported until now stays.
                gc.freeze()
                gc.enable()
            with watched(), blamed():
                code = command(**taken)
        if code is not None:
            raise typer.Exit(code)

    parameters = [*map(_parameter, offered.values()), _parameter(HELP_ALL)]
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return spread, {_name(each): _help(each, first=True) for each in offered.values() if each.brief}


def _of_these(help: str, offered: Mapping[str, Option], verb: str) -> str:
    """The help of an option without further sentences on other verbs, or on options that the command does not have."""
    first, *others = re.split(r"(?<=\.) ", help)
    others = [each for each in others if not re.match(f"With `(?!{verb}`)", each)]
    known = (
        each for each in others if all(isinstance(hint, Verb) or hint.option in offered for hint in hints_in(each))
    )
    return " ".join((first, *known))


def _help_all(context: Any, asked: bool) -> None:
    if asked:
        context.command.whole = True
        print(context.get_help())
        context.command.whole = False
        raise typer.Exit


HELP_ALL = Option("Show every option and exit.", kind=bool, line="help_all", check=_help_all)


def _repeatable(each: Option) -> Option:
    """An option whose help says whether it may be repeated."""
    several = get_origin(each.kind) is list and not each.argument
    return replace(each, help=each.help + REPEATED) if several else each


def _name(each: Option) -> str:
    """The name of the parameter that Typer has for an option."""
    return f"{each.line}_" if keyword.iskeyword(each.line) else each.line


def _help(each: Option, first: bool = False) -> str:
    """What help says of an option; first: only its first sentence, whether it may be repeated, and its default."""
    text, repeated = said(each.help), ""
    if first:
        text, repeated = (text.removesuffix(REPEATED), REPEATED) if text.endswith(REPEATED) else (text, "")
        text = f"{text.partition('. ')[0]}." if ". " in text else text
    usual = None if each.kind is bool else each.default or None
    shown = usual if each.shown is None else each.shown
    return text + repeated + ("" if shown is None else f" [default: {said(str(shown))}]")


def _parameter(declared: Option) -> inspect.Parameter:
    """The Typer parameter of an option or argument: values are texts that are read later, the default is nothing."""
    choices = declared.choices
    several, switch = get_origin(declared.kind) is list, declared.kind is bool
    known = column_names if isinstance(declared, Role) else beginning(lambda: choices) if choices else None
    common: dict[str, Any] = {
        "help": _help(declared),
        "metavar": declared.metavar or "|".join(choices) or None,
        "rich_help_panel": declared.panel,
        "autocompletion": declared.complete or known,
        "callback": declared.check,
        "is_eager": declared is HELP_ALL,
        "show_default": False,
    }
    flags = filter(None, (f"--{declared.line.replace('_', '-')}", declared.flag))
    typed = typer.Argument(**common) if declared.argument else typer.Option(*flags, **common)
    kind: Any = bool if switch else list[str] if several else str if declared.required else str | None
    empty: Any = inspect.Parameter.empty if declared.required else False if switch else [] if several else None
    return inspect.Parameter(
        _name(declared), inspect.Parameter.KEYWORD_ONLY, default=empty, annotation=Annotated[kind, typed]
    )


def _filled(
    kinds: Mapping[str, type], own: Mapping[str, Option], offered: Mapping[str, Option], given: Mapping[str, Any]
) -> tuple[dict[str, Any], Callable[[], AbstractContextManager[None]]]:
    """What a command takes, by parameter, and a context in which errors name the settings where these are wrong.

    Errors: DecalError for a value that is none of the option's.
    """
    line = {key: value_of(each, given[_name(each)]) for key, each in offered.items()}
    said = GivenOptions(
        (key, value) for key, value in line.items() if not (value is None or value is False or value == [])
    )
    known: Mapping[str, Any] = said
    source: Any = ()
    blamed: Callable[[], AbstractContextManager[None]] = nullcontext
    if Data in kinds.values():
        # Late: what only explains, and what scores new rows, reads no settings.
        from decal_cli.commands.settings import find_settings, working_folder
        from decal_cli.data.output import check_writable

        if "output" in own and "output" in said:
            check_writable(said["output"], "output")
        settings = find_settings(working_folder())
        if "files" in offered:
            source = _source(said, settings, Halvings not in kinds.values())
        known, blamed = _known(said, settings, offered), partial(settings.blamed, said)
    _check_not_read(said, source)
    with blamed():
        taken = {name: said if kind is GivenOptions else _noun(kind, known, source) for name, kind in kinds.items()}
    for name, each in own.items():
        value = each.settle(line[each.line], line) if each.settle else line[each.line]
        taken[name] = each.default if value is None else value
    return taken, blamed


def _noun(kind: type, known: Mapping[str, Any], source: Any = ()) -> Any:
    """A noun with the known values of its fields. A switch that turns a usual thing off has its default on the line."""
    options = {key: each for key, each in options_of(kind, on_line=True).items() if key in known}
    given = {each.name: not known[key] if each.default is True else known[key] for key, each in options.items()}
    if kind is Data:
        given["source"] = source
    if kind is Decision:
        given["terms"] = _noun(StatedTerms, known)
    return kind(**given)


def _known(line: GivenOptions, settings: Settings, offered: Container[str]) -> dict[str, Any]:
    """The values of the nouns' fields by key: from the line, else from the settings.

    A task on the line replaces the whole task of the settings.
    """
    keys = {**settings, **line}
    if any(key in line for key in SPELLINGS if key != "decision_threshold"):
        keys = {key: value for key, value in keys.items() if key in line or key not in SPELLINGS}
    spelled = keys.keys() & {*SPELLINGS} - {"decision_threshold"}
    dropped = ROW_UTILITIES if spelled - {"cost_fp", "cost_fn"} or len(spelled) > 1 else ()
    if "capacity" not in keys and "decisions" not in settings:
        dropped = (*dropped, "per")
    if "features" not in offered:
        # They change nothing that is said of the scores of a stream.
        dropped = (*dropped, "features")
    return {key: value for key, value in keys.items() if key in line or key not in dropped}


def _source(line: GivenOptions, settings: Settings, pipes: bool) -> Any:
    """The engine or the files of the line, else standard input if something is piped in, else the settings' files."""
    # Imported late: most lines need no engine.
    from decal_cli.data.large.engines.connections import refuse_as_file

    files = line.get("files", [])
    if "engine" in line or "query" in line:
        if files or "engine" not in line:
            raise DecalError("rows come from files or from one engine", "give files, or --engine without files")
        from decal_cli.data.large.engines.connections import Engine

        return Engine(line["engine"], query=line.get("query"))
    if not files and pipes and piped_in():
        return ["-"]
    paths = files or settings.get("input", [])
    if not paths and pipes:
        raise DecalError(
            "there is nothing to read: no file is named, nothing is piped in, and no settings file names an input",
            'try: decal evaluate preds.csv, or: cat preds.csv | decal evaluate, or: input = "preds.csv" in decal.toml',
        )
    for path in paths:
        refuse_as_file(path)
    return paths


def _check_not_read(line: GivenOptions, source: Any) -> None:
    written = [key for key in ("output", "state", "write_splice") if key in line]
    if written:
        from decal_cli.api.asking import paths_of
        from decal_cli.data.output import check_not_read

        given = [source, *(line.get(key) for key in ("reference", "test", "pilot", "baseline"))]
        paths = [path for each in given for path in paths_of(each)]
        for key in written:
            check_not_read(line[key], paths, key.replace("_", " "))


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


def value_of(declared: Option, given: Any) -> Any:
    """The value of an option, from its text. Errors: DecalError, one line that leads to what is meant."""
    kind, words = declared.kind, Hint(declared.line).words
    if get_origin(kind) is list:
        return [value_of(replace(declared, kind=get_args(kind)[0]), each) for each in given or ()]
    if not isinstance(given, str):
        return given
    if declared.choices and given not in declared.choices:
        # Late: help has no use for it.
        from decal_cli.declarations.spec import near

        flag = declared.flag if declared.flag.startswith("--") else words
        raise DecalError(f"{flag} {given!r} is not one of {', '.join(declared.choices)}", near(given, declared.choices))
    if not (given or declared.argument):
        raise DecalError(f"{words} is empty", "give a value, or leave it out")
    if kind not in (int, float) or (declared.ranged and given.count(":") == 1):
        return given
    try:
        return kind(given)
    except ValueError:
        fix = f"give for example {words} {EXAMPLES.get(declared.line, '1')}"
        for text, scale in ((given.replace(",", "."), 1), (given.removesuffix("%"), 100)):
            with suppress(ValueError):
                if text != given:
                    fix = f"write {words} {kind(float(text) / scale):g}"
        if declared.line == "abstain" and ":" in given:
            fix = f"give one price; `decal sweep --vary abstain={given}` goes through them"
        noun = "whole number" if kind is int else "number"
        raise DecalError(f"{words} {given!r} is not a {noun}", fix) from None
