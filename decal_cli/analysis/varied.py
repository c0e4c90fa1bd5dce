"""A sweep over tasks that differ in one number: what decisions are worth, and which are made, at each of its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from decal_cli.analysis.by_row import by_row_of
from decal_cli.analysis.clusters import cluster_notes, clusters_of
from decal_cli.analysis.evaluate import Evaluation, Plan, Progress
from decal_cli.analysis.moving import moving
from decal_cli.analysis.places import listed_rows
from decal_cli.data import Dataset, Predictions
from decal_cli.declarations.document import Hidden, Numbers, Said
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.metrics import Inputs, Result, measure, parse
from decal_cli.metrics.confidence import wilson_ends
from decal_cli.metrics.inputs import row_stakes
from decal_cli.metrics.numerics.selective import risk_at
from decal_cli.tables.classes import ClassTable, best_actions
from decal_cli.tables.estimate import mean_over
from decal_cli.tables.listed import Capacity
from decal_cli.tables.population import Population, population_share
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats, Ints
from decal_cli.task import (
    ABSTAIN,
    PREVALENCE,
    BinaryTask,
    ClassDecision,
    RowTask,
    Task,
    TaskSeries,
    Varied,
    by_entry,
    by_factor,
    by_prevalence,
    by_price,
)

WORTH = ("expected_utility", "external_regret", "gain_recalibration", "gain_beyond", "gain_post_training")
"""Metrics at every value, as `evaluate` has them for that task."""
AT_CAPACITY = ("utility_at_capacity", "capacity_cost")
"""The same where so many rows can be acted on only."""
OF_FEATURES = ("gain_beyond", "gain_post_training")
MAX_SHARES = 8
"""Actions whose shares are counted; of more, only that of the action that varies."""
TWO_CLASSES = ("0", "1")
COVERAGES = np.arange(1, 51) / 50
"""Of the risk-coverage curve."""
AURC = parse("aurc")


@dataclass(frozen=True, eq=False)
class VariedCurve:
    """A number by the value of what varies: value, low, high, shape (V,), NaN where undefined; reason: why.

    title, heading, unit: what it is, in words.
    """

    title: str
    heading: Hidden[str]
    unit: str
    value: Annotated[Floats, Said(kind=Numbers)]
    low: Annotated[Floats | None, Said(kind=Numbers | None)] = None
    high: Annotated[Floats | None, Said(kind=Numbers | None)] = None
    reason: str | None = None
    of_one_row: Hidden[bool] = False
    """Whether it is what one row is worth, and not the mean over all decisions."""


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Share of errors among the rows that the model is surest of, by their share of all rows; and the area under it."""

    coverage: Floats
    error: Floats
    low: Floats | None
    high: Floats | None
    area: Result


@dataclass(frozen=True, eq=False)
class VariedReport:
    """One model on one group of rows (group None: on all of them). worth: by metric; done: shares of rows, by name.

    risk: of the price of abstention. table: the rows, where they are of several classes.
    """

    model: str
    group: str | None
    rows: int
    dropped: int
    worth: Mapping[str, VariedCurve]
    done: Mapping[str, VariedCurve]
    risk: RiskCoverage | None
    table: ClassTable | None

    @property
    def name(self) -> str:
        """Model and group on one line."""
        return self.model if self.group is None else f"{self.model}, {self.group}"

    @property
    def courses(self) -> dict[str, VariedCurve]:
        """All of them."""
        return {**self.worth, **self.done}


@dataclass(frozen=True, eq=False)
class VariedSweep:
    """All models and groups. head: the plan and where the rows come from."""

    head: Evaluation
    series: TaskSeries
    reports: tuple[VariedReport, ...]

    @cached_property
    def values(self) -> Floats:
        """Of what varies, increasing."""
        return np.array(self.series.values)

    @property
    def signature(self) -> str:
        """What one must know to reproduce the numbers, on one line."""
        return (
            f"{self.head.signature}|vary:{self.series.name}={self.values[0]:g}..{self.values[-1]:g}x{len(self.values)}"
        )


def series_for(dataset: Dataset, plan: Plan, varied: Varied | None, costs: bool = False) -> TaskSeries:
    """The tasks of a sweep. costs: the user's task is given as costs. Errors: DecalError."""
    of_price = varied is None or varied.name == ABSTAIN
    if varied is not None and varied.name == PREVALENCE:
        return _by_prevalence(dataset, plan, varied)
    if plan.row_task is not None:
        return by_factor(varied, plan.row_task, by_row_of(dataset, plan.row_task).to_act_or_not)
    if not dataset.classes:
        task = plan.task
        if varied is None or task is None or of_price:
            raise DecalError(
                f"{Hint('vary')} varies an entry of a utility, and none is given",
                f"give {Hint('utility')} or {Hint('cost_matrix')}; for scores of two classes without "
                f"{Hint('vary')}, sweep varies t*",
            )
        return by_entry(varied, task, TWO_CLASSES, costs)
    own = None if plan.class_task is None else plan.class_task.abstain
    decision = plan.decision_for(dataset.classes)
    if of_price:
        if decision is not None and own is None:
            raise DecalError(
                "the task is a utility, and nothing says which of its entries varies",
                f"give {Hint('vary', 'ACTION')}:CLASS=LOW:HIGH; without a utility, the price of abstention varies",
            )
        return by_price(varied, dataset.classes, own)
    if decision is None or varied is None:
        raise DecalError(
            f"{Hint('vary')} varies an entry of a utility, and none is given",
            f"give {Hint('utility')} or {Hint('cost_matrix')}",
        )
    return by_entry(varied, decision, dataset.classes, costs)


