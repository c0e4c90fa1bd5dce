"""What `decal online` returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import attrgetter, sub
from typing import Any

from decal_cli.analysis.evaluate import Evaluation
from decal_cli.analysis.gate import GateRow
from decal_cli.analysis.online.judged import Judged, MethodOverTime, OnlineAdvice, PriorShift
from decal_cli.analysis.online.plan import AS_IT_IS
from decal_cli.analysis.online.replay import StreamClusters, Window
from decal_cli.data import shown_time
from decal_cli.declarations.document import Absent, Count, Inside, Positive, Share, Some, Words
from decal_cli.hints import Verb
from decal_cli.numbers import Interval, bounds, decimal, decimals_for, decimals_of, many, percent, plain, short, times
from decal_cli.render import blocks as b
from decal_cli.render.cells import amount, left, table
from decal_cli.render.results.gates import checks_of
from decal_cli.render.results.source import Provenance, WrittenResult, source_lines
from decal_cli.render.schema import Document, Records, View, data_of, of
from decal_cli.render.terms import PLAIN, StatedTerms
from decal_cli.sequential.anytime import MAX_LOG_E

MAX_SHOWN_WINDOWS = 24
"""Windows of the table; JSON and CSV have all."""
MAX_EXPONENT = 4
"""From which power of ten on an e-value is written as one."""


def power_of_ten(power: float) -> str:
    """10 to this power: a large or small number as '10^12'."""
    return f"10^{power:.0f}" if abs(power) >= MAX_EXPONENT else plain(10.0**power)


def _at(name: str) -> Any:
    """A time in words."""
    return of(lambda result, seen: seen.at(getattr(result, name)))


class ReplayedPlanData(View):
    """How rows were replayed. delay, every: as on the command line; horizon: null where it is not known."""

    time: str | None = of(".evaluation.columns.time")
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


class WindowData(View):
    """One window: utilities per decision by method, and the decimal logarithm of the e-process after its last row (of 1
    over the p-value where labels come late); null where rows of a cluster come apart.
    """

    window: Words = of(lambda window, seen: seen.judged.plan.every.name(window.place, window.rows))
    first_row: Positive = of(lambda window, _: window.row + 1)
    first_time: str = _at("time")
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
    time: str = _at("time")
    likely_since_row: Positive = of("start")
    likely_since_time: str = _at("start_time")


class ReplayPart(View):
    """What became of the rows."""

    rows: Positive
    positives: Count
    first_time: str = _at("first_time")
    last_time: str = _at("last_time")
    replay: ReplayedPlanData = of("plan")
    methods: Some[MethodOverTime]
    windows: Some[WindowData]
    clusters: Absent[ClustersOverTimeData | None]
    log10_e: float | None = of(lambda judged, seen: seen.log10(judged.log_e))
    p_value: Share | None
    alarm: AlarmData | None
    prior_shift: PriorShift | None
    advice: OnlineAdvice
    gates: list[GateRow] = of(".gates")


class Replayed(WrittenResult):
    """A replay in the user's terms, for formats to write; drawings: its pictures."""

    suite = "decal online"
    drawings: Sequence[b.Picture] = ()
    apart = True

    def __init__(
        self, judged: Judged, evaluation: Evaluation, terms: StatedTerms = PLAIN, gates: Sequence[GateRow] = ()
    ) -> None:
        super().__init__(evaluation, terms)
        self.judged, self.plan, self.gates, self.notes = judged, judged.plan, gates, evaluation.notes

    def sections(self) -> b.Blocks:
        """What was replayed, windows, forecasters, the alarm, the prior shift, and what to do."""
        judged, scored = self.judged, self.plan.score is not None
        span = f"{many(judged.rows, 'row')} from {self.at(judged.first_time)} to {self.at(judged.last_time)}"
        yield b.Notes((*source_lines(self.evaluation), f"{span}; labels are known {self._known()}"))
        yield self._window_table()
        yield self._method_table()
        yield b.Notes(self._notes(), quiet=True)
        yield from self.drawings
        if scored:
            yield b.Paragraph(self._alarm_sentence(), strong="Calibration:")
        if judged.prior_shift is not None:
            yield b.Paragraph(self._shift_sentence(judged.prior_shift), strong="Share of label 1:", close=scored)
        yield b.Conclusion(self._headline(), self._sentences())
        if self.gates:
            yield b.Checks(self.checks())

    def data(self) -> Document:
        """Where the rows come from, and what became of them."""
        return {**data_of(Provenance(self.evaluation)), "intervals": None, **data_of(ReplayPart(self.judged, self))}

    def checks(self) -> tuple[b.Check, ...]:
        """The rules, for CI systems."""
        return checks_of(self.gates)

    def rows(self) -> Records:
        """One row per window and method."""
        names = ("window", "first_row", "first_time", "rows", "base_rate", "mean_score", "log10_e")
        yield [*names, "method", "utility"]
        for window in self.judged.windows:
            document = data_of(WindowData(window, self))
            for method, utility in document["utility"].items():
                yield [*(document[name] for name in names), method, utility]

    def at(self, time: Any) -> str:
        """A time in words."""
        return shown_time(time, self.plan.clock)

    def log10(self, log_e: float) -> float | None:
        """The decimal logarithm of an e-process; None where it does not hold at all times."""
        return log_e / math.log(10) if self.judged.at_all_times else None

    def utilities(self, window: Window) -> dict[str, float]:
        """Per decision of a window, by method."""
        return {spec.key: window.utility(spec.key, self.plan.task) for spec in self.plan.methods}

    def _known(self) -> str:
        """When labels are known."""
        delay = self.plan.delay
        if delay.kind == "column":
            known = f"when column {delay.text} says"
        elif delay.kind == "time":
            known = f"after {delay.text}"
        elif delay.text == "0":
            known = "before the next row" if self.plan.clock == "rows" else "at any later time"
        else:
            known = f"after {many(int(delay.text), 'more row')}"
        if self.judged.clusters is None:
            return known
        return f"{'when' if delay.text == '0' else f'{known}, and not before'} the next cluster comes"

    def _window_table(self) -> b.TextTable:
        judged, plan = self.judged, self.plan
        shown = judged.windows[-MAX_SHOWN_WINDOWS:]
        first, beside = judged.methods[0], self._beside()

        def utility(window: Window, of: MethodOverTime) -> float:
            return window.utility(of.method, plan.task)

        sizes = [abs(utility(window, of)) for window in shown for of in (first, beside) if of is not None]
        decimals = decimals_of(self.terms.number * max(sizes), 4)

        def won(*signed: MethodOverTime) -> Callable[[Window], b.Cell]:
            """What the first of these wins, or wins over the second."""
            return lambda window: self._amount(reduce(sub, (utility(window, of) for of in signed)), None, decimals)

        def share(name: str) -> Callable[[Window], str]:
            """A share of rows, with as many decimals in all windows."""
            decimals = decimals_of(min(max(100 * getattr(window, name) for window in shown), 99.0))
            return lambda window: f"{decimal(100 * getattr(window, name), decimals)} %"

        dropped = len(judged.windows) - len(shown)
        earlier = f"; {dropped:,} earlier ones are not shown" if dropped else ""
        return table(
            shown,
            [
                (
                    left(plan.every.text if plan.every.rows is None else "rows"),
                    lambda window: plan.every.name(window.place, window.rows),
                ),
                ("n", lambda window: f"{window.rows:,}"),
                ("base rate", share("base_rate")),
                ("mean score" if plan.score else "forecast", share("mean_score")),
                (b.Column(first.title, wraps=True), won(first)),
                beside is not None and (b.Column(beside.title, wraps=True), won(beside)),
                beside is not None and ("gain", won(beside, first)),
                judged.has_e_value
                and ("p-value" if plan.delay.late else "e-value", lambda window: self._evidence(window.log_e)),
            ],
            title=f"Utility by window, {self.terms.heading}{earlier}",
            keys=1,
        )

    def _beside(self) -> MethodOverTime | None:
        """The method that is shown beside the first: the one advised, else the recalibrator that won most."""
        judged = self.judged
        if judged.advice.method is not None:
            return judged.report(judged.advice.method)
        others = [judged.report(key) for key in self.plan.candidates] or judged.methods[1:]
        return max(others, key=lambda each: each.gain or 0.0, default=None)

    def _method_table(self) -> b.TextTable:
        judged = self.judged
        by_cluster = ", every cluster counted once" if judged.clusters is not None and judged.at_all_times else ""

        intervals = [times(each.interval, self.terms.number) for each in judged.methods]
        decimals = decimals_for(intervals, [self.terms.number * (each.gain or 0.0) for each in judged.methods])

        def gain(each: MethodOverTime) -> b.Cell | str:
            return "" if each.gain is None else self._amount(each.gain, each.interval, decimals)

        def clear_since(each: MethodOverTime) -> str:
            # It may have lost what it won.
            clear = each.since is not None and bounds(each.interval)[0] > 0
            return f"row {each.since:,}" if clear else ""

        def bound(each: MethodOverTime) -> str:
            of = each.guarantee
            return "" if of is None else _BOUNDED[of.metric].format(short(of.bound, 4))

        return table(
            judged.methods,
            [
                (left("forecaster"), lambda each: each.title + (" *" if each.randomised else "")),
                ("gain", gain),
                any(map(clear_since, judged.methods)) and (left("clear since", drops=1), clear_since),
                (b.Column("V-regret", "worst"), "worst_v_regret"),
                (b.Column("at", drops=1), lambda each: short(each.worst_kink, 3)),
                ("U-cal.", "u_cal"),
                ("CDL", "cdl"),
                (b.Column("distance", "at most"), "dist_cal_upper"),
                any(map(bound, judged.methods)) and (left("bound"), bound),
            ],
            row=lambda each: {"chosen": each.method == judged.advice.method},
            title=f"Forecasters; gains over {judged.methods[0].title}, {self.terms.heading}{by_cluster}",
            keys=1,
            picks=True,
        )

    def _notes(self) -> b.Lines:
        judged = self.judged
        level = percent(self.plan.confidence)
        if judged.clusters is None:
            yield f"Intervals are {level} confidence sequences: they hold after every row at once, whenever one looks."
        else:
            yield self._cluster_note(judged.clusters, level)
        yield "V-regret, U-calibration, CDL and the distance to calibration are per row."
        losses = attrgetter("utility", "worst_v_regret", "u_cal", "dist_cal_upper")
        first, *others = judged.methods
        idle = [each.title for each in others if losses(each) == losses(first)]
        if idle and first.method == AS_IT_IS:
            why = "There are too few rows" if judged.informed else "No label is known in time"
            yield f"{why} to learn from for these, which are the score as it is: {', '.join(idle)}."
        if judged.p_value is not None:
            yield (
                "The p-value holds whenever one looks. Rows enter it in blocks, when their labels are known: of every "
                "other block an e-process each, and the p-value is 2 over the most that either has been."
            )
        randomised = any(each.randomised for each in judged.methods)
        if not judged.prompt:
            yield "Bounds are not shown: theorems speak of labels that are known before the next row."
        if randomised and not any(each.guarantee for each in judged.methods):
            yield "* predicts with random numbers."
        elif randomised:
            yield (
                "* predicts with random numbers: its bound is of an expectation, for V-regret at a fixed threshold; "
                "V-regret is shown at the worst threshold of this run."
            )

    def _alarm_sentence(self) -> str:
        judged = self.judged
        if not judged.has_e_value and judged.at_all_times:
            return "there is no p-value: the rows end before any label enters it."
        if not judged.has_e_value:
            return (
                "there is no e-value: it needs the rows of a cluster to follow each other. For one look at all rows: "
                f"{Verb('evaluate', 'cluster').words}."
            )
        alpha = self.plan.alpha
        measure, needed = ("p-value", plain(alpha)) if self.plan.delay.late else ("e-value", f"{1 / alpha:,.3g}")
        now = self._evidence(judged.log_e)
        alarm = judged.alarm
        if alarm is None:
            return f"no alarm ({measure} {now}; the alarm is at {needed})."

        def place(row: int, time: Any) -> str:
            return f"row {row:,}" if self.plan.clock == "rows" else f"{self.at(time)} (row {row:,})"

        return (
            f"alarm. At {place(alarm.row, alarm.time)} the {measure} reached {needed}, which that of a "
            f"calibrated score ever does with a chance of at most {percent(alpha)}. What it found likely began about "
            f"{place(alarm.start, alarm.start_time)}; the {measure} is {now} now."
        )

    def _evidence(self, log_e: float) -> str:
        """The e-value, or the p-value where labels come late; a large or small one as a power of ten."""
        power, late = log_e / math.log(10), self.plan.delay.late
        if log_e >= MAX_LOG_E - (math.log(2) if late else 0.0):
            return f"{'under 10^-' if late else 'over 10^'}{math.floor(power)}"
        return power_of_ten(-power if late else power)

    def _shift_sentence(self, shift: PriorShift) -> str:
        then = ""
        if shift.threshold is not None and self.plan.score is not None:
            then = f" If only that changed since the warm-up, act on the score from {short(shift.threshold, 3)}."
        now = f"{percent(shift.now)} in the latest window ({many(self.judged.windows[-1].rows, 'row')})"
        return f"{percent(shift.before)} in the warm-up, {now}.{then}"

    def _headline(self) -> str:
        """The action, and why."""
        advice = self.judged.advice
        none = "no recalibrator without random numbers " + ("clearly wins" if self.plan.candidates else "was replayed")
        wrong = f", which is not calibrated: {none}" if self.judged.alarm else ""
        at = "" if advice.threshold is None else f": act on the score from {short(advice.threshold, 3)}"
        if advice.action == "keep" and self.plan.score is None:
            return "There is no score: nothing is advised."
        return {
            "retrain": "Retrain: the base rate alone wins as much as any recalibration of this score.",
            "keep": f"Keep the score as it is{wrong}.",
            "move-threshold": f"Move the threshold{at}.",
        }.get(advice.action, f"Recalibrate online with {advice.method}.")

    def _sentences(self) -> b.Lines:
        """What it costs not to act, and since when that has been clear."""
        judged, advice, terms, compared = self.judged, self.judged.advice, self.terms, len(self.plan.candidates)
        if advice.gain is None or advice.interval is None:
            if compared:
                interval = "confidence sequence" if judged.at_all_times else "interval"
                # Each method has its share of the risk.
                shared = f" divided by the {compared} methods compared" if compared > 1 else ""
                risk = f"{percent(self.plan.alpha)}{shared}"
                yield f"A method is advised where its {interval} is above 0 at {risk}; none is."
            return
        several = ", an interval for all methods compared at once" if compared > 1 else ""
        yield f"Not doing so has cost {terms.amount(advice.gain, advice.interval)}{several}."
        if judged.rows_per_day is not None and terms.per is None:
            a_day = f"{advice.cost_a_day:,.3g} {terms.noun}"
            yield f"At {short(judged.rows_per_day, 1)} decisions a day that is {a_day} a day."
        if advice.since is not None:
            yield f"This has been clear since row {advice.since:,}."

    def _cluster_note(self, clusters: StreamClusters, level: str) -> str:
        """What intervals and the e-value say where rows are in clusters."""
        count = len(clusters.size)
        if clusters.apart is None:
            return (
                f"Intervals are {level} confidence sequences of the mean over clusters, of which there are {count:,}: "
                "they hold after every cluster at once, whenever one looks. A cluster enters when it is over, as one "
                f"step by the average of its rows{'.' if self.plan.delay.late else '; so it does into the e-value.'}"
            )
        return (
            f"Intervals hold at the {level} level for one look after the last row, and count {count:,} clusters. Rows "
            f"of a cluster do not all follow each other (the first that comes back is {clusters.apart.cluster!r}, in "
            f"row {clusters.apart.row:,}), so that nothing here holds whenever one looks."
        )

    def _amount(self, value: float, ends: Interval | None, decimals: int) -> b.Cell:
        return amount(self.terms.number * value, times(ends, self.terms.number), decimals)


_BOUNDED = {"v_regret": "V-regret ≤ {}", "cdl": "CDL ~ {}", "dist_cal": "distance ≤ {}"}
"""By the metric that is bounded; ~ stands where the theorem has a constant that it does not name."""
