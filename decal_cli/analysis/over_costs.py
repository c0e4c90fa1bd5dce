"""Advice where a cost is not known: from which to which number the same is to be done, and where that wins most."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, NamedTuple

from decal_cli.analysis.described import best_recalibrator
from decal_cli.analysis.evaluate import Evaluation, Plan, Progress, Report, evaluate
from decal_cli.analysis.flowchart import Now
from decal_cli.analysis.recommend import Elsewhere, Preferences, decides
from decal_cli.data import Dataset
from decal_cli.metrics import Inputs
from decal_cli.numbers import Interval
from decal_cli.task import BinaryTask

STEPS = 98
"""Parts of a range, by which 0.01 to 0.99 are hundredths."""


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
    """What is to be done at one number: by `Advice.same`, and what that wins, if anything."""

    at: float
    threshold: float
    same: tuple[Now, str | None, str | None]
    won: Best | None


def advise_over(
    dataset: Dataset,
    plan: Plan,
    preferences: Preferences,
    unknown: Unknown,
    tasks: Callable[[float], BinaryTask],
    progress: Progress,
) -> RangeAdvice:
    """The advice of `recommend` at numbers of the range; what the decision does not change is computed once.

    tasks: the task at a number. Errors: DecalError.
    """
    plan = replace(plan, decision=None)
    unbound = tuple(choice for choice in plan.choices if not decides(choice))
    found = []

    def along(report: Report, inputs: Inputs) -> None:
        elsewhere = Elsewhere(inputs, report.with_sections(best_recalibrator(inputs)), plan, preferences)

        def point(step: int) -> _Point:
            number = unknown.at(step)
            progress(f"{report.model} at {number:g}")
            task = tasks(number)
            advice = elsewhere.advise(task)
            now, constant, won = advice.act_now, advice.instead, None
            if now.action != "done":
                won = Best(number, task.threshold, now.gain, now.interval)
            elif constant is not None:
                won = Best(number, task.threshold, constant.gain, constant.interval)
            return _Point(number, task.threshold, advice.same, won)

        stretches = []
        # Runs of points at which the same is to be done.
        for _, of_same in groupby(map(point, range(STEPS + 1)), key=lambda point: point.same):
            run = list(of_same)
            best = max((each.won for each in run if each.won), key=lambda won: won.gain, default=None)
            thresholds = run[0].threshold, run[-1].threshold
            stretches.append(Stretch(run[0].at, run[-1].at, thresholds, *run[0].same, best))
        found.append(tuple(stretches))

    evaluation = evaluate(dataset, replace(plan, choices=unbound), progress, then=along)
    return RangeAdvice(evaluation, unknown, tuple(found))
