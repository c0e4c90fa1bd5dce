"""Metrics over models and groups: every value with its interval, or the reason why there is none."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from decal_cli.analysis.described import (
    ByRow,
    Clusters,
    Reference,
    Section,
    Sectioned,
    best_recalibrator,
    by_row_of,
    cluster_notes,
    clusters_of,
    count_actions,
    count_cells,
    count_classes,
    count_decisions,
    decided,
    gains_over_time,
    places_of,
    prior_shift_gain,
    regimes_of,
    select_rows,
    single_precision_notes,
    without_labels,
    worth_of,
)
from decal_cli.analysis.packs import NO_PACK, Gap, Pack, Packed, TooSmall, by_outcome, compare_groups
from decal_cli.data import Dataset, Input, Predictions
from decal_cli.declarations.defaults import CONFIDENCE, SEED
from decal_cli.declarations.document import Names
from decal_cli.errors import DecalError
from decal_cli.hints import Hint, Verb
from decal_cli.limits import MAX_SEED, MIN_RISK
from decal_cli.metrics import METRICS, Inputs, Metric, MetricSpec, Result, known_values, measure_all, parse
from decal_cli.metrics.inputs import row_stakes
from decal_cli.numbers import Estimated
from decal_cli.roles import ROW_UTILITIES_FIX
from decal_cli.tables.population import Population
from decal_cli.tables.row_utilities import RowStakes
from decal_cli.tables.rows import Rows
from decal_cli.tables.selection import Capacity, limit_text
from decal_cli.tables.table import BINS, CELLS
from decal_cli.task import (
    BinaryTask,
    ClassDecision,
    ClassTask,
    Decision,
    GivenDecision,
    RowTask,
    Task,
    need_two_actions,
)
from decal_cli.version import __version__

Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class OfModel:
    """What is said of one model, on all rows (group None) or on one group of them."""

    model: str
    group: str | None

    @property
    def of_all_rows(self) -> bool:
        """Whether it is no group."""
        return self.group is None

    @property
    def place(self) -> tuple[str, str | None]:
        """Model and group."""
        return self.model, self.group

    @property
    def name(self) -> str:
        """Model and group on one line."""
        return ", ".join(filter(None, self.place))


@dataclass(frozen=True, eq=False)
class MetricReport(OfModel, Sectioned):
    """Results of one model, or of one less another, by metric; positives: None for rows of several classes."""

    rows: int
    positives: int | None
    results: Mapping[str, Result]

    @property
    def of_classes(self) -> bool:
        """Whether rows are of several classes."""
        return self.positives is None

    def value(self, key: str) -> float | None:
        """The value of a metric; None where it is undefined, or was not measured."""
        return self.results[key].value if key in self.results else None


def known_in(reports: Iterable[MetricReport], keys: Iterable[str]) -> list[str]:
    """Which of these metrics any of the reports has a value of."""
    known = {key for report in reports for key in known_values(report.results)}
    return [key for key in keys if key in known]


@dataclass(frozen=True, eq=False)
class Report(MetricReport):
    """The metrics of one model on one group of rows (group None: on all of them), and the sections that stand below.

    levels: of the score, 0 for rows of several classes. unlearnable: the features that were read and of which nothing
    can be learned as they are.
    """

    levels: int
    dropped: int
    features: bool
    unlearnable: Names = ()

    def known(self, key: str) -> Estimated | None:
        """The value with its interval; None where it is undefined, or was not measured."""
        value = self.value(key)
        return None if value is None else Estimated(value, self.results[key].interval)


@dataclass(frozen=True)
class Plan:
    """What to compute and how: the choices of the user that stand in the signature."""

    choices: tuple[MetricSpec, ...]
    decision: GivenDecision | None = None
    confidence: float = CONFIDENCE
    seed: int = SEED
    intervals: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            hint = f"; did you mean {self.confidence / 100:g}?" if 1 < self.confidence < 100 else ""
            raise DecalError(f"confidence {self.confidence:g} is not inside (0, 1)", f"give for example 0.9{hint}")
        if not MIN_RISK <= self.confidence <= 1 - MIN_RISK:
            raise DecalError(f"confidence {self.confidence!r} is too near 0 or 1", "give for example 0.999")
        if self.seed < 0:
            raise DecalError(f"seed {self.seed} is negative", "give 0 or a positive integer")
        if self.seed > MAX_SEED:
            raise DecalError(f"seed {self.seed} is beyond {MAX_SEED}", "give a smaller one")

    @property
    def level(self) -> float | None:
        """The confidence of the intervals, None where there are to be none."""
        return self.confidence if self.intervals else None

    def inputs(self, rows: Rows) -> Inputs:
        """What metrics of these rows are computed from."""
        return Inputs(rows, self.decision_of(rows.classes), self.seed)

    def decision_of(self, classes: Sequence[str]) -> Decision | None:
        """The decision on rows of these classes, () for one score. Errors: DecalError, where it is of others."""
        return None if self.decision is None else self.decision.for_classes(classes)

    def shared_by(self, classes: Sequence[str]) -> Task | ClassDecision | None:
        """The decision that all rows share, for these classes; None where rows have utilities of their own."""
        decision = self.decision_of(classes)
        return None if isinstance(decision, RowTask) else decision

    @property
    def task(self) -> Task | None:
        """The decision, where it is one on scores of two classes that all rows share."""
        return self.decision if isinstance(self.decision, Task) else None

    @property
    def by_row(self) -> bool:
        """Whether every row has utilities of its own."""
        return isinstance(self.decision, RowTask)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The user's own t*, one for each step from an action to the next."""
        return self.task.thresholds if self.task else ()

    @property
    def edges(self) -> tuple[float, ...]:
        """The thresholds of the decisions, at which counts of rows must be exact."""
        return tuple(sorted({*self.thresholds, *self.task.decision_thresholds})) if self.task else ()

    @property
    def binary(self) -> BinaryTask | None:
        """The task of two classes, where two of its actions are ever taken; else None."""
        return None if self.task is None else self.task.two_actions

    @property
    def simplest(self) -> Plan:
        """This plan, with the task reduced to two actions where no third is ever taken."""
        return self if self.binary is None else replace(self, decision=self.binary)

    def need_shared(self, what: Verb | str) -> Task | ClassTask | None:
        """The decision that all rows share. Errors: DecalError, where each has its own, which this cannot take."""
        if isinstance(self.decision, RowTask):
            raise DecalError(
                f"{what} takes one utility for all rows, and {Hint(self.decision.columns[0])} gives each row its own",
                "drop one of them" if isinstance(what, Verb) and what.option else ROW_UTILITIES_FIX,
            )
        return self.decision

    def for_rows(self, dataset: Dataset) -> Plan:
        """The plan for these rows: with one task for all of them, where their utilities are all the same."""
        if not isinstance(self.decision, RowTask):
            return self
        if any(np.ptp(each, axis=0).any() for model in dataset.models for each in model.rows.amounts.values()):
            return self
        utilities = [row_stakes(model.rows, self.decision) for model in dataset.models]
        if not all(one.alike for one in utilities):
            return self
        first = utilities[0].utility.take(0)
        (tn, fn), (fp, tp) = ([float(first[a, k]) for k in (0, 1)] for a in (0, 1))
        return replace(self, decision=BinaryTask.of_utility(((tn, fn), (fp, tp))))

    def two_actions(self, what: Verb | str) -> BinaryTask | None:
        """The task, where it has two actions. Errors: DecalError, where it has more, which this cannot take."""
        return need_two_actions(self.need_shared(what), f"{what}")


