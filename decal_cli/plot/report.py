"""The page of a report: what is measured, advised and drawn for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from decal_cli.analysis.by_class import ActionCounts
from decal_cli.analysis.capacities import capacities_around, capacity_series, sweep_capacities
from decal_cli.analysis.compare import Comparison, compare
from decal_cli.analysis.evaluate import Evaluation, Plan, Progress, Report, evaluate
from decal_cli.analysis.recommend import Preferences, evidence_choices, recommend
from decal_cli.analysis.sweep import swept
from decal_cli.analysis.varied import WORTH, RiskCoverage, risk_coverage, sweep_tasks
from decal_cli.curves import Grid, parse_thresholds
from decal_cli.data import Dataset
from decal_cli.declarations.defaults import SWEEP_THRESHOLDS
from decal_cli.errors import DecalError
from decal_cli.hints import Hint, Verb
from decal_cli.metrics import Inputs, parse
from decal_cli.plot.captions import TITLES, caption
from decal_cli.plot.classes import class_reliability, confusion
from decal_cli.plot.classes import risk_coverage as draw_risks
from decal_cli.plot.names import drawable
from decal_cli.plot.page import Panelled, can_draw, draw_panels, drawn_alone, on_axes
from decal_cli.plot.varied import panels_of
from decal_cli.plot.waterfall import waterfall
from decal_cli.render.blocks import Picture
from decal_cli.render.results.page import Drawing, ReportPage
from decal_cli.render.results.shortened import MAX_GROUPS
from decal_cli.render.terms import StatedTerms
from decal_cli.tables.classes import ClassTable
from decal_cli.task import CAPACITY, Varied, by_factor

CLASS_PICTURES = ("waterfall", "reliability", "confusion", "risk-coverage")
"""Pictures of rows of several classes."""
MAX_PICTURED = 8
"""Models and groups that have pictures of their own; of more, only the models have them."""


def planned_for(dataset: Dataset, plan: Plan) -> Plan:
    """The plan of a report: every metric of these rows. Errors: DecalError, for a task of other rows."""
    plan = plan.for_rows(dataset)
    plan.decision_for(dataset.classes)
    task = plan.binary or plan.task
    return replace(plan, task=task, choices=evidence_choices(bool(dataset.classes), every=True))


def said_before(dataset: Dataset) -> str:
    """What a report of these rows says before it begins: that many groups take long; '' of few."""
    groups = sum(len(np.unique(names)) for names in dataset.models[0].rows.groups.values())
    if groups <= MAX_GROUPS:
        return ""
    return (
        f"{groups:,} groups: a report has every metric and the advice of each, which may take many minutes;"
        f" {Verb('evaluate').words} with -m has chosen metrics in seconds"
    )


def report_page(
    dataset: Dataset,
    plan: Plan,
    preferences: Preferences,
    progress: Progress = lambda text: None,
    terms: StatedTerms | None = None,
) -> ReportPage:
    """Everything on the page; without a task no advice, without matplotlib no pictures."""
    several = bool(dataset.classes)
    recommendation = None
    if plan.decision_of(dataset.classes) is not None:
        recommendation = recommend(dataset, plan, preferences, progress, regimes=plan.binary is not None)
    evaluation = evaluate(dataset, plan, progress) if recommendation is None else recommendation.evaluation
    comparison = _comparison(dataset, plan, progress)
    if not can_draw():
        note = "there are no pictures: matplotlib is not installed (pip install 'decal[plot]')"
        return ReportPage(evaluation, recommendation, (), comparison, (note,), terms)
    pictured, notes = dataset, []
    if len(evaluation.reports) > MAX_PICTURED:
        models = tuple(replace(model, rows=replace(model.rows, groups={})) for model in dataset.models)
        pictured = replace(dataset, models=models[:MAX_PICTURED])
        notes.append(
            "pictures of groups are not drawn: there are too many for one page; decal sweep "
            f"{Hint('plot').words} draws them"
        )
    drawn = _class_drawings if several else _row_drawings if plan.row_task is not None else _drawings
    pictures = (*drawn(pictured, plan, evaluation, terms or StatedTerms(), progress),)
    pictures += (*_capacity_drawings(pictured, plan, progress),)
    drawings = [_captioned(each, evaluation) for each in pictures]
    return ReportPage(evaluation, recommendation, drawings, comparison, notes, terms)


class _Drawn(NamedTuple):
    """A picture of one model and group, or of all of them; kind: a key of TITLES."""

    kind: str
    model: str | None
    group: str | None
    svg: bytes


def _captioned(drawn: _Drawn, evaluation: Evaluation) -> Drawing:
    """The picture with the words beside it."""
    features = any(report.features for report in evaluation.reports)
    words = caption(drawn.kind, evaluation.plan.task, features, evaluation.plan.confidence)
    return Drawing(drawn.kind, drawn.model, drawn.group, Picture(words, TITLES[drawn.kind], svg=drawn.svg))


def _drawings(
    dataset: Dataset, plan: Plan, evaluation: Evaluation, terms: StatedTerms, progress: Progress
) -> Iterator[_Drawn]:
    kinds = ["brier", "decision", *_of_scores(evaluation), *(["waterfall"] if plan.task is not None else [])]
    yield from _threshold_drawings(dataset, plan, kinds, terms, progress)
    for each in evaluation.reports:
        if each.by_action is not None:
            yield _Drawn("confusion", each.model, each.group, drawn_alone(_label_panel(each, each.by_action)))


def _of_scores(evaluation: Evaluation) -> list[str]:
    """Pictures that need no decision."""
    return ["reliability", *(["grouping"] if any(report.features for report in evaluation.reports) else [])]


def _threshold_drawings(
    dataset: Dataset, plan: Plan, kinds: Sequence[str], terms: StatedTerms, progress: Progress
) -> Iterator[_Drawn]:
    """Pictures of a sweep of t*, which decides on every row for itself."""
    grid = Grid(parse_thresholds(SWEEP_THRESHOLDS), None)
    curves = swept(replace(dataset, capacity=None), plan, grid, progress)
    progress("pictures")
    for panel in draw_panels(curves, tuple(kinds), terms):
        report = None if panel.number is None else curves.reports[panel.number]
        model, group = (None, None) if report is None else (report.model, report.group)
        yield _Drawn(panel.picture, model, group, panel.svg)


def _row_drawings(
    dataset: Dataset, plan: Plan, evaluation: Evaluation, terms: StatedTerms, progress: Progress
) -> Iterator[_Drawn]:
    """Where every row has utilities of its own: what can be won, and what it is worth if false positives cost more."""
    assert plan.row_task is not None  # asked where there is one
    yield from _threshold_drawings(dataset, replace(plan, row_task=None), _of_scores(evaluation), terms, progress)
    for number, report in enumerate(evaluation.reports):
        name = drawable(report.model if report.group is None else f"{report.model}, {report.group}", "svg")
        yield _Drawn(
            "waterfall", report.model, report.group, drawn_alone(_waterfall_panel(report, name, number, terms))
        )
    two = evaluation.by_row is None or evaluation.by_row.to_act_or_not
    sweep = sweep_tasks(replace(dataset, capacity=None), plan, by_factor(None, plan.row_task, two), progress)
    yield _Drawn("factor", None, None, drawn_alone(panels_of(sweep, "utility")[0]))


def _waterfall_panel(report: Report, name: str, number: int, terms: StatedTerms) -> Panelled:
    return lambda axes: waterfall(axes, name, number, report.results, "", terms)


def _capacity_drawings(dataset: Dataset, plan: Plan, progress: Progress) -> Iterator[_Drawn]:
    """Where so many rows can be acted on only: what other numbers of places are worth, and whom they find."""
    if dataset.capacity is None:
        return
    varied = Varied(CAPACITY, capacities_around(dataset, dataset.capacity))
    sweep = sweep_capacities(dataset, plan, capacity_series(dataset, plan, varied, dataset.capacity.text), progress)
    for report, panel in zip(sweep.reports, panels_of(sweep, "actions"), strict=True):
        yield _Drawn("places", report.model, report.group, drawn_alone(panel))
    if plan.decides:
        yield _Drawn("capacity", None, None, drawn_alone(panels_of(sweep, "utility")[0]))


def _label_panel(report: Report, done: ActionCounts) -> Panelled:
    name = drawable(report.model if report.group is None else f"{report.model}, {report.group}", "svg")
    return lambda axes: confusion(axes, done, ("label 0", "label 1"), name)


def _class_drawings(
    dataset: Dataset, plan: Plan, evaluation: Evaluation, terms: StatedTerms, progress: Progress
) -> Iterator[_Drawn]:
    """Of rows of several classes: what can be won, each class's reliability, actions by class, errors by coverage."""
    progress("pictures")
    reports = {(report.model, report.group): report for report in evaluation.reports}
    risks: list[tuple[str, RiskCoverage]] = []
    for model in dataset.models:
        for group, rows in model.rows.by_group():
            report, number = reports[model.name, group], len(risks)
            name = drawable(model.name if group is None else f"{model.name}, {group}", "svg")
            inputs = Inputs(rows, None, plan.seed)
            risks.append((name, risk_coverage(rows.class_table, inputs, plan.confidence if plan.intervals else None)))
            for kind, panel in _class_panels(report, rows.class_table, name, number, terms):
                yield _Drawn(kind, model.name, group, drawn_alone(panel))
    yield _Drawn("risk-coverage", None, None, drawn_alone(lambda axes: draw_risks(axes, risks)))


