"""One run of `decal compare`."""

from __future__ import annotations

from dataclasses import replace

from decal_cli.analysis import compare as comparing
from decal_cli.commands.common import choices_of, columns_of, emit, inputs_of, plan_of, settings_of
from decal_cli.commands.options import CompareOptions, InputOptions, MetricOptions, OutputOptions, TaskOptions
from decal_cli.commands.progress import progress_of
from decal_cli.data import as_file, format_of, read_pair
from decal_cli.data.output import check_new, check_not_read, write_whole
from decal_cli.render.formats import format_for
from decal_cli.render.results.comparison import Compared


def run(
    models: CompareOptions, metrics: MetricOptions, source: InputOptions, task: TaskOptions, out: OutputOptions
) -> None:
    """Compare, and write the result and on request the spliced scores."""
    settings = settings_of(out)
    form = format_for(metrics.format, out.output, Compared)
    if models.write_splice is not None:
        format_of(models.write_splice)
        check_new(models.write_splice, "splice", models.force)
    choices = choices_of(metrics, form)
    plan = replace(plan_of(choices, task, out, settings), intervals=not metrics.no_intervals)
    paths, stdin = inputs_of(source, settings, out.output)
    check_not_read(models.write_splice, paths)
    paired = read_pair(paths, columns_of(source, settings), models.id, stdin)
    plan = replace(plan, choices=choices or comparing.shown_choices(paired.dataset))
    with progress_of() as progress:
        result = comparing.compare(paired.dataset, plan, progress)
    if models.write_splice is not None:
        write_whole(models.write_splice, as_file(models.write_splice, comparing.spliced(paired, result)), "splice")
    emit(Compared(result), form, out)
