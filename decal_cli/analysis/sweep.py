"""Curves over models and groups: every threshold at once, or decisions that differ in another number; and sums at up to
1,001 thresholds t* and 1,000 capacities, that a page moves between without the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np

from decal_cli.analysis.described import by_row_of, prior_shift_gain, select_rows
from decal_cli.analysis.evaluate import Evaluation, OfModel, Plan, Progress, head_of, with_lists
from decal_cli.analysis.flowchart import Advice
from decal_cli.curves.battery import FeaturedRows, curves_of, gains
from decal_cli.curves.crossings import Lowest, lowest_curve, same_rows
from decal_cli.curves.grid import Grid
from decal_cli.curves.kinds import CURVE_KINDS, CurveKind, MetricCurve
from decal_cli.data import Dataset, Predictions
from decal_cli.data.dataset import parse_capacity
from decal_cli.declarations.document import Names, Said, Share
from decal_cli.errors import DecalError, Undefined
from decal_cli.hints import GIVE_TASK, Hint, Verb
from decal_cli.learn import held_out
from decal_cli.learn.probe import Judge, Probed, build_probe
from decal_cli.learn.regions import Regions, build_regions, hold_out
from decal_cli.metrics import Inputs, Result, grouping, measure, parse
from decal_cli.metrics.confidence import Interval, wilson_ends
from decal_cli.metrics.families.classes import risk_at
from decal_cli.metrics.inputs import decisions_on
from decal_cli.metrics.within_cells import of_curves
from decal_cli.numbers import plain
from decal_cli.tables.aggregated import CountedData
from decal_cli.tables.classes import ClassTable
from decal_cli.tables.population import Population, population_share
from decal_cli.tables.resample import TIE
from decal_cli.tables.rows import Rows
from decal_cli.tables.selection import Capacity
from decal_cli.tables.table import FEWEST_ROWS, Floats, Ints, Mask, Table
from decal_cli.tables.units import Units
from decal_cli.task import (
    ABSTAIN,
    CAPACITY,
    PREVALENCE,
    BinaryTask,
    ClassTask,
    Decision,
    RowTask,
    Task,
    TaskSeries,
    Varied,
    by_entry,
    by_factor,
    by_prevalence,
    by_price,
)

LADDER = (
    "expected_utility",
    "eu_never",
    "eu_always",
    "external_regret",
    "gain_recalibration",
    "gain_beyond",
    "gain_post_training",
    "utility_at_stake",
)
"""What the waterfall of one decision is made of."""


@dataclass(frozen=True, eq=False)
class Swept(OfModel):
    """The curves of one model on one group of rows (group None: on all of them).

    inputs: its table, and the regions and the probe of its features, where there are any.
    """

    rows: int
    positives: int
    dropped: int
    curves: Mapping[str, MetricCurve]
    inputs: Inputs

    @property
    def table(self) -> Table:
        """The rows by their score."""
        return self.inputs.get(Table)

    @property
    def grouping_loss(self) -> float | None:
        """The honest grouping loss, which the area between curves is to be held against."""
        try:
            return grouping.loss(self.inputs.get(Regions)).mean
        except Undefined:
            return None


@dataclass(frozen=True, eq=False)
class Sweep:
    """All swept models and groups. head: the plan and where the rows come from (no metric is in it). lowest: the lowest
    curve of several models on all rows; None of one model, or where the models do not have the same rows.
    """

    head: Evaluation
    grid: Grid
    reports: tuple[Swept, ...]
    lowest: Lowest | None = None

    @property
    def task(self) -> BinaryTask | None:
        """The decision between two actions that is shown among all thresholds; None where there is none."""
        return self.head.plan.binary

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The user's own t*, one for each step from an action to the next."""
        return self.head.plan.thresholds

    @property
    def u_delta(self) -> float:
        """u_delta of the decision that is shown; 1 where there is none, as at each threshold."""
        return self.task.u_delta if self.task else 1.0

    @property
    def signature(self) -> str:
        """What one must know to reproduce the numbers, on one line."""
        at = self.grid.thresholds
        prior = "" if self.grid.prior is None else f"|prior:{self.grid.prior.name}"
        return f"{self.head.signature}|sweep:{at[0]:g}..{at[-1]:g}x{len(at)}{prior}"


