"""What `decal online` returns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from decal_cli.analysis.evaluate import Evaluation
from decal_cli.analysis.gate import GateRow
from decal_cli.analysis.online import Judged, MethodReport
from decal_cli.data import shown_time
from decal_cli.numbers import percent, plain, short
from decal_cli.render.blocks import (
    Block,
    Cell,
    Check,
    Checks,
    Column,
    Notes,
    Paragraph,
    Picture,
    Row,
    Signature,
    Source,
    Table,
)
from decal_cli.render.cells import number, words
from decal_cli.render.results.gates import checks_of
from decal_cli.render.results.online_advice import cluster_notes_of, conclusion_of_replay
from decal_cli.render.results.online_data import replayed_data, window_data
from decal_cli.render.results.source import source_lines, title_of
from decal_cli.render.terms import Terms
from decal_cli.sequential.calibration_alarm import MAX_LOG_E
from decal_cli.sequential.forecaster import Guarantee

MAX_SHOWN_WINDOWS = 24
"""Windows of the table; JSON and CSV have all."""
MAX_EXPONENT = 4
"""From which power of ten on an e-value is written as one."""


class Replayed:
    """A replay in the user's terms, for formats to write."""

    def __init__(
        self,
        judged: Judged,
        evaluation: Evaluation,
        terms: Terms | None = None,
        gates: Sequence[GateRow] = (),
        drawings: Sequence[Picture] = (),
    ) -> None:
        self.drawings = drawings
        self.judged = judged
        self.gates = gates
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
        yield from self.drawings
        scored = self.judged.plan.score is not None
        if scored:
            yield Paragraph(self._alarm_sentence(), strong="Calibration:")
        if self.judged.prior_shift is not None:
            yield Paragraph(self._shift_sentence(), strong="Share of label 1:", close=scored)
        yield conclusion_of_replay(self.judged, self.terms)
        if self.gates:
            yield Checks(self.checks())
        yield Signature(self.evaluation.signature)

    def data(self) -> dict[str, Any]:
        """ReplayedData."""
        return replayed_data(self.judged, self.evaluation, self.gates)

    def checks(self) -> tuple[Check, ...]:
        """The rules, for CI systems."""
        return checks_of(self.gates)

    def rows(self) -> Iterator[list[Any]]:
        """One row per window and method."""
        yield ["window", "first_row", "first_time", "rows", "base_rate", "mean_score", "log10_e", "method", "utility"]
        for window in self.judged.windows:
            data = window_data(self.judged, window)
            shared = [data[name] for name in ("window", "first_row", "first_time", "rows", "base_rate", "mean_score")]
            for method, utility in data["utility"].items():
                yield [*shared, data["log10_e"], method, utility]

    def at(self, time: Any) -> str:
        """A time in words."""
        return shown_time(time, self.judged.plan.clock)

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

    def _window_table(self) -> Table:
        judged, plan = self.judged, self.judged.plan
        shown = judged.windows[-MAX_SHOWN_WINDOWS:]
        beside = self._beside()
        heads = [judged.methods[0].title, *([beside.title] if beside else [])]
        columns = [
            Column(plan.every.text if plan.every.rows is None else "rows", words=True),
            Column("n"),
            Column("base rate"),
            Column("mean score" if plan.score else "forecast"),
            *(Column(head, wraps=True) for head in heads),
            *([Column("gain")] if beside else []),
            *([Column("p-value" if plan.delay.late else "e-value")] if judged.has_e_value else []),
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
                *([words(self._evidence(window.log_e))] if judged.has_e_value else []),
            ]
            rows.append(Row(tuple(cells)))
        dropped = len(judged.windows) - len(shown)
        earlier = f"; {dropped:,} earlier ones are not shown" if dropped else ""
        return Table(tuple(columns), tuple(rows), title=f"Utility by window, {self._unit}{earlier}", keys=1)

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
            Column("gain"),
            Column("clear since", words=True, drops=1),
            Column("V-regret", "worst"),
            Column("at", drops=1),
            Column("U-cal."),
            Column("CDL"),
            Column("distance", "at most"),
            *([Column("bound", words=True)] if judged.prompt else []),
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
                number(each.losses["dist_cal_upper"]),
                *([words(_bound(each.guarantee))] if judged.prompt else []),
            )
            rows.append(Row(cells, chosen=each.spec.key == judged.advice.method))
        by_cluster = ", every cluster counted once" if judged.clusters is not None and judged.at_all_times else ""
        title = f"Forecasters; gains over {judged.methods[0].title}, {self._unit}{by_cluster}"
        return Table(columns, tuple(rows), title=title, keys=1, picks=True)

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
                "decal evaluate --cluster."
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

    def _amount(self, value: float, ends: tuple[float, float] | None = None) -> Cell:
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
