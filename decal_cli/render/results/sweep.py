"""What a sweep returns: curves over the thresholds t*, or over a number of the task, in tables and as points."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from decal_cli.analysis.described import OF_ONE_ROW
from decal_cli.analysis.sweep import Risk, Sweep, Swept, VariedReport, VariedSweep
from decal_cli.curves.crossings import Lowest, Rival
from decal_cli.curves.kinds import Expectation, MetricCurve
from decal_cli.data.words import enumerated
from decal_cli.declarations.document import Count, Inside, Limit, Numbers, Positive, Some
from decal_cli.metrics import Result, parse
from decal_cli.numbers import DASH, PER_DECISION, decimals_of, plain, rounded, short, times
from decal_cli.render.blocks import Blocks, Cell, Column, Heading, Lines, Notes, Paragraph, Row, TextTable
from decal_cli.render.cells import amount, left, number, reasons, table, words
from decal_cli.render.results.source import (
    Order,
    Provenance,
    WrittenResult,
    ends_of,
    limited_actions,
    one_or_several,
    source_lines,
    worst_first,
    worst_of_each,
)
from decal_cli.render.schema import Document, Records, View, data_of, of
from decal_cli.render.terms import PLAIN, StatedTerms
from decal_cli.task import ABSTAIN, CAPACITY, PREVALENCE, RowTask, TaskSeries

FULL = 0.01, 0.99
"""Thresholds from which to which a curve is whole."""
MAX_SHOWN = 11
"""Places in the table, unless all are asked for."""
SPARKS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 12
HEADING_WIDTH = 16
BLOCKS = {
    "loss": "Brier curves: {} lost, {}",
    "regret": "Regret and gains: {}",
    "decision": "Decisions",
    "capacity": "Where so many rows can be acted on only, those of the highest scores from t* on: {}",
    "ranking": "Deciding 1 from t* on: recall and false positives (ROC), precision, lift",
}
NOT_SHOWN = "The lowest curve of all models is not shown: the models do not have the same rows."
AURC_TEXT = (
    "AURC {}: mean over coverages i / T of the share of errors among the i surest rows, ties in any order (Geifman and "
    "El-Yaniv 2017)"
)
_VARIED_HEADINGS = {ABSTAIN: "price", PREVALENCE: "labels 1", CAPACITY: "capacity"}


class CurveData(View):
    """A curve on the thresholds, null where undefined. brier: twice the exact area under a Brier curve. expectation:
    under the prior.
    """

    title: str = of("kind.title")
    unit: str = of("kind.unit")
    source: str = of("kind.source")
    value: Numbers
    low: Numbers | None
    high: Numbers | None
    brier: float | None
    expectation: Expectation | None
    reason: str | None


class ScaleData(View):
    """What turns a utility of these curves into an amount: factor = u_delta of the user's decision x decisions."""

    unit: str | None = of("terms.unit")
    per: str | None = of("terms.per")
    decisions: float = of("terms.number")
    factor: float


class SweepData(View):
    """Curves over thresholds, each for the unit task of t* (u_delta = 1); amounts: null where the user named no unit
    and no number of decisions.
    """

    u_delta: Literal[1] = of(lambda *_: 1)
    amounts: ScaleData | None = of(lambda _, curves: curves if curves.terms.with_amounts else None)
    thresholds: Some[Inside] = of(".places")
    prior: str | None = of(".sweep.grid.prior.name")
    grouping_loss: float | None
    curves: dict[Annotated[str, Limit(pattern="^[a-z_]+$")], CurveData]


class SweptData(View):
    """The curves of a model and group."""

    model: str
    group: str | None
    rows: Positive
    positives: Count
    dropped: Count
    sweep: SweepData = of(lambda report, curves: SweepData(report, curves))


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

    varies: str = of(".sweep.series.title")
    own: float | None = of(".sweep.series.own")
    at: Some[float] = of(".sweep.series.values")
    curves: dict[str, VariedCurveData]
    risk_coverage: Risk | None = of(lambda report, _: next(iter(report.risks), None))


class VariedData(View):
    """One model and group."""

    model: str
    group: str | None
    rows: Positive
    dropped: Count
    vary: VaryData = of(lambda report, curves: VaryData(report, curves))


