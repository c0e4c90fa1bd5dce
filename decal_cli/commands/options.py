"""What several commands take beside the nouns of Python: formats, files to write, and names that complete."""

from __future__ import annotations

import os
import pkgutil
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import decal_cli
from decal_cli.api.nouns import names_in
from decal_cli.declarations.option import beginning, option
from decal_cli.render.format import Face
from decal_cli.render.formats import DEFAULT, check_format, format_for, offered, suffixes

INPUT, DECISION, STATISTICS, OUTPUT, ARGUMENTS = "Input", "Decision", "Statistics", "Output", "Arguments"
INPUT_FORMATS = "CSV, Parquet, Arrow/Feather or JSON Lines, each also gzipped; - reads standard input."
_ENGINES = Path(decal_cli.__file__).parent / "data" / "large" / "engines" / "kinds"
DIALECTS = tuple(module.name for module in pkgutil.iter_modules([str(_ENGINES)]))
"""The dialects of SQL that a statement can be written in."""
PICTURES = (
    *("brier", "decision", "roc", "reliability", "grouping", "waterfall", "utility", "actions", "risk-coverage"),
    "all",
)
"""The pictures that a sweep can draw."""

RULED: tuple[Face, ...] = ("blocks", "data", "rows", "checks")
"""The faces that a format may need of a result with rules."""
WITHOUT_TERMS = dict.fromkeys(("unit", "decisions", "names"))
"""Removes the options on amounts from a command that prints none."""


def column_names(incomplete: str) -> list[str]:
    """The columns of the first file on the line whose names begin like `incomplete`, for the shell to complete."""
    from decal_cli.data import columns_in
    from decal_cli.errors import DecalError

    # The line as the shell hands it over: an option without its value yet keeps Typer from parsing it.
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words: list[str] = []
    # A quote may still be open.
    for end in ("", "'", '"'):
        with suppress(ValueError):
            words = words or shlex.split(line + end)
    path = next(filter(os.path.isfile, map(os.path.expanduser, words[1:])), None)
    try:
        return [name for name in columns_in(path) if name.startswith(incomplete)] if path else []
    except (DecalError, OSError):
        return []


def format_option(
    *faces: Face,
    text: str = "Format of the result.",
    by_suffix: bool = True,
    settled: bool = True,
    several: bool = False,
) -> Any:
    """The option of a command whose result has these faces; it refuses any other format before anything is read.

    by_suffix: whether the suffix of --output names the format where the option does not. settled: whether nothing but
    these two decides it. several: whether the option may be given more than once, with a file each.
    """

    def check(context: Any, value: Any) -> Any:
        for each in value if several else [value] if value else []:
            check_format(each.partition("=")[0] if several else each, faces, f"`{context.command_path}`")
        return value

    names = offered(faces)
    return option(
        text,
        () if several else None if by_suffix else DEFAULT,
        "-f",
        metavar="|".join(names),
        brief=True,
        complete=beginning(lambda: names),
        check=check,
        panel=OUTPUT,
        shown=f"by the suffix of --output ({suffixes(names)}), else {DEFAULT}" if by_suffix else None,
        settle=(lambda value, line: format_for(value, line["output"], names)) if by_suffix and settled else None,
    )


def output_option(
    text: str = "Write the result to this file instead of standard output.", metavar: str = "FILE", **more: Any
) -> Any:
    """The option that names the file to write."""
    return option(text, None, "-o", metavar=metavar, panel=OUTPUT, brief=True, **more)


metric_names, method_names = names_in("metrics.METRICS"), names_in("learn.methods.METHODS")
TABLE: Any = format_option("blocks", "data", "rows")
FILE: Any = output_option()
METRIC: Any = option(
    "Report only this metric, such as 'ece(bins=20)'. `decal metrics` lists them.",
    (),
    "-m",
    metavar="METRIC",
    complete=metric_names,
    panel="Metrics",
    brief=True,
)
ALL_METRICS: Any = option(
    "Show every metric in the table, not only the main ones.", False, key="all", panel="Metrics", brief=True
)