def swept(dataset: Dataset, plan: Plan, grid: Grid, progress: Progress = lambda text: None) -> Sweep:
    """Every curve of every model, on all rows and on every group; the task's threshold is one of the grid's."""
    dataset.need_two_classes("sweep")
    plan = plan.for_rows(dataset)
    plan.need_shared(Verb("sweep"))
    plan.decision_of(dataset.classes)
    grid, capacity = grid.with_thresholds(plan.thresholds), dataset.capacity
    reports = []
    for model in dataset.models:
        # By group, what acting on so many rows is worth at each threshold, below which no row is acted on.
        limited: dict[str | None, dict[str, list[Result]]] = {}
        for threshold in () if capacity is None else grid.thresholds:
            assert capacity is not None  # there are none without
            task = BinaryTask.of_threshold(threshold)
            for group, part in select_rows(model.rows, capacity, task, plan.seed).by_group():
                adjusted, inputs = part.adjusted_confidence(plan.level), Inputs(part, task, plan.seed)
                for name in AT_CAPACITY:
                    of_group = limited.setdefault(group, {}).setdefault(name, [])
                    of_group.append(measure(parse(name), inputs, adjusted))
        for group, rows in model.rows.by_group():
            progress(f"{model.name}{'' if group is None else ' in ' + group}")
            regions = probed = featured = None
            if rows.has_features:
                regions, probed = build_regions(rows, seed=plan.seed), build_probe(rows, seed=plan.seed)
                featured = FeaturedRows(regions, hold_out(rows, seed=plan.seed), probed)
            curves = curves_of(
                rows.table, featured, grid, confidence=rows.adjusted_confidence(plan.level), seed=plan.seed
            )
            at_capacity = limited.get(group, {}).items()
            curves |= {name: curve_of(each, CURVE_KINDS[name]) for name, each in at_capacity}
            counts = len(rows), rows.positives, model.dropped
            inputs = Inputs.of(rows.table, regions, probed, seed=plan.seed)
            reports.append(Swept(model.name, group, *counts, curves, inputs))
    head = head_of(dataset, plan, thresholds=grid.thresholds.tolist())
    head = replace(head, notes=(*head.notes, *_of_cells(reports, grid)))
    return Sweep(head, grid, tuple(reports), None if dataset.apart else _lowest(dataset.models, grid, plan))


def _of_cells(reports: Sequence[Swept], grid: Grid) -> Iterator[str]:
    """A note on each model that is known by cells of its score: how far its curves may be off."""
    for report in reports:
        bounds = of_curves(report.table, grid.thresholds) if report.of_all_rows else None
        if bounds is not None:
            decided = f"at most {plain(bounds[0])} off" if bounds[0] else "exact"
            yield (
                f"{report.model}: from cells of the score; what decisions are worth is {decided}, calibrated at most "
                f"{plain(bounds[1])} more off (u_delta 1); other curves are those of each cell's mean score"
            )


def _lowest(models: Sequence[Predictions], grid: Grid, plan: Plan) -> Lowest | None:
    rows = [model.rows for model in models]
    adjusted, counted = rows[0].adjusted_confidence(plan.confidence), isinstance(rows[0], CountedData)
    if counted or len(rows) < 2 or len(rows[0]) < FEWEST_ROWS or adjusted is None or not same_rows(rows):
        return None
    return lowest_curve([(model.name, model.rows) for model in models], grid.thresholds, adjusted, plan.seed)


def ladder_results(report: Swept, task: Task, plan: Plan) -> dict[str, Result]:
    """The waterfall's values and intervals at one decision, in its utilities, as `evaluate` has them."""
    inputs, adjusted = report.inputs.at(task), report.table.design.confidence(plan.level)
    return {name: measure(parse(name), inputs, adjusted) for name in LADDER}