class LongTable(WrittenResult):
    """A sweep, for formats to write.

    at: what the column of places is called. each: a report as JSON has it. amounts: units of curves that are printed
    times the factor. own: the places of the user's decision. everything: every place in the tables, not a choice.
    """

    at: ClassVar[str]
    each: ClassVar[type[View]]
    amounts: ClassVar[tuple[str, ...]]
    places: np.ndarray
    own: Sequence[float]
    everything = False
    apart = True

    def __init__(self, sweep: Any, terms: StatedTerms = PLAIN) -> None:
        super().__init__(sweep.head, terms)
        self.sweep = sweep

    @property
    def signature(self) -> str:
        """The signature of the evaluation, with the places."""
        signature: str = self.sweep.signature
        return signature

    @property
    def factor(self) -> float:
        """What utilities are printed times: the number of decisions, where it was given."""
        return self.terms.number if self.terms.with_amounts else 1.0

    @property
    def unit(self) -> str:
        """The unit of utilities, as they are printed."""
        return f"{self.terms.noun} {self.terms.span}" if self.terms.with_amounts else PER_DECISION

    @property
    def kinds(self) -> dict[str, type]:
        """The columns, with what they hold."""
        names = {"model": str, "group": str, "curve": str, self.at: float}
        return {**names, "value": float, "low": float, "high": float, "unit": str}

    def rows(self) -> Records:
        """One row per model, group, curve and place; points without a place are expectations."""
        yield list(self.kinds)
        for report in self.sweep.reports:
            for name, curve in report.curves.items():
                points = [(float(at), _point(curve, k)) for k, at in enumerate(self.places)]
                for at, each in (*points, *([(None, curve.expectation)] if curve.expectation else [])):
                    yield [*report.place, name, at, each.value, *ends_of(each), curve.kind.unit]

    def columns(self) -> dict[str, tuple[type, list[Any]]]:
        """The rows as typed columns."""
        _, *points = self.rows()
        columns = zip(*points, strict=True)
        return {name: (kind, list(values)) for (name, kind), values in zip(self.kinds.items(), columns, strict=True)}

    def data(self) -> Document:
        """One report, or several."""
        head = {**data_of(Provenance(self.evaluation)), "signature": self.signature}
        return one_or_several(head, [data_of(self.each(report, self)) for report in self.sweep.reports])

    def _source(self, notes: Sequence[str], *lines: str) -> Notes:
        """What was read and what varies, and what intervals are of; notes: on what is not shown."""
        of, curves = self.evaluation.plan.confidence, (c for each in self.sweep.reports for c in each.curves.values())
        level = f"[..]: {100 * of:g} % intervals, each for its own {'t*' if self.at != 'at' else 'value'}"
        read = source_lines(replace(self.evaluation, notes=(*self.evaluation.notes, *notes)))
        return Notes((*read, *lines, *([level] if any(curve.low is not None for curve in curves) else ())))

    def _shown(self) -> list[int]:
        """Which places to print: all, or of many some."""
        size = len(self.places)
        return [*range(size)] if self.everything or size <= MAX_SHOWN else sorted(self._some())

    @abstractmethod
    def _some(self) -> set[int]: ...

    def _label(self, k: int) -> str:
        return plain(float(self.places[k]))

    def _table(
        self, title: str, head: str, curves: Iterable[tuple[Column | str, MetricCurve]], shown: Sequence[int]
    ) -> TextTable:
        """Places down, curves across: each with its heading, or with a text above a picture of its course."""
        drawn = [
            (Column(head, sparkline(curve.value), breaks=(HEADING_WIDTH,)) if isinstance(head, str) else head, curve)
            for head, curve in curves
        ]
        rows = [
            Row(
                (words(self._label(k)), *(self._cell(curve, _point(curve, k)) for _, curve in drawn)),
                chosen=self.places[k] in self.own,
            )
            for k in shown
        ]
        columns = (Column(head, words=True), *(column for column, _ in drawn))
        return TextTable(columns, rows, title=title, keys=1, stacked=True, picks=len(self.own) > 0)

    def _cell(self, curve: MetricCurve, each: Result | Expectation) -> Cell:
        """A value with its interval; a utility times the factor, with the decimals of the curve's largest."""
        by = self.factor if curve.kind.unit in self.amounts and curve.name not in OF_ONE_ROW else 1.0
        if by == 1.0 or each.value is None:
            return number(each.value, each.interval)
        decimals = decimals_of(by * float(np.nanmax(np.abs(curve.value))), 4)
        return amount(by * each.value, times(each.interval, by), decimals)