def _by_prevalence(dataset: Dataset, plan: Plan, varied: Varied) -> TaskSeries:
    dataset.need_two_classes(f"sweep {Hint('prevalence_range').words}")
    dataset.need_rows(f"sweep {Hint('prevalence_range').words}")
    if dataset.population is not None:
        raise DecalError(
            f"{Hint('prevalence')} and {Hint('prevalence_range')} both name the population", "give one of them"
        )
    if plan.task is None:
        raise DecalError(
            f"{Hint('prevalence_range')} says what one decision is worth where labels 1 are rarer or more "
            "frequent, and none is "
            "named",
            f"give {Hint('threshold')}, {Hint('utility')}, {Hint('cost_fp')}/{Hint('cost_fn')} or {Hint('odds')}",
        )
    return by_prevalence(varied, plan.task)


def sweep_tasks(
    dataset: Dataset, plan: Plan, series: TaskSeries, progress: Progress = lambda text: None
) -> VariedSweep:
    """Every model at every value, on all rows and on every group."""
    reports = []
    for model in dataset.models:
        share = population_share(model.rows) if series.kind == PREVALENCE else None
        for group, at_each in _by_group(_at_each(model.rows, share, series, dataset.capacity, plan.seed)):
            progress(f"{model.name}{'' if group is None else ' in ' + group}")
            reports.append(_report(model, group, at_each, plan, series, share))
    notes = dataset.all_notes
    if dataset.clusters is not None:
        notes += (*cluster_notes({each.name: (len(each.rows), clusters_of(each.rows)) for each in dataset.models}),)
    source = dataset.inputs, dataset.columns, dataset.guessed, notes
    by_row = None if plan.row_task is None else by_row_of(dataset, plan.row_task)
    decision = plan.decision_for(dataset.classes)
    head = Evaluation(plan, *source, (), decision, dataset.population, capacity=dataset.capacity, by_row=by_row)
    return VariedSweep(head, series, tuple(reports))


def _at_each(rows: Rows, share: float | None, series: TaskSeries, capacity: Capacity | None, seed: int) -> list[Rows]:
    """The rows at each value: as they are, or counted as a population with that share of labels 1; and their places."""
    at_each = [rows] * len(series.values)
    if share is not None:
        at_each = [Population.of_ones(value, share, kept=False).counted(rows) for value in series.values]
    if capacity is None:
        return at_each
    return [listed_rows(each, capacity, task, seed) for each, task in zip(at_each, series.tasks, strict=True)]


def _by_group(at_each: list[Rows]) -> Iterator[tuple[str | None, list[Rows]]]:
    """All rows and each group, at each value."""
    if all(each is at_each[0] for each in at_each):
        yield from ((group, [rows] * len(at_each)) for group, rows in at_each[0].by_group())
        return
    for parts in zip(*(each.by_group() for each in at_each), strict=True):
        yield parts[0][0], [rows for _, rows in parts]


def _report(
    model: Predictions, group: str | None, at_each: list[Rows], plan: Plan, series: TaskSeries, share: float | None
) -> VariedReport:
    rows = at_each[0]
    inputs = Inputs(rows, None, plan.seed, row_task=plan.row_task)
    sure = rows.sure(plan.confidence) if plan.intervals else None
    c = rows.class_table if rows.classes else None
    worth: dict[str, list[Result]] = {}
    actions: list[Ints] = []
    for counted, task in zip(at_each, series.tasks, strict=True):
        # A table of its own, so that what it keeps of one task is gone with the next.
        at = inputs.having(task) if c is None else inputs.having(task, replace(c))
        if counted is not rows:
            at = Inputs(counted, None, plan.seed, row_task=plan.row_task).having(task)
        for name in WORTH if rows.listed is None else (*WORTH, *AT_CAPACITY):
            if rows.features is not None or name not in OF_FEATURES:
                worth.setdefault(name, []).append(measure(parse(name), at, sure))
        actions.append(_actions(counted, task))
    courses = {name: course_of(name, results) for name, results in worth.items()}
    if share is not None and plan.binary is not None:
        courses |= _moved(at_each, plan.binary, share, series, sure)
    return VariedReport(
        model.name,
        group,
        len(rows),
        model.dropped,
        courses,
        dict(_done(at_each, series, actions, sure)),
        None if c is None or series.kind != ABSTAIN else risk_coverage(c, inputs, sure),
        c,
    )


