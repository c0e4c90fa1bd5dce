"""Two models on the same rows: every metric's difference with its paired interval, the curves, and the splice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis import evaluate as evaluating
from decal_cli.analysis.choices import WORST
from decal_cli.analysis.choices import shown_choices as shown_of_evaluation
from decal_cli.analysis.disagreements import (
    ClassDisagreements,
    Disagreements,
    class_disagreements,
    disagreements,
)
from decal_cli.analysis.evaluate import Evaluation, Plan, Progress, Report
from decal_cli.analysis.splice import Splice, splice
from decal_cli.analysis.swap import Ids, Swap, swap
from decal_cli.curves.crossings import BrierDifference, Crossing, Lead, Side, band, brier_difference
from decal_cli.data import Dataset, Paired
from decal_cli.errors import DecalError, Undefined
from decal_cli.hints import Hint
from decal_cli.metrics import Inputs, Metric, MetricSpec, Result, parse
from decal_cli.metrics import paired as paired_metrics
from decal_cli.metrics.confidence import RESAMPLES, Interval
from decal_cli.metrics.inputs import row_stakes
from decal_cli.tables.pairs import CellPairs, PairTable
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import CELLS
from decal_cli.task import ClassDecision, RowTask

IDEALS = {"zero": 0.0, "one": 1.0}
HEADLINE = (parse("expected_utility"), parse("brier"))
"""What the summary is about, independent of the metrics that were asked for."""
AT_CAPACITY = parse("utility_at_capacity")
"""The same where so many rows can be acted on only."""

NOT_EXACT = "not known from cells of two scores; counts of every pair of scores give it"


@dataclass(frozen=True)
class Difference:
    """One metric of both models: a, b, and B - A with its paired interval.

    method: how the interval was made, 'analytic' or 'bootstrap', None where there is none. better: the model that the
    metric's direction favours; None where the two are equal, undefined, or neither direction is better.
    by_chance: whether the interval holds 0, so that chance may have made the difference; None where there is no
    interval, or where an ideal value lies between the two.
    """

    a: Result
    b: Result
    difference: Result
    method: Literal["analytic", "bootstrap"] | None = None
    better: Side | None = None
    by_chance: bool | None = None


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Who wins at which thresholds: the exact curves, and what of them is beyond noise at the plan's confidence.

    reach: standard errors beyond which one model is ahead, at all thresholds at once.
    """

    curves: BrierDifference
    reach: float
    leads: tuple[Lead, ...]
    crossings: tuple[Crossing, ...]


@dataclass(frozen=True, eq=False)
class Contest:
    """The comparison on all rows (group None) or on one group of them.

    differences: of the metrics that were asked for, by key. headline: of the Brier score, and of the expected utility
    where there is a task, by key, whatever was asked for. disagreements: of the decisions, where there are two actions
    or several classes. positives, thresholds: None for rows of several classes; pairs: of scores, then 0.
    """

    group: str | None
    rows: int
    positives: int | None
    pairs: int
    differences: Mapping[str, Difference]
    headline: Mapping[str, Difference]
    thresholds: Thresholds | None
    disagreements: Disagreements | ClassDisagreements | None = None
    swap: Swap | None = None
    """Who is acted on by which model, where so many rows can be acted on only; there are no disagreements then."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """All contests of two models, the first on all rows, and the splice or the reason why there is none."""

    evaluation: Evaluation
    models: tuple[str, str]
    contests: tuple[Contest, ...]
    splice: Splice | None
    no_splice: str | None

    @property
    def cells(self) -> int | None:
        """On how many cells pairs were resampled, where there are too many to resample them one by one."""
        return CELLS if any(contest.pairs > CELLS for contest in self.contests) else None

    def name(self, side: Side) -> str:
        """The model's name."""
        return self.models[0 if side == "a" else 1]

    def as_reports(self) -> tuple[Report, ...]:
        """The differences as reports, for gate rules."""
        return tuple(
            Report(
                f"{self.models[1]} - {self.models[0]}",
                contest.group,
                contest.rows,
                contest.positives,
                contest.pairs,
                0,
                False,
                {key: measured.difference for key, measured in contest.differences.items()},
            )
            for contest in self.contests
        )