class Curves(LongTable):
    """A sweep over t*, for formats to write."""

    sweep: Sweep
    at = "threshold"
    each = SweptData
    amounts = (PER_DECISION, "utility lost per decision")

    def __init__(self, sweep: Sweep, terms: StatedTerms = PLAIN) -> None:
        super().__init__(sweep, terms)
        self.places, self.own = sweep.grid.thresholds, sweep.thresholds

    @property
    def factor(self) -> float:
        """What utilities are printed times: the number of decisions times u_delta, where these are known."""
        return self.sweep.u_delta * super().factor

    def sections(self) -> Blocks:
        """Thresholds down, curves across, block by block for each model and group."""
        by_brier = worst_first("brier", lambda report: report.curves["brier"].brier)
        reports, notes = worst_of_each(self.sweep.reports, lambda _: (by_brier, "Brier score"))
        yield self._source(notes, self._costs())
        shown, at = self._shown(), self.places
        together = [report for report in reports if report.of_all_rows]
        if len(together) > 1:
            everyone = together[0].curves["net_benefit_all"]
            nobody = replace(everyone, value=np.zeros(len(at)), low=None, high=None)
            against = [(Column("treat none"), nobody), (Column("treat all"), everyone)]
            models = [(Column(report.model), report.curves["net_benefit"]) for report in together]
            yield self._table("Net benefit of all models, in true positives per row", "t*", against + models, shown)
        if self.sweep.lowest is not None:
            yield from self._lowest(self.sweep.lowest)
        elif len(together) > 1:
            yield Notes((NOT_SHOWN,), quiet=True)
        for report in reports:
            yield Heading(report.name)
            for block, title in BLOCKS.items():
                curves = [curve for curve in report.curves.values() if curve.kind.block == block]
                if not curves:
                    continue
                drawn = self._table(
                    title.format(self.unit, self._lost), "t*", ((c.kind.heading, c) for c in curves), shown
                )
                if self.sweep.grid.prior is not None:
                    expected = (self._cell(curve, curve.expectation or Result(None)) for curve in curves)
                    drawn = replace(drawn, rows=(*drawn.rows, Row((words("prior"), *expected), apart=True)))
                yield drawn
                said = [f"{c.kind.heading}: {c.kind.says.format(self.unit)}" for c in curves if c.kind.says]
                if said:
                    yield Notes((f"{'; '.join(said)}.",), close=True, quiet=True)
            # Areas can be seen where curves are shown from end to end.
            if len(at) > MAX_SHOWN and at[0] <= FULL[0] and at[-1] >= FULL[1]:
                yield Notes(_areas(report))
            yield from reasons((curve.kind.heading, curve.reason) for curve in report.curves.values())

    @property
    def _lost(self) -> str:
        """What a row loses on average, by the shares of rows with either error."""
        u_delta, lost = self.sweep.u_delta, "(1 - t*) FN + t* FP"
        return lost if u_delta == 1 else f"{plain(u_delta)} x ({lost})"

    def _costs(self) -> str:
        """What the two errors cost at each threshold."""
        if self.sweep.u_delta == 1:
            unit = f" {self.terms.unit}" if self.terms.unit else ""
            return f"at each t*, a false positive costs t*{unit} and a false negative 1 - t*{unit} (u_delta = 1)"
        both = self.terms.price(self.sweep.u_delta)
        return (
            f"at each t*, a false positive costs t* x {both} and a false negative (1 - t*) x {both} (the u_delta of "
            "your decision)"
        )

    def data(self) -> Document:
        """One report, or several and their lowest curve."""
        lowest = {"lowest": data_of(self.sweep.lowest)} if len(self.sweep.reports) > 1 else {}
        return {**super().data(), **lowest}

    def _some(self) -> set[int]:
        """The ends, those nearest to round numbers between them, and the user's."""
        at = self.places
        for step in (0.01, 0.02, 0.05, 0.1, 0.2):
            inside = [step * i for i in range(round(1 / step)) if at[0] < step * i < at[-1]]
            if len(inside) <= MAX_SHOWN - 2:
                break
        return {0, len(at) - 1, *(int(np.abs(at - t).argmin()) for t in (*inside, *self.own))}

    def _label(self, k: int) -> str:
        return super()._label(k) if self.places[k] in self.own else short(float(self.places[k]), 3)

    def _lowest(self, lowest: Lowest) -> Blocks:
        """A row for each model, and what follows from them all."""

        def head(text: str) -> Column:
            return Column(text, breaks=(HEADING_WIDTH,))

        def beaten(rival: Rival) -> str:
            return f"{rival.beaten_by} at {short(rival.beaten_at or 0.0, 3)}" if rival.beaten_by else DASH

        yield table(
            lowest.models,
            [
                (left("model"), "model"),
                (head("refinement loss"), "refinement_loss"),
                (head(f"gap, {self.unit}"), lambda rival: self.factor * rival.gap),
                (head("at t*"), lambda rival: short(rival.gap_at, 3)),
                (head("lowest at"), lambda rival: f"{100 * rival.lowest_share:.0f} % of t*"),
                (head("beaten beyond chance by"), beaten),
            ],
            title="Calibrated Brier curves against the lowest of them",
            keys=1,
            stacked=True,
        )
        yield Paragraph(verdict(lowest), close=True)


