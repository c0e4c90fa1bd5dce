"""The page of a report: what is measured, advised and drawn, what to see in each picture, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from decal_cli.analysis.compare import Comparison, compare
from decal_cli.analysis.described import ActionCounts
from decal_cli.analysis.evaluate import Evaluation, Plan, Progress, Report, evaluate
from decal_cli.analysis.recommend import Elsewhere, Preferences, evidence_choices, recommend
from decal_cli.analysis.sweep import (
    WORTH,
    Positions,
    Sweep,
    VariedSweep,
    advised_way,
    capacities_around,
    capacity_series,
    positions_of,
    risk_coverage,
    sweep_tasks,
    swept,
    thresholds_for,
)
from decal_cli.curves.grid import Grid, parse_thresholds
from decal_cli.data import Dataset
from decal_cli.declarations.defaults import SWEEP_THRESHOLDS
from decal_cli.errors import DecalError
from decal_cli.hints import Hint, Verb
from decal_cli.learn.probe import Probed
from decal_cli.metrics import Inputs, parse
from decal_cli.numbers import plain
from decal_cli.plot import panels
from decal_cli.plot.page import Draw, can_draw, drawn_alone, on_axes
from decal_cli.plot.panels import MAX_DASHED
from decal_cli.plot.style import MAX_BANDS, drawable, with_drawable_names
from decal_cli.plot.sweeps import panels_of, shares_of, utility_panel
from decal_cli.render.blocks import Lines, Picture
from decal_cli.render.results.page import ReportPage, scale_of
from decal_cli.render.results.source import MAX_GROUPS
from decal_cli.render.terms import StatedTerms
from decal_cli.task import CAPACITY, RowTask, Varied, by_factor

TITLES = {
    "places": "Which rows have a place",
    "capacity": "What decisions are worth with so many places",
    "factor": "What decisions are worth if a false positive costs more or less",
    "waterfall": "What can be won",
    "brier": "What deciding costs at every threshold",
    "worth": "What ways of acting win at every threshold",
    "reliability": "Reliability",
    "grouping": "What equal scores hide",
    "confusion": "What is done for each class",
    "class-reliability": "Reliability of each class",
    "risk-coverage": "Errors among the surest rows",
}
"""The titles of the pictures, in the order in which the page shows them."""
SURE = "Bands are {level} intervals."
_YOURS = "The dashed vertical line is your capacity."
WORDS: dict[str, str] = {
    "places": "Capture is the share of the rows of label 1 that have a place, precision the share of label 1 among the "
    f"rows with a place.{{by_row}} {SURE} {_YOURS}",
    "capacity": "Higher is better. The solid line is what acting on the rows with a place is worth; dashed, without a "
    f"limit. Its slope is what one more place is worth.{{by_row}} {SURE} {_YOURS}",
    "factor": "Higher is better. To the right a false positive costs so many times as much as it does now in every "
    "row. The dotted line is the recalibrated score on held-out rows, the grey one the better constant decision. "
    f"{SURE} The dashed vertical line is what it costs now.",
    "confusion": "Each cell: rows for which the action was taken, by their class, and below what they lose per 1,000 "
    "rows of all against the best action for the class. The darker a cell, the more it loses.",
    "class-reliability": "Each line is how often a class occurs where it has this probability, in bins of equally many "
    "rows; the thick one how often the most probable class is right. On the dotted diagonal the probability is right. "
    "Where there are many classes, the least calibrated have a colour.",
    "risk-coverage": "The share of errors among the rows that the model is surest of, as more and more rows are "
    f"accepted. Lower is better. {SURE} AURC is the mean height of the line.",
    "waterfall": "Further right is better. The marker is what acting on the score as it is is worth; the first bar is "
    "what recalibration adds on held-out rows; {last}. Thin lines are {level} intervals: a bar whose interval begins "
    "left of the bar's start may win nothing.",
    "reliability": "The line is how often label 1 occurs at each score. On the dotted diagonal the score is right; the "
    "fit of a calibrated model lies in the grey band {level} of the time.",
    "grouping": "Each grey dot is a group of rows with nearly equal scores and similar features. Dots far above and "
    "below the dashed line show rows that differ although their scores agree: only post-training on the features can "
    "tell them apart. Some spread is chance.",
}
"""How to read a picture; level: the confidence; by_row: what else is drawn where rows have utilities of their own."""
BY_ROW = {
    "places": " Capture of value counts each row by what missing it costs.",
    "capacity": " The other lines give the same places to the highest scores, and to the largest costs of a miss.",
}


def caption(kind: str, evaluation: Evaluation) -> str:
    """How to read a picture of this kind, in two to five sentences; it names what is drawn and nothing else."""
    features = any(report.features for report in evaluation.reports)
    last = (
        "the last bar is what using the features adds"
        if features
        else "the dotted bar is only an upper limit, reached if every label were known: no features were named"
    )
    by_row = BY_ROW.get(kind, "") if evaluation.plan.by_row else ""
    level = f"{100 * evaluation.plan.confidence:g} %"
    words = {"brier": _of_brier, "worth": _of_worth}
    text = words[kind](len(evaluation.reports), features) if kind in words else WORDS[kind]
    crowded = kind in ("capacity", "factor", "risk-coverage") and len(evaluation.reports) > MAX_BANDS
    if crowded or not evaluation.plan.intervals:
        text = text.replace(f" {SURE}", "")
    return " ".join((text.format(level=level, last=last, by_row=by_row), *_thresholds(kind, evaluation)))


def _of_brier(reports: int, features: bool) -> str:
    start = "Lower is better. A solid line is the utility that acting on a score loses at each threshold"
    if reports > MAX_DASHED:
        return f"{start}. Each model and group has a colour."
    start += ", a dashed one what is lost once the score is recalibrated on these rows."
    if reports > 1:
        return f"{start} Each model and group has a colour."
    more = " The other lines also use the features." if features else ""
    return (
        f"{start}{more} The hatched area between both is miscalibration. Where the solid line lies above the dotted "
        f"one, a constant decision loses less. {SURE}"
    )


def _of_worth(reports: int, features: bool) -> str:
    lines = "the solid line is the score as it is, the dashed one the recalibrated score on held-out rows"
    if reports > 1:
        dashed = "" if reports > MAX_DASHED else ", dashed ones recalibrated"
        lines = f"solid lines are scores as they are{dashed}; each model and group has a colour"
    elif features:
        lines += ", the third the score with the features"
    return f"Higher is better: {lines}. Below 0 the better constant decision wins more."


def _thresholds(kind: str, evaluation: Evaluation) -> Lines:
    """What marks the thresholds of the decision."""
    own = evaluation.plan.thresholds
    if not own or kind not in ("brier", "worth", "reliability", "grouping"):
        return
    plural = "s are your thresholds" if len(own) > 1 else " is your threshold"
    yield f"The dashed vertical line{plural}, t* = {', '.join(map(plain, own))}."
    if len(own) == 1 and kind == "reliability":
        yield "In a shaded range recalibration decides otherwise; it ends where the recalibrated score reaches t*."
    if len(own) == 1 and kind == "grouping":
        yield "A thin bar is how far rows of a bin may differ without another decision; filled: they differ more."


FINDINGS = {
    "places": ("capture", "{} of the rows of label 1 have a place"),
    "capacity": ("utility_at_capacity", "with the places there are, a decision is worth {}"),
    "factor": ("expected_utility", "with the costs of now, a decision by the score is worth {}"),
    "waterfall": ("gain_recalibration", "recalibration wins {} per decision"),
    "brier": ("regret", "of what acting on the score loses at your threshold, {} per decision could be won"),
    "worth": ("external_regret", "at your threshold a constant decision is worth {} more per decision than the score"),
    "reliability": ("ece", "scores and frequencies of label 1 differ by {} on average"),
    "grouping": ("grouping_loss", "rows with equal scores differ: trees see a grouping loss of {}, a lower bound"),
    "confusion": ("expected_utility", "a decision is worth {} on average"),
    "class-reliability": ("ece_top", "the largest probability and how often it is right differ by {} on average"),
    "risk-coverage": ("aurc", "the mean share of errors among the surest rows is {}"),
}
"""What a picture comes to: a metric, and a sentence on it."""
MAX_FOUND = 4
"""Models and groups whose finding is told."""


def finding(kind: str, reports: Sequence[Report]) -> str:
    """What a picture comes to, for those who do not see it; of several models and groups, of the first ones; '' where
    no number says it.
    """
    metric, said = FINDINGS[kind]
    found = []
    for report in reports[:MAX_FOUND]:
        if (value := report.value(metric)) is not None:
            found.append(f"{report.name}: {said.format(plain(value))}")
    return f"{'; '.join(found)}." if found else ""


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
    dataset: Dataset, plan: Plan, preferences: Preferences, progress: Progress, terms: StatedTerms
) -> ReportPage:
    """Everything on the page; without a task no advice, without matplotlib no pictures."""
    several = bool(dataset.classes)
    elsewhere: dict[Report, Elsewhere] = {}
    recommendation = recommend(
        dataset, plan, preferences, progress, regimes=plan.binary is not None, then=elsewhere.__setitem__
    )
    evaluation = recommendation.evaluation
    comparison = _comparison(dataset, plan, progress)
    pictured, notes = dataset, []
    if len(evaluation.reports) > MAX_PICTURED:
        pictured = replace(dataset, models=dataset.models[:MAX_PICTURED]).changed(lambda rows: replace(rows, groups={}))
        notes.append(
            "pictures and sliders are of whole models: there are too many groups for one page; decal sweep "
            f"{Hint('plot').words} draws them"
        )
    curves, positions = None, {}
    if not several:
        grid = Grid(parse_thresholds(SWEEP_THRESHOLDS), None)
        curves = swept(replace(pictured, capacity=None), replace(plan, decision=plan.task), grid, progress)
        # Gains at other thresholds are those of random folds.
        positions = {} if dataset.in_time else _positions(curves, plan, elsewhere, progress)
    drawings: list[tuple[Report | None, Picture]] = []
    if can_draw():
        progress("pictures")
        shown = _Shown(pictured, plan, evaluation, terms, progress)
        found = shown.of_classes() if curves is None else shown.of_scores(curves, list(positions.values()))
        drawings = [shown.captioned(*each) for each in chain(found, shown.of_places())]
    else:
        notes = ["there are no pictures: matplotlib is not installed (pip install 'decal[plot]')"]
    if dataset.in_time and plan.binary is not None:
        notes.append("there are no sliders: gains of fits to earlier rows are known at your threshold alone")
    return ReportPage(recommendation, drawings, comparison, notes, terms, positions)


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
    advice_on = {report.place: there for report, there in elsewhere.items()}
    found = {}
    for each in reports:
        progress(f"{each.model}{'' if each.group is None else ' in ' + each.group}: advice at other thresholds")
        adjusted = each.table.design.confidence(plan.level)
        one = positions_of(each.table, each.inputs.find(Probed), task, at, adjusted, plan.seed)
        advice = advice_on[each.place].along(task, at.tolist())
        found[each.place] = replace(one, advice=tuple(map(advised_way, advice)))
    return found


Drawn = tuple[str, Report | None, Draw]
"""A picture of one model and group, or of all of them; first a key of TITLES."""


class _Shown(NamedTuple):
    """What pictures are drawn of."""

    dataset: Dataset
    plan: Plan
    evaluation: Evaluation
    terms: StatedTerms
    progress: Progress = lambda text: None

    def captioned(self, kind: str, report: Report | None, draw: Draw) -> tuple[Report | None, Picture]:
        """A picture with the words beside it; those that a script marks its place in have a frame."""
        reports = self.evaluation.reports if report is None else (report,)
        title = TITLES[kind]
        if report is not None and len(self.evaluation.reports) > 1:
            title += f", {report.name}"
        svg, frame = drawn_alone(draw)
        frame = frame if kind in ("brier", "worth") else ()
        words, found = caption(kind, self.evaluation), finding(kind, reports)
        return report, Picture(words, title, svg=svg, finding=found, frame=frame, kind=kind)

    def of_scores(self, curves: Sweep, positions: Sequence[Positions]) -> Iterator[Drawn]:
        """The pictures of scores of two classes, whether rows share their utilities or each has its own."""
        plan, reports, terms = self.plan, self.evaluation.reports, self.terms
        kinds = ["reliability", *(["grouping"] if any(report.features for report in reports) else [])]
        if not plan.by_row:
            kinds += ["brier", *(["waterfall"] if plan.task is not None and not self.dataset.in_time else [])]
        named = with_drawable_names(curves, "svg")
        for kind in kinds:
            for number, draw, _ in panels_of(named, kind, terms):
                of = None if number is None else self.evaluation.by_place[curves.reports[number].place]
                yield kind, of, draw
        if positions and plan.task is not None:
            scale = scale_of(reports, terms)
            unit, measured = plan.task.u_delta * scale.factor, f"worth {scale.in_words}"
            yield "worth", None, lambda axes: panels.worth(axes, curves, positions, unit, measured)
        for number, report in enumerate(reports):
            name = drawable(report.name, "svg")
            if done := report.find(ActionCounts):
                yield "confusion", report, partial(panels.confusion, done=done, name=name)
            if plan.by_row or (self.dataset.in_time and plan.task is not None):
                yield "waterfall", report, _waterfall(report, number, name, terms)
        if isinstance(plan.decision, RowTask):
            two = self.evaluation.by_row is None or self.evaluation.by_row.to_act_or_not
            series = by_factor(None, plan.decision, two)
            yield self.worth("factor", sweep_tasks(replace(self.dataset, capacity=None), plan, series, self.progress))

    def of_places(self) -> Iterator[Drawn]:
        """Where so many rows can be acted on only: what other numbers of places are worth, and whom they find."""
        dataset, plan = self.dataset, self.plan
        if dataset.capacity is None:
            return
        varied = Varied(CAPACITY, capacities_around(dataset, dataset.capacity))
        series = capacity_series(dataset, plan, varied, dataset.capacity.text)
        sweep = sweep_tasks(dataset, plan, series, self.progress)
        shown = panels_of(with_drawable_names(sweep, "svg"), "actions")
        for of, panel in zip(sweep.reports, shown, strict=True):
            # Of several classes there is no label 1 to find.
            if any(np.isfinite(share.value).any() for share in shares_of(sweep, of)):
                yield "places", self.evaluation.by_place[of.place], panel.draw
        if plan.decision is not None:
            yield self.worth("capacity", sweep)

    def worth(self, kind: str, sweep: VariedSweep) -> Drawn:
        """What decisions are worth as a number of the task varies, in the user's terms."""
        scale, named = scale_of(self.evaluation.reports, self.terms), with_drawable_names(sweep, "svg")
        return kind, None, utility_panel(named, scale.factor, f"expected utility {scale.in_words}")

    def of_classes(self, form: str = "svg") -> Iterator[Drawn]:
        """The pictures of several classes: what can be won, reliability, actions by class, errors by coverage."""
        groups = ((model.name, *part) for model in self.dataset.models for part in model.rows.by_group())
        reports = ((self.evaluation.by_place[name, group], rows) for name, group, rows in groups)
        shown = [(report, rows, drawable(report.name, form)) for report, rows in reports]
        for number, (report, rows, name) in enumerate(shown):
            table = rows.class_table
            if done := report.find(ActionCounts):
                yield "waterfall", report, _waterfall(report, number, name, self.terms)
                yield "confusion", report, partial(panels.confusion, done=done, name=name)
            yield "class-reliability", report, partial(panels.class_reliability, c=table, name=name)

        def surest(axes: Any) -> None:
            adjusted, seed = self.plan.level, self.plan.seed
            risks = (
                (name, risk_coverage(each.class_table, Inputs(each, None, seed), adjusted)) for _, each, name in shown
            )
            panels.risk_coverage(axes, tuple(risks))

        yield "risk-coverage", None, surest


