"""What `decal sweep` returns where a number of the task varies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from decal_cli.analysis.described import OF_ONE_ROW
from decal_cli.analysis.sweep import RiskCoverage, VariedReport, VariedSweep
from decal_cli.curves.kinds import MetricCurve
from decal_cli.declarations.document import Count, Limit, Numbers, Positive, Share
from decal_cli.metrics import parse
from decal_cli.numbers import DASH, PER_DECISION, Interval, plain, short, span
from decal_cli.render.blocks import Block, Cell, Column, Heading, Notes, Row, Signature, SourceLines, TextTable
from decal_cli.render.cells import left, number, reasons, table, words
from decal_cli.render.results.shortened import Order, lowest_first, worst_of_each
from decal_cli.render.results.source import Provenance, one_or_several, source_lines
from decal_cli.render.results.sweep import HEADING_WIDTH, MAX_SHOWN, LongTable, at_place, sparkline
from decal_cli.render.schema import View, data_of, of
from decal_cli.task import ABSTAIN, CAPACITY, PREVALENCE, RowTask, TaskSeries

AURC_TEXT = (
    "AURC {}: mean over coverages i / T of the share of errors among the i surest rows, ties in any order (Geifman and "
    "El-Yaniv 2017)"
)

_HEADINGS = {ABSTAIN: "price", PREVALENCE: "labels 1", CAPACITY: "capacity"}


class RiskData(View):
    """Share of errors among the surest rows, by their share of all; area: mean over coverages i / T, AURC."""

    coverage: list[Share]
    error: list[Share]
    low: list[Share] | None
    high: list[Share] | None
    area: float | None = of("area.value")
    area_interval: Interval | None = of("area.interval")
    area_reason: str | None = of("area.reason")


class VariedCurveData(View):
    """A number by the value of what varies: value, low, high, null where undefined; reason: why.

    title, unit: what it is, in words.
    """

    title: str = of("kind.title")
    unit: str = of("kind.unit")
    value: Numbers
    low: Numbers | None
    high: Numbers | None
    reason: str | None


class VaryData(View):
    """Numbers by the value of what varies. own: that of the user's task, null where it has none."""

    varies: str = of(lambda _, series: series.title)
    own: float | None = of(lambda _, series: series.own)
    at: Annotated[list[float], Limit(minItems=1)] = of(lambda _, series: series.values)
    curves: dict[str, VariedCurveData] = of("courses")
    risk_coverage: RiskData | None = of("risk")


class VariedData(View):
    """One model and group."""

    model: str
    group: str | None
    rows: Positive
    dropped: Count
    vary: VaryData = of(lambda report, series: VaryData(report, series))


