"""Metrics over models and groups: every value with its interval, or the reason why there is none."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from decal_cli import __version__
from decal_cli.errors import DecalError, Undefined
from decal_cli.metrics import METRICS, Choice
from decal_cli.metrics.intervals import quantile
from decal_cli.read import Dataset, Input, Predictions
from decal_cli.regions import Regions, build_regions
from decal_cli.table import CELLS, Table, tabulate
from decal_cli.task import Task

WORST = "regret_grouping_worst"
RESAMPLES = 200
"""Bootstrap draws; their mean and standard deviation are used, not their tails, so this many are enough."""

_SMALL = 4096
"""Up to this many levels a second thread costs more than it saves."""

Interval = tuple[float, float]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """A metric's value with its interval, or the reason why it is undefined."""

    value: float | None
    interval: Interval | None = None
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class Report:
    """The metrics of one model on one group of rows (group None: on all of them)."""

    model: str
    group: str | None
    rows: int
    positives: int
    levels: int
    dropped: int
    features: bool
    results: Mapping[str, Result]


@dataclass(frozen=True)
class Plan:
    """What to compute and how: the choices of the user that stand in the signature."""

    choices: tuple[Choice, ...]
    task: Task | None = None
    confidence: float = 0.95
    seed: int = 0
    intervals: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            hint = f"; did you mean {self.confidence / 100:g}?" if 1 < self.confidence < 100 else ""
            raise DecalError(f"confidence {self.confidence:g} is not inside (0, 1)", f"give for example .9{hint}")
        if self.seed < 0:
            raise DecalError(f"seed {self.seed} is negative", "give 0 or a positive integer")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All reports on one data set, and where they come from."""

    plan: Plan
    inputs: tuple[Input, ...]
    columns: Mapping[str, str | tuple[str, ...]]
    found: tuple[str, ...]
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
        parts = [f"decal:{__version__}", f"n:{self.rows}", f"task:{_task_text(self.task)}", "bins:15mass"]
        parts += [f"conf:{self.plan.confidence:g}"] if self.plan.intervals else ["conf:none"]
        return "|".join([*parts, f"seed:{self.plan.seed}", f"in:{digest}"])


def all_choices() -> tuple[Choice, ...]:
    """Every declared metric at its defaults."""
    return tuple(Choice(metric) for metric in METRICS.values())


def shown_choices(dataset: Dataset) -> tuple[Choice, ...]:
    """The readable choice of metrics that a table shows unasked; without features, with the worst case of them."""
    with_features = any(model.features is not None for model in dataset.models)
    unasked = {metric.name for metric in METRICS.values() if metric.shown} | (set() if with_features else {WORST})
    return tuple(choice for choice in all_choices() if choice.metric.name in unasked)


def evaluate(dataset: Dataset, plan: Plan, progress: Progress = lambda text: None) -> Evaluation:
    """Compute the plan's metrics for every model, on all rows and on every group."""
    reports = []
    for model in dataset.models:
        for group, rows in _groups(model):
            progress(f"{model.model}{'' if group is None else ' in ' + group}")
            reports.append(_report(model, group, rows, plan))
    return Evaluation(plan, dataset.inputs, dataset.columns, dataset.found, dataset.notes, tuple(reports))


def _groups(model: Predictions) -> Iterator[tuple[str | None, Any]]:
    yield None, None
    for column, values in model.groups.items():
        for value in np.unique(values):
            name = str(value) if len(model.groups) == 1 else f"{column}={value}"
            yield name, values == value


def _report(model: Predictions, group: str | None, rows: Any, plan: Plan) -> Report:
    def taken(values: Any) -> Any:
        return values if rows is None or values is None else values[rows]

    score, label, weight = taken(model.score), taken(model.label), taken(model.weight)
    table = tabulate(score, label, weight)
    inputs: dict[type, Any] = {Table: table, Task: plan.task}
    if model.features is not None and any(Regions in choice.metric.needs for choice in plan.choices):
        inputs[Regions] = build_regions(score, label, weight, taken(model.features()), seed=plan.seed)
    results = {choice.key: _result(choice, inputs, plan) for choice in plan.choices}
    if plan.intervals:
        results.update(_bootstrapped(results, inputs, plan))
    return Report(
        model.model,
        group,
        len(score),
        int(np.count_nonzero(label)),
        len(table),
        model.dropped,
        model.features is not None,
        results,
    )


