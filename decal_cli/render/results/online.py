"""What `decal online` returns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypedDict

from decal_cli.analysis.evaluate import Evaluation
from decal_cli.analysis.online import Direction, Judged, MethodReport, Window
from decal_cli.analysis.online.judged import LOSSES
from decal_cli.data import shown_time
from decal_cli.numbers import percent, plain, short
from decal_cli.render.blocks import Block, Cell, Column, Notes, Paragraph, Row, Signature, Source, Table
from decal_cli.render.cells import number, words
from decal_cli.render.results.online_advice import conclusion_of_replay
from decal_cli.render.results.source import Provenance, pair, provenance, source_lines, title_of
from decal_cli.render.schema import Count, Ends, Inside, Limit, Positive, Share, Size, Words
from decal_cli.render.terms import Terms
from decal_cli.sequential.forecaster import Guarantee

MAX_SHOWN_WINDOWS = 24
"""Windows of the table; JSON and CSV have all."""
MAX_EXPONENT = 4
"""From which power of ten on an e-value is written as one."""


class ReplayedPlanData(TypedDict):
    """How rows were replayed. delay, every: as on the command line; horizon: null where it is not known."""

    time: str | None
    delay: Words
    every: Words
    warm_up: Positive
    horizon: Positive | None
    confidence: Inside
    seed: Count


class GuaranteeData(TypedDict):
    """What a theorem says. metric: v_regret, cdl or dist_cal; bound: per row; holds: of what it is the bound."""

    metric: Literal["v_regret", "cdl", "dist_cal"]
    bound: Size
    holds: Words


class MethodOverTimeData(TypedDict):
    """One forecaster. utility: per decision; gain: over the first of them, null for that, with its confidence sequence
    after the last row; since: the row after which that, at alpha over the number of methods compared, was above 0.
    worst_v_regret: per row, at the threshold worst_kink. guarantee: of a theorem, null without one.
    """

    method: Words
    randomised: bool
    utility: float
    gain: float | None
    interval: Ends | None
    since: Positive | None
    worst_v_regret: float
    worst_kink: Share
    guarantee: GuaranteeData | None
    u_cal: float
    cdl: float
    dist_cal_lower: float
    dist_cal_upper: float


class WindowData(TypedDict):
    """One window: utilities per decision by method, and the decimal logarithm of the e-process after its last row."""

    window: Words
    first_row: Positive
    first_time: str
    rows: Positive
    base_rate: Share
    mean_score: Share
    utility: dict[str, float]
    log10_e: float


class AlarmData(TypedDict):
    """The row after which the e-process reached 1/alpha, and the row where what it found likely began."""

    row: Positive
    time: str
    likely_since_row: Positive
    likely_since_time: str


class PriorShiftData(TypedDict):
    """The share of label 1 in the warm-up and in the latest window. threshold: from which score to act, if that is all
    that changed; null where a share is 0 or 1.
    """

    before: Share
    now: Share
    threshold: Share | None


class OnlineAdviceData(TypedDict):
    """What to do now. cost_a_day: of not doing it, null where time is no date."""

    action: Direction
    method: str | None
    gain: float | None
    interval: Ends | None
    since: Positive | None
    threshold: Share | None
    cost_a_day: float | None


class ReplayedData(Provenance):
    """What `decal online` prints. rows, positives: of all rows so far whose labels are known."""

    rows: Positive
    positives: Count
    first_time: str
    last_time: str
    replay: ReplayedPlanData
    methods: Annotated[list[MethodOverTimeData], Limit(minItems=1)]
    windows: Annotated[list[WindowData], Limit(minItems=1)]
    log10_e: float
    alarm: AlarmData | None
    prior_shift: PriorShiftData | None
    advice: OnlineAdviceData


class Replayed:
    """A replay in the user's terms, for formats to write."""

    def __init__(self, judged: Judged, evaluation: Evaluation, terms: Terms | None = None) -> None:
        self.judged = judged
        self.evaluation = evaluation
        self.terms = terms or Terms()

    @property
    def title(self) -> str:
        """Of a page."""
        return title_of(self.evaluation)

    def blocks(self) -> Iterator[Block]:
        """What was replayed, windows, forecasters, the alarm, the prior shift, and what to do."""
        yield Source((*source_lines(self.evaluation), *self._lines()))
        yield self._window_table()
        yield self._method_table()
        yield Notes(tuple(self._notes()), quiet=True)
        yield Paragraph(self._alarm_sentence(), strong="Calibration:")
        if self.judged.prior_shift is not None:
            yield Paragraph(self._shift_sentence(), strong="Share of label 1:", close=True)
        yield conclusion_of_replay(self.judged, self.terms)
        yield Signature(self.evaluation.signature)

    def data(self) -> dict[str, Any]:
        """ReplayedData."""
        judged, plan = self.judged, self.judged.plan
        return {
            **provenance(self.evaluation),
            "intervals": None,
            "rows": judged.rows,
            "positives": judged.positives,
            "first_time": self.at(judged.first_time),
            "last_time": self.at(judged.last_time),
            "replay": {
                "time": self.evaluation.columns.get("time"),
                "delay": plan.delay.text,
                "every": plan.every.text,
                "warm_up": plan.warm_up,
                "horizon": plan.horizon,
                "confidence": plan.confidence,
                "seed": plan.seed,
            },
            "methods": [self._method_data(each) for each in judged.methods],
            "windows": [self._window_data(each) for each in judged.windows],
            "log10_e": judged.log_e / math.log(10),
            "alarm": self._alarm_data(),
            "prior_shift": None if judged.prior_shift is None else vars(judged.prior_shift),
            "advice": self._advice_data(),
        }

    def rows(self) -> Iterator[list[Any]]:
        """One row per window and method."""
        yield ["window", "first_row", "first_time", "rows", "base_rate", "mean_score", "log10_e", "method", "utility"]
        for window in self.judged.windows:
            data = self._window_data(window)
            shared = [data[name] for name in ("window", "first_row", "first_time", "rows", "base_rate", "mean_score")]
            for method, utility in data["utility"].items():
                yield [*shared, data["log10_e"], method, utility]

    def at(self, time: Any) -> str:
        """A time in words."""
        return shown_time(time, self.judged.plan.clock)

    def _lines(self) -> Iterator[str]:
        judged, plan = self.judged, self.judged.plan
        yield (
            f"{judged.rows:,} rows from {self.at(judged.first_time)} to {self.at(judged.last_time)}; labels are known "
            f"{delay_words(plan.delay.text, plan.delay.kind, plan.clock)}"
        )

    def _window_table(self) -> Table:
        judged, plan = self.judged, self.judged.plan
        shown = judged.windows[-MAX_SHOWN_WINDOWS:]
        beside = self._beside()
        heads = [judged.methods[0].title, *([beside.title] if beside else [])]
        columns = [
            Column(plan.every.text if plan.every.rows is None else "rows", words=True),
            Column("n"),
            Column("base rate"),
            Column("mean score" if plan.score else "mean forecast"),
            *(Column(head, self.terms.heading, wraps=True) for head in heads),
            *([Column("gain", self.terms.heading, wraps=True)] if beside else []),
            Column("e-value"),
        ]
        rows = []
        for window in shown:
            utilities = [
                window.utility(each.spec.key, plan.task) for each in (judged.methods[0], *filter(None, [beside]))
            ]
            cells = [
                words(plan.every.name(window.place)),
                words(f"{window.rows:,}"),
                words(percent(window.base_rate)),
                words(percent(window.mean_score)),
                *(self._amount(utility) for utility in utilities),
                *([self._amount(utilities[1] - utilities[0])] if beside else []),
                words(e_text(window.log_e)),
            ]
            rows.append(Row(tuple(cells)))
        dropped = len(judged.windows) - len(shown)
        earlier = f"; {dropped:,} earlier ones are not shown" if dropped else ""
        return Table(tuple(columns), tuple(rows), title=f"Utility by window{earlier}", keys=1)

    def _beside(self) -> MethodReport | None:
        """The method that is shown beside the first: the one advised, else the recalibrator that won most."""
        judged = self.judged
        if judged.advice.method is not None:
            return judged.report(judged.advice.method)
        candidates = [judged.report(key) for key in judged.plan.candidates]
        others = candidates or list(judged.methods[1:])
        return max(others, key=lambda each: each.gain or 0.0) if others else None

    def _method_table(self) -> Table:
        judged = self.judged
        columns = (
            Column("forecaster", words=True),
            Column("gain", self.terms.heading),
            Column("above 0 since", words=True, drops=1),
            Column("V-regret", "worst"),
            Column("at", drops=2),
            Column("U-cal."),
            Column("CDL"),
            Column("distance", "to calibration", drops=2),
            Column("bound", words=True, drops=1),
        )
        rows = []
        for each in judged.methods:
            ends = each.interval
            cells = (
                words(each.title + (" *" if each.spec.declared.randomised else "")),
                words("") if each.gain is None else self._amount(each.gain, ends),
                words("" if each.since is None else f"row {each.since:,}"),
                number(each.worst.regret / judged.rows),
                words(short(each.worst.kink, 3)),
                number(each.losses["u_cal"]),
                number(each.losses["cdl"]),
                words(f"{short(each.losses['dist_cal_lower'], 3)} – {short(each.losses['dist_cal_upper'], 3)}"),
                words(_bound(each.guarantee)),
            )
            rows.append(Row(cells, chosen=each.spec.key == judged.advice.method))
        title = f"Forecasters; gains are over {judged.methods[0].title}"
        return Table(columns, tuple(rows), title=title, keys=1, picks=True)

    def _notes(self) -> Iterator[str]:
        judged = self.judged
        level = percent(judged.plan.confidence)
        yield f"Intervals are {level} confidence sequences: they hold after every row at once, whenever one looks."
        if any(each.spec.declared.randomised for each in judged.methods):
            yield (
                "* predicts with random numbers: its bound is of an expectation, for V-regret at a fixed threshold; "
                "V-regret is shown at the worst threshold of this run."
            )

    def _alarm_sentence(self) -> str:
        judged = self.judged
        alpha = judged.plan.alpha
        needed = f"{1 / alpha:,.3g}"
        if judged.alarm is None:
            return f"no alarm (e-value {e_text(judged.log_e)}; the alarm is at {needed})."
        alarm = judged.alarm
        return (
            f"the score is not calibrated. The alarm was raised at {self._place(alarm.row, alarm.time)}, when the "
            f"e-value reached {needed}; what it found likely began about {self._place(alarm.start, alarm.start_time)}. "
            f"A calibrated score ever raises it with a chance of at most {percent(alpha)}."
        )

    def _place(self, row: int, time: Any) -> str:
        if self.judged.plan.clock == "rows":
            return f"row {row:,}"
        return f"{self.at(time)} (row {row:,})"

    def _shift_sentence(self) -> str:
        shift = self.judged.prior_shift
        assert shift is not None  # asked before
        text = f"{percent(shift.before)} in the warm-up, {percent(shift.now)} in the latest window"
        if shift.threshold is None:
            return f"{text}."
        return f"{text}. If that is all that changed, act on the score from {short(shift.threshold, 3)}."

    def _amount(self, value: float, ends: tuple[float, float] | None = None) -> Cell:
        scale = self.terms.number
        interval = None if ends is None else (scale * ends[0], scale * ends[1])
        return number(scale * value, interval, decimals=3)

    def _method_data(self, each: MethodReport) -> dict[str, Any]:
        return {
            "method": each.spec.key,
            "randomised": each.spec.declared.randomised,
            "utility": each.utility,
            "gain": each.gain,
            "interval": pair(each.interval),
            "since": each.since,
            "worst_v_regret": each.worst.regret / self.judged.rows,
            "worst_kink": each.worst.kink,
            "guarantee": None if each.guarantee is None else each.guarantee._asdict(),
            **{loss.key: each.losses[loss.key] for loss in LOSSES},
        }

    def _window_data(self, window: Window) -> dict[str, Any]:
        plan = self.judged.plan
        return {
            "window": plan.every.name(window.place),
            "first_row": window.row + 1,
            "first_time": self.at(window.time),
            "rows": window.rows,
            "base_rate": window.base_rate,
            "mean_score": window.mean_score,
            "utility": {spec.key: window.utility(spec.key, plan.task) for spec in plan.methods},
            "log10_e": window.log_e / math.log(10),
        }

    def _alarm_data(self) -> dict[str, Any] | None:
        alarm = self.judged.alarm
        if alarm is None:
            return None
        return {
            "row": alarm.row,
            "time": self.at(alarm.time),
            "likely_since_row": alarm.start,
            "likely_since_time": self.at(alarm.start_time),
        }

    def _advice_data(self) -> dict[str, Any]:
        judged, advice = self.judged, self.judged.advice
        a_day = None if advice.gain is None or judged.rows_per_day is None else advice.gain * judged.rows_per_day
        return {
            "action": advice.action,
            "method": advice.method,
            "gain": advice.gain,
            "interval": pair(advice.interval),
            "since": advice.since,
            "threshold": advice.threshold,
            "cost_a_day": a_day,
        }


_BOUNDED = {"v_regret": "V-regret ≤ {}", "cdl": "CDL ~ {}", "dist_cal": "distance ≤ {}"}
"""By the metric that is bounded; ~ stands where the theorem has a constant that it does not name."""


def _bound(guarantee: Guarantee | None) -> str:
    return "" if guarantee is None else _BOUNDED[guarantee.metric].format(short(guarantee.bound, 4))


def delay_words(text: str, kind: str, clock: str) -> str:
    """When labels are known, in words."""
    if kind == "column":
        return f"when column {text} says"
    if kind == "time":
        return f"after {text}"
    if text == "0":
        return "before the next row" if clock == "rows" else "at any later time"
    return f"after {int(text):,} more rows"


def e_text(log_e: float) -> str:
    """An e-value; a large or small one as a power of ten."""
    power = log_e / math.log(10)
    return f"10^{power:.0f}" if abs(power) >= MAX_EXPONENT else plain(math.exp(log_e))