def draw_classes_on(
    dataset: Dataset, plan: Plan, picture: str, axes: Any = None, number: int = 0, terms: StatedTerms | None = None
) -> Any:
    """A picture of CLASS_PICTURES in axes: those that are given, else those of a new figure. Returns the axes.

    number: which model and group, where the picture shows one. Errors: DecalError, where there is no such report.
    """
    decided = picture in ("waterfall", "confusion")
    if decided and plan.decision_for(dataset.classes) is None:
        raise DecalError(f"{picture} shows what is decided", f"give {Hint('abstain')} or {Hint('utility')}")
    choices = tuple(map(parse, WORTH)) if picture == "waterfall" else ()
    evaluation = evaluate(dataset, replace(plan, choices=choices))
    tables = [rows.class_table for model in dataset.models for _, rows in model.rows.by_group()]
    if not 0 <= number < len(tables):
        raise DecalError(f"report={number} is none of the {len(tables)} reports", "they count from 0")
    names = [drawable(", ".join(filter(None, (each.model, each.group))), "png") for each in evaluation.reports]
    if picture == "risk-coverage":
        sure = plan.confidence if plan.intervals else None
        risks = [risk_coverage(c, Inputs.of(c), sure) for c in tables]
        return on_axes(axes, lambda place: draw_risks(place, list(zip(names, risks, strict=True))))
    kind = "class-reliability" if picture == "reliability" else picture
    panels = dict(
        _class_panels(evaluation.reports[number], tables[number], names[number], number, terms or StatedTerms())
    )
    return on_axes(axes, panels[kind])


def _class_panels(
    report: Report, c: ClassTable, name: str, number: int, terms: StatedTerms
) -> Iterator[tuple[str, Panelled]]:
    done = None if report.by_class is None else report.by_class.decisions
    if done is not None:
        yield "waterfall", _waterfall_panel(report, name, number, terms)
        yield "confusion", lambda axes: confusion(axes, done, c.classes, name)
    yield "class-reliability", lambda axes: class_reliability(axes, c, name)


def _comparison(dataset: Dataset, plan: Plan, progress: Progress) -> Comparison | None:
    """Of two models that score the same rows."""
    if len(dataset.models) != 2 or dataset.apart:
        return None
    first, second = (model.rows for model in dataset.models)
    if len(first) != len(second) or not np.array_equal(first.label, second.label):
        return None
    alone = tuple(replace(model, rows=replace(model.rows, groups={})) for model in dataset.models)
    return compare(replace(dataset, models=alone), replace(plan, choices=()), progress, splicing=False)
