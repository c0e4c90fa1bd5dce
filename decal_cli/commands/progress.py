"""What a user sees while a run goes on: on standard error, and with movement only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from decal_cli.commands.streams import say
from decal_cli.errors import printable

Progress = Callable[[str], None]
"""Takes what is being computed."""
Count = Callable[[int, int, int], None]
"""Takes how many units are finished, how many there are, and how many were finished before the run."""


@contextmanager
def progress_of() -> Iterator[Progress]:
    """A spinner with what is being computed; silent where nobody watches."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("evaluating") as status:
        yield lambda text: status.update(Text(printable(f"evaluating {text}")))


@contextmanager
def progress_bar() -> Iterator[Count]:
    """A bar of the units that are finished; where nobody watches, one line for the log when the run begins."""
    if not sys.stderr.isatty():

        def announce(finished: int, total: int, before: int) -> None:
            if finished == before:
                say(f"decal: {total} units to measure, {before} of them measured before")

        yield announce
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*parts, console=Console(stderr=True)) as shown:
        task = shown.add_task("measuring", total=None)
        yield lambda finished, total, before: shown.update(task, completed=finished, total=total)
