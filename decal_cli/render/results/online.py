"""What `decal online` returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

from decal_cli.analysis.evaluate import Evaluation
from decal_cli.analysis.gate import GateRow
from decal_cli.analysis.online import Direction, Judged, MethodReport, PriorShift, StreamClusters, Window
from decal_cli.data import shown_time
from decal_cli.declarations.document import Absent, Count, Inside, Limit, Positive, Share, Words
from decal_cli.hints import Verb
from decal_cli.numbers import Interval, percent, plain, short
from decal_cli.render import blocks as b
from decal_cli.render.cells import Columns, left, number, table
from decal_cli.render.results.gates import checks_of
from decal_cli.render.results.source import Provenance, source_lines, title_of
from decal_cli.render.schema import View, data_of, of
from decal_cli.render.terms import StatedTerms
from decal_cli.sequential.alarm import MAX_LOG_E
from decal_cli.sequential.forecaster import Guarantee

MAX_SHOWN_WINDOWS = 24
"""Windows of the table; JSON and CSV have all."""
MAX_EXPONENT = 4
"""From which power of ten on an e-value is written as one."""


class ReplayedPlanData(View):
    """How rows were replayed. delay, every: as on the command line; horizon: null where it is not known."""

    time: str | None = of(lambda _, seen: seen.evaluation.columns.get("time"))
    delay: Words = of("delay.text")
    every: Words = of("every.text")
    warm_up: Positive
    horizon: Positive | None
    confidence: Inside
    seed: Count


class ClustersOverTimeData(View):
    """The clusters of the rows. apart_at: the row at which one first came back after others: intervals are then of
    one look, and there is no e-value; null where the rows of each follow each other.
    """

    clusters: Positive = of(lambda clusters, _: len(clusters.size))
    apart_at: Positive | None = of("apart.row")


class MethodOverTimeData(View):
    """One forecaster. utility: per decision; gain: over the first of them, null for that, with its confidence sequence
    after the last row, null of too few clusters; since: the row after which that, at alpha over the number of methods
    compared, was above 0. In clusters, gain is the mean over those.
    worst_v_regret: per row, at the threshold worst_kink. guarantee: of a theorem, null without one.
    """

    method: Words = of("spec.key")
    randomised: bool = of("spec.declared.randomised")
    utility: float
    gain: float | None
    interval: Interval | None
    since: Positive | None
    worst_v_regret: float = of(lambda method, seen: method.worst.regret / seen.judged.rows)
    worst_kink: Share = of("worst.kink")
    guarantee: Guarantee | None
    u_cal: float = of(lambda method, _: method.losses["u_cal"])
    cdl: float = of(lambda method, _: method.losses["cdl"])
    dist_cal_lower: float = of(lambda method, _: method.losses["dist_cal_lower"])
    dist_cal_upper: float = of(lambda method, _: method.losses["dist_cal_upper"])


class WindowData(View):
    """One window: utilities per decision by method, and the decimal logarithm of the e-process after its last row (of 1
    over the p-value where labels come late); null where rows of a cluster come apart.
    """

    window: Words = of(lambda window, seen: seen.judged.plan.every.name(window.place))
    first_row: Positive = of(lambda window, _: window.row + 1)
    first_time: str = of(lambda window, seen: seen.at(window.time))
    rows: Positive
    base_rate: Share
    mean_score: Share
    utility: dict[str, float] = of(lambda window, seen: seen.utilities(window))
    log10_e: float | None = of(lambda window, seen: seen.log10(window.log_e))


class AlarmData(View):
    """The row after which the e-process, or 1 over the p-value, reached 1/alpha, and the row where what it found likely
    began.
    """

    row: Positive
    time: str = of(lambda alarm, seen: seen.at(alarm.time))
    likely_since_row: Positive = of("start")
    likely_since_time: str = of(lambda alarm, seen: seen.at(alarm.start_time))


class OnlineAdviceData(View):
    """What to do now. cost_a_day: of not doing it, null where time is no date."""

    action: Direction
    method: str | None
    gain: float | None
    interval: Interval | None
    since: Positive | None
    threshold: Share | None
    cost_a_day: float | None = of(lambda advice, seen: seen.a_day(advice.gain))


class ReplayPart(View):
    """What became of the rows."""

    rows: Positive
    positives: Count
    first_time: str = of(lambda judged, seen: seen.at(judged.first_time))
    last_time: str = of(lambda judged, seen: seen.at(judged.last_time))
    replay: ReplayedPlanData = of("plan")
    methods: Annotated[list[MethodOverTimeData], Limit(minItems=1)]
    windows: Annotated[list[WindowData], Limit(minItems=1)]
    clusters: Absent[ClustersOverTimeData | None]
    log10_e: float | None = of(lambda judged, seen: seen.log10(judged.log_e))
    p_value: Share | None
    alarm: AlarmData | None
    prior_shift: PriorShift | None
    advice: OnlineAdviceData
    gates: list[GateRow] = of(lambda _, seen: seen.gates)


class ReplayedData(Provenance, ReplayPart):
    """What `decal online` prints. rows, positives: of all rows so far whose labels are known. log10_e: of the e-process
    (of 1 over p_value where labels come late). p_value: that the score is calibrated, whenever one looks; null where
    there is an e-value.
    """


class Replayed:
    """A replay in the user's terms, for formats to write."""

    def __init__(
        self,
        judged: Judged,
        evaluation: Evaluation,
        terms: StatedTerms | None = None,
        gates: Sequence[GateRow] = (),
        drawings: Sequence[b.Picture] = (),
    ) -> None:
        self.drawings = drawings
        self.seconds = 0.0
        self.judged = judged
        self.gates = gates
        self.evaluation = evaluation
        self.terms = terms or StatedTerms()
        self.title = title_of(evaluation)

    def blocks(self) -> Iterator[b.Block]:
        """What was replayed, windows, forecasters, the alarm, the prior shift, and what to do."""
        yield b.SourceLines((*source_lines(self.evaluation), *self._lines()))
        yield self._window_table()
        yield self._method_table()
        yield b.Notes(tuple(self._notes()), quiet=True)
        yield from self.drawings
        scored = self.judged.plan.score is not None
        if scored:
            yield b.Paragraph(self._alarm_sentence(), strong="Calibration:")
        if self.judged.prior_shift is not None:
            yield b.Paragraph(self._shift_sentence(), strong="Share of label 1:", close=scored)
        yield conclusion_of_replay(self.judged, self.terms)
        if self.gates:
            yield b.Checks(self.checks())
        yield b.Signature(self.evaluation.signature)

    def data(self) -> dict[str, Any]:
        """ReplayedData."""
        return {**data_of(Provenance(self.evaluation)), "intervals": None, **data_of(ReplayPart(self.judged, self))}

    def checks(self) -> tuple[b.Check, ...]:
        """The rules, for CI systems."""
        return checks_of(self.gates)

    def rows(self) -> Iterator[list[Any]]:
        """One row per window and method."""
        names = ("window", "first_row", "first_time", "rows", "base_rate", "mean_score", "log10_e")
        yield [*names, "method", "utility"]
        for window in self.judged.windows:
            document = data_of(WindowData(window, self))
            for method, utility in document["utility"].items():
                yield [*(document[name] for name in names), method, utility]

    def at(self, time: Any) -> str:
        """A time in words."""
        return shown_time(time, self.judged.plan.clock)

    def log10(self, log_e: float) -> float | None:
        """The decimal logarithm of an e-process; None where it does not hold at all times."""
        return log_e / math.log(10) if self.judged.at_all_times else None

    def a_day(self, gain: float | None) -> float | None:
        """What a gain per decision is a day; None where time is no date."""
        per_day = self.judged.rows_per_day
        return None if gain is None or per_day is None else gain * per_day

    def utilities(self, window: Window) -> dict[str, float]:
        """Per decision of a window, by method."""
        plan = self.judged.plan
        return {spec.key: window.utility(spec.key, plan.task) for spec in plan.methods}

    def _lines(self) -> Iterator[str]:
        judged, plan = self.judged, self.judged.plan
        known = delay_words(plan.delay.text, plan.delay.kind, plan.clock)
        if judged.clusters is not None:
            known = "when" if plan.delay.text == "0" else f"{known}, and not before"
            known += " the next cluster comes"
        yield (
            f"{judged.rows:,} rows from {self.at(judged.first_time)} to {self.at(judged.last_time)}; labels are known "
            f"{known}"
        )

    @property
    def _unit(self) -> str:
        """Of amounts in tables."""
        return self.terms.measured_in(self.terms.unit)

    def _window_table(self) -> b.TextTable:
        judged, plan = self.judged, self.judged.plan
        shown = judged.windows[-MAX_SHOWN_WINDOWS:]
        first, beside = judged.methods[0], self._beside()

        def won(method: MethodReport, over: MethodReport | None = None) -> Callable[[Window], b.Cell]:
            def amount(window: Window) -> b.Cell:
                less = 0.0 if over is None else window.utility(over.spec.key, plan.task)
                return self._amount(window.utility(method.spec.key, plan.task) - less)

            return amount

        of_beside: Columns[Window] = (
            [(b.Column(beside.title, wraps=True), won(beside)), ("gain", won(beside, first))] if beside else []
        )
        evidence = ("p-value" if plan.delay.late else "e-value", lambda window: self._evidence(window.log_e))
        dropped = len(judged.windows) - len(shown)
        earlier = f"; {dropped:,} earlier ones are not shown" if dropped else ""
        return table(
            shown,
            [
                (left(plan.every.text if plan.every.rows is None else "rows"), lambda w: plan.every.name(w.place)),
                ("n", lambda window: f"{window.rows:,}"),
                ("base rate", lambda window: percent(window.base_rate)),
                ("mean score" if plan.score else "forecast", lambda window: percent(window.mean_score)),
                (b.Column(first.title, wraps=True), won(first)),
                *of_beside,
                *([evidence] if judged.has_e_value else []),
            ],
            title=f"Utility by window, {self._unit}{earlier}",
            keys=1,
        )

    def _beside(self) -> MethodReport | None:
        """The method that is shown beside the first: the one advised, else the recalibrator that won most."""
        judged = self.judged
        if judged.advice.method is not None:
            return judged.report(judged.advice.method)
        candidates = [judged.report(key) for key in judged.plan.candidates]
        others = candidates or list(judged.methods[1:])
        return max(others, key=lambda each: each.gain or 0.0) if others else None

    def _method_table(self) -> b.TextTable:
        judged = self.judged
        by_cluster = ", every cluster counted once" if judged.clusters is not None and judged.at_all_times else ""
        return table(
            judged.methods,
            [
                (left("forecaster"), lambda each: each.title + (" *" if each.spec.declared.randomised else "")),
                ("gain", lambda each: "" if each.gain is None else self._amount(each.gain, each.interval)),
                (left("clear since", drops=1), lambda each: "" if each.since is None else f"row {each.since:,}"),
                (b.Column("V-regret", "worst"), lambda each: each.worst.regret / judged.rows),
                (b.Column("at", drops=1), lambda each: short(each.worst.kink, 3)),
                ("U-cal.", lambda each: each.losses["u_cal"]),
                ("CDL", lambda each: each.losses["cdl"]),
                (b.Column("distance", "at most"), lambda each: each.losses["dist_cal_upper"]),
                *([(left("bound"), lambda each: _bound(each.guarantee))] if judged.prompt else []),
            ],
            row=lambda each: {"chosen": each.spec.key == judged.advice.method},
            title=f"Forecasters; gains over {judged.methods[0].title}, {self._unit}{by_cluster}",
            keys=1,
            picks=True,
        )

    def _notes(self) -> Iterator[str]:
        judged = self.judged
        level = percent(judged.plan.confidence)
        if judged.clusters is None:
            yield f"Intervals are {level} confidence sequences: they hold after every row at once, whenever one looks."
        else:
            yield from cluster_notes_of(judged.clusters, level, judged.plan.delay.late)
        yield "V-regret, U-calibration, CDL and the distance to calibration are per row."
        if judged.p_value is not None:
            yield (
                "The p-value holds whenever one looks. Rows enter it in blocks, when their labels are known: of every "
                "other block an e-process each, and the p-value is 2 over the most that either has been."
            )
        randomised = any(each.spec.declared.randomised for each in judged.methods)
        if not judged.prompt:
            yield "Bounds are not shown: theorems speak of labels that are known before the next row."
            yield from ["* predicts with random numbers."] if randomised else []
        elif randomised:
            yield (
                "* predicts with random numbers: its bound is of an expectation, for V-regret at a fixed threshold; "
                "V-regret is shown at the worst threshold of this run."
            )

    def _alarm_sentence(self) -> str:
        judged = self.judged
        if not judged.has_e_value:
            return (
                "there is no e-value: it needs the rows of a cluster to follow each other. For one look at all rows: "
                f"{Verb('evaluate', 'cluster').words}."
            )
        alpha = judged.plan.alpha
        measure, needed = ("p-value", plain(alpha)) if judged.plan.delay.late else ("e-value", f"{1 / alpha:,.3g}")
        now = self._evidence(judged.log_e)
        if judged.alarm is None:
            return f"no alarm ({measure} {now}; the alarm is at {needed})."
        alarm = judged.alarm
        return (
            f"alarm. At {self._place(alarm.row, alarm.time)} the {measure} reached {needed}, which that of a "
            f"calibrated score ever does with a chance of at most {percent(alpha)}. What it found likely began about "
            f"{self._place(alarm.start, alarm.start_time)}; the {measure} is {now} now."
        )

    def _evidence(self, log_e: float) -> str:
        """The e-value, or the p-value where labels come late."""
        return p_text(log_e) if self.judged.plan.delay.late else e_text(log_e)

    def _place(self, row: int, time: Any) -> str:
        if self.judged.plan.clock == "rows":
            return f"row {row:,}"
        return f"{self.at(time)} (row {row:,})"

    def _shift_sentence(self) -> str:
        shift = self.judged.prior_shift
        assert shift is not None  # asked before
        text = f"{percent(shift.before)} in the warm-up, {percent(shift.now)} in the latest window"
        if shift.threshold is None or self.judged.plan.score is None:
            return f"{text}."
        return f"{text}. If only that changed since the warm-up, act on the score from {short(shift.threshold, 3)}."

    def _amount(self, value: float, ends: tuple[float, float] | None = None) -> b.Cell:
        scale = self.terms.number
        interval = None if ends is None else (scale * ends[0], scale * ends[1])
        return number(scale * value, interval, decimals=3)


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
    if log_e >= MAX_LOG_E:
        return f"over 10^{math.floor(power)}"
    return f"10^{power:.0f}" if abs(power) >= MAX_EXPONENT else plain(math.exp(log_e))