OF_FEATURES = ("gain_beyond", "gain_post_training")
WORTH = ("expected_utility", "external_regret", "gain_recalibration", *OF_FEATURES)
"""Metrics at every value, as `evaluate` has them for that task."""
AT_CAPACITY = ("utility_at_capacity", "capacity_cost")
"""Metrics at every value, where a capacity limits the rows to act on."""
OF_PLACES = (*AT_CAPACITY, "shadow_price")
"""Metrics at every capacity, where the capacity is what varies."""
FOUND = ("capture", "precision_at_capacity", "lift", "capacity_threshold")
"""Metrics at every capacity of the rows that get a place."""
BY_ROW = ("eu_score_ranking", "eu_amount_ranking")
FOUND_BY_ROW = ("capture", "value_capture", "precision_at_capacity", "lift", "least_gain")
"""Metrics of the rows that get a place, where every row has utilities of its own."""
MAX_SHARES = 8
"""Actions whose shares are counted; of more, only that of the action that varies."""
TWO_CLASSES = ("0", "1")
COVERAGES = np.arange(1, 51) / 50
"""The coverages at which the risk-coverage curve is shown."""
AURC = parse("aurc")
_CAPACITIES, _PREVALENCES = (f"{Hint('vary', what)}" for what in (CAPACITY, PREVALENCE))


def _kind(name: str, title: str, heading: str, unit: str) -> CurveKind:
    return CurveKind(name, title, heading, "decision", unit, (-np.inf, np.inf), "")


@dataclass(frozen=True, eq=False)
class Risk:
    """Share of errors among the surest rows, by their share of all; area: mean over coverages i / T, AURC."""

    coverage: Annotated[Floats, Said(kind=list[Share])]
    error: Annotated[Floats, Said(kind=list[Share])]
    low: Annotated[Floats | None, Said(kind=list[Share] | None)]
    high: Annotated[Floats | None, Said(kind=list[Share] | None)]
    area: float | None
    area_interval: Interval | None
    area_reason: str | None


@dataclass(frozen=True, eq=False)
class VariedReport(OfModel):
    """One model on one group of rows (group None: on all of them). worth: by metric; done: shares of rows, by name.

    risks: one of the price of abstention. tables: one of the rows, where they are of several classes.
    """

    rows: int
    dropped: int
    worth: Mapping[str, MetricCurve]
    done: Mapping[str, MetricCurve]
    risks: tuple[Risk, ...]
    tables: tuple[ClassTable, ...]

    @property
    def curves(self) -> dict[str, MetricCurve]:
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
        """The values of the number that varies, increasing."""
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
    if isinstance(plan.decision, RowTask):
        return by_factor(varied, plan.decision, by_row_of(dataset, plan.decision).to_act_or_not)
    own = plan.decision.abstain if isinstance(plan.decision, ClassTask) else None
    decision = plan.shared_by(dataset.classes) if dataset.classes else plan.task
    if dataset.classes and of_price:
        if decision is not None and own is None:
            raise DecalError(
                "the task is a utility, and nothing says which of its entries varies",
                f"give {Hint('vary', 'ACTION')}:CLASS=LOW:HIGH; without a utility, the price of abstention varies",
            )
        return by_price(varied, dataset.classes, own)
    if varied is not None and of_price:
        raise DecalError(
            f"{Hint('vary', ABSTAIN)} is the price of abstention, and the scores are of two classes",
            f"name the class probabilities with {Hint('proba')}, or vary an entry of {Hint('utility')}",
        )
    if decision is None or varied is None:
        other = "" if dataset.classes else f"; for scores of two classes without {Hint('vary')}, sweep varies t*"
        raise DecalError(
            f"{Hint('vary')} varies an entry of a utility, and none is given",
            f"give {Hint('utility')} or {Hint('cost_matrix')}{other}",
        )
    return by_entry(varied, decision, dataset.classes or TWO_CLASSES, costs)


def _by_prevalence(dataset: Dataset, plan: Plan, varied: Varied) -> TaskSeries:
    dataset.need_two_classes(f"sweep {_PREVALENCES}")
    dataset.need_rows(f"sweep {_PREVALENCES}")
    if dataset.population is not None:
        raise DecalError(f"{Hint('prevalence')} and {_PREVALENCES} both name the population", "give one of them")
    if plan.task is None:
        raise DecalError(
            f"{_PREVALENCES} says what one decision is worth where labels 1 are rarer or more frequent, and none is "
            "named",
            GIVE_TASK,
        )
    return by_prevalence(varied, plan.task)


