"""How help is laid out: what a command is for, an example, its own options, then those that it shares with others."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from textwrap import wrap
from typing import Any

from typer.core import TyperCommand

from decal_cli.commands.options import DECISION, INPUT, OUTPUT, STATISTICS

OTHER = "Other"
SHARED = ("Amounts", "Cost of post-training", INPUT, STATISTICS, OUTPUT, OTHER)
"""Headings that several commands share, in their order; the decision and a command's own options come before them."""
MAX_BRIEF = 24
"""Most options on the first page of help."""
REMARKS = {INPUT: "columns are found by their usual names: p, score, .. and y, label, .."}
EXAMPLE = "Example:"
MAX_LEFT = 24
"""Most characters of the left column of help."""
Rows = list[tuple[str, str]]


class Command(TyperCommand):
    """A command whose options stand under headings.

    brief: the text of each option on the first page of help. decision: what help says of the options of a decision.
    """

    brief: dict[str, str]
    decision = ""
    whole = False
    """Whether --help-all asks for every option."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return usage(self)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        write_text(formatter, self)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        parameters = shown = list[Any](self.get_params(ctx))
        if not self.whole and len(parameters) > MAX_BRIEF:
            brief = {"help": "", "help_all": ""} | self.brief
            shown = [copy(each) for each in parameters if each.name in brief or _positional(each)]
            for each in shown:
                each.help = brief.get(each.name) or each.help
        write_sections(formatter, {titled(title, self): rows(each) for title, each in panels(shown)})
        if rest := len(parameters) - len(shown):
            formatter.write_paragraph()
            formatter.write_text(f"{rest} more options: decal {self.name} --help-all, or man decal-{self.name}")


def titled(title: str, command: Any) -> str:
    """A heading, with a remark that holds for all options below it."""
    remark = command.decision if title == DECISION else REMARKS.get(title, "")
    found = title != INPUT or any("--score" in each.opts for each in command.params)
    return f"{title} ({remark})" if remark and found else title


def rows(parameters: Iterable[Any]) -> Rows:
    """Parameters as they are spelled, each with its help."""
    return [(spelled(each), each.help or "") for each in parameters]


def write_sections(formatter: Any, sections: dict[str, Rows]) -> None:
    """Sections of rows that begin in one column; what is longer than that stands on a line of its own."""
    width = max(len(left) for rows in sections.values() for left, _ in rows if len(left) <= MAX_LEFT)
    for title, rows in sections.items():
        with formatter.section(title):
            margin = " " * formatter.current_indent
            column = f"{margin}{'':{width}}  "
            for left, text in rows:
                if len(left) > width:
                    formatter.write(f"{margin}{left}\n")
                begins = column if len(left) > width else f"{margin}{left:{width}}  "
                _write_wrapped(formatter, text, begins, column)


def write_text(formatter: Any, command: Any) -> None:
    """What a command is for, and its examples."""
    with formatter.indentation():
        for paragraph in description(command):
            formatter.write_paragraph()
            _write_wrapped(formatter, paragraph, *[" " * formatter.current_indent] * 2)
    if lines := examples(command):
        with formatter.section("Example" if len(lines) == 1 else "Examples"):
            for line in lines:
                # As it is: a line that is broken cannot be pasted.
                formatter.write(f"{' ' * formatter.current_indent}{line}\n")


def usage(command: Any) -> list[str]:
    """The usage after a command's name: its arguments, its required options, and a sign that there are others."""
    parameters = command.params
    required = [spelled(each, short=True) for each in parameters if not _positional(each) and each.required]
    return [*(spelled(each) for each in parameters if _positional(each)), *required, "[OPTIONS]"]


def spelled(parameter: Any, short: bool = False) -> str:
    """An argument or option as one writes it: 'FILE', '[FILE]...', '-s, --score COLUMN'; short: the first flag only."""
    if _positional(parameter):
        name = parameter.metavar if parameter.required else f"[{parameter.metavar}]"
        return name if parameter.nargs == 1 else f"{name}..."
    flags = sorted(parameter.opts, key=len)
    value = "" if parameter.is_flag else f" {parameter.metavar}"
    return f"{flags[0] if short else ', '.join(flags)}{value}"


def panels(parameters: Iterable[Any]) -> list[tuple[str, list[Any]]]:
    """Parameters by heading, a command's own first."""
    order = {title: place for place, title in enumerate(SHARED)}
    return sorted(
        by_heading(parameters).items(), key=lambda item: -2 if item[0] == DECISION else order.get(item[0], -1)
    )


def by_heading(declared: Iterable[Any]) -> dict[str, list[Any]]:
    """Commands or parameters by the heading that each is declared with."""
    headings: dict[str, list[Any]] = {}
    for each in declared:
        headings.setdefault(getattr(each, "rich_help_panel", None) or OTHER, []).append(each)
    return headings


def summary(command: Any) -> str:
    """The first sentence of a command's help."""
    return description(command)[0]


def description(command: Any) -> list[str]:
    """The paragraphs of a command's help that are not examples."""
    return [each for each in paragraphs(command.help) if not each.startswith(EXAMPLE)]


def examples(command: Any) -> list[str]:
    """The lines that a command's help shows as examples, as one types them."""
    return [each.removeprefix(EXAMPLE).strip() for each in paragraphs(command.help) if each.startswith(EXAMPLE)]


def paragraphs(text: str | None) -> list[str]:
    """Paragraphs, each on one line."""
    return [" ".join(part.split()) for part in (text or "").split("\n\n")]


def _write_wrapped(formatter: Any, text: str, first: str, later: str) -> None:
    """A text in lines that begin so; no flag is broken, as Typer would break it at a hyphen."""
    lines = wrap(text, formatter.width, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)
    formatter.write("\n".join(lines or [first.rstrip()]) + "\n")


def _positional(parameter: Any) -> bool:
    return parameter.param_type_name == "argument"
