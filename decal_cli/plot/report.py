"""What the page of a report holds: every metric, the advice and the pictures, for one data set."""

from __future__ import annotations

from decal_cli.analysis import recommend as recommending
from decal_cli.analysis.evaluate import Plan, Progress, evaluate
from decal_cli.analysis.sweep import swept
from decal_cli.curves import Grid, parse_thresholds
from decal_cli.data import Dataset
from decal_cli.declarations.defaults import SWEEP_THRESHOLDS
from decal_cli.plot.page import draw
from decal_cli.render.results.page import ReportPage


def report_page(
    data: Dataset, plan: Plan, preferences: recommending.Preferences, progress: Progress = lambda text: None
) -> ReportPage:
    """Measure, recommend and draw."""
    recommendation = None if plan.task is None else recommending.recommend(data, plan, preferences, progress)
    evaluation = evaluate(data, plan, progress) if recommendation is None else recommendation.evaluation
    progress("curves")
    curves = swept(data, plan, Grid(parse_thresholds(SWEEP_THRESHOLDS), None))
    chosen = [("What every threshold costs", ("brier", "decision")), ("Reliability", ("reliability",))]
    if any(model.rows.features is not None for model in data.models):
        chosen.append(("What scores group together", ("grouping",)))
    if plan.task is not None:
        chosen.append(("From naive to the best decisions", ("waterfall",)))
    pictures = {name: draw(curves, which, "picture.svg") for name, which in chosen}
    return ReportPage(evaluation, recommendation, pictures)
