"""One unit of a study: a score of a file, its rows halved by a seed; estimates from one half, gains on the other.

Everything is per unit of u_delta. Tasks are thresholds, as in Perez-Lebel et al. 2025: U = [[1, 0], [0, 1/t* - 1]], so
that u_delta is 1/t*; or, of several classes or of more than two actions, tasks by name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis.flowchart import (
    BEYOND,
    EVIDENCE_KEYS,
    NEW_THRESHOLD,
    OVER_CONSTANT,
    POST_TRAINING,
    RECALIBRATION,
)
from decal_cli.data import Predictions
from decal_cli.declarations.defaults import CONFIDENCE
from decal_cli.errors import DecalError, Undefined
from decal_cli.hints import Hint
from decal_cli.learn.method import Applied, MethodSpec, Model, Training, fit_each, missing, training_rows, won
from decal_cli.learn.methods import METHODS, methods_for_two
from decal_cli.learn.probe import Recalibrated
from decal_cli.learn.regions import build_regions
from decal_cli.limits import MAX_UTILITY
from decal_cli.metrics import Inputs, MetricSpec, parse
from decal_cli.metrics import measure as measure_metric
from decal_cli.tables.threads import one_thread
from decal_cli.task import BinaryTask, ClassDecision, ClassTask, Task

CHOSEN = "chosen"
"""The scaling that cross-fitting on the fit half chooses among those that `gain_recalibration` tries."""
PRICES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
MISSED, TIMES = 4, 10.0
"""Classes, the first ones, whose misses are made dearer, and by how much."""
OF_CLASSES = tuple(
    parse(name) for name in ("ece_top", "ece_top_debiased", "ece_classwise", "brier", "log_loss", "auc", "accuracy")
)
"""Metrics of several classes that are the same for every task."""
OF_NAMED_TASKS = tuple(
    parse(name) for name in (RECALIBRATION, BEYOND, POST_TRAINING, OVER_CONSTANT, "regret_calibration", "swap_regret")
)


@dataclass(frozen=True)
class NamedTask:
    """A task of a study. given: as the user spells it; missed: else, the class whose misses cost TIMES as much."""

    name: str
    given: Task | ClassTask | None = None
    missed: int | None = None

    def of(self, classes: Sequence[str]) -> Task | ClassDecision:
        """The task for these classes: by default an action for each, of which the right one is worth most."""
        if isinstance(self.given, Task):
            return self.given
        if self.given is not None:
            return self.given.for_classes(classes)
        cost = 1.0 - np.eye(len(classes))
        if self.missed is not None:
            cost[:, self.missed] *= TIMES
        return ClassDecision(tuple(map(tuple, (0.0 - cost).tolist())), tuple(classes))

    def fits(self, classes: Sequence[str]) -> bool:
        """Whether there is such a class."""
        return self.missed is None or self.missed < len(classes)


BY_DEFAULT = (
    NamedTask("accuracy"),
    *(NamedTask(f"abstain {price:g}", ClassTask(abstain=price)) for price in PRICES),
    *(NamedTask(f"misses of class {k + 1} x {TIMES:g}", missed=k) for k in range(MISSED)),
)
"""Of several classes, where the user names no task."""


def tasks_named(task: Task | ClassTask | None) -> tuple[NamedTask, ...]:
    """The one task that the user names, if any. Errors: DecalError, for two actions, which thresholds are for."""
    if task is None:
        return ()
    if isinstance(task, Task) and task.two_actions is not None:
        at = task.two_actions.threshold
        raise DecalError("a task of two actions is studied by its t*", f"give {Hint('thresholds', f'{at:g}')}")
    price = task.abstain if isinstance(task, ClassTask) else None
    return (NamedTask("your task" if price is None else f"abstain {price:g}", task),)


EVEN = 0.5
"""The score from which accuracy decides 1, whatever t*."""
OF_SCORES = tuple(parse(name) for name in ("ece", "mce", "rmsce", "cl", "brier", "auc", "accuracy"))
"""Metrics of other tools: the same at every t*."""
PLUG_IN = ("regret_calibration", "grouping_loss", "regret_grouping", "regret")
"""The estimates that [R] proposes."""
PREDICTORS = ("regret_calibration", "regret_grouping", "regret", *(choice.key for choice in OF_SCORES))
"""What [R] holds against the gains, in its figures 4b, 5b and 6b; accuracy is in its figure 12."""
OF_TASKS = tuple(parse(name) for name in dict.fromkeys((*EVIDENCE_KEYS, *PLUG_IN)))
ESTIMATES = tuple(dict.fromkeys(choice.key for choice in (*OF_TASKS, *OF_SCORES)))
WITH_INTERVALS = (RECALIBRATION, BEYOND, POST_TRAINING, OVER_CONSTANT, NEW_THRESHOLD)
"""Estimates whose interval is kept: the advice rests on no other, and some take longer than all else together."""
FEWEST = 100
"""Rows below which a score of a file is skipped: its halves are too small."""


@dataclass(frozen=True)
class Unit:
    """What is halved: file and score by name, and the seed of the halving."""

    file: str
    score: str
    seed: int


@dataclass(frozen=True)
class Setting:
    """What is measured of every unit. methods: () for all that rows allow."""

    thresholds: tuple[float, ...]
    methods: tuple[MethodSpec, ...]
    confidence: float = CONFIDENCE
    tasks: tuple[NamedTask, ...] = ()
    """In place of thresholds: of several classes, or of more than two actions."""

    def for_rows(self, of_classes: bool, path: str) -> Setting:
        """The same with the tasks and methods of these rows, where none are named. Errors: DecalError."""
        if of_classes != any(not isinstance(task.given, Task) for task in self.tasks) and self.tasks:
            raise DecalError(
                f"{path}: {'rows are of several classes' if of_classes else 'scores are of two classes'}, and the task"
                " is not",
                "give a task of these classes, or none",
            )
        tasks = self.tasks or (BY_DEFAULT if of_classes else ())
        of_kind = tuple(spec for spec in METHODS.specs() if of_classes and spec.declared.of_classes is not None)
        return replace(self, tasks=tasks, methods=self.methods or of_kind or methods_for_two())


Record = dict[str, Any]
"""One unit as plain data: see `measure`."""


def task_of(threshold: float) -> BinaryTask:
    """The task of Perez-Lebel et al. 2025, app. C.3, with this t*."""
    return BinaryTask.of_utility(((1.0, 0.0), (0.0, 1.0 / threshold - 1.0)))


def measure(unit: Unit, model: Predictions, setting: Setting) -> Record:
    """Estimates and gains of one unit at every threshold, or for every task by name, JSON-ready.

    {"file", "score", "seed", "rows", "seconds": {method: s}, "reasons": {method: why it has no gain},
    "points": [{"threshold", "estimates": {metric: [value, low, high]}, "gains": {method: gain or null}, "constants":
    [gain of always deciding 0, of always deciding 1]}]}; values are null where undefined, low and high where it is not
    among WITH_INTERVALS. Points of a task by name have "task" beside a threshold of null, and no constants.
    """
    _import_once()
    # Sums come out the same in any process, and processor time is not that of threads that wait for each other.
    with one_thread():
        rows = training_rows(model, None, unit.seed)
        fit, test = _halves(rows, unit.seed)
        if setting.tasks:
            named = {task.name: task.of(rows.classes) for task in setting.tasks if task.fits(rows.classes)}
            points: list[Record] = [{"threshold": None, "task": name} for name in named]
            tasks: list[Task | ClassDecision] = list(named.values())
        else:
            points, tasks = [{"threshold": t} for t in setting.thresholds], [task_of(t) for t in setting.thresholds]
        inputs = Inputs(fit, seed=unit.seed)
        seconds, reasons, models = _fitted(fit, inputs, setting.methods, tasks)
        estimates = _of_named if setting.tasks else _of_thresholds
        for point, each in zip(points, estimates(fit, inputs, tasks, setting.confidence), strict=True):
            point["estimates"] = each
        _add_gains(points, models, test, tasks)
    return {
        "file": unit.file,
        "score": unit.score,
        "seed": unit.seed,
        "rows": len(rows),
        "positives": 0.0 if rows.classes else float(rows.label.sum()),
        "seconds": seconds,
        "reasons": reasons,
        "points": points,
    }


def is_record(record: Record, unit: Unit, setting: Setting) -> bool:
    """Whether a record is one that `measure` gives of this unit: what stands on the disk may have been changed."""
    methods = {chosen.key for chosen in setting.methods} | ({CHOSEN} if setting.tasks else set())
    names = {task.name for task in setting.tasks}
    try:
        return (
            (record["score"], record["seed"]) == (unit.score, unit.seed)
            and _is_number(record["rows"], FEWEST)
            and _is_number(record["positives"], 0)
            and record["seconds"].keys() <= methods
            and all(_is_number(seconds, 0) for seconds in record["seconds"].values())
            and record["reasons"].keys() <= methods
            and all(isinstance(reason, str) for reason in record["reasons"].values())
            and (
                {point["task"] for point in record["points"]} <= names
                if setting.tasks
                else [point["threshold"] for point in record["points"]] == list(setting.thresholds)
            )
            and all(_is_point(point, methods, bool(setting.tasks)) for point in record["points"])
        )
    except (KeyError, TypeError, AttributeError):
        return False


def _is_point(point: Record, methods: Set[str], by_task: bool) -> bool:
    names = point["estimates"] if by_task else ESTIMATES
    values = [value for name in names for value in point["estimates"][name]]
    return (
        all(len(point["estimates"][name]) == 3 for name in names)
        and point["gains"].keys() <= methods
        and all(value is None or _is_number(value) for value in (*values, *point["gains"].values()))
        and len(point["constants"]) == (0 if by_task else 2)
        and all(map(_is_number, point["constants"]))
    )


def _is_number(value: Any, least: float = -MAX_UTILITY) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= MAX_UTILITY


def _import_once() -> None:
    """What methods import is not to count as the time of the first that does, and its threads can be limited."""
    import sklearn.ensemble
    import sklearn.linear_model
    import sklearn.tree  # noqa: F401


def _halves(rows: Training, seed: int) -> tuple[Training, Training]:
    """The rows to fit and to test, clusters whole."""
    rng = np.random.default_rng([seed, len(rows)])
    if rows.unit is None:
        half = rng.permutation(len(rows))
        return rows.take(half[: len(half) // 2]), rows.take(half[len(half) // 2 :])
    second = rows.places(rng, 2) % 2 == 1
    return rows.take(~second), rows.take(second)


Estimates = Iterator[dict[str, list[float | None]]]
"""Of each task, by metric: value, low and high."""


def _of_thresholds(fit: Training, inputs: Inputs, tasks: Sequence[Any], confidence: float) -> Estimates:
    """What the fit half alone says, by threshold."""
    # The intervals of the grouping loss, which take trees on fewer rows, are not asked for.
    regions = None if fit.features is None else build_regions(fit, seed=fit.seed, loss_only=True)
    inputs = inputs.having(regions)
    even = inputs.at(task_of(EVEN))
    shared = {spec.key: _estimate(spec, even, 1.0, confidence) for spec in OF_SCORES}
    for task in tasks:
        at = inputs.at(task)
        yield {spec.key: _estimate(spec, at, task.u_delta, confidence) for spec in OF_TASKS} | shared


def _of_named(fit: Training, inputs: Inputs, tasks: Sequence[Any], confidence: float) -> Estimates:
    """The same by task."""
    shared = {s.key: _estimate(s, inputs, 1.0, confidence) for s in (OF_CLASSES if fit.classes else ())}
    for task in tasks:
        # A table of its own, so that what it keeps of one task is gone with the next.
        at = inputs.at(task).having(replace(fit.class_table)) if fit.classes else inputs.at(task)
        yield {spec.key: _estimate(spec, at, task.u_delta, confidence) for spec in OF_NAMED_TASKS} | shared


def _estimate(spec: MetricSpec, inputs: Inputs, u_delta: float, confidence: float) -> list[float | None]:
    """Value, low and high, in units of u_delta where the metric is a utility."""
    unit = u_delta if spec.declared.bounds_in_u_delta else 1.0
    assert inputs.rows is not None  # the fit half
    sure = inputs.rows.sure(confidence) if spec.name in WITH_INTERVALS else None
    result = measure_metric(spec, inputs, sure)
    low, high = (None, None) if result.interval is None else (end / unit for end in result.interval)
    return [None if result.value is None else result.value / unit, low, high]


def _fitted(
    fit: Training, inputs: Inputs, methods: Sequence[MethodSpec], tasks: Sequence[Task | ClassDecision]
) -> tuple[dict[str, float], dict[str, str], dict[str, list[Model]]]:
    """Of each method the processor time of its fit, or why it was not fitted, and its models, one for each task.

    There is one for all tasks, unless it needs the task. Of several classes, CHOSEN is fitted too.
    """
    seconds: dict[str, float] = {}
    reasons: dict[str, str] = {}
    models: dict[str, list[Model]] = {}

    def add(name: str, fitted: Callable[[], list[Model]]) -> None:
        before = time.process_time()
        try:
            models[name] = fitted()
            seconds[name] = time.process_time() - before
        except Undefined as undefined:
            reasons[name] = undefined.reason

    binary = [task if isinstance(task, BinaryTask) else None for task in tasks]

    def each(spec: MethodSpec) -> list[Model]:
        if reason := missing(spec, replace(fit, task=binary[0])):
            raise Undefined(reason)
        if "task" in spec.declared.needs:
            return fit_each(spec, fit, binary)
        return fit_each(spec, fit, [None]) * len(tasks)

    def chosen() -> list[Model]:
        name = inputs.get(Recalibrated).chosen
        return models.get(name) or each(METHODS.parse(name))

    for spec in methods:
        add(spec.key, partial(each, spec))
    if fit.classes:
        add(CHOSEN, chosen)
    return seconds, reasons, models


def _add_gains(
    points: list[Record], models: Mapping[str, list[Model]], test: Training, tasks: Sequence[Task | ClassDecision]
) -> None:
    """What methods, and always deciding the same, win on the test half, in units of u_delta."""

    def gain(acts: NDArray[Any], task: Task | ClassDecision) -> float:
        return won(acts, test, task).mean / task.u_delta

    for point, task in zip(points, tasks, strict=True):
        by_threshold = point["threshold"] is not None
        always = [gain(np.full(len(test), acts), task) for acts in (False, True)] if by_threshold else []
        point |= {"gains": {}, "constants": always}
    for name, of_tasks in models.items():
        applied: dict[int, Applied] = {}
        for point, task, model in zip(points, tasks, of_tasks, strict=True):
            if id(model) not in applied:
                applied[id(model)] = model(test)
            point["gains"][name] = gain(applied[id(model)].acts(task), task)