def p_text(log_inverse: float) -> str:
    """A p-value, from the log of 1 over it; a small one as a power of ten."""
    power = log_inverse / math.log(10)
    if log_inverse >= MAX_LOG_E - math.log(2):
        return f"under 10^-{math.floor(power)}"
    return f"10^-{power:.0f}" if power >= MAX_EXPONENT else plain(math.exp(-log_inverse))


def conclusion_of_replay(judged: Judged, terms: StatedTerms) -> b.Conclusion:
    """The action, why, since when, and what it costs not to act."""
    return b.Conclusion(_headline(judged), tuple(_sentences(judged, terms)))


def _headline(judged: Judged) -> str:
    advice = judged.advice
    if advice.action == "retrain":
        return "Retrain: the base rate alone wins as much as this score."
    if advice.action == "keep":
        if judged.plan.score is None:
            return "There is no score: nothing is advised."
        miscalibrated = ", which is not calibrated: no recalibrator clearly wins" if judged.alarm else ""
        return f"Keep the score as it is{miscalibrated}."
    if advice.action == "move-threshold":
        at = "" if advice.threshold is None else f": act on the score from {short(advice.threshold, 3)}"
        return f"Move the threshold{at}."
    return f"Recalibrate online with {advice.method}."


def _sentences(judged: Judged, terms: StatedTerms) -> Iterator[str]:
    advice, plan = judged.advice, judged.plan
    if advice.gain is None or advice.interval is None:
        if plan.candidates:
            interval = "confidence sequence" if judged.at_all_times else "interval"
            yield f"A method is advised where its {interval} is above 0{_shared(judged)}; none is."
        return
    several = ", an interval for all methods compared at once" if len(plan.candidates) > 1 else ""
    yield f"Not doing so has cost {terms.amount(advice.gain, advice.interval)}{several}."
    if judged.rows_per_day is not None and terms.per is None:
        a_day = advice.gain * judged.rows_per_day
        yield f"At {short(judged.rows_per_day, 1)} decisions a day that is {a_day:,.3g} {terms.noun} a day."
    if advice.since is not None:
        yield f"This has been clear since row {advice.since:,}."


def cluster_notes_of(clusters: StreamClusters, level: str, late: bool) -> Iterator[str]:
    """What intervals and the e-value say where rows are in clusters; late: whether their labels come in late."""
    count = len(clusters.size)
    if clusters.apart is None:
        yield (
            f"Intervals are {level} confidence sequences of the mean over clusters, of which there are {count:,}: they "
            "hold after every cluster at once, whenever one looks. A cluster enters when it is over, as one step by "
            f"the average of its rows{'.' if late else '; so it does into the e-value.'}"
        )
        return
    yield (
        f"Intervals hold at the {level} level for one look after the last row, and count {count:,} clusters. Rows of a "
        f"cluster do not all follow each other (the first that comes back is {clusters.apart.cluster!r}, in row "
        f"{clusters.apart.row:,}), so that nothing here holds whenever one looks."
    )


def _shared(judged: Judged) -> str:
    """What share of the risk one method has."""
    compared = len(judged.plan.candidates)
    return f" at {percent(judged.plan.alpha)}" + (
        f" divided by the {compared} methods compared" if compared > 1 else ""
    )