class VariedCurves(LongTable):
    """A sweep over tasks, for formats to write."""

    sweep: VariedSweep
    at = "at"
    each = VariedData
    amounts = ("utility",)

    def __init__(self, sweep: VariedSweep, terms: StatedTerms = PLAIN) -> None:
        super().__init__(sweep, terms)
        self.places, self.own = sweep.values, () if sweep.series.own is None else (sweep.series.own,)

    def sections(self) -> Blocks:
        """Values down, what they lead to across, block by block for each model and group."""
        series = self.sweep.series
        reports, notes = worst_of_each(self.sweep.reports, _by_utility)
        more = {
            PREVALENCE: ("scores are moved to it, which keeps their order; columns of scores that are kept say so",),
            ABSTAIN: ("at price c, abstaining is worth 1 - c, naming the right class 1 and a wrong one 0",),
        }
        limited = limited_actions(self.evaluation)
        yield self._source(notes, f"{series.title} varies; {_consequence(series, limited)}", *more.get(series.kind, ()))
        title = {CAPACITY: "Which rows are acted on", ABSTAIN: "Which rows are decided, and how well"}
        head, shown = _VARIED_HEADINGS.get(series.kind, "value"), self._shown()
        for report in reports:
            yield Heading(report.name)
            done = ((curve.kind.heading, curve) for curve in report.done.values())
            yield self._table(title.get(series.kind, "What is done: share of rows"), head, done, shown)
            if report.worth:
                # In the user's unit, where that is not the one of the table.
                one = f", {self.terms.noun}" if self.terms.with_amounts else ""
                worth = ((c.kind.heading + (one if c.name in OF_ONE_ROW else ""), c) for c in report.worth.values())
                yield self._table(f"What decisions are worth: {self.unit}", head, worth, shown)
            for risk in report.risks:
                yield from _risk_blocks(risk)
            yield from reasons((curve.kind.heading, curve.reason) for curve in report.curves.values())

    def _some(self) -> set[int]:
        """Some at equal distances, and the user's own."""
        own = {k for k, value in enumerate(self.places) if value in self.own}
        return {round(k) for k in np.linspace(0, len(self.places) - 1, MAX_SHOWN - len(own)).tolist()} | own


