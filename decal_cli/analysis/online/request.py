"""What a user says of a replay that begins, to the columns that are read and the replay of them."""

from __future__ import annotations

from dataclasses import dataclass

from decal_cli.analysis.evaluate import Plan
from decal_cli.analysis.online.plan import Delay, OnlinePlan, Period, needs_score, online_plan, unasked_period
from decal_cli.analysis.online.replay import Replay
from decal_cli.data import Columns, Stream, StreamColumns
from decal_cli.declarations.defaults import WARM_UP
from decal_cli.errors import DecalError
from decal_cli.hints import Hint
from decal_cli.sequential import parse
from decal_cli.task import BinaryTask


@dataclass(frozen=True)
class OnlineRequest:
    """As the user says it, None for what he does not say. whole: whether these are all rows, so that none follow."""

    time: str | None = None
    delay: str | None = None
    warm_up: int | None = None
    every: str | None = None
    horizon: int | None = None
    methods: tuple[str, ...] = ()
    whole: bool = True

    @property
    def parsed_delay(self) -> Delay:
        """When labels become known."""
        return Delay.parse(self.delay or "0")

    def columns(self, columns: Columns) -> StreamColumns:
        """What is read beside score, label and group; no score where no method looks at it."""
        specs = [parse(text) for text in self.methods]
        scoreless = bool(specs) and not any(map(needs_score, specs)) and not columns.score
        return StreamColumns(self.time, self.parsed_delay.column, False if scoreless else None)

    def replay(self, stream: Stream, plan: Plan, logit: bool) -> Replay:
        """A replay that has no rows yet. Errors: DecalError, where what is asked for does not fit the stream."""
        if self.every is None:
            every = unasked_period(stream.time, stream.clock, self.whole)
        else:
            every = Period.parse(self.every)
        start = OnlinePlan(
            task=_task(plan),
            methods=(),
            clock=stream.clock,
            score=None if stream.score is None else str(stream.columns["score"][0]),
            time=self.time,
            group=None if stream.group is None else str(stream.columns["group"][0]),
            cluster=None if stream.cluster is None else str(stream.columns["cluster"]),
            logit=logit,
            delay=self.parsed_delay,
            every=every,
            horizon=self.horizon,
            seed=plan.seed,
            confidence=plan.confidence,
        )
        return Replay(online_plan(self.methods, WARM_UP if self.warm_up is None else self.warm_up, start))


def _task(plan: Plan) -> BinaryTask:
    task = plan.two_actions("online")
    if task is None:
        raise DecalError(
            "a replay needs the decision it is for",
            f"give {Hint('threshold')}, {Hint('utility')}, {Hint('cost_fp')}/{Hint('cost_fn')} or {Hint('odds')}",
        )
    return task