@dataclass(frozen=True, eq=False)
class Evaluation(Sectioned):
    """All reports on one data set, and where they come from."""

    plan: Plan
    inputs: tuple[Input, ...]
    columns: Mapping[str, str | Names]
    guessed: Names
    notes: Names
    reports: tuple[Report, ...]
    decision: ClassDecision | None = None
    """The task of rows of several classes."""
    population: Population | None = None
    """The one that rows are counted as; None: their own."""
    capacity: Capacity | None = None
    """How many rows can be acted on; None: all."""
    by_row: ByRow | None = None
    """What the utilities of the rows come to, where every row has its own."""

    @property
    def task(self) -> Task | None:
        """The decision task the metrics speak of."""
        return self.plan.task

    @property
    def decided_by(self) -> Task | ClassDecision | None:
        """The task, whether rows are of two classes or of several."""
        return self.task if self.decision is None else self.decision

    @property
    def limit(self) -> str:
        """How many rows can be acted on, in words; '' for all."""
        return limit_text(self.capacity.text, self.columns.get("per")) if self.capacity else ""

    @property
    def models(self) -> Names:
        """Their names."""
        return tuple(dict.fromkeys(report.model for report in self.reports))

    @property
    def whole(self) -> tuple[Report, ...]:
        """The reports on all rows, one for each model."""
        return tuple(report for report in self.reports if report.of_all_rows)

    @cached_property
    def by_place(self) -> Mapping[tuple[str, str | None], Report]:
        """Each report by its model and group."""
        return {report.place: report for report in self.reports}

    @cached_property
    def rows(self) -> int:
        """Rows read; where files were joined on ids, a row of each is one row."""
        if "id" in self.columns:
            return self.reports[0].rows + self.reports[0].dropped
        return sum(item.rows for item in self.inputs)

    @property
    def signature(self) -> str:
        """What one must know to reproduce the numbers, on one line."""
        digest = hashlib.sha256("".join(sorted(item.sha256 for item in self.inputs)).encode()).hexdigest()[:8]
        parts = [f"decal:{__version__}", f"n:{self.rows}", f"task:{self._task_text()}", f"bins:{BINS}mass"]
        parts += [f"conf:{self.plan.confidence:g}"] if self.plan.intervals else ["conf:none"]
        parts += [f"seed:{self.plan.seed}", f"in:{digest}"]
        parts += [f"cluster:{self.columns['cluster']}"] if "cluster" in self.columns else []
        parts += [f"time:{self.columns['time']}"] if "time" in self.columns else []
        if self.population is not None:
            there = self.population.prevalence
            classes = there if isinstance(there, dict) else {"": there}
            shares = ",".join(f"{name}{'=' if name else ''}{share:g}" for name, share in classes.items())
            parts.append(f"prevalence:{shares}{'kept' if self.population.kept else ''}")
        if self.capacity is not None:
            per = f":{self.columns['per']}" if "per" in self.columns else ""
            parts.append(f"capacity:{self.capacity.text}{per}")
        return "|".join(parts)

    def _task_text(self) -> str:
        task = self.plan.decision
        if self.by_row is not None:
            return self.by_row.text
        if isinstance(task, ClassTask):
            return hashlib.sha256(repr(task).encode()).hexdigest()[:8]
        if not isinstance(task, Task):
            return "none"

        def listed(thresholds: Iterable[float]) -> str:
            return ",".join(f"{threshold:.12g}" for threshold in thresholds)

        text = f"t={listed(task.thresholds)}"
        if not math.isclose(task.u_delta, 1, rel_tol=1e-12):
            text += f",u_delta={task.u_delta:.12g}"
        if task.decision_thresholds != task.thresholds:
            text += f",at={listed(task.decision_thresholds)}"
        return text


