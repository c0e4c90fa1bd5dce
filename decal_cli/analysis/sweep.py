"""Curves over models and groups: every threshold at once, with what pictures are drawn from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from decal_cli.analysis.evaluate import Evaluation, Plan, Progress
from decal_cli.analysis.places import listed_rows
from decal_cli.analysis.varied import AT_CAPACITY, curve_of, head_of
from decal_cli.curves import FeaturedRows, Grid, MetricCurve, curves_of
from decal_cli.curves.kinds import CURVE_KINDS
from decal_cli.curves.lowest import Lowest, lowest_curve, same_rows
from decal_cli.data import Dataset, Predictions
from decal_cli.errors import Undefined
from decal_cli.learn.probe import Probed, build_probe
from decal_cli.learn.regions import Regions, build_regions, hold_out
from decal_cli.metrics import Inputs, Result, grouping, measure, parse
from decal_cli.metrics.within_cells import of_curves
from decal_cli.numbers import plain
from decal_cli.tables.aggregated import Aggregated
from decal_cli.tables.listed import Capacity
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import FEWEST_ROWS, Table
from decal_cli.task import BinaryTask, Task

LADDER = (
    "expected_utility",
    "eu_never",
    "eu_always",
    "external_regret",
    "gain_recalibration",
    "gain_beyond",
    "gain_post_training",
    "regret_grouping_worst",
)
"""What the waterfall of one decision is made of."""


@dataclass(frozen=True, eq=False)
class Swept:
    """The curves of one model on one group of rows (group None: on all of them)."""

    model: str
    group: str | None
    rows: int
    positives: int
    dropped: int
    curves: Mapping[str, MetricCurve]
    table: Table
    regions: Regions | None
    probed: Probed | None = None

    @property
    def name(self) -> str:
        """Model and group on one line."""
        return self.model if self.group is None else f"{self.model}, {self.group}"

    @property
    def grouping_loss(self) -> float | None:
        """The honest grouping loss, which the area between curves is to be held against."""
        if self.regions is None:
            return None
        try:
            return grouping.loss(self.regions).mean
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
        return () if self.head.plan.task is None else self.head.plan.task.thresholds

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
    plan.need_shared("sweep")
    plan.decision_of(dataset.classes)
    grid = grid.having(() if plan.task is None else plan.task.thresholds)
    reports = []
    for model in dataset.models:
        limited = _at_capacity(model.rows, dataset.capacity, plan, grid)
        for group, rows in model.rows.by_group():
            progress(f"{model.name}{'' if group is None else ' in ' + group}")
            one = _swept(model, group, rows, plan, grid)
            reports.append(replace(one, curves={**one.curves, **limited.get(group, {})}))
    head = head_of(dataset, plan, decided=False)
    head = replace(head, notes=(*head.notes, *_of_cells(reports, grid)))
    return Sweep(head, grid, tuple(reports), None if dataset.apart else _lowest(dataset.models, grid, plan))


def _of_cells(reports: Sequence[Swept], grid: Grid) -> Iterator[str]:
    """Of each model that is known by cells of its score: how far its curves may be off."""
    for report in reports:
        bounds = of_curves(report.table, grid.thresholds) if report.group is None else None
        if bounds is not None:
            decided = f"at most {plain(bounds[0])} off" if bounds[0] else "exact"
            yield (
                f"{report.model}: from cells of the score; what decisions are worth is {decided}, calibrated at most "
                f"{plain(bounds[1])} more off (u_delta 1); other curves are those of each cell's mean score"
            )


def _lowest(models: Sequence[Predictions], grid: Grid, plan: Plan) -> Lowest | None:
    rows = [model.rows for model in models]
    sure = rows[0].sure(plan.confidence)
    counted = isinstance(rows[0], Aggregated)
    if counted or len(rows) < 2 or len(rows[0]) < FEWEST_ROWS or sure is None or not same_rows(rows):
        return None
    return lowest_curve([(model.name, model.rows) for model in models], grid.thresholds, sure, plan.seed)


def _swept(model: Predictions, group: str | None, rows: Rows, plan: Plan, grid: Grid) -> Swept:
    table = rows.table
    regions = probed = featured = None
    if rows.features is not None:
        regions, held = build_regions(rows, seed=plan.seed), hold_out(rows, seed=plan.seed)
        probed = build_probe(rows, seed=plan.seed)
        featured = FeaturedRows(regions, held, probed)
    sure = rows.sure(plan.confidence) if plan.intervals else None
    curves = curves_of(table, featured, grid, confidence=sure, seed=plan.seed)
    return Swept(model.name, group, len(rows), rows.positives, model.dropped, curves, table, regions, probed)


def _at_capacity(
    rows: Rows, capacity: Capacity | None, plan: Plan, grid: Grid
) -> dict[str | None, dict[str, MetricCurve]]:
    """By group, what acting on so many rows is worth at each threshold, below which no row is acted on."""
    found: dict[str | None, dict[str, list[Result]]] = {}
    for threshold in () if capacity is None else grid.thresholds:
        task = BinaryTask.of_threshold(threshold)
        assert capacity is not None  # there are none without
        for group, part in listed_rows(rows, capacity, task, plan.seed).by_group():
            sure, inputs = part.sure(plan.confidence) if plan.intervals else None, Inputs(part, task, plan.seed)
            for name in AT_CAPACITY:
                result = measure(parse(name), inputs, sure)
                found.setdefault(group, {}).setdefault(name, []).append(result)
    return {
        group: {name: curve_of(name, each, CURVE_KINDS[name]) for name, each in curves.items()}
        for group, curves in found.items()
    }


def ladder_results(report: Swept, task: Task, plan: Plan) -> dict[str, Result]:
    """The waterfall's values and intervals at one decision, in its utilities, as `evaluate` has them."""
    inputs = Inputs.of(report.table, report.probed, task, seed=plan.seed)
    sure = report.table.design.confidence(plan.confidence) if plan.intervals else None
    return {name: measure(parse(name), inputs, sure) for name in LADDER}
