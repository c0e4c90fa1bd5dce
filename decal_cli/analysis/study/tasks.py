"""Units of a study over tasks by name: of several classes, or of more than two actions, in place of thresholds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from decal_cli.analysis.flowchart import BEYOND, OVER_CONSTANT, POST_TRAINING, RECALIBRATION
from decal_cli.data import Predictions
from decal_cli.errors import DecalError, Undefined
from decal_cli.hints import Hint
from decal_cli.learn.class_folds import Recalibrated
from decal_cli.learn.method import MethodSpec, Model, Training, missing, training_rows, won
from decal_cli.learn.method import fit as fit_method
from decal_cli.learn.methods import parse
from decal_cli.metrics import Inputs, MetricSpec
from decal_cli.metrics import measure as measure_metric
from decal_cli.metrics import parse as parse_metric
from decal_cli.tables.threads import one_thread
from decal_cli.task import ClassDecision, ClassTask, Task

CHOSEN = "chosen"
"""The scaling that cross-fitting on the fit half chooses among those that `gain_recalibration` tries."""
PRICES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
MISSED, TIMES = 4, 10.0
"""Classes, the first ones, whose misses are made dearer, and by how much."""
OF_CLASSES = tuple(
    parse_metric(name)
    for name in ("ece_top", "ece_top_debiased", "ece_classwise", "brier", "log_loss", "auc", "accuracy")
)
"""Metrics of several classes that are the same for every task."""
OF_TASKS = tuple(
    parse_metric(name)
    for name in (RECALIBRATION, BEYOND, POST_TRAINING, OVER_CONSTANT, "regret_calibration", "swap_regret")
)
KEPT = (RECALIBRATION, BEYOND, POST_TRAINING, OVER_CONSTANT)
"""Estimates whose interval is kept."""


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


def measure_tasks(
    file: str,
    model: Predictions,
    seed: int,
    tasks: Sequence[NamedTask],
    methods: Sequence[MethodSpec],
    confidence: float,
) -> dict[str, Any]:
    """Estimates from one half of the rows and gains on the other, for every task, in units of its u_delta.

    A record as `points.measure` gives it; its points have a task by name and no threshold.
    """
    with one_thread():
        rows = training_rows(model, None, seed)
        half = np.random.default_rng([seed, len(rows)]).permutation(len(rows))
        fit, test = rows.take(half[: len(half) // 2]), rows.take(half[len(half) // 2 :])
        by_name = {task.name: task.of(rows.classes) for task in tasks if task.fits(rows.classes)}
        inputs = Inputs(fit, None, seed)
        seconds, reasons, models = _fitted(fit, inputs, methods)
        applied = {name: model(test) for name, model in models.items()}
        shared = {} if not rows.classes else {s.key: _estimate(s, inputs, 1.0, confidence) for s in OF_CLASSES}
        points: list[dict[str, Any]] = []
        for name, task in by_name.items():
            unit = task.u_delta
            # A table of its own, so that what it keeps of one task is gone with the next.
            at = inputs.having(task, replace(fit.class_table)) if rows.classes else inputs.having(task)
            estimates = {spec.key: _estimate(spec, at, unit, confidence) for spec in OF_TASKS} | shared
            gains = {key: won(each.acts(task), test, task).mean / unit for key, each in applied.items()}
            points.append({"threshold": None, "task": name, "estimates": estimates, "gains": gains, "constants": []})
    return {
        "file": file,
        "score": model.name,
        "seed": seed,
        "rows": len(rows),
        "positives": 0.0 if rows.classes else float(rows.label.sum()),
        "seconds": seconds,
        "reasons": reasons,
        "points": points,
    }


def _fitted(
    fit: Training, inputs: Inputs, methods: Sequence[MethodSpec]
) -> tuple[dict[str, float], dict[str, str], dict[str, Model]]:
    """Processor time of each method's fit, why some were not fitted, and the models; of several classes CHOSEN too."""
    seconds: dict[str, float] = {}
    reasons: dict[str, str] = {}
    models: dict[str, Model] = {}
    for spec in methods:
        reason = missing(spec, fit)
        try:
            if reason is not None:
                raise Undefined(reason)
            before = time.process_time()
            models[spec.key] = fit_method(spec, fit)
            seconds[spec.key] = time.process_time() - before
        except Undefined as undefined:
            reasons[spec.key] = undefined.reason
    if fit.classes:
        try:
            before = time.process_time()
            chosen: Recalibrated = inputs.get(Recalibrated)
            models[CHOSEN] = models.get(chosen.chosen) or fit_method(parse(chosen.chosen), fit)
            seconds[CHOSEN] = time.process_time() - before
        except Undefined as undefined:
            reasons[CHOSEN] = undefined.reason
    return seconds, reasons, models


def _estimate(spec: MetricSpec, inputs: Inputs, unit: float, confidence: float) -> list[float | None]:
    """Value, low and high, in this unit where the metric is a utility."""
    by = unit if spec.declared.bounds_in_u_delta else 1.0
    result = measure_metric(spec, inputs, confidence if spec.name in KEPT else None)
    low, high = (None, None) if result.interval is None else (end / by for end in result.interval)
    return [None if result.value is None else result.value / by, low, high]


def tasks_named(task: Task | ClassTask | None) -> tuple[NamedTask, ...]:
    """The one task that the user names, if any. Errors: DecalError, for two actions, which thresholds are for."""
    if task is None:
        return ()
    if isinstance(task, Task) and task.two_actions is not None:
        at = task.two_actions.threshold
        raise DecalError("a task of two actions is studied by its t*", f"give {Hint('thresholds', f'{at:g}')}")
    price = task.abstain if isinstance(task, ClassTask) else None
    return (NamedTask("your task" if price is None else f"abstain {price:g}", task),)
