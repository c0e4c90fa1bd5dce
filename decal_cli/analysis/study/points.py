"""One unit of a study: a score of a file, its rows halved by a seed; estimates from one half, gains on the other.

Everything is per unit of u_delta. The tasks are those of Perez-Lebel et al. 2025: U = [[1, 0], [0, 1/t* - 1]], so
that u_delta is 1/t*.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from decal_cli.analysis.flowchart import (
    BEYOND,
    EVIDENCE_KEYS,
    NEW_THRESHOLD,
    OVER_CONSTANT,
    POST_TRAINING,
    RECALIBRATION,
)
from decal_cli.analysis.study.tasks import BY_DEFAULT, CHOSEN, NamedTask, measure_tasks
from decal_cli.data import Predictions
from decal_cli.declarations.defaults import CONFIDENCE
from decal_cli.errors import DecalError, Undefined
from decal_cli.learn.method import (
    Applied,
    MethodSpec,
    Model,
    Training,
    fit_each,
    missing,
    training_rows,
    won,
)
from decal_cli.learn.method import fit as fit_method
from decal_cli.learn.methods import METHODS, methods_for_two
from decal_cli.learn.regions import build_regions
from decal_cli.limits import MAX_UTILITY
from decal_cli.metrics import Inputs, MetricSpec, parse
from decal_cli.metrics import measure as measure_metric
from decal_cli.tables.threads import one_thread
from decal_cli.task import BinaryTask, Task

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
    """Estimates and gains of one unit at every threshold, JSON-ready.

    {"file", "score", "seed", "rows", "seconds": {method: s}, "reasons": {method: why it has no gain},
    "points": [{"threshold", "estimates": {metric: [value, low, high]}, "gains": {method: gain or null}, "constants":
    [gain of always deciding 0, of always deciding 1]}]}; values are null where undefined, low and high where it is not
    among WITH_INTERVALS.
    """
    _import_once()
    if setting.tasks:
        return measure_tasks(unit.file, model, unit.seed, setting.tasks, setting.methods, setting.confidence)
    # Sums come out the same in any process, and processor time is not that of threads that wait for each other.
    with one_thread():
        return _measured(unit, model, setting)


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


def _measured(unit: Unit, model: Predictions, setting: Setting) -> Record:
    rows = training_rows(model, None, unit.seed)
    rng = np.random.default_rng([unit.seed, len(rows)])
    if rows.unit is None:
        half = rng.permutation(len(rows))
        fit, test = rows.take(half[: len(half) // 2]), rows.take(half[len(half) // 2 :])
    else:
        second = rows.places(rng, 2) % 2 == 1
        fit, test = rows.take(~second), rows.take(second)
    seconds, reasons, gains = _gains(fit, test, setting)
    points = [
        {"threshold": t, "estimates": estimates, "gains": gains[t], "constants": _constant_gains(test, t)}
        for t, estimates in _estimates(fit, unit, setting).items()
    ]
    return {
        "file": unit.file,
        "score": unit.score,
        "seed": unit.seed,
        "rows": len(rows),
        "positives": float(rows.label.sum()),
        "seconds": seconds,
        "reasons": reasons,
        "points": points,
    }


def _constant_gains(test: Training, threshold: float) -> list[float]:
    """What always deciding 0, and always deciding 1, wins on the test half, in units of u_delta."""
    task = task_of(threshold)
    return [won(np.full(len(test), acts), test, task).mean / task.u_delta for acts in (False, True)]


def _estimates(fit: Training, unit: Unit, setting: Setting) -> dict[float, dict[str, Any]]:
    """What the fit half alone says, by threshold."""
    # The intervals of the grouping loss, which take trees on fewer rows, are not asked for.
    regions = None if fit.features is None else build_regions(fit, seed=unit.seed, loss_only=True)
    inputs = Inputs(fit, seed=unit.seed).having(regions)
    even = inputs.having(task_of(EVEN))
    shared = {spec.key: _estimate(spec, even, setting) for spec in OF_SCORES}
    estimates = {}
    for t in setting.thresholds:
        with_task = inputs.having(task_of(t))
        estimates[t] = {spec.key: _estimate(spec, with_task, setting) for spec in OF_TASKS} | shared
    return estimates


def _estimate(spec: MetricSpec, inputs: Inputs, setting: Setting) -> list[float | None]:
    """Value, low and high, in units of u_delta where the metric is a utility."""
    task: BinaryTask | None = inputs.get(BinaryTask)
    unit = task.u_delta if task is not None and spec.declared.bounds_in_u_delta else 1.0
    assert inputs.rows is not None  # the fit half
    sure = inputs.rows.sure(setting.confidence) if spec.name in WITH_INTERVALS else None
    result = measure_metric(spec, inputs, sure)
    low, high = (None, None) if result.interval is None else (end / unit for end in result.interval)
    return [None if result.value is None else result.value / unit, low, high]


def _gains(
    fit: Training, test: Training, setting: Setting
) -> tuple[dict[str, float], dict[str, str], dict[float, dict[str, float | None]]]:
    """Processor time of each method's fit, why some have no gain, and the gains on the test half by threshold."""
    seconds: dict[str, float] = {}
    reasons: dict[str, str] = {}
    gains: dict[float, dict[str, float | None]] = {t: {} for t in setting.thresholds}
    for chosen in setting.methods:
        reason = missing(chosen, replace(fit, task=task_of(setting.thresholds[0])))
        if reason is not None:
            reasons[chosen.key] = reason
            continue
        try:
            before = time.process_time()
            models = _fitted(chosen, fit, setting.thresholds)
            seconds[chosen.key] = time.process_time() - before
        except Undefined as undefined:
            reasons[chosen.key] = undefined.reason
            continue
        for t, acts in _decisions(models, test).items():
            gains[t][chosen.key] = won(acts, test, task_of(t)).mean / task_of(t).u_delta
    return seconds, reasons, gains


def _fitted(chosen: MethodSpec, fit: Training, thresholds: Sequence[float]) -> dict[float, Model]:
    """The model for each threshold: one for all, unless the method needs the task."""
    if "task" not in chosen.declared.needs:
        return dict.fromkeys(thresholds, fit_method(chosen, fit))
    tasks = [task_of(t) for t in thresholds]
    return dict(zip(thresholds, fit_each(chosen, fit, tasks), strict=True))


def _decisions(models: Mapping[float, Model], test: Training) -> dict[float, Any]:
    applied: dict[int, Applied] = {}
    for model in models.values():
        if id(model) not in applied:
            applied[id(model)] = model(test)
    return {t: applied[id(model)].acts(task_of(t)) for t, model in models.items()}
