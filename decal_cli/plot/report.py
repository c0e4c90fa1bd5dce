"""The page of a report: what is measured, advised and drawn for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from decal_cli.analysis.compare import Comparison, compare
from decal_cli.analysis.described import ActionCounts
from decal_cli.analysis.evaluate import Evaluation, Plan, Progress, Report, evaluate
from decal_cli.analysis.positions import Positions, advised_way, positions_of, thresholds_for
from decal_cli.analysis.recommend import Elsewhere, Preferences, evidence_choices, recommend
from decal_cli.analysis.sweep import (
    WORTH,
    RiskCoverage,
    Sweep,
    VariedSweep,
    capacities_around,
    capacity_series,
    risk_coverage,
    sweep_tasks,
    swept,
)
from decal_cli.curves import Grid, parse_thresholds
from decal_cli.data import Dataset
from decal_cli.declarations.defaults import SWEEP_THRESHOLDS
from decal_cli.errors import DecalError
from decal_cli.hints import Hint, Verb
from decal_cli.metrics import Inputs, parse
from decal_cli.plot.captions import TITLES, caption, finding
from decal_cli.plot.classes import class_reliability, confusion
from decal_cli.plot.classes import risk_coverage as draw_risks
from decal_cli.plot.names import drawable
from decal_cli.plot.page import Alone, Panelled, can_draw, draw_panels, drawn_alone, on_axes
from decal_cli.plot.panels import worth
from decal_cli.plot.varied import panels_of
from decal_cli.plot.waterfall import waterfall
from decal_cli.render.blocks import Picture
from decal_cli.render.results.page import Drawing, ReportPage, in_words, scale_of
from decal_cli.render.results.shortened import MAX_GROUPS
from decal_cli.render.terms import StatedTerms
from decal_cli.tables.classes import ClassTable
from decal_cli.task import CAPACITY, RowTask, Varied, by_factor

CLASS_PICTURES = ("waterfall", "reliability", "confusion", "risk-coverage")
"""Pictures of rows of several classes."""
MAX_PICTURED = 8
"""Models and groups that have pictures of their own; of more, only the models have them."""


def planned_for(dataset: Dataset, plan: Plan) -> Plan:
    """The plan of a report: every metric of these rows. Errors: DecalError, for a task of other rows."""
    plan = plan.for_rows(dataset).simplest
    plan.decision_of(dataset.classes)
    return replace(plan, choices=evidence_choices(bool(dataset.classes), every=True))


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
    recommendation, elsewhere = None, dict[Report, Elsewhere]()
    if plan.decision_of(dataset.classes) is not None:
        recommendation = recommend(
            dataset, plan, preferences, progress, regimes=plan.binary is not None, then=elsewhere.__setitem__
        )
    evaluation = evaluate(dataset, plan, progress) if recommendation is None else recommendation.evaluation
    comparison = _comparison(dataset, plan, progress)
    terms = terms or StatedTerms()
    pictured, notes = dataset, []
    if len(evaluation.reports) > MAX_PICTURED:
        models = tuple(replace(model, rows=replace(model.rows, groups={})) for model in dataset.models)
        pictured = replace(dataset, models=models[:MAX_PICTURED])
        notes.append(
            "pictures and sliders are of whole models: there are too many groups for one page; decal sweep "
            f"{Hint('plot').words} draws them"
        )
    curves, positions = None, {}
    if not several:
        grid = Grid(parse_thresholds(SWEEP_THRESHOLDS), None)
        curves = swept(replace(pictured, capacity=None), replace(plan, decision=plan.task), grid, progress)
        positions = _positions(curves, plan, elsewhere, progress)
    drawings: list[Drawing] = []
    if can_draw():
        progress("pictures")
        shown = _Shown(pictured, plan, evaluation, terms, progress)
        found = (*(_class_drawings(shown) if curves is None else _drawings(shown, curves, positions)),)
        drawings = [_captioned(each, evaluation) for each in (*found, *_capacity_drawings(shown))]
    else:
        notes = ["there are no pictures: matplotlib is not installed (pip install 'decal[plot]')"]
    return ReportPage(evaluation, recommendation, drawings, comparison, notes, terms, positions)


def _positions(
    curves: Sweep, plan: Plan, elsewhere: Mapping[Report, Elsewhere], progress: Progress
) -> dict[tuple[str, str | None], Positions]:
    """Sums at other thresholds, of each model and group; none unless the decision is between two actions."""
    task, reports = plan.binary, curves.reports
    if task is None:
        return {}
    own = (task.threshold, task.decision_threshold)
    work = max(len(each.table) for each in reports) * len(reports)
    at = thresholds_for(own, min(each.table.base_rate for each in reports), work)
    advice_on = {(report.model, report.group): there for report, there in elsewhere.items()}
    found = {}
    for each in reports:
        progress(f"{each.model}{'' if each.group is None else ' in ' + each.group}: advice at other thresholds")
        sure = each.table.design.confidence(plan.confidence) if plan.intervals else None
        one = positions_of(each.table, each.probed, task, at, sure, plan.seed)
        advice = advice_on[each.model, each.group].along(task, at.tolist())
        found[each.model, each.group] = replace(one, advice=tuple(map(advised_way, advice)))
    return found


class _Shown(NamedTuple):
    """What pictures are drawn of."""

    dataset: Dataset
    plan: Plan
    evaluation: Evaluation
    terms: StatedTerms
    progress: Progress


class _Drawn(NamedTuple):
    """A picture of one model and group, or of all of them; kind: a key of TITLES."""

    kind: str
    model: str | None
    group: str | None
    drawn: Alone


def _captioned(one: _Drawn, evaluation: Evaluation) -> Drawing:
    """The picture with the words beside it; those that a script marks its place in have a frame."""
    reports = [each for each in evaluation.reports if one.model is None or (each.model, each.group) == one[1:3]]
    frame = one.drawn.frame if one.kind in ("brier", "worth") else ()
    title = TITLES[one.kind]
    if one.model is not None and len(evaluation.reports) > 1:
        title += f", {one.model}" if one.group is None else f", {one.model}, {one.group}"
    return Drawing(
        *one[:3],
        Picture(
            caption(one.kind, evaluation),
            title,
            svg=one.drawn.svg,
            finding=finding(one.kind, reports),
            frame=frame,
            kind=one.kind,
        ),
    )


def _drawings(shown: _Shown, curves: Sweep, positions: Mapping[tuple[str, str | None], Positions]) -> Iterator[_Drawn]:
    """Of scores of two classes, whether rows share their utilities or each has its own."""
    plan, evaluation, terms = shown.plan, shown.evaluation, shown.terms
    kinds = ["reliability", *(["grouping"] if any(report.features for report in evaluation.reports) else [])]
    if not plan.by_row:
        kinds += ["brier", *(["waterfall"] if plan.task is not None else [])]
    for panel in draw_panels(curves, tuple(kinds), terms):
        report = None if panel.number is None else curves.reports[panel.number]
        model, group = (None, None) if report is None else (report.model, report.group)
        yield _Drawn(panel.picture, model, group, panel.drawn)
    if positions and plan.task is not None:
        scale = scale_of(evaluation.reports, terms)
        unit, measured = plan.task.u_delta * scale.factor, f"worth {in_words(scale)}"
        each = list(positions.values())
        yield _Drawn("worth", None, None, drawn_alone(lambda axes: worth(axes, curves, each, unit, measured)))
    for number, of in enumerate(evaluation.reports):
        if of.by_action is not None:
            yield _Drawn("confusion", of.model, of.group, drawn_alone(_label_panel(of, of.by_action)))
        if plan.by_row:
            panel_of = _waterfall_panel(of, _name(of), number, terms)
            yield _Drawn("waterfall", of.model, of.group, drawn_alone(panel_of))
    if isinstance(plan.decision, RowTask):
        two = evaluation.by_row is None or evaluation.by_row.to_act_or_not
        series = by_factor(None, plan.decision, two)
        sweep = sweep_tasks(replace(shown.dataset, capacity=None), plan, series, shown.progress)
        yield _Drawn("factor", None, None, drawn_alone(_worth_panel(sweep, shown)))


def _worth_panel(sweep: VariedSweep, shown: _Shown) -> Panelled:
    scale = scale_of(shown.evaluation.reports, shown.terms)
    return panels_of(sweep, "utility", scale.factor, f"expected utility {in_words(scale)}")[0]


def _name(report: Report) -> str:
    """Model and group, as a picture shows them."""
    return drawable(report.model if report.group is None else f"{report.model}, {report.group}", "svg")


def _waterfall_panel(report: Report, name: str, number: int, terms: StatedTerms) -> Panelled:
    return lambda axes: waterfall(axes, name, number, report.results, "", terms)


def _capacity_drawings(shown: _Shown) -> Iterator[_Drawn]:
    """Where so many rows can be acted on only: what other numbers of places are worth, and whom they find."""
    dataset, plan, progress = shown.dataset, shown.plan, shown.progress
    if dataset.capacity is None:
        return
    varied = Varied(CAPACITY, capacities_around(dataset, dataset.capacity))
    sweep = sweep_tasks(dataset, plan, capacity_series(dataset, plan, varied, dataset.capacity.text), progress)
    for report, panel in zip(sweep.reports, panels_of(sweep, "actions"), strict=True):
        yield _Drawn("places", report.model, report.group, drawn_alone(panel))
    if plan.decision is not None:
        yield _Drawn("capacity", None, None, drawn_alone(_worth_panel(sweep, shown)))


def _label_panel(report: Report, done: ActionCounts) -> Panelled:
    return lambda axes: confusion(axes, done, ("label 0", "label 1"), _name(report))


def _class_drawings(shown: _Shown) -> Iterator[_Drawn]:
    """Of rows of several classes: what can be won, each class's reliability, actions by class, errors by coverage."""
    dataset, plan, terms = shown.dataset, shown.plan, shown.terms
    reports = {(report.model, report.group): report for report in shown.evaluation.reports}
    risks: list[tuple[str, RiskCoverage]] = []
    for model in dataset.models:
        for group, rows in model.rows.by_group():
            report, number = reports[model.name, group], len(risks)
            name = _name(report)
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
    if decided and plan.decision_of(dataset.classes) is None:
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
