"""The option --format: what a result can be written in, from the formats that there are."""

from __future__ import annotations

from typing import Any

from decal_cli.commands.options.common import OUTPUT
from decal_cli.commands.options.declare import option
from decal_cli.render.format import Face
from decal_cli.render.formats import DEFAULT, check_format, offered


def format_option(
    *faces: Face, text: str = "Format of the result.", default: str | None = DEFAULT, shown: str | None = None
) -> Any:
    """The option of a command whose result has these faces; it refuses any other format before anything is read."""

    def check(context: Any, value: str | None) -> str | None:
        return value if value is None else check_format(value, faces, f"`{context.command_path}`")

    def begin_so(incomplete: str) -> list[str]:
        return [name for name in offered(faces) if name.startswith(incomplete)]

    metavar = "|".join(offered(faces))
    return option(
        text, default, "--format", "-f", metavar=metavar, complete=begin_so, check=check, panel=OUTPUT, shown=shown
    )