def compare(
    dataset: Dataset,
    plan: Plan,
    progress: Progress = lambda text: None,
    splicing: bool = True,
    ids: Ids | None = None,
) -> Comparison:
    """Compare the two models of a data set whose rows are the same, on all rows and on every group.

    splicing: whether the splice is asked for; gate rules need only the differences. ids: what rows are called, (T,).
    """
    if len(dataset.models) != 2:
        raise DecalError(
            f"a comparison needs exactly two models, not {len(dataset.models)}", f"name two with {Hint('score')}"
        )
    plan = plan.for_rows(dataset)
    dataset = evaluating.with_lists(dataset, plan)
    headline = HEADLINE if dataset.capacity is None else (AT_CAPACITY, *HEADLINE)
    choices = tuple(dict.fromkeys((*plan.choices, *headline)))
    values = evaluating.evaluate(dataset, replace(plan, choices=choices, intervals=False), progress)
    evaluation = replace(values, plan=plan)
    half = len(values.reports) // 2
    sides = zip(values.reports[:half], values.reports[half:], strict=True)
    first, second = dataset.models
    contests = []
    whole: PairTable | None = None
    parts = zip(first.rows.by_group(), second.rows.by_group(), strict=True)
    for (of_a, of_b), ((group, a), (_, b)) in zip(sides, parts, strict=True):
        progress(f"the difference{'' if group is None else ' in ' + group}")
        pairs = None if a.classes else a.pairs_with(b)
        whole = whole or pairs
        of_whole = ids if group is None else None
        contests.append(_contest(of_a, of_b, (a, b), pairs, values.decision, plan, of_whole))
    at = contests[0].thresholds
    joined, reason = None, None
    if splicing and at is None:
        reason = "cells of two scores give no curves" if whole else "scores of several classes have no thresholds"
    if splicing and whole is not None and at is not None:
        joined, reason = _splice(whole, at, plan)
    return Comparison(evaluation, (first.name, second.name), tuple(contests), joined, reason)


def shown_choices(dataset: Dataset, plan: Plan) -> tuple[MetricSpec, ...]:
    """The readable choice of an evaluation, less what cannot tell two models apart."""
    return tuple(
        choice
        for choice in shown_of_evaluation(dataset, plan)
        if choice.declared.better != "neither"
        and choice.name != WORST
        and (dataset.classes or paired_metrics.method(choice.declared) is not None)
    )


def spliced(paired: Paired, comparison: Comparison) -> dict[str, NDArray[Any]]:
    """The columns of the spliced scores, row by row: the row's id or number, its label, its score."""
    if comparison.splice is None:
        raise DecalError(f"there is no splice to write: {comparison.no_splice}", "use the better model alone")
    a, b = (model.rows for model in paired.dataset.models)
    label = str(paired.dataset.columns["label"])
    return {paired.id_name: paired.ids, label: a.label, "p_splice": comparison.splice.cut.scores(a.score, b.score)}


def _splice(pairs: PairTable, at: Thresholds, plan: Plan) -> tuple[Splice | None, str | None]:
    rng = np.random.default_rng([plan.seed, RESAMPLES])
    try:
        return splice(pairs, at.curves, at.crossings, plan.task, rng), None
    except Undefined as undefined:
        return None, undefined.reason


Values = Mapping[MetricSpec, float]
Differences = Mapping[str, Difference]


def _contest(
    of_a: Report,
    of_b: Report,
    rows: tuple[Rows, Rows],
    pairs: PairTable | None,
    decision: ClassDecision | None,
    plan: Plan,
    ids: Ids | None,
) -> Contest:
    """pairs: the scores of both, None for rows of several classes, which have no threshold."""
    a, b = _sides(rows, pairs, plan)

    def intervals(values: Values) -> Mapping[MetricSpec, Interval]:
        sure = rows[0].sure(plan.confidence) if pairs is None else pairs.design.confidence(plan.confidence)
        return {} if sure is None else paired_metrics.intervals(values, a, b, sure, pairs)

    asked, headline = _differences(of_a, of_b, plan, intervals)
    if pairs is None:
        classes = (rows[0].class_table, rows[1].class_table)
        apart_by_class = None if decision is None else class_disagreements(*classes, decision)
        return Contest(of_a.group, of_a.rows, None, 0, asked, headline, None, apart_by_class)
    swapped = swap(*rows, ids)
    apart = None
    if plan.binary is not None and swapped is None:
        apart = _disagreements(pairs, plan.binary.decision_threshold)
    of_cells = isinstance(pairs, CellPairs)
    at, count = (None, 0) if of_cells else (_thresholds(pairs, plan), len(pairs))
    return Contest(of_a.group, of_a.rows, of_a.positives, count, asked, headline, at, apart, swapped)


