"""A sweep over capacities: what acting on the highest scores is worth, and whom it finds, as more rows have a place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from decal_cli.analysis.by_row import by_row_of
from decal_cli.analysis.clusters import cluster_notes, clusters_of
from decal_cli.analysis.evaluate import Evaluation, Plan, Progress, with_lists
from decal_cli.analysis.varied import VariedReport, VariedSweep, course_of
from decal_cli.data import Dataset, Predictions
from decal_cli.data.capacity import parse_capacity
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.metrics import Inputs, Result, measure, parse
from decal_cli.tables.listed import Capacity
from decal_cli.task import CAPACITY, TaskSeries, Varied

WORTH = ("utility_at_capacity", "capacity_cost", "shadow_price")
"""Metrics that need a task."""
FOUND = ("capture", "precision_at_capacity", "lift", "capacity_threshold")
OF_ONE_ROW = ("shadow_price", "least_gain")
WORTH_BY_ROW = (*WORTH, "eu_score_ranking", "eu_amount_ranking")
"""The same where every row has utilities of its own."""
FOUND_BY_ROW = ("capture", "value_capture", "precision_at_capacity", "lift", "least_gain")
_OPTION = f"{Hint('capacity_range')}"


def capacity_series(dataset: Dataset, plan: Plan, varied: Varied, own: str | None) -> TaskSeries:
    """The capacities that are swept over, all shares or all counts; own: the user's, which is among them.

    Errors: DecalError.
    """
    kind, steps = _steps(varied)
    mine = None if own is None else parse_capacity(own)
    if mine is not None and (mine.among is None) != (kind == "count"):
        raise DecalError(
            f"{Hint('capacity', own)} is a {'count' if mine.among is None else 'share'}, and {_OPTION} is not",
            "give both as shares, or both as counts",
        )
    at = None if mine is None else mine.places / (mine.among or 1.0)
    values = tuple(sorted({*steps, *(() if at is None else (at,))}))
    each = f", for each value of {dataset.columns['per']}" if "per" in dataset.columns else ""
    title = f"capacity ({kind} of the rows{each})"
    task = plan.decision_of(dataset.classes)
    tasks = () if task is None else (task,) * len(values)
    return TaskSeries(CAPACITY, title, values, tasks, at, counted=kind == "count")


N_AROUND, AROUND = 13, 3.0
"""Capacities of a picture around the user's, from none to so many times as many."""


def capacities_around(dataset: Dataset, capacity: Capacity) -> tuple[float, ...]:
    """Capacities below and above the user's, as far as there are rows."""
    most = float(min(len(model.rows) for model in dataset.models)) if capacity.among is None else 1.0
    own = capacity.places / (capacity.among or 1.0)
    steps = (own * AROUND * k / (N_AROUND - 1) for k in range(1, N_AROUND))
    whole = (float(round(step)) if capacity.among is None else step for step in steps)
    return tuple(sorted({min(step, most) for step in whole if step > 0}))


def _steps(varied: Varied) -> tuple[Literal["share", "count"], Sequence[float]]:
    low, high = varied.values[0], varied.values[-1]
    if low <= 0:
        raise DecalError(f"{_OPTION}: {low:g} is not positive", "give for example 0.01:0.2 or 50:500")
    if low >= 1:
        # Values between two ends are evenly spaced, and rows are whole.
        return "count", [float(round(value)) for value in varied.values]
    if high > 1:
        raise DecalError(
            f"{_OPTION}: {low:g} is a share of the rows, and {high:g} is a count",
            "give shares up to 1, or counts from 1",
        )
    return "share", varied.values


def largest(varied: Varied) -> str:
    """The largest capacity, as --capacity takes it. Errors: DecalError."""
    kind, steps = _steps(varied)
    return "1/1" if kind == "share" and steps[-1] == 1 else f"{steps[-1]:.15g}"


def sweep_capacities(
    dataset: Dataset, plan: Plan, series: TaskSeries, progress: Progress = lambda text: None
) -> VariedSweep:
    """Every model at every capacity, on all rows and on every group."""
    reports = []
    for model in dataset.models:
        progress(model.name)
        reports += _reports(replace(dataset, models=(model,)), model, plan, series)
    notes = dataset.all_notes
    if dataset.clusters is not None:
        notes += (*cluster_notes({each.name: (len(each.rows), clusters_of(each.rows)) for each in dataset.models}),)
    source = dataset.inputs, dataset.columns, dataset.guessed, notes
    by_row = None if plan.row_task is None else by_row_of(dataset, plan.row_task)
    decision = plan.decision_for(dataset.classes)
    head = Evaluation(plan, *source, (), decision, dataset.population, by_row=by_row)
    return VariedSweep(head, series, tuple(reports))


def _families(dataset: Dataset, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What places are worth, and whom they find: of several classes there is no label 1 to be found."""
    if dataset.classes:
        return WORTH, ("least_gain",)
    return (WORTH, FOUND) if plan.row_task is None else (WORTH_BY_ROW, FOUND_BY_ROW)


def _reports(dataset: Dataset, model: Predictions, plan: Plan, series: TaskSeries) -> list[VariedReport]:
    """Of one model, on all rows and on every group."""
    worth, found = _families(dataset, plan)
    decision = plan.decision_for(dataset.classes)
    names = (*worth, *found) if plan.decides else found
    results: dict[str | None, dict[str, list[Result]]] = {}
    sizes: dict[str | None, int] = {}
    for value in series.values:
        capacity = Capacity(f"{value:g}", value, None if series.counted else 1.0)
        rows = with_lists(replace(dataset, capacity=capacity), plan).models[0].rows
        for group, part in rows.by_group():
            inputs = Inputs(part, plan.task, plan.seed, decision, plan.row_task)
            sure = part.sure(plan.confidence) if plan.intervals else None
            sizes[group] = len(part)
            of_group = results.setdefault(group, {name: [] for name in names})
            for name in names:
                of_group[name].append(measure(parse(name), inputs, sure))
    reports = []
    for group, by_name in results.items():
        of_worth, of_found = (
            {
                name: replace(course_of(name, by_name[name]), of_one_row=name in OF_ONE_ROW)
                for name in family
                if name in by_name
            }
            for family in (worth, found)
        )
        reports.append(VariedReport(model.name, group, sizes[group], model.dropped, of_worth, of_found, None, None))
    return reports
