"""What to do now: keep the score, move the threshold, recalibrate online, or retrain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from decal_cli.analysis.online.plan import AS_IT_IS, BASE_RATE, FROZEN
from decal_cli.numbers import Interval
from decal_cli.sequential import parse

if TYPE_CHECKING:
    from decal_cli.analysis.online.replay import Replay

Direction = Literal["keep", "move-threshold", "recalibrate-online", "retrain"]
"""What may be advised."""


@dataclass(frozen=True)
class OnlineAdvice:
    """What to do.

    method: the forecaster to use, None to keep the score; gain, interval: what it won over acting on the score as it
    is, per row, and its sequence at alpha over the number of methods compared; since: the row after which that was
    first above 0. threshold: from which score to act, where the threshold is to be moved.
    """

    action: Direction
    method: str | None = None
    gain: float | None = None
    interval: Interval | None = None
    since: int | None = None
    threshold: float | None = None


def advised(replay: Replay) -> OnlineAdvice:
    """A method is advised where its sequence is above 0 at alpha over the number of methods compared.

    The one that won most is taken. Where it is the frozen recalibration, which is one threshold for all time, the
    threshold is to be moved. Where the base rate, which looks at no score, wins as much as that, the score is worth
    nothing any more, and the model is to be retrained.
    """
    plan = replay.plan
    if plan.baseline != AS_IT_IS or not plan.candidates:
        return OnlineAdvice("keep")
    alpha = plan.alpha / len(plan.candidates)
    gains = {key: replay.tallies[key].gain(alpha) for key in plan.candidates}
    winners = {key: gain for key, (gain, interval) in gains.items() if interval is not None and interval[0] > 0}
    if BASE_RATE in replay.tallies:
        mean, interval = replay.tallies[BASE_RATE].gain(alpha)
        clear = interval is not None and interval[0] > 0
        if clear and mean >= max(gain for gain, _ in gains.values()):
            return OnlineAdvice("retrain", None, mean, interval, replay.since(BASE_RATE))
    if not winners:
        return OnlineAdvice("keep")
    best = max(winners, key=lambda key: winners[key])
    gain, interval = gains[best]
    since = replay.since(best)
    if parse(best).name == FROZEN:
        threshold = replay.forecasters[best].acts_from(plan.task.threshold)
        return OnlineAdvice("move-threshold", best, gain, interval, since, threshold)
    return OnlineAdvice("recalibrate-online", best, gain, interval, since)