def _sides(rows: tuple[Rows, Rows], pairs: PairTable | None, plan: Plan) -> tuple[Inputs, Inputs]:
    """What metrics of the two models are computed from, on units that both share."""
    a, b = (Inputs(each, plan.decision_of(each.classes), plan.seed) for each in rows)
    stakes = [row_stakes(each, plan.decision) for each in rows] if isinstance(plan.decision, RowTask) else ()
    return paired_metrics.of_pairs(a, b, pairs, *stakes)


def _disagreements(pairs: PairTable, threshold: float) -> Disagreements | None:
    """None where cells do not say how every row is decided."""
    known = not isinstance(pairs, CellPairs) or pairs.decided_at(threshold)
    return disagreements(pairs, threshold) if known else None


def _differences(
    of_a: Report, of_b: Report, plan: Plan, intervals: Callable[[Values], Mapping[MetricSpec, Interval]]
) -> tuple[Differences, Differences]:
    """Of the metrics that were asked for, and of those that the summary is about."""
    heads = HEADLINE if of_a.places is None else (AT_CAPACITY, *HEADLINE)
    differences = {spec: _difference(spec, of_a, of_b) for spec in dict.fromkeys((*plan.choices, *heads))}
    values = {spec: each.difference.value for spec, each in differences.items() if each.difference.value is not None}
    if plan.intervals:
        of_classes = of_a.by_class is not None
        for spec, ends in intervals(values).items():
            method = paired_metrics.method(spec.declared, of_classes, plan.by_row)
            differences[spec] = _with_interval(differences[spec], spec, ends, method)
    asked = {spec.key: differences[spec] for spec in plan.choices}
    return asked, {spec.key: differences[spec] for spec in heads if spec in values}


def _difference(spec: MetricSpec, of_a: Report, of_b: Report) -> Difference:
    a, b = of_a.results[spec.key], of_b.results[spec.key]
    if a.value is None or b.value is None:
        sides = [(report.model, side.reason) for report, side in ((of_a, a), (of_b, b)) if side.value is None]
        names = "" if len(sides) == 2 and a.reason == b.reason else f"{sides[0][0]}: "
        return Difference(a, b, Result(None, None, f"{names}{sides[0][1]}"))
    if any(side.within is not None and side.within.bound for side in (a, b)):
        unknown = Result(None, None, NOT_EXACT)
        return Difference(unknown, unknown, unknown)
    return Difference(a, b, Result(b.value - a.value), None, _better(spec.declared, a.value, b.value))


def _better(metric: Metric, a: float, b: float) -> Side | None:
    if a == b or metric.better == "neither":
        return None
    if metric.better in IDEALS:
        from_a, from_b = abs(a - IDEALS[metric.better]), abs(b - IDEALS[metric.better])
        return None if from_a == from_b else "a" if from_a < from_b else "b"
    return "b" if (b > a) == (metric.better == "higher") else "a"


def _with_interval(
    undecided: Difference, spec: MetricSpec, interval: Interval, method: paired_metrics.Method | None
) -> Difference:
    """With its interval, and whether chance could explain it."""
    by_chance: bool | None = interval[0] <= 0 <= interval[1]
    ideal = IDEALS.get(spec.declared.better)
    a, b = undecided.a.value, undecided.b.value
    if ideal is not None and a is not None and b is not None and (a - ideal) * (b - ideal) < 0:
        by_chance = None
    return replace(
        undecided,
        difference=replace(undecided.difference, interval=interval),
        method=method,
        by_chance=by_chance,
    )


def _thresholds(pairs: PairTable, plan: Plan) -> Thresholds:
    sure = pairs.design.confidence(plan.confidence)
    curves, rng = brier_difference(pairs), np.random.default_rng([plan.seed, RESAMPLES])
    reach = float("inf") if sure is None else band(pairs, sure, rng)
    return Thresholds(curves, reach, curves.leads(reach), curves.crossings(reach))
