"""Metrics over models and groups: every value with its interval, or the reason why there is none."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from decal_cli.analysis.counts import DecisionCounts, count_decisions
from decal_cli.analysis.regimes import Regime, regimes_of
from decal_cli.data import Dataset, Input, Predictions
from decal_cli.declarations.defaults import CONFIDENCE, SEED
from decal_cli.errors import DecalError
from decal_cli.limits import MAX_SEED, MIN_RISK
from decal_cli.metrics import METRICS, Inputs, MetricSpec, Result, measure_all
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import BINS, CELLS
from decal_cli.task import BinaryTask, Task, need_two_actions
from decal_cli.version import __version__

IRREDUCIBLE = "irreducible_loss"
"""What is left of the Brier score when calibration and features have taken their parts."""
WORST = "regret_grouping_worst"
"""What could be lost to grouping, for those who name no features."""

Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Report:
    """The metrics of one model on one group of rows (group None: on all of them).

    counts: its decisions, where counted. regimes: its regret by bins of the score, where asked for.
    """

    model: str
    group: str | None
    rows: int
    positives: int
    levels: int
    dropped: int
    features: bool
    results: Mapping[str, Result]
    counts: DecisionCounts | None = None
    regimes: tuple[Regime, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What to compute and how: the choices of the user that stand in the signature."""

    choices: tuple[MetricSpec, ...]
    task: Task | None = None
    confidence: float = CONFIDENCE
    seed: int = SEED
    intervals: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            hint = f"; did you mean {self.confidence / 100:g}?" if 1 < self.confidence < 100 else ""
            raise DecalError(f"confidence {self.confidence:g} is not inside (0, 1)", f"give for example .9{hint}")
        if not MIN_RISK <= self.confidence <= 1 - MIN_RISK:
            raise DecalError(f"confidence {self.confidence!r} is too near 0 or 1", "give for example .999")
        if self.seed < 0:
            raise DecalError(f"seed {self.seed} is negative", "give 0 or a positive integer")
        if self.seed > MAX_SEED:
            raise DecalError(f"seed {self.seed} is beyond {MAX_SEED}", "give a smaller one")

    def two_actions(self, verb: str) -> BinaryTask | None:
        """The task, where it has two actions. Errors: DecalError, where it has more, which the verb cannot take."""
        return need_two_actions(self.task, f"decal {verb}")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All reports on one data set, and where they come from."""

    plan: Plan
    inputs: tuple[Input, ...]
    columns: Mapping[str, str | tuple[str, ...]]
    guessed: tuple[str, ...]
    notes: tuple[str, ...]
    reports: tuple[Report, ...]

    @property
    def task(self) -> Task | None:
        """The decision task the metrics speak of."""
        return self.plan.task

    @cached_property
    def rows(self) -> int:
        """Rows read."""
        return sum(item.rows for item in self.inputs)

    @property
    def signature(self) -> str:
        """What one must know to reproduce the numbers, on one line."""
        digest = hashlib.sha256("".join(sorted(item.sha256 for item in self.inputs)).encode()).hexdigest()[:8]
        parts = [f"decal:{__version__}", f"n:{self.rows}", f"task:{_task_text(self.task)}", f"bins:{BINS}mass"]
        parts += [f"conf:{self.plan.confidence:g}"] if self.plan.intervals else ["conf:none"]
        return "|".join([*parts, f"seed:{self.plan.seed}", f"in:{digest}"])


def all_choices() -> tuple[MetricSpec, ...]:
    """Every declared metric at its defaults."""
    return METRICS.specs()


def shown_choices(dataset: Dataset) -> tuple[MetricSpec, ...]:
    """The readable choice of metrics that a table shows unasked: one more with features, and another without."""
    with_features = any(model.rows.features is not None for model in dataset.models)
    unasked = {metric.name for metric in METRICS.values() if metric.shown} | {IRREDUCIBLE if with_features else WORST}
    return tuple(choice for choice in all_choices() if choice.name in unasked)


def evaluate(
    dataset: Dataset,
    plan: Plan,
    progress: Progress = lambda text: None,
    counted: bool = False,
    regimes: bool = False,
) -> Evaluation:
    """Compute the plan's metrics for every model, on all rows and on every group.

    counted: count its decisions too. regimes: look at each bin of its score too.
    """
    reports = []
    for model in dataset.models:
        for group, rows in model.rows.by_group():
            progress(f"{model.name}{'' if group is None else ' in ' + group}")
            reports.append(_report(model, group, rows, plan, counted, regimes))
    return Evaluation(plan, dataset.inputs, dataset.columns, dataset.guessed, dataset.all_notes, tuple(reports))


def _report(model: Predictions, group: str | None, rows: Rows, plan: Plan, counted: bool, regimes: bool) -> Report:
    inputs = Inputs(rows, plan.task, plan.seed)
    results = measure_all(plan.choices, inputs, plan.confidence if plan.intervals else None)
    return Report(
        model.name,
        group,
        len(rows),
        rows.positives,
        len(rows.table),
        model.dropped,
        rows.features is not None,
        {choice.key: result for choice, result in results.items()},
        count_decisions(inputs) if counted else None,
        regimes_of(inputs) if regimes else (),
    )


def resampled_cells(evaluation: Evaluation) -> int | None:
    """How many cells the resampling worked on, where a table had too many levels to resample them one by one."""
    return CELLS if any(report.levels > CELLS for report in evaluation.reports) else None


def _task_text(task: Task | None) -> str:
    if task is None:
        return "none"
    text = f"t={_listed(task.thresholds)}"
    if not math.isclose(task.u_delta, 1, rel_tol=1e-12):
        text += f",u_delta={task.u_delta:.12g}"
    if task.decision_thresholds != task.thresholds:
        text += f",at={_listed(task.decision_thresholds)}"
    return text


def _listed(thresholds: Iterable[float]) -> str:
    return ",".join(f"{threshold:.12g}" for threshold in thresholds)