def evaluate(
    dataset: Dataset,
    plan: Plan,
    progress: Progress = lambda text: None,
    counted: bool = False,
    regimes: bool = False,
    pack: Pack = NO_PACK,
    reference: Reference | None = None,
    then: Callable[[Report, Inputs], None] = lambda report, inputs: None,
) -> Evaluation:
    """Compute the plan's metrics for every model, on all rows and on every group.

    counted: count its decisions too. regimes: look at each bin of its score too. pack: show what else it shows.
    reference: what metrics of a shift compare the rows with. then: called with each report, and what it was computed
    from.
    """
    if pack.name:
        dataset.need_two_classes(f"evaluate {Hint('pack').words}")
        if pack.compares_groups and not dataset.models[0].rows.groups:
            raise DecalError(f"{Hint('pack', pack.name)} compares groups", f"name their column with {Hint('group')}")
    reports: list[Report] = []
    stakes = None
    gaps: list[Gap] = []
    too_small: list[TooSmall] = []
    plan = plan.for_rows(dataset)
    dataset = with_lists(dataset, plan)
    for model in dataset.models:
        for group, rows in model.rows.by_group():
            progress(f"{model.name}{'' if group is None else ' in ' + group}")
            inputs = plan.inputs(rows)
            if reference is not None:
                inputs = inputs.override(reference.scores[model.name])
            report = _report(dataset, model, group, rows, inputs, plan).with_sections(
                *(_counts(rows, inputs, plan, dataset.population) if counted else ()),
                regimes_of(inputs) if regimes else None,
                by_outcome(rows) if pack.by_outcome else None,
            )
            if plan.by_row and not reports:
                stakes = inputs.find(RowStakes)
            reports.append(report)
            then(report, inputs)
        if pack.compares_groups:
            progress(f"{model.name}: gaps between groups")
            own = [report for report in reports if report.model == model.name]
            known = [*map(parse, known_in(own, pack.measures))]
            for _, _, comparison in compare_groups(model.name, model.rows, known, plan.inputs, plan.level):
                gaps += comparison.pairs
                too_small += comparison.too_small
    clusters = {report.model: (report.rows, report.find(Clusters)) for report in reports if report.of_all_rows}
    head = head_of(dataset, plan, clusters, stakes)
    packed = Packed(pack, tuple(gaps), tuple(too_small)) if pack.name else None
    return replace(head, reports=tuple(reports)).with_sections(packed, reference)


