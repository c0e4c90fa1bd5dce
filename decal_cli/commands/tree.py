"""The commands of `decal`. Typer builds one when it is asked for, so that help and a run pay for no other."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import typer
from typer.core import TyperGroup

from decal_cli.commands import help, streams
from decal_cli.commands.line import flat
from decal_cli.declarations.spec import docstring
from decal_cli.errors import Exit

F = TypeVar("F", bound=Callable[..., Any])
JUDGE, ACT, EXPLAIN = "Judge scores", "Act on the advice", "Explain"


class Line(help.Command):
    """A command that says where an option of one value is given twice: the last one counts, as everywhere."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        each: Any
        for each in dict.fromkeys(given):
            times = given.count(each)
            if times > 1 and not (each.multiple or each.is_flag or ctx.resilient_parsing):
                streams.say(f"decal: {each.opts[0]} takes one value and is given {times} times; the last one counts")
        return super().parse_args(ctx, args)


@dataclass(eq=False)
class Declared:
    """A declared command: what the list of commands shows, and how to build the command."""

    function: Callable[..., Any]
    rich_help_panel: str
    panel: str
    decision: str

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def help(self) -> str:
        return docstring(self.function)

    @cached_property
    def built(self) -> Any:
        """The command with its options, as Typer makes it."""
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        spread, brief = flat(self.function, self.panel)
        alone.command(self.name, cls=Line, help=self.help, rich_help_panel=self.rich_help_panel)(spread)
        command: Any = typer.main.get_command(alone)
        command.brief, command.decision = brief, self.decision
        return command


class Commands(UserDict[str, Any]):
    """Commands by name, in the order of their declaration; one is built when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return self.data[name].built


COMMANDS = Commands()


def under(heading: str, panel: str, decision: str = "") -> Callable[[F], F]:
    """Declare a command, listed under this heading. The docstring is its help, the parameters are its options.

    panel: the heading of its own options. decision: what help says of the options of a decision.
    """

    def declare(function: F) -> F:
        COMMANDS[function.__name__] = Declared(function, heading, panel, decision)
        return function

    return declare


class Group(TyperGroup):
    """All commands, under headings, each with its first sentence."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = COMMANDS
        self.help = docstring(self.callback) if self.callback else self.help

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # Typer's own flags are None where they are not given, and it imports pydantic to make sense of that.
        flags: list[Any] = [each for each in self.get_params(ctx) if each.default is None]
        for each in flags:
            each.default = False if each.is_flag else None
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        help.write_text(formatter, self)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections = {
            title: [(each.name, help.summary(each)) for each in commands]
            for title, commands in help.by_heading(COMMANDS.data.values()).items()
        }
        sections["Options"] = help.rows(self.get_params(ctx))
        sections["Exit codes"] = [(str(code.value), code.meaning) for code in Exit]
        help.write_sections(formatter, sections)
