"""One run of `decal sweep`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from decal_cli.analysis.capacities import capacity_series, largest, sweep_capacities
from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.sweep import swept
from decal_cli.analysis.varied import VariedSweep, series_for, sweep_tasks
from decal_cli.api.nouns import Decision, Statistics
from decal_cli.commands.common import costs_given, data_of, emit, plan_of, settings_of, terms_of
from decal_cli.commands.options.common import InputOptions, OutputOptions
from decal_cli.commands.options.judging import SweepOptions
from decal_cli.commands.plotting import check_plot, write_plot, write_task_plot
from decal_cli.commands.progress import Progress, progress_of
from decal_cli.curves import Grid, parse_prior, parse_thresholds
from decal_cli.data import Dataset
from decal_cli.declarations.defaults import SWEEP_THRESHOLDS
from decal_cli.errors import DecalError
from decal_cli.plot import PICTURES, task_pictures
from decal_cli.render.formats import format_for
from decal_cli.render.results.sweep import Curves
from decal_cli.render.results.varied import VariedCurves
from decal_cli.render.terms import StatedTerms
from decal_cli.task import CAPACITY, Varied, parse_capacities, parse_prevalences, parse_varied


def run(
    curves: SweepOptions, source: InputOptions, task: Decision, terms: StatedTerms, sure: Statistics, out: OutputOptions
) -> None:
    """Compute the curves, write them, and draw them on request."""
    settings = settings_of(out)
    form = format_for(curves.format, out.output, Curves)
    if curves.plot is None and curves.picture:
        raise DecalError("--picture names what to draw, and nothing is drawn", "give --plot FILE, or --plot -")
    check_plot(curves.plot, form)
    varied = _varied(curves)
    own = source.named.get(CAPACITY, settings.columns.capacity)
    if varied is not None and varied.name == CAPACITY:
        # So that what --per names is read, and the largest capacity is checked against the rows.
        source = replace(source, named={**source.named, CAPACITY: largest(varied)})
    terms = terms_of(terms, settings)
    grid = Grid(parse_thresholds(curves.thresholds), None if curves.prior is None else parse_prior(curves.prior))
    plan = replace(plan_of((), task, sure, settings, source), intervals=not curves.no_intervals)
    edges = None if varied is not None else sorted({*plan.edges, *grid.thresholds})
    data = data_of(source, settings, out.output, edges)
    plan = plan.for_rows(data)
    if varied is not None or data.classes or plan.row_task is not None:
        tasks, pictures = _tasks(curves, data, plan, varied, costs_given(task, settings), own)
        with progress_of() as progress:
            swept_tasks = tasks(progress)
            drawing = () if curves.plot is None else write_task_plot(swept_tasks, curves.plot, pictures, out)
        emit(VariedCurves(swept_tasks, curves.all_thresholds, drawing, terms), form, out)
        return
    with progress_of() as progress:
        result = swept(data, plan, grid, progress)
        drawing = () if curves.plot is None else write_plot(result, curves.plot, _pictures(curves), out)
    emit(Curves(result, curves.all_thresholds, drawing, terms), form, out)


def _varied(curves: SweepOptions) -> Varied | None:
    """What varies beside t*, if anything."""
    ways = {
        "--vary": (curves.vary, parse_varied),
        "--prevalence-range": (curves.prevalence_range, parse_prevalences),
        "--capacity-range": (curves.capacity_range, parse_capacities),
    }
    named = {option: parsed(text) for option, (text, parsed) in ways.items() if text is not None}
    if len(named) > 1:
        raise DecalError(f"{' and '.join(named)} both say what varies", "give one of them")
    return next(iter(named.values()), None)


def _tasks(
    curves: SweepOptions, data: Dataset, plan: Plan, varied: Varied | None, costs: bool, own: str | None
) -> tuple[Callable[[Progress], VariedSweep], tuple[str, ...]]:
    """The sweep in which a number of the task varies, not t*, and its pictures."""
    if curves.prior is not None or curves.thresholds != SWEEP_THRESHOLDS:
        option = "--thresholds" if curves.prior is None else "--prior"
        raise DecalError(
            f"{option} is of t*, and a number of the task varies here", "drop it; --vary says what takes which values"
        )
    limited = varied is not None and varied.name == CAPACITY
    if varied is not None and limited:
        series = capacity_series(data, plan, varied, own)
    else:
        series = series_for(data, plan, varied, costs)
    sweep = sweep_capacities if limited else sweep_tasks
    return partial(sweep, data, plan, series), task_pictures(series, bool(data.classes), curves.picture)


def _pictures(curves: SweepOptions) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(curves.picture)) or ("brier", "decision")
    if "all" in asked:
        return PICTURES
    if other := [picture for picture in asked if picture not in PICTURES]:
        raise DecalError(
            f"--picture {other[0]} shows a number of the task that varies, and t* varies here",
            f"choose of {', '.join(PICTURES)}, or give --vary",
        )
    return asked