class VariedCurves(LongTable[VariedSweep]):
    """A sweep over tasks, for formats to write."""

    at = "at"

    @property
    def factor(self) -> float:
        """What utilities are printed times: the number of decisions, where it was given."""
        return self.terms.number if self.terms.with_amounts else 1.0

    def blocks(self) -> Iterator[Block]:
        """Values down, what they lead to across, block by block for each model and group."""
        sweep = self.sweep
        reports, notes = worst_of_each(sweep.reports, _by_utility)
        head = replace(sweep.head, notes=(*sweep.head.notes, *notes))
        lines = [*source_lines(head), f"{sweep.series.title} varies; {_consequence(sweep.series)}"]
        if sweep.series.kind == PREVALENCE:
            lines.append("scores are moved to it, which keeps their order; columns of scores that are kept say so")
        if sweep.series.kind == ABSTAIN:
            lines.append("at price c, abstaining is worth 1 - c, naming the right class 1 and a wrong one 0")
        if sweep.head.plan.intervals:
            lines.append(f"[..]: {100 * sweep.head.plan.confidence:g} % intervals, each for its own value")
        yield SourceLines(tuple(lines))
        shown = self._shown()
        for report in reports:
            yield Heading(report.name)
            yield self._table(_title(sweep.series), list(report.done.values()), shown)
            unit = f"{self.terms.noun} {self.terms.span}" if self.terms.with_amounts else PER_DECISION
            if report.worth:
                yield self._table(f"What decisions are worth: {unit}", list(report.worth.values()), shown)
            if report.risk is not None:
                yield from _risk_blocks(report.risk)
            yield from reasons((course.kind.heading, course.reason) for course in report.courses.values())
        yield Signature(sweep.signature)
        yield from self.drawing

    def _shown(self) -> list[int]:
        """Which values to print: of many some, and the user's own."""
        size = len(self.sweep.values)
        if self.everything or size <= MAX_SHOWN:
            return list(range(size))
        own = {k for k, value in enumerate(self.sweep.series.values) if value == self.sweep.series.own}
        return sorted({round(k) for k in np.linspace(0, size - 1, MAX_SHOWN - len(own)).tolist()} | own)

    def _table(self, title: str, courses: Sequence[MetricCurve], shown: list[int]) -> TextTable:
        series = self.sweep.series
        head = Column(_HEADINGS.get(series.kind, "value"), words=True)
        columns = [Column(self._heading(each), sparkline(each.value), breaks=(HEADING_WIDTH,)) for each in courses]
        rows = []
        for k in shown:
            cells = words(plain(series.values[k])), *(_cell(each, k, self.factor) for each in courses)
            rows.append(Row(cells, chosen=series.values[k] == series.own))
        return TextTable((head, *columns), tuple(rows), title=title, keys=1, stacked=True, picks=series.own is not None)

    def _heading(self, course: MetricCurve) -> str:
        """In the user's unit, where that is not the one of the table."""
        apart = course.name in OF_ONE_ROW and self.terms.with_amounts
        return f"{course.kind.heading}, {self.terms.noun}" if apart else course.kind.heading

    def data(self) -> dict[str, Any]:
        """One report, or several."""
        sweep = self.sweep
        head = {**data_of(Provenance(sweep.head)), "signature": sweep.signature}
        return one_or_several(head, [data_of(VariedData(report, sweep.series)) for report in sweep.reports])

    def _points(self) -> Iterator[list[Any]]:
        for report in self.sweep.reports:
            for name, course in report.courses.items():
                for k, at in enumerate(self.sweep.series.values):
                    yield [report.model, report.group, name, at, *at_place(course, k), course.kind.unit]


def _consequence(series: TaskSeries) -> str:
    """What follows from what varies."""
    if series.kind == PREVALENCE:
        return "rows are counted as a population with it"
    if series.kind != CAPACITY:
        return "each value is another task"
    if series.tasks and isinstance(series.tasks[0], RowTask):
        return "the rows where acting is expected to win most are acted on; a row below its own threshold is not"
    below = "; a row below the threshold of the task is not, even if places are free" if series.tasks else ""
    return f"the rows with the highest scores are acted on{below}"


def _title(series: TaskSeries) -> str:
    """Of the table that does not speak of utility."""
    if series.kind == CAPACITY:
        return "Which rows are acted on"
    return "Which rows are decided, and how well" if series.kind == ABSTAIN else "What is done: share of rows"


def _by_utility(reports: Sequence[VariedReport]) -> Order[VariedReport]:
    names = ("expected_utility", "utility_at_capacity", "capture")
    name = next(name for name in names if name in reports[0].courses)

    def place(report: VariedReport) -> tuple[bool, float]:
        values = report.courses[name].value
        return lowest_first(None if np.isnan(values).all() else float(np.nanmean(values)))

    return place, f"mean {parse(name).declared.title.lower()}"


def _risk_blocks(risk: RiskCoverage) -> Iterator[Block]:
    """Errors among the surest rows, and the area."""

    def error(k: int) -> Cell:
        ends = None if risk.low is None or risk.high is None else (float(risk.low[k]), float(risk.high[k]))
        return number(float(risk.error[k]), ends)

    yield table(
        range(4, len(risk.coverage), 5),
        [
            (left("coverage"), lambda k: plain(float(risk.coverage[k]))),
            (Column("error among the surest rows", sparkline(risk.error)), error),
        ],
        title="Risk-coverage curve",
        keys=1,
    )
    area = risk.area
    text = f"{DASH} AURC: {area.reason}"
    if area.value is not None:
        text = AURC_TEXT.format(" ".join(filter(None, (short(area.value, 4), span(area.interval, 4)))))
    yield Notes((text,), quiet=True, close=True)


def _cell(course: MetricCurve, k: int, factor: float) -> Cell:
    """A value with its interval; of a utility, times the factor."""
    by = factor if course.kind.unit == "utility" and course.name not in OF_ONE_ROW else 1.0
    value, low, high = (None if each is None else by * each for each in at_place(course, k))
    return number(value, None if low is None or high is None else (low, high))
