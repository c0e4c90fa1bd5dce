"""What a sweep returns: curves over the thresholds t*, in tables and as one long table of points."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Generic, Literal, TypeVar

import numpy as np

from decal_cli.analysis.sweep import Sweep, Swept, VariedSweep
from decal_cli.curves import MetricCurve
from decal_cli.curves.lowest import Lowest
from decal_cli.declarations.document import Count, Inside, Limit, Numbers, Positive
from decal_cli.numbers import DASH, PER_DECISION, Interval, plain, short
from decal_cli.render.blocks import (
    Block,
    Cell,
    Column,
    Heading,
    Notes,
    Paragraph,
    Row,
    Signature,
    SourceLines,
    TextTable,
)
from decal_cli.render.cells import left, number, reasons, table, words
from decal_cli.render.results.shortened import Order, lowest_first, worst_of_each
from decal_cli.render.results.source import Provenance, one_or_several, source_lines, title_of
from decal_cli.render.schema import View, data_of, of
from decal_cli.render.terms import StatedTerms

FULL = 0.01, 0.99
"""Thresholds from which to which a curve is whole."""
MAX_SHOWN = 11
"""Thresholds in the table, unless all are asked for."""
SPARKS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 12
HEADING_WIDTH = 16
BLOCKS = {
    "loss": "Brier curves: {} lost, (1 - t*) FN + t* FP",
    "regret": "Regret and gains: {}",
    "decision": "Decisions",
    "capacity": "Where so many rows can be acted on only, those of the highest scores from t* on: {}",
    "ranking": "Deciding 1 from t* on: recall and false positives (ROC), precision, lift",
}


NOT_SHOWN = "The lowest curve of all models is not shown: the models do not have the same rows."


class RivalData(View):
    """A model beside the others: refinement_loss is twice the area under its calibrated Brier curve; gap: its largest
    distance to the lowest curve (u_delta 1), at the threshold gap_at; lowest_share: of the thresholds at which its
    curve alone is the lowest; beaten_by: the model that is lower beyond chance, clearest at the threshold beaten_at.
    """

    model: str = of("name")
    refinement_loss: float
    gap: float
    gap_at: float = of("at")
    lowest_share: float = of("share")
    beaten_by: str | None
    beaten_at: float | None


class LowestData(View):
    """The lowest calibrated Brier curve of all models on the thresholds, and every model beside it; sufficient: models
    that no other one beats beyond chance.
    """

    value: list[float]
    sufficient: list[str] = of("unbeaten")
    models: list[RivalData] = of("rivals")


class ExpectationData(View):
    """Under the prior."""

    value: float = of("expectation")
    interval: Interval | None = of("expectation_interval")


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
    expectation: ExpectationData | None = of(lambda curve, *_: None if curve.expectation is None else curve)
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
    thresholds: Annotated[list[Inside], Limit(minItems=1)] = of(lambda _, curves: curves.sweep.grid.thresholds)
    prior: str | None = of(lambda _, curves: curves.sweep.grid.prior and curves.sweep.grid.prior.name)
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


S = TypeVar("S", Sweep, VariedSweep)


class LongTable(ABC, Generic[S]):
    """A sweep, for formats to write.

    at: what the column of places is called. everything: every place in the tables, not a choice. drawing: pictures in
    characters to put below. terms: how amounts are written.
    """

    at: str

    def __init__(
        self, sweep: S, everything: bool = False, drawing: tuple[Block, ...] = (), terms: StatedTerms | None = None
    ) -> None:
        self.sweep: S = sweep
        self.everything = everything
        self.drawing = drawing
        self.terms = terms or StatedTerms()
        self.title = title_of(sweep.head)

    @property
    def kinds(self) -> dict[str, type]:
        """The columns, with what they hold."""
        names = {"model": str, "group": str, "curve": str, self.at: float}
        return {**names, "value": float, "low": float, "high": float, "unit": str}

    def rows(self) -> Iterator[list[Any]]:
        """One row per model, group, curve and place."""
        yield list(self.kinds)
        yield from self._points()

    def columns(self) -> dict[str, tuple[type, list[Any]]]:
        """The same as typed columns."""
        columns = zip(*self._points(), strict=True)
        return {name: (kind, list(values)) for (name, kind), values in zip(self.kinds.items(), columns, strict=True)}

    @abstractmethod
    def _points(self) -> Iterator[list[Any]]:
        """The rows below the names of the columns."""


class Curves(LongTable[Sweep]):
    """A sweep over t*, for formats to write; points without a threshold are expectations."""

    at = "threshold"

    @property
    def factor(self) -> float:
        """What utilities are printed times: the decision's u_delta, and the number of decisions where it was given."""
        task = self.sweep.task
        return (1.0 if task is None else task.u_delta) * (self.terms.number if self.terms.with_amounts else 1.0)

    def blocks(self) -> Iterator[Block]:
        """Thresholds down, curves across, block by block for each model and group."""
        reports, notes = worst_of_each(self.sweep.reports, _by_brier)
        plan = self.sweep.head.plan
        lines = [*source_lines(replace(self.sweep.head, notes=(*self.sweep.head.notes, *notes)))]
        lines.append(self._costs())
        if plan.intervals:
            lines.append(f"[..]: {100 * plan.confidence:g} % intervals, each for its own t*")
        yield SourceLines(tuple(lines))
        rows = _shown(self.sweep, self.everything)
        together = [report for report in reports if report.group is None]
        if len(together) > 1:
            yield _net_benefits(self.sweep, together, rows)
        unit = f"{self.terms.noun} {self.terms.span}" if self.terms.with_amounts else PER_DECISION
        if self.sweep.lowest is not None:
            yield from lowest_blocks(self.sweep.lowest, unit, self.factor)
        elif len(together) > 1:
            yield Notes((NOT_SHOWN,), quiet=True)
        for report in reports:
            yield Heading(report.name)
            for block, title in BLOCKS.items():
                curves = [curve for curve in report.curves.values() if curve.kind.block == block]
                if curves:
                    yield _table(self.sweep, title.format(unit), curves, rows, self.factor)
                    yield from _key(curves, unit)
            if _is_full(self.sweep):
                yield Notes(tuple(_areas(report)))
            yield from reasons((curve.kind.heading, curve.reason) for curve in report.curves.values())
        yield Signature(self.sweep.signature)
        yield from self.drawing

    def _costs(self) -> str:
        """What the two errors cost at each threshold."""
        task = self.sweep.task
        if task is None or task.u_delta == 1:
            unit = f" {self.terms.unit}" if self.terms.unit else ""
            return f"at each t*, a false positive costs t*{unit} and a false negative 1 - t*{unit} (u_delta = 1)"
        both = " ".join(filter(None, (plain(task.u_delta), self.terms.unit)))
        return (
            f"at each t*, a false positive costs t* x {both} and a false negative (1 - t*) x {both} (the u_delta of "
            "your decision)"
        )

    def data(self) -> dict[str, Any]:
        """One report, or several and their lowest curve."""
        sweep = self.sweep
        head = {**data_of(Provenance(sweep.head)), "signature": sweep.signature}
        document = one_or_several(head, [data_of(SweptData(report, self)) for report in sweep.reports])
        if len(sweep.reports) > 1:
            document["lowest"] = None if sweep.lowest is None else data_of(LowestData(sweep.lowest))
        return document

    def _points(self) -> Iterator[list[Any]]:
        for report in self.sweep.reports:
            for name, curve in report.curves.items():
                for k, t in enumerate(self.sweep.grid.thresholds):
                    yield [report.model, report.group, name, float(t), *at_place(curve, k), curve.kind.unit]
                if curve.expectation is not None:
                    expected = [curve.expectation, *(curve.expectation_interval or (None, None))]
                    yield [report.model, report.group, name, None, *expected, curve.kind.unit]


