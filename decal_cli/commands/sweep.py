"""One run of `decal sweep`."""

from __future__ import annotations

from dataclasses import replace

from decal_cli.analysis.sweep import swept
from decal_cli.commands.common import data_of, emit, page_of, plan_of, settings_of
from decal_cli.commands.options import InputOptions, OutputOptions, PictureName, SweepOptions, TaskOptions
from decal_cli.commands.progress import progress_of
from decal_cli.curves import Grid, parse_prior, parse_thresholds
from decal_cli.data.output import check_writable, write_whole
from decal_cli.errors import DecalError
from decal_cli.plot import PICTURES, draw, draw_text, ready
from decal_cli.render.formats import FORMATS, format_for
from decal_cli.render.results.sweep import Curves


def run(curves: SweepOptions, source: InputOptions, task: TaskOptions, out: OutputOptions) -> None:
    """Compute the curves, write them, and draw them on request."""
    settings = settings_of(out)
    form = format_for(curves.format, out.output, Curves)
    _check_plot(curves, out, form)
    grid = Grid(parse_thresholds(curves.thresholds), None if curves.prior is None else parse_prior(curves.prior))
    plan = replace(plan_of((), task, out, settings), intervals=not curves.no_intervals)
    plan = replace(plan, task=plan.two_actions("sweep"))
    data = data_of(source, settings, out.output)
    with progress_of() as progress:
        result = swept(data, plan, grid, progress)
        picture = None if curves.plot in (None, "-") else draw(result, _pictures(curves), str(curves.plot))
    if picture is not None:
        write_whole(str(curves.plot), picture, "plot")
    drawing = draw_text(result, _pictures(curves), page_of(out).width) if curves.plot == "-" else ()
    emit(Curves(result, curves.all_thresholds, drawing), form, out)


def _check_plot(curves: SweepOptions, out: OutputOptions, form: str) -> None:
    """Before any work is done: can the picture be drawn and written?"""
    if curves.plot is None:
        if curves.picture:
            raise DecalError("--picture names what to draw, and nothing is drawn", "give --plot FILE, or --plot -")
    elif curves.plot == "-":
        if FORMATS[form].reads != "blocks":
            raise DecalError(f"--plot - draws below a table, and the format is {form}", "give --plot FILE")
    else:
        ready(curves.plot)
        check_writable(curves.plot, "plot")


def _pictures(curves: SweepOptions) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(picture.value for picture in curves.picture)) or ("brier", "decision")
    return PICTURES if PictureName.all.value in asked else asked