def _report(dataset: Dataset, model: Predictions, group: str | None, rows: Rows, inputs: Inputs, plan: Plan) -> Report:
    """The metrics of a model on these rows, and what stands beside them whatever was asked for."""
    adjusted, classes = rows.adjusted_confidence(plan.level), bool(dataset.classes)
    results = {choice.key: result for choice, result in measure_all(plan.choices, inputs, adjusted).items()}
    # Rows without a label are those of the file, not of a group or of another population.
    unlabelled = model.without_label if group is None and dataset.population is None else None
    report = Report(
        model=model.name,
        group=group,
        rows=len(rows),
        positives=None if classes else rows.positives,
        results=results,
        levels=0 if classes else len(rows.table),
        dropped=model.dropped,
        features=rows.has_features,
        unlearnable=() if dataset.features is None else dataset.features.unlearnable,
    )
    return report.with_sections(
        *((count_classes(rows.class_table), count_cells(inputs)) if classes else ()),
        clusters_of(rows),
        places_of(rows),
        worth_of(inputs, adjusted),
        None if unlabelled is None else without_labels(unlabelled, inputs, results, plan.level),
        gains_over_time(inputs, adjusted),
    )


def _counts(rows: Rows, inputs: Inputs, plan: Plan, population: Population | None) -> Iterator[Section | None]:
    """What decisions come to, now, recalibrated and with the features, and the method that recalibrates best."""
    binary = plan.binary
    yield best_recalibrator(inputs)
    if inputs.of_classes:
        yield count_actions(inputs)
        return
    yield count_decisions(inputs)
    # Where there are two actions, counts of decisions say it all.
    if binary is None:
        yield count_actions(inputs)
        yield count_cells(inputs)
    elif population is not None and decided(rows, binary, population):
        yield prior_shift_gain(rows, binary, population, rows.adjusted_confidence(plan.level))