def _by_utility(reports: Sequence[VariedReport]) -> Order[VariedReport]:
    names = ("expected_utility", "utility_at_capacity", "capture")
    name = next(name for name in names if name in reports[0].curves)

    def mean(report: VariedReport) -> float | None:
        values = report.curves[name].value
        return None if np.isnan(values).all() else float(np.nanmean(values))

    return worst_first(name, mean), f"mean {parse(name).declared.title.lower()}"


def sparkline(values: np.ndarray, width: int = SPARK_WIDTH) -> str:
    """The course of a curve in a few blocks, from its lowest to its highest value; blank where undefined."""
    some = values[np.linspace(0, len(values) - 1, min(width, len(values))).astype(int)]
    if np.isnan(some).all():
        return ""
    low, high = np.nanmin(some), np.nanmax(some)
    scale = (len(SPARKS) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if math.isnan(v) else SPARKS[round((v - low) * scale)] for v in some)


def _point(curve: MetricCurve, k: int) -> Result:
    """A number of a curve with its interval."""
    value, *ends = (float(each[k]) for each in (curve.value, curve.low, curve.high) if each is not None)
    low, high = ends or (math.nan, math.nan)
    return Result(None if math.isnan(value) else value, None if math.isnan(low) else (low, high))


def _areas(report: Swept) -> Lines:
    """Twice the areas under the Brier curves, which are Brier scores, and what lies between them."""
    brier = {name: curve.brier for name, curve in report.curves.items() if curve.brier is not None}
    now, calibrated = brier["brier"], brier["brier_calibrated"]
    yield (
        f"2 x area under the Brier curve = Brier score: {short(now, 4)} as it is, {short(calibrated, 4)} calibrated; "
        f"between them miscalibration, {short(now - calibrated, 4)}"
    )
    if "brier_regions_plug_in" not in brier:
        return
    regions, loss = {"plug-in": "brier_regions_plug_in", "held-out": "brier_regions"}, report.grouping_loss
    parts = [f"{short(calibrated - brier[key], 4)} {name}" for name, key in regions.items() if key in brier]
    seen = DASH if loss is None else short(loss, 4)
    yield f"2 x area between calibrated and by region: {', '.join(parts)}, grouping loss {seen}"
    yield (
        "   (plug-in: frequencies of leaves on the rows they were fitted to, so noise counts as signal; grouping loss: "
        "the same with that noise subtracted; held-out: fitted on other rows, so it includes the cost of learning)"
    )


def verdict(lowest: Lowest) -> str:
    """Whether any model may be sufficient, and whose curve is the best lower one that is known."""
    left = lowest.sufficient
    models = sorted(lowest.models, key=lambda each: each.lowest_share, reverse=True)
    best = enumerated(
        [f"{each.model} ({100 * each.lowest_share:.0f} % of t*)" for each in models if each.lowest_share > 0]
    )
    best = best or "any: all are equal"
    if not left:
        return f"No model named is sufficient here: each is beaten by another. Best known lower curve: {best}."
    if len(left) == len(lowest.models):
        return "No model is beaten beyond chance: these rows do not tell which knows more."
    others = "the others are" if len(lowest.models) - len(left) > 1 else "the other is"
    return (
        f"{enumerated(left)} {'are' if len(left) > 1 else 'is'} not beaten and may be sufficient; {others} not. "
        f"Best known lower curve: {best}."
    )


def _consequence(series: TaskSeries, limited: str | None) -> str:
    """What follows from what varies. limited: the actions that need a place, where there are more than two."""
    if series.kind == PREVALENCE:
        return "rows are counted as a population with it"
    if series.kind != CAPACITY:
        return "each value is another task"
    if limited is not None:
        return f"so many rows can get {limited}, those where that is expected to win most"
    if series.tasks and isinstance(series.tasks[0], RowTask):
        return "the rows where acting is expected to win most are acted on; a row below its own threshold is not"
    below = "; a row below the threshold of the task is not, even if places are free" if series.tasks else ""
    return f"the rows with the highest scores are acted on{below}"


def _risk_blocks(risk: Risk) -> Blocks:
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
    text = f"{DASH} AURC: {risk.area_reason}"
    if risk.area is not None:
        text = AURC_TEXT.format(rounded(risk.area, risk.area_interval, 4))
    yield Notes((text,), quiet=True, close=True)
