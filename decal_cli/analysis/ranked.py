"""What a score is worth where so many rows can be acted on only: as it is, recalibrated, and post-trained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.flowchart import SHRINKAGE
from decal_cli.analysis.places import listed_rows
from decal_cli.analysis.tryout import ends_of
from decal_cli.data import Predictions
from decal_cli.declarations.document import Share
from decal_cli.errors import Undefined
from decal_cli.learn.probe import WIDENED
from decal_cli.metrics import Inputs, Interval, parse
from decal_cli.metrics.at_capacity import AtCapacity, RowsAtCapacity, WorthAtCapacity
from decal_cli.metrics.confidence import quantile
from decal_cli.metrics.inputs import worth_at_capacity
from decal_cli.metrics.measure import value_or_none
from decal_cli.tables.listed import Capacity, listed
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Floats
from decal_cli.task import BinaryTask

if TYPE_CHECKING:
    from decal_cli.learn.method import Applied, MethodSpec

    Fit = tuple[MethodSpec, Applied | None, str | None]
    """A method, what it says of held-out rows, and the reason where it cannot be fitted."""

Kind = Literal["recalibration", "post-training", "perfect"]
RECALIBRATION = "isotonic"
"""It keeps the order of the scores, so that it changes only which rows reach t*, where they have one t*."""
CLASS_RECALIBRATION = "temperature"
"""The same of several classes."""
POST_TRAINING = "blend"
PERFECT = "perfect ranking"
"""What no method can exceed: the places go by the labels."""


@dataclass(frozen=True)
class Ranked:
    """One score at the capacity. method: None of the score as it is, else what gives the new one, on held-out rows;
    kind: of the method.

    utility: per decision; gain: over the score as it is, with its paired interval; None of that one. value_capture:
    where every row has utilities of its own. reason: why there is no number.
    """

    method: str | None
    kind: Kind | None = None
    utility: float | None = None
    capture: Share | None = None
    value_capture: Share | None = None
    precision: Share | None = None
    gain: float | None = None
    interval: Interval | None = None
    reason: str | None = None


@dataclass(frozen=True)
class RanksNow:
    """What gives the places today. method: None of the score as it is. gain: what it is expected to win over that, per
    decision; chance: that it wins anything, None where no error is known.
    """

    method: str | None
    gain: float = 0.0
    chance: Share | None = None


def ranks_now(ranked: Sequence[Ranked], acted_on: float, confidence: float) -> RanksNow:
    """The method of the largest gain less SHRINKAGE standard errors, if that is above 0 and the gain matters.

    acted_on: the gain from which what is not clear is acted on.
    """
    best, most = RanksNow(None), 0.0
    for each in ranked:
        if each.kind == "perfect" or each.gain is None or each.interval is None:
            continue
        low, high = each.interval
        error = (high - low) / (2 * quantile(confidence))
        if each.gain - SHRINKAGE * error > most and (each.gain >= acted_on or low > 0):
            most = each.gain - SHRINKAGE * error
            best = RanksNow(each.method, each.gain, NormalDist().cdf(each.gain / error) if error > 0 else 1.0)
    return best


def usual_fits(model: Predictions, plan: Plan) -> Iterator[Fit]:
    """The score recalibrated, and with the features if there are any, by cross-fitting."""
    # Loaded late: whoever only evaluates needs no method.
    from decal_cli.learn.method import training_rows, try_out
    from decal_cli.learn.methods import parse as parse_method

    rows = training_rows(model, plan.binary, plan.seed)
    recalibration = CLASS_RECALIBRATION if model.rows.classes else RECALIBRATION
    for name in (recalibration,) if model.rows.features is None else (recalibration, POST_TRAINING):
        method = parse_method(name)
        try:
            yield method, try_out(method, rows).applied, None
        except Undefined as undefined:
            yield method, None, undefined.reason


def ranked(model: Predictions, capacity: Capacity, plan: Plan, fits: Iterable[Fit]) -> tuple[Ranked, ...]:
    """The score as it is, these fits, and a perfect ranking; model: with what its lists say of its rows."""
    as_it_is = _worth(model.rows, plan)
    shown = [_row(None, None, as_it_is)]
    for method, applied, reason in sorted(fits, key=lambda each: each[0].declared.kind != "recalibration"):
        if applied is None:
            shown.append(Ranked(method.key, method.declared.kind, reason=reason))
            continue
        if applied.threshold is not None:
            # It moves the threshold and leaves the score, as recalibration does.
            continue
        shown.append(fitted_at(model, capacity, plan, method, applied, WIDENED))
    rank = np.where(as_it_is.worth > 0, as_it_is.worth, -np.inf)
    perfect = _worth(listed(model.rows, capacity, None, rank), plan)
    shown.append(_compared(_row(PERFECT, "perfect", perfect), as_it_is, perfect, plan))
    return tuple(shown)


def fitted_at(
    model: Predictions, capacity: Capacity, plan: Plan, method: MethodSpec, applied: Applied, widened: float
) -> Ranked:
    """What a method gives at the capacity; model: with what its lists say of its rows."""
    score, task = applied.score, plan.binary
    if task is not None and applied.threshold is not None:
        score = _kept_order(model.rows, applied.acts(task) == 1, task)
    elif task is not None and method.key == RECALIBRATION:
        score = _kept_order(model.rows, score >= task.threshold, task)
    rows = replace(model.rows, score=score, listed=None)
    # Recalibrated scores are acted on from t* on, also where those that are here have another threshold.
    by = plan.decision_of(rows.classes) if task is None else task.operated_at_best
    after = _worth(listed_rows(rows, capacity, by, plan.seed), plan)
    return _compared(_row(method.key, method.declared.kind, after), _worth(model.rows, plan), after, plan, widened)


def _worth(rows: Rows, plan: Plan) -> WorthAtCapacity:
    """What acting on these rows, which have lists, is worth."""
    task = plan.decision_of(rows.classes)
    assert task is not None  # asked for where there is one
    return worth_at_capacity(rows, task)


def _kept_order(rows: Rows, reaches: NDArray[np.bool_], task: BinaryTask) -> Floats:
    """Scores in the order that they had, of which those reach t* that do so by the method.

    Five folds give five curves, each of which keeps the order; put together, their values would not.
    """
    order = rows.score * (1 - task.threshold) + task.threshold
    return np.where(reaches, order, rows.score * task.threshold * (1 - 1e-9))


def _row(method: str | None, kind: Kind | None, at: WorthAtCapacity) -> Ranked:
    two = None if at.rows.classes else AtCapacity(at.rows, at.listed)
    inputs = Inputs.of(two, at if isinstance(at, RowsAtCapacity) else None)

    def share(name: str) -> float | None:
        return value_or_none(parse(name), inputs)

    shares = share("capture"), share("value_capture"), share("precision_at_capacity")
    return Ranked(method, kind, at.utility.value, *shares)


def _compared(row: Ranked, before: WorthAtCapacity, after: WorthAtCapacity, plan: Plan, widened: float = 1.0) -> Ranked:
    """The row of a new score, with its gain."""
    gain = after.utility - before.utility
    ends = ends_of(gain.value, widened * gain.error, before.rows, plan.confidence)
    return replace(row, gain=gain.value, interval=ends)
