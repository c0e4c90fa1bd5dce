"""Every method that can be fitted to a model's rows, tried on them by cross-fitting: what was promised, what came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from decal_cli.analysis.evaluate import Interval, Progress, Report, Result
from decal_cli.analysis.flowchart import GAINS, Action
from decal_cli.errors import Undefined
from decal_cli.metrics.confidence import quantile

if TYPE_CHECKING:
    from decal_cli.methods import Applied, Chosen, Training, Trial

ACTIONS: Mapping[str, Action] = {"recalibration": "recalibrate", "post-training": "post-train"}
"""The action of the flowchart that a kind of method carries out; costs are given by action."""


@dataclass(frozen=True)
class Attempt:
    """One method on rows held out. Utilities are per decision, in the user's unit.

    predicted: what the evaluation expected of its kind before anything was fitted. achieved: what it won over acting on
    the score as it is; value None, and the reason, where it cannot be fitted. net: achieved less the cost of its kind,
    where one was given. applied: what the folds' models said of each row. seconds: processor time.
    """

    chosen: Chosen
    predicted: Result
    achieved: Result
    cost: float
    applied: Applied | None = None
    seconds: float = 0.0
    behind: Result | None = None
    """What it leaves behind the best attempt that gives a new score, on the same rows, with its paired interval."""

    @property
    def net(self) -> float | None:
        """What it wins less what it costs."""
        return None if self.achieved.value is None else self.achieved.value - self.cost


def candidates(rows: Training) -> tuple[Chosen, ...]:
    """Every method that the user gave enough for, at its defaults."""
    from decal_cli.methods import METHODS, Chosen

    every = (Chosen(method) for method in METHODS.values())
    return tuple(one for one in every if one.missing(rows) is None)


def attempts(
    report: Report,
    rows: Training,
    chosen: Sequence[Chosen],
    costs: Mapping[str, float],
    confidence: float,
    progress: Progress,
) -> tuple[Attempt, ...]:
    """Try methods on the rows of a report, the best first; what cannot be fitted last."""
    made = []
    for one in chosen:
        progress(f"{report.model} by {one.key}")
        made.append(_attempt(one, report, rows, costs.get(ACTIONS[one.method.kind], 0.0), confidence))
    ordered = tuple(sorted(made, key=lambda attempt: (attempt.net is None, -(attempt.net or 0.0))))
    first = best(ordered)
    return ordered if first is None else tuple(_behind(each, first, rows, confidence) for each in ordered)


def _behind(attempt: Attempt, first: Attempt, rows: Training, confidence: float) -> Attempt:
    """The attempt with its paired difference to the best one, each after its cost."""
    from decal_cli.methods import won_over

    if attempt.applied is None or first.applied is None or rows.task is None:
        return attempt
    mean, error = won_over(first.applied.acts(rows.task), attempt.applied.acts(rows.task), rows, rows.task)
    left, reach = mean - (first.cost - attempt.cost), quantile(confidence) * error
    return replace(attempt, behind=Result(left, (left - reach, left + reach)))


def _attempt(chosen: Chosen, report: Report, rows: Training, cost: float, confidence: float) -> Attempt:
    from decal_cli.methods import try_out

    action = ACTIONS[chosen.method.kind]
    predicted = report.results[GAINS[action]]
    try:
        missing = chosen.missing(rows)
        if missing is not None:
            raise Undefined(missing)
        trial = try_out(chosen, rows)
    except Undefined as undefined:
        return Attempt(chosen, predicted, Result(None, None, undefined.reason), cost)
    return Attempt(chosen, predicted, _achieved(trial, confidence), cost, trial.applied, trial.seconds)


def _achieved(trial: Trial, confidence: float) -> Result:
    if trial.gain is None:
        return Result(None, None, "needs a task")
    mean, error = trial.gain
    reach = quantile(confidence) * error
    ends: Interval = (mean - reach, mean + reach)
    return Result(mean, ends)


def best(made: Sequence[Attempt]) -> Attempt | None:
    """The attempt that wins most after its cost, if it wins anything, among those that give a new score.

    A method that moves the threshold and leaves the score decides as isotonic regression does, and leaves nothing new
    to evaluate.
    """
    return next(
        (each for each in made if each.applied is not None and each.applied.threshold is None and (each.net or 0) > 0),
        None,
    )
