"""One run of `decal evaluate`."""

from __future__ import annotations

from dataclasses import replace

from decal_cli.analysis import evaluate as evaluating
from decal_cli.analysis.choices import all_choices, shown_choices
from decal_cli.analysis.packs import pack_named
from decal_cli.analysis.reference import against
from decal_cli.api.nouns import Decision, Statistics
from decal_cli.commands.common import (
    choices_of,
    columns_of,
    data_of,
    emit,
    load_ahead,
    plan_of,
    settings_of,
)
from decal_cli.commands.options.common import InputOptions, OutputOptions
from decal_cli.commands.options.judging import EvaluateOptions
from decal_cli.commands.progress import progress_of
from decal_cli.data import read
from decal_cli.data.output import write_whole
from decal_cli.errors import DecalError
from decal_cli.render.formats import format_for
from decal_cli.render.results.evaluation import Evaluated


def run(metrics: EvaluateOptions, source: InputOptions, task: Decision, sure: Statistics, out: OutputOptions) -> None:
    """Measure, and write what was measured."""
    settings = settings_of(out)
    form = format_for(metrics.format, out.output, Evaluated)
    pack = None if metrics.pack is None else pack_named(metrics.pack)
    if pack is not None and (metrics.metric or metrics.all_metrics):
        raise DecalError("--pack chooses the metrics, and so do --metric and --all", "give one of them")
    if metrics.plot is not None and (pack is None or not pack.compares_groups):
        raise DecalError(
            "--plot draws groups side by side", "give --pack fairness and --group; decal sweep draws curves"
        )
    choices = choices_of(metrics, form) if pack is None else pack.choices
    plan = replace(plan_of(choices, task, sure, settings, source), intervals=not metrics.no_intervals)
    if metrics.regimes and plan.two_actions("evaluate --regimes") is None:
        raise DecalError("--regimes needs a decision", "give --threshold, --utility, --cost-fp/--cost-fn or --odds")
    if metrics.plot is not None:
        # Late: what draws takes longer to load than a small file to be measured.
        from decal_cli.commands.plotting import check_plot_file

        check_plot_file(metrics.plot)
    load_ahead(choices)
    data = data_of(source, settings, out.output, plan.edges)
    if data.classes and not metrics.metric:
        choices = all_choices(of_classes=True, slow=metrics.all_metrics) if choices else ()
    plan = replace(plan, choices=choices or shown_choices(data, plan))
    reference = None
    if metrics.reference is not None:
        known = read([metrics.reference], columns_of(source, settings))
        reference = against(data, known, plan.confidence if plan.intervals else None)
    with progress_of() as progress:
        evaluation = evaluating.evaluate(data, plan, progress, regimes=metrics.regimes, pack=pack, reference=reference)
    if metrics.plot is not None and pack is not None:
        from decal_cli.plot import draw_groups

        write_whole(metrics.plot, draw_groups(evaluation, pack, metrics.plot), "plot")
    emit(Evaluated(evaluation, reference), form, out)
