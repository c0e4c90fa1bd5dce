"""One run of `decal sweep`."""

from __future__ import annotations

from dataclasses import replace

from decal_cli.analysis.sweep import swept
from decal_cli.commands.common import data_of, emit, plan_of, settings_of, terms_of
from decal_cli.commands.options import InputOptions, OutputOptions, PictureName, SweepOptions, TaskOptions
from decal_cli.commands.plotting import check_plot, write_plot
from decal_cli.commands.progress import progress_of
from decal_cli.curves import Grid, parse_prior, parse_thresholds
from decal_cli.errors import DecalError
from decal_cli.plot import PICTURES
from decal_cli.render.formats import format_for
from decal_cli.render.results.sweep import Curves


def run(curves: SweepOptions, source: InputOptions, task: TaskOptions, out: OutputOptions) -> None:
    """Compute the curves, write them, and draw them on request."""
    settings = settings_of(out)
    form = format_for(curves.format, out.output, Curves)
    if curves.plot is None and curves.picture:
        raise DecalError("--picture names what to draw, and nothing is drawn", "give --plot FILE, or --plot -")
    check_plot(curves.plot, form)
    terms = terms_of(curves, settings)
    grid = Grid(parse_thresholds(curves.thresholds), None if curves.prior is None else parse_prior(curves.prior))
    plan = replace(plan_of((), task, out, settings), intervals=not curves.no_intervals)
    plan = replace(plan, task=plan.two_actions("sweep"))
    data = data_of(source, settings, out.output)
    with progress_of() as progress:
        result = swept(data, plan, grid, progress)
        drawing = () if curves.plot is None else write_plot(result, curves.plot, _pictures(curves), out)
    emit(Curves(result, curves.all_thresholds, drawing, terms), form, out)


def _pictures(curves: SweepOptions) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(picture.value for picture in curves.picture)) or ("brier", "decision")
    return PICTURES if PictureName.all.value in asked else asked