def _seeded(inputs: Mapping[type, Any], choice: Choice, plan: Plan) -> dict[type, Any]:
    """The inputs with a generator of the metric's own: its draws do not depend on what else is computed."""
    seed = [plan.seed, zlib.crc32(choice.metric.name.encode())]
    return {**inputs, np.random.Generator: np.random.default_rng(seed)}


def _result(choice: Choice, inputs: Mapping[type, Any], plan: Plan) -> Result:
    try:
        value = choice.value(_seeded(inputs, choice, plan))
    except Undefined as undefined:
        return Result(None, None, undefined.reason)
    interval = choice.interval(_seeded(inputs, choice, plan), plan.confidence) if plan.intervals else None
    return Result(value, interval)


def _bootstrapped(results: Mapping[str, Result], inputs: Mapping[type, Any], plan: Plan) -> dict[str, Result]:
    """The bootstrap intervals of the metrics that have no analytic one, all from the same draws of the table.

    Bias-corrected normal: 2 value - mean of the draws -/+ z standard deviations, cut to the metric's range.
    """
    choices = [
        choice
        for choice in plan.choices
        if choice.metric.interval == "bootstrap" and results[choice.key].value is not None
    ]
    if not choices:
        return {}
    cells: Table = inputs[Table].cells
    # On cells a statistic differs a little from its value on all levels; the draws are compared with its own kind.
    centres = {choice.key: _quiet(choice, {**inputs, Table: cells}, plan) for choice in choices}
    draws: dict[str, list[float]] = {choice.key: [] for choice in choices}
    for resampled in _resamples(cells, np.random.default_rng([plan.seed, RESAMPLES])):
        if resampled is None:
            continue
        drawn = {**inputs, Table: resampled}
        for choice in choices:
            value = _quiet(choice, drawn, plan)
            if value is not None:
                draws[choice.key].append(value)
    found = {}
    for choice in choices:
        result, centre = results[choice.key], centres[choice.key]
        if result.value is not None and centre is not None and len(draws[choice.key]) > RESAMPLES // 2:
            interval = _corrected(np.array(draws[choice.key]), result.value, centre, plan)
            found[choice.key] = Result(result.value, _cut(interval, choice, plan))
    return found


def _resamples(cells: Table, rng: np.random.Generator) -> Iterator[Table | None]:
    """The bootstrap's tables; of a large one the next is drawn by a second thread while this one is evaluated."""
    if len(cells) <= _SMALL:
        yield from (_resample(cells, rng) for _ in range(RESAMPLES))
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(_resample, cells, rng)
        for _ in range(RESAMPLES - 1):
            drawn, coming = coming.result(), pool.submit(_resample, cells, rng)
            yield drawn
        yield coming.result()


def _resample(cells: Table, rng: np.random.Generator) -> Table | None:
    """One draw; None where it came out empty, as it may of very few rows."""
    try:
        return cells.resample(rng)
    except Undefined:
        return None


def _quiet(choice: Choice, inputs: Mapping[type, Any], plan: Plan) -> float | None:
    try:
        return choice.value(_seeded(inputs, choice, plan) if np.random.Generator in choice.metric.needs else inputs)
    except Undefined:
        return None


def _corrected(draws: Any, value: float, centre: float, plan: Plan) -> Interval:
    middle = value - (float(draws.mean()) - centre)
    reach = quantile(plan.confidence) * float(draws.std(ddof=1))
    return middle - reach, middle + reach


def _cut(interval: Interval, choice: Choice, plan: Plan) -> Interval:
    low, high = choice.metric.range
    unit = plan.task.u_delta if choice.metric.bounds_in_u_delta and plan.task is not None else 1.0
    return tuple(min(max(end, low * unit), high * unit) for end in interval)  # type: ignore[return-value]


def resampled_cells(evaluation: Evaluation) -> int | None:
    """How many cells the resampling worked on, where a table had too many levels to resample them one by one."""
    return CELLS if any(report.levels > CELLS for report in evaluation.reports) else None


def _task_text(task: Task | None) -> str:
    if task is None:
        return "none"
    text = f"t={task.threshold:.12g}"
    if not math.isclose(task.u_delta, 1, rel_tol=1e-12):
        text += f",u_delta={task.u_delta:.12g}"
    if task.decision_threshold != task.threshold:
        text += f",at={task.decision_threshold:.12g}"
    return text
