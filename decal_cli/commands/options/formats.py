"""The option --format: what a result can be written in, from the formats that there are."""

from __future__ import annotations

from typing import Any

from decal_cli.commands.options.common import OUTPUT
from decal_cli.declarations.option import option
from decal_cli.render.format import Face
from decal_cli.render.formats import DEFAULT, check_format, offered, suffixes


def format_option(
    *faces: Face, text: str = "Format of the result.", by_suffix: bool = True, several: bool = False
) -> Any:
    """The option of a command whose result has these faces; it refuses any other format before anything is read.

    by_suffix: whether the file of --output says the format where the option does not. several: whether it may be given
    more than once, with a file each.
    """

    def check(context: Any, value: Any) -> Any:
        for each in value if several else [value] if value is not None else []:
            check_format(each.partition("=")[0] if several else each, faces, f"`{context.command_path}`")
        return value

    def begin_so(incomplete: str) -> list[str]:
        return [name for name in offered(faces) if name.startswith(incomplete)]

    metavar = "|".join(offered(faces))
    ends = ", ".join(suffixes(faces))
    default, shown = (None, f"by the suffix of --output ({ends}), else {DEFAULT}") if by_suffix else (DEFAULT, None)
    return option(
        text,
        [] if several else default,
        "-f",
        metavar=metavar,
        brief=True,
        complete=begin_so,
        check=check,
        panel=OUTPUT,
        shown=shown,
    )
