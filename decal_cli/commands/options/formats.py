"""The option --format: what a result can be written in, from the formats that there are."""

from __future__ import annotations

from typing import Any

from decal_cli.commands.options.common import OUTPUT
from decal_cli.commands.options.declare import option
from decal_cli.render.format import Face
from decal_cli.render.formats import DEFAULT, check_format, offered, suffixes


def format_option(*faces: Face, text: str = "Format of the result.", by_suffix: bool = True) -> Any:
    """The option of a command whose result has these faces; it refuses any other format before anything is read.

    by_suffix: whether the file of --output says the format where the option does not.
    """

    def check(context: Any, value: str | None) -> str | None:
        return value if value is None else check_format(value, faces, f"`{context.command_path}`")

    def begin_so(incomplete: str) -> list[str]:
        return [name for name in offered(faces) if name.startswith(incomplete)]

    metavar = "|".join(offered(faces))
    ends = ", ".join(suffixes(faces))
    default, shown = (None, f"by the suffix of --output ({ends}), else {DEFAULT}") if by_suffix else (DEFAULT, None)
    return option(
        text, default, "--format", "-f", metavar=metavar, complete=begin_so, check=check, panel=OUTPUT, shown=shown
    )
