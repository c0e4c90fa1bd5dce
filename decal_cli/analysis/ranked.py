"""What a score is worth where so many rows can be acted on only: as it is, recalibrated, and post-trained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from decal_cli.analysis.evaluate import Plan
from decal_cli.crossfit.probe import WIDENED
from decal_cli.data import Predictions
from decal_cli.errors import Undefined
from decal_cli.metrics import Inputs, Interval, parse
from decal_cli.metrics.confidence import quantile
from decal_cli.metrics.families.capacity import utility_at_capacity, utility_influence
from decal_cli.metrics.measure import value_or_none
from decal_cli.metrics.numerics.at_capacity import AtCapacity
from decal_cli.tables.listed import Capacity, listed
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats
from decal_cli.task import BinaryTask

if TYPE_CHECKING:
    from decal_cli.methods import Applied, MethodSpec

    Fit = tuple[MethodSpec, Applied | None, str | None]
    """A method, what it says of held-out rows, and the reason where it cannot be fitted."""

Kind = Literal["recalibration", "post-training"]
RECALIBRATION = "isotonic"
"""It keeps the order of the scores, so that it changes only which rows reach t*."""
POST_TRAINING = "blend"


@dataclass(frozen=True)
class Ranked:
    """One score at the capacity. method: None of the score as it is, else what gives the new one, on held-out rows;
    kind: of the method.

    utility: per decision; gain: over the score as it is, with its paired interval; None of that one. reason: why there
    is no number.
    """

    method: str | None
    kind: Kind | None = None
    utility: float | None = None
    capture: float | None = None
    precision: float | None = None
    gain: float | None = None
    interval: Interval | None = None
    reason: str | None = None


def usual_fits(model: Predictions, plan: Plan) -> Iterator[Fit]:
    """The score recalibrated, and with the features if there are any, by cross-fitting."""
    # Loaded late: whoever only evaluates needs no method.
    from decal_cli.methods import parse as parse_method
    from decal_cli.methods import training_rows, try_out

    rows = training_rows(model, plan.binary, plan.seed)
    for name in (RECALIBRATION,) if model.rows.features is None else (RECALIBRATION, POST_TRAINING):
        method = parse_method(name)
        try:
            yield method, try_out(method, rows).applied, None
        except Undefined as undefined:
            yield method, None, undefined.reason


def ranked(model: Predictions, capacity: Capacity, plan: Plan, fits: Iterable[Fit]) -> tuple[Ranked, ...]:
    """The score as it is, and those of these fits; model: with what its lists say of its rows."""
    task, now = plan.binary, model.rows.listed
    assert task is not None and now is not None  # asked for where there are both
    as_it_is = AtCapacity(model.rows, now)
    shown = [_row(None, None, as_it_is, task)]
    for method, applied, reason in sorted(fits, key=lambda each: each[0].key != RECALIBRATION):
        if applied is None:
            shown.append(Ranked(method.key, method.declared.kind, reason=reason))
            continue
        if applied.threshold is not None:
            # It moves the threshold and leaves the score, as recalibration does.
            continue
        score = _kept_order(model.rows, applied.score, task) if method.key == RECALIBRATION else applied.score
        again = listed(replace(model.rows, score=score, listed=None), capacity, task.threshold)
        assert again.listed is not None  # it was made just now
        after = AtCapacity(again, again.listed)
        shown.append(_compared(_row(method.key, method.declared.kind, after, task), as_it_is, after, task, plan))
    return tuple(shown)


def _kept_order(rows: Rows, recalibrated: Floats, task: BinaryTask) -> Floats:
    """Scores in the order that they had, of which those reach t* that do so when they are recalibrated.

    Five folds give five curves, each of which keeps the order; put together, their values would not.
    """
    order = rows.score * (1 - task.threshold) + task.threshold
    return np.where(recalibrated >= task.threshold, order, rows.score * task.threshold * (1 - 1e-9))


def _row(method: str | None, kind: Kind | None, at: AtCapacity, task: BinaryTask) -> Ranked:
    inputs = Inputs.of(at, task)
    capture, precision = (value_or_none(parse(name), inputs) for name in ("capture", "precision_at_capacity"))
    return Ranked(method, kind, utility_at_capacity(at, task), capture, precision)


def _compared(row: Ranked, before: AtCapacity, after: AtCapacity, task: BinaryTask, plan: Plan) -> Ranked:
    """The row of a new score, with its gain."""
    gain = (row.utility or 0.0) - utility_at_capacity(before, task)
    sure = before.rows.sure(plan.confidence)
    ends = None
    if sure is not None:
        change = utility_influence(after, task) - utility_influence(before, task)
        reach = quantile(sure) * WIDENED * before.error(change)
        ends = gain - reach, gain + reach
    return replace(row, gain=gain, interval=ends)