def _by_brier(reports: Sequence[Swept]) -> Order[Swept]:
    return lambda report: lowest_first(-(report.curves["brier"].brier or 0.0)), "Brier score"


def _shown(sweep: Sweep, everything: bool) -> list[int]:
    """Which thresholds to print: the ends, those nearest to round numbers between them, and the user's."""
    at = sweep.grid.thresholds
    if everything or len(at) <= MAX_SHOWN:
        return list(range(len(at)))
    for step in (0.01, 0.02, 0.05, 0.1, 0.2):
        inside = [step * i for i in range(round(1 / step)) if at[0] < step * i < at[-1]]
        if len(inside) <= MAX_SHOWN - 2:
            break
    nearest = {int(np.abs(at - t).argmin()) for t in inside}
    own = {int(np.abs(at - t).argmin()) for t in sweep.thresholds}
    return sorted(nearest | {0, len(at) - 1} | own)


def _key(curves: Sequence[MetricCurve], unit: str) -> Iterator[Notes]:
    """What columns show whose names do not say it."""
    said = [f"{curve.kind.heading}: {curve.kind.says.format(unit)}" for curve in curves if curve.kind.says]
    if said:
        yield Notes((f"{'; '.join(said)}.",), close=True, quiet=True)


def _is_full(sweep: Sweep) -> bool:
    """Whether curves are shown from end to end, so that the areas under them can be seen."""
    at = sweep.grid.thresholds
    return bool(len(at) > MAX_SHOWN and at[0] <= FULL[0] and at[-1] >= FULL[1])


