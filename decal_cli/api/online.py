"""Over time: replay a stream, and forecasters that predict one row and learn one label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from decal_cli.analysis.evaluate import Evaluation
from decal_cli.analysis.gate import GateRow
from decal_cli.analysis.online import AskedOnline, Judged, OnlineRule, judge_online, judged, predicted_columns
from decal_cli.api.answer import Answer
from decal_cli.api.frames import Library, frame_of, library_of
from decal_cli.api.inputs import (
    Data,
    Missing,
    Names,
    Utilities,
    Values,
    names_of,
    paths_of,
    plan_of,
    real,
    task_given,
    terms_of,
    whole,
)
from decal_cli.api.words import one_of, spoken
from decal_cli.data import Columns, read_stream
from decal_cli.data.arrays import stream_from_arrays
from decal_cli.data.words import text_of
from decal_cli.declarations.defaults import CONFIDENCE, SEED
from decal_cli.errors import DecalError
from decal_cli.render.results.online import Replayed
from decal_cli.roles import DECLARATIONS
from decal_cli.sequential import forecaster_of, parse

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    data: Data,
    label: Values | None = None,
    *,
    time: Values | None = None,
    delay: int | str | None = None,
    warm_up: int | None = None,
    every: int | str | None = None,
    horizon: int | None = None,
    methods: Names = (),
    rules: Names = (),
    score: Names = (),
    group: Values | None = None,
    cluster: Values | None = None,
    positive: object = None,
    logit: bool = False,
    missing: Missing = "error",
    unit: str | None = None,
    per: str | None = None,
    decisions: float | None = None,
    names: Names | None = None,
    threshold: float | None = None,
    utility: Utilities | None = None,
    cost_matrix: Utilities | None = None,
    cost_fp: float | None = None,
    cost_fn: float | None = None,
    odds: str | None = None,
    decision_threshold: float | None = None,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> OnlineAnswer:
    """Replay rows in the order of time, never looking ahead: is the score still calibrated, and what to do now.

    data, label, the columns and the decision as for `evaluate`; without a score the base rate is forecast. time: (T,)
    dates or numbers, never decreasing, or the name of a column. delay: rows, such as 500, or a time, such as '7d',
    after which labels are known, or the name of a column that says when. warm_up: first rows, which the frozen one
    learns from. every: windows, such as 'month' or 1000. horizon: how many rows there will be. methods: forecasters, by
    default all. rules: such as 'e_calibration<20'; `answer.passed` says whether all hold. cluster: (T,), or the name of
    a column, of what rows were sampled by: a cluster enters as one step, and its labels are known when it is over.
    """
    asked = locals()
    one_of("missing", missing, DECLARATIONS["missing"].choices)
    parsed = [OnlineRule.parse(text) for text in names_of("rules", rules)]
    plan, terms = plan_of(asked, (), task_given(asked)), terms_of(asked)
    columns = Columns(score=names_of("score", score), positive=text_of(positive), logit=bool(logit), missing=missing)
    paths = paths_of(data)
    said = AskedOnline(
        time if isinstance(time, str) else None,
        None if delay is None else str(delay),
        None if warm_up is None else whole("warm_up", warm_up),
        None if every is None else str(every),
        None if horizon is None else whole("horizon", horizon),
        names_of("methods", methods),
    )
    if paths is not None:
        one = {"label": _name("label", label), "cluster": _name("cluster", cluster)}
        named = {**one, "group": names_of("group", group)}
        columns = columns.updated(named)
        stream = read_stream(paths, columns, said.columns(columns))
    else:
        beside = said.columns(columns)
        stream = stream_from_arrays(
            data, label, columns=columns, beside=beside, time=time, group=group, cluster=cluster
        )
    replay = said.replay(stream, plan, columns.logit)
    predictions = replay.advance(stream)
    replay.close()
    evaluation = Evaluation(plan, stream.inputs, stream.columns, stream.guessed, stream.notes, ())
    result = Replayed(judged(replay), evaluation, terms, judge_online(parsed, replay))
    return OnlineAnswer(
        result, library_of(data), predicted_columns(stream, replay.plan, predictions, replay.ahead(stream))
    )


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