def _moved(
    at_each: list[Rows], task: BinaryTask, share: float, series: TaskSeries, sure: float | None
) -> dict[str, VariedCurve]:
    """What it is worth to move the scores to each share of labels 1, and what they are worth if they are kept."""
    moves = [
        moving(rows, task, Population.of_ones(value, share, kept=False), sure)
        for value, rows in zip(series.values, at_each, strict=True)
    ]
    gain = np.array([move.gain for move in moves])
    low, high = (None, None) if sure is None else np.array([move.interval for move in moves], dtype=np.float64).T
    kept = np.array([move.kept for move in moves])
    return {
        "utility_kept": VariedCurve("Utility of scores that are kept", "utility, scores kept", "utility", kept),
        "gain_moving": VariedCurve(
            "Gain of moving the scores", "gain of moving the scores", "utility", gain, low, high
        ),
    }


def _actions(rows: Rows, task: Task | ClassDecision | RowTask) -> Ints:
    """The number of each row's action in the utility."""
    if isinstance(task, ClassDecision):
        return best_actions(rows.score, np.array(task.utility))
    if isinstance(task, RowTask):
        return row_stakes(rows, task).response(rows.score)
    return np.array(task.envelope)[np.searchsorted(task.decision_thresholds, rows.score, side="right")]


def course_of(name: str, results: list[Result]) -> VariedCurve:
    """A metric at each value."""
    metric = parse(name).declared
    value, low, high = (
        np.array([np.nan if number is None else number for number in column])
        for column in zip(*((r.value, *(r.interval or (None, None))) for r in results), strict=True)
    )
    reason = next((each.reason for each in results if each.reason is not None), None)
    none = bool(np.isnan(low).all())
    return VariedCurve(
        metric.title, metric.title.lower(), metric.unit, value, None if none else low, None if none else high, reason
    )


def _done(
    at_each: list[Rows], series: TaskSeries, actions: list[Ints], sure: float | None
) -> Iterator[tuple[str, VariedCurve]]:
    """Shares of rows: that are not abstained from and of errors among them; or of each action."""
    rows = at_each[0]
    everyone = np.ones(len(rows), dtype=bool)
    if series.kind == ABSTAIN:
        label, last = np.asarray(rows.label), len(rows.classes)
        accepted = [taken != last for taken in actions]
        wrong = [taken != label for taken in actions]
        yield "coverage", _shares(at_each, accepted, [everyone] * len(actions), sure, "Coverage", "coverage")
        text = "Errors among the accepted"
        yield "accepted_error", _shares(at_each, wrong, accepted, sure, text, text.lower(), "no row is accepted")
        return
    names = series.tasks[0].actions
    numbers = range(len(names)) if len(names) <= MAX_SHARES or series.entry is None else [series.entry[0]]
    for number in numbers:
        which = [taken == number for taken in actions]
        title = f"Share of rows: {names[number]}"
        yield f"share[{names[number]}]", _shares(at_each, which, [everyone] * len(actions), sure, title, names[number])


def _shares(
    at_each: list[Rows],
    parts: list[np.ndarray],
    wholes: list[np.ndarray],
    sure: float | None,
    title: str,
    heading: str,
    none: str | None = None,
) -> VariedCurve:
    """Shares of rows with Wilson's intervals."""
    shares = [_share(rows, part, whole) for rows, part, whole in zip(at_each, parts, wholes, strict=True)]
    share, effective = np.array(shares, dtype=np.float64).T
    low, high = (None, None) if sure is None else wilson_ends(share, effective, sure)
    return VariedCurve(title, heading, "share", share, low, high, none if np.isnan(share).any() else None)


def _share(rows: Rows, part: np.ndarray, whole: np.ndarray) -> tuple[float, float]:
    """Share of a part of some rows, NaN where there are none, and how many independent rows it rests on."""
    weight = rows.weights[whole]
    if not len(weight):
        return np.nan, 1.0
    effective = float(weight.sum() ** 2 / (weight**2).sum())
    inside = part[whole].astype(np.float64)
    share, error = mean_over(inside, weight, None if rows.unit is None else rows.unit[whole])
    if rows.unit is not None and error > 0:
        effective = min(share * (1 - share) / error**2, effective)
    return share, effective


def risk_coverage(c: ClassTable, inputs: Inputs, sure: float | None) -> RiskCoverage:
    """The curve of these rows, with intervals where `sure` is their confidence."""
    error, effective = risk_at(c.top, COVERAGES)
    low, high = (None, None) if sure is None else wilson_ends(error, effective, sure)
    return RiskCoverage(COVERAGES, error, low, high, measure(AURC, inputs, sure))
