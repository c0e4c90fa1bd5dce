"""One run of `decal report`: measurements, recommendation and pictures to one page."""

from __future__ import annotations

from decal_cli.analysis import recommend as judging
from decal_cli.analysis.evaluate import all_choices
from decal_cli.analysis.sweep import swept
from decal_cli.commands.common import data_of, emit, plan_of, settings_of
from decal_cli.commands.options import InputOptions, OutputOptions, TaskOptions, WishOptions
from decal_cli.commands.progress import progress_of
from decal_cli.curves import Grid, parse_thresholds
from decal_cli.defaults import SWEEP_THRESHOLDS
from decal_cli.errors import DecalError
from decal_cli.plot import draw, ready
from decal_cli.render.html import render_html


def report(source: InputOptions, task: TaskOptions, wishes: WishOptions, out: OutputOptions) -> None:
    """`decal report`."""
    if out.output is None:
        raise DecalError("the report needs a file to be written to", "name it: -o report.html")
    ready("picture.svg")
    settings = settings_of(out)
    plan = plan_of(all_choices(), task, out, settings)
    asked = judging.Wishes.parse(wishes.cost, wishes.decisions, wishes.satisfied_at, wishes.tolerance)
    data = data_of(source, settings, out.output)
    with progress_of() as progress:
        if plan.task is None:
            result = judging.evaluate(data, plan, progress)
        else:
            result = judging.recommend(data, plan, asked, progress)
        progress("curves")
        curves = swept(data, plan, Grid(parse_thresholds(SWEEP_THRESHOLDS), None))
        chosen = [("What every threshold costs", ("brier", "decision")), ("Reliability", ("reliability",))]
        if any(model.rows.features is not None for model in data.models):
            chosen.append(("What scores group together", ("grouping",)))
        if plan.task is not None:
            chosen.append(("From naive to the best decisions", ("waterfall",)))
        pictures = {name: draw(curves, which, "picture.svg") for name, which in chosen}
    emit(render_html(result, pictures), out)