def _waterfall(report: Report, number: int, name: str, terms: StatedTerms) -> Draw:
    return partial(panels.waterfall, name=name, number=number, rungs=report.results, task="", terms=terms)


def draw_classes_on(dataset: Dataset, plan: Plan, picture: str, axes: Any, number: int, terms: StatedTerms) -> Any:
    """A picture of CLASS_PICTURES in axes: those that are given, else those of a new figure. Returns the axes.

    number: which model and group, where the picture shows one. Errors: DecalError, where there is no such report.
    """
    decided = picture in ("waterfall", "confusion")
    if decided and plan.decision_of(dataset.classes) is None:
        raise DecalError(f"{picture} shows what is decided", f"give {Hint('abstain')} or {Hint('utility')}")
    choices = tuple(map(parse, (*WORTH, "utility_at_stake"))) if picture == "waterfall" else ()
    evaluation = evaluate(dataset, replace(plan, choices=choices))
    if not 0 <= number < len(evaluation.reports):
        raise DecalError(f"report={number} is none of the {len(evaluation.reports)} reports", "they count from 0")
    kind = "class-reliability" if picture == "reliability" else picture
    shown = _Shown(dataset, plan, evaluation, terms).of_classes("png")
    drawn = [draw for each, _, draw in shown if each == kind]
    return on_axes(axes, drawn[min(number, len(drawn) - 1)])


def _comparison(dataset: Dataset, plan: Plan, progress: Progress) -> Comparison | None:
    """The comparison of two models; None unless there are exactly two, on rows with the same labels."""
    if len(dataset.models) != 2 or dataset.apart:
        return None
    first, second = (model.rows for model in dataset.models)
    if len(first) != len(second) or not np.array_equal(first.label, second.label):
        return None
    alone = dataset.changed(lambda rows: replace(rows, groups={}))
    return compare(alone, replace(plan, choices=()), progress, splicing=False)
