"""Pictures for notebooks: one panel, into axes of the user's or of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.sweep import Sweep, swept
from decal_cli.analysis.varied import VariedSweep
from decal_cli.api.words import one_of
from decal_cli.curves import Grid, parse_thresholds
from decal_cli.data import Dataset
from decal_cli.declarations.defaults import SWEEP_THRESHOLDS
from decal_cli.errors import DecalError
from decal_cli.plot import CLASS_PICTURES, PICTURES, draw_classes_on, draw_on, draw_tasks_on, task_pictures
from decal_cli.render.terms import StatedTerms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FROM_FEATURES = ("brier", "grouping", "waterfall")
"""Pictures that look at the features; for others they are not read, which is faster."""


def draw_picture(
    data: Dataset, plan: Plan, picture: str, ax: Axes | None = None, report: int = 0, terms: StatedTerms | None = None
) -> Axes:
    """A picture of a data set."""
    if data.classes:
        one_of("picture", picture, CLASS_PICTURES)
        return draw_classes_on(data, plan, picture, ax, report, terms)
    return draw_sweep(sweep_for(data, plan, picture), picture, ax, report, terms)


def sweep_for(data: Dataset, plan: Plan, picture: str) -> Sweep:
    """The curves that a picture shows. Errors: DecalError, where it needs what was not given."""
    one_of("picture", picture, PICTURES)
    if picture == "grouping" and all(model.rows.features is None for model in data.models):
        raise DecalError("grouping shows how rows of equal scores differ", "give features=")
    if picture == "waterfall" and plan.task is None:
        raise DecalError("waterfall shows the gains of a decision", "give threshold=, utility=, costs or odds=")
    if picture not in FROM_FEATURES:
        models = tuple(replace(model, rows=replace(model.rows, features=None)) for model in data.models)
        data = replace(data, models=models, features=None)
    if picture == "reliability":
        plan = replace(plan, intervals=False)
    return swept(data, plan, Grid(parse_thresholds(SWEEP_THRESHOLDS)))


def curves_of_models(data: Dataset, plan: Plan) -> Sweep:
    """The curves of two models on all rows."""
    alone = tuple(replace(each, rows=replace(each.rows, groups={}, features=None)) for each in data.models)
    return swept(replace(data, models=alone), plan, Grid(parse_thresholds(SWEEP_THRESHOLDS)))


def draw_varied(sweep: VariedSweep, picture: str, ax: Axes | None = None, report: int = 0) -> Axes:
    """A picture of a sweep in which a number of the task varies."""
    of_classes = sweep.reports[0].table is not None
    one_of("picture", picture, task_pictures(sweep.series, of_classes, ("all",)))
    _check_report(report, len(sweep.reports))
    return draw_tasks_on(ax, sweep, picture, report)


def _check_report(report: int, count: int) -> None:
    if not 0 <= report < count:
        raise DecalError(f"report={report} is none of the {count} reports", "they count from 0")


def draw_sweep(
    sweep: Sweep, picture: str, ax: Axes | None = None, report: int = 0, terms: StatedTerms | None = None
) -> Axes:
    """A picture of curves that are computed already.

    report: which model and group, where a picture shows one. terms: of the amounts in it.
    """
    one_of("picture", picture, PICTURES)
    _check_report(report, len(sweep.reports))
    axes: Axes = draw_on(sweep, picture, ax, report, terms or StatedTerms())
    return axes
