"""The command line: `decal` with all its commands, and the exit code of a run."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated, Any

import typer

from decal_cli.commands import streams
from decal_cli.commands.tree import COMMANDS, Group
from decal_cli.errors import DecalError, Exit, Interrupted, out_of_memory
from decal_cli.render.formats import FORMATS
from decal_cli.version import __version__

app = typer.Typer(
    name="decal",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
_USAGE_ERROR: Any = typer.BadParameter.__base__
"""The base class of what Typer raises for a line that it cannot parse; Typer exports only a subclass."""


def _version(asked: bool) -> None:
    if asked:
        print(f"decal {__version__}")
        raise typer.Exit


VERSION = typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")


@app.callback()
def decal(version: Annotated[bool, VERSION] = False) -> None:
    """Measure what acting on a classifier's scores costs, and what recalibration or post-training would gain.

    Results go to standard output, everything else to standard error.

    Example: decal recommend preds.parquet --score p --label y --features 'x*' --threshold 0.3
    """


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code; no exception leaves it."""
    with streams.checked():
        try:
            try:
                if (
                    arguments
                    and arguments[0] != "--version"
                    and not any(each.startswith("--help") for each in arguments)
                ):
                    streams.reserve()
                code = app(arguments, prog_name="decal", standalone_mode=False)
            finally:
                sys.stdout.flush()
            if code == Exit.INTERRUPTED:
                streams.say("decal: interrupted")
            return int(code or Exit.OK)
        except SystemExit as stop:
            if isinstance(stop.__context__, OSError):  # which Typer turns into code 1, that of a failed gate
                return streams.lost(stop.__context__)
            return int(stop.code or Exit.OK)
        except _USAGE_ERROR as error:
            return _unusable(error, arguments)
        except Interrupted as error:
            streams.say(f"decal: interrupted; {error}")
            return Exit.INTERRUPTED
        except DecalError as error:
            streams.say(f"decal: {error}")
            return Exit.CANNOT_JUDGE
        except KeyboardInterrupt:
            streams.say("decal: interrupted")
            return Exit.INTERRUPTED
        except Exception as error:
            if out_of_memory(error):
                streams.say("decal: there is not enough memory; give fewer rows or columns, or run it with more")
                return Exit.CANNOT_JUDGE
            return streams.lost(error) if isinstance(error, OSError) else _bug(error)


def _unusable(error: Any, arguments: list[str]) -> Exit:
    """Say in one line why the command line does not parse; show the help where there was nothing to parse."""
    text = error.format_message()
    if not arguments:
        for line in text.split("\n"):
            streams.say(line)
        return Exit.CANNOT_JUDGE
    if type(error).__name__ == "NoSuchOption":
        text = f"No such option: {error.option_name}{_instead_of(error.option_name, error.ctx)}"
    if text.startswith("Got unexpected extra"):
        files = [each.opts[0] for each in error.ctx.command.params if each.metavar == "FILE" and each.name != "output"]
        text += f" (name a file with {files[0]})" if files else ""
    text = text.replace("Value error, ", "").replace(". Did you mean", "; did you mean").removesuffix(".")
    command = f"decal {arguments[0]}" if arguments[0] in COMMANDS else "decal"
    streams.say(f"decal: {text[:1].lower()}{text[1:]}{'' if text.endswith('?') else ';'} see {command} --help")
    return Exit.CANNOT_JUDGE


def _instead_of(wrong: str, context: Any) -> str:
    """What to write in place of an option that this command does not have; '' where no option is near."""
    # Late: it loads numpy, which help does without.
    from decal_cli.data.words import grouped, listed, nearest

    name = wrong.removeprefix("--")
    if name in FORMATS:
        return f" (write -f {name})"
    here = context.command
    takers = grouped(
        (option.removeprefix("--"), command.name)
        for command in (here, *COMMANDS.values())
        for each in command.get_params(context)
        for option in (*each.opts, *each.secondary_opts)
        if option.startswith("-")
    )
    for each in here.params:
        if each.param_type_name == "argument" and each.name == name:
            return f" (write {each.metavar} alone, as in `{context.command_path} {each.metavar} ...`)"
    meant = nearest(name, takers)
    if meant is None:
        return ""
    flag = meant if meant.startswith("-") else f"--{meant}"
    others = f"{flag} is for {listed([each for each in takers[meant] if each != here.name])}"
    return f" ({f'did you mean {flag}?' if here.name in takers[meant] else others})"


def _bug(error: Exception) -> int:
    if os.environ.get("DECAL_DEBUG"):
        for line in "".join(traceback.format_exception(error)).splitlines():
            streams.say(line)
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    streams.say(
        f"decal: this is a bug in decal {__version__}: {type(error).__name__} at {where}: {error}; "
        "please report it with what DECAL_DEBUG=1 prints"
    )
    return Exit.BUG