def head_of(
    dataset: Dataset,
    plan: Plan,
    clusters: Mapping[str, tuple[int, Clusters | None]] | None = None,
    stakes: RowStakes | None = None,
    thresholds: Iterable[float] = (),
) -> Evaluation:
    """The plan and where the rows come from, with no metric in it.

    clusters: rows and clusters of models; stakes: of the rows of the first one, where every row has its own; if known.
    thresholds: those of scores that are looked at beside the decision's.
    """
    notes, decision = dataset.all_notes, plan.decision_of(dataset.classes)
    if dataset.clusters is not None:
        known = clusters or {each.name: (len(each.rows), clusters_of(each.rows)) for each in dataset.models}
        notes += (*cluster_notes(known),)
    if not dataset.classes:
        rows = {each.name: each.rows for each in dataset.models}
        own = plan.task.decision_thresholds if plan.task else ()
        notes += (*single_precision_notes(rows, sorted({*own, *thresholds})),)
    return Evaluation(
        *(plan, dataset.inputs, dataset.columns, dataset.guessed, notes, ()),
        decision=decision if isinstance(decision, ClassDecision) else None,
        population=dataset.population,
        capacity=dataset.capacity,
        by_row=by_row_of(dataset, decision, stakes) if isinstance(decision, RowTask) else None,
    )


def with_lists(dataset: Dataset, plan: Plan, task: Decision | None = None) -> Dataset:
    """The data set with what its capacity leaves to act on; itself, where there is no limit. Errors: DecalError.

    task: the decision, by default that of the plan.
    """
    capacity = dataset.capacity
    if capacity is None:
        return dataset
    task = plan.decision_of(dataset.classes) if task is None else task
    if dataset.classes and task is None:
        raise DecalError(
            f"{Hint('capacity')} of several classes needs a decision, which says where acting wins most",
            f"give {Hint('utility')} with a column for each class, {Hint('abstain')} or {Hint('utility_columns')}",
        )
    return dataset.changed(
        lambda rows: select_rows(rows, capacity, task, plan.seed) if rows.selection is None else rows
    )


def resampled_cells(levels: Iterable[int]) -> int | None:
    """How many cells the resampling worked on, where a table had too many levels to resample them one by one."""
    return CELLS if max(levels, default=0) > CELLS else None


IRREDUCIBLE = "irreducible_loss"
"""What is left of the Brier score when calibration and features have taken their parts."""
CAPACITY = "capacity"
"""The family of metrics that a table shows where so many rows can be acted on only."""
CAPACITY_FAMILIES = (CAPACITY, "places")
"""Families of metrics at a capacity, including those that need utilities of each row."""
WORST = "regret_grouping_worst"
"""What could be lost to grouping, for those who name no features."""


def all_choices(of_classes: bool = False, slow: bool = False) -> tuple[MetricSpec, ...]:
    """Every metric at its defaults: of scores of two classes, or of rows of several; slow: those too that take long."""
    declared = (choice for choice in METRICS.specs() if choice.declared.takes(of_classes))
    return tuple(choice for choice in declared if slow or not choice.declared.form(of_classes).slow)


def shown_choices(dataset: Dataset, plan: Plan) -> tuple[MetricSpec, ...]:
    """The readable choice of metrics that a table shows unasked: one more with features, and another without."""
    of_classes, by_row, limited = bool(dataset.classes), plan.by_row, dataset.capacity is not None
    more = set()
    if not of_classes and not by_row:
        with_features = any(model.rows.has_features for model in dataset.models)
        more = {IRREDUCIBLE if with_features else WORST}
    return tuple(
        choice
        for choice in all_choices(of_classes)
        if choice.name in more or is_shown(choice.declared, of_classes, by_row, limited)
    )


BY_ROW = ("expected_utility", "eu_never", "eu_always", "eu_by_amount", "gain_over_amount")
"""What is shown of rows with utilities of their own beside the metrics that are shown of all rows."""


def is_shown(metric: Metric, of_classes: bool, by_row: bool, limited: bool) -> bool:
    """Whether a metric is shown unasked; by_row: of rows with utilities of their own; limited: at a capacity."""
    if metric.family in CAPACITY_FAMILIES:
        if of_classes:
            return limited
        return limited and (metric.name != "capacity_threshold" if by_row else metric.family == CAPACITY)
    if by_row:
        return metric.name in BY_ROW or (metric.shown and not metric.on(of_classes, by_row).shares_task)
    return metric.form(of_classes).shown
