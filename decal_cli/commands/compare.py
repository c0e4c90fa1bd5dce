"""One run of `decal compare`."""

from __future__ import annotations

from dataclasses import replace

from decal_cli.analysis import compare as comparing
from decal_cli.analysis.choices import all_choices
from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.sweep import Sweep, swept
from decal_cli.api.nouns import Decision, Statistics
from decal_cli.commands.common import (
    choices_of,
    columns_of,
    counted_by_engine,
    emit,
    inputs_of,
    plan_of,
    settings_of,
    terms_of,
)
from decal_cli.commands.options.common import InputOptions, OutputOptions
from decal_cli.commands.options.judging import CompareOptions, MetricOptions
from decal_cli.commands.plotting import check_plot, write_plot
from decal_cli.commands.progress import progress_of, reading_bar
from decal_cli.commands.settings import Settings
from decal_cli.curves import Grid, parse_thresholds
from decal_cli.data import Counting, Dataset, Paired, as_file, format_of, pair_up, read_pair
from decal_cli.data.output import check_new, check_not_read, write_whole
from decal_cli.declarations.defaults import SWEEP_THRESHOLDS
from decal_cli.errors import DecalError
from decal_cli.plot import SHARED
from decal_cli.render.formats import format_for
from decal_cli.render.results.comparison import Compared
from decal_cli.render.terms import StatedTerms


def run(
    models: CompareOptions,
    metrics: MetricOptions,
    source: InputOptions,
    task: Decision,
    terms: StatedTerms,
    sure: Statistics,
    out: OutputOptions,
) -> None:
    """Compare, and write the result and on request the spliced scores."""
    settings = settings_of(out)
    form = format_for(metrics.format, out.output, Compared)
    check_plot(models.plot, form)
    terms = terms_of(terms, settings)
    if models.write_splice is not None:
        format_of(models.write_splice)
        check_new(models.write_splice, "splice", models.force)
    choices = choices_of(metrics, form)
    plan = replace(plan_of(choices, task, sure, settings, source), intervals=not metrics.no_intervals)
    paired = _paired(models, source, settings, plan, out)
    if paired.dataset.classes:
        choices = choices if metrics.metric else all_choices(of_classes=True) if choices else ()
        if models.write_splice is not None or models.plot is not None:
            raise DecalError("--plot and --write-splice are for scores of two classes", "drop them")
    plan = replace(plan, choices=choices or comparing.shown_choices(paired.dataset, plan))
    with progress_of() as progress:
        result = comparing.compare(paired.dataset, plan, progress, ids=paired.ids)
        drawing = () if models.plot is None else write_plot(_curves(paired.dataset, plan), models.plot, SHARED, out)
    if models.write_splice is not None:
        write_whole(models.write_splice, as_file(models.write_splice, comparing.spliced(paired, result)), "splice")
    emit(Compared(result, terms, drawing), form, out)


def _paired(models: CompareOptions, source: InputOptions, settings: Settings, plan: Plan, out: OutputOptions) -> Paired:
    """The two models, of files or of an engine."""
    columns = columns_of(source, settings)
    counted = counted_by_engine(source, settings, plan.edges, pairs=True)
    if counted is not None:
        return pair_up(counted, columns, models.id)
    paths, stdin = inputs_of(source, settings, out.output)
    check_not_read(models.write_splice, paths)
    # What is drawn, or written row by row, needs the rows.
    if models.plot is not None or models.write_splice is not None:
        return read_pair(paths, columns, models.id, stdin)
    with reading_bar() as progress:
        return read_pair(paths, columns, models.id, stdin, Counting(plan.edges, progress, pairs=True))


def _curves(dataset: Dataset, plan: Plan) -> Sweep:
    """The curves of both models on all rows, for the picture."""
    alone = tuple(replace(each, rows=replace(each.rows, groups={}, features=None)) for each in dataset.models)
    return swept(replace(dataset, models=alone), plan, Grid(parse_thresholds(SWEEP_THRESHOLDS)))
