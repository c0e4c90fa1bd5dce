"""Over time: replay a stream, and forecasters that predict one row and learn one label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from decal_cli.analysis.evaluate import Evaluation
from decal_cli.analysis.online.judged import Judged, OnlineRule, judge_online
from decal_cli.analysis.online.plan import (
    Delay,
    OnlinePlan,
    Period,
    check_horizon,
    needs_score,
    online_plan,
    unasked_period,
)
from decal_cli.analysis.online.replay import Replay, predicted_columns
from decal_cli.analysis.online.state_file import check_goes_on, state_text, unknown_rows
from decal_cli.api.answer import OnlineAnswer
from decal_cli.api.asking import Asked, asked, names_of, parts_of, paths_of, real, whole
from decal_cli.api.nouns import OF_STREAM, Data, DecisionLike, Names, OverTime, Rules, Source, Statistics
from decal_cli.api.words import AROUND, computing, spoken
from decal_cli.data import Stream, read_stream
from decal_cli.data.arrays import stream_from_arrays
from decal_cli.data.output import write_whole
from decal_cli.declarations.defaults import SEED, WARM_UP
from decal_cli.errors import DecalError
from decal_cli.hints import GIVE_TASK, Hint, Verb
from decal_cli.numbers import many
from decal_cli.render.results.online import Replayed
from decal_cli.sequential import forecaster_of, parse


@spoken
def online(
    data: Data | Source,
    decision: DecisionLike | None = None,
    *,
    over_time: OverTime | None = None,
    rules: Rules | Names = (),
    statistics: Statistics | None = None,
    **fields: Any,
) -> OnlineAnswer:
    """Replay rows in the order of time, never looking ahead: is the score still calibrated, and what to do now.

    Parameters
    ----------
    data, decision, statistics, **fields
        As for `evaluate`; without a score the base rate is forecast. A cluster enters as one step, and its labels are
        known when it is over.
    over_time
        When labels become known, and which forecasters are replayed.
    rules
        Such as 'e_calibration<20'; `answer.passed` says whether all hold.

    Returns
    -------
    OnlineAnswer
        `answer.judged` has the windows, the forecasters, the alarm and the advice.

    Examples
    --------
    >>> online(([0.2, 0.8] * 50, [0, 1] * 50), 0.5, warm_up=20).judged.rows
    100
    """
    given = asked(data, decision, statistics, fields, over_time or OverTime())
    texts = names_of("rules", rules.rules if isinstance(rules, Rules) else rules)
    return replayed(given, [OnlineRule.parse(text) for text in texts])


@dataclass(frozen=True)
class KeptState:
    """A file with the state of a replay that goes on. begun: what it holds, None where the file does not exist yet.

    skip_known: whether rows that the replay has taken before are dropped.
    """

    path: str
    begun: Replay | None
    skip_known: bool


def replayed(given: Asked, rules: Sequence[OnlineRule], state: KeptState | None = None) -> OnlineAnswer:
    """A replay of the rows, whole, or from where a state ended, which is then written anew."""
    data, plan, (over_time,) = given.data, given.plan, given.others
    if said := [name for name in data.said() if name not in OF_STREAM]:
        raise DecalError(f"{Hint(said[0])} is not for rows over time", "leave it out")
    paths, delay = paths_of(data.source), Delay.parse(over_time.delay or 0)
    columns = given.columns(named=bool(paths))
    begun = state and state.begun
    if not begun:
        specs = [parse(text) for text in parts_of("methods", over_time.methods)]
        scoreless = bool(specs) and not any(map(needs_score, specs)) and not columns.score
        beside = delay.column, False if scoreless else None
    else:
        of = begun.plan
        score, group = ((name,) if name else () for name in (of.score, of.group))
        columns = replace(
            columns, score=score, group=group, cluster=of.cluster or "", time=of.time or "", logit=of.logit
        )
        beside = of.delay.column, of.score is not None
    with computing() as progress:
        progress("the stream")
        if paths:
            stream = read_stream(paths, columns, *beside, AROUND.get().stdin)
        else:
            roles: dict[str, Any] = {name: data.said().get(name) for name in ("time", "group", "cluster")}
            stream = stream_from_arrays(data.source, data.label, columns, *beside, **roles)
        replay = begun or Replay(_new_plan(given, stream, columns.logit, whole_stream=not state))
        if state:
            stream = unknown_rows(stream, replay, state.skip_known, f"state {state.path}")
            check_goes_on(replay, stream, state.path)
        check_horizon(replay.plan.horizon, replay.rows + stream.labelled)
        before, predictions = replay.rows, replay.advance(stream)
        if not state:
            replay.close()
    notes = stream.notes
    if replay.plan.score is not None and len(wrong := stream.certain_and_wrong):
        notes += (
            f"the score is certain and wrong, 0 at label 1 or 1 at label 0, in {many(len(wrong), 'row')}, first in row "
            f"{before + wrong[0] + 1:,}: one such row shows that it is not calibrated",
        )
    if state:
        write_whole(state.path, state_text(replay).encode(), "state")
        notes += (f"state {state.path} had {many(before, 'row')}, and has {replay.rows:,} now",)
    of = replay.plan
    plan = replace(plan, decision=of.task, confidence=of.confidence, seed=of.seed)
    evaluation = Evaluation(plan, stream.inputs, stream.columns, stream.guessed, notes, ())
    return OnlineAnswer(
        Replayed(Judged(replay), evaluation, given.terms, judge_online(rules, replay)),
        given.read_from,
        partial(predicted_columns, stream, replay, predictions),
    )


def _new_plan(given: Asked, stream: Stream, logit: bool, whole_stream: bool) -> OnlinePlan:
    """How the stream is replayed. whole_stream: whether no rows follow. Errors: DecalError, where it cannot be so."""
    plan, (over_time,) = given.plan, given.others
    task = plan.two_actions(Verb("online"))
    if not task:
        raise DecalError("a replay needs the decision it is for", GIVE_TASK)
    every, columns = over_time.every, cast(dict[str, Any], stream.columns)
    start = OnlinePlan(
        task=task,
        methods=(),
        clock=stream.clock,
        score=columns.get("score", (None,))[0],
        time=given.data.time if isinstance(given.data.time, str) else None,
        group=columns.get("group", (None,))[0],
        cluster=columns.get("cluster"),
        logit=logit,
        delay=Delay.parse(over_time.delay or 0),
        every=unasked_period(stream.time, stream.clock, whole_stream) if every is None else Period.parse(str(every)),
        horizon=None if over_time.horizon is None else whole("horizon", over_time.horizon),
        seed=plan.seed,
        confidence=plan.confidence,
    )
    warm_up = WARM_UP if over_time.warm_up is None else whole("warm_up", over_time.warm_up)
    return online_plan(parts_of("methods", over_time.methods), warm_up, start)


class OnlineForecaster:
    """A forecaster that predicts one row and learns one label, as models of river do.

    method: such as 'online-platt' or 'rolling-isotonic(window=500)'; `decal methods` lists them. horizon: how many rows
    there will be, if that is known. seed: of a randomised one.

    >>> forecaster = OnlineForecaster("online-platt")
    >>> round(forecaster.predict_one(0.3), 3)
    0.3
    >>> forecaster.learn_one(0.3, 1)
    >>> forecaster.predict_one(0.3) > 0.3
    True
    """

    @spoken
    def __init__(self, method: str = "online-platt", *, horizon: int | None = None, seed: int = SEED) -> None:
        self.spec = parse(method)
        self.horizon = None if horizon is None else whole("horizon", horizon)
        check_horizon(self.horizon)
        self.seed = whole("seed", seed)
        self._forecaster = forecaster_of(self.spec, self.seed, self.horizon)
        self._predicted = self._learned = 0

    @property
    def method(self) -> str:
        """The method with its parameters."""
        return self.spec.key

    @spoken
    def predict_one(self, score: float = 0.0) -> float:
        """The probability of label 1 of the next row, from the labels learned so far; score: in [0, 1]."""
        checked = _score(score)
        self._predicted += 1
        return self._forecaster.predict_one(checked)

    @spoken
    def learn_one(self, score: float, label: int) -> None:
        """Learn the label, 0 or 1, of the first row that was predicted and is not learned yet."""
        checked = _score(score)
        if label not in (0, 1):
            raise DecalError(f"label={label!r} is neither 0 nor 1", "give the label of the row")
        if self._learned >= self._predicted:
            raise DecalError("there is no row to learn: every row that was predicted is learned", "predict it first")
        self._learned += 1
        self._forecaster.learn_one(checked, int(label))

    def state(self) -> dict[str, Any]:
        """What it knows, as JSON holds it."""
        return {"predicted": self._predicted, "learned": self._learned, "forecaster": self._forecaster.state()}

    @spoken
    def restore(self, state: dict[str, Any]) -> None:
        """Go on from the state of a forecaster of the same method, horizon and seed."""
        try:
            self._forecaster.restore(state["forecaster"])
            self._predicted, self._learned = int(state["predicted"]), int(state["learned"])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise DecalError(f"this is no state of {self.method} ({error})", "give what state() returned") from None

    def __repr__(self) -> str:
        return f"OnlineForecaster({self.method!r}, {self._learned:,} labels learned)"


def _score(given: Any) -> float:
    score = real("score", given)
    if not 0 <= score <= 1:
        raise DecalError(f"score={score:g} is outside [0, 1]", "give a probability")
    return score