def _is_own(sweep: Sweep, k: int) -> bool:
    """Whether this threshold is one of the user's decision."""
    return float(sweep.grid.thresholds[k]) in sweep.thresholds


def _threshold(sweep: Sweep, k: int) -> Cell:
    at = float(sweep.grid.thresholds[k])
    return words(plain(at) if _is_own(sweep, k) else short(at, 3))


def _net_benefits(sweep: Sweep, reports: list[Swept], shown: list[int]) -> TextTable:
    """The models against treating all and treating none."""
    columns = [Column("t*", words=True), Column("treat none"), Column("treat all"), *(Column(r.model) for r in reports)]
    rows = []
    for k in shown:
        everyone = reports[0].curves["net_benefit_all"]
        cells = (_cell(curve, k) for curve in (everyone, *(report.curves["net_benefit"] for report in reports)))
        rows.append(Row((_threshold(sweep, k), words(short(0.0, 4)), *cells), chosen=_is_own(sweep, k)))
    title = "Net benefit of all models, in true positives per row"
    return TextTable(tuple(columns), tuple(rows), title=title, keys=1, stacked=True, picks=bool(sweep.thresholds))


def _table(sweep: Sweep, title: str, curves: list[MetricCurve], shown: list[int], factor: float) -> TextTable:
    columns = [Column(curve.kind.heading, sparkline(curve.value), breaks=(HEADING_WIDTH,)) for curve in curves]
    rows = []
    for k in shown:
        cells = (_cell(curve, k, factor) for curve in curves)
        rows.append(Row((_threshold(sweep, k), *cells), chosen=_is_own(sweep, k)))
    if sweep.grid.prior is not None:
        cells = (_expected(curve, factor) for curve in curves)
        rows.append(Row((words("prior"), *cells), apart=True))
    every = (Column("t*", words=True), *columns)
    return TextTable(every, tuple(rows), title=title, keys=1, stacked=True, picks=bool(sweep.thresholds))


def _cell(curve: MetricCurve, k: int, factor: float = 1.0) -> Cell:
    value, low, high = at_place(curve, k)
    return _scaled(curve, value, None if low is None or high is None else (low, high), factor)


def _expected(curve: MetricCurve, factor: float) -> Cell:
    return _scaled(curve, curve.expectation, curve.expectation_interval, factor)


def _scaled(curve: MetricCurve, value: float | None, ends: tuple[float, float] | None, factor: float) -> Cell:
    """A value with its interval; of a utility, times the factor."""
    by = factor if curve.kind.unit in (PER_DECISION, "utility lost per decision") else 1.0
    return number(None if value is None else by * value, None if ends is None else (by * ends[0], by * ends[1]))


