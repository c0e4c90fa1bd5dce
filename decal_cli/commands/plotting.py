"""Pictures that a command draws on request: checked before any work is done, drawn into a file or the terminal."""

from __future__ import annotations

from decal_cli.analysis.sweep import Sweep
from decal_cli.analysis.varied import VariedSweep
from decal_cli.commands.common import page_of
from decal_cli.commands.options.common import OutputOptions
from decal_cli.commands.streams import say
from decal_cli.data.output import check_writable, write_whole
from decal_cli.errors import DecalError
from decal_cli.plot import can_draw, draw, draw_tasks, draw_tasks_text, draw_text, ready
from decal_cli.render.blocks import Block
from decal_cli.render.formats import FORMATS


def pictures_possible() -> bool:
    """Whether a page can have its pictures; where not, standard error says so: the page is handed on to others."""
    if not can_draw():
        say("decal: there are no pictures: matplotlib is not installed; pip install 'decal[plot]'")
    return can_draw()


def check_plot(plot: str | None, form: str) -> None:
    """Raise a DecalError where the picture cannot be drawn or written; form: of the result."""
    if plot is None:
        return
    if plot == "-":
        if FORMATS[form].reads != "blocks":
            raise DecalError(f"--plot - draws below a table, and the format is {form}", "give --plot FILE")
        return
    check_plot_file(plot)


def check_plot_file(plot: str) -> None:
    """Raise a DecalError where the picture cannot be drawn into a file of this name."""
    ready(plot)
    check_writable(plot, "plot")


def write_plot(sweep: Sweep, plot: str, pictures: tuple[str, ...], out: OutputOptions) -> tuple[Block, ...]:
    """The pictures in the file, or as blocks where they are to stand in the terminal."""
    if plot == "-":
        return draw_text(sweep, pictures, page_of(out).width)
    write_whole(plot, draw(sweep, pictures, plot), "plot")
    return ()


def write_task_plot(sweep: VariedSweep, plot: str, pictures: tuple[str, ...], out: OutputOptions) -> tuple[Block, ...]:
    """The same of a sweep in which a number of the task varies."""
    if plot == "-":
        return draw_tasks_text(sweep, pictures, page_of(out).width)
    write_whole(plot, draw_tasks(sweep, pictures, plot), "plot")
    return ()
