"""Advice where costs are not known: which advice holds from which to which number, and where it wins most."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from decal_cli.analysis.evaluate import Evaluation, Plan, Progress, Report, evaluate
from decal_cli.analysis.flowchart import GAINS, Advice, Now
from decal_cli.analysis.recommend import Elsewhere, Preferences, decides, looked_at
from decal_cli.data import Dataset
from decal_cli.data.dataset import Predictions
from decal_cli.metrics import Inputs
from decal_cli.metrics.confidence import Interval
from decal_cli.tables.rows import Rows
from decal_cli.task import BinaryTask

STEPS, COARSE = 98, 4
"""Parts of a range, by which 0.01 to 0.99 are hundredths, and how many of them a first look steps over."""


class Unknown(NamedTuple):
    """A number of the decision that is not known. name: its key, such as 'cost_fn'. low, high: its range, inclusive."""

    name: Literal["threshold", "cost_fp", "cost_fn"]
    low: float
    high: float

    def at(self, step: int) -> float:
        """The number after so many steps of STEPS, with as many decimals as a step has; the ends as they are given."""
        if step in (0, STEPS):
            return self.high if step else self.low
        size = (self.high - self.low) / STEPS
        return round(self.low + size * step, max(-math.floor(math.log10(size * (1 + 1e-9))), 0))


@dataclass(frozen=True)
class Best:
    """Where advice wins most. at: the number that is not known. gain, interval: per decision there."""

    at: float
    threshold: float
    gain: float
    interval: Interval | None


@dataclass(frozen=True)
class Stretch:
    """Numbers from low to high at which the same is to be done. thresholds: t* at both.

    constant: the constant decision that wins more than the score, where that is to be done. best: where it wins most;
    None where nothing is won.
    """

    low: float
    high: float
    thresholds: Interval
    action: Now
    method: str | None
    constant: str | None
    best: Best | None


@dataclass(frozen=True, eq=False)
class RangeAdvice:
    """The stretches of each model and group, in their order. evaluation: of the rows, without a decision."""

    evaluation: Evaluation
    unknown: Unknown
    stretches: tuple[tuple[Stretch, ...], ...]


class _Point(NamedTuple):
    """What is to be done at one number."""

    at: float
    task: BinaryTask
    advice: Advice
    interval: Interval | None

    @property
    def won(self) -> Best | None:
        constant = self.advice.constant
        if self.advice.act_now.action != "done":
            return Best(self.at, self.task.threshold, self.advice.act_now.gain, self.interval)
        if self.advice.same[2] is None or constant is None:
            return None
        return Best(self.at, self.task.threshold, constant.gain, constant.interval)


def advise_over(
    dataset: Dataset,
    plan: Plan,
    preferences: Preferences,
    unknown: Unknown,
    tasks: Callable[[float], BinaryTask],
    progress: Progress = lambda text: None,
) -> RangeAdvice:
    """The advice of `recommend` at numbers of the range; what the decision does not change is computed once.

    tasks: the task at a number. Errors: DecalError.
    """
    plan = replace(plan, decision=None)
    unbound = tuple(choice for choice in plan.choices if not decides(choice))
    evaluation = evaluate(dataset, replace(plan, choices=unbound), progress)

    def asker(model: Predictions, group: str | None, rows: Rows, shared: Report) -> Callable[[int], _Point]:
        elsewhere = Elsewhere(Inputs(rows, None, plan.seed), shared, plan, preferences)

        def point(step: int) -> _Point:
            number = unknown.at(step)
            progress(f"{model.name} at {number:g}")
            task = tasks(number)
            advice, results = elsewhere.advise(task)
            action = advice.act_now.action
            return _Point(number, task, advice, None if action == "done" else results[GAINS[action]].interval)

        return point

    found = []
    reports = iter(evaluation.reports)
    for model in dataset.models:
        for group, rows in model.rows.by_group():
            found.append(tuple(_stretches(_points(asker(model, group, rows, next(reports))))))
    return RangeAdvice(evaluation, unknown, tuple(found))


def _points(point: Callable[[int], _Point]) -> list[_Point]:
    """Points of the range, dense where the advice changes."""
    steps = (*range(0, STEPS, COARSE), STEPS)
    return list(looked_at(point, steps, lambda each: each.advice.same).values())


def _stretches(points: list[_Point]) -> Iterator[Stretch]:
    """Runs of points at which the same is to be done."""
    start = 0
    for end in range(1, len(points) + 1):
        if end < len(points) and points[end].advice.same == points[start].advice.same:
            continue
        run = points[start:end]
        won = [point.won for point in run]
        best = max((each for each in won if each is not None), key=lambda each: each.gain, default=None)
        thresholds = (run[0].task.threshold, run[-1].task.threshold)
        yield Stretch(run[0].at, run[-1].at, thresholds, *run[0].advice.same, best)
        start = end
