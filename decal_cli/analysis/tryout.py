"""Every method that can be fitted to a model's rows, tried on them by cross-fitting: what was promised, what came.

And what a score is worth where so many rows can be acted on only: as it is, recalibrated, and post-trained.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from decal_cli.analysis.described import listed_rows, won_by_row
from decal_cli.analysis.evaluate import Plan, Progress, Report
from decal_cli.analysis.flowchart import GAINS, SHRINKAGE, Action
from decal_cli.data import Predictions
from decal_cli.declarations.document import Share
from decal_cli.errors import Undefined
from decal_cli.learn.held_out import WIDENED
from decal_cli.learn.method import MethodSpec, Training, folds_of, missing, payoffs, training_rows, try_out, won_over
from decal_cli.learn.methods import METHODS, usual
from decal_cli.learn.models import Applied, actions_taken
from decal_cli.metrics import Inputs, Interval, Result, parse
from decal_cli.metrics.at_capacity import AtCapacity, RowsAtCapacity, WorthAtCapacity
from decal_cli.metrics.confidence import normal, quantile
from decal_cli.metrics.inputs import worth_at_capacity
from decal_cli.metrics.measure import measure
from decal_cli.tables.estimate import MeanEstimate
from decal_cli.tables.listed import Capacity, listed
from decal_cli.tables.row_utilities import RowStakes
from decal_cli.tables.rows import Rows
from decal_cli.tables.table import Bools, Floats
from decal_cli.tables.units import mean_over
from decal_cli.task import BinaryTask

Fit = tuple[MethodSpec, Applied | None, str | None]
"""A method, what it says of held-out rows, and the reason where it cannot be fitted."""

ACTIONS: Mapping[str, Action] = {"recalibration": "recalibrate", "post-training": "post-train"}
"""The action of the flowchart that a kind of method carries out; costs are given by action."""


@dataclass(frozen=True)
class Trial:
    """One method on held-out rows. Utilities are per decision, in the user's unit.

    predicted: what the evaluation expected of its kind before anything was fitted. achieved: what it won over acting on
    the score as it is; value None, and the reason, where it cannot be fitted. net: achieved less the cost of its kind,
    where one was given. applied: what the folds' models said of each row. seconds: processor time.
    """

    chosen: MethodSpec
    predicted: Result
    achieved: Result
    cost: float
    applied: Applied | None = None
    seconds: float = 0.0
    behind: Result | None = None
    """What it leaves behind the best trial that gives a new score, on the same rows, with its paired interval."""

    @property
    def net(self) -> float | None:
        """What it wins less what it costs."""
        return None if self.achieved.value is None else self.achieved.value - self.cost


@dataclass(frozen=True)
class Picked:
    """What choosing by cross-validation picks, and what choosing so wins over acting on the score as it is.

    method: None where no method wins more than the score as it is. among: what is compared. gain: after costs; each
    fold is decided by the method that wins most on the other folds, so that no row has a part in the choice for it.
    """

    method: str | None
    among: tuple[str, ...]
    gain: Result


def candidates(rows: Training) -> tuple[MethodSpec, ...]:
    """Every method that the user gave enough for, at its defaults."""
    return tuple(spec for spec in METHODS.specs() if missing(spec, rows) is None)


@dataclass(frozen=True)
class TriedOn:
    """The rows that methods are tried on, the report of them, and what methods cost by action.

    confidence: of intervals. utilities: of the rows that are judged, where every row has its own.
    """

    report: Report
    rows: Training
    costs: Mapping[str, float]
    confidence: float
    utilities: RowStakes | None = None

    def trials(self, chosen: Sequence[MethodSpec], progress: Progress) -> tuple[Trial, ...]:
        """These methods, the best first; what cannot be fitted last."""
        trials = []
        for method in chosen:
            progress(f"{self.report.model} by {method.key}")
            trials.append(self._trial(method))
        trials.sort(key=lambda trial: (trial.net is None, -(trial.net or 0.0)))
        first = best(trials)
        return tuple(trials if first is None else (self._behind(each, first) for each in trials))

    def _trial(self, chosen: MethodSpec) -> Trial:
        action = ACTIONS[chosen.declared.kind]
        trial = Trial(chosen, self.report.promised[GAINS[action]], Result(None), self.costs.get(action, 0.0))
        try:
            if lacking := missing(chosen, self.rows):
                raise Undefined(lacking)
            done = try_out(chosen, self.rows)
            trial = replace(trial, applied=done.applied, seconds=done.seconds)
            return replace(trial, achieved=self._result(self._won(done.applied)))
        except Undefined as undefined:
            return replace(trial, achieved=Result(None, None, undefined.reason))

    def _behind(self, trial: Trial, first: Trial) -> Trial:
        """The trial with its paired difference to the best one, each after its cost."""
        if trial.applied is None or first.applied is None or trial.achieved.value is None:
            return trial
        mean, error = self._won(first.applied, trial.applied)
        return replace(trial, behind=self._result(MeanEstimate(mean - (first.cost - trial.cost), error)))

    def _result(self, mean: MeanEstimate) -> Result:
        return Result(mean.mean, ends_of(mean, self.rows.judged, self.confidence))

    def _won(self, one: Applied, other: Applied | None = None) -> MeanEstimate:
        """What acting on a new score wins over another, or over the score as it is. Errors: Undefined."""
        rows = self.rows.judged
        if self.utilities is not None:
            if one.threshold is not None:
                raise Undefined("moves one threshold of all rows, and here each row has its own")
            return won_by_row(self.utilities, one.score, rows.score if other is None else other.score)
        task = rows.task
        if task is None:
            raise Undefined("needs a task")
        before = actions_taken(rows.score, task) if other is None else other.acts(task)
        return won_over(one.acts(task), before, rows, task)

    def picked(self, trials: Sequence[Trial]) -> Picked | None:
        """What most people would do: compare the usual methods by cross-validation, and keep the best.

        Of other methods where none of the usual ones was tried. None: nothing was fitted.
        """
        fitted = [each for each in trials if each.achieved.value is not None and each.applied is not None]
        fitted = [each for each in fitted if each.chosen.key in usual(bool(self.rows.classes))] or fitted
        if not fitted:
            return None
        rows = self.rows.judged
        now, weight, fold = self._payoffs(None), rows.weights, folds_of(rows)
        won = np.vstack([np.zeros(len(rows)), *(self._payoffs(each.applied) - now - each.cost for each in fitted)])
        held_out = np.empty(len(rows))
        for k in np.unique(fold):
            here, others = fold == k, fold != k if rows.time is None else fold < k
            held_out[here] = won[(won[:, others] @ weight[others]).argmax(), here]
        mean, error = mean_over(held_out, weight, rows.unit)
        names = tuple(each.chosen.key for each in fitted)
        gain = self._result(MeanEstimate(mean, WIDENED * error))
        return Picked((None, *names)[(won @ weight).argmax()], names, gain)

    def _payoffs(self, applied: Applied | None) -> Floats:
        """What deciding by a new score is worth, by the score as it is where there is none: by row, shape (T,)."""
        rows = self.rows.judged
        if self.utilities is not None:
            return self.utilities.payoff(self.utilities.response(rows.score if applied is None else applied.score))
        task = rows.task
        assert task is not None  # a method was judged by it
        acts = actions_taken(rows.score, task) if applied is None else applied.acts(task)
        return np.asarray(payoffs(task)[acts, rows.label.astype(np.int64)])


def ends_of(mean: MeanEstimate, rows: Rows, confidence: float | None) -> Interval | None:
    """The normal interval of a mean over rows; None where none is asked for, or clusters are too few for one."""
    sure = rows.sure(confidence)
    return None if sure is None else normal(mean, sure)


def best(trials: Sequence[Trial]) -> Trial | None:
    """The trial that wins most after its cost, if it wins anything, among those that give a new score.

    A method that moves the threshold and leaves the score decides as isotonic regression does, and leaves nothing new
    to evaluate.
    """
    for trial in trials:
        if trial.applied is not None and trial.applied.threshold is None and (trial.net or 0) > 0:
            return trial
    return None


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
    rows = training_rows(model, plan.binary, plan.seed)
    recalibration = CLASS_RECALIBRATION if model.rows.classes else RECALIBRATION
    names = (recalibration,) if model.rows.features is None else (recalibration, POST_TRAINING)
    for method in map(METHODS.parse, names):
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


def _kept_order(rows: Rows, reaches: Bools, task: BinaryTask) -> Floats:
    """Scores in the order that they had, of which those reach t* that do so by the method.

    Five folds give five curves, each of which keeps the order; put together, their values would not.
    """
    order = rows.score * (1 - task.threshold) + task.threshold
    return np.where(reaches, order, rows.score * task.threshold * (1 - 1e-9))


def _row(method: str | None, kind: Kind | None, at: WorthAtCapacity) -> Ranked:
    two = None if at.rows.classes else AtCapacity(at.rows, at.listed)
    inputs = Inputs.of(two, at if isinstance(at, RowsAtCapacity) else None)
    shares = (measure(parse(name), inputs).value for name in ("capture", "value_capture", "precision_at_capacity"))
    return Ranked(method, kind, at.utility.value, *shares)


def _compared(row: Ranked, before: WorthAtCapacity, after: WorthAtCapacity, plan: Plan, widened: float = 1.0) -> Ranked:
    """The row of a new score, with its gain."""
    gain = after.utility - before.utility
    ends = ends_of(MeanEstimate(gain.value, widened * gain.error), before.rows, plan.confidence)
    return replace(row, gain=gain.value, interval=ends)
