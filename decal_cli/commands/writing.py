"""Progress on standard error around a verb's call, and the files that results and pictures are written to."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from decal_cli.api.words import AROUND, Around
from decal_cli.commands.streams import announce, counting_bar, reading_bar, say, spinner
from decal_cli.errors import DecalError
from decal_cli.render.format import Page
from decal_cli.render.formats import DEFAULT, FORMATS, as_bytes, write

if TYPE_CHECKING:
    from decal_cli.metrics import MetricSpec
    from decal_cli.render.blocks import Block
    from decal_cli.render.terms import StatedTerms


@contextmanager
def watched() -> Iterator[None]:
    """Within it, verbs show what they do on standard error, with movement on a terminal, and read standard input."""
    stdin = getattr(sys.stdin, "buffer", None)
    around = Around(
        stdin, counting=lambda: nullcontext(announce), say=lambda text: say(f"decal: {text}") if text else None
    )
    if sys.stderr.isatty():
        around = around._replace(computing=spinner, reading=reading_bar, counting=counting_bar)
    before = AROUND.set(around)
    try:
        yield
    finally:
        AROUND.reset(before)


def needing(rows: bool = False, every: bool = False) -> None:
    """Tell the verb that follows that rows are needed, not counts; or every metric."""
    AROUND.set(AROUND.get()._replace(rows=rows, every=every))


def load_ahead(choices: Sequence[MetricSpec]) -> None:
    """Import in a second thread, while files are read, what these metrics would import late."""
    modules = {choice.declared.loads for choice in choices} - {""}
    if modules:
        threading.Thread(target=lambda: [importlib.import_module(name) for name in modules], daemon=True).start()


def emit(result: Any, name: str = DEFAULT, output: str | None = None) -> None:
    """Write a result in the format of this name: to standard output, or to the file in one step."""
    if output:
        from decal_cli.data.output import write_whole

        write_whole(output, as_bytes(result, name), "output")
        return
    content = write(result, name, Page.of_terminal(sys.stdout))
    stream: Any = sys.stdout if isinstance(content, str) else sys.stdout.buffer
    stream.write(content)
    stream.flush()


def pictures_possible() -> bool:
    """Whether a page can have its pictures; where not, standard error says so, since a page is shown to others."""
    from decal_cli.plot.page import can_draw

    if not can_draw():
        say("decal: there are no pictures: matplotlib is not installed; pip install 'decal[plot]'")
    return can_draw()


def check_plot(plot: str | None, form: str = "") -> None:
    """Raise a DecalError where the picture cannot be drawn or written; form: of the result, below which - draws."""
    if not plot:
        return
    if plot == "-" and form:
        if FORMATS[form].reads != "blocks":
            raise DecalError(f"--plot - draws below a table, and the format is {form}", "give --plot FILE")
        return
    from decal_cli.data.output import check_writable
    from decal_cli.plot.page import ready

    ready(plot)
    check_writable(plot, "plot")


def draw_sweep(
    sweep: Any, plot: str, pictures: tuple[str, ...], output: str | None, terms: StatedTerms
) -> tuple[Block, ...]:
    """Draw the pictures into the file; return them as blocks where they are to stand in the terminal, else ()."""
    from decal_cli.data.output import write_whole
    from decal_cli.plot.sweeps import draw, draw_text

    if plot == "-":
        return draw_text(sweep, pictures, (Page() if output else Page.of_terminal(sys.stdout)).width, terms)
    write_whole(plot, draw(sweep, pictures, plot, terms), "plot")
    return ()
