"""One run of `decal report`."""

from __future__ import annotations

from decal_cli.analysis import recommend as recommending
from decal_cli.analysis.evaluate import all_choices, evaluate
from decal_cli.analysis.sweep import swept
from decal_cli.commands.common import data_of, emit, plan_of, preferences_of, settings_of
from decal_cli.commands.options import InputOptions, OutputOptions, PreferenceOptions, TaskOptions
from decal_cli.commands.progress import progress_of
from decal_cli.curves import Grid, parse_thresholds
from decal_cli.declarations.defaults import SWEEP_THRESHOLDS
from decal_cli.errors import DecalError
from decal_cli.plot import draw, ready
from decal_cli.render.formats import format_for
from decal_cli.render.results.page import ReportPage


def run(preferences: PreferenceOptions, source: InputOptions, task: TaskOptions, out: OutputOptions) -> None:
    """Measure, recommend and draw, and write one page."""
    if out.output is None:
        raise DecalError("the report needs a file to be written to", "name it: -o report.html")
    ready("picture.svg")
    settings = settings_of(out)
    form = format_for("html", out.output, ReportPage)
    plan = plan_of(all_choices(), task, out, settings)
    wanted = preferences_of(preferences)
    data = data_of(source, settings, out.output)
    with progress_of() as progress:
        recommendation = None if plan.task is None else recommending.recommend(data, plan, wanted, progress)
        evaluation = evaluate(data, plan, progress) if recommendation is None else recommendation.evaluation
        progress("curves")
        curves = swept(data, plan, Grid(parse_thresholds(SWEEP_THRESHOLDS), None))
        chosen = [("What every threshold costs", ("brier", "decision")), ("Reliability", ("reliability",))]
        if any(model.rows.features is not None for model in data.models):
            chosen.append(("What scores group together", ("grouping",)))
        if plan.task is not None:
            chosen.append(("From naive to the best decisions", ("waterfall",)))
        pictures = {name: draw(curves, which, "picture.svg") for name, which in chosen}
    emit(ReportPage(evaluation, recommendation, pictures), form, out)
