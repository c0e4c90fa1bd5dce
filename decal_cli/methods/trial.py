"""The gain of a method on held-out rows: cross-fitted on the rows themselves, or evaluated on other rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decal_cli.crossfit.probe import WIDENED
from decal_cli.errors import Undefined
from decal_cli.methods.declare import Applied, MethodSpec, Model, Training, actions_taken, fit, payoffs
from decal_cli.tables.estimate import mean_over
from decal_cli.tables.resample import FOLDS
from decal_cli.tables.table import FEWEST_ROWS, Floats, MeanEstimate
from decal_cli.task import BinaryTask, ClassDecision, Task


@dataclass(frozen=True, eq=False)
class Performance:
    """How a method does on rows, each scored by a model that has not seen it; rows as they were given.

    gain: utility per decision won over acting on the score as it is, and its error; None without a task. seconds:
    processor time of all fits.
    """

    chosen: MethodSpec
    applied: Applied
    gain: MeanEstimate | None
    seconds: float


def try_out(spec: MethodSpec, rows: Training) -> Performance:
    """Cross-fit a method. Errors: Undefined, where there are too few rows or a part of them cannot be fitted."""
    before = time.process_time()
    columns: dict[str, Floats] = {}
    for here, model, _ in fitted_folds(spec, rows):
        for name, values in model(rows.take(here))._asdict().items():
            if values is not None:
                columns.setdefault(name, np.empty((len(rows), *values.shape[1:])))[here] = values
    applied = Applied(**columns)
    seconds = time.process_time() - before
    return Performance(spec, applied, _gain(applied, rows, WIDENED), seconds)


class Predicting(NamedTuple):
    """A method and its Brier score on held-out rows."""

    chosen: MethodSpec
    brier: float


def compared(specs: Sequence[MethodSpec], rows: Training) -> list[Predicting]:
    """Methods for scores of two classes that can be fitted, by their Brier score on held-out rows, the best first."""
    results = []
    for spec in specs:
        try:
            score = try_out(spec, rows).applied.score
        except Undefined:
            continue
        results.append(Predicting(spec, float(np.average((score - rows.label) ** 2, weights=rows.weights))))
    return sorted(results, key=lambda each: each.brier)


def fitted_folds(spec: MethodSpec, rows: Training) -> Iterator[tuple[NDArray[np.bool_], Model, Training]]:
    """Each fold as a mask of the rows, with the model that the other folds fit, and these."""
    if len(rows) < 2 * FEWEST_ROWS:
        raise Undefined(f"needs at least {2 * FEWEST_ROWS} rows to learn from some and judge on others")
    fold = np.empty(len(rows), dtype=np.int64)
    fold[rows.order] = rows.take(rows.order).places(rows.generator(FOLDS)) % FOLDS
    for k in range(FOLDS):
        here = fold == k
        others = rows.take(~here)
        yield here, fit(spec, others), others


def judge(spec: MethodSpec, model: Model, rows: Training) -> Performance:
    """A fitted model on rows that it has not seen."""
    applied = model(rows)
    return Performance(spec, applied, _gain(applied, rows, 1.0), 0.0)


def _gain(applied: Applied, rows: Training, widened: float) -> MeanEstimate | None:
    task = rows.decided_by
    return None if task is None else won(applied.acts(task), rows, task, widened)


def won(acts: NDArray[Any], rows: Training, task: Task | ClassDecision, widened: float = 1.0) -> MeanEstimate:
    """Utility per decision of these decisions less that of acting on the score as it is, and its paired error."""
    return won_over(acts, actions_taken(rows.score, task), rows, task, widened)


def won_over(
    acts: NDArray[Any], others: NDArray[Any], rows: Training, task: Task | ClassDecision, widened: float = WIDENED
) -> MeanEstimate:
    """Utility per decision of some decisions less that of others on the same rows, and its paired error."""
    if isinstance(task, BinaryTask):
        gain = task.u_delta * (acts.astype(np.float64) - others) * (rows.label - task.threshold)
    else:
        utility, label = payoffs(task), rows.label.astype(np.int64)
        gain = utility[acts, label] - utility[others, label]
    mean, error = mean_over(gain, rows.weights, rows.unit)
    return MeanEstimate(mean, widened * error)
