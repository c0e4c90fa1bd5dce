"""One run of `decal demo`: the file of the examples, and the advice that README shows."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

from decal_cli.commands.streams import say
from decal_cli.commands.tree import COMMANDS
from decal_cli.data.output import check_new, write_whole
from decal_cli.errors import DecalError

FIXTURES = "fixtures"
FILE = "fox_news.parquet"
"""The one fixture that a wheel holds; README's examples need no other."""
SHOWN = f"decal recommend {FIXTURES}/{FILE} --score p_hatesonar --label y --features 'x*' --threshold 0.3"
"""The command that README begins with."""
PACKAGE = Path(__file__).resolve().parents[1]


def run(folder: str) -> Any:
    """Write the file where it is not there yet, then print a command and what it prints; its exit code.

    Errors: DecalError, where a file of that name holds something else, or cannot be written.
    """
    # A wheel has them inside the package, a checkout beside it.
    home = next(path for path in (PACKAGE / FIXTURES, PACKAGE.parent / FIXTURES) if (path / FILE).is_file())
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise DecalError(f"folder {folder}: {error.strerror}", "name another one: decal demo FOLDER") from None
    path, content = Path(folder, FILE), (home / FILE).read_bytes()
    if not path.is_file():
        check_new(str(path), "example", False)
        write_whole(str(path), content, "example")
    elif path.read_bytes() != content:
        raise DecalError(f"{path} is another file than that of the example", "write elsewhere: decal demo FOLDER")
    say(f"{path}: example file; remove it when you are done")
    program, command, file, *rest = shlex.split(SHOWN)
    words = [str(Path(folder, Path(file).name)), *rest]
    print(f"$ {shlex.join([program, command, *words])}", flush=True)
    return COMMANDS[command].main(words, prog_name=f"decal {command}", standalone_mode=False)
