"""What a user sees while a run goes on: on standard error, and with movement only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from decal_cli.commands.streams import say
from decal_cli.errors import printable

Progress = Callable[[str], None]
"""Takes what is being computed."""
RowsRead = Callable[[int, int | None], None]
"""Takes how many rows are read, and how many there are, None where that is not known."""
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
                say(f"decal: {total} {'unit' if total == 1 else 'units'} to measure, {before} of them measured before")

        yield announce
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*parts, console=Console(stderr=True)) as shown:
        task = shown.add_task("measuring", total=None)
        yield lambda finished, total, before: shown.update(task, completed=finished, total=total)


@contextmanager
def reading_bar() -> Iterator[RowsRead]:
    """A bar of the rows that are read, with their rate and the time that is left, once there is something to tell."""
    if not sys.stderr.isatty():
        yield lambda rows, total: None
        return
    with ExitStack() as stack:
        bar: list[RowsRead] = []

        def show(rows: int, total: int | None) -> None:
            if not bar:
                bar.append(stack.enter_context(_rows_bar()))
            bar[0](rows, total)

        yield show


@contextmanager
def _rows_bar() -> Iterator[RowsRead]:
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            rate = task.finished_speed or task.speed
            return Text("" if rate is None else f"{rate / 1e6:.1f} million rows/s")

    parts = (
        TextColumn("reading"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        Rate(),
        TimeRemainingColumn(),
    )
    with Bar(*parts, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("reading", total=None)
        yield lambda rows, total: shown.update(task, completed=rows, total=total)
