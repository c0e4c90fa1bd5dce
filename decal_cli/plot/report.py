"""The page of a report: what is measured, advised and drawn for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from decal_cli.analysis.compare import Comparison, compare
from decal_cli.analysis.evaluate import Evaluation, Plan, Progress, evaluate
from decal_cli.analysis.recommend import Preferences, evidence_choices, recommend
from decal_cli.analysis.sweep import swept
from decal_cli.curves import Grid, parse_thresholds
from decal_cli.data import Dataset
from decal_cli.declarations.defaults import SWEEP_THRESHOLDS
from decal_cli.plot.page import can_draw, draw_panels
from decal_cli.render.results.page import Drawing, ReportPage
from decal_cli.render.terms import Terms

MAX_PICTURED = 8
"""Models and groups that have pictures of their own; of more, only the models have them."""


def planned_for(dataset: Dataset, plan: Plan) -> Plan:
    """The plan of a report: every metric of these rows. Errors: DecalError, for a task that it cannot draw."""
    several = bool(dataset.classes)
    task = plan.task if several else plan.two_actions("report")
    return replace(plan, task=task, choices=evidence_choices(several, every=True))


def report_page(
    dataset: Dataset,
    plan: Plan,
    preferences: Preferences,
    progress: Progress = lambda text: None,
    terms: Terms | None = None,
) -> ReportPage:
    """Everything on the page; without a task no advice, without matplotlib no pictures."""
    several = bool(dataset.classes)
    decided = plan.decision_for(dataset.classes) if several else plan.task
    recommendation = None
    if decided is not None:
        recommendation = recommend(dataset, plan, preferences, progress, regimes=not several)
    evaluation = evaluate(dataset, plan, progress) if recommendation is None else recommendation.evaluation
    comparison = _comparison(dataset, plan, progress)
    if several:
        note = "pictures are of scores of two classes, so there are none here"
        return ReportPage(evaluation, recommendation, (), comparison, (note,), terms)
    if not can_draw():
        note = "there are no pictures: matplotlib is not installed (pip install 'decal[plot]')"
        return ReportPage(evaluation, recommendation, (), comparison, (note,), terms)
    pictured, notes = dataset, []
    if len(evaluation.reports) > MAX_PICTURED:
        models = tuple(replace(model, rows=replace(model.rows, groups={})) for model in dataset.models)
        pictured = replace(dataset, models=models[:MAX_PICTURED])
        notes.append("pictures of groups are not drawn: there are too many for one page; decal sweep --plot draws them")
    drawings = tuple(_drawings(pictured, plan, evaluation, terms or Terms(), progress))
    return ReportPage(evaluation, recommendation, drawings, comparison, notes, terms)


def _drawings(
    dataset: Dataset, plan: Plan, evaluation: Evaluation, terms: Terms, progress: Progress
) -> Iterator[Drawing]:
    curves = swept(dataset, plan, Grid(parse_thresholds(SWEEP_THRESHOLDS), None), progress)
    progress("pictures")
    kinds = ["brier", "decision", "reliability"]
    if any(report.features for report in evaluation.reports):
        kinds.append("grouping")
    if plan.task is not None:
        kinds.append("waterfall")
    for panel in draw_panels(curves, tuple(kinds), terms):
        report = None if panel.number is None else curves.reports[panel.number]
        model, group = (None, None) if report is None else (report.model, report.group)
        yield Drawing(panel.picture, model, group, panel.svg)


def _comparison(dataset: Dataset, plan: Plan, progress: Progress) -> Comparison | None:
    """Of two models that score the same rows."""
    if len(dataset.models) != 2:
        return None
    first, second = (model.rows for model in dataset.models)
    if len(first) != len(second) or not np.array_equal(first.label, second.label):
        return None
    alone = tuple(replace(model, rows=replace(model.rows, groups={})) for model in dataset.models)
    return compare(replace(dataset, models=alone), replace(plan, choices=()), progress, splicing=False)