def capacity_series(dataset: Dataset, plan: Plan, varied: Varied, own: str | None) -> TaskSeries:
    """The capacities that are swept over, all shares or all counts; own: the user's, which is among them.

    Errors: DecalError.
    """
    kind, steps = _steps(varied)
    mine = None if own is None else parse_capacity(own)
    if mine is not None and bool(mine.among) == (kind == "count"):
        raise DecalError(
            f"{Hint('capacity', own)} is a {'share' if mine.among else 'count'}, and {_CAPACITIES} is not",
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
    most = 1.0 if capacity.among else float(min(len(model.rows) for model in dataset.models))
    own = capacity.places / (capacity.among or 1.0)
    steps = (own * AROUND * k / (N_AROUND - 1) for k in range(1, N_AROUND))
    whole = (step if capacity.among else float(round(step)) for step in steps)
    return tuple(sorted({min(step, most) for step in whole if step > 0}))


def _steps(varied: Varied) -> tuple[Literal["share", "count"], Sequence[float]]:
    low, high = varied.values[0], varied.values[-1]
    if low <= 0:
        raise DecalError(f"{_CAPACITIES}: {low:g} is not positive", "give for example 0.01:0.2 or 50:500")
    if low >= 1:
        # Values between two ends are evenly spaced, and rows are whole.
        return "count", [float(round(value)) for value in varied.values]
    if high > 1:
        raise DecalError(
            f"{_CAPACITIES}: {low:g} is a share of the rows, and {high:g} is a count",
            "give shares up to 1, or counts from 1",
        )
    return "share", varied.values


def largest(varied: Varied) -> str:
    """The largest capacity, as --capacity takes it. Errors: DecalError."""
    kind, steps = _steps(varied)
    return "1/1" if kind == "share" and steps[-1] == 1 else f"{steps[-1]:.15g}"


def sweep_tasks(
    dataset: Dataset, plan: Plan, series: TaskSeries, progress: Progress = lambda text: None
) -> VariedSweep:
    """Every model at every value, on all rows and on every group."""
    reports = []
    for model in dataset.models:
        share = population_share(model.rows) if series.kind == PREVALENCE else None
        for group, at_each in _by_group(_at_each(dataset, model, plan, series, share)):
            progress(f"{model.name}{'' if group is None else ' in ' + group}")
            reports.append(_varied(model, group, at_each, plan, series, share))
    head = head_of(dataset, plan)
    return VariedSweep(replace(head, capacity=None) if series.kind == CAPACITY else head, series, tuple(reports))


def _at_each(dataset: Dataset, model: Predictions, plan: Plan, series: TaskSeries, share: float | None) -> list[Rows]:
    """The rows at each value: as they are, or counted as a population with that share of label 1; and their places.

    share: of label 1, where that is what is varied.
    """
    at_each = []
    for value, task in zip(series.values, series.task_at_each, strict=True):
        rows, capacity = model.rows, dataset.capacity
        if share is not None:
            rows = Population.of_ones(value, share, kept=False).counted(rows)
        if series.kind == CAPACITY:
            capacity = Capacity(f"{value:g}", value, 0.0 if series.counted else 1.0)
        if capacity is not None:
            here = replace(dataset, capacity=capacity, models=(replace(model, rows=rows),))
            rows = with_lists(here, plan, task).models[0].rows
        at_each.append(rows)
    return at_each


def _varied(
    model: Predictions, group: str | None, at_each: list[Rows], plan: Plan, series: TaskSeries, share: float | None
) -> VariedReport:
    """The curves of a model on all rows, or on one group of them, by its rows at each value."""
    rows = at_each[0]
    inputs, adjusted = Inputs(rows, None, plan.seed), rows.adjusted_confidence(plan.level)
    tables = (rows.class_table,) if rows.classes and series.kind != CAPACITY else ()
    worth, found = _names(rows, plan, series)
    results: dict[str, list[Result]] = {name: [] for name in (*worth, *found)}
    for counted, task in zip(at_each, series.task_at_each, strict=True):
        # A table of its own, so that what it keeps of one task is gone with the next.
        at = inputs.at(task).override(*map(replace, tables))
        if counted is not rows:
            at = Inputs(counted, task, plan.seed)
        for name, each in results.items():
            each.append(measure(parse(name), at, adjusted))
    curves = {}
    for name, each in results.items():
        metric = parse(name).declared
        curves[name] = curve_of(each, _kind(name, metric.title, metric.title.lower(), metric.unit))
    of_worth = {name: curves[name] for name in worth}
    if share is not None and plan.binary is not None:
        of_worth |= {each.name: each for each in _moved(at_each, plan.binary, share, series, adjusted)}
    done = {name: curves[name] for name in found} or {each.name: each for each in _done(at_each, series, adjusted)}
    risks = tuple(risk_coverage(c, inputs, adjusted) for c in tables if series.kind == ABSTAIN)
    return VariedReport(model.name, group, len(rows), model.dropped, of_worth, done, risks, tables)


def _by_group(at_each: list[Rows]) -> Iterator[tuple[str | None, list[Rows]]]:
    """All rows and each group, at each value."""
    if all(each is at_each[0] for each in at_each):
        yield from ((group, [rows] * len(at_each)) for group, rows in at_each[0].by_group())
        return
    for parts in zip(*(each.by_group() for each in at_each), strict=True):
        yield parts[0][0], [rows for _, rows in parts]


def _names(rows: Rows, plan: Plan, series: TaskSeries) -> tuple[Names, Names]:
    """Metrics of what decisions are worth, and of whom places find: of several classes there is no label 1."""
    if series.kind != CAPACITY:
        worth = WORTH if rows.has_features else tuple(name for name in WORTH if name not in OF_FEATURES)
        return worth if rows.selection is None else (*worth, *AT_CAPACITY), ()
    if rows.classes:
        return OF_PLACES, ("least_gain",)
    worth, found = ((*OF_PLACES, *BY_ROW), FOUND_BY_ROW) if plan.by_row else (OF_PLACES, FOUND)
    return worth if series.tasks else (), found


def _moved(
    at_each: list[Rows], task: BinaryTask, share: float, series: TaskSeries, adjusted: float | None
) -> Iterator[MetricCurve]:
    """What scores are worth that are kept, and what it is worth to move them to each share of labels 1."""
    moves = [
        prior_shift_gain(rows, task, Population.of_ones(value, share, kept=False), adjusted)
        for value, rows in zip(series.values, at_each, strict=True)
    ]
    kept = _kind("utility_kept", "Utility of scores that are kept", "utility, scores kept", "utility")
    moved = _kind("gain_moving", "Gain of moving the scores", "gain of moving the scores", "utility")
    yield curve_of([Result(move.kept) for move in moves], kept)
    yield curve_of([Result(move.gain, move.interval) for move in moves], moved)


def _actions(rows: Rows, task: Decision) -> Ints:
    """The number of each row's action in the utility."""
    action = decisions_on(rows, task).action
    return np.array(task.envelope)[action] if isinstance(task, Task) else action


def curve_of(results: Sequence[Result], kind: CurveKind) -> MetricCurve:
    """A number at each value, and the first reason where it is undefined at some of them."""
    points = np.array([(each.value, *(each.interval or (None, None))) for each in results], dtype=float).T
    reason = next((each.reason for each in results if each.reason is not None), None)
    return MetricCurve.of(kind, points[:1] if np.isnan(points[1]).all() else points, reason)


def _done(at_each: list[Rows], series: TaskSeries, adjusted: float | None) -> Iterator[MetricCurve]:
    """Shares of rows: that are not abstained from and of errors among them; or of each action."""
    rows, actions = at_each[0], [_actions(*each) for each in zip(at_each, series.tasks, strict=True)]

    def shares(
        name: str, title: str, heading: str, parts: list[Mask], wholes: Sequence[Mask | Literal[True]]
    ) -> MetricCurve:
        each = zip(at_each, parts, wholes, strict=True)
        return curve_of([_share(*one, adjusted) for one in each], _kind(name, title, heading, "share"))

    everyone: list[Literal[True]] = [True] * len(actions)
    if series.kind == ABSTAIN:
        accepted = [taken != len(rows.classes) for taken in actions]
        wrong = [taken != np.asarray(rows.label) for taken in actions]
        yield shares("coverage", "Coverage", "coverage", accepted, everyone)
        text = "Errors among the accepted"
        yield shares("accepted_error", text, text.lower(), wrong, accepted)
        return
    names = series.tasks[0].actions
    numbers = range(len(names)) if len(names) <= MAX_SHARES or series.entry is None else [series.entry[0]]
    for number in numbers:
        name, which = names[number], [taken == number for taken in actions]
        yield shares(f"share[{name}]", f"Share of rows: {name}", name, which, everyone)


def _share(rows: Rows, part: Mask, whole: Mask | Literal[True], adjusted: float | None) -> Result:
    """The share of a part of those rows that are accepted."""
    try:
        share = rows.units.share(part, whole, "no row is accepted")
    except Undefined as undefined:
        return Result(None, None, undefined.reason)
    return Result(share.value, None if adjusted is None else share.wilson(adjusted))


def risk_coverage(c: ClassTable, inputs: Inputs, adjusted: float | None) -> Risk:
    """The curve of these rows, with intervals where `adjusted` is their confidence."""
    error, effective = risk_at(c.top, COVERAGES)
    low, high = (None, None) if adjusted is None else wilson_ends(error, effective, adjusted)
    area = measure(AURC, inputs, adjusted)
    return Risk(COVERAGES, error, low, high, area.value, area.interval, area.reason)


WORK = 2e8
"""Units times thresholds that are looked at, for one model and group."""
PLACES = 1_000
RARE = 0.02
"""Below it thresholds lie densely where a threshold or the share of label 1 is smaller."""
WAYS = ("never", "always", "now", "recalibrate", "post-train")
"""Ways of acting, as advice numbers them: both constant decisions, the score as it is, and two that are fitted."""


@dataclass(frozen=True, eq=False)
class MovedDecisions:
    """What a fitted score changes at each threshold, shape (K,) each: rows newly acted on, by label, and half the width
    of the interval of its gain, for u_delta 1; top: rows of label 1 among the k / PLACES highest, (PLACES + 1,).
    """

    hits: Floats
    alarms: Floats
    half: Floats
    top: Floats


@dataclass(frozen=True, eq=False)
class Positions:
    """Decisions of one model on one group of rows, at thresholds `at`, shape (K,), in summed weight.

    hits, alarms: rows of label 1 and 0 with a score from t* on, or from the threshold of the task on, where it has
    one besides t*. top: as in MovedDecisions, by the score. recalibrated: from the score as it is; featured: from the
    recalibrated score; None where a gain is undefined. advice: numbers of WAYS, shape (K,).
    """

    at: Floats
    positives: float
    negatives: float
    hits: Floats
    alarms: Floats
    top: Floats
    recalibrated: MovedDecisions | None
    featured: MovedDecisions | None
    advice: tuple[int, ...] = ()

    def worth(self) -> dict[str, Floats]:
        """What ways of acting are worth over never acting at each threshold, for u_delta 1; shape (K,) each."""
        always = self._worth(self.positives, self.negatives)
        worth = {"never": 0 * always, "always": always, "now": self._worth(self.hits, self.alarms)}
        reached = worth["now"]
        for name, moved in (("recalibrate", self.recalibrated), ("post-train", self.featured)):
            if moved is not None:
                worth[name] = reached = reached + self._worth(moved.hits, moved.alarms)
        return worth

    def _worth(self, hits: Floats | float, alarms: Floats | float) -> Floats:
        return (hits * (1 - self.at) - alarms * self.at) / (self.positives + self.negatives)

    def over_constant(self) -> dict[str, Floats]:
        """What ways of acting win over the better constant decision, for u_delta 1, shape (K,) each."""
        worth = self.worth()
        constant = np.maximum(worth["never"], worth["always"])
        return {name: value - constant for name, value in worth.items()}

    def plain(self) -> dict[str, Any]:
        """The fields except `at` as numbers and lists, as a page holds them."""
        return {name: _plain(each) for name, each in vars(self).items() if name != "at"}


def _plain(each: Any) -> Any:
    """Numbers of an array to ten digits, whole ones without a point; 0 for nan; all else as it is."""
    if isinstance(each, MovedDecisions):
        return {name: _plain(values) for name, values in vars(each).items()}
    if not isinstance(each, np.ndarray):
        return each
    short = [float(f"{value:.10g}") for value in np.nan_to_num(each).tolist()]
    return [int(value) if value == int(value) else value for value in short]


def thresholds_for(own: tuple[float, ...], base_rate: float, units: float) -> Floats:
    """Thresholds to move between, shape (K,), increasing: those of a user, and more the fewer units there are."""
    least = min(*own, base_rate) if own else base_rate
    steps = next((steps for steps in (1_000, 500, 200) if units * steps <= WORK), 100)
    at = np.arange(1, steps) / steps
    if 0 < least < RARE:
        dense = np.geomspace(max(least / 100, 1e-6), RARE, steps // 2)
        at = np.append(np.arange(2, steps, 2) / steps, [float(f"{each:.3g}") for each in dense])
    return np.union1d(at, own)


def positions_of(
    t: Table, probed: Probed | None, task: BinaryTask, at: Floats, confidence: float | None, seed: int
) -> Positions:
    """The sums of a table, and of the same rows with features. at: thresholds, shape (K,)."""
    n, pos = np.asarray(t.n, dtype=float), np.asarray(t.pos, dtype=float)
    fixed = None if task.decision_threshold == task.threshold else task.decision_threshold
    acts = np.searchsorted(t.score, at if fixed is None else np.full(len(at), fixed), side="left")
    true, false = (np.append(np.cumsum(each[::-1])[::-1], 0.0)[acts] for each in (pos, n - pos))
    total = float(n.sum())
    recalibrated = featured = None
    with suppress(Undefined):
        held = held_out.of_table(t, seed)
        now = held.score if fixed is None else (held.score >= fixed).astype(float)
        recalibrated = _changed_at(held.units, now, held.recalibrated, at, total, confidence)
        if probed is not None:
            deals = probed.all_deals
            featured = _changed_at(deals.units, deals.recalibrated, deals.probe, at, total, confidence, deals.judge)
    return Positions(at, float(pos.sum()), total - float(pos.sum()), true, false, _top(t.score, n, pos),
                     recalibrated, featured)  # fmt: skip


def _changed_at(
    units: Units, now: Floats, then: Floats, at: Floats, total: float, confidence: float | None,
    judge: Judge | None = None,
) -> MovedDecisions:  # fmt: skip
    label = units.label.astype(float)
    positive = label if judge is None else (label + judge.chance.ravel()) / 2
    weight = units.weight * (total / units.total)
    before, after = (np.searchsorted(cuts, key, side="right") for cuts, key in ((at, now), (at * (1 - TIE), then)))

    def started(each: Floats) -> Floats:
        """The weight that is acted on at each threshold and was not, less that which no longer is."""
        change = np.bincount(after, each, len(at) + 1) - np.bincount(before, each, len(at) + 1)
        return np.cumsum(change[::-1])[::-1][1:]

    half = np.full(len(at), np.nan)
    if confidence is not None:
        half = np.array([gain.half_width(confidence) for gain in gains(units, now, then, at, judge)])
    order = np.argsort(then, kind="stable")
    top = _top(then[order], weight[order], (weight * positive)[order])
    return MovedDecisions(started(weight * positive), started(weight * (1 - positive)), half, top)


def _top(score: Floats, n: Floats, pos: Floats) -> Floats:
    """Label 1 among the highest k / PLACES of the weight; rows with equal scores share places. score: increasing."""
    starts = np.flatnonzero(np.append(True, score[1:] != score[:-1]))
    n, pos = (np.append(0.0, np.cumsum(np.add.reduceat(each, starts)[::-1])) for each in (n, pos))
    return np.interp(np.arange(PLACES + 1) / PLACES * n[-1], n, pos)


def advised_way(advice: Advice) -> int:
    """The way of WAYS that is advised."""
    now = advice.act_now
    if now.decision is not None:
        return int(bool(now.decision))
    return WAYS.index("now" if now.action == "done" else now.action)
