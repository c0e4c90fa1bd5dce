"""Over time: replay a stream, and forecasters that predict one row and learn one label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from decal_cli.analysis.evaluate import Evaluation
from decal_cli.analysis.gate import GateRow
from decal_cli.analysis.online import Judged, OnlineRequest, OnlineRule, judge_online, judged, predicted_columns
from decal_cli.api.answer import Answer
from decal_cli.api.asking import asked, columns_of, names_of, paths_of, real, whole
from decal_cli.api.frames import Library, frame_of, library_of
from decal_cli.api.nouns import Data, DecisionLike, Names, OverTime, Rules, Source, Statistics
from decal_cli.api.words import spoken
from decal_cli.data import read_stream
from decal_cli.data.arrays import stream_from_arrays
from decal_cli.declarations.defaults import SEED
from decal_cli.errors import DecalError
from decal_cli.render.results.online import Replayed
from decal_cli.sequential import forecaster_of, parse

if TYPE_CHECKING:
    from numpy.typing import NDArray


OF_STREAM = ("source", "label", "score", "group", "cluster", "positive", "logit", "missing")
"""What can be said of rows over time."""


class OnlineAnswer(Answer):
    """A replay: windows, forecasters, the alarm and the advice."""

    def __init__(self, result: Replayed, library: Library, predicted: dict[str, NDArray[Any]]) -> None:
        super().__init__(result, library)
        self._predicted = predicted

    @property
    def judged(self) -> Judged:
        """What the replay comes to."""
        judgement: Judged = self.result.judged
        return judgement

    @property
    def passed(self) -> bool:
        """Whether every rule holds."""
        return all(row.passed for row in self.rules)

    @property
    def rules(self) -> tuple[GateRow, ...]:
        """What came of each rule."""
        return tuple(self.result.gates)

    @property
    def gist(self) -> str:
        """The advice."""
        advice, alarm = self.judged.advice, self.judged.alarm
        method = f" with {advice.method}" if advice.method else ""
        raised = "no alarm" if alarm is None else f"alarm at row {alarm.row:,}"
        return f"{self.judged.rows:,} rows, {raised}: {advice.action}{method}"

    @spoken
    def predictions(self, library: Library | None = None) -> Any:
        """Every row with the predictions that would have been made, as a frame."""
        names, columns = list(self._predicted), [values.tolist() for values in self._predicted.values()]
        return frame_of(iter([names, *map(list, zip(*columns, strict=True))]), library or self.library)


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
        Which column is the time, when labels become known, and which forecasters are replayed.
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
    data, (over_time,) = given.data, given.others
    if said := [name for name in data.said() if name not in OF_STREAM]:
        raise DecalError(f"{said[0]}= is not for rows over time", "leave it out")
    rules = names_of("rules", rules.rules if isinstance(rules, Rules) else rules)
    parsed = [OnlineRule.parse(text) for text in rules]
    columns, paths = columns_of(data), paths_of(data.source)
    asked_of_time = OnlineRequest(
        over_time.time if isinstance(over_time.time, str) else None,
        None if over_time.delay is None else str(over_time.delay),
        None if over_time.warm_up is None else whole("warm_up", over_time.warm_up),
        None if over_time.every is None else str(over_time.every),
        None if over_time.horizon is None else whole("horizon", over_time.horizon),
        names_of("methods", over_time.methods),
    )
    if paths is not None:
        one = {"label": _name("label", data.label), "cluster": _name("cluster", data.cluster)}
        columns = columns.updated({**one, "group": names_of("group", data.group)})
        stream = read_stream(paths, columns, asked_of_time.columns(columns))
    else:
        roles: dict[str, Any] = {"time": over_time.time, "group": data.group or None, "cluster": data.cluster}
        beside = asked_of_time.columns(columns)
        stream = stream_from_arrays(data.source, data.label, columns=columns, beside=beside, **roles)
    replay = asked_of_time.replay(stream, given.plan, columns.logit)
    predictions = replay.advance(stream)
    replay.close()
    evaluation = Evaluation(given.plan, stream.inputs, stream.columns, stream.guessed, stream.notes, ())
    result = Replayed(judged(replay), evaluation, given.decision.terms, judge_online(parsed, replay))
    predicted = predicted_columns(stream, replay.plan, predictions, replay.ahead(stream))
    return OnlineAnswer(result, library_of(data.source), predicted)


def _name(role: str, given: Any) -> str | None:
    if given is None or isinstance(given, str):
        return given
    raise DecalError(f"{role}= holds values, and the rows are in files", f"name a column: {role}='y'")


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
