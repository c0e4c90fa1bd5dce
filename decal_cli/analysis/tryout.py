"""Every method that can be fitted to a model's rows, tried on them by cross-fitting: what was promised, what came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from decal_cli.analysis.by_row import won_by_row
from decal_cli.analysis.evaluate import Progress, Report
from decal_cli.analysis.flowchart import GAINS, Action
from decal_cli.errors import Undefined
from decal_cli.metrics import Interval, Result
from decal_cli.metrics.confidence import quantile
from decal_cli.tables.row_utilities import RowStakes

if TYPE_CHECKING:
    from decal_cli.learn.method import Applied, MethodSpec, Performance, Training

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


def candidates(rows: Training) -> tuple[MethodSpec, ...]:
    """Every method that the user gave enough for, at its defaults."""
    from decal_cli.learn.method import missing
    from decal_cli.learn.methods import METHODS

    return tuple(spec for spec in METHODS.specs() if missing(spec, rows) is None)


def run_trials(
    report: Report,
    rows: Training,
    chosen: Sequence[MethodSpec],
    costs: Mapping[str, float],
    confidence: float,
    progress: Progress,
    utilities: RowStakes | None = None,
) -> tuple[Trial, ...]:
    """Try methods on the rows of a report, the best first; what cannot be fitted last.

    utilities: where every row has its own.
    """
    trials = []
    for method in chosen:
        progress(f"{report.model} by {method.key}")
        cost = costs.get(ACTIONS[method.declared.kind], 0.0)
        trials.append(_trial(method, report, rows, cost, confidence, utilities))
    ordered = tuple(sorted(trials, key=lambda trial: (trial.net is None, -(trial.net or 0.0))))
    first = best(ordered)
    if first is None:
        return ordered
    return tuple(_behind(each, first, rows, confidence, utilities) for each in ordered)


def _behind(trial: Trial, first: Trial, rows: Training, confidence: float, utilities: RowStakes | None) -> Trial:
    """The trial with its paired difference to the best one, each after its cost."""
    from decal_cli.learn.method import won_over

    task = rows.decided_by
    if trial.applied is None or first.applied is None or trial.achieved.value is None:
        return trial
    if utilities is not None:
        mean, error = won_by_row(utilities, first.applied.score, trial.applied.score)
    elif task is not None:
        mean, error = won_over(first.applied.acts(task), trial.applied.acts(task), rows, task)
    else:
        return trial
    left, reach = mean - (first.cost - trial.cost), _reach(error, rows, confidence)
    return replace(trial, behind=Result(left, None if reach is None else (left - reach, left + reach)))


def _trial(
    chosen: MethodSpec,
    report: Report,
    rows: Training,
    cost: float,
    confidence: float,
    utilities: RowStakes | None,
) -> Trial:
    from decal_cli.learn.method import missing, try_out

    action = ACTIONS[chosen.declared.kind]
    predicted = report.results[GAINS[action]]
    try:
        lacking = missing(chosen, rows)
        if lacking is not None:
            raise Undefined(lacking)
        performance = try_out(chosen, rows)
    except Undefined as undefined:
        return Trial(chosen, predicted, Result(None, None, undefined.reason), cost)
    achieved = _achieved(performance, rows, confidence, utilities)
    return Trial(chosen, predicted, achieved, cost, performance.applied, performance.seconds)


def _reach(error: float, rows: Training, confidence: float) -> float | None:
    """Half the width of an interval; None where there are too few clusters for one."""
    sure = rows.sure(confidence)
    return None if sure is None else quantile(sure) * error


def _achieved(performance: Performance, rows: Training, confidence: float, utilities: RowStakes | None) -> Result:
    gain = performance.gain
    if utilities is not None:
        if performance.applied.threshold is not None:
            return Result(None, None, "moves one threshold of all rows, and here each row has its own")
        gain = won_by_row(utilities, performance.applied.score, rows.score)
    if gain is None:
        return Result(None, None, "needs a task")
    mean, error = gain
    reach = _reach(error, rows, confidence)
    ends: Interval | None = None if reach is None else (mean - reach, mean + reach)
    return Result(mean, ends)


def best(trials: Sequence[Trial]) -> Trial | None:
    """The trial that wins most after its cost, if it wins anything, among those that give a new score.

    A method that moves the threshold and leaves the score decides as isotonic regression does, and leaves nothing new
    to evaluate.
    """
    return next(
        (
            trial
            for trial in trials
            if trial.applied is not None and trial.applied.threshold is None and (trial.net or 0) > 0
        ),
        None,
    )
