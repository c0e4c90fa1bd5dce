"""What may be chosen of: the values of an option, and names for completion."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import typer

from decal_cli.render.format import Face
from decal_cli.render.formats import check_format, offered


class Missing(StrEnum):
    """What to do with missing scores and labels."""

    error = "error"
    drop = "drop"


class Picture(StrEnum):
    """What is drawn of a sweep."""

    brier = "brier"
    decision = "decision"
    reliability = "reliability"
    grouping = "grouping"
    waterfall = "waterfall"
    all = "all"


def format_option(*faces: Face, text: str = "How to write the result.") -> Any:
    """The option --format of a command whose result has these faces; any other format is refused at once."""

    def check(context: typer.Context, value: str | None) -> str | None:
        return value if value is None else check_format(value, faces, f"`{context.command_path}`")

    def begun(incomplete: str) -> list[str]:
        return [name for name in offered(faces) if name.startswith(incomplete)]

    metavar = "|".join(offered(faces))
    return typer.Option("--format", "-f", metavar=metavar, help=text, callback=check, autocompletion=begun)


def one_of(choices: type[StrEnum]) -> str:
    """The choices as help shows them."""
    return "|".join(choices)


def metric_names(incomplete: str) -> list[str]:
    """Metrics that begin so."""
    from decal_cli.metrics import METRICS

    return [name for name in METRICS if name.startswith(incomplete)]


def method_names(incomplete: str) -> list[str]:
    """Methods that begin so."""
    from decal_cli.methods import METHODS

    return [name for name in ("auto", *METHODS) if name.startswith(incomplete)]
