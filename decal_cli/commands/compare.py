"""One run of `decal compare`: two models in, who wins out, and on request the spliced scores."""

from __future__ import annotations

from dataclasses import replace

from decal_cli.analysis import compare as comparing
from decal_cli.analysis.evaluate import all_choices
from decal_cli.commands.common import WHOLE, columns_of, emit, inputs_of, plan_of, settings_of
from decal_cli.commands.options import CompareOptions, InputOptions, OutputOptions, ReportOptions, TaskOptions
from decal_cli.commands.progress import progress_of
from decal_cli.commands.writing import check_new, check_not_read, write_whole
from decal_cli.data import as_file, format_of, read_pair
from decal_cli.metrics import parse
from decal_cli.render.results.comparison import Compared


def compare(
    source: InputOptions, task: TaskOptions, models: CompareOptions, report: ReportOptions, out: OutputOptions
) -> None:
    """`decal compare`."""
    settings = settings_of(out)
    if models.write_splice is not None:
        format_of(models.write_splice)
        check_new(models.write_splice, "splice", models.force)
    everything = report.all_metrics or report.format in WHOLE
    chosen = tuple(parse(text) for text in report.metric)
    plan = replace(plan_of(chosen, task, out, settings), intervals=not report.no_intervals)
    paths, stdin = inputs_of(source, settings, out.output)
    check_not_read(models.write_splice, paths)
    paired = read_pair(paths, columns_of(source, settings), models.id, stdin)
    plan = replace(plan, choices=chosen or (all_choices() if everything else comparing.shown_choices(paired.dataset)))
    with progress_of() as progress:
        result = comparing.compare(paired.dataset, plan, progress)
    if models.write_splice is not None:
        write_whole(models.write_splice, as_file(models.write_splice, comparing.spliced(paired, result)), "splice")
    emit(Compared(result), report.format, out)