def sparkline(values: np.ndarray, width: int = SPARK_WIDTH) -> str:
    """The course of a curve in a few blocks, from its lowest to its highest value; blank where undefined."""
    some = values[np.linspace(0, len(values) - 1, min(width, len(values))).astype(int)]
    if np.isnan(some).all():
        return ""
    low, high = np.nanmin(some), np.nanmax(some)
    scale = (len(SPARKS) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if math.isnan(v) else SPARKS[round((v - low) * scale)] for v in some)


def _areas(report: Swept) -> Iterator[str]:
    """Twice the areas under the Brier curves, which are Brier scores, and what lies between them."""
    brier = {name: curve.brier for name, curve in report.curves.items() if curve.brier is not None}
    now, calibrated = brier["brier"], brier["brier_calibrated"]
    yield (
        f"2 x area under the Brier curve = Brier score: {short(now, 4)} as it is, {short(calibrated, 4)} calibrated; "
        f"between them miscalibration, {short(now - calibrated, 4)}"
    )
    plug_in = brier.get("brier_regions_plug_in")
    if plug_in is None:
        return
    parts = [f"{short(calibrated - plug_in, 4)} plug-in"]
    if "brier_regions" in brier:
        parts.append(f"{short(calibrated - brier['brier_regions'], 4)} held-out")
    loss = report.grouping_loss
    parts.append(f"grouping loss {DASH if loss is None else short(loss, 4)}")
    yield f"2 x area between calibrated and by region: {', '.join(parts)}"
    yield (
        "   (plug-in: frequencies of leaves on the rows they were fitted to, so noise counts as signal; grouping loss: "
        "the same with that noise subtracted; held-out: fitted on other rows, so it includes the cost of learning)"
    )


def at_place(curve: MetricCurve, k: int) -> list[float | None]:
    """A number and the ends of its interval; None where undefined."""
    values = (None if each is None else float(each[k]) for each in (curve.value, curve.low, curve.high))
    return [None if each is None or math.isnan(each) else each for each in values]


def lowest_blocks(lowest: Lowest, unit: str, factor: float) -> Iterator[Block]:
    """A row for each model, and what follows from them all."""

    def head(text: str) -> Column:
        return Column(text, breaks=(16,))

    yield table(
        lowest.rivals,
        [
            (left("model"), lambda rival: rival.name),
            (head("refinement loss"), lambda rival: rival.refinement_loss),
            (head(f"gap, {unit}"), lambda rival: factor * rival.gap),
            (head("at t*"), lambda rival: short(rival.at, 3)),
            (head("lowest at"), lambda rival: f"{100 * rival.share:.0f} % of t*"),
            (
                head("beaten beyond chance by"),
                lambda rival: f"{rival.beaten_by} at {short(rival.beaten_at or 0.0, 3)}" if rival.beaten_by else DASH,
            ),
        ],
        title="Calibrated Brier curves against the lowest of them",
        keys=1,
        stacked=True,
    )
    yield Paragraph(verdict(lowest), close=True)


def verdict(lowest: Lowest) -> str:
    """Whether any model may be sufficient, and whose curve is the best lower one that is known."""
    left = lowest.unbeaten
    holders = [rival for rival in sorted(lowest.rivals, key=lambda rival: -rival.share) if rival.share > 0]
    best = _listed([f"{rival.name} ({100 * rival.share:.0f} % of t*)" for rival in holders]) or "any: all are equal"
    if not left:
        return f"No model named is sufficient here: each is beaten by another. Best known lower curve: {best}."
    if len(left) == len(lowest.rivals):
        return "No model is beaten beyond chance: these rows do not tell which knows more."
    several = len(left) > 1
    others = "the others are" if len(lowest.rivals) - len(left) > 1 else "the other is"
    return (
        f"{_listed(left)} {'are' if several else 'is'} not beaten and may be sufficient; {others} not. "
        f"Best known lower curve: {best}."
    )


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)
